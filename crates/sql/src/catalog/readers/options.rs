//! The options of functions that read files, by DuckDB's names: each is done or refused by its name.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::FunctionArg;

use super::{Constant, argument};
use crate::error::{Result, SqlError};
use crate::format_options::character;
use crate::nearest::nearest;

/// The option of a command that has the texts that are NULL, a line each. The reader of DataFusion passes over it.
pub(crate) const NULL_TEXTS: &str = "format.null_value";

/// Options of all functions.
const OF_ALL: [&str; 5] = ["filename", "union_by_name", "hive_partitioning", "hive_types", "hive_types_autocast"];
/// Options of CSV that are done.
const OF_CSV: [&str; 32] = [
    "all_varchar",
    "auto_detect",
    "column_names",
    "column_types",
    "columns",
    "comment",
    "compression",
    "date_format",
    "dateformat",
    "decimal_separator",
    "delim",
    "delimiter",
    "dtypes",
    "encoding",
    "escape",
    "header",
    "ignore_errors",
    "names",
    "new_line",
    "normalize_names",
    "null",
    "null_padding",
    "nullstr",
    "parallel",
    "quote",
    "sample_size",
    "sep",
    "skip",
    "strict_mode",
    "timestamp_format",
    "timestampformat",
    "types",
];
/// Options of JSON that are done.
const OF_JSON: [&str; 6] = ["auto_detect", "columns", "compression", "format", "ignore_errors", "records"];
/// Options of Parquet that are done.
const OF_PARQUET: [&str; 1] = ["binary_as_string"];
/// Options of DuckDB that are not done, with what to do.
const REFUSED: [(&str, &str); 29] = [
    ("allow_quoted_nulls", "a quoted text that nullstr names is NULL, too"),
    ("auto_type_candidates", "name the types of columns in types"),
    ("buffer_size", "leave it out"),
    ("can_have_nan", "leave it out"),
    ("convert_strings_to_integers", "use CAST"),
    ("dateformat", "read the column as text, and write to_date(column, format)"),
    ("date_format", "read the column as text, and write to_date(column, format)"),
    ("debug_use_openssl", "leave it out"),
    ("encryption_config", "encrypted files are not read"),
    ("explicit_cardinality", "leave it out"),
    ("field_appearance_threshold", "columns have the types of all records"),
    ("file_row_number", "number the rows with row_number()"),
    ("files_to_sniff", "all files are looked at"),
    ("force_not_null", "use coalesce(column, '')"),
    ("map_inference_threshold", "columns have the types of all records"),
    ("max_line_size", "leave it out: lines have any length"),
    ("maximum_depth", "columns have the types of all records"),
    ("maximum_line_size", "leave it out: lines have any length"),
    ("maximum_object_size", "leave it out: records have any size"),
    ("maximum_sample_files", "all files are looked at"),
    ("reject_limit", "a line that cannot be read is an error, or left out by ignore_errors"),
    ("rejects_limit", "a line that cannot be read is an error, or left out by ignore_errors"),
    ("rejects_scan", "a line that cannot be read is an error, or left out by ignore_errors"),
    ("rejects_table", "a line that cannot be read is an error, or left out by ignore_errors"),
    ("schema", "columns are found by name"),
    ("store_rejects", "a line that cannot be read is an error, or left out by ignore_errors"),
    ("thousands", "read the column as text, and write replace(column, '.', '')"),
    ("timestamp_format", "read the column as text, and write to_timestamp(column, format)"),
    ("timestampformat", "read the column as text, and write to_timestamp(column, format)"),
];

/// The types that a call gives to columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Types {
    ByName(Vec<(String, String)>),
    /// Of the first columns.
    ByPosition(Vec<String>),
    Text,
}

/// What a call says of files.
#[derive(Debug, Clone, Default)]
pub(in crate::catalog) struct Reading {
    /// What errors call it.
    pub(super) function: String,
    /// The format, as in `STORED AS`.
    pub(in crate::catalog) file_type: String,
    pub(super) paths: Vec<String>,
    /// Options of `CREATE EXTERNAL TABLE`.
    pub(super) format: HashMap<String, String>,
    /// All columns and their types.
    pub(super) columns: Vec<(String, String)>,
    pub(super) types: Option<Types>,
    /// Names of the first columns.
    pub(super) names: Vec<String>,
    pub(super) nulls: Vec<String>,
    pub(super) date_format: Option<String>,
    pub(super) timestamp_format: Option<String>,
    pub(super) decimal_comma: bool,
    /// The column that has the name of a row's file.
    pub(super) filename: Option<String>,
    pub(super) by_name: bool,
    /// Whether names of folders, `key=value`, are columns; none where it is not said.
    pub(super) hive: Option<bool>,
    pub(super) hive_types: Vec<(String, String)>,
    /// Whether names become ones that need no quotes.
    pub(super) normalizes: bool,
    /// How many lines stand in front of the header.
    pub(super) skipped: usize,
    /// Whether lines that cannot be read, or have values that are none of their column's type, are left out.
    pub(super) ignores_errors: bool,
    /// Whether types have to hold all lines.
    pub(super) whole_sample: bool,
}

impl Reading {
    /// Files that are named by a path alone.
    pub(in crate::catalog) fn of_path(path: &str, file_type: String) -> Reading {
        Reading { function: "FROM".into(), file_type, paths: vec![path.to_string()], ..Reading::default() }
    }

    /// What the arguments of a call say.
    pub(super) fn of_call(function: &str, file_type: &str, arguments: &[FunctionArg]) -> Result<Reading> {
        let mut reading = Reading { function: function.into(), file_type: file_type.into(), ..Reading::default() };
        if function.starts_with("read_ndjson") {
            reading.option("newline_delimited", "true");
        }
        let mut given = Vec::new();
        for (at, of_call) in arguments.iter().enumerate() {
            let (name, value) = argument(function, of_call)?;
            match name {
                None if at == 0 => reading.paths = reading.texts("the path", value)?,
                None => return Err(reading.wrong("a path, and options by their names".into())),
                Some(name) if given.contains(&name) => {
                    return Err(SqlError::Planning(format!("option {name} of {function}() is given twice")));
                }
                Some(name) => {
                    reading.take(&name, value)?;
                    given.push(name);
                }
            }
        }
        if reading.ignores_errors && (reading.date_format.is_some() || reading.timestamp_format.is_some()) {
            return Err(reading.refused("ignore_errors", "beside dateformat and timestampformat"));
        }
        if reading.paths.is_empty() {
            return Err(reading.wrong("the path of a file, a pattern, or a list of them".into()));
        }
        Ok(reading)
    }

    /// Whether files are read without some of their lines.
    pub(super) fn leaves_lines_out(&self) -> bool {
        self.skipped > 0 || self.ignores_errors
    }

    fn option(&mut self, name: &str, value: &str) {
        self.format.insert(format!("format.{name}"), value.to_string());
    }

    fn take(&mut self, name: &str, value: Constant) -> Result<()> {
        let own: &[&str] = match self.file_type.as_str() {
            "CSV" => &OF_CSV,
            "JSON" => &OF_JSON,
            _ => &OF_PARQUET,
        };
        if !own.contains(&name) && !OF_ALL.contains(&name) {
            let known = own.iter().chain(&OF_ALL).map(|known| known.to_string());
            let function = &self.function;
            return Err(match REFUSED.iter().find(|(refused, _)| *refused == name) {
                Some((_, instead)) => SqlError::Unsupported(format!("option {name} of {function}(): {instead}")),
                None => {
                    let near = nearest(name, known).map(|near| format!("; did you mean '{near}'?"));
                    let near = near.unwrap_or_default();
                    SqlError::Planning(format!("{function}() has no option '{name}'{near}"))
                }
            });
        }
        match name {
            "delim" | "sep" | "delimiter" => {
                let text = self.text(name, value)?;
                self.option("delimiter", character(&text));
            }
            "quote" | "comment" => {
                let text = self.text(name, value)?;
                if name == "quote" && text.is_empty() {
                    return Err(self.refused(name, "an empty one: values in quotes are read without their quotes"));
                }
                if !text.is_empty() {
                    self.option(name, &text);
                }
            }
            "escape" => {
                let text = self.text(name, value)?;
                // Two quotes are read as one anyway.
                if !text.is_empty() && self.format.get("format.quote").map_or("\"", String::as_str) != text {
                    self.option("escape", &text);
                }
            }
            "header" => {
                let header = self.bool(name, value)?;
                self.option("has_header", &header.to_string());
            }
            "binary_as_string" => {
                let value = self.bool(name, value)?;
                self.option(name, &value.to_string());
            }
            "null_padding" => {
                let value = self.bool(name, value)?;
                self.option("truncated_rows", &value.to_string());
            }
            "compression" => match self.text(name, value)?.to_lowercase().as_str() {
                "auto" | "auto_detect" => {}
                "none" | "uncompressed" => self.option(name, "uncompressed"),
                known @ ("gzip" | "zstd" | "bzip2" | "xz") => self.option(name, known),
                other => return Err(self.refused(name, &format!("'{other}', which is none of gzip, zstd, bzip2, xz"))),
            },
            "new_line" => {
                let text = self.text(name, value)?;
                if !matches!(text.as_str(), "\\n" | "\\r\\n" | "\n" | "\r\n") {
                    return Err(self.refused(name, "lines end with \\n or \\r\\n"));
                }
            }
            "encoding" => {
                let text = self.text(name, value)?.to_lowercase();
                if !matches!(text.as_str(), "utf-8" | "utf8") {
                    return Err(self.refused(name, "files are read as UTF-8; convert them"));
                }
            }
            "ignore_errors" if self.file_type == "CSV" => self.ignores_errors = self.bool(name, value)?,
            "ignore_errors" => self.only(name, value, false, "a record that cannot be read is an error")?,
            "parallel" => self.only(name, value, true, "SET warpcube.target_partitions = 1 reads with one thread")?,
            "strict_mode" => self.only(name, value, true, "quotes that are not closed are an error")?,
            "hive_types_autocast" => self.only(name, value, true, "name types in hive_types")?,
            "records" => {
                let is_as_ever = matches!(&value, Constant::Bool(true))
                    || matches!(&value, Constant::Text(text) if matches!(text.as_str(), "auto" | "true"));
                if !is_as_ever {
                    return Err(self.refused(name, "records are objects, whose members are columns"));
                }
            }
            "format" => match self.text(name, value)?.as_str() {
                "auto" => {}
                "newline_delimited" | "nd" => self.option("newline_delimited", "true"),
                "array" => self.option("newline_delimited", "false"),
                other => return Err(self.refused(name, &format!("'{other}'; a file has a record a line, or an array"))),
            },
            "skip" => match value {
                Constant::Number(lines) => {
                    self.skipped = lines.parse().map_err(|_| self.wrong("a number of lines as skip".into()))?;
                }
                _ => return Err(self.wrong("a number of lines as skip".into())),
            },
            "sample_size" => match value {
                Constant::Number(lines) => self.whole_sample = lines == "-1",
                _ => return Err(self.wrong("a number of lines as sample_size".into())),
            },
            "auto_detect" => {
                if !self.bool(name, value)? && self.file_type == "CSV" {
                    for (name, usual) in [("delimiter", ","), ("quote", "\""), ("has_header", "false")] {
                        self.format.entry(format!("format.{name}")).or_insert_with(|| usual.to_string());
                    }
                }
            }
            "decimal_separator" => match self.text(name, value)?.as_str() {
                "." => {}
                "," => self.decimal_comma = true,
                _ => return Err(self.wrong("'.' or ',' as decimal_separator".into())),
            },
            "nullstr" | "null" => self.nulls = self.texts(name, value)?,
            "dateformat" | "date_format" => self.date_format = Some(self.text(name, value)?),
            "timestampformat" | "timestamp_format" => self.timestamp_format = Some(self.text(name, value)?),
            "columns" => self.columns = self.types_by_name(name, value)?,
            "names" | "column_names" => self.names = self.texts(name, value)?,
            "types" | "dtypes" | "column_types" => {
                self.types = Some(match value {
                    Constant::Struct(_) => Types::ByName(self.types_by_name(name, value)?),
                    value => Types::ByPosition(self.texts(name, value)?),
                });
            }
            "all_varchar" => {
                if self.bool(name, value)? {
                    self.types = Some(Types::Text);
                }
            }
            "filename" => {
                self.filename = match value {
                    Constant::Text(text) if !matches!(text.as_str(), "true" | "false") => Some(text),
                    value => self.bool(name, value)?.then(|| "filename".to_string()),
                };
            }
            "normalize_names" => self.normalizes = self.bool(name, value)?,
            "union_by_name" => self.by_name = self.bool(name, value)?,
            "hive_partitioning" => self.hive = Some(self.bool(name, value)?),
            "hive_types" => self.hive_types = self.types_by_name(name, value)?,
            _ => return Err(SqlError::Internal(format!("option {name} without a meaning"))),
        }
        Ok(())
    }

    /// Takes a switch that can be set in one way alone.
    fn only(&self, name: &str, value: Constant, wanted: bool, why: &str) -> Result<()> {
        if self.bool(name, value)? == wanted { Ok(()) } else { Err(self.refused(name, why)) }
    }

    pub(super) fn refused(&self, name: &str, why: &str) -> SqlError {
        SqlError::Unsupported(format!("option {name} of {}(): {why}", self.function))
    }

    pub(super) fn wrong(&self, expected: String) -> SqlError {
        SqlError::Planning(format!("{}() takes {expected}", self.function))
    }

    fn text(&self, name: &str, value: Constant) -> Result<String> {
        match value {
            Constant::Text(text) => Ok(text),
            _ => Err(self.wrong(format!("a text as {name}"))),
        }
    }

    fn bool(&self, name: &str, value: Constant) -> Result<bool> {
        match &value {
            Constant::Bool(value) => Ok(*value),
            Constant::Text(text) | Constant::Number(text) => match text.to_lowercase().as_str() {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err(self.wrong(format!("true or false as {name}"))),
            },
            _ => Err(self.wrong(format!("true or false as {name}"))),
        }
    }

    /// One text or a list of texts.
    fn texts(&self, name: &str, value: Constant) -> Result<Vec<String>> {
        match value {
            Constant::List(values) => values.into_iter().map(|value| self.text(name, value)).collect(),
            value => Ok(vec![self.text(name, value)?]),
        }
    }

    fn types_by_name(&self, name: &str, value: Constant) -> Result<Vec<(String, String)>> {
        let wrong = || self.wrong(format!("names and types as {name}, {{'a': 'INT', 'b': 'VARCHAR'}}"));
        let Constant::Struct(fields) = value else { return Err(wrong()) };
        let field = |(column, kind)| match kind {
            Constant::Text(kind) => Ok((column, kind)),
            _ => Err(wrong()),
        };
        fields.into_iter().map(field).collect()
    }
}
