//! `warpcube bench cube` and `warpcube bench schemes`: run their suite on the session's device, print a line as each
//! case is done, write the report.

use std::path::Path;
use std::sync::mpsc::channel;

use serde_json::Value;
use warpcube_gpu::Device;
use warpcube_kbench::cube::{self, CubeArgs};
use warpcube_kbench::report;
use warpcube_kbench::schemes::{self, SchemeArgs};
use warpcube_sql::{Assignment, Connection, Database, DatabaseOptions, SqlError};

use super::{folder_of, is_folder};
use crate::config;
use crate::console;
use crate::error::{CliError, Result};
use crate::host::{self, Host};

/// A suite: its report, with a line for each case.
type Suite = dyn FnOnce(&Device, &mut dyn FnMut(&str)) -> std::result::Result<Value, String> + Send;

/// Runs the suite `cube`.
pub(crate) fn aggregation(arguments: &CubeArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let suite = arguments.clone();
    let json = arguments.json.as_deref();
    let report = on_device(Box::new(move |device, say| cube::run(device, &suite, say)), json, settings, host)?;
    match cube::wrong(&report).as_slice() {
        [] => Ok(()),
        wrong => Err(CliError::Verify(format!("other cells than those of the query: {}", wrong.join(", ")))),
    }
}

/// Runs the suite `schemes`.
pub(crate) fn schemes(arguments: &SchemeArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let cases = schemes::plan(arguments).map_err(CliError::Usage)?;
    if arguments.list {
        return console::print(&(cases.join("\n") + "\n"));
    }
    let suite = arguments.clone();
    let json = arguments.json.as_deref();
    on_device(Box::new(move |device, say| schemes::run(device, &suite, say)), json, settings, host).map(drop)
}

/// Runs a suite on the session's device, prints its lines and writes its report.
fn on_device(suite: Box<Suite>, json: Option<&Path>, settings: Vec<Assignment>, host: &Host) -> Result<Value> {
    // Before minutes of work rather than after.
    is_folder("--json", folder_of(json))?;
    let session =
        Database::open(DatabaseOptions::new().with_assignments(settings)).map_err(config::from_outside)?.connect();
    host.hold(session.database());
    let done = measured(suite, &session, host);
    host::leave(session.database());
    let report = done?;
    if let Some(path) = json {
        report::write(path, &report).map_err(|error| CliError::writing(&path.display().to_string(), &error))?;
    }
    Ok(report)
}

fn measured(suite: Box<Suite>, session: &Connection, host: &Host) -> Result<Value> {
    let device = session.database().device().get().ok_or_else(|| {
        let reason = session.database().device().reason().unwrap_or_else(|| "there is no device".into());
        CliError::Usage(format!("this suite is measured on a GPU: {reason}"))
    })?;
    let (sender, lines) = channel::<String>();
    let work = async move {
        let run = move || {
            // The receiver is gone only after an interrupt.
            suite(&device, &mut |line| drop(sender.send(line.to_string())))
        };
        let done = tokio::task::spawn_blocking(run).await.map_err(|error| SqlError::Internal(error.to_string()))?;
        done.map_err(CliError::Data)
    };
    let mut failure = Ok(());
    let mut print = || {
        let text: String = lines.try_iter().map(|line| line + "\n").collect();
        if failure.is_ok() && !text.is_empty() {
            failure = console::print(&text);
        }
    };
    let done = host.run_and(work, &mut print, || true);
    print();
    failure.and(done)
}
