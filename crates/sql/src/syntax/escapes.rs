//! `LIKE … ESCAPE`: patterns with another escape than the backslash.
//!
//! DataFusion 55.2 knows the backslash alone. Here a pattern that is a text is written with backslashes, and `ESCAPE`
//! goes; a pattern that is computed keeps it, and is refused.
//!
//! The file goes once DataFusion knows other escapes.

use datafusion::sql::sqlparser::ast::{Expr, Value};

use super::quotes;
use crate::error::{Result, SqlError};

/// Writes the pattern of a LIKE or ILIKE with backslashes.
///
/// # Errors
/// [`SqlError::Planning`] for a pattern that ends in its escape, and for an escape of several characters.
pub(super) fn with_backslashes(expr: &mut Expr) -> Result<()> {
    let (Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. }) = expr else {
        return Ok(());
    };
    let (Some(given), Expr::Value(text)) = (escape_char.as_ref(), pattern.as_mut()) else { return Ok(()) };
    let (Value::SingleQuotedString(escape), Value::SingleQuotedString(pattern) | Value::EscapedStringLiteral(pattern)) =
        (&given.value, &text.value)
    else {
        return Ok(());
    };
    let mut escape = escape.chars();
    let (escape, None) = (escape.next(), escape.next()) else {
        return Err(SqlError::Planning(format!("ESCAPE {given} is not one character")));
    };
    let translated = translated(pattern, escape)
        .ok_or_else(|| SqlError::Planning(format!("the LIKE pattern '{pattern}' ends in its escape")))?;
    text.value = quotes::text(translated);
    *escape_char = None;
    Ok(())
}

/// The pattern with the backslash as its escape; none if it ends in an escape.
fn translated(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut told = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (character, is_escaped) = match Some(character) == escape {
            true => (characters.next()?, true),
            false => (character, character == '\\'),
        };
        if is_escaped && matches!(character, '%' | '_' | '\\') {
            told.push('\\');
        }
        told.push(character);
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_written_with_backslashes() {
        let cases = [
            ("10!%", Some('!'), Some("10\\%")),
            ("a!!_", Some('!'), Some("a!_")),
            ("a\\_%", Some('!'), Some("a\\\\_%")),
            ("a!\\b!c", Some('!'), Some("a\\\\bc")),
            ("a\\%", None, Some("a\\\\%")),
            ("a!", Some('!'), None),
        ];
        for (pattern, escape, expected) in cases {
            assert_eq!(translated(pattern, escape).as_deref(), expected, "{pattern}");
        }
    }
}
