//! The shell: lines edited, coloured, completed and remembered, statements over several lines, and commands.
//!
//! The editor reads a line at a time, with a prompt that names what the lines before it leave open. A statement of
//! several lines is one entry of the history; as that it comes back, and is edited as a whole.

mod completion;
mod helper;
mod highlight;
mod keywords;

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};

use crate::commands::{self, Next};
use crate::config;
use crate::console::tell;
use crate::error::{CliError, Result};
use crate::runner::{Runner, report_error};
use crate::signals;
use crate::statement_reader::{Piece, StatementReader};
use helper::Helper;

/// Lines kept in the history file.
const HISTORY_LINES: usize = 10_000;

/// The line that a history begins with, as the editor writes it.
const HISTORY_HEAD: &[u8] = b"#V2\n";

/// The prompt between statements. That of further lines is as long.
const PROMPT: &str = "warpcube> ";

/// Lines of the screen for the prompt and the footer of a result.
const LINES_KEPT: usize = 2;

/// Reads and runs until the user leaves; `with_rc` runs the start-up file first.
pub(crate) fn run(runner: &mut Runner, with_rc: bool) -> Result<()> {
    runner.interactive = true;
    let version = env!("CARGO_PKG_VERSION");
    tell(format_args!("Warpcube {version}. Statements end with ';'. \\? for help, \\q to leave."));
    // The editor takes SIGINT when it is made; later listeners share it.
    let mut editor = editor(runner)?;
    if let Some(path) = startup_file().filter(|_| with_rc) {
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
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let color = if is_plain { ColorMode::Disabled } else { ColorMode::Enabled };
    let config = Config::builder().completion_type(CompletionType::List).color_mode(color).build();
    let mut editor = Editor::with_config(config).map_err(terminal_error)?;
    let sized = editor.set_max_history_size(HISTORY_LINES);
    sized.map_err(terminal_error)?;
    editor.set_helper(Some(Helper::new(runner.connection.clone())));
    Ok(editor)
}

fn terminal_error(error: ReadlineError) -> CliError {
    CliError::Command(format!("the terminal cannot be read: {error}"))
}

/// The prompt of a line: what the lines before it wait for.
fn prompt(reader: &StatementReader) -> String {
    match reader.waits_for() {
        None => PROMPT.into(),
        Some(open) => format!("{open:>width$}> ", width = PROMPT.len() - 2),
    }
}

fn read(runner: &mut Runner, editor: &mut Editor<Helper, DefaultHistory>, history: Option<&Path>) -> Result<()> {
    let mut reader = StatementReader::default();
    // The lines of the statement that is typed.
    let mut entry = String::new();
    loop {
        if let Some(helper) = editor.helper_mut() {
            helper.begin(reader.unfinished());
        }
        let text = match editor.readline(&prompt(&reader)) {
            Ok(text) => text,
            Err(ReadlineError::Interrupted) => {
                reader.clear();
                entry.clear();
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(terminal_error(error)),
        };
        let is_first = reader.is_between_statements();
        if text.trim().is_empty() && is_first {
            continue;
        }
        if !entry.is_empty() {
            entry.push('\n');
        }
        entry.push_str(&text);
        let pieces: Vec<Piece> = match commands::meant_by(&text).filter(|_| is_first) {
            Some(command) => vec![Piece::Command(command.into())],
            None => text.lines().flat_map(|line| reader.line(line)).map(|(piece, _)| piece).collect(),
        };
        // A statement is remembered before it runs. One that a command follows may go on.
        if !pieces.is_empty() || reader.is_between_statements() {
            remember(editor, &std::mem::take(&mut entry), history);
        }
        runner.forget_interrupt();
        runner.screen = editor
            .dimensions()
            .map(|(columns, lines)| (usize::from(columns), usize::from(lines).saturating_sub(LINES_KEPT)));
        let done = run_pieces(runner, &mut reader, pieces)?;
        if let Some(edited) = runner.edited.take() {
            remember(editor, &edited, history);
        }
        if done == Next::Quit {
            return Ok(());
        }
    }
}

/// Runs what a line has made whole, up to the first error: what follows was meant for a state that there is not.
fn run_pieces(runner: &mut Runner, reader: &mut StatementReader, pieces: Vec<Piece>) -> Result<Next> {
    for piece in pieces {
        let piece = match piece {
            Piece::Statement(sql) => {
                commands::meant_by(&sql).map_or(Piece::Statement(sql), |name| Piece::Command(name.into()))
            }
            command => command,
        };
        match runner.piece(piece, reader) {
            Ok(Next::Quit) => return Ok(Next::Quit),
            Ok(Next::Prompt) => {}
            Err(error) if signals::code().is_some() => return Err(error),
            Err(error) => {
                report_error(&error);
                break;
            }
        }
    }
    Ok(Next::Prompt)
}

/// `WARPCUBE_RC`, or else `~/.warpcuberc` or `warpcuberc` in the configuration folder, the first that exists.
fn startup_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WARPCUBE_RC") {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let at_home = dirs::home_dir().map(|folder| folder.join(".warpcuberc"));
    let configured = config::folder().map(|folder| folder.join("warpcuberc"));
    [at_home, configured].into_iter().flatten().find(|path| path.is_file())
}

/// `WARPCUBE_HISTORY`, or `history` in the user's data folder; an empty variable keeps none.
fn history_file() -> Option<PathBuf> {
    match std::env::var_os("WARPCUBE_HISTORY") {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(PathBuf::from(path)),
        None => Some(dirs::data_dir()?.join("warpcube").join("history")),
    }
}
