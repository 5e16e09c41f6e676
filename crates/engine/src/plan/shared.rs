//! What a block keeps in shared memory, and how many threads it has: bitmaps of tables or a byte for each code of a
//! column, cells, queues of rows.
//!
//! Where the key is a packed column with one reference, the bitmap's bits are brought to the places of its offsets:
//! the test is then one load of a word, behind which lies one without bits for all offsets that the table has no place
//! for.
//!
//! Codes are in the order of their values, and what a table holds is often a range of them: a year, a month. A kernel
//! sees that when it fills in the bytes, and then compares codes with the ends of the range instead.

use crate::format::in_bytes;
use crate::ir::{Expr, Probe};
use crate::plan::blocks::{LARGE_WARPS, SMALL_BLOCK};
use crate::plan::bounds::asks_for_span;
use crate::plan::input::PipelineInput;
use crate::plan::keys::{KeyPart, Null};
use crate::plan::order::{Item, Planned};
use crate::plan::sink::SinkPlan;
use crate::plan::split::Split;
use crate::plan::table::{TableLayout, TablePlan};

/// Bytes behind what is staged: how many keys there are, the first one, and the first past all of them.
const SPAN_BYTES: usize = 16;

/// What the places of a bitmap or byte map in shared memory stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MapIndex {
    /// The keys of the table, a bit each.
    Keys,
    /// The codes of a column, a byte each.
    Codes(usize),
    /// The offsets of a packed column, a bit each: so many words of them, the first place being as many places behind
    /// the table's first.
    Offsets { column: usize, words: usize, first: i64 },
}

/// A bitmap or byte map in shared memory that tells which keys a table has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SharedTable {
    /// The table.
    pub(crate) build: usize,
    /// What its places are.
    pub(crate) places: MapIndex,
    /// Whether the first and the last key are known, too.
    pub(crate) spanned: bool,
    /// Where it lies, in bytes.
    pub(crate) offset: usize,
}

impl SharedTable {
    /// What is kept at `offset` of shared memory for a probe of a table that is indexed by key.
    fn of(input: &PipelineInput, split: &Split, (probe, table): (&Probe, &TablePlan), offset: usize) -> SharedTable {
        let build = probe.build;
        if let Some(column) = coded(input, split, probe) {
            return SharedTable { build, places: MapIndex::Codes(column), spanned: false, offset };
        }
        let spanned = asks_for_span(input, split, build);
        let by_offset = || offsets(input, split, (probe, table)).filter(|_| !spanned);
        SharedTable { build, places: by_offset().unwrap_or(MapIndex::Keys), spanned, offset }
    }

    /// The column of codes that a byte a code tells of.
    pub(crate) fn coded(self) -> Option<usize> {
        match self.places {
            MapIndex::Codes(column) => Some(column),
            _ => None,
        }
    }

    /// Bytes that it takes, of a table whose bitmap takes so many.
    fn bytes(self, bitmap: usize, input: &PipelineInput) -> usize {
        match self.places {
            MapIndex::Keys => bitmap.next_multiple_of(16) + if self.spanned { SPAN_BYTES } else { 0 },
            MapIndex::Codes(column) => input.columns[column].layout.codes.next_multiple_of(16) + SPAN_BYTES,
            MapIndex::Offsets { words, .. } => (4 * words + 4).next_multiple_of(16),
        }
    }

    /// Whether both have the same places of the same table.
    fn is_as(&self, other: &SharedTable) -> bool {
        (self.build, self.places) == (other.build, other.places)
    }
}

/// Shape and shared memory of a kernel.
#[derive(Debug, Clone)]
pub(crate) struct SharedMemory {
    /// Threads of a block.
    pub(crate) block: u32,
    /// Blocks a multiprocessor that registers must allow.
    pub(crate) min_blocks: u32,
    /// Dynamic shared memory of a block in bytes.
    pub(crate) bytes: usize,
    /// What tells which keys tables have.
    pub(crate) tables: Vec<SharedTable>,
    /// For each dense step, its position among those, if it is a probe for which something was found to fit.
    staged: Vec<Option<usize>>,
    /// Where the queues of warps begin, and rows of one.
    pub(crate) queue_offset: usize,
    pub(crate) queue_entries: usize,
    /// Where cells begin.
    pub(crate) cells_offset: usize,
    /// Why the block has so many threads.
    pub(crate) why: String,
}

impl SharedMemory {
    /// Chooses block size and what lies in shared memory: bitmaps of dense probes by selectivity, queues, cells.
    pub(crate) fn plan(input: &PipelineInput, split: &Split, sink: &SinkPlan) -> SharedMemory {
        let queue_entries = if split.in_place { 0 } else { split.slots * 32 + 32 };
        let cells_per_warp = sink.warp_bytes();
        let warp_bytes = queue_entries * 2 + cells_per_warp;
        let block_cells = sink.block_bytes();
        let mut tables: Vec<SharedTable> = Vec::new();
        let mut table_bytes = 0;
        // The most selective probes come first in the plan and take shared memory first.
        let of = |planned: &Planned, offset: usize| {
            let Item::Probe(probe, _) = &planned.item else { return None };
            let table = input.tables[probe.build].as_deref().filter(|table| table.layout == TableLayout::Direct)?;
            Some((SharedTable::of(input, split, (probe, table), offset), table.bitmap_bytes()))
        };
        for planned in &split.dense {
            let Some((staged, bitmap)) = of(planned, table_bytes) else { continue };
            let bytes = staged.bytes(bitmap, input);
            let fits = table_bytes + bytes + block_cells + warp_bytes * LARGE_WARPS <= input.shared_limit;
            if fits && !tables.iter().any(|known| known.is_as(&staged)) {
                tables.push(staged);
                table_bytes += bytes;
            }
        }
        let position = |planned: &Planned| {
            let (wanted, _) = of(planned, 0)?;
            tables.iter().position(|staged| staged.is_as(&wanted))
        };
        let staged = split.dense.iter().map(position).collect();
        let large = table_bytes + block_cells > input.tuning.small_shared_bytes;
        let tuning = input.tuning;
        let few = split.register_bytes(input) * split.slots as f64 <= tuning.run_vector_bytes as f64;
        let kept = in_bytes((table_bytes + block_cells) as u64);
        let (block, min_blocks, why) = match large {
            true => (32 * LARGE_WARPS as u32, 1, format!("tables and cells of a block take {kept}")),
            false if sink.runs().is_some() && few => {
                (SMALL_BLOCK, tuning.blocks_runs, "rows are added up by runs".into())
            }
            false if split.in_place && sink.grows() && few => {
                (SMALL_BLOCK, tuning.blocks_resuming, "rows are worked on in place, by a scan that stops".into())
            }
            false if cells_per_warp > 0 => (SMALL_BLOCK, tuning.blocks_in_place, "warps have cells".into()),
            false if split.in_place => (SMALL_BLOCK, tuning.blocks_in_place, "rows are worked on in place".into()),
            false if split.packed => (SMALL_BLOCK, tuning.blocks_packed, "packed columns are queued".into()),
            false => (SMALL_BLOCK, tuning.blocks, "rows are queued".into()),
        };
        let warps = block as usize / 32;
        let cells_offset = table_bytes;
        let queue_offset = cells_offset + block_cells + cells_per_warp * warps;
        let bytes = (queue_offset + queue_entries * 2 * warps).max(sink.warp_sum_bytes());
        SharedMemory { block, min_blocks, bytes, tables, staged, queue_offset, queue_entries, cells_offset, why }
    }

    /// What is kept for a dense step, if it is a probe for which something was found to fit.
    pub(crate) fn staged(&self, position: usize) -> Option<&SharedTable> {
        self.tables.get((*self.staged.get(position)?)?)
    }
}

/// The column whose codes a table is asked for, if the key is such a column and it has few enough values.
pub(crate) fn coded(input: &PipelineInput, split: &Split, probe: &Probe) -> Option<usize> {
    let [Expr::Reg(column)] = probe.keys.as_slice() else { return None };
    let codes = input.columns.get(*column)?.layout.codes;
    ((1..=input.tuning.shared_codes).contains(&codes) && split.loaded.contains(column)).then_some(*column)
}

/// The offsets of the column that is the key of a probe, if they are packed with one reference, and the words of
/// their bits are hardly more than those of the table's.
fn offsets(input: &PipelineInput, split: &Split, (probe, table): (&Probe, &TablePlan)) -> Option<MapIndex> {
    let ([Expr::Reg(column)], bitmap) = (probe.keys.as_slice(), table.bitmap_bytes()) else { return None };
    let facts = input.columns.get(*column)?;
    let layout = &facts.layout;
    let (packed, reference) = layout.packed().filter(|_| split.loaded.contains(column))?;
    let [KeyPart { low, places, null: Null::Never, high: None, stride: 1, .. }] = table.pack.parts.as_slice() else {
        return None;
    };
    let is_integer = !facts.ty.is_float() && facts.dictionary.is_none() && table.strings.iter().all(Option::is_none);
    if !is_integer || layout.is_coded() || facts.texts.is_some() {
        return None;
    }
    let first = i64::try_from(reference - low).ok()?;
    let past = i128::try_from(*places).ok()? - i128::from(first);
    let words = (past.clamp(0, 1 << packed.width) as usize).div_ceil(32).max(1);
    (4 * words <= bitmap + bitmap / 8 + 64).then_some(MapIndex::Offsets { column: *column, words, first })
}
