//! Casts to timestamps of a coarser unit round, as PostgreSQL's `timestamp(0)` does.
//!
//! Arrow cuts digits off towards 1970, so that half a second before it is 1970 itself and DataFusion 55.2 gives times
//! before that year otherwise than later ones. Here what has too many digits is rounded to the unit before the cast,
//! halves away from 2000, from where PostgreSQL counts.
//!
//! The file goes once DataFusion's casts to coarser units round.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use super::in_zone::per_second;
use crate::walk::{PlanWalk, Walk};

/// Seconds from 1970 to 2000.
const EPOCH_SECONDS: i64 = 946_684_800;

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct CoarserTimes;

impl AnalyzerRule for CoarserTimes {
    fn name(&self) -> &str {
        "coarser_times"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        // Casts to the finest unit lose no digit.
        let is_coarse =
            |data_type: &DataType| matches!(data_type, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond);
        let is_cast = |expr: &Expr| match expr {
            Expr::Cast(cast) => is_coarse(cast.field.data_type()),
            Expr::TryCast(cast) => is_coarse(cast.field.data_type()),
            _ => false,
        };
        let mended = plan.transform_up_nested(|plan| {
            each_expression(plan, is_cast, |expr, schema| expr.transform_up(|expr| Ok(rounded(expr, schema))))
        })?;
        Ok(mended.data)
    }
}

fn rounded(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let round = |operand: &Expr, target: &DataType, read: &dyn Fn(Expr, DataType) -> Expr| {
        let DataType::Timestamp(coarse, zone) = target else { return None };
        let from = operand.get_type(schema).ok()?;
        // A text is read to the microsecond, which has years enough, where fewer digits are wanted.
        if from.is_string() && *coarse != TimeUnit::Microsecond {
            let finer = read(operand.clone(), DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
            return Some(Box::new(round_to(*coarse)?.call(vec![finer])));
        }
        let DataType::Timestamp(fine, _) = from else { return None };
        let is_call = matches!(operand, Expr::ScalarFunction(function) if function.func.inner().is::<Round>());
        let rounds = per_second(fine) > per_second(*coarse) && !is_call;
        let function = round_to(*coarse).filter(|_| rounds)?;
        Some(Box::new(function.call(vec![operand.clone()])))
    };
    let cast = |expr: Expr, target| Expr::Cast(Cast::new(Box::new(expr), target));
    let try_cast = |expr: Expr, target| Expr::TryCast(TryCast::new(Box::new(expr), target));
    match expr {
        Expr::Cast(inner) => match round(&inner.expr, inner.field.data_type(), &cast) {
            Some(expr) => Transformed::yes(Expr::Cast(Cast { expr, ..inner })),
            None => Transformed::no(Expr::Cast(inner)),
        },
        Expr::TryCast(inner) => match round(&inner.expr, inner.field.data_type(), &try_cast) {
            Some(expr) => Transformed::yes(Expr::TryCast(TryCast { expr, ..inner })),
            None => Transformed::no(Expr::TryCast(inner)),
        },
        other => Transformed::no(other),
    }
}

/// A function that rounds to multiples of a unit and keeps the type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Round {
    unit: TimeUnit,
    signature: Signature,
}

const UNITS: [TimeUnit; 3] = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    UNITS.map(|unit| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(Round { unit, signature }))
    })
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

/// The function of a unit.
fn round_to(unit: TimeUnit) -> Option<Arc<ScalarUDF>> {
    UNITS.iter().position(|other| *other == unit).map(|place| FUNCTIONS[place].clone())
}

impl ScalarUDFImpl for Round {
    /// No statement can call it, since no registry has it.
    fn name(&self) -> &str {
        match self.unit {
            TimeUnit::Second => "warpcube_round_to_seconds",
            TimeUnit::Millisecond => "warpcube_round_to_milliseconds",
            _ => "warpcube_round_to_microseconds",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let round = |times: &ArrayRef| rounded_to(times, self.unit);
        Ok(match &arguments.args[0] {
            ColumnarValue::Array(times) => ColumnarValue::Array(round(times)?),
            ColumnarValue::Scalar(time) => {
                let times = round(&time.to_array_of_size(1)?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&times, 0)?)
            }
        })
    }
}

fn rounded_to(times: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
    let DataType::Timestamp(fine, _) = times.data_type() else {
        return Err(DataFusionError::Internal(format!("a {} to round", times.data_type())));
    };
    let (second, step) = (per_second(*fine), per_second(*fine) / per_second(unit));
    let ticks = cast(times, &DataType::Int64)?;
    let rounded = ticks.as_primitive::<Int64Type>().unary::<_, Int64Type>(|ticks| rounded_ticks(ticks, second, step));
    let rounded: ArrayRef = Arc::new(rounded);
    Ok(cast(&rounded, times.data_type())?)
}

/// The nearest multiple of a step, of two the one that is farther from 2000; at the ends of the range that before.
fn rounded_ticks(ticks: i64, second: i64, step: i64) -> i64 {
    let rest = ticks.rem_euclid(step);
    let below = ticks.saturating_sub(rest);
    let is_up = match (rest * 2).cmp(&step) {
        Ordering::Equal => ticks >= EPOCH_SECONDS * second,
        order => order.is_gt(),
    };
    if is_up { below.checked_add(step).unwrap_or(below) } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_away_from_2000() {
        let of = |milliseconds| rounded_ticks(milliseconds, 1000, 1000);
        assert_eq!([-1_300, -1_500, -1_700, 0, 499, 500, 501].map(of), [-1_000, -2_000, -2_000, 0, 0, 0, 1_000]);
        let start = EPOCH_SECONDS * 1000;
        assert_eq!([start - 500, start + 500].map(of), [start - 1_000, start + 1_000]);
        assert_eq!(of(i64::MAX), i64::MAX - i64::MAX % 1000);
    }
}
