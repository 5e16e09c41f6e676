//! What a fragment will do, before it runs: its pipelines in words, bytes and time by a simple model.
//!
//! Kernels are taken to read at the device's bandwidth, and each launch to cost a fixed time. Before the columns are on
//! the device and the fragment is bound, every column is taken to be read whole and tables have no known size; a kept
//! binding knows both. Predictions are for people and for choosing a place; they never change a result.

use std::ops::Range;
use std::time::Duration;

use arrow::datatypes::DataType;
use warpcube_column::Storage;
use warpcube_gpu::DeviceInfo;
use warpcube_gpu::prims::DeviceRates;

use crate::codegen::memory::{BoundGroups, BoundTable};
use crate::codegen::sink::BoundSink;
use crate::exec::bind::{BoundFragment, Root};
use crate::exec::binding::BindingCache;
use crate::exec::engine::Engine;
use crate::ir::{Fragment, Pipeline, Sink, Source, TopK};
use crate::plan::explain::{self, Named, PipelineWords, StepWords};
use crate::plan::groups::Grouping;
use crate::plan::launches::levels;
use crate::plan::order::Planned;
use crate::plan::pipeline::Reason;
use crate::plan::table::TableLayout;
use crate::plan::topk_form;

/// What a launch costs beyond the bytes it reads: start, drawing tickets, flushing. Of the queries of TPC-H and SSB on
/// an H200 (bench/results), those with one launch take 0.08 ms more than reading their bytes at peak, those with two
/// 0.15 ms.
const LAUNCH: Duration = Duration::from_micros(75);
/// Launches of a top-k beside its scan, most of which work on few candidates, and what one costs.
const SELECTION_LAUNCHES: u32 = 16;
const SELECTION_LAUNCH: Duration = Duration::from_nanos(3_500);

/// What is known of a table of a fragment before it is loaded.
#[derive(Debug, Clone)]
pub struct TableFacts {
    /// Identity, as its source tells it.
    pub key: String,
    /// Version of the content.
    pub version: String,
    /// Rows, where they are known.
    pub rows: Option<u64>,
    /// Name and type of each column that the fragment reads, in its order.
    pub columns: Vec<(String, DataType)>,
}

/// What a fragment is expected to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Its pipelines, in its order.
    pub pipelines: Vec<PredictedPipeline>,
    /// Launches.
    pub launches: u32,
    /// Bytes that kernels read from columns, where the tables' rows are known.
    pub bytes: Option<u64>,
    /// Time on the device, where also its bandwidth is known.
    pub device: Option<Duration>,
    /// Bytes to be loaded first, where the tables' rows are known.
    pub load_bytes: Option<u64>,
    /// Device memory of tables and result; known once the fragment was bound.
    pub arena_bytes: Option<u64>,
}

/// A number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Neither more nor fewer.
    Exactly(u64),
    /// An estimate.
    About(u64),
    /// An upper bound.
    AtMost(u64),
}

/// A filter or a join of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedStep {
    /// The step in words.
    pub text: String,
    /// The pipeline whose table it probes.
    pub build: Option<usize>,
    /// Rows that go on, where the binding tells an estimate.
    pub rows: Option<u64>,
}

/// One pipeline of a [`Prediction`].
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedPipeline {
    /// What it leaves: `table 0`, `groups 1` or `the result`.
    pub name: String,
    /// The table that it scans, or the pipeline whose groups it does.
    pub source: String,
    /// The pipeline whose groups it scans.
    pub groups: Option<usize>,
    /// The pipelines that aggregate into the same groups, branches of a union; itself alone if there is none.
    pub branches: Range<usize>,
    /// Rows of the table, where they are known.
    pub rows: Option<u64>,
    /// Columns it reads.
    pub columns: usize,
    /// Those of them that are on the device.
    pub resident: usize,
    /// Bytes it reads from columns: at most so many before binding, an estimate after.
    pub bytes: Option<u64>,
    /// Its steps, in the order in which they are taken where it is bound.
    pub steps: Vec<PredictedStep>,
    /// Its sink in words.
    pub sink: String,
    /// Rows of the table, of the groups or of the result that it leaves, where something is known of them.
    pub leaves: Option<Rows>,
    /// Kind and places of what it leaves; known once it was bound.
    pub size: Option<String>,
    /// Device memory of what it leaves; known once it was bound.
    pub memory: Option<u64>,
    /// What was decided about it, each with its reason; known once it was bound.
    pub decisions: Vec<String>,
}

impl Engine {
    /// What running a fragment is expected to do; `tables` are those of the fragment, `cache` is its own.
    pub fn predict(&self, fragment: &Fragment, cache: &BindingCache, tables: &[TableFacts]) -> Prediction {
        let kept = cache.kept();
        let bound = kept.as_ref().map(|binding| binding.fragment.as_ref());
        let columns: Vec<Vec<Named>> = tables
            .iter()
            .map(|table| {
                let named = |(name, data_type): &(String, DataType)| Named {
                    text: name.clone(),
                    data_type: Some(data_type.clone()),
                };
                table.columns.iter().map(named).collect()
            })
            .collect();
        let orders: Option<Vec<&[Planned]>> =
            bound.map(|bound| bound.pipelines.iter().map(|pipeline| pipeline.order.as_slice()).collect());
        let words = explain::describe(fragment, &columns, orders.as_deref());
        let pipelines: Vec<PredictedPipeline> = words
            .into_iter()
            .enumerate()
            .map(|(index, words)| {
                let facts = fragment.pipelines[index].source.table().and_then(|table| tables.get(table));
                self.predict_pipeline((fragment, index), facts, bound, words)
            })
            .collect();
        let launches = bound.map_or_else(|| launches(fragment), launches_of);
        let tops = fragment.pipelines.iter().filter(|pipeline| matches!(pipeline.sink, Sink::TopK(_))).count();
        // The last block of the scan may do what selections would.
        let by_last_block = bound.and_then(|bound| bound.top()).is_some_and(|top| top.last_block().is_some());
        let selections = SELECTION_LAUNCHES * (tops as u32 - u32::from(by_last_block));
        let total: Option<u64> = pipelines.iter().map(|pipeline| pipeline.bytes).sum();
        let load_bytes = tables
            .iter()
            .zip(&fragment.tables)
            .map(|(facts, table)| bytes(facts, |position| !self.is_there(facts, table.columns[position])))
            .sum();
        Prediction {
            device: total
                .and_then(|bytes| device_time(self.device().info(), bytes, launches))
                .map(|time| time + SELECTION_LAUNCH * selections),
            launches: launches + selections,
            bytes: total,
            load_bytes,
            arena_bytes: bound.map(|bound| bound.arena.bytes() as u64),
            pipelines,
        }
    }

    fn predict_pipeline(
        &self,
        (fragment, index): (&Fragment, usize),
        facts: Option<&TableFacts>,
        bound: Option<&BoundFragment>,
        words: PipelineWords,
    ) -> PredictedPipeline {
        let Pipeline { source, sink, .. } = &fragment.pipelines[index];
        let rows = facts.and_then(|facts| facts.rows);
        let positions = source.table().and_then(|table| fragment.tables.get(table));
        let positions = positions.map_or(&[] as &[usize], |table| &table.columns);
        let is_there = |column: &&usize| facts.is_some_and(|facts| self.is_there(facts, **column));
        let has_matches = |build: usize| {
            let table = bound.and_then(|bound| bound.pipelines[build].table());
            table.is_some_and(|table| table.matches.is_some())
        };
        let (steps, arriving) = steps(rows, words.steps, has_matches);
        // What binding has added behind the last pipeline is told with it.
        let added =
            bound.map_or(&[][..], |bound| if index + 1 == bound.shown { &bound.pipelines[index + 1..] } else { &[] });
        let bound = bound.map(|bound| &bound.pipelines[index]);
        let sizes = bound.into_iter().chain(added).map(|bound| size(&bound.sink));
        let (size, memory) =
            sizes.reduce(|(first, bytes), (next, more)| (format!("{first}, {next}"), bytes + more)).unzip();
        PredictedPipeline {
            name: words.name,
            source: fragment.source_name(*source),
            groups: match source {
                Source::Table(_) => None,
                Source::Output(pipeline) => Some(*pipeline),
            },
            branches: fragment.branches(index),
            rows,
            columns: positions.len(),
            resident: positions.iter().filter(is_there).count(),
            bytes: match bound {
                Some(bound) => {
                    let all = std::iter::once(bound).chain(added);
                    Some(all.map(|bound| bound.plan.split.bytes as u64).sum::<u64>())
                }
                // Of groups nothing is known before they are there.
                None if source.table().is_none() => Some(0),
                None => facts.and_then(|facts| bytes(facts, |_| true)),
            },
            steps,
            sink: match (sink, rows, bound) {
                (Sink::TopK(TopK { k: Some(k), algorithm, .. }), Some(rows), None) => {
                    let forecast = topk_form::forecast(self.device().info(), &self.tuning, rows, (*k, *algorithm));
                    format!("{} ({forecast})", words.sink)
                }
                _ => words.sink,
            },
            leaves: leaves(sink, arriving.filter(|_| bound.is_some()).map(Rows::About)),
            size,
            memory,
            decisions: bound.into_iter().chain(added).flat_map(|bound| bound.plan.reasons()).map(in_words).collect(),
        }
    }

    fn is_there(&self, facts: &TableFacts, column: usize) -> bool {
        self.residency().is_resident(&facts.key, &facts.version, &[column])
    }
}

/// Time to read `bytes` with so many launches; none for a device that tells no bandwidth.
fn device_time(info: &DeviceInfo, bytes: u64, launches: u32) -> Option<Duration> {
    let read = || Duration::from_secs_f64(bytes as f64 / DeviceRates::of(info).read.value);
    (info.peak_bandwidth > 0.0).then(|| read() + LAUNCH * launches)
}

/// Bytes of those columns of a table whose position `wanted` picks; none where its rows are not known.
fn bytes(facts: &TableFacts, wanted: impl Fn(usize) -> bool) -> Option<u64> {
    let picked = facts.columns.iter().enumerate().filter(|(position, _)| wanted(*position));
    let width: usize = picked.map(|(_, (_, data_type))| Storage::of(data_type).map_or(0, Storage::width)).sum();
    if width == 0 { Some(0) } else { Some(facts.rows? * width as u64) }
}

/// Launches of a fragment that is not bound: one a level of joins. Whether groups are gathered at the end is not known.
fn launches(fragment: &Fragment) -> u32 {
    levels(fragment).into_iter().max().map_or(0, |level| level as u32 + 1)
}

fn launches_of(bound: &BoundFragment) -> u32 {
    let gathers = matches!(&bound.root, Root::Groups(_, Some(_)));
    bound.launch_groups.len() as u32 + u32::from(gathers)
}

/// The steps with the rows that go on, and the rows that arrive at the sink. How many there are behind a join whose
/// table may have several rows for a key is not known.
fn steps(
    rows: Option<u64>,
    words: Vec<StepWords>,
    has_matches: impl Fn(usize) -> bool,
) -> (Vec<PredictedStep>, Option<u64>) {
    let mut going = rows.map(|rows| rows as f64);
    let mut step = |StepWords { text, build, joins, share }| {
        let share = share.filter(|_| !(joins && build.is_some_and(&has_matches)));
        going = going.zip(share).map(|(rows, share)| rows * share);
        PredictedStep { text, build, rows: going.map(|rows| rows.round() as u64) }
    };
    let steps = words.into_iter().map(&mut step).collect();
    (steps, going.map(|rows| rows.round() as u64))
}

fn in_words(reason: Reason) -> String {
    reason.to_string()
}

/// Rows that a sink leaves of those that arrive.
fn leaves(sink: &Sink, arriving: Option<Rows>) -> Option<Rows> {
    match sink {
        Sink::Aggregate { groups, .. } if groups.is_empty() => Some(Rows::Exactly(1)),
        // How many of the keys are equal is not known.
        Sink::Aggregate { .. } => None,
        Sink::TopK(TopK { k: Some(most), .. }) | Sink::Rows { limit: Some(most), .. } => Some(Rows::AtMost(*most)),
        Sink::Build { .. } | Sink::TopK(_) | Sink::Rows { .. } => arriving,
    }
}

/// What is told of tables that runs of rows enter together.
const PREAGGREGATED: &str = ", runs preaggregated";

/// Kind and places of what a sink leaves, and its bytes.
fn size(sink: &BoundSink) -> (String, u64) {
    match sink {
        BoundSink::Table(table) => table_size(table),
        BoundSink::Groups(groups) => groups_size(groups),
        BoundSink::TopK(top) => (top.decision.reason.clone(), top.memory.output.bytes() as u64),
        BoundSink::Rows(rows) => (format!("room for {} rows", rows.capacity), rows.memory.bytes() as u64),
        BoundSink::List(list) => (format!("a list of up to {} rows", list.places), list.memory.bytes() as u64),
    }
}

fn table_size(table: &BoundTable) -> (String, u64) {
    let runs = match table.ends {
        Some(_) => ", ordered",
        None if table.runs.is_some() => PREAGGREGATED,
        None => "",
    };
    let places = table.places;
    let kind = match table.layout {
        TableLayout::Direct => format!("direct, {places} places"),
        TableLayout::Hash => format!("hash, {places} slots"),
        TableLayout::Wide => format!("hash of wide keys, {places} slots"),
    };
    (kind + runs, table.memory.bytes() as u64)
}

fn groups_size(groups: &BoundGroups) -> (String, u64) {
    let bytes = groups.memory.bytes() as u64;
    if let Some(ordered) = &groups.ordered {
        return (format!("ordered, {} places", groups.places + ordered.places), bytes);
    }
    let (kind, runs) = (groups.grouping, if groups.runs.is_some() { PREAGGREGATED } else { "" });
    match kind {
        Grouping::Single => (format!("{kind} of {} cells", groups.cell_count), bytes),
        _ => (format!("{kind}, {} places{runs}", groups.places), bytes),
    }
}

impl Prediction {
    /// Whether the fragment reads something that is not on the device yet.
    pub fn loads(&self) -> bool {
        self.load_bytes != Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::in_bytes;

    fn device(peak_bandwidth: f64) -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".into(),
            emulated: false,
            runs_kernels: true,
            compute_capability: (9, 0),
            multiprocessors: 132,
            shared_memory_per_block: 227 << 10,
            shared_memory_per_multiprocessor: 228 << 10,
            params_bytes_max: 32_764,
            l2_bytes: 60 << 20,
            memory_bytes: 141 << 30,
            peak_bandwidth,
            driver: "13.0".into(),
        }
    }

    #[test]
    fn times_are_near_those_measured() {
        let h200 = device(4.8e12);
        // SSB at scale 20 and TPC-H at scale 10, times in ms: to read the query's bytes at peak, launches, measured.
        let queries = [(0.330, 2, 0.465), (0.112, 2, 0.261), (0.245, 2, 0.380), (0.287, 1, 0.367)];
        for (floor, launches, measured) in queries {
            let bytes = (floor / 1e3 * h200.peak_bandwidth) as u64;
            let predicted = device_time(&h200, bytes, launches).unwrap().as_secs_f64() * 1e3;
            assert!((predicted / measured - 1.0).abs() < 0.12, "{predicted} instead of {measured}");
        }
        assert_eq!(device_time(&device(0.0), 1 << 30, 1), None, "a device that tells no bandwidth");
    }

    #[test]
    fn bytes_have_units() {
        let texts: Vec<String> = [0, 9_999, 10_000, 48_160, 1_500_000, 2_345_000_000].map(in_bytes).into();
        assert_eq!(texts, ["0 bytes", "9999 bytes", "10.0 KB", "48.2 KB", "1.5 MB", "2.35 GB"]);
    }
}
