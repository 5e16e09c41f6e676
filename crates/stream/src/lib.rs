//! Stream cubes: H-trees of tuples, built, updated and queried on the CPU and on a device.
//!
//! Source: Wang and Yu, *Parallel H-Tree Based Data Cubing on Graphics Processors* ("the paper" in the files of this
//! crate). A [`Schema`] has the dimensions of tuples, their order in the tree and the measures. A tree is made of
//! [`Tuples`] and changed by batches of them: [`cpu::CpuTree`] by one core, [`device::DeviceTree`] by kernels. Both
//! have the arrays of [`Tree`], to the bit. Cells are asked for by [`Query`], groups of them by [`SubCube`].
//!
//! ```text
//! level 0   root                 a node for all tuples
//! level 1   (2)      (5)         a node for each value of the first dimension that a tuple has
//! level 2   (1) (3)  (1)         below it one for each value of the second, ascending
//! ```
//!
//! Invariants: nodes of a level ascend by their path from the root; a node's measures are those of the tuples below it;
//! leaves are distinct tuples; a tree is a version, which no change touches: a change makes another tree. A sum that
//! leaves 64 bits is an error.

pub mod cpu;
pub mod device;
mod error;
mod query;
mod schema;
mod tree;
mod tuples;

pub use error::{Result, StreamError};
pub use query::{Answers, Condition, Query, Rows, SubCube};
pub use schema::{DIMENSIONS_MAX, Dimension, MEASURES_MAX, Measure, Order, Schema};
pub use tree::{Header, Level, Tree};
pub use tuples::Tuples;
