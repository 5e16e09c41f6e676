//! SQL for Warpcube: databases, connections, catalog, settings and reports over DataFusion.
//!
//! A statement goes through `syntax` and `plans` (text to plan), `mend` (defects of DataFusion), `lower` (parts of the
//! plan become fragments), `placement` (where they run) and `exec` (operators, fallback, EXPLAIN). `catalog` has tables
//! over files, `memory_table` tables in memory, `cubes` cubes as tables. `database` has what connections share,
//! `connection` what is one connection's own, and runs statements.
//!
//! This is the only crate that knows DataFusion. A [`Connection`] to a [`Database`] takes SQL, one statement at a time,
//! and gives Arrow batches with a [`StatementReport`] of what ran where. Boundaries: no error of DataFusion leaves it
//! untranslated ([`SqlError`]); no table is served from files other than those there are now ([`catalog`]).

mod access;
mod baseline;
mod calendar_units;
mod cancel;
mod canonical_floats;
pub mod catalog;
mod codec;
mod connection;
mod csv_lines;
mod cubes;
mod database;
mod decimal_floats;
mod default_schema;
mod device;
mod device_tables;
mod diagnose;
mod engines;
mod error;
mod exec;
mod extension_types;
mod file_sets;
mod format_options;
mod formats;
mod functions;
mod leaf_operator;
mod lexer;
mod locations;
mod lower;
mod memory_share;
mod memory_table;
mod mend;
mod nearest;
mod nested_keys;
mod nested_texts;
pub mod outputs;
mod placement;
mod plans;
mod progress;
mod ranges;
mod redaction;
mod registry;
mod report;
mod rewrite;
mod row_groups;
mod runtime;
mod settings;
mod shared;
mod show;
mod span_lengths;
mod spill;
mod staged_files;
mod statement;
mod stream;
mod syntax;
mod text_bytes;
mod text_decimals;
mod text_formats;
mod text_times;
mod time_texts;
mod time_units;
mod values;
mod walk;
mod words;
mod zone_clocks;

pub use baseline::Baseline;
pub use cancel::Cancel;
pub use catalog::{GivenRows, GivenTables};
pub use codec::PlanCodec;
pub use connection::{Connection, CubeLoad, Execution};
pub use cubes::{CubeAnswer, CubeDefinition, CubeQueryOptions, OpenCube, cube_info};
pub use database::{Database, DatabaseOptions, WeakDatabase};
pub use device::DeviceSlot;
pub use device_tables::{DeviceColumn, DeviceTable};
pub use error::{Position, Result, SqlError, as_written};
pub use exec::split_aggregations;
pub use lexer::{Kind, Token, names_column, tokens};
pub use locations::AllowedPaths;
pub use memory_share::MemoryShare;
pub use nearest::nearest;
pub use nested_texts::{shown_values, with_texts_of_intervals};
pub use progress::Progress;
pub use redaction::{hide_urls, redacted};
pub use registry::{Ending, Registration, StatementCounts};
pub use report::{FragmentReport, Phase, Place, StatementReport, Summary};
pub use settings::{Assignment, DatabaseSettings, Owner, PREFIX, SETTINGS, SettingInfo, Settings, setting};
pub use show::setting_names;
pub use staged_files::unwritable;
pub use statement::{OwnStatement, Script, ScriptStatement};
pub use syntax::StatementKind;
pub use values::{
    Budget, DeviceChoice, Encoding, Expanded, FORMATS, FloatSums, Format, FormatInfo, Overflow, Placement, ReadOnly,
    SettingOrigin, TopKChoice,
};
pub use words::type_name;
