//! Dictionaries of string columns.
//!
//! While a column is loaded each thread gives strings codes in order of arrival, in a [`LocalDictionary`] of its own:
//! no lock is shared. When the column closes the local dictionaries are merged and sorted, and the codes on the device
//! are remapped, those of each segment by the table of the dictionary it was coded with: codes then order as strings
//! do. Columns with too many distinct strings are given up as early as that can be told.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::StringArray;
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use hashbrown::{DefaultHashBuilder, HashSet, HashTable};
use parking_lot::Mutex;
use rayon::slice::ParallelSliceMut;

use crate::error::{ColumnError, Result};
use crate::units::Dictionary;

/// Of this many hashes one is counted by all threads together.
const COUNTED_SHARE: u64 = 64;
/// Below this limit counting by shares says too little.
const COUNTED_LIMIT_MIN: usize = 1 << 18;
/// Codes have 32 bits.
const LIMIT_MAX: usize = u32::MAX as usize;
/// Strings after which a thread judges whether nearly all are distinct.
const SAMPLE_ROWS: u64 = 1 << 17;
/// Dictionaries of more strings are sorted by several threads.
const PARALLEL_STRINGS_MIN: usize = 1 << 14;

impl Dictionary {
    /// The distinct strings of an array, and the code of each of its rows, 0 for a null.
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

/// The dictionary of a string column as its loading threads share it.
#[derive(Debug)]
pub(crate) struct SharedDictionary {
    bounds: Arc<Bounds>,
    made: AtomicUsize,
    idle: Mutex<Vec<LocalDictionary>>,
}

/// The limit of a column and how close it is.
#[derive(Debug)]
struct Bounds {
    column: String,
    limit: usize,
    /// Rows of the column, where they are known.
    rows: Option<u64>,
    hasher: DefaultHashBuilder,
    /// Hashes of distinct strings, one in [`COUNTED_SHARE`].
    counted: Mutex<HashSet<u64>>,
}

/// One thread's codes of a column.
#[derive(Debug)]
pub(crate) struct LocalDictionary {
    /// Position among the dictionaries of the column.
    number: usize,
    bounds: Arc<Bounds>,
    codes: HashTable<Entry>,
    /// The strings one after the other, in the order of their codes, and where each ends.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Strings asked for.
    asked: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Kept so that the table can grow without looking at the strings.
    hash: u64,
    code: u32,
}

/// A column's dictionary, and by number of a local dictionary the final code of each of its codes; none where they
/// stay as they are.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) dictionary: Dictionary,
    pub(crate) remaps: Vec<Option<Vec<u32>>>,
}

impl Bounds {
    #[inline]
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    fn too_many(&self, reason: String) -> ColumnError {
        let reason = format!("{reason} (warpcube.dictionary_limit raises the limit)");
        ColumnError::Unsupported { column: self.column.clone(), reason }
    }

    fn past_limit(&self) -> ColumnError {
        self.too_many(format!("it has more than {} distinct strings", self.limit))
    }

    /// Counts a string that is new to some thread.
    fn count(&self, hash: u64, known_here: usize) -> Result<()> {
        if known_here > self.limit {
            return Err(self.past_limit());
        }
        // Low bits place an entry in the tables, high ones tell entries apart; those in between are free to draw from.
        if self.limit >= COUNTED_LIMIT_MIN && self.limit < LIMIT_MAX && (hash >> 24).is_multiple_of(COUNTED_SHARE) {
            let mut counted = self.counted.lock();
            counted.insert(hash);
            let distinct = counted.len() as u64 * COUNTED_SHARE;
            // A tenth is more than the error of the estimate.
            if distinct > self.limit as u64 / 10 * 11 {
                return Err(self.past_limit());
            }
        }
        Ok(())
    }

    /// Judges by `distinct` of `asked` strings whether the whole column can stay within the limit.
    fn judge(&self, asked: u64, distinct: u64) -> Result<()> {
        let twice = (self.limit as u64).saturating_mul(2);
        let Some(rows) = self.rows.filter(|rows| *rows > twice) else { return Ok(()) };
        // Of n strings drawn from d some n²/2d repeat.
        let repeats = asked - distinct;
        let estimate = (asked * asked).checked_div(2 * repeats).unwrap_or(rows).min(rows);
        if estimate <= twice {
            return Ok(());
        }
        let found = format!("{distinct} of its first {asked} strings are distinct, which over {rows} rows means");
        Err(self.too_many(format!("{found} more than {}", self.limit)))
    }
}

impl SharedDictionary {
    /// An empty dictionary of at most `limit` strings; `column` names it in errors, `rows` are those of the column.
    pub(crate) fn new(column: &str, limit: usize, rows: Option<u64>) -> SharedDictionary {
        let bounds = Bounds {
            column: column.to_string(),
            limit: limit.min(LIMIT_MAX),
            rows,
            hasher: DefaultHashBuilder::default(),
            counted: Mutex::default(),
        };
        SharedDictionary { bounds: Arc::new(bounds), made: AtomicUsize::new(0), idle: Mutex::default() }
    }

    /// A dictionary that no other thread uses now; as many are made as threads use one at a time.
    pub(crate) fn take(&self) -> LocalDictionary {
        if let Some(idle) = self.idle.lock().pop() {
            return idle;
        }
        LocalDictionary {
            number: self.made.fetch_add(1, Ordering::Relaxed),
            bounds: self.bounds.clone(),
            codes: HashTable::new(),
            text: Vec::new(),
            ends: Vec::new(),
            asked: 0,
        }
    }

    /// Gives a dictionary back; what it holds belongs to the column.
    pub(crate) fn give_back(&self, local: LocalDictionary) {
        self.idle.lock().push(local);
    }

    /// One sorted dictionary of all that were given back.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] past the limit, or if the distinct strings take more than 2 GiB.
    pub(crate) fn merge(&self) -> Result<Merged> {
        let mut locals = std::mem::take(&mut *self.idle.lock());
        locals.sort_unstable_by_key(|local| local.number);
        debug_assert!(locals.iter().enumerate().all(|(position, local)| local.number == position));
        let mut order: Vec<Place> = Vec::with_capacity(locals.iter().map(LocalDictionary::len).sum());
        for (local, dictionary) in locals.iter().enumerate() {
            let place = |code: u32| Place { head: head(dictionary.bytes_of(code)), local: local as u32, code };
            order.extend((0..dictionary.len() as u32).map(place));
        }
        let text = |place: &Place| locals[place.local as usize].bytes_of(place.code);
        let compare = |a: &Place, b: &Place| a.head.cmp(&b.head).then_with(|| text(a).cmp(text(b)));
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
                let end = i32::try_from(values.len()).map_err(|_| ColumnError::Unsupported {
                    column: self.bounds.column.clone(),
                    reason: "its distinct strings take more than 2 GiB".into(),
                })?;
                ends.push(end);
                last = Some(bytes);
            }
            remaps[place.local as usize][place.code as usize] = ends.len() as u32 - 2;
        }
        if ends.len() - 1 > self.bounds.limit {
            return Err(self.bounds.past_limit());
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        let values = StringArray::try_new(offsets, Buffer::from_vec(values), None)
            .map_err(|error| ColumnError::source(format!("column '{}': {error}", self.bounds.column)))?;
        let is_same = |remap: &Vec<u32>| remap.iter().enumerate().all(|(code, sorted)| code == *sorted as usize);
        let remaps = remaps.into_iter().map(|remap| (!is_same(&remap)).then_some(remap)).collect();
        Ok(Merged { dictionary: Dictionary::from_sorted(values), remaps })
    }
}

/// A string of a local dictionary, with its first bytes, which decide most comparisons.
#[derive(Debug, Clone, Copy)]
struct Place {
    head: u64,
    local: u32,
    code: u32,
}

/// The first eight bytes as a number that orders as they do; shorter strings are followed by zeros.
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

    /// The code of arrival of a string.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] once it is certain, or as good as, that the column has too many distinct strings.
    #[inline]
    pub(crate) fn code(&mut self, text: &str) -> Result<u32> {
        let hash = self.bounds.hash(text.as_bytes());
        self.asked += 1;
        let is_it =
            |entry: &Entry| entry.hash == hash && bytes_of(&self.text, &self.ends, entry.code) == text.as_bytes();
        if let Some(entry) = self.codes.find(hash, is_it) {
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
        self.bounds.count(hash, self.ends.len())?;
        if self.asked >= SAMPLE_ROWS && self.asked < SAMPLE_ROWS * 2 {
            // Where hardly any string is new the question does not arise.
            self.bounds.judge(self.asked, self.ends.len() as u64)?;
        }
        Ok(code)
    }

    /// Notes that strings came that were not asked for one by one.
    pub(crate) fn skip(&mut self, strings: u64) {
        self.asked += strings;
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
    fn codes_arrive_apart_and_are_merged_and_sorted() {
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
    fn strings_that_arrive_in_order_need_no_remap() {
        let strings = SharedDictionary::new("c", 10, None);
        let mut local = strings.take();
        for text in ["", "a", "a\0", "ab", "eight by", "eight bytes", "eight bytez"] {
            local.code(text).unwrap();
        }
        strings.give_back(local);
        assert_eq!(strings.merge().unwrap().remaps, [None]);
        assert_eq!(strings.take().number(), 1, "what was merged is not handed out again");
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
    fn a_column_past_its_limit_is_given_up_soon_after_it() {
        let limit = COUNTED_LIMIT_MIN;
        let strings = SharedDictionary::new("c", limit, None);
        let mut locals = [strings.take(), strings.take(), strings.take(), strings.take()];
        let refused = (0..limit * 4).find(|row| locals[row % 4].code(&format!("text {row}")).is_err());
        // No thread has seen more than the limit, together they have.
        assert!(refused.is_some_and(|row| (limit..limit * 2).contains(&row)), "{refused:?}");
        let again = SharedDictionary::new("c", limit, None);
        let mut locals = [again.take(), again.take()];
        let refused = (0..limit * 4).find(|row| locals[row % 2].code(&format!("text {}", row % limit)).is_err());
        assert_eq!(refused, None, "the same strings in several dictionaries count once");
    }

    #[test]
    fn a_column_of_distinct_strings_is_given_up_after_a_sample() {
        let rows = 40 * SAMPLE_ROWS;
        let refused = |repeat: u64| {
            let strings = SharedDictionary::new("c", SAMPLE_ROWS as usize * 4, Some(rows));
            let mut local = strings.take();
            (0..2 * SAMPLE_ROWS).find(|row| local.code(&format!("{}", row % repeat)).is_err())
        };
        assert_eq!(refused(u64::MAX), Some(SAMPLE_ROWS - 1));
        assert_eq!(refused(SAMPLE_ROWS / 2), None, "strings that come again may all be there already");
    }

    #[test]
    fn an_array_becomes_a_dictionary_and_codes() {
        let (dictionary, codes) =
            Dictionary::of(&StringArray::from(vec![Some("y"), None, Some("x"), Some("y")])).unwrap();
        assert_eq!((texts(&dictionary), codes), (vec!["x", "y"], vec![1, 1, 0, 1]));
        let (empty, codes) = Dictionary::of(&StringArray::new_null(2)).unwrap();
        assert_eq!((empty.len(), codes), (0, vec![0, 0]));
    }
}
