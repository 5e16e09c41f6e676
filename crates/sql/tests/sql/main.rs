//! Tests of the SQL layer: one binary, since each links DataFusion.

mod ssb;
mod support;
