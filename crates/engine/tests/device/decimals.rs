//! Decimals: narrow and wide sums, products, scales, conversions.

use arrow::datatypes::{DataType, Int32Type};
use warpcube_engine::{AggregateCall, BinaryOp, EngineError, Expr, JoinKind, Literal, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

fn table(rows: usize, largest: i128) -> MemoryTable {
    let value = |row: usize, seed: u64| i128::from(mixed(row, seed)) % (2 * largest + 1) - largest;
    MemoryTable::new(
        "t",
        vec![
            ("p", decimals(rows, 18, 2, |row| (row % 9 != 4).then(|| value(row, 1)))),
            ("q", decimals(rows, 18, 2, |row| Some(value(row, 2)))),
            ("g", numbers::<Int32Type>(rows, |row| Some(row as i32 % 600))),
        ],
    )
}

fn rescale(inner: Expr, power: i8) -> Expr {
    Expr::Rescale(Box::new(inner), power)
}

#[test]
fn sums_narrow_and_wide() {
    // Up to 63 bits for all rows together, then sums in two parts, or in three of products whose upper bits may leave
    // 64; sums of products of full 64-bit values are too wide.
    for largest in [10_000, 1 << 40, 1 << 55, i64::MAX as i128 / 2] {
        let product = binary(BinaryOp::Mul, reg(0), reg(1));
        let calls = |wide: bool| {
            let mut calls = vec![
                sum(reg(0), DataType::Decimal128(28, 2)),
                sum(binary(BinaryOp::Sub, reg(1), reg(0)), DataType::Decimal128(29, 2)),
                min(reg(0), DataType::Decimal128(18, 2)),
                max(reg(1), DataType::Decimal128(18, 2)),
            ];
            if wide {
                calls.push(sum(product.clone(), DataType::Decimal128(38, 4)));
            }
            calls
        };
        let wide = largest <= 1 << 55;
        for groups in [vec![], vec![(reg(2), DataType::Int32)]] {
            check_orders(&single(3, vec![], groups, calls(wide)), &[&table(2_500, largest)]);
        }
    }
}

#[test]
fn wide_decimals_are_rounded() {
    // Products of 80 bits, divided by powers of ten on both sides of 64 bits.
    let product = || binary(BinaryOp::Mul, reg(0), reg(1));
    let mut calls: Vec<_> =
        [-1, -17, -19, -22].map(|power| sum(rescale(product(), power), DataType::Decimal128(38, 4))).into();
    // Halves are rounded away from zero.
    let half = int(5 * 10i128.pow(20), Ty::I128);
    let halves = rescale(binary(BinaryOp::Mul, reg(1), half), -21);
    calls.extend([sum(halves.clone(), DataType::Decimal128(38, 2)), min(convert(halves, Ty::I64), DataType::Int64)]);
    for groups in [vec![], vec![(reg(2), DataType::Int32)]] {
        check_orders(&single(3, vec![], groups, calls.clone()), &[&table(2_500, 1 << 40)]);
    }
}

#[test]
fn values_whose_sum_may_leave_38_digits_raise() {
    let product = binary(BinaryOp::Mul, reg(0), reg(1));
    let fragment = single(3, vec![], vec![], vec![sum(product, DataType::Decimal128(38, 4))]);
    let error = run(&engine(LaneOrder::Forward), &fragment, &[&table(2_500, i64::MAX as i128 / 2)]).unwrap_err();
    assert!(matches!(error, EngineError::Evaluation("an overflow")), "{error}");
    // Those that bounds alone would let leave them do not.
    let rare = |of: usize| move |row: usize| Some(if row == of { i128::from(i64::MAX / 2) } else { row as i128 - 300 });
    let rare =
        MemoryTable::new("t", vec![("p", decimals(600, 18, 2, rare(7))), ("q", decimals(600, 18, 2, rare(300)))]);
    let product = binary(BinaryOp::Mul, reg(0), reg(1));
    check_orders(&single(2, vec![], vec![], vec![sum(product, DataType::Decimal128(38, 4))]), &[&rare]);
}

#[test]
fn squared_deviations_are_rounded_once() {
    // (n - 1) x², of up to 126 bits.
    let counted = binary(BinaryOp::Add, convert(reg(2), Ty::I64), int(1, Ty::I64));
    let square = binary(BinaryOp::Mul, reg(0), reg(0));
    let deviations = Expr::Deviations(Box::new([reg(0), square, counted]));
    let calls = vec![min(deviations.clone(), DataType::Float64), max(deviations, DataType::Float64)];
    for largest in [3, 1 << 30, 1 << 55] {
        check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls.clone()), &[&table(2_500, largest)]);
    }
}

#[test]
fn the_price_after_discount_and_tax() {
    // Q1 of TPC-H: sums of products of three decimals, 1 - discount and 1 + tax rescaled literals.
    let one = || int(100, Ty::I128);
    let discounted = binary(BinaryOp::Mul, reg(0), binary(BinaryOp::Sub, one(), reg(1)));
    let taxed = binary(BinaryOp::Mul, discounted.clone(), binary(BinaryOp::Add, one(), reg(1)));
    let calls = vec![sum(discounted, DataType::Decimal128(38, 4)), sum(taxed, DataType::Decimal128(38, 6))];
    check(&single(3, vec![], vec![], calls.clone()), &[&table(2_500, 10_494_950)]);
    check(&single(3, vec![], vec![], calls), &[&table(2_500, 10)]);
}

#[test]
fn scales_round_half_away_from_zero() {
    let per_row = |value: Expr| min(value, DataType::Decimal128(38, 2));
    let calls = vec![
        per_row(rescale(reg(0), 3)),
        per_row(rescale(reg(0), -1)),
        per_row(rescale(reg(0), -2)),
        per_row(rescale(rescale(reg(0), -2), 2)),
        per_row(rescale(reg(0), 0)),
        min(Expr::DecimalToFloat(Box::new(reg(0)), 2), DataType::Float64),
        per_row(rescale(convert(reg(2), Ty::I128), 2)),
    ];
    for largest in [70, 12_345] {
        check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls.clone()), &[&table(600, largest)]);
    }
}

#[test]
fn doubles_are_the_nearest_ones() {
    // Dividends on both sides of 53 and 64 bits, and powers of ten on both sides of the last that is a double.
    let product = || binary(BinaryOp::Mul, reg(0), reg(1));
    let long = || binary(BinaryOp::Mul, product(), int(10i128.pow(9) + 7, Ty::I128));
    let double = |value: Expr, scale: i8| min(Expr::DecimalToFloat(Box::new(value), scale), DataType::Float64);
    let scales = [0, 2, 17, 22, 23, 38];
    let calls: Vec<_> = scales
        .into_iter()
        .flat_map(|scale| [double(reg(0), scale), double(product(), scale), double(long(), scale)])
        .collect();
    for largest in [70, 12_345, 1 << 40, (1 << 44) - 1] {
        check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls.clone()), &[&table(600, largest)]);
    }
}

#[test]
fn comparisons_and_groups() {
    let less = binary(BinaryOp::Lt, rescale(reg(0), 2), binary(BinaryOp::Mul, reg(1), int(100, Ty::I128)));
    let between = binary(BinaryOp::Gt, reg(0), int(-20, Ty::I128));
    let by = vec![(reg(0), DataType::Decimal128(18, 2))];
    check_orders(
        &single(3, vec![filter(less), filter(between)], by, vec![count(), sum(reg(1), DataType::Decimal128(28, 2))]),
        &[&table(3_000, 40)],
    );
}

#[test]
fn conversions_to_and_from_integers() {
    let fits = binary(BinaryOp::Lt, reg(0), int(2_000_000_000, Ty::I128));
    let fits = binary(BinaryOp::And, fits, binary(BinaryOp::Gt, reg(0), int(-2_000_000_000, Ty::I128)));
    let narrow = Expr::Case(vec![(fits, convert(reg(0), Ty::I32))], Box::new(null(Ty::I32)));
    // A product past 64 bits: its conversion compares with the smallest 64-bit integer.
    let product = binary(BinaryOp::Mul, reg(0), reg(1));
    let small = binary(
        BinaryOp::And,
        binary(BinaryOp::Lt, product.clone(), int(1 << 62, Ty::I128)),
        binary(BinaryOp::Gt, product.clone(), int(-(1 << 62), Ty::I128)),
    );
    let back = Expr::Case(vec![(small, convert(product, Ty::I64))], Box::new(null(Ty::I64)));
    let calls =
        vec![min(narrow, DataType::Int32), min(back, DataType::Int64), min(convert(reg(0), Ty::I64), DataType::Int64)];
    let report = check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls), &[&table(600, 1 << 40)]);
    assert!(report.program().is_some());
    let unguarded = convert(binary(BinaryOp::Mul, reg(0), reg(1)), Ty::I64);
    let report = check(&single(3, vec![], vec![], vec![min(unguarded, DataType::Int64)]), &[&table(600, 1 << 40)]);
    assert!(report.program().is_none(), "a product past 64 bits raises");
}

#[test]
fn literals_past_64_bits() {
    let large = 10i128.pow(25) + 7;
    let sums = binary(BinaryOp::Add, reg(0), int(large, Ty::I128));
    let fragment = single(
        3,
        vec![filter(binary(BinaryOp::Gt, sums.clone(), int(large, Ty::I128)))],
        vec![],
        vec![count(), sum(sums, DataType::Decimal128(38, 2))],
    );
    check(&fragment, &[&table(1_500, 1_000)]);
    let negative = filter(binary(BinaryOp::Gt, reg(0), int(-large, Ty::I128)));
    check(&single(3, vec![negative], vec![], vec![count()]), &[&table(1_500, 1_000)]);
}

#[test]
fn a_wide_probe_key_matches_no_narrow_one() {
    // 2^64 + 3 has the lower bits of 3.
    let side = MemoryTable::new("side", vec![("k", decimals(5, 18, 0, |row| Some(row as i128)))]);
    let facts = MemoryTable::new(
        "facts",
        vec![
            ("a", decimals(1_200, 18, 0, |row| Some(row as i128 % 4))),
            ("b", decimals(1_200, 18, 0, |row| Some(if row % 2 == 0 { 0 } else { 1 << 62 }))),
        ],
    );
    let key = binary(BinaryOp::Add, binary(BinaryOp::Mul, reg(1), int(4, Ty::I128)), reg(0));
    let fragment = fragment(
        &[2, 1],
        vec![
            builds(1, vec![], vec![reg(0)], vec![]),
            aggregates(0, vec![probe(0, vec![key], warpcube_engine::JoinKind::Semi)], vec![], vec![count()]),
        ],
    );
    check(&fragment, &[&facts, &side]);
}

#[test]
fn digits_that_bounds_prove_or_rows_are_looked_at_for() {
    let rows = 700;
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", decimals(rows, 18, 2, |row| (row % 9 != 0).then(|| row as i128 * 10 - 2_000))),
            ("wide", decimals(rows, 18, 0, |row| Some((row as i128 - 300) << 52))),
            ("g", numbers::<Int32Type>(rows, |row| (row % 6 != 1).then_some(row as i32 % 90))),
        ],
    );
    let digits = |inner, most| Expr::Digits(Box::new(inner), most);
    let product = |most| digits(binary(BinaryOp::Mul, reg(1), reg(1)), most);
    let decimal = DataType::Decimal128(38, 2);
    let fragment = |calls| single(3, vec![], vec![(reg(2), DataType::Int32)], calls);
    let of = |expr: Expr| fragment(vec![min(expr.clone(), decimal.clone()), max(expr, decimal.clone())]);
    // The largest is 4,990; the largest square has 37 digits.
    for (expr, raises) in [
        (digits(reg(0), 4), false),
        (digits(reg(0), 3), true),
        (rescale(digits(reg(0), 4), 2), false),
        (digits(rescale(reg(0), -1), 3), false),
        (digits(rescale(reg(0), -1), 2), true),
    ] {
        assert_eq!(check(&of(expr), &[&table]).program().is_none(), raises);
    }
    let compared = |most| {
        let large = binary(BinaryOp::Gt, product(most), int(10i128.pow(30), Ty::I128));
        single(3, vec![filter(large)], vec![], vec![count()])
    };
    assert!(check(&compared(37), &[&table]).program().is_some());
    assert!(check(&compared(36), &[&table]).program().is_none(), "a square has 37 digits");
    // What a condition keeps out raises nothing.
    let small = binary(BinaryOp::Lt, reg(0), int(1_000, Ty::I128));
    let above = binary(BinaryOp::Gt, reg(0), int(-1_000, Ty::I128));
    let guarded = Expr::Case(
        vec![(binary(BinaryOp::And, small, above), digits(reg(0), 3))],
        Box::new(Expr::Literal(Literal::Null, Ty::I128)),
    );
    assert!(check(&of(guarded), &[&table]).program().is_some());
}

#[test]
fn quotients_and_remainders() {
    let rows = 900;
    let divisor = |row: usize| [1, -1, 3, -7, 1_000, 99_999][row % 6];
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", decimals(rows, 18, 2, |row| (row % 9 != 0).then(|| i128::from(mixed(row, 1) as i64 >> 4)))),
            ("b", decimals(rows, 18, 2, |row| (row % 8 != 0).then(|| divisor(row)))),
            ("least", decimals(rows, 19, 0, |row| Some(if row == 1 { i64::MIN.into() } else { row as i128 }))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let scaled = |register, power| Expr::Rescale(Box::new(reg(register)), power);
    let wide = DataType::Decimal128(38, 6);
    let narrow = |quotient| convert(quotient, Ty::I64);
    let calls = vec![
        min(binary(BinaryOp::Div, reg(0), reg(1)), wide.clone()),
        min(binary(BinaryOp::Rem, reg(0), reg(1)), wide.clone()),
        sum(binary(BinaryOp::Div, scaled(0, 6), reg(1)), wide.clone()),
        sum(binary(BinaryOp::Rem, scaled(0, 4), scaled(1, 2)), wide.clone()),
        sum(binary(BinaryOp::Div, scaled(0, 4), scaled(1, 4)), wide.clone()),
        sum(binary(BinaryOp::Div, reg(2), reg(1)), wide),
        min(narrow(binary(BinaryOp::Div, scaled(0, 1), scaled(1, 1))), DataType::Int64),
    ];
    check_orders(&single(4, vec![], vec![(reg(3), DataType::Int32)], calls), &[&table]);
    let zero = MemoryTable::new("t", vec![("a", decimals(50, 9, 2, |row| Some(row as i128 - 20)))]);
    let inverse = binary(BinaryOp::Div, int(100, Ty::I128), reg(0));
    let fragment = single(1, vec![], vec![], vec![sum(inverse, DataType::Decimal128(38, 2))]);
    assert!(check(&fragment, &[&zero]).program().is_none(), "a division by zero raises");
}

#[test]
fn results_that_may_leave_38_digits_are_checked() {
    // Squares of up to 126 bits; NULL where a factor is.
    let table = table(700, 1 << 62);
    let square = || binary(BinaryOp::Mul, reg(1), reg(1));
    let cube = || binary(BinaryOp::Mul, square(), reg(0));
    let thousand = || int(1_000, Ty::I128);
    let small = |largest: i128| {
        let magnitude = Expr::Unary(UnaryOp::Absolute, Box::new(reg(1)));
        binary(BinaryOp::Lt, magnitude, int(largest, Ty::I128))
    };
    let guarded =
        |largest, expr| Expr::Case(vec![(small(largest), expr)], Box::new(Expr::Literal(Literal::Null, Ty::I128)));
    let twice = |op| binary(op, rescale(square(), 2), Expr::Unary(UnaryOp::Negate, Box::new(rescale(square(), 2))));
    // Upper digits and whether lower ones are right.
    let calls = |expr: Expr| {
        let upper = || convert(rescale(expr.clone(), -20), Ty::I64);
        let lower = convert(binary(BinaryOp::Rem, expr.clone(), int(10i128.pow(18), Ty::I128)), Ty::I64);
        vec![min(upper(), DataType::Int64), max(upper(), DataType::Int64), max(lower, DataType::Int64)]
    };
    for (expr, raises) in [
        (square(), false),
        (guarded(1 << 30, cube()), false),
        (cube(), true),
        (guarded(1 << 40, rescale(square(), 13)), false),
        (rescale(square(), 13), true),
        (guarded(1 << 58, twice(BinaryOp::Sub)), false),
        (guarded(1 << 58, twice(BinaryOp::Add)), false),
        (binary(BinaryOp::Add, binary(BinaryOp::Mul, square(), int(4, Ty::I128)), square()), true),
        (binary(BinaryOp::Sub, int(1_001 - 10i128.pow(38), Ty::I128), thousand()), false),
        (binary(BinaryOp::Sub, int(1 - 10i128.pow(38), Ty::I128), square()), true),
    ] {
        let fragment = single(3, vec![], vec![(reg(2), DataType::Int32)], calls(expr));
        assert_eq!(check(&fragment, &[&table]).program().is_none(), raises);
    }
}

#[test]
fn quotients_in_256_bits() {
    let rows = 700;
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", decimals(rows, 18, 2, |row| (row % 9 != 0).then(|| i128::from(mixed(row, 1) >> 2) - (1 << 61)))),
            ("b", decimals(rows, 18, 2, |row| Some(i128::from(mixed(row, 2) % 1_000_003) - 500_000))),
            ("g", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let square = || binary(BinaryOp::Mul, reg(0), reg(1));
    let nonzero = binary(BinaryOp::Ne, reg(1), int(0, Ty::I128));
    let guarded = |expr| Expr::Case(vec![(nonzero.clone(), expr)], Box::new(Expr::Literal(Literal::Null, Ty::I128)));
    let quotient = |one: Expr, other: Expr, power| Expr::Quotient(Box::new([one, other]), power);
    let by = || vec![(reg(2), DataType::Int32)];
    let compared = |expr: Expr| {
        let large = binary(BinaryOp::Gt, expr.clone(), int(10i128.pow(20), Ty::I128));
        vec![AggregateCall { filter: Some(large), ..count() }, sum(rescale(expr, -24), DataType::Decimal128(38, 2))]
    };
    for (expr, raises) in [
        (guarded(quotient(reg(0), reg(1), 0)), false),
        (guarded(quotient(reg(0), reg(1), 12)), false),
        (guarded(quotient(square(), reg(1), 18)), false),
        (guarded(quotient(square(), square(), 38)), true),
        (guarded(quotient(square(), reg(1), 30)), true),
        (quotient(reg(0), binary(BinaryOp::Sub, reg(1), reg(1)), 3), true),
    ] {
        assert_eq!(check(&single(3, vec![], by(), compared(expr)), &[&table]).program().is_none(), raises);
    }
}

#[test]
fn decimals_past_64_bits_are_payload_of_joins() {
    // Products of 110 bits beside each key, NULL where a factor is; rows without a partner have none.
    let product = || binary(BinaryOp::Mul, reg(0), reg(1));
    let decimal = DataType::Decimal128(38, 4);
    for (kind, several) in [(JoinKind::Inner, false), (JoinKind::Left, false), (JoinKind::Left, true)] {
        let keys = |rows: i128| binary(BinaryOp::Add, convert(reg(2), Ty::I64), int(rows, Ty::I64));
        let calls = vec![count_of(reg(3)), positive(reg(3)), sum(rescale(reg(3), -20), decimal.clone())];
        let few = filter(binary(BinaryOp::Lt, reg(2), int(if several { 40 } else { 600 }, Ty::I32)));
        let fragment = fragment(
            &[3, 3],
            vec![
                builds(1, vec![few], vec![keys(0)], vec![product()]),
                aggregates(0, vec![probe(0, vec![keys(-30)], kind)], vec![(reg(2), DataType::Int32)], calls),
            ],
        );
        let rows = if several { 2_400 } else { 600 };
        check_orders(&fragment, &[&table(1_200, 1 << 55), &table(rows, 1 << 55)]);
    }
}

/// Counts values above zero.
fn positive(value: Expr) -> AggregateCall {
    let above = binary(BinaryOp::Gt, value.clone(), int(0, Ty::I128));
    AggregateCall { filter: Some(above), ..count_of(value) }
}
