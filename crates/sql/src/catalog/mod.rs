//! The catalog of a database: tables that notice when their files change, and files that are tables by their name.
//!
//! DataFusion keeps what a `CREATE` statement saw: the schema of a file, the plan of a view. Here a table is looked
//! at again whenever a statement names it ([`schema`]): files replaced by others of another shape are read anew,
//! views are planned from their text, a file that is gone is an error and not an empty table. [`files`] turns
//! `CREATE EXTERNAL TABLE` and `FROM 'file.parquet'` into DataFusion's listing tables, with the checks DataFusion does
//! not make; files elsewhere have places on this machine ([`mirror`]).
//!
//! Invariants: [`Catalogs::generation`] grows whenever a name may mean something else than before, so that
//! whatever was planned under an older one is stale; a name gives DataFusion's own `ListingTable` or `ViewTable` or a
//! [`MemoryTable`](crate::memory_table::MemoryTable) at its current version, never a wrapper (but for `.tbl` files,
//! tables with keys that are NULL and tables whose files are gone).

mod catalogs;
mod chunk_statistics;
mod connection_state;
mod csv_dialect;
mod csv_newlines;
mod csv_types;
mod data_file_store;
mod extensions;
mod file_contents;
mod files;
mod folders;
mod footer_facts;
mod footers;
mod given;
mod inserts;
mod json_types;
mod json_values;
mod kept;
mod lacking;
mod memory;
mod mirror;
mod names;
mod partitions;
mod patterns;
mod query_log;
mod readers;
mod row_order;
mod schema;
mod snapshot;
mod sniff;
mod special;
mod stored_values;
mod text_files;
mod text_keys;

use std::sync::Arc;

use datafusion::catalog::TableProviderFactory;

pub(crate) use catalogs::{CatalogView, Catalogs};
pub(crate) use csv_types::HeaderSaid;
pub(crate) use data_file_store::DataFileStore;
pub(crate) use extensions::extension_types;
pub(crate) use file_contents::FileContents;
pub(crate) use files::{ExternalTableFactory, check_received};
pub(crate) use folders::{COLUMN_FILE_SUFFIX, files_of_set, replaceable_files};
pub(crate) use footer_facts::{FooterFacts, Gaps, believable_footers};
pub(crate) use given::among;
pub use given::{GivenRows, GivenTables};
pub(crate) use inserts::with_checked_inserts;
pub(crate) use kept::KeptCatalog;
pub(crate) use memory::{FileMemory, footer_facts};
pub(crate) use mirror::Mirror;
pub(crate) use names::means_text;
pub(crate) use query_log::QueryLog;
pub(crate) use row_order::RowOrder;
pub(crate) use schema::{ConnectionSchema, define, plan_statement};
pub use snapshot::FileSnapshot;
pub(crate) use sniff::SniffCsv;
pub(crate) use stored_values::with_stored_values;
pub(crate) use text_files::{Copies, TEXT_FILES, TextReading, WrittenColumns};
pub(crate) use text_keys::{NULL_KEY, TextCasts, TextKeys, at_places, listing_of, with_format};

pub use crate::default_schema::{CATALOG, SCHEMA};
pub(crate) use crate::default_schema::{LASTING, TEMPORARY};
use crate::formats::FILE_TYPES;

/// The factories for `CREATE EXTERNAL TABLE`, by spelling of `STORED AS`.
pub(crate) fn table_factories() -> impl Iterator<Item = (String, Arc<dyn TableProviderFactory>)> {
    FILE_TYPES.into_iter().map(|name| {
        let factory: Arc<dyn TableProviderFactory> = Arc::new(ExternalTableFactory);
        (name.to_string(), factory)
    })
}
