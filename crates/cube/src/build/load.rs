//! The pass over the facts: columns become coordinates and values, rows go to the loader, aside or into an error.

use arrow::array::RecordBatch;
use rayon::prelude::*;

use super::BuildError;
use super::dimension::DimensionPlan;
use super::measures::MeasurePlan;
use super::pass::{Column, Keys, Policy, keys, selected};
use super::problem::FIRST;
use super::refuse::{Refusals, place};
use super::report::{Aside, BuildReport, OtherCase};
use super::set_aside::SetAside;
use super::source::Source;
use super::values::retain;
use crate::define::UnknownElements;
use crate::facts::{Facts, FactsError, Loader, PAGE_CELLS, ValueType};
use crate::model::CubeModel;
use crate::progress::Progress;
use crate::view::decimal_text;

/// The pass over the facts.
struct Pass<'a> {
    model: &'a CubeModel,
    keys: Vec<Keys<'a>>,
    columns: Vec<Column<'a>>,
    /// Rows with NaN or infinity are kept aside, not refused.
    keeps_not_finite: bool,
    loader: Loader,
    refusals: Refusals,
    aside: SetAside,
    report: BuildReport,
}

/// Loads the facts of a cube whose model is complete.
pub(super) fn load(
    model: &CubeModel,
    plans: &[DimensionPlan<'_>],
    measures: &[MeasurePlan],
    unknown: &UnknownElements,
    facts: &Source<'_>,
    progress: &Progress,
) -> Result<(Facts, Aside, BuildReport), BuildError> {
    let selected = selected(plans, measures);
    let mut rows = facts.select(&selected)?;
    let mut pass = Pass {
        model,
        keys: keys(model, plans, &selected)?,
        columns: measures.iter().map(|plan| Column::new(plan, &selected)).collect(),
        keeps_not_finite: *unknown == UnknownElements::Aside,
        loader: Loader::new(model.layout().clone(), measures.iter().map(MeasurePlan::fact_measure).collect()),
        refusals: Refusals::new(plans.len(), measures.len()),
        aside: SetAside::default(),
        report: BuildReport::default(),
    };
    let schema = rows.written_schema();
    while let Some(batch) = rows.next() {
        let batch = batch?;
        pass.batch(&batch, rows.written().unwrap_or(&batch))?;
        progress.add(batch.num_rows() as u64);
    }
    pass.finish(schema)
}

impl Pass<'_> {
    /// Adds a batch, whose rows are kept aside as they are `written`.
    fn batch(&mut self, batch: &RecordBatch, written: &RecordBatch) -> Result<(), BuildError> {
        let before = self.report.rows;
        self.report.rows += batch.num_rows() as u64;
        self.read(batch, before)?;
        let mut kept = vec![true; batch.num_rows()];
        self.place_rows(batch, before, &mut kept);
        if kept.contains(&false) {
            let refused_any = self.refusals.any();
            if !refused_any {
                self.aside.add(written, &kept, &self.keys, &self.columns)?;
            }
            self.keys.iter_mut().for_each(|keys| retain(&mut keys.resolver.codes, &kept));
            self.columns.iter_mut().for_each(|column| column.values.keep(&kept));
        }
        // After a refusal the rest is read to count what else is refused.
        if self.refusals.any() {
            return Ok(());
        }
        self.count_empty();
        let coordinates: Vec<&[u32]> = self.keys.iter().map(|keys| keys.resolver.codes.as_slice()).collect();
        let values: Vec<_> = self.columns.iter().map(|column| column.values.input()).collect();
        Ok(self.loader.append(&coordinates, &values)?)
    }

    /// Reads all columns of a batch.
    fn read(&mut self, batch: &RecordBatch, before: u64) -> Result<(), BuildError> {
        let Pass { keys, columns, .. } = self;
        let (of_keys, of_values) = rayon::join(
            || keys.par_iter_mut().map(|keys| keys.resolver.resolve(batch, &keys.columns)).collect::<Result<(), _>>(),
            || {
                let read = columns.par_iter_mut().map(|column| {
                    let array = column.place.map(|place| batch.column(place));
                    column.values.read(array).map_err(|misfit| (column.place.unwrap_or_default(), misfit))
                });
                read.collect::<Vec<Result<(), _>>>()
            },
        );
        of_keys.map_err(|source| BuildError::Arrow { what: "reading keys", source })?;
        // The first row that does not fit, and in it the first measure.
        let first = of_values.into_iter().enumerate().filter_map(|(measure, read)| Some((measure, read.err()?)));
        let Some((measure, (column, misfit))) = first.min_by_key(|(measure, (_, misfit))| (misfit.row, *measure))
        else {
            return Ok(());
        };
        let plan = self.columns[measure].plan;
        let value = super::keys::value_text(batch.column(column), misfit.row).unwrap_or_default();
        Err(BuildError::Value {
            measure: plan.measure.name.clone(),
            column: plan.column.clone().unwrap_or_default(),
            value,
            row: Box::new(place(batch, &self.keys, misfit.row, before)),
            problem: misfit.problem,
        })
    }

    /// Decides about rows without a base element and rows with NaN or infinity; unmarks those that make no cell.
    fn place_rows(&mut self, batch: &RecordBatch, before: u64, kept: &mut [bool]) {
        let (mut renamed, mut other_case) = (Vec::new(), Vec::new());
        for at in 0..self.keys.len() {
            if self.keys[at].resolver.codes.iter().all(|code| *code < FIRST) {
                continue;
            }
            for (row, kept) in kept.iter_mut().enumerate() {
                let code = self.keys[at].resolver.codes[row];
                if code < FIRST {
                    continue;
                }
                if let Some(base) = self.keys[at].resolver.base_of(code) {
                    self.keys[at].resolver.codes[row] = base;
                    other_case.push((at, row, code));
                    continue;
                }
                self.keys[at].resolver.problems.count(code);
                match self.keys[at].policy {
                    Policy::Rename(base) => {
                        self.keys[at].resolver.codes[row] = base;
                        renamed.push((at, row));
                    }
                    Policy::Aside => *kept = false,
                    Policy::Refuse => {
                        *kept = false;
                        self.refusals.key(at, || place(batch, &self.keys, row, before));
                    }
                }
            }
        }
        for (at, column) in self.columns.iter().enumerate() {
            for &row in &column.values.not_finite {
                kept[row] = false;
                if !self.keeps_not_finite {
                    let place = || place(batch, &self.keys, row, before);
                    self.refusals.value(at, batch.column(column.place.unwrap_or_default()), row, place);
                }
            }
        }
        // Rows that another dimension or a value keeps aside count for no element.
        for (at, _) in renamed.into_iter().filter(|(_, row)| kept[*row]) {
            self.keys[at].rows_renamed += 1;
        }
        for (at, _, code) in other_case.into_iter().filter(|(_, row, _)| kept[*row]) {
            self.keys[at].resolver.problems.count(code);
        }
    }

    /// Counts rows without a value of any measure.
    fn count_empty(&mut self) {
        let rows = self.keys.first().map_or(0, |keys| keys.resolver.codes.len());
        let may_be_empty = !self.columns.iter().any(|column| column.values.has_no_empty());
        let is_empty = |row: &usize| self.columns.iter().all(|column| column.values.is_empty_at(*row));
        let empty = if may_be_empty { (0..rows).filter(is_empty).count() } else { 0 };
        self.report.rows_empty += empty as u64;
        self.report.rows_loaded += (rows - empty) as u64;
    }

    fn finish(self, schema: arrow::datatypes::SchemaRef) -> Result<(Facts, Aside, BuildReport), BuildError> {
        if self.refusals.any() {
            return Err(BuildError::Refused(Box::new(self.refusals.finish(&self.keys, &self.columns, self.model))));
        }
        let Pass { model, keys, columns, loader, aside, mut report, .. } = self;
        let facts = loader.finish(PAGE_CELLS).map_err(|error| overflow(error, model))?;
        let aside = aside.finish(&schema);
        report.rows_aside = aside.rows();
        report.cells = facts.len() as u64;
        let renamed = keys.iter().filter(|keys| keys.rows_renamed > 0);
        report.rows_renamed = renamed.map(|keys| (keys.plan.name.to_owned(), keys.rows_renamed)).collect();
        report.other_case = keys.iter().filter_map(other_case).collect();
        let rounded = columns.iter().filter(|column| column.values.rounded > 0);
        report.values_rounded =
            rounded.map(|column| (column.plan.measure.name.clone(), column.values.rounded)).collect();
        Ok((facts, aside, report))
    }
}

/// Rows that name elements of a dimension in another case.
fn other_case(keys: &Keys<'_>) -> Option<OtherCase> {
    let (names, rows): (Vec<_>, Vec<_>) = keys.resolver.problems.other_case().unzip();
    OtherCase::of(keys.plan.name, None, names.iter().map(ToString::to_string).collect(), rows.iter().sum())
}

/// An overflow of a cell with the names of its elements and the sum with its point; other errors as they are.
fn overflow(error: FactsError, model: &CubeModel) -> BuildError {
    let FactsError::Overflow { cell, measure, sum, limit } = error else { return error.into() };
    let element = |(dimension, base): (&crate::model::Dimension, &u32)| {
        let name = dimension.at_base(*base).map_or_else(String::new, |id| dimension.element(id).name().to_owned());
        format!("{} {name}", dimension.name())
    };
    let value = model.measure_index(&measure).map(|at| model.measures()[at].value);
    let (sum, limit) = match value {
        Some(ValueType::Decimal { scale }) => {
            let sum = sum.parse::<i128>().map_or(sum, |units| decimal_text(units, scale));
            (sum, format!("{}, the largest decimal({scale})", decimal_text(i64::MAX.into(), scale)))
        }
        _ => (sum, limit.to_owned()),
    };
    BuildError::Overflow { cell: model.dimensions().iter().zip(&cell).map(element).collect(), measure, sum, limit }
}
