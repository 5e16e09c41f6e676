//! The first rows of a table by an order: every kind of key, direction and place of NULL, every algorithm, and runs
//! whose threshold fails.

use arrow::array::new_null_array;
use arrow::datatypes::{DataType, Float32Type, Int8Type, Int32Type, Int64Type, UInt64Type};
use warpcube_engine::{BinaryOp, Engine, EngineError, Expr, OrderKey, Step, TopKAlgorithm, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Rows above which a threshold is taken.
const SAMPLED: usize = 40_000;

/// A float of any kind.
fn any_float(row: usize) -> Option<f64> {
    Some(match mixed(row, 9) % 13 {
        0 => return None,
        1 => f64::NAN,
        2 => -f64::NAN,
        3 => f64::INFINITY,
        4 => f64::NEG_INFINITY,
        5 => -0.0,
        6 => 0.0,
        7 => 5e-324,
        8 => -1.0 / 3.0,
        _ => (mixed(row, 10) % 1000) as f64 - 500.25,
    })
}

/// Columns of every kind of key.
pub(crate) fn all_kinds(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "kinds",
        vec![
            ("tiny", numbers::<Int8Type>(rows, |row| (row % 5 > 0).then_some(mixed(row, 1) as i8))),
            ("int", numbers::<Int32Type>(rows, |row| Some(mixed(row, 2) as i32 % 50))),
            ("long", numbers::<Int64Type>(rows, |row| (row % 7 > 0).then_some(mixed(row, 3) as i64))),
            ("unsigned", numbers::<UInt64Type>(rows, |row| Some(mixed(row, 4)))),
            ("single", numbers::<Float32Type>(rows, |row| any_float(row).map(|value| value as f32))),
            ("double", floats(rows, any_float)),
            ("decimal", decimals(rows, 15, 2, |row| (row % 3 > 0).then_some(mixed(row, 5) as i128 % 100_000))),
            ("day", days(rows, |row| Some(mixed(row, 6) as i32 % 20_000))),
            ("flag", truths(rows, |row| (row % 4 > 0).then_some(mixed(row, 7) & 1 == 0))),
            ("text", texts(rows, |row| (row % 6 > 0).then(|| format!("né{}", mixed(row, 8) % 300)))),
            ("nothing", new_null_array(&DataType::Int64, rows)),
        ],
    )
}

fn key(expr: Expr, descending: bool, nulls_first: bool) -> OrderKey {
    OrderKey { expr, descending, nulls_first }
}

fn directions() -> impl Iterator<Item = (bool, bool)> {
    [(false, false), (false, true), (true, false), (true, true)].into_iter()
}

#[test]
fn keys_of_every_kind_in_every_direction() {
    let table = all_kinds(2_000);
    // Two ways for each column are all four for each kind of value.
    let ways = |column: usize| directions().skip(column % 2).step_by(2).map(move |way| (column, way));
    let fragments = (0..11).flat_map(ways).map(|(column, (descending, nulls_first))| {
        first_rows(&table, vec![], vec![key(reg(column), descending, nulls_first)], 25)
    });
    check_all_rows(&engine(LaneOrder::Forward), &fragments.collect::<Vec<_>>(), &table);
}

#[test]
fn several_keys_in_mixed_directions() {
    let table = all_kinds(2_000);
    let mut fragments = Vec::new();
    for columns in [vec![8, 1, 9], vec![1, 6, 0], vec![10, 8, 4], vec![9, 7], vec![2, 1]] {
        for (descending, nulls_first) in directions().step_by(3) {
            let alternate = |(position, column): (usize, &usize)| {
                let turned = position % 2 == 1;
                key(reg(*column), descending ^ turned, nulls_first ^ (position % 3 == 1))
            };
            let keys = columns.iter().enumerate().map(alternate).collect();
            fragments.push(first_rows(&table, vec![], keys, 300));
        }
    }
    check_all_rows(&engine(LaneOrder::Seeded(3)), &fragments, &table);
}

#[test]
fn computed_keys_over_filtered_rows() {
    let table = all_kinds(3_000);
    let sum = binary(BinaryOp::Add, convert(reg(1), Ty::I64), convert(reg(0), Ty::I64));
    let some = || vec![filter(binary(BinaryOp::Gt, reg(1), int(-10, Ty::I32)))];
    check_rows(&first_rows(&table, some(), vec![descending(sum.clone()), ascending(reg(7))], 40), &table);
    let few = vec![filter(binary(BinaryOp::Eq, reg(1), int(7, Ty::I32)))];
    check_rows(&first_rows(&table, few, vec![ascending(reg(5))], 2_000), &table);
    let none = vec![filter(binary(BinaryOp::Gt, reg(1), int(1_000, Ty::I32)))];
    check_rows(&first_rows(&table, none, vec![ascending(sum)], 5), &table);
}

#[test]
fn a_key_is_cut_where_ranks_and_tails_meet() {
    let table = all_kinds(2_000);
    let mut fragments = Vec::new();
    // Small keys before floats, integers and decimals, whose lower bits lie in the tail.
    let product = || binary(BinaryOp::Mul, reg(6), int((1 << 90) + 1, Ty::I128));
    for keys in [
        vec![reg(1), reg(5), reg(3), reg(2)],
        vec![reg(8), reg(2), reg(5), reg(3), reg(0)],
        vec![reg(1), product(), reg(2), reg(7)],
        vec![reg(8), reg(1), reg(3), product(), reg(7)],
    ] {
        for (descending, nulls_first) in directions() {
            let alternate = |(position, expr): (usize, &Expr)| {
                key(expr.clone(), descending ^ (position % 2 == 1), nulls_first ^ (position % 3 == 1))
            };
            let keys = keys.iter().enumerate().map(alternate).collect();
            fragments.push(first_rows(&table, vec![], keys, 300));
        }
    }
    check_all_rows(&engine(LaneOrder::Seeded(5)), &fragments, &table);
}

/// Distributions that mislead samples or selections.
fn distributions(rows: usize) -> MemoryTable {
    let n = rows as i64;
    MemoryTable::new(
        "distributions",
        vec![
            ("random", numbers::<Int64Type>(rows, |row| Some(mixed(row, 1) as i64))),
            ("rising", numbers::<Int64Type>(rows, |row| Some(row as i64))),
            ("falling", numbers::<Int32Type>(rows, |row| Some((n - row as i64) as i32))),
            ("equal", numbers::<Int32Type>(rows, |_| Some(7))),
            // Nearly all keys within a narrow range, one far away: equal buckets between the extremes separate nothing.
            ("outlier", floats(rows, |row| Some(if row == 777 { 1e300 } else { 1.0 + (mixed(row, 2) % 99) as f64 }))),
            ("absent", floats(rows, |row| (row == 5).then_some(f64::NAN))),
            ("rare", numbers::<Int32Type>(rows, |row| Some(i32::from(mixed(row, 3) % 9_000 == 0)))),
        ],
    )
}

#[test]
fn thresholds_from_samples_on_every_distribution() {
    let table = distributions(SAMPLED);
    let engine = engine(LaneOrder::Forward);
    let orders =
        |column| [(descending(reg(column)), 100), (ascending(reg(column)), 1), (descending(reg(column)), 5_000)];
    let fragments = (0..7).flat_map(orders).map(|(order, k)| first_rows(&table, vec![], vec![order], k));
    for report in check_all_rows(&engine, &fragments.collect::<Vec<_>>(), &table) {
        let top = report.top.unwrap();
        assert!(top.starts_with("threshold") && top.contains("rows drawn"), "{top}");
        assert_eq!(report.reruns, 0, "{top}");
    }
    // Few of the drawn rows pass, or none: all that pass are candidates.
    for rare in [1, 2] {
        let steps = || vec![filter(binary(BinaryOp::Eq, reg(6), int(rare, Ty::I32)))];
        check_rows_on(&engine, &first_rows(&table, steps(), vec![ascending(reg(0))], 1_000), &table);
    }
}

#[test]
fn thresholds_in_every_order_of_lanes() {
    let table = distributions(SAMPLED);
    let steps = || vec![filter(binary(BinaryOp::Gt, reg(0), int(0, Ty::I64)))];
    check_rows(&first_rows(&table, steps(), vec![descending(reg(4)), ascending(reg(1))], 64), &table);
    check_rows(&first_rows(&table, vec![], vec![ascending(reg(3))], 64), &table);
}

#[test]
fn algorithms_give_the_same_rows() {
    let table = distributions(3_000);
    let engine = engine(LaneOrder::Forward);
    let algorithms = || TopKAlgorithm::ALL.into_iter().chain(["bitonic_global".parse().unwrap()]);
    let mut fragments = Vec::new();
    for algorithm in algorithms() {
        for keys in [vec![descending(reg(0))], vec![ascending(reg(4)), descending(reg(2))], vec![ascending(reg(3))]] {
            let steps = vec![filter(binary(BinaryOp::Ne, reg(6), int(1, Ty::I32)))];
            fragments.push(by(first_rows(&table, steps, keys, 13), algorithm));
        }
    }
    let reports = check_all_rows(&engine, &fragments, &table);
    for (report, algorithm) in
        reports.chunks(3).zip(algorithms()).flat_map(|(three, named)| three.iter().map(move |r| (r, named)))
    {
        assert!(report.top.as_ref().unwrap().starts_with(&format!("{algorithm}: ")));
    }
}

#[test]
fn a_threshold_that_fails_is_taken_back() {
    let table = distributions(SAMPLED);
    for (tuning, steps) in [
        // Far above the k-th row: too few candidates.
        ("top_deviations=-9", vec![]),
        // No room for the candidates.
        ("top_room=0", vec![filter(binary(BinaryOp::Gt, reg(0), int(0, Ty::I64)))]),
    ] {
        let engine = engine(LaneOrder::Forward).with_tuning(tuning.parse().unwrap());
        let fragment = first_rows(&table, steps, vec![descending(reg(0))], 3_000);
        let report = check_rows_on(&engine, &fragment, &table);
        assert_eq!(report.reruns, 1, "{tuning}");
        let top = report.top.unwrap();
        assert!(top.starts_with("threshold") && top.contains("rows drawn") && top.contains("too few"), "{top}");
    }
}

#[test]
fn a_threshold_that_fails_costs_no_memory_for_all_rows() {
    const ROWS: usize = 200_000;
    let table = MemoryTable::new("random", vec![("a", floats(ROWS, |row| Some(mixed(row, 3) as f64)))]);
    let fragment = first_rows(&table, vec![], vec![descending(reg(0))], 64);
    let usual = check_rows_on(&engine(LaneOrder::Forward), &fragment, &table);
    let cache = warpcube_engine::BindingCache::default();
    let engine = engine(LaneOrder::Forward).with_tuning("top_deviations=-9".parse().unwrap());
    for reruns in [1, 0, 0] {
        let report = run_again(&engine, &fragment, &table, &cache).unwrap().1;
        assert_eq!(report.reruns, reruns);
        assert!(report.top.as_ref().unwrap().starts_with("threshold"), "{:?}", report.top);
        // Twice the room, and no rank of 16 bytes for each row.
        let bytes = [report.arena_bytes, usual.arena_bytes];
        assert!(bytes[0] < 3 * bytes[1] && bytes[0] < ROWS as u64 * 16 / 2, "{bytes:?}");
    }
}

#[test]
fn any_number_of_rows() {
    let engine = engine(LaneOrder::Forward);
    for rows in [0, 1, 31, 1024, 2_100] {
        let table = all_kinds(rows);
        for k in [0, 1, 32, 2_100, 1 << 20] {
            check_rows_on(&engine, &first_rows(&table, vec![], vec![descending(reg(3)), ascending(reg(9))], k), &table);
        }
    }
}

#[test]
fn keys_wider_than_a_rank() {
    let table = all_kinds(2_000);
    let engine = engine(LaneOrder::Reversed);
    let wide = |columns: &[usize]| {
        columns.iter().enumerate().map(|(place, column)| key(reg(*column), place % 2 == 0, place % 3 == 0)).collect()
    };
    for columns in [&[5, 3][..], &[8, 5, 2, 1], &[5, 4, 3, 9], &[10, 3, 5]] {
        check_rows_on(&engine, &first_rows(&table, vec![], wide(columns), 150), &table);
    }
    let table = distributions(SAMPLED);
    check_rows(&first_rows(&table, vec![], wide(&[4, 5, 0]), 64), &table);
    // Nearly all rows share the first two keys: the third tells candidates from others. A threshold that fails is taken
    // by another seed.
    let same = first_rows(&table, vec![], vec![descending(reg(5)), descending(reg(5)), ascending(reg(0))], 64);
    for (tuning, reruns) in [("", 0), ("top_deviations=-9", 1), ("top_room=0", 1)] {
        let engine = crate::support::engine(LaneOrder::Forward).with_tuning(tuning.parse().unwrap());
        let report = check_rows_on(&engine, &same, &table);
        assert_eq!(report.reruns, reruns, "{tuning}");
        assert!(report.top.unwrap().contains("rows drawn"), "{tuning}");
    }
}

#[test]
fn wide_keys_take_an_eighth_of_their_memory() {
    const ROWS: usize = 200_000;
    let same = |value: f64| floats(ROWS, move |_| Some(value));
    let random = floats(ROWS, |row| Some(mixed(row, 3) as f64));
    let tables = [
        vec![("a", same(1.0)), ("b", same(2.0)), ("c", same(3.0))],
        vec![("a", same(1.0)), ("b", same(2.0)), ("c", random.clone())],
        vec![("a", random), ("b", same(2.0)), ("c", same(3.0))],
    ];
    for columns in tables {
        let table = MemoryTable::new("wide", columns);
        let engine = engine(LaneOrder::Forward);
        let keys = (0..3).map(|column| descending(reg(column))).collect();
        let report = check_rows_on(&engine, &first_rows(&table, vec![], keys, 64), &table);
        assert_eq!(report.reruns, 0);
        assert!(report.arena_bytes < ROWS as u64 * 24 / 8, "{} bytes", report.arena_bytes);
    }
}

#[test]
fn a_key_of_the_tail_raises_for_rows_below_the_threshold() {
    let table = distributions(SAMPLED);
    let engine = engine(LaneOrder::Forward);
    // The first two keys, of 128 bits, leave the quotient in the tail; its divisor is zero in one row, the last but
    // one in the order.
    let double = || ascending(convert(reg(1), Ty::F64));
    let keys = |zero_at: i64| {
        let divisor = binary(BinaryOp::Sub, reg(1), int(zero_at.into(), Ty::I64));
        vec![double(), double(), ascending(binary(BinaryOp::Div, int(100, Ty::I64), divisor))]
    };
    let none = first_rows(&table, vec![], keys(-1), 3);
    let report = check_rows_on(&engine, &none, &table);
    assert!(report.top.unwrap().contains("rows drawn"));
    let zero_at = SAMPLED as i64 - 2;
    for steps in [vec![], vec![filter(binary(BinaryOp::Gt, reg(1), int(10, Ty::I64)))]] {
        let raised = run(&engine, &first_rows(&table, steps, keys(zero_at), 3), &[&table]);
        assert!(matches!(raised, Err(EngineError::Evaluation(_))), "{:?}", raised.map(|_| ()));
    }
    // A row that a filter drops raises nothing.
    let dropped = vec![filter(binary(BinaryOp::Lt, reg(1), int(zero_at.into(), Ty::I64)))];
    check_rows_on(&engine, &first_rows(&table, dropped, keys(zero_at), 3), &table);
}

#[test]
fn what_is_too_wide_or_too_many_is_refused() {
    let table = all_kinds(100);
    let engine = engine(LaneOrder::Forward);
    let refusal = |fragment| match run(&engine, &fragment, &[&table]) {
        Err(EngineError::Unsupported(reason)) => reason,
        other => panic!("{other:?}"),
    };
    // The same keys as expressions: registers that come again tell no rows apart.
    let again = |column| Expr::Case(vec![(int(1, Ty::Bool), reg(column))], Box::new(reg(column)));
    let keys = [reg(3), reg(5), again(3), again(5)].map(ascending).to_vec();
    let wide = refusal(first_rows(&table, vec![], keys, 3));
    assert!(wide.contains("keys of 256 bits, where 249 are the most"), "{wide}");
    let named =
        by(first_rows(&table, vec![], vec![ascending(reg(3)), ascending(reg(5))], 3), TopKAlgorithm::RadixSelect);
    assert!(refusal(named).contains("radix_select of keys of 128 bits"));
    let heap = by(first_rows(&table, vec![], vec![ascending(reg(3))], 90), "heap_registers".parse().unwrap());
    assert!(refusal(heap).contains("heap_registers of u128 ends at 64"));
}

#[test]
fn rows_that_raise_are_told() {
    let table = all_kinds(1_000);
    let quotient = binary(BinaryOp::Div, int(1, Ty::I32), reg(1));
    let raises = |steps: Vec<Step>| {
        run(&engine(LaneOrder::Forward), &first_rows(&table, steps, vec![ascending(quotient.clone())], 3), &[&table])
    };
    assert!(matches!(raises(vec![]), Err(EngineError::Evaluation(_))));
    assert!(raises(vec![filter(binary(BinaryOp::Ne, reg(1), int(0, Ty::I32)))]).is_ok());
}

#[test]
fn a_kept_binding_gives_the_same_rows_again() {
    let table = distributions(SAMPLED);
    let engine: Engine = engine(LaneOrder::Forward);
    let fragment = first_rows(&table, vec![], vec![descending(reg(4)), ascending(reg(2))], 700);
    let cache = warpcube_engine::BindingCache::default();
    let runs = [0, 1, 2].map(|_| run_again(&engine, &fragment, &table, &cache).unwrap().0);
    assert!(runs.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(runs[0].num_rows(), 700);
}
