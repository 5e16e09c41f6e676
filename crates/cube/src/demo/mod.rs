//! The planning demo: a definition, and the tables that it names.
//!
//! [`DEFINITION`] is the definition file. Its facts have 2,000,000 rows of as many base cells, drawn from fixed seeds:
//! each of 9,800 pairs of country and product that are sold has units, revenue and cost in most months of FY24 to FY26,
//! actual and budgeted. Whoever runs the demo writes [`facts()`] as Parquet, [`regions()`] and [`products()`] as CSV
//! beside the definition, and loads that as any other.

mod catalogue;
mod rows;

pub use catalogue::{products, regions};
pub use rows::{FactRows, ROWS, facts};

/// The definition file.
pub const DEFINITION: &str = include_str!("../../demo/plan.yaml");
/// The file of [`facts()`] in the definition.
pub const FACTS_FILE: &str = "facts.parquet";
/// The file of [`regions()`] in the definition.
pub const REGIONS_FILE: &str = "regions.csv";
/// The file of [`products()`] in the definition.
pub const PRODUCTS_FILE: &str = "products.csv";

/// A number of 64 bits that looks random, the same for every run (splitmix64).
fn drawn(seed: u64) -> u64 {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// A drawn number of `least..=most`.
fn drawn_between(seed: u64, least: i64, most: i64) -> i64 {
    least + (drawn(seed) % (most - least + 1) as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_numbers_are_those_of_splitmix64() {
        // The first output of the generator with seed 0, by its authors.
        assert_eq!(drawn(0), 0xe220_a839_7b1d_cdaf);
        assert!((0..1000).all(|seed| (3..=5).contains(&drawn_between(seed, 3, 5))));
    }
}
