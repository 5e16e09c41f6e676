//! Keys of several values packed into words, for the rows of a vector, and an index of them.

use warpcube_column::VECTOR_ROWS as ROWS;

use super::evaluate::ordered;
use super::values::{Data, Selection, Value, with_slots};
use super::wide::number;
use crate::facts::Facts;
use crate::ir::Ty;
use crate::plan::keys::{KeyPack, Null};

/// Words of the keys of a vector's rows: a column a word.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) words: Vec<Box<[u64; ROWS]>>,
}

/// A float by bits that are equal where floats are: both zeros are one, and so is every NaN.
fn float_bits(value: f64, ty: Ty) -> i64 {
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    if ty == Ty::F32 { i64::from((value as f32).to_bits()) } else { value.to_bits() as i64 }
}

/// Both: bits of a float as they are, where zeros of both signs are told apart.
fn exact_bits(value: f64, ty: Ty) -> i64 {
    if ty == Ty::F32 { i64::from((value as f32).to_bits()) } else { value.to_bits() as i64 }
}

/// How the values of a key become parts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Equal values have equal parts.
    Equal,
    /// Floats are their bits.
    Exact,
}

impl Keys {
    pub(super) fn new(pack: &KeyPack) -> Keys {
        Keys { words: (0..pack.words).map(|_| Box::new([0; ROWS])).collect() }
    }

    /// Packs values of rows. Rows with a value that has no place in the packing are left out of the selection: NULL
    /// where keys are never NULL, and values out of the bounds.
    pub(super) fn pack(
        &mut self,
        pack: &KeyPack,
        values: &[Value<'_>],
        form: Form,
        facts: &[Facts],
        rows: &mut Selection,
    ) {
        self.words.iter_mut().for_each(|words| rows.each(|row| words[row] = 0));
        for ((part, value), facts) in pack.parts.iter().zip(values).zip(facts) {
            let first = u64::from(part.null == Null::First);
            let places = u64::try_from(part.places).unwrap_or(u64::MAX);
            let (low, stride, word) = (part.low as u64, part.stride, part.word);
            let mut add = |at: &dyn Fn(usize) -> u64, rows: &mut Selection| {
                let words = &mut self.words[word];
                rows.each(|row| words[row] = words[row].wrapping_add(at(row).wrapping_mul(stride)));
            };
            match (&value.data, &value.valid) {
                (Data::Integers(slots), None) => {
                    let words = &mut self.words[word];
                    with_slots!(slots, at => {
                        let place = |row: usize| (at(row) as u64).wrapping_sub(low);
                        let fits = |(least, most)| least >= part.low && fits(most, part.low, places, first);
                        if !facts.range.is_some_and(fits) {
                            rows.retain(|row| place(row) < places - first || part.places > u128::from(u64::MAX));
                        }
                        rows.each(|row| {
                            words[row] = words[row].wrapping_add((place(row) + first).wrapping_mul(stride));
                        });
                    });
                }
                // Wide decimals, or decimals that may have to be found among those.
                (data, _) if matches!(data, Data::Wide(_)) || part.high.is_some() => {
                    let last = part.places - u128::from(first) - 1;
                    let place = |row: usize| number(value, row).wrapping_sub(part.low) as u128;
                    rows.retain(|row| match value.is_valid(row) {
                        true => part.high.is_some() || place(row) <= last,
                        false => part.null != Null::Never,
                    });
                    add(&|row| if value.is_valid(row) { place(row) as u64 + first } else { 0 }, rows);
                    if let Some(high) = part.high {
                        let words = &mut self.words[high];
                        let above = |row: usize| (number(value, row) >> 64) as u64;
                        rows.each(|row| words[row] = if value.is_valid(row) { above(row) } else { 0 });
                    }
                    self.set_apart(part.null, value, rows);
                }
                (data, _) => {
                    let bits = |row: usize| match data {
                        Data::Floats(slots) => with_slots!(slots, at => match form {
                            Form::Equal => float_bits(at(row), facts.ty),
                            Form::Exact => exact_bits(at(row), facts.ty),
                        }),
                        _ => value.bits(row) as i64,
                    };
                    let place = |row: usize| (bits(row) as u64).wrapping_sub(low);
                    let is_in = |row: usize| place(row) < places - first || part.places > u128::from(u64::MAX);
                    rows.retain(|row| if value.is_valid(row) { is_in(row) } else { part.null != Null::Never });
                    add(&|row| if value.is_valid(row) { place(row) + first } else { 0 }, rows);
                    self.set_apart(part.null, value, rows);
                }
            }
        }
    }

    /// Marks rows that are NULL where that has a place of its own.
    fn set_apart(&mut self, null: Null, value: &Value<'_>, rows: &Selection) {
        if let Null::Apart { word, stride } = null {
            let words = &mut self.words[word];
            rows.each(|row| words[row] += if value.is_valid(row) { 0 } else { stride });
        }
    }
}

/// Whether the largest value has a place.
fn fits(most: i128, low: i128, places: u64, first: u64) -> bool {
    most - low < i128::from(places - first)
}

/// A value in the order of its type, as words without a sign, the first one most significant: one, or two of a wide
/// decimal.
pub(super) fn image(value: &Value<'_>, row: usize, ty: Ty) -> impl Iterator<Item = u64> {
    let (first, second) = match &value.data {
        Data::Floats(slots) => (with_slots!(slots, at => ordered(at(row)) as u64 ^ 1 << 63), None),
        Data::Integers(_) if ty == Ty::U64 => (value.bits(row), None),
        Data::Integers(_) => (value.bits(row) ^ 1 << 63, None),
        Data::Wide(slots) => (with_slots!(slots, at => (at(row) >> 64) as u64 ^ 1 << 63), Some(value.bits(row))),
    };
    [first].into_iter().chain(second)
}

/// Keys by number, in the order in which they came: open addressing with linear probes.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Numbers plus one by slot; a power of two of slots, at most half of them taken.
    slots: Vec<u32>,
    /// Words of keys, side by side.
    pub(super) keys: Vec<u64>,
    words: usize,
}

fn hash(key: impl Iterator<Item = u64>) -> u64 {
    key.fold(0x243f_6a88_85a3_08d3, |hash: u64, word| {
        let mixed = u128::from(hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (mixed as u64) ^ (mixed >> 64) as u64
    })
}

impl Index {
    pub(super) fn new(words: usize) -> Index {
        Index { slots: vec![0; 1 << 10], keys: Vec::new(), words: words.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len() / self.words
    }

    pub(super) fn bytes(&self) -> u64 {
        (4 * self.slots.len() + 8 * self.keys.len()) as u64
    }

    /// Words of a key.
    pub(super) fn key(&self, number: usize) -> &[u64] {
        &self.keys[number * self.words..][..self.words]
    }

    /// The slot of a key, or the free one where it would be.
    fn slot(&self, key: &[u64]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash(key.iter().copied()) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return at,
                number if self.key(number as usize - 1) == key => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// The number of a key, which is new where it is that of the last one.
    pub(super) fn insert(&mut self, key: &[u64]) -> usize {
        let slot = self.slot(key);
        if self.slots[slot] != 0 {
            return self.slots[slot] as usize - 1;
        }
        self.keys.extend_from_slice(key);
        self.slots[slot] = self.len() as u32;
        if 2 * self.len() > self.slots.len() {
            self.grow();
        }
        self.len() - 1
    }

    pub(super) fn find(&self, key: &[u64]) -> Option<usize> {
        (self.slots[self.slot(key)] as usize).checked_sub(1)
    }

    fn grow(&mut self) {
        self.slots = vec![0; 4 * self.slots.len()];
        for number in 0..self.len() {
            let slot = self.slot(&self.keys[number * self.words..][..self.words]);
            self.slots[slot] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_numbers_keys_in_the_order_in_which_they_came() {
        let mut index = Index::new(2);
        for number in 0..5000u64 {
            assert_eq!(index.insert(&[number % 3000, number % 3000 * 7]), number as usize % 3000);
        }
        assert_eq!((index.len(), index.find(&[2999, 2999 * 7]), index.find(&[2999, 1])), (3000, Some(2999), None));
    }
}
