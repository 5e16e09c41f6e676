//! What stands at the head of a row, column or page.

use crate::model::{CubeModel, Dimension, ElementId};
use crate::query::{BoundSet, CubeAxis, Target};

/// The head of a target in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Caption of the element or measure; of a sum, those of its parts.
    pub caption: String,
    /// Levels below the highest element of the set.
    pub indent: u32,
}

/// Captions of a sum that are shown.
const PARTS_MAX: usize = 3;

/// The heads of a set's targets, in their order.
pub fn labels(model: &CubeModel, set: &BoundSet) -> Vec<Label> {
    match set.axis {
        CubeAxis::Measures => {
            let label = |target: &Target| Label { caption: caption_of_measure(model, target), indent: 0 };
            set.targets.iter().map(label).collect()
        }
        CubeAxis::Dimension(position) => {
            let dimension = &model.dimensions()[position];
            let level = |target: &Target| target.element().map(|element| dimension.level(element));
            let highest = set.targets.iter().filter_map(level).max().unwrap_or(0);
            let label = |target: &Target| Label {
                caption: caption(dimension, target),
                indent: level(target).map_or(0, |level| highest - level),
            };
            set.targets.iter().map(label).collect()
        }
    }
}

/// The head of one place.
pub(super) fn caption_at(model: &CubeModel, axis: CubeAxis, target: &Target) -> String {
    match axis {
        CubeAxis::Measures => caption_of_measure(model, target),
        CubeAxis::Dimension(position) => caption(&model.dimensions()[position], target),
    }
}

fn caption_of_measure(model: &CubeModel, target: &Target) -> String {
    target.measure().map_or(String::new(), |measure| model.measures()[measure].name.clone())
}

fn caption(dimension: &Dimension, target: &Target) -> String {
    text_of(target, |element| dimension.element(element).caption())
}

/// The name of a target of a dimension; of a sum, those of its parts.
pub fn target_name(dimension: &Dimension, target: &Target) -> String {
    text_of(target, |element| dimension.element(element).name())
}

fn text_of<'a>(target: &Target, name: impl Fn(ElementId) -> &'a str) -> String {
    match target {
        Target::Element(element) => name(*element).to_string(),
        Target::Measure(_) => String::new(),
        Target::Sum(elements) => {
            let shown: Vec<&str> = elements.iter().take(PARTS_MAX).map(|element| name(*element)).collect();
            let more = elements.len() - shown.len();
            match more {
                0 => format!("sum of {}", shown.join(", ")),
                _ => format!("sum of {} and {more} more", shown.join(", ")),
            }
        }
    }
}
