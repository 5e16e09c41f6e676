//! Runs over relations: their rows may be known to the device alone.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use warpcube_column::{ColumnError, EncodingChoice, LoadLimits, Relation, RowCount, TableRequest};
use warpcube_engine::*;
use warpcube_gpu::LaneOrder;

use crate::support::*;

const ROWS: i64 = 5_000;

/// A key that repeats, a value, a value with NULLs, and a sorted key with four rows each; the first so many rows of it.
fn table(rows: i64) -> MemoryTable {
    let key: Int64Array = (0..rows).map(|row| Some(row * 7 % 23)).collect();
    let value: Int64Array = (0..rows).map(|row| Some(row * 31 % 1_009)).collect();
    let some: Int64Array = (0..rows).map(|row| (row % 5 != 0).then_some(row)).collect();
    let run: Int64Array = (0..rows).map(|row| Some(row / 4 * 1_000_000_007)).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("k", Arc::new(key)), ("v", Arc::new(value)), ("s", Arc::new(some)), ("r", Arc::new(run))];
    MemoryTable::shaped("counted", columns, Shape { partitions: 3, batch_rows: 700 })
}

/// All columns of a table, and a relation of them whose first `rows` rows are there, as the device alone knows.
fn counted(engine: &Engine, table: &MemoryTable, rows: u64, encoding: EncodingChoice) -> (Relation, Relation) {
    let request = TableRequest { source: Arc::new(table.clone()), columns: vec![0, 1, 2, 3], coded: vec![] };
    let limits = LoadLimits { encoding, ..LoadLimits::default() };
    let pinned = engine.residency().admit(&[request], &limits, |_: &[_]| -> Result<u64, ColumnError> { Ok(0) });
    let known = pinned.unwrap().tables[0].clone();
    let count = engine.device().buffer(8, "a count of rows").unwrap();
    engine.device().stream().unwrap().upload(&count, 0, &rows.to_le_bytes()).unwrap();
    (known.clone(), Relation { rows: RowCount::OnDevice(count), ..known })
}

fn over(source: Source, steps: Vec<Step>, sink: Sink) -> Pipeline {
    Pipeline { source, steps, sink }
}

/// A filter with groups, groups that are scanned, a join of the table with itself, its first rows, and all of them in
/// order.
fn fragments() -> Vec<Fragment> {
    let table = |columns| FragmentTable { name: "counted".into(), columns };
    let fragment = |pipelines| Fragment {
        tables: vec![table(vec![0, 1, 2, 3])],
        pipelines,
        unions: Vec::new(),
        result: Vec::new(),
        overflow: Overflow::default(),
    };
    let integer = arrow::datatypes::DataType::Int64;
    let sum = |argument| AggregateCall {
        kind: AggregateKind::Sum,
        argument: Some(argument),
        filter: None,
        data_type: integer.clone(),
    };
    let groups = vec![(Expr::Reg(0), integer.clone())];
    let few = Step::Filter(Expr::binary(BinaryOp::Lt, Expr::Reg(1), Expr::Literal(Literal::Int(40), Ty::I64)));
    let some = Step::Filter(Expr::binary(BinaryOp::Lt, Expr::Reg(1), Expr::Literal(Literal::Int(900), Ty::I64)));
    let grouped = Sink::Aggregate { groups, aggregates: vec![sum(Expr::Reg(1)), sum(Expr::Reg(2))] };
    let global = Sink::Aggregate { groups: Vec::new(), aggregates: vec![sum(Expr::Reg(1)), sum(Expr::Reg(2))] };
    let build = Sink::Build { keys: vec![Expr::Reg(2)], payload: vec![Expr::Reg(0)] };
    let probe = Probe { build: 0, keys: vec![Expr::Reg(1)], kind: JoinKind::Inner, unique: true, residual: None };
    let of_join = Sink::Aggregate { groups: Vec::new(), aggregates: vec![sum(Expr::Reg(4))] };
    let order = |k| {
        let keys = vec![
            OrderKey { expr: Expr::Reg(1), descending: true, nulls_first: false },
            OrderKey { expr: Expr::Reg(2), descending: false, nulls_first: false },
        ];
        let outputs = [0, 1, 2].map(|register| (Expr::Reg(register), integer.clone())).to_vec();
        Sink::TopK(TopK { keys, k, skip: 0, outputs, algorithm: None })
    };
    let source = Source::Table(0);
    let runs = Sink::Aggregate { groups: vec![(Expr::Reg(3), integer.clone())], aggregates: vec![sum(Expr::Reg(1))] };
    let large = Step::Filter(Expr::binary(BinaryOp::Gt, Expr::Reg(1), Expr::Literal(Literal::Int(2_000), Ty::I64)));
    let of_large = Sink::Aggregate { groups: Vec::new(), aggregates: vec![sum(Expr::Reg(1))] };
    vec![
        fragment(vec![over(source, Vec::new(), runs), over(Source::Output(0), vec![large], of_large)]),
        fragment(vec![over(source, vec![few], grouped.clone())]),
        fragment(vec![over(source, vec![some], grouped)]),
        fragment(vec![over(source, Vec::new(), global)]),
        fragment(vec![over(source, Vec::new(), build), over(source, vec![Step::Probe(probe)], of_join)]),
        fragment(vec![over(source, Vec::new(), order(Some(9)))]),
        fragment(vec![over(source, Vec::new(), order(None))]),
    ]
}

/// The rows of a table by the order of the fragments, those that come first in the table first among equal ones.
fn in_order(rows: i64, k: Option<u64>) -> Vec<Vec<Option<Scalar>>> {
    let columns = [0, 1, 2].map(|column| table(rows).column(column));
    let int = |value: &Option<Scalar>| value.as_ref().map(|value| value.int());
    let mut order: Vec<usize> = (0..rows as usize).collect();
    order.sort_by_key(|row| {
        let (value, some) = (int(&columns[1][*row]), int(&columns[2][*row]));
        (value.map(|value| -value), some.is_none(), some)
    });
    order.truncate(k.map_or(usize::MAX, |k| k as usize));
    order.into_iter().map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

/// Compares a run over a relation of so many rows.
fn compare(engine: &Engine, fragment: &Fragment, cache: &BindingCache, (relation, rows): (&Relation, i64)) {
    let part = table(rows);
    let run = |options: &RunOptions| engine.run_over(fragment, cache, std::slice::from_ref(relation), options);
    match &fragment.pipelines.last().unwrap().sink {
        Sink::TopK(top) => {
            let batch = run(&RunOptions::default()).unwrap().0;
            let columns: Vec<_> = batch.columns().iter().map(scalars).collect();
            let found = (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect());
            let found: Vec<Vec<_>> = found.collect();
            assert_eq!(format!("{found:?}"), format!("{:?}", in_order(rows, top.k)), "{rows} rows");
        }
        _ => drop(compare_with(fragment, &[&part], run)),
    }
}

#[test]
fn rows_that_the_device_has_counted_are_all_that_is_read() {
    let whole = table(ROWS);
    for order in [LaneOrder::Forward, LaneOrder::Seeded(7)] {
        for encoding in [EncodingChoice::Plain, EncodingChoice::Auto] {
            for count in [0, 1, 1_023, 1_024, 3_333, ROWS] {
                let engine = if count % 2 == 0 { engine(order) } else { cut(order) };
                let (known, counted) = counted(&engine, &whole, count as u64, encoding);
                assert_eq!(known.rows_max(), counted.rows_max());
                if count == 0 {
                    // Their programs are compiled together.
                    engine.device().rehearse(Some("fragment"), || {
                        for (fragment, relation) in
                            fragments().iter().flat_map(|of| [(of.clone(), &known), (of.clone(), &counted)])
                        {
                            let cache = BindingCache::default();
                            let relations = std::slice::from_ref(relation);
                            drop(engine.run_over(&fragment, &cache, relations, &RunOptions::default()));
                        }
                    });
                }
                for fragment in fragments() {
                    let cache = BindingCache::default();
                    compare(&engine, &fragment, &cache, (&counted, count));
                    // The same columns with all rows have another binding.
                    compare(&engine, &fragment, &cache, (&known, ROWS));
                }
            }
        }
    }
}

#[test]
fn relations_of_another_device_are_refused() {
    let (one, other) = (engine(LaneOrder::Forward), engine(LaneOrder::Forward));
    let (known, counted) = counted(&one, &table(100), 50, EncodingChoice::Plain);
    for relation in [known, counted] {
        let cache = BindingCache::default();
        let refused = other.run_over(&fragments()[3], &cache, &[relation], &RunOptions::default());
        assert!(matches!(refused, Err(EngineError::Malformed(_))));
    }
}

#[test]
fn a_scan_may_be_several_launches() {
    let (whole, engine) = (table(ROWS), cut(LaneOrder::Seeded(7)));
    for fragment in fragments() {
        let (known, _) = counted(&engine, &whole, 0, EncodingChoice::Plain);
        compare(&engine, &fragment, &BindingCache::default(), (&known, ROWS));
        let ran = engine.run_over(&fragment, &BindingCache::default(), &[known], &RunOptions::default());
        let report = ran.unwrap().1;
        assert_eq!(report.launch_groups[0].launches, 3, "{fragment:?}");
    }
}
