//! `warpcube bench primitives`: runs the suite on the session's device, prints a line as each case is done, writes the
//! report and draws its figures.
//!
//! The suite runs on a thread of its own and sends what it did; this one prints, draws the bar and hears Ctrl-C. The
//! suite then stops before its next timed run, or chunk of rows that it sends.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use warpcube_gpu::{Device, EmulatorOptions, GpuError};
use warpcube_kbench::prims::{self, Follower, Outcome, Plan, Table};
use warpcube_kbench::report;
use warpcube_sql::{Assignment, Connection, Database, DatabaseOptions, Progress, SqlError};

use super::{folder_of, is_folder};
use crate::cli::PrimitivesArgs;
use crate::config;
use crate::console::{self, tell};
use crate::error::{CliError, Result};
use crate::host::{self, Host, TICK};
use crate::progress::Bar;

/// Runs the suite.
pub(crate) fn run(arguments: &PrimitivesArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    is_folder("--json", folder_of(arguments.suite.json.as_deref()))?;
    let session =
        Database::open(DatabaseOptions::new().with_assignments(settings)).map_err(config::from_outside)?.connect();
    host.hold(session.database());
    let done = on_device(arguments, &session, host);
    host::leave(session.database());
    done
}

fn on_device(arguments: &PrimitivesArgs, session: &Connection, host: &Host) -> Result<()> {
    let device = session.database().device().get();
    if arguments.suite.list {
        // No case runs; the list is the same on any device.
        let any = || Device::emulated(EmulatorOptions::default(), 0).map_err(|_| no_device(session));
        let plan = plan(&device.map_or_else(any, Ok)?, arguments)?;
        return console::print(&(plan.cases.join("\n") + "\n"));
    }
    let device = device.ok_or_else(|| no_device(session))?;
    let plan = plan(&device, arguments)?;
    if let Some(folder) = &arguments.figures {
        std::fs::create_dir_all(folder).map_err(|error| CliError::writing(&folder.display().to_string(), &error))?;
    }
    let outcome = measure(&device, arguments, plan, host)?;
    if let Some(path) = &arguments.suite.json {
        report::write(path, &outcome.report).map_err(|error| CliError::writing(&path.display().to_string(), &error))?;
    }
    if let Some(folder) = &arguments.figures {
        draw(folder, &outcome.report)?;
    }
    match outcome.failures.is_empty() {
        true => Ok(()),
        false => Err(CliError::Verify(outcome.failures.join("; "))),
    }
}

fn no_device(session: &Connection) -> CliError {
    let reason = session.database().device().reason().unwrap_or_else(|| "there is no device".into());
    CliError::Usage(format!("primitives are measured on a GPU, or with --device emulated: {reason}"))
}

fn plan(device: &Device, arguments: &PrimitivesArgs) -> Result<Plan> {
    prims::plan(device, &arguments.suite).map_err(CliError::Usage)
}

/// What the suite did.
enum Event {
    Measured(Value),
    LeftOut(String, String),
    Failed(String),
}

/// The suite's end of the line.
struct Sender {
    events: UnboundedSender<Event>,
    stop: Arc<AtomicBool>,
}

impl Follower for Sender {
    // The receiver is gone only after the run.
    fn measured(&mut self, result: &Value) {
        let _ = self.events.send(Event::Measured(result.clone()));
    }

    fn left_out(&mut self, case: &str, reason: &str) {
        let _ = self.events.send(Event::LeftOut(case.to_string(), reason.to_string()));
    }

    fn failed(&mut self, reason: &str) {
        let _ = self.events.send(Event::Failed(reason.to_string()));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs the cases on a thread of their own and prints what they give.
fn measure(device: &Device, arguments: &PrimitivesArgs, plan: Plan, host: &Host) -> Result<Outcome> {
    let (sender, events) = unbounded_channel();
    let stop = Arc::new(AtomicBool::new(false));
    let goes_on = arguments.suite.json.is_some() || arguments.figures.is_some();
    let mut printer = Printer::new(device, &plan.cases, goes_on)?;
    let work = {
        let (device, suite, mut follower) =
            (device.clone(), arguments.suite.clone(), Sender { events: sender, stop: stop.clone() });
        host.spawn_blocking(move || prims::run(&device, &suite, plan, &mut follower))
    };
    let done = follow(host, work, events, &stop, &mut printer)?;
    printer.bar.clear();
    match (printer.failure.take(), done) {
        (Some(failure), _) => Err(failure),
        (None, Err(GpuError::Cancelled)) => Err(SqlError::Cancelled.into()),
        (None, done) => done.map_err(|error| CliError::Data(error.to_string())),
    }
}

/// Prints the events of the work until it is done. An interrupt or a closed output stops it.
fn follow<T>(
    host: &Host,
    work: tokio::task::JoinHandle<T>,
    mut events: UnboundedReceiver<Event>,
    stop: &AtomicBool,
    printer: &mut Printer,
) -> Result<T> {
    let mut interrupts = host.interrupts()?;
    let ended = host.block_on(async {
        tokio::pin!(work);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                // The program's end stays signalled, so that it is received once only.
                () = interrupts.recv(), if !stop.load(Ordering::Relaxed) => stop.store(true, Ordering::Relaxed),
                Some(event) = events.recv() => printer.event(&event, stop),
                ended = &mut work => return ended,
                _ = tick.tick() => printer.tick(),
            }
        }
    });
    while let Ok(event) = events.try_recv() {
        printer.event(&event, stop);
    }
    ended.map_err(|error| SqlError::Internal(error.to_string()).into())
}

/// Prints the table as the cases go by, and the bar.
struct Printer {
    table: Table,
    cases: Vec<String>,
    /// Cases that are over, with those before them that have no result.
    done: usize,
    bar: Bar,
    /// True if the run goes on after the reader of its text has gone.
    goes_on: bool,
    /// Why no more can be printed.
    failure: Option<CliError>,
    is_closed: bool,
}

impl Printer {
    fn new(device: &Device, cases: &[String], goes_on: bool) -> Result<Printer> {
        let (table, bar) = (Table::new(cases), Bar::new("measuring"));
        let (failure, is_closed) = (None, false);
        let mut printer = Printer { table, cases: cases.to_vec(), done: 0, bar, goes_on, failure, is_closed };
        printer.line(&format!("{} on {}, milliseconds", prims::SUITE, device.info().name));
        printer.line(&printer.table.head());
        printer.failure.take().map_or(Ok(printer), Err)
    }

    fn event(&mut self, event: &Event, stop: &AtomicBool) {
        match event {
            Event::Measured(result) => self.line(&self.table.line(result)),
            Event::LeftOut(case, reason) => self.line(&self.table.without(case, reason)),
            Event::Failed(reason) => self.line(&format!("NOT verified: {reason}")),
        }
        let done = match event {
            Event::Measured(result) => prims::done_behind(&self.cases, result),
            Event::LeftOut(case, _) => self.cases.iter().position(|planned| planned == case).map(|place| place + 1),
            Event::Failed(_) => None,
        };
        self.done = self.done.max(done.unwrap_or(0));
        if self.failure.is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }

    fn tick(&mut self) {
        let Some(case) = self.cases.get(self.done) else { return };
        self.bar.name(case);
        self.bar.update(Progress { done: self.done as u64, total: self.cases.len() as u64, loading: false });
    }

    fn line(&mut self, line: &str) {
        if self.is_closed || self.failure.is_some() {
            return;
        }
        self.bar.clear();
        match console::print(&format!("{line}\n")) {
            Err(CliError::Closed) if self.goes_on => self.is_closed = true,
            written => self.failure = written.err(),
        }
    }
}

/// Draws the figures that the report has results for.
fn draw(folder: &Path, report: &Value) -> Result<()> {
    let figures = warpcube_figures::primitives(report);
    for figure in &figures {
        let path = folder.join(format!("{}.svg", figure.name));
        let written = std::fs::write(&path, &figure.svg);
        written.map_err(|error| CliError::writing(&path.display().to_string(), &error))?;
    }
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    match names.is_empty() {
        true => tell("no figure: none of the cases that were run is in one"),
        false => tell(format_args!("figures in {}: {}", folder.display(), names.join(", "))),
    }
    Ok(())
}
