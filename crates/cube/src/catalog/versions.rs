//! Versions of the dimensions that cubes share: each cube folder has a model of its own.

use hashbrown::{HashMap, HashSet};

use super::error::{CatalogError, Result};
use super::manifest::CatalogCube;
use crate::palo::{Database, Dimension, Element};

/// The versions of each dimension that cubes have, by the server's number.
#[derive(Default)]
pub(super) struct Versions {
    /// The dimension as the database has it, in the form in which models are exported.
    former: HashMap<u32, Dimension>,
    /// A changed version, and the cube that has it.
    changed: HashMap<u32, (Dimension, String)>,
    /// A version that has lost elements and is the former one otherwise, as a removal leaves it in all cubes, and a
    /// cube that has it.
    reduced: HashMap<u32, (Dimension, String)>,
    /// Cubes that have the former version.
    unchanged: HashMap<u32, String>,
}

impl Versions {
    /// Adds the version of a cube; returns true if it differs from that of the database.
    ///
    /// # Errors
    /// [`CatalogError::Disagreement`] if another cube has another changed version.
    pub(super) fn add(&mut self, database: &Database, cube: &CatalogCube, version: Dimension) -> Result<bool> {
        let number = version.id;
        if !self.former.contains_key(&number)
            && let Some(listed) = database.dimensions.iter().find(|listed| listed.id == number)
            && let Ok(former) = listed.to_model().and_then(|(model, origin)| Dimension::from_model(&model, &origin))
        {
            self.former.insert(number, former);
        }
        if self.former.get(&number) == Some(&version) {
            self.unchanged.entry(number).or_insert_with(|| cube.name.clone());
            return Ok(false);
        }
        let is_reduced = self.former.get(&number).is_some_and(|former| is_reduced(former, &version));
        let versions = if is_reduced { &mut self.reduced } else { &mut self.changed };
        match versions.get(&number) {
            Some((other, first)) if *other != version => Err(CatalogError::Disagreement {
                dimension: version.name,
                reason: format!("it was changed in '{first}' and otherwise in '{}'", cube.name),
            }),
            Some(_) => Ok(true),
            None => {
                versions.insert(number, (version, cube.name.clone()));
                Ok(true)
            }
        }
    }

    /// Adds the dimensions of a cube that is no model's.
    pub(super) fn add_unchanged(&mut self, database: &Database, entry: &CatalogCube) {
        let listed = database.cubes.iter().find(|cube| cube.id == entry.number);
        for number in listed.into_iter().flat_map(|cube| &cube.dimensions) {
            self.unchanged.entry(*number).or_insert_with(|| entry.name.clone());
        }
    }

    /// Puts changed versions into the database; returns true if there are any.
    ///
    /// # Errors
    /// [`CatalogError::Disagreement`] if an element is lost that a cube with the former version, or with what a removal
    /// left of it, has.
    pub(super) fn apply(mut self, database: &mut Database) -> Result<bool> {
        for (number, (version, cube)) in self.reduced {
            let (changed, first) = self.changed.entry(number).or_insert_with(|| (version.clone(), cube.clone()));
            if let Some(lost) = lost_element(&version, changed) {
                let reason = format!("'{first}' lost or changed element '{}', which '{cube}' has", lost.name);
                return Err(CatalogError::Disagreement { dimension: version.name, reason });
            }
        }
        let is_changed = !self.changed.is_empty();
        for (number, (version, cube)) in self.changed {
            if let (Some(former), Some(other)) = (self.former.get(&number), self.unchanged.get(&number))
                && let Some(lost) = lost_element(former, &version)
            {
                let reason = format!("'{cube}' lost or changed element '{}', which '{other}' has", lost.name);
                return Err(CatalogError::Disagreement { dimension: version.name, reason });
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

/// An element whose cells have no place under another version.
fn lost_element<'a>(former: &'a Dimension, version: &Dimension) -> Option<&'a Element> {
    let rows = |dimension: &'a Dimension| dimension.elements.as_ref().map_or(&[][..], |elements| &elements.rows);
    let kept: HashMap<u32, _> =
        version.elements.iter().flat_map(|elements| &elements.rows).map(|row| (row.id, row.kind)).collect();
    rows(former).iter().find(|row| kept.get(&row.id) != Some(&row.kind))
}
