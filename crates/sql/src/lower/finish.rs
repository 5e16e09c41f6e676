//! Outputs of an aggregation, or of windows, as made of what the device adds up.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use warpcube_engine::{BinaryOp, Expr as Device, Literal, Ty, UnaryOp};

use super::Reason;
use crate::mend::moments::Statistic;
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
    /// A median, or with a share a percentile: between two values of a type, of so many that are not NULL.
    Between { low: usize, high: usize, count: usize, share: Option<f64>, from: DataType },
    /// A variance, or its root, from exact sums of integers and of their squares.
    Variance { sum: usize, squares: usize, count: usize, spread: Spread },
    /// The same of doubles, with their extremes.
    FloatVariance { sum: usize, squares: usize, count: usize, extremes: (usize, usize), spread: Spread },
    /// A statistic of pairs, from aggregates one behind the other: count, sums of both, of their squares and of their
    /// products; of floats, which have no digits after the point here, their extremes too.
    Pairs { first: usize, scales: Option<[i8; 2]>, statistic: Statistic },
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
                rounded(Device::Rescale(aggregate(*sum), digits), count)
            }
            Finish::Between { low, high, count, share, from } => {
                between([low, high, count].map(|index| Device::Reg(groups + index)), *share, from)?
            }
            Finish::Variance { sum, squares, count, spread } => {
                variance([sum, squares, count].map(|index| Device::Reg(groups + index)), *spread)
            }
            Finish::Pairs { .. } => return Err("a statistic of pairs that another operator reads".into()),
            Finish::FloatVariance { .. } => return Err("a variance of floats that another operator reads".into()),
        })
    }
}

/// A quotient of integers by a count, halves away from zero.
fn rounded(dividend: Device, count: Device) -> Device {
    let number = |number| Device::Literal(Literal::Int(number), Ty::I128);
    let half = Device::binary(BinaryOp::Div, count.clone(), number(2));
    let is_negative = Device::binary(BinaryOp::Lt, dividend.clone(), number(0));
    let back = Device::binary(BinaryOp::Sub, number(0), half.clone());
    let step = Device::Case(vec![(is_negative, back)], Box::new(half));
    Device::binary(BinaryOp::Div, Device::binary(BinaryOp::Add, dividend, step), count)
}

/// The mean of two values where their number is even, or the value at a share of the way through all of them, as
/// [`crate::mend::quantiles`] has both.
fn between([low, high, count]: [Device; 3], share: Option<f64>, from: &DataType) -> Result<Device, Reason> {
    let ty = match (share, from) {
        (None, DataType::Float32) => Ty::F32,
        _ => Ty::F64,
    };
    let number = |value| Device::Literal(Literal::Float(value), ty);
    let float = |value: Device| match from {
        DataType::Decimal128(_, scale) => Device::DecimalToFloat(Box::new(value), *scale),
        _ if Ty::of(from) == Some(ty) => value,
        _ => Device::Cast(Box::new(value), ty),
    };
    Ok(match (share, from) {
        (None, DataType::Decimal128(precision, _)) if *precision < DECIMAL128_MAX_PRECISION => {
            // Half of the sum with one digit more.
            let sum = Device::binary(BinaryOp::Add, low, high);
            Device::binary(BinaryOp::Mul, sum, Device::Literal(Literal::Int(5), Ty::I128))
        }
        (None, DataType::Decimal128(_, _) | DataType::Decimal256(_, _)) => return Err(format!("a median of {from}")),
        (None, _) => {
            let integer = |value| Device::Literal(Literal::Int(value), Ty::I64);
            let rest = Device::binary(BinaryOp::Rem, count, integer(2));
            let is_even = Device::binary(BinaryOp::Eq, rest, integer(0));
            let sum = Device::binary(BinaryOp::Add, float(low.clone()), float(high));
            let mean = Device::binary(BinaryOp::Div, sum, number(2.0));
            Device::Case(vec![(is_even, mean)], Box::new(float(low)))
        }
        (Some(share), _) => {
            let (low, high) = (float(low), float(high));
            let last = Device::binary(BinaryOp::Sub, Device::Cast(Box::new(count), ty), number(1.0));
            let place = Device::binary(BinaryOp::Mul, number(share), last);
            let below = Device::Unary(UnaryOp::Floor, Box::new(place.clone()));
            let weight = Device::binary(BinaryOp::Sub, place, below);
            let is_between = Device::binary(
                BinaryOp::And,
                Device::binary(BinaryOp::Gt, weight.clone(), number(0.0)),
                Device::binary(BinaryOp::Ne, high.clone(), low.clone()),
            );
            let way = Device::binary(BinaryOp::Mul, Device::binary(BinaryOp::Sub, high, low.clone()), weight);
            let value = Device::binary(BinaryOp::Add, low.clone(), way);
            let value = Device::Case(vec![(is_between, value)], Box::new(low));
            match from {
                DataType::Float32 => Device::Cast(Box::new(value), Ty::F32),
                _ => value,
            }
        }
    })
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
