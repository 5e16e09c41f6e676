//! H-trees on a device. `kernels/*.cuh` are the device's side of this module.
//!
//! A build, a batch and a removal are one way: rows with an order ([`rows`]) become levels, measures, side links and
//! header tables ([`build`]). A tree is not changed where it is: a changed tree is another one, and queries on the one
//! before it go on. Every operation waits for the device where it needs a number of nodes, and at its end.

mod build;
mod kernels;
mod query;
mod rows;
mod sub_cube;
mod tree;
mod tuples;
mod update;

pub use kernels::Kernels;
pub use query::QueryBatch;
pub use tree::DeviceTree;
pub use tuples::DeviceTuples;
