//! The filled base cells of a cube: sorted by a packed key, one cell a key, with the values of every measure.
//!
//! Invariants: keys ascend strictly; a stored cell has a value of at least one measure; empty is not zero; doubles are
//! finite and never −0.0. Pages are runs of cells with the bounds of every coordinate, which the page prefilter of
//! aggregation reads (Meinke, *In-memory OLAP aggregation on GPUs using CUDA Dynamic Parallelism*, 4.2).

mod arrow;
mod bitmap;
mod carry;
mod error;
mod fold;
mod input;
mod keys;
mod loader;
mod measure;
mod page;
mod precise;
mod select;
mod store;

pub use bitmap::Bitmap;
pub use error::FactsError;
pub use input::{InputColumn, InputValues};
pub use keys::Keys;
pub use loader::Loader;
pub use measure::{FactMeasure, Rule, SCALE_MAX, ValueType};
pub use page::{PAGE_CELLS, Pages};
pub use store::{FactColumn, Facts, Values};

pub(crate) use arrow::count_array;
pub(crate) use precise::{Large, Precise};

pub use crate::key::KeyLayout;
