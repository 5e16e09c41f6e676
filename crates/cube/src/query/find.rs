//! Names: the dimension, element or measure that a name of a query or change stands for.
//!
//! A name without a dimension is looked up in all of them: one that is unique is found, one that several dimensions
//! have is refused with the candidates. A name that is both a dimension and an element is the dimension in a set, and
//! the element in a point and within functions; `dimension:element` is always the element.

use std::cell::RefCell;

use super::{ElementName, QueryError, Span};
use crate::error::{ModelError, Nearest};
use crate::model::{CubeModel, Dimension, ElementId, NameMatches, nearest};

/// The name by which queries call the axis of measures.
pub const MEASURES: &str = "Measures";

/// Names of other elements that errors and warnings list.
const NEAR_MAX: usize = 5;
/// Why a measure is no element of a change.
const NO_CHANGES: &str = "measures are those of the definition, and are not changed";

/// An axis of a cube's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CubeAxis {
    /// A dimension, by its position.
    Dimension(usize),
    /// The measures.
    Measures,
}

/// The model and text in which names are bound.
pub(super) struct Binder<'a> {
    pub(super) model: &'a CubeModel,
    pub(super) text: &'a str,
    /// Warnings of names that stand for one of several elements.
    pub(super) warnings: RefCell<Vec<String>>,
}

/// The object that a name stands for.
pub(super) enum Named {
    Element(usize, ElementId),
    Measure(usize),
    Axis(CubeAxis),
}

/// The dimension, by its position, and the element that a name of `text` stands for.
pub(crate) fn find_element(
    model: &CubeModel,
    text: &str,
    name: &ElementName,
) -> Result<(usize, ElementId), QueryError> {
    Binder { model, text, warnings: RefCell::default() }.element(name, NO_CHANGES)
}

/// The position of the dimension of this name; `span` is where `text` has it.
pub(crate) fn find_dimension(model: &CubeModel, text: &str, name: &str, span: Span) -> Result<usize, QueryError> {
    let binder = Binder { model, text, warnings: RefCell::default() };
    model.dimension_index(name).ok_or_else(|| match name.eq_ignore_ascii_case(MEASURES) {
        true => binder.error(span, NO_CHANGES.to_string()),
        false => binder.no_dimension(name, span),
    })
}

/// The warning of a name by which a dimension finds an element, though it is the value of other elements, too.
pub(crate) fn namesake_warning(dimension: &Dimension, found: ElementId, name: &str) -> Option<String> {
    let spelling = dimension.spelling_of(found, name);
    let displaced = dimension.displaced(spelling).iter().filter(|id| **id != found);
    let displaced: Vec<String> = displaced.map(|id| quoted(dimension.element(*id).name())).collect();
    if !displaced.is_empty() {
        let (found, by_hand) = (quoted(dimension.element(found).name()), displaced.join(", "));
        return Some(format!(
            "{name} stands for {found} of the source; a change had given the name to {by_hand}, which gets it again \
             once the source does not have it"
        ));
    }
    let others = dimension.namesakes(found, name);
    let text = |id: &ElementId| quoted(dimension.element(*id).name());
    let shown: Vec<String> = others.iter().take(NEAR_MAX).map(text).collect();
    let more = if others.len() > shown.len() { ", …" } else { "" };
    (!others.is_empty()).then(|| {
        let (found, others) = (text(&found), shown.join(", "));
        format!("{name} stands for {found}, which had the name first; the source has it for {others}{more}, too")
    })
}

impl Binder<'_> {
    pub(super) fn error(&self, span: Span, message: String) -> QueryError {
        QueryError::new(self.text, span, message)
    }

    /// The axis of a bare name.
    pub(super) fn axis_named(&self, name: &ElementName) -> Option<CubeAxis> {
        if name.dimension.is_some() {
            return None;
        }
        let of_measures = || name.name.eq_ignore_ascii_case(MEASURES).then_some(CubeAxis::Measures);
        self.model.dimension_index(&name.name).map(CubeAxis::Dimension).or_else(of_measures)
    }

    /// The element of a name; `measures` says why a measure is none here.
    pub(super) fn element(&self, name: &ElementName, measures: &str) -> Result<(usize, ElementId), QueryError> {
        let message = match self.named(name)? {
            Named::Element(position, element) => return Ok((position, element)),
            Named::Measure(_) => format!("{name} is a measure: {measures}"),
            Named::Axis(CubeAxis::Measures) => format!("{name} are the measures: {measures}"),
            Named::Axis(CubeAxis::Dimension(position)) => {
                format!("{name} is a dimension; an element is expected here{}", self.example(position))
            }
        };
        Err(self.error(name.span, message))
    }

    /// An element of a dimension, as a query writes it: its default one.
    fn example(&self, position: usize) -> String {
        let dimension = &self.model.dimensions()[position];
        let of = |id: ElementId| format!(", as {}", quoted(dimension.element(id).name()));
        dimension.default_element().map_or_else(String::new, of)
    }

    /// True if a name is that of the axis of measures and of no element.
    pub(super) fn is_measures(&self, name: &ElementName) -> bool {
        matches!(self.named(name), Ok(Named::Axis(CubeAxis::Measures)))
    }

    pub(super) fn named(&self, name: &ElementName) -> Result<Named, QueryError> {
        match &name.dimension {
            Some(dimension) => self.named_within(dimension, name),
            None => self.named_alone(name),
        }
    }

    fn named_within(&self, dimension: &str, name: &ElementName) -> Result<Named, QueryError> {
        if let Some(position) = self.model.dimension_index(dimension) {
            let found = self.model.dimensions()[position].find(&name.name);
            return match found {
                Ok(element) => Ok(self.found(position, element, name)),
                Err(error) => Err(self.error(name.span, error.to_string())),
            };
        }
        if dimension.eq_ignore_ascii_case(MEASURES) {
            let names = self.model.measures().iter().map(|measure| measure.name.as_str());
            return self.model.measure_index(&name.name).map(Named::Measure).ok_or_else(|| {
                self.error(name.span, format!("no measure {}{}", name.name, nearest(&name.name, names)))
            });
        }
        Err(self.no_dimension(dimension, name.span))
    }

    /// The element that a name was found to stand for; keeps a warning if it is not the only one.
    fn found(&self, position: usize, element: ElementId, name: &ElementName) -> Named {
        let warning = namesake_warning(&self.model.dimensions()[position], element, &name.name);
        let mut warnings = self.warnings.borrow_mut();
        if let Some(warning) = warning.filter(|warning| !warnings.contains(warning)) {
            warnings.push(warning);
        }
        Named::Element(position, element)
    }

    fn no_dimension(&self, name: &str, span: Span) -> QueryError {
        let names = self.model.dimensions().iter().map(Dimension::name);
        self.error(span, format!("no dimension {name}{}", nearest(name, names)))
    }

    /// The object of a name without a dimension: an element or a measure before a dimension of the same name. Names to
    /// the letter count before those without regard to case, over all dimensions.
    fn named_alone(&self, name: &ElementName) -> Result<Named, QueryError> {
        let mut found = Vec::new();
        for (position, dimension) in self.model.dimensions().iter().enumerate() {
            let NameMatches { is_exact, elements } = dimension.matches(&name.name);
            let is_one = elements.len() == 1;
            found.extend(elements.into_iter().map(|element| {
                let shown = if is_one { &name.name } else { dimension.element(element).name() };
                let candidate = format!("{}:{}", quoted(dimension.name()), quoted(shown));
                (is_exact, candidate, Named::Element(position, element))
            }));
        }
        if let Some(position) = self.model.measure_index(&name.name) {
            let candidate = format!("{MEASURES}:{}", quoted(&name.name));
            found.push((self.model.measures()[position].name == name.name, candidate, Named::Measure(position)));
        }
        if found.iter().any(|(is_exact, ..)| *is_exact) {
            found.retain(|(is_exact, ..)| *is_exact);
        }
        match found.len() {
            1 => {
                return Ok(match found.remove(0).2 {
                    Named::Element(position, element) => self.found(position, element, name),
                    other => other,
                });
            }
            0 => {}
            _ => {
                // Names of one dimension that differ in case alone.
                let dimension = match &found[0].2 {
                    Named::Element(first, _) => {
                        let is_same = |named: &Named| matches!(named, Named::Element(other, _) if other == first);
                        found.iter().all(|(.., named)| is_same(named)).then(|| &self.model.dimensions()[*first])
                    }
                    _ => None,
                };
                if let Some(ambiguous) = dimension.and_then(|dimension| dimension.find(&name.name).err())
                    && matches!(ambiguous, ModelError::AmbiguousCase { .. })
                {
                    return Err(self.error(name.span, ambiguous.to_string()));
                }
                let candidates: Vec<String> = found.into_iter().map(|(_, candidate, _)| candidate).collect();
                let message = format!("{name} is several elements: {}", candidates.join(", "));
                return Err(self.error(name.span, message));
            }
        }
        if let Some(axis) = self.axis_named(name) {
            return Ok(Named::Axis(axis));
        }
        let near = self.model.dimensions().iter().flat_map(|dimension| {
            let Nearest(names) = nearest(&name.name, dimension.all_names());
            names.into_iter().map(|near| format!("{}:{}", quoted(dimension.name()), quoted(&near)))
        });
        let candidates: Vec<String> = near.take(NEAR_MAX).collect();
        let hint = if candidates.is_empty() { String::new() } else { format!("; near it: {}", candidates.join(", ")) };
        Err(self.error(name.span, format!("no dimension has an element {name}{hint}")))
    }
}

/// A name as a query writes it.
pub fn quoted(name: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '%');
    if !name.is_empty() && name.chars().all(is_word) {
        name.to_string()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
