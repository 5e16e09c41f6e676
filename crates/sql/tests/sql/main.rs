//! Tests of the SQL layer: one binary, since each links DataFusion.

mod again;
mod bad_files;
mod budget;
mod cancel;
mod changes;
mod datafusion_files;
mod drops;
mod encoded;
mod explain;
mod faults;
mod float_sums;
mod folders;
mod format;
mod fuzz;
mod kept;
mod loading;
mod overhead;
mod partial;
mod records;
mod slt;
mod spill;
mod ssb;
mod support;
mod templates;
mod tpch;
mod writes;
