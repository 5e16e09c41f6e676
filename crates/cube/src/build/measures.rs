//! Measures of a definition and their columns.

use arrow::datatypes::DataType;

use super::BuildError;
use super::source::Source;
use super::values::{check_values, first_word};
use crate::define::{Definition, MeasureDefinition, NumberStyle};
use crate::facts::{FactMeasure, Rule, ValueType};
use crate::model::{Balance, Measure};

/// A measure and its column, as the facts write it.
pub(super) struct MeasurePlan {
    pub(super) measure: Measure,
    /// Absent for a COUNT of rows.
    pub(super) column: Option<String>,
    /// How numbers of texts are written.
    pub(super) style: NumberStyle,
}

impl MeasurePlan {
    /// The measures of a definition; without a list, the sum of the column that `facts.value` names.
    pub(super) fn all(definition: &Definition, facts: &Source<'_>) -> Result<Vec<MeasurePlan>, BuildError> {
        if !definition.measures.is_empty() {
            let measures = definition.measures.iter();
            let plan = |(name, measure)| {
                MeasurePlan::of(name, measure, definition, facts)
                    .map_err(|error| error.at(|| format!("measures.{name}")))
            };
            return measures.map(plan).collect();
        }
        let Some(column) = &definition.facts.value else {
            let message = "value names the column of values, where the cube has no measures".to_owned();
            return Err(BuildError::Definition { place: "facts".to_owned(), message });
        };
        let measure = Measure {
            name: column.clone(),
            rule: Rule::Sum,
            value: definition.value.value_type.0,
            format: definition.value.format.clone(),
            over: None,
        };
        let column = value_column(&measure, column, facts).map_err(|error| error.at(|| "facts.value".to_owned()))?;
        let style = facts.style_of(Some(&column));
        Ok(vec![MeasurePlan { measure, column: Some(column), style }])
    }

    fn of(
        name: &str,
        definition: &MeasureDefinition,
        cube: &Definition,
        facts: &Source<'_>,
    ) -> Result<MeasurePlan, BuildError> {
        let wrong =
            |message: &str| BuildError::Definition { place: format!("measures.{name}"), message: message.to_owned() };
        let value = match definition.rule {
            Rule::Count => ValueType::Decimal { scale: 0 },
            _ => definition.value_type.unwrap_or(cube.value.value_type).0,
        };
        let mut over = definition.over.iter();
        let balance = over.next().map(|(name, span)| Balance { dimension: name.to_owned(), span: *span });
        if over.next().is_some() {
            return Err(wrong("over names one dimension, not several"));
        }
        let format = definition.format.clone().or_else(|| cube.value.format.clone());
        let measure = Measure { name: name.to_owned(), rule: definition.rule, value, format, over: balance };
        let column = match &definition.column {
            Some(column) => Some(value_column(&measure, column, facts)?),
            None if definition.rule == Rule::Count => None,
            None => return Err(wrong("column is missing; only the rule count needs none")),
        };
        let style = facts.style_of(column.as_deref());
        Ok(MeasurePlan { measure, column, style })
    }

    /// The measure as facts have it.
    pub(super) fn fact_measure(&self) -> FactMeasure {
        FactMeasure::new(&self.measure.name, self.measure.rule, self.measure.value)
    }
}

/// The column of a measure, checked to hold numbers; a COUNT takes any column.
fn value_column(measure: &Measure, name: &str, facts: &Source<'_>) -> Result<String, BuildError> {
    let user = format!("measure '{}'", measure.name);
    let column = facts.column(&user, name)?;
    let found = facts.data_type(column);
    if measure.rule != Rule::Count
        && !facts.is_written(column)
        && let Err(mut wanted) = check_values(found)
    {
        if found.is_string() {
            wanted = format!("{wanted}, or write types: {{{column}: {}}}", type_text(measure.value));
        }
        if let Some((row, word)) = first_text(column, found, facts)? {
            wanted = format!("{wanted}; '{word}' in row {row} is the first text that is no number");
        }
        return Err(facts.wrong_type(&user, column, wanted));
    }
    Ok(column.to_owned())
}

/// A type as `types` writes it.
fn type_text(value: ValueType) -> String {
    match value {
        ValueType::Decimal { scale } => format!("decimal({scale})"),
        ValueType::Double => "double".to_owned(),
    }
}

/// The first text of a column of texts that is no number, with the number of its row, from 1.
fn first_text(column: &str, data_type: &DataType, facts: &Source<'_>) -> Result<Option<(usize, String)>, BuildError> {
    if !data_type.is_string() {
        return Ok(None);
    }
    let mut before = 1;
    for batch in facts.select(&[column])? {
        let batch = batch?;
        if let Some((row, word)) = first_word(batch.column(0)) {
            return Ok(Some((before + row, word)));
        }
        before += batch.num_rows();
    }
    Ok(None)
}
