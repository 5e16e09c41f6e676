//! `warpcube bench`: benchmarks of queries, which are `warpcube ssb` and `warpcube tpch` too, and of primitives.
//!
//! A benchmark of queries is data ([`suite`]): tables made by a generator, and cases with a name and a query. Measuring
//! ([`measure`]), comparing with plain DataFusion ([`verify`]), DuckDB as a rival ([`mod@duckdb`]), printing
//! ([`print`]) and the file ([`json`]) know no benchmark by name. The suites of primitives and of cubes are a library
//! of their own, followed here ([`primitives`], [`cubes`]).

mod data;
mod duckdb;
mod follow;
mod json;
pub(crate) mod kernels;
mod measure;
mod print;
mod suite;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use warpcube_sql::{Assignment, Baseline, Origin, Session, SessionOptions};

use crate::cli::{BenchArgs, QuerySuite, Rival};
use crate::config;
use crate::error::{CliError, Result};
use crate::host::{self, Host};
use duckdb::DuckDb;
use measure::{Measured, Memory, Threads};
use suite::{Case, Suite};

/// Runs a benchmark that is a command of its own too.
pub(crate) fn suite(suite: &QuerySuite, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    match suite {
        QuerySuite::Ssb(arguments) => queries("ssb", arguments, settings, host),
        QuerySuite::Tpch(arguments) => queries("tpch", arguments, settings, host),
    }
}

/// Runs the benchmark of queries of that name.
pub(crate) fn queries(name: &str, arguments: &BenchArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let suite = suite::find(name, arguments.sf)?.only(&arguments.queries)?;
    if arguments.runs == 0 {
        return Err(CliError::Usage("--runs takes 1 or more".into()));
    }
    // Before hours of work rather than after.
    is_folder("--json", folder_of(arguments.json.as_deref()))?;
    is_folder("--answers", arguments.answers.as_deref())?;
    let mut settings = settings;
    settings.extend(arguments.encoding.clone().map(|value| {
        let origin = Origin::Flag("--encoding".into());
        Assignment { name: "warpcube.encoding".into(), value, origin }
    }));
    let session = Session::new(SessionOptions::new().with_assignments(settings)).map_err(config::from_outside)?;
    host.hold(&session);
    let folder = arguments.dir.clone().map_or_else(|| default_folder(&suite, arguments.sf), Ok)?;
    let tables = data::make(&suite, arguments.sf, &folder, arguments.compression.into(), host)?;

    let done = host.run(all(suite, arguments.clone(), session.clone(), tables));
    host::leave(&session);
    done
}

async fn all(suite: Suite, arguments: BenchArgs, session: Session, tables: Vec<(String, PathBuf)>) -> Result<()> {
    let tables = match &arguments.sorted_by {
        Some(column) => data::sorted(&suite, tables, column).await?,
        None => tables,
    };
    let session = Arc::new(session);
    data::register(&session, &tables).await?;
    // DuckDB runs in a process that ends before anything of ours is timed, so that each has all cores.
    let duckdb = match arguments.rival {
        Some(rival) => {
            let runs = (rival == Rival::Duckdb).then_some(arguments.runs);
            Some(DuckDb::measure(&arguments.python, &tables, &suite.cases, runs).await?)
        }
        None => None,
    };
    let judge = if arguments.verify { Some(data::baseline(&tables).await?) } else { None };
    if let Some(judge) = &judge {
        // Both then find files in the page cache and threads awake.
        measure::warm_up(judge, &suite.cases).await?;
    }
    let mut results: Vec<Measured> = Vec::new();
    let mut answers = Vec::new();
    let mut differences = Vec::new();
    // With --verify, --answers or --json the run goes on after the reader of its text has gone.
    let goes_on = arguments.verify || arguments.answers.is_some() || arguments.json.is_some();
    let mut printer = print::Printer::new(&suite, &session, duckdb.is_some(), goes_on)?;
    for case in &suite.cases {
        let (mut measured, rival) = measure::case(&session, case, arguments.runs, judge.as_ref()).await?;
        if let Some(judge) = &judge {
            let answer = rival.end(judge, case, arguments.runs, &mut measured).await?;
            let mut found = compare(case, &measured, &answer);
            found.extend(compare_varied(case, &measured, judge).await?);
            measured.verified = Some(found.is_empty());
            differences.extend(found);
        }
        if let Some(folder) = &arguments.answers {
            let expected = verify::read(&folder.join(format!("{}.csv", case.name)), &measured.answer)?;
            let found = compare(case, &measured, &expected);
            measured.verified = Some(found.is_empty() && measured.verified != Some(false));
            differences.extend(found);
        }
        if let Some(duckdb) = &duckdb {
            let mut times = duckdb.times(case)?;
            let difference = times.difference(case, &measured.answer)?;
            times.is_shared = difference.is_none();
            measured.duckdb = Some(times);
            differences.extend(difference);
        }
        printer.case(&measured)?;
        // The rows of an answer are not needed any more if no thread is to give them again; there may be many.
        let answer = std::mem::take(&mut measured.answer);
        (measured.first_answer, measured.varied) = (Vec::new(), Vec::new());
        answers.extend((arguments.threads > 0).then_some(answer));
        results.push(measured);
        // The file is written after each case, so that a run that is cut off leaves its measurements.
        if let Some(path) = &arguments.json {
            let results = json::Results { cases: &results, memory: None, threads: None, duckdb: duckdb.as_ref() };
            json::write(path, &suite, &arguments, &session, &results)?;
        }
    }
    let memory = Memory::of(&session, &results);
    printer.end(&results, memory)?;
    let mut threads = None;
    if arguments.threads > 0 {
        let ran = Threads::run(&session, &suite.cases, &answers, arguments.threads).await?;
        printer.threads(&ran)?;
        differences.extend(ran.differences.iter().cloned());
        threads = Some(ran);
    }
    if let Some(path) = &arguments.json {
        let results = json::Results { cases: &results, memory, threads, duckdb: duckdb.as_ref() };
        json::write(path, &suite, &arguments, &session, &results)?;
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(CliError::Verify(differences.join("; "))),
    }
}

/// Where the first answer of a case or its last one differs from the one expected.
fn compare(case: &Case, measured: &Measured, expected: &[RecordBatch]) -> Vec<String> {
    let answers = [("its first run: ", &measured.first_answer), ("", &measured.answer)];
    let difference = |(run, answer): (&str, &Vec<RecordBatch>)| {
        let difference = verify::compare(&case.sql, answer, expected)?;
        Some(format!("{}: {run}{difference}", case.name))
    };
    answers.into_iter().filter_map(difference).collect()
}

/// Where answers of a case's variations differ from those of plain DataFusion, with their texts.
async fn compare_varied(case: &Case, measured: &Measured, judge: &Baseline) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (sql, answer) in &measured.varied {
        let difference = verify::compare(sql, answer, &measure::judged(judge, &case.name, sql).await?);
        found.extend(difference.map(|difference| format!("{}: {difference}, by {sql}", case.name)));
    }
    Ok(found)
}

/// The folder that a file will be in, if it names one.
fn folder_of(file: Option<&Path>) -> Option<&Path> {
    file.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty())
}

/// Refuses a folder that is not there.
fn is_folder(flag: &str, folder: Option<&Path>) -> Result<()> {
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(CliError::Usage(format!("{flag}: there is no folder '{}'", folder.display()))),
        None => Ok(()),
    }
}

/// `warpcube/data/ssb-sf1` in the user's cache folder.
fn default_folder(suite: &Suite, sf: f64) -> Result<PathBuf> {
    let cache = dirs::cache_dir()
        .ok_or_else(|| CliError::Usage("there is no cache folder for the data; name a folder with --dir".into()))?;
    Ok(cache.join("warpcube").join("data").join(format!("{}-sf{sf}", suite.generator.name())))
}
