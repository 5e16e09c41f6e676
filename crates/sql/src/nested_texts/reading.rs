//! Texts of lists, structs and maps, taken apart: `[a, 'b,c', NULL]`, `{'a': 1, 'b': x}` and `{k=1}`, as DuckDB writes
//! them, and PostgreSQL's `{1,2}` of a list.
//!
//! What is within stays a text, which a cast of its own type reads.

/// A value in a text; NULL is none.
pub(crate) type Item = Option<String>;

/// The items of a list; none of a text that is no list.
pub(crate) fn items(text: &str) -> Option<Vec<Item>> {
    let inner = within(text, '[', ']').or_else(|| within(text, '{', '}'))?;
    parts(inner)?.into_iter().map(value).collect()
}

/// The members of a struct, or the pairs of a map, by their names or keys; none of a text that is neither.
pub(crate) fn pairs(text: &str) -> Option<Vec<(String, Item)>> {
    let pair = |part: &str| {
        let end = top(part, |character| matches!(character, ':' | '='))?.first().copied()?;
        Some((value(&part[..end])??, value(&part[end + 1..])?))
    };
    parts(within(text, '{', '}')?)?.into_iter().map(pair).collect()
}

/// What stands between two brackets.
fn within(text: &str, open: char, close: char) -> Option<&str> {
    text.trim().strip_prefix(open)?.strip_suffix(close)
}

/// What stands between the commas of a text.
fn parts(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let mut start = 0;
    for comma in top(text, |character| character == ',')? {
        parts.push(&text[start..comma]);
        start = comma + 1;
    }
    if !parts.is_empty() || !text.trim().is_empty() {
        parts.push(&text[start..]);
    }
    Some(parts)
}

/// Where characters stand that are in no quotes and brackets; none where these do not close.
fn top(text: &str, is_sought: impl Fn(char) -> bool) -> Option<Vec<usize>> {
    let (mut found, mut open, mut quote) = (Vec::new(), Vec::new(), None);
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (character, quote) {
            ('\\', _) => _ = characters.next(),
            (_, Some(own)) if own == character => quote = None,
            (_, Some(_)) => {}
            // A quote within a word is a letter of it.
            ('\'' | '"', None) if begins_value(&text[..at]) => quote = Some(character),
            ('[', None) => open.push(']'),
            ('{', None) => open.push('}'),
            (']' | '}', None) => _ = open.pop().filter(|close| *close == character)?,
            (_, None) if open.is_empty() && is_sought(character) => found.push(at),
            _ => {}
        }
    }
    (open.is_empty() && quote.is_none()).then_some(found)
}

/// Whether a value begins behind a text.
fn begins_value(before: &str) -> bool {
    before.trim_end().chars().next_back().is_none_or(|last| matches!(last, ',' | ':' | '=' | '[' | '{'))
}

/// A value as it is written: in quotes or without.
fn value(text: &str) -> Option<Item> {
    let text = text.trim();
    let quoted = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
    if let Some(quote) = quoted {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        return Some(Some(unescaped(inner)));
    }
    match text {
        "" => None,
        null if null.eq_ignore_ascii_case("null") => Some(None),
        nested if nested.starts_with(['[', '{']) => Some(Some(nested.to_string())),
        plain => Some(Some(unescaped(plain))),
    }
}

fn unescaped(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        said.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(texts: &[&str]) -> Option<Vec<Item>> {
        Some(texts.iter().map(|text| (*text != "NULL").then(|| text.to_string())).collect())
    }

    #[test]
    fn lists_have_items() {
        assert_eq!(items("[1, 2]"), some(&["1", "2"]));
        assert_eq!(items(" {1,null} "), some(&["1", "NULL"]));
        assert_eq!(items("[]"), some(&[]));
        assert_eq!(items("['a, b', it's, \"c]\", [1, 2], {a: 1}]"), some(&["a, b", "it's", "c]", "[1, 2]", "{a: 1}"]));
        assert_eq!(items("['NULL', 'it\\'s']").unwrap()[1].as_deref(), Some("it's"));
        for text in ["", "1, 2", "[1, 2", "[1,,2]", "['a]", "[{]}"] {
            assert_eq!(items(text), None, "{text}");
        }
    }

    #[test]
    fn structs_and_maps_have_pairs() {
        let pair = |name: &str, value: Option<&str>| (name.to_string(), value.map(str::to_string));
        assert_eq!(pairs("{'a': 1, b: [x, y]}"), Some(vec![pair("a", Some("1")), pair("b", Some("[x, y]"))]));
        assert_eq!(pairs("{k=NULL, 2024-01-01=10:30}").unwrap()[1], pair("2024-01-01", Some("10:30")));
        assert_eq!(pairs("{}"), Some(Vec::new()));
        for text in ["[1]", "{1}", "{NULL: 1}", "{a: }"] {
            assert_eq!(pairs(text), None, "{text}");
        }
    }
}
