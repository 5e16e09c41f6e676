//! Colours of statements as they are typed: keywords, texts and numbers, comments.

use warpcube_sql::{Kind, tokens};

use super::keywords::is_keyword;

const KEYWORD: &str = "\x1b[1;36m";
const TEXT: &str = "\x1b[32m";
const NUMBER: &str = "\x1b[33m";
const COMMENT: &str = "\x1b[90m";
const PLAIN: &str = "\x1b[0m";

/// Bytes of a statement past which its lines have no colours: each key looks at all of it.
const LONGEST: usize = 1 << 16;

/// A line with colours; `before` are the lines of its statement before it. None where there are none.
pub(super) fn colored(before: &str, line: &str) -> Option<String> {
    if before.len() + line.len() > LONGEST {
        return None;
    }
    let text = format!("{before}{line}");
    let (found, _) = tokens(&text);
    let mut colored = String::with_capacity(2 * line.len());
    let mut at = before.len();
    let mut add = |text: &str, color: Option<&str>| match color.filter(|_| !text.is_empty()) {
        Some(color) => {
            colored.push_str(color);
            colored.push_str(text);
            colored.push_str(PLAIN);
        }
        None => colored.push_str(text),
    };
    for token in found {
        if token.range.end <= at {
            continue;
        }
        let start = token.range.start.max(at);
        add_gap(&text[at..start], &mut add);
        let whole = &text[token.range.clone()];
        let color = match token.kind {
            Kind::Word if whole.starts_with(|first: char| first.is_ascii_digit()) => Some(NUMBER),
            Kind::Word if is_keyword(whole) => Some(KEYWORD),
            Kind::Text => Some(TEXT),
            _ => None,
        };
        add(&text[start..token.range.end], color);
        at = token.range.end;
    }
    add_gap(&text[at..], &mut add);
    Some(colored)
}

/// What stands between tokens: blanks and comments.
fn add_gap(gap: &str, add: &mut impl FnMut(&str, Option<&str>)) {
    let comment = gap.trim();
    let start = gap.find(comment).unwrap_or(0);
    add(&gap[..start], None);
    add(comment, (!comment.is_empty()).then_some(COMMENT));
    add(&gap[start + comment.len()..], None);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours as letters in brackets.
    fn shown(before: &str, line: &str) -> String {
        let colored = colored(before, line).unwrap();
        let plain =
            [KEYWORD, TEXT, NUMBER, COMMENT, PLAIN].iter().fold(colored.clone(), |text, code| text.replace(code, ""));
        assert_eq!(plain, line);
        let marks = [(KEYWORD, "<k:"), (TEXT, "<t:"), (NUMBER, "<n:"), (COMMENT, "<c:"), (PLAIN, ">")];
        marks.iter().fold(colored, |text, (code, mark)| text.replace(code, mark))
    }

    #[test]
    fn words_texts_numbers_and_comments() {
        assert_eq!(shown("", "select a, 'x', 1 -- end"), "<k:select> a, <t:'x'>, <n:1> <c:-- end>");
        assert_eq!(shown("", "select \"from\" /* open"), "<k:select> \"from\" <c:/* open>");
    }

    #[test]
    fn a_line_goes_on_with_what_was_open() {
        assert_eq!(shown("select 'a\n", "b' from"), "<t:b'> <k:from>");
        assert_eq!(shown("select /* a\n", "b */ from"), "<c:b */> <k:from>");
        assert_eq!(shown("select 1\n", ""), "");
    }
}
