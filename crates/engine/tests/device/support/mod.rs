//! What the tests share: tables in memory, a row-at-a-time interpreter of fragments, and one call that runs a fragment
//! on the emulated device and compares.

mod build;
mod calendar;
mod check;
mod grouped;
mod interpret;
mod nvrtc;
mod scalar;
mod source;
mod top_k;
mod windows;

pub use build::*;
pub use check::*;
pub use nvrtc::compile_for_a_gpu;
pub use scalar::{Scalar, scalars};
pub use source::{MemoryTable, Shape};
pub use top_k::*;
