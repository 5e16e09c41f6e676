//! A fragment from its tables to its rows: binding to columns, launches, and what is read back.
//!
//! [`bind`] makes kernels and an arena of a fragment and the columns it runs over, [`binding`] keeps them for the next
//! run, [`run`] runs them, [`recorded`] as one recording; [`read`] and [`result`] make Arrow batches, [`topk`] the rows
//! of a top-k, whose scan is between launches of `gpu::prims::topk`. [`predict`] tells what a run will do.

pub(crate) mod bind;
pub(crate) mod binding;
mod constants;
pub(crate) mod predict;
pub(crate) mod read;
pub(crate) mod recorded;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod topk;
