//! The stored form of a model: JSON with a version number, checked in full when it is read.

use std::collections::HashSet;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use warpcube_arrays::key::KeyLayout;

use super::cube::{MODEL_VERSION, check};
use super::names::{NameIndex, folded};
use super::{
    Absent, Attribute, AttributeColumn, AttributeKind, CubeModel, Dimension, Element, ElementId, ElementKind,
    Hierarchy, Measure,
};
use crate::error::{ModelError, Result};

/// The version, read before the other fields: those of another version may differ.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredCube<D> {
    version: u64,
    name: String,
    key_bits: Vec<u32>,
    measures: Vec<Measure>,
    dimensions: Vec<D>,
}

#[derive(Serialize)]
struct DimensionRef<'a> {
    name: &'a str,
    base_count: usize,
    default: Option<ElementId>,
    hierarchies: &'a [Hierarchy],
    attributes: &'a [AttributeColumn],
    order: &'a [ElementId],
    elements: &'a [Option<Element>],
    #[serde(skip_serializing_if = "<[Absent]>::is_empty")]
    absent: &'a [Absent],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDimension {
    name: String,
    base_count: usize,
    default: Option<ElementId>,
    hierarchies: Vec<Hierarchy>,
    attributes: Vec<AttributeColumn>,
    order: Vec<ElementId>,
    elements: Vec<Option<Element>>,
    #[serde(default)]
    absent: Vec<Absent>,
}

impl CubeModel {
    /// The model as JSON.
    ///
    /// # Errors
    /// [`ModelError::Json`] if the JSON writer fails.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string(&StoredCube {
            version: MODEL_VERSION,
            name: self.name.clone(),
            key_bits: self.layout.bits().to_vec(),
            measures: self.measures.clone(),
            dimensions: self.dimensions.iter().map(Dimension::stored).collect(),
        })?)
    }

    /// The model of a JSON text.
    ///
    /// # Errors
    /// [`ModelError::Version`] for another version; [`ModelError::Json`]; [`ModelError::Damaged`] and the errors of
    /// [`CubeModel::new`] for a model that breaks an invariant.
    pub fn from_json(text: &str) -> Result<Self> {
        let Versioned { version: found } = serde_json::from_str(text)?;
        if found != MODEL_VERSION {
            return Err(ModelError::Version { found, wanted: MODEL_VERSION });
        }
        let stored: StoredCube<StoredDimension> = serde_json::from_str(text)?;
        let dimensions = stored.dimensions.into_iter().map(Dimension::restored).collect::<Result<Vec<_>>>()?;
        let StoredCube { name, measures, key_bits, .. } = stored;
        check(&name, &dimensions, &measures)?;
        let layout = KeyLayout::new(&key_bits).ok().filter(|layout| layout.dimensions() == dimensions.len());
        let narrow = dimensions
            .iter()
            .enumerate()
            .find(|(at, dimension)| layout.as_ref().is_none_or(|layout| !layout.holds(*at, dimension.base_count())));
        match (layout, narrow) {
            (Some(layout), None) => Ok(Self { name, dimensions, measures, layout }),
            (_, Some((_, dimension))) => {
                Err(dimension.damaged("the key layout has no place for its coordinates".to_owned()))
            }
            (None, None) => unreachable!("a cube has dimensions"),
        }
    }
}

impl Dimension {
    fn stored(&self) -> DimensionRef<'_> {
        DimensionRef {
            name: &self.name,
            base_count: self.bases.len(),
            default: self.default,
            hierarchies: &self.hierarchies,
            attributes: &self.attributes,
            order: &self.order,
            elements: &self.slots,
            absent: &self.absent,
        }
    }

    fn restored(stored: StoredDimension) -> Result<Self> {
        let mut dimension = Self {
            name: stored.name,
            slots: stored.elements,
            order: stored.order,
            bases: Vec::new(),
            default: stored.default,
            attributes: stored.attributes,
            hierarchies: stored.hierarchies,
            absent: stored.absent,
            names: NameIndex::default(),
            topology: OnceLock::new(),
        };
        if dimension.name.is_empty() || dimension.slots.iter().flatten().any(|element| element.name.is_empty()) {
            return Err(dimension.damaged("it has an empty name".to_owned()));
        }
        dimension.restore_bases(stored.base_count)?;
        dimension.check_order()?;
        for id in dimension.order.clone() {
            dimension.restore_names(id)?;
            dimension.check_labels(id)?;
        }
        dimension.check_edges()?;
        dimension.check_cycles()?;
        dimension.check_absent()?;
        dimension.default.map(|id| dimension.living(id)).transpose()?;
        Ok(dimension)
    }

    fn restore_bases(&mut self, base_count: usize) -> Result<()> {
        if base_count > self.slots.len() {
            return Err(self.damaged(format!("{base_count} coordinates for {} elements", self.slots.len())));
        }
        let mut bases = vec![None; base_count];
        for (number, element) in self.slots.iter().enumerate() {
            let Some(element) = element else { continue };
            if element.base.is_some() != (element.kind == ElementKind::Base) {
                return Err(self.damaged(format!("kind and coordinate of '{}' contradict each other", element.name)));
            }
            let Some(base) = element.base else { continue };
            match bases.get_mut(base as usize) {
                Some(place @ None) => *place = Some(ElementId(number as u32)),
                Some(Some(_)) => return Err(self.damaged(format!("coordinate {base} belongs to two elements"))),
                None => return Err(self.damaged(format!("coordinate {base} of '{}' is too large", element.name))),
            }
        }
        self.bases = bases;
        Ok(())
    }

    fn check_order(&self) -> Result<()> {
        let mut ordered = vec![false; self.slots.len()];
        for id in &self.order {
            let element = self.living(*id)?;
            if std::mem::replace(&mut ordered[id.index()], true) {
                return Err(self.damaged(format!("'{}' has two positions", element.name)));
            }
        }
        match self.slots.iter().zip(ordered).find_map(|(slot, ordered)| slot.as_ref().filter(|_| !ordered)) {
            Some(element) => Err(self.damaged(format!("'{}' has no position", element.name))),
            None => Ok(()),
        }
    }

    fn restore_names(&mut self, id: ElementId) -> Result<()> {
        let Element { name, aliases, caption, source_names, displaced, .. } = self.element(id).clone();
        self.enter(&name, id)?;
        source_names.iter().try_for_each(|name| self.claim_source(name, id))?;
        displaced.iter().for_each(|displaced| self.names.add_displaced(&displaced.name, id));
        aliases.iter().try_for_each(|alias| self.enter(alias, id))?;
        if let Some(caption) = caption {
            self.names.add_caption(&caption, id);
        }
        Ok(())
    }

    fn check_labels(&self, id: ElementId) -> Result<()> {
        let element = self.element(id);
        let mut seen = HashSet::new();
        for (column, value) in &element.attributes {
            let kind = self.attributes.get(usize::from(*column)).map(|column| column.kind);
            let fits = match value {
                Attribute::Number(number) => kind == Some(AttributeKind::Number) && number.is_finite(),
                Attribute::Text(_) => kind == Some(AttributeKind::Text),
            };
            if !fits || !seen.insert(column) {
                return Err(self.damaged(format!("attribute number {column} of '{}' is not as declared", element.name)));
            }
        }
        for unlinked in &element.unlinked {
            self.check_finite(&[id, id], unlinked.weight)?;
            self.living_or_absent(unlinked.parent)?;
        }
        let levels =
            |member: &super::Member| self.hierarchies.get(usize::from(member.hierarchy)).map(|h| h.levels.len());
        match &element.member {
            Some(member) if levels(member).is_none_or(|count| usize::from(member.level) >= count) => {
                Err(self.damaged(format!("'{}' is of a level that does not exist", element.name)))
            }
            _ => Ok(()),
        }
    }

    /// Checks that both ends of every edge record it, once each.
    fn check_edges(&self) -> Result<()> {
        let mut names = HashSet::new();
        if let Some(column) = self.attributes.iter().find(|column| !names.insert(folded(&column.name))) {
            return Err(self.damaged(format!("attribute '{}' is declared twice", column.name)));
        }
        let mut down = HashSet::new();
        let mut parents = 0;
        for parent in &self.order {
            parents += self.element(*parent).parents.len();
            for edge in self.element(*parent).children() {
                self.check_finite(&[*parent, edge.child], edge.weight)?;
                self.check_edge(*parent, edge.child)?;
                if !down.insert((*parent, edge.child)) {
                    let path = self.path(&[*parent, edge.child]);
                    return Err(ModelError::DuplicateChild { dimension: self.name.clone(), path });
                }
            }
        }
        let one_sided = |child: &&ElementId| {
            let distinct: HashSet<_> = self.element(**child).parents.iter().collect();
            distinct.len() < self.element(**child).parents.len()
                || distinct.iter().any(|p| !down.contains(&(**p, **child)))
        };
        match self.order.iter().find(one_sided) {
            Some(child) => Err(self.damaged(format!("the parents of '{}' do not list it", self.element(*child).name))),
            None if parents != down.len() => Err(self.damaged("children do not record their parents".to_owned())),
            None => Ok(()),
        }
    }

    /// Checks that absent elements have numbers of their own, and that elements which they name are there.
    fn check_absent(&self) -> Result<()> {
        let mut seen = HashSet::new();
        for absent in &self.absent {
            let name = &absent.key;
            if absent.id.index() >= self.slots.len() || self.get(absent.id).is_some() || !seen.insert(absent.id) {
                return Err(self.damaged(format!("the absent element '{name}' has the number of another one")));
            }
            let above = absent.above.iter().map(|above| (above.parent, above.weight));
            for (end, weight) in above.chain(absent.children.iter().map(|edge| (edge.child, edge.weight))) {
                self.living(end)?;
                self.check_finite(&[end, end], weight)?;
            }
            absent.unlinked.iter().try_for_each(|unlinked| self.living_or_absent(unlinked.parent))?;
        }
        Ok(())
    }

    fn living_or_absent(&self, id: ElementId) -> Result<()> {
        match self.absent_of(id) {
            Some(_) => Ok(()),
            None => self.living(id).map(drop),
        }
    }

    fn damaged(&self, problem: String) -> ModelError {
        ModelError::Damaged { dimension: self.name.clone(), problem }
    }
}
