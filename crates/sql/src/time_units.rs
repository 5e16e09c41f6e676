//! Units of timestamps: ticks, and the nearest multiple of a coarser unit.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::error::{DataFusionError, Result};

/// Seconds from 1970 to 2000, from where PostgreSQL counts.
pub(crate) const EPOCH_SECONDS: i64 = 946_684_800;

/// Ticks of a second in a unit.
pub(crate) const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Timestamps as multiples of a coarser unit, as PostgreSQL's `timestamp(0)` rounds: halves away from 2000, from where
/// it counts. Types stay.
pub(crate) fn rounded_to(times: &ArrayRef, unit: TimeUnit) -> Result<ArrayRef> {
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
