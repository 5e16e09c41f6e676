//! The values of groups and first rows that another pipeline scans, in kernel source ([`crate::plan::group_values`]).

use crate::codegen::expr::{Emitter, Value, c_type, c_type_of};
use crate::codegen::params::Argument;
use crate::error::Result;
use crate::facts::Facts;
use crate::ir::{Expr, Ty};
use crate::plan::cells::{Output, Read};
use crate::plan::group_values::{GroupRead, GroupValue};
use crate::plan::keys::{KeyPart, Null};

impl GroupValue {
    /// The word of the key without what tells that there is a group.
    fn emit_word(&self, emitter: &mut Emitter, word: usize) -> Result<String> {
        let code = emitter.emit(&Expr::Reg(self.word(word)))?.code;
        Ok(if self.first_cell == 1 { format!("({code} - 1)") } else { code })
    }

    /// Writes what computes it from columns that are loaded.
    pub(crate) fn emit(&self, emitter: &mut Emitter) -> Result<Value> {
        match &self.read {
            GroupRead::Key { part, short } => self.emit_key(emitter, part, if *short { "(uint32_t)" } else { "" }),
            GroupRead::Aggregate(output) => self.emit_aggregate(emitter, output),
            GroupRead::Stored { valid, word, wide } => self.emit_stored(emitter, *valid, (*word, *wide)),
        }
    }

    /// Writes a value of a stored row.
    fn emit_stored(&self, emitter: &mut Emitter, valid: (usize, u32), (word, wide): (usize, bool)) -> Result<Value> {
        let bits = emitter.emit(&Expr::Reg(word))?.code;
        let code = match self.facts.ty {
            Ty::F64 => format!("__longlong_as_double((int64_t){bits})"),
            Ty::F32 => format!("__int_as_float((int32_t){bits})"),
            Ty::Bool => format!("({bits} != 0)"),
            _ if wide => {
                let high = emitter.emit(&Expr::Reg(word + 1))?.code;
                format!("((__int128)((unsigned __int128){high} << 64 | {bits}))")
            }
            _ => format!("({})(int64_t){bits}", c_type_of(&self.facts)),
        };
        let valid = match self.facts.nullable {
            true => {
                let (bits, bit) = (emitter.emit(&Expr::Reg(valid.0))?.code, valid.1);
                Some(emitter.define("bool", &format!("({bits} >> {bit} & 1) != 0")))
            }
            false => None,
        };
        Ok(emitter.value(self.facts.clone(), &code, valid))
    }

    /// Writes a part of a key, computed in words that `cast` gives.
    fn emit_key(&self, emitter: &mut Emitter, part: &KeyPart, cast: &str) -> Result<Value> {
        if let Some(high) = part.high {
            return self.emit_wide_key(emitter, part, high);
        }
        let mut place = format!("{cast}{}", self.emit_word(emitter, part.word)?);
        if part.stride != 1 {
            let stride = emitter.params.add("uint64_t", Argument::U64(part.stride));
            place = format!("{place} / {cast}{stride}");
        }
        if let Ok(places) = u64::try_from(part.places) {
            let places = emitter.params.add("uint64_t", Argument::U64(places));
            place = format!("{place} % {cast}{places}");
        }
        let place = emitter.define("uint64_t", &place);
        let (valid, first) = match part.null {
            Null::First => (Some(emitter.define("bool", &format!("{place} != 0"))), 1),
            Null::Apart { word, stride } => (Some(self.emit_valid(emitter, word, stride)?), 0),
            Null::Never => (None, 0),
        };
        // Modulo 2^64: a place of NULL stands for nothing.
        let low = emitter.params.add("int64_t", Argument::I64((part.low as i64).wrapping_sub(first)));
        let bits = format!("({place} + (uint64_t){low})");
        let code = match self.facts.ty {
            Ty::F64 => format!("__longlong_as_double((int64_t){bits})"),
            Ty::F32 => format!("__int_as_float((int32_t){bits})"),
            Ty::Bool => format!("({bits} != 0)"),
            _ => format!("({})(int64_t){bits}", c_type_of(&self.facts)),
        };
        let facts = Facts { nullable: valid.is_some(), ..self.facts.clone() };
        Ok(emitter.value(facts, &code, valid))
    }

    /// Writes a part of 128 bits, whose upper ones are a word of their own.
    fn emit_wide_key(&self, emitter: &mut Emitter, part: &KeyPart, high: usize) -> Result<Value> {
        let (low, high) = (self.emit_word(emitter, part.word)?, self.emit_word(emitter, high)?);
        let valid = match part.null {
            Null::Apart { word, stride } => Some(self.emit_valid(emitter, word, stride)?),
            _ => None,
        };
        let facts = Facts { nullable: valid.is_some(), ..self.facts.clone() };
        let code = format!("(__int128)((unsigned __int128){high} << 64 | {low})");
        Ok(emitter.value(facts, &code, valid))
    }

    /// Writes whether a part is valid that has this stride of a word for being NULL.
    fn emit_valid(&self, emitter: &mut Emitter, word: usize, stride: u64) -> Result<String> {
        let word = self.emit_word(emitter, word)?;
        let stride = emitter.params.add("uint64_t", Argument::U64(stride));
        Ok(emitter.define("bool", &format!("{word} / {stride} % 2 == 0")))
    }

    fn emit_aggregate(&self, emitter: &mut Emitter, output: &Output) -> Result<Value> {
        let first = self.first_cell;
        let cell = |emitter: &mut Emitter, cell: usize| emitter.emit(&Expr::Reg(first + cell)).map(|value| value.code);
        let c_type_here = c_type_of(&self.facts);
        let mut limits = None;
        let code = match output.read {
            Read::Integer(sum) => format!("({c_type_here})(int64_t){}", cell(emitter, sum)?),
            Read::Float(sum) => format!("({c_type_here}){}", cell(emitter, sum)?),
            Read::Nearest(sum) => format!("({c_type_here})(int64_t){}", cell(emitter, sum)?),
            Read::Wide { low, middle, high, .. } => {
                let (low, high) = (cell(emitter, low)?, cell(emitter, high)?);
                let upper = match middle {
                    Some(middle) => {
                        let middle = cell(emitter, middle)?;
                        format!("((__int128)(int64_t){high} * ((__int128)1 << 32) + (__int128){middle})")
                    }
                    None => format!("(__int128)(int64_t){high}"),
                };
                let whole = format!("{upper} * ((__int128)1 << 32) + (__int128){low}");
                limits = (self.facts.ty != Ty::I128).then(|| c_type(self.facts.ty, false));
                whole
            }
            Read::Image { cell: image, signed, turned, float } => {
                let image = cell(emitter, image)?;
                let image = if turned { format!("~{image}") } else { image };
                match (float, signed) {
                    (true, _) => format!("({c_type_here})wc_of_order((int64_t)({image} ^ 0x8000000000000000ULL))"),
                    (false, true) => format!("({c_type_here})(int64_t)({image} ^ 0x8000000000000000ULL)"),
                    (false, false) => format!("({c_type_here})({image})"),
                }
            }
            Read::Fixed { cell: first, window, infinite } => {
                let limbs =
                    (first..first + window.limbs).map(|limb| cell(emitter, limb)).collect::<Result<Vec<_>>>()?;
                // One more for the carry.
                let list: Vec<String> = limbs.iter().map(|limb| format!("(int64_t){limb}")).collect();
                let (kept, infinite) = (window.limbs + 1, cell(emitter, infinite)?);
                let name = emitter.name();
                emitter.out.push_str(&format!("int64_t {name}[{kept}] = {{{}, 0}};\n", list.join(", ")));
                format!("({c_type_here})wc_fixed_value({name}, {}, {}, {infinite})", window.limbs, window.first)
            }
        };
        let valid = match output.count {
            Some(count) => {
                let count = cell(emitter, count)?;
                Some(emitter.define("bool", &format!("{count} != 0")))
            }
            None => None,
        };
        let facts = Facts { nullable: valid.is_some(), ..self.facts.clone() };
        let code = match limits {
            Some(narrow) => {
                let total = emitter.define("__int128", &code);
                let narrowed = emitter.define(narrow, &format!("({narrow}){total}"));
                emitter.raise(&format!("(__int128){narrowed} != {total}"), &valid, "WC_OVERFLOW");
                narrowed
            }
            None => code,
        };
        Ok(emitter.value(facts, &code, valid))
    }
}
