//! The registry of a database's statements: those that wait or run, a log of the last ones that ended, and counts of
//! all.
//!
//! A connection registers each statement before it is planned, whichever door it came through. A door whose statements
//! wait for their turn registers them before they wait. The [`Registration`] travels with the statement's rows and ends
//! it when it is dropped.
//!
//! Invariants: a statement ends once; it is in the list until then and in the log from then on. What is shown of its
//! text has no secret.

mod counts;
mod rows;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use arrow::array::RecordBatch;
use parking_lot::Mutex;
use tracing::info;

pub use counts::{Ending, StatementCounts};

use crate::error::{Result, SqlError};
use crate::redaction::redacted;
use crate::report::StatementReport;
use rows::Row;

/// Bytes of a statement's text that are kept.
const TEXT_BYTES_MAX: usize = 4096;
/// The code of a statement that was cancelled.
const CANCELLED: &str = "SQL-007";

/// The statements of a database.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    last: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    listed: BTreeMap<u64, Arc<Entry>>,
    log: VecDeque<Row>,
    counts: StatementCounts,
}

/// A statement that has not ended.
#[derive(Debug)]
struct Entry {
    number: u64,
    session: Option<Arc<str>>,
    text: String,
    report: Arc<StatementReport>,
    registered: Instant,
    /// When its turn came.
    began: OnceLock<(Instant, SystemTime)>,
    bytes: AtomicU64,
    /// Whether all that it does is done, though its rows may not be read.
    is_done: AtomicBool,
    has_ended: AtomicBool,
    /// Whether its client has cancelled it.
    is_recalled: AtomicBool,
    /// The session that has ended it by KILL, once one has.
    killer: Mutex<Option<Option<Arc<str>>>>,
    /// Statements that the log keeps.
    log_max: usize,
}

impl Entry {
    fn is_running(&self) -> bool {
        self.began.get().is_some() && !self.report.cancel().is_cancelled()
    }
}

/// A statement in the registry of its database. Clones are the same one; the last to be dropped ends it, as cancelled
/// unless it has ended before.
#[derive(Clone)]
pub struct Registration(Arc<Listed>);

struct Listed {
    registry: Arc<Registry>,
    entry: Arc<Entry>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.0.entry.number).finish()
    }
}

impl Registry {
    /// Puts a statement into the list, as one that waits for its turn.
    pub(crate) fn register(
        self: &Arc<Self>,
        session: Option<Arc<str>>,
        sql: &str,
        report: &Arc<StatementReport>,
        log_max: usize,
    ) -> Registration {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Arc::new(Entry {
            number,
            session,
            text: cut(sql),
            report: report.clone(),
            registered: Instant::now(),
            began: OnceLock::new(),
            bytes: AtomicU64::new(0),
            is_done: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_recalled: AtomicBool::new(false),
            killer: Mutex::default(),
            log_max,
        });
        self.state.lock().listed.insert(number, entry.clone());
        Registration(Arc::new(Listed { registry: self.clone(), entry }))
    }

    /// Cancels a statement for a session, for some only one `of_session`.
    ///
    /// # Errors
    /// [`SqlError::Kill`] for one that is not listed, for another session's, and for one whose changes take their
    /// places already.
    pub(crate) fn kill(&self, number: u64, session: Option<Arc<str>>, of_session: bool) -> Result<()> {
        let refused = |reason: &str| Err(SqlError::Kill { number, reason: reason.into() });
        let Some(entry) = self.state.lock().listed.get(&number).cloned() else {
            return match (1..=self.last.load(Ordering::Relaxed)).contains(&number) {
                true => refused("the statement has ended"),
                false => refused("there is no such statement; SHOW QUERIES lists those that wait or run"),
            };
        };
        if of_session && entry.session != session {
            return refused("a read-only session ends statements of its own name alone");
        }
        // Locked meanwhile: the statement's error says whether it was cancelled by this.
        let mut killer = entry.killer.lock();
        match entry.report.cancel().cancel() {
            true => _ = killer.get_or_insert(session),
            false => return refused("its changes take their places already"),
        }
        Ok(())
    }

    /// The statements that wait or run, as SHOW QUERIES lists them.
    pub(crate) fn list(&self) -> Result<RecordBatch> {
        let listed: Vec<Row> = self.state.lock().listed.values().map(|entry| Row::listed(entry)).collect();
        rows::list(&listed)
    }

    /// The statements that have ended, the first to end first.
    pub(crate) fn log(&self) -> Result<RecordBatch> {
        let log: Vec<Row> = self.state.lock().log.iter().cloned().collect();
        rows::log(&log)
    }

    /// Counts of all statements, those that run included.
    pub(crate) fn counts(&self) -> StatementCounts {
        let state = self.state.lock();
        let mut counts = state.counts.clone();
        for entry in state.listed.values() {
            counts.running += u64::from(entry.is_running());
            counts.waiting += u64::from(entry.began.get().is_none() && !entry.report.cancel().is_cancelled());
            counts.rows += entry.report.summary().rows;
            counts.bytes += entry.bytes.load(Ordering::Relaxed);
        }
        counts
    }

    fn end(&self, entry: &Entry, code: Option<&str>) {
        if entry.has_ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let row = Row::ended(entry, code);
        let mut state = self.state.lock();
        state.listed.remove(&entry.number);
        state.counts.end(Ending::of(code), row.turn(), (row.rows, row.bytes));
        state.log.push_back(row);
        while state.log.len() > entry.log_max {
            state.log.pop_front();
        }
        drop(state);
        if let Some(code) = code {
            let session = entry.session.as_deref();
            info!(statement = entry.number, session, code, "a statement failed");
        }
    }
}

impl Registration {
    /// Its number in lists and logs.
    pub fn number(&self) -> u64 {
        self.0.entry.number
    }

    /// The report of the statement.
    pub fn report(&self) -> &Arc<StatementReport> {
        &self.0.entry.report
    }

    /// The statement's turn has come.
    pub(crate) fn begin(&self) {
        let _ = self.0.entry.began.set((Instant::now(), SystemTime::now()));
    }

    /// The text as it is shown.
    pub(crate) fn text(&self) -> String {
        redacted(&self.0.entry.text)
    }

    /// Rows of so many bytes were made.
    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.0.entry.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// All that the statement does is done: nothing is cancelled if its rows are not read.
    pub(crate) fn be_done(&self) {
        self.0.entry.is_done.store(true, Ordering::Relaxed);
    }

    /// The statement's error; the statement ends with it.
    pub fn failed(&self, error: SqlError) -> SqlError {
        let killer = self.0.entry.killer.lock().clone().filter(|_| error.is_cancelled());
        let error = match killer {
            Some(by) => SqlError::Killed { by: by.map(|by| by.to_string()) },
            None => error,
        };
        self.end(Some(&error.code()));
        error
    }

    /// The statement ends, with the code of an error or without one; what it has ended with before stays.
    pub fn end(&self, code: Option<&str>) {
        self.0.registry.end(&self.0.entry, code);
    }

    /// Cancels the statement for its own client; false if its changes take their places already.
    pub fn cancel(&self) -> bool {
        self.0.entry.is_recalled.store(true, Ordering::Release);
        self.0.entry.report.cancel().cancel()
    }

    /// Whether the statement was cancelled by KILL or by its client, and not by the end of its rows.
    pub fn is_stopped(&self) -> bool {
        self.0.entry.is_recalled.load(Ordering::Acquire) || self.0.entry.killer.lock().is_some()
    }

    /// Takes the statement out of the list; it leaves no trace.
    pub fn forget(&self) {
        if !self.0.entry.has_ended.swap(true, Ordering::AcqRel) {
            self.0.registry.state.lock().listed.remove(&self.0.entry.number);
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let is_done = self.entry.is_done.load(Ordering::Relaxed);
        self.registry.end(&self.entry, (!is_done).then_some(CANCELLED));
    }
}

/// The beginning of a text, of a long one without its secrets: where it is cut within one, that would not be seen.
fn cut(sql: &str) -> String {
    if sql.len() <= TEXT_BYTES_MAX {
        return sql.to_string();
    }
    let sql = redacted(sql);
    if sql.len() <= TEXT_BYTES_MAX {
        return sql;
    }
    format!("{}…", &sql[..sql.floor_char_boundary(TEXT_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};

    use super::*;

    fn registered(registry: &Arc<Registry>, sql: &str, log_max: usize) -> Registration {
        registry.register(Some("one".into()), sql, &StatementReport::new(), log_max)
    }

    fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
        let column = batch.column_by_name(column).unwrap().as_string::<i32>();
        column.iter().map(|text| text.unwrap_or("NULL").to_string()).collect()
    }

    #[test]
    fn a_statement_ends_once_and_the_log_keeps_the_last_ones() {
        let registry = Arc::new(Registry::default());
        let (first, second) = (registered(&registry, "SELECT 1", 2), registered(&registry, "SELECT 2", 2));
        first.begin();
        assert_eq!(texts(&registry.list().unwrap(), "state"), ["running", "queued"]);
        assert_eq!((registry.counts().running, registry.counts().waiting), (1, 1));
        first.end(None);
        first.end(Some("SQL-006"));
        drop(first);
        drop(second);
        let third = registered(&registry, "SELECT 3", 2);
        third.begin();
        assert!(third.failed(SqlError::TimedOut { milliseconds: 5 }).to_string().starts_with("SQL-008"));
        drop(third);
        let log = registry.log().unwrap();
        assert_eq!(texts(&log, "query"), ["SELECT 2", "SELECT 3"]);
        assert_eq!(texts(&log, "error"), ["SQL-007", "SQL-008"]);
        assert!(log.column_by_name("started").unwrap().is_null(0), "its turn never came");
        assert_eq!(registry.list().unwrap().num_rows(), 0);
        let counts = registry.counts();
        assert_eq!(Ending::ALL.map(|(ending, _)| counts.ended(ending)), [1, 0, 1, 1]);
        assert_eq!((counts.timed(), counts.running, counts.waiting), (2, 0, 0));
        let planned = registered(&registry, "SELECT 4", 2);
        planned.forget();
        drop(planned);
        assert_eq!(registry.log().unwrap().num_rows(), 2);
    }

    #[test]
    fn killing_ends_what_is_listed_and_has_not_committed() {
        let registry = Arc::new(Registry::default());
        let refused = |number: u64| registry.kill(number, None, false).unwrap_err().to_string();
        assert_eq!(refused(1), "SQL-017 KILL 1: there is no such statement; SHOW QUERIES lists those that wait or run");
        let killed = registered(&registry, "SELECT 1", 9);
        let own = registry.kill(1, Some("two".into()), true).unwrap_err().to_string();
        assert_eq!(own, "SQL-017 KILL 1: a read-only session ends statements of its own name alone");
        registry.kill(1, Some("two".into()), false).unwrap();
        assert!(killed.report().cancel().is_cancelled());
        assert_eq!(texts(&registry.list().unwrap(), "state"), ["ending"]);
        assert_eq!(killed.failed(SqlError::Cancelled).to_string(), "SQL-016 ended by KILL of session 'two'");
        assert_eq!(refused(1), "SQL-017 KILL 1: the statement has ended");
        let committed = registered(&registry, "INSERT", 9);
        committed.report().commit().unwrap();
        assert!(refused(2).ends_with("its changes take their places already"));
        let cancelled = registered(&registry, "SELECT 3", 9);
        cancelled.report().cancel().cancel();
        assert!(matches!(cancelled.failed(SqlError::Cancelled), SqlError::Cancelled));
    }

    #[test]
    fn long_texts_are_cut_and_secrets_hidden() {
        let registry = Arc::new(Registry::default());
        let _long = registered(&registry, &format!("SELECT 'é{}'", "é".repeat(TEXT_BYTES_MAX)), 0);
        let _secret = registered(&registry, "SET a.token = 'word'", 0);
        let shown = texts(&registry.list().unwrap(), "query");
        assert!(shown[0].len() < TEXT_BYTES_MAX + 4 && shown[0].ends_with("é…"));
        assert_eq!(shown[1], "SET a.token = ***");
        drop((_long, _secret));
        assert_eq!(registry.log().unwrap().num_rows(), 0, "no log is asked for");
    }
}
