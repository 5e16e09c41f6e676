//! Fragments on the emulated device against a row-at-a-time interpreter.

mod bytes;
mod cancel;
mod constants;
mod decimals;
mod edges;
mod encodings;
mod expressions;
mod first_rows;
mod float_sums;
mod floats;
mod groups;
mod integers;
mod joins;
mod matches;
mod nulls;
mod overflow;
mod predictions;
mod random;
mod scanned_groups;
mod strings;
mod sums;
mod support;
mod tables;
mod top_k;
mod zones;
