//! Definition files: YAML that says what a cube is made of, and names for what it derives.
//!
//! A [`Definition`] names the facts (a SQL query or files), the value or measures, and the dimensions, each by a form
//! of [`DimensionDefinition`]. [`parse`] reads it with line and column in every error; [`schema`] is its JSON Schema,
//! for editors. Nothing here reads a table: [`crate::build`] makes the cube of a definition.

mod definition;
mod named;
mod parse;
mod text;
mod time;

pub use definition::{
    Definition, DimensionDefinition, FactsDefinition, MeasureDefinition, StorageChoice, UnknownElements,
    ValueDefinition, ValueTypeText,
};
pub use named::Named;
pub use parse::{DefinitionError, parse, place_of, schema};
pub use text::{ColumnType, DatePattern, Encoding, NumberStyle, TextFormat};
pub use time::{FiscalYear, MonthName, TimeLevel, TimeLevels};
