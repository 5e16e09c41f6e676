//! Every storage scheme holds the cells of a map: random arrays, edges of shapes, limits, sizes, a million
//! cells, the device.

mod arrays;
mod changes;
mod device;
mod edges;
mod equal;
mod model;
mod sizes;
mod volume;
