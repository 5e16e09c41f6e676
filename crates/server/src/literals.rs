//! Values of JSON as constants of SQL.

use serde_json::Value;
use warpcube_door::{Parameters, text};

/// The parameters of an array, by their places, or of an object, by their names.
///
/// # Errors
/// Any other value.
pub(crate) fn parameters(values: &Value) -> Result<Parameters, String> {
    match values {
        Value::Array(values) => Ok(Parameters::Ordered(values.iter().map(literal).collect())),
        Value::Object(values) => {
            Ok(Parameters::Named(values.iter().map(|(name, value)| (name.clone(), literal(value))).collect()))
        }
        _ => Err("params is an array or an object".into()),
    }
}

/// The constant of a value; parentheses keep it whole wherever it stands.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Bool(value) => if *value { "TRUE" } else { "FALSE" }.into(),
        Value::Number(number) if number.is_f64() => format!("CAST('{number}' AS DOUBLE)"),
        Value::Number(number) if number.is_u64() => number.to_string(),
        Value::Number(number) => format!("({number})"),
        Value::String(value) => text(value),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}: {}", text(name), literal(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_constants_that_nothing_breaks_out_of() {
        for (value, constant) in [
            (json!(null), "NULL"),
            (json!(true), "TRUE"),
            (json!(7), "7"),
            (json!(-7), "(-7)"),
            (json!(1.5), "CAST('1.5' AS DOUBLE)"),
            (json!("it's; -- \\'"), "'it''s; -- \\'''"),
            (json!([1, "a"]), "[1, 'a']"),
            (json!({"a'": [null]}), "{'a''': [NULL]}"),
        ] {
            assert_eq!(literal(&value), constant);
        }
        assert!(parameters(&json!("a")).is_err());
    }
}
