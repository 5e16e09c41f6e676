//! What a definition file says, as it stands there.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use warpcube_arrays::Scheme;

use super::text::{ColumnType, Encoding, TextFormat, give_text_format};
use super::{MonthName, Named};
use crate::model::{NumberFormat, Rule, SCALE_MAX, Span, ValueType};

/// A cube.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Warpcube cube definition")]
pub struct Definition {
    /// The cube's name.
    pub cube: String,
    /// Where its facts come from.
    pub facts: FactsDefinition,
    /// What a value is; of measures, those that say nothing else.
    #[serde(default)]
    pub value: ValueDefinition,
    /// Measures by name. Without them the cube has one, the sum of the column that `facts.value` names.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub measures: Named<MeasureDefinition>,
    /// Dimensions by name, in the order of cells' coordinates.
    pub dimensions: Named<DimensionDefinition>,
    /// What happens to facts that name no base element, in dimensions that say nothing else.
    #[serde(default)]
    pub unknown: UnknownElements,
    /// The scheme in which the cube's facts are stored; bess without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageChoice>,
    /// Types of columns of all sources, by name: text, integer, decimal(n), double, date or date(DD.MM.YYYY). Columns
    /// of text files are text without it.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub types: Named<ColumnType>,
    /// The character between the values of a line of text files; their lines tell it without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// The character around values of text files that have delimiters in them; their lines tell it without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<char>,
    /// The character in front of the fraction of numbers in text; a point without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
    /// The character between thousands of numbers in text; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// How text files store characters: utf-8 (without it), utf-16, latin1 or windows-1252.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Whether the first line of text files has the names of columns; their lines tell it without it. Columns without
    /// names are column_1, column_2 and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
}

/// The scheme in which facts are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageChoice {
    /// The one with the smallest index, where that is clearly smaller than that of BESS.
    Auto,
    /// This one.
    Named(Scheme),
}

/// Where the facts of a cube come from: a query or files, one of the two.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactsDefinition {
    /// A SQL query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// A file, folder or pattern of files (Parquet, CSV, Arrow); the same as `SELECT * FROM 'file'`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The column of values, where the cube has no list of measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Types of columns of the facts, by name: text, integer, decimal(n), double, date or date(DD.MM.YYYY). Columns of
    /// text files are text without it.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub types: Named<ColumnType>,
    /// The character between the values of a line of text files; their lines tell it without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// The character around values of text files that have delimiters in them; their lines tell it without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<char>,
    /// The character in front of the fraction of numbers in text; a point without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
    /// The character between thousands of numbers in text; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// How text files store characters: utf-8 (without it), utf-16, latin1 or windows-1252.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Whether the first line of text files has the names of columns; their lines tell it without it. Columns without
    /// names are column_1, column_2 and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
}

/// What a value is and how it is shown.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueDefinition {
    /// Its type.
    #[serde(default, rename = "type")]
    pub value_type: ValueTypeText,
    /// How it is shown: a pattern of `#`, `0`, `,`, `.`, `%` and `;`, as spreadsheets have it.
    #[serde(default, deserialize_with = "pattern", skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// The type of a cube's values as a definition writes it: `double`, or `decimal(scale)` in 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueTypeText(pub ValueType);

/// A measure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureDefinition {
    /// The column of its values; `count` of rows needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// How values aggregate; `sum` by default.
    #[serde(default = "sum")]
    pub rule: Rule,
    /// How values aggregate along one dimension instead: first, last or average by position (time balance).
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub over: Named<Span>,
    /// Its type, if it is another than that of the cube's values.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub value_type: Option<ValueTypeText>,
    /// How it is shown, if otherwise than the cube's values.
    #[serde(default, deserialize_with = "pattern", skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// A dimension, in one of these forms:
///
///  - `{elements: […], consolidated: {name: {child: weight}}}`: elements as they are listed;
///  - `{table: file, levels: [outer, …, base]}`: a level for each column of a table;
///  - `{table: file, key: column, parent: column}`: a row for each element, with its parent;
///  - `{column: date, levels: [year, quarter, month, day]}`: levels of a column of dates;
///  - `{levels: [outer, …, base]}`: a level for each column of the facts;
///  - `{}`: the distinct values of a column of the facts, without a hierarchy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DimensionDefinition {
    /// The column of the facts that names base elements; by default the last level's, else the dimension's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// A file with a row for each element, or each path of levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Columns, or units of time, from the outermost level to the base.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "filled")]
    pub levels: Vec<String>,
    /// The month in which years begin: its English name or first three letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fiscal_start: Option<MonthName>,
    /// The table's column of elements, which the facts name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The table's column of parents; empty for roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The table's column of weights of elements in their parents; 1 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The table's column of captions, which are names too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Columns of the table with alternative names; one column may stand without brackets.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    pub names: Vec<String>,
    /// Columns of the table that become attributes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
    /// Number formats of elements by name: their attribute `number_format`.
    #[serde(skip_serializing_if = "Named::is_empty", deserialize_with = "patterns")]
    pub format: Named<String>,
    /// A column of numbers, dates or texts by which elements stand in order: of the table, else of the facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// Base elements in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "filled")]
    pub elements: Vec<String>,
    /// Consolidated elements by name, each with its children and their weights. They may be added to every form.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub consolidated: Named<Named<f64>>,
    /// An element over all roots, by this name. A listed consolidated element stands for its children there if all of
    /// them are roots, at weight 1; other listed ones stay beside it, so that nothing counts twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// The element that stands for the dimension where a query does not name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// What happens to facts that name no base element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<UnknownElements>,
    /// Types of columns of the table, by name: text, integer, decimal(n), double, date or date(DD.MM.YYYY). Columns of
    /// text files are text without it.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub types: Named<ColumnType>,
    /// The character between the values of a line of text files; their lines tell it without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<char>,
    /// The character around values of text files that have delimiters in them; their lines tell it without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<char>,
    /// The character in front of the fraction of numbers in text; a point without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<char>,
    /// The character between thousands of numbers in text; none without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// How text files store characters: utf-8 (without it), utf-16, latin1 or windows-1252.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Whether the first line of text files has the names of columns; their lines tell it without it. Columns without
    /// names are column_1, column_2 and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
}

/// What happens to a fact whose element is NULL, unknown or consolidated. Of the cube, `aside` keeps facts with NaN or
/// infinity aside, too; otherwise they are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UnknownElements {
    /// The load fails, and says which.
    #[default]
    Refuse,
    /// The fact is kept aside and counted.
    Aside,
    /// An element of that name is added, without a parent. NULL and consolidated elements are refused.
    Add,
    /// The fact counts for this base element.
    Named(String),
    /// The fact counts for a base element of this name, which is added if the dimension has none and a fact needs it.
    AddNamed(String),
}

give_text_format! { Definition FactsDefinition DimensionDefinition }

impl Definition {
    /// The definition with files that it names by relative paths taken from a folder; SQL text stays as it is.
    pub fn with_files_in(mut self, folder: &Path) -> Definition {
        let tables = self.dimensions.values_mut().filter_map(|dimension| dimension.table.as_mut());
        for file in tables.chain(self.facts.file.as_mut()) {
            if !file.contains("://") && Path::new(file).is_relative() {
                *file = folder.join(&*file).to_string_lossy().into_owned();
            }
        }
        self
    }
}

impl Default for ValueTypeText {
    fn default() -> Self {
        ValueTypeText(ValueType::Double)
    }
}

impl fmt::Display for ValueTypeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueType::Decimal { scale } => write!(f, "decimal({scale})"),
            ValueType::Double => f.write_str("double"),
        }
    }
}

impl FromStr for ValueTypeText {
    type Err = String;

    fn from_str(text: &str) -> Result<ValueTypeText, String> {
        let text = text.trim().to_ascii_lowercase();
        if text == "double" {
            return Ok(ValueTypeText(ValueType::Double));
        }
        let scale = text.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')'));
        match scale.and_then(|scale| scale.trim().parse::<u8>().ok()) {
            Some(scale) if scale <= SCALE_MAX => Ok(ValueTypeText(ValueType::Decimal { scale })),
            _ => Err(format!("no type {text:?}: double, or decimal(scale) with a scale of 0 to {}", SCALE_MAX)),
        }
    }
}

impl fmt::Display for UnknownElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnknownElements::Refuse => "refuse",
            UnknownElements::Aside => "aside",
            UnknownElements::Add => "add",
            UnknownElements::Named(name) => name,
            UnknownElements::AddNamed(name) => return write!(f, "add {name}"),
        })
    }
}

impl FromStr for UnknownElements {
    type Err = String;

    fn from_str(text: &str) -> Result<UnknownElements, String> {
        Ok(match text {
            "" => return Err("unknown: is refuse, aside, add, add NAME or the name of a base element".to_string()),
            "refuse" => UnknownElements::Refuse,
            "aside" => UnknownElements::Aside,
            "add" => UnknownElements::Add,
            name => match name.strip_prefix("add ").map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => UnknownElements::AddNamed(name.to_string()),
                None => UnknownElements::Named(name.to_string()),
            },
        })
    }
}

impl fmt::Display for StorageChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageChoice::Auto => f.write_str("auto"),
            StorageChoice::Named(scheme) => scheme.fmt(f),
        }
    }
}

impl FromStr for StorageChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<StorageChoice, String> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(StorageChoice::Auto);
        }
        text.parse().map(StorageChoice::Named).map_err(|_| {
            format!(
                "'{text}' is no storage scheme: auto, bess, coordinate, offset-value, xcrs, xccs, bxcrs or hybrid:r"
            )
        })
    }
}

/// The pattern of a number format, as it stands there.
fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let pattern = Option::<String>::deserialize(deserializer)?;
    if let Some(pattern) = &pattern {
        pattern.parse::<NumberFormat>().map_err(de::Error::custom)?;
    }
    Ok(pattern)
}

/// Patterns of number formats by name.
fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Named<String>, D::Error> {
    let patterns = Named::<String>::deserialize(deserializer)?;
    for (_, pattern) in patterns.iter() {
        pattern.parse::<NumberFormat>().map_err(de::Error::custom)?;
    }
    Ok(patterns)
}

/// A list of columns, or one alone.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(column) => vec![column],
        OneOrMany::Many(columns) => columns,
    })
}

/// A list that names something. An empty one would count as not given.
fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.is_empty() {
        true => Err(de::Error::custom("this list is empty: name at least one, or leave the field out")),
        false => Ok(names),
    }
}

fn sum() -> Rule {
    Rule::Sum
}

/// Types that a definition writes as one text.
macro_rules! written_as_text {
    ($($type:ty: $pattern:expr, $description:expr;)*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "pattern": $pattern, "description": $description})
            }
        }
    )*};
}

written_as_text! {
    ColumnType: "^(text|integer|double|date|date\\(.+\\)|decimal\\((\\d|1[0-8])\\))$",
        "text, integer, decimal(n), double, date, or date with a pattern as date(DD.MM.YYYY)";
    Encoding: "^(utf-8|utf-16|latin1|windows-1252)$", "utf-8, utf-16, latin1 or windows-1252";
    ValueTypeText: "^(double|decimal\\((\\d|1[0-8])\\))$", "double, or decimal(scale)";
    UnknownElements: "^.+$", "refuse, aside, add, add NAME, or the name of a base element";
    StorageChoice: "^(auto|bess|coordinate|offset-value|xcrs|xccs|bxcrs|hybrid:\\d+)$",
        "auto, or the name of a storage scheme";
    MonthName: "^[A-Za-z]{3,9}$", "The English name of a month, or its first three letters";
}
