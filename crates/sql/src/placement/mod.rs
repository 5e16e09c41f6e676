//! Where a fragment runs under placement `auto`.
//!
//! A fragment runs on the GPU when all its columns are there and one of its shape was brought there before, or
//! compiling it is estimated to pay at once. Otherwise the GPU's time, with opening the device, loading and compiling,
//! is estimated beside the CPU's ([`cost`]), and the statement waits for the load if the whole takes at most
//! `warpcube.load_factor` times as long. A load is an investment: a statement that was kept on the CPU because of it
//! leaves its time on the CPU to the credit of its largest table, and once the credit covers what is too much, it pays
//! for the load, which is made in the background when the statement is over ([`Aside`]). So no statement waits for a
//! load that costs it dearly, and no table that is asked for again and again stays on the CPU for ever. What groups a
//! whole table into more groups than pay to bring back is the CPU's, loaded or not.

mod cost;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::catalog::MemTable;
use datafusion::datasource::listing::ListingTable;
use parking_lot::Mutex;
use warpcube_column::{ChangeCounts, Location, Storage, is_string};
use warpcube_engine::{Engine, Expr, Sink, Step};

use crate::exec::{Aside, Coming};
use crate::lower::{Lowered, Reason, TableInfo};
use cost::{ColumnWork, Costs, Kind, Machine, Origin, PassWork, Place, SinkWork};

/// Rows of a table that does not tell them.
const ROWS_UNKNOWN: u64 = 1_000_000;
/// Bytes of a string where that is not known.
const TEXT_BYTES_UNKNOWN: f64 = 24.0;
/// What compiling and running may take of a statement's time on the CPU for the statement to wait for it.
const COMPILE_FACTOR: f64 = 0.8;
/// Credits that are kept.
const CREDITS_MAX: usize = 1024;

/// The credits of a session's tables.
#[derive(Debug, Default)]
pub(crate) struct Placer {
    /// By key of a table its version and the seconds paid.
    credits: Mutex<HashMap<String, (String, f64)>>,
    changes: AtomicU64,
}

/// What the placement of a plan depends on, apart from its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    /// Whether the device was open.
    pub(crate) open: bool,
    /// Columns that had come and left.
    pub(crate) columns: ChangeCounts,
    /// Loads that credits had nearly come to cover, and that were made.
    pub(crate) credits: u64,
}

/// A fragment that was left to the CPU because a load is too dear.
#[derive(Debug, Clone)]
pub(crate) struct Declined {
    key: String,
    version: String,
    /// What it takes on the CPU, in seconds.
    pays: f64,
    /// The credit that the load wants.
    wants: f64,
    /// The fragment, if the credit covers that.
    coming: Option<Coming>,
}

impl Declined {
    /// The fragment, if it is to come to the device in the background.
    pub(crate) fn coming(&self) -> Option<&Coming> {
        self.coming.as_ref()
    }
}

/// What decides where the fragments of one statement run.
pub(crate) struct Placing {
    placer: Arc<Placer>,
    aside: Arc<Aside>,
    engine: Option<Arc<Engine>>,
    cores: usize,
    /// Whether columns are encoded when they come.
    encodes: bool,
    factor: Option<f64>,
    declined: Mutex<Vec<Declined>>,
}

impl std::fmt::Debug for Placing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Placing").field("cores", &self.cores).field("factor", &self.factor).finish_non_exhaustive()
    }
}

impl Placer {
    /// Grows whenever the next statement will cover a load that was declined before, and whenever what comes in the
    /// background is there or has failed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Takes the time of a statement that runs now with fragments that were left to the CPU.
    pub(crate) fn pay(&self, declined: &[Declined]) {
        let mut credits = self.credits.lock();
        for fragment in declined {
            if credits.len() >= CREDITS_MAX {
                credits.clear();
            }
            let credit = credits.entry(fragment.key.clone()).or_insert_with(|| (fragment.version.clone(), 0.0));
            if credit.0 != fragment.version {
                *credit = (fragment.version.clone(), 0.0);
            }
            credit.1 += fragment.pays;
            if credit.1 + fragment.pays >= fragment.wants {
                self.changes.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Notes that what came in the background is there, or has failed.
    pub(crate) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes what a load wants from a table's credit.
    pub(crate) fn spend(&self, key: &str, wants: f64) {
        if let Some((_, credit)) = self.credits.lock().get_mut(key) {
            *credit -= wants.max(0.0);
        }
    }

    /// Gives back what a load wanted that was not made.
    pub(crate) fn refund(&self, key: &str, wants: f64) {
        if let Some((_, credit)) = self.credits.lock().get_mut(key) {
            *credit += wants.max(0.0);
        }
    }

    /// Takes a table's credit and leaves it a debt: a load that it would have paid for has failed.
    pub(crate) fn forfeit(&self, key: &str, debt: f64) {
        if let Some((_, credit)) = self.credits.lock().get_mut(key) {
            *credit = -debt;
        }
    }

    fn credit(&self, table: &TableInfo) -> f64 {
        let credits = self.credits.lock();
        credits.get(&table.key).filter(|(version, _)| *version == table.version).map_or(0.0, |(_, seconds)| *seconds)
    }
}

impl Placing {
    /// The decisions of one statement; `engine` is none while the device is closed, `factor` where all loads are made.
    /// Loads have so many cores, and encode columns or do not.
    pub(crate) fn new(
        (placer, aside): (&Arc<Placer>, &Arc<Aside>),
        engine: Option<Arc<Engine>>,
        (cores, encodes): (usize, bool),
        factor: Option<f64>,
    ) -> Placing {
        let (placer, aside) = (placer.clone(), aside.clone());
        Placing { placer, aside, engine, cores, encodes, factor, declined: Mutex::default() }
    }

    /// The fragments that were left to the CPU because of a load.
    pub(crate) fn into_declined(self) -> Vec<Declined> {
        self.declined.into_inner()
    }

    /// The fragment, if it is to run on the device, with the most groups of its result that are worth bringing back.
    ///
    /// # Errors
    /// Why it is to run on the CPU.
    pub(crate) fn place(&self, lowered: Lowered) -> Result<Lowered, Reason> {
        let passes = self.passes(&lowered);
        let costs = Costs::of(&passes, self.machine(&passes));
        let groups_max = costs.groups_max(lowered.finish.len());
        let largest = lowered.tables.iter().max_by_key(|table| table.rows.unwrap_or(ROWS_UNKNOWN)).cloned();
        let (expected, is_certain) = self.groups_expected(&lowered).unwrap_or((0, true));
        let lowered = Lowered { groups_max: Some(groups_max), ..lowered };
        let (Some(factor), Some(largest)) = (self.factor, largest) else { return Ok(lowered) };
        let too_many = expected > groups_max;
        if too_many && is_certain {
            return Err(format!("a result of about {expected} groups, more than pay to bring back"));
        }
        let columns = || passes.iter().flat_map(|pass| &pass.columns);
        let is_there = self.engine.is_some() && columns().all(|column| column.place == Place::Device);
        let under_way = self.aside.is_under_way(&lowered.identity);
        let wants = match (is_there, factor > 0.0) {
            (true, _) => costs.gpu() - factor.max(COMPILE_FACTOR) * costs.cpu,
            (false, true) => costs.gpu() - factor * costs.cpu,
            (false, false) => f64::INFINITY,
        };
        // What may well be found unfit is no statement's to wait for, unless it was tried.
        let (pays, likely_fits) = (is_there || wants <= 0.0, wants <= 0.0 && !too_many);
        if !under_way && pays && (likely_fits || self.aside.has_tried(&lowered)) {
            return Ok(lowered);
        }
        let credit = self.placer.credit(&largest);
        tracing::debug!(what = lowered.what, ?costs, wants, credit, expected, under_way, "not there yet");
        let (key, version) = (largest.key.clone(), largest.version.clone());
        // Kernels cost nobody anything that are compiled in the background. A statement pays before it is over.
        let begins = !under_way && (is_there || wants <= credit + costs.cpu);
        let coming = begins.then(|| {
            // What lacks its kernels alone costs no load.
            let wants = if is_there { 0.0 } else { wants };
            Coming { lowered: Arc::new(lowered), table: key.clone(), wants, debt: costs.gpu() + costs.cpu }
        });
        let remark = if under_way || begins { ", where it comes in the background" } else { "" };
        self.declined.lock().push(Declined { key, version, pays: costs.cpu, wants, coming });
        Err(reason(&costs) + remark)
    }

    fn machine(&self, passes: &[PassWork]) -> Machine {
        let emulated = self.engine.as_ref().is_some_and(|engine| engine.device().info().emulated);
        // Of a device that is closed nothing is known: mostly an earlier process has compiled them.
        let reads = passes.iter().flat_map(|pass| &pass.columns).any(|column| column.place == Place::Source);
        let engine = self.engine.as_ref().filter(|_| reads && self.encodes);
        let encoders_missing = engine.is_some_and(|engine| !engine.residency().has_encoders());
        Machine { cores: self.cores, open: self.engine.is_some(), encoders_missing, emulated }
    }

    fn passes(&self, lowered: &Lowered) -> Vec<PassWork> {
        let fragment = &lowered.fragment;
        let pass = |pipeline: &warpcube_engine::Pipeline| {
            let (info, table) = (&lowered.tables[pipeline.table], &fragment.tables[pipeline.table]);
            let probes = pipeline.steps.iter().filter(|step| matches!(step, Step::Probe(_))).count() as u32;
            PassWork {
                rows: info.rows.unwrap_or(ROWS_UNKNOWN),
                origin: origin(info),
                columns: table.columns.iter().map(|column| self.column(info, *column)).collect(),
                filters: pipeline.steps.len() as u32 - probes,
                probes,
                sink: match &pipeline.sink {
                    Sink::Aggregate { groups, aggregates } => {
                        SinkWork::Aggregate { aggregates: aggregates.len() as u32, keys: groups.len() as u32 }
                    }
                    Sink::TopK(top) => SinkWork::TopK { keys: top.keys.len() as u32 },
                    _ => SinkWork::Build,
                },
            }
        };
        fragment.pipelines.iter().map(pass).collect()
    }

    /// Groups that the result of grouping a table by columns of it is expected to have, by the column with the most
    /// distinct values, and whether that is certain: where rows are filtered first, their share is a guess. None where
    /// rows are joined first, or nothing is known of the columns.
    fn groups_expected(&self, lowered: &Lowered) -> Option<(u64, bool)> {
        let root = lowered.fragment.pipelines.last()?;
        let Sink::Aggregate { groups, .. } = &root.sink else { return None };
        if root.steps.iter().any(|step| matches!(step, Step::Probe(_))) {
            return None;
        }
        let (info, columns) = (&lowered.tables[root.table], &lowered.fragment.tables[root.table].columns);
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
            let by_bounds = info.parquet.as_ref()?.table()?.distinct_by_bounds(column)?;
            Some(by_bounds.min(info.rows?))
        })
    }

    fn column(&self, info: &TableInfo, column: usize) -> ColumnWork {
        let location = self.engine.as_ref().map(|engine| engine.residency().location(&info.key, &info.version, column));
        let place = match location {
            Some(Location::Device) => Place::Device,
            Some(Location::Host) => Place::Host,
            Some(Location::Source) | None => Place::Source,
        };
        let schema = info.provider.schema();
        let data_type = schema.field(column).data_type();
        let kind = match Storage::of(data_type) {
            Some(storage) if !is_string(data_type) => Kind::Number(storage.width() as u64),
            _ => text(info, column, place),
        };
        ColumnWork { kind, place }
    }
}

/// What is known of a column of strings; footers are asked only where it would have to be loaded.
fn text(info: &TableInfo, column: usize, place: Place) -> Kind {
    if place != Place::Source {
        return Kind::Coded;
    }
    let Some(table) = info.parquet.as_ref().and_then(|files| files.table()) else {
        return Kind::Text(TEXT_BYTES_UNKNOWN);
    };
    match table.is_coded(column) {
        true => Kind::Coded,
        false => {
            let rows = info.rows.unwrap_or(ROWS_UNKNOWN).max(1);
            Kind::Text(table.column_bytes(column) as f64 / rows as f64)
        }
    }
}

fn origin(info: &TableInfo) -> Origin {
    let listing = info.provider.downcast_ref::<ListingTable>();
    match listing.map(|listing| listing.options().format.get_ext()) {
        Some(extension) if extension == "parquet" => Origin::Parquet,
        None if info.provider.is::<MemTable>() => Origin::Memory,
        _ => Origin::Text,
    }
}

/// Why the CPU, with both figures.
fn reason(costs: &Costs) -> Reason {
    let parts = [("opening it", costs.open), ("loading", costs.load), ("compiling", costs.compile)];
    let parts = parts.iter().filter(|(_, seconds)| *seconds > 0.0);
    let parts: Vec<String> = parts.map(|(what, seconds)| format!("{} {what}", time(*seconds))).collect();
    let details = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("estimated cheaper on the CPU: {} there, {} on the GPU{details}", time(costs.cpu), time(costs.gpu()))
}

fn time(seconds: f64) -> String {
    match seconds < 1.0 {
        true => format!("{:.1} ms", seconds * 1e3),
        false => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declined(version: &str, pays: f64, wants: f64) -> Declined {
        Declined { key: "t".into(), version: version.into(), pays, wants, coming: None }
    }

    #[test]
    fn what_statements_pay_adds_up_until_it_covers_the_load() {
        let placer = Placer::default();
        placer.pay(&[declined("1", 0.2, 0.7)]);
        placer.pay(&[declined("1", 0.2, 0.7)]);
        assert_eq!(placer.changes(), 0);
        placer.pay(&[declined("1", 0.2, 0.7)]);
        assert_eq!(placer.changes(), 1, "the next one covers it, and is worth planning again");
        placer.forfeit("t", 0.5);
        assert_eq!(placer.credits.lock()["t"].1, -0.5, "a load that failed has to be earned anew");
    }

    #[test]
    fn another_version_of_a_table_begins_with_nothing() {
        let placer = Placer::default();
        placer.pay(&[declined("1", 10.0, 21.0)]);
        placer.pay(&[declined("2", 2.0, 21.0)]);
        assert_eq!(placer.changes(), 0);
        assert_eq!(placer.credits.lock()["t"], ("2".to_string(), 2.0));
    }

    #[test]
    fn the_reason_holds_both_figures() {
        let costs = Costs { open: 0.4, load: 0.15, compile: 0.25, run: 0.001, cpu: 0.2 };
        let expected = "estimated cheaper on the CPU: 200.0 ms there, 801.0 ms on the GPU (400.0 ms opening it, \
                        150.0 ms loading, 250.0 ms compiling)";
        assert_eq!(reason(&costs), expected);
        let emulated = Costs { open: 0.0, load: 0.0, compile: 0.0, run: 2.0, cpu: 2.0 };
        assert_eq!(reason(&emulated), "estimated cheaper on the CPU: 2.0 s there, 2.0 s on the GPU");
    }
}
