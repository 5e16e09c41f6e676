//! What the thesis's tables 5.2 to 5.8 show of a query, measured: `--tables`.
//!
//! Table 5.2: atomic additions of every preaggregation, by kernels that count them and are not timed. Tables 5.3 to 5.6
//! and 5.8: variants of the source-based algorithm at the number of hash functions that gives the least time, and
//! algorithm (1) on one core. Table 5.7: child kernels. Beside the tables: the map in shared and in global memory.
//!
//! A sweep over hash functions goes from [`FIRST_HASH_FUNCTIONS`] up, then down. A direction ends behind a time that is
//! more than [`SLOWER_MAX`] times the least one, and where memory has room for no more hash functions. Behind
//! `--seconds` a sweep has its first number alone.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_cube::aggregate::{Algorithm, Area, Progress, Request, aggregate};
use warpcube_cube::device::{
    DeviceAggregation, DeviceAlgorithm, DeviceCells, Expansion, MapPlace, Preaggregation, SourceBased, SourceVariant,
};
use warpcube_cube::facts::Facts;

use super::algorithms::AlgorithmCases;
use super::children::Children;
use super::measured::{CubeBench, sums};
use crate::report::Case;
use crate::suite::{Failure, Run};

/// Hash functions that a sweep begins with, or the first number above.
const FIRST_HASH_FUNCTIONS: u32 = 64;
/// A time, as a multiple of the least one, behind which a sweep ends.
const SLOWER_MAX: f64 = 1.25;
/// Milliseconds of a first run behind which no other one follows, and the others behind a shorter one.
const FIRST_RUN_MS_MAX: f64 = 50.0;
const RUNS: u32 = 3;

/// The variants of the thesis's tables: a thread a cell by the preaggregations of tables 5.3 and 5.4, then all other
/// expansions without preaggregation and with the strided one.
fn swept() -> Vec<(Preaggregation, Expansion)> {
    let by_thread = [Preaggregation::None, Preaggregation::FirstShared, Preaggregation::Shuffle];
    let others = Expansion::ALL.into_iter().filter(|expansion| *expansion != Expansion::Thread);
    let others = others.flat_map(|expansion| [(Preaggregation::None, expansion), (Preaggregation::Strided, expansion)]);
    by_thread.map(|preaggregation| (preaggregation, Expansion::Thread)).into_iter().chain(others).collect()
}

/// The variants whose additions are counted. Warps of all children have the same targets, whichever kernel they are of.
fn counted() -> Vec<SourceVariant> {
    let counted = [Expansion::Thread, Expansion::Balanced, Expansion::HostChildren];
    let all = SourceVariant::pairs(FIRST_HASH_FUNCTIONS).into_iter();
    all.filter(|variant| counted.contains(&variant.expansion)).collect()
}

/// One query, whose cells are known.
pub(super) struct TableCases<'a> {
    pub(super) bench: &'a CubeBench,
    pub(super) query: &'a str,
    /// The query's cells, which were verified.
    pub(super) expected: &'a DeviceCells,
    /// Additions of facts to targets.
    pub(super) additions: u64,
    /// When the suite began.
    pub(super) begin: Instant,
}

impl TableCases<'_> {
    /// Measures all that the tables show of the query.
    ///
    /// # Errors
    /// A device that fails where additions are counted; other cells than the query's. Variants that the device refuses
    /// are left out, with the reason.
    pub(super) fn measure(&self, run: &mut Run) -> Result<(), Failure> {
        let (area, facts) = (self.bench.area(self.query)?, &*self.bench.facts);
        let children = Children::of(facts, area.maps());
        let counts = json!({
            "child_kernels": children.kernels, "child_blocks": children.blocks, "batches": children.batches,
        });
        run.add(Case::new(format!("{}/children", self.query), counts));
        let (query, expected) = (self.query, self.expected);
        // Kernels are timed by events of the device: a core that is busy does not change their times.
        std::thread::scope(|scope| {
            let on_one_core = scope.spawn(|| one_core(facts, &area, query, expected));
            self.counts(&area, run)?;
            for (preaggregation, expansion) in swept() {
                self.sweep(&area, preaggregation, expansion, run)?;
            }
            self.maps(&area, run);
            run.add(on_one_core.join().map_err(|_| format!("{query}: algorithm (1) panicked"))??);
            Ok(())
        })
    }

    /// Atomic additions by variant.
    fn counts(&self, area: &Area, run: &mut Run) -> Result<(), Failure> {
        let additions = self.additions;
        for variant in counted() {
            run.go_on()?;
            let (preaggregation, expansion) = (variant.preaggregation, variant.expansion);
            let case = format!("{}/additions/{}/{}", self.query, preaggregation.name(), expansion.name());
            let source = SourceBased::new(self.bench.contraction.facts().clone(), variant);
            let atomic = source.additions(area, 0, &Arc::default()).map_err(|error| format!("{case}: {error}"))?;
            // A warp saves 31 of 32 additions at most, and none without preaggregation.
            let is_right = match preaggregation {
                Preaggregation::None => atomic == additions,
                _ => (additions.div_ceil(32)..=additions).contains(&atomic),
            };
            if !is_right {
                return Err(format!("{case}: {atomic} atomic additions of {additions} additions").into());
            }
            run.add(Case::new(case, json!({"atomic_additions": atomic, "additions": additions})));
        }
        Ok(())
    }

    /// Times of a variant by its number of hash functions; the least one has the time from query to cells, too.
    fn sweep(
        &self,
        area: &Area,
        preaggregation: Preaggregation,
        expansion: Expansion,
        run: &mut Run,
    ) -> Result<(), Failure> {
        let cases = self.cases(area);
        let mut numbers = self.bench.arguments.hash_functions.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let (below, from) = numbers.split_at(numbers.partition_point(|number| *number < FIRST_HASH_FUNCTIONS));
        let down: Vec<u32> = below.iter().rev().copied().collect();
        let mut least: Option<Least> = None;
        for direction in [from, down.as_slice()] {
            for number in direction {
                run.go_on()?;
                if least.is_some() && self.is_late() {
                    break;
                }
                let map = MapPlace::Constant;
                let variant = SourceVariant { preaggregation, expansion, map, hash_functions: *number };
                let algorithm = DeviceAlgorithm::Source(variant);
                let result = cases.measure(algorithm, run);
                let has_room = result["hash_functions_used"].as_u64() == Some((*number).into());
                let Some(ms) = result.figure("device_ms") else { break };
                if least.is_none_or(|least| ms < least.ms) {
                    least = Some(Least { ms, at: run.report.results.len() - 1, algorithm });
                }
                if !has_room || least.is_some_and(|least| ms > SLOWER_MAX * least.ms) {
                    break;
                }
            }
        }
        if let Some(Least { at, algorithm, .. }) = least {
            let warm_ms = self.warm_ms(algorithm)?;
            run.report.results[at].put("warm_ms", warm_ms);
        }
        Ok(())
    }

    /// Times of a thread a cell with its map in other memory than constant memory.
    fn maps(&self, area: &Area, run: &mut Run) {
        let (preaggregation, expansion, hash_functions) =
            (Preaggregation::None, Expansion::Thread, FIRST_HASH_FUNCTIONS);
        let variant = |map| SourceVariant { preaggregation, expansion, map, hash_functions };
        for algorithm in [MapPlace::Shared, MapPlace::Global].map(|map| DeviceAlgorithm::Source(variant(map))) {
            self.cases(area).measure(algorithm, run);
        }
    }

    fn cases<'b>(&'b self, area: &'b Area) -> AlgorithmCases<'b> {
        let (query, expected, facts) = (self.query, self.expected, self.bench.contraction.facts());
        AlgorithmCases { query, facts, area, expected, runs: RUNS, first_run_ms_max: FIRST_RUN_MS_MAX }
    }

    /// True if sweeps have had their time.
    fn is_late(&self) -> bool {
        self.bench.arguments.seconds.is_some_and(|seconds| self.begin.elapsed().as_secs() >= seconds)
    }

    /// Milliseconds from the query's elements to its cells on the host.
    fn warm_ms(&self, algorithm: DeviceAlgorithm) -> Result<f64, String> {
        let aggregation = DeviceAggregation::new(self.bench.contraction.facts().clone());
        let begin = Instant::now();
        let area = self.bench.area(self.query)?;
        let cells = aggregation.sums(algorithm, &area, 0, &Arc::default());
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        let cells = cells.map_err(|error| format!("{}/{algorithm}: {error}", self.query))?;
        match cells == *self.expected {
            true => Ok(ms),
            false => Err(format!("{}/{algorithm}: a run from the host gives other cells", self.query)),
        }
    }
}

/// The least time of a sweep, and its place in the results.
#[derive(Clone, Copy)]
struct Least {
    ms: f64,
    at: usize,
    algorithm: DeviceAlgorithm,
}

/// Algorithm (1), the thesis's StOAP.
fn one_core(facts: &Facts, area: &Area, query: &str, expected: &DeviceCells) -> Result<Case, String> {
    let begin = Instant::now();
    let cells = aggregate(facts, area, &[0], &Request::by(Algorithm::Source), &Progress::new());
    let cpu_ms = begin.elapsed().as_secs_f64() * 1e3;
    let cells = cells.map_err(|error| format!("{query}: {error}"))?;
    if cells.ranks() != expected.ranks || sums(&cells) != expected.sums {
        return Err(format!("{query}: algorithm (1) gives other cells"));
    }
    Ok(Case::new(format!("{query}/source"), json!({"cpu_ms": cpu_ms})).verified(true))
}
