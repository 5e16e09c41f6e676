//! Bytes of each scheme: the thesis's formulas, and the exact bytes of the layouts here.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 2.1.1 to 2.1.3, formulas
//! 3.2 to 3.5 and section 7.1 (storage ratio).

use super::pointers::{Dense, Pointers, Ranked};
use super::ranked_bitmap::RankedBitmap;
use super::{Cells, Scheme, Shape, Value};

/// Bytes of the words that the formulas name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// An integer, `C_i`.
    pub int: u64,
    /// The longest integer, `C_il`.
    pub long: u64,
    /// A link of a trie; the thesis takes `C_il`.
    pub link: u64,
    /// A value, `C_f`.
    pub value: u64,
}

impl Words {
    /// The words of the thesis: integers of 4 and 8 bytes, links of 8, values of 4.
    pub const THESIS: Self = Self { int: 4, long: 8, link: 8, value: 4 };
    /// The words here: integers of 4 and 8 bytes, links of 4, values of 8.
    pub const OURS: Self = Self { int: 4, long: 8, link: 4, value: 8 };
}

/// Statistics from which the bytes and the choice of a scheme follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistics {
    /// Shape of the array.
    pub shape: Shape,
    /// Filled cells, `N_nz`.
    pub cells: u64,
    /// Filled groups of each prefix of the dimensions, lengths 0 to k; that of length k - 1 is the filled rows, `N_o`.
    pub groups: Vec<u64>,
    /// Partitions that the offset-value scheme fills; 0 if the array has no more than 2^64 places.
    pub partitions: u64,
}

impl Statistics {
    /// Statistics of `cells`, in one scan.
    pub fn of<V: Value>(cells: &Cells<V>) -> Self {
        let shape = cells.shape().clone();
        let dimensions = shape.dimensions();
        // Cells that differ from the one in front first in each dimension.
        let mut changes = vec![0u64; dimensions];
        for (before, tuple) in cells.tuples().zip(cells.tuples().skip(1)) {
            let changed = before.iter().zip(tuple).take_while(|(before, at)| before == at).count();
            changes[changed] += 1;
        }
        let mut groups = vec![u64::from(!cells.is_empty())];
        changes.iter().for_each(|changes| groups.push(groups[groups.len() - 1] + changes));
        let fits = |split: &usize| shape.product(*split..dimensions).is_some_and(|places| places <= 1 << 64);
        let split = (0..dimensions).find(fits).unwrap_or(dimensions);
        let partitions = if split > 0 { groups[split] } else { 0 };
        Self { shape, cells: cells.len() as u64, groups, partitions }
    }

    /// Filled rows, `N_o`.
    pub fn rows(&self) -> u64 {
        self.groups[self.shape.dimensions() - 1]
    }

    /// True if offsets and numbers of partitions fit 64 bits each.
    pub(crate) fn offsets_fit(&self) -> bool {
        let (shape, dimensions) = (&self.shape, self.shape.dimensions());
        let fits = |range| shape.product(range).is_some_and(|places| places <= 1 << 64);
        (0..dimensions).find(|split| fits(*split..dimensions)).is_some_and(|split| fits(0..split))
    }

    /// Bytes of a key over the dimensions from `split` on: an integer where it suffices, else one or two longest ones.
    fn key_bytes(&self, split: usize, least: u64, words: Words) -> Option<u64> {
        match self.shape.bits(split..self.shape.dimensions()) {
            bits if u64::from(bits) <= least * 8 => Some(least),
            0..=64 => Some(words.long),
            65..=128 => Some(2 * words.long),
            _ => None,
        }
    }
}

/// The thesis's formula for the bytes of a scheme, `S_scheme`. Absent where it exceeds 128 bits or the scheme does not
/// take the shape.
///
/// Keys count as `C_il` (BESS, PTCS) or `C_i` (hybrid) while they fit; wider ones by the words they need.
pub fn thesis(scheme: Scheme, statistics: &Statistics, words: Words) -> Option<u128> {
    let Words { int, long, link, value } = words;
    let dimensions = statistics.shape.dimensions();
    let each = |bytes: u64| u128::from(bytes) * u128::from(statistics.cells);
    let pointers = |blocks: u128| blocks.checked_mul(u128::from(long));
    let rows = || statistics.shape.product(0..dimensions - 1);
    match scheme {
        // Section 2.1.1: (k C_i + C_f) N_nz.
        Scheme::Coordinate => Some(each(dimensions as u64 * int + value)),
        // Section 2.1.2: (C_il + C_f) N_nz.
        Scheme::OffsetValue => Some(each(long + value)),
        // Section 2.1.3: (C_il + C_f) N_nz.
        Scheme::Bess => Some(each(statistics.key_bytes(0, long, words)? + value)),
        // Formula 3.2: (C_f + C_i) N_nz + C_il N_(k-1).
        Scheme::Xcrs => each(int + value).checked_add(pointers(rows()?)?),
        Scheme::Xccs => each(int + value).checked_add(pointers(statistics.shape.product(1..dimensions)?)?),
        // Formula 3.3: (C_f + C_i) N_nz + C_il N_o + C_i ⌈N_(k-1) / (W - 1)⌉.
        Scheme::Bxcrs => {
            let bitmap = RankedBitmap::words_of(rows()?).checked_mul(u128::from(int))?;
            each(int + value).checked_add(pointers(u128::from(statistics.rows()))?)?.checked_add(bitmap)
        }
        // Formula 3.4: (C_f + C_i) N_nz + C_il ∏ D_i over the leading dimensions.
        Scheme::Hybrid { r } => {
            let split = (dimensions + 1).checked_sub(r).filter(|split| (1..=dimensions).contains(split))?;
            let key = statistics.key_bytes(split, int, words)?;
            each(key + value).checked_add(pointers(statistics.shape.product(0..split)?)?)
        }
        // Formula 3.5: (C_i + C_il + 2 links + C_f) N_nz.
        Scheme::Ptcs => Some(each(int + statistics.key_bytes(0, long, words)? + 2 * link + value)),
    }
}

/// Bytes that a scheme takes here, index and values: [`thesis`] with [`Words::OURS`], and the arrays that the formulas
/// leave out.
///
/// Left out are the pointer to the end of xCRS, xCCS, BxCRS and hybrid; the rank table of BxCRS, which the thesis
/// builds when it runs; and the directory of a partitioned offset-value array.
pub fn predicted(scheme: Scheme, statistics: &Statistics) -> Option<u128> {
    let dimensions = statistics.shape.dimensions();
    let long = u128::from(Words::OURS.long);
    let extra = match scheme {
        Scheme::Xcrs | Scheme::Xccs | Scheme::Hybrid { .. } => long,
        Scheme::Bxcrs => {
            let ranks = RankedBitmap::words_of(statistics.shape.product(0..dimensions - 1)?).checked_mul(long)?;
            ranks.checked_add(long)?
        }
        Scheme::OffsetValue if statistics.partitions > 0 => (2 * u128::from(statistics.partitions) + 1) * long,
        _ => 0,
    };
    thesis(scheme, statistics, Words::OURS)?.checked_add(extra)
}

/// Bytes of pointer arrays, bitmap and rank table of a scheme: what [`super::Limits::pointer_bytes`] is held against.
/// Absent where they exceed 128 bits.
pub fn pointer_bytes(scheme: Scheme, shape: &Shape) -> Option<u128> {
    let dimensions = shape.dimensions();
    match scheme {
        Scheme::Xcrs => Dense::bytes_of(shape.product(0..dimensions - 1)?),
        Scheme::Xccs => Dense::bytes_of(shape.product(1..dimensions)?),
        Scheme::Hybrid { r } => Dense::bytes_of(shape.product(0..(dimensions + 1).checked_sub(r)?.min(dimensions))?),
        Scheme::Bxcrs => Ranked::bytes_of(shape.product(0..dimensions - 1)?),
        Scheme::Coordinate | Scheme::OffsetValue | Scheme::Bess | Scheme::Ptcs => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 13 cells of the example of figure 2.1, shape 5 x 3 x 4.
    fn example() -> Statistics {
        let rows = [(0, vec![0, 1]), (2, vec![2, 3]), (6, vec![3]), (7, vec![0, 1]), (8, vec![2, 3])];
        let rows = rows.into_iter().chain([(12, vec![0, 1]), (13, vec![2]), (14, vec![3])]);
        let tuples = rows.flat_map(|(row, columns)| columns.into_iter().map(move |column| [row / 3, row % 3, column]));
        let tuples: Vec<u32> = tuples.flatten().collect();
        let cells = Cells::new(Shape::new([5, 3, 4]).unwrap(), tuples, vec![1i64; 13]).unwrap();
        Statistics::of(&cells)
    }

    #[test]
    fn groups_of_the_example() {
        assert_eq!(example().groups, [1, 3, 8, 13]);
        let none = Statistics::of(&Cells::<i64>::empty(Shape::new([5, 3, 4]).unwrap()));
        assert_eq!((none.groups, none.partitions), (vec![0; 4], 0));
    }

    #[test]
    fn bytes_of_the_example_by_the_formulas() {
        let bytes = |scheme| thesis(scheme, &example(), Words::THESIS).unwrap();
        assert_eq!(bytes(Scheme::Coordinate), (3 * 4 + 4) * 13);
        assert_eq!((bytes(Scheme::OffsetValue), bytes(Scheme::Bess)), ((8 + 4) * 13, (8 + 4) * 13));
        assert_eq!((bytes(Scheme::Xcrs), bytes(Scheme::Xccs)), ((4 + 4) * 13 + 8 * 15, (4 + 4) * 13 + 8 * 12));
        assert_eq!(bytes(Scheme::Bxcrs), (4 + 4) * 13 + 8 * 8 + 4);
        let hybrid = [1, 2, 3].map(|r| bytes(Scheme::Hybrid { r }));
        assert_eq!(hybrid, [8 * 13 + 8 * 60, 8 * 13 + 8 * 15, 8 * 13 + 8 * 5]);
        assert_eq!(bytes(Scheme::Ptcs), (4 + 3 * 8 + 4) * 13);
        assert_eq!(thesis(Scheme::Hybrid { r: 4 }, &example(), Words::THESIS), None);
        assert_eq!(thesis(Scheme::Hybrid { r: 0 }, &example(), Words::THESIS), None);
    }

    #[test]
    fn storage_ratios_of_section_7_1() {
        // 80 % and 30 % for PTCS and BESS at a sparsity of 90 %, 8 % and 3 % at 99 %.
        for (cells, percent) in [(100_000u64, 1), (10_000, 10)] {
            let shape = Shape::new([10; 6]).unwrap();
            let statistics = Statistics { shape, cells, groups: vec![1; 7], partitions: 0 };
            let ratio = |scheme| thesis(scheme, &statistics, Words::THESIS).unwrap() * percent * 100 / (4 * 1_000_000);
            assert_eq!((ratio(Scheme::Ptcs), ratio(Scheme::Bess)), (80, 30));
        }
    }
}
