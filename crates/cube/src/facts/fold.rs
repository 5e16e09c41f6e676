//! Folding: rows of one key become one value of each measure.

use rayon::prelude::*;

use super::carry::{split_decimal, split_double, whole_decimal, whole_double};
use super::{FactColumn, FactMeasure, InputColumn, InputValues, Large, Precise, Rule, Values};

/// Unsorted rows of one measure.
#[derive(Debug)]
pub(super) struct RowColumn {
    rule: Rule,
    values: Values,
    /// Absent while every row is filled.
    filled: Option<Vec<bool>>,
    /// Source rows with a value, of an AVG; absent while each row is one.
    counts: Option<Vec<u64>>,
    /// Carries of the values, of an AVG; absent while each is 0.
    carries: Option<Vec<i64>>,
    /// What the rows of stored cells cancelled; absent while each is 0.
    cancelled: Option<Vec<f64>>,
}

/// One measure of all cells.
pub(super) struct Folded {
    pub(super) values: Values,
    /// Absent if every row is filled.
    pub(super) filled: Option<Vec<bool>>,
    pub(super) counts: Option<Vec<u64>>,
    /// Absent if each is 0.
    pub(super) carries: Option<Vec<i64>>,
    /// What the rows of each cell cancelled ([`super::Segment::cancelled`]); absent if it is 0 everywhere.
    pub(super) cancelled: Option<Vec<f64>>,
}

/// Rows in the order of their keys, and where each key begins.
pub(super) struct Groups {
    order: Vec<usize>,
    /// One entry a key, and the number of rows at the end.
    starts: Vec<usize>,
}

/// A cell whose rows add up to too much: its place, the sum as text, the type that overflows.
type Overflow = (usize, String, &'static str);

impl RowColumn {
    pub(super) fn new(measure: &FactMeasure) -> RowColumn {
        let values = if measure.is_double() { Values::Doubles(Vec::new()) } else { Values::Decimals(Vec::new()) };
        RowColumn { rule: measure.rule, values, filled: None, counts: None, carries: None, cancelled: None }
    }

    /// Adds the rows of an append; a COUNT takes 1 a row.
    pub(super) fn extend(&mut self, before: usize, rows: usize, input: &InputColumn<'_>) {
        match (&mut self.values, input.values) {
            (Values::Decimals(held), _) if self.rule == Rule::Count => held.resize(before + rows, 1),
            (Values::Decimals(held), InputValues::Decimals(more)) => held.extend_from_slice(more),
            (Values::Doubles(held), InputValues::Doubles(more)) => held.extend_from_slice(more),
            _ => unreachable!("types were compared before"),
        }
        extend_optional(&mut self.filled, before, rows, true, input.filled);
        extend_optional(&mut self.counts, before, rows, 1, None);
        extend_optional(&mut self.carries, before, rows, 0, None);
        extend_optional(&mut self.cancelled, before, rows, 0.0, None);
    }

    /// Adds the cells of stored facts with their carries and what their rows cancelled.
    pub(super) fn extend_stored(
        &mut self,
        before: usize,
        stored: &FactColumn,
        (carries, cancelled): (Option<&[i64]>, Option<&[f64]>),
    ) {
        match (&mut self.values, &stored.values) {
            (Values::Decimals(held), Values::Decimals(more)) => held.extend_from_slice(more),
            (Values::Doubles(held), Values::Doubles(more)) => held.extend_from_slice(more),
            _ => unreachable!("measures were compared before"),
        }
        let rows = stored.values.len();
        let filled: Option<Vec<bool>> =
            stored.filled.as_ref().map(|filled| (0..rows).map(|cell| filled.get(cell)).collect());
        extend_optional(&mut self.filled, before, rows, true, filled.as_deref());
        extend_optional(&mut self.counts, before, rows, 1, stored.counts.as_deref());
        extend_optional(&mut self.carries, before, rows, 0, carries);
        extend_optional(&mut self.cancelled, before, rows, 0.0, cancelled);
    }

    fn carry(&self, row: usize) -> i64 {
        self.carries.as_ref().map_or(0, |carries| carries[row])
    }

    fn cancelled(&self, row: usize) -> f64 {
        self.cancelled.as_ref().map_or(0.0, |cancelled| cancelled[row])
    }

    fn is_filled(&self, row: usize) -> bool {
        self.filled.as_ref().is_none_or(|filled| filled[row])
    }
}

impl Groups {
    /// Sorts keys and gives them without duplicates, with the rows of each.
    pub(super) fn of<K: Ord + Copy + Send + Sync>(keys: Vec<K>) -> (Vec<K>, Groups) {
        let mut pairs: Vec<(K, usize)> = keys.into_par_iter().enumerate().map(|(row, key)| (key, row)).collect();
        if !pairs.is_sorted() {
            pairs.par_sort_unstable();
        }
        let begins = |&place: &usize| place == 0 || pairs[place - 1].0 != pairs[place].0;
        let mut starts: Vec<usize> = (0..pairs.len()).into_par_iter().filter(begins).collect();
        let keys = starts.par_iter().map(|&start| pairs[start].0).collect();
        starts.push(pairs.len());
        (keys, Groups { order: pairs.into_par_iter().map(|(_, row)| row).collect(), starts })
    }

    /// Folds one measure.
    ///
    /// # Errors
    /// The first cell, by key, whose rows add up beyond the measure's type.
    pub(super) fn fold(&self, rule: Rule, column: &RowColumn) -> Result<Folded, Overflow> {
        let (values, carries) = match (&column.values, rule) {
            (Values::Decimals(values), Rule::Avg) => {
                let sum = |rows: &mut Vec<usize>| {
                    let sum = rows.iter().map(|&row| whole_decimal(values[row], column.carry(row))).sum();
                    Ok(split_decimal(sum))
                };
                let (values, carries) = self.each(column, sum)?.into_iter().unzip();
                (Values::Decimals(values), carries)
            }
            (Values::Doubles(values), Rule::Avg) => {
                let sum = |rows: &mut Vec<usize>| Ok(sum_doubles(values, column, rows));
                let (values, carries) = self.each(column, sum)?.into_iter().unzip();
                (Values::Doubles(values), carries)
            }
            (Values::Decimals(values), _) => {
                (Values::Decimals(self.each(column, |rows| fold_decimals(rule, values, rows))?), Vec::new())
            }
            (Values::Doubles(values), _) => {
                (Values::Doubles(self.each(column, |rows| fold_doubles(rule, values, rows))?), Vec::new())
            }
        };
        let carries = carries.iter().any(|carry| *carry != 0).then_some(carries);
        let cancelled = match &column.values {
            Values::Doubles(rows) if matches!(rule, Rule::Sum | Rule::Avg) => self.cancelled(column, rows, &values),
            _ => None,
        };
        let filled = column.filled.as_ref().map(|_| {
            (0..self.len()).into_par_iter().map(|group| self.rows(group).iter().any(|&row| column.is_filled(row)))
        });
        let filled = filled.map(|filled| filled.collect());
        Ok(Folded {
            values,
            filled,
            carries,
            cancelled,
            counts: (rule == Rule::Avg).then(|| self.value_counts(column)).flatten(),
        })
    }

    /// By how much the magnitudes of a cell's rows exceed that of their sum, where rows of both signs cancel each
    /// other; absent if it is 0 everywhere.
    fn cancelled(&self, column: &RowColumn, rows: &[f64], sums: &Values) -> Option<Vec<f64>> {
        let Values::Doubles(sums) = sums else { return None };
        let has = |sign: fn(&f64) -> bool| rows.par_iter().any(sign);
        if column.cancelled.is_none() && !(has(|value| *value < 0.0) && has(|value| *value > 0.0)) {
            return None;
        }
        let of_group = |group: usize| {
            let filled = || self.rows(group).iter().copied().filter(|row| column.is_filled(*row));
            let is_mixed = filled().any(|row| column.cancelled(row) != 0.0)
                || (filled().any(|row| rows[row] < 0.0) && filled().any(|row| rows[row] > 0.0));
            if !is_mixed {
                return 0.0;
            }
            // Sorted, so that the order of rows does not show in the bits.
            let mut magnitudes: Vec<f64> = filled().map(|row| rows[row].abs() + column.cancelled(row)).collect();
            magnitudes.sort_unstable_by(f64::total_cmp);
            (magnitudes.iter().sum::<f64>() - sums[group].abs()).clamp(0.0, f64::MAX)
        };
        let cancelled: Vec<f64> = (0..self.len()).into_par_iter().map(of_group).collect();
        cancelled.iter().any(|cancelled| *cancelled != 0.0).then_some(cancelled)
    }

    /// Source rows of each key; absent if each has one.
    pub(super) fn row_counts(&self, rows: Option<&[u64]>) -> Option<Vec<u64>> {
        let count = |&row: &usize| rows.map_or(1, |rows| rows[row]);
        let all: Vec<u64> =
            (0..self.len()).into_par_iter().map(|group| self.rows(group).iter().map(count).sum()).collect();
        all.iter().any(|&rows| rows != 1).then_some(all)
    }

    /// Rows with a value of each key; absent if no key has several.
    fn value_counts(&self, column: &RowColumn) -> Option<Vec<u64>> {
        let count = |&row: &usize| match column.is_filled(row) {
            true => column.counts.as_ref().map_or(1, |counts| counts[row]),
            false => 0,
        };
        let all: Vec<u64> =
            (0..self.len()).into_par_iter().map(|group| self.rows(group).iter().map(count).sum()).collect();
        all.iter().any(|&rows| rows > 1).then_some(all)
    }

    /// One value a key from the filled rows; 0 without any.
    fn each<T, F>(&self, column: &RowColumn, fold: F) -> Result<Vec<T>, Overflow>
    where
        T: Default + Copy + Send,
        F: Fn(&mut Vec<usize>) -> Result<T, (String, &'static str)> + Sync,
    {
        let value = |rows: &mut Vec<usize>, group: usize| {
            rows.clear();
            rows.extend(self.rows(group).iter().filter(|&&row| column.is_filled(row)));
            if rows.is_empty() { Ok(T::default()) } else { fold(rows) }
        };
        let groups = (0..self.len()).into_par_iter();
        let values = groups.map_init(Vec::new, |rows, group| value(rows, group).ok()).collect::<Option<Vec<T>>>();
        values.map_or_else(
            // The parallel pass stops anywhere; the first cell is found again in order.
            || {
                let mut rows = Vec::new();
                let failed = |group| value(&mut rows, group).err().map(|(sum, limit)| (group, sum, limit));
                Err((0..self.len()).find_map(failed).expect("a cell that overflows does so again"))
            },
            Ok,
        )
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn rows(&self, group: usize) -> &[usize] {
        &self.order[self.starts[group]..self.starts[group + 1]]
    }
}

/// Extends a column that is absent while every entry is `usual`.
pub(super) fn extend_optional<T: Copy>(
    held: &mut Option<Vec<T>>,
    before: usize,
    rows: usize,
    usual: T,
    more: Option<&[T]>,
) {
    if held.is_none() && more.is_none() {
        return;
    }
    let held = held.get_or_insert_with(|| vec![usual; before]);
    match more {
        Some(more) => held.extend_from_slice(more),
        None => held.resize(before + rows, usual),
    }
}

fn fold_decimals(rule: Rule, values: &[i64], rows: &[usize]) -> Result<i64, (String, &'static str)> {
    let all = rows.iter().map(|&row| values[row]);
    match rule {
        Rule::Min => Ok(all.min().unwrap_or_default()),
        Rule::Max => Ok(all.max().unwrap_or_default()),
        // Rows fewer than 2⁶⁴ of 64 bits cannot exceed 128 bits.
        Rule::Sum | Rule::Avg | Rule::Count => {
            let sum: i128 = all.map(i128::from).sum();
            i64::try_from(sum).map_err(|_| (sum.to_string(), "64 bits"))
        }
    }
}

/// The sum of an AVG's rows, as value and carry; rows are sorted as in [`fold_doubles`].
fn sum_doubles(values: &[f64], column: &RowColumn, rows: &mut [usize]) -> (f64, i64) {
    if rows.iter().all(|row| column.carry(*row) == 0)
        && let Ok(sum) = fold_doubles(Rule::Avg, values, rows)
    {
        return (sum, 0);
    }
    let whole = |row: usize| whole_double(values[row], column.carry(row));
    let sum = rows.iter().fold(Large::default(), |sum, &row| Large(sum.0.plus(whole(row).0)));
    match sum.to_precise().to_f64() {
        value if value.is_finite() => (value, 0),
        _ => split_double(sum),
    }
}

/// The rows are sorted by value, so that their order never shows in the sum; −0.0 becomes 0.0.
fn fold_doubles(rule: Rule, values: &[f64], rows: &mut [usize]) -> Result<f64, (String, &'static str)> {
    if let [row] = *rows {
        return Ok(values[row] + 0.0);
    }
    rows.sort_unstable_by(|&one, &other| values[one].total_cmp(&values[other]));
    match rule {
        Rule::Min => Ok(values[rows[0]] + 0.0),
        Rule::Max => Ok(values[rows[rows.len() - 1]] + 0.0),
        Rule::Sum | Rule::Avg | Rule::Count => {
            let add = |sum: Precise, &row: &usize| sum.plus(Precise::from_f64(values[row]));
            let sum = rows.iter().fold(Precise::ZERO, add);
            if sum.is_finite() {
                return Ok(sum.to_f64());
            }
            let add = |sum: Large, &row: &usize| Large(sum.0.plus(Large::from_f64(values[row]).0));
            let sum = rows.iter().fold(Large::default(), add);
            let value = sum.to_precise().to_f64();
            if value.is_finite() { Ok(value) } else { Err((sum.text(), "the largest double")) }
        }
    }
}
