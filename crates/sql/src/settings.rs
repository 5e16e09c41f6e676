//! The settings under `warpcube.`, what they take, whose they are and where their values came from.
//!
//! One table ([`SETTINGS`]) holds each setting's name, what it takes and what it does; `SET`, the configuration file,
//! environment variables, flags, `SHOW` and the documentation all read it. The values live in DataFusion's
//! configuration as an extension, so that every part of a running statement sees those it was started with.
//!
//! Invariant: what a setting shows, it also takes.

mod extension;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Result, SqlError};
use crate::locations::{AllowedPaths, Reach, SecretFiles};
use crate::nearest::nearest;
use crate::ranges::PARTITIONS;
use crate::values::{
    Budget, DeviceChoice, EncodedFiles, Encoding, Expanded, FloatSums, Format, Overflow, Placement, ReadOnly,
    SettingOrigin, TopKChoice, boolean, parse_duration, show_duration,
};

/// The prefix of every setting here.
pub const PREFIX: &str = "warpcube";

/// Dictionary entries of one string column past which it stays on the CPU.
const DICTIONARY_LIMIT_DEFAULT: usize = 4 << 20;
/// Levels that a thread with a stack of 2 MiB holds.
const DEPTH_LIMIT_DEFAULT: usize = 200;
/// Levels that a thread with a stack of 64 MiB holds.
const DEPTH_LIMIT_MAX: usize = 10_000;
/// A statement waits for a load if the GPU's time with it is at most this share of the CPU's; less than 1, since
/// estimates are off.
const LOAD_FACTOR_DEFAULT: f64 = 0.8;
/// Statements that the log keeps: with texts of 4 KiB some 4 MiB.
const QUERY_LOG_DEFAULT: usize = 1000;
/// With texts of 4 KiB some 4 GiB.
const QUERY_LOG_MAX: usize = 1_000_000;
/// Rows of a table shown on a terminal.
const MAX_ROWS_DEFAULT: usize = 100;

/// The values of all settings under `warpcube.`, as one connection has them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Those that the connection has from its database.
    pub database: DatabaseSettings,
    /// Where fragments run.
    pub placement: Placement,
    /// Longest time a statement may take.
    pub timeout: Option<Duration>,
    /// Most dictionary entries of a string column on the device.
    pub dictionary_limit: usize,
    /// Under placement `auto`, how many times as long as on the CPU a statement may take because of a load.
    pub load_factor: f64,
    /// Folder that generated kernel source is written to; none writes none.
    pub dump_source: Option<PathBuf>,
    /// Whether encoded columns are kept in files.
    pub encoded_files: EncodedFiles,
    /// Folder of those files; none means beside the tables' own.
    pub encoded_folder: Option<PathBuf>,
    /// How columns are kept on the device.
    pub encoding: Encoding,
    /// How SUM and AVG add floats.
    pub float_sums: FloatSums,
    /// CPU partitions of a plan; 0 means one a core.
    pub target_partitions: usize,
    /// What statements may not change.
    pub read_only: ReadOnly,
    /// How the program writes results.
    pub format: Format,
    /// Most rows of a table on a terminal; 0 means all.
    pub max_rows: usize,
    /// Whether tables have one line a value.
    pub expanded: Expanded,
    /// The text of NULL; none means NULL in tables and lists, and nothing in CSV.
    pub null: Option<String>,
    /// Whether values with separators between them have the names of their columns above.
    pub header: bool,
    /// What stands between values; none means that of the format.
    pub separator: Option<u8>,
    /// Whether the shell passes what is larger than the screen to a pager.
    pub pager: bool,
    /// Most levels that expressions and queries of a statement may be nested.
    pub depth_limit: usize,
    /// What integer arithmetic that overflows does.
    pub overflow: Overflow,
    /// How the first rows of an order are found on the device.
    pub topk: TopKChoice,
    /// Whether the program writes times after each statement; none means that it does in the shell alone.
    pub timing: Option<bool>,
}

/// The values of settings that all connections of a database share.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DatabaseSettings {
    /// Which device to use.
    pub device: DeviceChoice,
    /// Most device memory to use.
    pub device_memory: Budget,
    /// Most host memory for encoded copies of columns.
    pub host_memory: Budget,
    /// Most memory for operators on the CPU; past it they spill. `auto` means no limit.
    pub memory_limit: Budget,
    /// Folder for spilled data; none means the system's temporary folder.
    pub spill_folder: Option<PathBuf>,
    /// Folders that hold all files that statements read and write; none means that any may.
    pub allowed_paths: Option<AllowedPaths>,
    /// Statements that the log keeps.
    pub query_log: usize,
    /// Files that no statement reaches.
    pub(crate) secret: SecretFiles,
}

impl DatabaseSettings {
    /// The files that statements reach.
    pub(crate) fn reach(&self) -> Reach {
        Reach { allowed: self.allowed_paths.clone(), secret: self.secret.clone() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            database: DatabaseSettings {
                device: DeviceChoice::Auto,
                device_memory: Budget::Auto,
                host_memory: Budget::Auto,
                memory_limit: Budget::Auto,
                spill_folder: None,
                allowed_paths: None,
                query_log: QUERY_LOG_DEFAULT,
                secret: SecretFiles::default(),
            },
            placement: Placement::Auto,
            timeout: None,
            dictionary_limit: DICTIONARY_LIMIT_DEFAULT,
            load_factor: LOAD_FACTOR_DEFAULT,
            dump_source: None,
            encoded_files: EncodedFiles::Off,
            encoded_folder: None,
            encoding: Encoding::Auto,
            float_sums: FloatSums::Fast,
            target_partitions: 0,
            read_only: ReadOnly::Off,
            format: Format::Auto,
            max_rows: MAX_ROWS_DEFAULT,
            expanded: Expanded::Off,
            null: None,
            header: true,
            separator: None,
            pager: true,
            depth_limit: DEPTH_LIMIT_DEFAULT,
            overflow: Overflow::Error,
            topk: TopKChoice::Auto,
            timing: None,
        }
    }
}

/// Whose a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// One value for all connections of a database: SET by one connection changes it for all, from the next statement
    /// of each on.
    Database,
    /// Each connection has its own value, and begins with the one that the database was opened with.
    Connection,
}

/// One setting: its name and what it takes and does.
pub struct SettingInfo {
    /// Full name, with the prefix.
    pub name: &'static str,
    /// What it takes, for people.
    pub expected: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Whose it is.
    pub owner: Owner,
    get: fn(&Settings) -> String,
    set: fn(&mut Settings, &str) -> Option<()>,
}

impl fmt::Debug for SettingInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const BUDGET: &str = "'auto', bytes such as '4GiB' or '512M', or a share such as '80%'";
const COUNT: &str = "a whole number";

/// Every setting under `warpcube.`, by name.
pub static SETTINGS: &[SettingInfo] = &[
    SettingInfo {
        name: "warpcube.allowed_paths",
        expected: "folders that exist, separated by ':', or 'all'",
        description: "Folders of the files that statements read and write; every other file is error FILE-007, links \
                      and '..' followed. Once given it stays, and other settings of folders can only \
                      be set to folders within these.",
        owner: Owner::Database,
        get: |s| s.database.allowed_paths.as_ref().map_or("all".into(), ToString::to_string),
        set: |s, v| {
            s.database.allowed_paths = if v == "all" { None } else { Some(AllowedPaths::parse(v)?) };
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.depth_limit",
        expected: "a whole number from 1 to 10000",
        description: "Most levels that expressions, set operations, joins and subqueries of a statement may be nested; \
                      deeper ones are refused. A level takes stack of the threads that plan and run it: the program, \
                      whose threads have 64 MiB, starts with 4000, a library on threads of 2 MiB with 200.",
        owner: Owner::Connection,
        get: |s| s.depth_limit.to_string(),
        set: |s, v| {
            s.depth_limit = v.parse().ok().filter(|depth| (1..=DEPTH_LIMIT_MAX).contains(depth))?;
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.device",
        expected: "'auto', 'cuda', 'cuda:N' or 'cpu'",
        description: "The device: 'auto' takes the first GPU and the CPU where there is none, 'cuda' and 'cuda:N' fail \
                      without that GPU, 'cpu' never touches one. The CPU keeps columns encoded in host memory (see \
                      warpcube.host_memory) and scans them there, or reads files (see warpcube.placement).",
        owner: Owner::Database,
        get: |s| s.database.device.to_string(),
        set: |s, v| v.parse().map(|value| s.database.device = value).ok(),
    },
    SettingInfo {
        name: "warpcube.device_memory",
        expected: BUDGET,
        description: "Most device memory to use; 'auto' is nine tenths of what is free when the device is opened.",
        owner: Owner::Database,
        get: |s| s.database.device_memory.to_string(),
        set: |s, v| v.parse().map(|value| s.database.device_memory = value).ok(),
    },
    SettingInfo {
        name: "warpcube.dictionary_limit",
        expected: COUNT,
        description: "Most different strings of a column that has codes on the device. A column with more lies there \
                      as bytes: its strings are compared with constants, matched by LIKE and given back; groups, \
                      joins and order by it stay on the CPU. A function of it, as substr, may be a column of its own.",
        owner: Owner::Connection,
        get: |s| s.dictionary_limit.to_string(),
        set: |s, v| v.parse().map(|value| s.dictionary_limit = value).ok(),
    },
    SettingInfo {
        name: "warpcube.dump_source",
        expected: "a folder, or 'off'",
        description: "Folder into which the generated source of each fragment is written when it is bound, a file \
                      'fragment-HASH.cu' each, complete with what it includes.",
        owner: Owner::Connection,
        get: |s| s.dump_source.as_ref().map_or("off".into(), |folder| folder.display().to_string()),
        set: |s, v| {
            s.dump_source = (!v.is_empty() && v != "off").then(|| PathBuf::from(v));
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.encoded_files",
        expected: "'off', 'read' or 'write'",
        description: "Whether columns of tables over files of this machine are kept encoded in a file, so that they \
                      need not be decoded again after a restart: 'read' loads columns from there where they are those \
                      of the files there are now, 'write' also adds columns that were loaded.",
        owner: Owner::Connection,
        get: |s| s.encoded_files.to_string(),
        set: |s, v| v.parse().map(|value| s.encoded_files = value).ok(),
    },
    SettingInfo {
        name: "warpcube.encoded_folder",
        expected: "a folder, or 'auto'",
        description: "Folder for files of encoded columns; 'auto' is beside the table's own files.",
        owner: Owner::Connection,
        get: |s| s.encoded_folder.as_ref().map_or("auto".into(), |folder| folder.display().to_string()),
        set: |s, v| {
            s.encoded_folder = (!v.is_empty() && v != "auto").then(|| PathBuf::from(v));
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.encoding",
        expected: "'auto', 'plain', 'packed', 'nsf', 'nsv', 'rle', 'gpu-for', 'gpu-dfor', 'delta', 'dictionary' or \
                   'alp'",
        description: "How columns are loaded onto the device: 'auto' in the encoding that queries read soonest by \
                      estimate, 'plain' as they are, 'packed' with as few bits as their values take, others in that \
                      encoding; a column that cannot have it is loaded as by 'auto'. Columns that are there stay as \
                      they are.",
        owner: Owner::Connection,
        get: |s| s.encoding.to_string(),
        set: |s, v| v.parse().map(|value| s.encoding = value).ok(),
    },
    SettingInfo {
        name: "warpcube.expanded",
        expected: "'on', 'off' or 'auto'",
        description: "Whether the program writes tables with one line a value, as format 'line' does; 'auto' does \
                      where rows are wider than the terminal.",
        owner: Owner::Connection,
        get: |s| s.expanded.to_string(),
        set: |s, v| v.parse().map(|value| s.expanded = value).ok(),
    },
    SettingInfo {
        name: "warpcube.float_sums",
        expected: "'fast' or 'exact'",
        description: "How SUM and AVG add floats: 'fast' in any order, so that the last digits may differ from run to \
                      run, 'exact' without rounding until the end, with the same bits on the GPU and the CPU whatever \
                      the order of rows; VAR and STDDEV of floats then stay on the CPU, as they are.",
        owner: Owner::Connection,
        get: |s| s.float_sums.to_string(),
        set: |s, v| v.parse().map(|value| s.float_sums = value).ok(),
    },
    SettingInfo {
        name: "warpcube.format",
        expected: "'auto', 'table', 'box', 'line', 'markdown', 'csv', 'tsv', 'list', 'json', 'ndjson', 'parquet' or \
                   'arrow'",
        description: "How the program writes results; 'auto' is a table, or the format of --output's extension.",
        owner: Owner::Connection,
        get: |s| s.format.to_string(),
        set: |s, v| v.parse().map(|value| s.format = value).ok(),
    },
    SettingInfo {
        name: "warpcube.header",
        expected: "'on' or 'off'",
        description: "Whether results of formats 'csv', 'tsv' and 'list' begin with the names of their columns.",
        owner: Owner::Connection,
        get: |s| if s.header { "on" } else { "off" }.into(),
        set: |s, v| boolean(v).map(|value| s.header = value),
    },
    SettingInfo {
        name: "warpcube.host_memory",
        expected: BUDGET,
        description: "Most host memory for encoded columns: those that the CPU scans where there is no GPU, '0' reads \
                      files alone; with a GPU copies of columns that left it, from which they come back without being \
                      read from files, '0' keeps none. 'auto' is a quarter, or with a GPU an eighth, of the memory of \
                      the machine or its container; a quarter of warpcube.memory_limit where there is one.",
        owner: Owner::Database,
        get: |s| s.database.host_memory.to_string(),
        set: |s, v| v.parse().map(|value| s.database.host_memory = value).ok(),
    },
    SettingInfo {
        name: "warpcube.load_factor",
        expected: "a number such as '0.8'",
        description: "Under placement 'auto', a statement waits for columns to be loaded if it is then estimated to \
                      take at most this many times as long as on the CPU over files; '0' loads by LOAD TABLE alone.",
        owner: Owner::Connection,
        get: |s| s.load_factor.to_string(),
        set: |s, v| {
            s.load_factor = v.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor >= 0.0)?;
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.max_rows",
        expected: COUNT,
        description: "Most rows of a table written to a terminal; 0 means all.",
        owner: Owner::Connection,
        get: |s| s.max_rows.to_string(),
        set: |s, v| v.parse().map(|value| s.max_rows = value).ok(),
    },
    SettingInfo {
        name: "warpcube.memory_limit",
        expected: BUDGET,
        description: "Most memory for operators on the CPU; sorts, aggregations and joins that sort their sides spill \
                      to disk past it, hash joins do not. 'auto' means no limit.",
        owner: Owner::Database,
        get: |s| s.database.memory_limit.to_string(),
        set: |s, v| v.parse().map(|value| s.database.memory_limit = value).ok(),
    },
    SettingInfo {
        name: "warpcube.null",
        expected: "'auto' or a text",
        description: "How NULL is written in formats 'table', 'box', 'line', 'markdown', 'list', 'csv' and 'tsv'; \
                      'auto' means an empty text in the last two and NULL in others.",
        owner: Owner::Connection,
        get: |s| s.null.clone().unwrap_or_else(|| "auto".into()),
        set: |s, v| {
            s.null = (v != "auto").then(|| v.into());
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.overflow",
        expected: "'error' or 'wrap'",
        description: "What integer arithmetic and sums of integers do that leave their type: 'error' ends the \
                      statement with the expression's name, 'wrap' goes on with the lowest bits, as DataFusion does.",
        owner: Owner::Connection,
        get: |s| s.overflow.to_string(),
        set: |s, v| v.parse().map(|value| s.overflow = value).ok(),
    },
    SettingInfo {
        name: "warpcube.pager",
        expected: "'on' or 'off'",
        description: "Whether the shell passes tables that are wider or longer than the screen to the program of the \
                      variable PAGER, 'less -S' if there is none.",
        owner: Owner::Connection,
        get: |s| if s.pager { "on" } else { "off" }.into(),
        set: |s, v| boolean(v).map(|value| s.pager = value),
    },
    SettingInfo {
        name: "warpcube.placement",
        expected: "'auto', 'cuda', 'columns' or 'files'",
        description: "Where fragments run: 'auto' on the GPU, or without one over columns in host memory, where their \
                      columns are there or worth loading (see warpcube.load_factor), 'cuda' on the GPU whenever it \
                      can run them, with an error where it then fails or its data is not supported, 'columns' on the \
                      CPU over columns, which are loaded for it, 'files' on the CPU over files and tables as they are.",
        owner: Owner::Connection,
        get: |s| s.placement.to_string(),
        set: |s, v| v.parse().map(|value| s.placement = value).ok(),
    },
    SettingInfo {
        name: "warpcube.query_log",
        expected: "a whole number from 0 to 1000000",
        description: "Most statements that the log keeps, which query_log() gives: the last ones that ended, each with \
                      at most 4 KiB of its text. 0 keeps none.",
        owner: Owner::Database,
        get: |s| s.database.query_log.to_string(),
        set: |s, v| {
            s.database.query_log = v.parse().ok().filter(|statements| *statements <= QUERY_LOG_MAX)?;
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.read_only",
        expected: "'on', 'off' or 'all'",
        description: "Whether statements that write files are refused (FILE-008): COPY, INSERT into files, kept \
                      columns and generated source. Tables in memory can be made and changed, and what does not fit \
                      into memory is spilled. 'all' refuses every change of tables, catalogs, device memory and \
                      settings of all connections, too, and KILL of other sessions. It only becomes stricter.",
        owner: Owner::Connection,
        get: |s| s.read_only.to_string(),
        set: |s, v| v.parse().map(|value| s.read_only = value).ok(),
    },
    SettingInfo {
        name: "warpcube.separator",
        expected: "'auto', or one character of ASCII",
        description: "What stands between values of formats 'csv', 'tsv' and 'list'; 'auto' means a comma, a tabulator \
                      and a bar.",
        owner: Owner::Connection,
        get: |s| s.separator.map_or_else(|| "auto".into(), |byte| char::from(byte).to_string()),
        set: |s, v| {
            s.separator = match v.as_bytes() {
                b"auto" => None,
                b"\\t" => Some(b'\t'),
                [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Some(*byte),
                _ => return None,
            };
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.spill_folder",
        expected: "a folder, or 'auto'",
        description: "Folder for data spilled by the CPU; 'auto' is the system's temporary folder.",
        owner: Owner::Database,
        get: |s| s.database.spill_folder.as_ref().map_or("auto".into(), |folder| folder.display().to_string()),
        set: |s, v| {
            s.database.spill_folder = (!v.is_empty() && v != "auto").then(|| PathBuf::from(v));
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.target_partitions",
        expected: "a whole number from 0 to 1024",
        description: "Partitions of a plan on the CPU; 0 means one a core.",
        owner: Owner::Connection,
        get: |s| s.target_partitions.to_string(),
        set: |s, v| {
            s.target_partitions = v.parse().ok().filter(|_| PARTITIONS.holds(v))?;
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.timeout",
        expected: "a time such as '30s', '500ms' or '2min', or 'off'",
        description: "Longest time a statement may take; it is cancelled after that.",
        owner: Owner::Connection,
        get: |s| show_duration(s.timeout),
        set: |s, v| parse_duration(v).map(|value| s.timeout = value),
    },
    SettingInfo {
        name: "warpcube.timing",
        expected: "'auto', 'on' or 'off'",
        description: "Whether the program writes rows, time and placement after each statement: 'auto' does in the \
                      shell, where 'off' leaves out the times alone.",
        owner: Owner::Connection,
        get: |s| s.timing.map_or("auto", |on| if on { "on" } else { "off" }).into(),
        set: |s, v| {
            s.timing = if v == "auto" { None } else { Some(boolean(v)?) };
            Some(())
        },
    },
    SettingInfo {
        name: "warpcube.topk",
        expected: "'auto', 'threshold', 'radix_select', 'bucket_select', 'heap_shared', 'heap_registers', \
                   'sort_and_choose' or 'bitonic' (also 'bitonic_global' and the other steps of its ablation)",
        description: "How the device finds the first rows of ORDER BY … LIMIT over one table: 'threshold' appends rows \
                      past a threshold that a sample gives and selects among those, others write the rank of every \
                      row and select among all; 'auto' takes the one predicted to be the fastest, which EXPLAIN names, \
                      or before the columns are loaded those it may be. The rows are the same. A named algorithm has \
                      limits, past which the CPU answers: k of 1,024 for bitonic (512 for keys of 128 bits), 64 for \
                      heaps in registers, some 900 for heaps in shared memory; keys with the number of the row of 128 \
                      bits.",
        owner: Owner::Connection,
        get: |s| s.topk.to_string(),
        set: |s, v| v.parse().map(|value| s.topk = value).ok(),
    },
];

/// The setting of that full name.
///
/// # Errors
/// [`SqlError::UnknownSetting`] with the nearest name.
pub fn setting(name: &str) -> Result<&'static SettingInfo> {
    SETTINGS.iter().find(|setting| setting.name == name).ok_or_else(|| SqlError::UnknownSetting {
        name: name.to_string(),
        nearest: nearest(name, SETTINGS.iter().map(|setting| setting.name.to_string())),
        origin: None,
    })
}

impl Settings {
    /// The value of the setting of that full name, as text that [`Settings::assign`] takes.
    pub fn value(&self, name: &str) -> Result<String> {
        Ok((setting(name)?.get)(self))
    }

    /// Sets a setting by its full name.
    ///
    /// # Errors
    /// [`SqlError::UnknownSetting`] or [`SqlError::SettingValue`]; nothing is changed then.
    pub fn assign(&mut self, name: &str, value: &str) -> Result<()> {
        let info = setting(name)?;
        (info.set)(self, value.trim()).ok_or_else(|| SqlError::SettingValue {
            name: name.to_string(),
            value: value.to_string(),
            expected: info.expected.to_string(),
            origin: None,
        })
    }
}

/// A value for a setting of `warpcube.` or `datafusion.`, from outside of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// Full name of the setting.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// Where it came from.
    pub origin: SettingOrigin,
}

#[cfg(test)]
mod tests;
