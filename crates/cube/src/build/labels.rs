//! Captions, alternative names and attributes from columns of a dimension's table.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type};

use super::BuildError;
use super::keys::{name_text, value_text};
use super::source::Source;
use super::typed::all_numbers;
use crate::define::{DimensionDefinition, NumberStyle};
use crate::model::{Attribute, Dimension, ElementId};

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
        Ok(LabelColumns { caption, names, attributes })
    }

    pub(super) fn of_rows(&self, rows: &RecordBatch) -> Labels {
        let values = |column: usize, texts: Option<NumberStyle>| match numbers(rows.column(column), texts) {
            Some(numbers) => Values::Numbers(numbers),
            None => Values::Texts(rows.column(column).clone()),
        };
        let attributes = self.attributes.iter().map(|(name, column, texts)| (name.clone(), values(*column, *texts)));
        Labels {
            caption: self.caption.map(|column| rows.column(column).clone()),
            names: self.names.iter().map(|column| rows.column(*column).clone()).collect(),
            attributes: attributes.collect(),
            captioned: HashSet::new(),
        }
    }
}

impl Labels {
    /// Gives an element the caption and attributes of a row, of several rows the first that has one, and the
    /// alternative names of all its rows.
    pub(super) fn label(&mut self, dimension: &mut Dimension, id: ElementId, row: usize) -> Result<(), BuildError> {
        if let Some(caption) = self.caption.as_ref().and_then(|captions| name_text(captions, row))
            && self.captioned.insert(id)
        {
            dimension.set_caption(id, Some(&caption))?;
        }
        for name in self.names.iter().filter_map(|names| name_text(names, row)) {
            if dimension.find_key(&name) != Some(id) {
                dimension.add_alias(id, &name)?;
            }
        }
        for (name, values) in &self.attributes {
            if dimension.attribute(id, name).is_some() {
                continue;
            }
            let value = match values {
                Values::Numbers(numbers) => numbers.is_valid(row).then(|| Attribute::Number(numbers.value(row))),
                Values::Texts(texts) => value_text(texts, row).map(Attribute::Text),
            };
            if let Some(value) = value {
                dimension.set_attribute(id, name, value)?;
            }
        }
        Ok(())
    }
}

/// The values of a column of numbers as doubles, with a style those of texts that are all numbers, too; nothing for
/// other types.
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
    Some(doubles.as_primitive::<Float64Type>().clone())
}
