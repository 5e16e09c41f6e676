//! Level hierarchies from columns of a table, of the facts, and of dates.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};

use super::BuildError;
use super::keys::name_text;
use super::labels::{LabelColumns, Table};
use super::resolve::{time_names, time_of};
use super::source::Source;
use super::spelling::Spellings;
use super::typed::all_numbers;
use crate::define::{DimensionDefinition, NumberStyle, TimeLevels};
use crate::model::{Dimension, ElementId};

/// Level values of rows, one list a row, from the top down.
type Rows = Vec<Vec<Option<String>>>;

/// A dimension of rows of level values.
pub(super) struct LevelRows<'a> {
    pub(super) name: &'a str,
    pub(super) levels: Vec<&'a str>,
}

impl LevelRows<'_> {
    /// Levels of a table, in the order of its rows, with captions and attributes of base elements.
    pub(super) fn of_table(
        &self,
        definition: &DimensionDefinition,
        mut table: Table<'_>,
    ) -> Result<Dimension, BuildError> {
        let columns = self.levels.iter().map(|level| table.names(level)).collect::<Result<Vec<_>, _>>()?;
        let label_columns = LabelColumns::of(definition, &mut table)?;
        let batch = table.rows()?;
        let (mut dimension, found) = self.dimension(&self.rows(&batch, &columns, 0..batch.num_rows()))?;
        let mut labels = label_columns.of_rows(&batch);
        for (row, id) in found.into_iter().enumerate() {
            if let Some(id) = id {
                labels.label(&mut dimension, id, row)?;
            }
        }
        Ok(dimension)
    }

    /// Levels of columns of the facts, in ascending order. Rows that end above other rows are left out: they name
    /// consolidated elements.
    pub(super) fn of_facts(&self, distinct: &RecordBatch, order: Order) -> Result<Dimension, BuildError> {
        let order = ascending(distinct, order)?;
        let columns: Vec<usize> = (0..distinct.num_columns()).collect();
        let mut rows = self.rows(distinct, &columns, order.values().iter().map(|row| *row as usize));
        let mut above: HashSet<Vec<(usize, String)>> = HashSet::new();
        let path = |row: &[Option<String>]| {
            let named = row.iter().enumerate().filter_map(|(level, value)| Some((level, value.clone()?)));
            named.collect::<Vec<_>>()
        };
        for row in &rows {
            let mut path = path(row);
            while path.pop().is_some() && above.insert(path.clone()) {}
        }
        rows.retain(|row| !above.contains(&path(row)));
        Ok(self.dimension(&rows)?.0)
    }

    /// Levels of a column of dates, in the order of time.
    pub(super) fn of_dates(&self, distinct: &RecordBatch, time: &TimeLevels) -> Result<Dimension, BuildError> {
        let column = distinct.column(0);
        let date = |row: usize| Some((time_of(time, column, row)?, row));
        let mut dates: Vec<((i32, u8, u8), usize)> = (0..column.len()).filter_map(date).collect();
        dates.sort_unstable();
        let years = |&((year, month, _), _): &((i32, u8, u8), usize)| time.year_of(year, month);
        if let (Some(first), Some(last)) = (dates.first().map(years), dates.last().map(years))
            && last - first > time.years_max()
        {
            let message = format!(
                "the years {first} and {last} are further apart than {} years, and names of fiscal years have two \
                 digits; leave fiscal_start out, or select fewer years",
                time.years_max()
            );
            return Err(BuildError::Definition { place: format!("dimensions.{}", self.name), message });
        }
        let names = |(_, row): ((i32, u8, u8), usize)| {
            let names = time_names(time, column, row)?;
            Some(names.into_iter().map(Some).collect())
        };
        let mut rows: Rows = dates.into_iter().filter_map(names).collect();
        rows.dedup();
        Ok(self.dimension(&rows)?.0)
    }

    /// Level values of a batch's rows, with one spelling a value.
    fn rows(&self, batch: &RecordBatch, columns: &[usize], order: impl Iterator<Item = usize>) -> Rows {
        let mut spellings = Spellings::new(columns.len());
        let mut value = |level: usize, column: usize, row: usize| {
            name_text(batch.column(column), row).map(|text| spellings.spell(level, &text))
        };
        let mut rows = Rows::new();
        for row in order {
            rows.push(columns.iter().enumerate().map(|(level, column)| value(level, *column, row)).collect());
        }
        rows
    }

    /// The dimension of all rows, and the base element of each.
    fn dimension(&self, rows: &Rows) -> Result<(Dimension, Vec<Option<ElementId>>), BuildError> {
        let flat: Vec<Option<&str>> = rows.iter().flatten().map(Option::as_deref).collect();
        let rows = flat.chunks(self.levels.len().max(1));
        Ok(Dimension::from_levels(self.name, &self.levels, rows)?)
    }
}

/// In which order texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Columns of numbers by value, other columns as texts.
    Numbers,
    /// As texts.
    Texts,
}

impl Order {
    /// The order of a source's values. Elements of cubes whose types were guessed keep theirs.
    pub(super) fn of(facts: &Source<'_>) -> Order {
        if facts.is_guessed() { Order::Texts } else { Order::Numbers }
    }
}

/// Rows of a batch in ascending order of its columns, the first column first, NULL last.
pub(super) fn ascending(batch: &RecordBatch, order: Order) -> Result<UInt32Array, BuildError> {
    let options = Some(SortOptions { descending: false, nulls_first: false });
    let mut columns: Vec<SortColumn> = Vec::new();
    for values in batch.columns().iter().filter(|column| !column.data_type().is_null()) {
        if let (Order::Numbers, Some(numbers)) = (order, all_numbers(values, NumberStyle::PLAIN)) {
            columns.push(SortColumn { values: Arc::new(numbers), options });
        }
        columns.push(SortColumn { values: values.clone(), options });
    }
    if columns.is_empty() {
        return Ok((0..batch.num_rows() as u32).collect());
    }
    lexsort_to_indices(&columns, None).map_err(|source| BuildError::Arrow { what: "sorting values", source })
}
