//! Top-k row by row, and the comparison of a run with it.

use std::cmp::Ordering;

use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use warpcube_column::ColumnSource;
use warpcube_engine::{
    BindingCache, Engine, EngineError, Expr, Fragment, OrderKey, Pipeline, RunOptions, RunReport, Sink, Source, Step,
    TopK, TopKAlgorithm,
};

use super::check::{host_engine, requests, run};
use super::interpret::{Outcome, interpret, order};
use super::scalar::{Scalar, scalars};
use super::source::MemoryTable;
use super::windows;

/// A key in the order that SQL takes if nothing is said: NULL is largest.
pub fn ascending(expr: Expr) -> OrderKey {
    OrderKey { expr, descending: false, nulls_first: false }
}

/// The same, the largest first.
pub fn descending(expr: Expr) -> OrderKey {
    OrderKey { expr, descending: true, nulls_first: true }
}

/// The first `k` rows of a table, all its columns.
pub fn first_rows(table: &MemoryTable, steps: Vec<Step>, keys: Vec<OrderKey>, k: u64) -> Fragment {
    let schema = table.schema();
    let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let columns = types.len();
    let outputs = types.into_iter().enumerate().map(|(column, data_type)| (Expr::Reg(column), data_type)).collect();
    let sink = Sink::TopK(TopK { keys, k: Some(k), skip: 0, outputs, windows: vec![], first: None, algorithm: None });
    super::build::fragment(&[columns], vec![Pipeline { source: Source::Table(0), steps, sink }])
}

/// The fragment with a named algorithm.
pub fn by(mut fragment: Fragment, algorithm: TopKAlgorithm) -> Fragment {
    let Some(Sink::TopK(top)) = fragment.pipelines.last_mut().map(|root| &mut root.sink) else { panic!("no top-k") };
    top.algorithm = Some(algorithm);
    fragment
}

/// The rows that a fragment gives, in order; of equal ones those that come first in the table. Of groups no two may be
/// equal.
fn expected(fragment: &Fragment, tables: &[&MemoryTable]) -> Vec<Vec<Option<Scalar>>> {
    let mut all = fragment.clone();
    let root = all.pipelines.last_mut().expect("there is a root");
    let Sink::TopK(top) = root.sink.clone() else { panic!("no top-k") };
    let keys = top.keys.iter().map(|key| (key.expr.clone(), DataType::Null));
    root.sink = Sink::Rows { columns: keys.chain(top.outputs.iter().cloned()).collect(), limit: None };
    let Outcome::Rows(rows) = interpret(&all, tables) else { panic!("rows raise nothing") };
    ranked(rows, &top)
}

/// The first of rows of keys and outputs by an order, the outputs and the columns of windows alone.
pub(super) fn ranked(rows: Vec<Vec<Option<Scalar>>>, top: &TopK) -> Vec<Vec<Option<Scalar>>> {
    let mut ranked: Vec<_> =
        rows.into_iter().map(|mut row| (row.drain(..top.keys.len()).collect::<Vec<_>>(), row)).collect();
    let compare = |key: &OrderKey, left: &Option<Scalar>, right: &Option<Scalar>| match (left, right) {
        (Some(left), Some(right)) if key.descending => order(right, left),
        (Some(left), Some(right)) => order(left, right),
        (None, None) => Ordering::Equal,
        (None, _) => {
            if key.nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (_, None) => {
            if key.nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
    };
    ranked.sort_by(|(left, _), (right, _)| {
        let orders = top.keys.iter().zip(left.iter().zip(right)).map(|(key, (left, right))| compare(key, left, right));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    let of_windows = windows::columns(&ranked, top);
    let rows = ranked.into_iter().zip(of_windows).map(|((_, outputs), windows)| [outputs, windows].concat());
    rows.take(top.k.map_or(usize::MAX, |k| k as usize)).skip(top.skip as usize).collect()
}

/// Runs a fragment on an engine and compares rows and their order with those found row by row.
#[track_caller]
pub fn check_rows_on(engine: &Engine, fragment: &Fragment, table: &MemoryTable) -> RunReport {
    check_rows_of(engine, fragment, &[table])
}

/// [`check_rows_on`] for several tables.
#[track_caller]
pub fn check_rows_of(engine: &Engine, fragment: &Fragment, tables: &[&MemoryTable]) -> RunReport {
    let (cache, options) = (BindingCache::seeded(7), RunOptions::default());
    let expected = expected(fragment, tables);
    if std::env::var("HOST_ONLY").is_ok() {
        match run(&host_engine(), fragment, tables) {
            Err(EngineError::Unsupported(reason)) => eprintln!("REFUSED {reason}"),
            outcome => {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    compare_rows(&expected, &outcome.unwrap(), fragment)
                }));
                match done {
                    Ok(()) => eprintln!("TAKEN"),
                    Err(error) => {
                        let text = error.downcast_ref::<String>().cloned().unwrap_or_default();
                        eprintln!(
                            "HOSTFAIL {}",
                            text.lines().take(4).collect::<Vec<_>>().join(" | ").chars().take(900).collect::<String>()
                        )
                    }
                }
            }
        }
        return RunReport::default();
    }
    match run(&host_engine(), fragment, tables) {
        Err(EngineError::Unsupported(_)) => {}
        outcome => compare_rows(&expected, &outcome.unwrap(), fragment),
    }
    let outcome = engine.run_again(fragment, &cache, &requests(fragment, tables), &options).unwrap();
    compare_rows(&expected, &outcome, fragment);
    outcome.1
}

#[track_caller]
fn compare_rows(expected: &[Vec<Option<Scalar>>], (batch, report): &(RecordBatch, RunReport), fragment: &Fragment) {
    let columns: Vec<Vec<Option<Scalar>>> = batch.columns().iter().map(scalars).collect();
    assert_eq!(batch.num_rows(), expected.len(), "{:?}\n{fragment:#?}", report.top);
    for (row, expected) in expected.iter().enumerate() {
        let found: Vec<Option<Scalar>> = columns.iter().map(|column| column[row].clone()).collect();
        assert_eq!(
            format!("{found:?}"),
            format!("{expected:?}"),
            "row {row} of {}, {:?}\n{fragment:#?}",
            batch.num_rows(),
            report.top
        );
    }
}

/// [`check_rows_on`] for fragments whose programs are compiled together.
#[track_caller]
pub fn check_all_rows(engine: &Engine, fragments: &[Fragment], table: &MemoryTable) -> Vec<RunReport> {
    let run = |fragment| drop(run_again(engine, fragment, table, &BindingCache::seeded(7)));
    engine.device().rehearse(Some("fragment"), || fragments.iter().for_each(run));
    fragments.iter().map(|fragment| check_rows_on(engine, fragment, table)).collect()
}

/// Runs a fragment with a cache of its own.
pub fn run_again(
    engine: &Engine,
    fragment: &Fragment,
    table: &MemoryTable,
    cache: &BindingCache,
) -> Result<(RecordBatch, RunReport), EngineError> {
    engine.run_again(fragment, cache, &requests(fragment, &[table]), &RunOptions::default())
}

/// [`check_rows_on`] a fresh device, in three orders of lanes; the program must be one for GPUs too.
#[track_caller]
pub fn check_rows(fragment: &Fragment, table: &MemoryTable) -> RunReport {
    check_all_orders(fragment, &[table])
}

/// [`check_rows`] for several tables.
#[track_caller]
pub fn check_all_orders(fragment: &Fragment, tables: &[&MemoryTable]) -> RunReport {
    let mut reports = super::check::ORDERS.map(|order| check_rows_of(&super::check::engine(order), fragment, tables));
    reports[0].program().inspect(|program| super::nvrtc::compile_for_a_gpu(program));
    std::mem::take(&mut reports[0])
}
