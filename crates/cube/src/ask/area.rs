//! The area of a bound query: the weights of base elements in its targets, dimension by dimension.

use super::error::CubeError;
use crate::aggregate::{AggregateError, Area, TargetMap};
use crate::facts::{Rule, ValueType};
use crate::model::{CubeModel, Dimension, ElementId};
use crate::query::{BoundPlace, BoundTable, CubeAxis, Target};
use crate::view::decimal_text;

/// An area with the targets it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Targets of each dimension in the order of the cube, of which those of an axis keep the query's order.
    pub targets: Vec<Vec<Target>>,
    /// Measures by position, in the query's order.
    pub measures: Vec<usize>,
    /// Their weights.
    pub area: Area,
}

/// The area of a cross-tab.
///
/// # Errors
/// Weights that leave the range of doubles; more targets of a dimension than 2³².
pub fn asked(model: &CubeModel, table: &BoundTable) -> Result<Asked, CubeError> {
    let sets = table.rows.iter().chain(&table.columns).chain(&table.pages);
    let of_sets = sets.map(|set| (set.axis, set.targets.clone()));
    of_axes(model, of_sets.chain(of_point(&table.point)))
}

/// The area of a point: one target of each dimension.
///
/// # Errors
/// As [`asked`].
pub fn asked_at(model: &CubeModel, point: &[BoundPlace]) -> Result<Asked, CubeError> {
    of_axes(model, of_point(point))
}

fn of_point(point: &[BoundPlace]) -> impl Iterator<Item = (CubeAxis, Vec<Target>)> {
    point.iter().map(|place| (place.axis, vec![place.target.clone()]))
}

fn of_axes(model: &CubeModel, axes: impl Iterator<Item = (CubeAxis, Vec<Target>)>) -> Result<Asked, CubeError> {
    let mut targets = vec![Vec::new(); model.dimensions().len()];
    let mut measures = Vec::new();
    for (axis, places) in axes {
        match axis {
            CubeAxis::Dimension(position) => targets[position] = places,
            CubeAxis::Measures => measures = places.iter().filter_map(Target::measure).collect(),
        }
    }
    let maps = model.dimensions().iter().zip(&targets).map(|(dimension, targets)| map(dimension, targets));
    let mut area = Area::new(maps.collect::<Result<_, _>>()?);
    for &measure in &measures {
        let Some(over) = &model.measures()[measure].over else { continue };
        let Some(position) = model.dimension_index(&over.dimension) else { continue };
        let parts: Vec<_> = targets[position].iter().map(parts).collect();
        let balances = model.dimensions()[position].balance_map(&parts, over.span)?;
        let map = TargetMap::from_matrix(balances.by_base);
        let with_map = map.and_then(|map| area.with_measure_map(measure, position, map));
        area = with_map.map_err(CubeError::Aggregate)?;
    }
    Ok(Asked { targets, measures, area })
}

/// The map of a dimension's targets.
fn map(dimension: &Dimension, targets: &[Target]) -> Result<TargetMap, CubeError> {
    let elements: Option<Vec<ElementId>> = targets.iter().map(Target::element).collect();
    let map = match elements {
        Some(elements) => dimension.base_map(&elements)?,
        None => dimension.base_map_of_sums(&targets.iter().map(parts).collect::<Vec<_>>())?,
    };
    TargetMap::from_matrix(map.by_base).map_err(CubeError::Aggregate)
}

/// The elements that a target adds up.
fn parts(target: &Target) -> Vec<(ElementId, f64)> {
    let part = |element: &ElementId| (*element, 1.0);
    match target {
        Target::Element(element) => vec![part(element)],
        Target::Sum(elements) => elements.iter().map(part).collect(),
        Target::Measure(_) => Vec::new(),
    }
}

/// The position of each base element by its coordinate; of removed ones 0.
pub(crate) fn positions(dimension: &Dimension) -> Vec<u32> {
    let position = |base| dimension.at_base(base).map_or(0, |element| dimension.position(element));
    (0..dimension.base_count() as u32).map(position).collect()
}

impl CubeError {
    /// An error of an aggregation, with names in the place of numbers.
    pub fn aggregate(error: AggregateError, model: &CubeModel, asked: &Asked) -> CubeError {
        let AggregateError::Overflow { target, measure, value, limit } = error else {
            return CubeError::Aggregate(error);
        };
        let names = target.iter().zip(&asked.targets).zip(model.dimensions());
        let names = names.map(|((target, targets), dimension)| match &targets[*target as usize] {
            Target::Element(element) => dimension.element(*element).name().to_string(),
            _ => format!("a sum over {}", dimension.name()),
        });
        let cell = names.collect::<Vec<_>>().join(", ");
        let scale = model.measure_index(&measure).map(|position| &model.measures()[position]);
        let scale = scale.filter(|measure| measure.rule != Rule::Count).and_then(|measure| match measure.value {
            ValueType::Decimal { scale } => Some(scale),
            ValueType::Double => None,
        });
        match scale {
            Some(scale) => CubeError::Overflow {
                value: scaled(&value, scale),
                limit: format!("{}, the largest decimal({scale})", decimal_text(i64::MAX.into(), scale)),
                cell,
                measure,
            },
            None => CubeError::Overflow { cell, measure, value, limit: limit.to_string() },
        }
    }
}

/// A number of units of 10^-`scale`, as text, as the number itself.
fn scaled(units: &str, scale: u8) -> String {
    match (units.parse::<i128>(), units.parse::<f64>()) {
        (Ok(units), _) => decimal_text(units, scale),
        (_, Ok(units)) => format!("{:e}", units / 10_f64.powi(scale.into())),
        _ => units.to_string(),
    }
}
