//! The suite `cube`: aggregation of areas on a device, over the two cubes of Meinke's thesis (*In-memory OLAP
//! aggregation on GPUs using CUDA Dynamic Parallelism*, chapter 5).
//!
//! A cube is a definition under `bench/cubes` ([`Definition`]), from which facts are drawn ([`Draw`]); the counts of
//! the thesis's tables 5.1 and 5.2 follow from a drawing without its facts ([`Counts`]). `bench/cubes/thesis.json` has
//! the thesis's own figures.

mod algorithms;
mod args;
mod children;
mod counts;
mod definition;
mod draw;
mod elements;
mod measured;
mod rules;
mod suite;
mod tables;
mod thesis;

pub use args::CubeArgs;
pub use counts::Counts;
pub use definition::{Definition, Query};
pub use draw::Draw;
pub use elements::BenchCube;
pub use suite::Cubes;
