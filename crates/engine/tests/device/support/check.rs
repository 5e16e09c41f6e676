//! Running fragments on the emulated device and comparing with the interpreter.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use warpcube_column::{ColumnError, ColumnSource, EncodingChoice, LoadLimits, TableRequest};
use warpcube_engine::{
    AggregateKind, BindingCache, Engine, EngineError, Fragment, Prediction, RunOptions, RunReport, Sink, TableFacts,
};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

use super::interpret::{Outcome, interpret};
use super::scalar::{Scalar, scalars};
use super::source::MemoryTable;

/// Device memory of a test in bytes.
const BUDGET: u64 = 512 << 20;
/// The orders that must not change an answer.
pub const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(7)];

/// True if the address sanitizer watches kernels. What they read does not depend on the order of lanes: one is enough.
pub fn is_sanitized() -> bool {
    EmulatorOptions::default().sanitize
}

/// An engine over a fresh emulated device.
pub fn engine(order: LaneOrder) -> Engine {
    let options = EmulatorOptions { order, ..EmulatorOptions::default() };
    Engine::new(Device::emulated(options, BUDGET).unwrap())
}

/// An engine over columns in host memory.
pub fn host_engine() -> Engine {
    Engine::new(Device::host(2, 1 << 40, BUDGET))
}

/// Runs a fragment over columns in host memory and compares with the interpreter; the reason if it is refused.
#[track_caller]
pub fn compare_on_host(fragment: &Fragment, tables: &[&MemoryTable]) -> Result<(), String> {
    let mut refused = None;
    let engine = host_engine();
    let outcome = engine.run(fragment, &requests(fragment, tables), &RunOptions::default());
    if let Err(EngineError::Unsupported(reason)) = &outcome {
        refused = Some(reason.clone());
    }
    match refused {
        Some(reason) => Err(reason),
        None => {
            compare_with(fragment, tables, |_| outcome);
            Ok(())
        }
    }
}

/// An engine whose launches scan a chunk each.
pub fn cut(order: LaneOrder) -> Engine {
    engine(order).with_tuning("launch_chunks=1,skip_rows=0".parse().unwrap())
}

/// What the engine is asked for.
pub fn requests(fragment: &Fragment, tables: &[&MemoryTable]) -> Vec<TableRequest> {
    let request = |(table, source): (usize, &&MemoryTable)| fragment.request(table, Arc::new((*source).clone()));
    tables.iter().enumerate().map(request).collect()
}

/// Runs a fragment.
pub fn run(
    engine: &Engine,
    fragment: &Fragment,
    tables: &[&MemoryTable],
) -> Result<(RecordBatch, RunReport), EngineError> {
    engine.run(fragment, &requests(fragment, tables), &RunOptions::default())
}

/// Has the programs of fragments compiled together, before they run one after the other.
pub fn rehearse(engine: &Engine, fragments: &[Fragment], tables: &[&MemoryTable]) {
    engine
        .device()
        .rehearse(Some("fragment"), || fragments.iter().for_each(|fragment| drop(run(engine, fragment, tables))));
}

/// Brings a table's columns to the device, column `i` in the encoding of choice `i`; runs find them there.
pub fn load(engine: &Engine, table: &MemoryTable, choices: &[EncodingChoice]) {
    for (column, encoding) in choices.iter().enumerate() {
        let request = TableRequest { source: Arc::new(table.clone()), columns: vec![column], coded: vec![column] };
        let limits = LoadLimits { encoding: *encoding, ..LoadLimits::default() };
        let pinned = engine.residency().admit(&[request], &limits, |_: &[_]| -> Result<u64, ColumnError> { Ok(0) });
        pinned.unwrap();
    }
}

/// What the engine knows of a fragment's tables before it loads them.
pub fn table_facts(fragment: &Fragment, tables: &[&MemoryTable]) -> Vec<TableFacts> {
    let facts = |(table, source): (&warpcube_engine::FragmentTable, &&MemoryTable)| {
        let schema = source.schema();
        let column = |index: &usize| (schema.field(*index).name().clone(), schema.field(*index).data_type().clone());
        TableFacts {
            key: source.key(),
            version: source.version(),
            rows: source.rows(),
            columns: table.columns.iter().map(column).collect(),
        }
    };
    fragment.tables.iter().zip(tables).map(facts).collect()
}

/// What is predicted for a fragment that was run once.
pub fn predicted_after_run(engine: &Engine, fragment: &Fragment, tables: &[&MemoryTable]) -> Prediction {
    let cache = BindingCache::default();
    engine.run_again(fragment, &cache, &requests(fragment, tables), &RunOptions::default()).unwrap();
    engine.predict(fragment, &cache, &table_facts(fragment, tables))
}

/// Runs a fragment forward and compares; the report is for further questions.
#[track_caller]
pub fn check(fragment: &Fragment, tables: &[&MemoryTable]) -> RunReport {
    check_on(&engine(LaneOrder::Forward), fragment, tables)
}

/// Runs a fragment in three lane orders and compares.
#[track_caller]
pub fn check_orders(fragment: &Fragment, tables: &[&MemoryTable]) -> RunReport {
    let mut reports = ORDERS.map(|order| check_on(&engine(order), fragment, tables)).to_vec();
    reports.pop().expect("there are orders")
}

/// Runs a fragment on an engine and compares with the interpreter; its program must be one for GPUs too.
#[track_caller]
pub fn check_on(engine: &Engine, fragment: &Fragment, tables: &[&MemoryTable]) -> RunReport {
    let report = compare_on(engine, fragment, tables);
    report.program().inspect(|program| super::nvrtc::compile_for_a_gpu(program));
    report
}

/// Runs a fragment on an engine and compares with the interpreter.
#[track_caller]
pub fn compare_on(engine: &Engine, fragment: &Fragment, tables: &[&MemoryTable]) -> RunReport {
    let _ = compare_on_host(fragment, tables);
    compare_again(engine, fragment, &BindingCache::default(), tables)
}

/// Runs a fragment with what `cache` keeps of earlier runs, and compares with the interpreter.
#[track_caller]
pub fn compare_again(engine: &Engine, fragment: &Fragment, cache: &BindingCache, tables: &[&MemoryTable]) -> RunReport {
    compare_with(fragment, tables, |options| engine.run_again(fragment, cache, &requests(fragment, tables), options))
}

/// Compares what a run of a fragment gives with the interpreter over these tables.
#[track_caller]
pub fn compare_with(
    fragment: &Fragment,
    tables: &[&MemoryTable],
    run: impl FnOnce(&RunOptions) -> Result<(RecordBatch, RunReport), EngineError>,
) -> RunReport {
    let expected = interpret(fragment, tables);
    match (expected, run(&RunOptions::default())) {
        (Outcome::Rows(expected), Ok((batch, report))) => {
            compare(&expected, &batch, fragment);
            report
        }
        (Outcome::Raises { .. }, Err(EngineError::Evaluation(_))) => RunReport::default(),
        (Outcome::Raises { certain: false }, Ok((_, report))) => report,
        (Outcome::Duplicates, Err(EngineError::Unsupported(reason))) if reason.contains("several rows for one key") => {
            RunReport::default()
        }
        (expected, Err(error)) => panic!("{error}\ninstead of {}\n{fragment:#?}", short(&expected)),
        (expected, Ok((batch, _))) => panic!("{batch:?}\ninstead of {}\n{fragment:#?}", short(&expected)),
    }
}

fn short(outcome: &Outcome) -> String {
    format!("{outcome:?}").chars().take(2_000).collect()
}

#[track_caller]
fn compare(expected: &[Vec<Option<Scalar>>], batch: &RecordBatch, fragment: &Fragment) {
    let columns: Vec<Vec<Option<Scalar>>> = batch.columns().iter().map(scalars).collect();
    let (groups, aggregates): (&[_], &[_]) = match &fragment.pipelines.last().unwrap().sink {
        Sink::Aggregate { groups, aggregates } => (groups, aggregates),
        Sink::Rows { columns, .. } => (columns, &[]),
        _ => panic!("the root gives no rows"),
    };
    let key = |row: &[Option<Scalar>]| -> Vec<String> {
        row[..groups.len()].iter().map(|value| value.as_ref().map_or("-".into(), Scalar::key)).collect()
    };
    let mut found: Vec<Vec<Option<Scalar>>> =
        (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
    found.sort_by_key(|row| key(row));
    let mut expected = expected.to_vec();
    expected.sort_by_key(|row| key(row));
    let exact = |column: usize| match fragment.result.is_empty() {
        true => {
            let call = column.checked_sub(groups.len()).map(|index| &aggregates[index]);
            call.is_some_and(|call| call.kind == AggregateKind::ExactSum)
        }
        false => column >= groups.len() && aggregates.iter().all(|call| call.kind != AggregateKind::Sum),
    };
    let row_differs = |expected: &[Option<Scalar>], found: &[Option<Scalar>]| {
        let mut columns = expected.iter().zip(found).enumerate();
        expected.len() != found.len()
            || columns.any(|(column, (expected, found))| match exact(column) {
                true => bits(expected) != bits(found),
                false => !same(expected, found),
            })
    };
    let first = expected.iter().zip(&found).position(|(expected, found)| row_differs(expected, found));
    if expected.len() != found.len() || first.is_some() {
        let at = first.unwrap_or(expected.len().min(found.len()));
        panic!(
            "{} groups instead of {}; at {at}: {:?} instead of {:?}\n{fragment:#?}",
            found.len(),
            expected.len(),
            found.get(at),
            expected.get(at)
        );
    }
}

/// The bits of a float, all NaNs alike.
fn bits(value: &Option<Scalar>) -> Option<u64> {
    let float = |value: f64| if value.is_nan() { f64::NAN } else { value };
    value.as_ref().map(|value| float(value.float()).to_bits())
}

/// Equality; float results may differ by the order of a sum.
fn same(expected: &Option<Scalar>, found: &Option<Scalar>) -> bool {
    match (expected, found) {
        (Some(Scalar::Float(expected)), Some(Scalar::Float(found))) => {
            expected.to_bits() == found.to_bits()
                || expected.is_nan() && found.is_nan()
                || expected == found
                || (expected - found).abs() <= 1e-9 * expected.abs().max(found.abs()).max(1e-300)
        }
        (expected, found) => expected.as_ref().map(Scalar::key) == found.as_ref().map(Scalar::key),
    }
}
