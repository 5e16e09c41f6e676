//! TPC-H at a small scale: all 22 queries as on the CPU, all of their fragments on the device, and with other
//! substitution parameters.

use warpcube_datagen::{NoProgress, WriteOptions, tpch_query, tpch_variations, write_tpch_parquet};
use warpcube_sql::{Connection, Database, DatabaseOptions, Place, Summary};

use crate::reducers::{operators, reducers};
use crate::support::{cpu, rehearse, rows, run};

/// The scale factor. At smaller ones a part has one supplier twice.
const SF: f64 = 0.01;

/// Queries whose aggregations are filtered by what they are joined with, with the semi-joins below them.
const REDUCED: [(usize, &[&str]); 4] = [
    (2, &["ps_partkey = p_partkey"]),
    (15, &[]),
    (17, &["l_partkey = p_partkey"]),
    (20, &["l_partkey = p_partkey", "l_suppkey = s_suppkey", "s_nationkey = n_nationkey"]),
];

async fn register(session: &Connection, folder: &std::path::Path) {
    for table in ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"] {
        let path = folder.join(format!("{table}.parquet"));
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display());
        session.collect(&sql).await.unwrap();
    }
}

/// What stayed on the CPU, with the reasons.
fn on_cpu(summary: &Summary) -> Vec<String> {
    let fragments = summary.fragments.iter().filter(|fragment| fragment.place == Place::Cpu);
    fragments.map(|fragment| format!("{}: {}", fragment.what, fragment.reason.clone().unwrap_or_default())).collect()
}

/// A query with the parameters of its validation run, and with others.
fn texts(number: usize) -> Vec<String> {
    let mut texts = tpch_variations(number, SF, 2);
    texts.insert(0, tpch_query(number, SF).unwrap());
    texts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_twenty_two_queries() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch_parquet(folder.path(), SF, &WriteOptions::default(), &NoProgress).unwrap();
    let device = Database::open(DatabaseOptions::new().with("warpcube.device", "emulated")).unwrap().connect();
    let cpu = cpu();
    register(&device, folder.path()).await;
    register(&cpu, folder.path()).await;
    // Under this placement what fails is not computed on the CPU.
    device.set("warpcube.placement", "cuda").unwrap();
    rehearse(&device, (1..=22).flat_map(texts)).await;
    device.set("warpcube.placement", "auto").unwrap();
    for (number, expected) in REDUCED {
        let operators = operators(&device, &tpch_query(number, SF).unwrap()).await;
        assert_eq!(reducers(&operators), expected, "q{number}: {operators}");
    }
    let of_9 = operators(&device, &tpch_query(9, SF).unwrap()).await;
    assert!(of_9.contains("semi join on ps_partkey = p_partkey"), "{of_9}");
    let mut wrong = Vec::new();
    for (number, sql) in (1..=22).flat_map(|number| texts(number).into_iter().map(move |sql| (number, sql))) {
        let (expected, _) = run(&cpu, &sql).await.unwrap_or_else(|error| panic!("q{number} on the CPU: {error}"));
        let (found, summary) = run(&device, &sql).await.unwrap_or_else(|error| panic!("q{number}: {error}"));
        assert_eq!(rows(&found), rows(&expected), "q{number}: {sql}");
        let refused = on_cpu(&summary);
        if !refused.is_empty() || summary.fragments.is_empty() {
            wrong.push(format!("q{number}: {refused:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Variations of each query beside its text.
const VARIATIONS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_literals_need_no_compiler() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch_parquet(folder.path(), SF, &WriteOptions::default(), &NoProgress).unwrap();
    let options = DatabaseOptions::new().with("warpcube.device", "emulated").with("warpcube.placement", "cuda");
    let session = Database::open(options).unwrap().connect();
    register(&session, folder.path()).await;
    rehearse(&session, (1..=22).map(|number| tpch_query(number, SF).unwrap())).await;
    // Programs by number: a file each, whether it was compiled or found in a cache.
    let sources = tempfile::tempdir().unwrap();
    session.set("warpcube.dump_source", &sources.path().display().to_string()).unwrap();
    let programs = || std::fs::read_dir(sources.path()).unwrap().count();
    let mut again = Vec::new();
    for number in 1..=22 {
        // Another text, which is bound again.
        run(&session, &format!("{}\n", tpch_query(number, SF).unwrap())).await.unwrap();
        let known = programs();
        assert!(known > 0);
        for sql in tpch_variations(number, SF, VARIATIONS) {
            run(&session, &sql).await.unwrap_or_else(|error| panic!("q{number}: {error}"));
        }
        if programs() > known {
            again.push(format!("q{number}: {} more", programs() - known));
        }
    }
    assert!(again.is_empty(), "{}", again.join(", "));
}

/// A dictionary limit below the number of suppliers, of types of parts and of everything longer.
const LIMIT: &str = "99";
/// Queries that compare strings past the limit with constants or give them back, and ask nothing else of them but a
/// part that has few values.
const OVER_BYTES: [usize; 6] = [8, 9, 10, 13, 15, 22];
/// Queries that order or group by such strings, or compare them behind a join.
const OVER_CODES: [usize; 4] = [2, 14, 16, 20];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strings_past_the_dictionary_limit() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch_parquet(folder.path(), SF, &WriteOptions::default(), &NoProgress).unwrap();
    let options = DatabaseOptions::new().with("warpcube.device", "emulated").with("warpcube.dictionary_limit", LIMIT);
    let device = Database::open(options).unwrap().connect();
    let cpu = cpu();
    register(&device, folder.path()).await;
    register(&cpu, folder.path()).await;
    let queries = || OVER_BYTES.into_iter().chain(OVER_CODES);
    device.set("warpcube.placement", "cuda").unwrap();
    rehearse(&device, queries().map(|number| tpch_query(number, SF).unwrap())).await;
    device.set("warpcube.placement", "auto").unwrap();
    for number in queries() {
        let sql = &tpch_query(number, SF).unwrap();
        let (expected, _) = run(&cpu, sql).await.unwrap_or_else(|error| panic!("q{number} on the CPU: {error}"));
        let (found, summary) = run(&device, sql).await.unwrap_or_else(|error| panic!("q{number}: {error}"));
        assert_eq!(rows(&found), rows(&expected), "q{number}");
        let refused = on_cpu(&summary);
        match OVER_BYTES.contains(&number) {
            true => assert!(refused.is_empty() && !summary.fragments.is_empty(), "q{number}: {refused:#?}"),
            false => {
                assert!(refused.iter().any(|reason| reason.contains("distinct strings")), "q{number}: {refused:#?}")
            }
        }
    }
    let (shown, _) = run(&device, "SHOW DEVICE TABLES").await.unwrap();
    let shown = rows(&shown).join("\n");
    assert!(shown.contains("bytes"), "{shown}");
}
