//! Residency: the columns on a device, their admission for statements and their eviction.
//!
//! The unit is a column of a table version. [`Residency::admit`] loads the missing columns of a statement (one load at
//! a time), pins all columns, and reserves transient memory in one step. A statement never waits while it holds pins or
//! reservations. Without room it drops them and tries again: once with exclusive admission, since two concurrent loads
//! could block each other for ever, then after each end of a running statement. A statement with resident columns alone
//! takes no lock of loads. Other statements overtake an exclusive one for half a second; later arrivals then wait for
//! its admission. Cancellation ends every wait.
//!
//! Columns without pins are evicted by least recent use, and so are objects on the device that belong to a table. Host
//! copies of them stay within a budget of their own, and return without decoding. Column files replace the source;
//! columns read from the source are added to the file after admission.

mod admission;
mod ledger;
mod waiting;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use warpcube_gpu::{Device, Reservation};

use self::ledger::{ColumnVictim, Ledger, Victim};
use self::waiting::{Active, Activity, NOT_CANCELLED, Turns, WAIT, until};
use crate::device::{
    Relation, ResidentColumn, Room, Segment, ValueFacts, compile_all, distinct, encode_best, encode_copies,
    has_encoders, profile,
};
use crate::error::{ColumnError, Result};
use crate::format::{Encoding, Profile};
use crate::load::{ColumnFiles, HostColumn, LoadLimits, LoadReport, StagingPool};
use crate::source::ColumnSource;
use crate::units::ColumnFacts;
pub use ledger::{ChangeCounts, ColumnOrigin, ColumnSummary, Location, TableSummary};

/// The columns of one table for a statement.
pub struct TableRequest {
    /// The table.
    pub source: Arc<dyn ColumnSource>,
    /// Columns by position in the source's schema.
    pub columns: Vec<usize>,
    /// Those among them whose strings must be codes. Other string columns may be bytes ([`Encoding::Bytes`]).
    pub coded: Vec<usize>,
}

/// Pinned columns and reserved memory of a statement.
#[derive(Debug)]
pub struct Pinned {
    /// The columns of each table, in the order of the requests.
    pub tables: Vec<Relation>,
    /// Memory for hash tables and results.
    pub transient: Reservation,
    /// Report of the loads of the admission.
    pub loaded: LoadReport,
    _active: Active,
}

/// The segments of a plain column.
fn plain_segments(column: &ResidentColumn) -> Result<&[Segment]> {
    match column.encoding() {
        Encoding::Plain => Ok(column.segments()),
        encoding => Err(ColumnError::unsupported(column.name(), format!("its encoding is {encoding}, not plain"))),
    }
}

/// The residency of one device.
pub struct Residency {
    device: Device,
    staging: StagingPool,
    files: ColumnFiles,
    ledger: Mutex<Ledger>,
    loading: Mutex<()>,
    evicting: Mutex<()>,
    /// Held shared by admissions with loads, and exclusively by exclusive admissions.
    admission: RwLock<()>,
    activity: Arc<Activity>,
    turns: Turns,
    /// Number of statements that read a source.
    loads: AtomicUsize,
    /// The flag that cancels the background load in progress.
    background_load: Mutex<Option<Arc<AtomicBool>>>,
    /// Number of foreground loads that wait for the load in progress.
    foreground_loads: AtomicUsize,
}

impl Residency {
    /// The residency of a device without columns.
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

    /// Compiles all encoders with full effort. Loads compile those that they need with less effort.
    pub fn compile_encoders(&self) -> Result<()> {
        if self.device.info().runs_kernels { compile_all(&self.device) } else { Ok(()) }
    }

    /// Whether the encoders of most columns are compiled. Otherwise a load waits for the compiler.
    pub fn has_encoders(&self) -> bool {
        !self.device.info().runs_kernels || has_encoders(&self.device)
    }

    /// Copies of the segments of a plain column in another encoding; the column does not change.
    ///
    /// # Errors
    /// [`ColumnError::Encoding`] if the encoding is not for the storage or cannot hold a value,
    /// [`ColumnError::OverBudget`] without room for the copies.
    pub fn encode(&self, column: &ResidentColumn, encoding: &Encoding) -> Result<Vec<Segment>> {
        encode_copies(&self.device, &self.evicting(column), column.storage(), encoding, plain_segments(column)?)
    }

    /// The encoding of an automatic choice for a plain column, and copies of its segments in this encoding.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for the copies.
    pub fn encode_best(&self, column: &ResidentColumn) -> Result<(Encoding, Vec<Segment>)> {
        let facts = column.facts();
        let (range, is_string) = (facts.statistics.integers, facts.dictionary.is_some());
        let facts = ValueFacts { storage: facts.storage, range, is_string };
        encode_best(&self.device, &self.evicting(column), facts, plain_segments(column)?)
    }

    /// Bits of the distinct valid values of a plain column, in any order; `None` past `limit` values.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for a hash set of `4 * limit` slots.
    pub fn distinct(&self, column: &ResidentColumn, limit: usize) -> Result<Option<Vec<u64>>> {
        distinct(&self.device, &self.evicting(column), column.storage(), plain_segments(column)?, limit)
    }

    /// The profile of a plain column.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for the bounds and ends of vectors.
    pub fn profile(&self, column: &ResidentColumn) -> Result<Profile> {
        profile(&self.device, &self.evicting(column), column.storage(), plain_segments(column)?)
    }

    /// Cancels the background load in progress for a foreground load.
    fn cancel_background_load(&self, limits: &LoadLimits) {
        if let Some(cancelled) = self.background_load.lock().as_ref().filter(|_| !limits.in_background) {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// Reserves more transient memory for a statement that holds some: it evicts columns, and waits for no statement.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room.
    pub fn reserve_more(&self, bytes: u64, limits: &LoadLimits) -> Result<Reservation> {
        self.evicting_for(Purpose::Results, limits).reserve(bytes)
    }

    fn evicting_for<'a>(&'a self, purpose: Purpose<'a>, limits: &'a LoadLimits) -> Evicting<'a> {
        Evicting { residency: self, purpose, host_bytes: limits.host_bytes, cancelled: &limits.cancelled }
    }

    /// Room for copies of a column outside of an admission.
    fn evicting<'a>(&'a self, column: &'a ResidentColumn) -> Evicting<'a> {
        Evicting { residency: self, purpose: Purpose::Column(column.name()), host_bytes: 0, cancelled: &NOT_CANCELLED }
    }

    /// The object that [`Residency::keep`] has of a table version.
    pub fn object<T: Any + Send + Sync>(&self, key: &str, version: &str) -> Option<Arc<T>> {
        self.ledger.lock().object(key, version)?.downcast().ok()
    }

    /// Keeps an object on the device that belongs to a table version, with the reservation of its memory. It leaves by
    /// least recent use among the columns, once no one else holds it, and with its table.
    pub fn keep<T: Any + Send + Sync>(&self, key: &str, version: &str, object: Arc<T>) {
        self.ledger.lock().keep(key, version, object);
    }

    /// Evicts the least recently used column without a pin, with a host copy within `host_bytes`, or object; false
    /// without one.
    fn evict_one(&self, host_bytes: u64) -> bool {
        let victim = self.ledger.lock().take_victim();
        let ColumnVictim { key, version, column, has_copy } = match victim {
            None => return false,
            Some(Victim::Object(object)) => {
                drop(object);
                return true;
            }
            Some(Victim::Column(victim)) => victim,
        };
        // Columns of the host have no copies there.
        let wanted = !has_copy && self.device.info().runs_kernels && column.bytes() <= host_bytes;
        // The statement itself reports a failed device.
        let copy = wanted.then(|| HostColumn::save(&self.device, &column).ok()).flatten();
        drop(column);
        self.ledger.lock().evicted(&key, &version, copy, host_bytes);
        true
    }

    /// Evicts a table by its key, host copies included, and returns its summary. Running statements keep their pins.
    pub fn evict(&self, key: &str) -> Option<TableSummary> {
        self.ledger.lock().forget(key)
    }

    /// As [`Residency::evict`], by the name of the table.
    pub fn evict_by_name(&self, name: &str) -> Option<TableSummary> {
        self.ledger.lock().forget_by_name(name)
    }

    /// Evicts all tables, host copies included.
    pub fn clear(&self) {
        self.ledger.lock().clear();
    }

    /// Numbers of loads and evictions so far.
    pub fn changes(&self) -> ChangeCounts {
        self.ledger.lock().changes()
    }

    /// The nearest place of a column of a table version.
    pub fn location(&self, key: &str, version: &str, column: usize) -> Location {
        self.ledger.lock().location(key, version, column)
    }

    /// Facts of a column that is resident or has a host copy.
    pub fn facts(&self, key: &str, version: &str, column: usize) -> Option<Arc<ColumnFacts>> {
        self.ledger.lock().facts(key, version, column)
    }

    /// Whether a string column of a table version, by its position and its name, is known to have no codes: it has more
    /// than `limit` distinct strings, or a load has refused it for another reason.
    pub fn has_no_codes(&self, key: &str, version: &str, (column, name): (usize, &str), limit: usize) -> bool {
        let ledger = self.ledger.lock();
        let is_bytes = ledger.bytes_among(key, version, &[column]).is_some_and(|(_, past)| limit as u64 <= past);
        is_bytes || ledger.refusal(&(key.to_string(), version.to_string(), limit), name).is_some()
    }

    /// Average bytes of a value of a string column that is resident, or has a host copy, as bytes.
    pub fn text_bytes(&self, key: &str, version: &str, column: usize) -> Option<f64> {
        self.ledger.lock().text_bytes(key, version, column)
    }

    /// Whether all `columns` of this version are resident.
    pub fn is_resident(&self, key: &str, version: &str, columns: &[usize]) -> bool {
        self.ledger.lock().is_resident(key, version, columns)
    }

    /// The summary of a table by its key.
    pub fn summary_of(&self, key: &str) -> Option<TableSummary> {
        self.ledger.lock().summary_of(key)
    }

    /// Summaries of all tables with resident columns or host copies, by name.
    pub fn summaries(&self) -> Vec<TableSummary> {
        self.ledger.lock().summaries()
    }
}

/// The purpose of reserved memory, in errors.
#[derive(Clone, Copy)]
enum Purpose<'a> {
    /// The columns of a table.
    Table(&'a str),
    /// Copies of a resident column.
    Column(&'a str),
    /// Hash tables, lists of rows and the result of a statement.
    Results,
}

impl fmt::Display for Purpose<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Table(name) => write!(formatter, "table '{name}'"),
            Purpose::Column(name) => write!(formatter, "column '{name}'"),
            Purpose::Results => formatter.write_str("hash tables and results"),
        }
    }
}

/// Reserves memory, and evicts columns without pins for it.
struct Evicting<'a> {
    residency: &'a Residency,
    purpose: Purpose<'a>,
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
            // A column that another thread copies to the host is no victim any more, and its memory is not free yet.
            let _evicting = until(self.cancelled, || self.residency.evicting.try_lock_for(WAIT))?;
            if let Some(reservation) = pool.try_reserve(bytes) {
                return Ok(reservation);
            }
            if !self.residency.evict_one(self.host_bytes) {
                return Err(ColumnError::OverBudget {
                    purpose: self.purpose.to_string(),
                    wanted: bytes,
                    available: pool.available(),
                    budget: pool.usage().budget,
                });
            }
        }
    }
}
