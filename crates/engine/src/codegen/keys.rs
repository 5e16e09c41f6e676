//! Packed keys in kernel source ([`crate::plan::keys`]).

use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::Argument;
use crate::ir::Ty;
use crate::plan::keys::{KeyPack, Null};

/// A packed key in kernel source.
pub(crate) struct Packed {
    /// Names of its words.
    pub(crate) words: Vec<String>,
    /// C expression of the condition under which all values are valid and in bounds.
    pub(crate) inside: String,
}

impl Packed {
    /// The only word.
    pub(crate) fn word(&self) -> &str {
        debug_assert_eq!(self.words.len(), 1, "only keys of one word index anything");
        &self.words[0]
    }

    /// The words as the elements of an array.
    pub(crate) fn list(&self) -> String {
        self.words.join(", ")
    }
}

impl KeyPack {
    /// Writes the packing of `values`, which lie in bounds.
    pub(crate) fn emit(&self, emitter: &mut Emitter, values: &[Value]) -> Packed {
        self.emit_checked(emitter, values, false)
    }

    /// Writes the packing of any values, with the condition under which all are valid and in bounds if `check`.
    pub(crate) fn emit_checked(&self, emitter: &mut Emitter, values: &[Value], check: bool) -> Packed {
        let wide = if self.domain <= 1 << 32 { "uint32_t" } else { "uint64_t" };
        let mut conditions: Vec<String> = Vec::new();
        let mut terms: Vec<Vec<String>> = vec![Vec::new(); self.words];
        let mut term = |emitter: &mut Emitter, word: usize, stride: u64, place: &str| match stride {
            1 => terms[word].push(format!("({wide}){place}")),
            _ => {
                let stride = emitter.params.add("uint64_t", Argument::U64(stride));
                terms[word].push(format!("({wide}){place} * ({wide}){stride}"));
            }
        };
        for (part, value) in self.parts.iter().zip(values) {
            if let Some(high) = part.high {
                let code = match (part.null, &value.valid) {
                    (Null::Apart { .. }, Some(valid)) => format!("{valid} ? (__int128){} : 0", value.code),
                    _ => value.code.clone(),
                };
                let place = emitter.define("__int128", &code);
                term(emitter, part.word, 1, &place);
                term(emitter, high, 1, &format!("({place} >> 64)"));
                if let (Null::Apart { word, stride }, Some(valid)) = (part.null, &value.valid) {
                    term(emitter, word, stride, &format!("(!{valid})"));
                }
                conditions.extend(value.valid.clone().filter(|_| check));
                continue;
            }
            let low = emitter.params.add("int64_t", Argument::I64(part.low as i64));
            // Differences of 32-bit values are exact modulo 2^32 as long as places fit; wider ones need 64 bits.
            let small =
                matches!(value.ty, Ty::Bool | Ty::I8 | Ty::I16 | Ty::I32 | Ty::U8 | Ty::U16 | Ty::U32 | Ty::F32)
                    && part.places <= u128::from(u32::MAX);
            let place_type = if small { "uint32_t" } else { "uint64_t" };
            let place = emitter.name();
            let code = match value.ty.is_float() {
                true => format!("wc_float_key({})", value.code),
                false => value.code.clone(),
            };
            let difference = format!("({place_type}){code} - ({place_type}){low}");
            let code = match (part.null, &value.valid) {
                (Null::First, Some(valid)) => format!("{valid} ? {difference} + 1u : 0u"),
                (Null::Apart { .. }, Some(valid)) => format!("{valid} ? {difference} : 0u"),
                _ => difference,
            };
            emitter.out.push_str(&format!("const {place_type} {place} = {code};\n"));
            if check {
                conditions.extend(value.valid.clone());
                if value.is_wide() {
                    conditions.push(format!("{0} == (__int128)(int64_t){0}", value.code));
                }
                // A full word has no place out of bounds. A 64-bit probe value against a 32-bit place type cannot
                // happen: `small` looks at the probe's type.
                if let Ok(places) = u64::try_from(part.places) {
                    let places = emitter.params.add("uint64_t", Argument::U64(places));
                    conditions.push(format!("{place} < ({place_type}){places}"));
                }
            }
            term(emitter, part.word, part.stride, &place);
            if let (Null::Apart { word, stride }, Some(valid)) = (part.null, &value.valid) {
                term(emitter, word, stride, &format!("(!{valid})"));
            }
        }
        let mut words = Vec::with_capacity(self.words);
        for terms in terms {
            let packed = emitter.name();
            let sum = if terms.is_empty() { "0".to_string() } else { terms.join(" + ") };
            emitter.out.push_str(&format!("const {wide} {packed} = {sum};\n"));
            words.push(packed);
        }
        let inside = if conditions.is_empty() { "true".to_string() } else { conditions.join(" && ") };
        Packed { words, inside }
    }
}
