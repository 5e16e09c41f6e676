//! Medians, percentiles and modes, statistics of pairs.

use super::query::Generator;

impl Generator<'_> {
    /// A correlation, a covariance or a part of a regression.
    pub(super) fn pair_statistic(&mut self) -> String {
        let names = ["CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_R2", "REGR_COUNT", "REGR_AVGX", "REGR_SXY"];
        let mut number = || self.column(|column| column.data_type.is_numeric() && !column.wide);
        let (Some((_, one)), Some((_, other))) = (number(), number()) else { return "COUNT(1)".into() };
        format!("{}({}, {})", self.random.pick(&names), one.name, other.name)
    }

    /// A value at a place of sorted ones.
    pub(super) fn order_statistic(&mut self) -> String {
        let (share, direction) = (self.random.below(101), *self.random.pick(&["", " DESC"]));
        let number = self.column(|column| column.data_type.is_numeric() && !column.wide);
        match (self.random.below(4), number) {
            (0, Some((_, column))) => format!("MEDIAN({})", column.name),
            (1, Some((_, column))) => format!("QUANTILE_CONT({}, {share} / 1e2)", column.name),
            (2, _) => {
                format!("PERCENTILE_DISC({share} / 1e2) WITHIN GROUP (ORDER BY {}{direction})", self.any().1.name)
            }
            _ => format!("MODE() WITHIN GROUP (ORDER BY {}{direction})", self.any().1.name),
        }
    }
}
