//! Primitives on the emulated device, in every order of lanes, warps and blocks, against plain-Rust references.

#[path = "../emulated_support/mod.rs"]
mod emulated_support;
mod topk;
