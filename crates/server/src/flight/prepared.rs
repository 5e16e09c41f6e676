//! Prepared statements of clients: texts with the values that are bound to their parameters.
//!
//! A client that goes away closes nothing: a statement that nobody uses for an hour is forgotten, and there are no more
//! than a few thousand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use tonic::Status;
use warpcube_door::{Parameters, bind, parameter_count};

use crate::error::Refusal;

/// The time after which a statement that is not used is forgotten.
const UNUSED: Duration = Duration::from_secs(3600);
/// Statements that are kept.
const MOST: usize = 4096;

/// A row of values, as constants of SQL.
pub(super) type Row = Vec<String>;

struct Statement {
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
    /// Keeps a statement; gives its handle.
    pub(super) fn add(&self, sql: String) -> Result<Bytes, Status> {
        let mut statements = self.lock();
        statements.retain(|_, statement| statement.used.elapsed() < UNUSED);
        if statements.len() >= MOST {
            return Err(Refusal::busy("there are too many prepared statements; close some").into());
        }
        let handle = Bytes::from(self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes().to_vec());
        statements.insert(handle.clone(), Statement { sql, rows: Vec::new(), used: Instant::now() });
        Ok(handle)
    }

    /// Forgets a statement, if there is one.
    pub(super) fn remove(&self, handle: &Bytes) {
        self.lock().remove(handle);
    }

    /// Binds values in place of those that were bound.
    pub(super) fn bind(&self, handle: &Bytes, rows: Vec<Row>) -> Result<(), Status> {
        self.with(handle, |statement| statement.rows = rows)
    }

    /// The text of a query with the values that are bound.
    pub(super) fn query(&self, handle: &Bytes) -> Result<String, Status> {
        let mut texts = self.updates(handle)?;
        match (texts.pop(), texts.is_empty()) {
            (Some(text), true) => Ok(text),
            _ => Err(Refusal::request("a query takes one row of values").into()),
        }
    }

    /// The texts of a statement, one for each row of values.
    pub(super) fn updates(&self, handle: &Bytes) -> Result<Vec<String>, Status> {
        let (sql, rows) = self.with(handle, |statement| (statement.sql.clone(), statement.rows.clone()))?;
        if rows.is_empty() && parameter_count(&sql) == 0 {
            return Ok(vec![sql]);
        }
        let rows = if rows.is_empty() { vec![Row::new()] } else { rows };
        let bound = rows.into_iter().map(|row| bind(&sql, &Parameters::Ordered(row)));
        Ok(bound.collect::<Result<_, _>>().map_err(Refusal::request)?)
    }

    fn with<T>(&self, handle: &Bytes, work: impl FnOnce(&mut Statement) -> T) -> Result<T, Status> {
        let mut statements = self.lock();
        let statement = statements.get_mut(handle);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_bound_until_others_are() {
        let prepared = Prepared::default();
        let handle = prepared.add("SELECT ? + ?".into()).unwrap();
        assert!(prepared.query(&handle).is_err(), "no values");
        prepared.bind(&handle, vec![vec!["1".into(), "2".into()]]).unwrap();
        assert_eq!(prepared.query(&handle).unwrap(), "SELECT 1 + 2");
        prepared.bind(&handle, vec![vec!["3".into(), "4".into()], vec!["5".into(), "6".into()]]).unwrap();
        assert!(prepared.query(&handle).is_err(), "two rows");
        assert_eq!(prepared.updates(&handle).unwrap(), ["SELECT 3 + 4", "SELECT 5 + 6"]);
        prepared.bind(&handle, vec![vec!["1".into()]]).unwrap();
        assert!(prepared.query(&handle).is_err(), "too few");
        prepared.remove(&handle);
        assert_eq!(prepared.query(&handle).unwrap_err().code(), tonic::Code::NotFound);
    }

    #[test]
    fn there_are_no_more_than_a_few_thousand() {
        let prepared = Prepared::default();
        assert!((0..MOST).all(|_| prepared.add("SELECT 1".into()).is_ok()));
        assert_eq!(prepared.add("SELECT 1".into()).unwrap_err().code(), tonic::Code::Unavailable);
    }
}
