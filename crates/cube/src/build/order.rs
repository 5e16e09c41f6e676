//! The order of elements that values of the facts name: by a column of the definition (`sort`), else by the order in
//! which the source has texts, if it has one, else ascending.
//!
//! The source has an order of texts if its rows are sorted by it, or run through it again and again, as rows of months
//! by region do. Names of months and weekdays stand as in the calendar. Texts that are whole numbers or dates ascend by
//! value, as numbers and dates do.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};
use arrow::datatypes::DataType;
use hashbrown::{HashMap, HashSet};

use super::BuildError;
use super::dates::Civil;
use super::keys::name_text;
use super::source::Source;

/// Most different texts that stand in an order of their own.
const TEXTS_MAX: usize = 1000;
/// Rows of the source within which all of them come, and most rows of distinct values.
const ROWS_MAX: usize = 1 << 20;
/// Share of the texts that a run through them has on average; of random rows it has two texts.
const RUN_MIN: f64 = 0.75;
/// Fewest texts whose order is told from their runs: random rows of two run through both.
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

/// Rows of distinct values in the order of their elements, for columns of the facts of those names; without facts the
/// order of the source does not count.
pub(super) fn ordered(
    distinct: &RecordBatch,
    columns: &[&str],
    facts: Option<&Source<'_>>,
) -> Result<UInt32Array, BuildError> {
    let texts: Vec<Option<HashSet<String>>> = distinct.columns().iter().map(texts).collect();
    let is_few = |texts: &HashSet<String>| (2..=TEXTS_MAX).contains(&texts.len()) && !has_values(texts);
    let few: Vec<usize> = (0..columns.len()).filter(|at| texts[*at].as_ref().is_some_and(is_few)).collect();
    let mut of_source = match facts.filter(|facts| facts.has_order() && !few.is_empty()) {
        Some(facts) => source_ranks(&few.iter().map(|at| columns[*at]).collect::<Vec<_>>(), facts)?,
        None => Vec::new(),
    };
    let mut keys: Vec<ArrayRef> = Vec::with_capacity(distinct.num_columns());
    for (at, column) in distinct.columns().iter().enumerate() {
        let Some(texts) = &texts[at] else {
            keys.push(column.clone());
            continue;
        };
        let of_source = few.iter().position(|few| *few == at).and_then(|at| of_source.get_mut(at)?.take());
        let of_source = of_source.filter(|ranks| ranks.len() == texts.len());
        keys.push(of_source.map_or_else(|| by_value(column, texts), |ranks| ranked(column, &ranks)));
    }
    ascending(&keys, distinct.num_rows())
}

/// Rows in ascending order of some columns, the first column first, NULL last.
pub(super) fn ascending(columns: &[ArrayRef], rows: usize) -> Result<UInt32Array, BuildError> {
    let options = Some(SortOptions { descending: false, nulls_first: false });
    let has_values = |column: &&ArrayRef| !column.data_type().is_null();
    let columns = columns.iter().filter(has_values);
    let columns: Vec<SortColumn> = columns.map(|values| SortColumn { values: values.clone(), options }).collect();
    if columns.is_empty() {
        return Ok((0..rows as u32).collect());
    }
    lexsort_to_indices(&columns, None).map_err(|source| BuildError::Arrow { what: "sorting values", source })
}

/// Rows of a table by a column, ascending, NULL last; rows of one value stay in the table's order.
pub(super) fn sorted_rows(batch: &RecordBatch, by: Option<usize>) -> Result<Vec<usize>, BuildError> {
    let Some(by) = by else { return Ok((0..batch.num_rows()).collect()) };
    let places: ArrayRef = Arc::new((0..batch.num_rows() as u32).collect::<UInt32Array>());
    let column = batch.column(by);
    let key = texts(column).map_or_else(|| column.clone(), |texts| by_value(column, &texts));
    Ok(ascending(&[key, places], batch.num_rows())?.values().iter().map(|row| *row as usize).collect())
}

/// The different texts of a column of texts; nothing of another column, and of one that is too long to have an order.
fn texts(column: &ArrayRef) -> Option<HashSet<String>> {
    let data_type = match column.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let is_text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    (is_text && column.len() <= ROWS_MAX).then(|| (0..column.len()).filter_map(|row| name_text(column, row)).collect())
}

/// True if all texts are whole numbers, or all are dates.
fn has_values(texts: &HashSet<String>) -> bool {
    texts.iter().all(|text| text.parse::<i128>().is_ok()) || texts.iter().all(|text| Civil::parse(text).is_some())
}

/// What texts ascend by: their place in a calendar, their number, else their characters, as dates do.
fn by_value(column: &ArrayRef, texts: &HashSet<String>) -> ArrayRef {
    let ranks = calendar_ranks(texts).or_else(|| number_ranks(texts));
    ranks.map_or_else(|| column.clone(), |ranks| ranked(column, &ranks))
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

/// The order of texts that are whole numbers.
fn number_ranks(texts: &HashSet<String>) -> Option<Ranks> {
    let number = |text: &String| Some((text.parse::<i128>().ok()?, text.clone()));
    let mut numbers = texts.iter().map(number).collect::<Option<Vec<_>>>()?;
    numbers.sort_unstable();
    Some(numbers.into_iter().zip(0..).map(|((_, text), rank)| (text, rank)).collect())
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
