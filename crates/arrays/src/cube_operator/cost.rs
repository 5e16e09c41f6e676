//! What the groupings of a CUBE cost, and how many groups a cuboid has.

use super::paths::Mask;
use super::rows::Extent;

/// Bits of a digit of sorts.
const DIGIT_BITS: f64 = 8.0;

/// Nanoseconds of the steps of a grouping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Of a run, whatever its rows.
    pub run: f64,
    /// Of a row: its key in another order, its place among the groups, its components joined.
    pub row: f64,
    /// Of a row in a pass of the sort over 8 bits.
    pub pass: f64,
    /// Of a row in the dense table and of an entry of the table; absent where there is none.
    pub dense: Option<[f64; 2]>,
    /// Of a row in a hash table; absent where there is none.
    pub hash: Option<f64>,
    /// Of a group that becomes part of a group of the next shorter prefix.
    pub prefix: f64,
}

impl Costs {
    /// One core of a Xeon at 2.1 GHz.
    pub const CPU: Costs =
        Costs { run: 2_000.0, row: 12.0, pass: 5.0, dense: Some([4.0, 1.0]), hash: Some(40.0), prefix: 8.0 };

    /// An H200, which sorts alone. Estimated from the rates of its primitives (a pass of the radix sort over 12 bytes,
    /// a gather of 8 bytes at random, launches and a wait of a run); not measured as a whole.
    pub const H200: Costs = Costs { run: 150_000.0, row: 0.1, pass: 0.014, dense: None, hash: None, prefix: 0.05 };

    /// Nanoseconds of a sort of rows by so many bits and the groups of it.
    pub(crate) fn sort(&self, rows: f64, bits: u32) -> f64 {
        self.run + rows * (self.row + self.pass * (f64::from(bits) / DIGIT_BITS).ceil())
    }

    /// Nanoseconds of a table of 2^bits entries.
    pub(crate) fn dense(&self, rows: f64, bits: u32) -> Option<f64> {
        self.dense.map(|[row, entry]| self.run + rows * (self.row + row) + 2f64.powi(bits as i32) * entry)
    }

    /// Nanoseconds of a hash table with so many groups, which are sorted behind.
    pub(crate) fn hash(&self, rows: f64, groups: f64, bits: u32) -> Option<f64> {
        self.hash.map(|hash| self.run + rows * (self.row + hash) + self.sort(groups, bits))
    }
}

/// Groups that a cuboid is expected to have: of n rows spread alike over P places, P · (1 − (1 − 1/P)^n) (Cardenas
/// 1975). Rows that are not spread alike have fewer.
pub(crate) fn expected_groups(extent: &Extent, cuboid: Mask) -> f64 {
    let dimensions = (0..extent.cardinalities.len()).filter(|dimension| cuboid & 1 << dimension != 0);
    let places: f64 = dimensions.map(|dimension| extent.cardinalities[dimension] as f64).product();
    let rows = extent.rows as f64;
    match places <= 1.0 {
        true => places.min(rows),
        false => -places * (rows * (-1.0 / places).ln_1p()).exp_m1(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyLayout;

    #[test]
    fn groups_are_bounded_by_places_and_rows() {
        let layout = KeyLayout::new(&[10, 10, 20]).unwrap();
        let extent = Extent { layout, rows: 1000, cardinalities: vec![1, 1000, 1 << 20], is_sorted: true };
        let groups = |cuboid| expected_groups(&extent, cuboid);
        assert_eq!((groups(0), groups(0b1)), (1.0, 1.0));
        assert!((groups(0b10) - 632.3).abs() < 0.1, "{}", groups(0b10));
        assert!((999.0..1000.0).contains(&groups(0b110)));
        assert_eq!(expected_groups(&Extent { rows: 0, ..extent.clone() }, 0), 0.0);
    }
}
