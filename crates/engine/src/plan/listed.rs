//! The first rows of a join whose rows have several matches: in two pipelines.
//!
//! A top-k goes by numbers of rows, and a row of the scan that has several matches has none of its own. Binding, which
//! knows what tables have several rows for a key, then puts a list between the join and the top-k: one pipeline leaves
//! the keys and columns of each match, the other scans those.

use std::borrow::Cow;

use arrow::datatypes::DataType;

use crate::ir::{Expr, Fragment, JoinKind, OrderKey, Pipeline, Sink, Source, Step, TopK};

/// The fragment with a list before its top-k, if a row that comes to it may have several matches in a table of
/// `several`, a bit a pipeline.
pub(crate) fn with_list(fragment: &Fragment, several: u32) -> Cow<'_, Fragment> {
    let has_several = |step: &Step| match step {
        Step::Probe(probe) => {
            matches!(probe.kind, JoinKind::Inner | JoinKind::Left)
                && several.checked_shr(probe.build as u32).unwrap_or(0) & 1 != 0
        }
        Step::Filter(_) | Step::Limit { .. } => false,
    };
    let Some((Pipeline { source, steps, sink: Sink::TopK(top) }, others)) = fragment.pipelines.split_last() else {
        return Cow::Borrowed(fragment);
    };
    if !steps.iter().any(has_several) {
        return Cow::Borrowed(fragment);
    }
    let (columns, top) = listed(top);
    let list = Pipeline { source: *source, steps: steps.clone(), sink: Sink::Rows { columns, limit: None } };
    let root = Pipeline { source: Source::Output(others.len()), steps: Vec::new(), sink: Sink::TopK(top) };
    let pipelines = others.iter().cloned().chain([list, root]).collect();
    Cow::Owned(Fragment { pipelines, ..fragment.clone() })
}

/// What a top-k reads of each row as the columns of a list, and the top-k over those.
fn listed(top: &TopK) -> (Vec<(Expr, DataType)>, TopK) {
    let mut columns: Vec<(Expr, DataType)> = Vec::new();
    let mut column = |expr: &Expr, data_type: &DataType| {
        let is_same = |(known, _): &(Expr, DataType)| match (known, expr) {
            (Expr::Reg(known), Expr::Reg(register)) => known == register,
            _ => false,
        };
        let at = columns.iter().position(is_same).unwrap_or_else(|| {
            columns.push((expr.clone(), data_type.clone()));
            columns.len() - 1
        });
        Expr::Reg(at)
    };
    let keys =
        top.keys.iter().map(|key| OrderKey { expr: column(&key.expr, &DataType::Null), ..key.clone() }).collect();
    let outputs = top.outputs.iter().map(|(expr, data_type)| (column(expr, data_type), data_type.clone())).collect();
    (columns, TopK { keys, outputs, ..top.clone() })
}
