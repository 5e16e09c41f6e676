//! Aggregation of an area: the cells of a cross product of targets from the filled base cells below them.
//!
//! What holds for every algorithm: a target is filled if a filled base cell lies below it, even if its sum is 0. SUM is
//! weighted; COUNT, AVG, MIN and MAX take each filled base cell below a target once, weights aside. Whole weights keep
//! decimals exact; other weights and doubles add with twice the precision of a double and round once. An algorithm
//! gives the same bits on every run and on any number of threads, and all algorithms the same bits where sums are
//! exact. Only a final cell overflows, and the error names it.
//!
//! Sources: Meinke, *In-memory OLAP aggregation on GPUs using CUDA Dynamic Parallelism*, 2.3 (source-based and
//! target-based aggregation, aggregation map), 4.1 (single-threaded algorithm), 4.2 (page and cell prefilter).

mod area;
mod cells;
mod component;
mod contract;
mod cost;
mod decision;
mod drill;
mod error;
mod map;
mod monoid;
mod nearest;
mod product;
mod products;
mod request;
mod run;
mod scan;
mod source;
mod sums;
mod target;

pub use area::Area;
pub(crate) use area::{places, strides};
pub use cells::{CellColumn, CellValue, Cells, MeasureCells};
pub(crate) use component::{ByRank, Component, ComponentSums, Reducer, Summand, measure_cells};
pub use cost::{Work, work};
pub(crate) use cost::{cells_below, in_segments, rounded};
pub use decision::{Decision, Place, Prediction};
pub use drill::{BaseCell, drill_through};
pub use error::AggregateError;
pub use map::TargetMap;
pub(crate) use monoid::{Extreme, Narrow, Wide};
pub use nearest::{Neighbour, nearest};
pub(crate) use products::{Product, Products};
pub use request::{AggregateReport, Request, TARGETS_MAX, Tuning};
pub(crate) use run::magnitudes;
pub use run::{aggregate, forecast};

pub use crate::algorithm::Algorithm;
pub use crate::progress::Progress;
