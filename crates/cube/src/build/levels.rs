//! Level hierarchies from columns of a table, of the facts, and of dates.

use std::collections::{HashMap, HashSet};

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};

use super::BuildError;
use super::keys::name_text;
use super::labels::{LabelColumns, Table};
use super::order::{by_level, in_order};
use super::report::OtherParent;
use super::resolve::{time_names, time_of};
use super::spelling::Spellings;
use crate::define::{DimensionDefinition, TimeLevels};
use crate::model::{Dimension, ElementId, ElementKind, LevelIndex, folded};

/// Level values of rows, one list a row, from the top down.
type Rows = Vec<Vec<Option<String>>>;

/// A dimension that grows by rows of level values.
pub(super) struct LevelGrowth<'a> {
    pub(super) name: &'a str,
    pub(super) levels: Vec<&'a str>,
    /// The dimension of a cube that is refreshed.
    pub(super) old: Option<&'a Dimension>,
}

impl LevelGrowth<'_> {
    /// Levels of a table, in the order of its rows, with captions and attributes of base elements; and the rows that
    /// place a base element of the dimension below other elements than before, which are left out.
    pub(super) fn of_table(
        &self,
        definition: &DimensionDefinition,
        mut table: Table<'_>,
    ) -> Result<(Dimension, Vec<OtherParent>), BuildError> {
        let columns = self.levels.iter().map(|level| table.names(level)).collect::<Result<Vec<_>, _>>()?;
        let label_columns = LabelColumns::of(definition, &mut table)?;
        let batch = table.rows()?;
        let mut rows = self.rows(&batch, &columns, 0..batch.num_rows());
        let (places, moved) = match self.old {
            Some(old) => without_moved(old, &mut rows),
            None => ((0..rows.len()).collect(), Vec::new()),
        };
        let (mut dimension, found) = self.grow(&rows)?;
        let first_new = self.old.map_or(0, Dimension::id_count);
        let mut labels = label_columns.of_rows(&batch);
        for (row, id) in places.into_iter().zip(found) {
            if let Some(id) = id.filter(|id| id.index() >= first_new) {
                labels.label(&mut dimension, id, row)?;
            }
        }
        Ok((dimension, moved))
    }

    /// Levels of columns of the facts, in ascending order. Rows that end above other rows are left out: they name
    /// consolidated elements.
    pub(super) fn of_facts(&self, distinct: &RecordBatch) -> Result<Dimension, BuildError> {
        let order = ascending(distinct)?;
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
        let index = self.old.map(|old| (old, LevelIndex::new(old, 0)));
        let is_consolidated = |row: &[Option<String>]| {
            let Some((old, index)) = &index else { return false };
            let values: Vec<Option<&str>> = row.iter().map(Option::as_deref).collect();
            index.find(&values).is_some_and(|id| old.element(id).kind() != ElementKind::Base)
        };
        rows.retain(|row| !above.contains(&path(row)) && !is_consolidated(row));
        self.grow_ascending(&rows)
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
        self.grow_ascending(&rows)
    }

    /// Level values of a batch's rows, with one spelling a value.
    fn rows(&self, batch: &RecordBatch, columns: &[usize], order: impl Iterator<Item = usize>) -> Rows {
        let mut spellings = match self.old {
            Some(old) => Spellings::of(old, columns.len()),
            None => Spellings::new(columns.len()),
        };
        let mut value = |level: usize, column: usize, row: usize| {
            name_text(batch.column(column), row).map(|text| spellings.spell(level, &text))
        };
        let mut rows = Rows::new();
        for row in order {
            rows.push(columns.iter().enumerate().map(|(level, column)| value(level, *column, row)).collect());
        }
        rows
    }

    /// The dimension with the elements of further rows, which ascend.
    fn grow_ascending(&self, rows: &Rows) -> Result<Dimension, BuildError> {
        let (dimension, found) = self.grow(rows)?;
        let Some(old) = self.old else { return Ok(dimension) };
        let sequences = by_level(&dimension, &found);
        in_order(dimension, &sequences, old.id_count())
    }

    /// The dimension with the elements of further rows, and the base element of each row.
    fn grow(&self, rows: &Rows) -> Result<(Dimension, Vec<Option<ElementId>>), BuildError> {
        let flat: Vec<Option<&str>> = rows.iter().flatten().map(Option::as_deref).collect();
        let rows = flat.chunks(self.levels.len().max(1));
        match self.old {
            None => Ok(Dimension::from_levels(self.name, &self.levels, rows)?),
            Some(old) => {
                let mut dimension = old.clone();
                let found = dimension.extend_levels(rows)?;
                Ok((dimension, found))
            }
        }
    }
}

/// Takes out the rows of base elements that moved: `old` has one of the same value in a place that no row
/// has.
/// Returns the places of the rows that stay, and what moved.
fn without_moved(old: &Dimension, rows: &mut Rows) -> (Vec<usize>, Vec<OtherParent>) {
    let index = LevelIndex::new(old, 0);
    let find = |row: &[Option<String>]| index.find(&row.iter().map(Option::as_deref).collect::<Vec<_>>());
    let held: HashSet<ElementId> = rows.iter().filter_map(|row| find(row)).collect();
    let mut left: HashMap<String, ElementId> = HashMap::new();
    for id in old.elements().iter().filter(|id| !held.contains(*id)) {
        let element = old.element(*id);
        if let Some(member) = element.member().filter(|_| element.kind() == ElementKind::Base) {
            left.entry(folded(&member.value)).or_insert(*id);
        }
    }
    let (mut places, mut moved) = (Vec::new(), Vec::new());
    let mut place = 0;
    rows.retain(|row| {
        let value = row.iter().flatten().next_back();
        let before = value.filter(|_| find(row).is_none()).and_then(|value| left.get(&folded(value)));
        match before {
            None => places.push(place),
            Some(id) => {
                let above: Vec<&str> = row.iter().flatten().map(String::as_str).collect();
                let parent = above[..above.len() - 1].join(" → ");
                let (dimension, element) = (old.name().to_owned(), old.element(*id).name().to_owned());
                moved.push(OtherParent { dimension, element, parent });
            }
        }
        place += 1;
        before.is_none()
    });
    (places, moved)
}

/// Rows of a batch in ascending order of its columns, the first column first, NULL last.
pub(super) fn ascending(batch: &RecordBatch) -> Result<UInt32Array, BuildError> {
    let options = Some(SortOptions { descending: false, nulls_first: false });
    let has_values = |column: &&arrow::array::ArrayRef| !column.data_type().is_null();
    let columns = batch.columns().iter().filter(has_values);
    let columns: Vec<SortColumn> = columns.map(|values| SortColumn { values: values.clone(), options }).collect();
    if columns.is_empty() {
        return Ok((0..batch.num_rows() as u32).collect());
    }
    lexsort_to_indices(&columns, None).map_err(|source| BuildError::Arrow { what: "sorting values", source })
}
