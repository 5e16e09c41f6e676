//! TPC-H at a small scale: all 22 queries as on the CPU, all of their fragments on the device, and with other
//! substitution parameters.

use warpcube_datagen::{NoProgress, WriteOptions, tpch_query, tpch_variations, write_tpch_parquet};
use warpcube_sql::{Place, Session, SessionOptions, Summary};

use crate::support::{cpu, rehearse, rows, run};

/// The scale factor. At smaller ones a part has one supplier twice.
const SF: f64 = 0.01;

async fn register(session: &Session, folder: &std::path::Path) {
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
    let device = Session::new(SessionOptions::new().with("warpcube.device", "emulated")).unwrap();
    let cpu = cpu();
    register(&device, folder.path()).await;
    register(&cpu, folder.path()).await;
    // Under this placement what fails is not computed on the CPU.
    device.set("warpcube.placement", "cuda").unwrap();
    rehearse(&device, (1..=22).flat_map(texts)).await;
    device.set("warpcube.placement", "auto").unwrap();
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

/// The queries that compare strings of more than a few distinct values with constants, and ask nothing else of them.
const OVER_BYTES: [usize; 4] = [9, 13, 14, 16];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strings_past_the_dictionary_limit_are_compared_on_the_device() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch_parquet(folder.path(), SF, &WriteOptions::default(), &NoProgress).unwrap();
    let options = SessionOptions::new().with("warpcube.device", "emulated").with("warpcube.dictionary_limit", "160");
    let device = Session::new(options).unwrap();
    let cpu = cpu();
    register(&device, folder.path()).await;
    register(&cpu, folder.path()).await;
    rehearse(&device, OVER_BYTES.map(|number| tpch_query(number, SF).unwrap())).await;
    for number in 1..=22 {
        let sql = &tpch_query(number, SF).unwrap();
        let (expected, _) = run(&cpu, sql).await.unwrap_or_else(|error| panic!("q{number} on the CPU: {error}"));
        let (found, summary) = run(&device, sql).await.unwrap_or_else(|error| panic!("q{number}: {error}"));
        assert_eq!(rows(&found), rows(&expected), "q{number}");
        if OVER_BYTES.contains(&number) {
            assert!(on_cpu(&summary).is_empty() && !summary.fragments.is_empty(), "q{number}: {:#?}", on_cpu(&summary));
        }
    }
    let (shown, _) = run(&device, "SHOW DEVICE TABLES").await.unwrap();
    let shown = rows(&shown).join("\n");
    assert!(shown.contains("bytes"), "{shown}");
}
