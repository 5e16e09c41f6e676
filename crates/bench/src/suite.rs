//! What a benchmark is, and the runner of all: groups of cases in their order, lines for people as cases are measured,
//! and the file of results, written behind each group, so that a run that is cut off leaves what it has measured.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::temporal_conversions::timestamp_s_to_datetime;
use clap::Args;
use serde_json::Value;
use thiserror::Error;
use warpcube_gpu::{Device, GpuError};

use crate::render::Spec;
use crate::render::terminal::{Terminal, full_name};
use crate::report::{Case, Figures, Report};

/// The commit that the program was built from, if the build was given it.
pub const COMMIT: Option<&str> = option_env!("WARPCUBE_COMMIT");

/// A benchmark: cases by groups that share their data.
pub trait Suite: Send {
    /// What its reports begin with.
    fn about(&self) -> About<'_>;

    /// The cases that were asked for, in the order they run, by groups. A group without cases is not run.
    ///
    /// # Errors
    /// A name that no case has; files to read that are not there or have another form.
    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure>;

    /// Makes the data of a group.
    ///
    /// # Errors
    /// The data cannot be made.
    fn setup(&mut self, _run: &mut Run, _group: usize) -> Result<(), Failure> {
        Ok(())
    }

    /// Measures the cases of a group and adds their results to the run.
    ///
    /// # Errors
    /// [`Failure::Wrong`] ends the group alone, all else the run.
    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure>;

    /// Compares answers of a group that [`Suite::run`] has not compared as it measured.
    ///
    /// # Errors
    /// As [`Suite::run`].
    fn verify(&mut self, _run: &mut Run, _group: usize) -> Result<(), Failure> {
        Ok(())
    }

    /// What follows all groups.
    ///
    /// # Errors
    /// As [`Suite::run`].
    fn end(&mut self, _run: &mut Run) -> Result<(), Failure> {
        Ok(())
    }

    /// The report as it is written, from what was measured so far.
    fn written(&self, report: &Report) -> Report {
        report.clone()
    }

    /// The line above the table; none for a suite without a table.
    fn title(&self) -> Option<String> {
        let About { name, device, .. } = self.about();
        Some(format!("{name} on {}, milliseconds", device_name(device)))
    }

    /// Whether DuckDB is measured beside it.
    fn has_duckdb(&self) -> bool {
        false
    }
}

/// A suite in the words of its reports.
pub struct About<'a> {
    /// Its name.
    pub name: &'static str,
    /// The device that it is measured on; none for the CPU.
    pub device: Option<&'a Device>,
    /// How it is measured.
    pub params: Value,
}

/// Why a run ends, or a group of it.
#[derive(Debug, Error)]
pub enum Failure {
    /// An answer is wrong or the device failed.
    #[error("{0}")]
    Wrong(String),
    /// Arguments that make no sense together, or name what is not there.
    #[error("{0}")]
    Usage(String),
    /// Data that cannot be made.
    #[error("{0}")]
    Data(String),
    /// A file that cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The listener stopped the run.
    #[error("cancelled")]
    Cancelled,
    /// A statement failed.
    #[cfg(feature = "queries")]
    #[error("{error}")]
    Sql {
        /// The query, if it is one of the benchmark.
        place: Option<String>,
        /// What is wrong.
        error: Box<warpcube_sql::SqlError>,
    },
}

impl Failure {
    /// The failure with where it was, if answers or the device are wrong.
    pub(crate) fn at(self, place: &str) -> Failure {
        match self {
            Failure::Wrong(reason) => Failure::Wrong(format!("{place}: {reason}")),
            other => other,
        }
    }
}

impl From<&str> for Failure {
    fn from(reason: &str) -> Failure {
        Failure::Wrong(reason.to_string())
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Wrong(reason)
    }
}

#[cfg(feature = "queries")]
impl From<warpcube_sql::SqlError> for Failure {
    fn from(error: warpcube_sql::SqlError) -> Failure {
        match error.is_cancelled() {
            true => Failure::Cancelled,
            false => Failure::Sql { place: None, error: Box::new(error) },
        }
    }
}

#[cfg(feature = "queries")]
impl From<warpcube_datagen::DatagenError> for Failure {
    fn from(error: warpcube_datagen::DatagenError) -> Failure {
        match error {
            warpcube_datagen::DatagenError::Cancelled => Failure::Cancelled,
            warpcube_datagen::DatagenError::Scale(_) => Failure::Usage(format!("--sf: {error}")),
            warpcube_datagen::DatagenError::Rows(_) => Failure::Usage(format!("--rows: {error}")),
            other => Failure::Data(other.to_string()),
        }
    }
}

impl From<GpuError> for Failure {
    fn from(error: GpuError) -> Failure {
        match error {
            GpuError::Cancelled => Failure::Cancelled,
            error => Failure::Wrong(error.to_string()),
        }
    }
}

/// Hears how a run goes on, and may stop it.
pub trait Listener: Send {
    /// A line of results.
    fn line(&mut self, line: &str);
    /// A line about the run.
    fn tell(&mut self, line: &str);
    /// What the run is at: so many steps of all are done.
    fn at(&mut self, what: &str, done: u64, total: u64);
    /// Whether to stop before the next launch.
    fn is_stopped(&self) -> bool;
}

/// What to do with the results of a run.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// List the cases that would run, and run none
    #[arg(long)]
    pub list: bool,
    /// Write the measurements to this file
    #[arg(long, visible_alias = "out", value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draw the results as SVG files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub figures: Option<PathBuf>,
}

/// A run: what was measured, and the listener that is told of each case.
pub struct Run {
    /// The results so far.
    pub report: Report,
    terminal: Terminal,
    cases: Vec<String>,
    /// Cases that are over, with those before them that have no result.
    done: usize,
    listener: Box<dyn Listener>,
}

impl Run {
    /// A run of the suite of that name whose listener does nothing.
    ///
    /// # Errors
    /// As [`Run::new`].
    pub(crate) fn unheard(suite: &str) -> Result<Run, Failure> {
        let terminal = Spec::of(suite).map_err(Failure::Usage)?.terminal(&[], false);
        let (report, listener) = (Report::new(suite, ""), Box::new(Unheard));
        Ok(Run { report, terminal, cases: Vec::new(), done: 0, listener })
    }

    /// A run of cases that begins.
    ///
    /// # Errors
    /// A suite that is shown nowhere.
    pub fn new(suite: &dyn Suite, cases: Vec<String>, listener: Box<dyn Listener>) -> Result<Run, Failure> {
        let About { name, device, params } = suite.about();
        let terminal = Spec::of(name).map_err(Failure::Usage)?.terminal(&cases, suite.has_duckdb());
        let mut report = Report::new(name, &device_name(device));
        report.driver = device.map(|device| device.info().driver.clone());
        (report.date, report.commit) = (Some(today()), COMMIT.map(str::to_string));
        report.params = figures(params);
        Ok(Run { report, terminal, cases, done: 0, listener })
    }

    /// Keeps the result of a case and shows it.
    pub fn add(&mut self, case: Case) {
        self.listener.line(&self.terminal.line(&case));
        self.done(done_behind(&self.cases, &case));
        self.report.results.push(case);
    }

    /// Says that a case cannot be measured, which is no defect.
    pub fn leave_out(&mut self, case: &str, reason: &str) {
        self.listener.line(&self.terminal.without(case, reason));
        self.done(self.cases.iter().position(|planned| planned == case).map(|at| at + 1));
    }

    /// Shows a line among the results.
    pub fn say(&mut self, line: &str) {
        self.listener.line(line);
    }

    /// Tells of what the run does besides measuring.
    pub fn tell(&mut self, line: &str) {
        self.listener.tell(line);
    }

    /// Tells how far a step is that is no case.
    pub fn at(&mut self, what: &str, done: u64, total: u64) {
        self.listener.at(what, done, total);
    }

    /// Whether the run was stopped.
    pub fn is_stopped(&self) -> bool {
        self.listener.is_stopped()
    }

    /// Asked before each timed run.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`] if the run was stopped.
    pub fn go_on(&self) -> Result<(), GpuError> {
        if self.is_stopped() { Err(GpuError::Cancelled) } else { Ok(()) }
    }

    /// The reason of what went wrong, which is shown and ends nothing else.
    fn wrong(&mut self, done: Result<(), Failure>) -> Result<Option<String>, Failure> {
        match done {
            Err(Failure::Wrong(reason)) => {
                self.say(&format!("NOT verified: {reason}"));
                Ok(Some(reason))
            }
            done => done.map(|()| None),
        }
    }

    fn done(&mut self, done: Option<usize>) {
        self.done = self.done.max(done.unwrap_or(0));
        if let Some(next) = self.cases.get(self.done) {
            self.listener.at(next, self.done as u64, self.cases.len() as u64);
        }
    }
}

/// Runs all groups of a suite, writes the file and the drawings that were asked for, and gives what was measured.
///
/// # Errors
/// What [`Suite`] says; [`Failure::Wrong`] behind the last group, with all that is wrong.
pub fn run(suite: &mut dyn Suite, arguments: &RunArgs, listener: Box<dyn Listener>) -> Result<Report, Failure> {
    let groups = suite.cases()?;
    if let Some(folder) = &arguments.figures {
        std::fs::create_dir_all(folder).map_err(|error| Failure::Output { path: folder.clone(), error })?;
    }
    let mut run = Run::new(suite, groups.concat(), listener)?;
    if let Some(title) = suite.title() {
        run.say(&title);
        run.say(&run.terminal.head());
    }
    let mut failures = Vec::new();
    for group in (0..groups.len()).filter(|group| !groups[*group].is_empty()) {
        run.done(None);
        let done = suite.setup(&mut run, group);
        let done = done.and_then(|()| suite.run(&mut run, group)).and_then(|()| suite.verify(&mut run, group));
        write(arguments.json.as_deref(), &suite.written(&run.report))?;
        if run.is_stopped() {
            return Err(Failure::Cancelled);
        }
        failures.extend(run.wrong(done)?);
    }
    let done = suite.end(&mut run);
    failures.extend(run.wrong(done)?);
    let report = suite.written(&run.report);
    write(arguments.json.as_deref(), &report)?;
    if let Some(folder) = &arguments.figures {
        draw(&mut run, folder, &report)?;
    }
    let wrong = run.report.wrong();
    if !wrong.is_empty() && failures.is_empty() {
        failures.push(format!("other answers than expected: {}", wrong.join(", ")));
    }
    match failures.is_empty() {
        true => Ok(report),
        false => Err(Failure::Wrong(failures.join("; "))),
    }
}

fn write(path: Option<&Path>, report: &Report) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    report.write(path).map_err(|error| Failure::Output { path: path.to_path_buf(), error })
}

/// Draws what the report has results for.
fn draw(run: &mut Run, folder: &Path, report: &Report) -> Result<(), Failure> {
    let drawings = Spec::of(&report.suite).map_err(Failure::Usage)?.drawings(report);
    for drawing in &drawings {
        let path = folder.join(format!("{}.svg", drawing.name));
        std::fs::write(&path, &drawing.svg).map_err(|error| Failure::Output { path, error })?;
    }
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.name).collect();
    match names.is_empty() {
        true => run.tell("no figure: none of the cases that were run is in one"),
        false => run.tell(&format!("figures in {}: {}", folder.display(), names.join(", "))),
    }
    Ok(())
}

/// The names of `--cases`.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a>(pub &'a [String]);

impl Filter<'_> {
    /// Whether a case was asked for; all were if none is named.
    pub fn wants(&self, case: &str) -> bool {
        self.0.is_empty() || self.names(case)
    }

    /// Whether a name names the case or one above it.
    pub fn names(&self, case: &str) -> bool {
        self.0.iter().any(|name| is_named(case, name))
    }

    /// Refuses names that no case has; `except` says which cases a listing leaves out.
    ///
    /// # Errors
    /// Such a name.
    pub fn check(&self, cases: &[String], except: &str) -> Result<(), Failure> {
        if self.0.iter().any(String::is_empty) {
            return Err(Failure::Usage("--cases: a name is empty; names are separated by single commas".into()));
        }
        match self.0.iter().find(|name| !cases.iter().any(|case| is_named(case, name))) {
            Some(unknown) => {
                Err(Failure::Usage(format!("--cases {unknown}: no case has this name; --list shows all{except}")))
            }
            None => Ok(()),
        }
    }
}

/// True if a case has this name or lies below it; `*` stands for any part.
pub fn is_named(case: &str, name: &str) -> bool {
    let mut parts = case.split('/');
    let mut names = name.trim_end_matches('/').split('/');
    names.all(|name| parts.next().is_some_and(|part| name == "*" || name == part))
}

/// The number of `cases` that are done behind this result. A case with results by strategy is not done before its last
/// one. `None` for results of other cases, such as those of some sweeps.
fn done_behind(cases: &[String], result: &Case) -> Option<usize> {
    let place = |name: &str| cases.iter().position(|case| case == name);
    place(&full_name(result)).map(|at| at + 1).or_else(|| place(&result.name))
}

pub(crate) fn device_name(device: Option<&Device>) -> String {
    device.map_or_else(|| "CPU".to_string(), |device| device.info().name.clone())
}

/// The date, as `2026-01-31`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    timestamp_s_to_datetime(seconds as i64).map_or_else(String::new, |now| now.date().to_string())
}

/// Figures of an object, for `json!({…})`.
pub(crate) fn figures(value: Value) -> Figures {
    Case::new("", value).figures
}

/// Hears nothing and stops nothing: for listings.
pub(crate) struct Unheard;

impl Listener for Unheard {
    fn line(&mut self, _line: &str) {}
    fn tell(&mut self, _line: &str) {}
    fn at(&mut self, _what: &str, _done: u64, _total: u64) {}
    fn is_stopped(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;

    /// Notes the lines of a run and stops it behind so many.
    #[derive(Clone)]
    pub(crate) struct Notes {
        pub(crate) lines: Arc<Mutex<Vec<String>>>,
        lines_max: usize,
    }

    impl Notes {
        /// Hears a suite's run, which stops behind so many results.
        ///
        /// # Errors
        /// As [`run`].
        pub(crate) fn run(suite: &mut dyn Suite, results_max: usize) -> (Result<Report, Failure>, Vec<String>) {
            let notes = Notes { lines: Default::default(), lines_max: results_max.saturating_add(2) };
            let report = run(suite, &RunArgs::default(), Box::new(notes.clone()));
            let lines = notes.lines.lock().unwrap().clone();
            (report, lines)
        }
    }

    impl Listener for Notes {
        fn line(&mut self, line: &str) {
            self.lines.lock().unwrap().push(line.to_string());
        }
        fn tell(&mut self, _line: &str) {}
        fn at(&mut self, _what: &str, _done: u64, _total: u64) {}
        fn is_stopped(&self) -> bool {
            self.lines.lock().unwrap().len() >= self.lines_max
        }
    }

    #[test]
    fn names_match_by_whole_parts() {
        let name = "random/offset-value/k2/s99.9/cpu";
        let is = |wanted| is_named(name, wanted);
        assert!(is("random") && is("random/") && is("*/offset-value") && is("*/*/*/s99.9/cpu") && is(name));
        assert!(!is("rand") && !is("*/*/*/s99") && !is(&format!("{name}/more")));
        assert!(is_named("topk/f32/uniform/1/threshold", "topk/f32/uniform/1"));
        assert!(is_named("select/30", "select/30") && is_named("select/30", "select/"));
        assert!(!is_named("topk/f32/uniform/128/threshold", "topk/f32/uniform/1") && !is_named("sort", "so"));
    }

    #[test]
    fn cases_are_over_by_their_names() {
        let cases = ["select/30/any", "select/30/stable", "join/8192", "ordered/forms/five/count/16"].map(String::from);
        let behind = |result: Value| done_behind(&cases, &serde_json::from_value(result).unwrap());
        assert_eq!(behind(json!({"case": "select/30", "order": "any"})), Some(1));
        assert_eq!(behind(json!({"case": "select/30", "order": "stable"})), Some(2));
        assert_eq!(behind(json!({"case": "join/8192", "strategy": "DirectAddress"})), Some(2), "others may follow");
        assert_eq!(behind(json!({"case": "ordered/forms/five/count/16", "algorithm": "five"})), Some(4));
        assert_eq!(behind(json!({"case": "groupby/10", "strategy": "DeviceTable"})), None);
    }

    /// Groups of numbers; a case whose number is odd is wrong, one of 9 fails.
    struct Numbers(Vec<Vec<u32>>, Option<u32>);

    impl Suite for Numbers {
        fn about(&self) -> About<'_> {
            About { name: "encode-cpu", device: None, params: json!({"groups": self.0.len()}) }
        }
        fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
            Ok(self.0.iter().map(|group| group.iter().map(u32::to_string).collect()).collect())
        }
        fn setup(&mut self, _run: &mut Run, group: usize) -> Result<(), Failure> {
            self.1 = self.0[group].first().copied();
            Ok(())
        }
        fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
            assert_eq!(self.1, self.0[group].first().copied(), "data of this group");
            for number in &self.0[group] {
                run.go_on()?;
                if *number == 9 {
                    return Err("9 fails".to_string().into());
                }
                run.add(Case::new(number.to_string(), json!({"ms": number})));
            }
            Ok(())
        }
        fn end(&mut self, _run: &mut Run) -> Result<(), Failure> {
            if self.0.is_empty() { Err("no group".into()) } else { Ok(()) }
        }
        fn verify(&mut self, run: &mut Run, _group: usize) -> Result<(), Failure> {
            run.report.results.iter_mut().for_each(|case| case.verified = Some(case["ms"].as_u64() != Some(3)));
            Ok(())
        }
    }

    #[test]
    fn a_group_that_fails_ends_alone() {
        let numbers = |groups: &[&[u32]]| Numbers(groups.iter().map(|group| group.to_vec()).collect(), None);
        let (report, lines) = Notes::run(&mut numbers(&[&[2, 4], &[], &[6]]), usize::MAX);
        let (report, names) = (report.unwrap(), |report: &Report| {
            report.results.iter().map(|case| case.name.clone()).collect::<Vec<_>>().join(" ")
        });
        assert_eq!((names(&report).as_str(), report.params["groups"].as_u64()), ("2 4 6", Some(3)));
        assert_eq!(lines[0], "encode-cpu on CPU, milliseconds");
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("r.json");
        let arguments = RunArgs { json: Some(json.clone()), ..RunArgs::default() };
        let failed = run(&mut numbers(&[&[2, 9, 4], &[6]]), &arguments, Box::new(Unheard)).unwrap_err();
        assert_eq!(failed.to_string(), "9 fails");
        assert_eq!(names(&Report::read(&json).unwrap()), "2 6");
        let wrong = run(&mut numbers(&[&[2, 3]]), &arguments, Box::new(Unheard)).unwrap_err();
        assert_eq!(wrong.to_string(), "other answers than expected: 3");
        std::fs::remove_file(&json).unwrap();
        let ended = run(&mut numbers(&[]), &arguments, Box::new(Unheard)).unwrap_err();
        assert!(ended.to_string() == "no group" && json.exists(), "the file is written though the end is wrong");
        let (stopped, lines) = Notes::run(&mut numbers(&[&[2, 4, 6]]), 2);
        assert!(matches!(stopped, Err(Failure::Cancelled)) && lines.len() == 4, "{lines:?}");
        let notes = Notes { lines: Default::default(), lines_max: 4 };
        let stopped = run(&mut numbers(&[&[8, 4, 6]]), &arguments, Box::new(notes));
        assert!(matches!(stopped, Err(Failure::Cancelled)));
        assert_eq!(names(&Report::read(&json).unwrap()), "8 4", "what was measured is left");
    }
}
