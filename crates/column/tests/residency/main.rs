//! Residency on the emulated device: loads, contents, evictions.

mod arrays;
mod budget;
mod bytes;
mod choice;
mod column_file;
mod content;
mod copies;
#[path = "../encodings/data.rs"]
mod data;
mod encoded;
mod named;
mod packed;
mod profiles;
mod relations;
mod source;
