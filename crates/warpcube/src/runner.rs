//! Runs statements and scripts: rows to the output, a footer and a progress bar to the standard error, Ctrl-C.
//!
//! A statement runs in a task of its own on the runtime's threads, and this thread only takes its batches. So whatever
//! a statement is stuck in, Ctrl-C gives control back at once: the statement is told to stop, its task is let go, and
//! nobody waits for it.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use warpcube_sql::{Execution, Progress, Script, Session, SqlError, StatementReport, Summary};

use crate::error::{CliError, Result};
use crate::footer::footer;
use crate::output::{Output, Target};
use crate::feeder::{Feeder, Piece};
use crate::progress::Bar;
use crate::shell::commands::{self, Next};

/// Batches that may wait for the output.
const QUEUE: usize = 4;
/// How often the progress bar is drawn.
const TICK: Duration = Duration::from_millis(100);

/// What a statement's task tells.
enum Message {
    Started(SchemaRef, HowFar),
    Batch(RecordBatch),
    Failed(SqlError),
    Done,
}

/// Asks a running statement how far it is.
type HowFar = Box<dyn Fn() -> Progress + Send>;

/// Runs statements in a session.
pub(crate) struct Runner {
    pub(crate) session: Session,
    runtime: Arc<Runtime>,
    interrupt: Signal,
    target: Target,
    /// Whether a person sits before it: footers are written, and errors do not end a script.
    pub(crate) interactive: bool,
    pub(crate) continue_on_error: bool,
    /// Errors that did not end a script.
    pub(crate) failures: usize,
}

impl Runner {
    /// A runner whose results go to `target`.
    pub(crate) fn new(session: Session, runtime: Arc<Runtime>, target: Target) -> Result<Runner> {
        let interrupt = {
            let _guard = runtime.enter();
            signal(SignalKind::interrupt()).map_err(|error| CliError::Usage(format!("no signals here: {error}")))?
        };
        Ok(Runner { session, runtime, interrupt, target, interactive: false, continue_on_error: false, failures: 0 })
    }

    /// Runs one statement, writes its rows and its footer.
    pub(crate) fn statement(&mut self, sql: &str) -> Result<()> {
        let (summary, has_rows) = self.execute(sql)?;
        if self.interactive || self.session.settings().timing {
            eprintln!("{}", footer(&summary, has_rows));
        }
        Ok(())
    }

    fn execute(&mut self, sql: &str) -> Result<(Summary, bool)> {
        let report = StatementReport::new();
        let (sender, receiver) = mpsc::channel(QUEUE);
        let task = self.runtime.spawn(run(self.session.clone(), sql.to_string(), report.clone(), sender));
        let runtime = self.runtime.clone();
        match runtime.block_on(self.take(receiver)) {
            Ok(Some(has_rows)) => Ok((report.summary(), has_rows)),
            Ok(None) => {
                let panic = runtime.block_on(task).err().map_or("a task ended early".into(), |error| error.to_string());
                Err(SqlError::Internal(panic).into())
            }
            Err(error) => {
                report.cancel().cancel();
                task.abort();
                Err(error)
            }
        }
    }

    /// Takes what a statement gives until it ends or the user has enough; says whether it gave a result, and nothing
    /// where its task ended without a word.
    async fn take(&mut self, mut receiver: mpsc::Receiver<Message>) -> Result<Option<bool>> {
        let settings = self.session.settings();
        let mut bar = Bar::new("running");
        let mut tick = tokio::time::interval(TICK);
        let mut how_far: HowFar = Box::new(Progress::default);
        let mut output = None;
        loop {
            let message = tokio::select! {
                biased;
                _ = self.interrupt.recv() => return Err(SqlError::Cancelled.into()),
                message = receiver.recv() => message,
                _ = tick.tick() => {
                    bar.update(how_far());
                    continue;
                }
            };
            match message {
                Some(Message::Started(schema, asked)) => {
                    how_far = asked;
                    if !schema.fields().is_empty() {
                        output = Some(Output::open(&mut self.target, settings.format, schema, settings.max_rows)?);
                    }
                }
                Some(Message::Batch(batch)) => {
                    if let Some(output) = &mut output {
                        bar.clear_for_output();
                        output.write(&batch)?;
                    }
                }
                Some(Message::Done) => {
                    bar.clear();
                    let has_rows = output.is_some();
                    output.map_or(Ok(()), Output::finish)?;
                    return Ok(Some(has_rows));
                }
                Some(Message::Failed(error)) => return Err(error.into()),
                None => return Ok(None),
            }
        }
    }

    /// Runs a script: statements that end with semicolons, the last one may do without, and shell commands on lines of
    /// their own. `name` stands before line numbers in errors.
    ///
    /// Errors end the script unless they are to be gone on from; then they are written and counted.
    pub(crate) fn script(&mut self, name: &str, reader: impl BufRead) -> Result<Next> {
        let mut feeder = Feeder::default();
        let mut lines = reader.lines();
        loop {
            let line = lines.next().transpose();
            let line = line.map_err(|error| CliError::Input { path: name.into(), reason: error.to_string() })?;
            let at_end = line.is_none();
            let pieces = match line {
                Some(line) => feeder.line(&line),
                None => feeder.end(),
            };
            for (piece, line) in pieces {
                let done = match piece {
                    Piece::Statement(sql) => self.statement(&sql).map(|()| Next::Prompt),
                    Piece::Command(command) => commands::run(self, &command),
                };
                match done {
                    Ok(Next::Quit) => return Ok(Next::Quit),
                    Ok(Next::Prompt) => {}
                    Err(error) => self.script_error(error.at(format!("{name}:{line}")))?,
                }
            }
            if at_end {
                return Ok(Next::Prompt);
            }
        }
    }

    /// Gives an error back if it ends a script, or writes it.
    fn script_error(&mut self, error: CliError) -> Result<()> {
        let ends = !(self.continue_on_error || self.interactive) || error.is_cancelled() || error.is_closed();
        if ends {
            return Err(error);
        }
        self.failures += 1;
        report_error(&error);
        Ok(())
    }

    /// Runs a script file.
    pub(crate) fn file(&mut self, path: &Path) -> Result<Next> {
        let file = std::fs::File::open(path)
            .map_err(|error| CliError::Input { path: path.to_path_buf(), reason: error.to_string() })?;
        self.script(&path.display().to_string(), std::io::BufReader::new(file))
    }

    /// Runs the statements of one `-c`; an error there has no line to name.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        for statement in Script::split(text).into_statements() {
            if let Err(error) = self.statement(&statement.sql) {
                self.script_error(error)?;
            }
        }
        Ok(())
    }

    /// Forgets a Ctrl-C that came while no statement ran.
    pub(crate) fn forget_interrupt(&mut self) {
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            let nothing = std::future::ready(());
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => {}
                () = nothing => {}
            }
        });
    }
}

/// Writes an error on one line.
pub(crate) fn report_error(error: &CliError) {
    // Nothing can be done where even the standard error is closed.
    let _ = writeln!(std::io::stderr(), "error: {error}");
}

/// The task of one statement.
async fn run(session: Session, sql: String, report: Arc<StatementReport>, sender: mpsc::Sender<Message>) {
    let end = match stream(&session, &sql, report, &sender).await {
        Ok(()) => Message::Done,
        Err(error) => Message::Failed(error),
    };
    // The receiver is gone where the user has cancelled.
    let _ = sender.send(end).await;
}

async fn stream(
    session: &Session,
    sql: &str,
    report: Arc<StatementReport>,
    sender: &mpsc::Sender<Message>,
) -> Result<(), SqlError> {
    let Execution { schema, mut stream, plan, .. } = session.execute_with(sql, report.clone()).await?;
    let how_far = Box::new(move || Execution::progress_of(plan.as_ref(), &report));
    if sender.send(Message::Started(schema, how_far)).await.is_err() {
        return Err(SqlError::Cancelled);
    }
    while let Some(batch) = stream.next().await {
        if sender.send(Message::Batch(batch?)).await.is_err() {
            return Err(SqlError::Cancelled);
        }
    }
    Ok(())
}
