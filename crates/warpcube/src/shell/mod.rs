//! The shell: lines edited and remembered, statements over several lines, completion, and backslash commands.

pub(crate) mod commands;
mod helper;

use std::path::PathBuf;

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::config;
use crate::console::tell;
use crate::error::{CliError, Result};
use crate::feeder::{Feeder, Piece};
use crate::runner::{Runner, report_error};
use commands::Next;
use helper::Helper;

/// Lines kept in the history file.
const HISTORY_LINES: usize = 10_000;

/// Reads and runs until the user leaves.
pub(crate) fn run(runner: &mut Runner) -> Result<()> {
    runner.interactive = true;
    let version = env!("CARGO_PKG_VERSION");
    tell(format_args!("Warpcube {version}. Statements end with ';'. \\? for help, \\q to leave."));
    // The editor takes SIGINT for itself when it is made; who listens later shares it.
    let mut editor = editor(runner)?;
    if let Some(path) = startup_file() {
        match runner.file(&path) {
            Ok(Next::Quit) => return Ok(()),
            Ok(Next::Prompt) => {}
            Err(error) => report_error(&error),
        }
    }
    let history = history_file();
    if let Some(path) = &history {
        // There is none before the first session ends.
        let _ = editor.load_history(path);
    }
    let ended = read(runner, &mut editor);
    if let Some(path) = &history
        && let Some(folder) = path.parent()
    {
        let saved = std::fs::create_dir_all(folder).map_err(ReadlineError::Io).and_then(|()| editor.save_history(path));
        if let Err(error) = saved {
            tracing::debug!(%error, path = %path.display(), "the history could not be saved");
        }
    }
    ended
}

fn editor(runner: &Runner) -> Result<Editor<Helper, DefaultHistory>> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor = Editor::with_config(config).map_err(terminal_error)?;
    let sized = editor.set_max_history_size(HISTORY_LINES);
    sized.map_err(terminal_error)?;
    editor.set_helper(Some(Helper::new(runner.session.clone())));
    Ok(editor)
}

fn terminal_error(error: ReadlineError) -> CliError {
    CliError::Command(format!("the terminal cannot be read: {error}"))
}

fn read(runner: &mut Runner, editor: &mut Editor<Helper, DefaultHistory>) -> Result<()> {
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
        if let Err(error) = editor.add_history_entry(text.as_str()) {
            tracing::debug!(%error, "a line could not be remembered");
        }
        runner.forget_interrupt();
        let mut feeder = Feeder::default();
        let mut pieces: Vec<(Piece, usize)> = text.lines().flat_map(|line| feeder.line(line)).collect();
        pieces.extend(feeder.end());
        for (piece, _) in pieces {
            let done = match piece {
                Piece::Statement(sql) => match commands::meant_by(&sql) {
                    Some(command) => commands::run(runner, command),
                    None => runner.statement(&sql).map(|()| Next::Prompt),
                },
                Piece::Command(command) => commands::run(runner, &command),
            };
            match done {
                Ok(Next::Quit) => return Ok(()),
                Ok(Next::Prompt) => {}
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
