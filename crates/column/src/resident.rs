//! Which columns are on the device, and who may stay.
//!
//! The unit is a column of a table version. A statement names the columns it needs in one [`Residency::admit`]: what is
//! missing is loaded (by one thread at a time), everything is pinned, and its transient memory is reserved in the same
//! step. A statement never waits while it holds pins or reservations: when there is no room it lets go of everything
//! and starts over, first once no other statement is being admitted (two of them could hold each other up for ever),
//! then whenever a running statement has finished. Columns nobody has pinned leave by least recent use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow::datatypes::DataType;
use parking_lot::{Mutex, RwLock};
use warpcube_gpu::{Device, DeviceBuffer, GpuError, Reservation};

use crate::dictionary::Dictionary;
use crate::error::{ColumnError, Result};
use crate::load::{ColumnSource, LoadLimits, LoadReport, Loaded, Room, load};
use crate::staging::StagingPool;
use crate::statistics::Statistics;
use crate::storage::Storage;

/// How long to wait for another statement before looking again.
const WAIT: Duration = Duration::from_millis(20);

/// An encoded run of one column on the device.
#[derive(Debug)]
pub struct Segment {
    values: DeviceBuffer,
    validity: Option<DeviceBuffer>,
    rows: u32,
    reservation: Reservation,
}

impl Segment {
    pub(crate) fn new(
        values: DeviceBuffer,
        validity: Option<DeviceBuffer>,
        rows: u32,
        reservation: Reservation,
    ) -> Segment {
        Segment { values, validity, rows, reservation }
    }

    /// Values, padded to whole vectors.
    pub fn values(&self) -> &DeviceBuffer {
        &self.values
    }

    /// Validity words; `None` if every row is valid.
    pub fn validity(&self) -> Option<&DeviceBuffer> {
        self.validity.as_ref()
    }

    /// Rows without padding.
    pub fn rows(&self) -> u32 {
        self.rows
    }
}

/// A column on the device with all that is known of it.
#[derive(Debug)]
pub struct ResidentColumn {
    index: usize,
    name: String,
    data_type: DataType,
    storage: Storage,
    segments: Vec<Segment>,
    statistics: Statistics,
    dictionary: Option<Arc<Dictionary>>,
}

impl ResidentColumn {
    pub(crate) fn new(
        index: usize,
        name: String,
        data_type: DataType,
        storage: Storage,
        segments: Vec<Segment>,
        statistics: Statistics,
        dictionary: Option<Arc<Dictionary>>,
    ) -> ResidentColumn {
        ResidentColumn { index, name, data_type, storage, segments, statistics, dictionary }
    }

    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Arrow type of the column.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Machine type of its values.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Its segments, one a chunk.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bounds and counts.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The dictionary of a string column.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Device memory it takes, as reserved.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.reservation.bytes()).sum()
    }
}

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

/// A table as `SHOW DEVICE TABLES` lists it.
#[derive(Debug, Clone)]
pub struct TableSummary {
    /// Name of the table.
    pub table: String,
    /// Rows.
    pub rows: u64,
    /// Its resident columns.
    pub columns: Vec<ColumnSummary>,
}

/// A resident column as `SHOW DEVICE TABLES` lists it.
#[derive(Debug, Clone)]
pub struct ColumnSummary {
    /// Name of the column.
    pub column: String,
    /// Arrow type.
    pub data_type: DataType,
    /// Encoding.
    pub encoding: &'static str,
    /// Device memory.
    pub bytes: u64,
    /// Distinct strings, where it has a dictionary.
    pub dictionary_values: Option<usize>,
    /// Statements that found it resident.
    pub hits: u64,
    /// Whether a statement uses it now.
    pub pinned: bool,
}

struct TableEntry {
    name: String,
    version: String,
    chunks: Arc<[u32]>,
    columns: HashMap<usize, ColumnEntry>,
}

struct ColumnEntry {
    column: Arc<ResidentColumn>,
    last_use: u64,
    hits: u64,
}

#[derive(Default)]
struct State {
    tables: HashMap<String, TableEntry>,
    clock: u64,
    /// Columns that were found not to fit the device, so that they are not read in vain again; the oldest first.
    refused: Vec<(RefusedUnder, ColumnError)>,
}

/// Key and version of a table, and the limit on its dictionaries.
type RefusedUnder = (String, String, usize);

/// Refused columns that are remembered.
const REFUSED_MAX: usize = 256;

impl State {
    fn refuse(&mut self, under: RefusedUnder, error: ColumnError) {
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push((under, error));
    }
}

/// The columns resident on one device.
pub struct Residency {
    device: Device,
    staging: StagingPool,
    state: Mutex<State>,
    loading: Mutex<()>,
    /// Read while a statement is being admitted, written by one that wants to be the only one.
    admission: RwLock<()>,
    active: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Active(Arc<AtomicUsize>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Residency {
    /// An empty device.
    pub fn new(device: Device) -> Residency {
        Residency {
            device,
            staging: StagingPool::default(),
            state: Mutex::default(),
            loading: Mutex::new(()),
            admission: RwLock::new(()),
            active: Arc::default(),
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
        let mut report = LoadReport::default();
        let (mut changed_once, mut alone) = (false, false);
        loop {
            let (outcome, others) = self.admit_once(requests, limits, &transient, &mut report, alone);
            match outcome {
                Ok((tables, transient, active)) => {
                    return Ok(Pinned { tables, transient, loaded: report, _active: active });
                }
                Err(Refusal::Column(ColumnError::OverBudget { .. })) if !alone || others => {
                    if limits.cancelled.load(Ordering::Relaxed) {
                        return Err(ColumnError::from(GpuError::Cancelled).into());
                    }
                    if alone {
                        self.device.pool().wait_for_release(WAIT);
                    }
                    alone = true;
                }
                Err(Refusal::Column(ColumnError::Changed { .. })) if !changed_once => changed_once = true,
                Err(Refusal::Column(error)) => return Err(error.into()),
                Err(Refusal::Caller(error)) => return Err(error),
            }
        }
    }

    /// One try, and whether other statements held something when it began. Nothing is held after a refusal.
    fn admit_once<E>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
        report: &mut LoadReport,
        alone: bool,
    ) -> (std::result::Result<Admitted, Refusal<E>>, bool) {
        let _exclusive = alone.then(|| self.admission.write());
        let _shared = (!alone).then(|| self.admission.read());
        let others = self.active.load(Ordering::Acquire) > 0;
        let outcome = self.try_admit(requests, limits, transient, report).map(|(tables, transient)| {
            self.active.fetch_add(1, Ordering::AcqRel);
            (tables, transient, Active(self.active.clone()))
        });
        (outcome, others)
    }

    fn try_admit<E>(
        &self,
        requests: &[TableRequest],
        limits: &LoadLimits,
        transient: &impl Fn(&[PinnedTable]) -> std::result::Result<u64, E>,
        report: &mut LoadReport,
    ) -> std::result::Result<(Vec<PinnedTable>, Reservation), Refusal<E>> {
        let mut tables = Vec::with_capacity(requests.len());
        for request in requests {
            tables.push(self.pin(request, limits, report)?);
        }
        let bytes = transient(&tables).map_err(Refusal::Caller)?;
        let reservation = Evicting { residency: self, table: "hash tables and results" }.reserve(bytes)?;
        Ok((tables, reservation))
    }

    fn pin(&self, request: &TableRequest, limits: &LoadLimits, report: &mut LoadReport) -> Result<PinnedTable> {
        let (key, version) = (request.source.key(), request.source.version());
        if let (Some(table), _) = self.pin_resident(&key, &version, &request.columns, true) {
            return Ok(table);
        }
        let _loading = self.loading.lock();
        let (found, kept) = self.pin_resident(&key, &version, &request.columns, false);
        if let Some(table) = found {
            return Ok(table);
        }
        let missing: Vec<usize> = {
            let state = self.state.lock();
            let entry = state.tables.get(&key);
            let resident = |column: &usize| entry.is_some_and(|entry| entry.columns.contains_key(column));
            let mut missing: Vec<usize> = request.columns.iter().copied().filter(|c| !resident(c)).collect();
            missing.sort_unstable();
            missing.dedup();
            missing
        };
        let refused = (key.clone(), version.clone(), limits.dictionary_values);
        if let Some((_, error)) = self.state.lock().refused.iter().find(|(known, _)| *known == refused)
            && let ColumnError::Unsupported { column, .. } = error
            && missing.iter().any(|index| request.source.schema().field(*index).name() == column)
        {
            return Err(error.clone());
        }
        let room = Evicting { residency: self, table: request.source.name() };
        let span = tracing::info_span!("load", table = request.source.name(), columns = missing.len());
        let load = || load(&self.device, request.source.as_ref(), &missing, limits, &room, &self.staging);
        let loaded = span.in_scope(load).inspect_err(|error| {
            if error.is_unsupported() {
                self.state.lock().refuse(refused, error.clone());
            }
        })?;
        report.rows += loaded.report.rows;
        report.bytes += loaded.report.bytes;
        report.elapsed += loaded.report.elapsed;
        report.encode += loaded.report.encode;
        report.busy += loaded.report.busy;
        // What is held here stays until everything is pinned, whoever needs room meanwhile.
        let _fresh = self.enter(&key, &version, request.source.as_ref(), loaded)?;
        let (found, _) = self.pin_resident(&key, &version, &request.columns, false);
        drop(kept);
        found.ok_or_else(|| ColumnError::Changed {
            table: request.source.name().to_string(),
            detail: "its columns left the device at once".into(),
        })
    }

    /// Pins the columns if all are resident; otherwise those that are, so that a load does not evict them.
    fn pin_resident(
        &self,
        key: &str,
        version: &str,
        columns: &[usize],
        count_hits: bool,
    ) -> (Option<PinnedTable>, Vec<Arc<ResidentColumn>>) {
        let mut state = self.state.lock();
        state.clock += 1;
        let now = state.clock;
        if state.tables.get(key).is_some_and(|entry| entry.version != version) {
            state.tables.remove(key);
        }
        let Some(entry) = state.tables.get_mut(key) else { return (None, Vec::new()) };
        let mut pinned = Vec::with_capacity(columns.len());
        for column in columns {
            if let Some(found) = entry.columns.get_mut(column) {
                found.last_use = now;
                pinned.push(found.column.clone());
            }
        }
        if pinned.len() < columns.len() {
            return (None, pinned);
        }
        if count_hits {
            columns.iter().for_each(|column| entry.columns.get_mut(column).expect("found above").hits += 1);
        }
        (Some(PinnedTable { chunks: entry.chunks.clone(), columns: pinned }), Vec::new())
    }

    /// Adds loaded columns to their table, and hands them out to be held.
    fn enter(
        &self,
        key: &str,
        version: &str,
        source: &dyn ColumnSource,
        loaded: Loaded,
    ) -> Result<Vec<Arc<ResidentColumn>>> {
        let mut state = self.state.lock();
        state.clock += 1;
        let now = state.clock;
        let entry = state.tables.entry(key.to_string()).or_insert_with(|| TableEntry {
            name: source.name().to_string(),
            version: version.to_string(),
            chunks: loaded.chunks.clone().into(),
            columns: HashMap::new(),
        });
        if entry.version != version || entry.chunks[..] != loaded.chunks[..] {
            state.tables.remove(key);
            let detail = "its rows are cut differently than when other columns of it were loaded".to_string();
            return Err(ColumnError::Changed { table: source.name().to_string(), detail });
        }
        let fresh: Vec<Arc<ResidentColumn>> = loaded.columns.into_iter().map(Arc::new).collect();
        for column in &fresh {
            entry.columns.insert(column.index, ColumnEntry { column: column.clone(), last_use: now, hits: 0 });
        }
        Ok(fresh)
    }

    /// Drops the least recently used column that nobody has pinned; whether there was one.
    fn evict_one(&self) -> bool {
        let mut state = self.state.lock();
        let mut victim: Option<(u64, String, usize)> = None;
        for (key, table) in &state.tables {
            for (index, entry) in &table.columns {
                let idle = Arc::strong_count(&entry.column) == 1;
                if idle && victim.as_ref().is_none_or(|(last_use, _, _)| entry.last_use < *last_use) {
                    victim = Some((entry.last_use, key.clone(), *index));
                }
            }
        }
        let Some((_, key, index)) = victim else { return false };
        let table = state.tables.get_mut(&key).expect("just found");
        table.columns.remove(&index);
        if table.columns.is_empty() {
            state.tables.remove(&key);
        }
        true
    }

    /// Drops a table's columns from the device by the name people know; running statements keep what they have pinned.
    /// What was there, if anything was.
    pub fn evict_by_name(&self, name: &str) -> Option<TableSummary> {
        let mut state = self.state.lock();
        let key = state.tables.iter().find(|(_, table)| table.name == name)?.0.clone();
        state.tables.remove(&key).map(|table| summary(&table))
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.state.lock().tables.clear();
    }

    /// Whether all `columns` of this version are resident.
    pub fn is_resident(&self, key: &str, version: &str, columns: &[usize]) -> bool {
        let state = self.state.lock();
        state.tables.get(key).is_some_and(|table| {
            table.version == version && columns.iter().all(|column| table.columns.contains_key(column))
        })
    }

    /// A resident table by its key.
    pub fn summary_of(&self, key: &str) -> Option<TableSummary> {
        self.state.lock().tables.get(key).map(summary)
    }

    /// The resident tables by name.
    pub fn summaries(&self) -> Vec<TableSummary> {
        let state = self.state.lock();
        let mut tables: Vec<TableSummary> = state.tables.values().map(summary).collect();
        tables.sort_by(|a, b| a.table.cmp(&b.table));
        tables
    }
}

fn summary(table: &TableEntry) -> TableSummary {
    let mut entries: Vec<(&usize, &ColumnEntry)> = table.columns.iter().collect();
    entries.sort_by_key(|(index, _)| **index);
    let column = |entry: &ColumnEntry| ColumnSummary {
        column: entry.column.name.clone(),
        data_type: entry.column.data_type.clone(),
        encoding: "plain",
        bytes: entry.column.bytes(),
        dictionary_values: entry.column.dictionary.as_ref().map(|dictionary| dictionary.len()),
        hits: entry.hits,
        pinned: Arc::strong_count(&entry.column) > 1,
    };
    TableSummary {
        table: table.name.clone(),
        rows: table.chunks.iter().map(|rows| u64::from(*rows)).sum(),
        columns: entries.into_iter().map(|(_, entry)| column(entry)).collect(),
    }
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
}

impl Room for Evicting<'_> {
    fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let pool = self.residency.device.pool();
        loop {
            if let Some(reservation) = pool.try_reserve(bytes) {
                return Ok(reservation);
            }
            if !self.residency.evict_one() {
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
