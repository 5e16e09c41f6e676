//! The Star Schema Benchmark (O'Neil, O'Neil and Chen, 2009), row for row as its reference generator makes it. A table
//! is cut into parts that are generated independently: part `k` of `n` holds the same rows whatever thread makes it,
//! and all parts in order are the table.

mod dates;
pub(crate) mod dists;
mod lineorder;
mod parts;
mod people;
mod scale;
mod schema;
mod tbl;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::{DatagenError, part_range};
use lineorder::Lineorders;
pub(crate) use lineorder::order_lines;
use parts::Parts;
use people::People;
use scale::Scale;
pub use tbl::write_ssb_tbl;

/// A table of the Star Schema Benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SsbTable {
    /// The facts: about six million lines of orders at scale factor 1.
    Lineorder,
    /// 30,000 customers at scale factor 1.
    Customer,
    /// 2,000 suppliers at scale factor 1.
    Supplier,
    /// 200,000 parts at scale factor 1, growing with the logarithm of the scale factor.
    Part,
    /// The 2557 days of 1992 to 1998 at every scale factor. The reference generator cuts this table too when the
    /// scale factor is below 1, which leaves most orders without their day; this one does not.
    Date,
}

impl SsbTable {
    /// All tables, the facts first.
    pub const ALL: [Self; 5] = [Self::Lineorder, Self::Customer, Self::Supplier, Self::Part, Self::Date];

    /// The table's name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lineorder => "lineorder",
            Self::Customer => "customer",
            Self::Supplier => "supplier",
            Self::Part => "part",
            Self::Date => "date",
        }
    }

    /// The schema at a scale factor: it depends on it in one column, since `lo_orderkey` takes 64 bits from scale
    /// factor 358 on and 32 below. No column holds nulls.
    ///
    /// # Errors
    /// When the scale factor is out of range.
    pub fn schema(self, sf: f64) -> Result<SchemaRef, DatagenError> {
        Ok(schema::schema(self, lineorder::wide_keys(Scale::new(sf)?)))
    }

    /// The number of rows at a scale factor. That of lineorder is found by walking through all orders: a moment's
    /// work, about 3 ns an order and thread.
    ///
    /// # Errors
    /// When the scale factor is out of range.
    pub fn rows(self, sf: f64) -> Result<u64, DatagenError> {
        let scale = Scale::new(sf)?;
        Ok(match self {
            Self::Lineorder => order_lines(scale.days_before_orders(), scale.orders()),
            _ => self.units(scale),
        })
    }

    /// Columns whose values hardly repeat within a row group.
    pub(crate) fn distinct_columns(self) -> &'static [&'static str] {
        match self {
            Self::Lineorder => &[
                "lo_orderkey",
                "lo_custkey",
                "lo_partkey",
                "lo_suppkey",
                "lo_extendedprice",
                "lo_ordtotalprice",
                "lo_revenue",
                "lo_supplycost",
            ],
            Self::Customer => &["c_custkey", "c_name", "c_address", "c_phone"],
            Self::Supplier => &["s_suppkey", "s_name", "s_address", "s_phone"],
            Self::Part => &["p_partkey"],
            Self::Date => &["d_datekey", "d_date"],
        }
    }

    /// The number of units that parts divide: orders for lineorder, rows for all others.
    fn units(self, scale: Scale) -> u64 {
        match self {
            Self::Lineorder => scale.orders(),
            Self::Customer => scale.customers(),
            Self::Supplier => scale.suppliers(),
            Self::Part => scale.parts(),
            Self::Date => scale::DAYS,
        }
    }
}

/// The record batches of one part of a table; see [`ssb_batches`].
pub struct SsbBatches {
    schema: SchemaRef,
    rows: Rows,
    batch_rows: usize,
}

enum Rows {
    Lineorder(Box<Lineorders>),
    People(Box<People>),
    Part(Box<Parts>),
    Date(std::ops::Range<u64>),
}

/// Generates part `part` of `parts` of a table, parts counted from 0, in batches of at most `batch_rows` rows (at
/// least one row; for lineorder seven, since an order stays in one batch).
///
/// # Errors
/// When the scale factor or the part is out of range.
pub fn ssb_batches(
    table: SsbTable,
    sf: f64,
    part: usize,
    parts: usize,
    batch_rows: usize,
) -> Result<SsbBatches, DatagenError> {
    let scale = Scale::new(sf)?;
    let range = part_range(table.units(scale), part, parts)?;
    let rows = match table {
        SsbTable::Lineorder => Rows::Lineorder(Box::new(Lineorders::new(scale, range))),
        SsbTable::Customer => Rows::People(Box::new(People::customers(scale, range))),
        SsbTable::Supplier => Rows::People(Box::new(People::suppliers(range))),
        SsbTable::Part => Rows::Part(Box::new(Parts::new(range))),
        SsbTable::Date => Rows::Date(range),
    };
    Ok(SsbBatches { schema: table.schema(sf)?, rows, batch_rows: batch_rows.max(1) })
}

impl SsbBatches {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for SsbBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let columns = match &mut self.rows {
            Rows::Lineorder(rows) => rows.columns(self.batch_rows)?,
            Rows::People(rows) => rows.columns(self.batch_rows)?,
            Rows::Part(rows) => rows.columns(self.batch_rows)?,
            Rows::Date(range) if range.is_empty() => return None,
            Rows::Date(range) => {
                let end = range.end.min(range.start + self.batch_rows as u64);
                let batch = dates::columns(range.start..end);
                range.start = end;
                batch
            }
        };
        // Columns and schema are written side by side in this crate, and the checksums test holds them together.
        Some(RecordBatch::try_new(self.schema.clone(), columns).expect("columns as the schema says"))
    }
}
