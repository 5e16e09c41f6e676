//! The order of elements that values of the facts name: by a column of the definition (`sort`), else by the order in
//! which the source has texts, if it has one, else ascending.
//!
//! Texts that are all numbers or all dates ascend by value, as numbers and dates do. The source has an order of other
//! texts if its rows are sorted by it, or run through it again and again, as rows of months by region do. Without it
//! names of months and weekdays stand as in the calendar.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};
use hashbrown::{HashMap, HashSet};

use super::BuildError;
use super::dates::Civil;
use super::keys::{name_text, plain};
use super::numbers::Reader;
use super::source::Source;
use super::typed;
use crate::define::NumberStyle;

/// Most distinct texts of a column whose order is looked for.
const TEXTS_MAX: usize = 1000;
/// Most rows of the source in which all of these texts have to occur, and most rows of distinct values.
const ROWS_MAX: usize = 1 << 20;
/// Least average share of the distinct texts in an ascending run; runs of random rows have two texts.
const RUN_MIN: f64 = 0.75;
/// Fewest texts whose order follows from runs: random rows of two texts run through both.
const RUN_TEXTS_MIN: usize = 3;
/// Names that have an order.
const CALENDARS: [&[&str]; 4] = [
    &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    &[
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
    &["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
];

/// Ranks of texts.
type Ranks = HashMap<String, u32>;

/// Rows of distinct values of the facts in the order of their elements; the source's order counts for the first ones,
/// which are `columns` there. Elements of cubes whose types were guessed keep the order of their texts.
pub(super) fn ordered(distinct: &RecordBatch, columns: &[&str], facts: &Source<'_>) -> Result<UInt32Array, BuildError> {
    if facts.is_guessed() {
        return ascending(distinct.columns(), distinct.num_rows());
    }
    let values: Vec<Option<ArrayRef>> =
        distinct.columns().iter().map(|column| values(column, NumberStyle::PLAIN)).collect();
    let of_column = |(column, values): (&ArrayRef, &Option<ArrayRef>)| match values {
        Some(_) => None,
        None => texts(column),
    };
    let texts: Vec<Option<HashSet<String>>> = distinct.columns().iter().zip(&values).map(of_column).collect();
    let is_few = |texts: &HashSet<String>| (2..=TEXTS_MAX).contains(&texts.len());
    let few: Vec<usize> = (0..columns.len()).filter(|at| texts[*at].as_ref().is_some_and(is_few)).collect();
    let mut of_source = match facts.has_order() && !few.is_empty() {
        true => source_ranks(&few.iter().map(|at| columns[*at]).collect::<Vec<_>>(), facts)?,
        false => Vec::new(),
    };
    let mut keys: Vec<ArrayRef> = Vec::with_capacity(distinct.num_columns());
    for (at, (column, values)) in distinct.columns().iter().zip(values).enumerate() {
        let ranks = texts[at].as_ref().and_then(|texts| {
            let of_source = few.iter().position(|few| *few == at).and_then(|at| of_source.get_mut(at)?.take());
            of_source.filter(|ranks| ranks.len() == texts.len()).or_else(|| calendar_ranks(texts))
        });
        keys.extend(values.or_else(|| ranks.map(|ranks| ranked(column, &ranks))));
        // Different texts of one value or rank stand by their characters.
        keys.push(column.clone());
    }
    ascending(&keys, distinct.num_rows())
}

/// Rows in ascending order of some columns, the first column first, NULL last.
fn ascending(columns: &[ArrayRef], rows: usize) -> Result<UInt32Array, BuildError> {
    let options = Some(SortOptions { descending: false, nulls_first: false });
    let has_values = |column: &&ArrayRef| !column.data_type().is_null();
    let columns = columns.iter().filter(has_values);
    let columns: Vec<SortColumn> = columns.map(|values| SortColumn { values: values.clone(), options }).collect();
    if columns.is_empty() {
        return Ok((0..rows as u32).collect());
    }
    lexsort_to_indices(&columns, None).map_err(|source| BuildError::Arrow { what: "sorting values", source })
}

/// Rows by a column whose numbers are written in a style, ascending, NULL last; rows of one value stay in their order.
pub(super) fn sorted_rows(batch: &RecordBatch, by: Option<(usize, NumberStyle)>) -> Result<Vec<usize>, BuildError> {
    let Some((by, style)) = by else { return Ok((0..batch.num_rows()).collect()) };
    let places: ArrayRef = Arc::new((0..batch.num_rows() as u32).collect::<UInt32Array>());
    let column = batch.column(by);
    let of_texts = || Some(ranked(column, &calendar_ranks(&texts(column)?)?));
    let key = values(column, style).or_else(of_texts).unwrap_or_else(|| column.clone());
    Ok(ascending(&[key, places], batch.num_rows())?.values().iter().map(|row| *row as usize).collect())
}

/// The values of texts that are all numbers, codes with zeros before them included, or all dates; nothing for other
/// columns.
fn values(column: &ArrayRef, style: NumberStyle) -> Option<ArrayRef> {
    let texts = typed::texts(column).filter(|texts| texts.null_count() < texts.len())?;
    let texts = texts.as_string::<i32>();
    let mut reader = Reader::new(style);
    let numbers = texts.iter().map(|text| text.map(|text| reader.double(text).ok_or(())).transpose());
    if let Ok(numbers) = numbers.collect::<Result<Float64Array, ()>>() {
        return Some(Arc::new(numbers));
    }
    let day = |text: &str| {
        let (year, month, day) = Civil::parse(text)?;
        // A month stands before its days.
        Some(Civil { year, month, day: day.unwrap_or(0) }.days())
    };
    let days = texts.iter().map(|text| text.map(|text| day(text).ok_or(())).transpose());
    Some(Arc::new(days.collect::<Result<Int64Array, ()>>().ok()?))
}

/// The different texts of a column of texts; nothing for another column, and for one that is too long to have an order.
fn texts(column: &ArrayRef) -> Option<HashSet<String>> {
    let is_text = plain(column.data_type()).is_string();
    (is_text && column.len() <= ROWS_MAX).then(|| (0..column.len()).filter_map(|row| name_text(column, row)).collect())
}

/// The rank of each row's text; NULL without a text.
fn ranked(column: &ArrayRef, ranks: &Ranks) -> ArrayRef {
    let rank = |row| ranks.get(&name_text(column, row)?).copied();
    Arc::new((0..column.len()).map(rank).collect::<UInt32Array>())
}

/// The places of names in a calendar that has all of them.
fn calendar_ranks(texts: &HashSet<String>) -> Option<Ranks> {
    CALENDARS.iter().find_map(|calendar| {
        let rank = |text: &String| {
            let place = calendar.iter().position(|name| name.eq_ignore_ascii_case(text.trim()))?;
            Some((text.clone(), place as u32))
        };
        texts.iter().map(rank).collect::<Option<Ranks>>()
    })
}

/// A column of texts while rows come in the order of the source.
#[derive(Default)]
struct Runs {
    /// Texts in the order in which they came first.
    ranks: Ranks,
    last: Option<u32>,
    /// Texts of the run that has not ended: each comes behind the one before it.
    texts: usize,
    /// Runs that have ended, and their texts.
    ended: (usize, usize),
}

impl Runs {
    fn add(&mut self, text: String) {
        let next = self.ranks.len() as u32;
        let rank = *self.ranks.entry(text).or_insert(next);
        match self.last {
            Some(last) if rank < last => {
                self.ended = (self.ended.0 + 1, self.ended.1 + self.texts);
                self.texts = 1;
            }
            Some(last) if rank == last => {}
            _ => self.texts += 1,
        }
        self.last = Some(rank);
    }

    /// The order of the texts, if rows are sorted by it or run through it again and again.
    fn order(self) -> Option<Ranks> {
        let (runs, texts) = self.ended;
        let runs_through =
            || self.ranks.len() >= RUN_TEXTS_MIN && texts as f64 >= RUN_MIN * (runs * self.ranks.len()) as f64;
        (runs == 0 || runs_through()).then_some(self.ranks)
    }
}

/// The order that the source has of the texts of each of some columns.
fn source_ranks(columns: &[&str], facts: &Source<'_>) -> Result<Vec<Option<Ranks>>, BuildError> {
    let mut runs: Vec<Runs> = columns.iter().map(|_| Runs::default()).collect();
    let mut rows = 0;
    for batch in facts.select(columns)? {
        let batch = batch?;
        for (runs, column) in runs.iter_mut().zip(batch.columns()) {
            (0..batch.num_rows()).filter_map(|row| name_text(column, row)).for_each(|text| runs.add(text));
        }
        rows += batch.num_rows();
        if rows >= ROWS_MAX {
            break;
        }
    }
    Ok(runs.into_iter().map(Runs::order).collect())
}
