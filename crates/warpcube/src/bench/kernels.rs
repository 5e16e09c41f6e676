//! `warpcube bench primitives`, `cube` and `schemes`: the suites without SQL, on the session's device.

use warpcube_bench::cube::{CubeArgs, Cubes};
use warpcube_bench::prims::{PrimitiveArgs, Primitives};
use warpcube_bench::schemes::{SchemeArgs, Schemes};
use warpcube_bench::suite::{Failure, RunArgs, Suite};
use warpcube_gpu::{Device, EmulatorOptions};
use warpcube_sql::{Assignment, Session, SessionOptions};

use super::follow::follow;
use super::{folder_of, is_folder};
use crate::config;
use crate::console;
use crate::error::{CliError, Result};
use crate::host::{self, Host};

/// Runs the suite `primitives`.
pub(crate) fn primitives(arguments: &PrimitiveArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let suite = |device| Ok(Box::new(Primitives::new(device, arguments.clone())) as Box<dyn Suite>);
    on_device("primitives", suite, &arguments.run, settings, host)
}

/// Runs the suite `cube`.
pub(crate) fn cubes(arguments: &CubeArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let suite = |device| Ok(Box::new(Cubes::new(device, arguments.clone())?) as Box<dyn Suite>);
    on_device("cubes", suite, &arguments.run, settings, host)
}

/// Runs the suite `schemes`.
pub(crate) fn schemes(arguments: &SchemeArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let suite = |device| Ok(Box::new(Schemes::new(device, arguments.clone())) as Box<dyn Suite>);
    on_device("storage schemes", suite, &arguments.run, settings, host)
}

/// Lists the cases of a suite, or runs them on the session's device.
fn on_device(
    what: &str,
    suite: impl FnOnce(Device) -> Result<Box<dyn Suite>, Failure>,
    arguments: &RunArgs,
    settings: Vec<Assignment>,
    host: &Host,
) -> Result<()> {
    // Before minutes of work rather than after.
    is_folder("--json", folder_of(arguments.json.as_deref()))?;
    let session = Session::new(SessionOptions::new().with_assignments(settings)).map_err(config::from_outside)?;
    host.hold(&session);
    let done = over(what, suite, arguments, &session, host);
    host::leave(&session);
    done
}

fn over(
    what: &str,
    suite: impl FnOnce(Device) -> Result<Box<dyn Suite>, Failure>,
    arguments: &RunArgs,
    session: &Session,
    host: &Host,
) -> Result<()> {
    let no_device = || {
        let reason = session.device().reason().unwrap_or_else(|| "there is no device".into());
        CliError::Usage(format!("{what} are measured on a GPU, or with --device emulated: {reason}"))
    };
    let device = session.device().get();
    if arguments.list {
        // No case runs; the list is the same on any device.
        let any = || Device::emulated(EmulatorOptions::default(), 0).map_err(|_| no_device());
        let cases = suite(device.map_or_else(any, Ok)?)?.cases()?.concat();
        return console::print(&(cases.join("\n") + "\n"));
    }
    follow(suite(device.ok_or_else(no_device)?)?, arguments, false, host).map(drop)
}
