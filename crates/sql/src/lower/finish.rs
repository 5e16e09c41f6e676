//! Outputs of an aggregation, or of windows, as made of what the device adds up.

use warpcube_engine::{BinaryOp, Expr as Device, Literal, Ty, UnaryOp};

use super::Reason;
use crate::mend::variances::Spread;

/// How an output column is made of groups and aggregates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finish {
    /// A group column; of rows any column.
    Group(usize),
    /// An aggregate as it is.
    Aggregate(usize),
    /// A sum over a count, as a double.
    Average { sum: usize, count: usize },
    /// A decimal sum over a count, with more digits after the point.
    DecimalAverage { sum: usize, count: usize, more_digits: u32 },
    /// A variance, or its root, from exact sums of integers and of their squares.
    Variance { sum: usize, squares: usize, count: usize, spread: Spread },
    /// The same of doubles, with their extremes.
    FloatVariance { sum: usize, squares: usize, count: usize, extremes: (usize, usize), spread: Spread },
}

impl Finish {
    /// The output as an expression over the registers of a pipeline that scans the groups, of which there are `groups`
    /// expressions.
    ///
    /// # Errors
    /// What only the host computes.
    pub(crate) fn over_registers(&self, groups: usize) -> Result<Device, Reason> {
        let aggregate = |index: usize| Box::new(Device::Reg(groups + index));
        Ok(match self {
            Finish::Group(index) => Device::Reg(*index),
            Finish::Aggregate(index) => Device::Reg(groups + index),
            Finish::Average { sum, count } => {
                let count = Device::Cast(aggregate(*count), Ty::F64);
                Device::Binary(BinaryOp::Div, aggregate(*sum), Box::new(count))
            }
            Finish::DecimalAverage { sum, count, more_digits } => {
                let digits = i8::try_from(*more_digits).map_err(|_| "an average of many digits")?;
                let count = Device::Cast(aggregate(*count), Ty::I128);
                Device::binary(BinaryOp::Div, Device::Rescale(aggregate(*sum), digits), count)
            }
            Finish::Variance { sum, squares, count, spread } => {
                variance([sum, squares, count].map(|index| Device::Reg(groups + index)), *spread)
            }
            Finish::FloatVariance { .. } => return Err("a variance of floats that another operator reads".into()),
        })
    }
}

/// A variance or its root from exact sums of values and of their squares and a count, as
/// [`crate::mend::variances::variance`] has it.
fn variance([sum, squares, count]: [Device; 3], spread: Spread) -> Device {
    let float = |value| Device::Cast(Box::new(value), Ty::F64);
    let least = Device::Literal(Literal::Int(spread.sample.into()), Ty::I64);
    let divisor = Device::binary(BinaryOp::Sub, count.clone(), least.clone());
    let units = Device::Literal(Literal::Float(10f64.powi(2 * i32::from(spread.scale))), Ty::F64);
    let divisor = Device::binary(BinaryOp::Mul, float(count.clone()), float(divisor));
    let divisor = Device::binary(BinaryOp::Mul, divisor, units);
    let has_rows = Device::binary(BinaryOp::Gt, count.clone(), least);
    let value = Device::binary(BinaryOp::Div, Device::Deviations(Box::new([sum, squares, count])), divisor);
    let value = if spread.root { Device::Unary(UnaryOp::Root, Box::new(value)) } else { value };
    Device::Case(vec![(has_rows, value)], Box::new(Device::Literal(Literal::Null, Ty::F64)))
}
