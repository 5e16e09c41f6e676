//! Multidimensional cubes: dimensions with weighted hierarchies, sparse storage schemes and the aggregation of areas.

pub mod aggregate;
pub mod answer;
pub mod ask;
pub mod build;
pub mod catalog;
pub mod change;
pub mod define;
pub mod demo;
pub mod device;
pub mod error;
pub mod facts;
pub mod matrix;
pub mod matrix_market;
pub mod model;
pub mod palo;
pub mod progress;
pub mod query;
pub mod random;
pub mod schemes;
pub mod store;
pub mod view;
