//! Scalar functions that are arithmetic: the greatest and the least value, times in other units, buckets of times.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use warpcube_engine::{BinaryOp, Expr as Device, Literal, Ty, UnaryOp};

use super::columns::shown;
use super::expr::{Translator, same};
use super::{Reason, dates};

impl Translator<'_> {
    /// A call as arithmetic.
    pub(super) fn arithmetic(&self, function: &ScalarFunction, expr: &Expr) -> Result<Device, Reason> {
        let refuse = || format!("the expression '{}'", shown(expr));
        let name = function.name();
        match (name, function.args.as_slice()) {
            ("greatest" | "least", [_, ..]) => self.extreme(name == "greatest", &function.args, expr),
            ("epoch_ms" | "epoch_us" | "epoch_ns", [time]) => {
                let unit = match name {
                    "epoch_ms" => TimeUnit::Millisecond,
                    "epoch_us" => TimeUnit::Microsecond,
                    _ => TimeUnit::Nanosecond,
                };
                match self.data_type(time)? {
                    DataType::Timestamp(TimeUnit::Microsecond, _) => dates::of_micros(self.translate(time)?, unit),
                    _ => None,
                }
                .ok_or_else(refuse)
            }
            ("last_day", [date]) => dates::last_day(self.translate(date)?, &self.data_type(date)?).ok_or_else(refuse),
            ("century" | "decade" | "millennium", [time]) => {
                dates::years(name, self.translate(time)?, &self.data_type(time)?).ok_or_else(refuse)
            }
            ("time_bucket", [Expr::Literal(width, _), time]) => {
                dates::bucket(self.translate(time)?, &self.data_type(time)?, width).ok_or_else(refuse)
            }
            ("isnan", [value]) => {
                let ty = Ty::of(&self.data_type(value)?).filter(|ty| ty.is_float()).ok_or_else(refuse)?;
                let nan = Device::Literal(Literal::Float(f64::NAN), ty);
                Ok(Device::binary(BinaryOp::Eq, self.translate(value)?, nan))
            }
            (name, _) => Err(format!("the function '{name}'")),
        }
    }

    /// The greatest or the least of values that are not NULL.
    fn extreme(&self, is_greatest: bool, values: &[Expr], expr: &Expr) -> Result<Device, Reason> {
        let result = self.data_type(expr)?;
        if values.len() > EXTREMES_MAX {
            return Err(format!("'{}' over more than {EXTREMES_MAX} values", shown(expr)));
        }
        let value = |value: &Expr| match same(&self.data_type(value)?, &result) {
            true => self.translate(value),
            false => Err(format!("'{}' over several types", shown(expr))),
        };
        let mut found = values.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        // Each value is written several times: in pairs of pairs it is so less often than in a chain.
        while found.len() > 1 {
            let mut values = found.into_iter();
            let mut halves = Vec::new();
            while let Some(one) = values.next() {
                halves.push(match values.next() {
                    Some(other) => best_of(is_greatest, one, other, Ty::of(&result)),
                    None => one,
                });
            }
            found = halves;
        }
        found.pop().ok_or_else(|| format!("the expression '{}'", shown(expr)))
    }
}

/// Most values whose extreme is an expression of the device.
const EXTREMES_MAX: usize = 8;

/// The greater or the lesser of two values; of one that is NULL the other.
fn best_of(is_greatest: bool, best: Device, value: Device, ty: Option<Ty>) -> Device {
    let test = if is_greatest { BinaryOp::Ge } else { BinaryOp::Le };
    let is_null = Device::Unary(UnaryOp::IsNull, Box::new(value.clone()));
    let is_best = Device::binary(test, best.clone(), value.clone());
    let mut branches = vec![(Device::binary(BinaryOp::Or, is_null, is_best), best.clone())];
    if let Some(ty) = ty.filter(|ty| ty.is_float()) {
        // Of zeros of both signs that without one is the greater.
        let zero = || Device::Literal(Literal::Float(0.0), ty);
        let [one, other] = [&best, &value].map(|side| Device::binary(BinaryOp::Eq, side.clone(), zero()));
        let negative = |side: Device| Device::Unary(UnaryOp::Negate, Box::new(side));
        let sum = match is_greatest {
            true => Device::binary(BinaryOp::Add, best, value.clone()),
            false => negative(Device::binary(BinaryOp::Add, negative(best), negative(value.clone()))),
        };
        branches.insert(0, (Device::binary(BinaryOp::And, one, other), sum));
    }
    Device::Case(branches, Box::new(value))
}
