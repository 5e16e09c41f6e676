//! Aggregations: what DataFusion calls by name becomes sums, counts and extremes; averages are expressions over those,
//! for all that read them, variances a last step on the host.

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::AggregateFunction;
use warpcube_engine::{AggregateCall, AggregateKind, BinaryOp, Expr as Device, Sink, Ty};

use super::Reason;
use super::calls::as_function;
use super::columns::data_type as type_of;
use super::distinct::{OverValues, is_distinct};
use super::expr::Translator;
use super::finish::Finish;
use super::graph::{Grouped, Input};
use super::order_statistics::Places;
use super::pairs::{self, EXACT_PARTS, FLOAT_PARTS, exact};
use crate::mend::float_sums::is_exact;
use crate::mend::moments::Statistic;
use crate::mend::variances::Spread;
use crate::values::FloatSums;

/// What an input of an aggregation ends in.
pub(crate) struct Ends {
    /// Its groups; of distinct values by the value too, which is the last key.
    pub(crate) sink: Sink,
    /// How each output is made from groups and aggregates.
    pub(crate) finish: Vec<Finish>,
    /// What is aggregated of groups by a value.
    pub(super) over: Option<OverValues>,
}

impl Grouped {
    /// What an input ends in.
    pub(crate) fn ends(&self, input: &Input, translator: &Translator) -> Result<Ends, Reason> {
        let (group_types, call_types) = self.types.split_at(self.group_count);
        let mut groups = Vec::with_capacity(self.group_count);
        for (group, data_type) in input.groups.iter().zip(group_types) {
            groups.push((translator.translate(group)?, data_type.clone()));
        }
        let mut finish: Vec<Finish> = (0..self.group_count).map(Finish::Group).collect();
        let (mut calls, mut aggregates, mut over) = (Vec::new(), Vec::new(), OverValues::default());
        for (call, data_type) in input.calls.iter().zip(call_types) {
            let function = as_function(call)?;
            let known = calls.len();
            finish.push(translate_call(function, data_type, translator, self.float_sums, &mut calls)?);
            for call in &calls[known..] {
                let place = (!is_distinct(function)).then_some(aggregates.len());
                aggregates.extend(place.map(|_| call.clone()));
                over.calls.push((call.clone(), place));
            }
        }
        let over = match &input.value {
            None => None,
            Some(value) => {
                groups.push((translator.translate(value)?, type_of(value)?));
                Some(over)
            }
        };
        Ok(Ends { sink: Sink::Aggregate { groups, aggregates }, finish, over })
    }
}

impl Input {
    /// The expressions that its sink reads.
    pub(crate) fn reads(&self) -> Result<Vec<Expr>, Reason> {
        let mut reads: Vec<Expr> = self.groups.iter().chain(&self.value).cloned().collect();
        for call in &self.calls {
            let function = as_function(call)?;
            reads.extend(function.params.args.iter().cloned());
            reads.extend(function.params.filter.iter().map(|filter| filter.as_ref().clone()));
        }
        Ok(reads)
    }
}

/// The columns of a result of which `types` are made: expressions over the groups and aggregates of `sink`, where any
/// output is one. Of a variance those that the host needs come, one behind the other.
pub(super) fn result(finish: &[Finish], types: &[DataType], sink: &Sink) -> Result<Vec<(Device, DataType)>, Reason> {
    let is_computed =
        |step: &Finish| matches!(step, Finish::Average { .. } | Finish::DecimalAverage { .. } | Finish::Between { .. });
    let Sink::Aggregate { groups, aggregates } = sink else { return Ok(Vec::new()) };
    if !finish.iter().any(is_computed) {
        return Ok(Vec::new());
    }
    let mut columns = Vec::new();
    let part = |index: &usize| (Device::Reg(groups.len() + index), aggregates[*index].data_type.clone());
    for (step, data_type) in finish.iter().zip(types) {
        match step {
            Finish::Variance { sum, squares, count, .. } => columns.extend([sum, squares, count].map(part)),
            Finish::FloatVariance { sum, squares, count, extremes: (low, high), .. } => {
                columns.extend([sum, squares, low, high, count].map(part));
            }
            Finish::Pairs { first, scales, .. } => {
                let parts = if scales.is_some() { EXACT_PARTS } else { FLOAT_PARTS };
                columns.extend((*first..first + parts).map(|index| part(&index)));
            }
            step => columns.push((step.over_registers(groups.len())?, data_type.clone())),
        }
    }
    Ok(columns)
}

fn translate_call(
    function: &AggregateFunction,
    data_type: &DataType,
    translator: &Translator,
    float_sums: FloatSums,
    aggregates: &mut Vec<AggregateCall>,
) -> Result<Finish, Reason> {
    let params = &function.params;
    let name = function.func.name();
    if !params.order_by.is_empty() || params.null_treatment.is_some() {
        return Err(format!("an ordered {name}"));
    }
    let filter = params.filter.as_ref().map(|filter| translator.translate(filter)).transpose()?;
    let statistic = Statistic::of_pairs(&function.func);
    let argument = match params.args.as_slice() {
        [argument] => argument,
        [argument, ..] if matches!(name, "median" | "percentile_cont") || statistic.is_some() => argument,
        arguments => return Err(format!("{name} of {} values", arguments.len())),
    };
    let mut add = |kind, argument: Option<_>, data_type: &DataType| {
        aggregates.push(AggregateCall {
            kind,
            argument,
            filter: filter.clone(),
            data_type: data_type.clone(),
            unites: false,
        });
        aggregates.len() - 1
    };
    if let (Some(statistic), [one, other]) = (statistic, params.args.as_slice()) {
        return pairs::translate(statistic, [one, other], translator, float_sums, &mut add);
    }
    let sum_of_floats = if is_exact(&function.func) { AggregateKind::ExactSum } else { AggregateKind::Sum };
    let is_constant = matches!(argument, Expr::Literal(value, _) if !value.is_null());
    match name {
        "count" if is_constant => Ok(Finish::Aggregate(add(AggregateKind::Count, None, data_type))),
        "count" => {
            let argument = translator.translate(argument)?;
            Ok(Finish::Aggregate(add(AggregateKind::Count, Some(argument), data_type)))
        }
        "sum" | "min" | "max" | "bool_and" | "bool_or" => {
            let kind = match name {
                "sum" => sum_of_floats,
                "min" | "bool_and" => AggregateKind::Min,
                _ => AggregateKind::Max,
            };
            // Extremes of decimals of 256 bits need cells of as many; their sums raise where they need them.
            let is_wide = matches!(data_type, DataType::Decimal256(_, _)) && name != "sum";
            Ty::of(data_type).filter(|_| !is_wide).ok_or_else(|| format!("{name} of type {data_type}"))?;
            let argument = translator.translate(argument)?;
            Ok(Finish::Aggregate(add(kind, Some(argument), data_type)))
        }
        "avg" => {
            let input = type_of(argument)?;
            let value = translator.translate(argument)?;
            match (&input, data_type) {
                (DataType::Float64, DataType::Float64) => {
                    let sum = add(sum_of_floats, Some(value.clone()), &DataType::Float64);
                    let count = add(AggregateKind::Count, Some(value), &DataType::Int64);
                    Ok(Finish::Average { sum, count })
                }
                (DataType::Decimal128(precision, from), DataType::Decimal128(_, to)) if *precision <= 25 => {
                    let sum_type = DataType::Decimal128(38, *from);
                    let sum = add(AggregateKind::Sum, Some(value.clone()), &sum_type);
                    let count = add(AggregateKind::Count, Some(value), &DataType::Int64);
                    let more_digits = u32::try_from(to - from).map_err(|_| "an average of fewer digits")?;
                    Ok(Finish::DecimalAverage { sum, count, more_digits })
                }
                _ => Err(format!("an average of type {input}")),
            }
        }
        "var" | "var_pop" | "stddev" | "stddev_pop" => {
            let spread = |scale| Spread { sample: !name.ends_with("_pop"), root: name.starts_with("stddev"), scale };
            let Some((value, scale)) = exact(argument, translator)? else {
                if float_sums == FloatSums::Exact {
                    return Err(format!(
                        "{name} of floats while warpcube.float_sums is 'exact', which is for sums and averages"
                    ));
                }
                let value = translator.translate(argument)?;
                let square = Device::binary(BinaryOp::Mul, value.clone(), value.clone());
                let double = DataType::Float64;
                let sum = add(AggregateKind::Sum, Some(value.clone()), &double);
                let squares = add(AggregateKind::Sum, Some(square), &double);
                let low = add(AggregateKind::Min, Some(value.clone()), &double);
                let high = add(AggregateKind::Max, Some(value.clone()), &double);
                let count = add(AggregateKind::Count, Some(value), &DataType::Int64);
                return Ok(Finish::FloatVariance { sum, squares, count, extremes: (low, high), spread: spread(0) });
            };
            let square = Device::binary(BinaryOp::Mul, value.clone(), value.clone());
            let exact = DataType::Decimal128(38, 0);
            let sum = add(AggregateKind::Sum, Some(value.clone()), &exact);
            let squares = add(AggregateKind::Sum, Some(square), &exact);
            let count = add(AggregateKind::Count, Some(value), &DataType::Int64);
            Ok(Finish::Variance { sum, squares, count, spread: spread(scale) })
        }
        "median" | "percentile_cont" => {
            let places = Places::of(&params.args).ok_or_else(|| format!("{name} by its name"))?;
            let Places { low, high, count, share } = places;
            let (value, from) = (translator.translate(argument)?, type_of(argument)?);
            if from.is_temporal() {
                return Err(format!("{name} of times"));
            }
            // Each row of a group knows how many values it has.
            let count = add(AggregateKind::Max, Some(translator.translate(count)?), &DataType::Int64);
            let mut at = |place: &Expr| {
                let filter = Some(translator.translate(place)?);
                let (kind, argument) = (AggregateKind::Min, Some(value.clone()));
                aggregates.push(AggregateCall { kind, argument, filter, data_type: from.clone(), unites: false });
                Ok::<_, Reason>(aggregates.len() - 1)
            };
            let (low, high) = (at(low)?, at(high)?);
            Ok(Finish::Between { low, high, count, share, from })
        }
        other => Err(format!("the aggregate function '{other}'")),
    }
}
