//! Which statements are queries.

use warpcube_sql::{Kind, tokens};

/// Whether a statement only reads rows, so that it may run once, several times or never.
pub fn is_query(sql: &str) -> bool {
    let (tokens, _) = tokens(sql);
    let mut depth = 0usize;
    let mut words = tokens.iter().filter_map(|token| match token.kind {
        Kind::Symbol('(') => {
            depth += 1;
            None
        }
        Kind::Symbol(')') => {
            depth = depth.saturating_sub(1);
            None
        }
        Kind::Word => Some((depth, sql[token.range.clone()].to_ascii_lowercase())),
        _ => None,
    });
    let is_among =
        |verbs: &'static [&str]| move |(depth, word): (usize, String)| depth == 0 && verbs.contains(&word.as_str());
    match words.next() {
        Some((_, first)) => match first.as_str() {
            "with" => !words.any(is_among(&["insert", "update", "delete", "merge", "into"])),
            "select" | "from" => !words.any(is_among(&["into"])),
            first => matches!(first, "values" | "table" | "summarize" | "pivot" | "unpivot"),
        },
        None => false,
    }
}
