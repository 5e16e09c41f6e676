//! The kernels of a top-k that are a fragment's own: one that ranks a sample of rows, what the scan does with a row,
//! and one that reads the columns of the result. Where candidates are few, there is only the scan: its last block puts
//! them in order and reads the columns.
//!
//! All take filters, probes and keys from the same expressions; the first and the last work on single rows, whose
//! columns are gathered. Rows are those of a table or the places of a group table.

use std::fmt::Write;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::arena::{Arena, Region};
use crate::codegen::filters::Filters;
use crate::codegen::memory::{Operands, RankedMemory, TopMemory};
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::rank_places::{self, place};
use crate::codegen::result_rows::StoredRow;
use crate::codegen::row_kernel::RowKernel;
use crate::codegen::rows::RowWriter;
use crate::codegen::windows::BoundWindows;
use crate::error::Result;
use crate::ir::{Expr, OrderKey, TopK};
use crate::plan::input::PipelineInput;
use crate::plan::order::Planned;
use crate::plan::partition_bounds::PartitionBounds;
use crate::plan::top::{HEAD_WORDS, OutputPart, ROWS_WORD, RankedPlan, TopPlan};
use crate::plan::topk_rank::{Part, c_type};

/// A top-k with its regions and its kernels.
#[derive(Debug, Clone)]
pub(crate) struct BoundTop {
    pub(crate) plan: Arc<TopPlan>,
    pub(crate) memory: TopMemory,
    /// The pipeline, where another one scans its rows.
    scanned: Option<usize>,
    /// The kernels beside the scan, or the function of its last block.
    pub(crate) source: String,
    /// Of the kernel of the sample, or of the one that finds the largest values of partitions.
    pub(crate) sample_params: ParamList,
    pub(crate) bounds_params: ParamList,
    /// What filters wrote in the kernel of the sample, or of the largest values.
    pub(crate) sample_filters: Filters,
    pub(crate) gather_params: ParamList,
    /// What windows make of the rows.
    pub(crate) windows: Option<BoundWindows>,
}

impl Deref for BoundTop {
    type Target = TopPlan;

    fn deref(&self) -> &TopPlan {
        &self.plan
    }
}

/// Parameters and shared memory of the last block of a scan that sorts the candidates of a top-k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastBlock {
    /// Number of parameters.
    pub(crate) params: usize,
    /// Dynamic shared memory in bytes.
    pub(crate) shared_bytes: u32,
}

/// What tells rows in the order that ranks were put in, as C expressions.
struct OrderedRows {
    /// Whether there is a row at `place`.
    is_row: String,
    /// The number of row `i` of the order.
    number: String,
}

/// Name of the kernel that ranks a sample, and of the kernel, or the function of the scan's last block, that reads the
/// result's columns.
pub(crate) const SAMPLE: &str = "top_sample";
pub(crate) const GATHER: &str = "top_gather";
/// Names of the kernels that find the largest values of partitions, and their bounds.
pub(crate) const LARGEST: &str = "top_largest";
pub(crate) const BOUNDS: &str = "top_bounds";

/// A flag of the run, beside those of scan.cuh, fixed.cuh and topk.cuh: first rows that another pipeline scans had too
/// few candidates, or too many for their room.
pub(crate) const FLAG_SCANNED_ROWS: u64 = 64;

impl BoundTop {
    /// The top-k of a pipeline whose kernels are not written yet.
    pub(crate) fn lay_out(arena: &mut Arena, plan: &Arc<TopPlan>, pipeline: usize) -> BoundTop {
        BoundTop {
            plan: plan.clone(),
            scanned: plan.values.as_ref().map(|_| pipeline),
            memory: TopMemory::lay_out(arena, plan),
            source: String::new(),
            sample_params: ParamList::default(),
            bounds_params: ParamList::default(),
            sample_filters: Filters::default(),
            gather_params: ParamList::default(),
            windows: plan.windows.as_ref().map(|windows| BoundWindows::lay_out(arena, windows, plan.k)),
        }
    }

    /// The name of one of its kernels.
    pub(crate) fn name(&self, kernel: &str) -> String {
        self.scanned.map_or_else(|| kernel.to_string(), |pipeline| format!("{kernel}_{pipeline}"))
    }

    /// What the last block of the scan does, if it does what follows the scan.
    pub(crate) fn last_block(&self) -> Option<LastBlock> {
        self.by_last_block.then(|| LastBlock {
            params: self.gather_params.arguments().count(),
            shared_bytes: self.last_block_bytes(),
        })
    }

    /// The sample with its regions.
    pub(crate) fn sampled(&self) -> Option<(RankedPlan, RankedMemory)> {
        self.sample.zip(self.memory.sample)
    }

    fn pointer(&self) -> String {
        format!("{}*", self.ranks.c_type())
    }

    /// Text before the scan loop: the threshold, its tail, and the least key at or above it.
    pub(crate) fn frame(&self, params: &mut ParamList) -> String {
        let Some(sample) = self.sampled() else { return String::new() };
        let row_bits = params.add("uint64_t", Argument::U64(self.ranks.key_shift().into()));
        let (rank, key) = (self.ranks.c_type(), c_type(self.ranks.key_bits));
        let (threshold, tail) = self.last_of(sample, params);
        let tail = tail.map_or_else(String::new, |tail| format!("    const {rank} least_tail = {tail};\n"));
        format!(
            "    const {rank} threshold = {threshold};\n{tail}    \
             const {key} least_key = ({key})(threshold >> (uint32_t){row_bits});\n"
        )
    }

    /// The last of the best ranks, and its tail.
    fn last_of(&self, (plan, ranked): (RankedPlan, RankedMemory), params: &mut ParamList) -> (String, Option<String>) {
        let (last, c_type) = (params.add("uint64_t", Argument::U64(plan.k - 1)), self.ranks.c_type());
        let mut pointer = |c_type: &str, region| params.add(&format!("const {c_type}*"), Argument::Region(region));
        let Some(tails) = ranked.tails else {
            return (format!("{}[{last}]", pointer(c_type, ranked.best[0])), None);
        };
        let order = pointer(self.number_type(), ranked.best[1]);
        let mut at = |region| format!("{}[{order}[{last}]]", pointer(c_type, region));
        (at(ranked.ranks), Some(at(tails)))
    }

    /// What the scan does with a row.
    pub(crate) fn row(&self, rows: &mut RowWriter, top: &TopK) -> Result<()> {
        let keys = &top.keys;
        let behind = self.ranks.leading..self.ranks.parts.len();
        // Whether a statement raises an error must not depend on the rows that were drawn.
        if self.outputs_raise {
            top.outputs.iter().try_for_each(|(expr, _)| rows.emit(expr).map(drop))?;
        }
        let early = self.tail_raises.then(|| self.key(rows, keys, behind.clone())).transpose()?;
        let key = self.key(rows, keys, 0..self.ranks.leading)?;
        if self.sample.is_some() {
            rows.line(&format!("if ({key} < least_key) return;"));
        }
        let first_rows = Argument::Chunk(self.memory.first_rows, 8);
        let first_rows = rows.with_emitter(|emitter| emitter.params.add("const uint64_t*", first_rows));
        rows.line(&format!("const uint64_t number = wc_load_cached({first_rows} + chunk) + row;"));
        let outputs: Vec<&Expr> = top.outputs.iter().map(|(expr, _)| expr).collect();
        let carried = match self.ranks.carried.as_slice() {
            [] => None,
            carried => Some(self.packed(rows, carried, &outputs)?),
        };
        self.rank(rows, &key, carried.as_deref().filter(|_| !self.ranks.is_beside));
        if let (Some(region), Some(carried)) = (self.memory.candidates.carried, &carried) {
            let beside = rows.with_emitter(|emitter| emitter.params.add("uint32_t*", Argument::Region(region)));
            rows.line(&format!("{beside}[number] = (uint32_t){carried};"));
        }
        let candidates = rows.with_emitter(|emitter| {
            emitter.params.add(&self.pointer(), Argument::Region(self.memory.candidates.ranks))
        });
        if self.sample.is_some() {
            rows.line("if (rank < threshold) return;");
        }
        if let Some((plan, [_, bounds])) = self.bounds() {
            let partition = self.value_of_partition(rows, plan);
            let bounds = rows.with_emitter(|emitter| emitter.params.add("const uint64_t*", Argument::Region(bounds)));
            rows.line(&format!("if (value < wc_load_cached({bounds} + {partition})) return;"));
        }
        let tails = match self.memory.candidates.tails {
            None => None,
            Some(tails) => {
                let key = early.map_or_else(|| self.key(rows, keys, behind), Ok)?;
                let tail = self.above_number(rows, &key, self.ranks.row_bits);
                rows.line(&format!("const {} tail = {tail};", self.ranks.c_type()));
                if self.sample.is_some() {
                    rows.line("if (rank == threshold && tail < least_tail) return;");
                }
                Some(rows.with_emitter(|emitter| emitter.params.add(&self.pointer(), Argument::Region(tails))))
            }
        };
        let Some(room) = self.decision.form.appends(self.rows) else {
            rows.line(&format!("{candidates}[number] = rank;"));
            tails.into_iter().for_each(|tails| rows.line(&format!("{tails}[number] = tail;")));
            return Ok(());
        };
        let flags = rows.flags();
        let (count, room) = rows.with_emitter(|emitter| {
            let count = emitter.params.add("uint64_t*", Argument::Region(self.memory.count));
            (count, emitter.params.add("uint64_t", Argument::U64(room)))
        });
        if self.scanned.is_some() {
            // A flag of its own, as the result may be first rows too; of all rows the room grows.
            let full = match self.grows {
                true => rows.no_room(),
                false => format!("{{ atomicOr({flags}, {FLAG_SCANNED_ROWS}u); return; }}"),
            };
            rows.line(&format!("const uint64_t at = wc_fetch_add({count}, (uint64_t)1);"));
            rows.line(&format!("if (at >= {room}) {full}"));
            rows.line(&format!("{candidates}[at] = rank;"));
            tails.into_iter().for_each(|tails| rows.line(&format!("{tails}[at] = tail;")));
            return Ok(());
        }
        rows.line(&match tails {
            None => format!("wc_append_rank({candidates}, {count}, {room}, {flags}, rank);"),
            Some(tails) => {
                format!("wc_append_rank({candidates}, {tails}, {count}, {room}, {flags}, rank, tail);")
            }
        });
        Ok(())
    }

    /// Writes the rank of row `number`, whose key has this name, with what it carries below.
    fn rank(&self, rows: &mut RowWriter, key: &str, carried: Option<&str>) {
        let c_type = self.ranks.c_type();
        let rank = match self.ranks.tail_bits {
            None if self.ranks.by_place => match self.ranks.row_bits {
                0 => format!("({c_type}){key}"),
                bits => format!("({c_type})(({c_type}){key} << {bits} | 1)"),
            },
            None => self.above_number(rows, key, self.ranks.row_bits),
            Some(_) => format!("({c_type}){key}"),
        };
        let rank = match carried {
            None => rank,
            Some(carried) => {
                let bits = Argument::U64(self.ranks.carried_bits.into());
                let bits = rows.with_emitter(|emitter| emitter.params.add("uint64_t", bits));
                format!("{rank} << (uint32_t){bits} | {carried}")
            }
        };
        rows.line(&format!("const {c_type} rank = {rank};"));
    }

    /// How a kernel behind the selection, or the sort, knows the rows in order.
    fn ordered(&self, params: &mut ParamList) -> OrderedRows {
        let RankedMemory { ranks, tails, best: [best, order], .. } = self.memory.candidates;
        let (region, is_by_order) = match (self.sorts(), self.leaves_ranks()) {
            (false, _) => (best, false),
            (true, true) => (self.memory.scratch, false),
            (true, false) => (tails.unwrap_or(ranks), true),
        };
        let mut pointer = |c_type: &str, region| params.add(&format!("const {c_type}*"), Argument::Region(region));
        let has_rank = self.ranks.row_bits > 0;
        let ranks = has_rank.then(|| pointer(self.ranks.c_type(), region));
        let is_numbered = self.order.is_some() && (is_by_order || self.ranks.by_place);
        let order = is_numbered.then(|| pointer(self.number_type(), order));
        let rank = |place: &str| match (&ranks, &order) {
            (Some(ranks), Some(order)) if is_by_order => Some(format!("{ranks}[{order}[{place}]]")),
            (Some(ranks), _) => Some(format!("{ranks}[{place}]")),
            (None, _) => None,
        };
        let is_row = rank("place").map_or_else(|| "true".to_string(), |rank| format!("{rank} != 0"));
        let number = match (&order, rank("i")) {
            // The rows that there are come first: none is left out for the number that stands for it.
            _ if self.order.is_none() => "i".to_string(),
            (Some(order), _) if self.ranks.by_place => format!("{order}[i]"),
            (_, rank) => {
                let mask = params.add("uint64_t", Argument::U64(self.row_mask()));
                format!("{mask} - ((uint64_t){} & {mask})", rank.expect("a rank with the row's number"))
            }
        };
        OrderedRows { is_row, number }
    }

    /// The bounds of partitions with their regions.
    pub(crate) fn bounds(&self) -> Option<(PartitionBounds, [Region; 2])> {
        self.bounds.zip(self.memory.bounds)
    }

    /// Writes the value of a row with a rank; the number of its partition.
    fn value_of_partition(&self, rows: &mut RowWriter, plan: PartitionBounds) -> String {
        let [shift, mask, peers] = [plan.value_shift.into(), plan.value_mask, plan.peers_mask]
            .map(|number| rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(number))));
        rows.line(&format!("const uint64_t value = ((uint64_t)(rank >> (uint32_t){shift}) & {mask}) | {peers};"));
        plan.partition_shift.map_or_else(
            || "0".into(),
            |shift| {
                let shift = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(shift.into())));
                format!("(uint64_t)(rank >> (uint32_t){shift})")
            },
        )
    }

    /// Writes the kernels that find the bounds of partitions.
    fn write_bounds(
        &mut self,
        (plan, [cells, bounds]): (PartitionBounds, [Region; 2]),
        top: &TopK,
        order: &[Planned],
        (mut kernel, arena): (RowKernel, &mut Arena),
    ) -> Result<()> {
        let rows = kernel.params.add("uint64_t", Argument::U64(self.rows));
        let largest = kernel.params.add("uint64_t*", Argument::Region(cells));
        let statements = kernel.rows(arena, |rows| {
            order.iter().try_for_each(|planned| rows.step(planned))?;
            let key = self.key(rows, &top.keys, 0..self.ranks.leading)?;
            self.rank(rows, &key, None);
            let partition = self.value_of_partition(rows, plan);
            let chosen_by = if plan.distinct { "value" } else { "number" };
            let [buckets, last] = [plan.buckets, plan.buckets - 1]
                .map(|number| rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(number))));
            rows.line(&format!(
                "uint64_t* const cell = {largest} + {partition} * {buckets} + (wc_hash({chosen_by}) & {last});"
            ));
            // Few rows are larger than all before them.
            rows.line("if (wc_load_relaxed(cell) < value) wc_max(cell, value);");
            Ok(())
        })?;
        let number = "const uint64_t number = i;";
        self.source.push_str(&kernel.source(&self.name(LARGEST), "", &rows, number, &statements));
        self.sample_filters = kernel.filters();
        self.sample_params = kernel.params;
        let params = &mut self.bounds_params;
        let cells = params.add("const uint64_t*", Argument::Region(cells));
        let bounds = params.add("uint64_t*", Argument::Region(bounds));
        let [partitions, buckets, wanted] =
            [plan.partitions, plan.buckets, plan.rows].map(|number| params.add("uint64_t", Argument::U64(number)));
        let name = self.name(BOUNDS);
        let declaration = self.bounds_params.declaration(&format!("{name}_params"));
        let _ = write!(
            self.source,
            "{declaration}WC_KERNEL({name}, {name}_params, 256, 1) {{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < {partitions}; i += step) {{
        {bounds}[i] = wc_partition_bound({cells} + i * {buckets}, {buckets}, {wanted});
    }}
}}
"
        );
        Ok(())
    }

    /// Keys above the complement of row `number`.
    fn above_number(&self, rows: &mut RowWriter, key: &str, row_bits: u32) -> String {
        let c_type = self.ranks.c_type();
        let (row_bits, mask) = rows.with_emitter(|emitter| {
            let row_bits = emitter.params.add("uint64_t", Argument::U64(row_bits.into()));
            (row_bits, emitter.params.add("uint64_t", Argument::U64(self.row_mask())))
        });
        format!("(({c_type}){key} << (uint32_t){row_bits} | ({c_type})({mask} - number))")
    }

    fn row_mask(&self) -> u64 {
        u64::MAX >> (64 - self.ranks.row_bits)
    }

    /// Writes some parts of a row's keys side by side; the name of the number.
    fn key(&self, rows: &mut RowWriter, keys: &[OrderKey], some: Range<usize>) -> Result<String> {
        let exprs: Vec<&Expr> = keys.iter().map(|key| &key.expr).collect();
        self.packed(rows, &self.ranks.parts[some], &exprs)
    }

    /// Writes parts side by side, of values among these; the name of the number.
    fn packed(&self, rows: &mut RowWriter, parts: &[Part], exprs: &[&Expr]) -> Result<String> {
        let values = parts.iter().map(|part| rows.emit(exprs[part.key])).collect::<Result<Vec<_>>>()?;
        let whole = c_type(parts.iter().map(|part| part.bits).sum());
        let mut terms = Vec::new();
        for (part, value) in parts.iter().zip(&values).filter(|(part, _)| part.bits > 0) {
            let place = place(rows, part, value);
            terms.push(match part.shift {
                0 => format!("({whole}){place}"),
                shift => rows.with_emitter(|emitter| {
                    let shift = emitter.params.add("uint64_t", Argument::U64(shift.into()));
                    format!("(({whole}){place} << (uint32_t){shift})")
                }),
            });
        }
        let sum = if terms.is_empty() { "0".to_string() } else { terms.join(" | ") };
        Ok(rows.with_emitter(|emitter| emitter.define(whole, &sum)))
    }

    /// Writes the kernels beside the scan, whose steps are taken in this `order`.
    pub(crate) fn write(
        &mut self,
        input: &PipelineInput,
        top: &TopK,
        order: &[Planned],
        operands: Operands,
        arena: &mut Arena,
    ) -> Result<()> {
        if let Some((plan, sample)) = self.sampled() {
            let mut kernel = RowKernel::new(input, operands, self.memory.first_rows);
            let seed = kernel.params.add("uint64_t", Argument::U64(self.seed));
            let rows = kernel.params.add("uint64_t", Argument::U64(self.rows));
            let ranks = kernel.params.add(&self.pointer(), Argument::Region(sample.ranks));
            let tails = sample.tails.map(|tails| kernel.params.add(&self.pointer(), Argument::Region(tails)));
            let samples = kernel.params.add("uint64_t", Argument::U64(plan.count));
            let number = format!("const uint64_t number = wc_sampled_row({seed}, i, {rows});");
            let statements = kernel.rows(arena, |rows| {
                order.iter().try_for_each(|planned| rows.step(planned))?;
                let key = self.key(rows, &top.keys, 0..self.ranks.leading)?;
                self.rank(rows, &key, None);
                rows.line(&format!("{ranks}[i] = rank;"));
                if let Some(tails) = &tails {
                    let key = self.key(rows, &top.keys, self.ranks.leading..self.ranks.parts.len())?;
                    let tail = self.above_number(rows, &key, self.ranks.row_bits);
                    rows.line(&format!("{tails}[i] = {tail};"));
                }
                Ok(())
            })?;
            self.source.push_str(&kernel.source(&self.name(SAMPLE), "", &samples, &number, &statements));
            self.sample_filters = kernel.filters();
            self.sample_params = kernel.params;
        }
        if let Some(of_bounds) = self.bounds() {
            let kernel = RowKernel::new(input, operands, self.memory.first_rows);
            self.write_bounds(of_bounds, top, order, (kernel, &mut *arena))?;
        }
        let mut kernel = RowKernel::new(input, operands, self.memory.first_rows);
        if let Some(done) = self.memory.done {
            return self.write_last_block(kernel, done, (top, order), arena);
        }
        let ordered = self.ordered(&mut kernel.params);
        let k = kernel.params.add("uint64_t", Argument::U64(self.k));
        let output = kernel.params.add("uint64_t*", Argument::Region(self.memory.output));
        let threshold = self.sampled().map_or_else(
            || "0".to_string(),
            |sample| {
                let (rank, tail) = self.last_of(sample, &mut kernel.params);
                format!("{} != 0", tail.unwrap_or(rank))
            },
        );
        if self.scanned.is_some() {
            let control = operands.control.region;
            return self.write_scanned(kernel, &ordered, (&k, &threshold), (top, order), (arena, control));
        }
        let control = &kernel.control;
        let OrderedRows { is_row, number } = &ordered;
        let head = format!(
            "    auto is_row = [&](uint64_t place) {{ return {is_row}; }};
    if (blockIdx.x == 0 && threadIdx.x == 0) {{
        {output}[0] = {control}[0];
        {output}[1] = {control}[1] | (uint64_t)({control}[3] != 0) << WC_STOPPED_SHIFT;
        {output}[3] = {threshold};
    }}
"
        );
        let number = format!(
            "if (!is_row(i)) break;
        if (i + 1 == {k} || !is_row(i + 1)) {output}[2] = i + 1;
        const uint64_t number = {number};"
        );
        let statements = kernel.rows(arena, |rows| self.gather(rows, top, order, &output))?;
        self.source.push_str(&kernel.source(GATHER, &head, &k, &number, &statements));
        self.gather_params = kernel.params;
        Ok(())
    }

    /// Writes the kernel that reads the columns of first rows for another pipeline, and tells how many there are.
    fn write_scanned(
        &mut self,
        mut kernel: RowKernel,
        OrderedRows { is_row, number }: &OrderedRows,
        (k, threshold): (&str, &str),
        (top, order): (&TopK, &[Planned]),
        (arena, control_region): (&mut Arena, Region),
    ) -> Result<()> {
        let output = kernel.params.add("uint64_t*", Argument::Region(self.memory.output));
        let skip = kernel.params.add("uint64_t", Argument::U64(self.skip));
        let control = &kernel.control;
        let head = format!("    auto is_row = [&](uint64_t place) {{ return {is_row}; }};\n");
        let number = format!(
            "if (!is_row(i)) {{
            if ({threshold}) atomicOr((uint32_t*)({control} + 1), {FLAG_SCANNED_ROWS}u);
            break;
        }}
        if (i + 1 == {k} || !is_row(i + 1)) {output}[{ROWS_WORD}] = i + 1 > {skip} ? i + 1 - {skip} : 0;
        if (i < {skip}) continue;
        const uint64_t number = {number};"
        );
        let statements = kernel.rows(arena, |rows| self.gather(rows, top, order, &skip))?;
        self.source.push_str(&kernel.source(&self.name(GATHER), &head, k, &number, &statements));
        self.gather_params = kernel.params;
        let plan = self.plan.clone();
        if let (Some(windows), Some(of_windows), Some(pipeline)) = (self.windows.take(), &plan.windows, self.scanned) {
            let (windows, source) = windows.written((&plan, &self.memory, pipeline), of_windows, control_region);
            self.source.push_str(&source);
            self.windows = Some(windows);
        }
        Ok(())
    }

    /// Writes the function that the scan's blocks call at their end: the last one puts the candidates in order and
    /// reads the columns of the best.
    fn write_last_block(
        &mut self,
        mut kernel: RowKernel,
        done: Region,
        (top, order): (&TopK, &[Planned]),
        arena: &mut Arena,
    ) -> Result<()> {
        let c_type = self.ranks.c_type();
        let done = kernel.params.add("uint64_t*", Argument::Region(done));
        let candidates =
            kernel.params.add(&format!("const {}", self.pointer()), Argument::Region(self.memory.candidates.ranks));
        let count = kernel.params.add("const uint64_t*", Argument::Region(self.memory.count));
        let room = kernel.params.add("uint64_t", Argument::U64(self.candidates.count));
        let k = kernel.params.add("uint64_t", Argument::U64(self.k));
        let mask = kernel.params.add("uint64_t", Argument::U64(self.row_mask()));
        let output = kernel.params.add("uint64_t*", Argument::Region(self.memory.output));
        let control = &kernel.control;
        let head = format!(
            "    if (!wc_is_last_block({done}, blocks, (uint32_t*)wc_shared())) return;
    {c_type}* const ranks = ({c_type}*)wc_shared();
    const uint64_t held = min(wc_load_relaxed({count}), {room}), best = min(held, {k});
    wc_sorted_ranks(ranks, {candidates}, (uint32_t)held);
    if (threadIdx.x == 0) {{
        {output}[0] = wc_load_relaxed({control});
        {output}[1] = wc_load_relaxed({control} + 1) | (uint64_t)({control}[3] != 0) << WC_STOPPED_SHIFT;
        {output}[2] = best;
        {output}[3] = 0;
    }}
"
        );
        let number = format!("const uint64_t number = {mask} - ((uint64_t)ranks[i] & {mask});");
        let statements = kernel.rows(arena, |rows| self.gather(rows, top, order, &output))?;
        self.source.push_str(&kernel.function(GATHER, &head, "best", &number, &statements));
        self.gather_params = kernel.params;
        Ok(())
    }

    /// Writes what reads the columns of result row `i`.
    fn gather(&self, rows: &mut RowWriter, top: &TopK, order: &[Planned], output: &str) -> Result<()> {
        // Rows are here because they have passed; what probes find is read again.
        let mut read = order.iter().filter(|planned| self.reads_rows() && planned.gives_registers());
        read.try_for_each(|planned| rows.step(planned))?;
        self.columns(rows, top, output)
    }

    /// Writes what stores the columns of result row `i`: at `output`, or, where another pipeline scans them, behind so
    /// many that are left out.
    fn columns(&self, rows: &mut RowWriter, top: &TopK, output: &str) -> Result<()> {
        let stride = match self.memory.columns {
            None => {
                rows.line(&format!("uint64_t* const out = {output} + {HEAD_WORDS} + i * {};", self.row.words()));
                None
            }
            Some(columns) => {
                let (columns, places) = rows.with_emitter(|emitter| {
                    let columns = emitter.params.add("uint64_t*", Argument::Region(columns));
                    (columns, emitter.params.add("uint64_t", Argument::U64(self.places())))
                });
                rows.line(&format!("uint64_t* const out = {columns} + (i - {output});"));
                Some(places)
            }
        };
        let mut stored = StoredRow::of(&self.row, stride);
        for ((expr, _), part) in top.outputs.iter().zip(&self.output_parts) {
            let value = match part {
                Some(OutputPart { part, facts, is_beside }) => {
                    let (c_type, region) = match is_beside {
                        true => ("uint32_t", self.memory.candidates.best[1]),
                        false => (self.ranks.c_type(), self.memory.scratch),
                    };
                    let (pointer, region) = (format!("const {c_type}*"), Argument::Region(region));
                    let ranks = rows.with_emitter(|emitter| emitter.params.add(&pointer, region));
                    rank_places::value(rows, part, facts, &format!("{ranks}[i]"))
                }
                None => rows.emit(expr)?,
            };
            stored.value(&value).iter().for_each(|line| rows.line(line));
        }
        stored.validity().iter().for_each(|line| rows.line(line));
        Ok(())
    }
}
