//! Tables that pipelines build and others probe: by key where keys are dense, else by an index of keys.

use std::ops::Range;

use warpcube_column::{VECTOR_ROWS as ROWS, Values};

use super::keys::{Index, Keys};
use super::values::{Data, Own, Register, Selection, Value, with_slots};
use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::plan::keys::KeyPack;

/// Most keys a row of the table for which it is indexed by key, and those that it is in any case.
const DIRECT_KEYS_A_ROW: u64 = 16;
const DIRECT_KEYS: u64 = 1 << 20;
/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Values of payload, one an entry: integers less the smallest one, NULL apart.
#[derive(Debug)]
enum Entries {
    Bytes(Vec<u8>),
    Shorts(Vec<u16>),
    Words(Vec<u32>),
    Integers(Vec<i64>),
    Wide(Vec<i128>),
    Floats(Vec<f64>),
}

/// A column of payload.
#[derive(Debug)]
pub(super) struct Payload {
    entries: Entries,
    low: i64,
    /// A flag an entry, where some are NULL.
    valid: Option<Vec<u8>>,
    is_float: bool,
}

/// Rows on their way into a table.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Words of keys, side by side.
    keys: Vec<u64>,
    /// Words of payload, a column each: two a value of wide decimals.
    payload: Vec<Vec<u64>>,
    valid: Vec<Vec<u8>>,
}

impl Rows {
    /// Adds rows of a vector.
    pub(super) fn push(&mut self, keys: &Keys, payload: &[Value<'_>], rows: &Selection) {
        rows.each(|row| self.keys.extend(keys.words.iter().map(|words| words[row])));
        self.payload.resize_with(payload.len(), Vec::new);
        self.valid.resize_with(payload.len(), Vec::new);
        for ((value, column), valid) in payload.iter().zip(&mut self.payload).zip(&mut self.valid) {
            rows.each(|row| column.extend(value.words(row)));
            match value.valid {
                Some(_) => rows.each(|row| valid.push(u8::from(value.is_valid(row)))),
                None => valid.resize(valid.len() + rows.len(), 1),
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let payload: usize = self.payload.iter().map(|column| 9 * column.len()).sum();
        (8 * self.keys.len() + payload) as u64
    }

    pub(super) fn append(&mut self, mut other: Rows) {
        self.keys.append(&mut other.keys);
        self.payload.resize_with(other.payload.len().max(self.payload.len()), Vec::new);
        self.valid.resize_with(self.payload.len(), Vec::new);
        self.payload.iter_mut().zip(&mut other.payload).for_each(|(own, other)| own.append(other));
        self.valid.iter_mut().zip(&mut other.valid).for_each(|(own, other)| own.append(other));
    }
}

/// How entries are found.
#[derive(Debug)]
enum Places {
    /// A bit a key; the entry has the key's number.
    Direct(Vec<u64>),
    Indexed(Index),
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    places: Places,
    /// Where the rows of each key begin, and where the last one's end, if keys may have several.
    starts: Option<Vec<u32>>,
    pub(super) payload: Vec<Payload>,
}

/// How many rows the keys of a table may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PerKey {
    /// One; several are refused.
    One,
    /// One as it is guessed.
    Guessed,
    /// Any number, of which no probe reads the payload.
    Any,
    /// Any number, each with its payload.
    All,
}

impl Table {
    /// The table of these rows; none if several have a key, which were guessed to have one each.
    ///
    /// # Errors
    /// Unsupported if several rows have a key where a probe takes one.
    pub(super) fn of(rows: Rows, pack: &KeyPack, facts: &[Facts], per_key: PerKey) -> Result<Option<Table>> {
        let count = rows.keys.len() / pack.words;
        let is_direct = pack.words == 1
            && pack.domain < u64::from(NONE)
            && pack.domain <= DIRECT_KEYS.max(DIRECT_KEYS_A_ROW * count as u64);
        let mut several = false;
        // The entry of each row.
        let mut entries: Vec<u32>;
        let (places, mut len) = if is_direct {
            let mut bits = vec![0u64; (pack.domain as usize).div_ceil(64).max(1)];
            for key in &rows.keys {
                let (word, bit) = (*key as usize / 64, 1 << (key % 64));
                several |= bits[word] & bit != 0;
                bits[word] |= bit;
            }
            entries = rows.keys.iter().map(|key| *key as u32).collect();
            (Places::Direct(bits), pack.domain as usize)
        } else {
            let mut index = Index::new(pack.words);
            entries = rows.keys.chunks_exact(pack.words).map(|key| index.insert(key) as u32).collect();
            several = index.len() < count;
            let len = index.len();
            (Places::Indexed(index), len)
        };
        match per_key {
            PerKey::One if several => {
                return unsupported("a join whose build side has several rows for one key, on the CPU's columns");
            }
            PerKey::Guessed if several => return Ok(None),
            _ => {}
        }
        let starts = (per_key == PerKey::All).then(|| {
            // Rows of a key lie side by side, in the order in which they came.
            let mut starts = vec![0u32; len + 1];
            entries.iter().for_each(|entry| starts[*entry as usize + 1] += 1);
            (0..len).for_each(|entry| starts[entry + 1] += starts[entry]);
            let mut next = starts.clone();
            for entry in &mut entries {
                let place = &mut next[*entry as usize];
                (*entry, *place) = (*place, *place + 1);
            }
            len = count;
            starts
        });
        // Without a row there are no columns yet.
        let of = |column: usize| {
            (
                rows.payload.get(column).map_or(&[][..], |bits| bits),
                rows.valid.get(column).map_or(&[][..], |valid| valid),
            )
        };
        let payload = facts.iter().enumerate().map(|(column, facts)| {
            let (bits, valid) = of(column);
            Payload::of(bits, valid, &entries, len, facts)
        });
        Ok(Some(Table { payload: payload.collect(), places, starts }))
    }

    /// The entries of the rows of a key, by what [`Table::find`] has found; those of one row each if keys have no more.
    pub(super) fn rows_of(&self, found: u32) -> Range<u32> {
        match &self.starts {
            Some(starts) if found != NONE => starts[found as usize]..starts[found as usize + 1],
            None if found != NONE => found..found + 1,
            _ => 0..0,
        }
    }

    /// The bits of keys, where entries are found by key.
    pub(super) fn bits(&self) -> Option<&[u64]> {
        if let Places::Direct(bits) = &self.places { Some(bits) } else { None }
    }

    /// The entries of keys, [`NONE`] for those that have none; of rows that are not selected they are undefined.
    pub(super) fn find(&self, keys: &Keys, rows: &Selection, found: &mut [u32; ROWS]) {
        match &self.places {
            Places::Direct(bits) => {
                let keys = &keys.words[0];
                rows.each(|row| {
                    let key = keys[row];
                    let word = bits.get(key as usize / 64).copied().unwrap_or(0);
                    found[row] = if word >> (key % 64) & 1 != 0 { key as u32 } else { NONE };
                });
            }
            Places::Indexed(index) => {
                let mut key = vec![0; keys.words.len()];
                rows.each(|row| {
                    key.iter_mut().zip(&keys.words).for_each(|(word, words)| *word = words[row]);
                    found[row] = index.find(&key).map_or(NONE, |entry| entry as u32);
                });
            }
        }
    }
}

impl Payload {
    fn of(bits: &[u64], valid: &[u8], places: &[u32], len: usize, facts: &Facts) -> Payload {
        let has_nulls = valid.contains(&0);
        let valid_of_entries = has_nulls.then(|| {
            let mut flags = vec![0; len];
            places.iter().zip(valid).for_each(|(place, valid)| flags[*place as usize] = *valid);
            flags
        });
        fn put<T: Default + Clone>(places: &[u32], len: usize, of: impl Fn(usize) -> T) -> Vec<T> {
            let mut entries = vec![T::default(); len];
            places.iter().enumerate().for_each(|(row, place)| entries[*place as usize] = of(row));
            entries
        }
        let is_float = facts.ty.is_float();
        if facts.is_wide() {
            let value = |row: usize| i128::from(bits[2 * row + 1] as i64) << 64 | i128::from(bits[2 * row]);
            let entries = Entries::Wide(put(places, len, value));
            return Payload { entries, low: 0, valid: valid_of_entries, is_float };
        }
        let (low, high) = facts.range.unwrap_or((i64::MIN.into(), i64::MAX.into()));
        let span = if is_float { u128::MAX } else { high.max(low).abs_diff(low) };
        let low = if span > u32::MAX.into() { 0 } else { low as i64 };
        let offset = |row: usize| (bits[row] as i64).wrapping_sub(low);
        let entries = match span {
            _ if is_float => Entries::Floats(put(places, len, |row| f64::from_bits(bits[row]))),
            0..=0xff => Entries::Bytes(put(places, len, |row| offset(row) as u8)),
            0x100..=0xffff => Entries::Shorts(put(places, len, |row| offset(row) as u16)),
            0x1_0000..=0xffff_ffff => Entries::Words(put(places, len, |row| offset(row) as u32)),
            _ => Entries::Integers(put(places, len, |row| bits[row] as i64)),
        };
        Payload { entries, low, valid: valid_of_entries, is_float }
    }

    /// Gathers the values of entries; rows without one are NULL, which some may be.
    pub(super) fn gather(&self, found: &[u32; ROWS], rows: &Selection, target: &mut Register, may_lack: bool) {
        macro_rules! gathered {
            ($values:expr, $to:expr, $of:expr) => {
                rows.each(|row| {
                    if let Some(value) = $values.get(found[row] as usize) {
                        $to[row] = $of(*value);
                    }
                })
            };
        }
        let (integers, floats) = (&mut target.buffer.integers, &mut target.buffer.floats);
        let mut wide = None;
        match &self.entries {
            Entries::Bytes(values) => gathered!(values, integers, |value| self.low + i64::from(value)),
            Entries::Shorts(values) => gathered!(values, integers, |value| self.low + i64::from(value)),
            Entries::Words(values) => gathered!(values, integers, |value| self.low.wrapping_add(i64::from(value))),
            Entries::Integers(values) => gathered!(values, integers, |value| value),
            Entries::Floats(values) => gathered!(values, floats, |value| value),
            Entries::Wide(values) => {
                let own = wide.insert(Own::new());
                gathered!(values, own, |value| value);
            }
        }
        let valid = (may_lack || self.valid.is_some()).then(|| {
            let mut flags = Own::new();
            rows.each(|row| {
                let entry = found[row] as usize;
                let valid = self
                    .valid
                    .as_ref()
                    .map_or(u8::from(found[row] != NONE), |valid| valid.get(entry).copied().unwrap_or(0));
                flags[row] = valid;
            });
            flags
        });
        match wide {
            Some(wide) => target.fill_wide(wide, valid),
            None => target.fill(if self.is_float { Values::Floats } else { Values::Integers }, valid),
        }
    }
}

/// The codes of a key's strings among those of a table, as integers; those that it lacks are out of its bounds.
pub(super) fn translate(value: &Value<'_>, codes: &[u32], rows: &Selection) -> Own<i64> {
    let mut translated = Own::new();
    if let Data::Integers(slots) = &value.data {
        with_slots!(slots, at => rows.each(|row| {
            let code = codes.get(at(row) as usize).copied().filter(|code| *code != NONE);
            translated[row] = code.map_or(-1, i64::from);
        }));
    }
    translated
}
