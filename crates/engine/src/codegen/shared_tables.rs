//! What probes look at in shared memory ([`crate::plan::shared`]), in kernel source.

use std::fmt::Write;

use warpcube_column::ColumnReader;

use crate::codegen::expr::{Emitter, Value, vector_value};
use crate::codegen::memory::{Operands, TableMemory};
use crate::codegen::params::Argument;
use crate::codegen::pipeline::KernelWriter;
use crate::codegen::rows::{dense_probe, far_probe};
use crate::error::Result;
use crate::ir::{Expr, JoinKind, Probe};
use crate::plan::input::PipelineInput;
use crate::plan::shared::{MapIndex, SharedTable};

impl SharedTable {
    /// Names of the first key of a table whose bitmap is in shared memory, and of the first past all of them.
    pub(super) fn span(self) -> (String, String) {
        (format!("{}_first", self.name()), format!("{}_past", self.name()))
    }

    /// Its name in kernels.
    pub(super) fn name(self) -> String {
        match self.places {
            MapIndex::Keys => format!("bits{}", self.build),
            MapIndex::Codes(column) => format!("map{}_{column}", self.build),
            MapIndex::Offsets { column, .. } => format!("bits{}_{column}", self.build),
        }
    }
}

impl KernelWriter<'_> {
    /// Copies bitmaps to shared memory. Where the key is a column of codes, what is known of its values is brought into
    /// the order of the codes, a byte each: rows are then tested without becoming values.
    pub(super) fn fill_shared_tables(&mut self, error_slot: &str) -> Result<String> {
        let (mut text, mut spans) = (String::new(), String::new());
        for staged in &self.plan.shared.tables {
            let memory = self.operands.tables.get(staged.build).and_then(Option::as_ref);
            let Some(bitmap) = memory.and_then(TableMemory::bitmap) else { continue };
            let name = staged.name();
            let place = match staged.offset {
                0 => "shared".to_string(),
                offset => format!("(shared + {})", self.params.add("uint64_t", Argument::U64(offset as u64))),
            };
            let Some(column) = staged.coded() else {
                let pointer = self.params.add("const uint32_t*", Argument::Region(bitmap));
                let words = self.params.add("uint64_t", Argument::U64((bitmap.bytes() / 4) as u64));
                let _ = writeln!(text, "    uint32_t* const {name} = (uint32_t*){place};");
                if let MapIndex::Offsets { words: staged, first, .. } = staged.places {
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
            let codes = self.params.add("uint64_t", Argument::U64(self.input.columns[column].layout.codes as u64));
            let value = vector_value(&self.input.columns[column], &self.readers[column].lookup("code".into()));
            let mut registers = vec![None; self.input.columns.len()];
            registers[column] = Some(Value::new(self.input.columns[column].facts.clone(), value, None));
            let mut emitter =
                Emitter::new(&registers, self.params, self.arena, (error_slot, self.input.overflow), &mut self.next);
            let probe = Probe {
                build: staged.build,
                keys: vec![Expr::Reg(column)],
                kind: JoinKind::Semi,
                unique: false,
                residual: None,
            };
            let found = dense_probe(&mut emitter, &probe, (self.input, self.operands), None)?;
            let statements = emitter.out;
            let padded = self.input.columns[column].layout.codes.next_multiple_of(16);
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
    let MapIndex::Offsets { column, .. } = staged.places else { return None };
    let name = staged.name();
    let alive = if others_are_dropped { "alive" } else { "WC_FULL_MASK" };
    let found = format!("wc_found<{slots}>(d{column}, {name}, {name}_past, {alive})");
    let found = if input.columns[column].nullable { format!("({found} & dn{column})") } else { found };
    Some(if probe.kind == JoinKind::Anti { format!("~{found}") } else { found })
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
    let (packed, reference) = readers[column].layout().packed()?;
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

/// The condition that a row of loaded vectors passes a probe of a table that may be in shared memory, and that it is
/// `left`, if that is to be asked.
pub(super) fn staged_probe(
    emitter: &mut Emitter,
    probe: &Probe,
    staged: Option<&SharedTable>,
    (input, operands, readers): (&PipelineInput, Operands, &[ColumnReader]),
    left: Option<&str>,
) -> Result<String> {
    let and_left = |test: String| match left {
        Some(left) => format!("{left} && {test}"),
        None => test,
    };
    let Some(column) = staged.and_then(|staged| staged.coded()) else {
        return match staged {
            Some(staged) => Ok(and_left(dense_probe(emitter, probe, (input, operands), Some(staged.name()))?)),
            None => far_probe(emitter, probe, (input, operands), left.unwrap_or("true")),
        };
    };
    let map = staged.map(|staged| staged.name()).unwrap_or_default();
    let valid = if input.columns[column].nullable { format!("(dn{column} >> k & 1u) && ") } else { String::new() };
    let test = format!("({valid}{map}[{}] != 0)", readers[column].code("d"));
    Ok(and_left(if probe.kind == JoinKind::Anti { format!("!{test}") } else { test }))
}
