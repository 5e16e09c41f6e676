//! The kernels of a top-k that are a fragment's own: one that ranks a sample of rows, what the scan does with a row,
//! and one that reads the columns of the result. Where candidates are few, there is only the scan: its last block puts
//! them in order and reads the columns.
//!
//! All take filters, probes and keys from the same expressions; the first and the last work on single rows, whose
//! columns are gathered. Rows are those of a table or the places of a group table.

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::Dictionary;
use warpcube_gpu::prims::topk::{BLOCK_SORT_MAX, TopKSpec};
use warpcube_gpu::prims::{Element, SortColumn, SortSpec};

use crate::arena::{Arena, Zone};
use crate::codegen::expr::Value;
use crate::codegen::filters::Filters;
use crate::codegen::input::PipelineInput;
use crate::codegen::launch_group::LastBlock;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::pipeline::ScanZones;
use crate::codegen::row_kernel::RowKernel;
use crate::codegen::rows::RowWriter;
use crate::error::{EngineError, Result};
use crate::facts::{Facts, Texts, analyse};
use crate::ir::{Expr, OrderKey, TopK, Ty};
use crate::plan::order::Planned;
use crate::plan::table::first_rows;
use crate::plan::topk_form::{Decision, Form, Question};
use crate::plan::topk_rank::{Part, Ranks, c_type};

/// Words in front of the rows of the output: error, flags, number of rows, whether a threshold was taken.
pub(crate) const HEAD_WORDS: usize = 4;

/// A column of the result.
#[derive(Debug, Clone)]
pub(crate) struct TopColumn {
    pub(crate) data_type: DataType,
    pub(crate) ty: Ty,
    pub(crate) dictionary: Option<Arc<Dictionary>>,
    /// The column whose strings' places these are, if they are.
    pub(crate) texts: Option<Texts>,
    /// Its first word among those of a row's values.
    pub(crate) word: usize,
    /// Whether it takes two words, the lower one first: an integer wider than 64 bits.
    pub(crate) wide: bool,
}

/// Rows by their ranks, of which the best are put in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    /// Ranks; zero where there is no row, or one that does not pass. Of candidates that the scan's last block sorts,
    /// those that were appended, and undefined behind them.
    pub(crate) ranks: Zone,
    /// Their tails, likewise, where ranks have tails.
    pub(crate) tails: Option<Zone>,
    /// Number of ranks, and of the best.
    pub(crate) count: u64,
    pub(crate) k: u64,
    /// The best ranks, and where they lay; where all are sorted the latter alone, of all ranks in order.
    pub(crate) best: [Zone; 2],
}

/// A top-k, laid out.
#[derive(Debug, Clone)]
pub(crate) struct BoundTop {
    pub(crate) ranks: Ranks,
    pub(crate) decision: Decision,
    /// Rows of the table, and of the result at most.
    pub(crate) rows: u64,
    pub(crate) k: u64,
    /// Whether all rows are wanted, for which the room may prove too small.
    pub(crate) is_sort: bool,
    /// Whether these are groups, of which there is room for as many as one block sorts.
    pub(crate) expects_few: bool,
    pub(crate) columns: Vec<TopColumn>,
    /// Number of the first row of each chunk.
    first_rows: Zone,
    /// Candidates in any order, or all rows at their places.
    pub(crate) candidates: Ranked,
    /// True if a key of the tail can raise an error, which is then raised for every row that passes the steps.
    tail_raises: bool,
    /// The same of the columns of the result.
    outputs_raise: bool,
    /// Candidates so far.
    count: Zone,
    /// Blocks of the scan that are done, where the last of them does what follows the scan.
    done: Option<Zone>,
    /// The sample.
    pub(crate) sample: Option<Ranked>,
    /// Scratch memory of both selections.
    pub(crate) scratch: Zone,
    /// `uint64_t`: [`HEAD_WORDS`], then for each row a bit a column that tells NULL from a value, and the values.
    pub(crate) output: Zone,
    /// The seed that rows are drawn with.
    seed: u64,
    /// The kernels beside the scan, or the function of its last block.
    pub(crate) source: String,
    pub(crate) sample_params: ParamList,
    /// What filters wrote in the kernel of the sample.
    pub(crate) sample_filters: Filters,
    pub(crate) gather_params: ParamList,
}

/// Name of the kernel that ranks a sample, and of the kernel, or the function of the scan's last block, that reads the
/// result's columns.
pub(crate) const SAMPLE: &str = "top_sample";
pub(crate) const GATHER: &str = "top_gather";

impl BoundTop {
    /// Words of a row of the output: validity, then values.
    pub(crate) fn valid_words(&self) -> usize {
        self.columns.len().div_ceil(64)
    }

    pub(crate) fn row_words(&self) -> usize {
        self.valid_words() + value_words(&self.columns)
    }

    /// What the last block of the scan does, if it does what follows the scan.
    pub(crate) fn last_block(&self) -> Option<LastBlock> {
        self.done.map(|_| LastBlock {
            params: self.gather_params.arguments().count(),
            // The block tells its threads whether it is the last in a word of it.
            shared_bytes: (self.candidates.count as u32 * self.ranks.element().bytes() as u32).max(4),
        })
    }
}

/// Words of a row's values.
fn value_words(columns: &[TopColumn]) -> usize {
    columns.last().map_or(0, |column| column.word + 1 + usize::from(column.wide))
}

/// The columns of a result, and whether computing them can raise an error.
fn columns(input: &PipelineInput, top: &TopK, registers: &[Option<Facts>]) -> Result<(Vec<TopColumn>, bool)> {
    let exprs: Vec<&Expr> = top.outputs.iter().map(|(expr, _)| expr).collect();
    let (values, _) = analyse(&exprs, registers, input.overflow)?;
    let raise = may_raise(input, &exprs, registers)?;
    let (mut columns, mut word) = (Vec::with_capacity(values.len()), 0);
    for (value, (_, data_type)) in values.iter().zip(&top.outputs) {
        let wide = value.ty == Ty::I128 && !value.is_narrow();
        let (data_type, dictionary) = (data_type.clone(), value.dictionary.clone());
        columns.push(TopColumn { data_type, ty: value.ty, dictionary, texts: value.texts, word, wide });
        word += 1 + usize::from(wide);
    }
    Ok((columns, raise))
}

/// Whether computing any of some expressions can raise an error.
fn may_raise(input: &PipelineInput, exprs: &[&Expr], registers: &[Option<Facts>]) -> Result<bool> {
    let (_, mut raise) = analyse(exprs, registers, input.overflow)?;
    exprs.iter().for_each(|expr| expr.registers(&mut |register| raise |= input.is_fallible(register)));
    Ok(raise)
}

/// The sort of all ranks, by their tails where they have some, the largest first.
pub(crate) fn sort_of(ranks: &Ranks, row: Element) -> SortSpec {
    let column = SortColumn { descending: true, ..SortColumn::of(ranks.element()) };
    let columns = match (ranks.tail_bits, ranks.element()) {
        (Some(_), _) => vec![column; 2],
        (None, Element::U64) => vec![SortColumn { bits: ranks.bits(), ..column }],
        (None, _) => vec![column],
    };
    SortSpec { columns, row }
}

/// Rows that there is room for in a sort of all: as many as a table without filters has, a guess of those that pass,
/// and of groups as many as one block sorts, until there were more.
fn room_of_all(input: &PipelineInput, rows: u64) -> u64 {
    match input.pipeline.source.table() {
        Some(_) if input.pipeline.steps.is_empty() => rows,
        None if !input.many_sorted => rows.min(BLOCK_SORT_MAX),
        _ => rows.min(input.group_slots),
    }
}

/// Decides and lays out a top-k over a scan that reads so many bytes.
pub(crate) fn plan(
    input: &PipelineInput,
    top: &TopK,
    registers: &[Option<Facts>],
    scan_bytes: f64,
    arena: &mut Arena,
) -> Result<BoundTop> {
    let exprs: Vec<&Expr> = top.keys.iter().map(|key| &key.expr).collect();
    let (values, _) = analyse(&exprs, registers, input.overflow)?;
    let rows = input.rows;
    let k = top.k.map_or_else(|| room_of_all(input, rows), |k| k.min(rows));
    let ranks = Ranks::new(&top.keys, &values, rows)?;
    let tail_raises = may_raise(input, &exprs[ranks.leading..], registers)?;
    let question = Question {
        info: input.info,
        tuning: input.tuning,
        ranks: &ranks,
        rows,
        k,
        is_sort: top.k.is_none(),
        named: top.algorithm,
        failed: input.failed_thresholds,
        scan_bytes,
    };
    let decision = question.decide()?;
    let (columns, outputs_raise) = columns(input, top, registers)?;
    let first_rows = first_rows(input.chunk_rows);
    if input.multiplies() {
        return Err(EngineError::Malformed("a top-k of rows that have several matches and no number".into()));
    }
    // Candidates that one block sorts in shared memory.
    let has_few = |candidates: u64| {
        let bytes = candidates as usize * ranks.element().bytes();
        candidates <= BLOCK_SORT_MAX && bytes <= input.shared_limit
    };
    let by_last_block = match decision.form {
        Form::Threshold { sample: None, room } => !decision.form.sorts(&ranks) && has_few(room),
        _ => false,
    };
    let mut scratch = 0;
    let mut ranked = |arena: &mut Arena, count: u64, k: u64| {
        let (bytes, selection) = (ranks.element().bytes(), decision.form.spec(&ranks, rows, k));
        let selection = TopKSpec { keys: Some(count), ..selection };
        let row_bytes = selection.rows.bytes();
        let (own, best) = match decision.form.sorts(&ranks) {
            _ if by_last_block => (0, [0, 0]),
            false => (selection.scratch_bytes(input.info, count), [k as usize * bytes, k as usize * row_bytes]),
            true => (sort_of(&ranks, selection.rows).scratch_bytes(input.info, count), [0, count as usize * row_bytes]),
        };
        scratch = scratch.max(own);
        // The last block reads the ranks that were appended, and no others.
        let mut zone = || match by_last_block {
            true => arena.scratch(count as usize * bytes),
            false => arena.zeroed(count as usize * bytes),
        };
        let (ranks, tails) = (zone(), ranks.tail_bits.map(|_| zone()));
        // The selection leaves places alone that no rank has taken.
        Ranked { ranks, tails, count, k, best: [arena.zeroed(best[0]), arena.scratch(best[1])] }
    };
    let candidates = ranked(arena, decision.form.candidates(rows), k);
    let sample = match decision.form {
        Form::Threshold { sample: Some(sample), .. } => Some(ranked(arena, sample.rows, sample.place)),
        _ => None,
    };
    let row_words = columns.len().div_ceil(64) + value_words(&columns);
    Ok(BoundTop {
        rows,
        k,
        is_sort: top.k.is_none(),
        expects_few: top.k.is_none() && input.pipeline.source.table().is_none() && !input.many_sorted,
        first_rows: arena.constant(bytemuck::cast_slice(&first_rows)),
        candidates,
        count: arena.zeroed(8),
        done: by_last_block.then(|| arena.zeroed(8)),
        tail_raises,
        outputs_raise,
        sample,
        scratch: arena.scratch(scratch),
        output: arena.result(8 * HEAD_WORDS, 8 * (HEAD_WORDS + k as usize * row_words)),
        seed: input.seed,
        source: String::new(),
        sample_params: ParamList::default(),
        sample_filters: Filters::default(),
        gather_params: ParamList::default(),
        ranks,
        decision,
        columns,
    })
}

impl BoundTop {
    fn pointer(&self) -> String {
        format!("{}*", self.ranks.c_type())
    }

    /// Text before the scan loop: the threshold, its tail, and the least key at or above it.
    pub(crate) fn frame(&self, params: &mut ParamList) -> String {
        let Some(sample) = &self.sample else { return String::new() };
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
    fn last_of(&self, ranked: &Ranked, params: &mut ParamList) -> (String, Option<String>) {
        let (last, c_type) = (params.add("uint64_t", Argument::U64(ranked.k - 1)), self.ranks.c_type());
        let mut pointer = |c_type: &str, zone| params.add(&format!("const {c_type}*"), Argument::Zone(zone));
        let Some(tails) = ranked.tails else {
            return (format!("{}[{last}]", pointer(c_type, ranked.best[0])), None);
        };
        let order = pointer(self.number_type(), ranked.best[1]);
        let mut at = |zone| format!("{}[{order}[{last}]]", pointer(c_type, zone));
        (at(ranked.ranks), Some(at(tails)))
    }

    /// The C type of places among ranks.
    fn number_type(&self) -> &'static str {
        self.decision.form.spec(&self.ranks, self.rows, self.k).rows.c_type()
    }

    /// What the scan does with a row.
    pub(crate) fn row(&self, rows: &mut RowWriter, top: &TopK) -> Result<()> {
        let keys = &top.keys;
        let behind = self.ranks.leading..keys.len();
        // Whether a statement raises an error must not depend on the rows that were drawn.
        if self.outputs_raise {
            top.outputs.iter().try_for_each(|(expr, _)| rows.emit(expr).map(drop))?;
        }
        let early = self.tail_raises.then(|| self.key(rows, keys, behind.clone())).transpose()?;
        let key = self.key(rows, keys, 0..self.ranks.leading)?;
        if self.sample.is_some() {
            rows.line(&format!("if ({key} < least_key) return;"));
        }
        let first_rows =
            rows.with_emitter(|emitter| emitter.params.add("const uint64_t*", Argument::Zone(self.first_rows)));
        rows.line(&format!("const uint64_t number = wc_load_cached({first_rows} + chunk) + row;"));
        self.rank(rows, &key);
        let candidates =
            rows.with_emitter(|emitter| emitter.params.add(&self.pointer(), Argument::Zone(self.candidates.ranks)));
        if self.sample.is_some() {
            rows.line("if (rank < threshold) return;");
        }
        let tails = match self.candidates.tails {
            None => None,
            Some(tails) => {
                let key = early.map_or_else(|| self.key(rows, keys, behind), Ok)?;
                let tail = self.above_number(rows, &key, self.ranks.row_bits);
                rows.line(&format!("const {} tail = {tail};", self.ranks.c_type()));
                if self.sample.is_some() {
                    rows.line("if (rank == threshold && tail < least_tail) return;");
                }
                Some(rows.with_emitter(|emitter| emitter.params.add(&self.pointer(), Argument::Zone(tails))))
            }
        };
        let Some(room) = self.decision.form.appends(self.rows) else {
            rows.line(&format!("{candidates}[number] = rank;"));
            tails.into_iter().for_each(|tails| rows.line(&format!("{tails}[number] = tail;")));
            return Ok(());
        };
        let flags = rows.flags();
        let (count, room) = rows.with_emitter(|emitter| {
            let count = emitter.params.add("uint64_t*", Argument::Zone(self.count));
            (count, emitter.params.add("uint64_t", Argument::U64(room)))
        });
        rows.line(&match tails {
            None => format!("wc_append_rank({candidates}, {count}, {room}, {flags}, rank);"),
            Some(tails) => {
                format!("wc_append_rank({candidates}, {tails}, {count}, {room}, {flags}, rank, tail);")
            }
        });
        Ok(())
    }

    /// Writes the rank of row `number`, whose key has this name.
    fn rank(&self, rows: &mut RowWriter, key: &str) {
        let c_type = self.ranks.c_type();
        let rank = match self.ranks.tail_bits {
            None => self.above_number(rows, key, self.ranks.row_bits),
            Some(_) => format!("({c_type}){key}"),
        };
        rows.line(&format!("const {c_type} rank = {rank};"));
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

    /// Writes some keys of a row side by side; the name of the number.
    fn key(&self, rows: &mut RowWriter, keys: &[OrderKey], some: Range<usize>) -> Result<String> {
        let values = keys[some.clone()].iter().map(|key| rows.emit(&key.expr)).collect::<Result<Vec<_>>>()?;
        let parts = &self.ranks.parts[some];
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
        scan: &ScanZones,
        arena: &mut Arena,
    ) -> Result<()> {
        if let Some(sample) = self.sample {
            let mut kernel = RowKernel::new(input, scan, self.first_rows);
            let seed = kernel.params.add("uint64_t", Argument::U64(self.seed));
            let rows = kernel.params.add("uint64_t", Argument::U64(self.rows));
            let ranks = kernel.params.add(&self.pointer(), Argument::Zone(sample.ranks));
            let tails = sample.tails.map(|tails| kernel.params.add(&self.pointer(), Argument::Zone(tails)));
            let samples = kernel.params.add("uint64_t", Argument::U64(sample.count));
            let number = format!("const uint64_t number = wc_sampled_row({seed}, i, {rows});");
            let statements = kernel.rows(arena, |rows| {
                order.iter().try_for_each(|planned| rows.step(planned))?;
                let key = self.key(rows, &top.keys, 0..self.ranks.leading)?;
                self.rank(rows, &key);
                rows.line(&format!("{ranks}[i] = rank;"));
                if let Some(tails) = &tails {
                    let key = self.key(rows, &top.keys, self.ranks.leading..top.keys.len())?;
                    let tail = self.above_number(rows, &key, self.ranks.row_bits);
                    rows.line(&format!("{tails}[i] = {tail};"));
                }
                Ok(())
            })?;
            self.source.push_str(&kernel.source(SAMPLE, "", &samples, &number, &statements));
            self.sample_filters = kernel.filters();
            self.sample_params = kernel.params;
        }
        let mut kernel = RowKernel::new(input, scan, self.first_rows);
        if let Some(done) = self.done {
            return self.write_last_block(kernel, done, (&top.outputs, order), arena);
        }
        // What holds the row's number, by place in the result.
        let best = self.candidates.best;
        let (numbers, at) = match self.decision.form.sorts(&self.ranks) {
            false => (best[0], "place".to_string()),
            true => {
                let order = kernel.params.add(&format!("const {}*", self.number_type()), Argument::Zone(best[1]));
                (self.candidates.tails.unwrap_or(self.candidates.ranks), format!("{order}[place]"))
            }
        };
        let numbers = kernel.params.add(&format!("const {}", self.pointer()), Argument::Zone(numbers));
        let k = kernel.params.add("uint64_t", Argument::U64(self.k));
        let mask = kernel.params.add("uint64_t", Argument::U64(self.row_mask()));
        let output = kernel.params.add("uint64_t*", Argument::Zone(self.output));
        let threshold = self.sample.map_or_else(
            || "0".to_string(),
            |sample| {
                let (rank, tail) = self.last_of(&sample, &mut kernel.params);
                format!("{} != 0", tail.unwrap_or(rank))
            },
        );
        let control = &kernel.control;
        let head = format!(
            "    auto rank_at = [&](uint64_t place) {{ return {numbers}[{at}]; }};
    if (blockIdx.x == 0 && threadIdx.x == 0) {{
        {output}[0] = {control}[0];
        {output}[1] = {control}[1];
        {output}[3] = {threshold};
    }}
"
        );
        let number = format!(
            "if (rank_at(i) == 0) break;
        if (i + 1 == {k} || rank_at(i + 1) == 0) {output}[2] = i + 1;
        const uint64_t number = {mask} - ((uint64_t)rank_at(i) & {mask});"
        );
        let statements = kernel.rows(arena, |rows| self.gather(rows, &top.outputs, order, &output))?;
        self.source.push_str(&kernel.source(GATHER, &head, &k, &number, &statements));
        self.gather_params = kernel.params;
        Ok(())
    }

    /// Writes the function that the scan's blocks call at their end: the last one puts the candidates in order and
    /// reads the columns of the best.
    fn write_last_block(
        &mut self,
        mut kernel: RowKernel,
        done: Zone,
        (outputs, order): (&[(Expr, DataType)], &[Planned]),
        arena: &mut Arena,
    ) -> Result<()> {
        let c_type = self.ranks.c_type();
        let done = kernel.params.add("uint64_t*", Argument::Zone(done));
        let candidates = kernel.params.add(&format!("const {}", self.pointer()), Argument::Zone(self.candidates.ranks));
        let count = kernel.params.add("const uint64_t*", Argument::Zone(self.count));
        let room = kernel.params.add("uint64_t", Argument::U64(self.candidates.count));
        let k = kernel.params.add("uint64_t", Argument::U64(self.k));
        let mask = kernel.params.add("uint64_t", Argument::U64(self.row_mask()));
        let output = kernel.params.add("uint64_t*", Argument::Zone(self.output));
        let control = &kernel.control;
        let head = format!(
            "    if (!wc_is_last_block({done}, blocks, (uint32_t*)wc_shared())) return;
    {c_type}* const ranks = ({c_type}*)wc_shared();
    const uint64_t held = min(wc_load_relaxed({count}), {room}), best = min(held, {k});
    wc_sorted_ranks(ranks, {candidates}, (uint32_t)held);
    if (threadIdx.x == 0) {{
        {output}[0] = wc_load_relaxed({control});
        {output}[1] = wc_load_relaxed({control} + 1);
        {output}[2] = best;
        {output}[3] = 0;
    }}
"
        );
        let number = format!("const uint64_t number = {mask} - ((uint64_t)ranks[i] & {mask});");
        let statements = kernel.rows(arena, |rows| self.gather(rows, outputs, order, &output))?;
        self.source.push_str(&kernel.function(GATHER, &head, "best", &number, &statements));
        self.gather_params = kernel.params;
        Ok(())
    }

    /// Writes what reads the columns of result row `i`.
    fn gather(
        &self,
        rows: &mut RowWriter,
        outputs: &[(Expr, DataType)],
        order: &[Planned],
        output: &str,
    ) -> Result<()> {
        // Rows are here because they have passed; what probes find is read again.
        order.iter().filter(|planned| planned.gives_registers()).try_for_each(|planned| rows.step(planned))?;
        self.columns(rows, outputs, output)
    }

    /// Writes what stores the columns of result row `i`.
    fn columns(&self, rows: &mut RowWriter, outputs: &[(Expr, DataType)], output: &str) -> Result<()> {
        let (words, valid_words) = (self.row_words(), self.valid_words());
        rows.line(&format!("uint64_t* const out = {output} + {HEAD_WORDS} + i * {words};"));
        let mut valid = vec![Vec::new(); valid_words];
        for (position, (column, (expr, _))) in self.columns.iter().zip(outputs).enumerate() {
            let value = rows.emit(expr)?;
            let code = match value.ty {
                Ty::F32 => format!("__float_as_uint({})", value.code),
                Ty::F64 => format!("__double_as_longlong({})", value.code),
                _ => value.code.clone(),
            };
            let word = valid_words + column.word;
            rows.line(&format!("out[{word}] = (uint64_t){code};"));
            if column.wide {
                rows.line(&format!("out[{}] = (uint64_t)({code} >> 64);", word + 1));
            }
            valid[position / 64].push(format!("(uint64_t)({}) << {}", value.valid_code(), position % 64));
        }
        for (word, bits) in valid.into_iter().enumerate() {
            rows.line(&format!("out[{word}] = {};", bits.join(" | ")));
        }
        Ok(())
    }
}

/// Writes the place of a key; its name.
fn place(rows: &mut RowWriter, part: &Part, value: &Value) -> String {
    let c_type = c_type(part.bits);
    rows.with_emitter(|emitter| {
        // Differences are exact modulo two to the power of the bits that places have room in.
        let mut constant = |number: i128| match part.bits {
            0..=64 => format!("({c_type}){}", emitter.params.add("uint64_t", Argument::U64(number as u64))),
            _ => {
                let high = emitter.params.add("uint64_t", Argument::U64((number >> 64) as u64));
                let low = emitter.params.add("uint64_t", Argument::U64(number as u64));
                format!("(({c_type}){high} << 64 | {low})")
            }
        };
        let code = &value.code;
        let mut offset = match (value.ty, part.descending) {
            (Ty::F32 | Ty::F64, descending) => {
                let float = if value.ty == Ty::F32 { "float" } else { "double" };
                let bits = format!("WcKey<{float}>::to_bits({code})");
                if descending { bits } else { format!("~{bits}") }
            }
            (_, true) => format!("({c_type}){code} - {}", constant(part.low)),
            (_, false) => format!("{} - ({c_type}){code}", constant(part.high)),
        };
        if part.raised() {
            offset = format!("{offset} + 1u");
        }
        if let Some(valid) = &value.valid {
            let null = constant(part.null_place() as i128);
            offset = format!("{valid} ? ({c_type})({offset}) : {null}");
        }
        emitter.define(c_type, &offset)
    })
}
