//! Plans by the shape of a text beside plans made anew.

use warpcube_datagen::{NoProgress, SSB_QUERIES, WriteOptions, write_ssb_parquet};

use crate::database::{Database, DatabaseOptions};
use crate::plans::{PlannedShape, Template, holed, parameters};

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
    let (state, catalogs) = (session.context().state(), &session.inner.database.shared.catalogs);
    for (name, sql) in SSB_QUERIES {
        let holed = holed(sql).expect("constants");
        let plan = state.create_logical_plan(&holed.text).await.unwrap();
        let types = parameters(&plan, holed.constants.len()).unwrap();
        let types = types.into_iter().map(|data_type| data_type.expect("a comparison with a column")).collect();
        let template = Template::new(state.optimize(&plan).unwrap(), true, catalogs).unwrap();
        let shape = PlannedShape { template, types, tables: [].into(), has_decimals: true };
        let values = shape.values(&holed.constants).expect("values of the columns' types");
        let by_template = shape.template.with_values(values, &state).unwrap();
        let anew = state.optimize(&state.create_logical_plan(sql).await.unwrap()).unwrap();
        assert_eq!(by_template.display_indent_schema().to_string(), anew.display_indent_schema().to_string(), "{name}");
    }
}
