//! `warpcube bench`, `warpcube ssb` and `warpcube tpch`: suites of the crate `bench` over a connection and its device.

pub(crate) mod follow;

use std::path::Path;

use warpcube_bench::cube::Cubes;
use warpcube_bench::prims::Primitives;
use warpcube_bench::queries::{Benchmark, ClickbenchArgs, H2oArgs, Queries, QueryArgs, ScaledArgs, Size, WindowsArgs};
use warpcube_bench::schemes::Schemes;
use warpcube_bench::suite::{RunArgs, Suite};
use warpcube_gpu::{Device, EmulatorOptions};
use warpcube_sql::{Assignment, Connection, Database, DatabaseOptions, SettingOrigin};

use crate::cli::{BenchSuite, QuerySuite};
use crate::config;
use crate::console;
use crate::error::{CliError, Result};
use crate::exit;
use crate::host::Host;
use follow::follow;

/// Runs a benchmark.
pub(crate) fn suite(suite: &BenchSuite, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    match suite {
        BenchSuite::Primitives(arguments) => over(&arguments.run, false, settings, host, |connection| {
            let device = device("primitives", &arguments.run, connection)?;
            Ok(Box::new(Primitives::new(device, arguments.clone())))
        }),
        BenchSuite::Cube(arguments) => over(&arguments.run, false, settings, host, |connection| {
            Ok(Box::new(Cubes::new(device("cubes", &arguments.run, connection)?, arguments.clone())?))
        }),
        BenchSuite::Schemes(arguments) => over(&arguments.run, false, settings, host, |connection| {
            let device = device("storage schemes", &arguments.run, connection)?;
            Ok(Box::new(Schemes::new(device, arguments.clone())))
        }),
        BenchSuite::Topk(arguments) => scaled("topk", arguments, settings, host),
        BenchSuite::Tpcds(arguments) => scaled("tpcds", arguments, settings, host),
        BenchSuite::Clickbench(ClickbenchArgs { rows, queries: arguments }) => {
            queries("clickbench", Size::Rows(*rows), arguments, settings, host)
        }
        BenchSuite::H2o(H2oArgs { rows, queries: arguments }) => {
            queries("h2o", Size::Rows(*rows), arguments, settings, host)
        }
        BenchSuite::Windows(WindowsArgs { rows, queries: arguments }) => {
            queries("windows", Size::Rows(*rows), arguments, settings, host)
        }
        BenchSuite::Queries(suite) => query_suite(suite, settings, host),
    }
}

/// Runs a benchmark that is a command of its own too.
pub(crate) fn query_suite(suite: &QuerySuite, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    match suite {
        QuerySuite::Ssb(arguments) => scaled("ssb", arguments, settings, host),
        QuerySuite::Tpch(arguments) => scaled("tpch", arguments, settings, host),
    }
}

/// Runs the benchmark of queries of that name, whose data have a scale factor.
fn scaled(name: &str, arguments: &ScaledArgs, settings: Vec<Assignment>, host: &Host) -> Result<()> {
    queries(name, Size::Scale(arguments.sf), &arguments.queries, settings, host)
}

/// Runs the benchmark of queries of that name.
fn queries(name: &str, size: Size, arguments: &QueryArgs, mut settings: Vec<Assignment>, host: &Host) -> Result<()> {
    let benchmark = Benchmark::asked(name, size, arguments)?;
    settings.extend(arguments.encoding.clone().map(|value| {
        let origin = SettingOrigin::Flag("--encoding".into());
        Assignment { name: "warpcube.encoding".into(), value, origin }
    }));
    // With --verify or --answers the run goes on after the reader of its text has gone.
    let goes_on = arguments.verify || arguments.answers.is_some();
    over(&arguments.run, goes_on, settings, host, |connection| {
        Ok(Box::new(Queries::new(benchmark, arguments.clone(), connection.clone(), host.threads())))
    })
}

/// Runs a suite over a connection, or lists its cases.
fn over(
    arguments: &RunArgs,
    goes_on: bool,
    settings: Vec<Assignment>,
    host: &Host,
    suite: impl FnOnce(&Connection) -> Result<Box<dyn Suite>>,
) -> Result<()> {
    // Before minutes of work rather than after.
    let folder = arguments.json.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(CliError::Usage(format!("--json: there is no folder '{}'", folder.display())));
    }
    let connection =
        Database::open(DatabaseOptions::new().with_assignments(settings)).map_err(config::from_outside)?.connect();
    host.hold(connection.database());
    let done = suite(&connection).and_then(|mut suite| match arguments.list {
        true => console::print(&(suite.cases()?.concat().join("\n") + "\n")),
        false => follow(suite, arguments, goes_on, host),
    });
    exit::close(connection.database());
    done
}

/// The connection's device; where cases are only listed, any.
fn device(what: &str, arguments: &RunArgs, connection: &Connection) -> Result<Device> {
    let listed = || Device::emulated(EmulatorOptions::default(), 0).ok().filter(|_| arguments.list);
    connection.database().device().gpu().or_else(listed).ok_or_else(|| {
        let reason = connection.database().device().no_gpu().unwrap_or_else(|| "there is no device".into());
        CliError::Usage(format!("{what} are measured on a GPU, or with --device emulated: {reason}"))
    })
}
