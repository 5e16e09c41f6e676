//! Fragments over columns in host memory, which the CPU runs: random ones, and the share of them that it takes.
//!
//! All other fragments of these tests are run so too, wherever they are compared.

use arrow::datatypes::{DataType, Int64Type};
use warpcube_engine::{BinaryOp, DatePart, Expr, Fragment, JoinKind, Pipeline, Source, Ty};

use crate::random::generator::Generator;
use crate::support::*;

/// Random fragments of each test.
const SEEDS: u64 = 300;

#[test]
fn random_fragments_equal_the_interpreter_on_the_cpu() {
    compare_all(|seed| {
        let mut generator = Generator::new(seed);
        let tables = generator.tables(900 + seed as usize * 7);
        (generator.fragment(), tables)
    });
}

#[test]
fn random_stages_equal_the_interpreter_on_the_cpu() {
    compare_all(|seed| {
        let mut generator = Generator::new(seed);
        let mut tables = generator.tables(120 + seed as usize);
        tables.truncate(1);
        (generator.staged(), tables)
    });
}

/// Runs the fragment of each seed; nearly all are taken.
fn compare_all(of: impl Fn(u64) -> (Fragment, Vec<MemoryTable>)) {
    let (mut taken, mut refused) = (0, Vec::new());
    for seed in 0..SEEDS {
        let (fragment, tables) = of(seed);
        match compare_on_host(&fragment, &tables.iter().collect::<Vec<_>>()) {
            Ok(()) => taken += 1,
            Err(reason) => refused.push(reason),
        }
    }
    refused.sort();
    let mut kinds: Vec<(usize, &str)> =
        refused.chunk_by(|one, other| one == other).map(|run| (run.len(), &*run[0])).collect();
    kinds.sort();
    assert!(taken * 20 > SEEDS * 19, "{taken} of {SEEDS} taken; refused: {kinds:#?}");
}

/// Rows from which on threads share the keys of a table, and of groups.
const MANY: usize = 90_000;

#[test]
fn threads_share_the_keys_of_tables_and_of_groups() {
    // Neighbouring keys have places of their own; those far apart are hashed. Every third one has two rows.
    for spread in [1, 1 << 40] {
        let key = |row: usize| (row - row / 3 % 2) as i64 * spread;
        let valid = |row: usize| row % 7 != 3;
        let table = MemoryTable::new(
            "facts",
            vec![
                ("k", numbers::<Int64Type>(MANY, |row| (row % 11 != 5).then(|| key(row)))),
                ("v", numbers::<Int64Type>(MANY, |row| valid(row).then_some(row as i64 * 1_000_003))),
            ],
        );
        let some = || filter(binary(BinaryOp::Lt, reg(1), int(2_000_000_000, Ty::I64)));
        let build = builds(0, vec![], vec![reg(0)], vec![reg(1)]);
        let joined = aggregates(
            0,
            vec![some(), probe(0, vec![reg(0)], JoinKind::Left)],
            vec![],
            vec![count(), sum(reg(2), DataType::Int64), min(reg(2), DataType::Int64)],
        );
        let groups = vec![(reg(0), DataType::Int64)];
        let grouped = aggregates(0, vec![], groups, vec![count(), sum(reg(1), DataType::Int64)]);
        let over = |register: usize, data_type| max(reg(register), data_type);
        let calls = vec![count(), sum(reg(1), DataType::Int64), over(0, DataType::Int64), over(2, DataType::Int64)];
        let root = Pipeline { source: Source::Output(0), ..aggregates(0, vec![], vec![], calls) };
        for fragment in [fragment(&[2], vec![build, joined]), fragment(&[2], vec![grouped, root])] {
            compare_on_host(&fragment, &[&table]).unwrap();
        }
    }
}

#[test]
fn dates_outside_of_the_calendar_have_no_parts() {
    let of = [0, i32::MIN, i32::MAX, 95_026_236];
    let table = MemoryTable::new("facts", vec![("d", days(of.len(), |row| Some(of[row])))]);
    let year = || Expr::DatePart(DatePart::Year, Box::new(reg(0)));
    let fragment = single(1, vec![], vec![], vec![count_of(year()), max(year(), DataType::Int32)]);
    let (batch, _) = run(&host_engine(), &fragment, &[&table]).unwrap();
    let found: Vec<_> = batch.columns().iter().map(|column| format!("{:?}", scalars(column))).collect();
    assert_eq!(found, ["[Some(Int(2))]", "[Some(Int(262142))]"]);
}

#[test]
fn narrow_keys_are_found_among_wide_ones() {
    let table = |null: usize| {
        let value = |row: usize| (row % 7 != null).then_some(row as i128 - 50);
        MemoryTable::new("facts", vec![("d", decimals(100, 15, 0, value))])
    };
    let is_small = binary(BinaryOp::Lt, reg(0), int(10, Ty::I128));
    let wide = Expr::Case(vec![(is_small, reg(0))], Box::new(int(10i128.pow(25), Ty::I128)));
    for (build, probed) in [(wide.clone(), reg(0)), (reg(0), wide)] {
        let steps = vec![probe(0, vec![probed], JoinKind::Semi)];
        let groups = vec![(reg(0), DataType::Decimal128(15, 0))];
        let build = builds(1, vec![], vec![build], vec![]);
        let fragment = fragment(&[1, 1], vec![build, aggregates(0, steps, groups, vec![count()])]);
        for null in [3, 7] {
            compare_on_host(&fragment, &[&table(null), &table(7)]).unwrap();
        }
    }
}
