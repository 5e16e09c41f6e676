//! DataFusion's own SQL test files, on the CPU and on the emulated device.
//!
//! The files come with the crate `datafusion-sqllogictest`, which is looked for where Cargo unpacks crates (or in
//! `WARPCUBE_SQLLOGICTEST`); the data that it lacks in `WARPCUBE_SQLLOGICTEST_DATA`, laid out as `testing/data/…` and
//! `core/tests/data/…`. What is not there is skipped and counted. Skipped as well: plans as text (EXPLAIN), and what
//! needs functions or tables that only DataFusion's own runner has. The device answers a fixed number of queries a
//! file, all of them with `WARPCUBE_SQLLOGICTEST_ALL=1`; how many is recorded in `placed.txt` and may only rise, where
//! no more records lack data than when it was recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use warpcube_sql::{Connection, Database, DatabaseOptions};

use crate::records::{Letter, answer, answer_on_device, check, sql_of};
use crate::support::{Encodings, compile_deferred, defer_programs, device_name, is_deferred, set_encoding};

/// The release whose files these are.
const RELEASE: &str = "datafusion-sqllogictest-55.2.0";
/// Files, by their path under `test_files`.
const FILES: [&str; 18] = [
    "select",
    "aggregate",
    "group_by",
    "joins",
    "order",
    "union",
    "subquery",
    "distinct_on",
    "limit",
    "decimal",
    "cast",
    "case",
    "coalesce",
    "nullif",
    "null_aware_anti_join",
    "datetime/timestamps",
    "datetime/dates",
    "datetime/date_part",
];
/// Queries of a file on the device in a test run; each compiles a kernel.
const PLACED_MAX: usize = 25;
/// What has been placed before: file, queries in a test run, queries in all, records that lacked data.
const RECORDED: &str = include_str!("placed.txt");

/// Why a record is skipped that reads a file, or a table over one, that is not there.
const LACKS_DATA: &str = "data that is not here";

/// What a column is called here and there.
const NAMES: &str = "names that DataFusion gives columns";
const NO_DATE: &str = "a number is no date and no time";
const MICROSECONDS: &str = "timestamps of a session with a zone have microseconds";
const JOINED: &str = "subqueries stand in all places, over all groups";
/// Parts of statements for which a file expects otherwise than SQL has it, and why.
const OTHERWISE: [(&str, &str); 49] = [
    ("lateral (select * from unnest(generate_series(1, t1_int)))", "unnest reads columns of tables before it"),
    ("* replace ('v1' as v3)", "a replacement of no column is an error"),
    ("\"a + int64(1)\"", NAMES),
    ("\"avg(tab3.col2)\"", NAMES),
    ("approx_distinct(cast(c9 as varchar)) count_c9_str", NAMES),
    ("select count(1), count(1) from t", NAMES),
    ("select count(), count() from t", NAMES),
    ("select state, sum(salary) as state from employee_csv", NAMES),
    ("sum(l.amount) over(rows between 1 preceding and 1 following)", "a frame of rows that have no order"),
    ("select * from right_table_no_nulls\n    order by b\n    limit 10", "rows of a join that have no order"),
    ("on t1.a = t2.b limit 2", "rows of a join that have no order"),
    ("order by b desc, d desc", "rows that an order leaves open"),
    ("group by rollup(c2, c3) limit 3", "groups that have no order"),
    ("as t1 join (select * from testsubquerylimit", "a join without a condition is an error"),
    ("isnan('-nan'::double)", "one NaN, the largest, whatever its sign"),
    (
        "date_bin('1 day', timestamptz '2022-01-01 20:10:00z', timestamp '2020-01-01')",
        "a time without a zone is one of the session's zone",
    ),
    ("select y > 0 and 1 / y < 1, x > 0", "a quotient is not computed where another operand of AND is false"),
    ("select y = 0 or 1 / y < 1, x = 0", "a quotient is not computed where another operand of OR is true"),
    (
        "array_agg(d order by d)\nfrom annotated_data_infinite2\n",
        "groups come in any order: a declared one is not believed",
    ),
    ("or id not in (select id from inner_table2)", "NULL NOT IN rows is NULL, below OR too"),
    ("select median(c), arrow_typeof(median(c)) from t;", "a median of decimals has a digit more"),
    ("median(col_decimal128)", "a median of decimals has a digit more"),
    ("median(col_decimal256)", "a median of decimals has a digit more"),
    ("percentile_cont(0.05) within group (order by c3 desc) from", "a percentile has all digits of its fraction"),
    ("percentile_cont(0.95) within group (order by c3) from", "a percentile has all digits of its fraction"),
    ("percentile_cont(0.3) within group (order by v) from", "a percentile has all digits of its fraction"),
    ("count(aggregate_test_100.*)", "rows of one of several tables are counted by a column of it"),
    ("order by t1_int in (select t2_int from t2 where t1.t1_id > t1.t1_int)", JOINED),
    ("(select t2_int from t2 where t2.t2_int = t1_int group by t2_int) as t2_int", JOINED),
    ("where t2.t2_id = t1.t1_id group by t2_name) as t2_sum", JOINED),
    ("from sales_global_with_unique as l", "UNIQUE takes several NULLs, so that no column follows from it"),
    ("multiple_ordered_table_with_pk", "nothing holds a key of a table over files, so that it is refused"),
    ("from interval_group_test group by", "intervals of one length are one group"),
    ("select cast(ts as timestamp(3)) from ts_data_nanos", "casts to coarser times round"),
    ("select to_timestamp_millis(ts) from ts_data_micros", "functions of coarser times round"),
    ("make_array('2020-01-01t00:00:00-04:00'::timestamp", "a timestamp without a zone leaves the offset of a text out"),
    (
        "cast('2005-09-10 13:31:00 +02:00' as timestamp with time zone)",
        "a timestamp without a zone leaves the offset of a text out",
    ),
    ("cast(a as varchar),\n    arrow_cast(a, 'utf8')", "a cast of a timestamp to a text has no T, arrow_cast has one"),
    (
        "timestamptz '2023-03-12 02:00:00 america/los_angeles'",
        "a time that clocks of a zone never show is that of standard time",
    ),
    ("select arrow_typeof(now());", MICROSECONDS),
    ("arrow_typeof(time) from foo", MICROSECONDS),
    ("arrow_typeof(date_trunc('day', time)) from foo", MICROSECONDS),
    ("::timestamp as c3", NO_DATE),
    ("to_timestamp(0) = 0::timestamp", NO_DATE),
    ("arrow_typeof(1::timestamp)", NO_DATE),
    ("select 0::time", NO_DATE),
    ("% 86400000000000)::time", NO_DATE),
    (" as float) as timestamp", NO_DATE),
    (" as decimal(17,2)) as timestamp", NO_DATE),
];
/// What a file puts into a column of timestamps or bytes, and what makes those of it here: numbers are neither, and
/// `0xa` is a number.
const MEANT: [(&str, &str); 7] = [
    (" 0xa)", " X'0a')"),
    (" 0xb)", " X'0b')"),
    ("(131964190213133)", "(TIMESTAMP '1970-01-02 12:39:24.190213133')"),
    ("(131964190213134)", "(TIMESTAMP '1970-01-02 12:39:24.190213134')"),
    ("(131964190213135)", "(TIMESTAMP '1970-01-02 12:39:24.190213135')"),
    ("'Boston', 70.4, 1, 50)", "'Boston', 70.4, 1, TIMESTAMP '1970-01-01 00:00:50')"),
    ("'Bedford', 71.59, 2, 150)", "'Bedford', 71.59, 2, TIMESTAMP '1970-01-01 00:02:30')"),
];

/// Folder of the crate.
fn crate_folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("WARPCUBE_SQLLOGICTEST") {
        return Some(folder.into());
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    let candidates = registries.flatten().map(|registry| registry.path().join(RELEASE));
    candidates.into_iter().find(|folder| folder.join("test_files").is_dir())
}

/// Folder of the data that the crate lacks.
fn data_folder() -> PathBuf {
    let named = std::env::var_os("WARPCUBE_SQLLOGICTEST_DATA").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/sqllogictest"))
}

/// What came of a file.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    placed: usize,
    skipped: BTreeMap<&'static str, usize>,
    refused: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// What a file leaves behind while it runs.
#[derive(Default)]
struct Missing {
    /// Names of tables that could not be made for want of data.
    tables: Vec<String>,
}

impl Missing {
    /// Why a statement is skipped, before it runs.
    fn skips(&mut self, sql: &str, folder: &Path) -> Option<&'static str> {
        let lower = sql.to_lowercase();
        if lower.trim_start().starts_with("explain") {
            return Some("plans as text");
        }
        if let Some((_, reason)) = OTHERWISE.iter().find(|(text, _)| lower.contains(text)) {
            return Some(reason);
        }
        // Paths are no names of tables.
        let unquoted: String = lower.split('\'').step_by(2).collect();
        let mut words = unquoted.split(|c: char| !c.is_alphanumeric() && c != '_');
        if words.any(|word| self.tables.iter().any(|table| table == word)) {
            return Some(LACKS_DATA);
        }
        if let Some(path) = quoted_path(sql)
            && !folder.join(path).exists()
            && !Path::new(path).exists()
            && !path.contains("scratch")
        {
            let mut words = lower.split_whitespace().skip_while(|word| *word != "table").skip(1);
            let table = words.find(|word| !["if", "not", "exists"].contains(word));
            self.tables.extend(table.map(|table| table.trim_matches('(').to_string()));
            return Some(LACKS_DATA);
        }
        None
    }
}

/// The first quoted piece that names a file of the repository.
fn quoted_path(sql: &str) -> Option<&str> {
    let is_path = |piece: &&str| ["data/", "test_files/", "tpch-csv/"].iter().any(|folder| piece.contains(folder));
    sql.split('\'').skip(1).step_by(2).find(is_path)
}

/// Errors for which DataFusion's runner has what a session has not.
fn needs_more(error: &str) -> Option<&'static str> {
    let texts = [
        ("unknown function 'example_udf'", "functions of DataFusion's runner"),
        ("test_partition_table", "tables of DataFusion's runner"),
        ("my_catalog", "tables of DataFusion's runner"),
        ("approx_distinct_union_test", "tables of DataFusion's runner"),
        ("table_with_many_types", "tables of DataFusion's runner"),
    ];
    texts.iter().find(|(text, _)| error.contains(text)).map(|(_, reason)| *reason)
}

async fn run_file(root: &Path, data: &Path, name: &str, session: &Connection, placed_max: Option<usize>) -> Outcome {
    let path = root.join("test_files").join(format!("{name}.slt"));
    let script = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut outcome = Outcome::default();
    let mut missing = Missing::default();
    let mut number = 0;
    for record in sqllogictest::parse_with_name::<Letter>(&script, name).unwrap() {
        let Some(sql) = sql_of(&record) else { continue };
        let at = |folder: &str| data.join(folder).display().to_string();
        let sql = sql
            .replace("../../testing/data", &at("testing/data"))
            .replace("../core/tests/data", &at("core/tests/data"))
            .replace("'data/", &format!("'{}/", root.join("data").display()))
            .replace("'test_files", &format!("'{}", root.join("test_files").display()));
        let sql = MEANT.iter().fold(sql, |sql, (written, meant)| sql.replace(written, meant));
        if let Some(reason) = missing.skips(&sql, root) {
            *outcome.skipped.entry(reason).or_default() += 1;
            continue;
        }
        let left = placed_max.map(|most| most.saturating_sub(outcome.placed));
        let found = match left {
            Some(left) if left > 0 => {
                if Encodings::wanted() == Encodings::Mixed {
                    number += 1;
                    set_encoding(session, number);
                }
                let (found, ran) = answer_on_device(session, &sql).await;
                let is_rehearsed = found.as_ref().is_err_and(|error| is_deferred(error));
                outcome.placed += usize::from(ran.on_device || is_rehearsed);
                if let Some(reason) = ran.refusal {
                    *outcome.refused.entry(reason.chars().take(80).collect()).or_default() += 1;
                }
                if outcome.placed == placed_max.unwrap_or(0) {
                    session.set("warpcube.placement", "files").unwrap();
                }
                found
            }
            _ => answer(session, &sql).await,
        };
        if let Some(reason) = found.as_ref().err().and_then(|error| needs_more(error)) {
            *outcome.skipped.entry(reason).or_default() += 1;
            continue;
        }
        match check(&record, &found, false) {
            Ok(()) => outcome.passed += 1,
            Err(wrong) => outcome.failures.push(format!("{name}: {sql}\n{wrong}")),
        }
    }
    outcome
}

/// What `placed.txt` has of a file.
struct Recorded {
    /// Queries on the device in a test run.
    some: usize,
    /// Queries on the device in all.
    all: usize,
    /// Records that lacked data then.
    lacking: usize,
}

impl Recorded {
    fn of(name: &str) -> Recorded {
        let line = RECORDED.lines().find(|line| line.split(' ').next() == Some(name));
        let numbers = line.into_iter().flat_map(|line| line.split(' ').skip(1));
        match numbers.flat_map(str::parse).collect::<Vec<usize>>().as_slice() {
            &[some, all, lacking] => Recorded { some, all, lacking },
            _ => panic!("placed.txt has no three numbers for {name}"),
        }
    }
}

fn options() -> DatabaseOptions {
    // The profile that docs/sql.md lists: what these files expect and SQL does not say.
    DatabaseOptions::new()
        .with("warpcube.target_partitions", "4")
        .with("warpcube.overflow", "wrap")
        .with("datafusion.sql_parser.parse_float_as_decimal", "false")
        .with("datafusion.sql_parser.enable_subquery_sort_elimination", "true")
        .with("datafusion.execution.time_zone", "")
}

/// A session on the device.
fn on_device() -> Connection {
    let device = options().with("warpcube.device", &device_name()).with("warpcube.placement", "cuda");
    let device = Database::open(device).unwrap().connect();
    if let Encodings::One(name) = Encodings::wanted() {
        device.set("warpcube.encoding", &name).unwrap();
    }
    device
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_datafusion() {
    let Some(root) = crate_folder() else {
        eprintln!("{} files skipped: {RELEASE} is not among Cargo's unpacked crates", FILES.len());
        return;
    };
    let data = data_folder();
    let all = std::env::var("WARPCUBE_SQLLOGICTEST_ALL").is_ok();
    let only = std::env::var("WARPCUBE_SQLLOGICTEST_FILE").unwrap_or_default();
    let (mut failures, mut uncounted) = (Vec::new(), 0);
    for name in FILES.into_iter().filter(|name| name.contains(&only)) {
        let cpu = Database::open(options().with("warpcube.device", "cpu")).unwrap().connect();
        let outcome = run_file(&root, &data, name, &cpu, None).await;
        eprintln!("{name} on the CPU: {} passed, skipped {:?}", outcome.passed, outcome.skipped);
        failures.extend(outcome.failures);
        let placed_max = if all { usize::MAX } else { PLACED_MAX };
        // The programs of a file are compiled together, and then it runs in a session of its own.
        let rehearsal = on_device();
        if defer_programs(&rehearsal) {
            run_file(&root, &data, name, &rehearsal, Some(placed_max)).await;
            compile_deferred(&rehearsal);
        }
        let device = on_device();
        let outcome = run_file(&root, &data, name, &device, Some(placed_max)).await;
        let Outcome { passed, placed, refused, skipped, .. } = outcome;
        eprintln!("{name} on the device: {passed} passed, {placed} placed, refused {refused:#?}");
        failures.extend(outcome.failures.into_iter().map(|failure| format!("on the device: {failure}")));
        let recorded = Recorded::of(name);
        let before = if all { recorded.all } else { recorded.some };
        let lacking = skipped.get(LACKS_DATA).copied().unwrap_or(0);
        if lacking > recorded.lacking {
            uncounted += 1;
            eprintln!("{name}: {lacking} records lack data, {} when placed.txt was recorded", recorded.lacking);
        } else if placed < before {
            failures.push(format!("{name}: the device ran {before} queries before and {placed} now"));
        } else if placed > before {
            eprintln!("{name}: {placed} queries run on the device now, and placed.txt has {before}");
        }
    }
    if uncounted > 0 {
        eprintln!("placed queries of {uncounted} files skipped: their data is not in {}", data.display());
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
}
