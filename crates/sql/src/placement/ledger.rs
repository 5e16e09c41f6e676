//! The ledger of a database's background loads: the columns that statements on the CPU asked for, and the loads that
//! are under way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use warpcube_gpu::CancelSwitch;

use crate::lower::Lowered;

/// Columns that are remembered.
const ASKED_MAX: usize = 16 << 10;
/// Loads that are under way at a time.
const LOADS_MAX: usize = 4;

/// A column of a version of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AskedColumn {
    pub(super) table: String,
    pub(super) version: String,
    pub(super) column: usize,
}

/// A fragment whose columns are to be loaded.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundLoad {
    /// The fragment.
    pub(crate) lowered: Arc<Lowered>,
    /// Its columns that are not on the device.
    pub(crate) columns: Vec<AskedColumn>,
}

/// A fragment that runs on the CPU because its columns are not on the device.
#[derive(Debug, Clone)]
pub(crate) struct Declined {
    /// The columns that are not there.
    pub(super) missing: Vec<AskedColumn>,
    /// The load that begins when the statement is over.
    pub(super) load: Option<BackgroundLoad>,
}

impl Declined {
    /// The load that begins when the statement is over.
    pub(crate) fn load(&self) -> Option<&BackgroundLoad> {
        self.load.as_ref()
    }
}

/// The ledger.
#[derive(Debug, Default)]
pub(crate) struct LoadLedger {
    state: Mutex<State>,
    /// Notified whenever a load ends.
    ended: Condvar,
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    asked: HashSet<AskedColumn>,
    /// Loads under way by the identity of their fragment, with what stops them.
    under_way: HashMap<String, Arc<CancelSwitch>>,
}

impl LoadLedger {
    /// Grows whenever a column is asked for the first time, and whenever a load ends.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes the columns of fragments that run on the CPU now.
    pub(crate) fn note(&self, declined: &[Declined]) {
        let mut state = self.state.lock();
        if state.asked.len() >= ASKED_MAX {
            state.asked.clear();
        }
        let missing = declined.iter().flat_map(|fragment| &fragment.missing);
        let new = missing.filter(|column| state.asked.insert((*column).clone())).count();
        if new > 0 {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether all these columns were asked for before.
    pub(super) fn has_all(&self, missing: &[AskedColumn]) -> bool {
        let state = self.state.lock();
        missing.iter().all(|column| state.asked.contains(column))
    }

    /// Forgets columns whose load failed: two more statements have to ask for them.
    pub(crate) fn forget(&self, failed: &[AskedColumn]) {
        let mut state = self.state.lock();
        failed.iter().for_each(|column| _ = state.asked.remove(column));
    }

    /// Whether a fragment is being loaded.
    pub(super) fn is_under_way(&self, identity: &str) -> bool {
        self.state.lock().under_way.contains_key(identity)
    }

    /// Enters a load that `cancel` stops; false if it is under way, too many are, or the database is closed.
    pub(crate) fn begin(&self, identity: &str, cancel: &Arc<CancelSwitch>) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.under_way.len() >= LOADS_MAX || state.under_way.contains_key(identity) {
            return false;
        }
        state.under_way.insert(identity.to_string(), cancel.clone());
        true
    }

    /// Takes a load off, however it ended. Statements that were planned meanwhile are worth planning again, and only
    /// now.
    pub(crate) fn end(&self, identity: &str) {
        self.state.lock().under_way.remove(identity);
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.ended.notify_all();
    }

    /// Waits until no load is under way; whether one was.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        let was = !state.under_way.is_empty();
        self.ended.wait_while(&mut state, |state| !state.under_way.is_empty());
        was
    }

    /// Stops what is under way and begins nothing more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.under_way.values().for_each(|cancel| cancel.throw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declined(version: &str, columns: &[usize]) -> Declined {
        let asked = |column: &usize| AskedColumn { table: "t".into(), version: version.into(), column: *column };
        Declined { missing: columns.iter().map(asked).collect(), load: None }
    }

    #[test]
    fn columns_are_asked_for_by_a_second_statement() {
        let ledger = LoadLedger::default();
        let first = declined("1", &[0, 1]);
        assert!(!ledger.has_all(&first.missing));
        ledger.note(std::slice::from_ref(&first));
        assert!(ledger.has_all(&first.missing) && ledger.has_all(&declined("1", &[1]).missing));
        assert_eq!(ledger.changes(), 1, "the next one loads them, and is worth planning again");
        ledger.note(&[declined("1", &[1])]);
        assert_eq!(ledger.changes(), 1);
        assert!(!ledger.has_all(&declined("1", &[1, 2]).missing), "one of them is new");
        assert!(!ledger.has_all(&declined("2", &[0]).missing), "another version of the table");
        ledger.forget(&first.missing);
        assert!(!ledger.has_all(&declined("1", &[1]).missing), "a load that failed");
    }

    #[test]
    fn loads_are_under_way_until_they_end() {
        let (ledger, cancel) = (LoadLedger::default(), Arc::default());
        assert!(ledger.begin("a", &cancel) && !ledger.begin("a", &cancel) && ledger.is_under_way("a"));
        ["b", "c", "d"].iter().for_each(|identity| assert!(ledger.begin(identity, &cancel)));
        assert!(!ledger.begin("e", &cancel), "four at a time");
        ["a", "b", "c", "d"].iter().for_each(|identity| ledger.end(identity));
        assert!(!ledger.wait() && ledger.changes() == 4);
        ledger.close();
        assert!(!ledger.begin("a", &cancel));
    }
}
