//! The keys of a table's rows: a set of encoded keys for each PRIMARY KEY and UNIQUE.
//!
//! The index is that of the current version. A statement takes keys of rows that leave out of it and adds those of rows
//! that come, so that it costs what it changes; where an UPDATE leaves all values of a key as they were, that key costs
//! a comparison of columns. [`Edit`] logs both, and a statement that fails is undone by it.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, SortField};

use super::Ledger;
use super::rules::{Key, Rules};
use super::versions::{Change, Version, failed};
use crate::error::Result;
use crate::span_lengths::lengths;

/// The bytes of a key's values, as a row of Arrow's row format.
type Encoded = Arc<[u8]>;

/// The keys of the rows of one version.
#[derive(Debug)]
pub(super) struct KeyIndex {
    /// The version's number.
    pub(super) number: u64,
    sets: Vec<HashSet<Encoded>>,
    /// Bytes of all keys.
    key_bytes: usize,
    /// Bytes that are charged.
    charged: usize,
    ledger: Arc<Ledger>,
}

/// Bytes of a key beside its own: two counters of references.
const KEY_BYTES: usize = 2 * size_of::<usize>();

/// What a statement has done to an index, each key with the number of its set.
#[derive(Debug, Default)]
pub(super) struct Edit {
    removed: Vec<(usize, Encoded)>,
    added: Vec<(usize, Encoded)>,
}

/// The rows that a statement changes and inserts.
pub(super) struct Changes<'a> {
    /// By ascending number, each once.
    pub(super) changes: &'a [Change],
    /// Places in `rows`.
    pub(super) inserted: &'a [(usize, usize)],
    pub(super) rows: &'a [RecordBatch],
}

impl KeyIndex {
    /// The keys of a version; none for tables without keys. `check` is asked for each batch.
    ///
    /// # Errors
    /// Two rows of one key.
    pub(super) fn of(
        rules: &Rules,
        version: &Version,
        ledger: &Arc<Ledger>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<KeyIndex>> {
        if rules.keys().is_empty() {
            return Ok(None);
        }
        let sets = vec![HashSet::new(); rules.keys().len()];
        let (number, ledger) = (version.number, ledger.clone());
        let mut index = KeyIndex { number, sets, key_bytes: 0, charged: 0, ledger };
        for batch in version.partitions.iter().flatten() {
            check()?;
            index.add_rows(rules, batch, None)?;
        }
        Ok(Some(index))
    }

    /// Adds the keys of rows. After an error the edit has to be undone.
    pub(super) fn append(
        &mut self,
        rules: &Rules,
        rows: &[RecordBatch],
        edit: &mut Edit,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        for batch in rows {
            check()?;
            self.add_rows(rules, batch, Some(edit))?;
        }
        Ok(())
    }

    /// Takes the keys of changed rows of a version out and adds those of the new rows. After an error the edit has to
    /// be undone.
    pub(super) fn change(
        &mut self,
        rules: &Rules,
        version: &Version,
        Changes { changes, inserted, rows }: &Changes,
        edit: &mut Edit,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        // The rows that are updated first, in one order on both sides.
        let updated = || changes.iter().filter_map(|(number, new)| Some((*number, (*new)?)));
        let deleted = changes.iter().filter(|(_, new)| new.is_none()).map(|(number, _)| *number);
        let (sources, old) = version.places_of(updated().map(|(number, _)| number));
        let (sources_deleted, deleted) = version.places_of(deleted);
        let new: Vec<(usize, usize)> = updated().map(|(_, place)| place).collect();
        let all: Vec<&RecordBatch> = rows.iter().collect();
        for (set, key) in rules.keys().iter().enumerate() {
            check()?;
            let (leaving, coming) = (key_at(key, &sources, &old)?, key_at(key, &all, &new)?);
            let is_same = leaving == coming;
            if !is_same {
                self.remove(set, &leaving, edit)?;
            }
            self.remove(set, &key_at(key, &sources_deleted, &deleted)?, edit)?;
            let repeated = |(batch, row): (usize, usize)| rules.repeated(key, &rows[batch], row);
            if !is_same {
                self.add(set, &coming, Some(edit), |row| repeated(new[row]))?;
            }
            self.add(set, &key_at(key, &all, inserted)?, Some(edit), |row| repeated(inserted[row]))?;
        }
        Ok(())
    }

    /// Charges the index as it is now.
    ///
    /// # Errors
    /// No room for it; what was charged before still is.
    pub(super) fn charge(&mut self, table: &str) -> Result<()> {
        let slots = self.sets.iter().map(HashSet::capacity).sum::<usize>();
        let bytes = slots * size_of::<Encoded>() + self.key_bytes;
        self.ledger.resize(table, self.charged, bytes)?;
        self.charged = bytes;
        Ok(())
    }

    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| *set = HashSet::new());
        self.ledger.release(self.charged);
        (self.key_bytes, self.charged) = (0, 0);
    }

    /// The index as it was before an edit.
    pub(super) fn undo(&mut self, edit: Edit) {
        for (set, key) in edit.added {
            self.sets[set].remove(&key);
            self.key_bytes -= key.len() + KEY_BYTES;
        }
        for (set, key) in edit.removed {
            self.key_bytes += key.len() + KEY_BYTES;
            self.sets[set].insert(key);
        }
        for set in self.sets.iter_mut().filter(|set| set.capacity() / 4 > set.len()) {
            set.shrink_to_fit();
        }
    }

    fn add_rows(&mut self, rules: &Rules, batch: &RecordBatch, mut edit: Option<&mut Edit>) -> Result<()> {
        for (set, key) in rules.keys().iter().enumerate() {
            let columns: Vec<ArrayRef> = key.columns.iter().map(|column| batch.column(*column).clone()).collect();
            self.add(set, &columns, edit.as_deref_mut(), |row| rules.repeated(key, batch, row))?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        set: usize,
        columns: &[ArrayRef],
        mut edit: Option<&mut Edit>,
        repeated: impl Fn(usize) -> crate::error::SqlError,
    ) -> Result<()> {
        let (keys, key_bytes) = (&mut self.sets[set], &mut self.key_bytes);
        encoded(columns, |row, key| {
            let key: Encoded = key.into();
            let bytes = key.len() + KEY_BYTES;
            if let Some(edit) = edit.as_deref_mut() {
                edit.added.push((set, key.clone()));
            }
            match keys.insert(key) {
                true => {
                    *key_bytes += bytes;
                    Ok(())
                }
                false => {
                    // The key that is there is another row's.
                    edit.as_deref_mut().and_then(|edit| edit.added.pop());
                    Err(repeated(row))
                }
            }
        })
    }

    fn remove(&mut self, set: usize, columns: &[ArrayRef], edit: &mut Edit) -> Result<()> {
        let (keys, key_bytes) = (&mut self.sets[set], &mut self.key_bytes);
        encoded(columns, |_, key| {
            if let Some(key) = keys.take(key) {
                *key_bytes -= key.len() + KEY_BYTES;
                edit.removed.push((set, key));
            }
            Ok(())
        })
    }
}

impl Drop for KeyIndex {
    fn drop(&mut self) {
        self.ledger.release(self.charged);
    }
}

/// The columns of a key at places of batches.
fn key_at(key: &Key, batches: &[&RecordBatch], places: &[(usize, usize)]) -> Result<Vec<ArrayRef>> {
    let column = |column: &usize| {
        let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(*column).as_ref()).collect();
        interleave(&arrays, places).map_err(failed)
    };
    match places.is_empty() {
        true => Ok(Vec::new()),
        false => key.columns.iter().map(column).collect(),
    }
}

/// Gives the key of each row with its row. Keys with a NULL are left out: they equal no other.
fn encoded(columns: &[ArrayRef], mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
    if columns.first().is_none_or(|column| column.is_empty()) {
        return Ok(());
    }
    let columns: Vec<ArrayRef> = columns.iter().map(as_compared).collect::<Result<_>>()?;
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields).and_then(|converter| converter.convert_columns(&columns)).map_err(failed)?;
    let nulls: Vec<_> = columns.iter().filter_map(|column| column.logical_nulls()).collect();
    (0..rows.num_rows())
        .filter(|row| nulls.iter().all(|nulls| nulls.is_valid(*row)))
        .try_for_each(|row| each(row, rows.row(row).data()))
}

/// A column with one form of values that are equal: one zero, one NaN, and intervals as their lengths. Values within
/// lists and rows are told apart by their bytes, as `=` does.
fn as_compared(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(column.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(column.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        DataType::Interval(_) => Arc::new(lengths(column)?),
        DataType::Dictionary(_, values) if values.is_floating() || matches!(**values, DataType::Interval(_)) => {
            as_compared(&cast(column, values).map_err(failed)?)?
        }
        _ => column.clone(),
    })
}
