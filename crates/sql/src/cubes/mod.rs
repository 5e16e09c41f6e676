//! Cubes of the multidimensional side: folders that statements ask, read as tables, fill from tables.
//!
//! A cube is named by its folder. In SQL the folder is a table of its base cells ([`table`]), and `cube('folder',
//! 'query')` a table of the cells that a query asks for ([`function`]). A cube is opened once for each of its
//! generations; its facts share the device memory, and its budget, with the columns of tables.

mod device;
mod exec;
mod function;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::ArrayRef;
use datafusion::common::config::ConfigOptions;
use parking_lot::Mutex;
use warpcube_cube::aggregate::{AggregateError, Decision, Place, Progress, TARGETS_MAX};
use warpcube_cube::answer::{
    Aggregator, AlgorithmName, Answer, AskOptions, BaseRows, Cube, CubeError, Relation, SourceCell, TableAnswer,
};
use warpcube_cube::define::{self, Definition};
use warpcube_cube::query::BoundTable;
use warpcube_cube::store::{self, CubeOrigin, Manifest, StoreError, StoredCube};

use crate::access::Access;
use crate::engines::Engines;
use crate::error::{Result, SqlError};
use crate::settings::Settings;
use crate::values::Placement;

use device::{CubeDevice, OnDevice};
pub(crate) use exec::CancelOnDrop;
pub(crate) use function::CubeFunction;
pub(crate) use table::CubeTable;

/// Cubes that are kept open.
const OPEN_MAX: usize = 16;

/// The cubes of a database, by folder.
pub struct Cubes {
    engines: Arc<Engines>,
    open: Mutex<HashMap<PathBuf, Arc<OpenCube>>>,
}

impl std::fmt::Debug for Cubes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cubes").field("open", &self.open.lock().keys()).finish_non_exhaustive()
    }
}

/// A generation of a cube.
pub struct OpenCube {
    folder: PathBuf,
    /// [`Manifest::state`]: a cube that was created again in the folder counts its generations from 1, too.
    state: String,
    cube: Cube,
    definition: Option<CubeDefinition>,
    /// True for a cube of an imported database.
    is_imported: bool,
    /// Its aggregation on the device that was used last; none once the database has chosen another.
    device: Mutex<Option<OnDevice>>,
    /// Milliseconds that a device would have saved so far, by estimate.
    saved_ms: Mutex<f64>,
    relation: OnceLock<Relation>,
    /// Columns of the table of base cells that were read in full: arrays of the batches.
    columns: Mutex<HashMap<usize, Arc<[ArrayRef]>>>,
}

impl std::fmt::Debug for OpenCube {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCube").field("folder", &self.folder).field("state", &self.state).finish_non_exhaustive()
    }
}

/// The definition of a cube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CubeDefinition {
    /// The YAML text.
    pub text: String,
    /// The file that it was read from; files that it names lie beside it.
    pub file: Option<PathBuf>,
    /// The folder that was the current one then; files that its SQL names may lie there.
    pub folder: Option<PathBuf>,
    /// True if types of text files are guessed, as versions did that made cubes before columns were text as written.
    pub guesses_types: bool,
}

impl CubeDefinition {
    /// Reads a file.
    ///
    /// # Errors
    /// [`SqlError::CubeDefinition`] for a file that cannot be read.
    pub fn read(file: &Path) -> Result<CubeDefinition> {
        let wrong = |reason: String| SqlError::CubeDefinition(format!("'{}' cannot be read: {reason}", file.display()));
        let failed = |error: std::io::Error| wrong(error.to_string());
        let text = String::from_utf8(std::fs::read(file).map_err(failed)?);
        let text = text.map_err(|_| wrong("it is no text in UTF-8".to_string()))?;
        let file = std::path::absolute(file).map_err(failed)?;
        Ok(CubeDefinition { text, file: Some(file), folder: std::env::current_dir().ok(), guesses_types: false })
    }

    /// What the text says, with the files that it names beside its own.
    ///
    /// # Errors
    /// [`SqlError::CubeDefinition`] with line and column.
    pub fn parse(&self) -> Result<Definition> {
        let parsed = define::parse(&self.text).map_err(|error| {
            let file = self.file.as_ref().map_or(String::new(), |file| format!("{}: ", file.display()));
            SqlError::CubeDefinition(format!("{file}{error}"))
        })?;
        let folder = self.file.as_ref().and_then(|file| file.parent());
        Ok(folder.map_or_else(|| parsed.clone(), |folder| parsed.clone().with_files_in(folder)))
    }

    /// The definition of a stored cube, if it has one.
    pub(crate) fn of(stored: &StoredCube) -> Option<CubeDefinition> {
        let (file, folder, is_written) = match &stored.origin {
            Some(CubeOrigin::Definition { file, folder, is_written }) => (file.as_ref(), folder.as_ref(), *is_written),
            _ => (None, None, false),
        };
        let text = stored.definition.clone()?;
        let [file, folder] = [file, folder].map(|path| path.map(PathBuf::from));
        Some(CubeDefinition { text, file, folder, guesses_types: !is_written })
    }

    pub(crate) fn origin(&self) -> CubeOrigin {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        CubeOrigin::Definition { file: text(&self.file), folder: text(&self.folder), is_written: !self.guesses_types }
    }

    /// The file that it was read from, if it is there and has another text.
    pub(crate) fn changed_file(&self) -> Option<&Path> {
        let file = self.file.as_deref()?;
        std::fs::read(file).is_ok_and(|text| text != self.text.as_bytes()).then_some(file)
    }

    /// Where files that its SQL names are looked for, in this order.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let beside = self.file.as_ref().and_then(|file| file.parent());
        beside.into_iter().map(Path::to_path_buf).chain(self.folder.clone()).collect()
    }
}

/// How a cube is asked.
#[derive(Debug, Clone, Copy)]
pub struct CubeQueryOptions {
    /// The algorithm; a cost model chooses if absent. One of a device runs there, whatever the size of the cube.
    pub algorithm: Option<AlgorithmName>,
    /// Most targets of an area, filled or not.
    pub targets_max: u64,
}

impl Default for CubeQueryOptions {
    fn default() -> Self {
        CubeQueryOptions { algorithm: None, targets_max: TARGETS_MAX }
    }
}

/// What a query of a cube gives.
#[derive(Debug)]
pub enum CubeAnswer {
    /// Aggregated cells.
    Table(Box<TableAnswer>),
    /// Base cells, a row each.
    Rows(BaseRows),
    /// A text of several lines.
    Text(String),
    /// The cell whose rows [`crate::Connection::cube_source`] reads.
    Source(SourceCell),
}

impl OpenCube {
    /// The cube.
    pub fn cube(&self) -> &Cube {
        &self.cube
    }

    /// Its base cells as a table.
    fn relation(&self) -> &Relation {
        self.relation.get_or_init(|| Relation::of(&self.cube))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// True for a cube of an imported database: it has no source that a load reads.
    pub fn is_imported(&self) -> bool {
        self.is_imported
    }

    /// The identity of its state among all others of the folder.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Its definition, if it has one.
    pub fn definition(&self) -> Option<&CubeDefinition> {
        self.definition.as_ref()
    }
}

impl Cubes {
    pub(crate) fn new(engines: Arc<Engines>) -> Cubes {
        Cubes { engines, open: Mutex::default() }
    }

    /// The cube in a folder as it is there now.
    ///
    /// # Errors
    /// [`SqlError::CubeFolder`] for a folder that is no cube or is damaged, [`SqlError::FileOutside`].
    pub fn open(&self, folder: &Path, options: &ConfigOptions) -> Result<Arc<OpenCube>> {
        Access::of(options).check_path(folder)?;
        let path = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
        // What is read may be newer than this, never older.
        let state = store::info(&path).map_err(of_store)?.state();
        if let Some(known) = self.open.lock().get(&path).filter(|known| known.state == state) {
            return Ok(known.clone());
        }
        let (stored, manifest) = store::open_with_manifest(&path).map_err(of_store)?;
        let definition = CubeDefinition::of(&stored);
        let is_imported = stored.is_imported();
        let texts = stored.texts.into_iter().map(|cell| (cell.elements, cell.text)).collect();
        let opened = Arc::new(OpenCube {
            is_imported,
            folder: path.clone(),
            state: manifest.state(),
            cube: Cube { model: stored.model, facts: Arc::new(stored.facts), texts },
            definition,
            device: Mutex::default(),
            saved_ms: Mutex::new(0.0),
            relation: OnceLock::new(),
            columns: Mutex::default(),
        });
        let mut open = self.open.lock();
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        open.insert(path, opened.clone());
        Ok(opened)
    }

    /// Lets go of the device that cubes were aggregated on, with their facts there.
    pub(crate) fn leave_device(&self) {
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        open.iter().for_each(|cube| drop(cube.device.lock().take()));
    }

    /// Answers a query; blocks until it is done or `progress` is cancelled.
    ///
    /// # Errors
    /// [`SqlError::CubeQuery`] for a text that is no query of the cube, [`SqlError::CubeArea`] for an area beyond the
    /// limit, [`SqlError::CubeCells`] for a value beyond its type, or an algorithm of the device that is named and
    /// cannot run, [`SqlError::Cancelled`], errors of the device under placement `cuda`.
    pub fn ask(
        &self,
        open: &OpenCube,
        query: &str,
        options: CubeQueryOptions,
        settings: &Settings,
        progress: &Progress,
    ) -> Result<CubeAnswer> {
        let device = self.device(open, options.algorithm, settings)?;
        let options = ask_options(options, device.as_ref());
        let answer = match open.cube.ask(query, &options, progress) {
            // A device that fails leaves the CPU.
            Err(CubeError::Device(reason)) if settings.placement == Placement::Auto => {
                tracing::warn!(reason, "the cube is aggregated on the CPU");
                open.cube.ask(query, &AskOptions { device: None, ..options }, progress)
            }
            answer => answer,
        };
        Ok(match answer.map_err(of_cube)? {
            Answer::Table(table) => match &table.report().decision.place {
                Place { refused: Some(reason), .. } if settings.placement == Placement::Cuda => {
                    return Err(refused(reason));
                }
                place => {
                    *open.saved_ms.lock() += place.saved_ms;
                    CubeAnswer::Table(table)
                }
            },
            Answer::Rows(rows) => CubeAnswer::Rows(rows),
            Answer::Text(text) => CubeAnswer::Text(text),
            Answer::Source(source) => CubeAnswer::Source(source),
        })
    }

    /// How a cross-tab would be aggregated; nothing is aggregated or loaded for it.
    ///
    /// # Errors
    /// [`SqlError::CubeArea`] for an area beyond the limit, [`SqlError::CubeCells`] for what a device refuses under
    /// placement `cuda`.
    pub(crate) fn outlook(&self, open: &OpenCube, table: &BoundTable, settings: &Settings) -> Result<Decision> {
        let device = self.device(open, None, settings)?;
        let options = ask_options(CubeQueryOptions::default(), device.as_ref());
        let outlook = open.cube.outlook(table, &options, &Progress::new()).map_err(of_cube)?;
        match outlook.place.refused.as_deref().filter(|_| settings.placement == Placement::Cuda) {
            Some(reason) => Err(refused(reason)),
            None => Ok(outlook),
        }
    }

    /// The device that may aggregate a cube, by the settings or by the algorithm named.
    fn device<'a>(
        &'a self,
        open: &'a OpenCube,
        algorithm: Option<AlgorithmName>,
        settings: &Settings,
    ) -> Result<Option<CubeDevice<'a>>> {
        let is_named = matches!(algorithm, Some(AlgorithmName::Device(_)));
        let chooses = settings.placement == Placement::Auto && !is_named;
        let engines = &*self.engines;
        let there = match settings.placement {
            Placement::Columns | Placement::Files => return Ok(None),
            Placement::Auto if chooses && engines.is_lost() => return Ok(None),
            Placement::Auto if chooses => {
                engines.opened().is_some_and(|engine| engine.runs_kernels()) || engines.may_open()
            }
            _ => engines.get().is_some_and(|engine| engine.runs_kernels()),
        };
        match (there, settings.placement) {
            (true, _) => Ok(Some(CubeDevice { engines, open, chooses })),
            (false, Placement::Auto) if !is_named => Ok(None),
            (false, placement) => {
                let statement = match placement {
                    Placement::Cuda => "a cube under placement cuda",
                    _ => "an algorithm of a device",
                };
                Err(SqlError::NoDevice { statement, reason: engines.no_gpu().unwrap_or_default() })
            }
        }
    }
}

/// The error for a device that refuses under placement `cuda`.
fn refused(reason: &str) -> SqlError {
    SqlError::CubeCells(format!("not on the device: {reason}"))
}

fn ask_options<'a>(options: CubeQueryOptions, device: Option<&'a CubeDevice<'a>>) -> AskOptions<'a> {
    AskOptions {
        algorithm: options.algorithm,
        targets_max: options.targets_max,
        device: device.map(|device| device as &dyn Aggregator),
    }
}

/// The folder that a name in a statement means, if a cube is there: itself, or with `.cube` at its end.
pub(crate) fn folder_of(name: &str) -> Option<PathBuf> {
    let named = |path: PathBuf| path.join(store::MANIFEST_NAME).is_file().then_some(path);
    named(PathBuf::from(name)).or_else(|| named(PathBuf::from(format!("{name}.cube"))))
}

/// What a folder holds, without its cells.
///
/// # Errors
/// [`SqlError::CubeFolder`].
pub fn cube_info(folder: &Path) -> Result<Manifest> {
    store::info(folder).map_err(of_store)
}

pub(crate) fn of_store(error: StoreError) -> SqlError {
    SqlError::CubeFolder(error.to_string())
}

pub(crate) fn of_cube(error: CubeError) -> SqlError {
    match error {
        error if error.is_cancelled() => SqlError::Cancelled,
        CubeError::Query { message, .. } => SqlError::CubeQuery(message),
        CubeError::Aggregate(AggregateError::AreaTooLarge { .. }) => SqlError::CubeArea(error.to_string()),
        other => SqlError::CubeCells(other.to_string()),
    }
}
