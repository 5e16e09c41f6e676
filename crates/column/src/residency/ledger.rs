//! The ledger of a device: which columns of which table versions are on it, which have copies on the host, when each
//! was used last, and which were refused.
//!
//! All of it happens under one lock and touches neither device nor source.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::{Relation, ResidentColumn};
use crate::error::{ColumnError, Result};
use crate::load::HostColumn;
use crate::source::ColumnSource;
use crate::units::ColumnFacts;

/// Where a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// On the device.
    Device,
    /// Not on the device, but there is an encoded copy on the host.
    Host,
    /// It would have to be read from its source.
    Source,
}

/// The origin of a column on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The table's source was read.
    Source,
    /// A file of encoded columns.
    File,
    /// A copy on the host.
    Host,
}

/// A table as `SHOW DEVICE TABLES` lists it.
#[derive(Debug, Clone)]
pub struct TableSummary {
    /// Name of the table.
    pub table: String,
    /// Rows.
    pub rows: u64,
    /// Its columns on the device, and those of which a copy is on the host.
    pub columns: Vec<ColumnSummary>,
}

/// A column as `SHOW DEVICE TABLES` lists it.
#[derive(Debug, Clone)]
pub struct ColumnSummary {
    /// What is known of its values.
    pub facts: Arc<ColumnFacts>,
    /// Encoding.
    pub encoding: String,
    /// Device memory; none where the column is on the host alone.
    pub bytes: u64,
    /// Host memory of its copy; none where there is none.
    pub host_bytes: u64,
    /// Bits of a value on average, with all that its encoding has beside values.
    pub bits_per_value: f64,
    /// Its origin; `None` where it is on the host alone.
    pub origin: Option<Origin>,
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
    copies: HashMap<usize, CopyEntry>,
}

struct ColumnEntry {
    column: Arc<ResidentColumn>,
    origin: Origin,
    last_use: u64,
    hits: u64,
}

struct CopyEntry {
    copy: Arc<HostColumn>,
    last_use: u64,
}

/// Key and version of a table, and the limit on its dictionaries.
pub(crate) type RefusedUnder = (String, String, usize);

/// Refused columns that are remembered.
const REFUSED_MAX: usize = 256;

/// How often columns came to a device and left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Loads and returns from copies.
    pub came: u64,
    /// Columns that had to leave, tables that were evicted or replaced.
    pub left: u64,
}

/// The entries of all tables.
#[derive(Default)]
pub(crate) struct Ledger {
    tables: HashMap<String, TableEntry>,
    clock: u64,
    changes: Changes,
    /// Columns that were found not to fit the device, so that they are not read in vain again; the oldest first.
    refused: Vec<(RefusedUnder, ColumnError)>,
}

/// A column that leaves the device.
pub(crate) struct Leaving {
    pub(crate) key: String,
    pub(crate) version: String,
    pub(crate) column: Arc<ResidentColumn>,
    /// Whether there is a copy of it on the host already.
    pub(crate) copied: bool,
}

impl Ledger {
    /// How often columns came and left.
    pub(crate) fn changes(&self) -> Changes {
        self.changes
    }

    /// Remembers why a column cannot be kept.
    pub(crate) fn refuse(&mut self, under: RefusedUnder, error: ColumnError) {
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push((under, error));
    }

    /// Why one of these columns cannot be kept, if that was found before.
    pub(crate) fn refusal(&self, under: &RefusedUnder, names: &[&str]) -> Option<ColumnError> {
        let is_one_of = |error: &ColumnError| match error {
            ColumnError::Unsupported { column, .. } => names.contains(&column.as_str()),
            _ => false,
        };
        self.refused.iter().find(|(known, error)| known == under && is_one_of(error)).map(|(_, error)| error.clone())
    }

    /// Whether all `columns` of this version are resident.
    pub(crate) fn is_resident(&self, key: &str, version: &str, columns: &[usize]) -> bool {
        columns.iter().all(|column| self.whereabouts(key, version, *column) == Whereabouts::Device)
    }

    /// Pins the columns if all are resident; otherwise those that are, so that a load does not evict them.
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
        (Some(Relation::new(entry.chunks.clone(), pinned)), Vec::new())
    }

    /// The columns that are not on the device, in order, each with its copy on the host if there is one.
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

    /// Lengths of a table version's chunks, if anything of it is known.
    pub(crate) fn chunks(&self, key: &str, version: &str) -> Option<Arc<[u32]>> {
        self.tables.get(key).filter(|table| table.version == version).map(|table| table.chunks.clone())
    }

    /// Adds the columns of a relation to their table, and hands them out to be held.
    pub(crate) fn enter(
        &mut self,
        key: &str,
        version: &str,
        source: &dyn ColumnSource,
        (relation, origin): (Relation, Origin),
    ) -> Result<Vec<Arc<ResidentColumn>>> {
        self.clock += 1;
        self.changes.came += 1;
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
            let detail = "its rows are cut differently than when other columns of it were loaded".to_string();
            return Err(ColumnError::Changed { table: source.name().to_string(), detail });
        }
        for column in &relation.columns {
            let known = ColumnEntry { column: column.clone(), origin, last_use: now, hits: 0 };
            entry.columns.insert(column.index(), known);
        }
        Ok(relation.columns)
    }

    /// Adds a column that was restored from its copy; none if the table is another by now.
    pub(crate) fn restored(&mut self, key: &str, version: &str, column: ResidentColumn) -> Option<Arc<ResidentColumn>> {
        let entry = self.tables.get_mut(key).filter(|entry| entry.version == version)?;
        self.clock += 1;
        self.changes.came += 1;
        let column = Arc::new(column);
        let lengths = column.segments().iter().map(|segment| segment.rows());
        if !lengths.eq(entry.chunks.iter().copied()) {
            return None;
        }
        let known = ColumnEntry { column: column.clone(), origin: Origin::Host, last_use: self.clock, hits: 0 };
        entry.columns.insert(column.index(), known);
        Some(column)
    }

    /// Takes out the least recently used column without a pin. Its table stays known, for the copy that may
    /// be made of it.
    pub(crate) fn leave(&mut self) -> Option<Leaving> {
        let mut victim: Option<(u64, &String, usize)> = None;
        for (key, table) in &self.tables {
            for (index, entry) in &table.columns {
                let idle = Arc::strong_count(&entry.column) == 1;
                if idle && victim.as_ref().is_none_or(|(last_use, _, _)| entry.last_use < *last_use) {
                    victim = Some((entry.last_use, key, *index));
                }
            }
        }
        let (_, key, index) = victim?;
        let key = key.clone();
        self.changes.left += 1;
        let table = self.tables.get_mut(&key).expect("just found");
        let entry = table.columns.remove(&index).expect("just found");
        let copied = table.copies.contains_key(&index);
        Some(Leaving { key, version: table.version.clone(), column: entry.column, copied })
    }

    /// Keeps the copy of a column that left within `budget` bytes of all copies; or forgets the table, where nothing of
    /// it is left.
    pub(crate) fn left(&mut self, key: &str, version: &str, copy: Option<HostColumn>, budget: u64) {
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

    /// Drops copies until they take no more than `budget` bytes: of columns on the device first, then the oldest.
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

    /// Forgets a table by its key, with all copies; what was there, if anything was.
    pub(crate) fn forget(&mut self, key: &str) -> Option<TableSummary> {
        self.changes.left += 1;
        self.tables.remove(key).map(|table| summary(&table))
    }

    /// Forgets a table by the name people know, with all copies; what was there, if anything was.
    pub(crate) fn forget_by_name(&mut self, name: &str) -> Option<TableSummary> {
        let key = self.tables.iter().find(|(_, table)| table.name == name)?.0.clone();
        self.forget(&key)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.changes.left += 1;
        self.tables.clear();
    }

    /// Where a column of a table version is.
    pub(crate) fn whereabouts(&self, key: &str, version: &str, column: usize) -> Whereabouts {
        match self.tables.get(key).filter(|table| table.version == version) {
            Some(table) if table.columns.contains_key(&column) => Whereabouts::Device,
            Some(table) if table.copies.contains_key(&column) => Whereabouts::Host,
            _ => Whereabouts::Source,
        }
    }

    /// What is known of a column that is resident or copied to the host.
    pub(crate) fn facts(&self, key: &str, version: &str, column: usize) -> Option<Arc<ColumnFacts>> {
        let table = self.tables.get(key).filter(|table| table.version == version)?;
        let resident = table.columns.get(&column).map(|entry| entry.column.facts());
        resident.or_else(|| table.copies.get(&column).map(|entry| entry.copy.facts())).cloned()
    }

    /// A table by its key.
    pub(crate) fn summary_of(&self, key: &str) -> Option<TableSummary> {
        self.tables.get(key).map(summary)
    }

    /// All tables by name.
    pub(crate) fn summaries(&self) -> Vec<TableSummary> {
        let mut tables: Vec<TableSummary> = self.tables.values().map(summary).collect();
        tables.sort_by(|a, b| a.table.cmp(&b.table));
        tables
    }
}

fn summary(table: &TableEntry) -> TableSummary {
    let host_bytes = |index: &usize| table.copies.get(index).map_or(0, |entry| entry.copy.bytes());
    let mut columns: Vec<(usize, ColumnSummary)> = Vec::new();
    for (index, ColumnEntry { column, origin, hits, .. }) in &table.columns {
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
        columns.push((*index, summary));
    }
    for (index, CopyEntry { copy, .. }) in table.copies.iter().filter(|(index, _)| !table.columns.contains_key(index)) {
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
        columns.push((*index, summary));
    }
    columns.sort_by_key(|(index, _)| *index);
    TableSummary {
        table: table.name.clone(),
        rows: table.chunks.iter().map(|rows| u64::from(*rows)).sum(),
        columns: columns.into_iter().map(|(_, column)| column).collect(),
    }
}
