//! Columns of every encoding, read whole and row by row.

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::*;
use warpcube_column::EncodingChoice;
use warpcube_engine::{AggregateCall, AggregateKind, BinaryOp, Engine, Expr, Fragment, RunReport, Step, Ty, UnaryOp};
use warpcube_gpu::LaneOrder;

use crate::support::*;

/// Rows of a table in two partitions, more than two vectors each.
const ROWS: usize = 4_500;

/// Columns that every table begins with: the row, and a number below 100 to choose rows by.
fn table(columns: Vec<(&str, ArrayRef)>, rows: usize, partitions: usize) -> MemoryTable {
    let id = numbers::<Int32Type>(rows, |row| Some(row as i32));
    let part = numbers::<Int32Type>(rows, |row| Some((mixed(row, 40) % 100) as i32));
    let all = [("id", id), ("part", part)].into_iter().chain(columns).collect();
    MemoryTable::shaped("t", all, Shape { partitions, batch_rows: 700 })
}

/// Some rows are NULL, and a whole vector.
fn valid(row: usize) -> bool {
    !mixed(row, 8).is_multiple_of(7) && row / 1_024 != 1
}

/// Bits that fill every integer type.
fn every_integer() -> MemoryTable {
    let bits = |seed| numbers::<Int64Type>(ROWS, move |row| valid(row).then(|| mixed(row, seed) as i64));
    let narrow = |seed, bits: u32, low: i64, to: DataType| -> ArrayRef {
        let wide = numbers::<Int64Type>(ROWS, |row| valid(row).then(|| (mixed(row, seed) >> (64 - bits)) as i64 + low));
        cast(&wide, &to).unwrap()
    };
    let columns = vec![
        ("i8", narrow(1, 8, -128, DataType::Int8)),
        ("i16", narrow(2, 15, -16_384, DataType::Int16)),
        ("i32", narrow(3, 32, i32::MIN.into(), DataType::Int32)),
        ("i64", bits(4)),
        ("u8", narrow(5, 7, 100, DataType::UInt8)),
        ("u16", narrow(6, 16, 0, DataType::UInt16)),
        ("u32", narrow(7, 32, 0, DataType::UInt32)),
        ("u64", numbers::<UInt64Type>(ROWS, |row| Some(mixed(row, 9)))),
        ("date", days(ROWS, |row| Some((mixed(row, 10) % 9_000) as i32))),
        ("decimal", decimals(ROWS, 15, 2, |row| valid(row).then(|| i128::from(mixed(row, 11) % 100_000) - 50_000))),
        ("truth", truths(ROWS, |row| valid(row).then(|| mixed(row, 12) & 1 == 1))),
    ];
    table(columns, ROWS, 2)
}

/// Distributions that encodings differ in.
fn distributions() -> MemoryTable {
    let column = |value: &dyn Fn(usize) -> i64| numbers::<Int64Type>(ROWS, |row| Some(value(row)));
    let normal = |row: usize| (0..12).map(|at| mixed(row, at) as i64 & 0xfff).sum::<i64>() - 24_000;
    let outlier = |row: usize| if row % 400 == 9 { mixed(row, 1) as i64 & i64::MAX } else { mixed(row, 2) as i64 & 63 };
    let columns = vec![
        ("constant", column(&|_| -77)),
        ("sorted", column(&|row| row as i64 * 5 / 3 - 1_000)),
        ("descending", column(&|row| -(row as i64) * 1_000_003)),
        ("runs", column(&|row| mixed(row / 37, 3) as i64 % 1_000)),
        ("normal", column(&normal)),
        ("outliers", column(&outlier)),
        ("extremes", column(&|row| [i64::MIN, i64::MAX, 0, -1][mixed(row, 4) as usize % 4])),
        ("few", numbers::<Int32Type>(ROWS, |row| valid(row).then(|| mixed(row, 5) as i32 % 40))),
        ("nulls", new_null_array(&DataType::Int64, ROWS)),
        ("short", numbers::<Int16Type>(ROWS, |row| valid(row).then(|| (row / 1_024) as i16 - 2))),
    ];
    table(columns, ROWS, 2)
}

/// Decimals, and what is none.
fn floats() -> MemoryTable {
    let cents = |row: usize| (mixed(row, 1) % 1_000_000) as f64 / 100.0 - 5_000.0;
    let odd = [f64::NAN, -f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MAX];
    let special =
        |row: usize| if mixed(row, 3).is_multiple_of(9) { odd[mixed(row, 4) as usize % 7] } else { cents(row) };
    let columns = vec![
        ("cents", numbers::<Float64Type>(ROWS, |row| valid(row).then(|| cents(row)))),
        ("tenths", numbers::<Float32Type>(ROWS, |row| Some((mixed(row, 2) % 10_000) as f32 / 10.0))),
        ("special", numbers::<Float64Type>(ROWS, |row| Some(special(row)))),
        ("narrow", numbers::<Float32Type>(ROWS, |row| valid(row).then(|| special(row) as f32))),
        ("bits", numbers::<Float64Type>(ROWS, |row| Some(f64::from_bits(mixed(row, 5) & !(1 << 62))))),
        ("few", numbers::<Float64Type>(ROWS, |row| valid(row).then(|| (mixed(row / 40, 6) % 50) as f64 / 3.0))),
        ("nulls", new_null_array(&DataType::Float64, ROWS)),
        ("text", texts(ROWS, |row| valid(row).then(|| format!("t{}", mixed(row, 7) % 30)))),
    ];
    table(columns, ROWS, 2)
}

/// The greatest of each column in each group, which is its value where groups are rows; of truth values and strings how
/// many there are.
fn calls(table: &MemoryTable) -> Vec<AggregateCall> {
    let schema = warpcube_column::ColumnSource::schema(table);
    let call = |(register, field): (usize, &FieldRef)| match field.data_type() {
        DataType::Boolean => AggregateCall { filter: Some(reg(register)), ..count() },
        DataType::Utf8 => count_of(reg(register)),
        data_type => aggregate(AggregateKind::Max, reg(register), data_type.clone()),
    };
    schema.fields().iter().enumerate().skip(2).map(call).collect()
}

/// Rows with a `part` below a limit, as `SELECT` would give them.
fn rows(table: &MemoryTable, below: i128) -> Fragment {
    let columns = warpcube_column::ColumnSource::schema(table).fields().len();
    let steps: Vec<Step> = vec![filter(binary(BinaryOp::Lt, reg(1), int(below, Ty::I32)))];
    single(columns, steps, vec![(reg(0), DataType::Int32)], calls(table))
}

/// Runs fragments over a table whose columns are loaded by choice; programs are compiled for GPUs too if `check` is
/// [`check_on`].
fn check_with(
    check: fn(&Engine, &Fragment, &[&MemoryTable]) -> RunReport,
    table: &MemoryTable,
    choices: &dyn Fn(usize) -> EncodingChoice,
    fragments: &[Fragment],
) {
    let columns = warpcube_column::ColumnSource::schema(table).fields().len();
    let choices: Vec<EncodingChoice> = (0..columns).map(choices).collect();
    let orders = [LaneOrder::Forward, LaneOrder::Seeded(3)];
    for order in orders.into_iter().take(if is_sanitized() { 1 } else { 2 }) {
        let engine = engine(order);
        load(&engine, table, &choices);
        if order == LaneOrder::Forward {
            rehearse(&engine, fragments, &[table]);
        }
        fragments.iter().for_each(|fragment| drop(check(&engine, fragment, &[table])));
    }
}

/// All rows in place, then few of them through the queue with columns gathered.
fn whole_and_gathered(table: &MemoryTable, choice: EncodingChoice) {
    check_with(compare_on, table, &|_| choice, &[rows(table, 90), rows(table, 2)]);
}

macro_rules! choices {
    ($($name:ident: $choice:ident of $($table:ident),+;)*) => {$(
        #[test]
        fn $name() {
            $(whole_and_gathered(&$table(), EncodingChoice::$choice);)+
        }
    )*};
}

choices! {
    packed: Packed of every_integer, distributions;
    nsf: Nsf of every_integer, distributions;
    nsv: Nsv of every_integer, distributions;
    runs: Rle of every_integer, distributions, floats;
    gpu_for: GpuFor of every_integer, distributions;
    gpu_dfor: GpuDfor of every_integer, distributions;
    delta: Delta of every_integer, distributions;
    dictionaries: Dictionary of every_integer, distributions, floats;
    alp: Alp of floats;
}

#[test]
fn encodings_mix_within_a_pipeline() {
    let all = EncodingChoice::ALL;
    for table in [every_integer(), distributions(), floats()] {
        for turn in [1, 4] {
            check_with(
                compare_on,
                &table,
                &|column| all[(column + turn) % all.len()],
                &[rows(&table, 70), rows(&table, 3)],
            );
        }
    }
}

#[test]
fn tables_of_every_length() {
    let calls = |expr: Expr, data_type: DataType, sums: DataType| {
        let ends =
            [AggregateKind::Min, AggregateKind::Max].map(|kind| aggregate(kind, expr.clone(), data_type.clone()));
        ends.into_iter().chain([sum(expr.clone(), sums), count_of(expr)])
    };
    for choice in EncodingChoice::ALL {
        for length in [0, 1, 1_023, 1_024, 1_025] {
            let columns = vec![
                ("integer", numbers::<Int32Type>(length, |row| valid(row).then(|| (row as i32 * 7) % 900))),
                ("long", numbers::<Int64Type>(length, |row| Some(row as i64 / 9 * 1_000_000_007))),
                ("float", numbers::<Float64Type>(length, |row| Some((mixed(row, 1) % 900) as f64 / 10.0))),
            ];
            let table = table(columns, length, 1);
            let calls = calls(reg(2), DataType::Int32, DataType::Int64)
                .chain(calls(reg(3), DataType::Int64, DataType::Int64))
                .chain(calls(reg(4), DataType::Float64, DataType::Float64))
                .collect();
            check_with(compare_on, &table, &|_| choice, &[single(5, vec![], vec![], calls)]);
        }
    }
}

#[test]
fn single_columns_in_steps_of_every_length() {
    // How many values a lane loads at once depends on the registers that a column takes.
    for choice in EncodingChoice::ALL {
        let columns = vec![
            ("byte", numbers::<UInt8Type>(ROWS, |row| valid(row).then_some((row / 50 % 200) as u8))),
            ("integer", numbers::<Int32Type>(ROWS, |row| valid(row).then(|| row as i32 / 3 - 500))),
            ("long", numbers::<Int64Type>(ROWS, |row| Some(mixed(row, 2) as i64 >> 30))),
        ];
        let table = table(columns, ROWS, 1);
        let one = |column: usize, sums: DataType| single(5, vec![], vec![], vec![sum(reg(column), sums), count()]);
        let fragments = [one(2, DataType::UInt64), one(3, DataType::Int64), one(4, DataType::Int64)];
        check_with(check_on, &table, &|_| choice, &fragments);
    }
}

#[test]
fn sources_differ_in_how_columns_are_read_alone() {
    let table = distributions();
    let program = |choice| {
        let engine = engine(LaneOrder::Forward);
        load(&engine, &table, &[choice; 12]);
        let below = binary(BinaryOp::Lt, reg(1), int(60, Ty::I32));
        let fragment = single(12, vec![filter(below)], vec![], vec![sum(reg(3), DataType::Int64)]);
        check_on(&engine, &fragment, &[&table]).program().unwrap().source().to_string()
    };
    let generated = |source: &str| source[source.find("struct Params0").unwrap()..].to_string();
    let (runs, blocks) = (program(EncodingChoice::Rle), program(EncodingChoice::GpuFor));
    assert!(runs.contains("struct WcRle") && !runs.contains("struct WcGpuFor") && !runs.contains("struct WcAlp"));
    assert_eq!(generated(&runs).replace("WcRle<", "WcGpuFor<"), generated(&blocks));
}

#[test]
fn packed_values_and_codes_are_compared_with_any_constant() {
    use BinaryOp::*;
    let steps = [-70_000, -50, -3, 0, 7, 1_000, 65_000];
    let columns = vec![
        ("wide", numbers::<Int64Type>(ROWS, |row| valid(row).then(|| steps[mixed(row, 1) as usize % 7]))),
        ("short", numbers::<Int16Type>(ROWS, |row| Some(mixed(row, 2) as i16 % 50 - 20))),
        ("small", numbers::<UInt8Type>(ROWS, |row| valid(row).then(|| mixed(row, 3) as u8 % 9 * 20))),
    ];
    let table = table(columns, ROWS, 2);
    let constants: [(usize, Ty, &[i128]); 3] = [
        (2, Ty::I64, &[i64::MIN.into(), -70_001, -70_000, -69_999, -4, -3, 0, 8, 65_000, 65_001, i64::MAX.into()]),
        (3, Ty::I16, &[-32_768, -70, -69, -20, 0, 28, 29, 30, 32_767]),
        (4, Ty::U8, &[0, 1, 19, 20, 21, 160, 161, 255]),
    ];
    for choice in [EncodingChoice::Packed, EncodingChoice::Dictionary] {
        let engine = engine(LaneOrder::Forward);
        load(&engine, &table, &[choice; 5]);
        let mut fragments = Vec::new();
        for (column, ty, constants) in constants {
            for (number, constant) in constants.iter().enumerate() {
                // Each operator on both sides: every constant sees two of them.
                let ops = [[Lt, Ge], [Le, Gt]][number % 2];
                let both = [(reg(column), int(*constant, ty)), (int(*constant, ty), reg(column))];
                for (op, (left, right)) in ops.into_iter().zip(both) {
                    let test = vec![filter(binary(op, left, right))];
                    fragments.push(single(5, test, vec![], vec![sum(reg(0), DataType::Int64), count()]));
                }
            }
        }
        rehearse(&engine, &fragments, &[&table]);
        fragments.iter().for_each(|fragment| drop(compare_on(&engine, fragment, &[&table])));
        let between = binary(And, binary(Ge, reg(2), int(-3, Ty::I64)), binary(Lt, reg(3), int(5, Ty::I16)));
        let fragment = single(5, vec![filter(between)], vec![], vec![sum(reg(0), DataType::Int64), count()]);
        let program = check_on(&engine, &fragment, &[&table]).program().unwrap();
        assert!(program.source().contains(".top(k) >= "), "{choice:?}");
    }
}

#[test]
fn nulls_are_counted_and_added_by_steps() {
    let columns = vec![
        ("small", numbers::<Int32Type>(ROWS, |row| valid(row).then(|| mixed(row, 1) as i32 % 15 + 1))),
        ("far", numbers::<Int32Type>(ROWS, |row| valid(row + 1).then(|| mixed(row, 2) as i32 % 15 - 1_000_000))),
        ("all", numbers::<Int32Type>(ROWS, |row| Some(mixed(row, 3) as i32 % 100))),
    ];
    let table = table(columns, ROWS, 2);
    let filtered = |argument: Expr, valid: usize| AggregateCall {
        filter: Some(Expr::Unary(UnaryOp::IsNotNull, Box::new(reg(valid)))),
        ..sum(argument, DataType::Int64)
    };
    let twice = |column| binary(BinaryOp::Add, reg(column), int(2, Ty::I32));
    let calls = [
        vec![sum(reg(2), DataType::Int64), count_of(reg(2)), count()],
        vec![sum(reg(3), DataType::Int64), sum(reg(2), DataType::Int64), count_of(reg(3))],
        // What is added is not the column, and zero is something.
        vec![sum(twice(2), DataType::Int64), count_of(reg(2))],
        vec![sum(reg(2), DataType::Int64), sum(twice(2), DataType::Int64)],
        vec![filtered(reg(4), 2), sum(reg(2), DataType::Int64), count_of(reg(2))],
        vec![sum(reg(2), DataType::Int64), aggregate(AggregateKind::Min, reg(2), DataType::Int32)],
    ];
    let mostly = filter(binary(BinaryOp::Lt, reg(1), int(90, Ty::I32)));
    for choice in [EncodingChoice::Plain, EncodingChoice::Packed, EncodingChoice::Dictionary, EncodingChoice::GpuFor] {
        let fragments: Vec<Fragment> = calls
            .iter()
            .flat_map(|calls| [vec![], vec![mostly.clone()]].map(|steps| single(5, steps, vec![], calls.clone())))
            .collect();
        check_with(compare_on, &table, &|_| choice, &fragments);
    }
}
