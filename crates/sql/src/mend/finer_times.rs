//! Timestamps beside constants of another unit.
//!
//! A comparison of timestamps in milliseconds with `TIMESTAMP '2020-01-02 01:00:00.0005'` is one of nanoseconds.
//! DataFusion 55.2 takes the cast from the column and cuts the constant off, so that 01:00:00 equals it. Here such a
//! constant, between two values that the column may have, becomes the one below it, and the operator what it then has
//! to be: `x < c` is `x <= c'`, and no `x` equals `c`. The rule stands behind the coercion of types and before each
//! simplification, since some casts and constants meet in the optimiser only.
//!
//! A constant that the finer unit does not hold, as `TIMESTAMP '9999-12-31'` beside nanoseconds, raises when it is
//! cast. Here it is past all values of that unit, or before all of them, and so decides the comparison.
//!
//! The file goes once DataFusion leaves casts where the constant has more digits, or more years.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};

use super::canonical::is_constant;
use super::cast_functions::CastFunction;
use super::lists::simplifier;
use super::{chain, each_expression};
use crate::time_units::per_second;
use crate::walk::{PlanWalk, Walk};

/// The rule, of the analyser and of the optimiser.
#[derive(Debug)]
pub(crate) struct FinerTimes;

impl AnalyzerRule for FinerTimes {
    fn name(&self) -> &str {
        "finer_times"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        // A copy of all settings is made for plans with such a comparison alone.
        let mut copy = None;
        let mut config = || copy.get_or_insert_with(|| Arc::new(config.clone())).clone();
        Ok(plan.transform_up_nested(|plan| in_node(plan, &mut config))?.data)
    }
}

impl OptimizerRule for FinerTimes {
    fn name(&self) -> &str {
        "finer_times"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        in_node(plan, &mut || config.options())
    }
}

fn in_node(plan: LogicalPlan, config: &mut impl FnMut() -> Arc<ConfigOptions>) -> Result<Transformed<LogicalPlan>> {
    // Most plans have no such cast, and are not looked at any further.
    let is_cast = |expr: &Expr| match expr {
        Expr::Cast(cast) => matches!(cast.field.data_type(), DataType::Timestamp(_, _)),
        Expr::TryCast(cast) => matches!(cast.field.data_type(), DataType::Timestamp(_, _)),
        Expr::ScalarFunction(function) => function.name() == "arrow_cast",
        _ => false,
    };
    each_expression(plan, is_cast, |expr, schema| {
        let mut fold = |expr: &Expr| simplifier(schema, &config()).simplify(expr.clone());
        expr.transform_up(|expr| Ok(exact(expr, schema, &mut fold)))
    })
}

fn exact(expr: Expr, schema: &DFSchemaRef, fold: &mut impl FnMut(&Expr) -> Result<Expr>) -> Transformed<Expr> {
    let is_time = |expr: &Expr| unit_of(expr, schema).is_some() || CastFunction::as_late(expr).is_some();
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let found = compared(&left, op, &right, schema, fold);
            let found = found.or_else(|| compared(&right, op.swap()?, &left, schema, fold));
            match found {
                Some(exact) => Transformed::yes(exact),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::InList(InList { expr, list, negated })
            if !expr.is_volatile() && (is_time(&expr) || list.iter().any(is_time)) =>
        {
            let equal = |item: &Expr, fold: &mut _| exact(expr.as_ref().clone().eq(item.clone()), schema, fold);
            let all: Vec<_> = list.iter().map(|item| equal(item, fold)).collect();
            match all.iter().any(|item| item.transformed) {
                true => {
                    let chain = chain(Operator::Or, all.into_iter().map(|item| item.data).collect());
                    Transformed::yes(if negated { Expr::Not(Box::new(chain)) } else { chain })
                }
                false => Transformed::no(Expr::InList(InList { expr, list, negated })),
            }
        }
        Expr::Between(Between { expr, negated, low, high })
            if !expr.is_volatile() && [&expr, &low, &high].iter().any(|expr| is_time(expr)) =>
        {
            let from = exact(expr.as_ref().clone().gt_eq(low.as_ref().clone()), schema, fold);
            let to = exact(expr.as_ref().clone().lt_eq(high.as_ref().clone()), schema, fold);
            match from.transformed || to.transformed {
                true => {
                    let both = from.data.and(to.data);
                    Transformed::yes(if negated { Expr::Not(Box::new(both)) } else { both })
                }
                false => Transformed::no(Expr::Between(Between { expr, negated, low, high })),
            }
        }
        other => Transformed::no(other),
    }
}

/// The coarsest unit of a timestamp on its way through casts: all values are multiples of it.
fn unit_of(expr: &Expr, schema: &DFSchemaRef) -> Option<TimeUnit> {
    let (mut expr, mut units) = (expr, Vec::new());
    let unit = |data_type: &DataType| match data_type {
        DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    };
    loop {
        let (to, operand) = match expr {
            Expr::Cast(cast) => (unit(cast.field.data_type()), cast.expr.as_ref()),
            Expr::TryCast(cast) => (unit(cast.field.data_type()), cast.expr.as_ref()),
            // It becomes a cast when it is simplified.
            Expr::ScalarFunction(function) if function.name() == "arrow_cast" => {
                (expr.get_type(schema).ok().as_ref().and_then(unit), function.args.first()?)
            }
            _ => break,
        };
        let Some(to) = to else { break };
        units.push(to);
        expr = operand;
    }
    if units.is_empty() {
        return None;
    }
    units.extend(expr.get_type(schema).ok().as_ref().and_then(unit));
    units.into_iter().min_by_key(|unit| per_second(*unit))
}

/// A constant between two multiples of a coarser unit.
struct Constant {
    value: ScalarValue,
    /// How far it is from the multiple below.
    rest: i64,
}

impl Constant {
    fn of(expr: &Expr, unit: TimeUnit, fold: &mut impl FnMut(&Expr) -> Result<Expr>) -> Option<Constant> {
        let value = match expr {
            Expr::Literal(value, _) => value.clone(),
            // A wrong constant is an error when it is computed.
            expr if is_constant(expr) => match fold(expr) {
                Ok(Expr::Literal(value, _)) => value,
                _ => return None,
            },
            _ => return None,
        };
        let DataType::Timestamp(own, _) = value.data_type() else { return None };
        let step = per_second(own) / per_second(unit);
        let rest = count(&value)?.checked_rem_euclid(step)?;
        (rest != 0).then_some(Constant { value, rest })
    }

    /// The multiple below; none if there is none.
    fn below(&self) -> Option<Expr> {
        let below = count(&self.value)?.checked_sub(self.rest);
        let value = match &self.value {
            ScalarValue::TimestampMillisecond(_, zone) => ScalarValue::TimestampMillisecond(below, zone.clone()),
            ScalarValue::TimestampMicrosecond(_, zone) => ScalarValue::TimestampMicrosecond(below, zone.clone()),
            ScalarValue::TimestampNanosecond(_, zone) => ScalarValue::TimestampNanosecond(below, zone.clone()),
            _ => return None,
        };
        below.map(|_| Expr::Literal(value, None))
    }
}

/// A constant that the type it is cast to does not hold.
struct Beyond {
    /// The constant before that cast.
    value: ScalarValue,
    /// The unit of the cast.
    unit: TimeUnit,
    /// Whether it is past all values of the type, not before them.
    is_after: bool,
}

impl Beyond {
    fn of(expr: &Expr, fold: &mut impl FnMut(&Expr) -> Result<Expr>) -> Option<Beyond> {
        let (operand, to) = match expr {
            Expr::Cast(cast) => (cast.expr.as_ref(), cast.field.data_type()),
            expr => CastFunction::as_late(expr)?,
        };
        let DataType::Timestamp(unit, _) = *to else { return None };
        let value = match operand {
            Expr::Literal(value, _) => value.clone(),
            operand if is_constant(operand) => match fold(operand) {
                Ok(Expr::Literal(value, _)) => value,
                _ => return None,
            },
            _ => return None,
        };
        let of_second = |ticks: i64, second: i64| i128::from(ticks) * i128::from(per_second(unit)) / i128::from(second);
        let ticks = match &value {
            ScalarValue::Date32(Some(days)) => of_second(i64::from(*days) * DAY_SECONDS, 1),
            ScalarValue::Date64(Some(milliseconds)) => of_second(*milliseconds, 1_000),
            time => match time.data_type() {
                DataType::Timestamp(own, _) => of_second(count(time)?, per_second(own)),
                _ => return None,
            },
        };
        i64::try_from(ticks).is_err().then_some(Beyond { value, unit, is_after: ticks > 0 })
    }

    /// A comparison of an expression with the constant.
    fn compared(self, expr: &Expr, op: Operator, schema: &DFSchemaRef) -> Option<Expr> {
        if let Expr::Cast(cast) = expr {
            let own = cast.expr.get_type(schema).ok()?;
            let is_held = matches!(own, DataType::Timestamp(own, _) if per_second(own) >= per_second(self.unit));
            if !is_held {
                // What is cast as the constant is may have as many years as it.
                let constant = Box::new(Expr::Literal(self.value.clone(), None));
                let is_same = own == self.value.data_type();
                return is_same.then(|| Expr::BinaryExpr(BinaryExpr::new(cast.expr.clone(), op, constant)));
            }
        }
        let of = |found| of_all(expr, found, schema);
        Some(match op {
            Operator::Lt | Operator::LtEq => of(self.is_after),
            Operator::Gt | Operator::GtEq => of(!self.is_after),
            Operator::Eq => of(false),
            Operator::NotEq => of(true),
            Operator::IsDistinctFrom => Expr::Literal(true.into(), None),
            Operator::IsNotDistinctFrom => Expr::Literal(false.into(), None),
            _ => return None,
        })
    }
}

const DAY_SECONDS: i64 = 86_400;

/// The number of units of a timestamp.
fn count(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampSecond(count, _)
        | ScalarValue::TimestampMillisecond(count, _)
        | ScalarValue::TimestampMicrosecond(count, _)
        | ScalarValue::TimestampNanosecond(count, _) => *count,
        _ => None,
    }
}

/// A comparison with a constant that no value equals; none if it is none.
fn compared(
    expr: &Expr,
    op: Operator,
    constant: &Expr,
    schema: &DFSchemaRef,
    fold: &mut impl FnMut(&Expr) -> Result<Expr>,
) -> Option<Expr> {
    let of = |found| of_all(expr, found, schema);
    if let Some(beyond) = Beyond::of(constant, fold) {
        return beyond.compared(expr, op, schema);
    }
    let constant = Constant::of(constant, unit_of(expr, schema)?, fold)?;
    Some(match (op, constant.below()) {
        (Operator::Lt | Operator::LtEq, Some(below)) => expr.clone().lt_eq(below),
        (Operator::Gt | Operator::GtEq, Some(below)) => expr.clone().gt(below),
        (Operator::Lt | Operator::LtEq, None) => of(false),
        (Operator::Gt | Operator::GtEq, None) => of(true),
        (Operator::Eq, _) => of(false),
        (Operator::NotEq, _) => of(true),
        (Operator::IsDistinctFrom, _) => Expr::Literal(true.into(), None),
        (Operator::IsNotDistinctFrom, _) => Expr::Literal(false.into(), None),
        _ => return None,
    })
}

/// A truth value for all values, and NULL for NULL.
fn of_all(expr: &Expr, found: bool, schema: &DFSchemaRef) -> Expr {
    let mut inner = expr;
    // What is not computed does not overflow.
    while let Expr::Cast(cast) = inner
        && cast.expr.get_type(schema).is_ok_and(|from| matches!(from, DataType::Timestamp(_, _)))
    {
        inner = &cast.expr;
    }
    let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
    match (inner.nullable(schema), found) {
        (Ok(false), found) => Expr::Literal(found.into(), None),
        (_, true) => inner.clone().is_not_null().or(unknown),
        (_, false) => inner.clone().is_null().and(unknown),
    }
}
