//! All aggregation algorithms by name: the same cells of random cubes, and what a name that cannot run is told.

mod algorithms;
mod balances;
mod bounds;
mod cube;
mod limits;
mod names;
mod schemes;
mod segments;
