//! Texts that become timestamps without a zone, dates or times of day keep what their clock shows.
//!
//! Arrow 59 moves `2024-01-01 08:00:00+02` to UTC before it forgets the zone: 06:00, and for a text near midnight
//! another day. As in PostgreSQL, the zone of a text is left out where the target has none. Instants (TIMESTAMP WITH
//! TIME ZONE) read it.
//!
//! The file goes once Arrow's cast to a timestamp without a zone ignores the offset.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::conversion::Conversion;
use super::each_value;

/// The operand without its zone, of a cast of a text to a type without one.
pub(super) fn operand(cast: &Conversion) -> Option<Expr> {
    if !is_on_wall(cast.to) || !cast.is_of_text() {
        return None;
    }
    match cast.operand {
        Expr::Literal(value, metadata) => {
            let text = value.try_as_str().flatten()?;
            let bare = without_zone(text);
            let literal = || Expr::Literal(ScalarValue::Utf8(Some(bare.to_string())), metadata.clone());
            (text != bare).then(literal)
        }
        Expr::ScalarFunction(function) if function.name() == NAME => None,
        operand => Some(FUNCTION.call(vec![operand.clone()])),
    }
}

fn is_on_wall(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Timestamp(_, None) | Date32 | Date64 | Time32(_) | Time64(_))
}

/// The text of a time of day or a timestamp without the offset or the name of a zone at its end.
fn without_zone(text: &str) -> &str {
    let Some(colon) = text.find(':') else { return text };
    let is_clock = |character: char| character.is_ascii_digit() || matches!(character, ':' | '.');
    let end = text[colon..].find(|character: char| !is_clock(character)).map_or(text.len(), |end| colon + end);
    let zone = text[end..].trim();
    let is_zone = || zone.eq_ignore_ascii_case("z") || zone.parse::<Tz>().is_ok();
    if !zone.is_empty() && is_zone() { &text[..end] } else { text }
}

/// The function's name in plans that travel.
const NAME: &str = "warpcube_without_zone";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(WithoutZone { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == NAME).then(|| FUNCTION.clone())
}

/// Texts without their zones; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutZone {
    signature: Signature,
}

impl ScalarUDFImpl for WithoutZone {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeUtf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each_value(&arguments.args[0], |texts| {
            let texts = cast(texts, &DataType::LargeUtf8)?;
            let bare: LargeStringArray = texts.as_string::<i64>().iter().map(|text| text.map(without_zone)).collect();
            Ok(Arc::new(bare))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_left_out() {
        for (text, expected) in [
            ("2024-01-01 08:00:00+02", "2024-01-01 08:00:00"),
            ("2024-01-01T08:00:00.5-0530", "2024-01-01T08:00:00.5"),
            ("2024-01-01T08:00:00z", "2024-01-01T08:00:00"),
            ("2024-01-01 08:00:00 +01:00", "2024-01-01 08:00:00"),
            ("2024-01-01 08:00:00 Europe/Berlin", "2024-01-01 08:00:00"),
            ("08:00:00+02", "08:00:00"),
            ("2024-01-01 08:00:00", "2024-01-01 08:00:00"),
            ("2024-01-01", "2024-01-01"),
            ("2024-01-01 08:00:00 PM", "2024-01-01 08:00:00 PM"),
            ("2024-01-01 08:00:00 Mars/Olympus", "2024-01-01 08:00:00 Mars/Olympus"),
            ("10:00+x", "10:00+x"),
            ("", ""),
        ] {
            assert_eq!(without_zone(text), expected, "{text}");
        }
    }
}
