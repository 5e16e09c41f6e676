//! `warpcube cube bench`: a query of a cube by every algorithm, or many cross-tabs that are drawn.

use warpcube_bench::queries::{CrossTabs, CubeQuery, Opened};
use warpcube_bench::suite::{RunArgs, Suite};
use warpcube_cube::aggregate::Algorithm;
use warpcube_cube::answer::AlgorithmName;
use warpcube_cube::device::DeviceAlgorithm;
use warpcube_sql::Connection;
use warpcube_sql::outputs::Destination;

use super::args::BenchArgs;
use crate::bench::follow::follow;
use crate::error::{CliError, Result};
use crate::host::Host;

/// Measures a cube.
pub(super) fn run(arguments: &BenchArgs, connection: &Connection, host: &Host) -> Result<()> {
    if let Some(path) = &arguments.json {
        Destination::of(path).map_err(|error| CliError::writing(&path.display().to_string(), &error))?;
    }
    let cube = super::open(&arguments.cube, connection, host)?;
    let opened = Opened { connection: connection.clone(), cube, threads: host.threads() };
    let BenchArgs { random, seed, targets_max, runs, .. } = *arguments;
    let suite: Box<dyn Suite> = match random {
        Some(count) => Box::new(CrossTabs::new(opened, count, seed, targets_max)),
        None => {
            let (query, algorithms) = (arguments.query.join(" "), algorithms(arguments, connection));
            Box::new(CubeQuery::new(opened, query, algorithms, runs, targets_max))
        }
    };
    follow(suite, &RunArgs { json: arguments.json.clone(), ..RunArgs::default() }, false, host)
}

/// The algorithms to measure, the single-threaded one first where none is named.
fn algorithms(arguments: &BenchArgs, connection: &Connection) -> Vec<AlgorithmName> {
    if !arguments.algorithms.is_empty() {
        return arguments.algorithms.clone();
    }
    let of_device = DeviceAlgorithm::CANDIDATES.map(AlgorithmName::Device);
    let of_device = of_device.into_iter().filter(|_| connection.database().device().gpu().is_some());
    Algorithm::ALL.map(AlgorithmName::Cpu).into_iter().chain(of_device).collect()
}
