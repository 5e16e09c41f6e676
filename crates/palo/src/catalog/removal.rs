//! Effects of a change of one cube of a catalog on the others: a dimension is the database's. Elements that it removes
//! go from all of its cubes; a base element at which another cube holds facts stays one.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::CATALOG_NAME;
use super::error::{CatalogError, Result};
use super::manifest::Catalog;
use crate::{DATABASE_FILE_NAME, Database};
use warpcube_cube::model::{Element, ElementId, ElementKind};
use warpcube_cube::query::quoted;
use warpcube_cube::store::{CubeOrigin, PaloOrigin, StoredCube, open};

/// The advice for an edge below a base element at which another cube holds facts.
const REMEDY: &str = "add an element that consolidates it instead";

/// The elements that a change removes from another cube of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The folder of the cube.
    pub folder: PathBuf,
    /// The changes that remove the elements ([`warpcube_cube::change::change`]).
    pub changes: String,
}

/// Elements that a dimension of the database loses, or that are base elements no more.
struct Lost<'a> {
    /// The dimension's number.
    dimension: u32,
    name: &'a str,
    /// The elements' numbers.
    elements: Vec<u32>,
    names: Vec<&'a str>,
}

/// The removals that follow in other cubes from a change of the cube in a folder: elements of the database that the
/// cube no longer has, in the cubes that have their dimension. Empty if the cube lies in no catalog.
///
/// # Errors
/// [`CatalogError::Disagreement`] if a cube that is kept as it stands has the dimension, and if a base element at which
/// another cube holds facts became a consolidated one; errors of reading.
pub fn removals(folder: &Path, old: &StoredCube, changed: &StoredCube) -> Result<Vec<Removal>> {
    let Some(CubeOrigin::Palo(origin)) = &old.origin else { return Ok(Vec::new()) };
    let lost = elements_that(origin, old, changed, |_, after| after.is_none());
    let consolidated = elements_that(origin, old, changed, |before, after| {
        before.kind() == ElementKind::Base && after.is_some_and(|after| after.kind() == ElementKind::Consolidated)
    });
    let folder = fs::canonicalize(folder).map_err(CatalogError::io(folder, "read"))?;
    let parent = folder.parent().filter(|parent| parent.join(CATALOG_NAME).is_file());
    let is_nothing = lost.is_empty() && consolidated.is_empty();
    let (Some(parent), Some(name), false) = (parent, folder.file_name(), is_nothing) else {
        return Ok(Vec::new());
    };
    let catalog = Catalog::open(parent)?;
    check_kept(&catalog, &lost, |cube, names| {
        format!(
            "cube '{cube}' has it, too, and its cells are kept as they stand, so that '{names}' cannot be removed; \
             unlink takes an element from its parents"
        )
    })?;
    check_kept(&catalog, &consolidated, |cube, names| {
        format!("cube '{cube}' has '{names}', too, and its cells are kept as they stand: {REMEDY}")
    })?;
    let others = catalog.cubes().iter().filter_map(|cube| cube.folder.as_ref()).filter(|other| name != other.as_str());
    let mut removals = Vec::new();
    for other in others {
        let folder = parent.join(other);
        let cube = open(&folder)?;
        let Some(CubeOrigin::Palo(origin)) = &cube.origin else { continue };
        let name = |(at, id): (usize, ElementId)| {
            let dimension = &cube.model.dimensions()[at];
            (dimension.name(), dimension.element(id).name())
        };
        let of_consolidated = consolidated.iter().flat_map(|gone| of_cube(gone, origin, &cube));
        if let Some(filled) = of_consolidated.into_iter().find(|(at, id)| holds_facts(&cube, *at, *id)) {
            let (dimension, element) = name(filled);
            let reason = format!("cube '{}' holds facts at '{element}', too: {REMEDY}", cube.model.name());
            return Err(CatalogError::Disagreement { dimension: dimension.to_owned(), reason });
        }
        let of_lost = lost.iter().flat_map(|lost| of_cube(lost, origin, &cube)).map(name);
        let names: Vec<String> =
            of_lost.map(|(dimension, name)| format!("{}:{}", quoted(dimension), quoted(name))).collect();
        if !names.is_empty() {
            removals.push(Removal { folder, changes: format!("remove {}", names.join(", ")) });
        }
    }
    Ok(removals)
}

/// True if facts of a cube lie at a base element.
pub(super) fn holds_facts(cube: &StoredCube, dimension: usize, id: ElementId) -> bool {
    let Some(base) = cube.model.dimensions()[dimension].element(id).base() else { return false };
    cube.facts.coordinates(dimension).get(base as usize).copied().unwrap_or(false)
}

/// Elements of the database that a change of a cube affected: `is_wanted` compares the element before and after.
fn elements_that<'a>(
    origin: &PaloOrigin,
    old: &'a StoredCube,
    changed: &StoredCube,
    is_wanted: impl Fn(&Element, Option<&Element>) -> bool,
) -> Vec<Lost<'a>> {
    let dimensions = old.model.dimensions().iter().zip(changed.model.dimensions()).zip(&origin.dimensions);
    let lost = dimensions.map(|((old, changed), origin)| {
        let gone = |id: &&ElementId| is_wanted(old.element(**id), changed.get(**id));
        // Elements that a change has added are not the database's.
        let gone = old.elements().iter().filter(gone).filter_map(|id| Some((origin.palo_id(*id)?, *id)));
        let (elements, names) = gone.map(|(number, id)| (number, old.element(id).name())).unzip();
        Lost { dimension: origin.id, name: old.name(), elements, names }
    });
    lost.filter(|lost| !lost.elements.is_empty()).collect()
}

/// The elements of a cube that are lost, each with the position of its dimension.
fn of_cube(lost: &Lost<'_>, origin: &PaloOrigin, cube: &StoredCube) -> Vec<(usize, ElementId)> {
    let Some(at) = origin.dimensions.iter().position(|origin| origin.id == lost.dimension) else {
        return Vec::new();
    };
    let (origin, dimension) = (&origin.dimensions[at], &cube.model.dimensions()[at]);
    let is_lost = |id: &&ElementId| origin.palo_id(**id).is_some_and(|number| lost.elements.contains(&number));
    let held = dimension.elements().iter().filter(is_lost);
    held.map(|id| (at, *id)).collect()
}

/// Refuses the loss of elements that a cube without a folder has: its cells are kept as they stand. `reason` gets the
/// cube and the elements.
fn check_kept(catalog: &Catalog, lost: &[Lost<'_>], reason: impl Fn(&str, &str) -> String) -> Result<()> {
    if lost.is_empty() || catalog.cubes().iter().all(|cube| cube.folder.is_some() || cube.cells.is_none()) {
        return Ok(());
    }
    let path = catalog.folder().join(DATABASE_FILE_NAME);
    let text = fs::read(&path).map_err(CatalogError::io(&path, "read"))?;
    let database = Database::read(text.as_slice()).map_err(CatalogError::palo(&path))?;
    for kept in catalog.cubes().iter().filter(|cube| cube.folder.is_none() && cube.cells.is_some()) {
        let listed = database.cubes.iter().find(|listed| listed.id == kept.number);
        let has = |lost: &&Lost<'_>| listed.is_some_and(|listed| listed.dimensions.contains(&lost.dimension));
        if let Some(lost) = lost.iter().find(has) {
            let reason = reason(&kept.name, &lost.names.join("', '"));
            return Err(CatalogError::Disagreement { dimension: lost.name.to_owned(), reason });
        }
    }
    Ok(())
}
