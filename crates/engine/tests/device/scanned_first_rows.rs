//! First rows by an order as the rows of another pipeline: aggregated, joined, ordered once more.

use arrow::datatypes::DataType;
use warpcube_engine::{
    BinaryOp, BindingCache, Expr, Fragment, JoinKind, Pipeline, RunOptions, Sink, Source, Step, TopK, Ty, UnaryOp,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Rows from which a threshold is drawn.
const SAMPLED: usize = 1 << 15;

fn table(rows: usize) -> MemoryTable {
    keyed_facts(rows, 900, 7, decimals(rows, 19, 2, |row| (row % 6 != 2).then(|| (mixed(row, 5) as i64).into())))
}

fn wide() -> DataType {
    DataType::Decimal128(38, 2)
}

/// The first rows by a number, a float and the key, as eight columns, one of them wider than 64 bits.
fn first(source: Source, steps: Vec<Step>, k: u64, skip: u64) -> Pipeline {
    let outputs = vec![
        (reg(0), DataType::Int64),
        (reg(1), DataType::Utf8),
        (reg(2), DataType::Int32),
        (reg(3), DataType::Float64),
        (binary(BinaryOp::Mul, reg(4), int(1 << 20, Ty::I128)), wide()),
        (convert(reg(3), Ty::F32), DataType::Float32),
        (unary(UnaryOp::IsNull, reg(2)), DataType::Boolean),
        (binary(BinaryOp::Gt, reg(3), float(0.0, Ty::F64)), DataType::Boolean),
    ];
    let keys = vec![descending(reg(2)), ascending(reg(3)), ascending(reg(0))];
    Pipeline {
        source,
        steps,
        sink: Sink::TopK(TopK { keys, k: Some(k), skip, outputs, windows: vec![], first: None, algorithm: None }),
    }
}

/// All columns of first rows that a pipeline leaves.
fn columns() -> Vec<(Expr, DataType)> {
    let types = [
        DataType::Int64,
        DataType::Utf8,
        DataType::Int32,
        DataType::Float64,
        wide(),
        DataType::Float32,
        DataType::Boolean,
        DataType::Boolean,
    ];
    types.into_iter().enumerate().map(|(register, data_type)| (reg(register), data_type)).collect()
}

/// The first rows, grouped.
fn grouped(k: u64, skip: u64, steps: Vec<Step>) -> Fragment {
    let calls = vec![
        count(),
        count_of(reg(2)),
        sum(reg(2), DataType::Int64),
        sum(reg(4), wide()),
        min(reg(3), DataType::Float64),
        max(reg(1), DataType::Utf8),
        max(reg(7), DataType::Boolean),
    ];
    let above = filter(binary(BinaryOp::Lt, reg(3), float(240.0, Ty::F64)));
    let root = Pipeline {
        source: Source::Output(0),
        steps: vec![above],
        sink: Sink::Aggregate { groups: vec![(reg(1), DataType::Utf8)], aggregates: calls },
    };
    fragment(&[5], vec![first(Source::Table(0), steps, k, skip), root])
}

/// All columns but the wide one, which rows of a result have no room for.
fn narrow_columns() -> Vec<(Expr, DataType)> {
    columns().into_iter().filter(|(_, data_type)| *data_type != wide()).collect()
}

/// The first rows as they are.
fn rows_of(first: Vec<Pipeline>) -> Fragment {
    let sink = Sink::Rows { columns: narrow_columns(), limit: None };
    let root = Pipeline { source: Source::Output(first.len() - 1), steps: vec![], sink };
    fragment(&[5], first.into_iter().chain([root]).collect())
}

#[test]
fn first_rows_are_aggregated() {
    let few = || vec![filter(binary(BinaryOp::Gt, reg(2), int(50_000, Ty::I32)))];
    for (rows, k, skip, steps) in [
        (SAMPLED + 3_000, 700, 0, few()),
        (SAMPLED + 3_000, 40, 30, vec![]),
        (2_000, 1, 0, vec![]),
        (2_000, 1_999, 1_500, vec![]),
    ] {
        check_orders(&grouped(k, skip, steps), &[&table(rows)]);
    }
    let engine = engine(LaneOrder::Forward);
    // The scan ends with the rows that the device has counted: none, one, those around a vector, all.
    let edges = [(0, 5, 0), (10, 1 << 20, 0), (10, 20, 9), (10, 20, 10), (3_000, 1_023, 0), (3_000, 1_024, 0)];
    for (rows, k, skip) in edges.into_iter().chain([(3_000, 1_200, 175), (3_000, 3_000, 0)]) {
        check_on(&engine, &grouped(k, skip, vec![]), &[&table(rows)]);
        check_on(&engine, &rows_of(vec![first(Source::Table(0), vec![], k, skip)]), &[&table(rows)]);
    }
}

#[test]
fn first_rows_of_many_chunks_are_cut() {
    for order in [LaneOrder::Forward, LaneOrder::Seeded(5)] {
        check_on(&cut(order), &grouped(900, 3, vec![]), &[&table(SAMPLED + 900)]);
    }
}

#[test]
fn first_rows_are_joined() {
    let build = Pipeline {
        source: Source::Output(0),
        steps: vec![],
        sink: Sink::Build { keys: vec![reg(0)], payload: vec![reg(2), reg(3), reg(1)] },
    };
    let calls = vec![count(), sum(reg(5), DataType::Int64), max(reg(7), DataType::Utf8), sum(reg(2), DataType::Int64)];
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let root = aggregates(0, vec![probe(1, vec![reg(0)], kind)], vec![(reg(1), DataType::Utf8)], calls.clone());
        let fragment = fragment(&[5], vec![first(Source::Table(0), vec![], 300, 0), build.clone(), root]);
        check_orders(&fragment, &[&table(4_000)]);
    }
    // Rows of a table that first rows look up.
    let table_of_keys = builds(0, vec![], vec![reg(2)], vec![reg(3)]);
    let steps = vec![probe(0, vec![reg(2)], JoinKind::Semi)];
    let root =
        Pipeline { source: Source::Output(1), steps, sink: Sink::Rows { columns: narrow_columns(), limit: None } };
    let fragment = fragment(&[5], vec![table_of_keys, first(Source::Table(0), vec![], 300, 0), root]);
    check_orders(&fragment, &[&table(4_000)]);
}

#[test]
fn first_rows_of_first_rows_and_of_groups() {
    let first_of = |k, skip| first(Source::Table(0), vec![], k, skip);
    check_orders(&rows_of(vec![first_of(900, 20), first(Source::Output(0), vec![], 70, 0)]), &[&table(5_000)]);
    let key = vec![(reg(0), DataType::Int64), (reg(1), DataType::Utf8)];
    let calls = vec![max(reg(2), DataType::Int32), min(reg(3), DataType::Float64), max(reg(4), wide())];
    let groups = aggregates(0, vec![], key, calls);
    check_orders(&rows_of(vec![groups, first(Source::Output(0), vec![], 200, 7)]), &[&table(5_000)]);
    // In order at the end, all of them and some.
    for k in [None, Some(40)] {
        let keys = vec![ascending(reg(3)), ascending(reg(0)), ascending(reg(2))];
        let sink =
            Sink::TopK(TopK { keys, k, skip: 0, outputs: columns(), windows: vec![], first: None, algorithm: None });
        let root = Pipeline { source: Source::Output(0), steps: vec![], sink };
        check_all_orders(&fragment(&[5], vec![first_of(500, 0), root]), &[&table(SAMPLED + 100)]);
    }
}

#[test]
fn thresholds_that_fail_are_drawn_anew() {
    let facts = table(SAMPLED + 5_000);
    // Room for fewer candidates than come, and a threshold that too few rows pass.
    for tuning in ["top_room=0", "top_deviations=-20"] {
        let engine = engine(LaneOrder::Forward).with_tuning(tuning.parse().unwrap());
        let report = compare_on(&engine, &grouped(3_000, 0, vec![]), &[&facts]);
        assert!(report.reruns > 0, "{tuning}");
        let keys = vec![ascending(reg(3)), ascending(reg(0)), ascending(reg(2))];
        let sink = Sink::TopK(TopK {
            keys,
            k: None,
            skip: 0,
            outputs: columns(),
            windows: vec![],
            first: None,
            algorithm: None,
        });
        let root = Pipeline { source: Source::Output(0), steps: vec![], sink };
        let sorted = fragment(&[5], vec![first(Source::Table(0), vec![], 3_000, 0), root]);
        assert!(check_rows_of(&engine, &sorted, &[&facts]).reruns > 0, "{tuning}, sorted");
    }
}

#[test]
fn tables_of_groups_above_first_rows_grow() {
    let facts = keyed_facts(4_000, 900, 1_000_000_007, decimals(4_000, 19, 2, |row| Some(row as i128)));
    let root = Pipeline {
        source: Source::Output(0),
        steps: vec![],
        sink: Sink::Aggregate { groups: vec![(reg(0), DataType::Int64)], aggregates: vec![count()] },
    };
    let fragment = fragment(&[5], vec![first(Source::Table(0), vec![], 1_500, 10), root]);
    let engine = engine(LaneOrder::Forward);
    let report = compare_with(&fragment, &[&facts], |_| {
        let options = RunOptions { group_slots: Some(16), ..RunOptions::default() };
        engine.run_again(&fragment, &BindingCache::default(), &requests(&fragment, &[&facts]), &options)
    });
    assert!(report.reruns > 0, "a scan of first rows does not go on: it begins anew");
}
