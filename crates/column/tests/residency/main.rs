//! Columns on the emulated device: what is loaded, what it holds, which columns stay.

mod arrays;
mod budget;
mod choice;
mod content;
mod copies;
#[path = "../encodings/data.rs"]
mod data;
mod encoded;
mod kept;
mod named;
mod packed;
mod profiles;
mod relations;
mod source;
