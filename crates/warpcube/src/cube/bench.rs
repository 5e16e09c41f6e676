//! `warpcube cube bench`: one query by every algorithm, with times and a comparison of the cells.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_bench::report::{Case, Figures, Report};
use warpcube_bench::suite::{COMMIT, figures, today};
use warpcube_cube::aggregate::{self, Algorithm, CellValue, Cells, TARGETS_MAX};
use warpcube_cube::answer::{AlgorithmName, TableAnswer};
use warpcube_cube::device::DeviceAlgorithm;
use warpcube_sql::outputs::Destination;
use warpcube_sql::{CubeAnswer, CubeQueryOptions, OpenCube, Progress, Session, SqlError};

use super::args::BenchArgs;
use super::{cross_tabs, follow};
use crate::console::{self, tell};
use crate::error::{CliError, Result};
use crate::footer::grouped;
use crate::host::Host;

/// Most that doubles of two algorithms differ by, as a share of the larger one. Sums that cancel lose digits of their
/// terms, so that this is wider than the bound that holds for the terms.
const ROUNDING: f64 = 1e-9;

/// The result of an algorithm.
enum Outcome {
    Measured { ms: f64, first_ms: f64, answer: Box<TableAnswer> },
    LeftOut(String),
}

/// How cells compare with those of the first algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Same,
    /// Sums of doubles or fractional weights differ in the last digits.
    Rounded,
    Different,
}

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Comparison::Same => "same cells",
            Comparison::Rounded => "same but for rounding",
            Comparison::Different => "OTHER CELLS",
        })
    }
}

/// Measures a query.
pub(super) fn run(arguments: &BenchArgs, session: &Session, host: &Host) -> Result<()> {
    if let Some(path) = &arguments.json {
        Destination::of(path).map_err(|error| CliError::writing(&path.display().to_string(), &error))?;
    }
    let cube = super::open(&arguments.cube, session, host)?;
    if let Some(count) = arguments.random {
        return cross_tabs::run(count, &cube, arguments, session, host);
    }
    let query = arguments.query.join(" ");
    let mut reference: Option<Cells> = None;
    let (mut results, mut different) = (Vec::new(), Vec::new());
    for algorithm in algorithms(arguments, session) {
        let name = algorithm.to_string();
        let (ms, first_ms, answer) = match measure(algorithm, &cube, &query, arguments, session, host)? {
            Outcome::Measured { ms, first_ms, answer } => (ms, first_ms, answer),
            Outcome::LeftOut(reason) => {
                tell(format_args!("{name} is left out: {reason}"));
                results.push(Case::new(name, json!({"left_out": reason})));
                continue;
            }
        };
        let cells = &answer.cells;
        if reference.is_none() {
            console::print(&format!("{} cells of {} targets\n", grouped(cells.len() as u64), targets(cells)))?;
        }
        let compared = reference.as_ref().map_or(Comparison::Same, |reference| compare(reference, cells));
        let report = cells.report();
        let place = report.device.as_deref().unwrap_or("CPU");
        console::print(&format!("{name:<40} {ms:>10.3} ms, first {first_ms:>10.3} ms, {compared}, on {place}\n"))?;
        let verified = compared != Comparison::Different;
        let figures = json!({"ms": ms, "first_ms": first_ms, "device": place, "cells": cells.len()});
        results.push(Case::new(&name, figures).verified(verified));
        if !verified {
            different.push(name);
        }
        reference.get_or_insert_with(|| cells.clone());
    }
    if let Some(path) = &arguments.json {
        let params = json!({"cube": cube.cube().model.name(), "query": query, "runs": arguments.runs});
        write(path, "cube-query", session, figures(params), results)?;
    }
    match different.is_empty() {
        true => Ok(()),
        false => Err(CliError::Verify(format!("cells differ from those of the first: {}", different.join(", ")))),
    }
}

/// The algorithms to measure, the single-threaded one first where none is named.
fn algorithms(arguments: &BenchArgs, session: &Session) -> Vec<AlgorithmName> {
    if !arguments.algorithms.is_empty() {
        return arguments.algorithms.clone();
    }
    let of_device = DeviceAlgorithm::CANDIDATES.map(AlgorithmName::Device);
    let of_device = of_device.into_iter().filter(|_| session.device().get().is_some());
    Algorithm::ALL.map(AlgorithmName::Cpu).into_iter().chain(of_device).collect()
}

/// Writes results of a session's cube.
pub(super) fn write(path: &Path, suite: &str, session: &Session, params: Figures, results: Vec<Case>) -> Result<()> {
    let device = session.device().get().map_or_else(|| "CPU".to_string(), |device| device.info().name.clone());
    let (date, commit) = (Some(today()), COMMIT.map(str::to_string));
    let report = Report { date, commit, params, results, ..Report::new(suite, &device) };
    report.write(path).map_err(|error| CliError::writing(&path.display().to_string(), &error))
}

/// Runs one algorithm: once, then as often as asked for. An algorithm that cannot run the query is left out.
fn measure(
    algorithm: AlgorithmName,
    cube: &Arc<OpenCube>,
    query: &str,
    arguments: &BenchArgs,
    session: &Session,
    host: &Host,
) -> Result<Outcome> {
    let options =
        CubeQueryOptions { algorithm: Some(algorithm), targets_max: arguments.targets_max.unwrap_or(TARGETS_MAX) };
    let (session, cube, query, runs) = (session.clone(), cube.clone(), query.to_string(), arguments.runs);
    let work = async move {
        let (mut times, mut last) = (Vec::new(), None);
        for _ in 0..=runs {
            let begin = Instant::now();
            let progress = Arc::new(aggregate::Progress::new());
            let answer = session.ask_cube(cube.clone(), &query, options, progress).await;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            last = match answer {
                Ok(CubeAnswer::Table(answer)) => Some(answer),
                Ok(_) => return Err(CliError::Usage("a cross-tab is measured: rows … cols … where …".into())),
                Err(SqlError::CubeCells(reason)) if matches!(algorithm, AlgorithmName::Device(_)) => {
                    return Ok(Outcome::LeftOut(reason));
                }
                Err(error) => return Err(error.into()),
            };
        }
        let first_ms = times.remove(0);
        times.sort_by(f64::total_cmp);
        let answer = last.ok_or_else(|| SqlError::Internal("no run".into()))?;
        Ok(Outcome::Measured { ms: times[times.len() / 2], first_ms, answer })
    };
    follow(host, &format!("aggregating by {algorithm}"), Progress::default, work)
}

fn targets(cells: &Cells) -> String {
    let targets = cells.shape().iter().map(|size| u128::from(*size)).product::<u128>();
    u64::try_from(targets).map_or_else(|_| targets.to_string(), grouped)
}

/// Compares cells of one area.
pub(super) fn compare(one: &Cells, other: &Cells) -> Comparison {
    if one.ranks() != other.ranks() || one.columns().len() != other.columns().len() {
        return Comparison::Different;
    }
    let mut worst = Comparison::Same;
    for (column, with) in one.columns().iter().zip(other.columns()) {
        for cell in 0..one.len() {
            match (column.value(cell), with.value(cell)) {
                (value, with) if value == with => {}
                (Some(value), Some(with)) if is_rounding(value, with) => worst = Comparison::Rounded,
                _ => return Comparison::Different,
            }
        }
    }
    worst
}

/// True if two values differ by no more than rounding in another order of additions.
fn is_rounding(one: CellValue, other: CellValue) -> bool {
    match (one, other) {
        (CellValue::Decimal { units, scale }, CellValue::Decimal { units: with, scale: other }) => {
            scale == other && units.abs_diff(with) <= 1
        }
        (CellValue::Double(one), CellValue::Double(other)) => {
            (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
        }
        _ => false,
    }
}
