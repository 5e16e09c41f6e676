//! Aggregation on a device: contraction by sparse weight matrices.
//!
//! Facts are a relation: columns of keys and values that the shared residency keeps encoded ([`FactsSource`]). One
//! pass over them sums by classes of base elements, those that every target weighs alike; then each dimension's
//! classes become targets by a sparse matrix, the dimension that grows least first. Sums are words of 64 bits, used
//! where bounds prove that they hold; other aggregations are refused, and the CPU computes them.

mod classes;
mod contract;
mod expand;
mod gather;
mod source;

pub use contract::{DeviceCells, DeviceContraction, DeviceError};
pub use source::FactsSource;
