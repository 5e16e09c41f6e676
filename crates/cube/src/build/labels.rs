//! Captions, alternative names and attributes from columns of a dimension's table.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type};

use super::BuildError;
use super::keys::{name_text, plain, value_text};
use super::source::Source;
use super::typed::all_numbers;
use crate::define::{DimensionDefinition, NumberStyle};
use crate::model::{Attribute, Dimension, ElementId, NUMBER_FORMAT, NumberFormat, folded};

/// A table of a dimension: the columns that its definition names.
pub(super) struct Table<'a> {
    source: Source<'a>,
    /// `dimension '…'`, for errors.
    user: String,
    /// Columns to be read, as the source writes them.
    columns: Vec<String>,
}

/// Captions, alternative names and attributes, a row of the table each.
pub(super) struct Labels {
    caption: Option<ArrayRef>,
    names: Vec<ArrayRef>,
    attributes: Vec<(String, Values)>,
    captioned: HashSet<ElementId>,
    /// The table, for errors.
    table: String,
}

enum Values {
    Numbers(Float64Array),
    Texts(ArrayRef),
}

impl<'a> Table<'a> {
    pub(super) fn new(source: Source<'a>, user: String) -> Table<'a> {
        Table { source, user, columns: Vec::new() }
    }

    /// Adds a column to those that are read; returns its place and type.
    pub(super) fn column(&mut self, name: &str) -> Result<(usize, DataType), BuildError> {
        let column = self.source.column(&self.user, name)?;
        let data_type = self.source.data_type(column).clone();
        let place = self.columns.iter().position(|held| held == column).unwrap_or_else(|| {
            self.columns.push(column.to_owned());
            self.columns.len() - 1
        });
        Ok((place, data_type))
    }

    /// Adds a column of names.
    pub(super) fn names(&mut self, name: &str) -> Result<usize, BuildError> {
        let (place, data_type) = self.column(name)?;
        super::keys::check_names(&data_type).map_err(|wanted| self.wrong_type(place, wanted))?;
        Ok(place)
    }

    /// The error of a column's type.
    pub(super) fn wrong_type(&self, column: usize, wanted: String) -> BuildError {
        self.source.wrong_type(&self.user, &self.columns[column], wanted)
    }

    /// How numbers are written in a column of a text file without a declared type.
    pub(super) fn style(&self, column: usize) -> Option<NumberStyle> {
        self.source.is_untyped(&self.columns[column]).then(|| self.source.style())
    }

    /// The column that orders rows, with how its numbers are written.
    pub(super) fn sort(
        &mut self,
        definition: &DimensionDefinition,
    ) -> Result<Option<(usize, NumberStyle)>, BuildError> {
        let Some(name) = definition.sort.as_deref() else { return Ok(None) };
        let (place, _) = self.column(name)?;
        Ok(Some((place, self.style(place).unwrap_or(NumberStyle::PLAIN))))
    }

    /// All rows of the columns.
    pub(super) fn rows(&self) -> Result<RecordBatch, BuildError> {
        self.source.whole(&self.columns.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Places of the columns of captions, alternative names and attributes.
pub(super) struct LabelColumns {
    caption: Option<usize>,
    names: Vec<usize>,
    /// Names, columns, and how numbers are written in columns of a text file.
    attributes: Vec<(String, usize, Option<NumberStyle>)>,
    table: String,
}

impl LabelColumns {
    pub(super) fn of(definition: &DimensionDefinition, table: &mut Table<'_>) -> Result<LabelColumns, BuildError> {
        let caption = definition.caption.as_deref().map(|name| table.names(name)).transpose()?;
        let names = definition.names.iter().map(|name| table.names(name)).collect::<Result<_, BuildError>>()?;
        let attribute = |name: &String| {
            let (column, _) = table.column(name)?;
            Ok((name.clone(), column, table.style(column)))
        };
        let attributes = definition.attributes.iter().map(attribute).collect::<Result<_, BuildError>>()?;
        let table = definition.table.clone().unwrap_or_default();
        Ok(LabelColumns { caption, names, attributes, table })
    }

    pub(super) fn of_rows(&self, rows: &RecordBatch) -> Labels {
        let values = |name: &str, column: usize, texts: Option<NumberStyle>| {
            let array = rows.column(column);
            match (name != NUMBER_FORMAT).then(|| numbers(array, texts)).flatten() {
                Some(numbers) => Values::Numbers(numbers),
                None => Values::Texts(array.clone()),
            }
        };
        let of_column = |(name, column, texts): &(String, usize, Option<NumberStyle>)| {
            let name = if folded(name) == NUMBER_FORMAT { NUMBER_FORMAT } else { name };
            (name.to_owned(), values(name, *column, *texts))
        };
        let attributes = self.attributes.iter().map(of_column);
        Labels {
            caption: self.caption.map(|column| rows.column(column).clone()),
            names: self.names.iter().map(|column| rows.column(*column).clone()).collect(),
            attributes: attributes.collect(),
            captioned: HashSet::new(),
            table: self.table.clone(),
        }
    }
}

impl Labels {
    /// Gives an element the caption, attributes and alternative names of a row. Several rows of an element have one
    /// caption and one value of each attribute, or none.
    pub(super) fn label(&mut self, dimension: &mut Dimension, id: ElementId, row: usize) -> Result<(), BuildError> {
        if let Some(caption) = self.caption.as_ref().and_then(|captions| name_text(captions, row)) {
            let held = dimension.element(id).caption();
            match self.captioned.insert(id) {
                true => dimension.set_caption(id, Some(&caption))?,
                false if held != caption => {
                    return Err(self.differs(dimension, (id, row), "caption", [held, &caption]));
                }
                false => {}
            }
        }
        for name in self.names.iter().filter_map(|names| name_text(names, row)) {
            if dimension.holder(&name) != Some(id) {
                dimension.add_alias(id, &name)?;
            }
        }
        for (name, values) in &self.attributes {
            let value = match values {
                Values::Numbers(numbers) => numbers.is_valid(row).then(|| Attribute::Number(numbers.value(row))),
                Values::Texts(texts) => value_text(texts, row).map(Attribute::Text),
            };
            if let (NUMBER_FORMAT, Some(Attribute::Text(pattern))) = (name.as_str(), &value)
                && let Err(problem) = pattern.parse::<NumberFormat>()
            {
                let place = format!("dimensions.{}.attributes", dimension.name());
                let message = format!("{NUMBER_FORMAT} '{pattern}' of '{}': {problem}", dimension.element(id).name());
                return Err(BuildError::Definition { place, message });
            }
            if let (Some(held), Some(value)) = (dimension.attribute(id, name), &value)
                && held != value
            {
                let texts = [held, value].map(|value| match value {
                    Attribute::Number(number) => number.to_string(),
                    Attribute::Text(text) => text.clone(),
                });
                return Err(self.differs(dimension, (id, row), &format!("attribute {name}"), [&texts[0], &texts[1]]));
            }
            if let Some(value) = value {
                dimension.set_attribute(id, name, value)?;
            }
        }
        Ok(())
    }
}

impl Labels {
    /// The error of an element to which two rows give different values.
    fn differs(
        &self,
        dimension: &Dimension,
        (id, row): (ElementId, usize),
        what: &str,
        [held, new]: [&str; 2],
    ) -> BuildError {
        let name = dimension.element(id).name();
        let problem = format!(
            "the {what} of '{name}' is '{new}' here and '{held}' in another row: give its rows one value, or leave it \
             empty in all but one"
        );
        BuildError::TableRow {
            dimension: dimension.name().to_owned(),
            table: self.table.clone(),
            row: row + 1,
            problem,
        }
    }
}

/// The values of a column of numbers as doubles, with a style those of texts that are all numbers, too; nothing for
/// other types, and for numbers that doubles do not have.
fn numbers(array: &ArrayRef, texts: Option<NumberStyle>) -> Option<Float64Array> {
    if let Some(numbers) = texts.and_then(|style| all_numbers(array, style)) {
        return Some(numbers);
    }
    let is_number = match array.data_type() {
        DataType::Dictionary(_, values) => values.is_numeric(),
        other => other.is_numeric(),
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let doubles = is_number.then(|| cast_with_options(array, &DataType::Float64, &options).ok()).flatten()?;
    let is_exact = || distinct(&cast_with_options(&doubles, array.data_type(), &options).ok()?, array).ok();
    let is_exact = || is_exact().is_some_and(|lost| lost.true_count() == 0);
    (plain(array.data_type()).is_floating() || is_exact()).then(|| doubles.as_primitive::<Float64Type>().clone())
}
