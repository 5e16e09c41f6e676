//! Key tuples packed into one integer.
//!
//! With bounds on every part, a tuple (k₀, …, kₙ) becomes Σ (kᵢ − lowᵢ) · strideᵢ, a bijection onto [0, domain). A part
//! that may be NULL has one more place, 0. Joins and groups work on packed keys alone: small domains index arrays
//! directly, larger ones are hashed.

use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::Argument;
use crate::error::{Result, unsupported};
use crate::ir::Ty;

/// One part of a packed key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyPart {
    /// Smallest valid value.
    pub(crate) low: i128,
    /// Number of places, that of NULL included.
    pub(crate) places: u64,
    /// Whether place 0 is NULL.
    pub(crate) nullable: bool,
    /// Distance of neighbouring values in packed keys.
    pub(crate) stride: u64,
}

/// How a tuple is packed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct KeyPack {
    /// Parts, the last with stride 1.
    pub(crate) parts: Vec<KeyPart>,
    /// Number of packed keys.
    pub(crate) domain: u64,
}

impl KeyPack {
    /// A packing for values with these bounds; `nullable` gives NULL a place of its own.
    ///
    /// # Errors
    /// Unsupported if a part is a float or the domain exceeds 63 bits.
    pub(crate) fn new(values: &[Value], nullable: bool) -> Result<KeyPack> {
        let mut parts = Vec::with_capacity(values.len());
        for value in values {
            let Some((low, high)) = value.bounds() else { return unsupported("a key of a float type") };
            // A column with no valid value has no bounds of its own; one place is enough for it.
            let (low, high) = if high < low { (0, 0) } else { (low, high) };
            if value.ty == Ty::I128 && !value.narrow || low < i64::MIN.into() || high > i64::MAX.into() {
                return unsupported("a key wider than 64 bits");
            }
            let nullable = nullable && value.valid.is_some();
            let places = (high - low + 1 + i128::from(nullable)) as u128;
            match u64::try_from(places) {
                Ok(places) => parts.push(KeyPart { low, places, nullable, stride: 1 }),
                Err(_) => return unsupported("a key whose values span more than 64 bits"),
            }
        }
        let mut domain: u64 = 1;
        for part in parts.iter_mut().rev() {
            part.stride = domain;
            domain = match domain.checked_mul(part.places) {
                Some(domain) if domain < 1 << 63 => domain,
                _ => return unsupported("a key whose parts together span more than 63 bits"),
            };
        }
        Ok(KeyPack { parts, domain })
    }

    /// The part's place in a packed key.
    pub(crate) fn place(&self, packed: u64, part: usize) -> u64 {
        packed / self.parts[part].stride % self.parts[part].places
    }

    /// The part's value in a packed key; `None` is NULL.
    pub(crate) fn value(&self, packed: u64, part: usize) -> Option<i128> {
        let place = self.place(packed, part);
        let part = &self.parts[part];
        match part.nullable {
            true if place == 0 => None,
            nullable => Some(part.low + i128::from(place) - i128::from(nullable)),
        }
    }

    /// Writes the packing of `values`, which lie in bounds: the name of the packed key (`uint32_t` for small domains).
    pub(crate) fn emit(&self, emitter: &mut Emitter, values: &[Value]) -> String {
        self.emit_checked(emitter, values, false).0
    }

    /// Writes the packing of any values: the packed key and the condition under which all are valid and in bounds.
    pub(crate) fn emit_checked(&self, emitter: &mut Emitter, values: &[Value], check: bool) -> (String, String) {
        let wide = if self.domain <= 1 << 32 { "uint32_t" } else { "uint64_t" };
        let mut conditions: Vec<String> = Vec::new();
        let mut terms: Vec<String> = Vec::new();
        for (part, value) in self.parts.iter().zip(values) {
            let low = emitter.params.add("int64_t", Argument::I64(part.low as i64));
            // Differences of 32-bit values are exact modulo 2^32 as long as places fit; wider ones need 64 bits.
            let small = matches!(value.ty, Ty::Bool | Ty::I8 | Ty::I16 | Ty::I32 | Ty::U8 | Ty::U16 | Ty::U32)
                && part.places <= u64::from(u32::MAX);
            let place_type = if small { "uint32_t" } else { "uint64_t" };
            let place = emitter.name();
            let difference = format!("({place_type}){} - ({place_type}){low}", value.code);
            let code = match (part.nullable, &value.valid) {
                (true, Some(valid)) => format!("{valid} ? {difference} + 1u : 0u"),
                _ => difference,
            };
            emitter.out.push_str(&format!("const {place_type} {place} = {code};\n"));
            if check {
                conditions.extend(value.valid.clone());
                if value.c_type() == "__int128" {
                    conditions.push(format!("{0} == (__int128)(int64_t){0}", value.code));
                }
                let places = emitter.params.add("uint64_t", Argument::U64(part.places));
                conditions.push(format!("{place} < ({place_type}){places}"));
                // A 64-bit probe value against a 32-bit place type cannot happen: `small` looks at the probe's type.
            }
            match part.stride {
                1 => terms.push(format!("({wide}){place}")),
                stride => {
                    let stride = emitter.params.add("uint64_t", Argument::U64(stride));
                    terms.push(format!("({wide}){place} * ({wide}){stride}"));
                }
            }
        }
        let packed = emitter.name();
        let sum = if terms.is_empty() { "0".to_string() } else { terms.join(" + ") };
        emitter.out.push_str(&format!("const {wide} {packed} = {sum};\n"));
        let condition = if conditions.is_empty() { "true".to_string() } else { conditions.join(" && ") };
        (packed, condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(range: (i128, i128), nullable: bool) -> Value {
        Value {
            code: "x".into(),
            valid: nullable.then(|| "v".into()),
            ty: Ty::I64,
            narrow: false,
            range: Some(range),
            dictionary: None,
        }
    }

    #[test]
    fn packing_is_a_bijection() {
        let pack = KeyPack::new(&[value((-1, 1), true), value((10, 12), false)], true).unwrap();
        assert_eq!(pack.domain, 12);
        let tuples: Vec<_> = (0..12).map(|packed| (pack.value(packed, 0), pack.value(packed, 1))).collect();
        assert_eq!(tuples[0], (None, Some(10)));
        assert_eq!(tuples[11], (Some(1), Some(12)));
        let distinct: std::collections::HashSet<_> = tuples.iter().collect();
        assert_eq!(distinct.len(), 12);
    }

    #[test]
    fn a_domain_past_63_bits_is_refused() {
        let wide = value((0, i64::MAX.into()), false);
        assert!(KeyPack::new(std::slice::from_ref(&wide), false).is_err());
        let half = value((0, (1 << 32) - 1), false);
        assert!(KeyPack::new(&[half.clone(), half], false).is_err());
    }
}
