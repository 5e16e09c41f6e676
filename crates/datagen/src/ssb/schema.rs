//! The columns of the SSB tables: keys, dates (as yyyymmdd) and amounts (in cents) are 32-bit integers, everything
//! else is text.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::SsbTable;

/// The names of a table's columns; a leading `:` marks text.
fn columns(table: SsbTable) -> &'static [&'static str] {
    match table {
        SsbTable::Lineorder => &[
            "lo_orderkey",
            "lo_linenumber",
            "lo_custkey",
            "lo_partkey",
            "lo_suppkey",
            "lo_orderdate",
            ":lo_orderpriority",
            "lo_shippriority",
            "lo_quantity",
            "lo_extendedprice",
            "lo_ordtotalprice",
            "lo_discount",
            "lo_revenue",
            "lo_supplycost",
            "lo_tax",
            "lo_commitdate",
            ":lo_shipmode",
        ],
        SsbTable::Customer => {
            &["c_custkey", ":c_name", ":c_address", ":c_city", ":c_nation", ":c_region", ":c_phone", ":c_mktsegment"]
        }
        SsbTable::Supplier => &["s_suppkey", ":s_name", ":s_address", ":s_city", ":s_nation", ":s_region", ":s_phone"],
        SsbTable::Part => &[
            "p_partkey",
            ":p_name",
            ":p_mfgr",
            ":p_category",
            ":p_brand1",
            ":p_color",
            ":p_type",
            "p_size",
            ":p_container",
        ],
        SsbTable::Date => &[
            "d_datekey",
            ":d_date",
            ":d_dayofweek",
            ":d_month",
            "d_year",
            "d_yearmonthnum",
            ":d_yearmonth",
            "d_daynuminweek",
            "d_daynuminmonth",
            "d_daynuminyear",
            "d_monthnuminyear",
            "d_weeknuminyear",
            ":d_sellingseason",
            "d_lastdayinweekfl",
            "d_lastdayinmonthfl",
            "d_holidayfl",
            "d_weekdayfl",
        ],
    }
}

/// The Arrow schema of a table, `lo_orderkey` in 64 bits if `wide_keys`.
pub(super) fn schema(table: SsbTable, wide_keys: bool) -> SchemaRef {
    let field = |column: &&str| match column.strip_prefix(':') {
        Some(name) => Field::new(name, DataType::Utf8, false),
        None if *column == "lo_orderkey" && wide_keys => Field::new(*column, DataType::Int64, false),
        None => Field::new(*column, DataType::Int32, false),
    };
    Arc::new(Schema::new(columns(table).iter().map(field).collect::<Vec<_>>()))
}
