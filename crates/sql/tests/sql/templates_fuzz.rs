//! Random statements by their templates, and by what was bound for other literals, and planned anew: the same rows.
//!
//! Each shape is run with several sets of literals, so that all but the first take its template; the judge is the same
//! statement through DataFusion's context on the CPU, which plans by no template. `WARPCUBE_TEMPLATE_STATEMENTS=10000`
//! runs more.

use warpcube_sql::{Connection, Place, Summary};

use crate::fuzz::random::Random;
use crate::support::{cpu, lenient};

/// Statements of the test run.
const STATEMENTS: usize = 200;
/// The same on the device.
const STATEMENTS_ON_DEVICE: usize = 60;
/// Sets of literals of one shape.
const SETS: usize = 4;

const TABLES: [&str; 3] = [
    "CREATE TABLE t AS SELECT CASE WHEN value % 11 = 0 THEN NULL ELSE value % 7 END AS k, \
     CASE WHEN value % 13 = 0 THEN NULL ELSE value % 10 END AS v, \
     CASE WHEN value % 17 = 0 THEN NULL ELSE CAST(value % 5 AS VARCHAR) END AS s FROM generate_series(1, 300)",
    "CREATE TABLE u AS SELECT value % 9 AS k, CASE WHEN value % 4 = 0 THEN NULL ELSE value END AS w \
     FROM generate_series(1, 40)",
    "CREATE VIEW some AS SELECT * FROM t WHERE k NOT IN (1, 2, 3, 4) OR v IN (1, 2, 3, 5)",
];

/// A shape: text with `#` in place of literals; `@` stands for strings.
fn shape(random: &mut Random) -> String {
    let mut filters = (0..1 + random.below(2)).map(|_| predicate(random, 2)).collect::<Vec<_>>();
    let outer = filters.pop().unwrap_or_default();
    let source = match random.below(5) {
        0 => "t".to_string(),
        1 => "some".to_string(),
        2 => format!("(SELECT * FROM t WHERE {})", predicate(random, 1)),
        3 => {
            let joined = "(SELECT t.k, t.v, t.s FROM t JOIN u ON t.k = u.k) AS j";
            format!("(SELECT * FROM {joined} WHERE {})", predicate(random, 1))
        }
        _ => format!("(SELECT * FROM some WHERE {})", predicate(random, 1)),
    };
    let inner = filters.pop().map_or(source.clone(), |filter| format!("(SELECT * FROM {source} AS a WHERE {filter})"));
    format!("SELECT count(*) AS n, sum(v) AS v, min(s) AS s FROM {inner} AS b WHERE {outer}")
}

fn predicate(random: &mut Random, depth: usize) -> String {
    if depth > 0 && random.below(2) == 0 {
        let (left, right) = (predicate(random, depth - 1), predicate(random, depth - 1));
        return match random.below(4) {
            0 => format!("({left} AND {right})"),
            1 => format!("({left} OR {right})"),
            2 => format!("NOT ({left} AND {right})"),
            _ => format!("({left} AND NOT {right})"),
        };
    }
    let column = ["k", "v"][random.below(2)];
    let items = |count: usize, item: &str| vec![item; count].join(", ");
    let count = 1 + random.below(6);
    match random.below(9) {
        0 | 1 => format!("{column} IN ({})", items(count, "#")),
        2 => format!("{column} NOT IN ({})", items(count, "#")),
        3 => format!("s IN ({})", items(count, "@")),
        4 => format!("{column} {} #", ["<", "<=", "=", "<>", ">", ">="][random.below(6)]),
        5 => format!("{column} BETWEEN # AND #"),
        6 => format!("({column} = # OR {column} = # OR {column} = #)"),
        7 => format!("k IN (SELECT k FROM u WHERE w IN ({}))", items(count, "#")),
        _ => format!("s {} @", ["=", "<>", "<"][random.below(3)]),
    }
}

fn filled(shape: &str, random: &mut Random) -> String {
    let mut text = String::with_capacity(shape.len() + 32);
    for character in shape.chars() {
        match character {
            '#' => text.push_str(&random.below(10).to_string()),
            '@' => text.push_str(&format!("'{}'", random.below(6))),
            other => text.push(other),
        }
    }
    text
}

async fn anew(session: &Connection, sql: &str) -> Vec<Vec<String>> {
    let frame = session.context().sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    crate::format::rows(&frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")))
}

/// Runs so many statements in a session and compares them with plans made anew on the CPU; what is known of each.
async fn run_all(session: &Connection, statements: usize, seed: u64) -> Vec<Summary> {
    let judge = cpu();
    for table in TABLES {
        session.collect(table).await.unwrap();
        judge.collect(table).await.unwrap();
    }
    let (mut random, mut summaries) = (Random::new(seed), Vec::new());
    for _ in 0..statements.div_ceil(SETS) {
        let shape = shape(&mut random);
        for _ in 0..SETS {
            let sql = filled(&shape, &mut random);
            let execution = session.execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            let report = execution.report.clone();
            let found = execution.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(crate::format::rows(&found), anew(&judge, &sql).await, "{sql}");
            summaries.push(report.summary());
        }
    }
    summaries
}

fn wanted() -> Option<usize> {
    std::env::var("WARPCUBE_TEMPLATE_STATEMENTS").ok().and_then(|count| count.parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_give_the_rows_of_planning_anew() {
    let summaries = run_all(&cpu(), wanted().unwrap_or(STATEMENTS), 19).await;
    let by_template = summaries.iter().filter(|summary| !summary.planned).count();
    // All but the first of each shape, save shapes whose literals are folded away.
    assert!(by_template * 2 > summaries.len(), "{by_template} of {} by a template", summaries.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_bound_for_other_literals_gives_the_rows_of_planning_anew() {
    let summaries = run_all(&lenient(), wanted().unwrap_or(STATEMENTS_ON_DEVICE), 23).await;
    let on_device = |summary: &&Summary| summary.fragments.iter().any(|fragment| fragment.place == Place::Gpu);
    let placed = summaries.iter().filter(on_device).count();
    let taken = summaries.iter().filter(on_device).filter(|summary| summary.bound == 0).count();
    assert!(placed * 2 > summaries.len(), "{placed} of {} on the device", summaries.len());
    assert!(taken * 8 > placed, "{taken} of {placed} by what was bound before");
}
