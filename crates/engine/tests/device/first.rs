//! The first fragments: a global sum and a star join.

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{BinaryOp, JoinKind, Ty};

use crate::support::*;

#[test]
fn global_sum_with_a_filter() {
    let rows = 5_000;
    let table = MemoryTable::new(
        "facts",
        vec![
            ("a", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 100) as i32))),
            ("b", numbers::<Int64Type>(rows, |row| Some(mixed(row, 2) as i64 % 1_000_000))),
        ],
    );
    let below = binary(BinaryOp::Lt, reg(0), int(25, Ty::I32));
    let fragment = single(2, vec![filter(below)], vec![], vec![sum(reg(1), DataType::Int64), count()]);
    check_orders(&fragment, &[&table]);
}

#[test]
fn star_join_with_payload_in_groups() {
    let rows = 20_000;
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("k", numbers::<Int32Type>(rows, |row| Some((mixed(row, 1) % 400) as i32))),
            ("d", numbers::<Int32Type>(rows, |row| Some((mixed(row, 2) % 120) as i32))),
            ("v", numbers::<Int64Type>(rows, |row| Some(mixed(row, 3) as i64 % 1_000))),
        ],
    );
    let parts = MemoryTable::new(
        "parts",
        vec![
            ("k", numbers::<Int32Type>(300, |row| Some(row as i32 + 1))),
            ("brand", texts(300, |row| Some(format!("brand {}", row % 7)))),
            ("size", numbers::<Int32Type>(300, |row| Some(row as i32 % 50))),
        ],
    );
    let dates = MemoryTable::new(
        "dates",
        vec![
            ("k", numbers::<Int32Type>(100, |row| Some(row as i32))),
            ("year", numbers::<Int32Type>(100, |row| Some(1992 + row as i32 / 30))),
        ],
    );
    let small = filter(binary(BinaryOp::Lt, reg(2), int(5, Ty::I32)));
    let fragment = fragment(
        &[3, 3, 2],
        vec![
            builds(1, vec![small], vec![reg(0)], vec![reg(1)]),
            builds(2, vec![], vec![reg(0)], vec![reg(1)]),
            aggregates(
                0,
                vec![probe(0, vec![reg(0)], JoinKind::Inner), probe(1, vec![reg(1)], JoinKind::Inner)],
                vec![(reg(4), DataType::Int32), (reg(3), DataType::Utf8)],
                vec![sum(reg(2), DataType::Int64), count()],
            ),
        ],
    );
    check_orders(&fragment, &[&facts, &parts, &dates]);
}
