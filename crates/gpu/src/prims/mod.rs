//! Device primitives: the operations that query pipelines, cubes and benchmarks are built from. What is built from them
//! for benchmarks alone (joins, aggregations) are operators of the crate `warpcube-bench`.
//!
//! Each primitive is one concept under one name: the kernel file `kernels/prims/<name>.cuh`, the launcher and its
//! tuning `prims/<name>.rs`, the plain-Rust reference beside the launcher, the test `tests/prims/<name>.rs` and the
//! benchmark of `warpcube-bench primitives` (`large/<name>` where a suite of the papers has none). Some share files:
//! partition and split are a selection that keeps the other rows too, and lie in the kernels and tests of `select`,
//! which is also what others call compaction; scatter lies beside gather.
//!
//! A launcher is made once for a device and the types of its operands, which compiles its kernels. Its `launch` puts
//! work on a [`Queue`] (a stream, or recorded work) and never waits. Invariants: types, lengths and the size of the
//! scratch memory are checked before the first launch, and a refusal names them ([`crate::GpuError::Contract`]); row
//! counts are 64-bit; input is not written unless the launcher says so; no launch reads what none has written.
//!
//! Keys are of all [`Element`]s, and so are items and payload that move. Refused are: sums of 16 bytes, and sums of
//! floats but in `f64` ([`Sum`]); scans and segmented forms of the least and largest of 16 bytes; row numbers and
//! offsets other than `u32` and `u64`.

mod element;
mod gather;
#[cfg(test)]
mod gpu_programs;
pub mod lookback;
mod monoid;
mod partition;
mod queue;
pub mod radix_partition;
mod reduce;
pub mod roofline;
mod scan;
mod scan_keyed;
mod segmented;
mod select;
#[cfg(test)]
mod single_pass_tests;
mod slice;
mod split;
pub mod sum;
pub mod tile;
pub mod topk;
mod tuning;

pub use element::{Element, Key, OrderedBits};
pub use gather::{Gather, Scatter, gather, scatter};
pub use monoid::{Monoid, Reduction};
pub use partition::{Partition, partition};
pub use queue::Queue;
pub use reduce::{Reduce, largest, least, sum};
pub use scan::{Scan, ScanKind, ScanSpec, scan};
pub use scan_keyed::{ScanKeyed, ScanKeyedSpec, scan_keyed};
pub use segmented::{SegmentedReduce, SegmentedScan, segmented_reduce, segmented_scan};
pub use select::{Moved, Predicate, Select, SelectOperands, SelectOrder, select};
pub use slice::DeviceSlice;
pub use split::{Split, split};
pub use sum::Sum;
pub use tile::TileTuning;
pub mod histogram;
pub mod merge;
pub mod radix_sort;
pub mod search;
pub mod segmented_sort;
pub mod sort;
pub use histogram::{Histogram, HistogramBins, HistogramTuning};
pub use merge::{Merge, MergeTuning};
pub use radix_partition::{PartitionBy, RadixPartition};
pub use radix_sort::{RadixAlgorithm, RadixOrder, RadixSort, RadixTuning, Records};
pub use roofline::DeviceRates;
pub use search::{Search, SearchMethod, SearchSide};
pub use segmented_sort::{SegmentedSort, SegmentedTuning};
pub use sort::{Nulls, Sort, SortColumn, SortKey, SortSpec};
pub use tuning::Measured;

use crate::buffer::DeviceBuffer;
use crate::error::{GpuError, Result};

/// Kernel text that all primitives start with: order-preserving bits of keys.
pub const KEYS: &str = include_str!("../../kernels/prims/keys.cuh");

/// Kernel text of what one block does for a grid: the last one that is done, and a sort of few items.
pub const ONE_BLOCK: &str = include_str!("../../kernels/prims/one_block.cuh");

/// Refuses an operand that is not as long as the operation.
///
/// # Errors
/// [`GpuError::Contract`] with both lengths.
pub fn check_length(operation: &str, operand: &str, slice: &DeviceSlice, length: u64) -> Result<()> {
    if slice.len() == length {
        return Ok(());
    }
    let message = format!("{operation}: {operand} has {} elements, and {length} are needed", slice.len());
    Err(GpuError::Contract(message))
}

/// Refuses an operand of another type than the launcher was made for.
///
/// # Errors
/// [`GpuError::Contract`] with both types.
pub fn check_element(operation: &str, operand: &str, slice: &DeviceSlice, element: Element) -> Result<()> {
    if slice.element() == element {
        return Ok(());
    }
    let message = format!("{operation}: {operand} has elements of {}, not of {element}", slice.element());
    Err(GpuError::Contract(message))
}

/// Refuses scratch memory that is too small.
///
/// # Errors
/// [`GpuError::Contract`] with both sizes in bytes.
pub fn check_scratch(operation: &str, scratch: &DeviceBuffer, bytes: usize) -> Result<()> {
    if scratch.bytes() >= bytes {
        return Ok(());
    }
    let message = format!("{operation}: the scratch memory has {} bytes, and {bytes} are needed", scratch.bytes());
    Err(GpuError::Contract(message))
}
