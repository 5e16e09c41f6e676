//! Operators on the emulated device, in several orders of lanes, warps and blocks, against plain-Rust references; on a
//! GPU, each once, if `WARPCUBE_TEST_DEVICE` is `cuda`.

#[path = "../../../gpu/tests/emulated_support/mod.rs"]
mod emulated_support;

// The operators' tests use a part of it.
#[allow(dead_code)]
#[path = "../../../gpu/tests/prims/common.rs"]
mod common;
mod hash_group_by;
mod hash_join;
mod ordered;
mod ordered_fused;
mod project;
mod small_device;
