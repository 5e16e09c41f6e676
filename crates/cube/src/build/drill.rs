//! The rows of the source behind cells.

use std::cell::RefCell;
use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Float64Type};

use super::dimension::{DimensionPlan, spared};
use super::measures::MeasurePlan;
use super::pass::{Keys, Policy, keys};
use super::source::{Reading, Source};
use super::typed::texts;
use super::values;
use super::{BuildError, Tables};
use crate::define::Definition;
use crate::model::{CubeModel, Rule};
use crate::progress::Progress;

/// All columns of the rows of the facts that have a value of a measure and whose elements lie among `bases`:
/// coordinates of each dimension, ascending, or nothing where every element counts. Rows belong to the elements that a
/// load gives them; rows that a load keeps aside do not count. There is at least one batch, which has the columns.
///
/// # Errors
/// [`BuildError`]: queries that fail, columns that are missing, a definition of other dimensions than the model's, a
/// wish to stop.
pub fn source_rows(
    definition: &Definition,
    model: &CubeModel,
    (bases, measure): (&[Option<Vec<u32>>], usize),
    tables: &dyn Tables,
    progress: &Progress,
) -> Result<Vec<RecordBatch>, BuildError> {
    let (text, met) = (definition.text(), RefCell::new(HashSet::new()));
    let mut source = Source::facts(definition, Reading { tables, progress, text: &text, met: &met })?;
    let plan = |(name, dimension)| DimensionPlan::new(name, dimension, &definition.unknown, &source);
    let plans = definition.dimensions.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    source.spare(spared(&plans));
    let measures = MeasurePlan::all(definition, &source)?;
    super::check_same(model, &plans, &measures)?;
    let rows = source.all()?;
    let schema = rows.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut keys = keys(model, &plans, &columns)?;
    let mut found = Vec::new();
    for batch in rows {
        let batch = batch?;
        let mut wanted = wanted(&batch, &mut keys, bases)?;
        of_measure(&batch, &columns, &measures, measure, &mut wanted)?;
        let wanted = BooleanArray::from(wanted);
        progress.add(batch.num_rows() as u64);
        let kept = filter_record_batch(&batch, &wanted);
        let kept = kept.map_err(|source| BuildError::Arrow { what: "choosing rows", source })?;
        if kept.num_rows() > 0 {
            found.push(kept);
        }
    }
    if found.is_empty() {
        found.push(RecordBatch::new_empty(schema));
    }
    Ok(found)
}

/// Which rows of a batch lie among the coordinates.
fn wanted(batch: &RecordBatch, keys: &mut [Keys<'_>], bases: &[Option<Vec<u32>>]) -> Result<Vec<bool>, BuildError> {
    let mut wanted = vec![true; batch.num_rows()];
    for (keys, bases) in keys.iter_mut().zip(bases) {
        let resolved = keys.resolver.resolve(batch, &keys.columns);
        resolved.map_err(|source| BuildError::Arrow { what: "reading keys", source })?;
        for (wanted, &code) in wanted.iter_mut().zip(&keys.resolver.codes) {
            let base = keys.resolver.base_of(code).or(match &keys.policy {
                Policy::Rename(base) => Some(*base),
                Policy::Aside | Policy::Refuse => None,
            });
            let is_there = |base: u32| bases.as_ref().is_none_or(|bases| bases.binary_search(&base).is_ok());
            *wanted = *wanted && base.is_some_and(is_there);
        }
    }
    Ok(wanted)
}

/// Unmarks rows without a value of a measure, and those with NaN or infinity in any.
fn of_measure(
    batch: &RecordBatch,
    columns: &[&str],
    measures: &[MeasurePlan],
    measure: usize,
    wanted: &mut [bool],
) -> Result<(), BuildError> {
    for (at, plan) in measures.iter().enumerate() {
        let column = plan.column.as_ref().and_then(|column| columns.iter().position(|held| held == column));
        let Some(column) = column.map(|column| batch.column(column)) else { continue };
        if let Some(nulls) = column.logical_nulls().filter(|_| at == measure) {
            wanted.iter_mut().zip(&nulls).for_each(|(wanted, is_valid)| *wanted &= is_valid);
        }
        match (texts(column), plan.measure.rule) {
            (Some(texts), Rule::Count) if at == measure => values::unmark_blanks(&texts, wanted),
            (_, Rule::Count) => {}
            (Some(texts), _) => values::unmark_texts(&texts, plan.style, at == measure, wanted),
            (None, _) => unmark_not_finite(column, wanted)?,
        }
    }
    Ok(())
}

/// Unmarks rows with NaN or infinity.
fn unmark_not_finite(column: &ArrayRef, wanted: &mut [bool]) -> Result<(), BuildError> {
    let values = match column.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    if !values.is_floating() {
        return Ok(());
    }
    let doubles = cast(column, &DataType::Float64);
    let doubles = doubles.map_err(|source| BuildError::Arrow { what: "choosing rows", source })?;
    for (wanted, value) in wanted.iter_mut().zip(doubles.as_primitive::<Float64Type>()) {
        *wanted &= value.is_none_or(f64::is_finite);
    }
    Ok(())
}
