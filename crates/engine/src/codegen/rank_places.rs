//! Places of keys in ranks ([`crate::plan::topk_rank`]), in kernel source: of values, and values of places.

use crate::codegen::expr::{Emitter, Value, c_type_of};
use crate::codegen::params::Argument;
use crate::codegen::rows::RowWriter;
use crate::facts::Facts;
use crate::ir::Ty;
use crate::plan::topk_rank::{Part, c_type};

/// A constant of the type of places; exact modulo two to the power of the bits that these have room in.
fn constant(emitter: &mut Emitter, part: &Part, number: i128) -> String {
    let c_type = c_type(part.place_bits);
    match part.place_bits {
        0..=64 => format!("({c_type}){}", emitter.params.add("uint64_t", Argument::U64(number as u64))),
        _ => {
            let high = emitter.params.add("uint64_t", Argument::U64((number >> 64) as u64));
            let low = emitter.params.add("uint64_t", Argument::U64(number as u64));
            format!("(({c_type}){high} << 64 | {low})")
        }
    }
}

/// Writes a part of the place of a key; its name.
pub(super) fn place(rows: &mut RowWriter, part: &Part, value: &Value) -> String {
    let c_type = c_type(part.place_bits);
    rows.with_emitter(|emitter| {
        let code = &value.code;
        let mut offset = match (value.ty, part.descending) {
            (Ty::F32 | Ty::F64, descending) => {
                let float = if value.ty == Ty::F32 { "float" } else { "double" };
                let bits = format!("WcKey<{float}>::to_bits({code})");
                if descending { bits } else { format!("~{bits}") }
            }
            (_, true) => format!("({c_type}){code} - {}", constant(emitter, part, part.low)),
            (_, false) => format!("{} - ({c_type}){code}", constant(emitter, part, part.high)),
        };
        if part.raised() {
            offset = format!("{offset} + 1u");
        }
        if let Some(valid) = &value.valid {
            let null = constant(emitter, part, part.null_place() as i128);
            offset = format!("{valid} ? ({c_type})({offset}) : {null}");
        }
        let place = emitter.define(c_type, &offset);
        let mut number = |bits: u32| emitter.params.add("uint64_t", Argument::U64(bits.into()));
        match (part.below, part.bits == part.place_bits) {
            (0, true) => place,
            (0, false) => format!("({place} & ((({c_type})1 << (uint32_t){}) - 1))", number(part.bits)),
            (below, _) => format!("({place} >> (uint32_t){})", number(below)),
        }
    })
}

/// Writes the value that a part of a rank of 64 bits at most stands for, which is whole and no float.
pub(super) fn value(rows: &mut RowWriter, part: &Part, facts: &Facts, rank: &str) -> Value {
    rows.with_emitter(|emitter| {
        let mask = u64::MAX.checked_shr(u64::BITS - part.bits).unwrap_or(0);
        let mask = emitter.params.add("uint64_t", Argument::U64(mask));
        let shift = emitter.params.add("uint64_t", Argument::U64(part.shift.into()));
        let place = emitter.define("uint64_t", &format!("((uint64_t){rank} >> (uint32_t){shift}) & {mask}"));
        let valid = facts.nullable.then(|| {
            let null = emitter.params.add("uint64_t", Argument::U64(part.null_place() as u64));
            emitter.define("bool", &format!("{place} != {null}"))
        });
        // A place of NULL stands for nothing.
        let raised = if part.raised() { " - 1" } else { "" };
        let bound = if part.descending { part.low } else { part.high };
        let bound = emitter.params.add("uint64_t", Argument::U64(bound as u64));
        let bits = match part.descending {
            true => format!("({bound} + ({place}{raised}))"),
            false => format!("({bound} - ({place}{raised}))"),
        };
        let code = match facts.ty {
            Ty::Bool => format!("({bits} != 0)"),
            _ => format!("({})(int64_t){bits}", c_type_of(facts)),
        };
        Value::new(facts.clone(), emitter.define(c_type_of(facts), &code), valid)
    })
}
