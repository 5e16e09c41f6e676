//! Heads of rows, columns and pages.

use std::collections::{HashMap, HashSet};

use crate::model::{Attribute, CubeModel, Dimension, ElementId, NUMBER_FORMAT, NumberFormat};
use crate::query::{BoundPlace, BoundSet, CubeAxis, Target};
use crate::view::visible;

/// The head of a target in a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Caption of the element or measure; of a sum, those of its parts. Elements of a set that share a caption have
    /// their names too. Control characters are escaped.
    pub caption: String,
    /// Listed elements that it is shown below.
    pub indent: u32,
    /// How its cells are shown, if the element has a format of its own.
    pub format: Option<NumberFormat>,
}

/// Captions of a sum that are shown, if they tell it from others.
const PARTS_MAX: usize = 3;

/// The heads of a set's targets, in their order.
pub fn labels(model: &CubeModel, set: &BoundSet) -> Vec<Label> {
    match set.axis {
        CubeAxis::Measures => {
            let label = |target: &Target| label(&caption_of_measure(model, target), 0, None);
            set.targets.iter().map(label).collect()
        }
        CubeAxis::Dimension(position) => {
            let dimension = &model.dimensions()[position];
            let captions = captions(dimension, &set.targets).into_iter();
            let formats = set.targets.iter().map(|target| format_of(dimension, target));
            let heads = captions.zip(indents(dimension, &set.targets)).zip(formats);
            heads.map(|((caption, indent), format)| label(&caption, indent, format)).collect()
        }
    }
}

fn label(caption: &str, indent: u32, format: Option<NumberFormat>) -> Label {
    Label { caption: visible(caption).into_owned(), indent, format }
}

/// The number format of an element: its attribute [`NUMBER_FORMAT`], unless that is no format.
fn format_of(dimension: &Dimension, target: &Target) -> Option<NumberFormat> {
    match dimension.attribute(target.element()?, NUMBER_FORMAT)? {
        Attribute::Text(pattern) => pattern.parse().ok(),
        Attribute::Number(_) => None,
    }
}

/// The number format of a point: that of the first dimension whose element has one.
pub(crate) fn place_format(model: &CubeModel, point: &[BoundPlace]) -> Option<NumberFormat> {
    point.iter().find_map(|place| match place.axis {
        CubeAxis::Dimension(position) => format_of(&model.dimensions()[position], &place.target),
        CubeAxis::Measures => None,
    })
}

/// The indent of each target: below the elements that it is part of, in lists with totals first or totals last. Levels
/// alone would place a base element beside a group below the group before it.
fn indents(dimension: &Dimension, targets: &[Target]) -> Vec<u32> {
    let totals_first = nested(dimension, targets.iter());
    let mut totals_last = nested(dimension, targets.iter().rev());
    totals_last.reverse();
    let depth = |indents: &[u32]| indents.iter().map(|indent| u64::from(*indent)).sum::<u64>();
    if depth(&totals_last) > depth(&totals_first) { totals_last } else { totals_first }
}

/// For each target the number of targets before it that it is part of, without another list between them.
fn nested<'a>(dimension: &Dimension, targets: impl Iterator<Item = &'a Target>) -> Vec<u32> {
    let mut above: Vec<ElementId> = Vec::new();
    let indent = |target: &Target| {
        let Some(element) = target.element() else {
            above.clear();
            return 0;
        };
        while above.last().is_some_and(|last| !dimension.is_part(element, *last)) {
            above.pop();
        }
        above.push(element);
        above.len() as u32 - 1
    };
    targets.map(indent).collect()
}

/// The text of one place, which tells its elements from all others of their dimension.
pub(super) fn heading(model: &CubeModel, axis: CubeAxis, target: &Target) -> String {
    let CubeAxis::Dimension(position) = axis else { return visible(&caption_of_measure(model, target)).into_owned() };
    let dimension = &model.dimensions()[position];
    let name = |element| {
        let caption = dimension.element(element).caption();
        let is_only = dimension.matches(caption).elements == [element];
        if is_only { caption.to_string() } else { long_caption(dimension, element) }
    };
    visible(&text_of(target, PARTS_MAX, name)).into_owned()
}

/// The caption of an element with its name: the name alone if it ends with the caption, as paths do.
fn long_caption(dimension: &Dimension, element: ElementId) -> String {
    let element = dimension.element(element);
    let (name, caption) = (element.name(), element.caption());
    if name.ends_with(caption) { name.to_string() } else { format!("{caption} ({name})") }
}

fn caption_of_measure(model: &CubeModel, target: &Target) -> String {
    target.measure().map_or(String::new(), |measure| model.measures()[measure].name.clone())
}

fn caption(dimension: &Dimension, target: &Target) -> String {
    text_of(target, PARTS_MAX, |element| dimension.element(element).caption())
}

/// The captions of a set's targets; of different ones with one caption, all parts of sums, and names of elements.
fn captions(dimension: &Dimension, targets: &[Target]) -> Vec<String> {
    let long = |target: &Target| match target {
        Target::Element(element) => long_caption(dimension, *element),
        _ => text_of(target, usize::MAX, |element| dimension.element(element).name()),
    };
    distinct(targets, |target| caption(dimension, target), long)
}

/// The names of targets of a dimension; of a sum, those of its first parts, and of all where sums differ later.
pub fn target_names(dimension: &Dimension, targets: &[Target]) -> Vec<String> {
    let name = |target: &Target, parts_max| text_of(target, parts_max, |element| dimension.element(element).name());
    distinct(targets, |target| name(target, PARTS_MAX), |target| name(target, usize::MAX))
}

/// Short texts of targets, and long ones where different targets have the same short one.
fn distinct(targets: &[Target], short: impl Fn(&Target) -> String, long: impl Fn(&Target) -> String) -> Vec<String> {
    let texts: Vec<String> = targets.iter().map(short).collect();
    let (mut first, mut shared) = (HashMap::new(), HashSet::new());
    for (text, target) in texts.iter().zip(targets) {
        if *first.entry(text.as_str()).or_insert(target) != target {
            shared.insert(text.as_str());
        }
    }
    let text = |(text, target): (&String, &Target)| match shared.contains(text.as_str()) {
        true => long(target),
        false => text.clone(),
    };
    texts.iter().zip(targets).map(text).collect()
}

/// The name of a target of a dimension; of a sum, those of its first parts.
pub fn target_name(dimension: &Dimension, target: &Target) -> String {
    text_of(target, PARTS_MAX, |element| dimension.element(element).name())
}

fn text_of<T: Into<String>>(target: &Target, parts_max: usize, name: impl Fn(ElementId) -> T) -> String {
    match target {
        Target::Element(element) => name(*element).into(),
        Target::Measure(_) => String::new(),
        Target::Sum(elements) => {
            let shown: Vec<String> = elements.iter().take(parts_max).map(|element| name(*element).into()).collect();
            let more = elements.len() - shown.len();
            match more {
                0 => format!("sum of {}", shown.join(", ")),
                _ => format!("sum of {} and {more} more", shown.join(", ")),
            }
        }
    }
}
