//! Arithmetic of floats in kernel source.

use crate::codegen::expr::{Emitter, Value};
use crate::error::Result;
use crate::facts::{self, Facts};
use crate::ir::{BinaryOp, Expr, Ty};

/// The largest power of ten that is a double.
const POWER_MAX: i8 = 22;

impl Emitter<'_> {
    /// The sum, difference, product, quotient or remainder of two floats of one type.
    pub(super) fn float_arithmetic(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<Value> {
        let facts = facts::float_arithmetic(op, left, right)?;
        let valid = self.both_valid(left, right);
        let code = match op {
            BinaryOp::Add => format!("{} + {}", left.code, right.code),
            BinaryOp::Sub => format!("{} - {}", left.code, right.code),
            BinaryOp::Mul => format!("{} * {}", left.code, right.code),
            BinaryOp::Div => format!("{} / {}", left.code, right.code),
            _ => format!("({})fmod({}, {})", left.c_type(), left.code, right.code),
        };
        Ok(self.value(facts, &code, valid))
    }

    /// A decimal as the double nearest to it: a quotient of doubles where bounds prove that its dividend is one.
    pub(super) fn nearest_double(&mut self, value: &Value, scale: i8) -> Result<Value> {
        let power = facts::rescale_factor(scale)?;
        let is_double = |number: i128| number.unsigned_abs() >> f64::MANTISSA_DIGITS == 0;
        let fits = value.bounds().is_some_and(|(low, high)| is_double(low) && is_double(high));
        let code = match fits && scale <= POWER_MAX {
            true => format!("(double){} / {:?}", value.code, power as f64),
            false => format!("wc_nearest_double({}, {}ULL, {}ULL)", value.code, power >> 64, power as u64),
        };
        Ok(self.value(Facts::new(Ty::F64, value.nullable, None), &code, value.valid.clone()))
    }

    /// The sum of squared deviations from a mean, of two sums and a count.
    pub(super) fn deviations(&mut self, sums: &[Expr; 3]) -> Result<Value> {
        let [sum, squares, count] = sums;
        let [sum, squares, count] = [self.emit(sum)?, self.emit(squares)?, self.emit(count)?];
        let facts = facts::deviations([&sum, &squares, &count].map(|value| (**value).clone()))?;
        let code = format!("wc_deviations({}, {}, {})", sum.code, squares.code, count.code);
        let both = self.both_valid(&sum, &squares);
        let valid = self.both_valid(&Value::new((*sum).clone(), sum.code, both), &count);
        Ok(self.value(facts, &code, valid))
    }
}
