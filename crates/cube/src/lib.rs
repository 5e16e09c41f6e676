//! Multidimensional cubes: dimensions with weighted hierarchies, sparse storage schemes and the aggregation of areas.
pub mod error;
pub mod model;
pub mod palo;
