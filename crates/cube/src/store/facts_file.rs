//! A segment of facts as a column file: keys, then each measure with its counts, then row counts. A file of one column
//! has the cells of a segment that are not live any more: their numbers in the order of keys, ascending.
//!
//! ```text
//! key                 UInt64, the low 64 bits of the keys, strictly ascending where keys are narrow
//! high key            UInt64, the high bits; only where keys are wide
//! index <array>       UInt64, in place of keys under schemes other than BESS: the arrays with an entry a cell
//! measure <name>      Int64 or Float64, NULL where the cell is empty; sums of an AVG
//! counts <name>       UInt64, rows with a value; only of an AVG whose cells fold several rows
//! carries <name>      Int64, units of 2⁶⁴ (decimals) or 2¹⁰⁰⁰ (doubles); only of an AVG with sums beyond its type
//! cancelled <name>    Float64, magnitudes of a cell's rows less that of their sum; only where rows cancel each other
//! rows                UInt64, source rows of a cell; only if a cell folds several rows
//! ```
//!
//! Cells have the order of the scheme, which is that of keys but for xCCS. An array of the scheme with another length
//! is a file of its own with one column.
//!
//! Chunks of the file are the pages of the cube: [`PAGE_ROWS`] cells each, the last one shorter.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use warpcube_arrays::Scheme;
use warpcube_arrays::restore::Words;
use warpcube_column::format::{
    EncodedChunk, EncodedColumn, EncodedFile, EncodingError, FileError, FileWriter, TableIdentity, decode,
};

use super::cube::fact_measures;
use super::error::{Result, StoreError};
use super::folder::MANIFEST_NAME;
use super::index::{self, Index};
use super::manifest::{ColumnSummary, INDEX_PREFIX};
use super::pages::{PAGE_ROWS, Pages, Value, encode_column, page_rows};
use crate::facts::{Bitmap, FactColumn, FactMeasure, Keys, Rule, Segment, ValueType, Values};
use crate::model::CubeModel;

/// Writes a segment to a file, with their keys or the index of another scheme.
///
/// # Errors
/// [`StoreError::Facts`].
pub(super) fn write(
    path: &Path,
    identity: &TableIdentity,
    facts: &Segment,
    index: Option<&Index>,
) -> Result<Vec<ColumnSummary>> {
    let mut writer = ColumnWriter::new(path, identity, facts.len())?;
    match (index, facts.keys()) {
        (Some(index), _) => {
            for (name, words) in &index.of_cells {
                writer.column(&format!("{INDEX_PREFIX}{name}"), words, None)?;
            }
        }
        (None, Keys::Narrow(keys)) => writer.column("key", keys, None)?,
        (None, Keys::Wide(keys)) => {
            let word = |shift: u32| keys.par_iter().map(|key| (key >> shift) as u64).collect::<Vec<u64>>();
            writer.column("key", &word(0), None)?;
            writer.column("high key", &word(u64::BITS), None)?;
        }
    }
    let order = index.and_then(|index| index.order.as_deref());
    let (columns, rows) = match order {
        None => (Cow::Borrowed(facts.columns()), facts.row_counts().map(Cow::Borrowed)),
        Some(_) => {
            let (columns, rows) =
                index::ordered(facts.columns().to_vec(), facts.row_counts().map(<[u64]>::to_vec), order);
            (Cow::Owned(columns), rows.map(Cow::Owned))
        }
    };
    for (number, FactColumn { measure, values, filled, counts }) in columns.iter().enumerate() {
        let name = format!("measure {}", measure.name);
        match values {
            Values::Decimals(values) => writer.column(&name, values, filled.as_ref())?,
            Values::Doubles(values) => writer.column(&name, values, filled.as_ref())?,
        }
        if let Some(counts) = counts {
            writer.column(&format!("counts {}", measure.name), counts, None)?;
        }
        if let Some(carries) = facts.carries(number) {
            let carries = index::ordered_values(carries, order);
            writer.column(&format!("carries {}", measure.name), &carries, None)?;
        }
        if let Some(cancelled) = facts.cancelled(number) {
            let cancelled = index::ordered_values(cancelled, order);
            writer.column(&format!("cancelled {}", measure.name), &cancelled, None)?;
        }
    }
    if let Some(rows) = rows {
        writer.column("rows", &rows, None)?;
    }
    writer.finish()
}

/// Writes one array to a file.
///
/// # Errors
/// [`StoreError::Facts`].
pub(super) fn write_array(
    path: &Path,
    identity: &TableIdentity,
    (name, words): &index::Named,
) -> Result<Vec<ColumnSummary>> {
    let mut writer = ColumnWriter::new(path, identity, words.len())?;
    writer.column(name, words, None)?;
    writer.finish()
}

/// Bytes of the pages that an array takes.
///
/// # Errors
/// None that arrays of words have.
pub(super) fn array_bytes(words: &[u64]) -> Result<u64, EncodingError> {
    Ok(encode_column(words, None)?.chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum())
}

/// Carries of a measure's averages, and what rows of its cells cancelled.
type BesideValues = (Option<Vec<i64>>, Option<Vec<f64>>);

struct ColumnWriter<'a> {
    path: &'a Path,
    file: FileWriter,
    summaries: Vec<ColumnSummary>,
}

impl<'a> ColumnWriter<'a> {
    fn new(path: &'a Path, identity: &TableIdentity, entries: usize) -> Result<ColumnWriter<'a>> {
        let rows: Vec<u32> = page_rows(entries).map(|rows| rows as u32).collect();
        let file = FileWriter::create(path, identity, &rows)?;
        Ok(ColumnWriter { path, file, summaries: Vec::new() })
    }

    fn finish(self) -> Result<Vec<ColumnSummary>> {
        self.file.finish()?;
        Ok(self.summaries)
    }

    fn column<T: Value>(&mut self, name: &str, values: &[T], filled: Option<&Bitmap>) -> Result<()> {
        let encoded = encode_column(values, filled);
        let Pages { encoding, statistics, chunks } = encoded.map_err(|error| encoding_error(self.path, name, error))?;
        let bytes_of = |chunk: &EncodedChunk| chunk.bytes.len() + 4 * chunk.validity.as_ref().map_or(0, Vec::len);
        let bytes = chunks.iter().map(bytes_of).sum::<usize>() as u64;
        self.summaries.push(ColumnSummary { name: name.to_owned(), encoding: encoding.to_string(), bytes });
        let column = EncodedColumn {
            name: name.to_owned(),
            data_type: T::TYPE.to_owned(),
            storage: T::STORAGE,
            encoding,
            statistics,
            traits: None,
        };
        self.file.column(&column, None, chunks.into_iter().map(Ok::<_, FileError>))?;
        Ok(())
    }
}

fn encoding_error(path: &Path, place: &str, error: EncodingError) -> StoreError {
    StoreError::damaged(path, format!("column '{place}': {error}"))
}

/// A column file of facts whose directory was checked.
pub(super) struct FactsFile {
    path: PathBuf,
    file: EncodedFile,
    cells: usize,
    /// The column that is read next.
    next: usize,
}

/// A decoded column.
struct Column<T> {
    values: Vec<T>,
    filled: Option<Bitmap>,
}

impl FactsFile {
    /// Opens the file of `bytes` bytes and `cells` facts; an array of a scheme has the entries that its file says.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Facts`], [`StoreError::Damaged`].
    pub(super) fn open(path: &Path, identity: &TableIdentity, bytes: u64, cells: Option<u64>) -> Result<FactsFile> {
        let length = fs::metadata(path).map_err(StoreError::io(path, "read"))?.len();
        if length != bytes {
            return Err(StoreError::damaged(path, format!("it has {length} bytes, {MANIFEST_NAME} says {bytes}")));
        }
        let file = EncodedFile::open(path, identity)?;
        let rows = file.chunk_rows();
        let found: u64 = rows.iter().map(|rows| u64::from(*rows)).sum();
        let cells = cells.unwrap_or(found);
        if found != cells || !rows.iter().map(|rows| *rows as usize).eq(page_rows(found as usize)) {
            let reason = format!("its pages hold {found} cells, the manifest has {cells} in pages of {PAGE_ROWS}");
            return Err(StoreError::damaged(path, reason));
        }
        Ok(FactsFile { path: path.to_path_buf(), file, cells: found as usize, next: 0 })
    }

    /// The name and the entries of an array that is a file of its own.
    ///
    /// # Errors
    /// [`StoreError::Facts`], [`StoreError::Damaged`].
    pub(super) fn array(mut self) -> Result<index::Named> {
        let name = self.file.columns().first().map(|column| column.name.clone()).unwrap_or_default();
        let words = self.column::<u64>(&name)?.values;
        Ok((name, words))
    }

    /// Reads a segment of the facts of a model, stored in a scheme with these arrays beside the file, in pages of
    /// `page_cells` cells. Runs on all cores of the current rayon pool.
    ///
    /// # Errors
    /// [`StoreError::Facts`] names column and page; [`StoreError::Damaged`], [`StoreError::FactsParts`].
    pub(super) fn facts(
        mut self,
        model: &CubeModel,
        page_cells: usize,
        (scheme, pointers): (Scheme, Words),
    ) -> Result<Segment> {
        let layout = model.layout().clone();
        let (keys, places) = match scheme {
            Scheme::Bess => (self.keys(layout.is_narrow())?, None),
            _ => self.indexed(model, scheme, pointers)?,
        };
        let columns = fact_measures(model).map(|measure| self.measure(measure)).collect::<Result<Vec<_>>>()?;
        let (columns, beside): (Vec<FactColumn>, Vec<_>) = columns.into_iter().unzip();
        let (carries, cancelled): (Vec<_>, Vec<_>) = beside.into_iter().unzip();
        let rows = self.optional("rows")?;
        if let Some(column) = self.file.columns().get(self.next) {
            return Err(StoreError::damaged(&self.path, format!("the model has no column '{}'", column.name)));
        }
        let path = self.path;
        let (columns, rows) = index::ordered(columns, rows, places.as_deref());
        let carries = carries.into_iter();
        let carries =
            carries.map(|of| of.map(|of: Vec<i64>| index::ordered_values(&of, places.as_deref()).into_owned()));
        let parts = Segment::from_parts(layout, keys, columns, rows, page_cells);
        let cancelled = cancelled.into_iter();
        let cancelled =
            cancelled.map(|of| of.map(|of: Vec<f64>| index::ordered_values(&of, places.as_deref()).into_owned()));
        let parts = parts.map(|facts| facts.with_carries(carries.collect()).with_cancelled(cancelled.collect()));
        parts.map_err(|source| StoreError::FactsParts { path, source })
    }

    fn keys(&mut self, is_narrow: bool) -> Result<Keys> {
        let low = self.column::<u64>("key")?.values;
        if is_narrow {
            return Ok(Keys::Narrow(low));
        }
        let high = self.column::<u64>("high key")?.values;
        let key = |(low, high): (&u64, &u64)| u128::from(*high) << u64::BITS | u128::from(*low);
        Ok(Keys::Wide(low.par_iter().zip(&high).map(key).collect()))
    }

    /// The keys that an index stands for, and their places in the file.
    fn indexed(&mut self, model: &CubeModel, scheme: Scheme, mut words: Words) -> Result<(Keys, Option<Vec<usize>>)> {
        let (path, cells) = (self.path.clone(), self.cells);
        let damaged = |reason: String| StoreError::damaged(&path, format!("the index of scheme {scheme}: {reason}"));
        let shape = index::shape(model).map_err(|error| damaged(error.to_string()))?;
        for name in index::names_of_cells(scheme, &shape) {
            let column = self.column::<u64>(&format!("{INDEX_PREFIX}{name}"))?;
            words.insert(name, column.values);
        }
        index::keys(scheme, model, cells, &words).map_err(damaged)
    }

    /// A measure, its carries and what rows of its cells cancelled.
    fn measure(&mut self, measure: FactMeasure) -> Result<(FactColumn, BesideValues)> {
        let name = format!("measure {}", measure.name);
        let (values, filled) = match measure.value_type {
            ValueType::Decimal { .. } => {
                let Column { values, filled } = self.column(&name)?;
                (Values::Decimals(values), filled)
            }
            ValueType::Double => {
                let Column { values, filled } = self.column(&name)?;
                (Values::Doubles(values), filled)
            }
        };
        let (counts, carries) = match measure.rule {
            Rule::Avg => {
                let counts = self.optional(&format!("counts {}", measure.name))?;
                (counts, self.optional(&format!("carries {}", measure.name))?)
            }
            _ => (None, None),
        };
        let cancelled = match (measure.rule, measure.value_type) {
            (Rule::Sum | Rule::Avg, ValueType::Double) => self.optional(&format!("cancelled {}", measure.name))?,
            _ => None,
        };
        Ok((FactColumn { measure, values, filled, counts }, (carries, cancelled)))
    }

    /// A column without NULL, if it is the next one.
    fn optional<T: Value>(&mut self, name: &str) -> Result<Option<Vec<T>>> {
        match self.file.columns().get(self.next) {
            Some(column) if column.name == name => Ok(Some(self.column(name)?.values)),
            _ => Ok(None),
        }
    }

    /// Decodes the next column, which has to have this name and type.
    fn column<T: Value>(&mut self, name: &str) -> Result<Column<T>> {
        let number = self.next;
        let head = self.file.columns().get(number).filter(|head| head.name == name && head.storage == T::STORAGE);
        let Some(head) = head else {
            let reason = format!("column {number} is not '{name}' of type {}", T::TYPE);
            return Err(StoreError::damaged(&self.path, reason));
        };
        self.next += 1;
        let (path, file) = (&self.path, &self.file);
        let mut values = vec![T::default(); self.cells];
        let decoded = values.par_chunks_mut(PAGE_ROWS).enumerate().map(|(page, out)| {
            let EncodedChunk { bytes, validity, rows } = file.chunk(number, page)?;
            let decoded = decode(&head.encoding, &bytes, T::STORAGE, validity.as_deref(), rows);
            let decoded = decoded
                .map_err(|error| StoreError::damaged(path, format!("column '{name}', chunk {page}: {error}")))?;
            out.iter_mut().zip(decoded.as_chunks().0).for_each(|(value, bytes)| *value = T::from_bytes(*bytes));
            Ok(validity)
        });
        let validity = decoded.collect::<Result<Vec<_>>>()?;
        Ok(Column { values, filled: filled(&validity, self.cells) })
    }
}

/// The name of the column of cells that are not live.
const REMOVED: &str = "removed";

/// The column of the cells of a segment that are not live.
pub(super) fn removed_of(segment: &Segment) -> index::Named {
    let removed = (0..segment.len()).filter(|cell| !segment.is_live(*cell)).map(|cell| cell as u64);
    (REMOVED.to_owned(), removed.collect())
}

/// The live cells of a segment of so many cells, by the column of the others; nothing if that is none of them.
pub(super) fn live_of((name, removed): &index::Named, cells: usize) -> Option<Bitmap> {
    if name != REMOVED || !removed.is_sorted_by(|one, next| one < next) {
        return None;
    }
    let mut live = vec![true; cells];
    for cell in removed {
        *live.get_mut(usize::try_from(*cell).ok()?)? = false;
    }
    Some(live.into_iter().collect())
}

/// The filled cells of a column from the validity words of its pages; nothing if no page has any.
fn filled(pages: &[Option<Vec<u32>>], cells: usize) -> Option<Bitmap> {
    if pages.iter().all(Option::is_none) {
        return None;
    }
    let mut words = Vec::with_capacity(cells.div_ceil(64));
    for (page, rows) in pages.iter().zip(page_rows(cells)) {
        match page {
            Some(halves) => {
                let pairs = halves.as_chunks::<2>().0.iter().take(rows.div_ceil(64));
                words.extend(pairs.map(|[low, high]| u64::from(*high) << 32 | u64::from(*low)));
            }
            None => words.extend(std::iter::repeat_n(u64::MAX, rows.div_ceil(64))),
        }
    }
    Bitmap::from_words(words, cells)
}
