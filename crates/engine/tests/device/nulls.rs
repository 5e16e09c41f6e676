//! NULLs in filters, keys, payload, arguments and results.

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{AggregateCall, BinaryOp, Expr, JoinKind, Ty, UnaryOp};

use crate::support::*;

fn facts(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            (
                "a",
                numbers::<Int32Type>(rows, |row| (mixed(row, 1) % 3 != 0).then_some((mixed(row, 2) % 9) as i32 + 100)),
            ),
            (
                "b",
                numbers::<Int64Type>(rows, |row| (mixed(row, 3) % 4 != 0).then_some(mixed(row, 4) as i64 % 50 + 200)),
            ),
            ("t", truths(rows, |row| (mixed(row, 5) % 3 != 0).then_some(mixed(row, 6) & 1 == 0))),
            ("n", new_null_array(&DataType::Int32, rows)),
            ("u", truths(rows, |row| (mixed(row, 7) % 3 != 0).then_some(mixed(row, 8) & 1 == 0))),
        ],
    )
}

#[test]
fn three_valued_logic() {
    let terms = || [reg(2), reg(4), null(Ty::Bool)];
    let mut calls = Vec::new();
    for op in [BinaryOp::And, BinaryOp::Or, BinaryOp::Eq, BinaryOp::Ne] {
        for left in terms() {
            for right in terms() {
                let value = binary(op, left.clone(), right);
                let holds = |expr| AggregateCall { filter: Some(expr), ..count() };
                calls.push(holds(value.clone()));
                calls.push(holds(unary(UnaryOp::Not, value.clone())));
                calls.push(holds(unary(UnaryOp::IsNull, value.clone())));
                calls.push(holds(unary(UnaryOp::IsNotNull, unary(UnaryOp::IsTrue, value))));
            }
        }
    }
    check(&single(5, vec![], vec![], calls), &[&facts(2_000)]);
}

#[test]
fn filters_take_true_alone() {
    for condition in [
        reg(2),
        unary(UnaryOp::Not, reg(2)),
        unary(UnaryOp::IsNull, reg(2)),
        binary(BinaryOp::Or, reg(2), binary(BinaryOp::Gt, reg(0), int(104, Ty::I32))),
        binary(BinaryOp::Eq, reg(3), reg(0)),
    ] {
        let calls = vec![count(), sum(reg(1), DataType::Int64), count_of(reg(0))];
        check(&single(5, vec![filter(condition)], vec![], calls), &[&facts(3_000)]);
    }
}

#[test]
fn nulls_make_a_group_and_null_aggregates() {
    let calls = vec![
        sum(reg(1), DataType::Int64),
        min(reg(3), DataType::Int32),
        sum(reg(3), DataType::Int64),
        count_of(reg(3)),
        count(),
        max(reg(2), DataType::Boolean),
    ];
    for group in [(reg(0), DataType::Int32), (reg(3), DataType::Int32), (reg(2), DataType::Boolean)] {
        check_orders(&single(5, vec![], vec![group], calls.clone()), &[&facts(3_000)]);
    }
}

#[test]
fn a_null_divisor_raises_nothing() {
    // Stored NULLs hold zero, which the divisor's bounds (100 and more) do not tell.
    let quotient = binary(BinaryOp::Div, reg(1), convert(reg(0), Ty::I64));
    let remainder = binary(BinaryOp::Rem, reg(1), convert(reg(0), Ty::I64));
    let calls = vec![sum(quotient.clone(), DataType::Int64), sum(remainder, DataType::Int64), count_of(quotient)];
    check(&single(5, vec![], vec![], calls), &[&facts(2_000)]);
}

#[test]
fn null_literals_of_every_type() {
    let types = [Ty::Bool, Ty::I8, Ty::I32, Ty::U64, Ty::F32, Ty::F64, Ty::I128];
    let calls = types.iter().map(|ty| count_of(null(*ty))).collect();
    check(&single(5, vec![], vec![], calls), &[&facts(1_100)]);
}

#[test]
fn nulls_on_both_sides_of_joins() {
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int32Type>(9, |row| (row != 4).then_some(row as i32 + 98))),
            ("p", numbers::<Int64Type>(9, |row| (row % 3 != 1).then_some(row as i64))),
            ("n", new_null_array(&DataType::Int32, 9)),
        ],
    );
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let null_or =
            binary(BinaryOp::Or, unary(UnaryOp::IsNull, reg(5)), binary(BinaryOp::Gt, reg(5), int(3, Ty::I64)));
        let fragment = fragment(
            &[5, 3],
            vec![
                builds(1, vec![], vec![reg(0)], vec![reg(1), reg(2)]),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(0)], kind), filter(null_or)],
                    vec![(reg(5), DataType::Int64), (reg(6), DataType::Int32)],
                    vec![count(), sum(reg(5), DataType::Int64), count_of(reg(6))],
                ),
            ],
        );
        check_orders(&fragment, &[&facts(2_000), &side]);
    }
    // A build key without values, and a probe key without values.
    for (build, key, kinds) in
        [(reg(2), reg(0), [JoinKind::Inner, JoinKind::Anti]), (reg(0), reg(3), [JoinKind::Left, JoinKind::Anti])]
    {
        for kind in kinds {
            let fragment = fragment(
                &[5, 3],
                vec![
                    builds(1, vec![], vec![build.clone()], vec![]),
                    aggregates(0, vec![probe(0, vec![key.clone()], kind)], vec![], vec![count()]),
                ],
            );
            check(&fragment, &[&facts(1_500), &side]);
        }
    }
}

#[test]
fn case_hides_what_it_does_not_take() {
    let known = unary(UnaryOp::IsNotNull, reg(0));
    let branch = Expr::Case(vec![(known, reg(0)), (reg(2), int(-1, Ty::I32))], Box::new(null(Ty::I32)));
    let calls = vec![sum(branch.clone(), DataType::Int64), count_of(branch.clone()), count()];
    check(&single(5, vec![], vec![(branch, DataType::Int32)], calls), &[&facts(2_000)]);
}
