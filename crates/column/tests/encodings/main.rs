//! Encodings against the values that went in: every storage, distribution and encoding.

mod data;
mod layouts;
mod round_trips;
