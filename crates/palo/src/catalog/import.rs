//! Import of a Palo database as a folder of cubes.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use super::attributes::Attributes;
use super::cells::CellFile;
use super::comparison::Comparison;
use super::error::CATALOG_NAME;
use super::error::{CatalogError, Result};
use super::facts::{self, Finding, PaloCells};
use super::manifest::{CATALOG_VERSION, Catalog, CatalogCube, Contents, KeptFile, folder_name};
use super::staging::{Staging, copy};
use crate::{
    CellReader, Cube, CubeHeader, DATABASE_FILE_NAME, Database, ImportedCube, PaloError, Skipped, cube_file_name,
};
use warpcube_cube::error::ModelError;
use warpcube_cube::store::checked;
use warpcube_cube::store::{CellLayout, CubeOrigin, PaloOrigin, StoredCube, create, write_file};

/// What an import made.
#[derive(Debug)]
pub struct Import {
    /// The folder of cubes.
    pub catalog: Catalog,
    /// Cubes by name with the cells that their facts do not have; the export writes these, too.
    pub skipped: Vec<(String, Skipped)>,
    /// What cell files say twice or otherwise than the database.
    pub findings: Vec<Finding>,
}

/// Imports a database, a folder with `database.csv` and cell files, as a folder of cubes.
///
/// # Errors
/// [`CatalogError::NotEmpty`]; [`CatalogError::Palo`] with file, line and field; [`CatalogError::Facts`],
/// [`CatalogError::Store`], [`CatalogError::Io`]. After an error there is no target.
pub fn import(database: &Path, target: &Path) -> Result<Import> {
    import_unless(database, target, &|| true)
}

/// As [`import`]; `commit` is asked before the target takes its name, and says false if the import was cancelled.
///
/// # Errors
/// Those of [`import`], and [`CatalogError::Cancelled`].
pub fn import_unless(database: &Path, target: &Path, commit: &dyn Fn() -> bool) -> Result<Import> {
    let staging = Staging::new(target)?;
    let path = staging.path(DATABASE_FILE_NAME);
    let kept = copy(&database.join(DATABASE_FILE_NAME), &path)?;
    let file = File::open(&path).map_err(CatalogError::io(&path, "read"))?;
    let read = Database::read(BufReader::new(file)).map_err(CatalogError::palo(&database.join(DATABASE_FILE_NAME)))?;
    let attributes = Attributes::read(&read, database)?;
    let (mut cubes, mut skipped, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for cube in &read.cubes {
        let (cube, lost, found) = import_cube(&read, cube, &attributes, database, &staging)?;
        findings.extend(found);
        if let Some(lost) = lost.filter(|lost| lost.count > 0) {
            skipped.push((cube.name.clone(), lost));
        }
        cubes.push(cube);
    }
    let unlisted = keep_unlisted(&read, database, &staging)?;
    let contents = Contents { version: CATALOG_VERSION, database: kept, cubes, unlisted };
    let path = staging.path(CATALOG_NAME);
    write_file(&path, checked::text(&contents).as_bytes()).map_err(CatalogError::io(&path, "written"))?;
    staging.finish(commit)?;
    Ok(Import { catalog: Catalog::open(target)?, skipped, findings })
}

fn import_cube(
    database: &Database,
    cube: &Cube,
    attributes: &Attributes,
    source: &Path,
    staging: &Staging,
) -> Result<(CatalogCube, Option<Skipped>, Vec<Finding>)> {
    let name = cube_file_name(cube.id);
    let path = Some(source.join(&name)).filter(|path| path.exists());
    let keep = |path: &Path| copy(path, &staging.path(&name));
    let mut entry = CatalogCube { number: cube.id, name: cube.name.clone(), folder: None, reason: None, cells: None };
    let mut imported = match database.cube_model(cube) {
        Ok(imported) => imported,
        Err(error) if is_no_model(&error) => {
            entry.reason = Some(error.to_string());
            entry.cells = path.as_deref().map(keep).transpose()?;
            return Ok((entry, None, Vec::new()));
        }
        Err(error) => return Err(CatalogError::palo(&source.join(DATABASE_FILE_NAME))(error)),
    };
    attributes.set(&mut imported, source)?;
    let folder = folder_name(cube.id, &cube.name);
    let mut stored = match facts::none(&imported) {
        Ok(facts) => StoredCube::new(imported.model.clone(), facts),
        Err(source) => return Err(CatalogError::Facts { path: staging.path(&folder), source }),
    };
    let mut origin = PaloOrigin { cube: cube.id, dimensions: imported.origins.clone(), cells: None };
    let (mut skipped, mut findings) = (None, Vec::new());
    if let Some(path) = &path {
        let cells = facts::read(&imported, path)?;
        let layout = cell_layout(path)?;
        if !is_written_alike(&imported, &cells, &layout, path)? {
            entry.cells = Some(keep(path)?);
        }
        origin.cells = Some(layout);
        (stored.facts, stored.texts) = (cells.facts, cells.texts);
        (skipped, findings) = (Some(cells.skipped), cells.findings);
    }
    stored.origin = Some(CubeOrigin::Palo(origin));
    create(&staging.path(&folder), &stored)?;
    entry.folder = Some(folder);
    Ok((entry, skipped, findings))
}

/// True if a cube is well-formed and cannot be a model.
fn is_no_model(error: &PaloError) -> bool {
    matches!(
        error,
        PaloError::NoElements { .. }
            | PaloError::Model(ModelError::KeyTooWide { .. } | ModelError::DimensionCount { .. })
    )
}

fn cell_layout(path: &Path) -> Result<CellLayout> {
    let file = File::open(path).map_err(CatalogError::io(path, "read"))?;
    let reader = CellReader::new(BufReader::new(file)).map_err(CatalogError::palo(path))?;
    let CubeHeader { sizes, settings, .. } = reader.header().clone();
    Ok(CellLayout { sizes, settings, line_end: reader.line_end() })
}

/// True if writing the cells gives the file, comments aside.
fn is_written_alike(cube: &ImportedCube, cells: &PaloCells, layout: &CellLayout, path: &Path) -> Result<bool> {
    let CellLayout { sizes, settings, line_end } = layout.clone();
    let header = CubeHeader { cube: cube.id, sizes, settings };
    let file = CellFile::new((&cube.model, &cube.origins), (&cells.facts, &cells.texts), header, line_end);
    let original = File::open(path).map_err(CatalogError::io(path, "read"))?;
    let mut comparison = Comparison::new(BufReader::new(original));
    match file.write(&mut comparison).map(drop) {
        Ok(()) => comparison.is_complete().map_err(CatalogError::io(path, "read")),
        Err(_) if comparison.differs() => Ok(false),
        Err(error) => Err(CatalogError::palo(path)(error)),
    }
}

/// Keeps the cell files of cubes that the database does not list.
fn keep_unlisted(database: &Database, source: &Path, staging: &Staging) -> Result<Vec<KeptFile>> {
    let io = || CatalogError::io(source, "read");
    let mut kept = Vec::new();
    for entry in fs::read_dir(source).map_err(io())? {
        let name = entry.map_err(io())?.file_name();
        let is_listed = |number: u32| database.cubes.iter().any(|cube| cube.id == number);
        let Some(name) = name.to_str() else { continue };
        let number = name.strip_prefix("database_CUBE_").and_then(|rest| rest.strip_suffix(".csv")?.parse().ok());
        if number.is_some_and(|number| !is_listed(number) && name == cube_file_name(number)) {
            kept.push(copy(&source.join(name), &staging.path(name))?);
        }
    }
    kept.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(kept)
}
