//! Bounds and counts of a column, and traits of its values.

/// Bounds and counts of one column (or one part of it).
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Rows, nulls included.
    pub rows: u64,
    /// Nulls.
    pub nulls: u64,
    /// Smallest and largest valid value of an integer column (codes, dates, scaled decimals included).
    pub integers: Option<(i128, i128)>,
    /// Smallest and largest valid value of a float column, NaN left out.
    pub floats: Option<(f64, f64)>,
    /// Whether every value is larger than the one before it, with no nulls.
    pub strictly_ascending: bool,
}

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics { rows: 0, nulls: 0, integers: None, floats: None, strictly_ascending: true }
    }
}

impl Statistics {
    /// Statistics of this part followed by `next`; order tells whether the whole ascends.
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

    /// Whether integer values are exactly first, first + 1, … in row order.
    pub fn is_dense_ascending(&self) -> bool {
        self.strictly_ascending
            && self.nulls == 0
            && self.integers.is_some_and(|(low, high)| high - low + 1 == i128::from(self.rows))
    }
}

/// Traits of a column's values, from its profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Distinct valid values, estimated to a few percent.
    pub distinct: u64,
    /// Runs of equal values, cut where a vector ends; null slots belong to the run before them.
    pub runs: u64,
    /// Whether no valid value is smaller than the valid one before it; never said of floats.
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
        assert!(run(1, 10).then(&run(11, 20)).is_dense_ascending());
        assert!(!run(1, 10).then(&run(10, 20)).strictly_ascending);
        let gap = run(1, 10).then(&run(12, 20));
        assert!(gap.strictly_ascending && !gap.is_dense_ascending());
        assert_eq!(Statistics::default().then(&run(3, 4)), run(3, 4));
    }
}
