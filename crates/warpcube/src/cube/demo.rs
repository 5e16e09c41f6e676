//! The planning demo: its tables, its definition and its cube in a folder.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use arrow::array::RecordBatchReader;
use arrow::csv::WriterBuilder;
use parquet::arrow::ArrowWriter;
use warpcube_cube::{demo, store};
use warpcube_sql::{Connection, CubeDefinition, CubeLoad, Progress, SqlError};

use super::{done, fill, follow, told};
use crate::error::{CliError, Result};
use crate::host::Host;

/// Name of the definition file.
const DEFINITION_FILE: &str = "plan.yaml";
/// Name of the cube's folder.
const CUBE_FOLDER: &str = "plan.cube";
/// Queries to begin with.
const EXAMPLES: [&str; 3] = [
    "rows Europe, children(Europe) cols Version where Margin, FY26",
    "rows Revenue, Cost, Margin cols children(FY26) where Europe, Budget",
    "facts at France, Cost, Actual, 2026-03",
];

/// Makes the demo.
pub(super) fn run(folder: &Path, connection: &Connection, host: &Host) -> Result<()> {
    connection.check_write(folder, "the demo of cubes")?;
    let started = Instant::now();
    let cube = folder.join(CUBE_FOLDER);
    store::check_outside(folder).map_err(|error| SqlError::CubeFolder(error.to_string()))?;
    if cube.exists() {
        let reason = format!("{} is there already: name another folder, or remove it", cube.display());
        return Err(CliError::Usage(reason));
    }
    let target = folder.to_path_buf();
    follow(host, "making tables", Progress::default, async move {
        let done = tokio::task::spawn_blocking(move || write_tables(&target)).await;
        done.map_err(|error| SqlError::Internal(error.to_string()))?
    })?;
    let definition = CubeDefinition::read(&folder.join(DEFINITION_FILE))?;
    let report = fill(Some(definition), &cube, CubeLoad::Create, connection, host)?;
    told(&report, &cube, started)?;
    let examples = EXAMPLES.map(|query| format!("warpcube cube query {} '{query}'", cube.display()));
    done("Try:", &examples)
}

fn write_tables(folder: &Path) -> Result<()> {
    let failed = |path: &Path, reason: String| CliError::Output { target: path.display().to_string(), reason };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error.to_string()))?;
    let create = |name: &str| {
        let path = folder.join(name);
        let file = File::create(&path).map_err(|error| failed(&path, error.to_string()))?;
        Ok::<_, CliError>((path, file))
    };
    for (name, table) in [(demo::REGIONS_FILE, demo::regions()), (demo::PRODUCTS_FILE, demo::products())] {
        let (path, file) = create(name)?;
        let mut writer = WriterBuilder::new().with_header(true).build(file);
        writer.write(&table).map_err(|error| failed(&path, error.to_string()))?;
    }
    let (path, file) = create(demo::FACTS_FILE)?;
    let facts = demo::facts();
    let wrong = |error: parquet::errors::ParquetError| failed(&path, error.to_string());
    let mut writer = ArrowWriter::try_new(file, facts.schema(), None).map_err(wrong)?;
    for batch in facts {
        let batch = batch.map_err(|error| failed(&path, error.to_string()))?;
        writer.write(&batch).map_err(wrong)?;
    }
    writer.close().map_err(wrong)?;
    let path = folder.join(DEFINITION_FILE);
    std::fs::write(&path, demo::DEFINITION).map_err(|error| failed(&path, error.to_string()))
}
