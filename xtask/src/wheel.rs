//! `cargo xtask wheel`: the wheel of the Python module, built by maturin into `target/wheels`, looked through and tried
//! in an environment of its own.
//!
//! The build is the one of README's first command: program and module share one set of features (tidy compares them),
//! so that after it only the module itself is compiled. The wheel has the licences of all that is linked into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::Value;

use crate::process::{Result, cargo, output, program, root, run as run_command};
use crate::setup;

/// The package whose module the wheel holds.
const PACKAGE: &str = "warpcube-python";
/// What builds wheels, as pip takes it.
const MATURIN: &str = "maturin>=1.9,<2";
/// Texts of licences that are put into the wheel, beside `pyproject.toml`.
const LICENCES: &str = "crates/python/licences";
/// Most bytes of a wheel.
const WHEEL_BYTES_MAX: u64 = 60 << 20;
/// Beginnings of names of files with licences and notices.
const NOTICES: [&str; 6] = ["licen", "copying", "copyright", "notice", "unlicense", "authors"];

/// What to build and try.
#[derive(Debug, Args)]
pub(crate) struct WheelArgs {
    /// Build the module without optimisation, out of the debug build that tests share; such a wheel is large
    #[arg(long)]
    debug: bool,
    /// Only build: do not install the wheel and ask it a question
    #[arg(long)]
    no_try: bool,
}

/// Builds the wheel and tries it.
pub(crate) fn run(arguments: &WheelArgs) -> Result<()> {
    let python = setup::python()?;
    setup::pip(&[MATURIN])?;
    write_licences()?;
    let folder = target().join("wheels");
    let profile = if arguments.debug { "dev" } else { "release" };
    run_command(
        program(&python)
            .args(["-m", "maturin", "build", "--locked", "--manifest-path", "crates/python/Cargo.toml"])
            .args(["--profile", profile, "--out"])
            .arg(&folder),
    )?;
    let wheel = newest(&folder)?;
    look_through(&python, &wheel, !arguments.debug)?;
    match arguments.no_try {
        true => Ok(()),
        false => try_it(&folder, &wheel),
    }
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

fn newest(folder: &Path) -> Result<PathBuf> {
    let files = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?.flatten();
    let wheels = files.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "whl"));
    let written = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    wheels.max_by_key(written).ok_or_else(|| format!("maturin left no wheel in {}", folder.display()))
}

/// Writes the licence of the project, and those of the crates of the module in one file.
fn write_licences() -> Result<()> {
    let folder = root().join(LICENCES);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    fs::copy(root().join("LICENSE"), folder.join("LICENSE")).map_err(failed)?;
    fs::write(folder.join("THIRD-PARTY.txt"), third_party()?).map_err(failed)
}

/// The licences of all crates that are linked into the module; equal texts stand once.
fn third_party() -> Result<String> {
    let metadata: Value =
        serde_json::from_str(&output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?)
            .map_err(|error| format!("cargo metadata: {error}"))?;
    let folders: BTreeMap<String, PathBuf> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|package| {
            let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
            Some((format!("{name} v{version}"), Path::new(package["manifest_path"].as_str()?).parent()?.to_path_buf()))
        })
        .collect();
    let tree = ["tree", "--locked", "-p", PACKAGE, "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}"];
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut crates = BTreeSet::new();
    for line in output(cargo().args(tree))?.lines() {
        let Some((name, licence)) = line.trim_end_matches(" (*)").split_once('|') else { continue };
        // Those of the workspace have their folder behind them.
        let name = name.trim_end_matches(" (proc-macro)");
        let Some(folder) = folders.get(name) else { continue };
        if crates.insert(format!("{name}: {licence}")) {
            for text in notices(folder)? {
                texts.entry(text).or_default().insert(name.into());
            }
        }
    }
    if crates.len() < 50 {
        return Err(format!("cargo tree names {} crates of {PACKAGE}, fewer than it has", crates.len()));
    }
    let list: Vec<&str> = crates.iter().map(String::as_str).collect();
    let mut text = format!("The module is linked with these crates.\n\n{}\n", list.join("\n"));
    for (licence, of) in texts {
        let of: Vec<&str> = of.iter().map(String::as_str).collect();
        text += &format!("\n{}\n{}\n\n{}\n", "=".repeat(80), of.join(", "), licence.trim());
    }
    Ok(text)
}

/// The texts of licences and notices in the folder of a crate.
fn notices(folder: &Path) -> Result<Vec<String>> {
    let entries = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?.flatten();
    let is_notice = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        path.is_file() && NOTICES.iter().any(|beginning| name.starts_with(beginning))
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_notice).collect();
    paths.sort();
    Ok(paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect())
}

/// Fails where the wheel is larger than it may be, has another shared object or lacks the notices.
fn look_through(python: &str, wheel: &Path, is_small: bool) -> Result<()> {
    let bytes = wheel.metadata().map_err(|error| format!("{}: {error}", wheel.display()))?.len();
    println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    let names = output(program(python).args(["-m", "zipfile", "-l"]).arg(wheel))?;
    let count =
        |end: &str| names.lines().filter(|line| line.split_whitespace().next().unwrap_or("").ends_with(end)).count();
    if count(".so") != 1 {
        return Err(format!("the wheel has {} shared objects, not one:\n{names}", count(".so")));
    }
    if count("THIRD-PARTY.txt") != 1 {
        return Err(format!("the wheel lacks the notices:\n{names}"));
    }
    match is_small && bytes > WHEEL_BYTES_MAX {
        true => Err(format!("the wheel has {bytes} bytes, more than {WHEEL_BYTES_MAX}")),
        false => Ok(()),
    }
}

/// Installs the wheel into a new environment, as a user would, and asks it a question from Python and one from the
/// shell.
fn try_it(folder: &Path, wheel: &Path) -> Result<()> {
    let environment = folder.join("tried");
    if environment.exists() {
        fs::remove_dir_all(&environment).map_err(|error| format!("{}: {error}", environment.display()))?;
    }
    run_command(program("python3").args(["-m", "venv"]).arg(&environment))?;
    let (file, python) = (environment.join("tried.parquet"), environment.join("bin/python"));
    let (file, python) = (file.to_string_lossy(), python.to_string_lossy());
    let begin = Instant::now();
    run_command(
        program(&python)
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-index"])
            .arg(wheel),
    )?;
    let installed = begin.elapsed();
    let ask = format!(
        "import time; begin = time.perf_counter()
import warpcube; imported = time.perf_counter()
warpcube.sql(\"COPY (SELECT x % 7 AS k, x AS v FROM range(1000000) AS r(x)) TO '{file}'\")
print(warpcube.sql(\"SELECT k, sum(v) FROM '{file}' GROUP BY k ORDER BY k LIMIT 1\").fetchall())
print(f'import: {{1000 * (imported - begin):.0f}} ms; written and read: {{time.perf_counter() - imported:.2f}} s')"
    );
    let answer = output(program(&python).args(["-c", &ask]))?;
    let asked = begin.elapsed();
    print!("{answer}");
    if !answer.starts_with(&format!("[(0, {})]", (0..1_000_000u64).step_by(7).sum::<u64>())) {
        return Err("the wheel's answer is wrong".into());
    }
    run_command(
        program(&environment.join("bin/warpcube").to_string_lossy()).args(["-c", "SELECT 'from the wheel' AS row"]),
    )?;
    println!("installed in {:.1} s, answered after {:.1} s", installed.as_secs_f64(), asked.as_secs_f64());
    Ok(())
}
