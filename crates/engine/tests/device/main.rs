//! Fragments on the emulated device against a row-at-a-time interpreter.

mod first;
mod support;
