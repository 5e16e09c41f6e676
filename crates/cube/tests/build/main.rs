//! Cubes from definitions and tables in memory.

mod bad_input;
mod by_hand;
mod demo;
mod forms;
mod group_by;
mod refresh;
mod tables;
mod unknown;
mod values;
