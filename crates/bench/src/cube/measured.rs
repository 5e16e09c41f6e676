//! One cube with its facts on the device: its queries are measured by contraction, and compared.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_column::Residency;
use warpcube_cube::aggregate::{Algorithm, Area, Cells, Progress, Request, TargetMap, aggregate};
use warpcube_cube::device::{
    DeviceAlgorithm, DeviceCells, DeviceContraction, FactsSource, ScanTuning, load_ms_predicted,
};
use warpcube_cube::facts::{Facts, Values};
use warpcube_gpu::Device;
use warpcube_gpu::prims::roofline::DeviceRates;

use super::algorithms::{AlgorithmCases, FIRST_RUN_MS_MAX};
use super::args::CubeArgs;
use super::thesis::Thesis;
use super::{BenchCube, Counts, Definition, Draw, Query};
use crate::report::Case;
use crate::stats::{Sample, repeat};
use crate::suite::{Failure, Run};

/// Targets of a dimension that algorithm (1) computes.
const SAMPLED_TARGETS: usize = 2;

/// One cube with its facts on the device.
pub(super) struct CubeBench {
    device: Device,
    pub(super) arguments: CubeArgs,
    cube: BenchCube,
    thesis: Thesis,
    pub(super) draw: Draw,
    pub(super) facts: Arc<Facts>,
    pub(super) contraction: DeviceContraction,
    /// Bytes of keys and values on the device.
    bytes: (u64, u64),
    /// Milliseconds of packing, copying and sending them.
    load_ms: f64,
}

impl CubeBench {
    pub(super) fn new(
        device: &Device,
        definition: Definition,
        arguments: &CubeArgs,
        run: &mut Run,
    ) -> Result<CubeBench, String> {
        let (name, thesis) = (definition.cube.clone(), Thesis::read()?);
        let cube = BenchCube::new(definition)?;
        let begin = Instant::now();
        let draw = Draw::new(&cube, arguments.facts)?;
        let facts = Arc::new(draw.facts()?);
        let drawn = begin.elapsed();
        let begin = Instant::now();
        let source = FactsSource::new(facts.clone(), &name, "drawn");
        let contraction = DeviceContraction::new(Arc::new(Residency::new(device.clone())), source);
        let bytes = contraction.bytes(0, &Arc::default()).map_err(|error| error.to_string())?;
        let load_ms = begin.elapsed().as_secs_f64() * 1e3;
        let each = (bytes.keys + bytes.values) as f64 / facts.len() as f64;
        run.say(&format!(
            "{name}: {} facts drawn in {:.1} s, on the device in {load_ms:.0} ms ({:.0} predicted), \
             {each:.3} bytes each",
            facts.len(),
            drawn.as_secs_f64(),
            load_ms_predicted(&facts, &[0]),
        ));
        let (device, arguments, bytes) = (device.clone(), arguments.clone(), (bytes.keys, bytes.values));
        Ok(CubeBench { device, arguments, cube, thesis, draw, facts, contraction, bytes, load_ms })
    }

    /// The area of a query.
    pub(super) fn area(&self, name: &str) -> Result<Area, String> {
        self.cube.area(&self.cube.definition.queries[name])
    }

    /// Measures a query; gives its cells, too.
    pub(super) fn measure(&mut self, name: &str) -> Result<(Case, DeviceCells), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let query = self.cube.definition.queries[name].clone();
        let counts = Counts::of(&self.cube, &self.draw, &query)?;
        let area = self.cube.area(&query)?;
        let never = Arc::default();
        let cells = self.contraction.sums(&area, 0, &never).map_err(|error| failed(&error))?;
        self.verify(name, &area, &cells)?;
        if cells.ranks.len() as u64 != counts.filled {
            return Err(format!("{name}: {} filled targets, {} were counted", cells.ranks.len(), counts.filled));
        }
        let warm = self.warm(&query, &cells).map_err(|error| failed(&error))?;
        let device = self.on_device(&area, Some(&cells)).map_err(|error| failed(&error))?;
        Ok((self.result(name, &query, &counts, device, warm)?, cells))
    }

    /// Measures a query with other algorithms, which have to give its cells.
    pub(super) fn others(
        &self,
        name: &str,
        algorithms: &[DeviceAlgorithm],
        expected: &DeviceCells,
        run: &mut Run,
    ) -> Result<(), Failure> {
        let area = self.area(name)?;
        let (facts, runs) = (self.contraction.facts(), self.arguments.runs);
        let cases =
            AlgorithmCases { query: name, facts, area: &area, expected, runs, first_run_ms_max: FIRST_RUN_MS_MAX };
        for algorithm in algorithms {
            run.go_on()?;
            cases.measure(*algorithm, run);
        }
        Ok(())
    }

    /// Times of other tunings.
    pub(super) fn sweep(&mut self, name: &str, run: &mut Run) -> Result<(), Failure> {
        let area = self.area(name)?;
        for threads in self.arguments.threads.clone() {
            let tickets = self.arguments.tickets.clone().into_iter();
            for (ticket_miniblocks, prefetches) in tickets.flat_map(|at| [(at, true), (at, false)]) {
                self.contraction.set_tuning(ScanTuning { threads, ticket_miniblocks, prefetches });
                let time = self.on_device(&area, None).map_err(|error| format!("{name}: {error}"))?;
                let early = if prefetches { "/prefetch" } else { "" };
                let case = format!("tune/{name}/{threads}x{ticket_miniblocks}{early}");
                run.add(Case::new(case, json!({"device_ms": time.ms, "spread": time.spread})));
            }
        }
        self.contraction.set_tuning(ScanTuning::default());
        Ok(())
    }

    /// Times of recorded runs, whose cells are compared with those of `sums`.
    fn on_device(&self, area: &Area, expected: Option<&DeviceCells>) -> Result<Sample, String> {
        let recorded = self.contraction.record(area, 0, &Arc::default()).map_err(|error| error.to_string())?;
        let mut recorded = recorded.ok_or("no target is filled")?;
        let time = repeat(self.arguments.runs, || recorded.run()).map_err(|error| error.to_string())?;
        let cells = recorded.cells().map_err(|error| error.to_string())?;
        match expected.is_none_or(|expected| *expected == cells) {
            true => Ok(time),
            false => Err("recorded runs give other cells".to_string()),
        }
    }

    /// Times from the query's elements to its cells on the host.
    fn warm(&self, query: &Query, expected: &DeviceCells) -> Result<Sample, String> {
        repeat(self.arguments.runs, || {
            let begin = Instant::now();
            let area = self.cube.area(query)?;
            let cells = self.contraction.sums(&area, 0, &Arc::default()).map_err(|error| error.to_string())?;
            let ms = begin.elapsed().as_secs_f64() * 1e3;
            if &cells == expected { Ok(ms) } else { Err("two runs give different cells".to_string()) }
        })
    }

    /// Compares all cells with contraction on the CPU, and those of sampled targets with algorithm (1).
    fn verify(&self, name: &str, area: &Area, cells: &DeviceCells) -> Result<(), String> {
        let on_cpu = |area: &Area, algorithm| {
            let expected = aggregate(&self.facts, area, &[0], &Request::by(algorithm), &Progress::new());
            expected.map_err(|error| format!("{name}: {error}"))
        };
        let all = on_cpu(area, Algorithm::Contract)?;
        if all.ranks() != cells.ranks || sums(&all) != cells.sums {
            return Err(format!("{name}: cells differ from those of contraction on the CPU"));
        }
        let (sampled, chosen) = sampled(area, name)?;
        let few = on_cpu(&sampled, Algorithm::Source)?;
        let shape: Vec<u64> = area.shape().iter().map(|size| u64::from(*size)).collect();
        for (cell, sum) in sums(&few).iter().enumerate() {
            let target = few.target(cell);
            let rank = target
                .iter()
                .zip(&chosen)
                .zip(&shape)
                .fold(0, |rank, ((target, chosen), size)| rank * size + u64::from(chosen[*target as usize]));
            let found = cells.ranks.binary_search(&rank).map(|place| cells.sums[place]);
            if found != Ok(*sum) {
                return Err(format!("{name}: target {rank} is {found:?}, algorithm (1) gives {sum}"));
            }
        }
        Ok(())
    }

    fn result(&self, name: &str, query: &Query, counts: &Counts, device: Sample, warm: Sample) -> Result<Case, String> {
        let (keys, values) = self.bytes;
        // A query of all totals reads no keys.
        let bytes = if query.targets.is_empty() { values } else { values + keys };
        let mut result = Case::new(
            name,
            json!({
                "device_ms": device.ms,
                "spread": device.spread,
                "warm_ms": warm.ms,
                "bytes": bytes,
                "bytes_per_fact": (keys + values) as f64 / self.facts.len() as f64,
                "load_ms": self.load_ms,
                "load_ms_predicted": load_ms_predicted(&self.facts, &[0]),
                "relevant_cells": counts.relevant,
                "targets": counts.targets,
                "filled_targets": counts.filled,
                "additions": counts.additions,
            }),
        );
        if self.arguments.facts.is_none() {
            result.put("thesis_ms", self.thesis.query(name)?.best_ms());
            result.put("limit_ms", query.limit_ms);
        }
        if self.device.info().peak_bandwidth > 0.0 {
            let floor_ms = bytes as f64 / DeviceRates::of(self.device.info()).read.value * 1e3;
            result.put("floor_ms", floor_ms);
            result.put("share_of_peak", floor_ms / device.ms);
        }
        Ok(result.verified(true))
    }
}

/// The sums of cells of decimals.
pub(super) fn sums(cells: &Cells) -> &[i64] {
    match &cells.columns()[0].values {
        Values::Decimals(sums) => sums,
        Values::Doubles(_) => &[],
    }
}

/// The area of some targets of each dimension, and their numbers in the whole area.
fn sampled(area: &Area, name: &str) -> Result<(Area, Vec<Vec<u32>>), String> {
    let mut seed = name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let (mut maps, mut chosen) = (Vec::new(), Vec::new());
    for map in area.maps() {
        let lists = map.lists();
        let mut numbers: Vec<u32> = (0..SAMPLED_TARGETS.min(lists.len()))
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((seed >> 33) % lists.len() as u64) as u32
            })
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let targets: Vec<Vec<(u32, f64)>> = numbers.iter().map(|number| lists[*number as usize].clone()).collect();
        maps.push(TargetMap::from_targets(map.bases(), &targets).map_err(|error| error.to_string())?);
        chosen.push(numbers);
    }
    Ok((Area::new(maps), chosen))
}
