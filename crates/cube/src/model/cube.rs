//! The model of a cube: its dimensions, measures and key layout.

use warpcube_arrays::key::{DIMENSIONS_MAX, KeyLayout};

use super::layout::layout_of;
use super::names::folded;
use super::{Change, Dimension, Effect, ElementKind, Measure};
use crate::error::{ModelError, Result};

/// Version of the stored form that is written and read.
pub const MODEL_VERSION: u64 = 1;

/// A cube without its facts.
///
/// Invariants: 1 to [`DIMENSIONS_MAX`] dimensions and at least one measure, names unique, case ignored; the layout
/// holds every coordinate of every dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct CubeModel {
    pub(super) name: String,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) measures: Vec<Measure>,
    pub(super) layout: KeyLayout,
}

/// The effect of a change on a cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubeEffect {
    /// The effect on the dimension.
    pub effect: Effect,
    /// True if the key layout was replaced: stored keys are to be packed anew.
    pub repacked: bool,
}

impl CubeModel {
    /// A cube of these dimensions and measures.
    ///
    /// # Errors
    /// [`ModelError::DimensionCount`], [`ModelError::NoMeasure`], [`ModelError::DuplicatePart`],
    /// [`ModelError::EmptyName`], [`ModelError::Measure`], [`ModelError::WeightSum`], [`ModelError::KeyTooWide`].
    pub fn new(name: &str, dimensions: Vec<Dimension>, measures: Vec<Measure>) -> Result<Self> {
        check(name, &dimensions, &measures)?;
        dimensions.iter().try_for_each(Dimension::check_weights)?;
        let layout = layout_of(dimensions.iter().map(|d| (d.name(), d.base_count())))?;
        Ok(Self { name: name.to_owned(), dimensions, measures, layout })
    }

    /// Its dimensions.
    pub(crate) fn into_dimensions(self) -> Vec<Dimension> {
        self.dimensions
    }

    /// Name of the cube.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Dimensions in the order of the key.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Position of a dimension by name, case ignored.
    pub fn dimension_index(&self, name: &str) -> Option<usize> {
        let wanted = folded(name);
        self.dimensions.iter().position(|dimension| folded(dimension.name()) == wanted)
    }

    /// Measures in their order.
    pub fn measures(&self) -> &[Measure] {
        &self.measures
    }

    /// Position of a measure by name, case ignored.
    pub fn measure_index(&self, name: &str) -> Option<usize> {
        let wanted = folded(name);
        self.measures.iter().position(|measure| folded(&measure.name) == wanted)
    }

    /// Layout of cell keys.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// Applies a change to one dimension, given by its position. `filled` tells whether facts lie at a coordinate of
    /// that dimension. A base element that its dimension's bits cannot address gets the cube a new layout.
    ///
    /// # Errors
    /// Those of [`Dimension::apply`]; [`ModelError::KeyTooWide`]; the cube is then as before.
    ///
    /// # Panics
    /// If the cube has no such dimension.
    pub fn apply(&mut self, dimension: usize, change: Change, filled: &dyn Fn(u32) -> bool) -> Result<CubeEffect> {
        let adds_base = matches!(change, Change::Add { kind: ElementKind::Base, .. });
        let wanted = self.dimensions[dimension].base_count() + usize::from(adds_base);
        let wider = if self.layout.holds(dimension, wanted) { None } else { Some(self.widened(dimension, wanted)?) };
        let effect = self.dimensions[dimension].apply(change, filled)?;
        let repacked = wider.is_some();
        if let Some(layout) = wider {
            self.layout = layout;
        }
        Ok(CubeEffect { effect, repacked })
    }

    fn widened(&self, dimension: usize, base_count: usize) -> Result<KeyLayout> {
        layout_of(self.dimensions.iter().enumerate().map(|(at, d)| {
            let count = if at == dimension { base_count } else { d.base_count() };
            (d.name(), count)
        }))
    }
}

/// Checks the invariants of a cube that do not lie within a dimension or the layout.
pub(super) fn check(name: &str, dimensions: &[Dimension], measures: &[Measure]) -> Result<()> {
    let cube = || name.to_owned();
    if name.is_empty() {
        return Err(ModelError::EmptyName { place: "the cube's definition".to_owned() });
    }
    let count = dimensions.len();
    if !(1..=DIMENSIONS_MAX).contains(&count) {
        return Err(ModelError::DimensionCount { cube: cube(), count });
    }
    if measures.is_empty() {
        return Err(ModelError::NoMeasure { cube: cube() });
    }
    let dimensions: Vec<&str> = dimensions.iter().map(Dimension::name).collect();
    let names: Vec<&str> = measures.iter().map(|measure| measure.name.as_str()).collect();
    for (what, names) in [("dimensions", &dimensions), ("measures", &names)] {
        if let Some(name) = repeated(names) {
            return Err(ModelError::DuplicatePart { cube: cube(), what, name: name.to_owned() });
        }
        if names.contains(&"") {
            return Err(ModelError::EmptyName { place: format!("the {what} of cube '{name}'") });
        }
    }
    for measure in measures {
        if let Some(problem) = measure.problem(&dimensions) {
            return Err(ModelError::Measure { cube: cube(), measure: measure.name.clone(), problem });
        }
    }
    Ok(())
}

/// The first name that another before it equals, case ignored.
fn repeated<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.iter().copied().find(|name| !seen.insert(folded(name)))
}
