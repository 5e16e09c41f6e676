//! The kinds of values that settings take: devices, placements, budgets, formats and times, each with the text it is
//! read from and shown as; and where a value came from.
//!
//! No library reads them: `bytesize` counts a lone `K` by 1,000, DataFusion's settings by 1,024; `humantime` refuses
//! fractions and plain seconds.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use warpcube_engine::TopKAlgorithm;

/// A text that is not a value of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAValue;

/// Where a value came from; later ones take precedence over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingOrigin {
    /// Built in.
    Default,
    /// The catalog of a folder, by `SET GLOBAL`.
    Catalog(PathBuf),
    /// A configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line, or the program that opens the database.
    Flag(String),
    /// A `SET` statement.
    Statement,
}

impl SettingOrigin {
    /// Whether a value from there counts more than one that the catalog keeps.
    pub(crate) fn outranks_catalog(&self) -> bool {
        !matches!(self, SettingOrigin::Default | SettingOrigin::Catalog(_))
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::Catalog(path) => write!(f, "catalog {}", path.display()),
            SettingOrigin::File(path) => write!(f, "file {}", path.display()),
            SettingOrigin::Environment(name) => write!(f, "environment {name}"),
            SettingOrigin::Flag(name) => write!(f, "flag {name}"),
            SettingOrigin::Statement => f.write_str("SET"),
        }
    }
}

/// Which device a database uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU, or the CPU where there is none.
    Auto,
    /// GPU of that number, or an error.
    Cuda(usize),
    /// Never a GPU: the CPU over columns in host memory, and over files.
    Cpu,
    /// The emulated device of the tests.
    Emulated,
}

impl FromStr for DeviceChoice {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        match text.to_lowercase().as_str() {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "emulated" => Ok(DeviceChoice::Emulated),
            "cuda" | "gpu" => Ok(DeviceChoice::Cuda(0)),
            other => {
                let ordinal = other.strip_prefix("cuda:").ok_or(NotAValue)?;
                Ok(DeviceChoice::Cuda(ordinal.parse().map_err(|_| NotAValue)?))
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cuda(0) => f.write_str("cuda"),
            DeviceChoice::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Emulated => f.write_str("emulated"),
        }
    }
}

/// Defines an enum whose values are words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$value_doc])* $value,)+
        }

        impl FromStr for $name {
            type Err = NotAValue;

            fn from_str(text: &str) -> Result<Self, NotAValue> {
                match text.to_lowercase().as_str() {
                    $($word => Ok($name::$value),)+
                    _ => Err(NotAValue),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $($name::$value => $word,)+
                })
            }
        }
    };
}

words! {
    /// Where the fragments of a plan run.
    Placement {
        /// Where the model finds it cheaper.
        Auto = "auto",
        /// On the GPU; what cannot run there is an error.
        Cuda = "cuda",
        /// On the CPU over columns in host memory, which are loaded for it.
        Columns = "columns",
        /// On the CPU over files and tables as they are.
        Files = "files",
    }
}

words! {
    /// How columns are kept on the device.
    Encoding {
        /// In the smallest encoding that is worth it.
        Auto = "auto",
        /// As they are.
        Plain = "plain",
        /// Bit-packed wherever that can be, worth it or not.
        Packed = "packed",
        /// Integers in the fewest bytes that hold all of a column.
        Nsf = "nsf",
        /// Integers in 1 to 4 bytes each.
        Nsv = "nsv",
        /// Runs of equal values.
        Rle = "rle",
        /// Integers in blocks of 128.
        GpuFor = "gpu-for",
        /// Differences of integers in blocks of 128.
        GpuDfor = "gpu-dfor",
        /// Differences of integers, bit-packed.
        Delta = "delta",
        /// Numbers as codes for their distinct values.
        Dictionary = "dictionary",
        /// Floats as decimals.
        Alp = "alp",
    }
}

words! {
    /// What is done with files of encoded columns.
    EncodedFiles {
        /// Nothing.
        Off = "off",
        /// Columns come from them.
        Read = "read",
        /// Columns come from them, and those that were loaded are added.
        Write = "write",
    }
}

words! {
    /// How floats are added up.
    #[derive(Default)]
    FloatSums {
        /// In any order: the last digits may differ from run to run.
        #[default]
        Fast = "fast",
        /// Exactly, rounded once: the same bits in every run.
        Exact = "exact",
    }
}

words! {
    /// What integer arithmetic does whose result leaves its type.
    Overflow {
        /// The statement fails.
        Error = "error",
        /// The result wraps.
        Wrap = "wrap",
    }
}

words! {
    /// Whether tables are written with one line a value.
    Expanded {
        /// One line a row.
        Off = "off",
        /// One line a value.
        On = "on",
        /// One line a value where a row is wider than the terminal.
        Auto = "auto",
    }
}

/// How the program writes a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table, or what the extension of the output file says.
    Auto,
    /// Lines and columns for people, as wide as the terminal.
    Table,
    /// A table with all of its rows and columns.
    Box,
    /// One line a value.
    Line,
    /// A table of Markdown.
    Markdown,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// Values with bars between them and a header, without quotes.
    List,
    /// One JSON array of objects.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC stream on standard output, an Arrow IPC file with `--output`.
    Arrow,
}

/// A format's names.
#[derive(Debug)]
pub struct FormatInfo {
    /// The format.
    pub format: Format,
    /// Its name.
    pub name: &'static str,
    /// Names that other programs have for it.
    pub others: &'static [&'static str],
    /// Extensions of files that are written in it.
    pub extensions: &'static [&'static str],
}

/// Every format but [`Format::Auto`].
pub static FORMATS: [FormatInfo; 11] = [
    FormatInfo {
        format: Format::Table,
        name: "table",
        others: &["duckbox", "aligned", "column"],
        extensions: &["txt"],
    },
    FormatInfo { format: Format::Box, name: "box", others: &[], extensions: &[] },
    FormatInfo { format: Format::Line, name: "line", others: &["lines", "expanded"], extensions: &[] },
    FormatInfo { format: Format::Markdown, name: "markdown", others: &["md"], extensions: &["md"] },
    FormatInfo { format: Format::Csv, name: "csv", others: &[], extensions: &["csv"] },
    FormatInfo { format: Format::Tsv, name: "tsv", others: &["tabs"], extensions: &["tsv"] },
    FormatInfo { format: Format::List, name: "list", others: &["unaligned"], extensions: &[] },
    FormatInfo { format: Format::Json, name: "json", others: &[], extensions: &["json"] },
    FormatInfo { format: Format::Ndjson, name: "ndjson", others: &["jsonlines"], extensions: &["ndjson", "jsonl"] },
    FormatInfo { format: Format::Parquet, name: "parquet", others: &[], extensions: &["parquet"] },
    FormatInfo { format: Format::Arrow, name: "arrow", others: &[], extensions: &["arrow", "ipc", "feather"] },
];

impl FromStr for Format {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let text = text.to_lowercase();
        let is_named = |info: &&FormatInfo| info.name == text || info.others.contains(&text.as_str());
        match FORMATS.iter().find(is_named) {
            Some(info) => Ok(info.format),
            None if text == "auto" => Ok(Format::Auto),
            None => Err(NotAValue),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMATS.iter().find(|info| info.format == *self).map_or("auto", |info| info.name))
    }
}

/// How top-k is found: by a named algorithm of the device's primitives, or as the cost model chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopKChoice {
    /// As the cost model chooses.
    Auto,
    /// By this algorithm.
    Named(TopKAlgorithm),
}

impl TopKChoice {
    /// The algorithm that is named.
    pub fn named(self) -> Option<TopKAlgorithm> {
        match self {
            TopKChoice::Auto => None,
            TopKChoice::Named(algorithm) => Some(algorithm),
        }
    }
}

impl FromStr for TopKChoice {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        match text.to_lowercase().as_str() {
            "auto" => Ok(TopKChoice::Auto),
            name => name.parse().map(TopKChoice::Named).map_err(|_| NotAValue),
        }
    }
}

impl fmt::Display for TopKChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopKChoice::Auto => f.write_str("auto"),
            TopKChoice::Named(algorithm) => write!(f, "{algorithm}"),
        }
    }
}

/// A budget of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// What the setting's description says.
    Auto,
    /// So many bytes.
    Bytes(u64),
    /// A share in percent, 1 to 100.
    Percent(u8),
}

impl Budget {
    /// The budget in bytes where there are `total`; none for `auto`.
    pub fn bytes(self, total: u64) -> Option<u64> {
        match self {
            Budget::Auto => None,
            Budget::Bytes(bytes) => Some(bytes),
            Budget::Percent(percent) => Some((u128::from(total) * u128::from(percent) / 100) as u64),
        }
    }
}

/// Units of bytes, longest names first within a letter; a lone letter counts by 1,024 as DataFusion's does.
const UNITS: [(&str, u64); 13] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("b", 1),
];

impl FromStr for Budget {
    type Err = NotAValue;

    fn from_str(text: &str) -> Result<Self, NotAValue> {
        let text = text.trim().to_lowercase();
        if text == "auto" {
            return Ok(Budget::Auto);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.trim().parse().ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(Budget::Percent).ok_or(NotAValue);
        }
        let unit = UNITS.iter().find(|(name, _)| text.ends_with(name));
        let (name, scale) = unit.copied().unwrap_or(("", 1));
        let number = text[..text.len() - name.len()].trim();
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(scale).map(Budget::Bytes).ok_or(NotAValue);
        }
        let number: f64 = number.parse().map_err(|_| NotAValue)?;
        let bytes = number * scale as f64;
        if bytes.is_finite() && (0.0..1e18).contains(&bytes) { Ok(Budget::Bytes(bytes as u64)) } else { Err(NotAValue) }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Budget::Auto => f.write_str("auto"),
            Budget::Percent(percent) => write!(f, "{percent}%"),
            Budget::Bytes(bytes) => {
                let unit = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)]
                    .into_iter()
                    .find(|(_, shift)| bytes > 0 && bytes.trailing_zeros() >= *shift);
                match unit {
                    Some((name, shift)) => write!(f, "{}{name}", bytes >> shift),
                    None => write!(f, "{bytes}"),
                }
            }
        }
    }
}

/// `30s`, `500ms`, `2min`, `1h`, a number of seconds, or `off`; the outer option says whether it was one of these.
pub(crate) fn parse_duration(text: &str) -> Option<Option<Duration>> {
    let text = text.trim().to_lowercase();
    if text == "off" || text == "0" {
        return Some(None);
    }
    let units = [("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];
    let (name, scale) = units.into_iter().find(|(name, _)| text.ends_with(name)).unwrap_or(("", 1.0));
    let number: f64 = text[..text.len() - name.len()].trim().parse().ok()?;
    let seconds = number * scale;
    (seconds > 0.0 && seconds < 1e9).then(|| Some(Duration::from_secs_f64(seconds)))
}

pub(crate) fn show_duration(duration: Option<Duration>) -> String {
    match duration {
        None => "off".into(),
        Some(duration) if duration.as_millis() % 1000 == 0 => format!("{}s", duration.as_secs()),
        Some(duration) => format!("{}ms", duration.as_secs_f64() * 1e3),
    }
}

/// What statements may not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ReadOnly {
    /// They may change all.
    #[default]
    Off,
    /// Files.
    Files,
    /// Files, tables, and what else the connections of a database share.
    All,
}

impl ReadOnly {
    /// Whether files are kept from being written.
    pub fn is_on(self) -> bool {
        self != ReadOnly::Off
    }
}

impl fmt::Display for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadOnly::Off => "off",
            ReadOnly::Files => "on",
            ReadOnly::All => "all",
        })
    }
}

impl FromStr for ReadOnly {
    type Err = ();

    fn from_str(text: &str) -> Result<ReadOnly, ()> {
        match boolean(text) {
            Some(true) => Ok(ReadOnly::Files),
            Some(false) => Ok(ReadOnly::Off),
            None if text.eq_ignore_ascii_case("all") => Ok(ReadOnly::All),
            None => Err(()),
        }
    }
}

pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets() {
        let bytes = |text: &str| text.parse::<Budget>();
        assert_eq!(bytes("4GiB"), Ok(Budget::Bytes(4 << 30)));
        assert_eq!(bytes("1.5 g"), Ok(Budget::Bytes(3 << 29)));
        assert_eq!(bytes("2GB"), Ok(Budget::Bytes(2_000_000_000)));
        assert_eq!(bytes("17"), Ok(Budget::Bytes(17)));
        assert_eq!(bytes("80%"), Ok(Budget::Percent(80)));
        for wrong in ["", "GiB", "-1", "101%", "0%", "1e30", "four", "99999999999999TiB", "nan"] {
            assert_eq!(bytes(wrong), Err(NotAValue), "{wrong}");
        }
        assert_eq!(Budget::Percent(50).bytes(u64::MAX), Some(u64::MAX / 2));
    }

    #[test]
    fn times() {
        assert_eq!(parse_duration("500ms"), Some(Some(Duration::from_millis(500))));
        assert_eq!(parse_duration("2min"), Some(Some(Duration::from_secs(120))));
        assert_eq!(parse_duration("off"), Some(None));
        assert_eq!(parse_duration("-1s"), None);
        assert_eq!(parse_duration("soon"), None);
    }
}
