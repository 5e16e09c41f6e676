//! Versions of the dimensions that cubes share: each cube folder has a model of its own.

use std::path::{Path, PathBuf};

use hashbrown::{HashMap, HashSet};

use super::error::{CatalogError, Result};
use super::manifest::CatalogCube;
use super::removal::holds_facts;
use crate::{Database, Dimension, Element};
use warpcube_cube::store::{CubeOrigin, open};

/// The versions of each dimension that cubes have, by the server's number.
#[derive(Default)]
pub(super) struct Versions {
    /// The dimension as the database has it, in the form in which models are exported.
    former: HashMap<u32, Dimension>,
    /// A changed version, and the cube that has it.
    changed: HashMap<u32, (Dimension, String)>,
    /// The former version without some elements, as a removal leaves it in all cubes, and the cubes that have it, at
    /// least one.
    reduced: HashMap<u32, (Dimension, Vec<Holder>)>,
    /// Cubes that have the former version.
    unchanged: HashMap<u32, Vec<Holder>>,
}

/// A cube that has the former version of a dimension, or that version without removed elements.
struct Holder {
    cube: String,
    /// Its folder, unless its cells are kept as they stand.
    folder: Option<PathBuf>,
}

impl Holder {
    /// True if facts of the cube may lie at an element of a dimension, by the numbers of the server.
    fn may_hold(&self, dimension: u32, element: u32) -> Result<bool> {
        let Some(folder) = &self.folder else { return Ok(true) };
        let cube = open(folder)?;
        let Some(CubeOrigin::Palo(origin)) = &cube.origin else { return Ok(true) };
        let Some(at) = origin.dimensions.iter().position(|origin| origin.id == dimension) else { return Ok(false) };
        let ids = cube.model.dimensions()[at].elements().iter().copied();
        let found = ids.into_iter().find(|id| origin.dimensions[at].palo_id(*id) == Some(element));
        Ok(found.is_some_and(|id| holds_facts(&cube, at, id)))
    }
}

impl Versions {
    /// Adds the version of a cube; returns true if it differs from that of the database.
    ///
    /// # Errors
    /// [`CatalogError::Disagreement`] if another cube has another changed version.
    pub(super) fn add(
        &mut self,
        database: &Database,
        (cube, folder): (&CatalogCube, &Path),
        version: Dimension,
    ) -> Result<bool> {
        let number = version.id;
        if !self.former.contains_key(&number)
            && let Some(listed) = database.dimensions.iter().find(|listed| listed.id == number)
            && let Ok(former) = listed.to_model().and_then(|(model, origin)| Dimension::from_model(&model, &origin))
        {
            self.former.insert(number, former);
        }
        let holder = Holder { cube: cube.name.clone(), folder: Some(folder.to_path_buf()) };
        if self.former.get(&number) == Some(&version) {
            self.unchanged.entry(number).or_default().push(holder);
            return Ok(false);
        }
        let disagreement = |dimension: String, first: &str| CatalogError::Disagreement {
            dimension,
            reason: format!(
                "it was changed in '{first}' and otherwise in '{}': take one of the two back, as change 'remove …' \
                 does with an element that was added, and make the changes of the other one in both cubes, in one \
                 order",
                cube.name
            ),
        };
        if self.former.get(&number).is_some_and(|former| is_reduced(former, &version)) {
            let (other, holders) = self.reduced.entry(number).or_insert_with(|| (version.clone(), Vec::new()));
            if *other != version {
                return Err(disagreement(version.name, &holders[0].cube));
            }
            holders.push(holder);
            return Ok(true);
        }
        match self.changed.get(&number) {
            Some((other, first)) if *other != version => Err(disagreement(version.name, first)),
            Some(_) => Ok(true),
            None => {
                self.changed.insert(number, (version, cube.name.clone()));
                Ok(true)
            }
        }
    }

    /// Adds the dimensions of a cube that is no model's.
    pub(super) fn add_unchanged(&mut self, database: &Database, entry: &CatalogCube) {
        let listed = database.cubes.iter().find(|cube| cube.id == entry.number);
        for number in listed.into_iter().flat_map(|cube| &cube.dimensions) {
            let holder = Holder { cube: entry.name.clone(), folder: None };
            self.unchanged.entry(*number).or_default().push(holder);
        }
    }

    /// Puts changed versions into the database; returns true if there are any.
    ///
    /// # Errors
    /// [`CatalogError::Disagreement`] if an element is lost that another cube of the dimension has, or if an element at
    /// which such a cube holds facts became another kind; errors of reading that cube.
    pub(super) fn apply(mut self, database: &mut Database) -> Result<bool> {
        for (number, (version, holders)) in &self.reduced {
            let changed = || (version.clone(), holders[0].cube.clone());
            self.changed.entry(*number).or_insert_with(changed);
        }
        let is_changed = !self.changed.is_empty();
        for (number, (version, cube)) in self.changed {
            let unchanged = self.former.get(&number).zip(self.unchanged.get(&number));
            let reduced = self.reduced.get(&number).map(|(reduced, holders)| (reduced, holders));
            let held = unchanged.into_iter().chain(reduced);
            for (former, holder) in held.flat_map(|(former, holders)| holders.iter().map(move |one| (former, one))) {
                for (element, is_lost) in other_elements(former, &version) {
                    if is_lost || holder.may_hold(number, element.id)? {
                        let (name, other) = (&element.name, &holder.cube);
                        let reason = format!("'{cube}' lost or changed element '{name}', which '{other}' has");
                        return Err(CatalogError::Disagreement { dimension: version.name, reason });
                    }
                }
            }
            if let Some(listed) = database.dimensions.iter_mut().find(|listed| listed.id == number) {
                *listed = version;
            }
        }
        Ok(is_changed)
    }
}

/// True if a version is the former one without some of its elements.
fn is_reduced(former: &Dimension, version: &Dimension) -> bool {
    let rows = |dimension: &Dimension| {
        let mut rows = dimension.elements.as_ref().map_or(Vec::new(), |elements| elements.rows.clone());
        rows.sort_by_key(|row| row.position);
        rows
    };
    let (kept, all) = (rows(version), rows(former));
    let ids: HashSet<u32> = kept.iter().map(|row| row.id).collect();
    let edges = |row: &Element| {
        let edges = row.children.iter().copied().zip(row.weights.iter().map(|weight| weight.to_bits()));
        edges.filter(|(child, _)| ids.contains(child)).collect::<Vec<_>>()
    };
    let is_same = |(one, other): (&Element, &Element)| {
        (one.id, &one.name, one.kind) == (other.id, &other.name, other.kind) && edges(one) == edges(other)
    };
    let left: Vec<Element> = all.into_iter().filter(|row| ids.contains(&row.id)).collect();
    left.len() == kept.len() && left.iter().zip(&kept).all(is_same)
}

/// Elements that another version has not, or has as another kind, and whether it has them not.
fn other_elements<'a>(former: &'a Dimension, version: &Dimension) -> Vec<(&'a Element, bool)> {
    let rows = |dimension: &'a Dimension| dimension.elements.as_ref().map_or(&[][..], |elements| &elements.rows);
    let kept: HashMap<u32, _> =
        version.elements.iter().flat_map(|elements| &elements.rows).map(|row| (row.id, row.kind)).collect();
    let others = rows(former).iter().filter(|row| kept.get(&row.id) != Some(&row.kind));
    others.map(|row| (row, !kept.contains_key(&row.id))).collect()
}
