//! Every storage scheme holds the cells of a map: random arrays, edges of shapes, limits, sizes and a million cells.

mod arrays;
mod changes;
mod edges;
mod equal;
mod model;
mod sizes;
mod volume;
