//! String columns past the dictionary limit: their bytes are tested by kernels.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::datatypes::{DataType, Int32Type};
use warpcube_column::{ColumnError, LoadLimits};
use warpcube_engine::{
    BinaryOp, Engine, EngineError, Expr, JoinKind, LikePattern, RunOptions, RunReport, TextMatch, Ty, UnaryOp,
};

use crate::support::*;

fn like(register: usize, pattern: &str) -> Expr {
    test(register, TextMatch::Like(LikePattern::new(pattern)))
}

fn is_in(register: usize, texts: &[&str]) -> Expr {
    test(register, TextMatch::In(texts.iter().map(|text| Arc::from(*text)).collect()))
}

fn not(inner: Expr) -> Expr {
    unary(UnaryOp::Not, inner)
}

const WORDS: [&str; 12] =
    ["special", "requests", "spec", "ial", " ", "äöü", "", "requestsrequests", "packages", "x", "日本", "s"];

/// Up to five words; some rows are NULL or empty.
fn comment(row: usize, seed: u64) -> Option<String> {
    let words = mixed(row, seed) % 6;
    let text: String = (0..words).map(|word| WORDS[(mixed(row, seed + 1 + word) % 12) as usize]).collect();
    (mixed(row, seed + 9) % 11 != 0).then_some(text)
}

fn facts(rows: usize) -> MemoryTable {
    MemoryTable::new(
        "facts",
        vec![
            ("comment", texts(rows, |row| comment(row, 20))),
            ("v", numbers::<Int32Type>(rows, |row| Some(mixed(row, 3) as i32 % 100))),
            ("full", texts(rows, |row| Some(comment(row, 40).unwrap_or_default()))),
            ("key", numbers::<Int32Type>(rows, |row| (row % 13 != 0).then_some(row as i32 / 3))),
        ],
    )
}

/// Brings the strings of a table to the device under a limit of no distinct string.
fn load_bytes(engine: &Engine, tables: &[&MemoryTable], fragment: &warpcube_engine::Fragment) {
    let limits = LoadLimits { dictionary_values: 0, ..LoadLimits::default() };
    let mut requests = requests(fragment, tables);
    requests.iter_mut().for_each(|request| request.coded.clear());
    engine.residency().admit(&requests, &limits, |_: &[_]| -> Result<u64, ColumnError> { Ok(0) }).unwrap();
}

/// Compares a fragment over bytes with the interpreter, in every order of lanes.
#[track_caller]
fn check_bytes(fragment: &warpcube_engine::Fragment, tables: &[&MemoryTable]) -> RunReport {
    let mut reports = ORDERS.map(|order| {
        let engine = engine(order);
        load_bytes(&engine, tables, fragment);
        check_on(&engine, fragment, tables)
    });
    let report = std::mem::take(&mut reports[0]);
    let program = report.program().unwrap();
    let source = program.source();
    assert!(source.contains("const WcTexts c"), "no bytes are read");
    report
}

/// The same of many fragments, whose programs are compiled together.
#[track_caller]
fn check_all_bytes(fragments: &[warpcube_engine::Fragment], tables: &[&MemoryTable]) {
    let engine = engine(warpcube_gpu::LaneOrder::Forward);
    fragments.iter().for_each(|fragment| load_bytes(&engine, tables, fragment));
    rehearse(&engine, fragments, tables);
    fragments.iter().for_each(|fragment| drop(check_bytes(fragment, tables)));
}

#[test]
fn like_counts_rows() {
    let steps = vec![filter(not(like(0, "%special%requests%")))];
    let report = check_bytes(&single(1, steps, vec![], vec![count()]), &[&facts(5_000)]);
    assert!(report.program().unwrap().source().contains("wc_match_step<WC_LIKE"), "a test of whole steps");
    assert!(report.bytes > 5_000 * 12, "{} bytes", report.bytes);
}

/// One test of each kind, with patterns of every form.
fn tests_of(register: usize) -> Vec<Expr> {
    let patterns = [
        "%special%requests%",
        "special%",
        "%requests",
        "%ial%",
        "%requests%requests%",
        "special requests",
        "",
        "%",
        "%%",
        "_",
        "__",
        "%_",
        "_%_",
        "spec_al%",
        "%_日本_%",
        "%ö_%",
        "s_ecial%",
        "%x_",
        "_%x%_",
        "special%special",
        "%äöü%requestsrequests%",
        "\\%%",
        "%s%s%s%s%",
        "%special%_equests_special",
    ];
    let order = |op, text: &str| test(register, TextMatch::Order(op, text.into()));
    let mut all: Vec<Expr> = patterns.into_iter().map(|pattern| like(register, pattern)).collect();
    all.push(is_in(register, &["special"]));
    all.push(is_in(register, &["", "x", "äöü", "requestsrequests", "no such"]));
    all.push(is_in(register, &[]));
    for text in ["", "requests", "specialspecial", "spec", "日本", "zzz"] {
        all.extend([BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge].map(|op| order(op, text)));
    }
    all
}

#[test]
fn tests_of_every_kind_count_rows() {
    let filtered = |calls: Vec<warpcube_engine::AggregateCall>| single(3, vec![], vec![], calls);
    let calls = |register: usize, tests: &[Expr]| {
        let counted = |test: &Expr| warpcube_engine::AggregateCall { filter: Some(test.clone()), ..count() };
        let mut calls: Vec<_> = tests.iter().map(counted).collect();
        calls.push(count_of(reg(register)));
        filtered(calls)
    };
    let of_column = |register| tests_of(register).chunks(8).map(|tests| calls(register, tests)).collect::<Vec<_>>();
    check_all_bytes(&[of_column(0), of_column(2)].concat(), &[&facts(3_000)]);
}

#[test]
fn tests_of_whole_steps_and_of_rows() {
    let table = facts(9_000);
    let few = || filter(binary(BinaryOp::Lt, reg(1), int(3, Ty::I32)));
    let mut fragments = Vec::new();
    let mut both = |condition: Expr| {
        let groups = vec![(reg(1), DataType::Int32)];
        // Whole steps with other filters, then rows of a queue.
        fragments.push(single(3, vec![filter(condition.clone())], groups, vec![count()]));
        fragments.push(single(3, vec![few(), filter(condition)], vec![], vec![count(), count_of(reg(0))]));
    };
    both(not(like(0, "%special%requests%")));
    both(binary(BinaryOp::And, not(like(0, "%x%")), like(2, "%s%")));
    both(binary(BinaryOp::Or, is_in(2, &["special", "x", ""]), binary(BinaryOp::Gt, reg(1), int(50, Ty::I32))));
    both(binary(BinaryOp::Or, unary(UnaryOp::IsNull, reg(0)), like(0, "_%_")));
    both(unary(UnaryOp::IsNotNull, reg(0)));
    both(unary(UnaryOp::IsNull, test(0, TextMatch::Order(BinaryOp::Lt, "s".into()))));
    check_all_bytes(&fragments, &[&table]);
}

#[test]
fn tests_within_aggregates() {
    let when = |test: Expr| Expr::Case(vec![(test, reg(1))], Box::new(int(0, Ty::I32)));
    let calls = vec![
        sum(when(like(0, "%special%")), DataType::Int64),
        sum(when(not(is_in(0, &["x", "s", "spec"]))), DataType::Int64),
        count(),
    ];
    let grouped = single(3, vec![], vec![(reg(1), DataType::Int32)], calls.clone());
    check_all_bytes(&[single(3, vec![], vec![], calls), grouped], &[&facts(4_000)]);
}

#[test]
fn tables_of_many_chunks_and_of_few_rows() {
    let calls = || vec![count(), count_of(reg(0))];
    let fragment = single(1, vec![filter(like(0, "%e%"))], vec![], calls());
    for (rows, partitions) in [(2, 1), (1_023, 1), (1_025, 1), (20_000, 7)] {
        let table = MemoryTable::shaped(
            "chunks",
            vec![("comment", texts(rows, |row| comment(row, 60)))],
            Shape { partitions, batch_rows: 300 },
        );
        check_bytes(&fragment, &[&table]);
    }
}

#[test]
fn build_sides_are_filtered_by_bytes() {
    let orders = facts(3_000);
    let customers = MemoryTable::new("customers", vec![("c", numbers::<Int32Type>(1_200, |row| Some(row as i32)))]);
    let joined = |kind| {
        let pipelines = vec![
            builds(0, vec![filter(not(like(0, "%special%requests%")))], vec![reg(3)], vec![]),
            aggregates(1, vec![probe(0, vec![reg(0)], kind)], vec![], vec![count(), sum(reg(0), DataType::Int64)]),
        ];
        fragment(&[4, 1], pipelines)
    };
    check_all_bytes(&[JoinKind::Semi, JoinKind::Anti].map(joined), &[&orders, &customers]);
}

/// Asks for codes of bytes.
fn refused(fragment: &warpcube_engine::Fragment, limit: usize, engine: &Engine, table: &MemoryTable) -> String {
    let limits = LoadLimits { dictionary_values: limit, ..LoadLimits::default() };
    let options = RunOptions { limits, ..RunOptions::default() };
    match engine.run(fragment, &requests(fragment, &[table]), &options) {
        Err(error @ EngineError::Column(ColumnError::Unsupported { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn codes_of_bytes_are_refused_until_the_limit_is_higher() {
    let (table, engine) = (facts(2_000), engine(warpcube_gpu::LaneOrder::Forward));
    let by_comment = single(1, vec![], vec![(reg(0), DataType::Utf8)], vec![count()]);
    let extremes = single(1, vec![], vec![], vec![max(reg(0), DataType::Utf8)]);
    let joined = fragment(
        &[1],
        vec![
            builds(0, vec![], vec![reg(0)], vec![]),
            aggregates(0, vec![probe(0, vec![reg(0)], JoinKind::Semi)], vec![], vec![count()]),
        ],
    );
    let other = single(
        1,
        vec![filter(lookup(0, "even", Ty::Bool, |texts| {
            Arc::new(texts.iter().map(|text| text.map(|text| text.len() % 2 == 0)).collect::<BooleanArray>())
        }))],
        vec![],
        vec![count()],
    );
    for fragment in [&by_comment, &extremes, &joined, &other] {
        let reason = refused(fragment, 3, &engine, &table);
        assert!(reason.contains("column 'comment'") && reason.contains("more than 3 distinct strings"), "{reason}");
    }
    assert!(engine.residency().summaries().is_empty(), "no bytes are loaded for nothing");
    let matches = single(1, vec![filter(like(0, "%s"))], vec![], vec![count()]);
    load_bytes(&engine, &[&table], &matches);
    compare_on(&engine, &matches, &[&table]);
    // A limit that the column is known to be past: no source is read.
    let reason = refused(&by_comment, 0, &engine, &table);
    assert!(reason.contains("lies on the device as bytes"), "{reason}");
    assert_eq!(engine.residency().summaries()[0].columns[0].encoding, "bytes");
    // Under the default limit the column gets a dictionary, which serves tests too.
    compare_on(&engine, &by_comment, &[&table]);
    assert!(engine.residency().summaries()[0].columns[0].facts.dictionary.is_some());
    compare_on(&engine, &matches, &[&table]);
}

/// All strings of up to `length` of these characters.
fn strings(chars: &[char], length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..length {
        let longer: Vec<String> =
            all[from..].iter().flat_map(|text| chars.iter().map(move |char| format!("{text}{char}"))).collect();
        from = all.len();
        all.extend(longer);
    }
    all
}

#[test]
fn short_patterns_match_short_strings_as_in_plain_rust() {
    let of_rows = strings(&['a', 'b', 'ä', '%'], 5);
    let rows = of_rows.len();
    let squares = numbers::<Int32Type>(rows, |row| Some((row * row) as i32));
    let table = MemoryTable::new("strings", vec![("s", texts(rows, |row| Some(of_rows[row].clone()))), ("v", squares)]);
    let engine = engine(warpcube_gpu::LaneOrder::Forward);
    // Fragments of one shape share their kernels.
    for patterns in strings(&['a', 'ä', '%', '_', '\\'], 4).chunks(11) {
        let summed = |pattern: &String| warpcube_engine::AggregateCall {
            filter: Some(like(0, pattern)),
            ..sum(reg(1), DataType::Int64)
        };
        let fragment = single(2, vec![], vec![], patterns.iter().map(summed).collect());
        load_bytes(&engine, &[&table], &fragment);
        compare_on(&engine, &fragment, &[&table]);
    }
}

#[test]
fn strings_of_results_are_read_at_the_end() {
    let (orders, customers) = (
        facts(3_000),
        MemoryTable::new(
            "customers",
            vec![
                ("c", numbers::<Int32Type>(1_200, |row| Some(row as i32))),
                ("name", texts(1_200, |row| (row % 5 != 0).then(|| format!("name {row} {}", "ä".repeat(row % 9))))),
            ],
        ),
    );
    let joined = |kind| {
        // Keys of the build side are unique: its strings are payload, those of the scan rows of the result.
        let outputs = vec![(reg(3), DataType::Int32), (reg(0), DataType::Utf8), (reg(4), DataType::Utf8)];
        let scan = warpcube_engine::Pipeline {
            source: warpcube_engine::Source::Table(0),
            steps: vec![filter(like(0, "%s%")), probe(0, vec![reg(3)], kind)],
            sink: warpcube_engine::Sink::Rows { columns: outputs, limit: None },
        };
        let build = builds(1, vec![filter(not(like(1, "%7%")))], vec![reg(0)], vec![reg(1)]);
        fragment(&[4, 2], vec![build, scan])
    };
    check_all_bytes(&[JoinKind::Inner, JoinKind::Left].map(joined), &[&orders, &customers]);
    // A row has up to three matches, each with a string of its own.
    let of_customers = |kind| {
        let outputs = vec![(reg(0), DataType::Int32), (reg(2), DataType::Utf8), (reg(1), DataType::Utf8)];
        let scan = warpcube_engine::Pipeline {
            source: warpcube_engine::Source::Table(1),
            steps: vec![probe(0, vec![reg(0)], kind), filter(not(like(1, "%7%")))],
            sink: warpcube_engine::Sink::Rows { columns: outputs, limit: None },
        };
        let build = builds(0, vec![filter(not(like(0, "%x%")))], vec![reg(3)], vec![reg(0)]);
        fragment(&[4, 2], vec![build, scan])
    };
    check_all_bytes(&[JoinKind::Inner, JoinKind::Left].map(of_customers), &[&orders, &customers]);
}

/// Compares fragments with the interpreter whose kernels read where strings lie in their columns, and no bytes.
#[track_caller]
fn check_all_places(fragments: &[warpcube_engine::Fragment], tables: &[&MemoryTable]) {
    for (fragment, order) in fragments.iter().flat_map(|fragment| ORDERS.map(|order| (fragment, order))) {
        let engine = engine(order);
        load_bytes(&engine, tables, fragment);
        check_on(&engine, fragment, tables);
        let summaries = engine.residency().summaries();
        let mut columns = summaries.iter().flat_map(|table| &table.columns);
        assert!(columns.any(|column| column.encoding == "bytes"), "all strings have codes");
    }
}

#[test]
fn strings_that_another_key_determines_are_group_keys_without_codes() {
    let (orders, lines) = (facts(3_000), 5_000);
    let customers = MemoryTable::new(
        "customers",
        vec![
            ("c", numbers::<Int32Type>(800, |row| Some(row as i32))),
            // Customers share names.
            ("name", texts(800, |row| (row % 5 != 0).then(|| format!("name {}", row % 40)))),
        ],
    );
    let lines = MemoryTable::new("lines", vec![("row", numbers::<Int32Type>(lines, |row| Some(row as i32 / 2)))]);
    let keyed = MemoryTable::new(
        "keyed",
        vec![
            ("id", numbers::<Int32Type>(3_000, |row| Some(row as i32))),
            ("customer", numbers::<Int32Type>(3_000, |row| (row % 13 != 0).then_some(row as i32 / 3))),
        ],
    );
    let by_customer = |key: usize, name: usize| vec![(reg(key), DataType::Int32), (reg(name), DataType::Utf8)];
    let customer_table = |payload: Vec<Expr>| builds(1, vec![], vec![reg(0)], payload);
    // By the key of the probe, and by that of the table as payload.
    for kind in [JoinKind::Inner, JoinKind::Left] {
        let direct = fragment(
            &[4, 2],
            vec![
                customer_table(vec![reg(1)]),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(3)], kind)],
                    by_customer(3, 4),
                    vec![count(), sum(reg(1), DataType::Int64)],
                ),
            ],
        );
        let payload = fragment(
            &[4, 2],
            vec![
                customer_table(vec![reg(1), reg(0)]),
                aggregates(
                    0,
                    vec![probe(0, vec![reg(3)], kind)],
                    by_customer(5, 4),
                    vec![count(), sum(reg(1), DataType::Int64)],
                ),
            ],
        );
        check_all_places(&[direct, payload], &[&orders, &customers]);
        // Handed on through a table of orders to lines, whose groups another pipeline reads.
        let pipelines = vec![
            customer_table(vec![reg(1)]),
            builds(2, vec![probe(0, vec![reg(1)], kind)], vec![reg(0)], vec![reg(1), reg(2)]),
            aggregates(0, vec![probe(1, vec![reg(0)], JoinKind::Inner)], by_customer(1, 2), vec![count()]),
        ];
        let through = fragment(&[1, 2, 2], pipelines.clone());
        let mut first_rows = pipelines;
        let outputs = vec![(reg(0), DataType::Int32), (reg(1), DataType::Utf8), (reg(2), DataType::Int64)];
        first_rows.push(warpcube_engine::Pipeline {
            source: warpcube_engine::Source::Output(2),
            steps: vec![],
            sink: warpcube_engine::Sink::Rows { columns: outputs, limit: None },
        });
        check_all_places(&[through, fragment(&[1, 2, 2], first_rows)], &[&lines, &customers, &keyed]);
    }
    // Where customers share a key, as the run finds, their names are compared.
    let shared = numbers::<Int32Type>(800, |row| Some(row as i32 / 2));
    let doubled =
        MemoryTable::new("customers", vec![("c", shared), ("name", texts(800, |row| Some(format!("{row}"))))]);
    let steps = vec![probe(0, vec![reg(3)], JoinKind::Inner)];
    let groups = aggregates(0, steps, by_customer(3, 4), vec![count()]);
    let of_doubled = fragment(&[4, 2], vec![customer_table(vec![reg(1)]), groups]);
    let engine = engine(warpcube_gpu::LaneOrder::Forward);
    load_bytes(&engine, &[&orders, &doubled], &of_doubled);
    let refused = engine.run(&of_doubled, &requests(&of_doubled, &[&orders, &doubled]), &RunOptions::default());
    assert!(matches!(refused, Err(EngineError::Unsupported(_))), "{refused:?}");
    // A name alone is compared, and so is one beside a key of several customers.
    for groups in [vec![(reg(4), DataType::Utf8)], by_customer(1, 4)] {
        let steps = vec![probe(0, vec![reg(3)], JoinKind::Inner)];
        let fragment =
            fragment(&[4, 2], vec![customer_table(vec![reg(1)]), aggregates(0, steps, groups, vec![count()])]);
        let limits = LoadLimits { dictionary_values: 3, ..LoadLimits::default() };
        let options = RunOptions { limits, ..RunOptions::default() };
        let refused = engine.run(&fragment, &requests(&fragment, &[&orders, &customers]), &options);
        assert!(matches!(refused, Err(EngineError::Column(ColumnError::Unsupported { .. }))), "{refused:?}");
    }
}
