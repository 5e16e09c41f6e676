//! Level hierarchies from columns of a table, of the facts, and of dates.

use std::collections::HashSet;

use arrow::array::{Array, RecordBatch};

use super::BuildError;
use super::keys::name_text;
use super::labels::{LabelColumns, Table};
use super::order::sorted_rows;
use super::resolve::{time_names, time_of};
use crate::define::{DimensionDefinition, TimeLevels};
use crate::model::{Dimension, ElementId};

/// Level values of rows, one list a row, from the top down.
type Rows = Vec<Vec<Option<String>>>;

/// A dimension of rows of level values.
pub(super) struct LevelRows<'a> {
    pub(super) name: &'a str,
    pub(super) levels: Vec<&'a str>,
}

impl LevelRows<'_> {
    /// Levels of a table, in the order of its rows or of a column, with captions and attributes of base elements.
    pub(super) fn of_table(
        &self,
        definition: &DimensionDefinition,
        mut table: Table<'_>,
    ) -> Result<Dimension, BuildError> {
        let file = definition.table.as_deref().unwrap_or_default();
        let columns = self.levels.iter().map(|level| table.names(level)).collect::<Result<Vec<_>, _>>()?;
        let label_columns = LabelColumns::of(definition, &mut table)?;
        let sort = table.sort(definition)?;
        let batch = table.rows()?;
        let order = sorted_rows(&batch, sort)?;
        let (mut dimension, found) = self.dimension(&Self::rows(&batch, &columns, order.iter().copied()))?;
        let mut labels = label_columns.of_rows(&batch);
        for (row, id) in order.into_iter().zip(found) {
            if let Some(id) = id {
                labels.label(&mut dimension, id, row).map_err(|error| error.in_row(self.name, file, row))?;
            }
        }
        Ok(dimension)
    }

    /// Levels of columns of the facts: the first ones of distinct rows, taken in an order. Rows that end above other
    /// rows are left out: they name consolidated elements.
    pub(super) fn of_facts(&self, distinct: &RecordBatch, order: &[usize]) -> Result<Dimension, BuildError> {
        let columns: Vec<usize> = (0..self.levels.len()).collect();
        let mut rows = Self::rows(distinct, &columns, order.iter().copied());
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

    /// Level values of a batch's rows.
    fn rows(batch: &RecordBatch, columns: &[usize], order: impl Iterator<Item = usize>) -> Rows {
        let values = |row: usize| columns.iter().map(|column| name_text(batch.column(*column), row)).collect();
        order.map(values).collect()
    }

    /// The dimension of all rows, and the base element of each.
    fn dimension(&self, rows: &Rows) -> Result<(Dimension, Vec<Option<ElementId>>), BuildError> {
        let flat: Vec<Option<&str>> = rows.iter().flatten().map(Option::as_deref).collect();
        let rows = flat.chunks(self.levels.len().max(1));
        Ok(Dimension::from_levels(self.name, &self.levels, rows)?)
    }
}
