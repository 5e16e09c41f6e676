//! Arithmetic of integers and decimals in kernel source.
//!
//! Where the operands' bounds prove that a result fits its type ([`crate::facts`]), it costs what a processor's
//! operation costs. Other results are compared with the type's limits and raise, or wrap where the fragment says so.
//! Operations are written unsigned: a NULL, a row on another branch or a slot without a row may hold anything.

use std::fmt::Write as _;

use crate::codegen::expr::{Emitter, Value, are_narrow, c_type, c_type_of};
use crate::error::Result;
use crate::facts::{Arithmetic, DECIMAL_MAX, absolute, divides_in_place, integer_arithmetic, wide_quotient};
use crate::ir::{BinaryOp, Expr, Literal, Ty};

impl Emitter<'_> {
    /// The sum, difference, product, quotient or remainder of two integers or decimals of one type.
    pub(super) fn integer_arithmetic(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<Value> {
        let known = integer_arithmetic(op, left, right, self.overflow)?;
        let valid = self.both_valid(left, right);
        let operator = match op {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            op => return Ok(self.integer_division(op, left, right, valid, known)),
        };
        if known.raises.overflow {
            return match left.ty {
                Ty::I128 => self.checked_decimal(operator, left, right, valid, known),
                _ => Ok(self.checked(operator, left, right, valid, known)),
            };
        }
        let result_type = c_type_of(&known.facts);
        // Unsigned arithmetic wraps by definition; 16-bit factors are widened first, or their product would overflow
        // int.
        let wide = match left.ty {
            Ty::I128 if are_narrow(left, right, known.facts.range) => "uint64_t",
            Ty::I128 => "unsigned __int128",
            Ty::I64 | Ty::U64 => "uint64_t",
            _ => "uint32_t",
        };
        let code = format!("({result_type})(({wide}){} {operator} ({wide}){})", left.code, right.code);
        Ok(self.value(known.facts, &code, valid))
    }

    /// Arithmetic of integers that may leave their type: what does raises.
    fn checked(
        &mut self,
        operator: &str,
        left: &Value,
        right: &Value,
        valid: Option<String>,
        known: Arithmetic,
    ) -> Value {
        let (ty, a, b) = (left.ty, left.code.as_str(), right.code.as_str());
        let limits = ty.bounds().expect("integers have bounds");
        let (low, high) = known.exact.unwrap_or((i128::MIN, i128::MAX));
        let (result, test) = if bits(ty) == 64 {
            let c_type = c_type(ty, false);
            let result = self.define(c_type, &format!("({c_type})((uint64_t){a} {operator} (uint64_t){b})"));
            let test = match (operator, limits.0 < 0) {
                // A sum has another sign than both operands, a difference than its first one.
                ("+", true) => format!("(({a} ^ {result}) & ({b} ^ {result})) < 0"),
                ("-", true) => format!("(({a} ^ {b}) & ({a} ^ {result})) < 0"),
                ("+", false) => format!("{result} < {a}"),
                ("-", false) => format!("{a} < {b}"),
                (_, true) => format!("(__int128){a} * {b} != (__int128){result}"),
                (_, false) => format!("(unsigned __int128){a} * {b} != (unsigned __int128){result}"),
            };
            (result, test)
        } else {
            // 64 bits hold every result; products of unsigned operands may need all of them.
            let (wide, mark) = if high > i64::MAX.into() { ("uint64_t", "ULL") } else { ("int64_t", "LL") };
            let code = format!("({wide})((uint64_t)(int64_t){a} {operator} (uint64_t)(int64_t){b})");
            let result = self.define(wide, &code);
            let below = (low < limits.0).then(|| format!("{result} < {}{mark}", limits.0));
            let above = (high > limits.1).then(|| format!("{result} > {}{mark}", limits.1));
            let tests: Vec<String> = below.into_iter().chain(above).collect();
            (result, tests.join(" || "))
        };
        self.raise(&test, &valid, "WC_OVERFLOW");
        self.value(known.facts, &format!("({}){result}", c_type(ty, false)), valid)
    }

    /// Arithmetic of decimals that may leave 38 digits: what does raises.
    fn checked_decimal(
        &mut self,
        operator: &str,
        left: &Value,
        right: &Value,
        valid: Option<String>,
        known: Arithmetic,
    ) -> Result<Value> {
        let (a, b) = (left.code.as_str(), right.code.as_str());
        let most = self.literal(Literal::Int(DECIMAL_MAX), Ty::I128)?.code;
        if operator == "*" {
            let factor = format!("{b} < 0 ? (__int128)(0 - (unsigned __int128){b}) : (__int128){b}");
            let magnitude = format!("wc_quotient({a}, {factor}, 1)");
            let magnitude = self.define("unsigned __int128", &magnitude);
            self.raise(&format!("{magnitude} > (unsigned __int128){most}"), &valid, "WC_OVERFLOW");
            let code = format!("({a} < 0) != ({b} < 0) ? (__int128)(0 - {magnitude}) : (__int128){magnitude}");
            return Ok(self.value(known.facts, &code, valid));
        }
        let code = format!("(__int128)((unsigned __int128){a} {operator} (unsigned __int128){b})");
        let result = self.define("__int128", &code);
        let mut test = format!("{result} > {most} || {result} < -{most}");
        if known.exact.is_none() {
            // A sum that left 128 bits has another sign than both operands, a difference than its first one.
            let other = if operator == "+" { result.as_str() } else { a };
            let _ = write!(test, " || ((((__int128){a} ^ {result}) & ((__int128){b} ^ {other})) < 0)");
        }
        self.raise(&test, &valid, "WC_OVERFLOW");
        Ok(self.value(known.facts, &result, valid))
    }

    /// A decimal times a power of ten over another, in 256 bits.
    pub(super) fn wide_quotient(&mut self, operands: &[Expr; 2], power: u8) -> Result<Value> {
        let [dividend, divisor] = operands;
        let (dividend, divisor) = (self.emit(dividend)?, self.emit(divisor)?);
        let facts = wide_quotient(&dividend, &divisor, power)?;
        let valid = self.both_valid(&dividend, &divisor);
        self.raise(&format!("{} == 0", divisor.code), &valid, "WC_DIVIDE_BY_ZERO");
        let factor = self.literal(Literal::Int(10i128.pow(power.into())), Ty::I128)?.code;
        let most = self.literal(Literal::Int(DECIMAL_MAX), Ty::I128)?.code;
        let quotient = format!("wc_quotient({}, {factor}, {})", dividend.code, divisor.code);
        let quotient = self.define("unsigned __int128", &quotient);
        self.raise(&format!("{quotient} > (unsigned __int128){most}"), &valid, "WC_OVERFLOW");
        let code =
            format!("({} < 0) != ({} < 0) ? -(__int128){quotient} : (__int128){quotient}", dividend.code, divisor.code);
        Ok(self.value(facts, &code, valid))
    }

    /// The magnitude of an integer or a decimal.
    pub(super) fn absolute(&mut self, value: Value) -> Result<Value> {
        let (facts, raises) = absolute(&value)?;
        if value.bounds().is_some_and(|(low, _)| low >= 0) {
            return Ok(value);
        }
        let valid = value.valid.clone();
        if raises {
            let smallest = smallest(&value);
            self.raise(&format!("{} == {smallest}", value.code), &valid, "WC_OVERFLOW");
        }
        // Unsigned, as above: the magnitude of the smallest integer of 64 bits may be a decimal of more.
        let wide = match value.ty {
            Ty::I128 if facts.is_wide() => "unsigned __int128",
            Ty::I128 | Ty::I64 => "uint64_t",
            _ => "uint32_t",
        };
        let code = format!("({})({1} < 0 ? 0 - ({wide}){1} : ({wide}){1})", c_type_of(&facts), value.code);
        Ok(self.value(facts, &code, valid))
    }

    fn integer_division(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        valid: Option<String>,
        known: Arithmetic,
    ) -> Value {
        if known.raises.zero_divisor {
            self.raise(&format!("{} == 0", right.code), &valid, "WC_DIVIDE_BY_ZERO");
        }
        // Bounds speak of valid values of rows that get here: a NULL, a row on another branch or a slot without a row
        // may divide anything.
        let mut unsafe_divisor = format!("{} == 0", right.code);
        let result_type = c_type_of(&known.facts);
        if divides_in_place(left, known.facts.range) {
            let overflows = format!("{} == -1 && {} == {}", right.code, left.code, smallest(left));
            if known.raises.quotient_overflow {
                self.raise(&overflows, &valid, "WC_OVERFLOW");
            }
            unsafe_divisor = format!("{unsafe_divisor} || ({overflows})");
        }
        let operator = if op == BinaryOp::Div { "/" } else { "%" };
        let wide = if left.is_wide() == known.facts.is_wide() { "" } else { "(__int128)" };
        let quotient = format!("{wide}{} {operator} {}", left.code, right.code);
        let code = format!("({unsafe_divisor}) ? ({result_type})0 : ({result_type})({quotient})");
        self.value(known.facts, &code, valid)
    }
}

/// The smallest integer of a signed type of at most 64 bits.
fn smallest(value: &Value) -> String {
    format!("({})((uint64_t)1 << {})", value.c_type(), bits(value.ty) - 1)
}

fn bits(ty: Ty) -> u32 {
    match ty {
        Ty::I8 | Ty::U8 => 8,
        Ty::I16 | Ty::U16 => 16,
        Ty::I32 | Ty::U32 => 32,
        _ => 64,
    }
}
