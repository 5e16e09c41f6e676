//! Refused facts: the first row of each dimension and measure, and counts of all of them.

use arrow::array::{ArrayRef, RecordBatch};

use super::error::{Refused, RefusedKeys, RefusedValues, RowPlace};
use super::form::Form;
use super::keys::value_text;
use super::pass::{Column, Keys, Policy};
use super::problem::Problem;
use crate::define::{DatePattern, UnknownElements};
use crate::error::Nearest;
use crate::model::{CubeModel, Dimension, ElementKind, folded, nearest};

/// Refused values of a dimension that an error lists.
const LISTED_MAX: usize = 5;

/// Refused rows so far.
pub(super) struct Refusals {
    /// The first refused row of each dimension.
    keys: Vec<Option<RowPlace>>,
    /// Of each measure: the first refused value, the row, and the number of rows.
    values: Vec<Option<(String, RowPlace, u64)>>,
}

impl Refusals {
    pub(super) fn new(dimensions: usize, measures: usize) -> Refusals {
        Refusals { keys: vec![None; dimensions], values: vec![None; measures] }
    }

    /// True if a row was refused.
    pub(super) fn any(&self) -> bool {
        self.keys.iter().any(Option::is_some) || self.values.iter().any(Option::is_some)
    }

    /// Notes a row that names no base element of a dimension.
    pub(super) fn key(&mut self, dimension: usize, place: impl FnOnce() -> RowPlace) {
        self.keys[dimension].get_or_insert_with(place);
    }

    /// Notes a row whose value is NaN or infinite.
    pub(super) fn value(&mut self, measure: usize, array: &ArrayRef, row: usize, place: impl FnOnce() -> RowPlace) {
        let text = || value_text(array, row).unwrap_or_default();
        self.values[measure].get_or_insert_with(|| (text(), place(), 0)).2 += 1;
    }

    /// All that was refused.
    pub(super) fn finish(self, keys: &[Keys<'_>], columns: &[Column<'_>], model: &CubeModel) -> Refused {
        let of_keys = keys.iter().zip(model.dimensions()).zip(self.keys);
        let of_values = columns.iter().zip(self.values);
        let values = of_values.filter_map(|(column, refused)| {
            let (value, first, rows) = refused?;
            let (measure, column) = (column.plan.measure.name.clone(), column.plan.column.clone().unwrap_or_default());
            Some(RefusedValues { measure, column, value, rows, first })
        });
        Refused {
            keys: of_keys
                .filter_map(|((keys, dimension), first)| Some(of_dimension(keys, dimension, first?)))
                .collect(),
            values: values.collect(),
        }
    }
}

fn of_dimension(keys: &Keys<'_>, dimension: &Dimension, first: RowPlace) -> RefusedKeys {
    debug_assert!(matches!(keys.policy, Policy::Refuse));
    let problems: Vec<(&Problem, u64)> = keys.resolver.problems.counted().collect();
    let listed = &problems[..problems.len().min(LISTED_MAX)];
    let rest = &problems[listed.len()..];
    let named = listed.iter().find_map(|(problem, _)| problem.key());
    RefusedKeys {
        dimension: dimension.name().to_owned(),
        columns: keys.plan.columns.clone(),
        problems: listed.iter().map(|(problem, rows)| (problem.to_string(), *rows)).collect(),
        more: (rest.len() as u64, rest.iter().map(|(_, rows)| rows).sum()),
        first,
        nearest: named.map_or_else(Nearest::default, |name| near(dimension, name)),
        remedy: remedy(keys, &problems, dimension),
    }
}

/// Names of base elements near to a name that the facts have.
fn near(dimension: &Dimension, name: &str) -> Nearest {
    let bases = dimension.elements().iter().map(|id| dimension.element(*id));
    let bases = bases.filter(|element| element.kind() == ElementKind::Base);
    let names =
        bases.flat_map(|element| std::iter::once(element.name()).chain(element.aliases().iter().map(String::as_str)));
    let Nearest(mut names) = nearest(name, names);
    names.retain(|near| folded(near) != folded(name));
    Nearest(names)
}

/// The repair, as text for the error.
fn remedy(keys: &Keys<'_>, problems: &[(&Problem, u64)], dimension: &Dimension) -> String {
    let captioned = problems.iter().find_map(|(problem, _)| match problem {
        Problem::Unknown(name) => Some((name, dimension.find(name).ok()?)),
        _ => None,
    });
    if let Some((caption, id)) = captioned {
        let key = dimension.element(id).name();
        return format!("'{caption}' is the caption of '{key}', and facts name elements by their keys");
    }
    let texts = problems.iter().filter_map(|(problem, _)| match (problem, &keys.plan.form) {
        (Problem::Unknown(text), Form::Time { .. }) => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    let patterns = DatePattern::of_texts(&texts);
    if let Some(text) = texts.iter().find(|text| patterns.iter().any(|pattern| pattern.parse(text).is_some())) {
        let column = &keys.plan.columns[0];
        let types: Vec<String> =
            patterns.iter().map(|pattern| format!("types: {{{column}: date({pattern})}}")).collect();
        return format!("Dates are written as 2026-03-31: for '{text}' write {}", types.join(" or "));
    }
    let several = problems.iter().any(|(problem, _)| matches!(problem, Problem::Several(..)));
    if several {
        return "Name the full names in a column of the facts, or derive the levels from columns of the facts: leave \
                table out"
            .to_owned();
    }
    if problems.iter().any(|(problem, _)| matches!(problem, Problem::Case(..))) {
        return "Write one of the names in the facts, or in the dimension unknown: aside (the rows are kept aside) or \
                unknown: add (the name gets an element of its own)"
            .to_owned();
    }
    let only_known = !problems.iter().any(|(problem, _)| matches!(problem, Problem::Unknown(_)));
    let added = if only_known { "" } else { "unknown: add (the elements are added), " };
    match keys.plan.unknown {
        UnknownElements::Add => {
            "unknown: add can name no element for these rows; write unknown: aside (they are kept aside), or the name \
             of a base element they count for"
                .to_owned()
        }
        _ => format!(
            "To go on, write in the dimension unknown: aside (the rows are kept aside), {added}or unknown: with the \
             name of a base element they count for"
        ),
    }
}

/// The place of a row, with the columns that name its elements.
pub(super) fn place(batch: &RecordBatch, keys: &[Keys<'_>], row: usize, before: u64) -> RowPlace {
    let columns = keys.iter().flat_map(|keys| keys.plan.columns.iter().zip(&keys.columns));
    let value = |(name, column): (&String, &usize)| {
        let value = value_text(batch.column(*column), row).unwrap_or_else(|| "NULL".to_owned());
        (name.clone(), value)
    };
    RowPlace { number: before + row as u64 + 1, keys: columns.map(value).collect() }
}
