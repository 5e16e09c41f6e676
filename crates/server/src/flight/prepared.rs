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
use warpcube_door::{Values, bind_rows};

use super::ticket::Sealed;
use crate::error::Refusal;

/// The time after which a statement that is not used is forgotten.
const UNUSED: Duration = Duration::from_secs(3600);
/// Statements that are kept.
const MOST: usize = 4096;

struct Statement {
    /// The name of the client that may use it.
    owner: Arc<str>,
    sql: String,
    /// The values that are bound.
    values: Values,
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
        statements.insert(
            handle.clone(),
            Statement { owner: owner.clone(), sql, values: Values::default(), used: Instant::now() },
        );
        Ok(handle)
    }

    /// Forgets a statement of a client, if there is one.
    pub(super) fn remove(&self, owner: &str, handle: &Bytes) {
        self.lock().retain(|of, statement| of != handle || *statement.owner != *owner);
    }

    /// Binds values in place of those that were bound.
    pub(super) fn bind(&self, owner: &str, handle: &Bytes, values: Values) -> Result<(), Status> {
        self.with(owner, handle, |statement| statement.values = values)
    }

    /// A query with the values that are bound.
    pub(super) fn query(&self, owner: &str, handle: &Bytes) -> Result<Sealed, Status> {
        let (text, values) = self.with(owner, handle, |statement| (statement.sql.clone(), statement.values.clone()))?;
        if values.rows.len() > 1 {
            return Err(Refusal::request("a query takes one row of values").into());
        }
        let bound = bind_rows(&text, values).map_err(Refusal::request)?;
        Ok(Sealed::new(text, bound))
    }

    /// The text of a statement, and with all rows of values in place of its parameters where it has any: those that
    /// are given, which are bound from then on, or those that were bound.
    pub(super) fn update(
        &self,
        owner: &str,
        handle: &Bytes,
        given: Option<Values>,
    ) -> Result<(String, Option<String>), Status> {
        let (text, values) = self.with(owner, handle, |statement| {
            if let Some(values) = given {
                statement.values = values;
            }
            (statement.sql.clone(), statement.values.clone())
        })?;
        let bound = bind_rows(&text, values).map_err(Refusal::request)?;
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

#[cfg(test)]
mod tests {
    use warpcube_door::Row;

    use super::*;

    fn values(rows: Vec<Row>) -> Values {
        Values { rows, ..Values::default() }
    }

    #[test]
    fn values_are_bound_until_others_are() {
        let (prepared, own) = (Prepared::default(), Arc::from("own"));
        let handle = prepared.add(&own, "SELECT ? + ?".into()).unwrap();
        assert!(prepared.query("own", &handle).is_err(), "no values");
        prepared.bind("own", &handle, values(vec![vec!["1".into(), "2".into()]])).unwrap();
        let sealed = prepared.query("own", &handle).unwrap();
        assert_eq!((sealed.text.as_str(), sealed.bound.as_deref()), ("SELECT ? + ?", Some("SELECT 1 + 2")));
        prepared
            .bind("own", &handle, values(vec![vec!["3".into(), "4".into()], vec!["5".into(), "6".into()]]))
            .unwrap();
        assert!(prepared.query("own", &handle).is_err(), "two rows");
        assert!(prepared.update("own", &handle, None).is_err(), "two rows of what is no INSERT");
        prepared.bind("own", &handle, values(vec![vec!["1".into()]])).unwrap();
        assert!(prepared.query("own", &handle).is_err(), "too few");
        // Statements of other clients are as if there were none.
        assert_eq!(prepared.query("other", &handle).unwrap_err().code(), tonic::Code::NotFound);
        assert!(prepared.bind("other", &handle, values(Vec::new())).is_err());
        prepared.remove("other", &handle);
        prepared.bind("own", &handle, values(vec![vec!["1".into(), "2".into()]])).unwrap();
        prepared.remove("own", &handle);
        assert_eq!(prepared.query("own", &handle).unwrap_err().code(), tonic::Code::NotFound);
    }

    #[test]
    fn there_are_no_more_than_a_few_thousand() {
        let (prepared, own) = (Prepared::default(), Arc::from("own"));
        assert!((0..MOST).all(|_| prepared.add(&own, "SELECT 1".into()).is_ok()));
        assert_eq!(prepared.add(&own, "SELECT 1".into()).unwrap_err().code(), tonic::Code::Unavailable);
    }
}
