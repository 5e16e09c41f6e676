//! The filled base cells of a cube: one cell a key, with the values of every measure.
//!
//! Cells lie in segments, each sorted by a packed key: a base, and one for each later change whose cells are few
//! (`changes.rs`). A segment never changes; cells that a later one replaces or removes are marked as not live. Queries
//! pass over the segments in turn: on the CPU over their pages one after the other, on a device with a launch each.
//!
//! Invariants: keys of a segment ascend strictly; a key has one live cell; a live cell has a value of at least one
//! measure, others have none; empty is not zero; doubles are finite and never −0.0. Pages are runs of cells with the
//! bounds of every coordinate, which the page prefilter of aggregation reads (Meinke, *In-memory OLAP aggregation on
//! GPUs using CUDA Dynamic Parallelism*, 4.2).

mod arrow;
mod bitmap;
mod carry;
mod changes;
mod column;
mod error;
mod fold;
mod input;
mod keys;
mod loader;
mod measure;
mod page;
mod precise;
mod segment;
mod select;
mod store;

pub use bitmap::Bitmap;
pub use changes::SegmentTuning;
pub use column::{FactColumn, Values};
pub use error::FactsError;
pub use input::{InputColumn, InputValues};
pub use keys::Keys;
pub use loader::Loader;
pub use measure::{FactMeasure, Rule, SCALE_MAX, ValueType};
pub use page::{PAGE_CELLS, Pages};
pub use segment::Segment;
pub use store::Facts;

pub(crate) use arrow::count_array;
pub(crate) use precise::{Large, Precise};

pub use warpcube_arrays::key::KeyLayout;
