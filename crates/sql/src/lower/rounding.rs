//! Whole numbers near decimals and floats, and signs.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use warpcube_engine::{BinaryOp, Expr as Device, Literal, Ty, UnaryOp};

use super::Reason;
use super::columns::shown;
use super::expr::{Translator, decimal, rescale};

/// Most digits to which floats are rounded: powers of ten up to this one are floats.
const FLOAT_DIGITS_MAX: i32 = 22;

impl Translator<'_> {
    /// A number rounded to digits that are a constant, halves away from zero.
    pub(super) fn rounded(&self, value: &Expr, digits: Option<&Expr>, expr: &Expr) -> Result<Device, Reason> {
        let refuse = || Err(format!("the expression '{}'", shown(expr)));
        let digits = match digits {
            None => Some(0),
            Some(Expr::Literal(ScalarValue::Int32(digits), _)) => *digits,
            Some(_) => None,
        };
        let input = self.data_type(value)?;
        if let (Some(ty), Some(digits)) = (Ty::of(&input).filter(|ty| ty.is_float()), digits)
            && (0..=FLOAT_DIGITS_MAX).contains(&digits)
            && self.data_type(expr)? == input
        {
            let round = |value| Device::Unary(UnaryOp::Round, Box::new(value));
            let value = self.translate(value)?;
            let power = || Device::Literal(Literal::Float(10f64.powi(digits)), ty);
            let scaled = |op, value| if digits == 0 { value } else { Device::binary(op, value, power()) };
            return Ok(scaled(BinaryOp::Div, round(scaled(BinaryOp::Mul, value))));
        }
        let (from, to) = (decimal(&input), decimal(&self.data_type(expr)?));
        let (Some(digits @ 0..), Some((_, from @ 0..)), Some((_, to))) = (digits, from, to) else { return refuse() };
        let left = i32::from(from).min(digits);
        // Digits that the result has and the rounded value has not are zeros.
        let value = rescale(self.translate(value)?, left as i8 - from);
        if i32::from(to) < left { refuse() } else { Ok(rescale(value, to - left as i8)) }
    }

    /// The whole number below, above or towards zero of a float or a decimal, or the sign of a float.
    pub(super) fn whole(&self, name: &str, value: &Expr, expr: &Expr) -> Result<Device, Reason> {
        let refuse = || Err(format!("the expression '{}'", shown(expr)));
        let (input, output) = (self.data_type(value)?, self.data_type(expr)?);
        if Ty::of(&input).is_some_and(Ty::is_float) && output == input {
            let op = match name {
                "floor" => UnaryOp::Floor,
                "ceil" => UnaryOp::Ceil,
                "trunc" => UnaryOp::Truncate,
                _ => UnaryOp::Sign,
            };
            return self.unary(op, value);
        }
        // Decimals have no digits behind the point any more.
        let (Some((_, scale @ 0..)), Some((_, 0)), true) = (decimal(&input), decimal(&output), name != "signum") else {
            return refuse();
        };
        let value = self.translate(value)?;
        let Some(one) = 10i128.checked_pow(scale.cast_unsigned().into()) else { return refuse() };
        let number = |number| Device::Literal(Literal::Int(number), Ty::I128);
        let fraction = Device::binary(BinaryOp::Rem, value.clone(), number(one));
        let truncated = Device::binary(BinaryOp::Sub, value, fraction.clone());
        let (test, step) = match name {
            "floor" => (BinaryOp::Lt, -one),
            "ceil" => (BinaryOp::Gt, one),
            _ => return Ok(rescale(truncated, -scale)),
        };
        let is_past = Device::binary(test, fraction, number(0));
        let step = Device::Case(vec![(is_past, number(step))], Box::new(number(0)));
        Ok(rescale(Device::binary(BinaryOp::Add, truncated, step), -scale))
    }
}
