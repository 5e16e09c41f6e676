//! Attribute cubes of a database: the cells of `#_D`, over the attributes `#_D_` and the elements of D, become
//! attributes of the elements in every cube that has the dimension D.
//!
//! The cube `#_D` stays a cube of its own, and the export writes its cells. Numbers at consolidated elements, which the
//! server computes, are no attributes.

use std::path::Path;

use hashbrown::HashMap;

use super::error::{CatalogError, Result};
use super::facts::{self, numbers};
use crate::{Cube, DATABASE_FILE_NAME, Database, ImportedCube, PaloError, cube_file_name};
use warpcube_cube::model::{Attribute, AttributeKind, Change, Dimension, ElementKind, folded};

/// Attributes by the server's number of their dimension.
#[derive(Default)]
pub(super) struct Attributes {
    of_dimension: HashMap<u32, Vec<Column>>,
}

/// An attribute of a dimension.
struct Column {
    name: String,
    kind: AttributeKind,
    /// Values by the server's numbers of the elements.
    values: Vec<(u32, Attribute)>,
}

impl Attributes {
    /// The attributes of a database in a folder.
    ///
    /// # Errors
    /// [`CatalogError::Palo`] with line and field, [`CatalogError::Io`], [`CatalogError::Facts`].
    pub(super) fn read(database: &Database, source: &Path) -> Result<Attributes> {
        let mut attributes = Attributes::default();
        for cube in &database.cubes {
            // A cube that is no model is kept as it stands.
            let Some((dimension, imported)) =
                described(database, cube).and_then(|dimension| Some((dimension, database.cube_model(cube).ok()?)))
            else {
                continue;
            };
            let path = source.join(cube_file_name(cube.id));
            let columns = columns(&imported, Some(path).filter(|path| path.exists()).as_deref())?;
            attributes.of_dimension.insert(dimension, columns);
        }
        Ok(attributes)
    }

    /// Gives the elements of a cube their attributes.
    ///
    /// # Errors
    /// [`CatalogError::Palo`] for an attribute without a name, which a database that was read does not have.
    pub(super) fn set(&self, cube: &mut ImportedCube, source: &Path) -> Result<()> {
        for at in 0..cube.origins.len() {
            let Some(columns) = self.of_dimension.get(&cube.origins[at].id) else { continue };
            let ids: HashMap<u32, _> = {
                let dimension = &cube.model.dimensions()[at];
                let number = |id| Some((cube.origins[at].palo_id(id)?, id));
                dimension.elements().iter().filter_map(|id| number(*id)).collect()
            };
            for Column { name, kind, values } in columns {
                let declared = Change::AddAttribute { attribute: name.clone(), kind: *kind };
                let values = values.iter().filter_map(|(number, value)| Some((*ids.get(number)?, value.clone())));
                let set = values.map(|(element, value)| {
                    let attribute = name.clone();
                    Change::SetAttribute { element, attribute, value }
                });
                for change in std::iter::once(declared).chain(set) {
                    cube.model.apply(at, change, &|_| false).map_err(|error| {
                        CatalogError::palo(&source.join(DATABASE_FILE_NAME))(PaloError::Model(error))
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The number of the dimension that an attribute cube describes.
fn described(database: &Database, cube: &Cube) -> Option<u32> {
    let named = |number: u32| Some(folded(&database.dimensions.iter().find(|known| known.id == number)?.name));
    let &[attributes, elements] = cube.dimensions.as_slice() else { return None };
    let name = named(elements)?;
    let is_own = folded(&cube.name) == format!("#_{name}") && named(attributes)? == format!("#_{name}_");
    is_own.then_some(elements)
}

/// The attributes of an attribute cube, in the order of its first dimension.
fn columns(cube: &ImportedCube, cells: Option<&Path>) -> Result<Vec<Column>> {
    let [attributes, elements] = cube.model.dimensions() else { return Ok(Vec::new()) };
    let mut columns: HashMap<_, Column> = HashMap::new();
    for id in attributes.elements() {
        let element = attributes.element(*id);
        let kind = match element.kind() {
            ElementKind::Base => AttributeKind::Number,
            ElementKind::Text => AttributeKind::Text,
            ElementKind::Consolidated => continue,
        };
        columns.insert(*id, Column { name: element.name().to_owned(), kind, values: Vec::new() });
    }
    if let Some(path) = cells {
        let cells = facts::read(cube, path)?;
        let number_of = |id| cube.origins[1].palo_id(id);
        let at = |dimension: &Dimension, base: u32| dimension.at_base(base);
        for (cell, value) in numbers(&cells.facts).iter().enumerate() {
            let place = cells.facts.cell(cell);
            let (attribute, element) = (at(attributes, place[0]), at(elements, place[1]).and_then(number_of));
            if let (Some(column), Some(element)) = (attribute.and_then(|id| columns.get_mut(&id)), element) {
                column.values.push((element, Attribute::Number(*value)));
            }
        }
        for text in &cells.texts {
            let column = columns.get_mut(&text.elements[0]).filter(|column| column.kind == AttributeKind::Text);
            if let (Some(column), Some(element)) = (column, number_of(text.elements[1])) {
                column.values.push((element, Attribute::Text(text.text.clone())));
            }
        }
    }
    Ok(attributes.elements().iter().filter_map(|id| columns.remove(id)).collect())
}
