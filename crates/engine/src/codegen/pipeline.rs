//! One pipeline as one device function, which the kernel of a launch group calls.
//!
//! A warp draws tickets, each a run of rows of one chunk, and walks it in steps of SLOTS × 32 rows. The first steps of
//! the plan run on whole vectors: their columns are loaded 16 bytes a thread, filters and bitmap tests clear bits of
//! the lane's `alive` word. What remains runs a row at a time (`process`): either in place, or, where few rows are
//! left, from a warp-private queue in shared memory that is drained 32 rows at a time, so that further columns are
//! gathered for survivors only. Source: tile-based execution of Shanbhag, *Interactive Data Analytics Using GPUs*,
//! chapter 3; the queue and the row map are ours.

use std::fmt::Write;
use std::sync::Arc;

use warpcube_column::ColumnReader;

use crate::arena::Arena;
use crate::codegen::filters::{Filters, Site};
use crate::codegen::memory::{BoundGroups, BoundTable, Operands};
use crate::codegen::params::{Argument, Counted, ParamList};
use crate::codegen::partials::Partials;
use crate::codegen::rows::{RowWriter, Statements};
use crate::codegen::sink::BoundSink;
use crate::codegen::stop_memory::StopMemory;
use crate::error::Result;
use crate::ir::Sink;
use crate::plan::input::PipelineInput;
use crate::plan::order::Planned;
use crate::plan::pipeline::PipelinePlan;
use crate::plan::view::ColumnView;

/// A generated device function and what launching it takes.
#[derive(Debug, Clone)]
pub(crate) struct BoundPipeline {
    /// What was decided.
    pub(crate) plan: Arc<PipelinePlan>,
    /// Name of the function.
    pub(crate) name: String,
    /// Parameter struct and function.
    pub(crate) source: Arc<str>,
    /// Values of the parameter struct.
    pub(crate) params: ParamList,
    /// What the sink leaves behind.
    pub(crate) sink: BoundSink,
    /// The first of the pipelines that have this sink.
    pub(crate) first: usize,
    /// Where its warps leave their states, if it resumes.
    pub(crate) stop: Option<StopMemory>,
    /// Steps in the order in which they are taken, with the constants of the statement.
    pub(crate) order: Vec<Planned>,
    /// Where it has the constants of its filters.
    pub(crate) filters: Filters,
}

impl BoundPipeline {
    /// The groups that it adds to.
    pub(crate) fn groups(&self) -> Option<&BoundGroups> {
        match &self.sink {
            BoundSink::Groups(groups) => Some(groups),
            _ => None,
        }
    }

    /// The table that it builds.
    pub(crate) fn table(&self) -> Option<&BoundTable> {
        match &self.sink {
            BoundSink::Table(table) => Some(table),
            _ => None,
        }
    }
}

/// Writes the device function of a pipeline by its plan; `sink` is laid out.
pub(crate) fn generate(
    input: &PipelineInput,
    plan: Arc<PipelinePlan>,
    operands: Operands,
    mut sink: BoundSink,
    arena: &mut Arena,
) -> Result<BoundPipeline> {
    let mut params = ParamList::default();
    let (name, stop) = (format!("pipeline_{}", input.index), operands.scan.stop);
    let reader = |(column, view): (usize, &ColumnView<'_>)| {
        let add = |c_type: &str, constant| params.constant(c_type, constant);
        ColumnReader::new(column, view.layout.clone(), view.nullable, add)
    };
    let readers: Vec<ColumnReader> = input.columns.iter().enumerate().map(reader).collect();
    let distinct: Arc<[Option<Arc<[i128]>>]> = input.columns.iter().map(|column| column.distinct.clone()).collect();
    let mut writer = KernelWriter {
        input,
        plan: &plan,
        operands,
        readers: &readers,
        distinct: &distinct,
        params: &mut params,
        arena,
        next: 0,
        error_slot: String::new(),
        filters: Vec::new(),
        out: String::new(),
    };
    writer.kernel(&name, &sink)?;
    let KernelWriter { out: body, error_slot, filters: sites, .. } = writer;
    if let (BoundSink::TopK(bound), Sink::TopK(top)) = (&mut sink, &input.pipeline.sink) {
        bound.write(input, top, &plan.order, operands, arena)?;
    }
    let source = format!("{}\n{body}", params.declaration(&format!("Params{}", input.index))).into();
    let filters = Filters { sites, readers: readers.into(), distinct, error_slot, overflow: input.overflow };
    let order = plan.order.clone();
    let first = input.branch.map_or(input.index, |branch| input.index - branch.number);
    Ok(BoundPipeline { plan, name, source, params, sink, first, stop, order, filters })
}

pub(super) struct KernelWriter<'a> {
    pub(super) input: &'a PipelineInput<'a>,
    pub(super) plan: &'a PipelinePlan,
    pub(super) operands: Operands<'a>,
    pub(super) readers: &'a [ColumnReader],
    /// Values of the codes of each column of codes, where they are integers.
    pub(super) distinct: &'a [Option<Arc<[i128]>>],
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
    fn kernel(&mut self, name: &str, sink: &BoundSink) -> Result<()> {
        let (PipelinePlan { split, shared, .. }, scan) = (self.plan, self.operands.scan);
        let slots = split.slots;
        let control = self.params.add("uint64_t*", Argument::Region(self.operands.control.region));
        let error_slot = control.clone();
        self.error_slot.clone_from(&error_slot);
        let segments =
            self.params.add("const uint64_t*", Argument::Chunk(scan.segments, 16 * self.input.columns.len()));
        let chunk_rows = self.params.add("const uint32_t*", Argument::Chunk(scan.chunk_rows, 4));
        let chunks = self.params.add("uint64_t", Argument::Count(Counted::Chunks));

        let mut body = String::new();
        let staged = self.fill_shared_tables(&error_slot)?;
        let (mut prologue, mut epilogue) = sink.frame(self.params, shared.cells_offset, &control);
        if let Some(most) = self.plan.sink.matches_max().filter(|_| split.multiplies) {
            let most = self.params.add("uint64_t", Argument::U64(most));
            prologue.push_str("    uint64_t matches = 0;\n");
            epilogue.insert_str(0, &format!("    wc_count_matches({control}, matches, {most});\n"));
        }
        let (row_code, partials) = self.row_code(sink, &error_slot)?;
        let columns: String = self.readers.iter().map(ColumnReader::pointers).collect();
        let zones = self.zones(&segments, &chunk_rows);
        let (ahead, loads, foot) = self.step_loads(if self.resumes() { "first" } else { "begin" });
        let tests = self.dense_tests(&zones, &error_slot)?;
        let drain = self.drain(&partials.fold("alive"));
        let (begin, step_again, step_stop) = (self.steps_begin(), self.step_again(), self.step_stop());
        let w = &mut body;
        let _ = writeln!(w, "    const uint32_t lane = wc_lane();\n    char* const shared = wc_shared();");
        let _ = writeln!(w, "    (void)shared;\n{staged}{prologue}");
        if !split.in_place {
            let offset = self.params.add("uint64_t", Argument::U64(shared.queue_offset as u64));
            let _ = writeln!(
                w,
                "    uint16_t* const queue = (uint16_t*)(shared + {offset}) + wc_warp() * {};",
                shared.queue_entries
            );
        }
        // Of rows that the device has counted, those behind the last one are none.
        let (held, rows) = match scan.count {
            None => (String::new(), "rows_here"),
            Some(counted) => {
                let held = "counted <= first_row + begin ? begin : counted - first_row < rows_here ? \
                            (uint32_t)(counted - first_row) : rows_here";
                let counted = counted.declare(self.params, Argument::Chunk(counted.first_rows, 8));
                (format!("{counted}        const uint32_t held = {held};\n"), "held")
            }
        };
        let index = self.input.index;
        let (head, foot_of_ticket) = match zones.any() {
            true => self.vectors_apart(&zones, (&control, &chunks, &segments)),
            false => self.tickets(&control, &chunks),
        };
        let _ = writeln!(
            w,
            "{head}        const uint32_t rows_here = wc_load_cached({chunk_rows} + chunk);
{held}        const uint32_t end = {rows} - begin < ticket_rows ? {rows} : begin + ticket_rows;
        const uint64_t* const pointers = {segments} + (uint64_t)chunk * {};
        (void)pointers;
{columns}{row_code}",
            self.input.columns.len() * 2
        );
        w.push_str(&begin);
        let asked = |column: usize| zones.asked_of(&split.uses(column, self.input));
        let decode = |column: &usize| self.readers[*column].decode("d", slots, &asked(*column));
        let decoded: String = split.loaded.iter().map(decode).collect();
        let step = slots * 32;
        let (start, turns) = match split.ahead {
            ..=1 if self.resumes() => ("first", String::new()),
            ..=1 => ("begin", String::new()),
            _ => ("first", self.turns(&tests, &partials)),
        };
        let _ = writeln!(
            w,
            "{turns}{ahead}        for (uint32_t base = {start}; base < end; base += {step}) {{
{loads}            uint32_t alive = end - base >= {step} ? {full}u : wc_slots_before<{slots}>(end - base, lane);
{step_again}{decoded}{tests}{drain}{step_stop}{foot}        }}
{foot_of_ticket}{epilogue}",
            full = (1u64 << slots) - 1
        );
        let parameters = format!("const Params{index}& p, uint32_t block, uint32_t blocks");
        let _ = writeln!(self.out, "WC_DEVICE void {name}({parameters}) {{\n{body}}}\n");
        Ok(())
    }

    /// The lambda that works on one row, behind what it adds to.
    fn row_code(&mut self, sink: &BoundSink, error_slot: &str) -> Result<(String, Partials)> {
        let split = &self.plan.split;
        let passed: &[usize] = if split.in_place { &split.loaded } else { &[] };
        let of = (self.input, self.operands);
        let rows = RowWriter::new(of, self.readers, self.params, self.arena, error_slot, &mut self.next, passed);
        let mut rows = rows.in_place(split.in_place.then_some(split.slots));
        split.certain.iter().chain(&split.dense).for_each(|planned| rows.already_tested(planned));
        split.rows.iter().try_for_each(|planned| rows.step(planned))?;
        let partials = sink.row(&mut rows, self.input, &self.plan.sink)?;
        let multiplies = rows.multiplies();
        let Statements { row: statements, runs, filters } = rows.finish(self.plan.sink.matches_max().is_some());
        self.filters.extend(filters);
        let mut arguments = String::new();
        for column in passed {
            let c_type = self.input.columns[*column].layout.storage.c_name();
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
