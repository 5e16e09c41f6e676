//! The content of a cube folder.

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};
use warpcube_arrays::Scheme;

use super::palo_origin::PaloOrigin;
use crate::facts::{FactMeasure, Facts};
use crate::model::{CubeModel, ElementId, Measure};

/// A cube with its facts and all that is stored beside them.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCube {
    /// The model.
    pub model: CubeModel,
    /// The facts, of the model's key layout and measures. Values of empty cells are stored as 0.
    pub facts: Facts,
    /// The scheme in which the facts are stored.
    pub scheme: Scheme,
    /// The definition, YAML as given.
    pub definition: Option<String>,
    /// Text cells, in an order of the caller's.
    pub texts: Vec<TextCell>,
    /// Rows kept aside.
    pub aside: Vec<RecordBatch>,
    /// Where it comes from, with what an import keeps beside the model.
    pub origin: Option<CubeOrigin>,
}

/// A text at a cell, consolidated cells included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCell {
    /// The element of each dimension.
    pub elements: Vec<ElementId>,
    /// The text.
    pub text: String,
}

/// Where a cube comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CubeOrigin {
    /// A Palo or Jedox database.
    Palo(PaloOrigin),
    /// A definition file; files that it names lie beside it.
    Definition {
        /// Its absolute path; absent if a program gave the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The folder that was the current one when it was read; files that its SQL names may lie there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
        /// True if columns of text files are text as it is written; false for cubes of versions that guessed their
        /// types.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_written: bool,
    },
}

impl StoredCube {
    /// A cube of a model and its facts, without anything beside them.
    pub fn new(model: CubeModel, facts: Facts) -> StoredCube {
        let scheme = Scheme::Bess;
        StoredCube { model, facts, scheme, definition: None, texts: Vec::new(), aside: Vec::new(), origin: None }
    }

    /// True for a cube of an imported database: it has no source that a load reads.
    pub fn is_imported(&self) -> bool {
        matches!(self.origin, Some(CubeOrigin::Palo(_)))
    }

    /// The texts at cells of another model of the cube whose elements have the names of this one's.
    pub fn texts_of(&self, model: &CubeModel) -> Vec<TextCell> {
        if self.model.dimensions().len() != model.dimensions().len() {
            return Vec::new();
        }
        let moved = |cell: &TextCell| {
            let pairs = cell.elements.iter().zip(self.model.dimensions()).zip(model.dimensions());
            let elements = pairs.map(|((element, from), to)| {
                let name = from.element(*element).name();
                // A name in another case that the cube has for another element is not this one's.
                let is_new = |id: &ElementId| from.holder(to.element(*id).name()).is_none();
                to.holder(name).or_else(|| to.find_key(name).filter(is_new))
            });
            Some(TextCell { elements: elements.collect::<Option<_>>()?, text: cell.text.clone() })
        };
        self.texts.iter().filter_map(moved).collect()
    }

    /// The contradiction between the parts of the cube, if there is one.
    pub(super) fn contradiction(&self) -> Option<String> {
        let StoredCube { model, facts, .. } = self;
        if facts.layout() != model.layout() {
            let (found, wanted) = (facts.layout().bits(), model.layout().bits());
            return Some(format!("keys of the facts have bits {found:?}, those of the model {wanted:?}"));
        }
        let wanted: Vec<FactMeasure> = fact_measures(model).collect();
        if facts.measures() != wanted {
            return Some("the measures of the facts are not those of the model".to_owned());
        }
        for (number, dimension) in model.dimensions().iter().enumerate() {
            let count = dimension.base_count();
            if let Some(most) = facts.coordinate_max(number).filter(|&most| most as usize >= count) {
                let name = dimension.name();
                return Some(format!("facts lie at coordinate {most} of dimension '{name}', which has {count}"));
            }
        }
        let origins = self.origin.as_ref().and_then(|origin| match origin {
            CubeOrigin::Palo(origin) => Some(origin.dimensions.len()),
            CubeOrigin::Definition { .. } => None,
        });
        if let Some(found) = origins.filter(|&found| found != model.dimensions().len()) {
            return Some(format!("its origin has {found} dimensions, the model {}", model.dimensions().len()));
        }
        self.texts.iter().enumerate().find_map(|(number, cell)| {
            let problem = problem_of_text(model, cell)?;
            Some(format!("text cell {number} {problem}"))
        })
    }
}

/// The measures of a model's facts.
pub(super) fn fact_measures(model: &CubeModel) -> impl Iterator<Item = FactMeasure> {
    model.measures().iter().map(|Measure { name, rule, value, .. }| FactMeasure::new(name, *rule, *value))
}

fn problem_of_text(model: &CubeModel, cell: &TextCell) -> Option<String> {
    let (found, wanted) = (cell.elements.len(), model.dimensions().len());
    if found != wanted {
        return Some(format!("names {found} elements, the cube has {wanted} dimensions"));
    }
    let stranger = model.dimensions().iter().zip(&cell.elements).find(|(dimension, id)| dimension.get(**id).is_none());
    stranger.map(|(dimension, id)| {
        format!("names element number {} of dimension '{}', which does not live", id.index(), dimension.name())
    })
}
