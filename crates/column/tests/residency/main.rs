//! Columns on the emulated device: what is loaded, what it holds, who may stay.

mod budget;
mod content;
mod copies;
mod kept;
mod packed;
mod source;
