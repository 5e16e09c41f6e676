//! Bounds and counts of a column, and traits of its values.

/// Bounds and counts of one column (or one part of it).
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Rows, nulls included.
    pub rows: u64,
    /// Nulls.
    pub nulls: u64,
    /// Smallest and largest valid integer; also of codes, dates and unscaled decimals.
    pub integers: Option<(i128, i128)>,
    /// Smallest and largest valid float, without NaN.
    pub floats: Option<(f64, f64)>,
    /// Whether each value is larger than the value before it, and none is null.
    pub strictly_ascending: bool,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { rows: 0, nulls: 0, integers: None, floats: None, strictly_ascending: true }
    }
}

impl Statistics {
    /// Statistics of this part and the `next` one, in the order of rows.
    pub fn then(&self, next: &Statistics) -> Statistics {
        if self.rows == 0 {
            return next.clone();
        }
        if next.rows == 0 {
            return self.clone();
        }
        let ascends = match (self.integers, next.integers) {
            (Some((_, last)), Some((first, _))) => last < first,
            _ => false,
        };
        Statistics {
            rows: self.rows + next.rows,
            nulls: self.nulls + next.nulls,
            integers: merge(self.integers, next.integers),
            floats: merge(self.floats, next.floats),
            strictly_ascending: self.strictly_ascending && next.strictly_ascending && ascends,
        }
    }
}

/// Traits of a column's values, from its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Distinct valid values; an estimate with an error of a few percent.
    pub distinct: u64,
    /// Runs of equal values. A run ends with its vector; null slots belong to the run before them.
    pub runs: u64,
    /// Whether no valid value is smaller than the valid value before it; false for floats.
    pub is_sorted: bool,
}

fn merge<T: PartialOrd + Copy>(left: Option<(T, T)>, right: Option<(T, T)>) -> Option<(T, T)> {
    match (left, right) {
        (Some((a, b)), Some((c, d))) => Some((if c < a { c } else { a }, if d > b { d } else { b })),
        (one, None) => one,
        (None, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(low: i128, high: i128) -> Statistics {
        let rows = (high - low + 1) as u64;
        Statistics { rows, nulls: 0, integers: Some((low, high)), floats: None, strictly_ascending: true }
    }

    #[test]
    fn parts_in_order_stay_ascending() {
        assert_eq!(run(1, 10).then(&run(11, 20)), run(1, 20));
        assert!(!run(1, 10).then(&run(10, 20)).strictly_ascending);
        let gap = run(1, 10).then(&run(12, 20));
        assert!(gap.strictly_ascending && gap.rows == 19);
        assert_eq!(Statistics::default().then(&run(3, 4)), run(3, 4));
    }
}
