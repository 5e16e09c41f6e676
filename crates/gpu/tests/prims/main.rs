//! Primitives on the emulated device, in every order of lanes, warps and blocks, against plain-Rust references.

#[path = "../emulated_support/mod.rs"]
mod emulated_support;

mod common;
mod gather;
mod lookback;
mod ordered;
mod project;
mod reduce;
mod scan;
mod segmented;
mod select;
mod histogram;
mod merge;
mod radix_sort;
mod search;
mod segmented_sort;
mod sort;
mod topk;
