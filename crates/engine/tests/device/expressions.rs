//! CASE, dates, and whatever else a row can compute.

use arrow::datatypes::{DataType, Int32Type, Int64Type};
use warpcube_engine::{BinaryOp, DatePart, EngineError, Expr, Literal, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

fn part(part: DatePart, inner: Expr) -> Expr {
    Expr::DatePart(part, Box::new(inner))
}

#[test]
fn parts_of_dates() {
    // Leap years, centuries, and days before 1970 and before year 0.
    let starts = [-719_468, -719_163, -25_509, -366, -1, 0, 58, 10_956, 11_015, 11_016, 47_540, 2_932_896];
    let rows = 1_200;
    let table = MemoryTable::new(
        "t",
        vec![
            ("d", days(rows, |row| (row % 50 != 7).then_some(starts[row % starts.len()] + (row / 12) as i32 % 70))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let parts = [DatePart::Year, DatePart::Quarter, DatePart::Month, DatePart::Day];
    let calls = parts.map(|which| min(part(which, reg(0)), DataType::Int32)).to_vec();
    check(&single(2, vec![], vec![(reg(1), DataType::Int32)], calls), &[&table]);
}

#[test]
fn years_and_months_as_groups() {
    let table = MemoryTable::new("t", vec![("d", days(5_000, |row| Some(8_035 + (mixed(row, 1) % 2_557) as i32)))]);
    let by = vec![(part(DatePart::Year, reg(0)), DataType::Int32), (part(DatePart::Month, reg(0)), DataType::Int32)];
    let late = filter(binary(BinaryOp::Ge, part(DatePart::Quarter, reg(0)), int(2, Ty::I32)));
    check_orders(&single(1, vec![late], by, vec![count(), min(reg(0), DataType::Date32)]), &[&table]);
}

#[test]
fn dates_compare_and_come_back_as_dates() {
    let table =
        MemoryTable::new("t", vec![("d", days(3_000, |row| (row % 3 != 0).then_some((mixed(row, 1) % 1_000) as i32)))]);
    let steps = vec![filter(binary(BinaryOp::Lt, reg(0), int(500, Ty::I32)))];
    let calls = vec![min(reg(0), DataType::Date32), max(reg(0), DataType::Date32)];
    check(&single(1, steps, vec![(reg(0), DataType::Date32)], calls), &[&table]);
}

#[test]
fn cases_of_several_branches() {
    let rows = 2_000;
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Int32Type>(rows, |row| (row % 10 != 0).then_some((mixed(row, 1) % 100) as i32))),
            ("b", numbers::<Int64Type>(rows, |row| Some(mixed(row, 2) as i64 % 1_000))),
        ],
    );
    let below = |limit| binary(BinaryOp::Lt, reg(0), int(limit, Ty::I32));
    let bucket = Expr::Case(
        vec![
            (below(10), int(1, Ty::I64)),
            (below(50), binary(BinaryOp::Rem, reg(1), int(5, Ty::I64))),
            (below(90), reg(1)),
        ],
        Box::new(int(-1, Ty::I64)),
    );
    let nested = Expr::Case(
        vec![(unary(UnaryOp::Not, below(30)), Expr::Case(vec![(below(60), bucket.clone())], Box::new(null(Ty::I64))))],
        Box::new(binary(BinaryOp::Add, bucket.clone(), int(1_000, Ty::I64))),
    );
    let calls = vec![sum(nested, DataType::Int64), sum(bucket.clone(), DataType::Int64), count()];
    check_orders(&single(2, vec![], vec![(bucket, DataType::Int64)], calls), &[&table]);
}

#[test]
fn boolean_columns_everywhere() {
    let rows = 3_000;
    let table = MemoryTable::new(
        "t",
        vec![
            ("t", truths(rows, |row| Some(mixed(row, 1) % 3 == 0))),
            ("u", truths(rows, |row| (row % 5 != 0).then_some(mixed(row, 2) % 2 == 0))),
            ("v", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let steps = vec![filter(binary(BinaryOp::Or, reg(0), unary(UnaryOp::Not, reg(1))))];
    let calls = vec![
        min(reg(0), DataType::Boolean),
        max(reg(1), DataType::Boolean),
        sum(convert(reg(1), Ty::I32), DataType::Int64),
        sum(reg(2), DataType::Int64),
    ];
    check_orders(&single(3, steps, vec![(reg(1), DataType::Boolean)], calls), &[&table]);
}

#[test]
fn many_columns_at_once() {
    // More than registers hold: some are loaded whole, the others gathered.
    let rows = 3_000;
    let names: Vec<String> = (0..20).map(|column| format!("c{column}")).collect();
    let columns = names
        .iter()
        .enumerate()
        .map(|(column, name)| {
            let array = numbers::<Int64Type>(rows, |row| {
                (row % (column + 3) != 0).then(|| mixed(row, column as u64) as i64 >> 20)
            });
            (name.as_str(), array)
        })
        .collect();
    let table = MemoryTable::new("t", columns);
    let positive = |column| filter(binary(BinaryOp::Gt, reg(column), int(-4_000_000_000_000, Ty::I64)));
    let calls = (0..20).map(|column| sum(reg(column), DataType::Int64)).collect();
    check(&single(20, vec![positive(3), positive(17)], vec![], calls), &[&table]);
}

#[test]
fn dates_some_months_later() {
    let rows = 500;
    let table = MemoryTable::new(
        "t",
        vec![
            ("d", days(rows, |row| (row % 9 != 0).then(|| (mixed(row, 1) % 60_000) as i32 - 30_000))),
            ("e", days(rows, |row| Some([59, 60, 789, 10_957, 11_015, 11_016, -1, 30][row % 8] + row as i32 % 3))),
            ("id", numbers::<Int32Type>(rows, |row| Some(row as i32))),
        ],
    );
    let moved = |register, months| Expr::AddMonths(Box::new(reg(register)), months);
    let calls: Vec<_> = [0, 1, -1, 11, 12, -14, 25, 1200, -1200]
        .into_iter()
        .flat_map(|months| [0, 1].map(|register| max(moved(register, months), DataType::Date32)))
        .collect();
    check(&single(3, vec![], vec![(reg(2), DataType::Int32)], calls), &[&table]);
    let far = single(3, vec![], vec![], vec![max(moved(0, i32::MAX), DataType::Date32)]);
    let error = run(&engine(LaneOrder::Forward), &far, &[&table]).unwrap_err();
    assert!(matches!(&error, EngineError::Unsupported(reason) if reason.contains("calendar")), "{error}");
}

#[test]
fn dates_that_bounds_do_not_keep_in_the_calendar_are_refused() {
    // The last and the first day of the CPU's calendar, as days and as seconds.
    let (last, first, day) = (95_026_236, -96_465_292, 86_400);
    let table = |days: i32, seconds: i64| {
        let days = self::days(100, |row| Some(if row == 7 { days } else { 0 }));
        MemoryTable::new("t", vec![("d", days), ("s", numbers::<Int64Type>(100, |row| Some(row as i64 % 2 * seconds)))])
    };
    let in_calendar = |register, day_ticks| Expr::InCalendar(Box::new(reg(register)), day_ticks);
    let days = || single(2, vec![], vec![], vec![max(in_calendar(0, 1), DataType::Date32)]);
    let seconds = || single(2, vec![], vec![], vec![max(in_calendar(1, day), DataType::Int64)]);
    let back = || single(2, vec![], vec![], vec![max(Expr::AddMonths(Box::new(reg(0)), -12), DataType::Date32)]);
    let inside = [table(last, (last as i64 + 1) * day - 1), table(first, first as i64 * day)];
    for table in &inside {
        for fragment in [days(), seconds()] {
            assert!(check(&fragment, &[table]).program().is_some());
        }
    }
    let outside = [table(last + 1, (last as i64 + 1) * day), table(first - 1, first as i64 * day - 1)];
    for fragment in outside.iter().flat_map(|table| [days(), seconds(), back()].map(|fragment| (fragment, table))) {
        let error = run(&engine(LaneOrder::Forward), &fragment.0, &[fragment.1]).unwrap_err();
        assert!(matches!(&error, EngineError::Unsupported(reason) if reason.contains("calendar")), "{error}");
    }
}

#[test]
fn arguments_are_given_at_each_run() {
    let table = MemoryTable::new(
        "t",
        vec![
            ("a", numbers::<Int32Type>(1_000, |row| Some(row as i32 % 50))),
            ("s", texts(1_000, |row| Some(format!("{}", row % 7)))),
        ],
    );
    let argument = |position, ty| Expr::Literal(Literal::Argument(position), ty);
    let below = binary(BinaryOp::Lt, reg(0), argument(0, Ty::I32));
    let same = binary(BinaryOp::Eq, reg(1), argument(1, Ty::U32));
    let fragment = single(2, vec![filter(below), filter(same)], vec![], vec![count(), max(reg(0), DataType::Int32)]);
    for (number, text) in [(int(30, Ty::I32), Expr::Text("3".into())), (int(7, Ty::I32), null(Ty::U32))] {
        check(&fragment.with_arguments(&[number, text]), &[&table]);
    }
    let error = run(&engine(LaneOrder::Forward), &fragment, &[&table]).unwrap_err();
    assert!(matches!(error, EngineError::Malformed(_)), "{error}");
}
