//! The kernel of a result whose columns are expressions over groups: one thread a place of the group table computes
//! the columns of its group and stores them as a row ([`crate::plan::row_layout`]). It reads a table as the kernel
//! that gathers groups does (`compact.cuh`) and leaves rows behind the same head: error, flags, number of rows.

use crate::arena::{Arena, Region};
use crate::codegen::expr::{Emitter, Value};
use crate::codegen::memory::{BoundGroups, Control};
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::result_rows::StoredRow;
use crate::error::Result;
use crate::ir::{Overflow, Ty};
use crate::plan::groups::{ComputedPlan, Grouping};

/// Words before the rows.
pub(crate) const HEAD_WORDS: usize = 3;
/// Name of the kernel.
pub(crate) const COMPUTE: &str = "compute_groups";

/// The kernel and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct ComputedKernel {
    pub(crate) source: String,
    pub(crate) params: ParamList,
}

impl BoundGroups {
    /// Writes the kernel that leaves `computed` in the region `output`.
    ///
    /// # Errors
    /// What the device does not compute.
    pub(crate) fn compute(
        &self,
        computed: &ComputedPlan,
        (control, output): (Control, Region),
        arena: &mut Arena,
        overflow: Overflow,
    ) -> Result<ComputedKernel> {
        let mut params = ParamList::default();
        let control = params.add("const uint64_t*", Argument::Region(control.region));
        let output = params.add("uint64_t*", Argument::Region(output));
        let places = params.add("uint64_t", Argument::U64(self.places));
        // A table of one group has it whether rows have come or not.
        let (marks, mark) = if self.grouping == Grouping::Single {
            (String::new(), "1".to_string())
        } else {
            let ty = self.mark_type();
            let marks = params.add(&format!("const {ty}*"), Argument::Region(self.memory.seen));
            let of_place = match (self.slot_words(), self.mark_bytes()) {
                (Some(words), _) => format!("marks[place * {words}]"),
                (None, 8) => "marks[place]".to_string(),
                (None, _) => "marks[place] != 0 ? place + 1 : 0".to_string(),
            };
            (format!("    const {ty}* const marks = {marks};\n"), of_place)
        };
        let (columns, registers) = self.columns(&mut params);
        let mut next = 0;
        let scope = (output.as_str(), overflow);
        let mut emitter = Emitter::new(&registers, &mut params, arena, scope, &mut next);
        let values = computed.values.iter().map(|value| value.emit(&mut emitter).map(Some));
        let values = values.collect::<Result<Vec<_>>>()?;
        let mut statements = std::mem::take(&mut emitter.out);
        let mut emitter = Emitter::new(&values, &mut params, arena, scope, &mut next);
        let mut stored = StoredRow::of(&computed.row, None);
        for expr in &computed.exprs {
            let value = emitter.emit(expr)?;
            stored.value(&value).iter().for_each(|line| emitter.out.push_str(&format!("{line}\n")));
        }
        statements += &emitter.out;
        stored.validity().iter().for_each(|line| statements.push_str(&format!("{line}\n")));
        let words = computed.row.words();
        let body = format!(
            "{{
    wc_wait_previous();
    const uint32_t lane = wc_lane();
{marks}    if (blockIdx.x == 0 && threadIdx.x == 0) {{
        if ({control}[0] != 0) wc_raise({output}, {control}[0]);
        {output}[1] = {control}[1] | (uint64_t)({control}[3] != 0) << WC_STOPPED_SHIFT;
    }}
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x, whole = ({places} + 31) / 32 * 32;
    for (uint64_t place = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; place < whole; place += step) {{
        const uint64_t entry = place < {places} ? {mark} : 0;
        const uint32_t found = __ballot_sync(WC_FULL_MASK, entry != 0);
        if (found == 0) continue;
        uint64_t at = 0;
        if (lane == 0) at = wc_fetch_add({output} + 2, (uint64_t)__popc(found));
        at = __shfl_sync(WC_FULL_MASK, at, 0) + __popc(found & ((1u << lane) - 1));
        if (entry == 0) continue;
        uint64_t* const out = {output} + {HEAD_WORDS} + at * {words};
        auto process = [&]() {{
{columns}{statements}        }};
        process();
    }}
}}
"
        );
        let declaration = params.declaration(&format!("{COMPUTE}_params"));
        let source = declaration + &format!("WC_KERNEL({COMPUTE}, {COMPUTE}_params, 256, 1) {body}");
        Ok(ComputedKernel { source, params })
    }

    /// Statements that read what values are computed from, and the registers of it: the entry, the words of a key that
    /// has several, and the cells, each the sum of its copies.
    fn columns(&self, params: &mut ParamList) -> (String, Vec<Option<Value>>) {
        let facts = self.column_facts();
        let mut text = String::new();
        let mut registers = vec![Some(Value::new(facts[0].clone(), "entry".into(), None))];
        if let Some(slot) = self.slot_words().filter(|_| self.pack.is_wide()) {
            let words = params.add("const uint64_t*", Argument::Within(self.memory.seen, 8));
            for word in 0..self.pack.words {
                text += &format!("const uint64_t w{word} = {words}[place * {slot} + {word}];\n");
                registers.push(Some(Value::new(facts[1 + word].clone(), format!("w{word}"), None)));
            }
        }
        let first_cell = registers.len();
        let cells = params.add("const uint64_t*", self.memory.first_cell(self));
        let places = params.add("uint64_t", Argument::U64(self.places));
        let copies = (self.copies > 1).then(|| params.add("uint64_t", Argument::U64(self.copies)));
        for (cell, facts) in facts[first_cell..].iter().enumerate() {
            let at = self.cell_at((&cells, &places), cell, "place");
            match &copies {
                None => text += &format!("const uint64_t b{cell} = *({at});\n"),
                Some(copies) => {
                    let stride = format!("{} * {places}", self.cell_count);
                    text += &format!("uint64_t b{cell} = 0;\n#pragma unroll 8\n");
                    text += &format!("for (uint64_t i = 0; i < {copies}; ++i) b{cell} += ({at})[i * {stride}];\n");
                }
            }
            let code = match facts.ty {
                Ty::F64 => format!("__longlong_as_double((int64_t)b{cell})"),
                _ => format!("b{cell}"),
            };
            registers.push(Some(Value::new(facts.clone(), code, None)));
        }
        (text, registers)
    }
}
