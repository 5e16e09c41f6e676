//! Cubes in a session: opened as they are in their folder now.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use warpcube_cube::aggregate::Progress;
use warpcube_sql::{CubeAnswer, CubeDefinition, CubeLoad, CubeQueryOptions, Session};

use crate::support::{cpu, emulated};

/// Makes the cube of a definition in a folder.
async fn define(session: &Session, text: &str, folder: &Path) {
    let definition = CubeDefinition { text: text.to_string(), file: None, folder: None };
    session.load_cube(definition, folder, CubeLoad::Create, Arc::new(Progress::new())).await.unwrap();
}

/// The values of a query's cells by the names in their long form, and whether a device aggregated them.
async fn ask(session: &Session, folder: &Path, query: &str) -> (BTreeMap<String, f64>, bool) {
    let cube = session.cube(&folder.display().to_string()).await.unwrap();
    let (options, progress) = (CubeQueryOptions::default(), Arc::new(Progress::new()));
    let answer = session.ask_cube(cube.clone(), query, options, progress).await.unwrap();
    let CubeAnswer::Table(table) = answer else { panic!("{query}: {answer:?}") };
    let rows = crate::format::rows(&[table.long_form(cube.cube()).unwrap()]);
    (rows.into_iter().map(named_value).collect(), table.report().device.is_some())
}

/// A row of names and a value, and of a text that is left out.
fn named_value(mut row: Vec<String>) -> (String, f64) {
    row.pop();
    let value = row.pop().unwrap();
    (row.join(" "), value.parse().unwrap_or_else(|_| panic!("{row:?}: {value}")))
}

/// A cube of two regions whose first one has a value.
fn plan(value: i32) -> String {
    format!(
        "cube: plan
facts: {{sql: \"VALUES ('FR', {value}), ('ES', 5)\", value: column2}}
dimensions:
  Region: {{levels: [column1], all: World}}
"
    )
}

#[tokio::test]
async fn a_cube_that_was_created_again_is_read_again() {
    for (session, is_device) in [(cpu(), false), (emulated(), true)] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("plan.cube");
        for value in [100.0, 700.0] {
            define(&session, &plan(value as i32), &folder).await;
            let (cells, on_device) = ask(&session, &folder, "rows World, FR").await;
            let expected = [("World column2", value + 5.0), ("FR column2", value)];
            assert_eq!(cells, expected.map(|(name, value)| (name.to_string(), value)).into());
            assert_eq!(on_device, is_device);
            let sum = format!("SELECT CAST(sum(column2) AS INT) FROM '{}'", folder.display());
            let sums = crate::format::rows(&session.collect(&sum).await.unwrap());
            assert_eq!(sums, [[(value + 5.0).to_string()]]);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
