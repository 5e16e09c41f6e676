//! Primitives on the emulated device, in every order of lanes, warps and blocks, against plain-Rust references; on a
//! GPU, each once, if `WARPCUBE_TEST_DEVICE` is `cuda`.

#[path = "../emulated_support/mod.rs"]
mod emulated_support;

mod common;
mod edges;
mod gather;
mod histogram;
mod lookback;
mod merge;
mod radix_partition;
mod radix_sort;
mod reduce;
mod scan;
mod scan_keyed;
mod search;
mod segmented;
mod segmented_sort;
mod select;
mod small_device;
mod sort;
mod topk;
