//! Storage schemes on a device: bulk random access, sub-arrays and aggregation of BESS, xCRS, BxCRS and hybrid.
//!
//! Source: Wang, *Sparse Array Representations and Some Selected Array Operations on GPUs*, chapter 5. A
//! [`DeviceArray`] holds the arrays of a scheme that was built on the CPU; all schemes are one layout of keys within
//! blocks (`kernels/array.cuh`). Each operation is an object with its memory: [`Lookup`], [`Retrieval`],
//! [`Aggregation`]. Its `launch` puts work on a queue and does not wait, so that the work can be recorded; its `read`
//! copies results to the host. [`DeviceArray::get`], [`DeviceArray::sub_array`] and [`DeviceArray::prefix_sums`] do
//! both, and give what the CPU's `Storage` gives. [`DeviceRows::cube`] is the CUBE operator.
//!
//! Limits: fewer than 2^32 cells, keys up to 128 bits; sums of integers whose magnitudes together fit 63 bits.

mod array;
mod cube_operator;
mod error;
mod get;
mod prefix_sums;
mod sub_array;

pub use array::{DeviceArray, DeviceValue};
pub use cube_operator::{CubeKernels, DeviceCuboid, DeviceKey, DeviceRows};
pub use error::{DeviceSchemeError, Result};
pub use get::Lookup;
pub use prefix_sums::Aggregation;
pub use sub_array::Retrieval;
