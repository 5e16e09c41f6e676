//! Columns in host memory: segments are encoded by the CPU, which reads them vector by vector where they lie.

mod encode;
mod vectors;

pub(crate) use encode::{encode_column, remap_codes};
pub use vectors::{ColumnVectors, Values, VectorBuffer, rows_of_places};
