//! File names in a statement that stands in a file of its own: relative ones mean files beside that file.

use std::path::{Path, PathBuf};

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::dialect::SessionDialect;
use crate::cubes::folder_of;

/// Characters that begin the pattern in a path.
const WILDCARDS: [char; 3] = ['*', '?', '['];
/// Words that end a list of relations.
const ENDS: [Keyword; 11] = [
    Keyword::SELECT,
    Keyword::WHERE,
    Keyword::ON,
    Keyword::USING,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
];

/// The text of a statement whose quoted relations that are relative paths are paths below the first folder that has
/// them. Names that no folder has stay.
pub(crate) fn beside(sql: &str, folders: &[PathBuf]) -> String {
    let Ok(tokens) = Tokenizer::new(&SessionDialect, sql).tokenize_with_location() else { return sql.to_string() };
    let tokens: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let mut text = sql.to_string();
    // Places stay right from the end on.
    for (token, name, quote) in relations(&tokens).into_iter().rev() {
        let range = offset(sql, token.span.start).zip(offset(sql, token.span.end));
        if let (Some((start, end)), Some(path)) = (range, found_beside(&name, folders)) {
            let doubled = path.display().to_string().replace(quote, &format!("{quote}{quote}"));
            text.replace_range(start..end, &format!("{quote}{doubled}{quote}"));
        }
    }
    text
}

/// The quoted names behind FROM, JOIN and the commas of a list of relations, with their quotes.
fn relations<'a>(tokens: &[&'a TokenWithSpan]) -> Vec<(&'a TokenWithSpan, String, char)> {
    let mut found = Vec::new();
    // Of each open parenthesis, whether a list of relations is being read in it.
    let mut lists = vec![false];
    let mut is_relation = false;
    for (at, token) in tokens.iter().enumerate() {
        let quoted = match &token.token {
            Token::SingleQuotedString(name) => Some((name, '\'')),
            Token::Word(word) => word.quote_style.map(|quote| (&word.value, quote)),
            _ => None,
        };
        let is_whole = tokens.get(at + 1).is_none_or(|next| next.token != Token::Period);
        if let Some((name, quote)) = quoted.filter(|_| is_relation && is_whole) {
            found.push((*token, name.clone(), quote));
        }
        is_relation = match &token.token {
            Token::LParen => {
                lists.push(false);
                is_relation
            }
            Token::RParen => {
                if lists.len() > 1 {
                    lists.pop();
                }
                false
            }
            Token::Comma => lists.last().copied().unwrap_or(false),
            Token::Word(word) if matches!(word.keyword, Keyword::FROM | Keyword::JOIN) => {
                lists.last_mut().into_iter().for_each(|list| *list = true);
                true
            }
            Token::Word(word) => {
                if let Some(list) = lists.last_mut().filter(|_| ENDS.contains(&word.keyword)) {
                    *list = false;
                }
                false
            }
            _ => false,
        };
    }
    found
}

/// The path of a name below the first folder that has it.
fn found_beside(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if name.is_empty() || name.contains("://") || Path::new(name).is_absolute() {
        return None;
    }
    let paths = folders.iter().map(|folder| folder.join(name));
    paths.into_iter().find(|path| is_there(path))
}

/// True if a file, a folder, a cube or the folder of a pattern is there.
fn is_there(path: &Path) -> bool {
    let text = path.to_string_lossy();
    match text.find(WILDCARDS) {
        Some(at) => text[..at].rfind('/').is_some_and(|end| Path::new(&text[..end]).is_dir()),
        None => path.exists() || folder_of(&text).is_some(),
    }
}

/// The byte at a line and a column, both from 1.
fn offset(sql: &str, location: Location) -> Option<usize> {
    let line: usize = match location.line {
        0 => return None,
        line => sql.split_inclusive('\n').take(line as usize - 1).map(str::len).sum(),
    };
    let mut before = sql[line..].char_indices().map(|(at, _)| at).chain([sql.len() - line]);
    before.nth(location.column.checked_sub(1)? as usize).map(|at| line + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_of_relations_are_looked_for_beside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display();
        std::fs::create_dir(folder.path().join("gl")).unwrap();
        for name in ["a.csv", "it's.csv"] {
            std::fs::write(folder.path().join(name), "x\n").unwrap();
        }
        let folders = [folder.path().join("none"), folder.path().to_path_buf()];
        for (sql, expected) in [
            ("SELECT 'a.csv' FROM 'a.csv'", format!("SELECT 'a.csv' FROM '{root}/a.csv'")),
            ("SELECT *\n  -- é\n FROM \"a.csv\" AS é, 'b.csv'", {
                format!("SELECT *\n  -- é\n FROM \"{root}/a.csv\" AS é, 'b.csv'")
            }),
            ("SELECT * FROM 'it''s.csv' JOIN 'gl/*.csv' USING (x)", {
                format!("SELECT * FROM '{root}/it''s.csv' JOIN '{root}/gl/*.csv' USING (x)")
            }),
            ("WITH t AS (SELECT * FROM 'a.csv') SELECT * FROM (SELECT * FROM t) WHERE x IN (SELECT x FROM 'a.csv')", {
                format!(
                    "WITH t AS (SELECT * FROM '{root}/a.csv') SELECT * FROM (SELECT * FROM t) WHERE x IN \
                     (SELECT x FROM '{root}/a.csv')"
                )
            }),
            ("SELECT * FROM '/a.csv', gl, s.\"a.csv\", 'x/*.csv'", {
                "SELECT * FROM '/a.csv', gl, s.\"a.csv\", 'x/*.csv'".to_string()
            }),
            ("SELECT 'x', 'a.csv' FROM t, 'a.csv' WHERE a IN ('x', 'a.csv') ORDER BY 1, 'a.csv'", {
                format!("SELECT 'x', 'a.csv' FROM t, '{root}/a.csv' WHERE a IN ('x', 'a.csv') ORDER BY 1, 'a.csv'")
            }),
            ("SELECT FROM 'a.csv", "SELECT FROM 'a.csv".to_string()),
        ] {
            assert_eq!(beside(sql, &folders), expected);
        }
    }
}
