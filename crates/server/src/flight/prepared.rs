//! Prepared statements of clients: texts with the values that are bound to their parameters.
//!
//! A client that goes away closes nothing: a statement that nobody uses for an hour is forgotten, and there are no more
//! than a few thousand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use tonic::Status;
use warpcube_door::{Parameters, bind, parameter_count};
use warpcube_sql::{Kind, Token, tokens};

use super::ticket::Sealed;
use crate::error::Refusal;

/// The time after which a statement that is not used is forgotten.
const UNUSED: Duration = Duration::from_secs(3600);
/// Statements that are kept.
const MOST: usize = 4096;

/// A row of values, as constants of SQL.
pub(super) type Row = Vec<String>;

struct Statement {
    /// The name of the client that may use it.
    owner: Arc<str>,
    sql: String,
    /// The rows that are bound.
    rows: Vec<Row>,
    used: Instant,
}

/// The statements by their handles.
#[derive(Default)]
pub(super) struct Prepared {
    statements: Mutex<HashMap<Bytes, Statement>>,
    next: AtomicU64,
}

impl Prepared {
    /// Keeps a statement of a client; gives its handle.
    pub(super) fn add(&self, owner: &Arc<str>, sql: String) -> Result<Bytes, Status> {
        let mut statements = self.lock();
        statements.retain(|_, statement| statement.used.elapsed() < UNUSED);
        if statements.len() >= MOST {
            return Err(Refusal::busy("there are too many prepared statements; close some").into());
        }
        let handle = Bytes::from(self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec());
        statements
            .insert(handle.clone(), Statement { owner: owner.clone(), sql, rows: Vec::new(), used: Instant::now() });
        Ok(handle)
    }

    /// Forgets a statement of a client, if there is one.
    pub(super) fn remove(&self, owner: &str, handle: &Bytes) {
        self.lock().retain(|of, statement| of != handle || *statement.owner != *owner);
    }

    /// Binds values in place of those that were bound.
    pub(super) fn bind(&self, owner: &str, handle: &Bytes, rows: Vec<Row>) -> Result<(), Status> {
        self.with(owner, handle, |statement| statement.rows = rows)
    }

    /// A query with the values that are bound.
    pub(super) fn query(&self, owner: &str, handle: &Bytes) -> Result<Sealed, Status> {
        let (text, rows) = self.with(owner, handle, |statement| (statement.sql.clone(), statement.rows.clone()))?;
        if rows.len() > 1 {
            return Err(Refusal::request("a query takes one row of values").into());
        }
        let bound = with_rows(&text, rows).map_err(Refusal::request)?;
        Ok(Sealed::new(text, bound))
    }

    /// The text of a statement, and with all rows of values in place of its parameters where it has any: those that
    /// are given, which are bound from then on, or those that were bound.
    pub(super) fn update(
        &self,
        owner: &str,
        handle: &Bytes,
        given: Option<Vec<Row>>,
    ) -> Result<(String, Option<String>), Status> {
        let (text, rows) = self.with(owner, handle, |statement| {
            if let Some(rows) = given {
                statement.rows = rows;
            }
            (statement.sql.clone(), statement.rows.clone())
        })?;
        let bound = with_rows(&text, rows).map_err(Refusal::request)?;
        Ok((text, bound))
    }

    fn with<T>(&self, owner: &str, handle: &Bytes, work: impl FnOnce(&mut Statement) -> T) -> Result<T, Status> {
        let mut statements = self.lock();
        // Who has guessed the handle of another client's is told the same as who made one up.
        let statement = statements.get_mut(handle).filter(|statement| *statement.owner == *owner);
        let statement = statement.ok_or_else(|| {
            let gone = "there is no such prepared statement: it was closed, or not used for an hour";
            Refusal::request(gone).with_status(StatusCode::NOT_FOUND)
        })?;
        statement.used = Instant::now();
        Ok(work(statement))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Bytes, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A statement with rows of values in place of its parameters; none where it has neither. Several rows are rows of one
/// INSERT, so that all of them are put in or none.
fn with_rows(sql: &str, mut rows: Vec<Row>) -> Result<Option<String>, String> {
    let count = parameter_count(sql);
    if count == 0 && rows.len() <= 1 && rows.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    if rows.len() <= 1 {
        let row = rows.pop().unwrap_or_default();
        return bind(sql, &Parameters::Ordered(row)).map(|bound| Some(bound.text));
    }
    let refused = "several rows of values are for INSERT INTO … VALUES (…) alone; send one row at a time";
    let at = values_of_insert(sql).filter(|at| parameter_count(&sql[..*at]) == 0).ok_or(refused)?;
    let (front, tuple) = sql.split_at(at);
    let tuples = rows.into_iter().map(|row| bind(tuple, &Parameters::Ordered(row)).map(|bound| bound.text));
    Ok(Some(format!("{front}{}", tuples.collect::<Result<Vec<_>, _>>()?.join(", "))))
}

/// Where the only row of an INSERT of VALUES begins, behind which nothing stands.
fn values_of_insert(sql: &str) -> Option<usize> {
    let (tokens, _) = tokens(sql);
    let is =
        |token: &Token, word: &str| token.kind == Kind::Word && sql[token.range.clone()].eq_ignore_ascii_case(word);
    let values = tokens.iter().position(|token| is(token, "values"))?;
    let row = &tokens[values + 1..];
    let mut depth = 0_i64;
    let ends = row.iter().position(|token| {
        depth += match token.kind {
            Kind::Symbol('(') => 1,
            Kind::Symbol(')') => -1,
            _ => 0,
        };
        depth <= 0
    })?;
    let is_row = row.first()?.kind == Kind::Symbol('(') && ends + 1 == row.len();
    (is_row && is(tokens.first()?, "insert")).then(|| row[0].range.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bound_until_others_are() {
        let (prepared, own) = (Prepared::default(), Arc::from("own"));
        let handle = prepared.add(&own, "SELECT ? + ?".into()).unwrap();
        assert!(prepared.query("own", &handle).is_err(), "no values");
        prepared.bind("own", &handle, vec![vec!["1".into(), "2".into()]]).unwrap();
        let sealed = prepared.query("own", &handle).unwrap();
        assert_eq!((sealed.text.as_str(), sealed.bound.as_deref()), ("SELECT ? + ?", Some("SELECT 1 + 2")));
        prepared.bind("own", &handle, vec![vec!["3".into(), "4".into()], vec!["5".into(), "6".into()]]).unwrap();
        assert!(prepared.query("own", &handle).is_err(), "two rows");
        assert!(prepared.update("own", &handle, None).is_err(), "two rows of what is no INSERT");
        prepared.bind("own", &handle, vec![vec!["1".into()]]).unwrap();
        assert!(prepared.query("own", &handle).is_err(), "too few");
        // Statements of other clients are as if there were none.
        assert_eq!(prepared.query("other", &handle).unwrap_err().code(), tonic::Code::NotFound);
        assert!(prepared.bind("other", &handle, Vec::new()).is_err());
        prepared.remove("other", &handle);
        prepared.bind("own", &handle, vec![vec!["1".into(), "2".into()]]).unwrap();
        prepared.remove("own", &handle);
        assert_eq!(prepared.query("own", &handle).unwrap_err().code(), tonic::Code::NotFound);
    }

    #[test]
    fn several_rows_are_rows_of_one_insert() {
        let rows = || vec![vec!["1".to_string(), "'a'".into()], vec!["2".into(), "NULL".into()]];
        for (sql, bound) in [
            ("INSERT INTO t VALUES (?, ?)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)"),
            (
                "insert into t (\"values\", b) values ($1, f($2, ')'))",
                "insert into t (\"values\", b) values (1, f('a', ')')), (2, f(NULL, ')'))",
            ),
        ] {
            assert_eq!(with_rows(sql, rows()).unwrap().as_deref(), Some(bound));
        }
        for sql in [
            "UPDATE t SET a = ? WHERE b = ?",
            "INSERT INTO t SELECT ?, ?",
            "INSERT INTO t VALUES (?, ?), (3, 4)",
            "INSERT INTO t VALUES (?, ?) RETURNING a",
            "WITH x AS (SELECT ?) INSERT INTO t VALUES (?)",
        ] {
            assert!(with_rows(sql, rows()).unwrap_err().contains("several rows"), "{sql}");
        }
    }

    #[test]
    fn there_are_no_more_than_a_few_thousand() {
        let (prepared, own) = (Prepared::default(), Arc::from("own"));
        assert!((0..MOST).all(|_| prepared.add(&own, "SELECT 1".into()).is_ok()));
        assert_eq!(prepared.add(&own, "SELECT 1".into()).unwrap_err().code(), tonic::Code::Unavailable);
    }
}
