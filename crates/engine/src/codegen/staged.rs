//! What probes look at in shared memory: bitmaps of tables, or a byte for each code of a column.

use std::fmt::Write;

use crate::codegen::column::ColumnReader;
use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::Argument;
use crate::codegen::pipeline::{KernelWriter, Layout, PipelineInput, Split, vector_value};
use crate::codegen::rows::dense_probe;
use crate::error::Result;
use crate::ir::{Expr, JoinKind, Probe};
use crate::table::{BuiltTable, TableLayout};

/// Most codes of a column for which what is known of a table is kept in shared memory.
const CODES_MAX: usize = 16 << 10;

/// What a kernel knows of a table's keys in shared memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Staged {
    /// The table.
    pub(super) build: usize,
    /// The column of codes that a byte a code tells of; `None` for the table's bitmap.
    pub(super) coded: Option<usize>,
    /// Where it lies, in bytes.
    pub(super) offset: usize,
}

impl Staged {
    /// Its name in kernels.
    fn name(self) -> String {
        match self.coded {
            Some(column) => format!("map{}_{column}", self.build),
            None => format!("bits{}", self.build),
        }
    }
}

impl KernelWriter<'_> {
    /// Copies bitmaps to shared memory. Where the key is a column of codes, what is known of its values is brought into
    /// the order of the codes, a byte each: rows are then tested without becoming values.
    pub(super) fn stage(&mut self, layout: &Layout, error_slot: &str) -> Result<String> {
        let mut text = String::new();
        for staged in &layout.staged {
            let Some(BuiltTable { layout: TableLayout::Direct { bitmap }, .. }) = &self.input.tables[staged.build]
            else {
                continue;
            };
            let (name, offset) = (staged.name(), self.params.add("uint64_t", Argument::U64(staged.offset as u64)));
            let Some(column) = staged.coded else {
                let pointer = self.params.add("const uint32_t*", Argument::Zone(*bitmap));
                let words = self.params.add("uint64_t", Argument::U64((bitmap.bytes() / 4) as u64));
                let _ = writeln!(text, "    uint32_t* const {name} = (uint32_t*)(shared + {offset});");
                let _ = writeln!(text, "    wc_stage({name}, {pointer}, {words});");
                continue;
            };
            let codes = self.params.add("uint64_t", Argument::U64(self.input.forms[column].codes as u64));
            let value = vector_value(&self.input.columns[column], &self.readers[column].looked_up("code".into()));
            let mut registers = vec![None; self.input.columns.len()];
            registers[column] = Some(Value { code: value, valid: None, ..self.input.columns[column].clone() });
            let mut emitter = Emitter::new(&registers, self.params, self.arena, error_slot, &mut self.next);
            let probe = Probe { build: staged.build, keys: vec![Expr::Reg(column)], kind: JoinKind::Semi };
            let found = dense_probe(&mut emitter, &probe, self.input.tables, None)?;
            let statements = emitter.out;
            let _ = writeln!(
                text,
                "    uint8_t* const {name} = (uint8_t*)(shared + {offset});
    for (uint32_t code = threadIdx.x; code < (uint32_t){codes}; code += blockDim.x) {{
{statements}        {name}[code] = {found};
    }}"
            );
        }
        if !text.is_empty() {
            text.push_str("    __syncthreads();\n");
        }
        Ok(text)
    }
}

/// The column whose codes a table is asked for, if the key is such a column and it has few enough values.
pub(super) fn coded(input: &PipelineInput, split: &Split, probe: &Probe) -> Option<usize> {
    let [Expr::Reg(column)] = probe.keys.as_slice() else { return None };
    let codes = input.forms.get(*column)?.codes;
    ((1..=CODES_MAX).contains(&codes) && split.loaded.contains(column)).then_some(*column)
}

/// The condition that a row of loaded vectors passes a probe of a table that may be in shared memory.
pub(super) fn staged_probe(
    emitter: &mut Emitter,
    probe: &Probe,
    staged: Option<&Staged>,
    (input, readers): (&PipelineInput, &[ColumnReader]),
) -> Result<String> {
    let Some(Staged { coded: Some(column), .. }) = staged.copied() else {
        return dense_probe(emitter, probe, input.tables, staged.map(|staged| staged.name()));
    };
    let map = staged.map(|staged| staged.name()).unwrap_or_default();
    let valid =
        if input.columns[column].valid.is_some() { format!("(dn{column} >> k & 1u) && ") } else { String::new() };
    let test = format!("({valid}{map}[{}] != 0)", readers[column].code("d"));
    Ok(if probe.kind == JoinKind::Anti { format!("!{test}") } else { test })
}
