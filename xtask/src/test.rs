//! All checks and all tests, stage by stage, with the minutes each took.
//!
//! Clippy looks at the workspace while the tests are built: cargo takes `clippy-driver` in the compiler's place for the
//! workspace's own crates, so that the dependencies are compiled once. A separate `cargo clippy` would check them all a
//! second time. A warning of clippy or of the compiler fails the stage and nothing else: tests run all the same.
//!
//! The last line is `N passed, N failed, N skipped`: tests, and one more failed for every other stage that failed, one
//! more skipped for every check that could not be made here.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;

use crate::process::{Result, cargo, output, program, root, run as run_command, succeeds, watch};
use crate::{setup, tidy};

/// Most runs of the emulated device's compiler in a whole run of the tests with an empty cache. 2,060 were counted on
/// 2026-11-27, for 4,360 programs. The SQL tests alone had 933 for 2,844 programs on 2026-11-28; the whole was
/// not counted again.
const COMPILATIONS_MAX: usize = 2800;

/// What to leave out.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Only these packages, by comma, instead of the workspace
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    packages: Vec<String>,
    /// Run the tests with 'cargo test' even where nextest is installed
    #[arg(long)]
    no_nextest: bool,
}

/// How tests ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Stages that ran, with what came of them.
#[derive(Default)]
struct Stages {
    times: Vec<(&'static str, Duration)>,
    failures: Vec<String>,
    skipped: Vec<String>,
    tests: Counts,
}

impl Stages {
    /// Runs a stage; gives whether it went well.
    fn run(&mut self, name: &'static str, stage: impl FnOnce(&mut Stages) -> Result<()>) -> bool {
        println!("== {name}");
        let start = Instant::now();
        let done = stage(self);
        self.times.push((name, start.elapsed()));
        if let Err(reason) = &done {
            println!("{name} failed: {reason}");
            self.failures.push(format!("{name}: {reason}"));
        }
        done.is_ok()
    }

    fn skip(&mut self, what: &str, reason: &str) {
        println!("skipped: {what}: {reason}");
        self.skipped.push(format!("{what}: {reason}"));
    }
}

/// Runs all stages; a stage that fails does not keep the others from running, save that tests need to be built.
pub(crate) fn run(arguments: &TestArgs) -> Result<()> {
    let mut stages = Stages::default();
    let mut linted = true;
    let mut nvrtc = None;
    let ready = stages.run("setup", |stages| {
        setup::compiler()?;
        for component in ["rustfmt", "clippy"] {
            if let Err(reason) = setup::rust_component(component) {
                linted &= component != "clippy";
                stages.skip(component, &reason);
            }
        }
        match setup::nvrtc() {
            Ok(path) => nvrtc = Some(path),
            Err(reason) => stages.skip("kernels compiled for GPUs", &reason),
        }
        if let Err(reason) = setup::sql_files() {
            stages.skip("DataFusion's SQL files", &reason);
        }
        if let Err(reason) = setup::python_packages() {
            stages.skip("the Python module", &reason);
        }
        Ok(())
    });
    stages.run("tidy", |_| tidy::run());
    if succeeds(cargo().args(["fmt", "--version"])) {
        stages.run("fmt", |_| formatted());
    }
    let mut tests = Tests {
        packages: if arguments.packages.is_empty() {
            vec!["--workspace".into()]
        } else {
            arguments.packages.iter().flat_map(|name| ["--package".into(), name.clone()]).collect()
        },
        linted,
        nvrtc,
        nextest: !arguments.no_nextest && succeeds(cargo().args(["nextest", "--version"])),
    };
    let mut built = false;
    if ready && linted {
        stages.run("clippy and build", |_| {
            let warnings = tests.build()?;
            built = true;
            if warnings == 0 { Ok(()) } else { Err(format!("{warnings} warnings")) }
        });
    }
    if ready && !built {
        // What clippy refuses outright may still be built and tested.
        tests.linted = false;
        built = stages.run("build", |_| tests.build().map(drop));
    }
    if built {
        let before = Emulated::count();
        stages.run("tests", |stages| tests.run(&mut stages.tests));
        stages.run("programs of the emulated device", |_| Emulated::count().since(&before).check());
        if arguments.packages.is_empty() && tests.nvrtc.is_some() {
            match setup::nvrtc_12() {
                Ok(path) => drop(stages.run("kernels by CUDA 12", |stages| tests.cuda_12(&path, &mut stages.tests))),
                Err(reason) => stages.skip("kernels compiled by CUDA 12", &reason),
            }
        }
        if arguments.packages.is_empty() {
            match sanitizer() {
                Some(library) => {
                    let stage = "reads out of bounds";
                    stages.run(stage, |stages| tests.sanitized(&library, &mut stages.tests));
                }
                None => stages.skip("kernels under the address sanitizer", "the compiler brings no libasan.so"),
            }
        }
        if arguments.packages.is_empty() {
            match root().join(SQL_FILES_DATA).is_dir() {
                true => {
                    let stage = "DataFusion's SQL files without their data";
                    stages.run(stage, |stages| tests.without_data(&mut stages.tests));
                }
                false => {
                    stages.skip("DataFusion's SQL files over their data", &format!("{SQL_FILES_DATA} is not there"))
                }
            }
        }
        if arguments.packages.is_empty() && root().join(MACHINES).is_dir() {
            stages.run("Palo's machines database", |stages| tests.machines(&mut stages.tests));
        }
        match reference_answers() {
            Some(folder) => drop(stages.run("answers at scale 1", |_| answers(&folder))),
            None => stages.skip("SSB's answers at scale 1", "../shared/data/ssb-sf1/answers is not there"),
        }
        stages.run("documentation tests", |stages| tests.documentation(&mut stages.tests));
    }
    summary(&stages)
}

/// The address sanitizer's library, where the compiler of the emulated device brings one.
fn sanitizer() -> Option<PathBuf> {
    let found = output(Command::new("g++").arg("-print-file-name=libasan.so")).ok()?;
    Some(PathBuf::from(found.trim())).filter(|path| path.is_absolute())
}

/// The reference's answers to SSB at scale 1, where they lie beside the project.
fn reference_answers() -> Option<PathBuf> {
    Some(root().join("../shared/data/ssb-sf1/answers")).filter(|folder| folder.is_dir())
}

/// Generates SSB at scale 1 and compares the 13 answers of the CPU.
fn answers(folder: &Path) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let data = target.join("ssb-sf1");
    let mut command = program(&target.join("debug/warpcube").to_string_lossy());
    command.args(["ssb", "--sf", "1", "--runs", "1", "--device", "cpu", "--answers"]).arg(folder);
    let done = run_command(command.arg("--dir").arg(&data));
    // A quarter of a gigabyte that later stages do not need.
    let _ = std::fs::remove_dir_all(data);
    done
}

/// What is kept compiled for the emulated device, in the folder that `crates/gpu` chooses.
struct Emulated {
    /// Objects, one a program.
    programs: usize,
    /// Runs of the compiler: objects of programs that were compiled together are one file.
    compilations: usize,
}

impl Emulated {
    fn count() -> Emulated {
        let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let cache = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        let kept = folder("WARPCUBE_EMULATOR_CACHE").or_else(|| Some(cache()?.join("warpcube/emulated")));
        let entries = kept.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
        let is_object = |entry: &DirEntry| entry.path().extension().is_some_and(|extension| extension == "so");
        let files = entries.filter(is_object).filter_map(|entry| Some(entry.metadata().ok()?.ino()));
        let files: Vec<u64> = files.collect();
        Emulated { programs: files.len(), compilations: files.into_iter().collect::<HashSet<_>>().len() }
    }

    fn since(&self, before: &Emulated) -> Emulated {
        Emulated {
            programs: self.programs.saturating_sub(before.programs),
            compilations: self.compilations.saturating_sub(before.compilations),
        }
    }

    /// Fails past [`COMPILATIONS_MAX`].
    fn check(&self) -> Result<()> {
        let Emulated { programs, compilations } = self;
        println!("{compilations} runs of its compiler for {programs} programs");
        match *compilations <= COMPILATIONS_MAX {
            true => Ok(()),
            false => Err(format!(
                "more than {COMPILATIONS_MAX} runs of the compiler: tests that run many programs have them compiled \
                 together (`Device::rehearse`)"
            )),
        }
    }
}

/// Whether rustfmt would change anything; it names the files.
fn formatted() -> Result<()> {
    run_command(cargo().args(["fmt", "--all", "--check", "--", "--files-with-diff"]))
        .map_err(|_| "run 'cargo fmt'".into())
}

fn summary(stages: &Stages) -> Result<()> {
    println!();
    for (name, time) in &stages.times {
        println!("{:6.1} min  {name}", time.as_secs_f64() / 60.0);
    }
    let all: Duration = stages.times.iter().map(|(_, time)| *time).sum();
    println!("{:6.1} min  in all", all.as_secs_f64() / 60.0);
    stages.failures.iter().for_each(|failure| println!("failed: {failure}"));
    stages.skipped.iter().for_each(|skipped| println!("skipped: {skipped}"));
    // Tests that failed are counted one by one, not once more as a stage.
    let is_tests = |failure: &&String| failure.contains(FAILED_TESTS);
    let others = stages.failures.iter().filter(|failure| !is_tests(failure)).count() as u64;
    let (failed, skipped) = (stages.tests.failed + others, stages.tests.skipped + stages.skipped.len() as u64);
    println!("{} passed, {failed} failed, {skipped} skipped", stages.tests.passed);
    match failed {
        0 => Ok(()),
        // The counts are the last line.
        _ => Err(String::new()),
    }
}

/// The reason of a test stage all of whose failures are counted.
const FAILED_TESTS: &str = "tests failed";

/// A Palo database of the shared data; tests that read it are ignored by their runner, and counted as skipped without
/// it.
const MACHINES: &str = "../shared/data/palo-machines";

/// The data that DataFusion's SQL files read and their crate lacks.
const SQL_FILES_DATA: &str = "../shared/data/sqllogictest";

/// How tests are built and run.
struct Tests {
    packages: Vec<String>,
    linted: bool,
    nvrtc: Option<PathBuf>,
    nextest: bool,
}

impl Tests {
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        command.args(arguments).args(&self.packages);
        if self.linted {
            command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
        }
        if let Some(path) = &self.nvrtc {
            command.env("WARPCUBE_NVRTC", path);
        }
        command
    }

    /// Builds all tests; gives the number of warnings.
    fn build(&self) -> Result<u64> {
        let mut warnings = 0;
        let mut command = self.cargo(&["test", "--no-run", "--no-fail-fast", "--all-targets"]);
        match watch(&mut command, |line| warnings += warning_summary(line).unwrap_or(0))? {
            true => Ok(warnings),
            false => Err("see above".into()),
        }
    }

    fn run(&self, counts: &mut Counts) -> Result<()> {
        let mut command = match self.nextest {
            true => self.cargo(&["nextest", "run", "--all-targets", "--no-fail-fast"]),
            false => self.cargo(&["test", "--all-targets", "--no-fail-fast"]),
        };
        counted(&mut command, counts)
    }

    /// Runs the tests that read the machines database, which a run of all tests has counted as skipped.
    fn machines(&self, counts: &mut Counts) -> Result<()> {
        let mut command = self.cargo(&["test", "--no-fail-fast", "--test", "format", "--test", "catalog"]);
        let mut read = Counts::default();
        let outcome = counted(command.args(["--", "--ignored", "machines"]), &mut read);
        counts.passed += read.passed;
        counts.failed += read.failed;
        counts.skipped = counts.skipped.saturating_sub(read.passed + read.failed);
        outcome
    }

    /// Runs DataFusion's SQL files as a checkout does that lies alone, without the data beside it.
    fn without_data(&self, counts: &mut Counts) -> Result<()> {
        let mut command = self.cargo(&["test", "--no-fail-fast", "--test", "sql"]);
        let nowhere = root().join("target/no-data");
        counted(command.env("WARPCUBE_SQLLOGICTEST_DATA", nowhere).args(["--", "datafusion_files::"]), counts)
    }

    /// Runs some fragments of the engine, whose programs are compiled by this NVRTC too.
    fn cuda_12(&self, nvrtc: &Path, counts: &mut Counts) -> Result<()> {
        let mut command = self.cargo(&["test", "--no-fail-fast", "--test", "device"]);
        counted(command.env("WARPCUBE_NVRTC", nvrtc).args(["--", "groups::", "zones::"]), counts)
    }

    /// Decodes columns of every encoding, and runs queries over them, on the emulated device under the address
    /// sanitizer, which has to be loaded before a process begins.
    fn sanitized(&self, library: &Path, counts: &mut Counts) -> Result<()> {
        let host = output(Command::new("rustc").arg("-vV"))?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc tells no host")?;
        let runner = format!("CARGO_TARGET_{}_RUNNER", host.replace('-', "_").to_uppercase());
        let preload = format!("env LD_PRELOAD={} ASAN_OPTIONS=detect_leaks=0", library.display());
        let mut command = self.cargo(&["test", "--no-fail-fast", "--test", "encodings", "--test", "device"]);
        command.env(runner, preload).env("WARPCUBE_EMULATOR_SANITIZE", "1");
        counted(command.args(["--", "views::", "encodings::", "zones::"]), counts)
    }

    fn documentation(&self, counts: &mut Counts) -> Result<()> {
        counted(&mut self.cargo(&["test", "--doc", "--no-fail-fast"]), counts)
    }
}

/// Runs tests and adds up what their runner says.
fn counted(command: &mut Command, counts: &mut Counts) -> Result<()> {
    let mut seen = Counts::default();
    let mut by_nextest = None;
    let well = watch(command, |line| {
        by_nextest = nextest_summary(line).or(by_nextest);
        if let Some(more) = libtest_summary(line) {
            seen.passed += more.passed;
            seen.failed += more.failed;
            seen.skipped += more.skipped;
        }
    })?;
    // nextest shows what a failed test said, the summary of its own run included.
    let seen = by_nextest.unwrap_or(seen);
    counts.passed += seen.passed;
    counts.failed += seen.failed;
    counts.skipped += seen.skipped;
    match (well, seen.failed) {
        (true, _) => Ok(()),
        (false, 0) => Err("the runner failed and told of no test that did".into()),
        (false, failed) => Err(format!("{failed} {FAILED_TESTS}")),
    }
}

/// ``warning: `warpcube-gpu` (lib test) generated 3 warnings (1 duplicate)``.
fn warning_summary(line: &str) -> Option<u64> {
    let (_, rest) = line.trim_start().strip_prefix("warning: `")?.split_once(" generated ")?;
    rest.split(' ').next()?.parse().ok()
}

/// `Summary [   1.2s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped`.
fn nextest_summary(line: &str) -> Option<Counts> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    let (_, rest) = rest.split_once("] ")?;
    let (run, outcome) = rest.split_once(" run: ")?;
    // `3/5 tests` when the run was stopped.
    let run = run.split(' ').next()?.split('/').next()?.parse::<u64>().ok()?;
    let count = |what: &str| {
        let part = outcome.split(", ").find(|part| part.split(' ').nth(1) == Some(what));
        part.and_then(|part| part.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    let passed = count("passed");
    Some(Counts { passed, failed: run.saturating_sub(passed), skipped: count("skipped") })
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`.
fn libtest_summary(line: &str) -> Option<Counts> {
    let rest = line.trim_start().strip_prefix("test result: ")?;
    let (_, rest) = rest.split_once(". ")?;
    let count = |what: &str| {
        let part = rest.split("; ").find(|part| part.ends_with(what))?;
        part.split(' ').next()?.parse::<u64>().ok()
    };
    Some(Counts { passed: count(" passed")?, failed: count(" failed")?, skipped: count(" ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_both_runners_are_understood() {
        let line = "     Summary [   1.234s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped";
        assert_eq!(nextest_summary(line), Some(Counts { passed: 3, failed: 2, skipped: 2 }));
        let line = "     Summary [   0.005s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(nextest_summary(line), Some(Counts { passed: 1, failed: 0, skipped: 0 }));
        let line = "     Summary [   0.005s] 3/5 tests run: 2 passed, 1 failed, 0 skipped";
        assert_eq!(nextest_summary(line), Some(Counts { passed: 2, failed: 1, skipped: 0 }));
        let line = "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(libtest_summary(line), Some(Counts { passed: 12, failed: 1, skipped: 2 }));
        assert_eq!(warning_summary("warning: `a-b` (lib test) generated 3 warnings (1 duplicate)"), Some(3));
        assert_eq!(warning_summary("warning: unused variable: `x`"), None);
        assert_eq!(nextest_summary("running 3 tests").or(libtest_summary("test a ... ok")), None);
    }
}
