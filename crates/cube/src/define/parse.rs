//! Reading a definition, with line and column in every error.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::{Location, Spanned};
use warpcube_arrays::key::DIMENSIONS_MAX;

use super::{Definition, DimensionDefinition, FiscalYear, MeasureDefinition, Named, TimeLevels};
use crate::model::{Rule, folded, is_blank};
use crate::query::MEASURES;

/// Most levels of a dimension with names: each is a column in SQL.
const LEVELS_MAX: usize = 1000;
const EMPTY_NAME: &str = "a name is empty or blank: give it a character that is no blank";

/// A definition that cannot be read, or contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The text is no YAML, or its fields are not those of a definition.
    #[error("line {line}, column {column}: {message}")]
    Text {
        /// The line, from one.
        line: u64,
        /// The character in it, from one.
        column: u64,
        /// What was expected and what was found.
        message: String,
    },
    /// Fields that do not go together, where the text does not have them.
    #[error("{place}: {message}")]
    Meaning {
        /// The field, by its path.
        place: String,
        /// What does not go together.
        message: String,
    },
}

/// The definition of a text.
///
/// # Errors
/// Text that is not YAML, fields that are unknown, missing or of another type, each with line and column; forms of
/// dimensions, measures and facts that contradict themselves.
pub fn parse(text: &str) -> Result<Definition, DefinitionError> {
    let definition: Definition = serde_saphyr::from_str(text).map_err(|error| {
        let location = error.location();
        DefinitionError::Text {
            line: location.as_ref().map_or(1, |place| place.line()),
            column: location.as_ref().map_or(1, |place| place.column()),
            message: message_of(&error),
        }
    })?;
    check(&definition).map_err(|error| placed(text, error))?;
    Ok(definition)
}

/// Line and column of a field of a definition that can be read, by its path: `facts`, `measures.NAME`,
/// `dimensions.NAME` and what lies below them.
pub fn place_of(text: &str, path: &str) -> Option<(u64, u64)> {
    let outline: Outline = serde_saphyr::from_str(text).ok()?;
    let section = path.split('.').next()?;
    let found = match section {
        "cube" => outline.cube.map(|part| part.referenced),
        "facts" => outline.facts.map(|part| part.referenced),
        "measures" => outline.measures.map(|parts| within(&parts, section, path)),
        "dimensions" => outline.dimensions.map(|parts| within(&parts, section, path)),
        _ => None,
    }?;
    Some((found.line(), found.column()))
}

/// The place of the part of a section that a path names or leads through; of the section without one.
fn within<T>(parts: &Spanned<Named<Spanned<T>>>, section: &str, path: &str) -> Location {
    let part = || {
        let below = path.strip_prefix(section)?.strip_prefix('.')?;
        // A name may have points of its own: the longest one that fits.
        let fits = |name: &&str| below.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        parts.value.get(parts.value.names().filter(fits).max_by_key(|name| name.len())?)
    };
    part().map_or(parts.referenced, |part| part.referenced)
}

/// Where the parts of a definition stand. Parts are read by their types: a value of any type cannot be `.nan`.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    cube: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    facts: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    measures: Option<Spanned<Named<Spanned<MeasureDefinition>>>>,
    #[serde(default)]
    dimensions: Option<Spanned<Named<Spanned<DimensionDefinition>>>>,
}

/// The error with line and column, where its field stands in the text.
fn placed(text: &str, error: DefinitionError) -> DefinitionError {
    let DefinitionError::Meaning { place, message } = error else { return error };
    match place_of(text, &place) {
        Some((line, column)) => DefinitionError::Text { line, column, message: format!("{place}: {message}") },
        None => DefinitionError::Meaning { place, message },
    }
}

/// The JSON Schema of definitions.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Definition);
    serde_json::to_string_pretty(&schema).expect("a schema is JSON")
}

/// Words of the library that reads YAML and of Rust's types, and what they mean.
const PLAIN: [(&str, &str); 12] = [
    ("single Unicode scalar", "one character is expected here"),
    ("expected sequence start", "a list is expected here: [A, B]"),
    ("expected mapping start", "fields are expected here: {name: value}"),
    ("expected string scalar", "a text is expected here"),
    ("untagged enum", "a name or a list of names is expected here"),
    ("invalid floating point", "a number is expected here"),
    ("invalid digit", "a whole number is expected here"),
    ("Option<String>", "a text is expected here"),
    ("Option<", "another value is expected here"),
    ("from_str_multiple", "a definition is one YAML document, and --- begins another one here"),
    ("unexpected end of input", "the text of a definition ends here: cube, facts and dimensions are missing"),
    ("unexpected end of stream", "the text of a definition ends too early"),
];

/// The message of an error, without its excerpt and place.
fn message_of(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    let text = text[..end].trim_end_matches([',', ' ']);
    if let Some((_, plain)) = PLAIN.iter().find(|(words, _)| text.contains(words)) {
        return (*plain).to_string();
    }
    if let Some((found, expected)) = text.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", ")) {
        return format!("{found} is not known here, {expected}").replace('`', "'");
    }
    // The library goes on with an option that users of a definition do not have.
    match text.strip_prefix("duplicate mapping key: ").and_then(|rest| rest.split(", set ").next()) {
        Some(key) => format!("{key} stands here a second time"),
        None => text.to_string(),
    }
}

fn check(definition: &Definition) -> Result<(), DefinitionError> {
    let wrong = |place: &str, message: String| DefinitionError::Meaning { place: place.to_string(), message };
    if definition.cube.trim().is_empty() {
        return Err(wrong("cube", "a cube needs a name".to_string()));
    }
    let leads_elsewhere = |c: char| matches!(c, '/' | '\\') || c.is_control();
    if definition.cube.contains(leads_elsewhere) || [".", ".."].contains(&definition.cube.as_str()) {
        let message = "the name of a cube is that of its folder: it has no / and no \\; write the path of another \
                       folder behind the definition";
        return Err(wrong("cube", message.to_string()));
    }
    for (place, text) in [("cube", definition.text()), ("facts", definition.facts.text().or(&definition.text()))] {
        text.check().map_err(|message| wrong(place, message))?;
    }
    match (&definition.facts.sql, &definition.facts.file) {
        (Some(_), Some(_)) => return Err(wrong("facts", "either sql or file, not both".to_string())),
        (None, None) => return Err(wrong("facts", "sql or file is missing".to_string())),
        _ => {}
    }
    match (&definition.facts.value, definition.measures.is_empty()) {
        (None, true) => {
            return Err(wrong("facts", "value names the column of values, where the cube has no measures".to_string()));
        }
        (Some(_), false) => {
            return Err(wrong("facts.value", "measures have columns of their own; value goes".to_string()));
        }
        _ => {}
    }
    if let Some((name, message)) = repeated(definition.measures.names()) {
        return Err(wrong(&format!("measures.{name}"), message));
    }
    for (name, measure) in definition.measures.iter() {
        check_measure(measure, &definition.dimensions)
            .map_err(|message| wrong(&format!("measures.{name}"), message))?;
    }
    if definition.dimensions.is_empty() {
        return Err(wrong("dimensions", "a cube needs a dimension".to_string()));
    }
    let count = definition.dimensions.names().count();
    if count > DIMENSIONS_MAX {
        return Err(wrong("dimensions", format!("a cube has at most {DIMENSIONS_MAX} dimensions, not {count}")));
    }
    if let Some((name, message)) = repeated(definition.dimensions.names()) {
        return Err(wrong(&format!("dimensions.{name}"), message));
    }
    for (name, dimension) in definition.dimensions.iter() {
        let checked = check_name(name, definition)
            .and_then(|()| check_dimension(dimension))
            .and_then(|()| dimension.text().or(&definition.text()).check());
        checked.map_err(|message| wrong(&format!("dimensions.{name}"), message))?;
    }
    Ok(())
}

/// The first name that is empty or repeats an earlier one, case ignored, with the reason.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<(&'a str, String)> {
    let mut known: HashMap<String, &str> = HashMap::new();
    for name in names {
        if is_blank(name) {
            return Some((name, EMPTY_NAME.to_string()));
        }
        if let Some(other) = known.insert(folded(name), name) {
            let message = match other == name {
                true => format!("'{name}' stands here a second time"),
                false => format!("'{name}' and '{other}' are one name: case does not count"),
            };
            return Some((name, message));
        }
    }
    None
}

/// Refuses the name of a dimension that a query or a table of SQL takes for something else.
fn check_name(name: &str, definition: &Definition) -> Result<(), String> {
    let is = |other: &str| folded(other) == folded(name);
    let value = definition.facts.value.as_deref();
    if let Some(measure) = definition.measures.names().chain(value).find(|measure| is(measure)) {
        return Err(format!("the measure {measure} has this name, and both are columns of the cube in SQL"));
    }
    if definition.measures.names().count() > 1 && is(MEASURES) {
        return Err(format!("{MEASURES} names the axis of the measures: choose another name"));
    }
    Ok(())
}

fn check_measure(measure: &MeasureDefinition, dimensions: &Named<DimensionDefinition>) -> Result<(), String> {
    if measure.column.is_none() && measure.rule != Rule::Count {
        return Err("column is missing; only the rule count needs none".to_string());
    }
    if measure.over.names().count() > 1 {
        return Err("over names one dimension, not several".to_string());
    }
    if !measure.over.is_empty() && measure.rule != Rule::Sum {
        return Err("over goes with the rule sum".to_string());
    }
    let has = |name: &&str| dimensions.names().any(|known| known.eq_ignore_ascii_case(name));
    match measure.over.names().find(|name| !has(name)) {
        Some(missing) => Err(format!("over: the cube has no dimension {missing}")),
        None => Ok(()),
    }
}

fn check_dimension(dimension: &DimensionDefinition) -> Result<(), String> {
    let DimensionDefinition { column, table, levels, fiscal_start, key, parent, elements, .. } = dimension;
    let mut listed =
        elements.iter().map(String::as_str).chain(dimension.consolidated.names()).chain(dimension.all.as_deref());
    let mut known = HashSet::new();
    if let Some(name) = listed.find(|name| is_blank(name) || !known.insert(*name)) {
        return Err(match is_blank(name) {
            true => EMPTY_NAME.to_string(),
            false => format!("'{name}' stands here a second time"),
        });
    }
    if levels.len() > LEVELS_MAX {
        return Err(format!("a dimension has at most {LEVELS_MAX} levels with names, not {}", levels.len()));
    }
    if !elements.is_empty() && (table.is_some() || !levels.is_empty()) {
        return Err("elements are listed, or come from levels or a table".to_string());
    }
    if let (false, Some(_)) = (elements.is_empty(), &dimension.sort) {
        return Err("elements stand as they are listed: leave sort out".to_string());
    }
    if key.is_some() != parent.is_some() {
        return Err("key and parent go together".to_string());
    }
    if key.is_some() && !levels.is_empty() {
        return Err("a table has either levels, or key and parent".to_string());
    }
    if table.is_some() && key.is_none() && levels.is_empty() {
        return Err("a table needs levels, or key and parent".to_string());
    }
    if dimension.weight.is_some() && key.is_none() && table.is_some() {
        return Err("weight goes with key and parent".to_string());
    }
    if table.is_none() {
        if let Some(field) = dimension.text().first_given() {
            return Err(format!("{field} is about a table, and table is missing; facts have fields of their own"));
        }
        let of_a_table = [("key", key), ("weight", &dimension.weight), ("caption", &dimension.caption)];
        if let Some((field, _)) = of_a_table.iter().find(|(_, value)| value.is_some()) {
            return Err(format!("{field} names a column of a table, and table is missing"));
        }
        for (field, columns) in [("attributes", &dimension.attributes), ("names", &dimension.names)] {
            if !columns.is_empty() {
                return Err(format!("{field} are columns of a table, and table is missing"));
            }
        }
    }
    let is_of_time = table.is_none() && column.is_some() && !levels.is_empty();
    if is_of_time {
        TimeLevels::new(levels, FiscalYear::beginning(*fiscal_start))?;
        if dimension.sort.is_some() {
            return Err("levels of dates stand in the order of time: leave sort out".to_string());
        }
    } else if fiscal_start.is_some() {
        return Err("fiscal_start goes with levels of a column of dates".to_string());
    }
    Ok(())
}
