//! Tests of the SQL layer: one binary, since each links DataFusion.

mod again;
mod datafusion_files;
mod format;
mod fuzz;
mod records;
mod slt;
mod ssb;
mod support;
mod tpch;
