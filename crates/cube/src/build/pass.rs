//! Dimensions and measures in the pass over the facts.

use super::BuildError;
use super::dimension::DimensionPlan;
use super::measures::MeasurePlan;
use super::resolve::Resolver;
use super::values::MeasureValues;
use crate::define::UnknownElements;
use crate::model::{CubeModel, Dimension};

/// What happens to a row without a base element in one dimension.
pub(super) enum Policy {
    Refuse,
    Aside,
    /// The row counts for this coordinate.
    Rename(u32),
}

/// A dimension in the pass.
pub(super) struct Keys<'a> {
    pub(super) plan: &'a DimensionPlan<'a>,
    pub(super) policy: Policy,
    pub(super) resolver: Resolver<'a>,
    /// Places of its columns in a batch.
    pub(super) columns: Vec<usize>,
    /// Rows that count for the element of [`Policy::Rename`].
    pub(super) rows_renamed: u64,
}

/// A measure in the pass.
pub(super) struct Column<'a> {
    pub(super) plan: &'a MeasurePlan,
    /// Place of its column in a batch.
    pub(super) place: Option<usize>,
    pub(super) values: MeasureValues,
}

/// The columns that the cube reads, each once.
pub(super) fn selected<'a>(plans: &'a [DimensionPlan<'_>], measures: &'a [MeasurePlan]) -> Vec<&'a str> {
    let mut selected: Vec<&str> = Vec::new();
    let of_dimensions = plans.iter().flat_map(|plan| &plan.columns);
    for column in of_dimensions.chain(measures.iter().filter_map(|measure| measure.column.as_ref())) {
        if !selected.contains(&column.as_str()) {
            selected.push(column);
        }
    }
    selected
}

fn position(selected: &[&str], column: &str) -> usize {
    selected.iter().position(|held| *held == column).expect("columns of plans are selected")
}

/// The dimensions of a model in the pass.
pub(super) fn keys<'a>(
    model: &'a CubeModel,
    plans: &'a [DimensionPlan<'a>],
    selected: &[&str],
) -> Result<Vec<Keys<'a>>, BuildError> {
    let of_plan = |(plan, dimension): (&'a DimensionPlan<'a>, &'a Dimension)| {
        let policy = match &plan.unknown {
            UnknownElements::Refuse | UnknownElements::Add => Policy::Refuse,
            UnknownElements::Aside => Policy::Aside,
            // Without rows that need it the element may not exist.
            UnknownElements::Named(name) | UnknownElements::AddNamed(name) => match dimension.find_of_source(name) {
                None => Policy::Refuse,
                Some(id) => dimension.element(id).base().map_or(Policy::Refuse, Policy::Rename),
            },
        };
        let columns = plan.columns.iter().map(|column| position(selected, column)).collect();
        let resolver = Resolver::new(dimension, &plan.form, &plan.reserved);
        Ok(Keys { plan, policy, resolver, columns, rows_renamed: 0 })
    };
    plans.iter().zip(model.dimensions()).map(of_plan).collect()
}

impl<'a> Column<'a> {
    /// The measure of a plan.
    pub(super) fn new(plan: &'a MeasurePlan, selected: &[&str]) -> Column<'a> {
        let place = plan.column.as_ref().map(|column| position(selected, column));
        Column { plan, place, values: MeasureValues::new(plan.measure.rule, plan.measure.value, plan.style) }
    }
}
