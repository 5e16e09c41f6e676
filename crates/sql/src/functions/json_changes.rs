//! JSON with some of its values changed, put in a form, or described.

use std::collections::BTreeMap;

use datafusion::error::Result;
use serde_json::{Value, json};

use super::json::{Step, duckdb_type, steps};
use super::json_numbers::{parsed, written};
use super::{Arguments, Json, Own, Text};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("json_deep_merge", &[Text, Text], Json, |args| {
        args.texts(|row| {
            let (mut value, other) = (parsed(args.text(0).value(row))?, parsed(args.text(1).value(row))?);
            merge(&mut value, other);
            Ok(Some(written(&value)))
        })
    }),
    Own::new("json_insert", &[Text, Text, Text], Json, |args| changed(args, Change { adds: true, replaces: false })),
    Own::new("json_normalize", &[Text], Text, |args| {
        args.texts(|row| Ok(Some(written(&in_order(parsed(args.text(0).value(row))?)))))
    }),
    Own::new("json_remove", &[Text, Text], Json, |args| {
        args.texts(|row| Ok(without(parsed(args.text(0).value(row))?, &steps(args.text(1).value(row))?)))
    }),
    Own::new("json_replace", &[Text, Text, Text], Json, |args| changed(args, Change { adds: false, replaces: true })),
    Own::new("json_set", &[Text, Text, Text], Json, |args| changed(args, Change { adds: true, replaces: true })),
    Own::new("json_structure", &[Text], Json, |args| {
        args.texts(|row| Ok(Some(structure(&parsed(args.text(0).value(row))?).to_string())))
    }),
];

/// What a function does at its path.
#[derive(Clone, Copy)]
struct Change {
    /// Whether it adds a member, or an element behind the last one.
    adds: bool,
    /// Whether it changes what is there.
    replaces: bool,
}

fn changed(args: &Arguments, change: Change) -> Result<arrow::array::ArrayRef> {
    args.texts(|row| {
        let [mut value, new] = [0, 2].map(|place| parsed(args.text(place).value(row)));
        if let Ok(value) = &mut value {
            put(value, &steps(args.text(1).value(row))?, new?, change);
        }
        value.map(|value| Some(written(&value)))
    })
}

/// Puts a value at a path; objects on its way that are lacking are made.
fn put(value: &mut Value, path: &[Step], new: Value, change: Change) {
    let Some((step, rest)) = path.split_first() else {
        if change.replaces {
            *value = new;
        }
        return;
    };
    match (step, value) {
        (Step::Member(name) | Step::Either(name), Value::Object(members)) => match members.get_mut(name) {
            Some(member) => put(member, rest, new, change),
            None if change.adds && rest.iter().all(|step| matches!(step, Step::Member(_))) => {
                let within = |new: Value, step: &Step| match step {
                    Step::Member(name) => json!({ name: new }),
                    _ => new,
                };
                members.insert(name.clone(), rest.iter().rev().fold(new, within));
            }
            None => {}
        },
        (step, Value::Array(elements)) => {
            let count = elements.len();
            let Some(place) = place_of(step, count) else { return };
            match elements.get_mut(place) {
                Some(element) => put(element, rest, new, change),
                None if change.adds && rest.is_empty() && place == count => elements.push(new),
                None => {}
            }
        }
        _ => {}
    }
}

/// The place of an element, from the end below 0.
fn place_of(step: &Step, elements: usize) -> Option<usize> {
    let place = match step {
        Step::Element(place) => *place,
        Step::Either(digits) => digits.parse().ok()?,
        Step::Member(_) | Step::All => return None,
    };
    usize::try_from(if place < 0 { place + elements as i64 } else { place }).ok()
}

/// JSON without what is at a path; none where that is all of it.
fn without(mut value: Value, path: &[Step]) -> Option<String> {
    let (last, way) = path.split_last()?;
    let mut holder = Some(&mut value);
    for step in way {
        holder = holder.and_then(|holder| match (step, holder) {
            (Step::Member(name) | Step::Either(name), Value::Object(members)) => members.get_mut(name),
            (step, Value::Array(elements)) => {
                let place = place_of(step, elements.len())?;
                elements.get_mut(place)
            }
            _ => None,
        });
    }
    match (last, holder) {
        (Step::Member(name) | Step::Either(name), Some(Value::Object(members))) => _ = members.shift_remove(name),
        (step, Some(Value::Array(elements))) => {
            if let Some(place) = place_of(step, elements.len()).filter(|place| *place < elements.len()) {
                elements.remove(place);
            }
        }
        _ => {}
    }
    Some(written(&value))
}

/// Merges objects member by member; other values take the place of those there, but for null.
fn merge(value: &mut Value, other: Value) {
    match (value, other) {
        (_, Value::Null) => {}
        (Value::Object(members), Value::Object(others)) => {
            for (name, other) in others {
                match members.get_mut(&name) {
                    Some(member) => merge(member, other),
                    None if other.is_null() => {}
                    None => _ = members.insert(name, other),
                }
            }
        }
        (value, other) => *value = other,
    }
}

/// JSON whose members are in the order of their names.
fn in_order(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<String, Value> = members.into_iter().collect();
            Value::Object(sorted.into_iter().map(|(name, value)| (name, in_order(value))).collect())
        }
        Value::Array(elements) => Value::Array(elements.into_iter().map(in_order).collect()),
        other => other,
    }
}

/// The types of a value and of what is in it.
fn structure(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), structure(value))).collect())
        }
        Value::Array(elements) => {
            let common = elements.iter().map(structure).reduce(common);
            json!([common.unwrap_or_else(|| json!("NULL"))])
        }
        single => json!(duckdb_type(single)),
    }
}

/// The type that has the values of both: numbers have a wider one, objects the members of both, others JSON.
fn common(one: Value, other: Value) -> Value {
    const NUMBERS: [&str; 4] = ["UBIGINT", "BIGINT", "HUGEINT", "DOUBLE"];
    let number = |of: &Value| NUMBERS.iter().position(|name| of == name);
    match (one, other) {
        (one, other) if one == other || other == "NULL" => one,
        (one, other) if one == "NULL" => other,
        (one, other) if number(&one).is_some() && number(&other).is_some() => {
            match number(&one).max(number(&other)).unwrap_or_default() {
                // With a sign and without one: no integer of 64 bits holds both.
                1 => json!("HUGEINT"),
                widest => json!(NUMBERS[widest]),
            }
        }
        (Value::Object(mut members), Value::Object(others)) => {
            for (name, other) in others {
                match members.get_mut(&name) {
                    Some(member) => *member = common(member.take(), other),
                    None => _ = members.insert(name, other),
                }
            }
            Value::Object(members)
        }
        (Value::Array(one), Value::Array(other)) => {
            let both = one.into_iter().chain(other).reduce(common);
            json!([both.unwrap_or_else(|| json!("NULL"))])
        }
        _ => json!("JSON"),
    }
}
