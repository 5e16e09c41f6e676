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
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::conversion::Conversion;
use super::each_value;
use super::in_zone::per_second;

/// Seconds from 1970 to 2000.
const EPOCH_SECONDS: i64 = 946_684_800;

/// The rounded operand of a cast to a coarser unit; `made` takes the cast by which a text becomes a time first.
pub(super) fn operand(cast: &Conversion, made: impl FnOnce(Expr) -> Expr) -> Option<Expr> {
    let DataType::Timestamp(coarse, zone) = cast.to else { return None };
    let function = round_to(*coarse)?;
    // A text is read to the microsecond, which has years enough, where fewer digits are wanted.
    if cast.is_of_text() && *coarse != TimeUnit::Microsecond {
        let finer = cast.cast(cast.operand.clone(), DataType::Timestamp(TimeUnit::Microsecond, zone.clone()));
        return Some(function.call(vec![made(finer)]));
    }
    let DataType::Timestamp(fine, _) = cast.from else { return None };
    let is_call = matches!(cast.operand, Expr::ScalarFunction(function) if function.func.inner().is::<Round>());
    let rounds = per_second(fine) > per_second(*coarse) && !is_call;
    rounds.then(|| function.call(vec![cast.operand.clone()]))
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
        each_value(&arguments.args[0], |times| rounded_to(times, self.unit))
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
