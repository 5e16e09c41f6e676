//! Operators of one form each, as papers compare them: hash joins and hash aggregations of keys and values of 32 bits,
//! ordered aggregation, projections. The engine generates a kernel for each query instead, so benchmarks alone run
//! them.
//!
//! An operator is built like a primitive of [`warpcube_gpu::prims`] and lies under one name in `kernels/<name>.cuh`,
//! here, and in `tests/operators/<name>.rs`. Its launcher is made once for a device and the types of its operands; a
//! launch puts work on a [`warpcube_gpu::prims::Queue`] and never waits.

#[cfg(test)]
#[path = "../../../gpu/src/prims/gpu_programs.rs"]
mod gpu_programs;
pub mod hash_group_by;
pub mod hash_join;
pub mod key_slots;
pub mod ordered;
pub mod project;
pub mod roofline;
