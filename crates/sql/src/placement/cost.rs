//! What a fragment costs on the device and on the CPU over files, in seconds, from counts alone.
//!
//! The constants are measured: those of loading and of the CPU a core, from the two benchmarks' tables; those of the
//! GPU on one H200. They are good to a factor of two or so, which is what a choice between milliseconds and seconds
//! needs; a column that is on the device already costs nothing to bring there and decides most statements.

use warpcube_column::Location;

use crate::engines::{COMPILE_PASS_SECONDS, COMPILE_SECONDS, OPEN_SECONDS};

/// What a table's rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// Parquet files.
    Parquet,
    /// Record batches in memory.
    Memory,
    /// Text files and whatever else has to be parsed.
    Text,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ColumnKind {
    /// Numbers, dates and the like, in so many bytes on the device.
    Number(u64),
    /// Decimals: eight bytes on the device, which the CPU widens to sixteen as it reads them.
    Decimal,
    /// Strings that are dictionary-coded where they come from.
    Coded,
    /// Other strings, of so many bytes each.
    Text(f64),
    /// Strings that lie on the device as bytes, or will, so many each.
    Bytes(f64),
}

/// A column that a fragment reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ColumnWork {
    pub(crate) kind: ColumnKind,
    pub(crate) location: Location,
}

/// One pass over a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PassWork {
    pub(crate) rows: u64,
    pub(crate) source: SourceKind,
    pub(crate) columns: Vec<ColumnWork>,
    pub(crate) filters: u32,
    pub(crate) probes: u32,
    pub(crate) sink: SinkWork,
    /// Rows that pass filters and probes, where more is known of them than their shares.
    pub(crate) passing: Option<u64>,
}

/// What becomes of the rows that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinkWork {
    /// They are entered into a table that others probe.
    Build,
    /// They are aggregated.
    Aggregate {
        /// Aggregates.
        aggregates: u32,
        /// Parts of the group key.
        keys: u32,
    },
    /// They are the result.
    Rows {
        /// Columns.
        columns: u32,
        /// Rows that are enough.
        limit: Option<u64>,
    },
    /// The first of them by an order are kept.
    TopK {
        /// Parts of the order.
        keys: u32,
    },
    /// They are sorted, and get columns of windows.
    Windows {
        /// Parts of the order.
        keys: u32,
        /// Columns.
        columns: u32,
    },
    /// They are the result, in an order.
    Sort {
        /// Parts of the order.
        keys: u32,
        /// Columns.
        columns: u32,
    },
}

/// The machine a fragment would run on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Machine {
    /// Cores that load and that the CPU's plan runs on.
    pub(crate) cores: usize,
    /// Whether the device is open already.
    pub(crate) open: bool,
    /// Whether what columns are encoded with has to be compiled first.
    pub(crate) encoders_missing: bool,
    /// Whether the device is emulated: it then counts as twice as fast as the CPU, since its own speed says nothing.
    pub(crate) emulated: bool,
    /// Whether it is the host, which runs pipelines over columns in its memory.
    pub(crate) host: bool,
}

/// Estimated seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    /// Whether the device is the host.
    pub(crate) host: bool,
    /// Opening the device.
    pub(crate) open: f64,
    /// Decoding, encoding and transferring columns that are not there.
    pub(crate) load: f64,
    /// Compiling kernels.
    pub(crate) compile: f64,
    /// Running them and reading the result.
    pub(crate) run: f64,
    /// The same plan on the CPU over files.
    pub(crate) cpu: f64,
}

/// Compiling what columns are encoded with, while the first ones are read.
const ENCODERS_SECONDS: f64 = 0.3;
/// Launches, copies and waits of a statement on the device.
const DEVICE_FIXED_SECONDS: f64 = 0.001;
/// Planning and starting a statement's operators on the CPU.
const CPU_FIXED_SECONDS: f64 = 0.002;
/// Bytes a second that kernels read.
const DEVICE_BANDWIDTH: f64 = 3e12;
/// Bytes a second from host memory to the device.
const TRANSFER_BANDWIDTH: f64 = 20e9;
/// Bringing a group or a row back and making an Arrow row of it, and the same for each of its columns.
const GROUP_NS: f64 = 60.0;
const GROUP_COLUMN_NS: f64 = 20.0;
/// Fewer groups than this are always brought back: it takes some milliseconds.
pub(super) const GROUPS_MAX_MIN: u64 = 64 << 10;
/// Share of the largest table's rows from which on they only pass through a join.
pub(super) const PASSING_SHARE: f64 = 0.5;
/// Sorting a row on the CPU by one key, what a further key adds, and merging sorted partitions on one core: four
/// million rows of four columns, 110 to 173 and 201 ns by one and two keys, and 17 to 26 (DataFusion 55.2, two cores).
const SORT_NS: f64 = 140.0;
const SORT_KEY_NS: f64 = 40.0;
const MERGE_NS: f64 = 20.0;
/// A column of a window for a row on the CPU, beside the sort. A guess: on two busy cores `row_number` over four
/// million rows took most of its time in the sort, and a running sum twice as long in all (DataFusion 55.2).
const WINDOW_NS: f64 = 100.0;
/// A run over columns in host memory: what each takes, and the share of the time that it takes over files.
const HOST_FIXED_SECONDS: f64 = 0.0002;
const HOST_TIME: f64 = 0.2;
/// Profiling and packing a byte of a column in host memory: SSB's columns were loaded at 0.54 and 0.60 GB/s a core.
const HOST_ENCODE_NS: f64 = 1.0;
/// Less time over files than this pays for no load into host memory.
const HOST_WORTH_SECONDS: f64 = 0.005;
/// Share of the CPU's time that a load may take to count as none.
const SLIGHT_LOAD: f64 = 0.05;
/// Rows of a row group, as most writers cut them.
const GROUP_ROWS: u64 = 1 << 20;
/// Share of rows that pass a filter, and that find a partner in a probe.
const FILTER_SHARE: f64 = 0.5;
const PROBE_SHARE: f64 = 0.5;

impl Costs {
    /// Estimates a fragment's passes.
    pub(crate) fn of(passes: &[PassWork], machine: Machine) -> Costs {
        let cores = machine.cores.max(1) as f64;
        let (shared, merging): (Vec<f64>, Vec<f64>) =
            passes.iter().map(|pass| (pass.cpu_ns(), pass.merge_ns())).unzip();
        let cpu = CPU_FIXED_SECONDS + (shared.iter().sum::<f64>() / cores + merging.iter().sum::<f64>()) / 1e9;
        if machine.emulated {
            return Costs { host: false, open: 0.0, load: 0.0, compile: 0.0, run: cpu / 2.0, cpu };
        }
        let load: f64 = passes.iter().map(|pass| pass.load_seconds(cores, machine.host)).sum();
        if machine.host {
            let run = HOST_FIXED_SECONDS + cpu * HOST_TIME;
            return Costs { host: true, open: 0.0, load, compile: 0.0, run, cpu };
        }
        let load = if machine.encoders_missing && load > 0.0 { load.max(ENCODERS_SECONDS) } else { load };
        let bytes: f64 = passes.iter().map(PassWork::device_bytes).sum();
        Costs {
            host: false,
            open: if machine.open { 0.0 } else { OPEN_SECONDS },
            load,
            compile: COMPILE_SECONDS + COMPILE_PASS_SECONDS * passes.len() as f64,
            run: DEVICE_FIXED_SECONDS
                + bytes / DEVICE_BANDWIDTH
                + passes.iter().map(PassWork::result_ns).sum::<f64>() / 1e9,
            cpu,
        }
    }

    /// Seconds on the device, all that has to be done first included.
    pub(crate) fn device(&self) -> f64 {
        self.open + self.load + self.compile + self.run
    }

    /// Whether columns may be loaded into host memory for it.
    pub(crate) fn is_worth_a_load(&self) -> bool {
        self.cpu >= HOST_WORTH_SECONDS
    }

    /// Why the CPU over files, with both figures.
    pub(crate) fn reason(&self) -> String {
        let parts = [("opening it", self.open), ("loading", self.load), ("compiling", self.compile)];
        let parts = parts.iter().filter(|(_, seconds)| *seconds > 0.0);
        let parts: Vec<String> = parts.map(|(what, seconds)| format!("{} {what}", time(*seconds))).collect();
        let details = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let (files, device) = (time(self.cpu), time(self.device()));
        match self.host {
            true => format!("estimated cheaper over files: {files} there, {device} over columns{details}"),
            false => format!("estimated cheaper on the CPU: {files} there, {device} on the GPU{details}"),
        }
    }

    /// Whether what is missing on the device comes in next to no time, measured by what the CPU would take. Not on the
    /// emulated device, whose loads have no estimate of their own.
    pub(crate) fn load_is_slight(&self) -> bool {
        self.open == 0.0 && self.load > 0.0 && self.load <= SLIGHT_LOAD * self.cpu
    }

    /// Whether a result of rows is worth bringing back from columns that are on the device.
    pub(crate) fn rows_pay(&self) -> bool {
        self.run <= self.cpu
    }

    /// Most groups of so many columns that are worth bringing back: as many as take the CPU's time.
    pub(crate) fn groups_max(&self, columns: usize) -> u64 {
        ((self.cpu * 1e9 / row_ns(columns)) as u64).max(GROUPS_MAX_MIN)
    }
}

fn time(seconds: f64) -> String {
    match seconds < 1.0 {
        true => format!("{:.1} ms", seconds * 1e3),
        false => format!("{seconds:.1} s"),
    }
}

/// Nanoseconds to bring a row of so many columns back.
fn row_ns(columns: usize) -> f64 {
    GROUP_NS + GROUP_COLUMN_NS * columns as f64
}

impl PassWork {
    /// Nanoseconds to bring the rows back that are the result.
    fn result_ns(&self) -> f64 {
        let (columns, limit) = match self.sink {
            SinkWork::Rows { columns, limit } => (columns, limit),
            SinkWork::Sort { columns, .. } => (columns, None),
            _ => return 0.0,
        };
        let rows = self.rows_passing();
        limit.map_or(rows, |limit| rows.min(limit as f64)) * row_ns(columns as usize)
    }

    /// Rows that pass the filters and find a partner in each probe.
    fn rows_passing(&self) -> f64 {
        if let Some(passing) = self.passing {
            return passing as f64;
        }
        self.rows as f64 * FILTER_SHARE.powi(self.filters as i32) * PROBE_SHARE.powi(self.probes as i32)
    }

    /// Nanoseconds that one core of the CPU takes to merge what all have sorted.
    fn merge_ns(&self) -> f64 {
        match self.sink {
            SinkWork::Sort { .. } => self.rows_passing() * MERGE_NS,
            _ => 0.0,
        }
    }

    fn device_bytes(&self) -> f64 {
        self.bytes(|_| true)
    }

    /// Bytes of the columns that are not on the device, as if they were plain there.
    pub(crate) fn missing_bytes(&self) -> f64 {
        self.bytes(|column| column.location != Location::Device)
    }

    fn bytes(&self, is_counted: impl Fn(&ColumnWork) -> bool) -> f64 {
        let width = |column: &ColumnWork| match column.kind {
            ColumnKind::Number(bytes) => bytes as f64,
            ColumnKind::Decimal => 8.0,
            ColumnKind::Coded | ColumnKind::Text(_) => 4.0,
            ColumnKind::Bytes(bytes) => bytes,
        };
        let counted = self.columns.iter().filter(|column| is_counted(column));
        self.rows as f64 * counted.map(width).sum::<f64>()
    }

    /// Core-nanoseconds of the pass on the CPU.
    fn cpu_ns(&self) -> f64 {
        let read = |column: &ColumnWork| match (self.source, column.kind) {
            (SourceKind::Memory, _) => 0.5,
            (SourceKind::Text, _) => 80.0,
            (SourceKind::Parquet, ColumnKind::Number(_)) => 4.5,
            // TPC-H 6 at scale 10, three of them and a date: 0.18 and 0.27 s on 16 cores of two machines.
            (SourceKind::Parquet, ColumnKind::Decimal) => 12.0,
            (SourceKind::Parquet, ColumnKind::Coded) => 6.0,
            (SourceKind::Parquet, ColumnKind::Text(bytes) | ColumnKind::Bytes(bytes)) => 10.0 + 0.3 * bytes,
        };
        let mut row: f64 = self.columns.iter().map(read).sum();
        let mut share = 1.0;
        for _ in 0..self.filters {
            row += 2.0 * share;
            share *= FILTER_SHARE;
        }
        for _ in 0..self.probes {
            row += 10.0 * share;
            share *= PROBE_SHARE;
        }
        row += share
            * match self.sink {
                SinkWork::Build => 40.0,
                // Most rows are compared with the last one that is kept.
                SinkWork::Rows { columns, .. } => 4.0 * f64::from(columns),
                SinkWork::TopK { keys } => 5.0 * f64::from(keys),
                SinkWork::Sort { keys, .. } => SORT_NS + SORT_KEY_NS * f64::from(keys.max(1) - 1),
                SinkWork::Windows { keys, columns } => {
                    SORT_NS + SORT_KEY_NS * f64::from(keys.max(1) - 1) + WINDOW_NS * f64::from(columns)
                }
                SinkWork::Aggregate { aggregates, keys } => 10.0 * f64::from(aggregates) + 10.0 * f64::from(keys),
            };
        self.rows as f64 * row
    }

    /// Seconds to bring what is not on the device there; on the host its cores encode it.
    fn load_seconds(&self, cores: f64, host: bool) -> f64 {
        let rows = self.rows as f64;
        let loads = self.columns.iter().filter(|column| column.location == Location::Source).count() as u64;
        // A column of a row group is the work of one thread.
        let threads = cores.min((self.rows.div_ceil(GROUP_ROWS) * loads) as f64).max(1.0);
        let column = |column: &ColumnWork| match column.location {
            Location::Device => 0.0,
            Location::Host => {
                let bytes = if let ColumnKind::Bytes(bytes) = column.kind { bytes } else { 8.0 };
                rows * bytes / TRANSFER_BANDWIDTH
            }
            Location::Source => {
                let decode = match self.source {
                    SourceKind::Memory => 0.0,
                    SourceKind::Text => 80.0,
                    SourceKind::Parquet => 2.5,
                };
                let encode = match column.kind {
                    ColumnKind::Number(bytes) => 0.25 * bytes as f64,
                    ColumnKind::Decimal => 2.0,
                    ColumnKind::Coded => 1.5,
                    // Looked up one by one, and entered where they are new.
                    ColumnKind::Text(bytes) => 100.0 + 2.0 * bytes,
                    // Read as the CPU's plan reads them, copied once, and sent.
                    ColumnKind::Bytes(bytes) => 10.0 + 0.5 * bytes + bytes * 1e9 / TRANSFER_BANDWIDTH,
                };
                let width = if let ColumnKind::Number(bytes) = column.kind { bytes as f64 } else { 4.0 };
                let encode = encode + if host { width * HOST_ENCODE_NS } else { 0.0 };
                // One thread puts the sorted strings together.
                let merge = if matches!(column.kind, ColumnKind::Text(_)) { 50.0 } else { 0.0 };
                rows * ((decode + encode) / threads + merge) / 1e9
            }
        };
        self.columns.iter().map(column).sum()
    }
}

/// Distinct values that the rows which pass so many filters have, of those that a column's rows have.
pub(crate) fn values_met(distinct: u64, rows: u64, filters: u32) -> u64 {
    if filters == 0 {
        return distinct;
    }
    // Rows that pass meet a value as often on average; how often each is by chance (Poisson).
    let passing = rows as f64 * FILTER_SHARE.powi(filters as i32);
    (distinct as f64 * (1.0 - (-passing / distinct.max(1) as f64).exp())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_holds_both_figures() {
        let costs = Costs { host: false, open: 0.4, load: 0.15, compile: 0.25, run: 0.001, cpu: 0.2 };
        let expected = "estimated cheaper on the CPU: 200.0 ms there, 801.0 ms on the GPU (400.0 ms opening it, \
                        150.0 ms loading, 250.0 ms compiling)";
        assert_eq!(costs.reason(), expected);
        let columns = Costs { host: true, open: 0.0, load: 2.5, compile: 0.0, run: 0.5, cpu: 2.0 };
        let expected = "estimated cheaper over files: 2.0 s there, 3.0 s over columns (2.5 s loading)";
        assert_eq!(columns.reason(), expected);
    }

    #[test]
    fn nothing_is_loaded_into_host_memory_for_a_few_milliseconds() {
        let host = Machine { host: true, ..SIXTEEN };
        let costs = |rows, machine| Costs::of(&[pass(rows, &numbers(3, Location::Source), 0, SUM)], machine);
        assert!(!costs(5_000, host).is_worth_a_load());
        assert!(costs(100_000_000, host).is_worth_a_load());
    }

    #[test]
    fn few_values_are_met_by_many_rows_and_many_by_as_many_rows() {
        assert_eq!(values_met(1000, 5000, 0), 1000);
        assert_eq!(values_met(1000, 1 << 20, 2), 1000);
        let met = values_met(1 << 30, 1 << 20, 1);
        assert!((met as f64 / f64::from(1 << 19) - 1.0).abs() < 0.01, "{met}");
        assert_eq!(values_met(0, 0, 3), 0);
    }

    const SIXTEEN: Machine = Machine { cores: 16, open: true, encoders_missing: false, emulated: false, host: false };

    fn pass(rows: u64, columns: &[(ColumnKind, Location)], probes: u32, sink: SinkWork) -> PassWork {
        let columns = columns.iter().map(|(kind, location)| ColumnWork { kind: *kind, location: *location }).collect();
        PassWork { rows, source: SourceKind::Parquet, columns, filters: 1, probes, sink, passing: None }
    }

    fn numbers(count: usize, location: Location) -> Vec<(ColumnKind, Location)> {
        vec![(ColumnKind::Number(4), location); count]
    }

    const SUM: SinkWork = SinkWork::Aggregate { aggregates: 1, keys: 0 };

    #[test]
    fn a_first_load_of_a_large_table_takes_about_as_long_as_the_cpu() {
        // SSB 2.1 at scale 20: four columns of 120 million rows, three joins. DataFusion takes 0.36 to 0.6 s.
        let costs = Costs::of(&[pass(120_000_000, &numbers(4, Location::Source), 3, SUM)], SIXTEEN);
        assert!((0.2..0.8).contains(&costs.cpu), "{costs:?}");
        assert!((0.05..0.3).contains(&costs.load), "{costs:?}");
        assert!(costs.device() > costs.load && costs.open == 0.0);
    }

    #[test]
    fn a_small_table_beside_a_large_one_that_is_there_is_a_slight_load() {
        let costs = |rows| {
            let large = pass(120_000_000, &numbers(4, Location::Device), 1, SUM);
            Costs::of(&[pass(rows, &numbers(2, Location::Source), 0, SinkWork::Build), large], SIXTEEN)
        };
        assert!(costs(40_000).load_is_slight() && !costs(60_000_000).load_is_slight());
        let closed = Machine { open: false, ..SIXTEEN };
        let passes = [pass(40_000, &numbers(2, Location::Source), 0, SinkWork::Build), pass(120_000_000, &[], 1, SUM)];
        assert!(!Costs::of(&passes, closed).load_is_slight());
    }

    #[test]
    fn all_rows_of_a_join_do_not_pay_and_few_do() {
        let rows = |limit| {
            let sink = SinkWork::Rows { columns: 6, limit };
            Costs::of(&[pass(120_000_000, &numbers(4, Location::Device), 1, sink)], SIXTEEN)
        };
        assert!(!rows(None).rows_pay(), "{:?}", rows(None));
        assert!(rows(Some(1_000)).rows_pay(), "{:?}", rows(Some(1_000)));
        let known = |passing| {
            let sink = SinkWork::Rows { columns: 6, limit: None };
            let all = pass(120_000_000, &numbers(4, Location::Device), 1, sink);
            Costs::of(&[PassWork { passing: Some(passing), ..all }], SIXTEEN)
        };
        assert!(known(100_000).rows_pay() && !known(60_000_000).rows_pay(), "{:?}", known(100_000));
    }

    #[test]
    fn a_sort_pays_where_few_cores_share_it() {
        let sort = |cores| {
            let sink = SinkWork::Sort { keys: 1, columns: 2 };
            Costs::of(&[pass(4_000_000, &numbers(2, Location::Device), 0, sink)], Machine { cores, ..SIXTEEN })
        };
        assert!(sort(1).groups_max(2) > 2_000_000, "{:?}", sort(1));
        assert!(sort(16).groups_max(2) < 2_000_000, "{:?}", sort(16));
    }

    #[test]
    fn what_is_on_the_device_costs_milliseconds() {
        let costs = Costs::of(&[pass(120_000_000, &numbers(4, Location::Device), 3, SUM)], SIXTEEN);
        assert!(costs.load == 0.0 && costs.run < 0.003, "{costs:?}");
        let copies = Costs::of(&[pass(120_000_000, &numbers(4, Location::Host), 3, SUM)], SIXTEEN);
        assert!(copies.load > 0.0 && copies.load < 0.5, "{copies:?}");
    }

    #[test]
    fn small_tables_are_cheaper_on_the_cpu() {
        let costs = Costs::of(&[pass(5_000, &numbers(3, Location::Source), 0, SUM)], SIXTEEN);
        assert!(costs.cpu < 0.003 && costs.device() > 10.0 * costs.cpu, "{costs:?}");
    }

    #[test]
    fn strings_without_a_dictionary_are_dear_to_load() {
        let load = |kind| Costs::of(&[pass(15_000_000, &[(kind, Location::Source)], 0, SUM)], SIXTEEN).load;
        assert!(load(ColumnKind::Text(50.0)) > 5.0 * load(ColumnKind::Coded));
        // Past the dictionary limit nothing is looked up.
        assert!(
            load(ColumnKind::Text(50.0)) > 5.0 * load(ColumnKind::Bytes(50.0))
                && load(ColumnKind::Bytes(50.0)) > load(ColumnKind::Coded)
        );
    }

    #[test]
    fn a_device_that_is_closed_has_to_be_opened() {
        let passes = [pass(1_000_000, &numbers(2, Location::Source), 0, SUM)];
        let (open, closed) = (Costs::of(&passes, SIXTEEN), Costs::of(&passes, Machine { open: false, ..SIXTEEN }));
        assert!((closed.device() - open.device() - OPEN_SECONDS).abs() < 1e-9 && closed.cpu == open.cpu);
    }

    #[test]
    fn a_first_load_waits_for_a_compiler_unless_it_takes_longer() {
        let load = |rows, encoders_missing| {
            let passes = [pass(rows, &numbers(4, Location::Source), 0, SUM)];
            Costs::of(&passes, Machine { encoders_missing, ..SIXTEEN }).load
        };
        assert_eq!(load(1_000_000, true), ENCODERS_SECONDS);
        assert_eq!(load(1_000_000_000, true), load(1_000_000_000, false));
        let there =
            Costs::of(&[pass(1, &numbers(1, Location::Device), 0, SUM)], Machine { encoders_missing: true, ..SIXTEEN });
        assert_eq!(there.load, 0.0);
    }

    #[test]
    fn the_emulated_device_is_twice_as_fast_as_the_cpu() {
        let emulated = Machine { emulated: true, host: false, open: false, encoders_missing: true, cores: 2 };
        let costs = Costs::of(&[pass(1_000, &numbers(2, Location::Source), 1, SinkWork::Build)], emulated);
        assert_eq!(costs.device(), costs.cpu / 2.0);
    }

    #[test]
    fn the_more_the_cpu_takes_the_more_groups_pay() {
        // TPC-H 18 at scale 10 has 15 million groups; the CPU takes 1.3 s.
        let cpu = |cpu| Costs { host: false, open: 0.0, load: 0.0, compile: 0.0, run: 0.0, cpu };
        assert!(cpu(1.3).groups_max(2) < 20_000_000);
        assert!(cpu(1.3).groups_max(2) > 1_500_000);
        assert_eq!(cpu(0.0).groups_max(2), GROUPS_MAX_MIN);
    }
}
