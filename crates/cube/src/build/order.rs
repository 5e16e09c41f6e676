//! The order of elements that values of the facts name: by a column of the definition (`sort`), else by value, by the
//! calendar, by the order that the rows of the source prove, or ascending.
//!
//! Texts that are all numbers or all dates ascend by value, as numbers and dates do. Names that are all of one kind of
//! [`calendar`] stand as there. Of other texts the rows of the source prove an order if all of their runs agree in it
//! and leave no two texts open. A run ends where a column that changes less often changes, as a region behind its
//! accounts; a column that the text itself tells, as the group of an account, ends none.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{SortColumn, SortOptions, concat_batches, lexsort_to_indices};
use hashbrown::{HashMap, HashSet};

use super::calendar::Ranks;
use super::dates::Civil;
use super::keys::{name_text, plain};
use super::numbers::Reader;
use super::source::Source;
use super::{BuildError, calendar, typed};
use crate::define::NumberStyle;
use crate::model::{Dimension, ElementKind, folded};

/// Most distinct texts of a column whose order is looked for.
const TEXTS_MAX: usize = 1000;
/// Most rows of the source in which all of these texts have to occur, and most rows of distinct values.
const ROWS_MAX: usize = 1 << 20;
/// The code of a row without a text.
const NO_TEXT: u32 = u32::MAX;

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
    let mut ranks: Vec<Option<Ranks>> = texts.iter().map(|texts| calendar::ranks(texts.as_ref()?)).collect();
    let is_few = |texts: &HashSet<String>| (2..=TEXTS_MAX).contains(&texts.len());
    let is_open = |at: &usize| ranks[*at].is_none() && texts[*at].as_ref().is_some_and(is_few);
    let open: Vec<usize> = (0..columns.len()).filter(is_open).collect();
    if !open.is_empty() && facts.has_order()? {
        let of_source = source_ranks(&open.iter().map(|at| columns[*at]).collect::<Vec<_>>(), facts)?;
        let is_whole = |at: usize, ranks: &Ranks| texts[at].as_ref().is_some_and(|texts| texts.len() == ranks.len());
        for (at, of_source) in open.into_iter().zip(of_source) {
            ranks[at] = of_source.filter(|ranks| is_whole(at, ranks));
        }
    }
    let mut keys: Vec<ArrayRef> = Vec::with_capacity(distinct.num_columns());
    for ((column, values), ranks) in distinct.columns().iter().zip(values).zip(ranks) {
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
    let of_texts = || Some(ranked(column, &calendar::ranks(&texts(column)?)?));
    let key = values(column, style).or_else(of_texts).unwrap_or_else(|| column.clone());
    Ok(ascending(&[key, places], batch.num_rows())?.values().iter().map(|row| *row as usize).collect())
}

/// The first base element that stands before one behind which it stood in a dimension, as `Jan before Feb`.
pub(super) fn reordered(old: &Dimension, new: &Dimension) -> Option<String> {
    // An element is the same one by the source's key, whatever names it was given.
    fn bases(dimension: &Dimension) -> impl Iterator<Item = (&str, &str)> {
        let elements = dimension.elements().iter().map(|id| dimension.element(*id));
        let bases = elements.filter(|element| element.kind() == ElementKind::Base);
        bases.map(|element| (element.key().unwrap_or(element.name()), element.name()))
    }
    let names: HashMap<&str, &str> = bases(new).collect();
    let keys: HashSet<&str> = bases(old).map(|(key, _)| key).collect();
    let before = bases(old).map(|(key, _)| key).filter(|key| names.contains_key(key));
    let now = bases(new).filter(|(key, _)| keys.contains(key));
    let (before, (_, now)) = before.zip(now).find(|(before, (now, _))| before != now)?;
    Some(format!("{now} before {}", names[before]))
}

/// The values of texts that are all numbers, codes with zeros before them included, or all dates; nothing for other
/// columns.
fn values(column: &ArrayRef, style: NumberStyle) -> Option<ArrayRef> {
    let texts = typed::texts(column).filter(|texts| texts.null_count() < texts.len())?;
    let texts = texts.as_string::<i32>();
    let mut reader = Reader::new(style);
    let mut finite = |text: &str| reader.double(text).filter(|number| number.is_finite());
    let numbers = texts.iter().map(|text| text.map(|text| finite(text).ok_or(())).transpose());
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

/// A column of the source, row by row.
struct Coded {
    /// True where the row behind has another value.
    changes: BooleanArray,
    /// Numbers of texts, in the order in which they come first; texts that differ in case alone have one.
    codes: Vec<u32>,
    /// The spellings of each text, in the order in which they come first.
    texts: Vec<Vec<String>>,
}

impl Coded {
    /// Codes a column; one that changes more often than `most` has no codes.
    fn of(column: &ArrayRef, changes: BooleanArray, most: usize) -> Coded {
        let (mut codes, mut ranks, mut texts) = (Vec::new(), Ranks::new(), Vec::<Vec<String>>::new());
        if changes.true_count() <= most {
            for row in 0..column.len() {
                if row > 0 && !changes.value(row - 1) {
                    codes.push(codes[row - 1]);
                    continue;
                }
                let Some(text) = name_text(column, row) else {
                    codes.push(NO_TEXT);
                    continue;
                };
                let next = texts.len() as u32;
                let code = *ranks.entry(folded(&text)).or_insert(next);
                match texts.get_mut(code as usize) {
                    None => texts.push(vec![text]),
                    Some(spellings) if !spellings.contains(&text) => spellings.push(text),
                    Some(_) => {}
                }
                codes.push(code);
            }
        }
        Coded { changes, codes, texts }
    }

    /// True if rows of one text have one text of another column.
    fn tells(&self, other: &Coded) -> bool {
        let mut told = vec![None; self.texts.len()];
        self.codes
            .iter()
            .zip(&other.codes)
            .all(|(code, other)| told.get_mut(*code as usize).is_none_or(|told| *told.get_or_insert(*other) == *other))
    }

    /// The order of the texts, if all runs between changes of the columns around it agree in one.
    fn proved(&self, columns: &[Coded]) -> Option<Ranks> {
        let is_around = |other: &&Coded| other.changes.true_count() < self.changes.true_count() && !self.tells(other);
        let around: Vec<&Coded> = columns.iter().filter(is_around).collect();
        let mut followers: Vec<HashSet<u32>> = vec![HashSet::new(); self.texts.len()];
        let (mut run, mut last) = (0, None);
        let mut run_of: Vec<Option<usize>> = vec![None; self.texts.len()];
        for (row, code) in self.codes.iter().enumerate() {
            if row > 0 && around.iter().any(|other| other.changes.value(row - 1)) {
                (run, last) = (run + 1, None);
            }
            if *code == NO_TEXT || last == Some(*code) {
                continue;
            }
            let comes_again = run_of[*code as usize].replace(run) == Some(run);
            if let Some(before) = last.replace(*code) {
                followers[before as usize].insert(*code);
                if comes_again || followers[*code as usize].contains(&before) {
                    return None;
                }
            }
        }
        self.chain(&followers)
    }

    /// The one order in which each text stands before its followers.
    fn chain(&self, followers: &[HashSet<u32>]) -> Option<Ranks> {
        let mut before = vec![0; followers.len()];
        followers.iter().flatten().for_each(|code| before[*code as usize] += 1);
        let mut free: Vec<u32> = (0..followers.len() as u32).filter(|code| before[*code as usize] == 0).collect();
        let (mut ranks, mut chained) = (Ranks::with_capacity(followers.len()), 0);
        while let Some(code) = free.pop() {
            if !free.is_empty() {
                return None;
            }
            for spelling in &self.texts[code as usize] {
                ranks.insert(spelling.clone(), ranks.len() as u32);
            }
            chained += 1;
            for next in &followers[code as usize] {
                before[*next as usize] -= 1;
                if before[*next as usize] == 0 {
                    free.push(*next);
                }
            }
        }
        (chained == followers.len()).then_some(ranks)
    }
}

/// The order that the rows of the source prove of the texts of each of some columns.
fn source_ranks(columns: &[&str], facts: &Source<'_>) -> Result<Vec<Option<Ranks>>, BuildError> {
    let mut read = columns.to_vec();
    read.extend(facts.keys().filter(|key| !columns.contains(key)));
    let (mut batches, mut rows) = (Vec::new(), 0);
    for batch in facts.in_order(&read)? {
        let batch = batch?;
        rows += batch.num_rows();
        batches.push(batch);
        if rows >= ROWS_MAX {
            break;
        }
    }
    let Some(first) = batches.first() else { return Ok(vec![None; columns.len()]) };
    let failed = |source| BuildError::Arrow { what: "comparing rows", source };
    let batch = concat_batches(&first.schema(), &batches).map_err(failed)?;
    let changes = batch.columns().iter().map(changes).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let most = changes[..columns.len()].iter().map(BooleanArray::true_count).max().unwrap_or(0);
    let coded: Vec<Coded> =
        batch.columns().iter().zip(changes).map(|(column, changes)| Coded::of(column, changes, most)).collect();
    Ok(coded[..columns.len()].iter().map(|column| column.proved(&coded)).collect())
}

/// Whether the row behind has another value, of all rows but the last.
fn changes(column: &ArrayRef) -> Result<BooleanArray, arrow::error::ArrowError> {
    let pairs = column.len().saturating_sub(1);
    match column.data_type().is_null() {
        true => Ok(BooleanArray::from(vec![false; pairs])),
        false => distinct(&column.slice(0, pairs), &column.slice(column.len() - pairs, pairs)),
    }
}
