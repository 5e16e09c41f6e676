//! Multidimensional cubes: dimensions with weighted hierarchies, sparse storage schemes and the aggregation of areas.

pub mod schemes;
