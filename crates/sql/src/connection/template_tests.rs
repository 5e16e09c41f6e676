//! Plans by templates beside plans made anew.

use warpcube_datagen::{NoProgress, SSB_QUERIES, WriteOptions, write_ssb_parquet};

use crate::database::{Database, DatabaseOptions};
use crate::plans::{Epoch, Templates, lift};

/// What EXPLAIN shows, planned anew, is what runs.
#[tokio::test]
async fn a_template_gives_the_plan_that_planning_anew_gives() {
    let folder = tempfile::tempdir().unwrap();
    write_ssb_parquet(folder.path(), 0.01, &WriteOptions::default(), &NoProgress).unwrap();
    let session = Database::open(DatabaseOptions::new().with("warpcube.device", "cpu")).unwrap().connect();
    for table in ["lineorder", "customer", "supplier", "part", "date"] {
        let path = folder.path().join(format!("{table}.parquet"));
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{}'", path.display());
        session.collect(&sql).await.unwrap();
    }
    let state = session.context().state();
    let epoch = Epoch { catalog: 0, settings: 0, refusals: 0, prepared: None };
    let templates = Templates::default();
    for (name, sql) in SSB_QUERIES {
        let plan = state.create_logical_plan(sql).await.unwrap();
        let (shape, values) = lift(&plan, &state).unwrap().expect("literals");
        for is_new in [true, false] {
            let (by_template, made) = templates.plan(&shape, &values, epoch, &state).expect("a template");
            assert_eq!(made, is_new, "{name}");
            let anew = state.optimize(&plan).unwrap();
            assert_eq!(
                by_template.display_indent_schema().to_string(),
                anew.display_indent_schema().to_string(),
                "{name}"
            );
        }
    }
}
