//! `warpcube cube bench --random`: how long people wait for cross-tabs of a cube.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_bench::report::Case;
use warpcube_bench::suite::figures;
use warpcube_cube::aggregate::{self, Algorithm, TARGETS_MAX};
use warpcube_cube::answer::{AlgorithmName, TableAnswer};
use warpcube_cube::query::random_cross_tab;
use warpcube_cube::random::Random;
use warpcube_cube::view::cross_tab_text;
use warpcube_sql::{CubeAnswer, CubeQueryOptions, OpenCube, Progress, Session, SqlError};

use super::args::BenchArgs;
use super::bench::{Comparison, compare, write};
use super::follow;
use crate::console::{self, tell};
use crate::error::{CliError, Result};
use crate::footer::grouped;
use crate::host::Host;

/// Most cells of a cross-tab without `--targets-max`.
const CELLS_MAX: u64 = 10_000;
/// The slowest queries, which are shown.
const SHOWN: usize = 5;

/// One cross-tab.
struct Asked {
    query: String,
    ms: f64,
    cells: usize,
    algorithm: String,
    verified: bool,
}

/// Asks so many cross-tabs, each once, from its text to the text that a terminal shows.
pub(super) fn run(
    count: u32,
    cube: &Arc<OpenCube>,
    arguments: &BenchArgs,
    session: &Session,
    host: &Host,
) -> Result<()> {
    let mut random = Random::new(arguments.seed);
    let cells_max = arguments.targets_max.unwrap_or(CELLS_MAX);
    let options = |algorithm| CubeQueryOptions { algorithm, targets_max: cells_max.max(TARGETS_MAX) };
    let draw = |random: &mut Random| random_cross_tab(&cube.cube().model, cells_max, random);
    // The first one starts threads.
    ask(cube, &draw(&mut Random::new(!arguments.seed)), options(None), session, host)?;
    let mut all = Vec::new();
    for _ in 0..count {
        let query = draw(&mut random);
        let (ms, answer) = ask(cube, &query, options(None), session, host)?;
        let (_, expected) = ask(cube, &query, options(Some(AlgorithmName::Cpu(Algorithm::Source))), session, host)?;
        let verified = compare(&expected.cells, &answer.cells) != Comparison::Different;
        let (cells, algorithm) = (answer.cells.len(), answer.report().algorithm.clone());
        if !verified {
            tell(format_args!("{algorithm} gives other cells than the single-threaded algorithm: {query}"));
        }
        all.push(Asked { query, ms, cells, algorithm, verified });
    }
    all.sort_by(|one, other| one.ms.total_cmp(&other.ms));
    let place = |share: f64| all[((all.len() as f64 * share).ceil() as usize).clamp(1, all.len()) - 1].ms;
    let (median, most, max) = (place(0.5), place(0.95), place(1.0));
    let wrong = all.iter().filter(|asked| !asked.verified).count();
    console::print(&format!(
        "{count} cross-tabs of at most {} cells: median {median:.2} ms, 95 % within {most:.2} ms, slowest {max:.2} ms, \
         {wrong} with other cells\n",
        grouped(cells_max)
    ))?;
    for Asked { query, ms, cells, algorithm, .. } in all.iter().rev().take(SHOWN) {
        let cells = grouped(*cells as u64);
        console::print(&format!("{ms:>10.2} ms, {cells:>6} filled cells, {algorithm}: {query}\n"))?;
    }
    if let Some(path) = &arguments.json {
        let params = json!({
            "cube": cube.cube().model.name(), "facts": cube.cube().facts.len(), "seed": arguments.seed,
            "cells_max": cells_max,
        });
        let slowest = all.last().map(|asked| asked.query.as_str());
        let result = json!({
            "queries": count, "median_ms": median, "p95_ms": most, "max_ms": max,
            "slowest": slowest,
        });
        let result = Case::new("cross-tabs", result).verified(wrong == 0);
        write(path, "cube-cross-tabs", session, figures(params), vec![result])?;
    }
    match wrong {
        0 => Ok(()),
        wrong => Err(CliError::Verify(format!("{wrong} of {count} cross-tabs have other cells"))),
    }
}

/// Answers a query and lays it out; the milliseconds of both.
fn ask(
    cube: &Arc<OpenCube>,
    query: &str,
    options: CubeQueryOptions,
    session: &Session,
    host: &Host,
) -> Result<(f64, Box<TableAnswer>)> {
    let (session, cube, query) = (session.clone(), cube.clone(), query.to_string());
    let work = async move {
        let begin = Instant::now();
        let progress = Arc::new(aggregate::Progress::new());
        let CubeAnswer::Table(answer) = session.ask_cube(cube.clone(), &query, options, progress).await? else {
            return Err(SqlError::Internal("a cross-tab became another query".into()).into());
        };
        let cross_tab = answer.cross_tab(cube.cube()).map_err(|error| SqlError::CubeCells(error.to_string()))?;
        let text = cross_tab_text(&cube.cube().model, &cross_tab, None);
        std::hint::black_box(text);
        Ok((begin.elapsed().as_secs_f64() * 1e3, answer))
    };
    follow(host, "aggregating", Progress::default, work)
}
