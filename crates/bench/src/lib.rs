//! Benchmarks: suites, the runner that all of them share, and their results as tables and charts.
//!
//! [`report`], [`stats`] and [`render`] are always there, and light. The feature `kernels` has the [`suite`]s without
//! SQL and the program `warpcube-bench`, the feature `queries` those over a session. A program opens the device, hears
//! the run ([`suite::Listener`]) and may stop it.

#[cfg(feature = "kernels")]
pub mod cube;
#[cfg(feature = "kernels")]
pub mod cube_operator;
#[cfg(feature = "kernels")]
pub mod encodings;
#[cfg(feature = "kernels")]
pub mod htree;
#[cfg(feature = "kernels")]
pub mod operators;
#[cfg(feature = "kernels")]
pub mod prims;
#[cfg(feature = "queries")]
pub mod queries;
pub mod render;
pub mod report;
#[cfg(feature = "kernels")]
pub mod schemes;
pub mod stats;
#[cfg(feature = "kernels")]
pub mod suite;
#[cfg(feature = "kernels")]
mod timing;
