//! Arithmetic of integers and decimals: what its results are bounded by, and what raises.
//!
//! Bounds of the operands prove that most results fit their type; those cost what a processor's operation costs. Others
//! are compared with the type's limits and raise, or wrap where the fragment says so ([`Overflow`]). Operations are
//! written unsigned: a NULL, a row on another branch or a slot without a row may hold anything.

use crate::codegen::expr::{Emitter, Value, c_type, fits_i64};
use crate::codegen::interval::interval;
use crate::error::{EngineError, Result, unsupported};
use crate::ir::{BinaryOp, Overflow, Ty};

/// The largest decimal of 38 digits.
const DECIMAL_MAX: i128 = 10i128.pow(38) - 1;

impl Emitter<'_> {
    /// The sum, difference, product, quotient or remainder of two integers or decimals of one type.
    pub(super) fn integer_arithmetic(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<Value> {
        let valid = self.both_valid(left, right);
        let ty = left.ty;
        let exact = interval(op, left.bounds(), right.bounds());
        let limits = ty.bounds().expect("integers have bounds");
        let inside = exact.is_some_and(|(low, high)| low >= limits.0 && high <= limits.1);
        if ty == Ty::I128 && !inside {
            return unsupported("a decimal result that may exceed 128 bits");
        }
        let is_decimal = |(low, high): (i128, i128)| low >= -DECIMAL_MAX && high <= DECIMAL_MAX;
        let adds = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        if ty == Ty::I128 && adds && self.overflow == Overflow::Raise && !exact.is_some_and(is_decimal) {
            return unsupported("a decimal result that may exceed 38 digits");
        }
        let range = if inside { exact } else { Some(limits) };
        if matches!(op, BinaryOp::Div | BinaryOp::Rem) {
            return self.integer_division(op, left, right, valid, range);
        }
        let operator = match op {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            other => return Err(EngineError::Malformed(format!("{other:?} of integers"))),
        };
        if !inside && self.overflow == Overflow::Raise {
            return Ok(self.checked(operator, left, right, valid, exact));
        }
        let result_type = c_type(ty, ty == Ty::I128 && fits_i64(range));
        // Unsigned arithmetic wraps by definition; 16-bit factors are widened first, or their product would overflow
        // int.
        let wide = match ty {
            Ty::I128 if fits_i64(range) && left.narrow && right.narrow => "uint64_t",
            Ty::I128 => "unsigned __int128",
            Ty::I64 | Ty::U64 => "uint64_t",
            _ => "uint32_t",
        };
        let code = format!("({result_type})(({wide}){} {operator} ({wide}){})", left.code, right.code);
        Ok(self.value(ty, &code, valid, range))
    }

    /// Arithmetic of integers that may leave their type: what does raises. `exact` bounds the exact result.
    fn checked(
        &mut self,
        operator: &str,
        left: &Value,
        right: &Value,
        valid: Option<String>,
        exact: Option<(i128, i128)>,
    ) -> Value {
        let (ty, a, b) = (left.ty, left.code.as_str(), right.code.as_str());
        let limits = ty.bounds().expect("integers have bounds");
        let (low, high) = exact.unwrap_or((i128::MIN, i128::MAX));
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
        let range = Some((low.clamp(limits.0, limits.1), high.clamp(limits.0, limits.1)));
        self.value(ty, &format!("({}){result}", c_type(ty, false)), valid, range)
    }

    fn integer_division(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
        valid: Option<String>,
        range: Option<(i128, i128)>,
    ) -> Result<Value> {
        if left.ty == Ty::I128 && left.bounds().is_none_or(|(low, _)| low == i128::MIN) {
            return unsupported("a division of decimals that may be the smallest of 128 bits");
        }
        let zero_inside = right.bounds().is_none_or(|(low, high)| low <= 0 && high >= 0);
        if zero_inside {
            self.raise(&format!("{} == 0", right.code), &valid, "WC_DIVIDE_BY_ZERO");
        }
        // Bounds speak of valid values of rows that get here: a NULL, a row on another branch or a slot without a row
        // may divide anything.
        let limits = left.ty.bounds().expect("integers have bounds");
        let at_minimum = limits.0 < 0
            && left.bounds().is_none_or(|(low, _)| low == limits.0)
            && right.bounds().is_none_or(|(low, high)| low <= -1 && high >= -1);
        let mut unsafe_divisor = format!("{} == 0", right.code);
        let result_type = c_type(left.ty, left.ty == Ty::I128 && fits_i64(range));
        let same_width = left.c_type() == result_type;
        if limits.0 < 0 && left.c_type() != "__int128" && same_width {
            let minimum = format!("({})((uint64_t)1 << {})", left.c_type(), bits(left.ty) - 1);
            let overflows = format!("{} == -1 && {} == {minimum}", right.code, left.code);
            // The remainder is zero.
            if at_minimum && op == BinaryOp::Div {
                self.raise(&overflows, &valid, "WC_OVERFLOW");
            }
            unsafe_divisor = format!("{unsafe_divisor} || ({overflows})");
        }
        let operator = if op == BinaryOp::Div { "/" } else { "%" };
        let wide = if same_width { "" } else { "(__int128)" };
        let quotient = format!("{wide}{} {operator} {}", left.code, right.code);
        let code = format!("({unsafe_divisor}) ? ({result_type})0 : ({result_type})({quotient})");
        Ok(self.value(left.ty, &code, valid, range))
    }
}

fn bits(ty: Ty) -> u32 {
    match ty {
        Ty::I8 | Ty::U8 => 8,
        Ty::I16 | Ty::U16 => 16,
        Ty::I32 | Ty::U32 => 32,
        _ => 64,
    }
}
