//! Two sessions over the same tables: one on a device, one on the CPU; a query runs on both.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use warpcube_gpu::Device;
use warpcube_sql::{Connection, Database, DatabaseOptions};

use super::compare::difference;
use super::data::{Storage, Table, Tables};
use crate::format;
use crate::records::{Ran, is_refusal};
use crate::support::{Encodings, rehearse, run, set_encoding};

/// What came of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The same rows, from the device or with its part in them.
    Same,
    /// The CPU answered, for a reason.
    Refused(String),
    /// Both raised an error.
    Raised,
    /// The CPU raised an error and the device answered: it computes what it needs, the CPU whole batches.
    Answered,
    /// Something else than the CPU's answer.
    Differs(String),
}

/// The sessions.
pub struct Bench {
    device: Connection,
    cpu: Connection,
    folder: tempfile::TempDir,
    loads: usize,
    /// A difference that is not there: of queries with this text while this query gives true.
    pub planted: Option<(&'static str, &'static str)>,
}

impl Bench {
    /// Sessions with the device `name`; `columns` is the CPU over columns in host memory.
    pub fn new(name: &str) -> Bench {
        let placed = |device: &str, placement: &str| {
            let options =
                DatabaseOptions::new().with("warpcube.target_partitions", "3").with("warpcube.device", device);
            Database::open(options.with("warpcube.placement", placement)).unwrap().connect()
        };
        Bench {
            device: if name == "columns" { placed("cpu", "columns") } else { placed(name, "cuda") },
            cpu: placed("cpu", "files"),
            folder: tempfile::tempdir().unwrap(),
            loads: 0,
            planted: None,
        }
    }

    /// Changes a setting of the session with a device.
    pub fn set(&self, setting: &str, value: &str) {
        self.device.set(setting, value).unwrap();
    }

    /// The device of the first session.
    pub fn device(&self) -> Device {
        self.device.database().device().get().expect("the session has a device")
    }

    /// Replaces all tables.
    pub async fn load(&mut self, tables: &Tables) {
        self.loads += 1;
        let folder = self.folder.path().join(self.loads.to_string());
        for session in [&self.device, &self.cpu] {
            for (name, _) in session.database().tables() {
                session.collect(&format!("DROP TABLE {name}")).await.unwrap();
            }
        }
        let _ = std::fs::remove_dir_all(self.folder.path().join((self.loads - 1).to_string()));
        for table in &tables.tables {
            let own = folder.join(&table.name);
            match table.storage {
                Storage::Memory(_) => {}
                Storage::Parquet(files, group_rows) => write(table, &own, files, group_rows),
            }
            for session in [&self.device, &self.cpu] {
                match table.storage {
                    Storage::Memory(parts) => {
                        let memory = MemTable::try_new(table.rows.schema(), table.partitions(parts)).unwrap();
                        session.context().register_table(table.name.as_str(), Arc::new(memory)).unwrap();
                    }
                    Storage::Parquet(..) => {
                        let place = format!("STORED AS PARQUET LOCATION '{}/'", own.display());
                        let create = format!("CREATE EXTERNAL TABLE {} {place}", table.name);
                        session.collect(&create).await.unwrap();
                    }
                }
            }
        }
        self.encode(tables).await;
    }

    /// Chooses how columns lie on the device by the tables' rows, so that a case is the same whenever it is run: one
    /// case in four has the default, one another encoding wherever columns can have it, two a way for each column.
    async fn encode(&self, tables: &Tables) {
        let set = |encoding: &str| self.device.set("warpcube.encoding", encoding).unwrap();
        let rows: usize = tables.tables.iter().map(|table| table.rows.num_rows()).sum();
        match (Encodings::wanted(), rows % 4) {
            (Encodings::One(encoding), _) => set(&encoding),
            (Encodings::Default, 0) => set("auto"),
            (Encodings::Default, 1) => set_encoding(&self.device, rows as u64),
            _ => {
                let columns = tables.tables.iter().flat_map(|table| {
                    let schema = table.rows.schema();
                    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
                    names.into_iter().map(|column| (&table.name, column))
                });
                for (number, (table, column)) in columns.enumerate() {
                    set_encoding(&self.device, (rows + number) as u64);
                    // Columns that stay on the CPU are left out.
                    let _ = self.device.collect(&format!("LOAD TABLE {table} ({column})")).await;
                }
            }
        }
    }

    /// Has the programs of queries compiled together, before they run one after the other.
    pub async fn rehearse(&self, queries: impl IntoIterator<Item = String>) {
        rehearse(&self.device, queries).await;
    }

    /// Runs a query on both.
    pub async fn check(&self, sql: &str) -> Verdict {
        if let Some((text, condition)) = self.planted {
            let holds = format::rows(&self.expected(condition).await.unwrap())[0][0] == "true";
            return if holds && sql.contains(text) { Verdict::Differs("planted".into()) } else { Verdict::Same };
        }
        let expected = run(&self.cpu, sql).await;
        let found = run(&self.device, sql).await;
        match (expected, found) {
            (Err(error), found) => {
                // A query that cannot even be planned tests nothing: the generator has to be mended.
                let unplanned = ["SQL-001", "SQL-002", "SQL-003", "SQL-004", "SQL-005"];
                let is_unplanned = unplanned.iter().any(|code| error.starts_with(code));
                // Two aggregates that differ in a cast alone have one name in DataFusion, which then refuses them.
                assert!(!is_unplanned || error.contains("duplicate") || error.contains("same name"), "{sql}\n{error}");
                if found.is_ok() { Verdict::Answered } else { Verdict::Raised }
            }
            (Ok(_), Err(error)) if is_refusal(&error) => Verdict::Refused(error),
            (Ok(_), Err(error)) => Verdict::Differs(error),
            (Ok((expected, _)), Ok((found, summary))) => {
                // Every order of a query is one of all that it selects, or the rows are determined by it.
                if let Some(difference) = difference(&expected, &found, is_ordered(sql)) {
                    return Verdict::Differs(difference);
                }
                match Ran::of(&summary) {
                    Ran { on_device: true, .. } => Verdict::Same,
                    Ran { refusal, .. } => Verdict::Refused(refusal.unwrap_or_else(|| "no fragment".into())),
                }
            }
        }
    }

    /// The rows that the CPU gives.
    pub async fn expected(&self, sql: &str) -> Result<Vec<RecordBatch>, String> {
        Ok(run(&self.cpu, sql).await?.0)
    }
}

fn write(table: &Table, folder: &Path, files: usize, group_rows: usize) {
    std::fs::create_dir_all(folder).unwrap();
    for (index, batches) in table.partitions(files).iter().enumerate() {
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let file = std::fs::File::create(folder.join(format!("part-{index}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, table.rows.schema(), Some(properties)).unwrap();
        // The writer calls itself for each row group of a batch.
        let rows = |batch: &RecordBatch| (0..batch.num_rows()).step_by(group_rows);
        for batch in batches {
            rows(batch).for_each(|row| {
                writer.write(&batch.slice(row, group_rows.min(batch.num_rows() - row))).unwrap();
            });
        }
        writer.close().unwrap();
    }
}

/// Whether a query has an order of its own: one outside of all parentheses, as those of windows and subqueries are not.
fn is_ordered(sql: &str) -> bool {
    let (mut depth, mut is_quoted) = (0, false);
    sql.char_indices().any(|(at, character)| {
        match character {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        depth == 0 && !is_quoted && sql[at..].starts_with(" ORDER BY ")
    })
}
