//! Statistics of pairs: sums of both values, of their squares and of their products, over rows where neither is NULL.

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use warpcube_engine::{AggregateKind, BinaryOp, Expr as Device, Literal, Ty, UnaryOp};

use super::Reason;
use super::columns::data_type as type_of;
use super::expr::Translator;
use super::finish::Finish;
use crate::mend::cast_functions::CastFunction;
use crate::mend::exact_sums::DIGITS_MAX;
use crate::mend::moments::Statistic;
use crate::values::FloatSums;

/// How many aggregates a statistic of integers and decimals takes: the count and five sums.
pub(super) const EXACT_PARTS: usize = 6;
/// How many one of floats takes: extremes of both, too.
pub(super) const FLOAT_PARTS: usize = 10;

/// Translates a call; `add` adds an aggregate and gives its number.
pub(super) fn translate(
    statistic: Statistic,
    [one, other]: [&Expr; 2],
    translator: &Translator,
    float_sums: FloatSums,
    add: &mut dyn FnMut(AggregateKind, Option<Device>, &DataType) -> usize,
) -> Result<Finish, Reason> {
    let (values, scales) = match (exact(one, translator)?, exact(other, translator)?) {
        (Some((one, scale)), Some((other, scale_of_other))) => ([one, other], Some([scale, scale_of_other])),
        _ if float_sums == FloatSums::Exact => {
            return Err("moments of floats while warpcube.float_sums is 'exact', which is for sums and averages".into());
        }
        _ => ([translator.translate(one)?, translator.translate(other)?], None),
    };
    let (ty, data_type) = match scales {
        Some(_) => (Ty::I128, DataType::Decimal128(38, 0)),
        None => (Ty::F64, DataType::Float64),
    };
    let beside = |value: &Device, other: &Device| {
        let is_there = Device::Unary(UnaryOp::IsNotNull, Box::new(other.clone()));
        Device::Case(vec![(is_there, value.clone())], Box::new(Device::Literal(Literal::Null, ty)))
    };
    let pair = [beside(&values[0], &values[1]), beside(&values[1], &values[0])];
    let product = |one: &Device, other: &Device| Device::binary(BinaryOp::Mul, one.clone(), other.clone());
    let first = add(AggregateKind::Count, Some(pair[0].clone()), &DataType::Int64);
    let [one, other] = &pair;
    let products = [product(one, one), product(other, other), product(&values[0], &values[1])];
    for sum in pair.iter().cloned().chain(products) {
        add(AggregateKind::Sum, Some(sum), &data_type);
    }
    if scales.is_none() {
        for value in &pair {
            add(AggregateKind::Min, Some(value.clone()), &data_type);
            add(AggregateKind::Max, Some(value.clone()), &data_type);
        }
    }
    Ok(Finish::Pairs { first, scales, statistic })
}

/// The argument of a variance, or of a statistic of pairs, before it was made a double: an integer or a decimal, with
/// its digits after the point; `None` if it is a double of its own.
///
/// Sums of squares of doubles lose what they are taken for where values lie far from zero, those of integers do not.
pub(super) fn exact(argument: &Expr, translator: &Translator) -> Result<Option<(Device, i8)>, Reason> {
    let inner = CastFunction::as_double(argument).unwrap_or(argument);
    match type_of(inner)? {
        DataType::Decimal128(precision, _) if precision > DIGITS_MAX => {
            Err(format!("squares of decimals of more than {DIGITS_MAX} digits"))
        }
        DataType::Decimal128(_, scale) => Ok(Some((translator.translate(inner)?, scale))),
        data_type if data_type.is_integer() => {
            Ok(Some((Device::Cast(Box::new(translator.translate(inner)?), Ty::I128), 0)))
        }
        _ if type_of(argument)? == DataType::Float64 => Ok(None),
        data_type => Err(format!("squares of type {data_type}")),
    }
}
