//! Palo dimensions to the model's and back.
//!
//! The model numbers elements by position and knows nothing of the server's numbers and marks; a [`DimensionOrigin`]
//! keeps those. Level, indent and depth are computed from the graph when a dimension is written.

use hashbrown::HashMap;

use super::cells::CubeHeader;
use super::database::{Cube, Database, Dimension, Element, ElementType, Elements};
use super::error::{PaloError, Result};
use warpcube_cube::error::{ModelError, Nearest, Path};
use warpcube_cube::model::{self, CubeModel, DimensionBuilder, ElementId, ElementKind, Measure, Rule, ValueType};
use warpcube_cube::store::{DimensionOrigin, ElementOrigin};

/// Name of the measure that holds the numbers of an imported cube.
pub const VALUE_MEASURE: &str = "Value";

/// A cube of a Palo database as a model: one measure of doubles that is summed.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedCube {
    /// Number of the cube.
    pub id: u32,
    /// Its model.
    pub model: CubeModel,
    /// Origin of each dimension.
    pub origins: Vec<DimensionOrigin>,
}

impl Dimension {
    /// The dimension as one of the model, and the data that the model does not have.
    ///
    /// # Errors
    /// [`PaloError::NoElements`]; [`PaloError::Model`], above all for cycles.
    pub fn to_model(&self) -> Result<(model::Dimension, DimensionOrigin)> {
        let Some(elements) = &self.elements else {
            return Err(PaloError::NoElements { dimension: self.name.clone() });
        };
        let mut rows: Vec<&Element> = elements.rows.iter().collect();
        rows.sort_by_key(|element| element.position);
        let mut builder = DimensionBuilder::new(&self.name)?;
        builder.reserve(rows.len());
        let mut origin = DimensionOrigin {
            id: self.id,
            kind: self.kind,
            settings: self.settings.clone(),
            header_settings: elements.settings.clone(),
            elements: Vec::with_capacity(rows.len()),
        };
        let mut ids = HashMap::with_capacity(rows.len());
        for row in &rows {
            ids.insert(row.id, builder.add(&row.name, row.kind.into())?);
            let Element { id, string_consolidation, settings, .. } = row;
            let (id, string_consolidation, settings) = (*id, *string_consolidation, settings.clone());
            origin.elements.push(Some(ElementOrigin { id, string_consolidation, settings }));
        }
        for row in &rows {
            for (child, weight) in row.children.iter().zip(&row.weights) {
                builder.link(ids[&row.id], self.known(&ids, row, *child)?, *weight)?;
            }
        }
        for row in &rows {
            let parents =
                row.parents.iter().map(|parent| self.known(&ids, row, *parent)).collect::<Result<Vec<_>>>()?;
            builder.dimension().order_parents(ids[&row.id], &parents)?;
        }
        Ok((builder.finish()?, origin))
    }

    /// A dimension of the model in the server's form. `origin` gives the numbers; rows are in their order.
    ///
    /// # Errors
    /// [`PaloError::Unwritable`] if an element has no number: see [`DimensionOrigin::number`]; if names of elements
    /// differ in case alone.
    pub fn from_model(dimension: &model::Dimension, origin: &DimensionOrigin) -> Result<Self> {
        let mut names = HashMap::with_capacity(dimension.elements().len());
        for name in dimension.elements().iter().map(|id| dimension.element(*id).name()) {
            if let Some(other) = names.insert(model::folded(name), name) {
                return Err(PaloError::Unwritable(format!(
                    "elements '{other}' and '{name}' of dimension '{}' differ in case alone, and names of a Palo \
                     database ignore case: rename one of them with cube change",
                    dimension.name()
                )));
            }
        }
        let (indents, depths) = indents_and_depths(dimension);
        let number = |id: ElementId| {
            let missing = || format!("element '{}' has no number of the server", dimension.element(id).name());
            origin.palo_id(id).ok_or_else(|| PaloError::Unwritable(missing()))
        };
        let mut rows = Vec::with_capacity(dimension.elements().len());
        for (position, id) in dimension.elements().iter().enumerate() {
            let element = dimension.element(*id);
            let kept = origin.elements.get(id.index()).and_then(Option::as_ref);
            rows.push(Element {
                id: number(*id)?,
                name: element.name().to_owned(),
                position: position as u32,
                kind: element.kind().into(),
                string_consolidation: kept.is_some_and(|kept| kept.string_consolidation),
                level: dimension.level(*id),
                indent: indents[id.index()],
                depth: depths[id.index()],
                parents: element.parents().iter().map(|parent| number(*parent)).collect::<Result<_>>()?,
                children: element.children().iter().map(|edge| number(edge.child)).collect::<Result<_>>()?,
                weights: element.children().iter().map(|edge| edge.weight).collect(),
                settings: kept.map_or_else(Vec::new, |kept| kept.settings.clone()),
            });
        }
        rows.sort_by_key(|row| row.id);
        let highest = |of: &dyn Fn(&Element) -> u32| rows.iter().map(of).max().unwrap_or(0);
        let (level, indent, depth) = (highest(&|row| row.level), highest(&|row| row.indent), highest(&|row| row.depth));
        let (size, settings) = (rows.len() as u32, origin.header_settings.clone());
        Ok(Self {
            id: origin.id,
            name: dimension.name().to_owned(),
            kind: origin.kind,
            settings: origin.settings.clone(),
            elements: Some(Elements { level, indent, depth, size, settings, rows }),
        })
    }

    fn known(&self, ids: &HashMap<u32, ElementId>, row: &Element, other: u32) -> Result<ElementId> {
        let unknown = || ModelError::UnknownInPath {
            dimension: self.name.clone(),
            path: Path(vec![row.name.clone(), other.to_string()]),
            name: other.to_string(),
            nearest: Nearest::default(),
        };
        Ok(*ids.get(&other).ok_or_else(unknown)?)
    }
}

/// Indent (1 for roots, else one above the first parent's) and depth (0 for roots, else one above the deepest
/// parent's), by element number.
fn indents_and_depths(dimension: &model::Dimension) -> (Vec<u32>, Vec<u32>) {
    let mut indents = vec![1; dimension.id_count()];
    let mut depths = vec![0; dimension.id_count()];
    for id in dimension.parents_first() {
        let parents = dimension.element(id).parents();
        if let Some(first) = parents.first() {
            indents[id.index()] = indents[first.index()] + 1;
        }
        depths[id.index()] = parents.iter().map(|parent| depths[parent.index()] + 1).max().unwrap_or(0);
    }
    (indents, depths)
}

impl From<ElementType> for ElementKind {
    fn from(kind: ElementType) -> Self {
        match kind {
            ElementType::Numeric => Self::Base,
            ElementType::Text => Self::Text,
            ElementType::Consolidated => Self::Consolidated,
        }
    }
}

impl From<ElementKind> for ElementType {
    fn from(kind: ElementKind) -> Self {
        match kind {
            ElementKind::Base => Self::Numeric,
            ElementKind::Text => Self::Text,
            ElementKind::Consolidated => Self::Consolidated,
        }
    }
}

impl Database {
    /// The cube of a name, case ignored.
    ///
    /// # Errors
    /// [`PaloError::Unknown`] with the nearest names.
    pub fn cube(&self, name: &str) -> Result<&Cube> {
        let wanted = model::folded(name);
        self.cubes.iter().find(|cube| model::folded(&cube.name) == wanted).ok_or_else(|| PaloError::Unknown {
            what: "cube",
            wanted: format!("'{name}'"),
            nearest: model::nearest(name, self.cubes.iter().map(|cube| cube.name.as_str())),
        })
    }

    /// The model of a cube. Its one measure, [`VALUE_MEASURE`], holds doubles and is summed.
    ///
    /// # Errors
    /// [`PaloError::Unknown`] for a dimension that the database does not list; [`PaloError::NoElements`];
    /// [`PaloError::Model`] for broken dimensions, more than 32 of them, and keys above 128 bits.
    pub fn cube_model(&self, cube: &Cube) -> Result<ImportedCube> {
        let (mut dimensions, mut origins) = (Vec::new(), Vec::new());
        for id in &cube.dimensions {
            let listed = self.dimensions.iter().find(|dimension| dimension.id == *id);
            let unknown =
                || PaloError::Unknown { what: "dimension", wanted: id.to_string(), nearest: Nearest::default() };
            let (dimension, origin) = listed.ok_or_else(unknown)?.to_model()?;
            dimensions.push(dimension);
            origins.push(origin);
        }
        let measure = Measure {
            name: VALUE_MEASURE.to_owned(),
            rule: Rule::Sum,
            value: ValueType::Double,
            format: None,
            over: None,
        };
        let model = CubeModel::new(&cube.name, dimensions, vec![measure])?;
        Ok(ImportedCube { id: cube.id, model, origins })
    }
}

impl ImportedCube {
    /// The header of the cube's cell file.
    pub fn header(&self) -> CubeHeader {
        let sizes = self.model.dimensions().iter().map(|dimension| dimension.elements().len() as u32).collect();
        CubeHeader { cube: self.id, sizes, settings: Vec::new() }
    }

    /// The path of a cell in the server's numbers.
    ///
    /// # Errors
    /// [`PaloError::Unwritable`] if an element has no number, or if the cube has another number of dimensions.
    pub fn path(&self, elements: &[ElementId]) -> Result<Vec<u32>> {
        let ids =
            elements.iter().zip(&self.origins).map(|(id, origin)| origin.palo_id(*id)).collect::<Option<Vec<_>>>();
        ids.filter(|ids| ids.len() == elements.len() && ids.len() == self.origins.len()).ok_or_else(|| {
            let problem = format!("a cell of cube '{}' has no path in the server's numbers", self.model.name());
            PaloError::Unwritable(problem)
        })
    }
}
