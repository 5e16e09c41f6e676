//! Groups of the interpreter: what aggregates have seen, and their results.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use warpcube_engine::{AggregateCall, AggregateKind, FloatSum, Fragment, Overflow, Pipeline, Sink, Source, Step, Ty};

use super::interpret::{Raised, Typed, order, within};
use super::scalar::Scalar;

pub(super) type Groups = BTreeMap<Vec<String>, (Vec<Option<Scalar>>, Vec<State>)>;

/// What an aggregate has seen.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    count: i128,
    value: Option<Scalar>,
    exact: FloatSum,
}

impl State {
    pub(super) fn take(&mut self, call: &AggregateCall, argument: Option<Typed>) {
        let Some((ty, value)) = argument else {
            self.count += 1;
            return;
        };
        let Some(value) = value else { return };
        self.count += 1;
        if call.kind == AggregateKind::ExactSum {
            self.exact.add(value.float());
            self.value = Some(Scalar::Float(self.exact.value()));
            return;
        }
        self.meet(call, value, ty.is_float());
    }

    /// Takes what another one of the same aggregate has seen.
    pub(super) fn unite(&mut self, call: &AggregateCall, other: &State) {
        self.count += other.count;
        self.exact.merge(&other.exact);
        let Some(value) = other.value.clone() else { return };
        match call.kind {
            AggregateKind::ExactSum => self.value = Some(Scalar::Float(self.exact.value())),
            _ => self.meet(call, value.clone(), matches!(value, Scalar::Float(_))),
        }
    }

    fn meet(&mut self, call: &AggregateCall, value: Scalar, is_float: bool) {
        self.value = Some(match (self.value.take(), call.kind) {
            (None, _) => value,
            (Some(old), AggregateKind::Sum) if is_float => Scalar::Float(old.float() + value.float()),
            (Some(old), AggregateKind::Sum) => Scalar::Int(old.int() + value.int()),
            (Some(old), AggregateKind::Min) => {
                if order(&value, &old).is_lt() {
                    value
                } else {
                    old
                }
            }
            (Some(old), _) => {
                if order(&value, &old).is_gt() {
                    value
                } else {
                    old
                }
            }
        });
    }

    pub(super) fn result(self, call: &AggregateCall, rule: Overflow) -> Result<Option<Scalar>, Raised> {
        Ok(match (call.kind, &call.data_type) {
            (AggregateKind::Count, _) => Some(Scalar::Int(self.count)),
            (AggregateKind::Sum, DataType::UInt64) => self.value.map(|v| within(Ty::U64, v.int(), rule)).transpose()?,
            (AggregateKind::Sum, DataType::Int64) => self.value.map(|v| within(Ty::I64, v.int(), rule)).transpose()?,
            _ => self.value,
        })
    }
}

/// Whether a pipeline's table or groups are probed.
pub(super) fn is_probed(fragment: &Fragment, pipeline: usize) -> bool {
    let mut steps = fragment.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    steps.any(|step| matches!(step, Step::Probe(probe) if probe.build == pipeline))
}

/// Whether aggregates of a pipeline are read by what unites them: their own totals raise nothing.
pub(super) fn is_united(fragment: &Fragment, pipeline: usize) -> bool {
    let mut readers = fragment.pipelines.iter().filter(|other| other.source == Source::Output(pipeline));
    readers.any(|reader| match &reader.sink {
        Sink::Aggregate { aggregates, .. } => aggregates.iter().any(|call| call.unites),
        _ => false,
    })
}

pub(super) fn finish(
    pipeline: &Pipeline,
    mut groups: Groups,
    rule: Overflow,
) -> Result<Vec<Vec<Option<Scalar>>>, Raised> {
    let (by, aggregates): (&[_], &[_]) = match &pipeline.sink {
        Sink::Aggregate { groups, aggregates } => (groups, aggregates),
        Sink::Rows { columns, .. } => (columns, &[]),
        Sink::TopK(top) => (&top.outputs, &[]),
        _ => panic!("the root gives rows"),
    };
    if by.is_empty() && groups.is_empty() && matches!(pipeline.sink, Sink::Aggregate { .. }) {
        groups.insert(Vec::new(), (Vec::new(), vec![State::default(); aggregates.len()]));
    }
    let row = |(values, states): (Vec<Option<Scalar>>, Vec<State>)| {
        let results = states.into_iter().zip(aggregates).map(|(state, call)| state.result(call, rule));
        values.into_iter().map(Ok).chain(results).collect()
    };
    groups.into_values().map(row).collect()
}
