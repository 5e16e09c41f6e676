//! The planning demo: a definition, and the tables that it names.
//!
//! [`DEFINITION`] is the definition file. Its facts have 2,000,000 rows of as many base cells, drawn from fixed seeds:
//! each of 9,800 pairs of country and product that are sold has units, revenue and cost in most months of FY24 to FY26,
//! actual and budgeted. The caller writes [`facts()`] as Parquet, [`regions()`] and [`products()`] as CSV beside the
//! definition, and loads it as any other.

mod catalogue;
mod rows;

pub use catalogue::{products, regions};
pub use rows::{FactRows, ROWS, facts};

use warpcube_arrays::random::Random;

/// The definition file.
pub const DEFINITION: &str = include_str!("../../demo/plan.yaml");
/// The file of [`facts()`] in the definition.
pub const FACTS_FILE: &str = "facts.parquet";
/// The file of [`regions()`] in the definition.
pub const REGIONS_FILE: &str = "regions.csv";
/// The file of [`products()`] in the definition.
pub const PRODUCTS_FILE: &str = "products.csv";

/// A number of 64 bits that looks random, the same for every run.
fn drawn(seed: u64) -> u64 {
    Random::new(seed).next()
}

/// A drawn number of `least..=most`.
fn drawn_between(seed: u64, least: i64, most: i64) -> i64 {
    least + (drawn(seed) % (most - least + 1) as u64) as i64
}
