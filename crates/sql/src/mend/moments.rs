//! Count, means and second moments of pairs of floats, and the statistics that follow from them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, UInt64Array};
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::correlation::Correlation;
use datafusion::functions_aggregate::covariance::{CovariancePopulation, CovarianceSample};
use datafusion::functions_aggregate::regr::Regr;
use datafusion::logical_expr::AggregateUDF;

/// A statistic of one column, or of two; those of a regression take the dependent one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Statistic {
    Variance { sample: bool },
    Deviation { sample: bool },
    Covariance { sample: bool },
    Correlation,
    Slope,
    Intercept,
    Count,
    Determination,
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    Products,
}

impl Statistic {
    /// The statistic of pairs that a function of DataFusion's computes; none if it computes another thing.
    pub(crate) fn of_pairs(function: &AggregateUDF) -> Option<Statistic> {
        let inner = function.inner();
        Some(match function.name() {
            _ if inner.is::<CovarianceSample>() => Statistic::Covariance { sample: true },
            _ if inner.is::<CovariancePopulation>() => Statistic::Covariance { sample: false },
            _ if inner.is::<Correlation>() => Statistic::Correlation,
            _ if !inner.is::<Regr>() => return None,
            "regr_slope" => Statistic::Slope,
            "regr_intercept" => Statistic::Intercept,
            "regr_count" => Statistic::Count,
            "regr_r2" => Statistic::Determination,
            "regr_avgx" => Statistic::MeanX,
            "regr_avgy" => Statistic::MeanY,
            "regr_sxx" => Statistic::SquaresX,
            "regr_syy" => Statistic::SquaresY,
            "regr_sxy" => Statistic::Products,
            _ => return None,
        })
    }

    /// Whether its digits are those of the sum of products of deviations.
    pub(crate) fn is_of_products(self) -> bool {
        use Statistic::*;
        matches!(self, Covariance { .. } | Slope | Intercept | Products)
    }
}

/// Moments of pairs (Welford's and Chan's updates).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moments {
    count: u64,
    means: [f64; 2],
    /// Sums of squared deviations from the means.
    squares: [f64; 2],
    /// The sum of products of deviations.
    products: f64,
}

impl Moments {
    /// Moments that are known.
    pub(crate) fn new(count: u64, means: [f64; 2], squares: [f64; 2], products: f64) -> Moments {
        Moments { count, means, squares, products }
    }

    /// The number of pairs, and the means, sums of squares and sum of products, one behind the other.
    pub(super) fn parts(&self) -> (u64, [f64; 5]) {
        let ([y, x], [yy, xx]) = (self.means, self.squares);
        (self.count, [y, x, yy, xx, self.products])
    }

    /// Adds a pair. Means of infinities are infinite, or NaN of both; their deviations are NaN.
    pub(super) fn add(&mut self, pair: [f64; 2]) {
        self.count += 1;
        let before = [pair[0] - self.means[0], pair[1] - self.means[1]];
        for (side, before) in before.iter().enumerate() {
            match before.is_finite() {
                true => self.means[side] += before / self.count as f64,
                false => self.means[side] = infinite_mean(self.means[side], pair[side], before / self.count as f64),
            }
            self.squares[side] += before * (pair[side] - self.means[side]);
        }
        let is_finite = before.iter().all(|before| before.is_finite());
        self.products += if is_finite { before[0] * (pair[1] - self.means[1]) } else { f64::NAN };
    }

    /// The moments of the pairs of both.
    pub(super) fn merge(&self, other: &Moments) -> Moments {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { *other } else { *self };
        }
        let (own, more) = (self.count as f64, other.count as f64);
        let share = more / (own + more);
        let apart = [other.means[0] - self.means[0], other.means[1] - self.means[1]];
        let mean = |side: usize| match apart[side].is_finite() {
            true => self.means[side] + apart[side] * share,
            false => infinite_mean(self.means[side], other.means[side], apart[side] * share),
        };
        let means = [mean(0), mean(1)];
        let moment = |one: f64, other: f64, product: f64| one + other + product * own * share;
        Moments {
            count: self.count + other.count,
            means,
            squares: [0, 1].map(|side| moment(self.squares[side], other.squares[side], apart[side] * apart[side])),
            products: moment(self.products, other.products, apart[0] * apart[1]),
        }
    }

    /// A statistic: NULL of too few values, and where values are equal that a statistic divides by.
    pub(crate) fn result(&self, statistic: Statistic) -> ScalarValue {
        match statistic {
            Statistic::Count => ScalarValue::UInt64(Some(self.count)),
            _ => ScalarValue::Float64(self.value(statistic)),
        }
    }

    /// A statistic of each of many groups.
    pub(crate) fn results(moments: impl Iterator<Item = Moments>, statistic: Statistic) -> ArrayRef {
        match statistic {
            Statistic::Count => Arc::new(UInt64Array::from_iter_values(moments.map(|moments| moments.count))),
            _ => Arc::new(moments.map(|moments| moments.value(statistic)).collect::<Float64Array>()),
        }
    }

    /// A statistic as a double.
    fn value(&self, statistic: Statistic) -> Option<f64> {
        let ([y, x], [yy, xx], xy, n) = (self.means, self.squares, self.products, self.count as f64);
        let is_line = self.count > 1 && xx != 0.0;
        match statistic {
            Statistic::Count => Some(n),
            Statistic::Variance { sample } => self.variance(sample),
            Statistic::Deviation { sample } => self.variance(sample).map(f64::sqrt),
            Statistic::Covariance { sample } => {
                let divisor = n - f64::from(sample);
                (divisor > 0.0 || self.count > 0 && !sample).then(|| xy / divisor)
            }
            Statistic::Correlation => self.correlation(),
            Statistic::Slope => is_line.then(|| xy / xx),
            Statistic::Intercept => is_line.then(|| y - xy / xx * x),
            Statistic::Determination => is_line.then(|| if yy == 0.0 { 1.0 } else { xy / xx * (xy / yy) }),
            Statistic::MeanX => (self.count > 0).then_some(x),
            Statistic::MeanY => (self.count > 0).then_some(y),
            Statistic::SquaresX => (self.count > 0).then_some(xx),
            Statistic::SquaresY => (self.count > 0).then_some(yy),
            Statistic::Products => (self.count > 0).then_some(xy),
        }
    }

    fn variance(&self, sample: bool) -> Option<f64> {
        match (self.count, sample) {
            (0, _) | (1, true) => None,
            (1, false) => Some(0.0),
            (count, sample) => Some(self.squares[0] / (count - u64::from(sample)) as f64),
        }
    }

    /// NaN where a value is NaN or infinite.
    fn correlation(&self) -> Option<f64> {
        let deviations = self.squares.map(|squares| (squares / self.count as f64).sqrt());
        let has_none = self.count == 0 || deviations.contains(&0.0);
        (!has_none).then(|| self.products / self.count as f64 / deviations[0] / deviations[1])
    }
}

/// The mean of a mean and of what comes to it by a step that is not finite: one between finite values is longer than a
/// float holds.
fn infinite_mean(mean: f64, more: f64, step: f64) -> f64 {
    if mean.is_finite() && more.is_finite() { mean + step } else { mean + more }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_parts_are_those_of_the_whole() {
        let pairs: Vec<[f64; 2]> = (0..20).map(|row| [f64::from(row * row % 13), f64::from(row * 7 % 11)]).collect();
        let of = |pairs: &[[f64; 2]]| {
            let mut moments = Moments::default();
            pairs.iter().for_each(|pair| moments.add(*pair));
            moments
        };
        let whole = of(&pairs);
        for cut in 0..=pairs.len() {
            let merged = of(&pairs[..cut]).merge(&of(&pairs[cut..]));
            assert_eq!(merged.count, whole.count);
            let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{merged:?} {whole:?}");
            near(merged.products, whole.products);
            for side in 0..2 {
                near(merged.means[side], whole.means[side]);
                near(merged.squares[side], whole.squares[side]);
            }
        }
    }
}
