//! Keys of several values packed into words, for the rows of a vector, and an index of them.

use warpcube_column::VECTOR_ROWS as ROWS;

use super::values::{Data, Selection, Value, with_slots};
use super::wide::number;
use crate::facts::Facts;
use crate::ir::Ty;
use crate::plan::keys::{KeyPack, Null};

/// Keys from which on threads share them, and most shares: each thread looks at all keys for its own.
const SHARED_KEYS: usize = 1 << 16;
const SHARES_MAX: usize = 64;

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
        Keys::of_words(pack.words)
    }

    pub(super) fn of_words(words: usize) -> Keys {
        Keys { words: (0..words).map(|_| Box::new([0; ROWS])).collect() }
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
                (Data::Integers(slots), None) if part.high.is_none() => {
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

/// Keys by number, in the order in which they came: open addressing with linear probes.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Numbers plus one by slot; a power of two of slots, at most half of them taken.
    slots: Vec<u32>,
    /// Words of keys, side by side.
    pub(super) keys: Vec<u64>,
    words: usize,
}

/// The hash of a key; an [`Index`] goes by the lower bits of it, [`share_of`] by upper ones.
pub(super) fn hash(key: &[u64]) -> u64 {
    key.iter().fold(0x243f_6a88_85a3_08d3, |hash: u64, word| {
        let mixed = u128::from(hash ^ *word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        (mixed as u64) ^ (mixed >> 64) as u64
    })
}

/// Which of a power of two of shares the keys of a hash belong to.
pub(super) fn share_of(hash: u64, shares: usize) -> usize {
    (hash >> 48) as usize & (shares - 1)
}

/// Shares that threads put so many keys together in, a power of two.
pub(super) fn shares_of(keys: usize) -> usize {
    match keys {
        ..SHARED_KEYS => 1,
        _ => rayon::current_num_threads().next_power_of_two().min(SHARES_MAX),
    }
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

    /// The slot of a key of a hash, or the free one where it would be.
    fn slot(&self, key: &[u64], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => return at,
                number if self.key(number as usize - 1) == key => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// The number of a key of a hash, which is new where it is that of the last one.
    pub(super) fn insert(&mut self, key: &[u64], hash: u64) -> usize {
        let slot = self.slot(key, hash);
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

    pub(super) fn find(&self, key: &[u64], hash: u64) -> Option<usize> {
        (self.slots[self.slot(key, hash)] as usize).checked_sub(1)
    }

    fn grow(&mut self) {
        self.slots = vec![0; 4 * self.slots.len()];
        for number in 0..self.len() {
            let key = self.key(number);
            let slot = self.slot(key, hash(key));
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
            let key = [number % 3000, number % 3000 * 7];
            assert_eq!(index.insert(&key, hash(&key)), number as usize % 3000);
        }
        let find = |key: [u64; 2]| index.find(&key, hash(&key));
        assert_eq!((index.len(), find([2999, 2999 * 7]), find([2999, 1])), (3000, Some(2999), None));
    }
}
