//! Cubes of a session: made, filled, asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::answer::SourceCell;
use warpcube_cube::build::{self, BuildError, Built};
use warpcube_cube::define;
use warpcube_cube::store::{self, Held, StoredCube};

use super::Session;
use super::cube_rows::SessionTables;
use crate::access::Access;
use crate::cubes::{CancelOnDrop, CubeAnswer, CubeDefinition, CubeQueryOptions, OpenCube, folder_of, of_store};
use crate::error::{Result, SqlError};
use crate::report::StatementReport;

/// What becomes of the facts of a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CubeLoad {
    /// The cube is made anew in a folder that is not there or is empty.
    Create,
    /// All of it is made anew from the source; texts stay at cells whose elements are still there.
    Rebuild,
    /// As [`CubeLoad::Rebuild`], and what was made by hand in the cube stays ([`build::refresh()`]).
    Refresh,
}

impl Session {
    /// The cube in a folder, as it is there now.
    ///
    /// # Errors
    /// [`SqlError::CubeFolder`], [`SqlError::FileOutside`].
    pub async fn cube(&self, name: &str) -> Result<Arc<OpenCube>> {
        let (session, name) = (self.clone(), name.to_string());
        blocking(move || {
            let folder = folder_of(&name).unwrap_or_else(|| PathBuf::from(&name));
            let options = session.inner.context.copied_config().options().clone();
            session.inner.cubes.open(&folder, &options)
        })
        .await
    }

    /// Answers a query of a cube.
    ///
    /// # Errors
    /// [`SqlError::CubeQuery`], [`SqlError::CubeCells`], [`SqlError::Cancelled`].
    pub async fn ask_cube(
        &self,
        cube: Arc<OpenCube>,
        query: &str,
        options: CubeQueryOptions,
        progress: Arc<Progress>,
    ) -> Result<CubeAnswer> {
        let (session, query) = (self.clone(), query.to_string());
        let _cancels = CancelOnDrop(progress.clone());
        blocking(move || session.inner.cubes.ask(&cube, &query, options, &session.settings(), &progress)).await
    }

    /// Makes or refreshes the cube of a definition from this session's tables. The folder has the old cube or the new
    /// one at any time.
    ///
    /// # Errors
    /// [`SqlError::CubeFacts`] for rows that do not fit, [`SqlError::CubeFolder`], errors of the source's statement.
    pub async fn load_cube(
        &self,
        source: CubeDefinition,
        folder: &Path,
        load: CubeLoad,
        progress: Arc<Progress>,
    ) -> Result<build::Report> {
        let settings = self.settings();
        let access = Access::under(&settings);
        access.check_path(folder)?;
        let definition = source.parse()?;
        if settings.read_only {
            return Err(SqlError::ReadOnly("a load of a cube".into()));
        }
        let report = StatementReport::new();
        let tables = SessionTables::new(self.clone(), report.clone(), &source);
        let folder = folder.to_path_buf();
        let _cancels = (CancelOnDrop(progress.clone()), CancelStatement(report));
        blocking(move || {
            let held = match load {
                CubeLoad::Create => None,
                CubeLoad::Rebuild | CubeLoad::Refresh => Some(Held::lock(&folder).map_err(of_store)?),
            };
            let old = held.as_ref().map(|held| held.open().map_err(of_store)).transpose()?;
            let built = match old.as_ref().filter(|_| load == CubeLoad::Refresh) {
                None => build::build(&definition, &tables, &progress),
                Some(old) => build::refresh(&definition, &old.model, &tables, &progress),
            };
            let Built { model, facts, aside, mut report } = built.map_err(|error| of_definition(error, &source))?;
            let texts = old.as_ref().map(|old| old.texts_of(&model)).unwrap_or_default();
            report.texts_lost = old.as_ref().map_or(0, |old| (old.texts.len() - texts.len()) as u64);
            let origin = source.origin();
            let definition = Some(source.text);
            let stored = StoredCube { model, facts, definition, texts, aside: aside.batches, origin };
            match held {
                None => store::create(&folder, &stored).map_err(of_store)?,
                Some(held) => drop(held.replace(&stored).map_err(of_store)?),
            }
            Ok(report)
        })
        .await
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
    ) -> Result<RecordBatch> {
        let Some(definition) = cube.definition() else {
            return Err(SqlError::CubeFacts("the cube has no definition that names a source of its facts".into()));
        };
        let report = StatementReport::new();
        let tables = SessionTables::new(self.clone(), report.clone(), definition);
        let definition = definition.parse()?;
        let _cancels = (CancelOnDrop(progress.clone()), CancelStatement(report));
        blocking(move || {
            let model = &cube.cube().model;
            build::source_rows(&definition, model, &cell.bases, &tables, &progress).map_err(of_build)
        })
        .await
    }
}

/// Cancels the statements of a build that nobody waits for any more.
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

/// An error of a build, with line and column where it names a field of the definition.
fn of_definition(error: BuildError, source: &CubeDefinition) -> SqlError {
    let BuildError::Definition { place, .. } = &error else { return of_build(error) };
    let Some((line, column)) = define::place_of(&source.text, place) else { return of_build(error) };
    let file = source.file.as_ref().map_or(String::new(), |file| format!("{}: ", file.display()));
    SqlError::CubeFacts(format!("{file}line {line}, column {column}: {error}"))
}

/// An error of a build; that of a statement of the source as it is.
fn of_build(error: BuildError) -> SqlError {
    match error {
        BuildError::Cancelled => SqlError::Cancelled,
        BuildError::Query { source, .. } => of_statement(source),
        other => SqlError::CubeFacts(other.to_string()),
    }
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
