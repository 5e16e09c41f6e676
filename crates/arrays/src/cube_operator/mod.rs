//! The CUBE operator: the aggregates of all 2^k combinations of k dimensions of a sparse array or of a cube's facts.
//!
//! ```text
//! Rows (keys, values) ── Plan::new ──> runs ── cube ──> cuboid after cuboid to a sink
//!                                        └── Plan::explain: how each cuboid is made, and why
//! ```
//!
//! A [`Plan`] has runs. A run groups its source (the rows, or a cuboid that has all dimensions of the run) by its order
//! of dimensions, and gives the cuboids of a path of prefixes in one pass over the groups. How it groups is a [`Way`],
//! which an [`Algorithm`] fixes or a cost model chooses. [`iceberg`] gives the groups of at least a number of rows
//! alone and drops others before they are refined.
//!
//! Invariants: all algorithms give the same groups; integers are exact, sums of doubles may differ in their last bits.
//! A cuboid without groups is not given. In memory are the cuboids of the runs from the rows to the one at work, as far
//! as others are made from them.
//!
//! Source: Gray et al., *Data Cube* (1997); Agarwal et al., *On the Computation of Multidimensional Aggregates* (VLDB
//! 1996: smallest parent, shared sorts); Wang, *Sparse Array Representations … on GPUs*, sections 2.3, 4.5 and 5.4.

pub(crate) mod asked;
mod columns;
mod cost;
mod cuboid;
pub(crate) mod grouping;
mod iceberg;
mod paths;
mod plan;
pub(crate) mod rows;
mod run;
mod sort;

pub use asked::{Algorithm, CUBE_DIMENSIONS_MAX, Rule};
pub(crate) use columns::Columns;
pub use columns::Components;
pub use cost::Costs;
pub use cuboid::Cuboid;
pub(crate) use cuboid::Level;
pub(crate) use iceberg::refining_order;
pub use iceberg::{Iceberg, iceberg};
pub use paths::{Path, paths};
pub use plan::{Plan, Planned, Run, Source, Way};
pub use rows::{Extent, Rows};
pub use run::cube;
