//! The Star Schema Benchmark at a small scale: all 13 queries on the emulated device, as on the CPU, and with other
//! literals.

use warpcube_datagen::{NoProgress, SSB_QUERIES, WriteOptions, ssb_variations, write_ssb_parquet};
use warpcube_sql::Connection;

use crate::support::{cpu, emulated, rehearse, same_on_device};

async fn register(session: &Connection, folder: &std::path::Path) {
    for table in ["lineorder", "customer", "supplier", "part", "date"] {
        let path = folder.join(format!("{table}.parquet"));
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display());
        session.collect(&sql).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_thirteen_queries() {
    let folder = tempfile::tempdir().unwrap();
    write_ssb_parquet(folder.path(), 0.01, &WriteOptions::default(), &NoProgress).unwrap();
    let (device, cpu) = (emulated(), cpu());
    register(&device, folder.path()).await;
    register(&cpu, folder.path()).await;
    rehearse(&device, SSB_QUERIES.iter().map(|(_, sql)| sql.to_string())).await;
    for (name, sql) in SSB_QUERIES {
        eprintln!("{name}");
        same_on_device(&device, &cpu, sql).await;
        // As many as `warpcube bench` asks: the kernels are there.
        let variations = ssb_variations(name, 7);
        assert_eq!(variations.len(), 7, "{name}");
        for sql in variations {
            same_on_device(&device, &cpu, &sql).await;
        }
    }
}
