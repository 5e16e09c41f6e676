//! The SQL files of `slt/`, on the CPU over files and over columns, and on the emulated device, with where their
//! queries run.
//!
//! A comment `# placement: device`, `# placement: cpu <part of the reason>`, `# placement: partly <part of the reason>`
//! (some fragments on the device, another not) or `# placement: any` holds for all queries up to the next one;
//! `$folder` in a statement is a folder of the file's own, empty at first. With
//! `WARPCUBE_SLT_UPDATE=1` what files expect of queries is replaced by the CPU's answers; with
//! `WARPCUBE_TEST_ENCODING=NAME` columns are loaded in that encoding, with `WARPCUBE_SLT_FILE=NAME` only files with
//! that in their paths are run.

use std::path::{Path, PathBuf};

use sqllogictest::{QueryExpect, Record, SortMode};
use warpcube_sql::Connection;

use crate::records::{Answer, Letter, Ran, answer, answer_on_device, check, lines, sql_of};
use crate::support::{columns, compile_deferred, cpu, defer_programs, emulated, set_encoding, slt_folder};

/// Where the queries of a file have to run.
#[derive(Debug, Clone, PartialEq)]
enum Placement {
    Any,
    Device,
    Cpu(String),
    Partly(String),
}

impl Placement {
    fn parse(comment: &str) -> Option<Placement> {
        let wanted = comment.trim().strip_prefix("placement:")?.trim();
        Some(match wanted.split_once(' ') {
            Some(("cpu", reason)) => Placement::Cpu(reason.trim().to_string()),
            Some(("partly", reason)) => Placement::Partly(reason.trim().to_string()),
            None if wanted == "device" => Placement::Device,
            None if wanted == "any" => Placement::Any,
            _ => panic!("'{wanted}' is no placement: device, any, or cpu or partly with a reason"),
        })
    }

    fn check(&self, ran: &Ran) -> Result<(), String> {
        let right = match (self, &ran.refusal) {
            (Placement::Any, _) => true,
            (Placement::Device, refusal) => ran.on_device && refusal.is_none(),
            (Placement::Cpu(wanted), Some(reason)) => !ran.on_device && reason.contains(wanted.as_str()),
            (Placement::Partly(wanted), Some(reason)) => ran.on_device && reason.contains(wanted.as_str()),
            (_, None) => false,
        };
        if right { Ok(()) } else { Err(format!("{self:?} was expected, and it was {ran:?}")) }
    }
}

/// Runs a file and collects what is wrong with it.
///
/// If columns are `mixed`, those that a statement loads are encoded in one way, those of the next one in another.
pub async fn run_file(path: &Path, session: &Connection, on_device: bool, mixed: bool) -> Vec<String> {
    let script = std::fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().to_string();
    let records = sqllogictest::parse_with_name::<Letter>(&script, name.as_str()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut placement = Placement::Any;
    let mut failures = Vec::new();
    for (number, record) in records.iter().enumerate() {
        if let Record::Comment(texts) = record {
            placement = texts.iter().filter_map(|text| Placement::parse(text)).next_back().unwrap_or(placement);
        }
        if on_device && mixed {
            set_encoding(session, number as u64);
        }
        let Some(sql) = sql_of(record) else { continue };
        let sql = sql.replace("$folder", &folder.path().display().to_string());
        let (found, ran) = match on_device {
            true => answer_on_device(session, &sql).await,
            false => (answer(session, &sql).await, Ran { on_device: false, refusal: None }),
        };
        let mut wrong = check(record, &found, true).err();
        let gives_rows = matches!(record, Record::Query { expected: QueryExpect::Results { .. }, .. });
        if on_device && wrong.is_none() && gives_rows {
            wrong = placement.check(&ran).err();
        }
        let place = if on_device { "emulated device" } else { "CPU" };
        failures.extend(wrong.map(|wrong| format!("{name} on the {place}: {sql}\n{wrong}")));
    }
    failures
}

/// Has the programs of a file compiled together, in a session of their own.
async fn rehearse_file(path: &Path, mixed: bool) {
    let session = emulated();
    if defer_programs(&session) {
        run_file(path, &session, true, mixed).await;
        compile_deferred(&session);
    }
}

/// Writes the CPU's answers into a file.
async fn update(path: &Path) {
    let session = cpu();
    let script = std::fs::read_to_string(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut records = sqllogictest::parse::<Letter>(&script).unwrap();
    for record in &mut records {
        let Some(sql) = sql_of(record) else { continue };
        let found = answer(&session, &sql.replace("$folder", &folder.path().display().to_string())).await;
        let Record::Query { expected: QueryExpect::Results { types, sort_mode, results, .. }, .. } = record else {
            continue;
        };
        let found: Answer = match found {
            Ok(found) => found,
            Err(error) => {
                eprintln!("not updated: {error}");
                continue;
            }
        };
        *results = lines(&found, *sort_mode);
        if !found.rows.is_empty() {
            *types = found.types.chars().map(Letter).collect();
        }
        assert!(found.rows.len() < 2 || *sort_mode != Some(SortMode::ValueSort), "values alone test little");
    }
    let text: Vec<String> = records.iter().map(|record| record.to_string()).collect();
    std::fs::write(path, text.join("\n").trim_end().to_string() + "\n").unwrap();
}

fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in [slt_folder(), slt_folder().join("regressions")] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "slt")));
    }
    files.sort();
    assert!(files.len() > 5, "the SQL files are not where they should be: {files:?}");
    let only = std::env::var("WARPCUBE_SLT_FILE").unwrap_or_default();
    files.retain(|path| path.to_string_lossy().contains(&only));
    assert!(!files.is_empty(), "no SQL file has '{only}' in its name");
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_files() {
    let mut failures = Vec::new();
    for path in files() {
        if std::env::var("WARPCUBE_SLT_UPDATE").is_ok() {
            update(&path).await;
        }
        failures.extend(run_file(&path, &cpu(), false, false).await);
        failures.extend(run_file(&path, &columns(), false, false).await);
        rehearse_file(&path, false).await;
        failures.extend(run_file(&path, &emulated(), true, false).await);
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_files_over_columns_of_all_encodings() {
    let mut failures = Vec::new();
    for path in files() {
        rehearse_file(&path, true).await;
        failures.extend(run_file(&path, &emulated(), true, true).await);
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn placements_are_held_against_files() {
    let on_device = |reason: Option<&str>| Ran { on_device: true, refusal: reason.map(str::to_string) };
    let on_cpu = |reason: &str| Ran { on_device: false, refusal: Some(reason.into()) };
    let device = Placement::parse(" placement: device").unwrap();
    assert!(device.check(&on_device(None)).is_ok());
    assert!(device.check(&on_device(Some("a full moon"))).is_err());
    assert!(device.check(&Ran { on_device: false, refusal: None }).is_err());
    let cpu = Placement::parse("placement: cpu full moon").unwrap();
    assert!(cpu.check(&on_cpu("a full moon")).is_ok());
    assert!(cpu.check(&on_cpu("rain")).is_err());
    assert!(cpu.check(&on_device(None)).is_err());
    let partly = Placement::parse("placement: partly moon").unwrap();
    assert!(partly.check(&on_device(Some("a full moon"))).is_ok());
    assert!(partly.check(&on_cpu("a full moon")).is_err());
    assert_eq!(Placement::parse("just a comment"), None);
}
