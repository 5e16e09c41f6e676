//! The `warpcube` program.
fn main() {}
