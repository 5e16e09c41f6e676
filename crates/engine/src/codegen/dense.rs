//! The steps of a kernel that run on whole vectors: tests that clear the bits of rows in a lane's `alive` word.

use std::fmt::Write;
use std::sync::Arc;

use crate::codegen::compare::packed_test;
use crate::codegen::expr::{Emitter, Value};
use crate::codegen::filters::{Before, Written};
use crate::codegen::pipeline::KernelWriter;
use crate::codegen::shared_tables::{found_by_offset, range_test, staged_probe};
use crate::codegen::zones::Zones;
use crate::error::Result;
use crate::plan::order::Item;
use crate::plan::shared::SharedTable;
use crate::plan::split::Split;

impl KernelWriter<'_> {
    /// The loops over slots that clear the bits of rows the dense steps drop: one for all filters in a row, one for
    /// each probe.
    pub(super) fn dense_tests(&mut self, zones: &Zones, error_slot: &str) -> Result<String> {
        let registers: Arc<[Option<Value>]> = self.vector_registers().into();
        let mut text = String::new();
        let Split { dense, slots, .. } = &self.plan.split;
        for positions in self.plan.split.dense_runs() {
            let asked = zones.asked_of(&positions.clone().collect::<Vec<_>>());
            let staged = positions.clone().map(|position| self.plan.shared.staged(position));
            let staged: Vec<Option<&SharedTable>> = staged.collect();
            let (run, slots) = (&dense[positions], *slots);
            let valid = |column| {
                format!("            const uint32_t tn{column} = wc_load_valid<{slots}>(n{column}, base, lane);\n")
            };
            let valid: String = self.text_columns(run).into_iter().map(valid).collect();
            let mut emitter =
                Emitter::new(&registers, self.params, self.arena, (error_slot, self.input.overflow), &mut self.next);
            emitter.step_slots = Some(slots);
            let (mut conditions, mut range, mut by_offset) = (Vec::new(), None, None);
            for (planned, staged) in run.iter().zip(staged) {
                conditions.push(match &planned.item {
                    Item::Filter(expr) => {
                        let before = Before::of(emitter.params, emitter.arena);
                        let (out, of_step, next) = (emitter.out.len(), emitter.of_step.len(), *emitter.next);
                        let packed = packed_test(expr, self.readers, self.distinct, emitter.params);
                        let (condition, written, wrote) = match packed {
                            Some(test) => (test.clone(), Written::Packed, test),
                            None => {
                                let truth = emitter.emit(expr)?.truth();
                                let wrote = emitter.of_step[of_step..].to_string() + &emitter.out[out..] + &truth;
                                let (registers, step_slots) = (registers.clone(), Some(slots));
                                (truth, Written::Statements { registers, next, step_slots }, wrote)
                            }
                        };
                        let wrote = before.site(planned.part, written, wrote, (emitter.params, emitter.arena));
                        self.filters.push(wrote);
                        condition
                    }
                    // Only rows that are left are looked up, but for codes, where it is sooner done than asked.
                    Item::Probe(probe, _) => {
                        let all_are_left = text.is_empty();
                        if let Some(found) = found_by_offset(probe, staged, (self.input, slots), !all_are_left) {
                            by_offset = Some(found);
                            continue;
                        }
                        let all = staged.is_some_and(|at| at.coded().is_some());
                        let left = (!all_are_left && !all).then_some("(bool)(alive >> k & 1u)");
                        range = range_test(&mut emitter, probe, staged, (self.input, self.readers));
                        let of = (self.input, self.operands, self.readers);
                        staged_probe(&mut emitter, probe, staged, of, left)?
                    }
                    Item::Limit { .. } => unreachable!("rows are counted one by one"),
                });
            }
            if let Some(found) = by_offset {
                let _ = writeln!(text, "            {asked}{{\n            alive &= {found};\n            }}");
                continue;
            }
            let of_step = valid + &emitter.of_step;
            let (statements, condition) = (emitter.out, conditions.join(" && "));
            let each = |statements: &str, condition: &str| {
                format!(
                    "#pragma unroll
            for (int k = 0; k < {slots}; ++k) {{
{statements}                kept |= (uint32_t)({condition}) << k;
            }}
"
                )
            };
            let every = each(&statements, &condition);
            let loops = match range {
                Some((is_range, test)) => {
                    let of_range = each("", &test);
                    format!("            if ({is_range}) {{\n{of_range}            }} else {{\n{every}            }}\n")
                }
                None => every,
            };
            let _ = writeln!(
                text,
                "            {asked}{{
            uint32_t kept = 0;
{of_step}{loops}            alive &= kept;
            }}"
            );
        }
        Ok(text)
    }
}
