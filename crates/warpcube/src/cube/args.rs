//! The command line of cubes.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use warpcube_cube::aggregate::TARGETS_MAX;
use warpcube_cube::answer::AlgorithmName;
use warpcube_cube::define::StorageChoice;

/// The language of changes, for the help.
const CHANGES: &str = "\
Changes:
  add ELEMENT [of CHILDREN] [below PARENTS] [before|after ELEMENT]
                                                   with 'of' consolidated, else a base element
  rename ELEMENT to NAME
  move ELEMENT [from PARENT] below PARENTS         without 'from' away from all other parents
  link ELEMENT below PARENTS, unlink ELEMENT from PARENTS
  place ELEMENT before|after ELEMENT
  remove ELEMENTS
  caption ELEMENT [NAME], alias ELEMENT NAME, set ELEMENT ATTRIBUTE = VALUE, default ELEMENT
Parents and children have 'weight NUMBER' behind them, 1 without it. An element is [DIMENSION:]NAME, \"quoted\" where
it has other characters than letters, digits, _, - and %.

Examples:
  warpcube cube change plan.cube 'add Nordics of Sweden, Norway below Europe'
  warpcube cube change plan.cube 'add Version:Forecast; add Gap of Forecast, Budget weight -1'
  warpcube cube change plan.cube 'move Japan below Asia; remove Region:Unused'";

/// A command over cubes.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum CubeCommand {
    /// Make a planning cube to try queries on: months, versions, accounts, regions, products
    ///
    /// Writes its tables and its definition beside the cube, so that they can be looked at and changed.
    Demo {
        /// Folder for the tables, the definition and the cube
        #[arg(default_value = "demo")]
        folder: PathBuf,
    },
    /// Make a cube from a definition file, and load its facts
    ///
    /// `file` and `table` name files beside the definition; files in its SQL are looked for there first, then in the
    /// current folder, which the cube remembers.
    Define {
        /// The definition, a YAML file
        definition: PathBuf,
        /// Folder for the cube; the cube's name with .cube without it
        folder: Option<PathBuf>,
        /// Only say whether the definition and its tables are right
        #[arg(long)]
        check: bool,
    },
    /// Make a cube anew from its source, by its definition or by a new one
    ///
    /// Nothing of the old cube stays but texts at cells whose elements are still there.
    /// The cube is the old one or the new one at any time, also where the program is killed.
    Load {
        /// The cube's folder
        cube: PathBuf,
        /// A new definition, a YAML file
        #[arg(long, value_name = "FILE")]
        definition: Option<PathBuf>,
    },
    /// Read the source of a cube again: facts, elements, their parents and weights
    ///
    /// What was made by hand in the cube stays: added elements with their edges, new names, captions, attributes. Tells
    /// the elements that are new, gone or below other parents.
    /// The cube is the old one or the new one at any time, also where the program is killed.
    Refresh {
        /// The cube's folder
        cube: PathBuf,
    },
    /// Add, rename, move and remove elements of a cube
    ///
    /// All changes are made or none. Facts of removed elements are kept aside and counted. A refresh keeps elements
    /// that were added, with their edges, and new names; elements, parents and weights of the source it reads again.
    #[command(after_help = CHANGES)]
    Change {
        /// The cube's folder
        cube: PathBuf,
        /// The changes, separated by ';'; several words are one text
        #[arg(required = true, allow_negative_numbers = true)]
        changes: Vec<String>,
        /// Only say what the changes would do
        #[arg(long)]
        check: bool,
    },
    /// Say what a cube is made of and how large it is
    Info {
        /// The cube's folder
        cube: PathBuf,
        /// Write one JSON object
        #[arg(long, conflicts_with = "storage")]
        json: bool,
        /// Also measure the index of its facts in every storage scheme
        #[arg(long)]
        storage: bool,
    },
    /// Store the facts of a cube in another scheme
    ///
    /// The cube is the old one or the new one at any time, and answers queries alike.
    Convert {
        /// The cube's folder
        cube: PathBuf,
        /// auto, bess, coordinate, offset-value, xcrs, xccs, bxcrs or hybrid:r; auto takes the scheme with the smallest
        /// index if it is a tenth smaller than bess
        #[arg(long, value_name = "NAME")]
        storage: StorageChoice,
    },
    /// Ask a cube: rows … cols … pages … where …, facts at, source at, explain at, nearest n to
    ///
    /// Without --format and --output cells are a cross-tab; with them they are rows in long form.
    Query(QueryArgs),
    /// Measure a query by every algorithm, and compare their cells
    ///
    /// The standard benchmarks are `warpcube bench cube` and `warpcube bench schemes`. Exit code 1 where cells differ.
    Bench(BenchArgs),
    /// Import a Palo or Jedox database, or a Matrix Market file
    Import {
        /// The folder with database.csv, or the .mtx file
        source: PathBuf,
        /// Folder for the cubes, one below it for each cube of a database
        folder: PathBuf,
        /// The number from which coordinates of a Matrix Market file count; without it 1, or 0 where a coordinate is 0
        #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
        base: Option<u8>,
    },
    /// Write imported cubes as the Palo or Jedox database that they came from
    Export {
        /// The folder that import made
        folder: PathBuf,
        /// Folder for database.csv and database_CUBE_n.csv
        target: PathBuf,
    },
    /// Write the JSON Schema of definition files, for editors
    Schema,
}

/// A query of a cube.
#[derive(Debug, Clone, Args)]
pub(crate) struct QueryArgs {
    /// The cube's folder
    pub(crate) cube: PathBuf,
    /// The query; several words are one text
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) query: Vec<String>,
    /// How to write cells: table, csv, tsv, json, ndjson, parquet or arrow
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Write cells to this file; its extension tells the format unless --format does
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Aggregate by this algorithm: source, source-parallel, target or contract on the CPU, gpu-contract, gpu-target or
    /// gpu-source/<preaggregation>/<expansion>[/<map>]/h<functions> on the device
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<AlgorithmName>,
    /// Most cells of an area, filled or not
    #[arg(long, default_value_t = TARGETS_MAX, value_name = "CELLS")]
    pub(crate) targets_max: u64,
    /// Write time, algorithm and placement to the standard error
    #[arg(long)]
    pub(crate) timing: bool,
}

/// A query to measure.
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    /// The cube's folder
    pub(crate) cube: PathBuf,
    /// The query, a cross-tab; several words are one text
    #[arg(required_unless_present = "random", conflicts_with = "random", allow_negative_numbers = true)]
    pub(crate) query: Vec<String>,
    /// In place of a query: so many cross-tabs drawn at random, of at most 10,000 cells unless --targets-max says
    /// otherwise; each is asked once, as people do, and compared with the single-threaded algorithm
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["algorithms", "runs"],
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) random: Option<u32>,
    /// With --random: begins the draw
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "random")]
    pub(crate) seed: u64,
    /// Only these algorithms, by comma; without them those of the CPU and the three that the device's cost model
    /// chooses from
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) algorithms: Vec<AlgorithmName>,
    /// Runs of each algorithm behind a first one; the median counts
    #[arg(long, default_value_t = 5, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Most cells of an area, filled or not: 100,000,000 unless drawn at random
    #[arg(long, value_name = "CELLS")]
    pub(crate) targets_max: Option<u64>,
    /// Write the measurements to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A command as the shell takes it.
#[derive(Debug, Parser)]
#[command(name = "\\cube", no_binary_name = true, disable_help_flag = true)]
pub(crate) struct ShellCube {
    #[command(subcommand)]
    pub(crate) command: CubeCommand,
}
