//! Runs the program in a folder of its own, cut off from the user's configuration.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A folder to run the program in.
pub(crate) struct Place {
    folder: TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, its folders included.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The program, in this folder, on the CPU, with no configuration but what the test gives.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpcube"));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        let ours = |name: &str| name.starts_with("WARPCUBE_") || name.starts_with("DATAFUSION_");
        for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_CACHE_HOME", self.path("cache")).env("XDG_DATA_HOME", self.path("data"));
        // Tests read what a terminal shows.
        command.env("NO_COLOR", "1").env("PAGER", "cat").env_remove("VISUAL").env_remove("EDITOR");
        command
    }

    /// The program with kernels for the emulated device kept between tests.
    pub(crate) fn emulated(&self) -> Command {
        let mut command = self.command();
        command.env("WARPCUBE_EMULATOR_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated"));
        command
    }

    /// Runs it with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command().args(arguments).output().unwrap())
    }

    /// Runs statements and gives their rows as CSV.
    pub(crate) fn csv(&self, sql: &str) -> String {
        self.run(&["--format", "csv", "-c", sql]).ok()
    }

    /// Runs statements of which one fails, and gives the error line.
    pub(crate) fn error(&self, sql: &str) -> String {
        self.run(&["--format", "csv", "-c", sql]).error(1)
    }

    /// Runs it with this text on its standard input.
    pub(crate) fn input(&self, arguments: &[&str], text: &str) -> Ran {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Makes a file with `COPY`.
    pub(crate) fn copy(&self, query: &str, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        self.csv(&format!("COPY ({query}) TO '{}'", path.display()));
        path
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The standard output of a run that went well and wrote no error.
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self.out
    }

    /// The one line of a run that ended with an error and that code; the line of the statement may follow, with a
    /// caret.
    pub(crate) fn error(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        let is_excerpt = matches!(lines[1..], [line, caret] if line.starts_with("LINE ") && caret.trim() == "^");
        assert!(lines.len() == 1 || is_excerpt, "{self:?}");
        lines[0].strip_prefix("error: ").unwrap_or_else(|| panic!("no 'error: ': {self:?}")).to_string()
    }
}

/// The path as text.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}
