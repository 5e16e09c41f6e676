//! `SIMILAR TO`: SQL's regular expressions.
//!
//! DataFusion 55.2 compares by the pattern as if it were a POSIX regular expression that may match anywhere. Here a
//! pattern that is a text becomes the POSIX expression of the whole text: `%` is any text and `_` any character, `|`,
//! `*`, `+`, `?`, `{m,n}`, `(…)` and `[…]` are what they are there, and all else, `.`, `^` and `$` too, stands for
//! itself. The escape is the backslash, or what ESCAPE says. A pattern that is computed is refused.
//!
//! The file goes once DataFusion reads SQL's regular expressions.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};

use super::quotes;
use super::rows::operand;
use crate::error::{Result, SqlError};

/// Characters that mean something in a POSIX expression and nothing in SQL's, or that an escape takes their meaning.
const SPECIAL: &str = "\\.^$|*+?{}()[]";

/// Writes a SIMILAR TO as a match of a regular expression.
///
/// # Errors
/// [`SqlError::Planning`] for a pattern that ends in its escape, and for an escape of several characters;
/// [`SqlError::Unsupported`] for a pattern that is computed.
pub(super) fn as_match(expr: &mut Expr) -> Result<()> {
    let Expr::SimilarTo { negated, expr: text, pattern, escape_char } = expr else { return Ok(()) };
    let escape = match escape_char.as_ref().map(|given| &given.value) {
        None => Some('\\'),
        Some(Value::SingleQuotedString(given)) => {
            let mut characters = given.chars();
            match (characters.next(), characters.next()) {
                (escape, None) => escape,
                _ => return Err(SqlError::Planning(format!("ESCAPE '{given}' is not one character"))),
            }
        }
        Some(other) => return Err(SqlError::Planning(format!("ESCAPE {other} is not one character"))),
    };
    let regex = match unnested(pattern) {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(sql) | Value::EscapedStringLiteral(sql) => {
                let translated = translated(sql, escape).ok_or_else(|| {
                    SqlError::Planning(format!("the pattern '{sql}' of SIMILAR TO ends in its escape, or in a bracket"))
                })?;
                quotes::text(translated)
            }
            Value::Null => Value::Null,
            other => return Err(SqlError::Unsupported(format!("SIMILAR TO {other}; write the pattern as a text"))),
        },
        other => return Err(SqlError::Unsupported(format!("SIMILAR TO {other}; write the pattern as a text"))),
    };
    let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    let text = std::mem::replace(text.as_mut(), Expr::value(Value::Null));
    let matched = Expr::BinaryOp { left: Box::new(operand(text)), op, right: Box::new(Expr::value(regex)) };
    *expr = Expr::Nested(Box::new(matched));
    Ok(())
}

fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}

/// The POSIX expression of a pattern; none if the pattern ends in an escape or within brackets.
fn translated(pattern: &str, escape: Option<char>) -> Option<String> {
    // `.` is any character, a line break too.
    let mut regex = String::from("^(?s:");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => literal(characters.next()?, &mut regex),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(character),
            '[' => bracket(&mut characters, escape, &mut regex)?,
            other => literal(other, &mut regex),
        }
    }
    regex.push_str(")$");
    Some(regex)
}

fn literal(character: char, regex: &mut String) {
    if SPECIAL.contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

/// A bracket expression behind its opening bracket, `^a-c[:digit:]]`.
fn bracket(
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    escape: Option<char>,
    regex: &mut String,
) -> Option<()> {
    regex.push('[');
    if characters.next_if_eq(&'^').is_some() {
        regex.push('^');
    }
    let (mut is_first, mut before) = (true, None);
    loop {
        let character = characters.next()?;
        match character {
            ']' if !is_first => break,
            _ if Some(character) == escape => within(characters.next()?, regex),
            '[' if characters.peek() == Some(&':') => {
                // A class of characters.
                let class: String = characters.by_ref().take_while(|next| *next != ']').collect();
                regex.push_str(&format!("[{class}]"));
            }
            // Two of them would be an operator of sets.
            '-' if before != Some('-') => regex.push('-'),
            other => within(other, regex),
        }
        (is_first, before) = (false, Some(character));
    }
    regex.push(']');
    Some(())
}

/// A character of a bracket expression that stands for itself.
fn within(character: char, regex: &mut String) {
    if "\\[]^-&~".contains(character) {
        regex.push('\\');
    }
    regex.push(character);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_posix_expressions_of_the_whole_text() {
        for (pattern, escape, expected) in [
            ("a%", Some('\\'), Some("^(?s:a.*)$")),
            ("(a|b)_+", Some('\\'), Some("^(?s:(?:a|b).+)$")),
            ("a.b^c$", Some('\\'), Some("^(?s:a\\.b\\^c\\$)$")),
            ("a\\%{2,3}", Some('\\'), Some("^(?s:a%{2,3})$")),
            ("a!%b\\", Some('!'), Some("^(?s:a%b\\\\)$")),
            ("[^a-c[:digit:]&&x]", Some('\\'), Some("^(?s:[^a-c[:digit:]\\&\\&x])$")),
            ("[]a[]", Some('\\'), Some("^(?s:[\\]a\\[])$")),
            ("a\\", Some('\\'), None),
            ("a\\", None, Some("^(?s:a\\\\)$")),
            ("[a", Some('\\'), None),
        ] {
            assert_eq!(translated(pattern, escape).as_deref(), expected, "{pattern}");
        }
    }
}
