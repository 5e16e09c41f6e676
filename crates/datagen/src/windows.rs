//! Tables for benchmarks of windows: partitions of two numbers, orders of two widths, and the same rows in order.
//!
//! | column | `w` | `w_sorted` |
//! |---|---|---|
//! | `p1k`, `p1m` | 2¹⁰ and 2²⁰ values, drawn | the same, ascending |
//! | `o22`, `o12` | 22 and 12 bits, drawn: 32 bits with `p1k` and with `p1m` | ascending in each partition, from 0 |
//! | `o40` | 40 bits, drawn: 64 bits or fewer with either | the row's number |
//! | `v` | 0 to 999, drawn | the same |

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::draw::Draw;
use crate::{Batches, DatagenError, check_rows, in_batches, part_range};

/// Partitions of each number.
const PARTITIONS: [u64; 2] = [1 << 10, 1 << 20];
/// Values of the orders that take 32 bits with each of these, and of the wide one.
const ORDERS: [u64; 2] = [1 << 22, 1 << 12];
const WIDE_ORDER: u64 = 1 << 40;
/// Values that are added up.
const VALUES: u64 = 1000;

/// A table of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowsTable {
    /// Rows in no order.
    Drawn,
    /// Rows by partition and order.
    Sorted,
}

impl WindowsTable {
    /// Both tables.
    pub(crate) const ALL: [Self; 2] = [Self::Drawn, Self::Sorted];

    /// The table's name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Drawn => "w",
            Self::Sorted => "w_sorted",
        }
    }

    /// Columns whose values hardly repeat within a row group.
    pub(crate) fn distinct_columns(self) -> &'static [&'static str] {
        &["p1m", "o22", "o40"]
    }

    /// The schema: integers of 32 bits, and of 64 for `o40`; no nulls.
    pub(crate) fn schema(self) -> SchemaRef {
        let columns = ["p1k", "p1m", "o22", "o12", "o40", "v"];
        let kind = |name: &str| if name == "o40" { DataType::Int64 } else { DataType::Int32 };
        Arc::new(Schema::new(columns.map(|name| Field::new(name, kind(name), false)).to_vec()))
    }

    /// The batches of part `part` of `parts`, counted from 0.
    pub(crate) fn batches(
        self,
        rows: u64,
        part: usize,
        parts: usize,
        batch_rows: usize,
    ) -> Result<Batches, DatagenError> {
        check_rows(rows)?;
        let schema = self.schema();
        Ok(in_batches(part_range(rows, part, parts)?, batch_rows, move |range| {
            // Columns and schema are written side by side in this module.
            RecordBatch::try_new(schema.clone(), self.columns(rows, &range)).expect("columns as the schema says")
        }))
    }

    fn columns(self, rows: u64, range: &Range<u64>) -> Vec<ArrayRef> {
        // The partition of a row of the sorted table, and the row's place in it.
        let partition = |row: u64, count: u64| (u128::from(row) * u128::from(count) / u128::from(rows)) as u64;
        let first =
            |partition: u64, count: u64| (u128::from(partition) * u128::from(rows)).div_ceil(u128::from(count)) as u64;
        let small = |value: &dyn Fn(u64) -> u64| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(range.clone().map(|row| value(row) as i32)))
        };
        let partitions = |at: usize| match self {
            Self::Drawn => small(&|row| Draw::new(1 + at as u64).below(row, PARTITIONS[at])),
            Self::Sorted => small(&|row| partition(row, PARTITIONS[at])),
        };
        let orders = |at: usize| match self {
            Self::Drawn => small(&|row| Draw::new(3 + at as u64).below(row, ORDERS[at])),
            Self::Sorted => small(&|row| row - first(partition(row, PARTITIONS[at]), PARTITIONS[at])),
        };
        let wide = |row: u64| match self {
            Self::Drawn => Draw::new(5).below(row, WIDE_ORDER) as i64,
            Self::Sorted => row as i64,
        };
        let wide = Int64Array::from_iter_values(range.clone().map(wide));
        let values = small(&|row| Draw::new(6).below(row, VALUES));
        vec![partitions(0), partitions(1), orders(0), orders(1), Arc::new(wide), values]
    }
}
