//! A fragment from its tables to its rows: binding to columns, launches, and what is read back.
//!
//! [`engine`] is a device with its columns. [`bind`] makes text of kernels and an arena of a fragment and the columns
//! it runs over, [`kernels`] compiles the text, [`binding`] keeps both for the next run; [`phases`] lists what a run
//! does, [`run`] runs that, [`recorded`] as one recording, [`growth`] moves what was left to where there is more
//! room, [`report`] tells of it; [`read`] and [`result`] make Arrow batches, [`topk`] the rows of a top-k, whose scan
//! is between launches of `gpu::prims::topk`, [`windows`] columns of the rows of a sort. [`view`] has the columns that
//! pipelines scan, [`predict`] tells what a run will do.

pub(crate) mod bind;
pub(crate) mod binding;
mod constants;
pub(crate) mod engine;
mod growth;
mod kernels;
mod phase;
pub(crate) mod phases;
pub(crate) mod predict;
pub(crate) mod read;
pub(crate) mod recorded;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod topk;
mod view;
mod windows;
