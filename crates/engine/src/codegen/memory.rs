//! Where in the arena lies what pipelines leave and read: regions follow from plans.

use std::ops::Deref;
use std::sync::Arc;

use crate::arena::{Arena, Pointer, Region};
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::stop_memory::StopMemory;
use crate::plan::cells::CellOp;
use crate::plan::groups::GroupsPlan;
use crate::plan::input::PipelineInput;
use crate::plan::pipeline::PipelinePlan;
use crate::plan::rows::{ListPlan, ResultPlan};
use crate::plan::table::{Keep, MatchesPlan, Numbering, TableLayout, TablePlan, first_rows};
use crate::plan::tickets::Tickets;
use crate::plan::top::{ROWS_WORD, RankedPlan, TopPlan};
use crate::plan::view::View;

/// Words before the rows of a result: their number.
pub(crate) const HEAD_WORDS: usize = 1;

/// What a plan leaves, with its regions.
#[derive(Debug, Clone)]
pub(crate) struct Bound<P, M> {
    pub(crate) plan: Arc<P>,
    pub(crate) memory: M,
}

impl<P, M> Deref for Bound<P, M> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.plan
    }
}

/// A table.
pub(crate) type BoundTable = Bound<TablePlan, TableMemory>;
/// Groups.
pub(crate) type BoundGroups = Bound<GroupsPlan, GroupsMemory>;
/// Rows of a result: the head, then words of rows.
pub(crate) type BoundRows = Bound<ResultPlan, Region>;
/// Rows that another pipeline scans.
pub(crate) type BoundList = Bound<ListPlan, ListMemory>;

/// Regions shared by all pipelines of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    /// `uint64_t` error, `uint64_t` flags, `uint32_t` cancel and one that is not used; `uint32_t` that tells whether a
    /// scan has stopped without room, then a bit a pipeline that has found none; `uint64_t` number of matches that were
    /// counted; then a ticket counter a pipeline.
    pub(crate) region: Region,
}

/// Byte offset of the cancel word in the control region.
pub(crate) const CANCEL_OFFSET: usize = 16;
/// Bytes of the control region that tell how a run has ended.
pub(crate) const CONTROL_HEAD_BYTES: usize = 32;
/// Byte offset of the bits of pipelines that have found no room: `WC_FULL_WORD` of stops.cuh.
pub(crate) const FULL_OFFSET: usize = 28;
/// Pipelines of a fragment that have such a bit.
pub(crate) const PIPELINES_MAX: usize = (MATCHES_OFFSET - FULL_OFFSET) * 8;
/// Byte offset of the number of matches in the control region: `WC_MATCHES_WORD` of expand.cuh.
pub(crate) const MATCHES_OFFSET: usize = TICKETS_OFFSET - 8;
/// Byte offset of the ticket counters in the control region.
pub(crate) const TICKETS_OFFSET: usize = 128;

/// What the kernels of a pipeline read beside what its sink leaves.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a> {
    pub(crate) control: Control,
    /// The tables of the fragment, by pipeline.
    pub(crate) tables: &'a [Option<TableMemory>],
    pub(crate) scan: &'a ScanMemory,
}

/// The operands of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanMemory {
    /// Pointers: for each chunk, each column's values and validity.
    pub(crate) segments: Region,
    /// First ticket of each chunk in its launch.
    pub(crate) first_tickets: Region,
    /// Rows of each chunk.
    pub(crate) chunk_rows: Region,
    /// Rows of each chunk's tickets.
    pub(crate) ticket_rows: Region,
    /// First vector of each chunk in its launch.
    pub(crate) first_vectors: Region,
    /// Number of chunks.
    pub(crate) chunks: u32,
    /// Where the number of rows is, if the device alone knows it.
    pub(crate) count: Option<CountMemory>,
    /// Where warps leave their states, if the scan resumes.
    pub(crate) stop: Option<StopMemory>,
}

/// The operands that tell which rows of a scan there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountMemory {
    /// A pointer to the number of rows, a `uint64_t`.
    count: Region,
    /// `uint64_t` a chunk: the number of its first row.
    pub(crate) first_rows: Region,
}

impl CountMemory {
    /// Declares the number of rows, `counted`, and that of the first row of the `chunk`, `first_row`.
    /// `first_rows` points to those of the chunks that the kernel knows.
    pub(crate) fn declare(self, params: &mut ParamList, first_rows: Argument) -> String {
        let count = params.add("const uint64_t* const*", Argument::Region(self.count));
        let first_rows = params.add("const uint64_t*", first_rows);
        format!("        const uint64_t counted = **{count}, first_row = wc_load_cached({first_rows} + chunk);\n")
    }
}

impl ScanMemory {
    pub(crate) fn lay_out(
        arena: &mut Arena,
        input: &PipelineInput,
        plan: &PipelinePlan,
        view: &View<'_>,
    ) -> ScanMemory {
        let launches = &plan.tickets;
        let all = |of: fn(&Tickets) -> &[u32]| launches.iter().flat_map(of).copied().collect::<Vec<u32>>();
        let count = view.count.map(|count| CountMemory {
            count: arena.pointers(&[count]),
            first_rows: arena.constant(bytemuck::cast_slice(&first_rows(input.chunk_rows))),
        });
        ScanMemory {
            count,
            stop: StopMemory::lay_out(arena, plan, input.info.multiprocessors),
            segments: arena.pointers(&view.pointers()),
            first_tickets: arena.constant(bytemuck::cast_slice(&all(|tickets| &tickets.firsts))),
            chunk_rows: arena.constant(bytemuck::cast_slice(input.chunk_rows)),
            ticket_rows: arena.constant(bytemuck::cast_slice(&all(|tickets| &tickets.rows))),
            first_vectors: arena.constant(bytemuck::cast_slice(&all(|tickets| &tickets.first_vectors))),
            chunks: input.chunk_rows.len() as u32,
        }
    }
}

/// The regions of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableMemory {
    pub(crate) index: Index,
    /// Entries of each payload column.
    pub(crate) payload: Vec<Region>,
    pub(crate) matches: Option<MatchesMemory>,
    pub(crate) ends: Option<EndsMemory>,
}

/// What tells which keys a table has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Index {
    /// A bit a key.
    Bitmap(Region),
    /// Keys.
    Keys(Region),
    /// States of slots, and words of keys, side by side.
    Wide { states: Region, words: Region },
}

impl Index {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Index::Bitmap(region) | Index::Keys(region) => region.bytes(),
            Index::Wide { states, words } => states.bytes() + words.bytes(),
        }
    }
}

/// The entries of keys whose runs begin or end a step, in a hash table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndsMemory {
    /// `uint64_t` a slot: key + 1, or zero.
    pub(crate) seen: Region,
    /// For each payload column, `uint64_t` a slot.
    pub(crate) cells: Region,
}

/// The rows of each key of a table whose keys come several times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatchesMemory {
    /// `uint32_t` an entry: rows of the key.
    pub(crate) counts: Region,
    /// `uint32_t` an entry: the place of its first row in `order`.
    pub(crate) firsts: Region,
    /// `uint32_t` a row: its entry plus one, zero for a row that did not enter.
    pub(crate) entries: Region,
    /// `uint32_t` a row: rows of its key that entered before.
    pub(crate) ranks: Region,
    /// `uint32_t` a place: the number of a row.
    pub(crate) order: Region,
    /// `uint32_t`: places given away.
    pub(crate) total: Region,
    /// `uint64_t` a chunk of the scan, the number of its first row; or one `uint64_t`, numbers given away.
    pub(crate) numbers: Region,
}

impl TableMemory {
    /// Entries of extremes are zero at first, but where there is a table for the ends of runs.
    pub(crate) fn lay_out(arena: &mut Arena, plan: &TablePlan) -> TableMemory {
        let slots = plan.places as usize;
        let index = match plan.layout {
            TableLayout::Direct => Index::Bitmap(arena.zeroed(plan.bitmap_bytes())),
            TableLayout::Hash => Index::Keys(arena.zeroed(slots * 8)),
            TableLayout::Wide => {
                Index::Wide { states: arena.zeroed(slots * 8), words: arena.scratch(slots * 8 * plan.pack.words) }
            }
        };
        let ends = plan.ends.map(|slots| EndsMemory {
            seen: arena.zeroed(slots as usize * 8),
            cells: arena.zeroed(slots as usize * 8 * plan.payload.len()),
        });
        let matches = plan.matches.as_ref().map(|matches| MatchesMemory::lay_out(arena, plan.places, matches));
        let payload = plan.payload.iter().map(|column| {
            let bytes = (plan.entries() * column.width) as usize;
            match column.keep {
                Keep::Least | Keep::Most if ends.is_none() => arena.zeroed(bytes),
                _ => arena.scratch(bytes),
            }
        });
        TableMemory { index, payload: payload.collect(), matches, ends }
    }

    /// The bitmap of a table that is indexed by key.
    pub(crate) fn bitmap(&self) -> Option<Region> {
        match self.index {
            Index::Bitmap(region) => Some(region),
            _ => None,
        }
    }

    /// Bytes of the table.
    pub(crate) fn bytes(&self) -> usize {
        let payload: usize = self.payload.iter().map(|region| region.bytes()).sum();
        self.index.bytes() + payload + self.ends.map_or(0, |ends| ends.seen.bytes() + ends.cells.bytes())
    }
}

impl MatchesMemory {
    fn lay_out(arena: &mut Arena, places: u64, plan: &MatchesPlan) -> MatchesMemory {
        let numbers = match &plan.numbering {
            Numbering::Scanned(first_rows) => arena.constant(bytemuck::cast_slice(first_rows)),
            Numbering::Counted => arena.zeroed(8),
        };
        let (of_places, of_rows) = (4 * places as usize, 4 * plan.rows as usize);
        MatchesMemory {
            counts: arena.zeroed(of_places),
            firsts: arena.scratch(of_places),
            entries: arena.zeroed(of_rows),
            ranks: arena.scratch(of_rows),
            order: arena.scratch(of_rows),
            total: arena.zeroed(4),
            numbers,
        }
    }
}

/// The regions of groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupsMemory {
    /// A byte a place (dense), or 8 bytes a place: key + 1 (hashed, and where another pipeline scans the groups), or
    /// the slot's state where a key has several words; zero where there is no group. Where slots have all of a group,
    /// those ([`GroupsPlan::slot_words`]).
    pub(crate) seen: Region,
    /// Cells: for each copy and cell, 8 bytes a place; none where slots have them.
    pub(crate) cells: Option<Region>,
    /// Groups in the order in which warps have found them.
    pub(crate) ordered: Option<OrderedMemory>,
}

/// The regions of groups that are not looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OrderedMemory {
    /// `uint64_t` a place: key + 1, zero where there is no group.
    pub(crate) seen: Region,
    /// Cells: for each cell, 8 bytes a place.
    pub(crate) cells: Region,
    /// `uint64_t`: places given away.
    pub(crate) counter: Region,
}

impl GroupsMemory {
    pub(crate) fn lay_out(arena: &mut Arena, plan: &GroupsPlan) -> GroupsMemory {
        let ordered = plan.ordered.map(|ordered| OrderedMemory {
            seen: arena.zeroed(ordered.places as usize * 8),
            cells: arena.scratch(ordered.places as usize * 8 * plan.cell_count.max(1)),
            counter: arena.zeroed(8),
        });
        debug_assert!(plan.slot_words().is_some() || !plan.pack.is_wide(), "words of keys lie in slots");
        // The marks stand before the cells: small tables come back in one copy of both.
        let mark_bytes = plan.slot_words().map_or(plan.mark_bytes(), |words| 8 * words);
        let seen = arena.zeroed(plan.places as usize * mark_bytes);
        let cells = plan.slot_words().is_none().then(|| arena.zeroed(plan.cell_bytes() * plan.copies as usize));
        GroupsMemory { seen, cells, ordered }
    }

    /// Bytes of the table.
    pub(crate) fn bytes(&self) -> usize {
        let ordered = self.ordered.map_or(0, |ordered| ordered.seen.bytes() + ordered.cells.bytes());
        self.seen.bytes() + self.cells.map_or(0, |cells| cells.bytes()) + ordered
    }

    /// For each range of places side by side: marks, the cells where they are no part of slots, and the number of
    /// places.
    pub(crate) fn ranges(&self, plan: &GroupsPlan) -> impl Iterator<Item = (Region, Option<Region>, u64)> {
        let ordered = self.ordered.zip(plan.ordered).map(|(at, ordered)| (at.seen, Some(at.cells), ordered.places));
        std::iter::once((self.seen, self.cells, plan.places)).chain(ordered)
    }

    /// The first cell of the first group, as an operand.
    pub(crate) fn first_cell(&self, plan: &GroupsPlan) -> Argument {
        match self.cells {
            Some(cells) => Argument::Region(cells),
            None => Argument::Within(self.seen, 8 * plan.first_cell()),
        }
    }
}

impl GroupsPlan {
    /// The address of a cell of the group at a place; `cells` is that of the first cell of the first group, `places`
    /// the number of places.
    pub(crate) fn cell_at(&self, (cells, places): (&str, &str), cell: usize, place: &str) -> String {
        match self.slot_words() {
            Some(words) => format!("{cells} + {place} * {words} + {cell}"),
            None => format!("{cells} + {cell} * {places} + {place}"),
        }
    }

    /// The cell of an entry of the block's cache: its lower half, behind those of all entries the upper ones, where it
    /// is added to as halves, and 64 bits otherwise.
    pub(crate) fn cached_cell(&self, cell: usize) -> String {
        let each = if self.cells.cells.get(cell).is_none_or(|cell| cell.op == CellOp::Add) { 1 } else { 2 };
        format!("cached + {} + entry * {each}", 2 * self.cached * cell)
    }
}

impl GroupsPlan {
    /// The C type of the mark of a place.
    pub(crate) fn mark_type(&self) -> &'static str {
        if self.mark_bytes() == 8 { "uint64_t" } else { "uint8_t" }
    }

    /// The mark of the group with this packed key.
    pub(crate) fn mark(&self, key: &str) -> String {
        if self.values.is_some() { format!("(uint64_t)({key}) + 1") } else { "1".into() }
    }
}

/// The regions of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListMemory {
    /// `uint64_t` a place: zero where there is no row.
    pub(crate) seen: Region,
    /// Where the columns take several words, `uint64_t` a place for each word.
    pub(crate) words: Option<Region>,
    /// `uint64_t`: rows that have come.
    pub(crate) count: Region,
}

impl ListMemory {
    pub(crate) fn lay_out(arena: &mut Arena, plan: &ListPlan) -> ListMemory {
        let bytes = 8 * plan.places as usize;
        let words = plan.pack.is_wide().then(|| arena.scratch(bytes * plan.pack.words));
        ListMemory { seen: arena.zeroed(bytes), words, count: arena.zeroed(8) }
    }

    /// Bytes of its columns.
    pub(crate) fn bytes(&self) -> usize {
        self.seen.bytes() + self.words.map_or(0, Region::bytes)
    }
}

/// The region of a result.
pub(crate) fn lay_out_result(arena: &mut Arena, plan: &ResultPlan) -> Region {
    arena.result(8 * HEAD_WORDS, 8 * (HEAD_WORDS + plan.pack.words * plan.capacity as usize))
}

/// The regions of ranks, of which the best are put in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankedMemory {
    /// Ranks; zero where there is no row, or one that does not pass. Of candidates that the scan's last block sorts,
    /// those that were appended, and undefined behind them. Ranks without a bit of the row have no gaps.
    pub(crate) ranks: Region,
    /// Their tails, likewise, where ranks have tails.
    pub(crate) tails: Option<Region>,
    /// What is carried beside ranks, if anything is.
    pub(crate) carried: Option<Region>,
    /// The best ranks, and where they lay; where all are sorted the latter alone, of all ranks in order, or what is
    /// carried beside them.
    pub(crate) best: [Region; 2],
}

impl RankedMemory {
    fn lay_out(arena: &mut Arena, plan: &TopPlan, ranked: &RankedPlan) -> RankedMemory {
        let bytes = ranked.count as usize * plan.ranks.element().bytes();
        // The last block reads ranks that were appended, and no others; ranks by place without gaps are all written.
        let are_written = plan.by_last_block || plan.ranks.row_bits == 0;
        let mut region = || if are_written { arena.scratch(bytes) } else { arena.zeroed(bytes) };
        let (ranks, tails) = (region(), plan.ranks.tail_bits.map(|_| region()));
        let [best, order] = plan.best_bytes(ranked);
        // The selection leaves places alone that no rank has taken.
        let carried = plan.ranks.is_beside.then(|| arena.scratch(order));
        RankedMemory { ranks, tails, carried, best: [arena.zeroed(best), arena.scratch(order)] }
    }
}

/// The regions of a top-k.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopMemory {
    /// `uint64_t` a chunk: the number of its first row.
    pub(crate) first_rows: Region,
    pub(crate) candidates: RankedMemory,
    pub(crate) sample: Option<RankedMemory>,
    /// `uint64_t` a bucket of a partition, the largest value in it, zero at first; `uint64_t` a partition, its bound.
    pub(crate) bounds: Option<[Region; 2]>,
    /// `uint64_t`: candidates so far.
    pub(crate) count: Region,
    /// `uint64_t`: blocks of the scan that are done, where the last of them does what follows the scan.
    pub(crate) done: Option<Region>,
    /// Scratch memory of both selections.
    pub(crate) scratch: Region,
    /// `uint64_t`: the head, then rows; of first rows that another pipeline scans the head alone.
    pub(crate) output: Region,
    /// Where another pipeline scans the rows: for each word of a row, 8 bytes a place.
    pub(crate) columns: Option<Region>,
}

impl TopMemory {
    pub(crate) fn lay_out(arena: &mut Arena, plan: &TopPlan) -> TopMemory {
        let head = 8 * crate::plan::top::HEAD_WORDS;
        TopMemory {
            first_rows: arena.constant(bytemuck::cast_slice(&plan.first_rows)),
            candidates: RankedMemory::lay_out(arena, plan, &plan.candidates),
            sample: plan.sample.as_ref().map(|sample| RankedMemory::lay_out(arena, plan, sample)),
            bounds: plan.bounds.map(|bounds| [arena.zeroed(bounds.cell_bytes()), arena.scratch(bounds.bytes())]),
            count: arena.zeroed(8),
            done: plan.by_last_block.then(|| arena.zeroed(8)),
            scratch: arena.scratch(plan.scratch_bytes),
            output: match plan.values {
                None => arena.result(head, head + 8 * plan.k as usize * plan.row.words()),
                Some(_) => arena.zeroed(head),
            },
            columns: plan.values.as_ref().map(|_| arena.scratch(8 * plan.places() as usize * plan.words())),
        }
    }

    /// Where the number of rows is.
    pub(crate) fn rows(&self) -> Pointer<'static> {
        Pointer::Within(self.output, 8 * ROWS_WORD)
    }
}
