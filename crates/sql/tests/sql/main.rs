//! Tests of the SQL layer: one binary, since each links DataFusion.

mod again;
mod cancel;
mod datafusion_files;
mod explain;
mod format;
mod fuzz;
mod loading;
mod overhead;
mod records;
mod slt;
mod ssb;
mod support;
mod tpch;
