//! The ledger of a device: its columns and their host copies by table version, with last uses, and refused columns.
//!
//! One lock guards the ledger. Its functions call neither device nor source.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::device::{Relation, ResidentColumn};
use crate::error::{ColumnError, Result};
use crate::format::Encoding;
use crate::load::HostColumn;
use crate::source::ColumnSource;
use crate::units::ColumnFacts;

/// The nearest place of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The column is resident.
    Device,
    /// The column has a host copy, and is not resident.
    Host,
    /// A load reads the source or the column file.
    Source,
}

/// The origin of a column on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnOrigin {
    /// The source of the table.
    Source,
    /// The column file.
    File,
    /// A host copy.
    Host,
}

/// A table as `SHOW DEVICE TABLES` lists it.
#[derive(Debug, Clone)]
pub struct TableSummary {
    /// Name of the table.
    pub table: String,
    /// Rows.
    pub rows: u64,
    /// Resident columns and host copies, in the order of the schema.
    pub columns: Vec<ColumnSummary>,
}

/// A column as `SHOW DEVICE TABLES` lists it.
#[derive(Debug, Clone)]
pub struct ColumnSummary {
    /// Facts of the values.
    pub facts: Arc<ColumnFacts>,
    /// Encoding.
    pub encoding: String,
    /// Device memory in bytes; 0 if the column is not resident.
    pub bytes: u64,
    /// Host memory of the copy in bytes; 0 without a copy.
    pub host_bytes: u64,
    /// Average bits of a value with references, patches and lookup.
    pub bits_per_value: f64,
    /// Origin of the resident column; `None` if it is not resident.
    pub origin: Option<ColumnOrigin>,
    /// Number of statements that found the column resident.
    pub hits: u64,
    /// Whether a running statement uses the column.
    pub pinned: bool,
}

struct TableEntry {
    name: String,
    version: String,
    chunks: Arc<[u32]>,
    columns: HashMap<usize, ColumnEntry>,
    copies: HashMap<usize, CopyEntry>,
}

struct ColumnEntry {
    column: Arc<ResidentColumn>,
    origin: ColumnOrigin,
    last_use: u64,
    hits: u64,
}

struct CopyEntry {
    copy: Arc<HostColumn>,
    last_use: u64,
}

/// Key and version of a table, and the limit on dictionaries, of a refusal.
pub(crate) type RefusalKey = (String, String, usize);

/// Most refusals in the ledger.
const REFUSED_MAX: usize = 256;

/// Numbers of loads and evictions of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeCounts {
    /// Loads and restores from host copies.
    pub loads: u64,
    /// Evicted columns, and evicted or replaced tables.
    pub evictions: u64,
}

/// Device memory besides columns: an object that others hold while they use it.
struct ObjectEntry {
    version: String,
    object: Arc<dyn Any + Send + Sync>,
    last_use: u64,
}

/// The entries of all tables.
#[derive(Default)]
pub(crate) struct Ledger {
    tables: HashMap<String, TableEntry>,
    /// Objects by the key of the table that they belong to.
    objects: HashMap<String, ObjectEntry>,
    clock: u64,
    changes: ChangeCounts,
    /// Errors of columns that cannot be resident, the oldest first: later loads read no source for them.
    refused: Vec<(RefusalKey, ColumnError)>,
}

/// An entry that was taken from the ledger for its eviction.
pub(crate) enum Victim {
    Column(ColumnVictim),
    /// An object, whose memory is free when it is dropped.
    Object(Arc<dyn Any + Send + Sync>),
}

/// A column taken from the ledger for its eviction.
pub(crate) struct ColumnVictim {
    pub(crate) key: String,
    pub(crate) version: String,
    pub(crate) column: Arc<ResidentColumn>,
    /// Whether the column has a host copy.
    pub(crate) has_copy: bool,
}

impl Ledger {
    pub(crate) fn changes(&self) -> ChangeCounts {
        self.changes
    }

    /// Stores the error of a column that cannot be resident.
    pub(crate) fn refuse(&mut self, key: RefusalKey, error: ColumnError) {
        if matches!(&error, ColumnError::Unsupported { column, .. } if self.refusal(&key, column).is_some()) {
            return;
        }
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push((key, error));
    }

    /// The stored error of a column.
    pub(crate) fn refusal(&self, key: &RefusalKey, name: &str) -> Option<ColumnError> {
        let is_of =
            |error: &ColumnError| matches!(error, ColumnError::Unsupported { column, .. } if column.as_str() == name);
        self.refused.iter().find(|(known, error)| known == key && is_of(error)).map(|(_, error)| error.clone())
    }

    /// The first of these columns that is resident or has a host copy as bytes, with the dictionary limit that it is
    /// past.
    pub(crate) fn bytes_among(&self, key: &str, version: &str, columns: &[usize]) -> Option<(usize, u64)> {
        let table = self.table(key, version)?;
        let limit = |column: &usize| {
            let resident = table.columns.get(column).map(|entry| entry.column.encoding());
            match resident.or_else(|| table.copies.get(column).map(|entry| entry.copy.encoding()))? {
                Encoding::Bytes(bytes) => Some((*column, bytes.limit)),
                _ => None,
            }
        };
        columns.iter().find_map(limit)
    }

    /// Removes a column with its host copy, so that a load reads it again.
    pub(crate) fn forget_column(&mut self, key: &str, column: usize) {
        self.changes.evictions += 1;
        if let Some(table) = self.tables.get_mut(key) {
            table.columns.remove(&column);
            table.copies.remove(&column);
        }
    }

    pub(crate) fn is_resident(&self, key: &str, version: &str, columns: &[usize]) -> bool {
        columns.iter().all(|column| self.location(key, version, *column) == Location::Device)
    }

    /// Pins the columns as a relation if all are resident. Otherwise pins the resident ones, so that the load of the
    /// others does not evict them.
    pub(crate) fn pin(
        &mut self,
        key: &str,
        version: &str,
        columns: &[usize],
        count_hits: bool,
    ) -> (Option<Relation>, Vec<Arc<ResidentColumn>>) {
        self.clock += 1;
        let now = self.clock;
        if self.tables.get(key).is_some_and(|entry| entry.version != version) {
            self.forget(key);
        }
        let Some(entry) = self.tables.get_mut(key) else { return (None, Vec::new()) };
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
        (Some(Relation { chunks: entry.chunks.clone(), columns: pinned }), Vec::new())
    }

    /// Columns that are not resident, in ascending order, with their host copies.
    pub(crate) fn missing(&mut self, key: &str, columns: &[usize]) -> Vec<(usize, Option<Arc<HostColumn>>)> {
        let (now, entry) = (self.clock, self.tables.get_mut(key));
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns.dedup();
        let Some(entry) = entry else { return columns.into_iter().map(|column| (column, None)).collect() };
        columns.retain(|column| !entry.columns.contains_key(column));
        let mut copy = |column: usize| {
            let found = entry.copies.get_mut(&column)?;
            found.last_use = now;
            Some(found.copy.clone())
        };
        columns.into_iter().map(|column| (column, copy(column))).collect()
    }

    /// Chunks of a table version in the ledger.
    pub(crate) fn chunks(&self, key: &str, version: &str) -> Option<Arc<[u32]>> {
        self.table(key, version).map(|table| table.chunks.clone())
    }

    fn table(&self, key: &str, version: &str) -> Option<&TableEntry> {
        self.tables.get(key).filter(|table| table.version == version)
    }

    /// Adds the columns of a relation to their table, and returns them as pins.
    ///
    /// # Errors
    /// [`ColumnError::Changed`] if the table has other chunks; the ledger then forgets it.
    pub(crate) fn enter(
        &mut self,
        key: &str,
        version: &str,
        source: &dyn ColumnSource,
        (relation, origin): (Relation, ColumnOrigin),
    ) -> Result<Vec<Arc<ResidentColumn>>> {
        self.clock += 1;
        self.changes.loads += 1;
        let now = self.clock;
        let entry = self.tables.entry(key.to_string()).or_insert_with(|| TableEntry {
            name: source.name().to_string(),
            version: version.to_string(),
            chunks: relation.chunks.clone(),
            columns: HashMap::new(),
            copies: HashMap::new(),
        });
        if entry.version != version || entry.chunks != relation.chunks {
            self.forget(key);
            let detail = "its rows are cut differently than when other columns of it were loaded";
            return Err(ColumnError::changed(source.name(), detail));
        }
        for column in &relation.columns {
            let known = ColumnEntry { column: column.clone(), origin, last_use: now, hits: 0 };
            entry.columns.insert(column.index(), known);
        }
        Ok(relation.columns)
    }

    /// The object of a table version.
    pub(crate) fn object(&mut self, key: &str, version: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.clock += 1;
        let entry = self.objects.get_mut(key).filter(|entry| entry.version == version)?;
        entry.last_use = self.clock;
        Some(entry.object.clone())
    }

    /// Adds the object of a table version in the place of that of another version.
    pub(crate) fn keep(&mut self, key: &str, version: &str, object: Arc<dyn Any + Send + Sync>) {
        self.clock += 1;
        let entry = ObjectEntry { version: version.to_string(), object, last_use: self.clock };
        self.objects.insert(key.to_string(), entry);
    }

    /// Removes the least recently used column without a pin, or an object that no one holds and that was not used
    /// since. The table of a column stays for a host copy.
    pub(crate) fn take_victim(&mut self) -> Option<Victim> {
        let mut victim: Option<(u64, &String, usize)> = None;
        for (key, table) in &self.tables {
            for (index, entry) in &table.columns {
                let idle = Arc::strong_count(&entry.column) == 1;
                if idle && victim.as_ref().is_none_or(|(last_use, _, _)| entry.last_use < *last_use) {
                    victim = Some((entry.last_use, key, *index));
                }
            }
        }
        let idle = self.objects.iter().filter(|(_, entry)| Arc::strong_count(&entry.object) == 1);
        let object = idle.min_by_key(|(_, entry)| entry.last_use);
        if let Some((key, entry)) = object
            && victim.is_none_or(|(last_use, _, _)| entry.last_use < last_use)
        {
            let key = key.clone();
            self.changes.evictions += 1;
            return self.objects.remove(&key).map(|entry| Victim::Object(entry.object));
        }
        let (_, key, index) = victim?;
        let key = key.clone();
        self.changes.evictions += 1;
        let table = self.tables.get_mut(&key).expect("just found");
        let entry = table.columns.remove(&index).expect("just found");
        let has_copy = table.copies.contains_key(&index);
        Some(Victim::Column(ColumnVictim { key, version: table.version.clone(), column: entry.column, has_copy }))
    }

    /// Adds the copy of an evicted column within `budget` bytes of all copies. Removes the table if it is empty.
    pub(crate) fn evicted(&mut self, key: &str, version: &str, copy: Option<HostColumn>, budget: u64) {
        self.clock += 1;
        let now = self.clock;
        let Some(table) = self.tables.get_mut(key).filter(|table| table.version == version) else { return };
        if let Some(copy) = copy {
            table.copies.insert(copy.index(), CopyEntry { copy: Arc::new(copy), last_use: now });
        }
        self.shrink_copies(budget);
        if self.tables.get(key).is_some_and(|table| table.columns.is_empty() && table.copies.is_empty()) {
            self.tables.remove(key);
        }
    }

    /// Drops copies past `budget` bytes: those of resident columns first, each by least recent use.
    fn shrink_copies(&mut self, budget: u64) {
        let sizes = self.tables.values().flat_map(|table| table.copies.values());
        let mut bytes: u64 = sizes.map(|entry| entry.copy.bytes()).sum();
        while bytes > budget {
            let all = self.tables.iter().flat_map(|(key, table)| {
                table.copies.iter().map(move |(index, entry)| {
                    (!table.columns.contains_key(index), entry.last_use, key, *index, entry.copy.bytes())
                })
            });
            let Some((_, _, key, index, size)) = all.min_by_key(|(alone, last_use, ..)| (*alone, *last_use)) else {
                return;
            };
            let key = key.clone();
            self.tables.get_mut(&key).expect("just found").copies.remove(&index);
            bytes -= size;
        }
        self.tables.retain(|_, table| !(table.columns.is_empty() && table.copies.is_empty()));
    }

    /// Removes a table with all copies; returns its summary.
    pub(crate) fn forget(&mut self, key: &str) -> Option<TableSummary> {
        self.changes.evictions += 1;
        self.objects.remove(key);
        self.tables.remove(key).map(|table| summary(&table))
    }

    /// As [`Ledger::forget`], by name.
    pub(crate) fn forget_by_name(&mut self, name: &str) -> Option<TableSummary> {
        let key = self.tables.iter().find(|(_, table)| table.name == name)?.0.clone();
        self.forget(&key)
    }

    pub(crate) fn clear(&mut self) {
        self.changes.evictions += 1;
        self.objects.clear();
        self.tables.clear();
    }

    pub(crate) fn location(&self, key: &str, version: &str, column: usize) -> Location {
        match self.table(key, version) {
            Some(table) if table.columns.contains_key(&column) => Location::Device,
            Some(table) if table.copies.contains_key(&column) => Location::Host,
            _ => Location::Source,
        }
    }

    pub(crate) fn facts(&self, key: &str, version: &str, column: usize) -> Option<Arc<ColumnFacts>> {
        let table = self.table(key, version)?;
        let resident = table.columns.get(&column).map(|entry| entry.column.facts());
        resident.or_else(|| table.copies.get(&column).map(|entry| entry.copy.facts())).cloned()
    }

    /// Average bytes of a value of a column that is resident or has a host copy as bytes.
    pub(crate) fn text_bytes(&self, key: &str, version: &str, column: usize) -> Option<f64> {
        let table = self.table(key, version)?;
        let resident = table.columns.get(&column).map(|entry| &entry.column);
        let resident = resident.map(|column| (column.encoding(), column.bits_per_value()));
        let copy = || table.copies.get(&column).map(|entry| (entry.copy.encoding(), entry.copy.bits_per_value()));
        let (encoding, bits) = resident.or_else(copy)?;
        matches!(encoding, Encoding::Bytes(_)).then_some(bits / 8.0)
    }

    pub(crate) fn summary_of(&self, key: &str) -> Option<TableSummary> {
        self.tables.get(key).map(summary)
    }

    pub(crate) fn summaries(&self) -> Vec<TableSummary> {
        let mut tables: Vec<TableSummary> = self.tables.values().map(summary).collect();
        tables.sort_by(|a, b| a.table.cmp(&b.table));
        tables
    }
}

fn summary(table: &TableEntry) -> TableSummary {
    let host_bytes = |index: &usize| table.copies.get(index).map_or(0, |entry| entry.copy.bytes());
    let resident = table.columns.iter().map(|(index, ColumnEntry { column, origin, hits, .. })| {
        let summary = ColumnSummary {
            facts: column.facts().clone(),
            encoding: column.encoding().to_string(),
            bytes: column.bytes(),
            host_bytes: host_bytes(index),
            bits_per_value: column.bits_per_value(),
            origin: Some(*origin),
            hits: *hits,
            pinned: Arc::strong_count(column) > 1,
        };
        (*index, summary)
    });
    let copies = table.copies.iter().filter(|(index, _)| !table.columns.contains_key(index));
    let copies = copies.map(|(index, CopyEntry { copy, .. })| {
        let summary = ColumnSummary {
            facts: copy.facts().clone(),
            encoding: copy.encoding().to_string(),
            bytes: 0,
            host_bytes: copy.bytes(),
            bits_per_value: copy.bits_per_value(),
            origin: None,
            hits: 0,
            pinned: false,
        };
        (*index, summary)
    });
    let columns: BTreeMap<usize, ColumnSummary> = resident.chain(copies).collect();
    let rows = table.chunks.iter().map(|rows| u64::from(*rows)).sum();
    TableSummary { table: table.name.clone(), rows, columns: columns.into_values().collect() }
}
