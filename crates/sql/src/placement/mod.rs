//! Where a fragment runs under placement `auto`, by three rules. The device is a GPU or, without one, the host, which
//! keeps columns in its memory for the CPU.
//!
//! 1. All its columns are on the device, or the rest is estimated to come in a twentieth of the CPU's time: the device.
//!    (Kernels that are missing are compiled while the CPU begins, see `exec/work.rs`.)
//! 2. The device's time, with opening it, loading and compiling, is estimated ([`cost`]) at no more than
//!    `warpcube.load_factor` times the CPU's: the device; the statement waits for the load.
//! 3. Otherwise the CPU over files. The second statement that asks for the same columns has them loaded in the
//!    background, when it is over ([`BackgroundLoads`]).
//!
//! For what takes the CPU a few milliseconds over files nothing is loaded into host memory.
//!
//! A result of more groups than pay to bring back is computed on the CPU: by rule 3 where their number is a guess, and
//! without a load where it is known. So are the rows of a join where bringing them back is estimated to take longer
//! than the CPU, wherever their columns are. Rows that only pass through to an operator of the CPU stay with it
//! ([`Placing::spares_nothing`]).

mod cost;
mod ledger;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::datasource::listing::ListingTable;
use parking_lot::Mutex;
use warpcube_column::{ChangeCounts, Location, Storage, is_string};
use warpcube_engine::{Engine, Expr, Sink, Source, Step};

use crate::lower::{Lowered, Placer, Reason, TableInfo};
use crate::memory_table::MemoryTable;
use cost::{ColumnKind, ColumnWork, Costs, Machine, PassWork, SinkWork, SourceKind};
pub(crate) use ledger::{AskedColumn, BackgroundLoad, Declined, LoadLedger};

/// Rows of a table that does not tell them.
const ROWS_UNKNOWN: u64 = 1_000_000;
/// Bytes of a string where that is not known.
const TEXT_BYTES_UNKNOWN: f64 = 24.0;

/// What the placement of a plan depends on, apart from its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    /// Whether the device was open.
    pub(crate) open: bool,
    /// Columns that had come and left.
    pub(crate) columns: ChangeCounts,
    /// Columns that were asked for, and background loads that have ended.
    pub(crate) loads: u64,
}

/// What decides where the fragments of one statement run.
pub(crate) struct Placing {
    ledger: Arc<LoadLedger>,
    engine: Option<Arc<Engine>>,
    cores: usize,
    /// Whether columns are encoded when they come.
    encodes: bool,
    /// Most distinct strings of a column that has codes.
    dictionary_limit: usize,
    factor: Option<f64>,
    declined: Mutex<Vec<Declined>>,
}

impl std::fmt::Debug for Placing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placing").field("cores", &self.cores).field("factor", &self.factor).finish_non_exhaustive()
    }
}

impl Placing {
    /// The decisions of one statement; `engine` is none while the device is closed, `factor` where all loads are made.
    /// Loads have so many cores, encode columns or do not, and give codes to so many distinct strings of one.
    pub(crate) fn new(
        ledger: &Arc<LoadLedger>,
        engine: Option<Arc<Engine>>,
        (cores, encodes, dictionary_limit): (usize, bool, usize),
        factor: Option<f64>,
    ) -> Placing {
        let declined = Mutex::default();
        Placing { ledger: ledger.clone(), engine, cores, encodes, dictionary_limit, factor, declined }
    }

    /// The fragments that run on the CPU because their columns are not on the device.
    pub(crate) fn take_declined(&self) -> Vec<Declined> {
        std::mem::take(&mut self.declined.lock())
    }

    /// Whether a load that begins behind this statement brings all these columns: that of a plan above this one, which
    /// the next statement runs.
    fn has_load_of(&self, missing: &[AskedColumn]) -> bool {
        let declined = self.declined.lock();
        let mut loads = declined.iter().filter_map(Declined::load);
        loads.any(|load| missing.iter().all(|column| load.columns.contains(column)))
    }

    fn machine(&self, passes: &[PassWork]) -> Machine {
        let info = self.engine.as_ref().map(|engine| engine.device().info());
        let (emulated, host) = info.map_or((false, false), |info| (info.emulated, !info.runs_kernels));
        // Of a device that is closed nothing is known: mostly an earlier process has compiled them.
        let reads = passes.iter().flat_map(|pass| &pass.columns).any(|column| column.location == Location::Source);
        let engine = self.engine.as_ref().filter(|_| reads && self.encodes);
        let encoders_missing = engine.is_some_and(|engine| !engine.residency().has_encoders());
        Machine { cores: self.cores, open: self.engine.is_some(), encoders_missing, emulated, host }
    }

    /// Whether the columns that passes would have to load are estimated to be larger than the memory of the device.
    fn is_past_memory(&self, passes: &[PassWork]) -> bool {
        let budget = self.engine.as_ref().map_or(0, |engine| engine.device().pool().usage().budget);
        passes.iter().map(PassWork::missing_bytes).sum::<f64>() > budget as f64
    }

    fn passes(&self, lowered: &Lowered) -> Vec<PassWork> {
        let (fragment, sorts_rows) = (&lowered.fragment, lowered.sorts_rows());
        let mut rows_of: Vec<u64> = Vec::with_capacity(fragment.pipelines.len());
        let mut met: HashSet<(&str, usize)> = HashSet::new();
        let mut pass = |pipeline: &warpcube_engine::Pipeline| {
            let (rows, source, columns) = match pipeline.source {
                Source::Table(table) => {
                    let (info, table) = (&lowered.tables[table], &fragment.tables[table]);
                    let column = |column: &usize| {
                        let work = self.column(info, *column);
                        // The first pass that reads a column brings it for all.
                        match met.insert((&info.key, *column)) {
                            true => work,
                            false => ColumnWork { location: Location::Device, ..work },
                        }
                    };
                    let columns = table.columns.iter().map(column).collect();
                    (info.rows.unwrap_or(ROWS_UNKNOWN), source_kind(info), columns)
                }
                // At most as many as the rows that were grouped, or are wanted.
                Source::Output(of) => (rows_of[fragment.branches(of)].iter().sum(), SourceKind::Memory, Vec::new()),
            };
            rows_of.push(match &pipeline.sink {
                Sink::Aggregate { groups, .. } if groups.is_empty() => 1,
                Sink::TopK(top) => top.k.map_or(rows, |k| rows.min(k)),
                _ => rows,
            });
            let probes = pipeline.steps.iter().filter(|step| matches!(step, Step::Probe(_))).count() as u32;
            PassWork {
                rows,
                source,
                columns,
                filters: pipeline.steps.len() as u32 - probes,
                probes,
                sink: match &pipeline.sink {
                    Sink::Aggregate { groups, aggregates } => {
                        SinkWork::Aggregate { aggregates: aggregates.len() as u32, keys: groups.len() as u32 }
                    }
                    Sink::TopK(top) if !top.windows.is_empty() => {
                        SinkWork::Windows { keys: top.keys.len() as u32, columns: top.windows.len() as u32 }
                    }
                    Sink::TopK(top) if sorts_rows && top.k.is_none() => {
                        SinkWork::Sort { keys: top.keys.len() as u32, columns: top.outputs.len() as u32 }
                    }
                    Sink::TopK(top) => SinkWork::TopK { keys: top.keys.len() as u32 },
                    Sink::Rows { columns, limit } => SinkWork::Rows { columns: columns.len() as u32, limit: *limit },
                    _ => SinkWork::Build,
                },
                passing: None,
            }
        };
        fragment.pipelines.iter().map(&mut pass).collect()
    }

    /// Why operators of the CPU that a fragment feeds do better without it, where it gives so many rows: most of its
    /// largest table's only pass through, or bringing them back takes longer than the CPU.
    pub(crate) fn spares_nothing(&self, lowered: &Lowered, rows: usize) -> Option<Reason> {
        self.factor?;
        let through = passes_through(lowered, rows);
        if through.is_some() || !lowered.gives_rows() {
            return through;
        }
        let mut passes = self.passes(lowered);
        passes.last_mut()?.passing = Some(rows as u64);
        let costs = Costs::of(&passes, self.machine(&passes));
        (!costs.rows_pay()).then(|| costs.reason())
    }

    /// Groups that the result of grouping a table by columns of it is expected to have, by the column with the most
    /// distinct values, and whether that is certain: where rows are filtered first, their share is a guess. None where
    /// rows are joined first or come from a union, or nothing is known of the columns.
    fn groups_expected(&self, lowered: &Lowered) -> Option<(u64, bool)> {
        let root = lowered.fragment.pipelines.last()?;
        if lowered.fragment.branches(lowered.fragment.pipelines.len() - 1).len() > 1 {
            return None;
        }
        let Sink::Aggregate { groups, .. } = &root.sink else { return None };
        if root.steps.iter().any(|step| matches!(step, Step::Probe(_))) {
            return None;
        }
        let table = root.source.table()?;
        let (info, columns) = (&lowered.tables[table], &lowered.fragment.tables[table].columns);
        let distinct = |(key, _): &(Expr, _)| match key {
            Expr::Reg(register) => self.distinct_values(info, *columns.get(*register)?),
            _ => None,
        };
        let distinct = groups.iter().filter_map(distinct).max()?;
        let rows = info.rows.unwrap_or(ROWS_UNKNOWN);
        Some((cost::values_met(distinct, rows, root.steps.len() as u32), root.steps.is_empty()))
    }

    /// Distinct values of a column, as its load counted them or as footers let expect.
    fn distinct_values(&self, info: &TableInfo, column: usize) -> Option<u64> {
        let residency = self.engine.as_ref().map(|engine| engine.residency());
        let facts = residency.and_then(|residency| residency.facts(&info.key, &info.version, column));
        let counted = facts.and_then(|facts| facts.distinct());
        counted.or_else(|| {
            if info.derived(column).is_some() {
                return None;
            }
            let by_bounds = info.parquet.as_ref()?.table()?.distinct_by_bounds(column)?;
            Some(by_bounds.min(info.rows?))
        })
    }

    /// Why the first rows of a table do not come by the algorithm that was asked for.
    fn refusal(&self, lowered: &Lowered) -> Option<Reason> {
        let root = lowered.fragment.pipelines.last()?;
        let (Sink::TopK(top), Source::Table(table)) = (&root.sink, root.source) else { return None };
        self.engine.as_ref()?.refusal(top, lowered.tables[table].rows?)
    }

    fn column(&self, info: &TableInfo, column: usize) -> ColumnWork {
        let residency = self.engine.as_ref().map(|engine| engine.residency());
        let location =
            residency.map_or(Location::Source, |residency| residency.location(&info.key, &info.version, column));
        let schema = info.schema();
        let data_type = schema.field(column).data_type();
        let kind = match Storage::of(data_type) {
            _ if data_type.is_decimal() => ColumnKind::Decimal,
            Some(storage) if !is_string(data_type) => ColumnKind::Number(storage.width() as u64),
            _ => self.text(info, column, location),
        };
        ColumnWork { kind, location }
    }

    /// What is known of a column of strings; footers are asked only where it would have to be loaded.
    fn text(&self, info: &TableInfo, column: usize, location: Location) -> ColumnKind {
        if location != Location::Source {
            let residency = self.engine.as_ref().map(|engine| engine.residency());
            let bytes = residency.and_then(|residency| residency.text_bytes(&info.key, &info.version, column));
            return bytes.map_or(ColumnKind::Coded, ColumnKind::Bytes);
        }
        let Some(table) = info.parquet.as_ref().and_then(|files| files.table()) else {
            return ColumnKind::Text(TEXT_BYTES_UNKNOWN);
        };
        let rows = info.rows.unwrap_or(ROWS_UNKNOWN).max(1);
        let derived = info.derived(column);
        let read = derived.map_or(column, |derived| derived.column);
        let bytes = table.column_bytes(read) as f64 / rows as f64;
        match (table.is_coded(read), derived.is_none() && rows > self.dictionary_limit as u64) {
            (true, _) => ColumnKind::Coded,
            (false, false) => ColumnKind::Text(bytes),
            // The writer gave up its dictionary: most strings are distinct, and there are more than have codes.
            (false, true) => ColumnKind::Bytes(bytes),
        }
    }
}

impl Placer for Placing {
    fn place(&self, lowered: Lowered) -> Result<Lowered, Reason> {
        if let Some(reason) = self.refusal(&lowered) {
            return Err(reason);
        }
        let limit = self.dictionary_limit;
        let over_derived = self.engine.as_ref().and_then(|engine| lowered.over_derived(engine.residency(), limit));
        let runs = over_derived.as_deref().unwrap_or(&lowered);
        let passes = self.passes(runs);
        let machine = self.machine(&passes);
        let costs = Costs::of(&passes, machine);
        // From the memory of the host nothing is brought back.
        let groups_max = if machine.host { u64::MAX } else { costs.groups_max(lowered.finish.len()) };
        let (expected, is_certain) = self.groups_expected(runs).unwrap_or((0, true));
        let missing = missing_columns(runs, &passes);
        let all = rows_sorted(&lowered).unwrap_or(0);
        let lowered = Lowered { groups_max: Some(groups_max), ..lowered };
        let Some(factor) = self.factor else { return Ok(lowered) };
        let too_many = expected > groups_max;
        if too_many && is_certain {
            return Err(format!("a result of about {expected} groups, more than pay to bring back"));
        }
        if all > groups_max {
            return Err(format!("a sort of {all} rows, more than pay to bring back"));
        }
        if lowered.gives_rows() && !costs.rows_pay() {
            return Err(costs.reason());
        }
        let is_there = self.engine.is_some() && missing.is_empty();
        if lowered.looks_up() && !is_there {
            self.declined.lock().push(Declined { missing, load: None });
            return Err("rows of a table whose columns are not on the device".into());
        }
        let no_load = match () {
            () if is_there || !machine.host => None,
            () if !costs.is_worth_a_load() => Some("a few milliseconds over files, for which no columns are loaded"),
            () if self.is_past_memory(&passes) => {
                Some("more columns to load than warpcube.host_memory holds, as if plain")
            }
            () => None,
        };
        if let Some(reason) = no_load {
            self.declined.lock().push(Declined { missing, load: None });
            return Err(reason.into());
        }
        let is_under_way = self.ledger.is_under_way(&lowered.identity);
        let pays = costs.device() <= factor * costs.cpu || factor > 0.0 && costs.load_is_slight();
        if is_there || !is_under_way && !too_many && pays {
            return Ok(lowered);
        }
        let begins = factor > 0.0 && !is_under_way && self.ledger.has_all(&missing) && !self.has_load_of(&missing);
        tracing::debug!(what = lowered.what, ?costs, expected, is_under_way, begins, "not there yet");
        let load = begins.then(|| BackgroundLoad { lowered: Arc::new(lowered), columns: missing.clone() });
        let remark = if is_under_way || begins { ", where it comes in the background" } else { "" };
        self.declined.lock().push(Declined { missing, load });
        Err(costs.reason() + remark)
    }
}

/// Why operators of the CPU that a fragment feeds do better without it, given the rows that it gives: most rows of its
/// largest table only pass through, and they are too many to be brought back in no time.
fn passes_through(lowered: &Lowered, rows: usize) -> Option<Reason> {
    let scanned = lowered.tables.iter().filter_map(|table| table.rows).max()?;
    let passes = lowered.gives_rows() && !lowered.has_windows() && rows as f64 >= cost::PASSING_SHARE * scanned as f64;
    (passes && rows as u64 > cost::GROUPS_MAX_MIN)
        .then(|| format!("{rows} of {scanned} rows would pass through it to the CPU"))
}

/// Rows of a sort of a table without filters, all of which come back; none where it is not known how many do.
fn rows_sorted(lowered: &Lowered) -> Option<u64> {
    let root = lowered.fragment.pipelines.last().filter(|root| lowered.sorts_rows() && root.steps.is_empty())?;
    lowered.tables[root.source.table()?].rows
}

/// The columns of a fragment that are not on the device; `passes` are its pipelines.
fn missing_columns(lowered: &Lowered, passes: &[PassWork]) -> Vec<AskedColumn> {
    let of_pass = |(pipeline, pass): (&warpcube_engine::Pipeline, &PassWork)| -> Vec<AskedColumn> {
        let Source::Table(table) = pipeline.source else { return Vec::new() };
        let (info, table) = (&lowered.tables[table], &lowered.fragment.tables[table]);
        let columns = table.columns.iter().zip(&pass.columns);
        let missing = columns.filter(|(_, work)| work.location != Location::Device);
        let asked = |column: &usize| {
            let (table, version) = (info.key.clone(), info.version.clone());
            AskedColumn { table, version, column: *column }
        };
        missing.map(|(column, _)| asked(column)).collect()
    };
    lowered.fragment.pipelines.iter().zip(passes).flat_map(of_pass).collect()
}

fn source_kind(info: &TableInfo) -> SourceKind {
    let listing = info.provider.downcast_ref::<ListingTable>();
    match listing.map(|listing| listing.options().format.get_ext()) {
        Some(extension) if extension == "parquet" => SourceKind::Parquet,
        None if info.provider.is::<MemoryTable>() => SourceKind::Memory,
        _ => SourceKind::Text,
    }
}
