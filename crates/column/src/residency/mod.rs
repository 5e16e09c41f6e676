//! Residency: which columns are on the device, and which of them leave when memory is short.
//!
//! The unit is a column of a table version. A statement names the columns it needs in one [`Residency::admit`]: what is
//! missing is loaded (by one thread at a time), everything is pinned, and its transient memory is reserved in the same
//! step. A statement never waits while it holds pins or reservations: when there is no room it lets go of everything
//! and starts over, first once no other statement is loading (two of them could hold each other up for ever), then
//! whenever a running statement has finished. A statement whose columns are all resident takes none of the locks that
//! loads hold. One that wants to be the only one is overtaken by others for half a second; those that arrive afterwards
//! wait until it was admitted. Every wait ends when its statement is cancelled. Columns that no statement has pinned
//! leave by least recent use; within a budget of their own, copies of them stay on the host, from which they come back
//! without being decoded again. Columns that are kept in a file come from there, and those that were read from their
//! source go into it once the statement has all it needs.

mod admission;
mod ledger;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use warpcube_gpu::{Device, Reservation};

use self::ledger::{Leaving, Ledger};
use self::waiting::{Active, Activity, NEVER, Turns, WAIT, until};
use crate::device::{
    Known, Relation, ResidentColumn, Room, Segment, compile_all, distinct, encode_best, encode_copies, has_encoders,
    profile,
};
use crate::error::{ColumnError, Result};
use crate::format::{Encoding, Profile};
use crate::load::{ColumnFiles, HostColumn, LoadLimits, LoadReport, StagingPool};
use crate::source::ColumnSource;
use crate::units::ColumnFacts;
pub use ledger::{Changes, ColumnSummary, Origin, TableSummary, Whereabouts};

/// Columns of one table that a statement needs.
pub struct TableRequest {
    /// The table.
    pub source: Arc<dyn ColumnSource>,
    /// Columns by position in the table's schema.
    pub columns: Vec<usize>,
}

/// All that a statement holds on the device.
#[derive(Debug)]
pub struct Pinned {
    /// The columns of each table, in the order of the requests.
    pub tables: Vec<Relation>,
    /// Memory for hash tables and results.
    pub transient: Reservation,
    /// Report of the loads that were necessary.
    pub loaded: LoadReport,
    _active: Active,
}

/// The segments of a column that is plain.
fn plain_segments(column: &ResidentColumn) -> Result<&[Segment]> {
    match column.encoding() {
        Encoding::Plain => Ok(column.segments()),
        encoding => Err(ColumnError::Unsupported {
            column: column.name().to_string(),
            reason: format!("it is {encoding} already, not plain"),
        }),
    }
}

/// The columns resident on one device.
pub struct Residency {
    device: Device,
    staging: StagingPool,
    files: ColumnFiles,
    ledger: Mutex<Ledger>,
    loading: Mutex<()>,
    evicting: Mutex<()>,
    /// Read while a statement that loads is being admitted, written by one that wants to be the only one.
    admission: RwLock<()>,
    activity: Arc<Activity>,
    turns: Turns,
    /// Statements that have read columns from their sources.
    loads: AtomicUsize,
    /// Cancels the load in progress, if it is a background load.
    background_load: Mutex<Option<Arc<AtomicBool>>>,
    /// Foreground loads that wait for the one in progress.
    foreground_loads: AtomicUsize,
}

impl Residency {
    /// An empty device.
    pub fn new(device: Device) -> Residency {
        Residency {
            device,
            staging: StagingPool::default(),
            files: ColumnFiles::default(),
            ledger: Mutex::default(),
            loading: Mutex::new(()),
            evicting: Mutex::new(()),
            admission: RwLock::new(()),
            activity: Arc::default(),
            turns: Turns::default(),
            loads: AtomicUsize::new(0),
            background_load: Mutex::default(),
            foreground_loads: AtomicUsize::new(0),
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Compiles all that columns are encoded with, as well as it can be: loads compile what they need, sooner.
    pub fn compile_encoders(&self) -> Result<()> {
        compile_all(&self.device)
    }

    /// Whether what most columns are encoded with is compiled: a load waits for it otherwise.
    pub fn has_encoders(&self) -> bool {
        has_encoders(&self.device)
    }

    /// Copies of a plain column's segments in another encoding, made on the device; the column stays as it is.
    ///
    /// # Errors
    /// [`ColumnError::Encoding`] if the encoding is not for such values or cannot hold one, [`ColumnError::OverBudget`]
    /// without room for the copies.
    pub fn encode(&self, column: &ResidentColumn, encoding: &Encoding) -> Result<Vec<Segment>> {
        encode_copies(&self.device, &self.evicting(column), column.storage(), encoding, plain_segments(column)?)
    }

    /// The same in the encoding that a load gives the column which names none, from the pass over its values that tells
    /// which to the last byte.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for the copies.
    pub fn encode_best(&self, column: &ResidentColumn) -> Result<(Encoding, Vec<Segment>)> {
        let facts = column.facts();
        let (range, strings) = (facts.statistics.integers, facts.dictionary.is_some());
        let known = Known { storage: facts.storage, range, strings };
        encode_best(&self.device, &self.evicting(column), known, plain_segments(column)?)
    }

    /// The distinct valid values of a plain column by their bits, in any order; `None` if there are more than `limit`.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for a set of four times as many.
    pub fn distinct(&self, column: &ResidentColumn, limit: usize) -> Result<Option<Vec<u64>>> {
        distinct(&self.device, &self.evicting(column), column.storage(), plain_segments(column)?, limit)
    }

    /// The profile of a plain column.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for what is known of each vector meanwhile.
    pub fn profile(&self, column: &ResidentColumn) -> Result<Profile> {
        profile(&self.device, &self.evicting(column), column.storage(), plain_segments(column)?)
    }

    /// Cancels the background load in progress, for a foreground load that would wait for it.
    fn cancel_background_load(&self, limits: &LoadLimits) {
        if let Some(cancelled) = self.background_load.lock().as_ref().filter(|_| !limits.in_background) {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn evicting_for<'a>(&'a self, table: &'a str, limits: &'a LoadLimits) -> Evicting<'a> {
        Evicting { residency: self, table, host_bytes: limits.host_bytes, cancelled: &limits.cancelled }
    }

    /// Room for copies of a column that no statement asked for.
    fn evicting<'a>(&'a self, column: &'a ResidentColumn) -> Evicting<'a> {
        Evicting { residency: self, table: column.name(), host_bytes: 0, cancelled: &NEVER }
    }

    /// Drops the least recently used column without a pin, keeping a copy within `host_bytes`; whether there
    /// was one.
    fn evict_one(&self, host_bytes: u64) -> bool {
        let Some(leaving) = self.ledger.lock().leave() else { return false };
        let Leaving { key, version, column, copied } = leaving;
        let wanted = !copied && column.bytes() <= host_bytes;
        // A device that fails to give a copy fails the statement soon enough.
        let copy = wanted.then(|| HostColumn::save(&self.device, &column).ok()).flatten();
        drop(column);
        self.ledger.lock().left(&key, &version, copy, host_bytes);
        true
    }

    /// Drops the columns of the table with a key from the device, and copies of them on the host; running statements
    /// keep what they have pinned. What was there, if anything was.
    pub fn evict(&self, key: &str) -> Option<TableSummary> {
        self.ledger.lock().forget(key)
    }

    /// Drops a table's columns from the device by the name people know, and copies of them on the host; running
    /// statements keep what they have pinned. What was there, if anything was.
    pub fn evict_by_name(&self, name: &str) -> Option<TableSummary> {
        self.ledger.lock().forget_by_name(name)
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.ledger.lock().clear();
    }

    /// How often columns came to the device and left it.
    pub fn changes(&self) -> Changes {
        self.ledger.lock().changes()
    }

    /// Where a column of a table version is.
    pub fn whereabouts(&self, key: &str, version: &str, column: usize) -> Whereabouts {
        self.ledger.lock().whereabouts(key, version, column)
    }

    /// What is known of a column that is resident or copied to the host.
    pub fn facts(&self, key: &str, version: &str, column: usize) -> Option<Arc<ColumnFacts>> {
        self.ledger.lock().facts(key, version, column)
    }

    /// Whether all `columns` of this version are resident.
    pub fn is_resident(&self, key: &str, version: &str, columns: &[usize]) -> bool {
        self.ledger.lock().is_resident(key, version, columns)
    }

    /// A table by its key, with what is resident of it.
    pub fn summary_of(&self, key: &str) -> Option<TableSummary> {
        self.ledger.lock().summary_of(key)
    }

    /// The tables of which something is resident, or copied to the host, by name.
    pub fn summaries(&self) -> Vec<TableSummary> {
        self.ledger.lock().summaries()
    }
}

/// Room made by evicting columns that no statement has pinned.
struct Evicting<'a> {
    residency: &'a Residency,
    table: &'a str,
    host_bytes: u64,
    cancelled: &'a AtomicBool,
}

impl Room for Evicting<'_> {
    fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let pool = self.residency.device.pool();
        loop {
            if let Some(reservation) = pool.try_reserve(bytes) {
                return Ok(reservation);
            }
            // While another thread copies a column aside its memory is not free yet, and it is no victim any more.
            let _evicting = until(self.cancelled, || self.residency.evicting.try_lock_for(WAIT))?;
            if let Some(reservation) = pool.try_reserve(bytes) {
                return Ok(reservation);
            }
            if !self.residency.evict_one(self.host_bytes) {
                return Err(ColumnError::OverBudget {
                    table: self.table.to_string(),
                    wanted: bytes,
                    available: pool.available(),
                    budget: pool.usage().budget,
                });
            }
        }
    }
}
