//! JSON in texts: what a path finds, and what a text has.
//!
//! A path is `$.name.other[0]`, with `"…"` around names of other characters and `#-1` for the last element; or it is a
//! pointer, `/name/0`. Any other text is the name of a member, a number an element, those below 0 from the end. Whole
//! numbers keep their digits ([`super::json_numbers`]), others are doubles.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use arrow::json::writer::{NullableEncoder, make_encoder};
use arrow::json::{Encoder, EncoderFactory, EncoderOptions};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::logical_expr::{Expr, lit};
use serde_json::Value;

use crate::nested_texts::with_texts_of_times;

use super::json_numbers::{digits, parsed, unmarked, written};
use super::{Any, Arguments, Boolean, Json, Long, Own, Text, Texts, raised};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("as_json", &[Text], Json, |args| args.texts(|row| checked(args.text(0).value(row)).map(Some))),
    Own::new("as_json", &[Any], Json, to_json),
    Own::new("try_as_json", &[Text], Json, |args| args.texts(|row| Ok(checked(args.text(0).value(row)).ok()))),
    Own::new("try_as_json", &[Any], Json, to_json),
    Own::new("json", &[Text], Json, |args| args.texts(|row| Ok(Some(written(&parsed(args.text(0).value(row))?))))),
    Own::new("json_array", &[Any], Json, json_array).repeating_last(),
    Own::new("json_array_length", &[Text], Long, length),
    Own::new("json_array_length", &[Text, Text], Long, length),
    Own::new("json_contains", &[Text, Text], Boolean, |args| {
        args.booleans(|row| {
            let [whole, part] = [0, 1].map(|place| parsed(args.text(place).value(row)));
            Ok(Some(contains(&whole?, &part?)))
        })
    }),
    Own::new("json_exists", &[Text, Text], Boolean, |args| args.booleans(|row| Ok(Some(found(args, row)?.is_some())))),
    Own::new("json_extract", &[Text, Text], Json, extract),
    Own::new("json_extract", &[Text, Long], Json, extract),
    Own::new("json_extract_list", &[Text, Text], Texts, |args| all_found(args, |value| Some(written(&value)))),
    Own::new("json_extract_string_list", &[Text, Text], Texts, |args| all_found(args, shown)),
    Own::new("json_extract_string", &[Text, Text], Text, extract_string),
    Own::new("json_extract_string", &[Text, Long], Text, extract_string),
    Own::new("json_keys", &[Text], Texts, keys),
    Own::new("json_keys", &[Text, Text], Texts, keys),
    Own::new("json_merge_patch", &[Text, Text], Json, |args| {
        args.texts(|row| {
            let (mut value, patch) = (parsed(args.text(0).value(row))?, parsed(args.text(1).value(row))?);
            patched(&mut value, patch);
            Ok(Some(written(&value)))
        })
    }),
    Own::new("json_object", &[Any], Json, json_object).repeating_last(),
    Own::new("json_pretty", &[Text], Text, |args| {
        args.texts(|row| {
            let value = parsed(args.text(0).value(row))?;
            serde_json::to_string_pretty(&value)
                .map(|text| Some(unmarked(text)))
                .map_err(|error| raised(error.to_string()))
        })
    }),
    Own::new("json_strip_nulls", &[Text], Json, |args| {
        args.texts(|row| {
            let mut value = parsed(args.text(0).value(row))?;
            strip_nulls(&mut value);
            Ok(Some(written(&value)))
        })
    }),
    Own::new("json_type", &[Text], Text, |args| {
        args.texts(|row| Ok(found(args, row)?.map(|value| duckdb_type(&value))))
    }),
    Own::new("json_type", &[Text, Text], Text, |args| {
        args.texts(|row| Ok(found(args, row)?.map(|value| duckdb_type(&value))))
    }),
    Own::new("json_typeof", &[Text], Text, |args| {
        args.texts(|row| Ok(found(args, row)?.map(|value| postgres_type(&value))))
    }),
    Own::new("json_valid", &[Text], Boolean, |args| {
        args.booleans(|row| Ok(Some(serde_json::from_str::<Value>(args.text(0).value(row)).is_ok())))
    }),
    Own::new("json_value", &[Text, Text], Text, |args| {
        args.texts(|row| Ok(found(args, row)?.filter(|value| !value.is_object() && !value.is_array()).and_then(shown)))
    }),
    Own::new("to_json", &[Any], Json, to_json),
];

/// A text that is JSON, as it is.
pub(super) fn checked(text: &str) -> Result<String> {
    parsed(text).map(|_| text.to_string())
}

/// What the path of a row finds; all of the text where the function has none.
fn found(args: &Arguments, row: usize) -> Result<Option<Value>> {
    let value = parsed(args.text(0).value(row))?;
    match args.columns.get(1).map(|column| column.data_type()) {
        None => Ok(Some(value)),
        Some(DataType::Int64) => Ok(element(value, args.longs(1).value(row))),
        Some(_) => {
            let (path, steps) = (args.text(1).value(row), steps(args.text(1).value(row))?);
            match steps.iter().any(|step| matches!(step, Step::All)) {
                true => Err(raised(format!("'{path}' leads to several values; json_extract takes it as a constant"))),
                false => Ok(at_path(value, steps)),
            }
        }
    }
}

fn extract(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| Ok(found(args, row)?.map(|value| written(&value))))
}

fn extract_string(args: &Arguments) -> Result<ArrayRef> {
    args.texts(|row| Ok(found(args, row)?.and_then(shown)))
}

/// The values that a path with `*` leads to.
fn all_found(args: &Arguments, shown: fn(Value) -> Option<String>) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    let found = args.each(|row| {
        let (value, steps) = (parsed(args.text(0).value(row))?, steps(args.text(1).value(row))?);
        let at = |values: Vec<Value>, step: &Step| -> Vec<Value> {
            values.into_iter().flat_map(|value| all_at(value, step)).collect()
        };
        Ok(Some(steps.iter().fold(vec![value], at)))
    })?;
    for list in found {
        lists.append_option(list.map(|list| list.into_iter().map(shown)));
    }
    Ok(Arc::new(lists.finish()))
}

/// The values at a step.
fn all_at(value: Value, step: &Step) -> Vec<Value> {
    match (step, value) {
        (Step::All, Value::Object(members)) => members.into_iter().map(|(_, value)| value).collect(),
        (Step::All, Value::Array(elements)) => elements,
        (Step::All, _) => Vec::new(),
        (Step::Member(name) | Step::Either(name), Value::Object(mut members)) => {
            members.remove(name).into_iter().collect()
        }
        (Step::Element(place), value) => element(value, *place).into_iter().collect(),
        (Step::Either(place), value) => {
            place.parse().ok().and_then(|place| element(value, place)).into_iter().collect()
        }
        (Step::Member(_), _) => Vec::new(),
    }
}

/// A value as SQL has it: a text without quotes, NULL of null.
fn shown(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        number if digits(&number).is_some() => Some(written(&number)),
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn length(args: &Arguments) -> Result<ArrayRef> {
    args.integers(|row| match found(args, row)? {
        None => Ok(None),
        Some(Value::Array(elements)) => Ok(Some(elements.len() as i64)),
        Some(other) => Err(raised(format!("json_array_length of {}, which is no array", written(&other)))),
    })
}

fn keys(args: &Arguments) -> Result<ArrayRef> {
    args.lists(|row| {
        Ok(found(args, row)?.map(|value| match value {
            Value::Object(members) => members.keys().cloned().collect(),
            _ => Vec::new(),
        }))
    })
}

/// A step of a path.
pub(super) enum Step {
    /// All members of an object, or all elements of an array.
    All,
    Member(String),
    Element(i64),
    /// A number of a pointer: an element, or the name of a member.
    Either(String),
}

/// The steps of a path.
///
/// # Errors
/// A path that begins with `$` and goes on otherwise than paths do.
pub(super) fn steps(path: &str) -> Result<Vec<Step>> {
    if let Some(pointer) = path.strip_prefix('/') {
        let step = |name: &str| match name.parse::<i64>() {
            Ok(_) => Step::Either(name.to_string()),
            Err(_) => Step::Member(name.replace("~1", "/").replace("~0", "~")),
        };
        return Ok(pointer.split('/').map(step).collect());
    }
    let Some(mut rest) = path.strip_prefix('$') else { return Ok(vec![Step::Member(path.to_string())]) };
    let refused = || raised(format!("'{path}' is no path of JSON; there are '$.name', '$[0]', '/name/0'"));
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let all = ["[*]", ".*"].into_iter().find_map(|all| rest.strip_prefix(all));
        let (step, after) = if let Some(after) = all {
            (Step::All, after)
        } else if let Some(quoted) = rest.strip_prefix(".\"") {
            let (name, after) = quoted.split_once('"').ok_or_else(refused)?;
            (Step::Member(name.to_string()), after)
        } else if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
            (Step::Member(Some(name).filter(|name| !name.is_empty()).ok_or_else(refused)?.to_string()), after)
        } else {
            let (index, after) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(refused)?;
            let index = index.strip_prefix('#').unwrap_or(index);
            (Step::Element(index.parse().map_err(|_| refused())?), after)
        };
        steps.push(step);
        rest = after;
    }
    Ok(steps)
}

/// Whether a path may lead to several values.
pub(crate) fn leads_to_several(path: &str) -> bool {
    steps(path).is_ok_and(|steps| steps.iter().any(|step| matches!(step, Step::All)))
}

fn at_path(value: Value, steps: Vec<Step>) -> Option<Value> {
    steps.into_iter().try_fold(value, |value, step| match (step, value) {
        (Step::Member(name) | Step::Either(name), Value::Object(mut members)) => members.remove(&name),
        (Step::Element(place), value @ Value::Array(_)) => element(value, place),
        (Step::Either(place), value @ Value::Array(_)) => element(value, place.parse().ok()?),
        _ => None,
    })
}

/// An element of an array, from the end below 0.
fn element(value: Value, place: i64) -> Option<Value> {
    let Value::Array(mut elements) = value else { return None };
    let place = if place < 0 { place + elements.len() as i64 } else { place };
    let place = usize::try_from(place).ok().filter(|place| *place < elements.len())?;
    Some(elements.swap_remove(place))
}

/// Whether a value covers another, or one within it does.
fn contains(whole: &Value, part: &Value) -> bool {
    let mut within: Box<dyn Iterator<Item = &Value>> = match whole {
        Value::Object(members) => Box::new(members.values()),
        Value::Array(elements) => Box::new(elements.iter()),
        _ => Box::new(std::iter::empty()),
    };
    covers(whole, part) || within.any(|whole| contains(whole, part))
}

/// Whether a value has all members of another, each of its elements, or is that value.
fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| covers(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| covers(whole, part)))
        }
        (whole, part) => whole == part,
    }
}

/// Merges a patch into a value (RFC 7396): members that are null go.
fn patched(value: &mut Value, patch: Value) {
    let Value::Object(changes) = patch else {
        *value = patch;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(members) = value else { return };
    for (name, change) in changes {
        match change {
            Value::Null => _ = members.shift_remove(&name),
            change => patched(members.entry(name).or_insert(Value::Null), change),
        }
    }
}

/// Takes members that are null out of all objects.
fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(strip_nulls);
        }
        Value::Array(elements) => elements.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

pub(super) fn duckdb_type(value: &Value) -> String {
    let name = match value {
        Value::String(_) if digits(value).is_some() => "DOUBLE",
        Value::Null => "NULL",
        Value::Bool(_) => "BOOLEAN",
        Value::Number(number) if number.is_u64() => "UBIGINT",
        Value::Number(number) if number.is_i64() => "BIGINT",
        Value::Number(_) => "DOUBLE",
        Value::String(_) => "VARCHAR",
        Value::Array(_) => "ARRAY",
        Value::Object(_) => "OBJECT",
    };
    name.to_string()
}

fn postgres_type(value: &Value) -> String {
    let name = match value {
        Value::String(_) if digits(value).is_some() => "number",
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    name.to_string()
}

/// The only member of a struct whose text is JSON as it is.
const AS_IT_IS: &str = "\u{2063}json";

/// JSON as an argument that is not written as a text.
pub(super) fn as_it_is(json: Expr) -> Expr {
    named_struct(vec![lit(AS_IT_IS), json])
}

/// Writes JSON as it is, however deep within lists and structs.
#[derive(Debug)]
struct AsItIs;

impl EncoderFactory for AsItIs {
    fn make_default_encoder<'a>(
        &self,
        _field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> std::result::Result<Option<NullableEncoder<'a>>, ArrowError> {
        let Some(json) = array.as_struct_opt().and_then(|of| of.column_by_name(AS_IT_IS)) else { return Ok(None) };
        let texts = cast(json, &DataType::Utf8)?.as_string::<i32>().clone();
        let nulls = texts.nulls().cloned();
        Ok(Some(NullableEncoder::new(Box::new(Raw(texts)), nulls)))
    }
}

/// Texts of JSON.
struct Raw(StringArray);

impl Encoder for Raw {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.value(row).as_bytes());
    }
}

/// The JSON of each row of each argument, NULL as null.
fn encoded(args: &Arguments) -> Result<Vec<Vec<String>>> {
    let options = EncoderOptions::default().with_explicit_nulls(true).with_encoder_factory(Arc::new(AsItIs));
    let texts = |column: &ArrayRef| {
        let column = with_texts_of_times(column)?;
        let field = Arc::new(Field::new("", column.data_type().clone(), true));
        let mut encoder = make_encoder(&field, column.as_ref(), &options)?;
        let text = |row| {
            let mut text = Vec::new();
            match encoder.is_null(row) || column.data_type().is_null() {
                true => text.extend_from_slice(b"null"),
                false => encoder.encode(row, &mut text),
            }
            String::from_utf8(text).map_err(|error| raised(error.to_string()))
        };
        (0..args.rows).map(text).collect()
    };
    args.columns.iter().map(texts).collect()
}

fn to_json(args: &Arguments) -> Result<ArrayRef> {
    let texts = encoded(args)?.pop().unwrap_or_default();
    args.texts(|row| Ok(Some(texts[row].clone())))
}

fn json_array(args: &Arguments) -> Result<ArrayRef> {
    let texts = encoded(args)?;
    let array = |row: usize| {
        let elements: Vec<&str> = texts.iter().map(|column| column[row].as_str()).collect();
        format!("[{}]", elements.join(","))
    };
    Ok(Arc::new((0..args.rows).map(|row| Some(array(row))).collect::<StringArray>()))
}

/// An object of names and values in turn.
fn json_object(args: &Arguments) -> Result<ArrayRef> {
    let is_name = |column: &ArrayRef| column.data_type().is_string();
    if !args.columns.len().is_multiple_of(2) || !args.columns.iter().step_by(2).all(is_name) {
        return Err(raised("json_object takes names, which are texts, and values in turn".into()));
    }
    let texts = encoded(args)?;
    let object = |row: usize| {
        let member = |pair: &[Vec<String>]| format!("{}:{}", pair[0][row], pair[1][row]);
        let is_named = |(at, _): &(usize, &[Vec<String>])| args.columns[at * 2].is_valid(row);
        match texts.chunks(2).enumerate().all(|pair| is_named(&pair)) {
            true => Ok(format!("{{{}}}", texts.chunks(2).map(member).collect::<Vec<_>>().join(","))),
            false => Err(raised("json_object with a name that is NULL".into())),
        }
    };
    Ok(Arc::new((0..args.rows).map(|row| object(row).map(Some)).collect::<Result<StringArray>>()?))
}
