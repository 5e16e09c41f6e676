//! Strings: codes in groups and payload, functions over dictionaries, order.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, StringArray, UInt64Array, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type};
use warpcube_engine::{BinaryOp, EngineError, Expr, JoinKind, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

fn facts(rows: usize) -> MemoryTable {
    let words = ["pear", "apple", "fig", "", "quince", "Apple", "äpfel", "zebra", "a", "ab"];
    let word = |row: usize| (mixed(row, 1) % 7 != 0).then(|| words[(mixed(row, 2) % 10) as usize].to_string());
    MemoryTable::new(
        "facts",
        vec![
            ("s", texts(rows, word)),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 3) as i32 % 100))),
            ("n", new_null_array(&DataType::Utf8, rows)),
            ("full", texts(rows, |row| Some(format!("{:03}", mixed(row, 4) % 200)))),
        ],
    )
}

fn is(text: &'static str) -> Expr {
    lookup(0, text, Ty::Bool, move |strings| {
        Arc::new(strings.iter().map(|known| known.map(|known| known == text)).collect::<BooleanArray>())
    })
}

fn contains(letter: char) -> Expr {
    let name: &'static str = Box::leak(format!("contains {letter}").into_boxed_str());
    lookup(0, name, Ty::Bool, move |strings| {
        Arc::new(strings.iter().map(|known| known.map(|known| known.contains(letter))).collect::<BooleanArray>())
    })
}

fn length(register: usize) -> Expr {
    lookup(register, "length", Ty::I32, |strings| {
        Arc::new(strings.iter().map(|known| known.map(|known| known.len() as i32)).collect::<Int32Array>())
    })
}

#[test]
fn filters_over_dictionaries() {
    // One code, a run of codes, scattered codes, no code.
    for condition in [is("fig"), is("no such"), contains('a'), contains('e')] {
        let calls = vec![count(), sum(reg(1), DataType::Int64)];
        check_orders(&single(4, vec![filter(condition)], vec![], calls), &[&facts(4_000)]);
    }
    // Truth of NULL: COALESCE(s, 'fig') = 'fig', and s IS DISTINCT FROM 'fig'.
    let coalesce = lookup(0, "coalesce", Ty::Bool, |strings| {
        Arc::new(strings.iter().map(|known| Some(known.unwrap_or("fig") == "fig")).collect::<BooleanArray>())
    });
    let reversed = lookup(0, "null if fig", Ty::Bool, |strings| {
        Arc::new(
            strings.iter().map(|known| (*known != Some("fig")).then_some(known.is_some())).collect::<BooleanArray>(),
        )
    });
    for condition in [coalesce, reversed] {
        check(&single(4, vec![filter(condition)], vec![], vec![count()]), &[&facts(3_000)]);
    }
}

#[test]
fn strings_as_groups_and_extremes() {
    let calls = vec![count(), min(reg(0), DataType::Utf8), max(reg(3), DataType::Utf8), max(reg(2), DataType::Utf8)];
    check_orders(&single(4, vec![], vec![(reg(0), DataType::Utf8)], calls.clone()), &[&facts(3_000)]);
    check(&single(4, vec![], vec![], calls), &[&facts(3_000)]);
    let by = vec![(reg(2), DataType::Utf8), (reg(3), DataType::Utf8)];
    check(&single(4, vec![], by, vec![count()]), &[&facts(3_000)]);
}

#[test]
fn functions_give_every_type() {
    let upper = lookup(0, "upper", Ty::U32, |strings| {
        Arc::new(strings.iter().map(|known| known.map(str::to_uppercase)).collect::<StringArray>())
    });
    let initial = lookup(0, "initial", Ty::U32, |strings| {
        let initial = |known: &Option<&str>| known.and_then(|known| known.get(0..1).map(str::to_string));
        Arc::new(strings.iter().map(initial).collect::<StringArray>())
    });
    let float = lookup(0, "float", Ty::F64, |strings| {
        Arc::new(strings.iter().map(|known| known.map(|known| known.len() as f64 / 4.0)).collect::<Float64Array>())
    });
    let decimal = lookup(0, "decimal", Ty::I128, |strings| {
        let values = strings.iter().map(|known| Some(known.map_or(-7, |known| known.len() as i128 * 1_000)));
        Arc::new(values.collect::<Decimal128Array>().with_precision_and_scale(10, 2).unwrap())
    });
    let unsigned = lookup(0, "unsigned", Ty::U64, |strings| {
        Arc::new(strings.iter().map(|known| known.map(|known| known.len() as u64)).collect::<UInt64Array>())
    });
    let by = vec![(upper.clone(), DataType::Utf8), (initial.clone(), DataType::Utf8)];
    let calls = vec![
        sum(float, DataType::Float64),
        sum(decimal, DataType::Decimal128(20, 2)),
        max(unsigned, DataType::UInt64),
        min(length(0), DataType::Int32),
        max(initial, DataType::Utf8),
        count_of(upper),
    ];
    check_orders(&single(4, vec![], by, calls), &[&facts(3_000)]);
}

#[test]
fn functions_of_a_column_without_strings() {
    let nothing = lookup(2, "upper", Ty::U32, |strings| Arc::new(StringArray::from(strings.to_vec())));
    let calls = vec![count(), sum(length(2), DataType::Int64), max(nothing.clone(), DataType::Utf8)];
    let report = check(&single(4, vec![], vec![(nothing, DataType::Utf8)], calls), &[&facts(2_000)]);
    assert!(!report.program().unwrap().source().contains("place = wc_table_enter"), "no hashing for one group");
}

#[test]
fn another_dictionary_needs_no_other_kernel() {
    let program = |words: usize| {
        let table =
            MemoryTable::new("t", vec![("s", texts(2_000, |row| (row % 9 != 0).then(|| format!("{}", row % words))))]);
        let fragment = single(1, vec![], vec![], vec![sum(length(0), DataType::Int64)]);
        check(&fragment, &[&table]).program().unwrap().hash().to_string()
    };
    // As long as codes take as many bits.
    assert_eq!(program(10), program(15));
}

#[test]
fn strings_of_a_join_partner() {
    let side = MemoryTable::new(
        "side",
        vec![
            ("k", numbers::<Int32Type>(80, |row| Some(row as i32))),
            ("name", texts(80, |row| (row % 5 != 0).then(|| format!("name {}", row % 11)))),
        ],
    );
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let first = lookup(4, "seventh", Ty::U32, |strings| {
            Arc::new(strings.iter().map(|known| known.and_then(|known| known.get(5..6))).collect::<StringArray>())
        });
        let fragment = fragment(
            &[4, 2],
            vec![
                builds(1, vec![], vec![reg(0)], vec![reg(1)]),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(1)], kind)],
                    vec![(first, DataType::Utf8), (reg(0), DataType::Utf8)],
                    vec![min(reg(4), DataType::Utf8), max(length(4), DataType::Int32), count()],
                ),
            ],
        );
        check_orders(&fragment, &[&facts(3_000), &side]);
    }
}

#[test]
fn results_keep_the_string_type_asked_for() {
    for data_type in [
        DataType::Utf8View,
        DataType::LargeUtf8,
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ] {
        let plain = texts(1_500, |row| (row % 4 != 0).then(|| format!("{}", row % 5)));
        let table = MemoryTable::new("t", vec![("s", cast(&plain, &data_type).unwrap())]);
        let fragment = single(1, vec![], vec![(reg(0), data_type.clone())], vec![max(reg(0), data_type.clone())]);
        check(&fragment, &[&table]);
        let (batch, _) = run(&engine(LaneOrder::Forward), &fragment, &[&table]).unwrap();
        assert_eq!((batch.column(0).data_type(), batch.column(1).data_type()), (&data_type, &data_type));
    }
}

const OPERATORS: [BinaryOp; 6] = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];

/// Two columns of strings, some of which they share, one constant and one without any.
fn two(rows: usize) -> MemoryTable {
    let word = |row: usize, seed: u64, words: u64| format!("w{}", mixed(row, seed) % words * (seed + 1));
    MemoryTable::new(
        "two",
        vec![
            ("a", texts(rows, |row| (row % 7 != 0).then(|| word(row, 1, 12)))),
            ("b", texts(rows, |row| (row % 5 != 0).then(|| word(row, 2, 30)))),
            ("c", texts(rows, |row| Some(word(row, 3, 4)))),
            ("one", texts(rows, |row| (row % 3 != 0).then(|| "w8".to_string()))),
            ("none", new_null_array(&DataType::Utf8, rows)),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    )
}

fn text(text: &str) -> Expr {
    Expr::Text(text.into())
}

#[test]
fn strings_of_two_columns_compare() {
    for (left, right) in [(reg(0), reg(1)), (reg(1), reg(2)), (reg(3), reg(0)), (reg(4), reg(1)), (text("w6"), reg(2))]
    {
        let compare = |op| min(binary(op, left.clone(), right.clone()), DataType::Boolean);
        let calls = OPERATORS.map(compare).to_vec();
        check(&single(6, vec![], vec![(reg(5), DataType::Int32)], calls), &[&two(700)]);
    }
    // As a filter on whole vectors, where both sides have NULLs.
    for op in [BinaryOp::Eq, BinaryOp::Lt] {
        check_orders(&single(6, vec![filter(binary(op, reg(0), reg(1)))], vec![], vec![count()]), &[&two(3_000)]);
    }
    let upper = lookup(0, "upper", Ty::U32, |strings| {
        Arc::new(strings.iter().map(|known| known.map(str::to_uppercase)).collect::<StringArray>())
    });
    let lower = lookup(1, "upper of b", Ty::U32, |strings| {
        Arc::new(strings.iter().map(|known| known.map(str::to_uppercase)).collect::<StringArray>())
    });
    check(&single(6, vec![filter(binary(BinaryOp::Eq, upper, lower))], vec![], vec![count()]), &[&two(1_500)]);
}

#[test]
fn one_of_several_strings() {
    let odd = binary(BinaryOp::Eq, binary(BinaryOp::Rem, reg(5), int(2, Ty::I32)), int(1, Ty::I32));
    let present = |register| unary(UnaryOp::IsNotNull, reg(register));
    let chosen = [
        Expr::Case(vec![(odd.clone(), reg(0))], Box::new(reg(1))),
        Expr::Case(vec![(present(0), reg(0)), (present(1), reg(1))], Box::new(text("neither"))),
        Expr::Case(vec![(odd.clone(), reg(2))], Box::new(null(Ty::U32))),
        Expr::Case(vec![(odd.clone(), text("odd"))], Box::new(text("even"))),
        Expr::Case(vec![(present(4), reg(4)), (odd, reg(3))], Box::new(reg(2))),
    ];
    for value in chosen {
        let calls = vec![count(), min(value.clone(), DataType::Utf8), max(value.clone(), DataType::Utf8)];
        check_orders(&single(6, vec![], vec![(value.clone(), DataType::Utf8)], calls.clone()), &[&two(1_500)]);
        let known = filter(binary(BinaryOp::Ge, value, reg(1)));
        check(&single(6, vec![known], vec![], calls), &[&two(1_500)]);
    }
}

#[test]
fn strings_as_join_keys() {
    let names = MemoryTable::new(
        "names",
        vec![
            ("name", texts(40, |row| (row != 7).then(|| format!("w{}", row * 2)))),
            ("n", numbers::<Int32Type>(40, |row| (row % 6 != 0).then_some(row as i32 * 10))),
        ],
    );
    for (kind, key) in [
        (JoinKind::Inner, reg(0)),
        (JoinKind::Left, reg(1)),
        (JoinKind::Semi, reg(2)),
        (JoinKind::Anti, reg(1)),
        (JoinKind::Anti, reg(4)),
        (JoinKind::Inner, reg(3)),
    ] {
        let takes = matches!(kind, JoinKind::Inner | JoinKind::Left);
        let payload = if takes { vec![reg(0), reg(1)] } else { vec![] };
        let mut calls = vec![count(), sum(reg(5), DataType::Int64)];
        if takes {
            calls.extend([min(reg(6), DataType::Utf8), sum(reg(7), DataType::Int64)]);
        }
        let fragment = fragment(
            &[6, 2],
            vec![
                builds(1, vec![], vec![reg(0)], payload),
                aggregates(0, vec![probe(0, vec![key], kind)], vec![(reg(2), DataType::Utf8)], calls),
            ],
        );
        check_orders(&fragment, &[&two(2_000), &names]);
    }
    // A string beside a number, and a string that is computed.
    let pairs = |row: usize| format!("w{}", row / 3);
    let side = MemoryTable::new(
        "side",
        vec![("s", texts(90, |row| Some(pairs(row)))), ("n", numbers::<Int32Type>(90, |row| Some(row as i32 % 3)))],
    );
    let rest = binary(BinaryOp::Rem, reg(5), int(4, Ty::I32));
    let either = Expr::Case(vec![(unary(UnaryOp::IsNotNull, reg(0)), reg(0))], Box::new(reg(1)));
    let fragment = fragment(
        &[6, 2],
        vec![
            builds(1, vec![], vec![reg(0), reg(1)], vec![]),
            aggregates(0, vec![probe(0, vec![either, rest], JoinKind::Inner)], vec![], vec![count()]),
        ],
    );
    check_orders(&fragment, &[&two(2_000), &side]);
}

#[test]
fn what_strings_cannot_do_is_refused() {
    let reason = |fragment| match run(&engine(LaneOrder::Forward), &fragment, &[&facts(100)]) {
        Err(EngineError::Unsupported(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason(single(4, vec![], vec![], vec![sum(reg(0), DataType::Int64)])).contains("sum of strings"));
    let failing = lookup(0, "fails", Ty::I32, |strings| Arc::new(Int32Array::from(vec![1; strings.len()])) as ArrayRef);
    let converted = convert(reg(0), Ty::I64);
    assert!(reason(single(4, vec![], vec![], vec![count_of(converted)])).contains("codes"));
    check(&single(4, vec![], vec![], vec![sum(failing, DataType::Int64)]), &[&facts(1_100)]);
    let same = binary(BinaryOp::Eq, reg(0), reg(0));
    check(&single(4, vec![filter(same)], vec![], vec![count()]), &[&facts(1_100)]);
}
