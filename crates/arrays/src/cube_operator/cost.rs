//! What the groupings of a CUBE cost, and how many groups a cuboid has.

use super::paths::Mask;
use super::rows::Extent;

/// Bits of a digit of sorts.
const DIGIT_BITS: f64 = 8.0;
/// Groups of a hash table that stays in a core's cache.
const HASH_SMALL_GROUPS: f64 = 65_536.0;

/// Nanoseconds of the steps of a grouping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Of a run, whatever its rows.
    pub run: f64,
    /// Of a row whose components are joined, whatever the way.
    pub row: f64,
    /// Of a row that is sorted: its key in another order, its record, its place among the groups.
    pub record: f64,
    /// Of a row in a pass of the sort over 8 bits.
    pub pass: f64,
    /// Of a row in the dense table and of an entry of the table; absent where there is none.
    pub dense: Option<[f64; 2]>,
    /// Of a row in a hash table of up to 2^16 groups, and of more; absent where there is none.
    pub hash: Option<[f64; 2]>,
    /// Of a group that becomes part of a group of the next shorter prefix.
    pub prefix: f64,
}

impl Costs {
    /// One core, from the time that a core of an Intel Xeon was busy with a million rows and all five rules
    /// (2026-11-30, a shared machine): no sort 35 ns a row, one pass 60; a table of 2^8 entries 11, of 2^22 123, of
    /// 2^24 197; a hash table of 256 groups 14, of 890,000 206, their sort and cache misses of the components included.
    pub const CPU: Costs = Costs {
        run: 2_000.0,
        row: 8.0,
        record: 27.0,
        pass: 15.0,
        dense: Some([3.0, 5.0]),
        hash: Some([6.0, 60.0]),
        prefix: 10.0,
    };

    /// An H200, which sorts alone. Estimated from the rates of its primitives (a pass of the radix sort over 12 bytes,
    /// a gather of 8 bytes at random, launches and a wait of a run); not measured as a whole.
    pub const H200: Costs =
        Costs { run: 150_000.0, row: 0.08, record: 0.02, pass: 0.014, dense: None, hash: None, prefix: 0.05 };

    /// Nanoseconds of a sort of rows by so many bits and the groups of it.
    pub(crate) fn sort(&self, rows: f64, bits: u32) -> f64 {
        self.run + rows * (self.row + self.record + self.pass * (f64::from(bits) / DIGIT_BITS).ceil())
    }

    /// Nanoseconds of a table of 2^bits entries.
    pub(crate) fn dense(&self, rows: f64, bits: u32) -> Option<f64> {
        self.dense.map(|[row, entry]| self.run + rows * (self.row + row) + 2f64.powi(bits as i32) * entry)
    }

    /// Nanoseconds of a hash table with so many groups, which are sorted behind.
    pub(crate) fn hash(&self, rows: f64, groups: f64, bits: u32) -> Option<f64> {
        let [small, large] = self.hash?;
        let hash = if groups <= HASH_SMALL_GROUPS { small } else { large };
        Some(self.run + rows * (self.row + hash) + self.sort(groups, bits))
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
