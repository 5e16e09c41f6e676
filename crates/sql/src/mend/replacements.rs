//! `regexp_replace` reads its replacement as PostgreSQL does: `\1` to `\9` are groups, `\&` is the whole match, `\\` a
//! backslash, and `$` is no more than a dollar sign.
//!
//! DataFusion 55.2 hands the replacement to Rust's regular expressions, to which `$5` is a group. The file goes once it
//! escapes dollar signs.

use arrow::array::{ArrayRef, AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::each_value;

/// Puts the replacement among arguments in the words of Rust's regular expressions, in the type that it has.
pub(super) fn in_rust(args: &mut ScalarFunctionArgs) -> Result<()> {
    let Some(replacement) = args.args.get_mut(2) else { return Ok(()) };
    *replacement = each_value(replacement, of_texts)?;
    Ok(())
}

fn of_texts(texts: &ArrayRef) -> Result<ArrayRef> {
    let plain = cast(texts, &DataType::LargeUtf8)?;
    let replaced: LargeStringArray = plain.as_string::<i64>().iter().map(|text| text.map(replacement)).collect();
    Ok(cast(&replaced, texts.data_type())?)
}

fn replacement(text: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('$', _) => replaced.push_str("$$"),
            ('\\', Some(group @ ('1'..='9'))) => {
                replaced.extend(["${", &group.to_string(), "}"]);
                characters.next();
            }
            ('\\', Some('&')) => {
                replaced.push_str("${0}");
                characters.next();
            }
            ('\\', Some('\\')) => {
                replaced.push('\\');
                characters.next();
                // Before digits, DataFusion would read a group: one that is not there, and empty, stands between.
                if characters.peek().is_some_and(char::is_ascii_digit) {
                    replaced.push_str("${}");
                }
            }
            (other, _) => replaced.push(other),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_written_with_backslashes() {
        for (theirs, ours) in [
            ("$5", "$$5"),
            (r"[\1]\2x", "[${1}]${2}x"),
            (r"\&\&", "${0}${0}"),
            (r"\\n", r"\n"),
            (r"\\1", r"\${}1"),
            (r"\n\", r"\n\"),
        ] {
            assert_eq!(replacement(theirs), ours);
        }
    }
}
