//! Top-k at the root of a fragment: the first rows by an order.
//!
//! [`rank`] packs keys and row number into one number, [`form`] decides how the best of them are found, and
//! [`crate::codegen::topk`] writes the kernels that are the fragment's own: one that ranks a sample, the scan, and one
//! that reads the columns of the result. [`run`] records their launches around those of `gpu::prims::topk` and reads
//! the rows. What is kept of a row until the end is its rank alone.

pub(crate) mod form;
pub(crate) mod rank;
pub(crate) mod run;
