//! All algorithms of the CUBE operator give the groups of a brute force: random rows of up to six dimensions, edges,
//! the iceberg form, plans.

mod device;
mod edges;
mod equal;
mod iceberg;
mod model;
mod plans;
