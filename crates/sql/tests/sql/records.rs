//! Records of SQL test files against a session: one at a time, with what the file expects.

use arrow::datatypes::Schema;
use sqllogictest::{ColumnType, ExpectedError, QueryExpect, Record, SortMode, StatementExpect};
use warpcube_sql::{Connection, Place, Summary};

use crate::format;
use crate::support::run;

/// A column's letter, any of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter(pub char);

impl ColumnType for Letter {
    fn from_char(value: char) -> Option<Self> {
        Some(Letter(value))
    }

    fn to_char(&self) -> char {
        self.0
    }
}

/// What a statement gave: its column letters, its rows and what ran where.
pub struct Answer {
    pub types: String,
    pub rows: Vec<Vec<String>>,
    pub summary: Summary,
}

/// Runs a statement to its end.
pub async fn answer(session: &Connection, sql: &str) -> Result<Answer, String> {
    let (batches, summary) = run(session, sql).await?;
    let empty = Schema::empty();
    let types = batches.first().map_or_else(|| format::types(&empty), |batch| format::types(batch.schema_ref()));
    Ok(Answer { types, rows: format::rows(&batches), summary })
}

/// Errors by which a session whose placement is `cuda` says that the device cannot run a fragment.
pub fn is_refusal(error: &str) -> bool {
    error.contains("ENG-001") || error.contains("ENG-002") || error.contains("COL-")
}

/// Where a statement's fragments ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// Whether any ran on the device.
    pub on_device: bool,
    /// Why not all did.
    pub refusal: Option<String>,
}

impl Ran {
    /// What a report says.
    pub fn of(summary: &Summary) -> Ran {
        let on_cpu = summary.fragments.iter().find(|fragment| fragment.place == Place::Cpu);
        Ran {
            on_device: summary.fragments.iter().any(|fragment| fragment.place != Place::Cpu),
            refusal: on_cpu.map(|fragment| fragment.reason.clone().unwrap_or_default()),
        }
    }
}

/// Runs a statement on the device, and where that refuses, where the session pleases.
pub async fn answer_on_device(session: &Connection, sql: &str) -> (Result<Answer, String>, Ran) {
    match answer(session, sql).await {
        Err(error) if is_refusal(&error) => {
            session.set("warpcube.placement", "auto").unwrap();
            let again = answer(session, sql).await;
            session.set("warpcube.placement", "cuda").unwrap();
            (again, Ran { on_device: false, refusal: Some(error) })
        }
        Ok(answer) => {
            let ran = Ran::of(&answer.summary);
            (Ok(answer), ran)
        }
        Err(error) => (Err(error), Ran { on_device: false, refusal: None }),
    }
}

/// The lines of a result as a record has them.
pub fn lines(answer: &Answer, sort: Option<SortMode>) -> Vec<String> {
    let mut rows = answer.rows.clone();
    match sort.unwrap_or(SortMode::NoSort) {
        SortMode::NoSort => {}
        SortMode::RowSort => rows.sort_unstable(),
        SortMode::ValueSort => {
            rows = rows.into_iter().flatten().map(|cell| vec![cell]).collect();
            rows.sort_unstable();
        }
    }
    rows.iter().map(|row| row.join(" ").trim_end().to_string()).collect()
}

/// The statement of a record.
pub fn sql_of(record: &Record<Letter>) -> Option<&str> {
    match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql),
        _ => None,
    }
}

/// Compares an answer with what a record expects; `wording` says whether messages of errors count.
pub fn check(record: &Record<Letter>, found: &Result<Answer, String>, wording: bool) -> Result<(), String> {
    let expects_error = |expected: &ExpectedError, found: &Result<Answer, String>| match found {
        Ok(_) => Err("an error was expected".to_string()),
        Err(message) if wording && !is_worded(expected, message) => Err(format!("another error: {message}")),
        Err(_) => Ok(()),
    };
    match record {
        Record::Statement { expected: StatementExpect::Error(expected), .. } => expects_error(expected, found),
        Record::Statement { .. } => found.as_ref().map(|_| ()).map_err(Clone::clone),
        Record::Query { expected: QueryExpect::Error(expected), .. } => expects_error(expected, found),
        Record::Query { expected: QueryExpect::Results { types, sort_mode, results, .. }, .. } => {
            let found = found.as_ref().map_err(Clone::clone)?;
            let types: String = types.iter().map(|letter| letter.0).collect();
            // A stream may end without a batch, and then nobody can tell its types.
            if !found.rows.is_empty() && types != found.types {
                return Err(format!("types {types} were expected, not {}", found.types));
            }
            let expected: Vec<String> = results.iter().map(|line| line.trim_end().to_string()).collect();
            let found = lines(found, *sort_mode);
            match matches(&expected, &found) {
                true => Ok(()),
                false => Err(format!("expected:\n  {}\nfound:\n  {}", expected.join("\n  "), found.join("\n  "))),
            }
        }
        _ => Ok(()),
    }
}

fn is_worded(expected: &ExpectedError, message: &str) -> bool {
    match expected {
        ExpectedError::Inline(pattern) => pattern.is_match(message),
        ExpectedError::Multiline(text) => message.contains(text.trim()),
        ExpectedError::Empty | ExpectedError::SqlState(_) => true,
    }
}

/// Equality but for pieces that the expectation leaves open.
fn matches(expected: &[String], found: &[String]) -> bool {
    const OPEN: &str = "<slt:ignore>";
    if !expected.iter().any(|line| line.contains(OPEN)) {
        return expected == found;
    }
    let (expected, found) = (expected.join("\n"), found.join("\n"));
    let mut rest = found.as_str();
    for (index, piece) in expected.split(OPEN).enumerate() {
        match rest.find(piece) {
            Some(at) if index > 0 || at == 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    true
}

#[test]
fn open_pieces_match_anything() {
    let lines = |text: &str| vec![text.to_string()];
    assert!(matches(&lines("a <slt:ignore> c"), &lines("a b c")));
    assert!(!matches(&lines("a <slt:ignore> d"), &lines("a b c")));
    assert!(!matches(&lines("b <slt:ignore>"), &lines("a b c")));
    assert!(!matches(&lines("a"), &lines("a b c")));
}
