//! Casts to timestamps of a coarser unit round, as PostgreSQL's `timestamp(0)` does.
//!
//! Arrow cuts digits off towards 1970, so that half a second before it is 1970 itself and DataFusion 55.2 gives times
//! before that year otherwise than later ones. Here what has too many digits is rounded to the unit before the cast,
//! halves away from 2000, from where PostgreSQL counts.
//!
//! The file goes once DataFusion's casts to coarser units round.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::conversion::Conversion;
use super::each_value;
use crate::time_units::{per_second, rounded_to};

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

/// The unit that a function rounds to; none of another function.
pub(crate) fn rounds_to(function: &ScalarUDF) -> Option<TimeUnit> {
    function.inner().downcast_ref::<Round>().map(|round| round.unit)
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
