//! TPC-DS: the tables as `tpcdsgen` makes them, a port of the reference generator `dsdgen`, in the parts and batches
//! that this crate works with.

use arrow::datatypes::SchemaRef;
use tpcdsgen::config::{Session, SessionBuilder, Table};
use tpcdsgen_arrow::{
    CallCenterArrow, CatalogPageArrow, CatalogReturnsArrow, CatalogSalesArrow, CustomerAddressArrow, CustomerArrow,
    CustomerDemographicsArrow, DateDimArrow, HouseholdDemographicsArrow, IncomeBandArrow, InventoryArrow, ItemArrow,
    PromotionArrow, ReasonArrow, ShipModeArrow, StoreArrow, StoreReturnsArrow, StoreSalesArrow, TimeDimArrow,
    WarehouseArrow, WebPageArrow, WebReturnsArrow, WebSalesArrow, WebSiteArrow,
};

use crate::{Batches, DatagenError, part_range};

/// A table of TPC-DS.
pub(crate) struct TpcdsTable {
    table: Table,
    schema: fn() -> SchemaRef,
    /// The batches of some rows of the table's source, from a first to a last one counted from 1.
    generate: fn(Session, u64, u64, usize) -> Batches,
    /// Columns whose values hardly repeat within a row group.
    pub(crate) distinct_columns: &'static [&'static str],
}

macro_rules! table {
    ($table:ident, $generator:ident, $distinct:expr) => {
        TpcdsTable {
            table: Table::$table,
            schema: $generator::schema_ref,
            generate: |session, first, last, rows| {
                let batches = $generator::new(session).with_source_row_range(first, last).with_batch_size(rows);
                // Columns and schema are written side by side in that crate.
                Box::new(batches.map(|batch| batch.expect("columns as the schema says")))
            },
            distinct_columns: $distinct,
        }
    };
}

/// All tables but that of the generator's version, the largest first.
pub(crate) static TPCDS_TABLES: [TpcdsTable; 24] = [
    table!(Inventory, InventoryArrow, &[]),
    table!(
        StoreSales,
        StoreSalesArrow,
        &[
            "ss_ticket_number",
            "ss_item_sk",
            "ss_customer_sk",
            "ss_ext_wholesale_cost",
            "ss_ext_list_price",
            "ss_net_paid_inc_tax",
            "ss_net_profit"
        ]
    ),
    table!(
        CatalogSales,
        CatalogSalesArrow,
        &[
            "cs_order_number",
            "cs_item_sk",
            "cs_ext_wholesale_cost",
            "cs_ext_list_price",
            "cs_net_paid_inc_tax",
            "cs_net_paid_inc_ship",
            "cs_net_paid_inc_ship_tax",
            "cs_net_profit"
        ]
    ),
    table!(
        WebSales,
        WebSalesArrow,
        &[
            "ws_order_number",
            "ws_item_sk",
            "ws_ext_wholesale_cost",
            "ws_ext_list_price",
            "ws_net_paid_inc_tax",
            "ws_net_paid_inc_ship",
            "ws_net_paid_inc_ship_tax",
            "ws_net_profit"
        ]
    ),
    table!(CustomerDemographics, CustomerDemographicsArrow, &["cd_demo_sk"]),
    table!(StoreReturns, StoreReturnsArrow, &["sr_ticket_number"]),
    table!(CatalogReturns, CatalogReturnsArrow, &["cr_order_number"]),
    table!(Customer, CustomerArrow, &["c_customer_sk", "c_customer_id", "c_email_address"]),
    table!(TimeDim, TimeDimArrow, &["t_time_sk", "t_time_id", "t_time"]),
    table!(DateDim, DateDimArrow, &["d_date_sk", "d_date_id", "d_date"]),
    table!(WebReturns, WebReturnsArrow, &["wr_order_number"]),
    table!(CustomerAddress, CustomerAddressArrow, &["ca_address_sk", "ca_address_id"]),
    table!(Item, ItemArrow, &["i_item_sk", "i_item_desc"]),
    table!(CatalogPage, CatalogPageArrow, &["cp_catalog_page_sk", "cp_catalog_page_id"]),
    table!(HouseholdDemographics, HouseholdDemographicsArrow, &["hd_demo_sk"]),
    table!(Promotion, PromotionArrow, &[]),
    table!(WebPage, WebPageArrow, &[]),
    table!(Reason, ReasonArrow, &[]),
    table!(WebSite, WebSiteArrow, &[]),
    table!(IncomeBand, IncomeBandArrow, &[]),
    table!(ShipMode, ShipModeArrow, &[]),
    table!(Store, StoreArrow, &[]),
    table!(CallCenter, CallCenterArrow, &[]),
    table!(Warehouse, WarehouseArrow, &[]),
];

impl TpcdsTable {
    /// The table's name in SQL.
    pub(crate) fn name(&self) -> &'static str {
        self.table.get_name()
    }

    /// The schema of the batches: keys Int32 (numbers of tickets and orders Int64), money Decimal128(7, 2), dates
    /// Date32, text Utf8View. Most columns of facts hold nulls.
    pub(crate) fn schema(&self) -> SchemaRef {
        (self.schema)()
    }

    /// The rows at a scale factor: exact for tables of one row a source row; for sales and returns what their orders
    /// have in the mean.
    pub(crate) fn rows_expected(&self, sf: f64) -> Result<u64, DatagenError> {
        let (source, numerator, denominator) = self.source();
        Ok(session(sf)?.get_scaling().get_row_count(source) * numerator / denominator)
    }

    /// The table whose rows are numbered, which are orders for sales and their returns, and as a fraction the rows of
    /// one in the mean: 8 to 16 lines an order of stores and the web, 4 to 14 one of catalogs; a tenth is returned.
    fn source(&self) -> (Table, u64, u64) {
        match self.table {
            Table::StoreSales => (Table::StoreSales, 12, 1),
            Table::StoreReturns => (Table::StoreSales, 12, 10),
            Table::CatalogSales => (Table::CatalogSales, 9, 1),
            Table::CatalogReturns => (Table::CatalogSales, 9, 10),
            Table::WebSales => (Table::WebSales, 12, 1),
            Table::WebReturns => (Table::WebSales, 12, 10),
            table => (table, 1, 1),
        }
    }

    /// The batches of part `part` of `parts`, counted from 0.
    pub(crate) fn batches(&self, sf: f64, part: usize, parts: usize, rows: usize) -> Result<Batches, DatagenError> {
        let session = session(sf)?;
        let range = part_range(session.get_scaling().get_row_count(self.source().0), part, parts)?;
        match range.is_empty() {
            true => Ok(Box::new(std::iter::empty())),
            false => Ok((self.generate)(session, range.start + 1, range.end, rows)),
        }
    }
}

fn session(sf: f64) -> Result<Session, DatagenError> {
    crate::check_scale(sf)?;
    SessionBuilder::new().with_scale_factor(sf).build().map_err(|_| DatagenError::Scale(sf))
}
