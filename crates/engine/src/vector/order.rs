//! The keys of an order packed into words that compare as rows do: the smaller ones come first.
//!
//! A key becomes a place between the bounds of its values, turned where it descends, with one more place before or
//! behind all others where there are NULLs. Places lie side by side, the first key highest; one of more bits than a
//! word has left begins another word.
//!
//! ```text
//! a: 0 to 99 or NULL, NULL last    b: 5 to 8, descending    word 0: place of a (7 bits) · place of b (2 bits)
//! (0, 8) = 0·4 + 0    (0, 5) = 0·4 + 3    (99, 6) = 99·4 + 2    (NULL, 8) = 100·4 + 0
//! ```

use warpcube_column::VECTOR_ROWS as ROWS;

use super::evaluate::ordered;
use super::keys::Keys;
use super::program::Program;
use super::values::{Data, Register, Selection, Value, with_slots};
use super::wide::number;
use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::ir::Ty;

/// Images of floats, both included: of minus infinity and of NaN.
const FLOATS: (i128, i128) = (0x000f_ffff_ffff_ffff, 0xfff8_0000_0000_0000);

/// Bits of a place: those above the lowest `below` ones, so many left of the lowest bit of a word.
#[derive(Debug, Clone, Copy)]
struct Piece {
    word: usize,
    shift: u32,
    bits: u32,
    below: u32,
}

/// One key.
#[derive(Debug)]
struct Key {
    value: Program,
    /// Bounds of images.
    low: i128,
    high: i128,
    descending: bool,
    /// What places of values are raised by where that of NULL is the first, and the place of NULL.
    raised: u128,
    null: u128,
    pieces: Vec<Piece>,
}

/// The keys of an order.
#[derive(Debug)]
pub(super) struct Order {
    keys: Vec<Key>,
    /// Words of packed keys.
    pub(super) words: usize,
}

/// What rows have in common that agree in the first keys of an order: words, and the bits of the next one from a shift
/// on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    words: usize,
    shift: Option<u32>,
}

impl Prefix {
    /// Whether packed keys agree.
    pub(super) fn agrees(self, one: &[u64], other: &[u64]) -> bool {
        one[..self.words] == other[..self.words]
            && self.shift.is_none_or(|shift| (one[self.words] ^ other[self.words]) >> shift == 0)
    }
}

impl Order {
    /// The order by these keys, each with whether it descends and whether NULL comes first.
    ///
    /// # Errors
    /// Unsupported for decimals that need all of 128 bits and may be NULL.
    pub(super) fn of(keys: impl IntoIterator<Item = (Program, bool, bool)>) -> Result<Order> {
        let mut order = Order { keys: Vec::new(), words: 0 };
        let mut left = 0;
        for (value, descending, nulls_first) in keys {
            let (low, high) = bounds(&value.facts);
            let nullable = u128::from(value.facts.nullable);
            let span = high.wrapping_sub(low) as u128;
            let Some(last) = span.checked_add(nullable) else {
                return unsupported("an order by a decimal of 128 bits that may be NULL");
            };
            let raised = if nulls_first { nullable } else { 0 };
            let null = if nulls_first { 0 } else { last };
            let bits = 128 - last.leading_zeros();
            let mut pieces = Vec::new();
            for (bits, below) in [(bits.saturating_sub(64), 64), (bits.min(64), 0)] {
                if bits > left {
                    (order.words, left) = (order.words + 1, 64);
                }
                if bits > 0 {
                    left -= bits;
                    pieces.push(Piece { word: order.words - 1, shift: left, bits, below });
                }
            }
            order.keys.push(Key { value, low, high, descending, raised, null, pieces });
        }
        Ok(order)
    }

    /// The expressions of the keys.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.keys.iter().map(|key| &key.value)
    }

    /// What rows have in common that agree in the first so many keys.
    pub(super) fn prefix(&self, keys: usize) -> Prefix {
        match self.keys[..keys.min(self.keys.len())].iter().flat_map(|key| &key.pieces).last() {
            None => Prefix { words: 0, shift: None },
            Some(piece) => Prefix { words: piece.word, shift: Some(piece.shift) },
        }
    }

    /// Packs the keys of rows.
    ///
    /// # Errors
    /// Evaluation errors of these rows.
    pub(super) fn pack(&self, registers: &[Register], rows: &Selection, packed: &mut Keys) -> Result<()> {
        packed.words.iter_mut().for_each(|words| rows.each(|row| words[row] = 0));
        for key in &self.keys {
            let value = key.value.evaluate(registers, rows)?;
            key.pack(&value, rows, packed);
        }
        Ok(())
    }
}

/// Bounds of the images of values.
fn bounds(facts: &Facts) -> (i128, i128) {
    match facts.bounds() {
        _ if facts.ty.is_float() => FLOATS,
        // A column without valid values has no bounds of its own.
        Some((low, high)) if low <= high => (low, high),
        _ => (0, 0),
    }
}

impl Key {
    fn pack(&self, value: &Value<'_>, rows: &Selection, packed: &mut Keys) {
        let image = |row: usize| ordered(with_slots!(value.of_floats(), at => at(row))) as u64 ^ 1 << 63;
        match (&value.data, &self.pieces[..]) {
            (_, []) => {}
            // Places wrap in 64 bits as in 128: each has its bits in one word.
            (Data::Integers(slots), [piece @ Piece { below: 0, .. }]) => {
                with_slots!(slots, at => self.put(*piece, value, rows, packed, |row| at(row) as u64));
            }
            (Data::Floats(_), [piece @ Piece { below: 0, .. }]) => self.put(*piece, value, rows, packed, image),
            (_, pieces) => {
                let is_unsigned = self.value.facts.ty == Ty::U64;
                let image = |row: usize| match &value.data {
                    Data::Floats(_) => image(row).into(),
                    Data::Integers(_) if is_unsigned => value.bits(row).into(),
                    _ => number(value, row),
                };
                for Piece { word, shift, bits, below } in pieces {
                    let words = &mut packed.words[*word];
                    rows.each(|row| {
                        let offset = match self.descending {
                            true => self.high.wrapping_sub(image(row)),
                            false => image(row).wrapping_sub(self.low),
                        };
                        let place = if value.is_valid(row) { offset as u128 + self.raised } else { self.null };
                        words[row] |= ((place >> below) as u64 & u64::MAX >> (64 - bits)) << shift;
                    });
                }
            }
        }
    }

    /// Puts places of 64 bits at most.
    #[inline(always)]
    fn put(
        &self,
        Piece { word, shift, .. }: Piece,
        value: &Value<'_>,
        rows: &Selection,
        packed: &mut Keys,
        image: impl Fn(usize) -> u64,
    ) {
        let words: &mut [u64; ROWS] = &mut packed.words[word];
        let (low, high, raised, null) = (self.low as u64, self.high as u64, self.raised as u64, self.null as u64);
        let place = |row: usize| match self.descending {
            true => high.wrapping_sub(image(row)).wrapping_add(raised),
            false => image(row).wrapping_sub(low).wrapping_add(raised),
        };
        match value.valid {
            None => rows.each(|row| words[row] |= place(row) << shift),
            Some(_) => rows.each(|row| words[row] |= if value.is_valid(row) { place(row) } else { null } << shift),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::program::Node;
    use crate::vector::values::{Own, Slots};

    fn key(ty: Ty, range: Option<(i128, i128)>, nullable: bool) -> Program {
        let facts = Facts::new(ty, nullable, range);
        Program { root: Node::Register(0), registers: vec![0], facts, is_fallible: false }
    }

    #[test]
    fn keys_lie_side_by_side() {
        let small = || key(Ty::I32, Some((0, 99)), true);
        let whole = || key(Ty::I64, None, true);
        let order = Order::of([(small(), false, false), (key(Ty::I8, Some((5, 8)), false), true, false)]).unwrap();
        let pieces = |order: &Order| -> Vec<(usize, u32, u32)> {
            order.keys.iter().flat_map(|key| &key.pieces).map(|piece| (piece.word, piece.shift, piece.bits)).collect()
        };
        assert_eq!((pieces(&order), order.words), (vec![(0, 57, 7), (0, 55, 2)], 1));
        // All of 64 bits and NULL are 65 bits.
        let order = Order::of([(small(), false, false), (whole(), false, true), (small(), false, true)]).unwrap();
        assert_eq!(pieces(&order), [(0, 57, 7), (0, 56, 1), (1, 0, 64), (2, 57, 7)]);
        let one = [3 << 57 | 1 << 56, 5, 0];
        let agrees = |keys: usize, other: &[u64]| order.prefix(keys).agrees(&one, other);
        assert!(agrees(0, &[0, 0, 0]) && agrees(1, &[3 << 57, 7, 7]) && !agrees(2, &[3 << 57 | 1 << 56, 7, 7]));
        assert!(agrees(2, &[3 << 57 | 1 << 56, 5, 7]) && !agrees(3, &[3 << 57 | 1 << 56, 5, 1 << 60]));
        let wide = key(Ty::I128, None, true);
        assert!(Order::of([(wide, false, false)]).is_err());
    }

    #[test]
    fn packed_keys_compare_as_values_do() {
        let values = [i64::MIN, -7, 0, 9, i64::MAX];
        let mut rows = Selection::default();
        rows.start_in_order(values.len() + 1);
        for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let order = Order::of([(key(Ty::I64, None, true), descending, nulls_first)]).unwrap();
            let (mut integers, mut valid) = (Own::new(), Own::new());
            integers[..5].copy_from_slice(&values);
            valid[..6].copy_from_slice(&[1, 1, 1, 1, 1, 0]);
            let mut packed = Keys::of_words(order.words);
            order.keys[0].pack(&Value::integers(integers, Some(Slots::Own(valid))), &rows, &mut packed);
            let mut found: Vec<usize> = (0..6).collect();
            found.sort_by_key(|row| packed.words.iter().map(|words| words[*row]).collect::<Vec<_>>());
            let mut expected: Vec<usize> = if descending { (0..5).rev().collect() } else { (0..5).collect() };
            expected.insert(if nulls_first { 0 } else { 5 }, 5);
            assert_eq!(found, expected, "{descending} {nulls_first}");
        }
    }
}
