//! Elements that a change removes from one cube of a catalog: the dimension is the database's, so that they go from all
//! of its cubes.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{CatalogError, Result};
use super::manifest::{CATALOG_NAME, Catalog};
use crate::model::ElementId;
use crate::palo::{DATABASE_FILE_NAME, Database};
use crate::query::quoted;
use crate::store::{Origin, PaloOrigin, StoredCube, open};

/// What another cube of a catalog loses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The folder of the cube.
    pub folder: PathBuf,
    /// The changes that remove the elements ([`crate::change::change`]).
    pub changes: String,
}

/// Elements that a dimension of the database loses.
struct Lost<'a> {
    /// The dimension's number.
    dimension: u32,
    name: &'a str,
    /// The elements' numbers.
    elements: Vec<u32>,
    names: Vec<&'a str>,
}

/// The removals that follow in other cubes from a change of the cube in a folder: elements of the database that the
/// cube no longer has, in the cubes that have their dimension. Nothing where the cube lies in no catalog.
///
/// # Errors
/// [`CatalogError::Disagreement`] if a cube that is kept as it stands has the dimension; errors of reading.
pub fn removals(folder: &Path, old: &StoredCube, changed: &StoredCube) -> Result<Vec<Removal>> {
    let Some(Origin::Palo(origin)) = &old.origin else { return Ok(Vec::new()) };
    let lost = lost(origin, old, changed);
    let folder = fs::canonicalize(folder).map_err(CatalogError::io(folder, "read"))?;
    let parent = folder.parent().filter(|parent| parent.join(CATALOG_NAME).is_file());
    let (Some(parent), Some(name), false) = (parent, folder.file_name(), lost.is_empty()) else {
        return Ok(Vec::new());
    };
    let catalog = Catalog::open(parent)?;
    check_kept(&catalog, &lost)?;
    let others = catalog.cubes().iter().filter_map(|cube| cube.folder.as_ref()).filter(|other| name != other.as_str());
    let mut removals = Vec::new();
    for other in others {
        let folder = parent.join(other);
        let cube = open(&folder)?;
        let Some(Origin::Palo(origin)) = &cube.origin else { continue };
        let names: Vec<String> = lost.iter().flat_map(|lost| of_cube(lost, origin, &cube)).collect();
        if !names.is_empty() {
            removals.push(Removal { folder, changes: format!("remove {}", names.join(", ")) });
        }
    }
    Ok(removals)
}

/// Elements of the database that a change took from a cube.
fn lost<'a>(origin: &PaloOrigin, old: &'a StoredCube, changed: &StoredCube) -> Vec<Lost<'a>> {
    let dimensions = old.model.dimensions().iter().zip(changed.model.dimensions()).zip(&origin.dimensions);
    let lost = dimensions.map(|((old, changed), origin)| {
        let gone = |id: &&ElementId| changed.get(**id).is_none();
        // Elements that a change has added are not the database's.
        let gone = old.elements().iter().filter(gone).filter_map(|id| Some((origin.palo_id(*id)?, *id)));
        let (elements, names) = gone.map(|(number, id)| (number, old.element(id).name())).unzip();
        Lost { dimension: origin.id, name: old.name(), elements, names }
    });
    lost.filter(|lost| !lost.elements.is_empty()).collect()
}

/// The elements of a cube that are lost, as changes name them.
fn of_cube(lost: &Lost<'_>, origin: &PaloOrigin, cube: &StoredCube) -> Vec<String> {
    let mut dimensions = origin.dimensions.iter().zip(cube.model.dimensions());
    let Some((origin, dimension)) = dimensions.find(|(origin, _)| origin.id == lost.dimension) else {
        return Vec::new();
    };
    let is_lost = |id: &&ElementId| origin.palo_id(**id).is_some_and(|number| lost.elements.contains(&number));
    let held = dimension.elements().iter().filter(is_lost);
    held.map(|id| format!("{}:{}", quoted(dimension.name()), quoted(dimension.element(*id).name()))).collect()
}

/// Refuses the loss of elements that a cube without a folder has: its cells are kept as they stand.
fn check_kept(catalog: &Catalog, lost: &[Lost<'_>]) -> Result<()> {
    if catalog.cubes().iter().all(|cube| cube.folder.is_some() || cube.cells.is_none()) {
        return Ok(());
    }
    let path = catalog.folder().join(DATABASE_FILE_NAME);
    let text = fs::read(&path).map_err(CatalogError::io(&path, "read"))?;
    let database = Database::read(text.as_slice()).map_err(CatalogError::palo(&path))?;
    for kept in catalog.cubes().iter().filter(|cube| cube.folder.is_none() && cube.cells.is_some()) {
        let listed = database.cubes.iter().find(|listed| listed.id == kept.number);
        let has = |lost: &&Lost<'_>| listed.is_some_and(|listed| listed.dimensions.contains(&lost.dimension));
        if let Some(lost) = lost.iter().find(has) {
            let (cube, names) = (&kept.name, lost.names.join("', '"));
            let reason = format!(
                "cube '{cube}' has it, too, and its cells are kept as they stand, so that '{names}' cannot be removed; \
                 unlink takes an element from its parents"
            );
            return Err(CatalogError::Disagreement { dimension: lost.name.to_owned(), reason });
        }
    }
    Ok(())
}
