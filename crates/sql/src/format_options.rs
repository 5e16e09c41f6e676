//! The options of formats that `COPY` and `CREATE EXTERNAL TABLE` take.
//!
//! DataFusion 55.2 has one set of options a format for reading and writing, and passes over what the one of both that
//! a statement is about does not know: a `terminator` is not written, a `date_format` not read, and the Arrow format
//! takes any name. Here an option is done or refused by its name ([`OPTIONS`]); numbers are held to their ranges.
//!
//! Invariant: each option of DataFusion's formats stands in the table (a test holds it).

use arrow::array::StringArray;
use arrow::compute::kernels::regexp::regexp_is_match_scalar;
use datafusion::sql::sqlparser::ast::Value;

use crate::error::{Result, SqlError};
use crate::nearest::nearest;
use crate::ranges::{Range, check_parquet_option};

/// What a statement does with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `COPY … TO` writes them.
    Copy,
    /// `CREATE EXTERNAL TABLE` reads them, and INSERT into the table writes them.
    Table,
}

/// What an option changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Reading and writing.
    Both,
    Read,
    Write,
    /// Writing alone, so that a table would not read what INSERT writes.
    WriteOnce,
    Neither,
}

use Use::{Both, Neither, Read, Write, WriteOnce};

/// The options of each format that has any.
const OPTIONS: [(&str, &[(&str, Use)]); 3] = [
    (
        "CSV",
        &[
            ("has_header", Both),
            ("delimiter", Both),
            ("quote", Both),
            ("escape", Both),
            ("compression", Both),
            ("compression_level", Write),
            ("quote_style", Write),
            ("ignore_leading_whitespace", Write),
            ("ignore_trailing_whitespace", Write),
            ("double_quote", WriteOnce),
            ("date_format", WriteOnce),
            ("datetime_format", WriteOnce),
            ("timestamp_format", WriteOnce),
            ("timestamp_tz_format", WriteOnce),
            ("time_format", WriteOnce),
            ("null_value", WriteOnce),
            ("terminator", Read),
            ("newlines_in_values", Read),
            ("schema_infer_max_rec", Read),
            ("comment", Read),
            ("truncated_rows", Read),
            ("null_regex", Neither),
        ],
    ),
    (
        "JSON",
        &[
            ("compression", Both),
            ("compression_level", Write),
            ("schema_infer_max_rec", Read),
            ("newline_delimited", Read),
        ],
    ),
    (
        "PARQUET",
        &[
            ("enable_page_index", Read),
            ("pruning", Read),
            ("skip_metadata", Read),
            ("metadata_size_hint", Read),
            ("pushdown_filters", Read),
            ("reorder_filters", Read),
            ("force_filter_selections", Read),
            ("schema_force_view_types", Read),
            ("binary_as_string", Read),
            ("coerce_int96", Read),
            ("coerce_int96_tz", Read),
            ("bloom_filter_on_read", Read),
            ("max_predicate_cache_size", Read),
            ("max_in_list_size", Read),
            ("data_pagesize_limit", Write),
            ("write_batch_size", Write),
            ("writer_version", Write),
            ("skip_arrow_metadata", Write),
            ("compression", Write),
            ("dictionary_enabled", Write),
            ("dictionary_page_size_limit", Write),
            ("statistics_enabled", Write),
            ("max_row_group_size", Write),
            ("max_row_group_bytes", Write),
            ("created_by", Write),
            ("column_index_truncate_length", Write),
            ("statistics_truncate_length", Write),
            ("data_page_row_count_limit", Write),
            ("encoding", Write),
            ("bloom_filter_enabled", Write),
            ("bloom_filter_on_write", Write),
            ("bloom_filter_fpp", Write),
            ("bloom_filter_ndv", Write),
            ("allow_single_file_parallelism", Write),
            ("maximum_parallel_row_group_writers", Write),
            ("maximum_buffered_record_batches_per_stream", Write),
            ("content_defined_chunking.enabled", Write),
            ("content_defined_chunking.min_chunk_size", Write),
            ("content_defined_chunking.max_chunk_size", Write),
            ("content_defined_chunking.norm_level", Write),
            ("metadata", Write),
        ],
    ),
];

/// Options of tables that are no format's: what their files may lack.
const OF_TABLES: [&str; 1] = ["union_by_name"];
/// Options of COPY that are no format's.
const OF_COPY: [&str; 3] = ["append", "overwrite", "execution.keep_partition_by_columns"];

/// Refuses what a statement gives and the format does not do.
///
/// # Errors
/// [`SqlError::Unsupported`] for an option that would be passed over, [`SqlError::Planning`] for one that is not known
/// or given twice, [`SqlError::SettingValue`] for a value it does not take.
pub(crate) fn check(format: &str, purpose: Purpose, options: &[(String, Value)]) -> Result<()> {
    let names: Vec<String> = options.iter().map(|(name, _)| bare(name)).collect();
    for (at, (name, (_, value))) in names.iter().zip(options).enumerate() {
        if names[..at].contains(name) {
            return Err(SqlError::Planning(format!("option {name} is given twice")));
        }
        let of_statement: &[&str] = match purpose {
            Purpose::Copy => &OF_COPY,
            Purpose::Table => &OF_TABLES,
        };
        if of_statement.contains(&name.as_str()) {
            continue;
        }
        check_use(format, purpose, name, &text_of(value))?;
        check_value(format, name, &text_of(value))?;
    }
    let value = |wanted: &str| names.iter().position(|name| name == wanted).map(|at| text_of(&options[at].1));
    if let Some(level) = value("compression_level") {
        let compression = value("compression").unwrap_or_default().to_lowercase();
        levels(&compression)?.check("compression_level", &level)?;
    }
    Ok(())
}

fn check_use(format: &str, purpose: Purpose, name: &str, value: &str) -> Result<()> {
    let what = match purpose {
        Purpose::Copy => format!("COPY to {format}"),
        Purpose::Table => format!("a table over {format} files"),
    };
    let of_format = OPTIONS.iter().find(|(known, _)| *known == format).map_or(&[] as &[_], |(_, options)| options);
    // Options of one column, and the metadata of a file by key.
    let option = name.split("::").next().unwrap_or(name);
    let Some((_, used)) = of_format.iter().find(|(known, _)| *known == option) else {
        let mut known: Vec<String> = of_format.iter().map(|(known, _)| known.to_string()).collect();
        if purpose == Purpose::Copy {
            known.extend(OF_COPY.map(String::from));
        }
        let hint = nearest(name, known).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        return Err(SqlError::Planning(format!("{what} has no option '{name}'{hint}")));
    };
    let is_as_ever = match option {
        "terminator" => matches!(value, "\n" | "\\n"),
        "double_quote" | "newline_delimited" => value.eq_ignore_ascii_case("true"),
        _ => false,
    };
    let is_done = match purpose {
        Purpose::Copy => matches!(used, Both | Write | WriteOnce),
        Purpose::Table => matches!(used, Both | Read | Write),
    };
    if is_done || is_as_ever {
        return Ok(());
    }
    let instead = match (purpose, option) {
        (Purpose::Copy, "terminator") => "lines end with a newline",
        (Purpose::Copy, "null_regex") => "null_value is what is written for NULL",
        (Purpose::Copy, "newline_delimited") => "an object is written in each line",
        (Purpose::Copy, _) => "it is about reading",
        (Purpose::Table, "double_quote") => "two quotes are read as one",
        (Purpose::Table, "null_value" | "null_regex") => {
            "nothing between two separators is NULL; read the column as VARCHAR and take nullif(column, 'word')"
        }
        (Purpose::Table, _) => {
            "dates and times are read as ISO 8601 has them; read the column as VARCHAR and convert it"
        }
    };
    Err(SqlError::Unsupported(format!("option {name} of {what}: {instead}")))
}

/// Refuses a value that DataFusion takes and fails with, or passes over.
fn check_value(format: &str, name: &str, value: &str) -> Result<()> {
    let option = name.split("::").next().unwrap_or(name);
    let one_of = |expected: &[&str]| match expected.contains(&value.to_lowercase().as_str()) {
        true => Ok(()),
        false => Err(wrong(name, value, &expected.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>().join(", "))),
    };
    match (format, option) {
        ("PARQUET", "statistics_enabled") => one_of(&["none", "chunk", "page"]),
        ("PARQUET", option) => check_parquet_option(name, option, value),
        ("CSV" | "JSON", "schema_infer_max_rec") => Range::Whole(0, 1 << 40).check(name, value),
        ("CSV" | "JSON", "compression") => {
            one_of(&["gzip", "gz", "bzip2", "bz2", "xz", "zstd", "zst", "uncompressed", ""])
        }
        ("CSV", "quote_style") => one_of(&["always", "necessary", "nonnumeric", "never"]),
        ("CSV", "delimiter" | "quote" | "escape" | "comment" | "terminator") => {
            let is_one = value.len() == 1 || matches!(value, "\\t" | "\\n" | "\\r" | "\\0");
            if is_one { Ok(()) } else { Err(wrong(name, value, "one ASCII character")) }
        }
        ("CSV", "null_regex") => {
            let compiled = regexp_is_match_scalar(&StringArray::from(vec![""]), value, None);
            compiled.map(drop).map_err(|_| wrong(name, value, "a regular expression"))
        }
        _ => Ok(()),
    }
}

/// A character by its escape, which SQL's texts do not read.
pub(crate) fn character(text: &str) -> &str {
    match text {
        "\\t" => "\t",
        other => other,
    }
}

/// The levels of a compression.
fn levels(compression: &str) -> Result<Range> {
    match compression {
        "zstd" | "zst" => Ok(Range::Whole(1, 22)),
        "gzip" | "gz" | "bzip2" | "bz2" | "xz" => Ok(Range::Whole(0, 9)),
        _ => Err(SqlError::Planning("option compression_level needs the option compression".into())),
    }
}

fn wrong(name: &str, value: &str, expected: &str) -> SqlError {
    let (name, value, expected) = (name.to_string(), value.to_string(), expected.to_string());
    SqlError::SettingValue { name, value, expected, origin: None }
}

/// The name without the prefix that DataFusion gives to options of formats; the name of a column keeps its case.
fn bare(name: &str) -> String {
    let lower = name.to_lowercase();
    lower.strip_prefix("format.").unwrap_or(&lower).to_string()
}

fn text_of(value: &Value) -> String {
    value.clone().into_string().unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use datafusion::common::config::{ConfigFileType, TableOptions};

    use super::*;

    #[test]
    fn every_option_of_datafusions_formats_is_in_the_table() {
        let kinds =
            [("CSV", ConfigFileType::CSV), ("JSON", ConfigFileType::JSON), ("PARQUET", ConfigFileType::PARQUET)];
        for ((format, kind), (of, options)) in kinds.into_iter().zip(OPTIONS) {
            assert_eq!(format, of);
            let mut all = TableOptions::new();
            all.set_config_format(kind);
            let names: Vec<String> = all.entries().into_iter().map(|entry| bare(&entry.key)).collect();
            assert!(names.len() > 3, "{names:?}");
            for name in names.iter().filter(|name| !name.starts_with("crypto.")) {
                assert!(options.iter().any(|(known, _)| known == name), "{format}: {name}");
            }
        }
    }
}
