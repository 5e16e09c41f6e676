//! Vectors that are left out because their bounds say that no row of them passes.

use arrow::datatypes::*;
use warpcube_column::EncodingChoice;
use warpcube_engine::{BinaryOp, Expr, Fragment, JoinKind, Tuning, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Rows of a table in two partitions, some vectors for each warp.
const ROWS: usize = 90_000;
/// Places of the table's columns.
const DAY: usize = 0;
const JUMPS: usize = 1;
const WIDE: usize = 2;
const VALUE: usize = 3;
const SPREAD: usize = 4;
/// Columns of the table.
const COLUMNS: usize = 5;
/// Keys of the table that is joined.
const KEYS: usize = 700;

/// Sorted columns, one with outliers that are patches and one with NULLs, and a number below 1,000.
fn table() -> MemoryTable {
    let outlier = |row: usize| if row % 1_500 == 9 { 1 << 29 } else { 0 };
    let columns = vec![
        ("day", numbers::<Int32Type>(ROWS, |row| Some((row / 600 * 4) as i32 - 40))),
        ("jumps", numbers::<UInt32Type>(ROWS, |row| Some((row / 300) as u32 + outlier(row)))),
        (
            "wide",
            numbers::<Int64Type>(ROWS, |row| {
                (!mixed(row, 8).is_multiple_of(5) && row / 1_024 != 20).then(|| (row as i64 / 50) - 900 + (7 << 40))
            }),
        ),
        ("value", numbers::<Int32Type>(ROWS, |row| Some((mixed(row, 1) % 1_000) as i32))),
        ("spread", numbers::<Int64Type>(ROWS, |row| Some(mixed(mixed(row, 2) as usize % 300, 3) as i64 >> 8))),
    ];
    MemoryTable::shaped("t", columns, Shape { partitions: 2, batch_rows: 7_000 })
}

/// The first half of a dimension's keys passes; the dimension tells a group for each.
fn dimension() -> MemoryTable {
    let columns = vec![
        ("key", numbers::<Int32Type>(KEYS, |row| Some(row as i32 - 60))),
        ("group", numbers::<Int32Type>(KEYS, |row| Some(row as i32 / 8 % 5))),
    ];
    MemoryTable::new("d", columns)
}

/// The sum and the number of rows that pass a filter.
fn filtered(condition: Expr) -> Fragment {
    single(COLUMNS, vec![filter(condition)], vec![], vec![sum(reg(VALUE), DataType::Int64), count()])
}

fn compare(op: BinaryOp, column: usize, constant: i128, ty: Ty) -> Expr {
    binary(op, reg(column), int(constant, ty))
}

fn between(column: usize, low: i128, high: i128, ty: Ty) -> Expr {
    binary(BinaryOp::And, compare(BinaryOp::Ge, column, low, ty), compare(BinaryOp::Le, column, high, ty))
}

/// Runs fragments with the sorted columns packed, and as differences, and checks that vectors are told apart, but in
/// tables that a GPU takes for small; the source of kernels over packed columns.
#[track_caller]
fn check_all(fragments: &[Fragment], tables: &[&MemoryTable]) -> Vec<String> {
    let mut sources = Vec::new();
    for (order, choice, small) in [
        (LaneOrder::Forward, EncodingChoice::Packed, false),
        (LaneOrder::Seeded(5), EncodingChoice::Packed, false),
        (LaneOrder::Seeded(7), EncodingChoice::Delta, false),
        (LaneOrder::Seeded(3), EncodingChoice::Packed, true),
        (LaneOrder::Reversed, EncodingChoice::Delta, true),
    ] {
        if is_sanitized() && matches!(order, LaneOrder::Seeded(3 | 5)) {
            continue;
        }
        let engine = match small {
            true => engine(order).with_tuning(Tuning::default()),
            false => engine(order),
        };
        load(&engine, tables[0], &[choice; COLUMNS]);
        rehearse(&engine, fragments, tables);
        for fragment in fragments {
            let report = check_on(&engine, fragment, tables);
            let source = report.program().unwrap().source().to_string();
            assert_eq!(source.contains("auto zone = "), !small, "{source}");
            if choice == EncodingChoice::Packed && !small {
                sources.push(source);
            }
        }
    }
    sources
}

#[test]
fn what_a_sorted_column_leaves_of_vectors_is_added_up_in_place() {
    // A twentieth of the rows, but half of those in the vectors that are looked at: no queue is worth it there.
    let half = || compare(BinaryOp::Lt, VALUE, 500, Ty::I32);
    let clustered = binary(BinaryOp::And, between(DAY, 100, 130, Ty::I32), half());
    let spread = binary(BinaryOp::And, compare(BinaryOp::Eq, SPREAD, 12_345, Ty::I64), half());
    let engine = engine(LaneOrder::Seeded(9));
    load(&engine, &table(), &[EncodingChoice::Packed; COLUMNS]);
    for (condition, queued) in [(clustered, false), (spread, true)] {
        let report = check_on(&engine, &filtered(condition), &[&table()]);
        let source = report.program().unwrap().source().to_string();
        assert_eq!(source.contains("uint32_t queued = 0;"), queued, "{source}");
    }
}

#[test]
fn comparisons_leave_vectors_out() {
    use BinaryOp::*;
    let fragments = [
        between(DAY, 100, 160, Ty::I32),
        compare(Eq, DAY, 300, Ty::I32),
        compare(Lt, DAY, -1_000, Ty::I32),
        binary(Gt, int(-20, Ty::I32), reg(DAY)),
        compare(Gt, DAY, i32::MAX.into(), Ty::I32),
        // All rows pass.
        compare(Ge, DAY, -40, Ty::I32),
        // Few rows of few vectors: the others are gathered.
        binary(And, between(DAY, 200, 207, Ty::I32), compare(Lt, VALUE, 30, Ty::I32)),
        binary(And, compare(Lt, VALUE, 990, Ty::I32), compare(Ge, DAY, 500, Ty::I32)),
    ];
    check_all(&fragments.map(filtered), &[&table()]);
}

#[test]
fn patches_and_nulls_are_not_forgotten() {
    use BinaryOp::*;
    let fragments = [
        compare(Lt, JUMPS, 40, Ty::U32),
        compare(Ge, JUMPS, 1 << 28, Ty::U32),
        between(JUMPS, 100, 110, Ty::U32),
        compare(Lt, WIDE, (7 << 40) - 800, Ty::I64),
        compare(Ge, WIDE, (7 << 40) - 900, Ty::I64),
        compare(Gt, WIDE, i64::MAX.into(), Ty::I64),
        binary(And, between(WIDE, 7 << 40, (7 << 40) + 90, Ty::I64), compare(Gt, JUMPS, 3, Ty::U32)),
    ];
    check_all(&fragments.map(filtered), &[&table()]);
}

#[test]
fn joins_leave_vectors_out() {
    let build = |condition: Expr, payload| builds(1, vec![filter(condition)], vec![reg(0)], payload);
    let joined = |condition: Expr, kind| {
        let (payload, groups) = match kind {
            JoinKind::Semi => (vec![], vec![]),
            _ => (vec![reg(1)], vec![(reg(COLUMNS), DataType::Int32)]),
        };
        let calls = vec![sum(reg(VALUE), DataType::Int64), count()];
        let probe = vec![probe(0, vec![reg(DAY)], kind)];
        fragment(&[COLUMNS, 2], vec![build(condition, payload), aggregates(0, probe, groups, calls)])
    };
    let fragments = [
        joined(between(0, 100, 140, Ty::I32), JoinKind::Inner),
        joined(between(0, -50, 20, Ty::I32), JoinKind::Semi),
        joined(compare(BinaryOp::Eq, 0, 401, Ty::I32), JoinKind::Inner),
        joined(compare(BinaryOp::Lt, 0, 10_000, Ty::I32), JoinKind::Semi),
    ];
    // A vector has few days, which are looked up: where all are found, no row asks again.
    for source in check_all(&fragments, &[&table(), &dimension()]) {
        assert!(source.contains("wc_zone_keys(bounds") && source.contains("if (!(passed"), "{source}");
    }
}

#[test]
fn groups_of_every_kind_follow() {
    let grouped = |groups: Vec<(Expr, DataType)>| {
        let condition = between(DAY, 100, 160, Ty::I32);
        single(COLUMNS, vec![filter(condition)], groups, vec![sum(reg(VALUE), DataType::Int64), count()])
    };
    let fragments = [
        // A copy a lane, an array of places, a table of one word, one of several.
        grouped(vec![(binary(BinaryOp::Rem, reg(VALUE), int(3, Ty::I32)), DataType::Int32)]),
        grouped(vec![(reg(VALUE), DataType::Int32)]),
        grouped(vec![(reg(SPREAD), DataType::Int64)]),
        grouped(vec![(reg(SPREAD), DataType::Int64), (reg(WIDE), DataType::Int64), (reg(DAY), DataType::Int32)]),
    ];
    check_all(&fragments, &[&table()]);
}
