//! Pipelines before they are planned: over what they scan, with what is known of the tables that they probe.

use crate::error::EngineError;
use crate::ir::{Fragment, Pipeline, Sink, Step};
use crate::plan::group_values::is_group;
use crate::plan::table::Unique;
use crate::plan::view::View;

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
pub(crate) fn over_output(pipeline: &Pipeline, scanned: &View<'_>) -> Pipeline {
    let mut pipeline = pipeline.shifted(scanned.columns.len());
    if scanned.has_entries {
        pipeline.steps.insert(0, Step::Filter(is_group()));
    }
    pipeline
}

pub(crate) fn malformed(pipeline: usize, what: &str) -> EngineError {
    EngineError::Malformed(format!("pipeline {pipeline} {what}"))
}
