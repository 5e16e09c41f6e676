//! Binding: names of a query become elements of a cube ([`super::find`] has the rules of single names). The measures of
//! a cube are one more axis, named `Measures`; its elements are not summed.

use std::cell::RefCell;

use super::find::{Binder, CubeAxis, MEASURES, Named};
use super::{
    Axis, CrossTab, Direction, ElementName, Extreme, Filter, Literal, Place, Point, Query, QueryError, Selection, Set,
    Span, Term,
};
use crate::model::{Attribute, AttributeKind, CubeModel, Dimension, ElementId, ElementKind, nearest};

/// Why an element is no measure: of functions, of ranges.
const NO_ELEMENTS_BELOW: &str = "measures have no elements below them";
const NO_RANGES: &str = "measures have no ranges; list them";

/// A place on an axis of a cube.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// An element of the dimension.
    Element(ElementId),
    /// The sum of elements of the dimension; an element may stand in it several times.
    Sum(Vec<ElementId>),
    /// A measure, by its position.
    Measure(usize),
}

impl Target {
    /// The element, if it is one.
    pub fn element(&self) -> Option<ElementId> {
        match self {
            Target::Element(element) => Some(*element),
            _ => None,
        }
    }

    /// The measure's position, if it is one.
    pub fn measure(&self) -> Option<usize> {
        match self {
            Target::Measure(position) => Some(*position),
            _ => None,
        }
    }
}

/// A set with its elements found.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundSet {
    /// The axis that all of its targets lie on.
    pub axis: CubeAxis,
    /// Its targets in the order of the query.
    pub targets: Vec<Target>,
}

/// A cross-tab with its elements found. Each axis of the cube stands once in rows, columns, pages or the point.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundTable {
    /// Sets laid out downwards.
    pub rows: Vec<BoundSet>,
    /// Sets laid out to the right.
    pub columns: Vec<BoundSet>,
    /// Sets of which each combination is a table of its own.
    pub pages: Vec<BoundSet>,
    /// The places of all other axes, in the order of the cube.
    pub point: Vec<BoundPlace>,
    /// Only the rows of the largest or smallest values.
    pub extreme: Option<BoundExtreme>,
    /// Rows and columns without a filled cell are shown.
    pub shows_empty: bool,
}

/// The rows of the largest or smallest values, with the column found that ranks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundExtreme {
    /// Which end.
    pub direction: Direction,
    /// How many rows of each page.
    pub count: u64,
    /// Sets of the columns by position, each with the position of its target. The first column that has these targets
    /// ranks the rows.
    pub by: Vec<(usize, usize)>,
}

/// The place of an axis in a point.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundPlace {
    /// The axis.
    pub axis: CubeAxis,
    /// The place.
    pub target: Target,
    /// True if the query does not name it.
    pub is_default: bool,
}

/// A query with its elements found.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundQuery {
    /// See [`Query::CrossTab`].
    CrossTab(BoundTable),
    /// See [`Query::Facts`].
    Facts(Vec<BoundPlace>),
    /// See [`Query::Source`].
    Source(Vec<BoundPlace>),
    /// See [`Query::Explain`].
    Explain(Vec<BoundPlace>),
    /// See [`Query::Nearest`].
    Nearest {
        /// How many.
        count: u64,
        /// The cell they are near to.
        to: Vec<BoundPlace>,
    },
}

/// Finds the elements that a query names. `text` is its source text.
///
/// # Errors
/// Names that are unknown (with the nearest), ambiguous (with the candidates) or of a second dimension in one set;
/// dimensions that stand twice; attributes that the dimension has not, or of another kind than the literal; points of
/// [`Query::Nearest`] that are no base cell; dimensions without elements.
pub fn bind(model: &CubeModel, query: &Query, text: &str) -> Result<BoundQuery, QueryError> {
    bind_with_warnings(model, query, text).map(|(bound, _)| bound)
}

/// As [`bind`], and warnings of names that stand for one of several elements of a level: the one that had the name
/// before the others came.
///
/// # Errors
/// As [`bind`].
pub fn bind_with_warnings(
    model: &CubeModel,
    query: &Query,
    text: &str,
) -> Result<(BoundQuery, Vec<String>), QueryError> {
    let binder = Binder { model, text, warnings: RefCell::default() };
    let bound = match query {
        Query::CrossTab(table) => BoundQuery::CrossTab(binder.table(table)?),
        Query::Facts(point) => BoundQuery::Facts(binder.whole_point(point)?),
        Query::Source(point) => BoundQuery::Source(binder.whole_point(point)?),
        Query::Explain(point) => BoundQuery::Explain(binder.whole_point(point)?),
        Query::Nearest { count, to } => BoundQuery::Nearest { count: *count, to: binder.base_point(to)? },
    };
    Ok((bound, binder.warnings.into_inner()))
}

impl Binder<'_> {
    fn table(&self, table: &CrossTab) -> Result<BoundTable, QueryError> {
        let mut taken = Vec::new();
        let rows = self.axis(&table.rows, &mut taken)?;
        let columns = self.axis(&table.columns, &mut taken)?;
        let pages = self.axis(&table.pages, &mut taken)?;
        let point = self.point(&table.point, &mut taken)?;
        let extreme =
            table.extreme.as_ref().map(|extreme| self.extreme(extreme, &rows, &columns, &point)).transpose()?;
        Ok(BoundTable { rows, columns, pages, point, extreme, shows_empty: table.shows_empty })
    }

    fn extreme(
        &self,
        extreme: &Extreme,
        rows: &[BoundSet],
        columns: &[BoundSet],
        point: &[BoundPlace],
    ) -> Result<BoundExtreme, QueryError> {
        if rows.is_empty() {
            let message = "top and bottom keep rows, and the query has none: name their elements with rows";
            return Err(self.error(extreme.span, message.to_string()));
        }
        if extreme.count == 0 {
            return Err(self.error(extreme.span, "top and bottom keep one row at least".to_string()));
        }
        let mut by: Vec<(usize, usize)> = Vec::new();
        for place in &extreme.by {
            let (axis, target, span) = self.single(place)?;
            // All columns have the places of the point.
            if point.iter().any(|held| held.axis == axis && held.target == target) {
                continue;
            }
            let set = columns.iter().position(|set| set.axis == axis);
            if set.is_some_and(|set| by.iter().any(|(held, _)| *held == set)) {
                return Err(self.error(span, format!("dimension {} stands here a second time", self.axis_name(axis))));
            }
            let found = set.and_then(|set| Some((set, columns[set].targets.iter().position(|held| *held == target)?)));
            by.push(found.ok_or_else(|| {
                let message = "no column has this; by names one of the columns of the query: add it to cols";
                self.error(span, message.to_string())
            })?);
        }
        Ok(BoundExtreme { direction: extreme.direction, count: extreme.count, by })
    }

    fn whole_point(&self, point: &Point) -> Result<Vec<BoundPlace>, QueryError> {
        self.point(point, &mut Vec::new())
    }

    /// The places of a point that is a base cell, of which distances are measured.
    fn base_point(&self, point: &Point) -> Result<Vec<BoundPlace>, QueryError> {
        let places = self.whole_point(point)?;
        for place in &places {
            let CubeAxis::Dimension(position) = place.axis else { continue };
            let dimension = &self.model.dimensions()[position];
            let message = match &place.target {
                Target::Element(element) if dimension.element(*element).kind() == ElementKind::Base => continue,
                Target::Element(element) => {
                    let (name, default) =
                        (dimension.element(*element).name(), if place.is_default { " (default)" } else { "" });
                    format!(
                        "{name}{default} is no base element of {0}, and a distance begins at one: name it",
                        dimension.name()
                    )
                }
                _ => format!("a sum over {} has no position: name a base element", dimension.name()),
            };
            return Err(self.error(self.span_of(point, place.axis), message));
        }
        Ok(places)
    }

    /// Where a point names an axis; the end of the query where it does not.
    fn span_of(&self, point: &Point, axis: CubeAxis) -> Span {
        let span = |place: &Place| match place {
            Place::Element(name) => (self.place(name), name.span),
            Place::Sum(set, span) => (self.set(set), *span),
        };
        let named = point.iter().map(span).find(|(bound, _)| bound.as_ref().is_ok_and(|bound| bound.axis == axis));
        named.map_or(self.end(), |(_, span)| span)
    }

    fn axis(&self, axis: &Axis, taken: &mut Vec<CubeAxis>) -> Result<Vec<BoundSet>, QueryError> {
        let bind = |set: &Set| {
            let bound = self.set(set)?;
            self.take(bound.axis, set[0].span, taken)?;
            Ok(bound)
        };
        axis.iter().map(bind).collect()
    }

    /// The places that are named, and the defaults of axes that no other part of the query names.
    fn point(&self, point: &Point, taken: &mut Vec<CubeAxis>) -> Result<Vec<BoundPlace>, QueryError> {
        let mut places = Vec::new();
        for place in point {
            let (axis, target, span) = self.single(place)?;
            self.take(axis, span, taken)?;
            places.push(BoundPlace { axis, target, is_default: false });
        }
        for (position, dimension) in self.model.dimensions().iter().enumerate() {
            let axis = CubeAxis::Dimension(position);
            if !taken.contains(&axis) {
                let element = dimension.default_element().ok_or_else(|| {
                    self.error(self.end(), format!("dimension {} has no elements yet", dimension.name()))
                })?;
                places.push(BoundPlace { axis, target: Target::Element(element), is_default: true });
            }
        }
        if !taken.contains(&CubeAxis::Measures) {
            places.push(BoundPlace { axis: CubeAxis::Measures, target: Target::Measure(0), is_default: true });
        }
        places.sort_by_key(|place| place.axis);
        Ok(places)
    }

    /// The one place that a part of a point names, and where.
    fn single(&self, place: &Place) -> Result<(CubeAxis, Target, Span), QueryError> {
        let (mut bound, span) = match place {
            Place::Element(name) => (self.place(name)?, name.span),
            Place::Sum(set, span) => {
                let bound = self.set(set)?;
                (BoundSet { targets: vec![self.sum(bound.targets, *span)?], ..bound }, *span)
            }
        };
        match (bound.targets.pop(), bound.targets.is_empty()) {
            (Some(target), true) => Ok((bound.axis, target, span)),
            _ => {
                let message = "a dimension stands for all of its elements, and a point has one of each: name it";
                Err(self.error(span, message.to_string()))
            }
        }
    }

    /// Notes that the query names an axis.
    fn take(&self, axis: CubeAxis, span: Span, taken: &mut Vec<CubeAxis>) -> Result<(), QueryError> {
        if taken.contains(&axis) {
            return Err(self.error(span, format!("dimension {} stands here a second time", self.axis_name(axis))));
        }
        taken.push(axis);
        Ok(())
    }

    fn set(&self, set: &Set) -> Result<BoundSet, QueryError> {
        let mut bound: Option<BoundSet> = None;
        for term in set {
            let (axis, targets) = self.term(term)?;
            match &mut bound {
                None => bound = Some(BoundSet { axis, targets }),
                Some(held) if held.axis == axis => held.targets.extend(targets),
                Some(held) => {
                    let (one, other) = (self.axis_name(held.axis), self.axis_name(axis));
                    let message = format!("this is of dimension {other}, and the set of {one}; sets are joined by *");
                    return Err(self.error(term.span, message));
                }
            }
        }
        bound.ok_or_else(|| self.error(self.end(), "a set needs an element".to_string()))
    }

    fn term(&self, term: &Term) -> Result<(CubeAxis, Vec<Target>), QueryError> {
        let (axis, targets) = self.selection(&term.selection, term.span)?;
        match (&term.filter, axis) {
            (None, _) => Ok((axis, targets)),
            (Some(filter), CubeAxis::Dimension(position)) => {
                let kept = self.filtered(&self.model.dimensions()[position], filter, targets, term.span)?;
                Ok((axis, kept))
            }
            (Some(_), CubeAxis::Measures) => Err(self.error(term.span, "measures have no attributes".to_string())),
        }
    }

    fn selection(&self, selection: &Selection, span: Span) -> Result<(CubeAxis, Vec<Target>), QueryError> {
        let below = |name: &ElementName, elements: &dyn Fn(&Dimension, ElementId) -> Vec<ElementId>| {
            let (position, element) = self.element(name, NO_ELEMENTS_BELOW)?;
            let found = elements(&self.model.dimensions()[position], element);
            Ok((CubeAxis::Dimension(position), found.into_iter().map(Target::Element).collect()))
        };
        match selection {
            Selection::Name(name) => match self.axis_named(name) {
                Some(axis) => Ok((axis, self.nested(axis))),
                None => {
                    let BoundSet { axis, targets } = self.place(name)?;
                    Ok((axis, targets))
                }
            },
            Selection::Range(first, last) => {
                let ((position, from), (other, to)) = (self.element(first, NO_RANGES)?, self.element(last, NO_RANGES)?);
                if position != other {
                    let message = "the two ends of a range are of one dimension".to_string();
                    return Err(self.error(span, message));
                }
                let dimension = &self.model.dimensions()[position];
                let (from, to) = (dimension.position(from) as usize, dimension.position(to) as usize);
                if from > to {
                    let message = format!("{last} stands before {first} in {}", dimension.name());
                    return Err(self.error(span, message));
                }
                let elements = &dimension.elements()[from..=to];
                Ok((CubeAxis::Dimension(position), elements.iter().copied().map(Target::Element).collect()))
            }
            Selection::Children(name, depth) => {
                below(name, &|dimension, element| dimension.children_at(element, *depth as usize))
            }
            Selection::Descendants(name, depth) => below(name, &|dimension, element| match depth {
                None => dimension.descendants(element),
                Some(depth) => dimension.descendants_within(element, *depth as usize),
            }),
            Selection::Leaves(name) if self.is_measures(name) => Ok((CubeAxis::Measures, self.all(CubeAxis::Measures))),
            Selection::Leaves(name) => match self.named(name) {
                Ok(Named::Axis(_)) => {
                    let message =
                        format!("leaves() is of an element, and {name} is a dimension: write level({name}, 0)");
                    Err(self.error(name.span, message))
                }
                _ => below(name, &Dimension::leaves),
            },
            Selection::Level(name, level) => match self.axis_named(name) {
                Some(axis @ CubeAxis::Dimension(position)) => {
                    let elements = self.model.dimensions()[position].of_level(*level);
                    Ok((axis, elements.into_iter().map(Target::Element).collect()))
                }
                Some(axis @ CubeAxis::Measures) if *level == 0 => Ok((axis, self.all(axis))),
                Some(CubeAxis::Measures) => Err(self.error(name.span, "measures have level 0 alone".to_string())),
                None => {
                    let near = nearest(&name.name, self.model.dimensions().iter().map(Dimension::name));
                    let message = format!("{name} is no dimension{near}; level(dimension, number)");
                    Err(self.error(name.span, message))
                }
            },
            Selection::Sum(set) => {
                let bound = self.set(set)?;
                Ok((bound.axis, vec![self.sum(bound.targets, span)?]))
            }
        }
    }

    /// The target that a name stands for; of a dimension all of its elements.
    fn place(&self, name: &ElementName) -> Result<BoundSet, QueryError> {
        Ok(match self.named(name)? {
            Named::Element(position, element) => {
                BoundSet { axis: CubeAxis::Dimension(position), targets: vec![Target::Element(element)] }
            }
            Named::Measure(position) => BoundSet { axis: CubeAxis::Measures, targets: vec![Target::Measure(position)] },
            Named::Axis(axis) => BoundSet { axis, targets: self.all(axis) },
        })
    }

    /// One target of several.
    fn sum(&self, targets: Vec<Target>, span: Span) -> Result<Target, QueryError> {
        let mut parts = Vec::new();
        for target in targets {
            match target {
                Target::Element(element) => parts.push(element),
                Target::Sum(elements) => parts.extend(elements),
                Target::Measure(_) => return Err(self.error(span, "measures are not summed".to_string())),
            }
        }
        Ok(Target::Sum(parts))
    }

    fn all(&self, axis: CubeAxis) -> Vec<Target> {
        match axis {
            CubeAxis::Dimension(position) => {
                self.model.dimensions()[position].elements().iter().copied().map(Target::Element).collect()
            }
            CubeAxis::Measures => (0..self.model.measures().len()).map(Target::Measure).collect(),
        }
    }

    /// All places of an axis as they are listed: elements beside those that they are part of.
    fn nested(&self, axis: CubeAxis) -> Vec<Target> {
        match axis {
            CubeAxis::Dimension(position) => {
                self.model.dimensions()[position].nested().into_iter().map(Target::Element).collect()
            }
            CubeAxis::Measures => self.all(axis),
        }
    }

    /// The targets whose attribute satisfies a filter; an element without the attribute does not. Numbers are compared
    /// with numbers, texts with the literal as it is written, character by character.
    fn filtered(
        &self,
        dimension: &Dimension,
        filter: &Filter,
        targets: Vec<Target>,
        span: Span,
    ) -> Result<Vec<Target>, QueryError> {
        let Filter { attribute, comparison, literal } = filter;
        let Some(column) = dimension.attribute_column(attribute) else {
            let names = dimension.attributes().iter().map(|column| column.name.as_str());
            let message =
                format!("dimension {} has no attribute {attribute}{}", dimension.name(), nearest(attribute, names));
            return Err(self.error(span, message));
        };
        if let (AttributeKind::Number, Literal::Text(text)) = (dimension.attributes()[column].kind, literal) {
            let message =
                format!("the attribute {attribute} holds numbers: it is compared with one, not with {text:?}");
            return Err(self.error(span, message));
        }
        let holds = |element: ElementId| match (dimension.attribute(element, attribute), literal) {
            (Some(Attribute::Number(value)), Literal::Number(wanted, _)) => {
                value.partial_cmp(wanted).is_some_and(|order| comparison.holds(order))
            }
            (Some(Attribute::Text(value)), Literal::Text(wanted) | Literal::Number(_, wanted)) => {
                comparison.holds(value.as_str().cmp(wanted))
            }
            _ => false,
        };
        let keeps = |target: &Target| match target {
            Target::Element(element) => Ok(holds(*element)),
            _ => Err(self.error(span, "a sum has no attributes; the filter belongs to its parts".to_string())),
        };
        let mut kept = Vec::new();
        for target in targets {
            if keeps(&target)? {
                kept.push(target);
            }
        }
        Ok(kept)
    }

    pub(super) fn axis_name(&self, axis: CubeAxis) -> &str {
        match axis {
            CubeAxis::Dimension(position) => self.model.dimensions()[position].name(),
            CubeAxis::Measures => MEASURES,
        }
    }

    pub(super) fn end(&self) -> Span {
        Span { start: self.text.len(), end: self.text.len() }
    }
}
