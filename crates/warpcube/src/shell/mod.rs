//! The shell: lines edited and remembered, statements over several lines, completion, and backslash commands.

mod helper;

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::config;
use crate::console::tell;
use crate::error::{CliError, Result};
use crate::runner::{Runner, report_error};
use crate::script::{self, Next};
use crate::signals;
use crate::statement_reader::{Piece, StatementReader};
use helper::Helper;

/// Lines kept in the history file.
const HISTORY_LINES: usize = 10_000;

/// The line that a history begins with, as the editor writes it.
const HISTORY_HEAD: &[u8] = b"#V2\n";

/// Reads and runs until the user leaves.
pub(crate) fn run(runner: &mut Runner) -> Result<()> {
    runner.interactive = true;
    let version = env!("CARGO_PKG_VERSION");
    tell(format_args!("Warpcube {version}. Statements end with ';'. \\? for help, \\q to leave."));
    // The editor takes SIGINT when it is made; later listeners share it.
    let mut editor = editor(runner)?;
    if let Some(path) = startup_file() {
        match runner.file(&path) {
            Ok(Next::Quit) => return Ok(()),
            Ok(Next::Prompt) => {}
            Err(error) if signals::code().is_some() => return Err(error),
            Err(error) => report_error(&error),
        }
    }
    let history = history_file();
    if let Some(path) = &history
        && let Err(error) = begin_history(path).and_then(|()| editor.load_history(path))
    {
        tracing::debug!(%error, path = %path.display(), "the history could not be read");
    }
    // While the user types.
    runner.connection.database().open_device_in_background();
    read(runner, &mut editor, history.as_deref())
}

/// Makes the history if there is none, for this user alone: the editor adds to a file that is there under a lock, so
/// that shells beside each other lose nothing.
fn begin_history(path: &Path) -> rustyline::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path);
    match new.and_then(|mut file| file.write_all(HISTORY_HEAD)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => Ok(done?),
    }
}

/// Keeps a line, on disk at once: a shell may be killed.
fn remember(editor: &mut Editor<Helper, DefaultHistory>, text: &str, history: Option<&Path>) {
    let added = editor.add_history_entry(text).and_then(|_| match history {
        Some(path) => editor.append_history(path),
        None => Ok(()),
    });
    if let Err(error) = added {
        tracing::debug!(%error, "a line could not be remembered");
    }
}

fn editor(runner: &Runner) -> Result<Editor<Helper, DefaultHistory>> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor = Editor::with_config(config).map_err(terminal_error)?;
    let sized = editor.set_max_history_size(HISTORY_LINES);
    sized.map_err(terminal_error)?;
    editor.set_helper(Some(Helper::new(runner.connection.clone())));
    Ok(editor)
}

fn terminal_error(error: ReadlineError) -> CliError {
    CliError::Command(format!("the terminal cannot be read: {error}"))
}

fn read(runner: &mut Runner, editor: &mut Editor<Helper, DefaultHistory>, history: Option<&Path>) -> Result<()> {
    loop {
        let text = match editor.readline("warpcube> ") {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(terminal_error(error)),
        };
        if text.trim().is_empty() {
            continue;
        }
        remember(editor, &text, history);
        runner.forget_interrupt();
        let mut reader = StatementReader::default();
        let mut pieces: Vec<(Piece, usize)> = text.lines().flat_map(|line| reader.line(line)).collect();
        pieces.extend(reader.end());
        for (piece, _) in pieces {
            let done = match piece {
                Piece::Statement(sql) => match script::meant_by(&sql) {
                    Some(command) => script::run_command(runner, command),
                    None => runner.statement(&sql).map(|()| Next::Prompt),
                },
                Piece::Command(command) => script::run_command(runner, &command),
            };
            match done {
                Ok(Next::Quit) => return Ok(()),
                Ok(Next::Prompt) => {}
                Err(error) if signals::code().is_some() => return Err(error),
                Err(error) => {
                    // The statements after it on the same line were meant for a state that there is not.
                    report_error(&error);
                    break;
                }
            }
        }
    }
}

/// `WARPCUBE_RC`, or `warpcuberc` in the configuration folder, if it exists.
fn startup_file() -> Option<PathBuf> {
    let path = match std::env::var_os("WARPCUBE_RC") {
        Some(path) => PathBuf::from(path),
        None => config::folder()?.join("warpcuberc"),
    };
    path.is_file().then_some(path)
}

/// `WARPCUBE_HISTORY`, or `history` in the user's data folder; an empty variable keeps none.
fn history_file() -> Option<PathBuf> {
    match std::env::var_os("WARPCUBE_HISTORY") {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(PathBuf::from(path)),
        None => Some(dirs::data_dir()?.join("warpcube").join("history")),
    }
}
