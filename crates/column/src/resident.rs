//! Which columns are on the device, and who may stay.
//!
//! The unit is a column of a table version. A statement names the columns it needs in one [`Residency::admit`]: what is
//! missing is loaded (by one thread at a time), everything is pinned, and its transient memory is reserved in the same
//! step. A statement never waits while it holds pins or reservations: when there is no room it lets go of everything
//! and starts over, first once no other statement is loading (two of them could hold each other up for ever), then
//! whenever a running statement has finished. A statement whose columns are all resident takes none of the locks that
//! loads hold. One that wants to be the only one is overtaken by others for half a second; those that arrive afterwards
//! wait until it was admitted. Every wait ends when its statement is cancelled. Columns nobody has pinned leave by
//! least recent use; within a budget of their own, copies of them stay on the host, from which they come back without
//! being decoded again. Columns that are kept in a file come from there, and those that were read from their source go
//! into it once the statement has all it needs.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use warpcube_gpu::{Device, GpuError, Reservation};

use crate::book::{Book, Changes, Leaving, Origin, TableSummary, Whereabouts};
use crate::encode::{Known, encode_best};
use crate::encoding::{Encoding, Profile};
use crate::error::{ColumnError, Result};
use crate::host::HostColumn;
use crate::kept::KeptFiles;
use crate::layout::Layout;
use crate::limits::{LoadLimits, LoadReport};
use crate::load::{ColumnSource, Room, load};
use crate::profiler::profile;
use crate::segment::{ResidentColumn, Segment};
use crate::staging::StagingPool;
use crate::transcode::{compile_all, distinct, encode_copies, has_encoders, request_better};
use crate::waiting::{Active, Activity, EVERY_TURN, GivingWay, Hurrying, NEVER, PATIENCE, Turn, Turns, WAIT, until};

/// What a statement needs of one table.
pub struct TableRequest {
    /// The table.
    pub source: Arc<dyn ColumnSource>,
    /// Columns by position in the table's schema.
    pub columns: Vec<usize>,
}

/// Columns of one table, held on the device.
#[derive(Debug, Clone)]
pub struct PinnedTable {
    /// Rows of each chunk.
    pub chunks: Arc<[u32]>,
    /// The columns in the order of the request.
    pub columns: Vec<Arc<ResidentColumn>>,
}

impl PinnedTable {
    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|rows| u64::from(*rows)).sum()
    }
}

/// All that a statement holds on the device.
#[derive(Debug)]
pub struct Pinned {
    /// The tables in the order of the requests.
    pub tables: Vec<PinnedTable>,
    /// Memory for hash tables and results.
    pub transient: Reservation,
    /// What had to be loaded.
    pub loaded: LoadReport,
    _active: Active,
}

/// The segments of a column that is plain.
fn plain_segments(column: &ResidentColumn) -> Result<&[Segment]> {
    match column.layout() {
        Layout::Plain => Ok(column.segments()),
        layout => Err(ColumnError::Unsupported {
            column: column.name().to_string(),
            reason: format!("it is {layout} already, not plain"),
        }),
    }
}

/// The columns resident on one device.
pub struct Residency {
    device: Device,
    staging: StagingPool,
    files: KeptFiles,
    book: Mutex<Book>,
    loading: Mutex<()>,
    evicting: Mutex<()>,
    /// Read while a statement that loads is being admitted, written by one that wants to be the only one.
    admission: RwLock<()>,
    activity: Arc<Activity>,
    turns: Turns,
    /// Statements that have read columns from their sources.
    loads: AtomicUsize,
    /// What stops the load in progress, if it gives way to others.
    giving_way: Mutex<Option<Arc<AtomicBool>>>,
    /// Loads that wait for one in progress and give no way.
    hurrying: AtomicUsize,
}

impl Residency {
    /// An empty device.
    pub fn new(device: Device) -> Residency {
        Residency {
            device,
            staging: StagingPool::default(),
            files: KeptFiles::default(),
            book: Mutex::default(),
            loading: Mutex::new(()),
            evicting: Mutex::new(()),
            admission: RwLock::new(()),
            activity: Arc::default(),
            turns: Turns::default(),
            loads: AtomicUsize::new(0),
            giving_way: Mutex::default(),
            hurrying: AtomicUsize::new(0),
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Loads what is missing, pins everything and reserves transient memory, whose bytes `transient` tells from the
    /// pinned columns.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] for columns that cannot be kept, [`ColumnError::OverBudget`] if the statement alone
    /// does not fit, [`GpuError::Cancelled`] once `limits.cancelled` is raised while waiting.
    pub fn admit<E: From<ColumnError>>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
    ) -> std::result::Result<Pinned, E> {
        let mut done = Done::default();
        let (mut changed_once, mut alone) = (false, None);
        let arrived = self.turns.arrive();
        if !self.turns.has_passed(arrived) {
            until(&limits.cancelled, || self.turns.has_passed(arrived).then_some(()))?;
        }
        loop {
            let resident = alone.is_none().then(|| self.admit_resident(requests, limits, &transient)).flatten();
            let (outcome, others) = match (resident, &mut alone) {
                (Some(outcome), _) => (outcome, true),
                (None, None) => self.admit_once(requests, limits, &transient, &mut done),
                (None, Some(alone)) => self.admit_alone(requests, limits, &transient, &mut done, alone),
            };
            match outcome {
                Ok((tables, transient, active)) => {
                    // What is run once pays for nothing more.
                    if !done.read.is_empty() && self.loads.fetch_add(1, Ordering::Relaxed) > 0 {
                        request_better(&self.device);
                    }
                    self.keep(requests, &tables, limits, &mut done);
                    return Ok(Pinned { tables, transient, loaded: done.report, _active: active });
                }
                Err(Refusal::Column(ColumnError::OverBudget { .. }))
                    if !limits.gives_way && (alone.is_none() || others) =>
                {
                    if limits.cancelled.load(Ordering::Relaxed) {
                        return Err(ColumnError::from(GpuError::Cancelled).into());
                    }
                    match alone {
                        Some(_) => self.device.pool().wait_for_release(WAIT),
                        None => alone = Some(Alone { since: Instant::now(), turn: None }),
                    }
                }
                Err(Refusal::Column(ColumnError::Changed { .. })) if !changed_once => changed_once = true,
                Err(Refusal::Column(error)) => return Err(error.into()),
                Err(Refusal::Caller(error)) => return Err(error),
            }
        }
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
        let room = Evicting { residency: self, table: column.name(), host_bytes: 0, cancelled: &NEVER };
        encode_copies(&self.device, &room, column.storage(), encoding, plain_segments(column)?)
    }

    /// The same in the encoding that a load gives the column which names none, from the pass over its values that tells
    /// which to the last byte.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for the copies.
    pub fn encode_best(&self, column: &ResidentColumn) -> Result<(Encoding, Vec<Segment>)> {
        let room = Evicting { residency: self, table: column.name(), host_bytes: 0, cancelled: &NEVER };
        let (range, strings) = (column.statistics().integers, column.dictionary().is_some());
        let known = Known { storage: column.storage(), range, strings };
        encode_best(&self.device, &room, known, plain_segments(column)?)
    }

    /// The distinct valid values of a plain column by their bits, in any order; `None` if there are more than `limit`.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for a set of four times as many.
    pub fn distinct(&self, column: &ResidentColumn, limit: usize) -> Result<Option<Vec<u64>>> {
        let room = Evicting { residency: self, table: column.name(), host_bytes: 0, cancelled: &NEVER };
        distinct(&self.device, &room, column.storage(), plain_segments(column)?, limit)
    }

    /// What a pass over a plain column tells of its values.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`] without room for what is known of each vector meanwhile.
    pub fn profile(&self, column: &ResidentColumn) -> Result<Profile> {
        let room = Evicting { residency: self, table: column.name(), host_bytes: 0, cancelled: &NEVER };
        profile(&self.device, &room, column.storage(), plain_segments(column)?)
    }

    /// The statement's tables and memory if all its columns are resident; waits for no load and for no statement that
    /// wants to be the only one.
    fn admit_resident<E>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
    ) -> Option<std::result::Result<Admitted, Refusal<E>>> {
        let named: Vec<(String, String)> =
            requests.iter().map(|request| (request.source.key(), request.source.version())).collect();
        let needed = || named.iter().zip(requests).map(|((key, version), request)| (key, version, &request.columns));
        let mut book = self.book.lock();
        if !needed().all(|(key, version, columns)| book.is_resident(key, version, columns)) {
            return None;
        }
        // Before anything is pinned: whoever finds no room over these pins sees that there is another statement.
        let active = Active::begin(&self.activity);
        let tables: Option<Vec<PinnedTable>> =
            needed().map(|(key, version, columns)| book.pin(key, version, columns, true).0).collect();
        drop(book);
        let tables = tables?;
        Some(self.reserve(&tables, limits, transient).map(|reservation| (tables, reservation, active)))
    }

    /// One try, and whether other statements held something meanwhile. Nothing is held after a refusal.
    fn admit_once<E>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
        done: &mut Done,
    ) -> (std::result::Result<Admitted, Refusal<E>>, bool) {
        // A load that began now would hold up those that wait behind the turn.
        let may_load = || self.turns.has_passed(EVERY_TURN);
        let shared = until(&limits.cancelled, || {
            may_load().then(|| self.admission.try_read_for(WAIT)).flatten().filter(|_| may_load())
        });
        match shared {
            Ok(_held) => self.admit_held(requests, limits, transient, done),
            Err(cancelled) => (Err(cancelled.into()), false),
        }
    }

    /// As [`Residency::admit_once`], with no other statement that loads; out of patience it takes a turn.
    fn admit_alone<'a, E>(
        &'a self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
        done: &mut Done,
        alone: &mut Alone<'a>,
    ) -> (std::result::Result<Admitted, Refusal<E>>, bool) {
        let exclusive = until(&limits.cancelled, || {
            self.stop_what_gives_way(limits);
            self.admission.try_write_for(WAIT)
        });
        let _held = match exclusive {
            Ok(exclusive) => exclusive,
            Err(cancelled) => return (Err(cancelled.into()), false),
        };
        let (outcome, others) = self.admit_held(requests, limits, transient, done);
        if outcome.is_err() && others && alone.turn.is_none() && alone.since.elapsed() >= PATIENCE {
            // No load is in progress, and none begins: who waits for the turn waits for statements that run.
            alone.turn = Some(self.turns.take());
        }
        (outcome, others)
    }

    fn admit_held<E>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
        done: &mut Done,
    ) -> (std::result::Result<Admitted, Refusal<E>>, bool) {
        let begun = || self.activity.begun.load(Ordering::Acquire);
        let (running, before) = (self.activity.running.load(Ordering::Acquire), begun());
        let outcome = self.try_admit(requests, limits, transient, done);
        let others = running > 0 || begun() != before;
        (outcome.map(|(tables, transient)| (tables, transient, Active::begin(&self.activity))), others)
    }

    fn try_admit<E>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
        done: &mut Done,
    ) -> std::result::Result<(Vec<PinnedTable>, Reservation), Refusal<E>> {
        // The largest first: what it is encoded with is compiled while it is read, and there for the others.
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(requests[*number].source.rows()));
        let mut tables: Vec<Option<PinnedTable>> = requests.iter().map(|_| None).collect();
        for number in order {
            let table = self.pin(&requests[number], limits, &mut done.report, |column| {
                done.read.insert((number, column));
            })?;
            tables[number] = Some(table);
        }
        let tables: Vec<PinnedTable> = tables.into_iter().flatten().collect();
        let reservation = self.reserve(&tables, limits, transient)?;
        Ok((tables, reservation))
    }

    /// Reserves the memory that a statement needs beside its columns.
    fn reserve<E>(
        &self,
        tables: &[PinnedTable],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
    ) -> std::result::Result<Reservation, Refusal<E>> {
        let bytes = transient(tables).map_err(Refusal::Caller)?;
        Ok(self.evicting_for("hash tables and results", limits).reserve(bytes)?)
    }

    /// Stops the load in progress if it gives way, for one that does not and would wait for it.
    fn stop_what_gives_way(&self, limits: &LoadLimits) {
        if let Some(cancelled) = self.giving_way.lock().as_ref().filter(|_| !limits.gives_way) {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn evicting_for<'a>(&'a self, table: &'a str, limits: &'a LoadLimits) -> Evicting<'a> {
        Evicting { residency: self, table, host_bytes: limits.host_bytes, cancelled: &limits.cancelled }
    }

    /// Pins a table's columns; `read` is told those that were read from its source.
    fn pin(
        &self,
        request: &TableRequest,
        limits: &LoadLimits,
        report: &mut LoadReport,
        mut read: impl FnMut(usize),
    ) -> Result<PinnedTable> {
        let (source, columns) = (request.source.as_ref(), &request.columns);
        let (key, version) = (source.key(), source.version());
        if let (Some(table), _) = self.book.lock().pin(&key, &version, columns, true) {
            return Ok(table);
        }
        let hurrying = Hurrying::begin(&self.hurrying, limits);
        let _loading = until(&limits.cancelled, || {
            self.stop_what_gives_way(limits);
            self.loading.try_lock_for(WAIT)
        })?;
        drop(hurrying);
        let _giving_way = limits.gives_way.then(|| {
            *self.giving_way.lock() = Some(limits.cancelled.clone());
            GivingWay(&self.giving_way)
        });
        if limits.gives_way && self.hurrying.load(Ordering::SeqCst) > 0 {
            return Err(GpuError::Cancelled.into());
        }
        let (found, kept) = self.book.lock().pin(&key, &version, columns, false);
        if let Some(table) = found {
            return Ok(table);
        }
        // What is held here stays until everything is pinned, whoever needs room meanwhile.
        let mut fresh: Vec<Arc<ResidentColumn>> = Vec::new();
        let mut missing = Vec::new();
        let room = self.evicting_for(source.name(), limits);
        let copies = self.book.lock().missing(&key, columns);
        for (column, copy) in copies {
            match copy {
                Some(copy) => fresh.extend(self.restore(&key, &version, &copy, &room, report)?),
                None => missing.push(column),
            }
        }
        let file = source.kept_in();
        let mut has_chunks = !fresh.is_empty();
        if let Some(file) = file.as_ref().filter(|_| !missing.is_empty() || fresh.is_empty()) {
            let chunks = self.book.lock().chunks(&key, &version);
            let place = (&self.device, &room as &dyn Room, &self.staging);
            let restored = self.files.restore(file, source, (&version, chunks.as_deref()), &missing, limits, place)?;
            report.warnings.extend(restored.warnings);
            if let Some(loaded) = restored.loaded {
                missing.retain(|column| !loaded.columns.iter().any(|restored| restored.index() == *column));
                report.add(&loaded.report);
                fresh.extend(self.book.lock().enter(&key, &version, source, (loaded, Origin::File))?);
                has_chunks = true;
            }
        }
        if !missing.is_empty() || !has_chunks {
            let schema = source.schema();
            let names: Vec<&str> = missing.iter().map(|index| schema.field(*index).name().as_str()).collect();
            let refused = (key.clone(), version.clone(), limits.dictionary_values);
            if let Some(error) = self.book.lock().refusal(&refused, &names) {
                return Err(error);
            }
            let span = tracing::info_span!("load", table = source.name(), columns = missing.len());
            let load = || load(&self.device, source, &missing, limits, &room, &self.staging);
            let loaded = span.in_scope(load);
            if source.look_again()? != version {
                // Whatever came of it, an error included, comes from the files of two versions.
                let detail = "its files were replaced, added or deleted".to_string();
                return Err(ColumnError::Changed { table: source.name().to_string(), detail });
            }
            let loaded = loaded.inspect_err(|error| {
                if error.is_unsupported() {
                    self.book.lock().refuse(refused, error.clone());
                }
            })?;
            let LoadReport { rows, bytes, elapsed, .. } = loaded.report;
            let rate = loaded.report.gigabytes_per_second_core();
            tracing::info!(table = source.name(), rows, bytes, ?elapsed, gigabytes_per_second_core = rate, "loaded");
            report.add(&loaded.report);
            missing.iter().for_each(|column| read(*column));
            let entered = self.book.lock().enter(&key, &version, source, (loaded, Origin::Source));
            if let (Err(_), Some(file)) = (&entered, &file) {
                // What came from the file may be cut in another way than what is read now.
                self.files.distrust(file);
            }
            fresh.extend(entered?);
        }
        let (found, _) = self.book.lock().pin(&key, &version, columns, false);
        drop((kept, fresh));
        found.ok_or_else(|| ColumnError::Changed {
            table: source.name().to_string(),
            detail: "its columns left the device at once".into(),
        })
    }

    /// Writes the columns that were read to the files where their tables keep theirs. All are pinned by now.
    fn keep(&self, requests: &[TableRequest], tables: &[PinnedTable], limits: &LoadLimits, done: &mut Done) {
        for (number, (request, table)) in requests.iter().zip(tables).enumerate() {
            let is_read = |column: &&Arc<ResidentColumn>| done.read.contains(&(number, column.index()));
            let columns: Vec<&ResidentColumn> = table.columns.iter().filter(is_read).map(Arc::as_ref).collect();
            let file = request.source.kept_in().filter(|file| file.write && !columns.is_empty());
            let Some(file) = file else { continue };
            let content = (request.source.version(), &table.chunks[..], &columns[..]);
            done.report.add(&self.files.add(&self.device, &file, content, limits));
        }
    }

    /// Brings a column back from its copy on the host.
    fn restore(
        &self,
        key: &str,
        version: &str,
        copy: &HostColumn,
        room: &dyn Room,
        report: &mut LoadReport,
    ) -> Result<Option<Arc<ResidentColumn>>> {
        let start = Instant::now();
        let column = copy.restore(&self.device, room, &self.staging)?;
        let bytes = column.bytes();
        report.add(&LoadReport { bytes, restored: bytes, elapsed: start.elapsed(), ..LoadReport::default() });
        Ok(self.book.lock().restored(key, version, column))
    }

    /// Drops the least recently used column that nobody has pinned, keeping a copy within `host_bytes`; whether there
    /// was one.
    fn evict_one(&self, host_bytes: u64) -> bool {
        let Some(leaving) = self.book.lock().leave() else { return false };
        let Leaving { key, version, column, copied } = leaving;
        let wanted = !copied && column.bytes() <= host_bytes;
        // A device that fails to give a copy fails the statement soon enough.
        let copy = wanted.then(|| HostColumn::save(&self.device, &column).ok()).flatten();
        drop(column);
        self.book.lock().left(&key, &version, copy, host_bytes);
        true
    }

    /// Drops the columns of the table with a key from the device, and copies of them on the host; running statements
    /// keep what they have pinned. What was there, if anything was.
    pub fn evict(&self, key: &str) -> Option<TableSummary> {
        self.book.lock().forget(key)
    }

    /// Drops a table's columns from the device by the name people know, and copies of them on the host; running
    /// statements keep what they have pinned. What was there, if anything was.
    pub fn evict_by_name(&self, name: &str) -> Option<TableSummary> {
        self.book.lock().forget_by_name(name)
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.book.lock().clear();
    }

    /// How often columns came to the device and left it.
    pub fn changes(&self) -> Changes {
        self.book.lock().changes()
    }

    /// Where a column of a table version is.
    pub fn whereabouts(&self, key: &str, version: &str, column: usize) -> Whereabouts {
        self.book.lock().whereabouts(key, version, column)
    }

    /// Distinct values of a column that is resident or copied to the host: as many as its dictionary has, or an
    /// estimate to a few percent where a pass over its values made one.
    pub fn distinct_values(&self, key: &str, version: &str, column: usize) -> Option<u64> {
        self.book.lock().distinct_values(key, version, column)
    }

    /// Whether all `columns` of this version are resident.
    pub fn is_resident(&self, key: &str, version: &str, columns: &[usize]) -> bool {
        self.book.lock().is_resident(key, version, columns)
    }

    /// A table by its key, with what is resident of it.
    pub fn summary_of(&self, key: &str) -> Option<TableSummary> {
        self.book.lock().summary_of(key)
    }

    /// The tables of which something is resident, or copied to the host, by name.
    pub fn summaries(&self) -> Vec<TableSummary> {
        self.book.lock().summaries()
    }
}

/// What an admission did so far.
#[derive(Default)]
struct Done {
    report: LoadReport,
    /// Columns that were read from their source: number of the request, position of the column.
    read: HashSet<(usize, usize)>,
}

/// A statement that wants to be the only one.
struct Alone<'a> {
    since: Instant,
    turn: Option<Turn<'a>>,
}

/// What an admission holds: tables, transient memory, its place among the active statements.
type Admitted = (Vec<PinnedTable>, Reservation, Active);

enum Refusal<E> {
    Column(ColumnError),
    Caller(E),
}

impl<E> From<ColumnError> for Refusal<E> {
    fn from(error: ColumnError) -> Refusal<E> {
        Refusal::Column(error)
    }
}

/// Room made by evicting what nobody has pinned.
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
