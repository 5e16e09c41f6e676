//! What a fragment will do, before it runs: its pipelines in words, bytes and time by a simple model.
//!
//! Kernels are taken to read at the device's bandwidth, and each launch to cost a fixed time. Before the columns are on
//! the device and the fragment is bound, every column is taken to be read whole and tables have no known size; a kept
//! binding knows both. Predictions are for people and for choosing a place; they never change a result.

use std::time::Duration;

use arrow::datatypes::DataType;
use warpcube_column::Storage;
use warpcube_gpu::DeviceInfo;

use crate::codegen::launch_group::levels;
use crate::codegen::sink::{BoundGroups, BoundSink, Grouping};
use crate::exec::bind::{BoundFragment, Root};
use crate::exec::binding::BindingCache;
use crate::exec::run::Engine;
use crate::format::in_bytes;
use crate::ir::{Fragment, Sink};
use crate::plan::explain::{self, Named};
use crate::plan::order::Planned;
use crate::plan::table::{BuiltTable, TableLayout};

/// What a launch costs beyond the bytes it reads: start, drawing tickets, flushing. Of the queries of TPC-H and SSB on
/// an H200 (bench/results), those with one launch take 0.08 ms more than reading their bytes at peak, those with two
/// 0.15 ms.
const LAUNCH: Duration = Duration::from_micros(75);
/// Launches of a top-k beside its scan, most of which work on few candidates, and what one costs.
const SELECTION_LAUNCHES: u32 = 16;
const SELECTION_LAUNCH: Duration = Duration::from_nanos(3_500);
/// Share of the peak bandwidth that scans reach.
const BANDWIDTH_SHARE: f64 = 0.92;

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

/// One pipeline of a [`Prediction`].
#[derive(Debug, Clone, PartialEq)]
pub struct PredictedPipeline {
    /// The table that it scans, or the pipeline whose groups it does.
    pub source: String,
    /// Rows of the table, where they are known.
    pub rows: Option<u64>,
    /// Columns it reads.
    pub columns: usize,
    /// Those of them that are on the device.
    pub resident: usize,
    /// Bytes it reads from columns: at most so many before binding, an estimate after.
    pub bytes: Option<u64>,
    /// Its steps in words, in the order in which they are taken where it is bound.
    pub steps: Vec<String>,
    /// Its sink in words.
    pub sink: String,
    /// Kind and size of the table or of the groups that it leaves; known once it was bound.
    pub size: Option<String>,
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
                let source = fragment.pipelines[index].source;
                let facts = source.table().and_then(|table| tables.get(table));
                let rows = facts.and_then(|facts| facts.rows);
                let of_bound = bound.map(|bound| &bound.pipelines[index]);
                let positions = source.table().and_then(|table| fragment.tables.get(table));
                let positions = positions.map_or(&[] as &[usize], |table| &table.columns);
                let is_there = |column: &&usize| facts.is_some_and(|facts| self.is_there(facts, **column));
                PredictedPipeline {
                    source: fragment.source_name(source),
                    rows,
                    columns: positions.len(),
                    resident: positions.iter().filter(is_there).count(),
                    bytes: match of_bound {
                        Some(bound) => Some(bound.bytes as u64),
                        // Of groups nothing is known before they are there.
                        None if source.table().is_none() => Some(0),
                        None => facts.and_then(|facts| bytes(facts, |_| true)),
                    },
                    steps: words.steps,
                    sink: words.sink,
                    size: of_bound.map(|bound| size(&bound.sink)),
                }
            })
            .collect();
        let launches = bound.map_or_else(|| launches(fragment), launches_of);
        let is_top = matches!(fragment.pipelines.last().map(|root| &root.sink), Some(Sink::TopK(_)));
        let selections = if is_top { SELECTION_LAUNCHES } else { 0 };
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

    fn is_there(&self, facts: &TableFacts, column: usize) -> bool {
        self.residency().is_resident(&facts.key, &facts.version, &[column])
    }
}

/// Time to read `bytes` with so many launches; none for a device that tells no bandwidth.
fn device_time(info: &DeviceInfo, bytes: u64, launches: u32) -> Option<Duration> {
    let bandwidth = info.peak_bandwidth * BANDWIDTH_SHARE;
    (bandwidth > 0.0).then(|| Duration::from_secs_f64(bytes as f64 / bandwidth) + LAUNCH * launches)
}

/// Bytes of those columns of a table whose position `wanted` picks; none where its rows are not known.
fn bytes(facts: &TableFacts, wanted: impl Fn(usize) -> bool) -> Option<u64> {
    let picked = facts.columns.iter().enumerate().filter(|(position, _)| wanted(*position));
    let width: usize = picked.map(|(_, (_, data_type))| Storage::of(data_type).map_or(0, Storage::width)).sum();
    if width == 0 { Some(0) } else { Some(facts.rows? * width as u64) }
}

/// Launches of a fragment that is not bound: one a level of joins. Whether groups are gathered at the end is not known.
fn launches(fragment: &Fragment) -> u32 {
    levels(&fragment.pipelines).into_iter().max().map_or(0, |level| level as u32 + 1)
}

fn launches_of(bound: &BoundFragment) -> u32 {
    let compacted = matches!(&bound.root, Root::Groups(_, Some(_)));
    bound.launch_groups.len() as u32 + u32::from(compacted)
}

fn size(sink: &BoundSink) -> String {
    match sink {
        BoundSink::Table(table) => table_size(table),
        BoundSink::Groups(groups) => groups_size(groups),
        BoundSink::TopK(top) => top.decision.reason.clone(),
        BoundSink::Rows(rows) => format!("room for {} rows, {}", rows.capacity, in_bytes(rows.output.bytes() as u64)),
    }
}

fn table_size(table: &BuiltTable) -> String {
    let payload: usize = table.payload.iter().map(|column| column.zone.bytes()).sum();
    match &table.layout {
        TableLayout::Direct { bitmap } => {
            format!("direct, {} places, {}", table.pack.domain, in_bytes((bitmap.bytes() + payload) as u64))
        }
        TableLayout::Hash { keys, mask, .. } => {
            format!("hash, {} slots, {}", mask + 1, in_bytes((keys.bytes() + payload) as u64))
        }
        TableLayout::Wide { states, words, mask, .. } => {
            let bytes = (states.bytes() + words.bytes() + payload) as u64;
            format!("hash of wide keys, {} slots, {}", mask + 1, in_bytes(bytes))
        }
    }
}

fn groups_size(groups: &BoundGroups) -> String {
    let kind = match groups.grouping {
        Grouping::Single => return format!("one group of {} cells", groups.cell_count),
        Grouping::Private => "a copy a thread",
        Grouping::Shared => "a copy a block",
        Grouping::Dense => "indexed by key",
        Grouping::Hashed => "hash",
    };
    let bytes = (groups.seen.bytes() + groups.cells.bytes()) as u64;
    format!("{kind}, {} places, {}", groups.places, in_bytes(bytes))
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

    fn device(peak_bandwidth: f64) -> DeviceInfo {
        DeviceInfo {
            name: "NVIDIA H200".into(),
            emulated: false,
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
