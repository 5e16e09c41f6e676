//! TPC-H: the tables as `tpchgen` makes them, in the parts and batches that this crate works with.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RecordBatchIterator, RegionArrow,
    SupplierArrow,
};

use crate::{DatagenError, check_scale, ssb};

/// A table of TPC-H.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TpchTable {
    /// The lines of orders: about six million at scale factor 1.
    Lineitem,
    /// 1,500,000 orders at scale factor 1.
    Orders,
    /// 800,000 offers of parts by suppliers at scale factor 1.
    Partsupp,
    /// 200,000 parts at scale factor 1.
    Part,
    /// 150,000 customers at scale factor 1.
    Customer,
    /// 10,000 suppliers at scale factor 1.
    Supplier,
    /// The 25 nations.
    Nation,
    /// The five regions.
    Region,
}

impl TpchTable {
    /// All tables, the largest first.
    pub const ALL: [Self; 8] = [
        Self::Lineitem,
        Self::Orders,
        Self::Partsupp,
        Self::Part,
        Self::Customer,
        Self::Supplier,
        Self::Nation,
        Self::Region,
    ];

    /// The table's name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lineitem => "lineitem",
            Self::Orders => "orders",
            Self::Partsupp => "partsupp",
            Self::Part => "part",
            Self::Customer => "customer",
            Self::Supplier => "supplier",
            Self::Nation => "nation",
            Self::Region => "region",
        }
    }

    /// The schema of the batches: keys Int64, money and quantities Decimal128(15, 2), dates Date32, text Utf8View. No
    /// column holds nulls. The first use of any table makes the text that comments are cut from: 300 MB, a second.
    pub fn schema(self) -> SchemaRef {
        self.generate(1.0, 0, 1, 1).schema().clone()
    }

    /// The number of rows at a scale factor. That of lineitem is found by walking through all orders.
    ///
    /// # Errors
    /// When the scale factor is out of range.
    pub fn rows(self, sf: f64) -> Result<u64, DatagenError> {
        check_scale(sf)?;
        let rows = match self {
            Self::Lineitem => return Ok(ssb::order_lines(0, TpchTable::Orders.rows(sf)?)),
            Self::Orders => OrderGenerator::calculate_row_count(sf, 1, 1),
            // That generator counts parts; each has four offers.
            Self::Partsupp => 4 * PartSuppGenerator::calculate_row_count(sf, 1, 1),
            Self::Part => PartGenerator::calculate_row_count(sf, 1, 1),
            Self::Customer => CustomerGenerator::calculate_row_count(sf, 1, 1),
            Self::Supplier => SupplierGenerator::calculate_row_count(sf, 1, 1),
            Self::Nation => 25,
            Self::Region => 5,
        };
        Ok(rows as u64)
    }

    /// Columns whose values hardly repeat within a row group.
    pub(crate) fn distinct_columns(self) -> &'static [&'static str] {
        match self {
            Self::Lineitem => &["l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_comment"],
            Self::Orders => &["o_orderkey", "o_custkey", "o_totalprice", "o_comment"],
            Self::Partsupp => &["ps_partkey", "ps_suppkey", "ps_supplycost", "ps_comment"],
            Self::Part => &["p_partkey", "p_name", "p_retailprice", "p_comment"],
            Self::Customer => &["c_custkey", "c_name", "c_address", "c_phone", "c_acctbal", "c_comment"],
            Self::Supplier => &["s_suppkey", "s_name", "s_address", "s_phone", "s_acctbal", "s_comment"],
            Self::Nation => &["n_comment"],
            Self::Region => &["r_comment"],
        }
    }

    /// The batches of a part counted from 0. `tpchgen` counts parts from 1.
    fn generate(self, sf: f64, part: usize, parts: usize, rows: usize) -> Box<dyn RecordBatchIterator> {
        let (part, parts) = (part as i32 + 1, parts as i32);
        match self {
            Self::Lineitem => {
                Box::new(LineItemArrow::new(LineItemGenerator::new(sf, part, parts)).with_batch_size(rows))
            }
            Self::Orders => Box::new(OrderArrow::new(OrderGenerator::new(sf, part, parts)).with_batch_size(rows)),
            Self::Partsupp => {
                Box::new(PartSuppArrow::new(PartSuppGenerator::new(sf, part, parts)).with_batch_size(rows))
            }
            Self::Part => Box::new(PartArrow::new(PartGenerator::new(sf, part, parts)).with_batch_size(rows)),
            Self::Customer => {
                Box::new(CustomerArrow::new(CustomerGenerator::new(sf, part, parts)).with_batch_size(rows))
            }
            Self::Supplier => {
                Box::new(SupplierArrow::new(SupplierGenerator::new(sf, part, parts)).with_batch_size(rows))
            }
            Self::Nation => Box::new(NationArrow::new(NationGenerator::new(sf, part, parts)).with_batch_size(rows)),
            Self::Region => Box::new(RegionArrow::new(RegionGenerator::new(sf, part, parts)).with_batch_size(rows)),
        }
    }
}

/// The record batches of one part of a table; see [`tpch_batches`].
pub struct TpchBatches {
    batches: Box<dyn RecordBatchIterator>,
    /// Nations and regions are not cut: their first part has all.
    empty: bool,
}

/// Generates part `part` of `parts` of a table, parts counted from 0, in batches of at most `batch_rows` rows (at
/// least one).
///
/// # Errors
/// When the scale factor or the part is out of range.
pub fn tpch_batches(
    table: TpchTable,
    sf: f64,
    part: usize,
    parts: usize,
    batch_rows: usize,
) -> Result<TpchBatches, DatagenError> {
    check_scale(sf)?;
    if part >= parts || i32::try_from(parts).is_err() {
        return Err(DatagenError::Part { part, parts });
    }
    let empty = part > 0 && matches!(table, TpchTable::Nation | TpchTable::Region);
    Ok(TpchBatches { batches: table.generate(sf, part, parts, batch_rows.max(1)), empty })
}

impl TpchBatches {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        self.batches.schema()
    }
}

impl Iterator for TpchBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.empty { None } else { self.batches.next() }
    }
}
