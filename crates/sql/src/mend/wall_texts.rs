//! Texts that become timestamps without a zone, dates or times of day keep what their clock shows, and texts of all
//! times may leave out seconds.
//!
//! Arrow 59 moves `2024-01-01 08:00:00+02` to UTC before it forgets the zone: 06:00, and for a text near midnight
//! another day. As in PostgreSQL, the zone of a text is left out where the target has none. Instants (TIMESTAMP WITH
//! TIME ZONE) read it. Arrow asks for seconds, reads no time of day within a timestamp, and takes a number that is a
//! text, `'1'`, for nanoseconds of a time of day: here `2024-01-01 08:00` is read by all three, and a time of day has a
//! colon.
//!
//! The file goes once Arrow's casts of texts do so.

use std::borrow::Cow;
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
use crate::syntax;

/// What a text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wall {
    /// A date, with a time of day or without one.
    Day,
    /// A time of day alone.
    Time,
    /// An instant, by the zone of the text if it has one.
    Instant,
}

impl Wall {
    fn of(data_type: &DataType) -> Option<Wall> {
        use DataType::{Date32, Date64, Time32, Time64, Timestamp};
        match data_type {
            Timestamp(_, None) | Date32 | Date64 => Some(Wall::Day),
            Time32(_) | Time64(_) => Some(Wall::Time),
            Timestamp(_, Some(_)) => Some(Wall::Instant),
            _ => None,
        }
    }

    /// The text as Arrow reads it.
    fn bare(self, text: &str) -> Cow<'_, str> {
        let whole = whole(if self == Wall::Instant { text } else { without_zone(text) });
        match self {
            Wall::Day | Wall::Instant => whole,
            Wall::Time if has_all_digits(&whole) => Cow::Owned(whole[DATE_BYTES + 1..].to_string()),
            Wall::Time if whole.contains(':') => whole,
            // No digits alone, which would be a number.
            Wall::Time => Cow::Owned(format!("{whole}:")),
        }
    }

    /// A text as an expression of what Arrow reads; none where it is that.
    fn read(self, text: &Expr) -> Option<Expr> {
        match text {
            Expr::Literal(value, metadata) => {
                let text = value.try_as_str().flatten()?;
                let bare = self.bare(text);
                let literal = || Expr::Literal(ScalarValue::Utf8(Some(bare.to_string())), metadata.clone());
                (text != bare).then(literal)
            }
            Expr::ScalarFunction(function) if WALLS.iter().any(|(name, _)| *name == function.name()) => None,
            text => Some(FUNCTIONS[self as usize].call(vec![text.clone()])),
        }
    }
}

/// The text with all digits of a timestamp, if it is one.
pub(super) fn whole(text: &str) -> Cow<'_, str> {
    let whole = if has_all_digits(text) { None } else { syntax::whole(text) };
    whole.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Bytes of `2024-01-01`.
const DATE_BYTES: usize = 10;

/// Whether a text begins like `2024-01-01 08:00:00`.
fn has_all_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let signs = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    bytes.len() > 18
        && text.is_char_boundary(DATE_BYTES + 1)
        && matches!(bytes[DATE_BYTES], b' ' | b'T' | b't')
        && signs.iter().all(|(place, sign)| bytes[*place] == *sign)
}

/// The operand as Arrow reads it, of a cast of a text to a time.
pub(super) fn operand(cast: &Conversion) -> Option<Expr> {
    Wall::of(cast.to).filter(|_| cast.is_of_text())?.read(cast.operand)
}

/// A text that becomes an instant, as Arrow reads it; none where it is so.
pub(super) fn instant(text: &Expr) -> Option<Expr> {
    Wall::Instant.read(text)
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

/// The functions' names in plans that travel, in the order of [`Wall`].
const WALLS: [(&str, Wall); 3] =
    [("warpcube_without_zone", Wall::Day), ("warpcube_time_of_day", Wall::Time), ("warpcube_instant", Wall::Instant)];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 3]> = LazyLock::new(|| {
    WALLS.map(|(name, wall)| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(WithoutZone { name, wall, signature }))
    })
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

/// Texts without their zones; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutZone {
    name: &'static str,
    wall: Wall,
    signature: Signature,
}

impl ScalarUDFImpl for WithoutZone {
    fn name(&self) -> &str {
        self.name
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
            let bare = |text| self.wall.bare(text);
            let bare: LargeStringArray = texts.as_string::<i64>().iter().map(|text| text.map(bare)).collect();
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

    #[test]
    fn texts_are_as_arrow_reads_them() {
        assert_eq!(Wall::Instant.bare("2024-01-01 8:00+02"), "2024-01-01 08:00:00+02");
        for (text, day, time) in [
            ("2024-01-01 08:00+02", "2024-01-01 08:00:00", "08:00:00"),
            ("2024-1-5 8:03:07.25 Europe/Berlin", "2024-01-05 08:03:07.25", "08:03:07.25"),
            ("2024-01-01T08:00:00.5Z", "2024-01-01T08:00:00.5", "08:00:00.5"),
            ("2024-01-01", "2024-01-01", "2024-01-01:"),
            ("8:00", "8:00", "8:00"),
            ("1", "1", "1:"),
            ("äöüäöüäöüäöü", "äöüäöüäöüäöü", "äöüäöüäöüäöü:"),
        ] {
            assert_eq!((Wall::Day.bare(text).as_ref(), Wall::Time.bare(text).as_ref()), (day, time), "{text}");
        }
    }
}
