//! What probes look at in shared memory: bitmaps of tables, or a byte for each code of a column.
//!
//! Where the key is a packed column with one reference, the bitmap's bits are brought to the places of its offsets:
//! the test is then one load of a word, behind which lies one without bits for all offsets that the table has no place
//! for.
//!
//! Codes are in the order of their values, and what a table holds is often a range of them: a year, a month. A kernel
//! sees that when it fills in the bytes, and then compares codes with the ends of the range instead.

use std::fmt::Write;

use warpcube_column::ColumnReader;

use crate::codegen::expr::{Emitter, Value, vector_value};
use crate::codegen::input::PipelineInput;
use crate::codegen::params::Argument;
use crate::codegen::pipeline::{KernelWriter, Layout, Split};
use crate::codegen::rows::{dense_probe, far_probe};
use crate::error::Result;
use crate::ir::{Expr, JoinKind, Probe};
use crate::plan::keys::{KeyPart, Null};
use crate::plan::order::{Item, Planned};
use crate::plan::table::{BuiltTable, TableLayout};

/// What the places of a bitmap or byte map in shared memory stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Places {
    /// The keys of the table, a bit each.
    Keys,
    /// The codes of a column, a byte each.
    Codes(usize),
    /// The offsets of a packed column, a bit each: so many words of them, the first place being as many places behind
    /// the table's first.
    Offsets { column: usize, words: usize, first: i64 },
}

/// Bytes behind what is staged: how many keys there are, the first one, and the first past all of them.
const SPAN_BYTES: usize = 16;

/// Most codes of a column for which what is known of a table is kept in shared memory.
const CODES_MAX: usize = 16 << 10;

/// A bitmap or byte map in shared memory that tells which keys a table has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SharedTable {
    /// The table.
    pub(super) build: usize,
    /// What its places are.
    pub(super) places: Places,
    /// Whether the first and the last key are known, too.
    pub(super) spanned: bool,
    /// Where it lies, in bytes.
    pub(super) offset: usize,
}

impl SharedTable {
    /// Names of the first key of a table whose bitmap is in shared memory, and of the first past all of them.
    pub(super) fn span(self) -> (String, String) {
        (format!("{}_first", self.name()), format!("{}_past", self.name()))
    }

    /// Its name in kernels.
    pub(super) fn name(self) -> String {
        match self.places {
            Places::Keys => format!("bits{}", self.build),
            Places::Codes(column) => format!("map{}_{column}", self.build),
            Places::Offsets { column, .. } => format!("bits{}_{column}", self.build),
        }
    }

    /// The column of codes that a byte a code tells of.
    pub(super) fn coded(self) -> Option<usize> {
        match self.places {
            Places::Codes(column) => Some(column),
            _ => None,
        }
    }

    /// Bytes that it takes, of a table whose bitmap takes so many.
    pub(super) fn bytes(self, bitmap: usize, input: &PipelineInput) -> usize {
        match self.places {
            Places::Keys => bitmap.next_multiple_of(16) + if self.spanned { SPAN_BYTES } else { 0 },
            Places::Codes(column) => coded_bytes(input.layouts[column].codes),
            Places::Offsets { words, .. } => (4 * words + 4).next_multiple_of(16),
        }
    }

    /// Whether both have the same places of the same table.
    pub(super) fn is_as(&self, other: &SharedTable) -> bool {
        (self.build, self.places) == (other.build, other.places)
    }
}

impl KernelWriter<'_> {
    /// What is kept at `offset` of shared memory for a probe of a table whose bitmap takes `bitmap` bytes.
    pub(super) fn shared_table(&self, probe: &Probe, bitmap: usize, offset: usize) -> SharedTable {
        let build = probe.build;
        if let Some(column) = coded(self.input, self.split, probe) {
            return SharedTable { build, places: Places::Codes(column), spanned: false, offset };
        }
        let spanned = self.asks_for_span(build);
        let by_offset = || self.offsets(probe, bitmap).filter(|_| !spanned);
        SharedTable { build, places: by_offset().unwrap_or(Places::Keys), spanned, offset }
    }

    /// What is kept for a step, if it is a probe for which something was found to fit.
    pub(super) fn staged<'a>(&self, layout: &'a Layout, planned: &Planned) -> Option<&'a SharedTable> {
        let Item::Probe(probe, _) = &planned.item else { return None };
        let TableLayout::Direct { bitmap } = &self.input.tables[probe.build].as_ref()?.layout else { return None };
        let wanted = self.shared_table(probe, bitmap.bytes(), 0);
        layout.staged.iter().find(|staged| staged.is_as(&wanted))
    }

    /// The offsets of the column that is the key of a probe, if they are packed with one reference, and the words of
    /// their bits are hardly more than those of the table's.
    fn offsets(&self, probe: &Probe, bitmap: usize) -> Option<Places> {
        let ([Expr::Reg(column)], table) = (probe.keys.as_slice(), self.input.tables[probe.build].as_ref()?) else {
            return None;
        };
        let (facts, reader) = (self.input.columns.get(*column)?, self.readers.get(*column)?);
        let (packed, reference) = reader.packed().filter(|_| self.split.loaded.contains(column))?;
        let [KeyPart { low, places, null: Null::Never, stride: 1, .. }] = table.pack.parts.as_slice() else {
            return None;
        };
        let is_integer =
            !facts.ty.is_float() && facts.dictionary.is_none() && table.strings.iter().all(Option::is_none);
        if !is_integer || reader.is_coded() || facts.texts.is_some() {
            return None;
        }
        let first = i64::try_from(reference - low).ok()?;
        let past = i128::try_from(*places).ok()? - i128::from(first);
        let words = (past.clamp(0, 1 << packed.width) as usize).div_ceil(32).max(1);
        (4 * words <= bitmap + bitmap / 8 + 64).then_some(Places::Offsets { column: *column, words, first })
    }

    /// Copies bitmaps to shared memory. Where the key is a column of codes, what is known of its values is brought into
    /// the order of the codes, a byte each: rows are then tested without becoming values.
    pub(super) fn fill_shared_tables(&mut self, layout: &Layout, error_slot: &str) -> Result<String> {
        let (mut text, mut spans) = (String::new(), String::new());
        for staged in &layout.staged {
            let Some(BuiltTable { layout: TableLayout::Direct { bitmap }, .. }) = &self.input.tables[staged.build]
            else {
                continue;
            };
            let name = staged.name();
            let place = match staged.offset {
                0 => "shared".to_string(),
                offset => format!("(shared + {})", self.params.add("uint64_t", Argument::U64(offset as u64))),
            };
            let Some(column) = staged.coded() else {
                let pointer = self.params.add("const uint32_t*", Argument::Zone(*bitmap));
                let words = self.params.add("uint64_t", Argument::U64((bitmap.bytes() / 4) as u64));
                let _ = writeln!(text, "    uint32_t* const {name} = (uint32_t*){place};");
                if let Places::Offsets { words: staged, first, .. } = staged.places {
                    let staged = self.params.add("uint64_t", Argument::U64(staged as u64));
                    let first = self.params.add("int64_t", Argument::I64(first));
                    let _ = writeln!(
                        text,
                        "    const uint32_t {name}_past = (uint32_t){staged};
    wc_stage_from({name}, {name}_past, {pointer}, {words}, {first});"
                    );
                    continue;
                }
                let _ = writeln!(text, "    wc_stage({name}, {pointer}, {words});");
                if staged.spanned {
                    let _ = writeln!(
                        text,
                        "    uint32_t* const {name}_span = {name} + {words};
    wc_span_start({name}_span);
    {{
    WcSpan span;
    wc_span_bits(span, {pointer}, (uint32_t){words});
    span.add_to({name}_span);
    }}"
                    );
                    let (first, past) = staged.span();
                    let _ = writeln!(spans, "    const uint32_t {first} = {name}_span[1], {past} = {name}_span[2];");
                }
                continue;
            };
            let codes = self.params.add("uint64_t", Argument::U64(self.input.layouts[column].codes as u64));
            let value = vector_value(&self.input.columns[column], &self.readers[column].lookup("code".into()));
            let mut registers = vec![None; self.input.columns.len()];
            registers[column] = Some(Value::new(self.input.columns[column].clone(), value, None));
            let mut emitter =
                Emitter::new(&registers, self.params, self.arena, (error_slot, self.input.overflow), &mut self.next);
            let probe = Probe {
                build: staged.build,
                keys: vec![Expr::Reg(column)],
                kind: JoinKind::Semi,
                unique: false,
                residual: None,
            };
            let found = dense_probe(&mut emitter, &probe, self.input.tables, None)?;
            let statements = emitter.out;
            let padded = self.input.layouts[column].codes.next_multiple_of(16);
            let _ = writeln!(
                text,
                "    uint8_t* const {name} = (uint8_t*){place};
    uint32_t* const {name}_span = (uint32_t*)({name} + {padded});
    wc_span_start({name}_span);
    {{
    WcSpan span;
    for (uint32_t code = threadIdx.x; code < (uint32_t){codes}; code += blockDim.x) {{
{statements}        const bool found = {found};
        {name}[code] = found;
        span.see(code, found);
    }}
    span.add_to({name}_span);
    }}"
            );
            let _ = writeln!(
                spans,
                "    const uint32_t {name}_low = {name}_span[1], {name}_count = {name}_span[0];
    const bool {name}_dense = {name}_count != 0 && {name}_span[2] - {name}_low == {name}_count;"
            );
        }
        if !text.is_empty() {
            text.push_str("    __syncthreads();\n");
        }
        Ok(text + &spans)
    }
}

/// The slots of a step whose rows pass a probe of a table by the offsets of a packed column, as bits; those that are
/// `alive` alone where others have been dropped before.
pub(super) fn found_by_offset(
    probe: &Probe,
    staged: Option<&SharedTable>,
    (input, slots): (&PipelineInput, usize),
    others_are_dropped: bool,
) -> Option<String> {
    let staged = staged?;
    let Places::Offsets { column, .. } = staged.places else { return None };
    let name = staged.name();
    let alive = if others_are_dropped { "alive" } else { "WC_FULL_MASK" };
    let found = format!("wc_found<{slots}>(d{column}, {name}, {name}_past, {alive})");
    let found = if input.columns[column].nullable { format!("({found} & dn{column})") } else { found };
    Some(if probe.kind == JoinKind::Anti { format!("~{found}") } else { found })
}

/// Bytes of shared memory for the codes of a column.
fn coded_bytes(codes: usize) -> usize {
    codes.next_multiple_of(16) + SPAN_BYTES
}

/// The same test as [`staged_probe`] where the codes are a range, with the name of the variable that says so.
pub(super) fn range_test(
    emitter: &mut Emitter,
    probe: &Probe,
    staged: Option<&SharedTable>,
    (input, readers): (&PipelineInput, &[ColumnReader]),
) -> Option<(String, String)> {
    let staged = staged?;
    let column = staged.coded()?;
    let (packed, reference) = readers[column].packed()?;
    let name = staged.name();
    let reference = emitter.params.add("uint64_t", Argument::U64(reference as u64));
    let (low, shift) = (format!("{name}_low - (uint32_t){reference}"), 32 - packed.width);
    // The largest offset that passes, with ones below.
    let most = format!("(({name}_count - 1u) << {shift} | {}u)", (1u32 << shift) - 1);
    let test = format!("{} - (({low}) << {shift}) <= {most}", readers[column].top("d"));
    let valid = if input.columns[column].nullable { format!("(dn{column} >> k & 1u) && ") } else { "".into() };
    let test = format!("({valid}{test})");
    Some((format!("{name}_dense"), if probe.kind == JoinKind::Anti { format!("!{test}") } else { test }))
}

/// The column whose codes a table is asked for, if the key is such a column and it has few enough values.
pub(super) fn coded(input: &PipelineInput, split: &Split, probe: &Probe) -> Option<usize> {
    let [Expr::Reg(column)] = probe.keys.as_slice() else { return None };
    let codes = input.layouts.get(*column)?.codes;
    ((1..=CODES_MAX).contains(&codes) && split.loaded.contains(column)).then_some(*column)
}

/// The condition that a row of loaded vectors passes a probe of a table that may be in shared memory, and that it is
/// `left`, if that is to be asked.
pub(super) fn staged_probe(
    emitter: &mut Emitter,
    probe: &Probe,
    staged: Option<&SharedTable>,
    (input, readers): (&PipelineInput, &[ColumnReader]),
    left: Option<&str>,
) -> Result<String> {
    let and_left = |test: String| match left {
        Some(left) => format!("{left} && {test}"),
        None => test,
    };
    let Some(column) = staged.and_then(|staged| staged.coded()) else {
        return match staged {
            Some(staged) => Ok(and_left(dense_probe(emitter, probe, input.tables, Some(staged.name()))?)),
            None => far_probe(emitter, probe, input.tables, left.unwrap_or("true")),
        };
    };
    let map = staged.map(|staged| staged.name()).unwrap_or_default();
    let valid = if input.columns[column].nullable { format!("(dn{column} >> k & 1u) && ") } else { String::new() };
    let test = format!("({valid}{map}[{}] != 0)", readers[column].code("d"));
    Ok(and_left(if probe.kind == JoinKind::Anti { format!("!{test}") } else { test }))
}
