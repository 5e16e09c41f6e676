//! PostgreSQL's operators of JSON that ask for a part: `@>`, `<@`, `?`, `?|` and `?&`, by its functions' names.

use arrow::array::AsArray;
use serde_json::Value;

use super::json_numbers::parsed;
use super::{Arguments, Boolean, Own, Text, Texts};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("jsonb_contains", &[Text, Text], Boolean, |args| {
        args.booleans(|row| {
            let [whole, part] = [0, 1].map(|place| parsed(args.text(place).value(row)));
            Ok(Some(has(&whole?, &part?)))
        })
    }),
    Own::new("jsonb_exists", &[Text, Text], Boolean, |args| {
        args.booleans(|row| Ok(Some(has_key(&parsed(args.text(0).value(row))?, args.text(1).value(row)))))
    }),
    Own::new("jsonb_exists_all", &[Text, Texts], Boolean, |args| {
        args.booleans(|row| {
            let value = parsed(args.text(0).value(row))?;
            Ok(Some(keys(args, row).iter().all(|key| has_key(&value, key))))
        })
    }),
    Own::new("jsonb_exists_any", &[Text, Texts], Boolean, |args| {
        args.booleans(|row| {
            let value = parsed(args.text(0).value(row))?;
            Ok(Some(keys(args, row).iter().any(|key| has_key(&value, key))))
        })
    }),
];

/// The texts of the second argument but for NULLs.
fn keys(args: &Arguments, row: usize) -> Vec<String> {
    let list = args.columns[1].as_list::<i32>().value(row);
    list.as_string::<i32>().iter().flatten().map(str::to_string).collect()
}

/// Whether a value has a member of that name, has the text as an element, or is the text.
fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(members) => members.contains_key(key),
        Value::Array(elements) => elements.iter().any(|element| element == key),
        other => other == key,
    }
}

/// Whether a value covers another; an array covers an element, too.
fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Array(elements), part) if !part.is_object() && !part.is_array() => {
            elements.iter().any(|element| covers(element, part))
        }
        _ => covers(whole, part),
    }
}

/// Whether a value has all members of another, each of its elements, or is that value; numbers are compared as such.
fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| covers(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|whole| covers(whole, part)))
        }
        (Value::Number(whole), Value::Number(part)) if whole.is_f64() != part.is_f64() => {
            whole.as_f64() == part.as_f64()
        }
        (whole, part) => whole == part,
    }
}
