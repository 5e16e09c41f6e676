//! Names without quotes that tables, views and schemas have in another case, where a statement makes, changes or drops
//! what they name. [`super::spellings`] reads those of queries.

use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::items::folded;
use super::quotes::quoted;
use super::relations::parts;

/// Gives a table's name the spelling that the catalog has.
pub(super) fn spell_table(state: &SessionState, name: &mut ObjectName) {
    spell_schema_of(state, name);
    if let Some(schema) = reference(name).and_then(|table| state.schema_for_ref(table).ok())
        && let Some(last) = name.0.last_mut()
    {
        spell(state, last, |table| schema.table_exist(table), || schema.table_names());
    }
}

/// Whether the catalog has a table or a view of a name; files that the name may be a path of do not count.
pub(super) fn is_there(state: &SessionState, name: &ObjectName) -> bool {
    let table = reference(name).and_then(|table| Some((state.schema_for_ref(table.clone()).ok()?, table)));
    table.is_some_and(|(schema, table)| schema.table_exist(table.table()))
}

/// A table's name as the planner reads it.
pub(super) fn reference(name: &ObjectName) -> Option<TableReference> {
    let parts: Vec<String> = parts(name)?.iter().map(folded).collect();
    match parts.as_slice() {
        [table] => Some(TableReference::bare(table.as_str())),
        [schema, table] => Some(TableReference::partial(schema.as_str(), table.as_str())),
        [catalog, schema, table] => Some(TableReference::full(catalog.as_str(), schema.as_str(), table.as_str())),
        _ => None,
    }
}

/// Gives the name of the schema that stands before a table's the spelling that the catalog has.
pub(super) fn spell_schema_of(state: &SessionState, name: &mut ObjectName) {
    if let [before @ .., _] = name.0.as_mut_slice() {
        spell_schema(state, before);
    }
}

/// The same of a schema's own name.
pub(super) fn spell_schema(state: &SessionState, name: &mut [ObjectNamePart]) {
    let [before @ .., schema] = name else { return };
    let catalog = match before {
        [] => state.config_options().catalog.default_catalog.clone(),
        [ObjectNamePart::Identifier(catalog)] => folded(catalog),
        _ => return,
    };
    if let Some(catalog) = state.catalog_list().catalog(&catalog) {
        spell(state, schema, |schema| catalog.schema(schema).is_some(), || catalog.schema_names());
    }
}

/// Gives a name without quotes, which nothing has as it is read, the only other spelling of it that there is.
fn spell(
    state: &SessionState,
    part: &mut ObjectNamePart,
    is_there: impl Fn(&str) -> bool,
    names: impl Fn() -> Vec<String>,
) {
    let ObjectNamePart::Identifier(name @ Ident { quote_style: None, .. }) = part else { return };
    let lower = name.value.to_lowercase();
    if !state.config_options().sql_parser.enable_ident_normalization || is_there(&lower) {
        return;
    }
    let mut others = names().into_iter().filter(|other| other.to_lowercase() == lower);
    if let (Some(other), None) = (others.next(), others.next()) {
        *name = Ident { span: name.span, ..quoted(other) };
    }
}
