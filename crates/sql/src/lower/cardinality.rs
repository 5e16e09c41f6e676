//! How many rows a fragment gives and what its columns hold, for operators above it.
//!
//! Before a run this is what DataFusion expects of the plan that the CPU would run instead: joins above a fragment then
//! get the build side and the partitions that they would get without a device. A run finds the number of rows, which
//! replaces the expected one from the next plan on. All is inexact, and kept by the fragment: fragments with other
//! constants share it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::datatypes::Schema;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;

/// No run has found the number of rows.
const UNKNOWN: usize = usize::MAX;

/// Rows of a fragment, expected and found.
#[derive(Debug)]
pub(crate) struct Cardinality {
    expected: OnceLock<Arc<Statistics>>,
    /// Rows of the last run.
    found: AtomicUsize,
    /// Whether an operator of the CPU works on the rows.
    feeds: AtomicBool,
}

impl Default for Cardinality {
    fn default() -> Cardinality {
        Cardinality { expected: OnceLock::new(), found: AtomicUsize::new(UNKNOWN), feeds: AtomicBool::new(false) }
    }
}

impl Cardinality {
    /// Whether it is known what to expect.
    pub(crate) fn is_expected(&self) -> bool {
        self.expected.get().is_some()
    }

    /// Enters what is expected, once.
    pub(crate) fn expect(&self, statistics: Statistics) {
        let _ = self.expected.set(Arc::new(statistics.to_inexact()));
    }

    /// Enters the rows of a run.
    pub(crate) fn find(&self, rows: usize) {
        self.found.store(rows, Ordering::Relaxed);
    }

    /// Rows of the last run, if there was one.
    pub(crate) fn found(&self) -> Option<usize> {
        Some(self.found.load(Ordering::Relaxed)).filter(|rows| *rows != UNKNOWN)
    }

    /// Rows that are expected, where it is known what to expect.
    pub(crate) fn expected(&self) -> Option<usize> {
        self.expected.get()?.num_rows.get_value().copied()
    }

    /// Enters that an operator of the CPU works on the rows.
    pub(crate) fn feed(&self) {
        self.feeds.store(true, Ordering::Relaxed);
    }

    /// Whether an operator of the CPU works on the rows.
    pub(crate) fn feeds(&self) -> bool {
        self.feeds.load(Ordering::Relaxed)
    }

    /// Takes over what an equal fragment knows.
    pub(crate) fn take_over(&self, other: &Cardinality) {
        if let Some(expected) = other.expected.get() {
            let _ = self.expected.set(expected.clone());
        }
        other.found().into_iter().for_each(|rows| self.find(rows));
    }

    /// What is known of the rows, whose columns are those of `schema`.
    pub(crate) fn statistics(&self, schema: &Schema) -> Arc<Statistics> {
        let is_of = |expected: &&Arc<Statistics>| expected.column_statistics.len() == schema.fields().len();
        let expected = self.expected.get().filter(is_of).cloned();
        let expected = expected.unwrap_or_else(|| Arc::new(Statistics::new_unknown(schema)));
        match self.found() {
            Some(rows) => Arc::new(with_rows(Arc::unwrap_or_clone(expected), rows, schema)),
            None => expected,
        }
    }
}

/// Statistics for another number of rows: bytes grow with them, and a column has at most as many values and NULLs.
fn with_rows(mut statistics: Statistics, rows: usize, schema: &Schema) -> Statistics {
    let before = statistics.num_rows.get_value().copied().filter(|rows| *rows > 0);
    let scaled = |bytes: usize| before.map(|before| (bytes as f64 * rows as f64 / before as f64) as usize);
    let bytes = statistics.total_byte_size.get_value().copied().and_then(scaled);
    statistics.num_rows = Precision::Inexact(rows);
    match bytes {
        Some(bytes) => statistics.total_byte_size = Precision::Inexact(bytes),
        None => {
            statistics.total_byte_size = Precision::Absent;
            statistics.calculate_total_byte_size(schema);
        }
    }
    for column in &mut statistics.column_statistics {
        let at_most = |count: Precision<usize>| count.map(|count| count.min(rows));
        (column.distinct_count, column.null_count) = (at_most(column.distinct_count), at_most(column.null_count));
        (column.sum_value, column.byte_size) = (Precision::Absent, Precision::Absent);
    }
    statistics
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use datafusion::common::{ColumnStatistics, ScalarValue};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("a", DataType::Int64, true)])
    }

    fn expected(rows: Precision<usize>, bytes: Precision<usize>) -> Statistics {
        let column = ColumnStatistics {
            distinct_count: Precision::Exact(900),
            min_value: Precision::Exact(ScalarValue::from(3_i64)),
            ..ColumnStatistics::new_unknown()
        };
        Statistics { num_rows: rows, total_byte_size: bytes, column_statistics: vec![column] }
    }

    #[test]
    fn a_run_replaces_the_rows_that_were_expected() {
        let cardinality = Cardinality::default();
        assert_eq!(*cardinality.statistics(&schema()), Statistics::new_unknown(&schema()));
        cardinality.expect(expected(Precision::Exact(1000), Precision::Exact(16_000)));
        let before = cardinality.statistics(&schema());
        assert_eq!((before.num_rows, before.total_byte_size), (Precision::Inexact(1000), Precision::Inexact(16_000)));
        cardinality.find(10);
        let after = cardinality.statistics(&schema());
        assert_eq!((after.num_rows, after.total_byte_size), (Precision::Inexact(10), Precision::Inexact(160)));
        let column = &after.column_statistics[0];
        assert_eq!(column.distinct_count, Precision::Inexact(10));
        assert_eq!(column.min_value, Precision::Inexact(ScalarValue::from(3_i64)));
        let twin = Cardinality::default();
        twin.take_over(&cardinality);
        assert_eq!(twin.statistics(&schema()), after);
    }

    #[test]
    fn rows_that_were_not_expected_are_found_with_their_bytes() {
        let cardinality = Cardinality::default();
        cardinality.find(7);
        let found = cardinality.statistics(&schema());
        assert_eq!((found.num_rows, found.total_byte_size), (Precision::Inexact(7), Precision::Inexact(56)));
        cardinality.expect(expected(Precision::Inexact(0), Precision::Inexact(0)));
        assert_eq!(cardinality.statistics(&schema()).total_byte_size, Precision::Inexact(56));
        // Of other columns nothing is told but their rows.
        let other = Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Int64, true)]);
        assert_eq!(cardinality.statistics(&other).column_statistics, Statistics::unknown_column(&other));
    }
}
