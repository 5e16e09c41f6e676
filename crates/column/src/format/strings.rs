//! Dictionaries of string columns.
//!
//! During a load each thread codes strings in order of arrival with a [`LocalDictionary`] of its own, without locks.
//! When the column closes, the local dictionaries are merged and sorted. The codes of each segment are then remapped by
//! the table of its local dictionary, so that codes order as strings do. A column with too many distinct strings has no
//! dictionary; an estimate shows it early.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::StringArray;
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use hashbrown::{DefaultHashBuilder, HashSet, HashTable};
use parking_lot::Mutex;
use rayon::slice::ParallelSliceMut;

use crate::error::{ColumnError, Result};
use crate::units::Dictionary;

/// One in this many hashes is counted across threads.
const COUNTED_SHARE: u64 = 64;
/// Smallest limit at which a count of a share of the hashes is precise enough.
const COUNTED_LIMIT_MIN: usize = 1 << 18;
/// Codes have 32 bits.
const LIMIT_MAX: usize = u32::MAX as usize;
/// Strings after which a thread estimates the distinct strings of the column.
const SAMPLE_ROWS: u64 = 1 << 17;
/// Fewest strings that several threads sort.
const PARALLEL_STRINGS_MIN: usize = 1 << 14;
/// The hint of errors past the limit.
const RAISES: &str = "warpcube.dictionary_limit raises the limit";

impl Dictionary {
    /// The dictionary of an array, and the codes of its rows, 0 for nulls.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] if the distinct strings take more than 2 GiB.
    pub fn of(strings: &StringArray) -> Result<(Dictionary, Vec<u32>)> {
        let shared = SharedDictionary::new("strings", usize::MAX, None);
        let mut local = shared.take();
        let codes: Vec<u32> =
            strings.iter().map(|text| text.map_or(Ok(0), |text| local.code(text))).collect::<Result<_>>()?;
        shared.give_back(local);
        let Merged { dictionary, remaps } = shared.merge()?;
        let codes = match &remaps[0] {
            Some(remap) => codes.into_iter().map(|code| remap.get(code as usize).copied().unwrap_or(0)).collect(),
            None => codes,
        };
        Ok((dictionary, codes))
    }
}

/// The dictionaries of a string column during its load, shared by threads.
#[derive(Debug)]
pub(crate) struct SharedDictionary {
    limit: Arc<Limit>,
    /// Local dictionaries so far.
    count: AtomicUsize,
    idle: Mutex<Vec<LocalDictionary>>,
}

/// The limit on the distinct strings of a column, and their count across threads.
#[derive(Debug)]
struct Limit {
    column: String,
    strings_max: usize,
    /// Rows of the column, if the source knows them.
    rows: Option<u64>,
    hasher: DefaultHashBuilder,
    /// One in [`COUNTED_SHARE`] of the hashes of distinct strings.
    counted: Mutex<HashSet<u64>>,
    /// Whether the column is past the limit.
    is_exceeded: AtomicBool,
}

/// The dictionary of a column on one thread, in order of arrival.
#[derive(Debug)]
pub(crate) struct LocalDictionary {
    /// Position among the dictionaries of the column.
    number: usize,
    limit: Arc<Limit>,
    codes: HashTable<Entry>,
    /// The strings in the order of their codes, and the end of each.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Rows with a string.
    rows: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Stored for growth of the table, which then reads no strings.
    hash: u64,
    code: u32,
}

/// The dictionary of a column, and by number of a local dictionary the final code of each arrival code; `None` if all
/// codes stay.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) dictionary: Dictionary,
    pub(crate) remaps: Vec<Option<Vec<u32>>>,
}

impl Limit {
    #[inline]
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    /// Notes that the column has no dictionary.
    fn exceeded(&self, reason: &str) -> ColumnError {
        self.is_exceeded.store(true, Ordering::Relaxed);
        ColumnError::unsupported(&self.column, reason)
    }

    fn too_many_strings(&self) -> ColumnError {
        self.exceeded(&format!("it has more than {} distinct strings ({RAISES})", self.strings_max))
    }

    /// Counts a string that is new to a thread with `local` distinct strings.
    fn count(&self, hash: u64, local: usize) -> Result<()> {
        let limit = self.strings_max;
        if local > limit {
            return Err(self.too_many_strings());
        }
        // Tables place entries by the low bits of the hash and compare by the high bits; bits between select the share.
        if (COUNTED_LIMIT_MIN..LIMIT_MAX).contains(&limit) && (hash >> 24).is_multiple_of(COUNTED_SHARE) {
            let mut counted = self.counted.lock();
            counted.insert(hash);
            let distinct = counted.len() as u64 * COUNTED_SHARE;
            // The error of the estimate is less than a tenth.
            if distinct > limit as u64 / 10 * 11 {
                return Err(self.too_many_strings());
            }
        }
        Ok(())
    }

    /// Refuses a column whose estimate, from `distinct` of `sampled` strings, is past twice the limit.
    fn check_estimate(&self, sampled: u64, distinct: u64) -> Result<()> {
        let twice = (self.strings_max as u64).saturating_mul(2);
        let Some(rows) = self.rows.filter(|rows| *rows > twice) else { return Ok(()) };
        // About n²/2d of n strings drawn from d repeat.
        let repeats = sampled - distinct;
        let estimate = (sampled * sampled).checked_div(2 * repeats).unwrap_or(rows).min(rows);
        if estimate <= twice {
            return Ok(());
        }
        let found = format!("{distinct} of its first {sampled} strings are distinct, which over {rows} rows means");
        Err(self.exceeded(&format!("{found} more than {} ({RAISES})", self.strings_max)))
    }
}

impl SharedDictionary {
    /// An empty dictionary of at most `limit` strings for a column of `rows` rows; `column` is its name in errors.
    pub(crate) fn new(column: &str, limit: usize, rows: Option<u64>) -> SharedDictionary {
        let (column, strings_max) = (column.to_string(), limit.min(LIMIT_MAX));
        let limit = Limit {
            column,
            strings_max,
            rows,
            hasher: <_>::default(),
            counted: <_>::default(),
            is_exceeded: <_>::default(),
        };
        SharedDictionary { limit: Arc::new(limit), count: AtomicUsize::new(0), idle: Mutex::default() }
    }

    /// A local dictionary for the exclusive use of one thread.
    pub(crate) fn take(&self) -> LocalDictionary {
        if let Some(idle) = self.idle.lock().pop() {
            return idle;
        }
        LocalDictionary {
            number: self.count.fetch_add(1, Ordering::Relaxed),
            limit: self.limit.clone(),
            codes: HashTable::new(),
            text: Vec::new(),
            ends: Vec::new(),
            rows: 0,
        }
    }

    /// Whether an error was that the column is past the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.limit.is_exceeded.load(Ordering::Relaxed)
    }

    /// Returns a local dictionary; its strings belong to the column.
    pub(crate) fn give_back(&self, local: LocalDictionary) {
        self.idle.lock().push(local);
    }

    /// Merges the returned local dictionaries to a sorted one.
    pub(crate) fn merge(&self) -> Result<Merged> {
        let mut locals = std::mem::take(&mut *self.idle.lock());
        locals.sort_unstable_by_key(|local| local.number);
        debug_assert!(locals.iter().enumerate().all(|(position, local)| local.number == position));
        let mut order: Vec<LocalString> = Vec::with_capacity(locals.iter().map(LocalDictionary::len).sum());
        for (local, dictionary) in locals.iter().enumerate() {
            let place = |code: u32| LocalString { head: head(dictionary.bytes_of(code)), local: local as u32, code };
            order.extend((0..dictionary.len() as u32).map(place));
        }
        let text = |place: &LocalString| locals[place.local as usize].bytes_of(place.code);
        let compare = |a: &LocalString, b: &LocalString| a.head.cmp(&b.head).then_with(|| text(a).cmp(text(b)));
        match order.len() < PARALLEL_STRINGS_MIN {
            true => order.sort_unstable_by(compare),
            false => order.par_sort_unstable_by(compare),
        }
        let mut remaps: Vec<Vec<u32>> = locals.iter().map(|local| vec![0; local.len()]).collect();
        let mut values: Vec<u8> = Vec::with_capacity(locals.iter().map(|local| local.text.len()).max().unwrap_or(0));
        let mut ends: Vec<i32> = vec![0];
        let mut last: Option<&[u8]> = None;
        for place in &order {
            let bytes = text(place);
            if last != Some(bytes) {
                values.extend_from_slice(bytes);
                let too_long = "its distinct strings take more than 2 GiB";
                let end = i32::try_from(values.len());
                ends.push(end.map_err(|_| self.limit.exceeded(too_long))?);
                last = Some(bytes);
            }
            remaps[place.local as usize][place.code as usize] = ends.len() as u32 - 2;
        }
        if ends.len() - 1 > self.limit.strings_max {
            return Err(self.limit.too_many_strings());
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let values = StringArray::try_new(offsets, Buffer::from_vec(values), None)
            .map_err(|error| ColumnError::source(format!("column '{}': {error}", self.limit.column)))?;
        let is_same = |remap: &Vec<u32>| remap.iter().enumerate().all(|(code, sorted)| code == *sorted as usize);
        let remaps = remaps.into_iter().map(|remap| (!is_same(&remap)).then_some(remap)).collect();
        Ok(Merged { dictionary: Dictionary::from_sorted(values), remaps })
    }
}

/// A string of a local dictionary with its first bytes, which decide most comparisons.
#[derive(Debug, Clone, Copy)]
struct LocalString {
    head: u64,
    local: u32,
    code: u32,
}

/// The first eight bytes, with zeros after shorter strings, as a number of the same order.
fn head(bytes: &[u8]) -> u64 {
    let mut first = [0u8; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

impl LocalDictionary {
    /// Position among the dictionaries of the column.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes_of(&self, code: u32) -> &[u8] {
        bytes_of(&self.text, &self.ends, code)
    }

    /// The arrival code of a string.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] past the limit, or if an estimate is far past it.
    #[inline]
    pub(crate) fn code(&mut self, text: &str) -> Result<u32> {
        let hash = self.limit.hash(text.as_bytes());
        self.rows += 1;
        let is_text =
            |entry: &Entry| entry.hash == hash && bytes_of(&self.text, &self.ends, entry.code) == text.as_bytes();
        if let Some(entry) = self.codes.find(hash, is_text) {
            return Ok(entry.code);
        }
        self.enter(hash, text)
    }

    #[cold]
    fn enter(&mut self, hash: u64, text: &str) -> Result<u32> {
        let code = self.ends.len() as u32;
        self.text.extend_from_slice(text.as_bytes());
        self.ends.push(self.text.len());
        self.codes.insert_unique(hash, Entry { hash, code }, |entry| entry.hash);
        self.limit.count(hash, self.ends.len())?;
        if (SAMPLE_ROWS..SAMPLE_ROWS * 2).contains(&self.rows) {
            self.limit.check_estimate(self.rows, self.ends.len() as u64)?;
        }
        Ok(code)
    }

    /// Counts rows whose code came from a cache.
    pub(crate) fn skip(&mut self, rows: u64) {
        self.rows += rows;
    }
}

fn bytes_of<'a>(text: &'a [u8], ends: &[usize], code: u32) -> &'a [u8] {
    let code = code as usize;
    let start = if code == 0 { 0 } else { ends[code - 1] };
    &text[start..ends[code]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(dictionary: &Dictionary) -> Vec<&str> {
        dictionary.values().iter().flatten().collect()
    }

    #[test]
    fn local_dictionaries_are_merged_and_sorted() {
        let strings = SharedDictionary::new("c", 3, None);
        let (mut one, mut two) = (strings.take(), strings.take());
        assert_eq!((one.code("b").unwrap(), two.code("a").unwrap(), one.code("a").unwrap()), (0, 0, 1));
        assert_eq!((two.code("c").unwrap(), one.code("b").unwrap()), (1, 0));
        strings.give_back(two);
        strings.give_back(one);
        let merged = strings.merge().unwrap();
        assert_eq!(texts(&merged.dictionary), ["a", "b", "c"]);
        assert_eq!(merged.remaps, [Some(vec![1, 0]), Some(vec![0, 2])]);
    }

    #[test]
    fn strings_in_order_of_arrival_need_no_remap() {
        let strings = SharedDictionary::new("c", 10, None);
        let mut local = strings.take();
        for text in ["", "a", "a\0", "ab", "eight by", "eight bytes", "eight bytez"] {
            local.code(text).unwrap();
        }
        strings.give_back(local);
        assert_eq!(strings.merge().unwrap().remaps, [None]);
        assert_eq!(strings.take().number(), 1, "a merged dictionary is not used again");
    }

    #[test]
    fn the_limit_holds_for_one_thread_and_for_all_together() {
        let strings = SharedDictionary::new("c", 3, None);
        let (mut one, mut two) = (strings.take(), strings.take());
        for text in ["a", "b", "c"] {
            one.code(text).unwrap();
        }
        assert!(one.code("d").unwrap_err().is_unsupported());
        two.code("x").unwrap();
        strings.give_back(one);
        strings.give_back(two);
        let error = strings.merge().unwrap_err().to_string();
        assert!(error.contains("more than 3 distinct strings"), "{error}");
    }

    #[test]
    fn a_column_past_its_limit_is_refused_soon_after_it() {
        let limit = COUNTED_LIMIT_MIN;
        let strings = SharedDictionary::new("c", limit, None);
        let mut locals = [strings.take(), strings.take(), strings.take(), strings.take()];
        let refused = (0..limit * 4).find(|row| locals[row % 4].code(&format!("text {row}")).is_err());
        // No thread alone is past the limit.
        assert!(refused.is_some_and(|row| (limit..limit * 2).contains(&row)), "{refused:?}");
        let again = SharedDictionary::new("c", limit, None);
        let mut locals = [again.take(), again.take()];
        let refused = (0..limit * 4).find(|row| locals[row % 2].code(&format!("text {}", row % limit)).is_err());
        assert_eq!(refused, None, "the same strings in several dictionaries count once");
    }

    #[test]
    fn a_column_of_distinct_strings_is_refused_after_a_sample() {
        let rows = 40 * SAMPLE_ROWS;
        let refused = |repeat: u64| {
            let strings = SharedDictionary::new("c", SAMPLE_ROWS as usize * 4, Some(rows));
            let mut local = strings.take();
            (0..2 * SAMPLE_ROWS).find(|row| local.code(&format!("{}", row % repeat)).is_err())
        };
        assert_eq!(refused(u64::MAX), Some(SAMPLE_ROWS - 1));
        assert_eq!(refused(SAMPLE_ROWS / 2), None, "repeats in the sample keep the estimate within the limit");
    }

    #[test]
    fn an_array_has_a_dictionary_and_codes() {
        let (dictionary, codes) =
            Dictionary::of(&StringArray::from(vec![Some("y"), None, Some("x"), Some("y")])).unwrap();
        assert_eq!((texts(&dictionary), codes), (vec!["x", "y"], vec![1, 1, 0, 1]));
        let (empty, codes) = Dictionary::of(&StringArray::new_null(2)).unwrap();
        assert_eq!((empty.len(), codes), (0, vec![0, 0]));
    }
}
