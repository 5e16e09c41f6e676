//! Forms of a dimension: where its elements come from, and the columns of the facts that name them.

use super::BuildError;
use crate::define::{DimensionDefinition, FiscalYear, TimeLevels};

/// The form of a dimension, of which [`DimensionDefinition`] has a list.
pub(super) enum Form<'a> {
    /// Elements as they are listed.
    Elements { elements: &'a [String] },
    /// A level for each column of a table.
    TableLevels { table: &'a str, levels: &'a [String] },
    /// A row of a table for each element, with its parent.
    Parents { table: &'a str, key: &'a str, parent: &'a str },
    /// Levels of a column of dates.
    Time { names: &'a [String], levels: TimeLevels },
    /// A level for each column of the facts.
    FactLevels { levels: &'a [String] },
    /// The distinct values of a column of the facts.
    Values,
}

impl<'a> Form<'a> {
    /// The form of a definition.
    ///
    /// # Errors
    /// [`BuildError::Definition`] for fields that do not go together; [`crate::define::parse`] refuses them, too.
    pub(super) fn of(name: &str, definition: &'a DimensionDefinition) -> Result<Form<'a>, BuildError> {
        let DimensionDefinition { column, table, levels, fiscal_start, key, parent, elements, .. } = definition;
        let wrong = |message: String| BuildError::Definition { place: format!("dimensions.{name}"), message };
        let form = match (table, levels.as_slice(), key, parent) {
            _ if !elements.is_empty() => Form::Elements { elements },
            (Some(table), [], Some(key), Some(parent)) => Form::Parents { table, key, parent },
            (Some(table), [_, ..], None, None) => Form::TableLevels { table, levels },
            (None, [_, ..], None, None) if column.is_some() => {
                let levels_of = TimeLevels::new(levels, FiscalYear::beginning(*fiscal_start)).map_err(wrong)?;
                Form::Time { names: levels, levels: levels_of }
            }
            (None, [_, ..], None, None) => Form::FactLevels { levels },
            (None, [], None, None) => Form::Values,
            _ => return Err(wrong("a table needs levels, or key and parent".to_owned())),
        };
        Ok(form)
    }

    /// The columns of the facts that name elements, as the definition writes them.
    pub(super) fn fact_columns<'b>(&'b self, name: &'b str, definition: &'b DimensionDefinition) -> Vec<&'b str> {
        let column = definition.column.as_deref();
        match self {
            Form::FactLevels { levels } => levels.iter().map(String::as_str).collect(),
            Form::TableLevels { levels, .. } => {
                let last = levels.last().map_or(name, String::as_str);
                vec![column.unwrap_or(last)]
            }
            Form::Elements { .. } | Form::Parents { .. } | Form::Time { .. } | Form::Values => {
                vec![column.unwrap_or(name)]
            }
        }
    }
}
