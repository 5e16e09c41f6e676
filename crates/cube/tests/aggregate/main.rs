//! Aggregation against an oracle of exact arithmetic.

mod algorithms;
mod edges;
mod lookup;
mod oracle;
mod random;
