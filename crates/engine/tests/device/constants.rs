//! Constants are parameters: a fragment of the same shape with others has the same program.

use std::sync::Arc;

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{
    BinaryOp, BindingCache, BindingOrigin, Expr, Fragment, JoinKind, LikePattern, Pipeline, Source, TextMatch, Ty,
};
use warpcube_gpu::LaneOrder;

use crate::support::*;

fn facts(rows: usize) -> MemoryTable {
    let strings = |many: u64, seed| {
        let text = move |row: usize| {
            (many != 50 || row % 11 != 3).then(|| format!("{:03} of {many}", mixed(row, seed) % many))
        };
        texts(rows, text)
    };
    MemoryTable::new(
        "facts",
        vec![
            ("day", numbers::<Int32Type>(rows, |row| Some(mixed(row, 1) as i32 % 2_000))),
            ("discount", numbers::<Int32Type>(rows, |row| (row % 17 != 4).then(|| mixed(row, 2) as i32 % 11))),
            ("quantity", numbers::<Int64Type>(rows, |row| Some(mixed(row, 3) as i64 % 50))),
            ("few", strings(20, 4)),
            ("some", strings(50, 5)),
            ("many", strings(200, 6)),
            ("price", decimals(rows, 18, 2, |row| Some((mixed(row, 7) % 100_000) as i128))),
        ],
    )
}

/// Whether register is between two constants.
fn between(register: usize, ty: Ty, (low, high): (i128, i128)) -> Expr {
    let compare = |op, bound| binary(op, reg(register), int(bound, ty));
    binary(BinaryOp::And, compare(BinaryOp::Ge, low), compare(BinaryOp::Lt, high))
}

/// The program of a fragment that equals the interpreter in all orders of lanes.
#[track_caller]
fn program(fragment: &Fragment, table: &MemoryTable) -> String {
    check_orders(fragment, &[table]);
    check_on(&engine(LaneOrder::Forward), fragment, &[table]).program().expect("it ran").full_source()
}

/// Checks that fragments with each of the constants have one program; how many took over what was bound before.
#[track_caller]
fn one_program<T: std::fmt::Debug>(constants: impl IntoIterator<Item = T>, filters: impl Fn(&T) -> Vec<Expr>) -> usize {
    let table = facts(4_000);
    let (engine, cache) = (engine(LaneOrder::Forward), BindingCache::default());
    let (mut first, mut taken): (Option<String>, _) = (None, 0);
    for constants in constants {
        let steps = filters(&constants).into_iter().map(filter).collect();
        let fragment = single(7, steps, vec![], vec![count(), sum(reg(2), DataType::Int64)]);
        let found = program(&fragment, &table);
        let report = compare_again(&engine, &fragment, &cache.for_other_constants(), &[&table]);
        taken += usize::from(report.origin == BindingOrigin::TakenOver);
        match &first {
            Some(first) => assert_eq!(*first, found, "{constants:?}"),
            None => first = Some(found),
        }
    }
    taken
}

/// A join of facts of some days with others of some text and discounts, by quantity, and what its groups sum up to.
fn joined(days: (i128, i128), text: &str, discounts: (i128, i128)) -> Fragment {
    let named = vec![filter(test(3, TextMatch::In(vec![text.into()]))), filter(between(1, Ty::I32, discounts))];
    let of_days = vec![
        filter(between(0, Ty::I32, days)),
        probe(0, vec![reg(2)], JoinKind::Semi),
        filter(binary(BinaryOp::Ne, binary(BinaryOp::Mul, reg(6), reg(6)), int(days.0, Ty::I128))),
    ];
    let calls = vec![count(), sum(reg(0), DataType::Int64)];
    let pipelines =
        vec![builds(0, named, vec![reg(2)], vec![]), aggregates(1, of_days, vec![(reg(2), DataType::Int64)], calls)];
    fragment(&[7, 7], pipelines)
}

#[test]
fn other_constants_take_over_what_was_bound() {
    for order in ORDERS {
        let (table, engine, cache) = (facts(40_000), engine(order), BindingCache::default());
        let again = |cache: &BindingCache, days, text: &str, discounts| {
            compare_again(&engine, &joined(days, text, discounts), cache, &[&table, &table]).origin
        };
        let of = |days, text, discounts| again(&cache.for_other_constants(), days, text, discounts);
        assert_eq!(again(&cache, (100, 400), "003 of 20", (1, 5)), BindingOrigin::Anew);
        assert_eq!(of((700, 1_400), "007 of 20", (2, 5)), BindingOrigin::TakenOver);
        assert_eq!(of((1_200, 1_500), "019 of 20", (3, 8)), BindingOrigin::TakenOver);
        // The constants of the binding are the shape's last ones, and a cache keeps its own.
        assert_eq!(again(&cache, (100, 400), "003 of 20", (1, 5)), BindingOrigin::Kept);
        // Comparisons that hold for no value, or for all, have other kernels.
        assert_eq!(of((100, 400), "no such", (1, 5)), BindingOrigin::Anew);
        assert_eq!(of((-5, 5_000), "003 of 20", (1, 5)), BindingOrigin::Anew);
        // Much fewer rows pass.
        assert_eq!(of((100, 101), "003 of 20", (1, 5)), BindingOrigin::Anew);
        assert_eq!(of((102, 104), "003 of 20", (1, 5)), BindingOrigin::TakenOver);
        assert_eq!(of((102, 106), "003 of 20", (1, 5)), BindingOrigin::TakenOver);
        // More by and by, and more of one column while there are fewer of another.
        assert_eq!(of((102, 112), "003 of 20", (1, 5)), BindingOrigin::Anew);
        // Other columns.
        engine.residency().clear();
        assert_eq!(of((102, 104), "003 of 20", (1, 5)), BindingOrigin::Anew);
        // Another shape shares nothing.
        assert_eq!(again(&BindingCache::default(), (102, 104), "003 of 20", (1, 5)), BindingOrigin::Anew);
    }
}

#[test]
fn first_rows_take_over_what_was_bound() {
    let (table, engine, cache) = (facts(40_000), engine(LaneOrder::Forward), BindingCache::default());
    let again = |cache: &BindingCache, days, most: i128| {
        let steps = vec![filter(between(0, Ty::I32, days)), filter(binary(BinaryOp::Lt, reg(2), int(most, Ty::I64)))];
        let fragment = first_rows(&table, steps, vec![descending(reg(6))], 20);
        check_rows_on(&engine, &fragment, &table);
        let [(batch, report), (expected, _)] =
            [cache, &BindingCache::default()].map(|cache| run_again(&engine, &fragment, &table, cache).unwrap());
        assert_eq!(batch, expected, "{days:?} {most}");
        // A sample by the constants of another would let too few or too many pass.
        let top = report.top.unwrap();
        assert!(top.contains("rows drawn") && report.reruns == 0, "{days:?} {most}: {top}");
        report.origin
    };
    assert_eq!(again(&cache, (100, 900), 40), BindingOrigin::Anew);
    assert_eq!(again(&cache.for_other_constants(), (300, 1_700), 30), BindingOrigin::TakenOver);
    assert_eq!(again(&cache.for_other_constants(), (1_000, 1_400), 45), BindingOrigin::TakenOver);
}

#[test]
fn bounds_of_one_column_do_not_change_places() {
    // By their shares alone the lower bound would come first in one, the upper one in another.
    one_program([(100, 400), (1_700, 1_990), (900, 1_100)], |days| {
        vec![
            between(0, Ty::I32, *days),
            between(1, Ty::I32, (days.0 / 250, days.0 / 250 + 2)),
            binary(BinaryOp::Lt, reg(2), int(days.0 / 60 + 5, Ty::I64)),
        ]
    });
}

#[test]
fn lists_of_strings_that_happen_to_be_neighbours_are_lists() {
    for column in [3, 4, 5] {
        let lists = [["001", "002"], ["001", "017"], ["000", "no such"]];
        // Tables of codes are among what was bound.
        let taken = one_program(lists, |list| {
            let named = list.map(|number| Arc::from(format!("{number} of {}", [20, 50, 200][column - 3])));
            vec![test(column, TextMatch::In(named.to_vec()))]
        });
        assert_eq!(taken, 2);
        one_program(["00%", "01%"], |pattern| vec![test(column, TextMatch::Like(LikePattern::new(pattern)))]);
        one_program(["%3%", "%7%"], |pattern| vec![test(column, TextMatch::Like(LikePattern::new(pattern)))]);
        one_program(["004 of 50", "005", "006 of 2"], |text| {
            vec![test(column, TextMatch::Order(BinaryOp::Lt, (*text).into()))]
        });
    }
}

#[test]
fn decimals_of_any_size_are_compared_alike() {
    for op in [BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Gt, BinaryOp::Le] {
        for numbers in [[i64::MAX.into(), 10i128.pow(20), 10i128.pow(37)], [i64::MIN.into(), -(10i128.pow(25)), -1]] {
            one_program(numbers, |number| vec![binary(op, int(*number, Ty::I128), reg(6))]);
        }
        let square =
            || binary(BinaryOp::Mul, binary(BinaryOp::Mul, reg(6), reg(6)), binary(BinaryOp::Mul, reg(6), reg(6)));
        one_program([50_000, 10i128.pow(19), 10i128.pow(25)], |number| {
            vec![binary(op, square(), int(*number, Ty::I128))]
        });
    }
}

/// Groups by discount of facts of some days, of which those above a number are counted, and their sums added up.
fn over_groups(days: (i128, i128), many: i128, by: usize, data_type: DataType) -> Fragment {
    let calls = vec![count(), sum(reg(2), DataType::Int64)];
    let inner = aggregates(0, vec![filter(between(0, Ty::I32, days))], vec![(reg(by), data_type)], calls);
    let having = filter(binary(BinaryOp::Gt, reg(1), int(many, Ty::I64)));
    let root = aggregates(0, vec![having], vec![], vec![count(), sum(reg(2), DataType::Int64)]);
    fragment(&[7], vec![inner, Pipeline { source: Source::Output(0), ..root }])
}

#[test]
fn filters_over_groups_have_the_constants_of_their_statement() {
    // Places by key, by code, and hashed ones.
    for (by, data_type) in [(1, DataType::Int32), (4, DataType::Utf8), (0, DataType::Int32), (2, DataType::Int64)] {
        let (table, engine, cache) = (facts(20_000), engine(LaneOrder::Forward), BindingCache::default());
        for (days, many) in [((100, 900), 80), ((300, 1_100), 60), ((300, 1_100), 4), ((900, 1_700), 170)] {
            let fragment = over_groups(days, many, by, data_type.clone());
            compare_again(&engine, &fragment, &cache.for_other_constants(), &[&table]);
        }
    }
}
