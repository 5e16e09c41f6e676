//! The rows of the source behind cells.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};

use super::dimension::Plan;
use super::load::{Keys, Policy, keys};
use super::problem::FIRST;
use super::source::Source;
use super::{BuildError, Tables};
use crate::define::Definition;
use crate::model::CubeModel;
use crate::progress::Progress;

/// All columns of the rows of the facts whose elements lie among `bases`: coordinates of each dimension, ascending, or
/// nothing where every element counts. Rows count for the elements that a load gives them; those it keeps aside do not.
///
/// # Errors
/// [`BuildError`]: queries that fail, columns that are missing, a definition of other dimensions than the model's, a
/// wish to stop.
pub fn source_rows(
    definition: &Definition,
    model: &CubeModel,
    bases: &[Option<Vec<u32>>],
    tables: &dyn Tables,
    progress: &Progress,
) -> Result<RecordBatch, BuildError> {
    let source = Source::facts(&definition.facts, tables, progress)?;
    let plan = |(name, dimension)| Plan::new(name, dimension, &definition.unknown, &source);
    let plans = definition.dimensions.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
    let measures = super::MeasurePlan::all(definition, &source)?;
    super::check_same(model, &plans, &measures)?;
    let rows = source.all()?;
    let schema = rows.schema();
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut keys = keys(model, &plans, &columns)?;
    let mut found = Vec::new();
    for batch in rows {
        let batch = batch?;
        let wanted = wanted(&batch, &mut keys, bases)?;
        progress.add(batch.num_rows() as u64);
        let kept = filter_record_batch(&batch, &wanted);
        found.push(kept.map_err(|source| BuildError::Arrow { what: "choosing rows", source })?);
    }
    let schema = found.first().map_or(schema.clone(), RecordBatch::schema);
    concat_batches(&schema, &found).map_err(|source| BuildError::Arrow { what: "choosing rows", source })
}

/// Which rows of a batch lie among the coordinates.
fn wanted(batch: &RecordBatch, keys: &mut [Keys<'_>], bases: &[Option<Vec<u32>>]) -> Result<BooleanArray, BuildError> {
    let mut wanted = vec![true; batch.num_rows()];
    for (keys, bases) in keys.iter_mut().zip(bases) {
        let resolved = keys.resolver.resolve(batch, &keys.columns);
        resolved.map_err(|source| BuildError::Arrow { what: "reading keys", source })?;
        for (wanted, &code) in wanted.iter_mut().zip(&keys.resolver.codes) {
            let base = match &keys.policy {
                _ if code < FIRST => Some(code),
                Policy::Rename(base) => Some(*base),
                Policy::Aside | Policy::Refuse => None,
            };
            let is_there = |base: u32| bases.as_ref().is_none_or(|bases| bases.binary_search(&base).is_ok());
            *wanted = *wanted && base.is_some_and(is_there);
        }
    }
    Ok(wanted.into())
}
