//! The differential fuzzer: random tables, aggregations, windows and first rows ([`first_rows`]) on a device and on the
//! CPU give the same rows.
//!
//! In the test run: a fixed range of seeds on the emulated device. For more, by environment:
//! `WARPCUBE_FUZZ_SEEDS=0..1000` (each seed is a query; eight in a row share their tables),
//! `WARPCUBE_FUZZ_DEVICE=cuda|emulated|columns`, `WARPCUBE_FUZZ_ROWS=1000000` (about so many rows of the fact table),
//! `WARPCUBE_FUZZ_LOG=FILE` (one line a seed; seeds in it are not run again). A case that differs is shrunk and written
//! to `slt/regressions/`, where the runner of SQL files finds it.

mod bench;
mod compare;
mod data;
mod first_rows;
mod nested;
mod query;
pub mod random;
mod sets;
mod shrink;
mod statistics;
mod windows;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use bench::{Bench, Verdict};
use data::Tables;
use query::{Generator, Query};
use random::Random;

/// Queries over the same tables.
const QUERIES_PER_CASE: u64 = 8;
/// Of so many seeds one is a query over the groups of another, one asks for first rows, of joins too, and one for
/// windows.
const KINDS: u64 = 5;
/// Seeds of the test run.
const SEEDS: Range<u64> = 0..48;
/// Seeds of the test run whose strings are bytes.
const SEEDS_OVER_BYTES: Range<u64> = 5_000..5_016;
/// Most distinct strings of a column that has codes there.
const DICTIONARY_LIMIT: &str = "2";
/// Least share of the test run's queries that the device answers, in percent.
const PLACED_PERCENT_MIN: usize = 50;
/// The same where strings are bytes: groups and order by one stay on the CPU.
const PLACED_OVER_BYTES_PERCENT_MIN: usize = 20;
/// Seeds of the queries over columns in host memory.
const SEEDS_OVER_COLUMNS: Range<u64> = 9_000..9_200;
/// Least share of those that columns have to answer, in percent.
const PLACED_OVER_COLUMNS_PERCENT_MIN: usize = 90;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The seeds that are wanted, or those of a test run.
fn seeds(own: Range<u64>) -> Range<u64> {
    let Some(text) = variable("WARPCUBE_FUZZ_SEEDS") else { return own };
    let bounds = text.split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let (first, last) = bounds.unwrap_or_else(|| panic!("WARPCUBE_FUZZ_SEEDS is a range such as 0..1000, not {text}"));
    first..last
}

fn done_before(log: Option<&PathBuf>) -> Vec<u64> {
    let text = log.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

/// A reason without what varies from query to query.
fn kind_of(reason: &str) -> String {
    let reason = reason.split_once("ENG-00").map_or(reason, |(_, rest)| rest.split_once(": ").map_or(rest, |(_, r)| r));
    let mut quoted = false;
    let kept = reason.chars().filter(|c| {
        if *c == '\'' {
            quoted = !quoted;
        }
        !quoted && !c.is_ascii_digit()
    });
    kept.take(90).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries() {
    check_queries("emulated", SEEDS, None, PLACED_PERCENT_MIN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_over_bytes() {
    check_queries("emulated", SEEDS_OVER_BYTES, Some(DICTIONARY_LIMIT), PLACED_OVER_BYTES_PERCENT_MIN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_over_columns() {
    check_queries("columns", SEEDS_OVER_COLUMNS, None, PLACED_OVER_COLUMNS_PERCENT_MIN).await;
}

/// Runs the queries of some seeds on a device unless another is asked for, under another limit of dictionaries if there
/// is one; the device has to answer so many percent.
async fn check_queries(device: &str, own: Range<u64>, dictionary_limit: Option<&str>, placed_percent_min: usize) {
    let rows = variable("WARPCUBE_FUZZ_ROWS").map_or(3000, |text| text.parse().expect("a number of rows"));
    let device = variable("WARPCUBE_FUZZ_DEVICE").unwrap_or_else(|| device.into());
    let log = variable("WARPCUBE_FUZZ_LOG").map(PathBuf::from);
    let done = done_before(log.as_ref());
    let mut bench = Bench::new(&device);
    dictionary_limit.inspect(|limit| bench.set("warpcube.dictionary_limit", limit));
    let mut loaded: Option<(u64, Tables)> = None;
    let (mut placed, mut raised, mut answered, mut run) = (0, 0, 0, 0);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    let drawn = |seed: u64, tables: &Tables| {
        let mut random = Random::new(seed ^ 0xF00D << 40);
        let generator = Generator::new(&mut random, tables);
        match seed % KINDS {
            1 => generator.nested(),
            2 => generator.first_rows(false),
            3 => generator.windows(),
            _ => generator.query(),
        }
    };
    let seeds = seeds(own);
    for seed in seeds.clone().filter(|seed| !done.contains(seed)) {
        let case = seed / QUERIES_PER_CASE;
        if loaded.as_ref().is_none_or(|(number, _)| *number != case) {
            let tables = Tables::generate(&mut Random::new(case), rows);
            bench.load(&tables).await;
            let end = seeds.end.min((case + 1) * QUERIES_PER_CASE);
            bench.rehearse((seed..end).map(|seed| drawn(seed, &tables).sql())).await;
            loaded = Some((case, tables));
        }
        let (_, tables) = loaded.as_ref().expect("loaded above");
        let query = drawn(seed, tables);
        let sql = query.sql();
        let verdict = bench.check(&sql).await;
        run += 1;
        let word = match &verdict {
            Verdict::Same => {
                placed += 1;
                "same".to_string()
            }
            Verdict::Raised => {
                raised += 1;
                "raised".to_string()
            }
            Verdict::Answered => {
                answered += 1;
                "answered".to_string()
            }
            Verdict::Refused(reason) => {
                *refused.entry(kind_of(reason)).or_default() += 1;
                format!("refused {reason}").replace('\n', " ")
            }
            Verdict::Differs(difference) => format!("DIFFERS {difference}").replace('\n', " "),
        };
        if let Some(path) = &log {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            writeln!(file.expect("the log can be written"), "{seed} {word}").expect("the log can be written");
        }
        if let Verdict::Differs(difference) = verdict {
            eprintln!("seed {seed}: {difference}\n{sql}");
            failures.push(shrunk(&mut bench, tables, query, &format!("seed-{seed}"), &difference).await);
            loaded = None;
        }
    }
    let errors = format!("{raised} raised, {answered} raised on the CPU and answered by the device");
    eprintln!("{run} queries: {placed} on the device, {errors}, refused: {refused:#?}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(
        run == 0 || placed * 100 >= (run - raised - answered) * placed_percent_min,
        "the device answered {placed} of {run}"
    );
}

/// Shrinks a case that differs and writes it to `slt/regressions`; what to say of it.
async fn shrunk(bench: &mut Bench, tables: &Tables, query: Query, name: &str, difference: &str) -> String {
    let (tables, query) = shrink::shrink(bench, tables.clone(), query).await;
    let text = shrink::write_up(bench, &tables, &query, &format!("{name}: {difference}")).await;
    let folder = crate::support::slt_folder().join("regressions");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{name}.slt"));
    std::fs::write(&path, text).unwrap();
    format!("{name}, shrunk to {}:\n{}\n{difference}", path.display(), query.sql())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_difference_is_shrunk_to_a_file_that_runs() {
    let tables = Tables::generate(&mut Random::new(5), 80);
    let queries = (0..1_000).map(|seed| Generator::new(&mut Random::new(seed), &tables).query());
    let wanted = |sql: &str| ["AVG(", " WHERE ", " GROUP BY ", " AS a2"].iter().all(|part| sql.contains(part));
    let query = queries.into_iter().find(|query| wanted(&query.sql())).expect("a query with all of that");
    let mut bench = Bench::new("cpu");
    bench.load(&tables).await;
    bench.planted = Some(("AVG(", "SELECT count(*) >= 3 FROM f"));
    let (tables, query) = shrink::shrink(&mut bench, tables, query).await;
    let sql = query.sql();
    let gone = [" WHERE ", " GROUP BY ", " HAVING ", " LIMIT ", " AS a1"];
    assert!(sql.contains("AVG(") && !gone.iter().any(|part| sql.contains(part)), "{sql}");
    let rows: Vec<usize> = tables.tables.iter().map(|table| table.rows.num_rows()).collect();
    assert_eq!(rows.iter().sum::<usize>(), 3, "{rows:?}");
    bench.planted = None;
    let text = shrink::write_up(&bench, &tables, &query, "planted").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planted.slt");
    std::fs::write(&path, &text).unwrap();
    let failures = crate::slt::run_file(&path, &crate::support::cpu(), false, false).await;
    assert!(failures.is_empty(), "{failures:?}\n{text}");
}
