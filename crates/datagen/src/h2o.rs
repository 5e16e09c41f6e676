//! The tables of H2O's db-benchmark (h2oai/db-benchmark, `_data/groupby-datagen.R` and `join-datagen.R`) with 100
//! groups (K), no nulls and rows in no order. Its generator is R's; the same shapes are drawn here from streams of our
//! own.
//!
//! `g1`, of task groupby: `id1`, `id2` (`id001` to `id100`) and `id4`, `id5` (1 to 100) have K values, `id3`
//! (`id0000000001` …) and `id6` rows / K; `v1` is in 1 to 5, `v2` in 1 to 15, `v3` in 0 to 100 with six digits.
//!
//! `j1`, of task join, has as many rows; `j1_small`, `j1_medium` and `j1_big` have a 10⁶th, a 1000th and all of that.
//! Keys `id1`, `id2` and `id3` are of these three counts: nine tenths of the keys of a table on the right are in `j1`,
//! and the reverse. Each key of a table is in it at least once. `id4` to `id6` are the keys as text.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::draw::{Draw, Shuffle};
use crate::{Batches, DatagenError, check_rows, in_batches, part_range};

/// Groups of the columns with few: K.
const GROUPS: u64 = 100;
/// Fewest keys, so that a tenth of them is one.
const KEYS_MIN: u64 = 10;
/// Rows of `j1` a row of each table on the right.
const RIGHT: [u64; 3] = [1_000_000, 1_000, 1];

/// A table of db-benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum H2oTable {
    /// The table of task groupby.
    Groupby,
    /// The left table of task join.
    Left,
    /// A table on its right, by its place in [`RIGHT`].
    Right(usize),
}

impl H2oTable {
    /// All tables.
    pub(crate) const ALL: [Self; 5] = [Self::Groupby, Self::Left, Self::Right(2), Self::Right(1), Self::Right(0)];

    /// The table's name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Groupby => "g1",
            Self::Left => "j1",
            Self::Right(place) => ["j1_small", "j1_medium", "j1_big"][place],
        }
    }

    /// The rows of the table where `g1` and `j1` have `rows`.
    pub(crate) fn rows(self, rows: u64) -> u64 {
        match self {
            Self::Groupby | Self::Left => rows,
            Self::Right(place) => keys(rows, place),
        }
    }

    /// Columns whose values hardly repeat within a row group.
    pub(crate) fn distinct_columns(self) -> &'static [&'static str] {
        match self {
            Self::Groupby => &["v3"],
            Self::Left => &["id3", "id6", "v1"],
            Self::Right(_) => &["id3", "id6", "v2"],
        }
    }

    /// How many of the three keys the table has.
    fn keys(self) -> usize {
        if let Self::Right(place) = self { place + 1 } else { RIGHT.len() }
    }

    /// The schema: keys and small values Int32, text Utf8, `v3` of `g1` and `v1`, `v2` of the others Float64, no nulls.
    pub(crate) fn schema(self) -> SchemaRef {
        let (int, text, double) = (DataType::Int32, DataType::Utf8, DataType::Float64);
        let columns: Vec<(String, DataType)> = match self {
            Self::Groupby => {
                let ids = [&text, &text, &text, &int, &int, &int];
                let ids = ids.iter().enumerate().map(|(at, kind)| (format!("id{}", at + 1), (*kind).clone()));
                ids.chain([("v1".into(), int.clone()), ("v2".into(), int.clone()), ("v3".into(), double)]).collect()
            }
            _ => {
                let numbers = (1..=self.keys()).map(|key| (format!("id{key}"), int.clone()));
                let texts = (1..=self.keys()).map(|key| (format!("id{}", key + 3), text.clone()));
                let value = if self == Self::Left { "v1" } else { "v2" };
                numbers.chain(texts).chain([(value.to_string(), double)]).collect()
            }
        };
        Arc::new(Schema::new(columns.into_iter().map(|(name, kind)| Field::new(name, kind, false)).collect::<Vec<_>>()))
    }

    /// The batches of part `part` of `parts`, counted from 0, where `g1` and `j1` have `rows` rows.
    pub(crate) fn batches(
        self,
        rows: u64,
        part: usize,
        parts: usize,
        batch_rows: usize,
    ) -> Result<Batches, DatagenError> {
        check_rows(rows)?;
        let schema = self.schema();
        Ok(in_batches(part_range(self.rows(rows), part, parts)?, batch_rows, move |range| {
            let columns = if self == Self::Groupby { groupby(rows, range) } else { join(self, rows, &range) };
            // Columns and schema are written side by side in this module.
            RecordBatch::try_new(schema.clone(), columns).expect("columns as the schema says")
        }))
    }
}

/// The keys of the table on the right at that place.
fn keys(rows: u64, place: usize) -> u64 {
    (rows / RIGHT[place]).max(KEYS_MIN)
}

/// Text of each row of a range.
fn texts(range: &Range<u64>, mut text: impl FnMut(u64, &mut StringBuilder)) -> ArrayRef {
    let mut builder = StringBuilder::new();
    range.clone().for_each(|row| text(row, &mut builder));
    Arc::new(builder.finish())
}

/// A number from 0 to 100 with six digits for each row.
fn amounts(range: &Range<u64>, stream: u64) -> ArrayRef {
    let draw = Draw::new(stream);
    let amounts = range.clone().map(|row| draw.below(row, 100_000_001) as f64 / 1e6);
    Arc::new(Float64Array::from_iter_values(amounts))
}

/// Rows of `g1`.
fn groupby(rows: u64, range: Range<u64>) -> Vec<ArrayRef> {
    let small = (rows / GROUPS).max(1);
    let drawn = |stream: u64, count: u64| {
        let draw = Draw::new(stream);
        move |row: u64| 1 + draw.below(row, count)
    };
    let label = |stream: u64, count: u64, width: usize| {
        let number = drawn(stream, count);
        // Writing to a builder of strings does not fail.
        texts(&range, |row, to| {
            _ = write!(to, "id{:0width$}", number(row));
            to.append_value("");
        })
    };
    let number = |stream: u64, count: u64| -> ArrayRef {
        let number = drawn(stream, count);
        Arc::new(Int32Array::from_iter_values(range.clone().map(|row| number(row) as i32)))
    };
    vec![
        label(1, GROUPS, 3),
        label(2, GROUPS, 3),
        label(3, small, 10),
        number(4, GROUPS),
        number(5, GROUPS),
        number(6, small),
        number(7, 5),
        number(8, 15),
        amounts(&range, 9),
    ]
}

/// Rows of a table of task join. A key is a number of a shuffle of 1.1 times their count: the first 0.9 are on both
/// sides, the next 0.1 on the left, the last 0.1 on the right. Rows are shuffled too, and the first shuffled ones
/// have the keys one after the other, so that none is missing; the rest draw theirs.
fn join(table: H2oTable, rows: u64, range: &Range<u64>) -> Vec<ArrayRef> {
    let side = match table {
        H2oTable::Right(place) => 1 + place as u64,
        _ => 0,
    };
    let key = |place: usize| {
        let count = keys(rows, place);
        let stream = 100 + 10 * place as u64;
        let all = Shuffle::new(count + count / 10, stream);
        let order = Shuffle::new(table.rows(rows), stream + 1 + side);
        let drawn = Draw::new(stream + 5 + side);
        let of_row = move |row: u64| {
            let at = order.at(row);
            let at = if at < count { at } else { drawn.below(row, count) };
            // The last tenth of the right's keys lies behind the left's.
            let is_right_only = side > 0 && at >= count - count / 10;
            1 + all.at(if is_right_only { at + count / 10 } else { at })
        };
        range.clone().map(of_row).collect::<Vec<u64>>()
    };
    let keys: Vec<Vec<u64>> = (0..table.keys()).map(key).collect();
    let numbers = keys
        .iter()
        .map(|key| -> ArrayRef { Arc::new(Int32Array::from_iter_values(key.iter().map(|key| *key as i32))) });
    let labels = keys.iter().map(|key| {
        texts(range, |row, to| {
            _ = write!(to, "id{}", key[(row - range.start) as usize]);
            to.append_value("");
        })
    });
    numbers.chain(labels).chain([amounts(range, 200 + side)]).collect()
}
