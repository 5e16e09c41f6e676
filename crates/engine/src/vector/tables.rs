//! Tables that pipelines build and others probe: by key where keys are dense, else by an index of keys.

use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use warpcube_column::{VECTOR_ROWS as ROWS, Values};

use super::keys::{Index, Keys, hash, share_of, shares_of};
use super::values::{Data, Own, Register, Selection, Value, with_slots};
use crate::error::{Result, unsupported};
use crate::ir::Ty;
use crate::plan::table::{Keep, PayloadColumn, TablePlan, Unique};

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
}

/// How entries are found.
#[derive(Debug)]
enum Places {
    /// A bit a key; the entry has the key's number.
    Direct(Vec<u64>),
    /// Keys by the share of their hash, with the first entry of each.
    Indexed(Vec<(Index, u32)>),
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    places: Places,
    /// Where the rows of each key begin, and where the last one's end, if keys may have several.
    starts: Option<Vec<u32>>,
    pub(super) payload: Vec<Payload>,
}

/// The rows of a share of the keys, which one thread puts into the table.
#[derive(Debug)]
struct Share {
    /// The bits of its keys, or their index.
    places: Places,
    /// Where the rows lie among those of all threads, and the slot of each from the share's first one on.
    rows: Vec<(u32, u32)>,
    slots: Vec<u32>,
    /// How many keys it has places for, and how many slots.
    keys: usize,
    len: usize,
    /// Where the rows of each key begin, if keys may have several.
    starts: Vec<u32>,
    /// Whether a key has several rows.
    several: bool,
}

/// How many rows the keys of a table may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PerKey {
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
    pub(super) fn of(parts: Vec<Rows>, plan: &TablePlan) -> Result<Option<Table>> {
        let per_key = match plan.unique {
            _ if plan.matches.is_some() => PerKey::All,
            Unique::Always => PerKey::One,
            Unique::Guessed(_) => PerKey::Guessed,
            Unique::No => PerKey::Any,
        };
        let pack = &plan.pack;
        let count = parts.iter().map(|rows| rows.keys.len()).sum::<usize>() / pack.words;
        if plan.matches.as_ref().is_some_and(|matches| count as u64 > matches.rows) {
            return unsupported(format!("a join with {count} rows to match, more than were planned for"));
        }
        let is_direct = pack.words == 1
            && pack.domain < u64::from(NONE)
            && pack.domain <= DIRECT_KEYS.max(DIRECT_KEYS_A_ROW * count as u64);
        let shares = shares_of(count);
        let share = |share: usize| match is_direct {
            true => {
                // Keys of a share have whole words of bits.
                let (keys, span) = (pack.domain as usize, (pack.domain as usize).div_ceil(shares).next_multiple_of(64));
                Share::of_range(&parts, (share * span).min(keys)..((share + 1) * span).min(keys), per_key)
            }
            false => Share::of_hashes(&parts, pack.words, (share, shares), per_key),
        };
        let shares: Vec<Share> = (0..shares).into_par_iter().map(share).collect();
        match per_key {
            PerKey::One if shares.iter().any(|share| share.several) => {
                return unsupported("a join whose build side has several rows for one key, on the CPU's columns");
            }
            PerKey::Guessed if shares.iter().any(|share| share.several) => return Ok(None),
            _ => {}
        }
        let payload = plan.payload.iter().enumerate();
        let payload = payload.map(|(at, column)| Payload::of((&parts, at), &shares, column)).collect();
        let (mut bits, mut indexes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut first_key, mut first_row) = (0, 0);
        for share in shares {
            starts.extend(share.starts.iter().map(|start| first_row + start));
            match share.places {
                Places::Direct(mut own) => bits.append(&mut own),
                Places::Indexed(own) => indexes.extend(own.into_iter().map(|(index, _)| (index, first_key))),
            }
            first_key += share.keys as u32;
            first_row += share.rows.len() as u32;
        }
        starts.push(first_row);
        let places = if is_direct { Places::Direct(bits) } else { Places::Indexed(indexes) };
        Ok(Some(Table { places, starts: (per_key == PerKey::All).then_some(starts), payload }))
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
            Places::Indexed(shares) => {
                let mut key = vec![0; keys.words.len()];
                rows.each(|row| {
                    key.iter_mut().zip(&keys.words).for_each(|(word, words)| *word = words[row]);
                    let hash = hash(&key);
                    let (index, first) = &shares[share_of(hash, shares.len())];
                    found[row] = index.find(&key, hash).map_or(NONE, |entry| first + entry as u32);
                });
            }
        }
    }
}

impl Share {
    /// The rows whose keys lie in a range.
    fn of_range(parts: &[Rows], keys: Range<usize>, per_key: PerKey) -> Share {
        let (mut bits, mut several) = (vec![0u64; keys.len().div_ceil(64)], false);
        let (mut rows, mut slots) = (Vec::new(), Vec::new());
        for (part, own) in parts.iter().enumerate() {
            for (row, key) in own.keys.iter().enumerate().filter(|(_, key)| keys.contains(&(**key as usize))) {
                let slot = *key as usize - keys.start;
                let (word, bit) = (&mut bits[slot / 64], 1 << (slot % 64));
                several |= *word & bit != 0;
                *word |= bit;
                rows.push((part as u32, row as u32));
                slots.push(slot as u32);
            }
        }
        Share::of(Places::Direct(bits), (rows, slots), (keys.len(), several), per_key)
    }

    /// The rows whose keys have hashes of a share.
    fn of_hashes(parts: &[Rows], words: usize, (share, shares): (usize, usize), per_key: PerKey) -> Share {
        let mut index = Index::new(words);
        let (mut rows, mut slots) = (Vec::new(), Vec::new());
        for (part, own) in parts.iter().enumerate() {
            for (row, key) in own.keys.chunks_exact(words).enumerate() {
                let hash = hash(key);
                if share_of(hash, shares) == share {
                    rows.push((part as u32, row as u32));
                    slots.push(index.insert(key, hash) as u32);
                }
            }
        }
        let keys = index.len();
        let several = keys < rows.len();
        Share::of(Places::Indexed(vec![(index, 0)]), (rows, slots), (keys, several), per_key)
    }

    /// Rows with the numbers of their keys, which are their slots unless each row has one.
    fn of(
        places: Places,
        (rows, mut slots): (Vec<(u32, u32)>, Vec<u32>),
        (keys, several): (usize, bool),
        per_key: PerKey,
    ) -> Share {
        let (mut starts, mut len) = (Vec::new(), keys);
        if per_key == PerKey::All {
            // Rows of a key lie side by side, in the order in which they came.
            let mut next = vec![0u32; keys + 1];
            slots.iter().for_each(|key| next[*key as usize + 1] += 1);
            (0..keys).for_each(|key| next[key + 1] += next[key]);
            starts = next[..keys].to_vec();
            for slot in &mut slots {
                let place = &mut next[*slot as usize];
                (*slot, *place) = (*place, *place + 1);
            }
            len = rows.len();
        }
        Share { places, rows, slots, keys, len, starts, several }
    }
}

/// The slots of all shares, of which `put` fills those that have a row, by the part and the number of that.
fn filled<T: Default + Clone + Send>(shares: &[Share], put: impl Fn(&mut T, (u32, u32)) + Sync) -> Vec<T> {
    let mut all = vec![T::default(); shares.iter().map(|share| share.len).sum()];
    let (mut slices, mut rest) = (Vec::new(), all.as_mut_slice());
    for share in shares {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(share.len);
        slices.push((share, own));
        rest = others;
    }
    slices.into_par_iter().for_each(|(share, own)| {
        share.rows.iter().zip(&share.slots).for_each(|(row, slot)| put(&mut own[*slot as usize], *row));
    });
    all
}

impl Payload {
    /// A column of the rows of all threads.
    fn of((parts, at): (&[Rows], usize), shares: &[Share], column: &PayloadColumn) -> Payload {
        let (facts, is_float) = (&column.facts, column.facts.ty.is_float());
        let bits = |(part, row): (u32, u32)| parts[part as usize].payload[at][row as usize];
        let is_valid = |(part, row): (u32, u32)| parts[part as usize].valid[at][row as usize];
        if column.keep != Keep::Only {
            // Images of extremes have no more than 64 bits.
            let sign = if facts.ty == Ty::U64 { i64::MIN } else { 0 };
            let extremes = filled(shares, |(entry, flag): &mut (i64, u8), row| {
                let value = bits(row) as i64;
                let is_better = match column.keep {
                    Keep::Least => value ^ sign < *entry ^ sign,
                    _ => value ^ sign > *entry ^ sign,
                };
                if is_valid(row) != 0 && (is_better || *flag == 0) {
                    (*entry, *flag) = (value, 1);
                }
            });
            let (entries, flags) = extremes.into_iter().unzip();
            return Payload { entries: Entries::Integers(entries), low: 0, valid: Some(flags), is_float };
        }
        // Without a row there are no columns yet.
        let has_nulls = parts.iter().any(|rows| rows.valid.get(at).is_some_and(|valid| valid.contains(&0)));
        let valid = has_nulls.then(|| filled(shares, |flag, row| *flag = is_valid(row)));
        let (low, high) = facts.range.unwrap_or((i64::MIN.into(), i64::MAX.into()));
        let span = if is_float { u128::MAX } else { high.max(low).abs_diff(low) };
        let low = if span > u32::MAX.into() { 0 } else { low as i64 };
        let offset = |row: (u32, u32)| (bits(row) as i64).wrapping_sub(low);
        let wide = |(part, row): (u32, u32)| {
            let words = &parts[part as usize].payload[at][2 * row as usize..];
            i128::from(words[1] as i64) << 64 | i128::from(words[0])
        };
        let entries = match span {
            _ if is_float => Entries::Floats(filled(shares, |entry, row| *entry = f64::from_bits(bits(row)))),
            _ if facts.is_wide() => Entries::Wide(filled(shares, |entry, row| *entry = wide(row))),
            0..=0xff => Entries::Bytes(filled(shares, |entry, row| *entry = offset(row) as u8)),
            0x100..=0xffff => Entries::Shorts(filled(shares, |entry, row| *entry = offset(row) as u16)),
            0x1_0000..=0xffff_ffff => Entries::Words(filled(shares, |entry, row| *entry = offset(row) as u32)),
            _ => Entries::Integers(filled(shares, |entry, row| *entry = bits(row) as i64)),
        };
        Payload { entries, low, valid, is_float }
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
