//! One pipeline as one device function, which a kernel calls ([`crate::launch_group`]).
//!
//! A warp draws tickets, each a run of rows of one chunk, and walks it in steps of SLOTS × 32 rows. The first steps of
//! the plan run on whole vectors: their columns are loaded 16 bytes a thread, filters and bitmap tests clear bits of
//! the lane's `alive` word. What remains runs a row at a time (`process`): either in place, or, where few rows are
//! left, from a warp-private queue in shared memory that is drained 32 rows at a time, so that further columns are
//! gathered for survivors only. Source: tile-based execution of Shanbhag, *Interactive Data Analytics Using GPUs*,
//! chapter 3; the queue and the row map are ours.

use std::fmt::Write;
use std::sync::Arc;

use warpcube_column::{ColumnLayout, ColumnReader, GROUP_SLOTS, TILE_SLOTS};

use crate::arena::{Arena, Zone};
use crate::codegen::filters::{Filters, Site};
use crate::codegen::group_values::is_of_entry;
use crate::codegen::input::PipelineInput;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::partials::Partials;
use crate::codegen::rows::{RowWriter, Statements, keeps_rows};
use crate::codegen::runs::{self, RunPlan};
use crate::codegen::shared_tables::SharedTable;
use crate::codegen::sink::{self, BoundSink, SinkPlan};
use crate::codegen::weight;
use crate::codegen::zones::{Scan, drops_vectors, is_asked_later, may_skip};
use crate::error::Result;
use crate::facts::Facts;
use crate::ir::Sink;
use crate::plan::estimate::surviving_lines;
use crate::plan::order::{self, Item, Passing, Planned};
use crate::plan::table::{BuiltTable, Matches, RunEnds, TableLayout};

/// Bitmaps beyond this many bytes of shared memory ask for one large block a multiprocessor.
const SMALL_SHARED_BYTES: usize = 24 << 10;

/// Threads of a block, unless shared memory asks for a large one.
pub(super) const SMALL_BLOCK: u32 = 256;
/// Warps of a large block.
pub(super) const LARGE_WARPS: usize = 32;
/// Largest queue of a warp in bytes.
pub(super) const QUEUE_BYTES_MAX: usize = 2 * (16 * 32 + 32);
/// Bytes of registers for the vectors of steps that are worked on in turn.
const AHEAD_BYTES: f64 = 128.0;
/// Most bytes of registers a row at which steps are made as long as tiles of differences.
const TILE_REGISTERS: usize = 12;

/// A generated device function and what launching it takes.
#[derive(Debug, Clone)]
pub(crate) struct BoundPipeline {
    /// Name of the function.
    pub(crate) name: String,
    /// Parameter struct and function.
    pub(crate) source: Arc<str>,
    /// Values of the parameter struct.
    pub(crate) params: ParamList,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Blocks a multiprocessor that registers must allow.
    pub(crate) min_blocks: u32,
    /// Whether it adds up rows by runs.
    pub(crate) by_runs: bool,
    /// Dynamic shared memory of a block in bytes.
    pub(crate) shared_bytes: u32,
    /// Tickets that the scan was cut into.
    pub(crate) tickets: u32,
    /// Whether it scans groups that another pipeline wrote.
    pub(crate) scans_groups: bool,
    /// What the sink leaves behind.
    pub(crate) sink: BoundSink,
    /// Estimated bytes read from columns.
    pub(crate) bytes: f64,
    /// Steps in the order in which they are taken.
    pub(crate) order: Vec<Planned>,
    /// Where it has the constants of its filters.
    pub(crate) filters: Filters,
    /// What is known of the registers, and what passes its filters with the constants that it was generated for.
    pub(crate) registers: Arc<[Option<Facts>]>,
    pub(crate) passing: Passing,
}

impl BoundPipeline {
    /// The table that it builds, if runs that begin or end a step are yet to be entered.
    pub(crate) fn table_with_ends(&self) -> Option<(&BuiltTable, RunEnds)> {
        match &self.sink {
            BoundSink::Table(table) => table.ends.map(|ends| (table, ends)),
            _ => None,
        }
    }

    /// The matches of the table that it builds, if a key may have several.
    pub(crate) fn matches(&self) -> Option<&Matches> {
        match &self.sink {
            BoundSink::Table(table) => table.matches.as_ref(),
            _ => None,
        }
    }
}

/// Scan parameters that the runner fills: their zones are laid out by who asks for the pipeline.
pub(crate) struct ScanZones {
    /// Pointers: for each chunk, each column's values and validity.
    pub(crate) segments: Zone,
    /// First ticket of each chunk.
    pub(crate) first_tickets: Zone,
    /// Rows of each chunk.
    pub(crate) chunk_rows: Zone,
    /// Rows of each chunk's tickets.
    pub(crate) ticket_rows: Zone,
    /// Number of chunks.
    pub(crate) chunks: u32,
    /// Number of tickets.
    pub(crate) tickets: u32,
    /// First vector of each chunk.
    pub(crate) first_vectors: Zone,
    /// Number of vectors.
    pub(crate) vectors: u32,
}

/// The split of a pipeline's steps.
pub(super) struct Split {
    pub(super) dense: Vec<Planned>,
    pub(super) rows: Vec<Planned>,
    /// Columns loaded whole, in the order of first use.
    pub(super) loaded: Vec<usize>,
    /// Those of them that rows of the queue are asked for once more, where these are not very few.
    pub(super) again: Vec<usize>,
    pub(super) in_place: bool,
    /// Whether rows have several matches.
    pub(super) multiplies: bool,
    /// Whether any of the columns loaded whole is packed.
    packed: bool,
    pub(super) slots: usize,
    /// Steps that are on their way at once; one where steps are not worked on in turn.
    pub(super) ahead: usize,
    pub(super) bytes: f64,
    /// Where runs of rows are added up first, what the sink does with them.
    pub(super) runs: Option<RunPlan>,
}

/// Writes the device function of a pipeline; `lay_out` cuts its scan into tickets of so many rows or more.
pub(crate) fn generate(
    input: &PipelineInput,
    lay_out: impl FnOnce(&mut Arena, u64) -> ScanZones,
    arena: &mut Arena,
) -> Result<BoundPipeline> {
    let values = input.values.iter().map(|value| &value.facts);
    let columns: Vec<Facts> = input.columns.iter().chain(values).cloned().collect();
    let registers = order::registers(input.pipeline, &columns, input.tables)?;
    let limits = (input.overflow, input.shared_limit.saturating_sub(LARGE_WARPS * QUEUE_BYTES_MAX));
    let (mut planned, passing) = order::order(input.pipeline, columns.len(), &registers, input.tables, limits)?;
    let scans_groups = input.pipeline.source.table().is_none();
    if scans_groups {
        // Places without a group hold no values: nothing else may look at them.
        planned.sort_by_key(|planned| !is_of_entry(planned));
    }
    let order = planned.clone();
    let mut split = split(planned, input)?;
    let mut plan = sink::plan(input, &registers, &split, arena)?;
    split.runs = plan.runs().cloned();
    let mut params = ParamList::default();
    let name = format!("pipeline_{}", input.index);
    let reader = |(column, layout): (usize, &ColumnLayout)| {
        let is_nullable = input.columns[column].nullable;
        ColumnReader::new(column, layout.clone(), is_nullable, |c_type, constant| params.constant(c_type, constant))
    };
    let readers: Vec<ColumnReader> = input.layouts.iter().enumerate().map(reader).collect();
    let skips = may_skip(Scan { input, split: &split, readers: &readers });
    if skips {
        split.ahead = 1;
    }
    // What waits for the build of a small table, or for its groups, waits for the last warp.
    let scan = match &input.pipeline.sink {
        Sink::Build { .. } if !skips => lay_out(arena, split.slots as u64 * 32),
        _ if scans_groups && !skips => lay_out(arena, split.slots as u64 * 32),
        _ => lay_out(arena, input.tuning.step_rows_max()),
    };
    let mut writer = KernelWriter {
        input,
        split: &split,
        readers: &readers,
        params: &mut params,
        arena,
        next: 0,
        error_slot: String::new(),
        filters: Vec::new(),
        out: String::new(),
    };
    let layout = writer.kernel(&name, &scan, &plan)?;
    let KernelWriter { out: body, error_slot, filters: sites, .. } = writer;
    if let SinkPlan::TopK { top, bound } = &mut plan {
        bound.write(input, top, &order, &scan, arena)?;
    }
    let source = format!("{}\n{body}", params.declaration(&format!("Params{}", input.index))).into();
    let (readers, distinct) = (readers.into(), input.distinct.into());
    let filters = Filters { sites, readers, distinct, error_slot, overflow: input.overflow };
    Ok(BoundPipeline {
        name,
        source,
        params,
        block: layout.block,
        min_blocks: layout.min_blocks,
        by_runs: split.runs.is_some(),
        shared_bytes: layout.shared_bytes as u32,
        tickets: scan.tickets,
        scans_groups,
        sink: plan.bound(),
        bytes: split.bytes,
        order,
        filters,
        passing,
        registers: registers.into(),
    })
}

/// Decides which steps run on whole vectors and which columns are loaded for them.
fn split(planned: Vec<Planned>, input: &PipelineInput) -> Result<Split> {
    let width = |column: usize| input.layouts[column].bytes();
    let lines = |share: f64, column: usize| surviving_lines(share, input.layouts[column].gathered_bytes());
    let tuning = input.tuning;
    let (mut dense, mut rows, mut loaded) = (Vec::new(), Vec::new(), Vec::<usize>::new());
    // The share of vectors that are not ruled out as a whole, and that of rows that are left in those.
    let (mut scanned, mut share) = (1.0f64, 1.0f64);
    let vector_registers =
        |loaded: &[usize]| loaded.iter().map(|column| input.layouts[*column].register_bytes()).sum::<f64>() as usize;
    // Columns of strings without codes that whole vectors are tested by, and bytes of those a row of the scan.
    let (mut texts, mut text_bytes) = (Vec::<usize>::new(), 0.0);
    for planned in planned {
        let mut new: Vec<usize> = Vec::new();
        let mut read: Vec<usize> = Vec::new();
        let mut eligible = !planned.fallible && rows.is_empty() && weight::of_item(&planned.item) <= weight::HEAVY;
        planned.item.registers(&mut |register| {
            if register >= input.columns.len() {
                eligible = false;
            } else if input.columns[register].is_bytes {
                read.push(register);
            } else if !loaded.contains(&register) && !new.contains(&register) {
                new.push(register);
            }
        });
        if let Item::Probe(probe, _) = &planned.item {
            let table = order::table(input.tables, probe)?;
            let is_direct = matches!(table.layout, TableLayout::Direct { .. });
            eligible &= is_direct && !keeps_rows(probe.kind) && (table.matches.is_none() || !planned.joins());
            eligible &= probe.residual.is_none();
        }
        // Few rows of a warp are left: those of a queue are tested by full warps.
        eligible &= read.is_empty() || share >= tuning.in_place;
        let least = if planned.is_weak() && read.is_empty() { tuning.eager_lines_weak } else { tuning.eager_lines };
        eligible &= new.iter().all(|column| lines(share, *column) >= least);
        let with_new: Vec<usize> = loaded.iter().chain(&new).copied().collect();
        eligible &= vector_registers(&with_new) <= tuning.vector_registers;
        if eligible {
            loaded = with_new;
            read.retain(|column| !texts.contains(column));
            text_bytes += read.iter().map(|column| lines(share, *column) * width(*column)).sum::<f64>() * scanned;
            texts.append(&mut read);
            match input.skips && drops_vectors(&planned.item, input.layouts) {
                true => scanned *= planned.share,
                false => share *= planned.share,
            }
            dense.push(planned);
        } else {
            rows.push(planned);
        }
    }
    let single = matches!(&input.pipeline.sink, Sink::Aggregate { groups, .. } if groups.is_empty());
    // Rows that are only added up are not worth a queue if what is added is there, or read whole anyway.
    let summed = single && rows.is_empty() && {
        let mut added = Vec::new();
        input.pipeline.sink.registers(&mut |register| input.read_by(register, &mut |column| added.push(column)));
        added.retain(|register| !loaded.contains(register));
        added.sort_unstable();
        added.dedup();
        let read_whole = |column: usize| {
            let is_value = column < input.columns.len() && !input.columns[column].is_bytes;
            is_value && lines(share, column) >= tuning.eager_lines
        };
        let all: Vec<usize> = loaded.iter().chain(&added).copied().collect();
        added.iter().all(|register| read_whole(*register)) && vector_registers(&all) <= tuning.vector_registers
    };
    let of_rows = rows.iter().map(|planned| weight::of_item(&planned.item));
    let weight = of_rows.sum::<usize>() + weight::of_sink(&input.pipeline.sink);
    // The matches of rows are shared out among all lanes of a warp, which come together where the queue is drained.
    let multiplies = input.multiplies();
    // Rows of a queue have lost their order.
    let in_place_least = if runs::are_likely(input, share) { tuning.in_place_runs } else { tuning.in_place };
    let in_place = (summed || share >= in_place_least) && weight <= weight::HEAVY && !multiplies;
    let mut wanted: Vec<usize> = Vec::new();
    let mut left = share;
    for planned in &rows {
        planned.item.registers(&mut |register| input.read_by(register, &mut |column| wanted.push(column)));
        if in_place && left >= in_place_least {
            eager(&wanted, &mut loaded, input, &vector_registers);
        }
        left *= planned.share;
    }
    input.pipeline.sink.registers(&mut |register| input.read_by(register, &mut |column| wanted.push(column)));
    if in_place && (summed || left >= in_place_least) {
        eager(&wanted, &mut loaded, input, &vector_registers);
    }
    let is_again = |column: &usize| is_asked_later(&dense, *column, &wanted);
    let has_again = !in_place && share >= tuning.again_rows;
    let again = if has_again { loaded.iter().copied().filter(is_again).collect() } else { Vec::new() };
    let rows_scanned = scanned * input.rows as f64;
    let whole: f64 = loaded.iter().map(|column| width(*column) * rows_scanned).sum();
    let is_read = |register: &usize| loaded.contains(register) || texts.contains(register);
    wanted.retain(|register| *register < input.columns.len() && !is_read(register));
    wanted.sort_unstable();
    wanted.dedup();
    let gathered: f64 = wanted.iter().map(|column| lines(share, *column) * width(*column)).sum::<f64>() * rows_scanned;
    let bytes = whole + gathered + text_bytes * input.rows as f64;
    let packed = loaded.iter().any(|column| input.layouts[*column].is_packed());
    let slots = match vector_registers(&loaded) {
        0..=2 if packed && single && in_place => tuning.slots_narrow,
        0..=7 => tuning.slots_one,
        8..=11 => tuning.slots_two,
        12..=27 => tuning.slots_some,
        _ => tuning.slots_many,
    };
    if tuning.filters_first {
        dense.sort_by_key(|planned| matches!(planned.item, Item::Probe(_, _)));
    }
    let slots = if in_place && !single { slots.min(tuning.slots_in_place) } else { slots };
    // All places of few groups are looked at at once.
    let lanes = input.info.multiprocessors as u64 * LARGE_WARPS as u64 * 32;
    let has_few_groups = input.pipeline.source.table().is_none() && input.rows <= lanes * tuning.slots_many as u64;
    let slots = if has_few_groups { slots.min(tuning.slots_many) } else { slots };
    let slots = if packed { slots.max(GROUP_SLOTS) } else { slots };
    let tiled = loaded.iter().any(|column| input.layouts[*column].is_tiled());
    let has_room = (single || !in_place) && vector_registers(&loaded) <= TILE_REGISTERS;
    let slots = if tiled && has_room { slots.max(TILE_SLOTS) } else { slots };
    // The vectors of several steps share as many registers as those of two long ones take.
    let step_bytes = loaded.iter().map(|column| input.layouts[*column].register_bytes()).sum::<f64>() * slots as f64;
    // Views wait for memory when they decode: steps in turn would repeat much text for little.
    let viewed = loaded.iter().any(|column| input.layouts[*column].is_viewed());
    let ahead = match in_place && single && tuning.prefetch && !loaded.is_empty() && !viewed {
        true => ((AHEAD_BYTES / step_bytes.max(1.0)) as usize).min(tuning.steps_ahead),
        false => 1,
    };
    let unrolled = dense.iter().map(|planned| weight::of_item(&planned.item)).sum::<usize>();
    let unrolled = unrolled + if in_place { weight } else { 0 };
    let least = if packed { GROUP_SLOTS } else { tuning.slots_many };
    let (slots, ahead) = weight::bounded(unrolled, slots, ahead, least);
    Ok(Split { dense, rows, loaded, again, in_place, multiplies, packed, slots, ahead, bytes, runs: None })
}

/// Adds the columns among `wanted` to those loaded whole, as far as registers reach.
fn eager(
    wanted: &[usize],
    loaded: &mut Vec<usize>,
    input: &PipelineInput,
    vector_registers: &impl Fn(&[usize]) -> usize,
) {
    let is_value = |register: &usize| input.columns.get(*register).is_some_and(|column| !column.is_bytes);
    for register in wanted.iter().copied().filter(is_value) {
        if !loaded.contains(&register) {
            loaded.push(register);
            if vector_registers(loaded) > input.tuning.vector_registers {
                loaded.pop();
            }
        }
    }
}

/// Shape and shared memory of a kernel.
pub(super) struct Layout {
    pub(super) block: u32,
    min_blocks: u32,
    shared_bytes: usize,
    pub(super) staged: Vec<SharedTable>,
    queue_offset: usize,
    pub(super) queue_entries: usize,
    cells_offset: usize,
}

pub(super) struct KernelWriter<'a> {
    pub(super) input: &'a PipelineInput<'a>,
    pub(super) split: &'a Split,
    pub(super) readers: &'a [ColumnReader],
    pub(super) params: &'a mut ParamList,
    pub(super) arena: &'a mut Arena,
    pub(super) next: usize,
    /// C expression of the pointer to the error slot.
    error_slot: String,
    /// What its filters wrote.
    pub(super) filters: Vec<Site>,
    out: String,
}

impl KernelWriter<'_> {
    fn kernel(&mut self, name: &str, scan: &ScanZones, plan: &SinkPlan) -> Result<Layout> {
        let layout = self.layout(plan);
        let slots = self.split.slots;
        let control = self.params.add("uint64_t*", Argument::Zone(self.input.control.zone));
        let error_slot = control.clone();
        self.error_slot.clone_from(&error_slot);
        let segments = self.params.add("const uint64_t*", Argument::Zone(scan.segments));
        let chunk_rows = self.params.add("const uint32_t*", Argument::Zone(scan.chunk_rows));
        let chunks = self.params.add("uint64_t", Argument::U64(scan.chunks.into()));

        let mut body = String::new();
        let staged = self.fill_shared_tables(&layout, &error_slot)?;
        let (prologue, epilogue) = plan.frame(self.params, layout.cells_offset, &control);
        let (row_code, partials) = self.row_code(plan, &error_slot)?;
        let columns: String = self.readers.iter().map(ColumnReader::pointers).collect();
        let zones = self.zones(&layout, &segments, &chunk_rows);
        let (ahead, loads, foot) = self.step_loads(&layout, &zones);
        let tests = self.dense_tests(&layout, &zones, &error_slot)?;
        let drain = self.drain(&layout, plan.is_single(), &partials.fold("alive"));
        let w = &mut body;
        let _ = writeln!(w, "    const uint32_t lane = wc_lane();\n    char* const shared = wc_shared();");
        let _ = writeln!(w, "    (void)shared;\n{staged}{prologue}");
        if !self.split.in_place {
            let offset = self.params.add("uint64_t", Argument::U64(layout.queue_offset as u64));
            let _ = writeln!(
                w,
                "    uint16_t* const queue = (uint16_t*)(shared + {offset}) + wc_warp() * {};",
                layout.queue_entries
            );
        }
        let index = self.input.index;
        let (head, foot_of_ticket) = match zones.any() {
            true => self.vectors_apart(&zones, scan, (&control, &chunks, &segments)),
            false => self.tickets(scan, &control, &chunks),
        };
        let _ = writeln!(
            w,
            "{head}        const uint32_t rows_here = wc_load_cached({chunk_rows} + chunk);
        const uint32_t end = rows_here - begin < ticket_rows ? rows_here : begin + ticket_rows;
        const uint64_t* const pointers = {segments} + (uint64_t)chunk * {};
        (void)pointers;
{columns}{row_code}",
            self.input.columns.len() * 2
        );
        if !self.split.in_place {
            let _ = writeln!(w, "        uint32_t queued = 0;");
        }
        let decode = |column: &usize| self.readers[*column].decode("d", slots, &zones.asked_of(&self.uses(*column)));
        let decoded: String = self.split.loaded.iter().map(decode).collect();
        let step = slots * 32;
        let (start, turns) = match self.split.ahead {
            ..=1 => ("begin", String::new()),
            _ => ("first", self.turns(&tests, &partials)),
        };
        let _ = writeln!(
            w,
            "{turns}{ahead}        for (uint32_t base = {start}; base < end; base += {step}) {{
{loads}            uint32_t alive = end - base >= {step} ? {full}u : wc_slots_before<{slots}>(end - base, lane);
{decoded}{tests}{drain}{foot}        }}
{foot_of_ticket}{epilogue}",
            full = (1u64 << slots) - 1
        );
        let parameters = format!("const Params{index}& p, uint32_t block, uint32_t blocks");
        let _ = writeln!(self.out, "WC_DEVICE void {name}({parameters}) {{\n{body}}}\n");
        Ok(layout)
    }

    /// Chooses block size and what lies in shared memory: bitmaps of dense probes by selectivity, queues, cells.
    fn layout(&self, plan: &SinkPlan) -> Layout {
        let queue_entries = if self.split.in_place { 0 } else { self.split.slots * 32 + 32 };
        let cells_per_warp = plan.shared_cell_bytes();
        let warp_bytes = queue_entries * 2 + cells_per_warp;
        let block_cells = plan.block_cell_bytes();
        let mut bitmaps: Vec<SharedTable> = Vec::new();
        let mut bitmap_bytes = 0;
        // The most selective probes come first in the plan and take shared memory first.
        for planned in &self.split.dense {
            let Item::Probe(probe, _) = &planned.item else { continue };
            let Some(BuiltTable { layout: TableLayout::Direct { bitmap }, .. }) = &self.input.tables[probe.build]
            else {
                continue;
            };
            let staged = self.shared_table(probe, bitmap.bytes(), bitmap_bytes);
            let bytes = staged.bytes(bitmap.bytes(), self.input);
            let fits = bitmap_bytes + bytes + block_cells + warp_bytes * LARGE_WARPS <= self.input.shared_limit;
            if fits && !bitmaps.iter().any(|known| known.is_as(&staged)) {
                bitmaps.push(staged);
                bitmap_bytes += bytes;
            }
        }
        let large = bitmap_bytes + block_cells > SMALL_SHARED_BYTES;
        let tuning = self.input.tuning;
        let row_bytes: f64 = self.split.loaded.iter().map(|column| self.input.layouts[*column].register_bytes()).sum();
        let few = row_bytes * self.split.slots as f64 <= tuning.run_vector_bytes as f64;
        let (block, min_blocks) = match large {
            true => (1024, 1),
            false if self.split.runs.is_some() && few => (SMALL_BLOCK, tuning.blocks_runs),
            false if cells_per_warp > 0 || self.split.in_place => (SMALL_BLOCK, tuning.blocks_in_place),
            false if self.split.packed => (SMALL_BLOCK, tuning.blocks_packed),
            false => (SMALL_BLOCK, tuning.blocks),
        };
        let warps = block as usize / 32;
        let cells_offset = bitmap_bytes;
        let queue_offset = cells_offset + block_cells + cells_per_warp * warps;
        let shared_bytes = (queue_offset + queue_entries * 2 * warps).max(plan.warp_sum_bytes());
        Layout { block, min_blocks, shared_bytes, staged: bitmaps, queue_offset, queue_entries, cells_offset }
    }

    /// The lambda that works on one row, behind what it adds to.
    fn row_code(&mut self, plan: &SinkPlan, error_slot: &str) -> Result<(String, Partials)> {
        let passed: Vec<usize> = if self.split.in_place { self.split.loaded.clone() } else { Vec::new() };
        let tested: Vec<&Planned> = self.split.dense.iter().collect();
        let mut rows =
            RowWriter::new(self.input, self.readers, self.params, self.arena, error_slot, &mut self.next, &passed);
        for planned in &tested {
            rows.already_tested(planned);
        }
        for planned in &self.split.rows {
            rows.step(planned)?;
        }
        // A queue is drained one row a lane at a time: there is nothing to add up before.
        let partials = plan.row(&mut rows, if self.split.in_place { self.split.slots } else { usize::MAX })?;
        let multiplies = rows.multiplies();
        let Statements { row: statements, runs, filters } = rows.finish();
        self.filters.extend(filters);
        let mut arguments = String::new();
        for column in &passed {
            let c_type = self.input.layouts[*column].storage.c_name();
            let _ = write!(arguments, ", const {c_type} x{column}");
            if self.input.columns[*column].nullable {
                let _ = write!(arguments, ", const bool xn{column}");
            }
        }
        if runs.is_some() {
            arguments.push_str(", const uint32_t slot");
        }
        let runs = runs.map(|runs| format!("        auto enter_runs = [&]() {{\n{runs}        }};\n"));
        let declared = partials.declaration();
        let process = match multiplies {
            true => format!(
                "        auto process = [&](const uint32_t row0, const bool valid0) {{\n{statements}        }};\n"
            ),
            false => format!(
                "        auto process = [&](const uint32_t row{arguments}) {{\n(void)row;\n{statements}        }};\n"
            ),
        };
        Ok((declared + &process + &runs.unwrap_or_default(), partials))
    }
}
