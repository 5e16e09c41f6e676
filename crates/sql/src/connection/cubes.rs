//! Cubes through a connection: made, filled, asked.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use tokio::runtime::Handle;
use warpcube_arrays::Scheme;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::answer::SourceCell;
use warpcube_cube::build::{self, BuildError, Built};
use warpcube_cube::change::{self, ChangeError};
use warpcube_cube::define::{self, Definition, StorageChoice};
use warpcube_cube::facts::{Facts, SegmentTuning};
use warpcube_cube::model::Dimension;
use warpcube_cube::store::{self, CubeLock, Manifest, SchemeSize, Step, StoreError, StoredCube};
use warpcube_palo::catalog::{self, Catalog, Removal};

use super::Connection;
use super::cube_rows::ConnectionTables;
use crate::access::Access;
use crate::cubes::{CancelOnDrop, CubeAnswer, CubeDefinition, CubeQueryOptions, OpenCube, folder_of, of_store};
use crate::error::{Result, SqlError};
use crate::report::StatementReport;
use crate::stream::Deadline;
use crate::syntax;
use crate::words::types_in_sql;

/// How long the lock of a cube that another process holds is waited for.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long of that is waited before the report has a warning.
const WAIT_UNTOLD: Duration = Duration::from_millis(300);

/// What becomes of the facts of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CubeLoad {
    /// The cube is made anew in a folder that is not there or is empty.
    Create,
    /// All of it is made anew from the source ([`build::rebuild()`]); texts stay at cells whose elements are still
    /// there.
    Rebuild,
    /// As [`CubeLoad::Rebuild`], and what was made by hand in the cube stays ([`build::refresh()`]).
    Refresh,
}

impl Connection {
    /// The cube in a folder, as it is there now.
    ///
    /// # Errors
    /// [`SqlError::CubeFolder`], [`SqlError::FileOutside`].
    pub async fn cube(&self, name: &str) -> Result<Arc<OpenCube>> {
        let (connection, name) = (self.clone(), name.to_string());
        blocking(move || {
            let folder = folder_of(&name).unwrap_or_else(|| PathBuf::from(&name));
            let options = connection.state().config_options().clone();
            connection.inner.database.shared.cubes.open(&folder, &options)
        })
        .await
    }

    /// Refuses a file or folder that the connection must not read.
    ///
    /// # Errors
    /// [`SqlError::FileOutside`].
    pub fn check_read(&self, path: &Path) -> Result<()> {
        Access::under(&self.settings()).check_path(path)
    }

    /// Refuses a file or folder that the connection must not write; `what` names the action.
    ///
    /// # Errors
    /// [`SqlError::FileOutside`], [`SqlError::ReadOnly`].
    pub fn check_write(&self, path: &Path, what: &str) -> Result<()> {
        self.check_read(path)?;
        match self.with_settings(|settings| settings.read_only.is_on()) {
            true => Err(SqlError::ReadOnly(what.into())),
            false => Ok(()),
        }
    }

    /// Answers a query of a cube, within the time of `warpcube.timeout`.
    ///
    /// # Errors
    /// [`SqlError::CubeQuery`], [`SqlError::CubeCells`], [`SqlError::Cancelled`], [`SqlError::TimedOut`].
    pub async fn ask_cube(
        &self,
        cube: Arc<OpenCube>,
        query: &str,
        options: CubeQueryOptions,
        progress: Arc<Progress>,
    ) -> Result<CubeAnswer> {
        let (connection, query) = (self.clone(), query.to_string());
        let deadline = self.with_settings(|settings| settings.timeout).map(Deadline::after);
        let _cancels = CancelOnDrop(progress.clone());
        let answer = blocking(move || {
            connection.inner.database.shared.cubes.ask(&cube, &query, options, &connection.settings(), &progress)
        });
        tokio::select! {
            biased;
            answer = answer => answer,
            error = Deadline::passed(deadline) => Err(error),
        }
    }

    /// Makes or refreshes the cube of a definition from the connection's tables. Without one it is the definition that
    /// the cube has when its lock is taken; a file of it that is another one now is a warning of the report. The folder
    /// has the old cube or the new one at any time.
    ///
    /// The report's switch cancels the load until the new cube takes the place of the old one. A lock that another
    /// process holds is waited for some seconds, which is a warning of the report.
    ///
    /// # Errors
    /// [`SqlError::CubeFacts`] for rows that do not fit, and without a definition; [`SqlError::CubeFolder`],
    /// [`SqlError::Cancelled`], errors of the source's statement.
    pub async fn load_cube(
        &self,
        source: impl Into<Option<CubeDefinition>>,
        folder: &Path,
        load: CubeLoad,
        progress: Arc<Progress>,
        statement: Arc<StatementReport>,
    ) -> Result<build::BuildReport> {
        self.check_write(folder, "a load of a cube")?;
        let given = source.into().map(|source| Ok::<_, SqlError>((source.parse()?, source))).transpose()?;
        let folder = folder.to_path_buf();
        let _cancels = (CancelOnDrop(progress.clone()), CancelStatement(statement.clone()));
        let (connection, runtime) = (self.clone(), Handle::current());
        blocking(move || {
            let held = match load {
                CubeLoad::Create => {
                    store::check_new(&folder).map_err(of_store)?;
                    None
                }
                CubeLoad::Rebuild | CubeLoad::Refresh => match lock(&folder, &statement) {
                    Err(StoreError::NoCube { .. }) if given.is_none() && Catalog::open(&folder).is_ok() => {
                        return Err(without_definition(&folder, true));
                    }
                    locked => Some(locked.map_err(|error| ended(error, &statement))?),
                },
            };
            let old = held.as_ref().map(|held| held.open().map_err(of_store)).transpose()?;
            let (definition, source) = match given {
                Some(given) => given,
                None => {
                    let is_imported = old.as_ref().is_some_and(StoredCube::is_imported);
                    let source = old.as_ref().and_then(CubeDefinition::of);
                    let source = source.ok_or_else(|| without_definition(&folder, is_imported))?;
                    let other = source.changed_file().filter(|file| connection.check_read(file).is_ok());
                    statement.warn(&other.map(|file| other_file(file, &folder)).into_iter().collect::<Vec<_>>());
                    (source.parse()?, source)
                }
            };
            let tables = ConnectionTables::new(connection.clone(), statement.clone(), &source);
            let tables = match &old {
                Some(old) => tables.of_cube(&old.model),
                None => tables,
            };
            let built = match (old.as_ref(), load) {
                (None, _) => build::build(&definition, &tables, &progress),
                (Some(old), CubeLoad::Refresh) => build::refresh(&definition, &old.model, &tables, &progress),
                (Some(old), _) => build::rebuild(&definition, &old.model, &tables, &progress),
            };
            let built = built.map_err(|error| match of_definition(error, &source).bare() {
                SqlError::Syntax(reason) => runtime.block_on(connection.of_facts(reason, &definition, &source)),
                error => error,
            });
            let Built { model, facts, aside, mut report } = built?;
            // Former segments keep cells that are gone, which a dimension of fewer elements does not hold.
            let holds = |former: &Facts| former.lies_within(model.dimensions().iter().map(Dimension::base_count));
            let facts = match &old {
                Some(old) if facts.layout() == old.facts.layout() && holds(&old.facts) => {
                    facts.as_change_of(&old.facts, &SegmentTuning::default())
                }
                _ => facts,
            };
            let texts = old.as_ref().map(|old| old.texts_of(&model)).unwrap_or_default();
            report.texts_lost = old.as_ref().map_or(0, |old| (old.texts.len() - texts.len()) as u64);
            let (origin, aside) = (Some(source.origin()), aside.batches);
            let (text, scheme) = (Some(source.text), Scheme::Bess);
            let mut stored = StoredCube { model, facts, scheme, definition: text, texts, aside, origin };
            stored.scheme = match old.as_ref().filter(|_| load == CubeLoad::Refresh) {
                Some(old) => old.scheme,
                None => definition.storage.map_or(Ok(scheme), |choice| scheme_of(choice, &stored))?,
            };
            let mut commit = committing(&statement);
            let replaced = match held {
                None => store::create_in_steps(&folder, &stored, &mut commit),
                Some(held) => held.replace_in_steps(&stored, &mut commit).map(drop),
            };
            replaced.map_err(|error| ended(error, &statement)).map(|()| report)
        })
        .await
    }

    /// A syntax error of the SQL of facts, with the places of that text: the statement that ran has more around it.
    async fn of_facts(&self, reason: String, definition: &Definition, source: &CubeDefinition) -> SqlError {
        let Some(sql) = &definition.facts.sql else { return SqlError::Syntax(reason) };
        let parsed = syntax::parse(&self.state(), sql).await;
        let reason = match parsed {
            Err(SqlError::At { error, position }) if matches!(*error, SqlError::Syntax(_)) => {
                let text = error.to_string();
                let text = text.trim_start_matches("SQL-001 syntax error: ");
                format!("{text} at line {}, column {}", position.line, position.column)
            }
            Err(SqlError::Syntax(of_text)) => of_text,
            _ => reason,
        };
        SqlError::Syntax(format!("{}facts.sql: {reason}", place_in(source, "facts").unwrap_or_default()))
    }

    /// Changes the dimensions of a cube by the statements of a text, all of them or none; with `check` none, and the
    /// report is as if. Elements of an imported database are removed from all of its cubes together. Locks and the
    /// switch of the statement's report are as in [`Connection::load_cube`].
    ///
    /// # Errors
    /// [`SqlError::CubeChange`] for a text that is no change of the cube, [`SqlError::CubeFolder`],
    /// [`SqlError::Cancelled`].
    pub async fn change_cube(
        &self,
        folder: &Path,
        text: &str,
        check: bool,
        statement: Arc<StatementReport>,
    ) -> Result<change::ChangeReport> {
        let connection = self.clone();
        let _cancels = CancelStatement(statement.clone());
        let allow = move |folder: &Path| match check {
            true => connection.check_read(folder),
            false => connection.check_write(folder, "a change of a cube"),
        };
        allow(folder)?;
        let (folder, text) = (folder.to_path_buf(), text.to_string());
        blocking(move || {
            let mut folders = BTreeMap::from([(place_of(&folder), folder.clone())]);
            let (mut locks, old, removals, changed, mut report) = loop {
                let locks = locked(folders.values().filter(|_| !check), &statement)?;
                let old = store::open(&folder).map_err(of_store)?;
                let (changed, report) = change::change(&old, &text).map_err(of_change)?;
                // Elements of an imported database go from all of its cubes.
                let removals = catalog::removals(&folder, &old, &changed);
                let removals = removals.map_err(|error| SqlError::CubeChange(error.to_string()))?;
                let known = folders.len();
                for Removal { folder, .. } in &removals {
                    allow(folder)?;
                    folders.entry(place_of(folder)).or_insert_with(|| folder.clone());
                }
                // With the locks of all of them, nothing changes any more that the removals follow from.
                if check || folders.len() == known {
                    break (locks, old, removals, changed, report);
                }
            };
            drop(old);
            let mut replaced = vec![(locks.remove(&folder), changed)];
            for Removal { folder, changes } in removals {
                let other = store::open(&folder).map_err(of_store)?;
                let (changed, of_other) = change::change(&other, &changes).map_err(of_change)?;
                report.add_other(changed.model.name(), of_other);
                replaced.push((locks.remove(&folders[&place_of(&folder)]), changed));
            }
            let held: Vec<_> = replaced.iter().filter_map(|(held, cube)| Some((held.as_ref()?, cube))).collect();
            let mut commit = committing(&statement);
            let replaced = match held.as_slice() {
                [] => Ok(()),
                [(held, changed)] => held.replace_in_steps(changed, &mut commit).map(drop),
                cubes => store::replace_together_in_steps(cubes, &mut commit),
            };
            replaced.map_err(|error| ended(error, &statement)).map(|()| report)
        })
        .await
    }

    /// Stores the facts of a cube in another scheme; returns the manifests before and after. Locks and the switch of
    /// the statement's report are as in [`Connection::load_cube`].
    ///
    /// # Errors
    /// [`SqlError::CubeFolder`], also with the size of pointers above the limit; [`SqlError::Cancelled`].
    pub async fn convert_cube(
        &self,
        folder: &Path,
        storage: StorageChoice,
        statement: Arc<StatementReport>,
    ) -> Result<[Manifest; 2]> {
        self.check_write(folder, "a conversion of a cube")?;
        let folder = folder.to_path_buf();
        let _cancels = CancelStatement(statement.clone());
        blocking(move || {
            let lock = lock(&folder, &statement).map_err(|error| ended(error, &statement))?;
            let before = store::info(&folder).map_err(of_store)?;
            let cube = lock.open().map_err(of_store)?;
            let scheme = scheme_of(storage, &cube)?;
            if scheme != cube.scheme {
                let replaced = lock.replace_in_steps(&StoredCube { scheme, ..cube }, &mut committing(&statement));
                replaced.map_err(|error| ended(error, &statement))?;
            }
            Ok([before, store::info(&folder).map_err(of_store)?])
        })
        .await
    }

    /// Bytes of the index of a cube's facts in every scheme; builds them in memory.
    ///
    /// # Errors
    /// [`SqlError::CubeFolder`].
    pub async fn cube_scheme_sizes(&self, folder: &Path) -> Result<Vec<SchemeSize>> {
        self.check_read(folder)?;
        let folder = folder.to_path_buf();
        blocking(move || store::scheme_sizes(&store::open(&folder).map_err(of_store)?).map_err(of_store)).await
    }

    /// The rows of the source that a cell is made of.
    ///
    /// # Errors
    /// [`SqlError::CubeFacts`] for a cube without a definition; errors of the source's statement.
    pub async fn cube_source(
        &self,
        cube: Arc<OpenCube>,
        cell: SourceCell,
        progress: Arc<Progress>,
    ) -> Result<Vec<RecordBatch>> {
        let Some(definition) = cube.definition() else {
            let reason = match cube.is_imported() {
                true => "the cube was imported from a database, and its facts have no other source: ask for facts at",
                false => "the cube has no definition that names a source of its facts: ask for facts at",
            };
            return Err(SqlError::CubeFacts(reason.into()));
        };
        let report = StatementReport::new();
        let tables = ConnectionTables::new(self.clone(), report.clone(), definition);
        let definition = definition.parse()?;
        let _cancels = (CancelOnDrop(progress.clone()), CancelStatement(report));
        blocking(move || {
            let model = &cube.cube().model;
            let tables = tables.of_cube(model);
            let SourceCell { bases, measure } = &cell;
            build::source_rows(&definition, model, (bases, *measure), &tables, &progress).map_err(of_build)
        })
        .await
    }
}

/// A folder under the name that all processes have for it.
fn place_of(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}

/// The locks of cubes, taken in this order, by folder. Whoever takes several sorts them by [`place_of`] and holds no
/// other lock of a cube meanwhile, so that no two wait for each other.
fn locked<'a>(
    folders: impl Iterator<Item = &'a PathBuf>,
    statement: &StatementReport,
) -> Result<BTreeMap<PathBuf, CubeLock>> {
    let of = |folder: &PathBuf| {
        let held = lock(folder, statement).map_err(|error| ended(error, statement))?;
        Ok((folder.clone(), held))
    };
    folders.map(of).collect()
}

/// The lock of a cube. Another process that holds it is waited for, which is a warning of the report.
fn lock(folder: &Path, statement: &StatementReport) -> Result<CubeLock, StoreError> {
    let (started, mut is_told) = (Instant::now(), false);
    CubeLock::wait(folder, &mut |holder| {
        if !is_told && started.elapsed() > WAIT_UNTOLD {
            is_told = true;
            let holder = holder.map_or("another process".to_string(), ToString::to_string);
            statement.warn(&[format!("waiting for {holder}, which changes the cube in '{}'", folder.display())]);
        }
        started.elapsed() < WAIT_MAX && statement.check().is_ok()
    })
}

/// The commit point of a change of cubes: before the first manifest or record takes its name.
fn committing(statement: &StatementReport) -> impl FnMut(Step<'_>) -> io::Result<()> + '_ {
    |step| {
        let goes_on = match step {
            Step::Rename(_) => statement.commit(),
            Step::Write(_) | Step::Sync(_) | Step::Remove(_) => statement.check(),
        };
        goes_on.map_err(|error| io::Error::other(error.to_string()))
    }
}

/// The error of a change of a cube: that it was cancelled, if it was.
fn ended(error: StoreError, statement: &StatementReport) -> SqlError {
    statement.check().err().unwrap_or_else(|| of_store(error))
}

/// The warning that the file of a definition is another one than the cube has kept.
fn other_file(file: &Path, folder: &Path) -> String {
    let (file, folder) = (file.display(), folder.display());
    format!(
        "'{file}' is not the definition that the cube was made by: 'warpcube cube load {folder} --definition {file}' \
         takes it"
    )
}

/// Cancels the statements of a build when it is dropped.
struct CancelStatement(Arc<StatementReport>);

impl Drop for CancelStatement {
    fn drop(&mut self) {
        self.0.cancel().cancel();
    }
}

/// Does work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => Err(SqlError::of_panic(panic.as_ref())),
        Err(error) => Err(SqlError::Internal(error.to_string())),
    })
}

/// The error of a load of a cube, or of the cubes of an imported database, without a definition.
fn without_definition(folder: &Path, is_imported: bool) -> SqlError {
    let folder = folder.display();
    SqlError::CubeFacts(match is_imported {
        true => format!(
            "'{folder}' was imported from a database, which a load does not read again; import it anew into another \
             folder: warpcube cube import DATABASE FOLDER"
        ),
        false => format!(
            "'{folder}' has no definition that names its source; a cube of a file is imported anew (warpcube cube \
             import FILE FOLDER), and a definition makes it another one (warpcube cube load {folder} --definition FILE)"
        ),
    })
}

/// An error of a build, with line and column where it names a field of the definition.
fn of_definition(error: BuildError, source: &CubeDefinition) -> SqlError {
    match &error {
        BuildError::Definition { place, .. } | BuildError::At { place, .. } => match place_in(source, place) {
            Some(place) => SqlError::CubeFacts(types_in_sql(&format!("{place}{error}"))),
            None => of_build(error),
        },
        // The error stands at the dimension whose definition refuses the rows.
        BuildError::Refused(refused) => {
            let place =
                refused.keys.first().and_then(|keys| place_in(source, &format!("dimensions.{}", keys.dimension)));
            SqlError::CubeFacts(format!("{}{error}", place.unwrap_or_default()))
        }
        _ => of_build(error),
    }
}

/// File, line and column of a field of a definition, by its path.
fn place_in(source: &CubeDefinition, path: &str) -> Option<String> {
    let (line, column) = define::place_of(&source.text, path)?;
    let file = source.file.as_ref().map_or(String::new(), |file| format!("{}: ", file.display()));
    Some(format!("{file}line {line}, column {column}: "))
}

/// An error of a build; that of a statement of the source as it is.
fn of_build(error: BuildError) -> SqlError {
    match error {
        BuildError::Cancelled => SqlError::Cancelled,
        BuildError::Query { source, .. } => of_statement(source),
        other => SqlError::CubeFacts(types_in_sql(&other.to_string())),
    }
}

/// The scheme that is named, or that the facts of a cube call for.
fn scheme_of(storage: StorageChoice, cube: &StoredCube) -> Result<Scheme> {
    match storage {
        StorageChoice::Named(scheme) => Ok(scheme),
        StorageChoice::Auto => Ok(store::chosen(&store::scheme_sizes(cube).map_err(of_store)?)),
    }
}

fn of_change(error: ChangeError) -> SqlError {
    SqlError::CubeChange(error.to_string())
}

fn of_statement(error: build::TablesError) -> SqlError {
    match error.downcast::<SqlError>() {
        Ok(error) => *error,
        Err(error) => match error.downcast::<arrow::error::ArrowError>() {
            Ok(error) => match *error {
                arrow::error::ArrowError::ExternalError(inner) => of_statement(inner),
                other => SqlError::CubeFacts(other.to_string()),
            },
            Err(error) => SqlError::CubeFacts(error.to_string()),
        },
    }
}
