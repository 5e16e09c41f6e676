//! A cube's queries: one by every algorithm ([`CubeQuery`]), and many drawn at random, as people ask them
//! ([`CrossTabs`]).

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::runtime::Handle;
use warpcube_arrays::random::Random;
use warpcube_cube::aggregate::{self, Algorithm, CellValue, Cells, TARGETS_MAX};
use warpcube_cube::answer::{AlgorithmName, TableAnswer};
use warpcube_cube::query::random_cross_tab;
use warpcube_cube::view::cross_tab_text;
use warpcube_gpu::Device;
use warpcube_sql::{Connection, CubeAnswer, CubeQueryOptions, OpenCube, SqlError};

use super::wait::wait;
use crate::render::text::grouped;
use crate::report::Case;
use crate::stats::Sample;
use crate::suite::{About, Failure, Run, Suite};

/// Most that doubles of two algorithms differ by, as a share of the larger one. Sums that cancel lose digits of their
/// terms, so that this is wider than the bound that holds for the terms.
const ROUNDING: f64 = 1e-9;
/// The slowest queries, which are shown.
const SHOWN: usize = 5;

/// A cube of a connection.
#[derive(Clone)]
pub struct Opened {
    /// The connection.
    pub connection: Connection,
    /// The cube.
    pub cube: Arc<OpenCube>,
    /// The threads that do the work.
    pub threads: Handle,
}

impl Opened {
    /// Answers a query; an error that says so for other queries than cross-tabs.
    async fn ask(&self, query: &str, options: CubeQueryOptions) -> Result<Box<TableAnswer>, Failure> {
        let progress = Arc::new(aggregate::Progress::new());
        match self.connection.ask_cube(self.cube.clone(), query, options, progress).await? {
            CubeAnswer::Table(answer) => Ok(answer),
            _ => Err(Failure::Usage("a cross-tab is measured: rows … cols … where …".into())),
        }
    }
}

/// One query by every algorithm: a group is an algorithm.
pub struct CubeQuery {
    opened: Opened,
    device: Option<Device>,
    query: String,
    algorithms: Vec<AlgorithmName>,
    runs: u32,
    targets_max: u64,
    /// The cells of the first algorithm.
    reference: Option<Cells>,
}

impl CubeQuery {
    /// A query, an area of at most `targets_max` cells, by these algorithms, each `runs` times behind a first one.
    pub fn new(
        opened: Opened,
        query: String,
        algorithms: Vec<AlgorithmName>,
        runs: u32,
        targets_max: Option<u64>,
    ) -> CubeQuery {
        let (device, targets_max) = (opened.connection.database().device().gpu(), targets_max.unwrap_or(TARGETS_MAX));
        CubeQuery { opened, device, query, algorithms, runs, targets_max, reference: None }
    }
}

impl Suite for CubeQuery {
    fn about(&self) -> About<'_> {
        let cube = self.opened.cube.cube().model.name();
        About {
            name: "cube-query",
            device: self.device.as_ref(),
            params: json!({"cube": cube, "query": self.query, "runs": self.runs}),
        }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        Ok(self.algorithms.iter().map(|algorithm| vec![algorithm.to_string()]).collect())
    }

    /// An algorithm of the device that cannot run the query is left out.
    fn run(&mut self, run: &mut Run, group: usize) -> Result<(), Failure> {
        let (algorithm, runs, opened, query) =
            (self.algorithms[group], self.runs, self.opened.clone(), self.query.clone());
        let options = CubeQueryOptions { algorithm: Some(algorithm), targets_max: self.targets_max };
        let work = async move {
            let (mut times, mut last) = (Vec::new(), None);
            for _ in 0..=runs {
                let begin = Instant::now();
                last = Some(opened.ask(&query, options).await?);
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
            let first_ms = times.remove(0);
            let answer = last.ok_or_else(|| SqlError::Internal("no run".into()))?;
            Ok((first_ms, Sample::of(&times), answer))
        };
        let measured = wait(&self.opened.threads, run, work);
        if let Err(Failure::Sql { error, .. }) = &measured
            && let (SqlError::CubeCells(reason), AlgorithmName::Device(_)) = (&**error, algorithm)
        {
            run.leave_out(&algorithm.to_string(), reason);
            run.report.results.push(Case::new(algorithm.to_string(), json!({"left_out": reason})));
            return Ok(());
        }
        let (first_ms, time, answer) = measured?;
        let cells = &answer.cells;
        let compared = compare(self.reference.get_or_insert_with(|| cells.clone()), cells);
        let place = cells.report().decision.place.device.as_deref().unwrap_or("CPU");
        let measured = json!({
            "ms": time.ms, "spread": time.spread, "first_ms": first_ms, "cells": cells.len(),
            "compared": compared.to_string(), "device": place,
        });
        run.add(Case::new(algorithm.to_string(), measured).verified(compared != Comparison::Different));
        Ok(())
    }
}

/// How cells compare with those of the first algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
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

/// Compares cells of one area.
fn compare(one: &Cells, other: &Cells) -> Comparison {
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

/// Cross-tabs that are drawn: each is asked once, from its text to the text that a terminal shows, and compared with
/// the single-threaded algorithm.
pub struct CrossTabs {
    opened: Opened,
    device: Option<Device>,
    count: u32,
    seed: u64,
    /// Most cells of a cross-tab.
    cells_max: u64,
    asked: Vec<Asked>,
}

/// One cross-tab.
struct Asked {
    query: String,
    ms: f64,
    cells: usize,
    algorithm: String,
    verified: bool,
}

impl CrossTabs {
    /// So many cross-tabs of at most 10,000 cells, or as many as named.
    pub fn new(opened: Opened, count: u32, seed: u64, cells_max: Option<u64>) -> CrossTabs {
        let (device, cells_max) = (opened.connection.database().device().gpu(), cells_max.unwrap_or(10_000));
        CrossTabs { opened, device, count, seed, cells_max, asked: Vec::new() }
    }

    /// Answers a query and lays it out; the milliseconds of both.
    fn ask(
        &self,
        run: &Run,
        query: &str,
        algorithm: Option<AlgorithmName>,
    ) -> Result<(f64, Box<TableAnswer>), Failure> {
        let (opened, query) = (self.opened.clone(), query.to_string());
        let options = CubeQueryOptions { algorithm, targets_max: self.cells_max.max(TARGETS_MAX) };
        let work = async move {
            let begin = Instant::now();
            let answer = opened.ask(&query, options).await?;
            let cube = opened.cube.cube();
            let cross_tab = answer.cross_tab(cube).map_err(|error| SqlError::CubeCells(error.to_string()))?;
            std::hint::black_box(cross_tab_text(&cube.model, &cross_tab, None));
            Ok((begin.elapsed().as_secs_f64() * 1e3, answer))
        };
        wait(&self.opened.threads, run, work)
    }
}

impl Suite for CrossTabs {
    fn about(&self) -> About<'_> {
        let cube = self.opened.cube.cube();
        let (name, facts) = (cube.model.name(), cube.facts.len());
        About {
            name: "cube-cross-tabs",
            device: self.device.as_ref(),
            params: json!({"cube": name, "facts": facts, "seed": self.seed, "cells_max": self.cells_max}),
        }
    }

    fn cases(&mut self) -> Result<Vec<Vec<String>>, Failure> {
        Ok(vec![vec!["cross-tabs".into()]])
    }

    fn run(&mut self, run: &mut Run, _group: usize) -> Result<(), Failure> {
        let opened = self.opened.clone();
        let draw = |random: &mut Random| random_cross_tab(&opened.cube.cube().model, self.cells_max, random);
        // The first one starts threads.
        self.ask(run, &draw(&mut Random::new(!self.seed)), None)?;
        let (mut random, mut asked) = (Random::new(self.seed), Vec::new());
        for number in 0..self.count {
            run.at("asking", number.into(), self.count.into());
            let query = draw(&mut random);
            let (ms, answer) = self.ask(run, &query, None)?;
            let expected = self.ask(run, &query, Some(AlgorithmName::Cpu(Algorithm::Source)))?.1;
            let verified = compare(&expected.cells, &answer.cells) != Comparison::Different;
            let (cells, algorithm) = (answer.cells.len(), answer.report().decision.algorithm.to_string());
            if !verified {
                run.tell(&format!("{algorithm} gives other cells than the single-threaded algorithm: {query}"));
            }
            asked.push(Asked { query, ms, cells, algorithm, verified });
        }
        asked.sort_by(|one, other| one.ms.total_cmp(&other.ms));
        self.asked = asked;
        Ok(())
    }

    fn verify(&mut self, run: &mut Run, _group: usize) -> Result<(), Failure> {
        let (all, count) = (&self.asked, self.count);
        let place = |share: f64| all[((all.len() as f64 * share).ceil() as usize).clamp(1, all.len()) - 1].ms;
        let (median, most, max) = (place(0.5), place(0.95), place(1.0));
        let wrong = all.iter().filter(|asked| !asked.verified).count();
        run.say(&format!(
            "{count} cross-tabs of at most {} cells: median {median:.2} ms, 95 % within {most:.2} ms, slowest \
             {max:.2} ms, {wrong} with other cells",
            grouped(self.cells_max)
        ));
        for Asked { query, ms, cells, algorithm, .. } in all.iter().rev().take(SHOWN) {
            let cells = grouped(*cells as u64);
            run.say(&format!("{ms:>10.2} ms, {cells:>6} filled cells, {algorithm}: {query}"));
        }
        let slowest = all.last().map(|asked| asked.query.as_str());
        let figures = json!({"queries": count, "median_ms": median, "p95_ms": most, "max_ms": max, "slowest": slowest});
        run.report.results.push(Case::new("cross-tabs", figures).verified(wrong == 0));
        match wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} of {count} cross-tabs have other cells").into()),
        }
    }

    fn title(&self) -> Option<String> {
        None
    }
}
