//! Whole numbers in JSON that 64 bits do not hold, with all their digits, as in DuckDB.
//!
//! `serde_json` makes doubles of them. Here such a number is read as a text with a mark in front, and written without
//! mark and quotes.

use std::borrow::Cow;

use datafusion::error::Result;
use serde_json::Value;

use super::raised;

/// What the text of a number begins with.
const MARK: &str = "\u{2063}n";
/// Numbers with fewer digits have 64 bits.
const DIGITS_MIN: usize = 19;

/// The value of a text.
///
/// # Errors
/// A text that is not JSON.
pub(super) fn parsed(text: &str) -> Result<Value> {
    let value = match marked(text) {
        Cow::Owned(marked) => serde_json::from_str(&marked).or_else(|_| serde_json::from_str(text)),
        Cow::Borrowed(text) => serde_json::from_str(text),
    };
    value.map_err(|error| raised(format!("'{text}' is not JSON: {error}")))
}

/// The text of a value.
pub(super) fn written(value: &Value) -> String {
    unmarked(value.to_string())
}

/// A text of values that were [`parsed`], with numbers for texts with a mark.
pub(super) fn unmarked(text: String) -> String {
    let begin = format!("\"{MARK}");
    if !text.contains(&begin) {
        return text;
    }
    let mut pieces = text.split(&begin);
    let mut whole = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let (digits, rest) = piece.split_once('"').unwrap_or((piece, ""));
        whole.push_str(digits);
        whole.push_str(rest);
    }
    whole
}

/// The digits of a number with a mark; none of another value.
pub(super) fn digits(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix(MARK)
}

/// The text with a mark before each number that 64 bits do not hold.
fn marked(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut marked, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let begin = at;
                at += 1;
                while at < bytes.len() && matches!(bytes[at], b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') {
                    at += 1;
                }
                let number = &text[begin..at];
                let digits = number.strip_prefix('-').unwrap_or(number);
                let is_long = digits.len() >= DIGITS_MIN
                    && digits.bytes().all(|digit| digit.is_ascii_digit())
                    && !digits.starts_with('0')
                    && number.parse::<i64>().is_err()
                    && number.parse::<u64>().is_err();
                if is_long {
                    marked.push_str(&text[copied..begin]);
                    marked.push_str(&format!("\"{MARK}{number}\""));
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    marked.push_str(&text[copied..]);
    Cow::Owned(marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_keep_their_digits() {
        for (text, expected) in [
            ("12345678901234567890123", "12345678901234567890123"),
            ("[-9223372036854775808, -9223372036854775809]", "[-9223372036854775808,-9223372036854775809]"),
            ("[18446744073709551615,18446744073709551616 ]", "[18446744073709551615,18446744073709551616]"),
            (
                "{\"12345678901234567890123\":\"a\\\"12345678901234567890123\",\"b\":0.5}",
                "{\"12345678901234567890123\":\"a\\\"12345678901234567890123\",\"b\":0.5}",
            ),
            ("1234567890123456789012.5", "1.2345678901234568e+21"),
        ] {
            assert_eq!(written(&parsed(text).unwrap()), expected, "{text}");
        }
        assert!(parsed("012345678901234567890123").is_err());
        assert!(parsed("\"a\\").is_err());
        assert_eq!(digits(&parsed("12345678901234567890123").unwrap()), Some("12345678901234567890123"));
        assert_eq!(digits(&parsed("1").unwrap()), None);
    }
}
