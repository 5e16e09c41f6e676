//! Multidimensional cubes: dimensions with weighted hierarchies, sparse storage schemes and the aggregation of areas.
pub mod define;
pub mod error;
pub mod model;
pub mod query;
