//! Arithmetic of floats in kernel source.

use crate::codegen::expr::{Emitter, Value};
use crate::error::Result;
use crate::facts;
use crate::ir::{BinaryOp, Expr};

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
