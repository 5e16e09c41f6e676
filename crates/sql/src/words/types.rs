//! SQL's names of types for Arrow's: `Int64` is BIGINT, `Timestamp(µs, "UTC")` TIMESTAMP WITH TIME ZONE.
//!
//! What stands in quotes is a value or a name of the user's and stays.

use arrow::datatypes::{DataType, Field};

use crate::extension_types::ExtensionType;

/// Types without parameters.
const PLAIN: [(&str, &str); 19] = [
    ("Boolean", "BOOLEAN"),
    ("Int8", "TINYINT"),
    ("Int16", "SMALLINT"),
    ("Int32", "INT"),
    ("Int64", "BIGINT"),
    ("UInt8", "TINYINT UNSIGNED"),
    ("UInt16", "SMALLINT UNSIGNED"),
    ("UInt32", "INT UNSIGNED"),
    ("UInt64", "BIGINT UNSIGNED"),
    ("Float32", "REAL"),
    ("Float64", "DOUBLE"),
    ("Utf8", "VARCHAR"),
    ("Utf8View", "VARCHAR"),
    ("LargeUtf8", "VARCHAR"),
    ("Date32", "DATE"),
    ("Date64", "DATE"),
    ("Binary", "BLOB"),
    ("BinaryView", "BLOB"),
    ("LargeBinary", "BLOB"),
];
/// Types with parameters in parentheses.
const WITH_PARAMETERS: [&str; 15] = [
    "Timestamp",
    "Time32",
    "Time64",
    "Duration",
    "Interval",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Decimal256",
    "List",
    "LargeList",
    "Dictionary",
    "FixedSizeBinary",
    "Struct",
    "Map",
];

/// The type of a field as SQL calls it.
pub fn type_name(field: &Field) -> String {
    let extension = ExtensionType::of(field).or_else(|| ExtensionType::unread(field));
    extension.map_or_else(|| sql_name(field.data_type()), |extension| extension.name().to_string())
}

/// A type as SQL calls it; what has only NULLs is text, as PostgreSQL has it.
pub(crate) fn sql_name(data_type: &DataType) -> String {
    let items = |field: &Field| match field.data_type() {
        DataType::Null => "NULL".into(),
        other => sql_name(other),
    };
    match data_type {
        DataType::Null => "VARCHAR".into(),
        DataType::List(field) | DataType::LargeList(field) => format!("{}[]", items(field)),
        DataType::FixedSizeList(field, length) => format!("{}[{length}]", items(field)),
        DataType::Struct(fields) => {
            let members = fields.iter().map(|field| format!("{} {}", member_name(field.name()), items(field)));
            format!("STRUCT({})", members.collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                format!("MAP({})", fields.iter().map(|field| items(field)).collect::<Vec<_>>().join(", "))
            }
            _ => "MAP".into(),
        },
        other => types_in_sql(&other.to_string()),
    }
}

/// The name of a struct's member, in quotes where a statement needs them.
fn member_name(name: &str) -> String {
    let is_plain = |(at, c): (usize, char)| c.is_ascii_lowercase() || c == '_' || at > 0 && c.is_ascii_digit();
    match !name.is_empty() && name.chars().enumerate().all(is_plain) {
        true => name.into(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A text with SQL's names of types.
pub(crate) fn types_in_sql(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_inner = said.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        let taken = match first {
            // An apostrophe within a word opens nothing.
            '\'' | '"' if !is_inner => rest[1..].find(first).map(|end| (rest[..end + 2].to_string(), end + 2)),
            'A'..='Z' if !is_inner => name(rest),
            _ => None,
        };
        let (shown, length) = taken.unwrap_or_else(|| (first.to_string(), first.len_utf8()));
        said.push_str(&shown);
        rest = &rest[length..];
    }
    said
}

/// The name in SQL of the type that a text begins with, and the bytes that it takes.
fn name(text: &str) -> Option<(String, usize)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if let Some((_, shown)) = PLAIN.iter().find(|(arrow, _)| *arrow == word) {
        return Some((shown.to_string(), end));
    }
    if !WITH_PARAMETERS.contains(&word) || !rest.starts_with('(') {
        return None;
    }
    let close = super::closing(text, end)?;
    let parameters = &text[end + 1..close - 1];
    let shown = match word {
        "Timestamp" => timestamp(parameters),
        "Time32" | "Time64" => "TIME".into(),
        "Duration" | "Interval" => "INTERVAL".into(),
        "List" | "LargeList" => {
            let element = parameters.trim_start_matches("non-null ");
            format!("{}[]", types_in_sql(element.split_once(", field").map_or(element, |(element, _)| element)))
        }
        "Dictionary" => types_in_sql(parameters.split_once(", ").map_or(parameters, |(_, values)| values)),
        "FixedSizeBinary" => "BLOB".into(),
        // As a cast names its fields.
        "Struct" => format!("STRUCT<{}>", types_in_sql(parameters).replace("non-null ", "").replace("\": ", "\" ")),
        "Map" => {
            let open = parameters.find("Struct(")? + "Struct".len();
            let members = &parameters[open + 1..super::closing(parameters, open)? - 1];
            let key = members.strip_prefix('"')?.split_once("\": ")?.1.trim_start_matches("non-null ");
            let (key_type, length) = name(key)?;
            let value = key[length..].split_once("\": ")?.1.trim_start_matches("non-null ");
            format!("MAP({key_type}, {})", types_in_sql(value))
        }
        _ => format!("DECIMAL({parameters})"),
    };
    Some((shown, close))
}

/// A timestamp by its unit and zone; without a precision it has microseconds.
fn timestamp(parameters: &str) -> String {
    let precision = match parameters.split(',').next().unwrap_or_default() {
        "s" | "Second" => "(0)",
        "ms" | "Millisecond" => "(3)",
        "ns" | "Nanosecond" => "(9)",
        _ => "",
    };
    let has_zone = parameters.contains('"') || parameters.contains("Some(");
    format!("TIMESTAMP{precision}{}", if has_zone { " WITH TIME ZONE" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_sql() {
        for (theirs, ours) in [
            ("Cannot cast string 'Int32' to value of Int32 type", "Cannot cast string 'Int32' to value of INT type"),
            ("Unsupported CAST from List(Int64) to Date32", "Unsupported CAST from BIGINT[] to DATE"),
            ("Timestamp(ns) + Timestamp(µs, \"+00:00\")", "TIMESTAMP(9) + TIMESTAMP WITH TIME ZONE"),
            ("Timestamp(Microsecond, None) - Timestamp(s)", "TIMESTAMP - TIMESTAMP(0)"),
            ("Dictionary(Int32, Utf8) = Decimal128(12, 2)", "VARCHAR = DECIMAL(12, 2)"),
            (
                "column \"Int64\" isn't a Float64Array, can't be Boolean",
                "column \"Int64\" isn't a Float64Array, can't be BOOLEAN",
            ),
            ("keys of type Struct(\"a\": non-null Int64)", "keys of type STRUCT<\"a\" BIGINT>"),
            (
                "Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": List(Int32)), unsorted)",
                "MAP(VARCHAR, INT[])",
            ),
            ("the Interval of a Decimal, List", "the Interval of a Decimal, List"),
            ("sum(Interval(MonthDayNano), Duration(ns))", "sum(INTERVAL, INTERVAL)"),
        ] {
            assert_eq!(types_in_sql(theirs), ours);
        }
    }

    #[test]
    fn types_of_several_values_name_those() {
        let field = |name: &str, of: DataType| Field::new(name, of, true);
        let list = DataType::new_list(DataType::Int64, true);
        let of = DataType::Struct(vec![field("a", list), field("A b\"", DataType::Null)].into());
        assert_eq!(sql_name(&of), "STRUCT(a BIGINT[], \"A b\"\"\" NULL)");
        let entries = vec![field("key", DataType::Utf8), field("value", DataType::Int32)];
        let map = DataType::Map(Field::new("entries", DataType::Struct(entries.into()), false).into(), false);
        assert_eq!(sql_name(&map), "MAP(VARCHAR, INT)");
        assert_eq!(sql_name(&DataType::new_fixed_size_list(DataType::Float32, 3, true)), "REAL[3]");
    }
}
