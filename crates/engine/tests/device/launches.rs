//! Scans that are cut into several launches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use warpcube_engine::*;
use warpcube_gpu::LaneOrder;

use crate::support::*;

const ROWS: i64 = 5_000;

/// A key that repeats, a value, a value with NULLs, and a sorted key with four rows each.
fn table() -> MemoryTable {
    let key: Int64Array = (0..ROWS).map(|row| Some(row * 7 % 23)).collect();
    let value: Int64Array = (0..ROWS).map(|row| Some(row * 31 % 1_009)).collect();
    let some: Int64Array = (0..ROWS).map(|row| (row % 5 != 0).then_some(row)).collect();
    let run: Int64Array = (0..ROWS).map(|row| Some(row / 4 * 1_000_000_007)).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("k", Arc::new(key)), ("v", Arc::new(value)), ("s", Arc::new(some)), ("r", Arc::new(run))];
    MemoryTable::shaped("counted", columns, Shape { partitions: 3, batch_rows: 700 })
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
        unites: false,
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
        Sink::TopK(TopK { keys, k, skip: 0, outputs, windows: vec![], first: None, algorithm: None })
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

/// The rows of the table by the order of the fragments, those that come first in the table first among equal ones.
fn in_order(k: Option<u64>) -> Vec<Vec<Option<Scalar>>> {
    let columns = [0, 1, 2].map(|column| table().column(column));
    let int = |value: &Option<Scalar>| value.as_ref().map(|value| value.int());
    let mut order: Vec<usize> = (0..ROWS as usize).collect();
    order.sort_by_key(|row| {
        let (value, some) = (int(&columns[1][*row]), int(&columns[2][*row]));
        (value.map(|value| -value), some.is_none(), some)
    });
    order.truncate(k.map_or(usize::MAX, |k| k as usize));
    order.into_iter().map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

#[test]
fn a_scan_may_be_several_launches() {
    let (table, engine) = (table(), cut(LaneOrder::Seeded(7)));
    rehearse(&engine, &fragments(), &[&table]);
    for fragment in fragments() {
        let report = match &fragment.pipelines.last().unwrap().sink {
            Sink::TopK(top) => {
                let (batch, report) = run(&engine, &fragment, &[&table]).unwrap();
                let columns: Vec<_> = batch.columns().iter().map(scalars).collect();
                let found = (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect());
                let found: Vec<Vec<_>> = found.collect();
                assert_eq!(format!("{found:?}"), format!("{:?}", in_order(top.k)));
                report
            }
            _ => compare_on(&engine, &fragment, &[&table]),
        };
        assert_eq!(report.launch_groups[0].launches, 3, "{fragment:?}");
    }
}
