//! Pipelines before they are planned: over what they scan, with what is known of the tables that they probe.

use std::borrow::Cow;

use warpcube_column::Relation;

use crate::error::{EngineError, Result};
use crate::facts::Facts;
use crate::ir::{Fragment, Pipeline, Sink, Source, Step};
use crate::plan::group_values::is_group;
use crate::plan::input::{rows_out, unmatched_rows};
use crate::plan::order;
use crate::plan::table::{Tables, Unique};
use crate::plan::union::Member;
use crate::plan::view::{View, of_table};

/// A pipeline over what it scans, before it is planned.
pub(crate) struct Ready<'a> {
    pub(crate) scanned: View<'a>,
    /// As it is written: over the columns of an output, with tests of strings in the place of functions.
    pub(crate) pipeline: Cow<'a, Pipeline>,
    pub(crate) registers: Vec<Option<Facts>>,
    /// Rows of its scan.
    pub(crate) rows: u64,
    /// Most rows that come to its sink.
    rows_out: u64,
    /// Most of them that are none of a join with several matches; none if it has no such join.
    unmatched_rows: Option<u64>,
}

impl<'a> Ready<'a> {
    /// A pipeline of a fragment; `left` gives the view of what another one leaves, and its most rows.
    ///
    /// # Errors
    /// Malformed where it scans what is not there; those of `left`.
    pub(crate) fn of(
        fragment: &'a Fragment,
        index: usize,
        (tables, built): (&'a [Relation], &Tables),
        left: impl FnOnce(usize) -> Result<(View<'a>, u64)>,
    ) -> Result<Ready<'a>> {
        let pipeline = fragment.pipelines.get(index).ok_or_else(|| malformed(index, "is not there"))?;
        let (scanned, rows, pipeline) = match pipeline.source {
            Source::Table(table) => {
                let relation = tables.get(table).ok_or_else(|| malformed(index, &format!("scans table {table}")))?;
                let scanned = of_table(table, relation);
                let rows = scanned.rows();
                (scanned, rows, Cow::Borrowed(pipeline))
            }
            Source::Output(of) => {
                let (scanned, rows) = left(of)?;
                let pipeline = Cow::Owned(over_output(pipeline, &scanned));
                (scanned, rows, pipeline)
            }
        };
        let values = scanned.values.iter().map(|value| &value.facts);
        let columns: Vec<Facts> = scanned.columns.iter().map(|column| &column.facts).chain(values).cloned().collect();
        let registers = order::registers(&pipeline, &columns, built)?;
        let (rows_out, unmatched_rows) = (rows_out(&pipeline, rows, built), unmatched_rows(&pipeline, built));
        Ok(Ready { scanned, pipeline, registers, rows, rows_out, unmatched_rows })
    }

    /// Whether a register has strings without codes.
    pub(crate) fn has_texts(&self) -> bool {
        self.registers.iter().flatten().any(|facts| facts.texts.is_some())
    }

    /// The same as a branch of a union.
    pub(crate) fn member(&self) -> Member<'_> {
        let Ready { scanned, pipeline, registers, rows, rows_out, unmatched_rows } = self;
        let (columns, values) = (&scanned.columns, &scanned.values);
        let (rows, rows_out, unmatched_rows) = (*rows, *rows_out, *unmatched_rows);
        Member { sink: &pipeline.sink, registers, columns, values, rows, rows_out, unmatched_rows }
    }
}

/// Whether the keys of a pipeline's table are to be unique: where a probe takes payload or multiplies rows, until they
/// are known to come several times.
pub(crate) fn unique(fragment: &Fragment, build: usize, several: u32) -> Unique {
    if !matches!(fragment.pipelines[build].sink, Sink::Build { .. }) {
        return Unique::No;
    }
    let probes = fragment.pipelines.iter().flat_map(|pipeline| &pipeline.steps).filter_map(|step| match step {
        Step::Probe(probe) if probe.build == build => Some(probe),
        _ => None,
    });
    let joins: Vec<_> = probes.filter(|probe| probe.has_payload()).collect();
    match (joins.is_empty(), 1u32.checked_shl(build as u32)) {
        (true, _) => Unique::No,
        (_, Some(bit)) if joins.iter().all(|probe| !probe.unique) => {
            if several & bit != 0 {
                Unique::No
            } else {
                Unique::Guessed(build)
            }
        }
        _ => Unique::Always,
    }
}

/// A pipeline that scans what another one leaves, over the columns of that: its registers come behind those, and places
/// without a row are left out.
fn over_output(pipeline: &Pipeline, scanned: &View<'_>) -> Pipeline {
    let mut pipeline = pipeline.shifted(scanned.columns.len());
    if scanned.has_entries {
        pipeline.steps.insert(0, Step::Filter(is_group()));
    }
    pipeline
}

pub(crate) fn malformed(pipeline: usize, what: &str) -> EngineError {
    EngineError::Malformed(format!("pipeline {pipeline} {what}"))
}
