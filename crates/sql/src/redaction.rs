//! Texts of statements without their secrets, as lists of statements and logs show them.
//!
//! Hidden are texts behind a name that means a secret, as settings and options have them (`password`,
//! `aws.secret_access_key`), what stands in the parentheses of CREATE SECRET and of EXECUTE, whose arguments are values
//! of parameters, and of URLs the user, the password and what follows the `?`.

use crate::lexer::{Kind, Token, tokens};

/// What stands for a secret.
const HIDDEN: &str = "***";
/// What stands for a character of a URL that is hidden.
const HIDDEN_CHARACTER: char = '*';
/// Parts of names whose values are secrets.
const SECRETS: [&str; 16] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "access_key",
    "account_key",
    "api_key",
    "apikey",
    "private_key",
    "key_id",
    "passphrase",
    "pwd",
    "footer_key",
    "authorization",
    "signature",
];
/// Words behind which values are no longer those of a name before them.
const ENDS: [&str; 14] = [
    "and",
    "or",
    "from",
    "where",
    "group",
    "having",
    "qualify",
    "order",
    "limit",
    "union",
    "except",
    "intersect",
    "when",
    "returning",
];
/// What CREATE makes that may be called a secret and is none.
const OTHERS: [&str; 6] = ["table", "view", "macro", "function", "schema", "database"];

/// A statement's text without its secrets.
pub fn redacted(sql: &str) -> String {
    let (tokens, _) = tokens(sql);
    let word = |token: &Token| sql[token.range.clone()].to_lowercase();
    let mut shown = String::with_capacity(sql.len());
    let mut at = 0;
    let mut hide = |token: &Token, shown: &mut String| {
        shown.push_str(&sql[at..token.range.start]);
        shown.push_str(HIDDEN);
        at = token.range.end;
    };
    let words = tokens.iter().take_while(|token| token.kind == Kind::Word).take(8).map(word);
    let first: Vec<String> =
        words.skip_while(|word| matches!(word.as_str(), "explain" | "analyze" | "verbose")).collect();
    let is_hidden_whole = match first.first().map(String::as_str) {
        Some("execute") => true,
        Some("create") => {
            first.iter().any(|word| word == "secret") && !first.iter().any(|word| OTHERS.contains(&word.as_str()))
        }
        _ => false,
    };
    let is_set = first.first().is_some_and(|word| word == "set");
    // The brackets around a name that means a secret, up to whose end values are hidden, and whether a sign of a value
    // stands before a word.
    let (mut of_secret, mut has_sign, mut depth) = (None, false, 0_usize);
    for (place, token) in tokens.iter().enumerate() {
        match (token.kind, of_secret) {
            (Kind::Symbol('(' | '[' | '{'), _) => depth += 1,
            (Kind::Symbol(')' | ']' | '}'), _) => depth = depth.saturating_sub(1),
            (Kind::Symbol(';'), _) => (of_secret, has_sign) = (None, false),
            (Kind::Symbol(_), _) if is_hidden_whole && depth > 0 => {}
            (_, _) if is_hidden_whole && depth > 0 => hide(token, &mut shown),
            (Kind::Symbol(','), Some(around)) if depth <= around && !is_set => (of_secret, has_sign) = (None, false),
            (Kind::Symbol(':'), Some(_)) => {
                // Two of them are a cast.
                let is_colon = |at: Option<usize>| {
                    at.and_then(|at| tokens.get(at)).is_some_and(|token| token.kind == Kind::Symbol(':'))
                };
                has_sign |= !is_colon(place.checked_sub(1)) && !is_colon(Some(place + 1));
            }
            (Kind::Symbol('=' | '>'), Some(_)) => has_sign = true,
            (Kind::Symbol(_), _) => {}
            (Kind::Text, Some(_)) => hide(token, &mut shown),
            (Kind::Word, Some(_)) if !is_set && ENDS.contains(&word(token).as_str()) => {
                (of_secret, has_sign) = (None, false);
            }
            (Kind::Word | Kind::QuotedName, Some(_))
                if has_sign || sql[token.range.clone()].starts_with(|first: char| first.is_ascii_digit()) =>
            {
                hide(token, &mut shown);
                has_sign &= is_set;
            }
            (Kind::Word, Some(_)) if matches!(word(token).as_str(), "to" | "by") => has_sign = true,
            (Kind::Word | Kind::QuotedName, Some(_)) => {}
            (Kind::Word | Kind::QuotedName | Kind::Text, None) => {
                let name = word(token);
                of_secret = SECRETS.iter().any(|secret| name.contains(secret)).then_some(depth);
            }
        }
    }
    shown.push_str(&sql[at..]);
    if shown.contains("://") {
        let mut characters: Vec<char> = shown.chars().collect();
        hide_urls(&mut characters);
        return characters.into_iter().collect();
    }
    shown
}

/// Hides the names and passwords of URLs, and what stands behind their `?`.
pub fn hide_urls(line: &mut [char]) {
    let is_end = |character: &char| character.is_whitespace() || matches!(character, '\'' | '"');
    let mut from = 0;
    while let Some(scheme) = line[from..].windows(3).position(|three| three == [':', '/', '/']) {
        let begin = from + scheme + 3;
        let end = line[begin..].iter().position(is_end).map_or(line.len(), |length| begin + length);
        // Elsewhere a `?` without a name and a value behind it is one of a pattern.
        let scheme: String = line[..begin - 3].iter().rev().take(5).rev().collect();
        let is_web = scheme.to_lowercase().trim_end_matches('s').ends_with("http");
        let url = &mut line[begin..end];
        let authority = url.iter().position(|character| matches!(character, '/' | '?')).unwrap_or(url.len());
        if let Some(at) = url[..authority].iter().rposition(|character| *character == '@') {
            url[..at].fill(HIDDEN_CHARACTER);
        }
        if let Some(query) = url.iter().position(|character| *character == '?')
            && (is_web || url[query..].contains(&'='))
        {
            url[query + 1..].fill(HIDDEN_CHARACTER);
        }
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_names_are_hidden() {
        for (sql, shown) in [
            ("SET x.secret_key = 'a b'", "SET x.secret_key = ***"),
            ("set global x.token to abc def", "set global x.token to *** ***"),
            ("SET x.password = 'a' || E'b\\'c'", "SET x.password = *** || ***"),
            (
                "CREATE EXTERNAL TABLE t STORED AS CSV OPTIONS ('aws.secret_access_key' 'k', 'format.delimiter' ';')",
                "CREATE EXTERNAL TABLE t STORED AS CSV OPTIONS ('aws.secret_access_key' ***, 'format.delimiter' ';')",
            ),
            ("COPY t TO 's3://b' (api_key = 'k', header true)", "COPY t TO 's3://b' (api_key = ***, header true)"),
            ("CREATE OR REPLACE SECRET s (TYPE s3, KEY_ID 'k')", "CREATE OR REPLACE SECRET s (*** ***, *** ***)"),
            ("EXECUTE p(1, 'x', f(2))", "EXECUTE p(***, ***, ***(***))"),
            ("EXPLAIN ANALYZE EXECUTE p('x')", "EXPLAIN ANALYZE EXECUTE p(***)"),
            (
                "CREATE OR REPLACE PERSISTENT SECRET s (TYPE s3, KEY_ID 'k')",
                "CREATE OR REPLACE PERSISTENT SECRET s (*** ***, *** ***)",
            ),
            ("SELECT 1 FROM u WHERE password <> 'x' OR a = 'y'", "SELECT 1 FROM u WHERE password <> *** OR a = 'y'"),
            ("SELECT 1 FROM u WHERE password IN ('x', 'z')", "SELECT 1 FROM u WHERE password IN (***, ***)"),
            ("SELECT 1 FROM u WHERE lower(password) = ('x')", "SELECT 1 FROM u WHERE lower(password) = (***)"),
            ("SELECT password::text = 'x', 'y'", "SELECT password::text = ***, 'y'"),
            ("SELECT password = -4711", "SELECT password = -***"),
            ("SELECT * FROM u WHERE password = 'x' AND a = 'y'", "SELECT * FROM u WHERE password = *** AND a = 'y'"),
            ("SELECT f(secret => 'x', b => 'y')", "SELECT f(secret => ***, b => 'y')"),
            ("SET x.secret = 'not closed", "SET x.secret = ***"),
        ] {
            assert_eq!(redacted(sql), shown);
        }
    }

    #[test]
    fn other_texts_are_as_they_are() {
        for sql in [
            "SELECT token, 'a' FROM t",
            "SELECT 'password', 'x'",
            "CREATE TABLE secret (a INT)",
            "SET a.b = '1s'",
            "",
            "'",
        ] {
            assert_eq!(redacted(sql), sql);
        }
    }

    #[test]
    fn secrets_of_urls_are_hidden() {
        let shown = redacted("FROM 'https://me:wo,d@host/a?X=1,2)'; FROM 's3://b/?.csv'; FROM 'az://c/a?sig=b'");
        assert_eq!(shown, "FROM 'https://*******@host/a?******'; FROM 's3://b/?.csv'; FROM 'az://c/a?*****'");
    }
}
