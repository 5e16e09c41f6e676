//! Aggregation on a device: contraction by sparse weight matrices, and the source-based and target-based algorithms
//! that it is compared with. [`DeviceAlgorithm`] names all of them, and all give the same cells.
//!
//! Values are columns that the shared residency keeps plain ([`FactsSource`]); keys are packed in miniblocks of 128
//! facts (`keys.rs`); all algorithms share both ([`ResidentFacts`]). Contraction: one pass adds up facts by classes of
//! base elements, those that every target weighs alike; dimensions of one class are not looked at. Then each dimension
//! whose classes are not targets themselves is multiplied by a sparse matrix, in the order of the CPU, and a last
//! kernel writes the filled cells in order. The host waits once, for the cells.
//!
//! Contraction takes measures of all rules and types, as components (`measure.rs`): an AVG is two. What a component
//! adds up is chosen from bounds (`accumulation.rs`). The other algorithms take sums of decimals under whole weights
//! whose bounds prove that they hold in 64 bits, and sums of doubles as those of several columns of whole numbers
//! (`limbs.rs`), and refuse others.
//!
//! Memory: values as they are; keys take the bits of the distance within a miniblock, and 12 bytes a miniblock for its
//! first key and its start. One workspace a statement comes from the device's pool.

mod accumulation;
mod aggregation;
mod cells;
mod classes;
mod contract;
mod contraction;
mod cost;
mod error;
mod expand;
mod forecast;
mod keys;
mod limbs;
mod measure;
mod plan;
mod resident;
mod scan;
mod source;
mod source_based;
mod statement;
mod sums;
mod target_based;
mod workspace;

pub use aggregation::DeviceAggregation;
pub use cells::DeviceCells;
pub use contract::DeviceContraction;
pub use cost::DeviceChoice;
pub use error::DeviceError;
pub use forecast::{PlaceTimes, forecast, load_ms_predicted};
pub use resident::{FactBytes, ResidentFacts};
pub use scan::ScanTuning;
pub use source::FactsSource;
pub use source_based::{BATCH_PARENTS, CHILD_THREADS, PARENT_CELLS, SourceBased};
pub use statement::RecordedRun;

pub use crate::algorithm::{
    DeviceAlgorithm, Expansion, HASH_FUNCTIONS_MAX, MapPlace, Preaggregation, SourceVariant, UnknownVariant,
};
