//! Export of a catalog as the database that it was imported from, with the cubes as they are.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::cells::CellFile;
use super::error::{CatalogError, Result};
use super::facts;
use super::manifest::{Catalog, CatalogCube, KeptFile};
use super::staging::{Staging, copy_kept};
use super::versions::Versions;
use crate::{CubeHeader, DATABASE_FILE_NAME, Database, Dimension, PaloError, VALUE_MEASURE, cube_file_name};
use warpcube_cube::facts::Values;
use warpcube_cube::store::{CellLayout, CubeOrigin, PaloOrigin, StoredCube, open};

impl Catalog {
    /// Writes the database: `database.csv` and the cell files, as they stood where nothing was changed. Facts, texts
    /// and dimensions are those of the cubes. Comments may be others.
    ///
    /// # Errors
    /// [`CatalogError::NotEmpty`]; [`CatalogError::Disagreement`] if cubes have different versions of a dimension that
    /// cannot be exported as one; [`CatalogError::NotImported`], [`CatalogError::Damaged`], [`CatalogError::Palo`],
    /// [`CatalogError::Store`], [`CatalogError::Io`]. After an error there is no target.
    pub fn export(&self, target: &Path) -> Result<()> {
        self.export_unless(target, &|| true)
    }

    /// As [`Catalog::export`]; `commit` is asked before the target takes its name, and says false if the export was
    /// cancelled.
    ///
    /// # Errors
    /// Those of [`Catalog::export`], and [`CatalogError::Cancelled`].
    pub fn export_unless(&self, target: &Path, commit: &dyn Fn() -> bool) -> Result<()> {
        let staging = Staging::new(target)?;
        let contents = self.contents();
        let path = staging.path(DATABASE_FILE_NAME);
        copy_kept(self.folder(), &contents.database, &path)?;
        let text = fs::read(&path).map_err(CatalogError::io(&path, "read"))?;
        let mut database = Database::read(text.as_slice()).map_err(CatalogError::palo(&path))?;
        let mut dimensions = Versions::default();
        for cube in self.cubes() {
            match &cube.folder {
                Some(folder) => {
                    self.export_cube(&database, cube, &self.folder().join(folder), &mut dimensions, &staging)?;
                }
                None if cube.cells.is_some() => dimensions.add_unchanged(&database, cube),
                None => {}
            }
            if let (None, Some(cells)) = (&cube.folder, &cube.cells) {
                copy_kept(self.folder(), cells, &staging.path(&cells.name))?;
            }
        }
        for file in &contents.unlisted {
            copy_kept(self.folder(), file, &staging.path(&file.name))?;
        }
        if dimensions.apply(&mut database)? {
            let written = write(&path, |out| database.write(out).map_err(CatalogError::palo(&path)));
            written?;
        }
        staging.finish(commit)
    }

    fn export_cube(
        &self,
        database: &Database,
        entry: &CatalogCube,
        folder: &Path,
        dimensions: &mut Versions,
        staging: &Staging,
    ) -> Result<()> {
        let cube = open(folder)?;
        let PaloOrigin { dimensions: mut origins, cells, .. } = origin(entry, &cube)?;
        let in_database = |error| CatalogError::palo(&self.folder().join(DATABASE_FILE_NAME))(error);
        let mut sizes = cells.as_ref().map_or_else(Vec::new, |cells| cells.sizes.clone());
        sizes.resize(origins.len(), 0);
        for ((dimension, origin), size) in cube.model.dimensions().iter().zip(&mut origins).zip(&mut sizes) {
            if !origin.number(dimension) {
                let error = format!("dimension '{}' is out of numbers", dimension.name());
                return Err(in_database(PaloError::Unwritable(error)));
            }
            let version = Dimension::from_model(dimension, origin).map_err(in_database)?;
            if dimensions.add(database, (entry, folder), version)? || cells.is_none() {
                *size = dimension.elements().len() as u32;
            }
        }
        let target = staging.path(&cube_file_name(entry.number));
        let former = entry.cells.as_ref().map(|kept| self.checked(kept, staging)).transpose()?;
        if let Some(former) = &former
            && is_unchanged(database, entry, &cube, former)?
        {
            return fs::rename(former, &target).map_err(CatalogError::io(&target, "written"));
        }
        if cells.is_none() && cube.facts.is_empty() && cube.texts.is_empty() {
            return Ok(());
        }
        let (settings, line_end) = match cells {
            Some(CellLayout { settings, line_end, .. }) => (settings, line_end),
            None => (Vec::new(), database.line_end),
        };
        let header = CubeHeader { cube: entry.number, sizes, settings };
        let facts = cube.facts.merged();
        let file = CellFile::new((&cube.model, &origins), (&facts, &cube.texts), header, line_end);
        match former {
            Some(former) => {
                write(&target, |out| file.write_like(&former, (out, &target)))?;
                fs::remove_file(&former).map_err(CatalogError::io(&former, "removed"))
            }
            None => write(&target, |out| file.write(out).map_err(CatalogError::palo(&target))),
        }
    }

    /// A copy of a kept file whose checksum was compared.
    fn checked(&self, kept: &KeptFile, staging: &Staging) -> Result<PathBuf> {
        let path = staging.path(&format!("{}.kept", kept.name));
        copy_kept(self.folder(), kept, &path)?;
        Ok(path)
    }
}

/// True if facts and texts of a cube are those of the cell file that was kept.
fn is_unchanged(database: &Database, entry: &CatalogCube, cube: &StoredCube, former: &Path) -> Result<bool> {
    let listed = database.cubes.iter().find(|listed| listed.id == entry.number);
    let Some(imported) = listed.and_then(|listed| database.cube_model(listed).ok()) else { return Ok(false) };
    let (former, facts) = (facts::read(&imported, former)?, cube.facts.merged());
    Ok(former.facts.layout() == facts.layout()
        && former.facts.base().keys() == facts.base().keys()
        && former.facts.base().columns() == facts.base().columns()
        && former.texts == cube.texts)
}

/// The origin of a cube; the cube has one measure of sums of doubles, as imported cubes do.
fn origin(entry: &CatalogCube, cube: &StoredCube) -> Result<PaloOrigin> {
    let refused = |reason: &str| {
        let (cube, reason) = (entry.name.clone(), reason.to_owned());
        Err(CatalogError::NotImported { cube, reason })
    };
    match (&cube.origin, cube.facts.base().columns()) {
        (Some(CubeOrigin::Palo(origin)), [column]) if origin.cube == entry.number => {
            match column.measure.name == VALUE_MEASURE && matches!(column.values, Values::Doubles(_)) {
                true => Ok(origin.clone()),
                false => refused("its measure is not one sum of doubles"),
            }
        }
        (Some(CubeOrigin::Palo(_)), _) => refused("its folder holds another cube"),
        (None | Some(CubeOrigin::Definition { .. }), _) => {
            refused("its folder holds a cube that was not imported from the database")
        }
    }
}

/// Writes a file and makes it durable.
fn write(path: &Path, fill: impl FnOnce(BufWriter<File>) -> Result<BufWriter<File>>) -> Result<()> {
    let io = || CatalogError::io(path, "written");
    let mut out = fill(BufWriter::new(File::create(path).map_err(io())?))?;
    out.flush().map_err(io())?;
    out.get_ref().sync_all().map_err(io())
}
