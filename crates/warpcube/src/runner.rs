//! Runs a statement: rows to the output, a footer and a progress bar to the standard error, Ctrl-C.
//!
//! A statement runs in a task of its own on other threads, and this thread only takes its batches. So Ctrl-C and the
//! timeout return at once, wherever the statement is: it is cancelled, and its task is abandoned. A statement past its
//! commit point is waited for, and its result is written; a second Ctrl-C abandons it.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tokio::sync::mpsc;
use warpcube_sql::{Connection, Execution, Progress, SqlError, StatementReport, Summary};

use crate::console::tell;
use crate::error::{CliError, Result};
use crate::excerpt::Excerpt;
use crate::exit;
use crate::footer::footer;
use crate::host::{Host, Interrupts, TICK};
use crate::output::{Layout, Output, Screen, Target, Writing};
use crate::pager;
use crate::progress::Bar;

/// Batches that may wait for the output.
const QUEUE: usize = 4;

/// A message from a statement's task.
enum Message {
    Started { schema: SchemaRef, how_far: HowFar, counts: bool },
    Batch(RecordBatch),
    Failed(SqlError),
    Done,
}

/// An event of the loop that takes a statement's rows.
enum Event {
    /// The rows are no longer wanted: cancelled or timed out.
    Over(SqlError),
    Tick,
    /// Some are written; the output is gone after the last ones.
    Written(Option<Output>),
    Told(Option<Message>),
}

/// Waits until the piece being written is done; never returns if there is none.
async fn written(writing: &mut Option<Writing>) -> Result<Option<Output>> {
    match writing {
        Some(writing) => writing.done().await,
        None => std::future::pending().await,
    }
}

/// How the taking of a statement's rows ended.
enum Taken {
    /// All is written; a statement may give no result.
    All { has_rows: bool },
    /// The statement ended with an error.
    Failed(SqlError),
    /// The statement's task ended without a word: it panicked.
    Silence,
}

/// Asks a running statement how far it is.
type HowFar = Box<dyn Fn() -> Progress + Send>;

impl Drop for Runner {
    fn drop(&mut self) {
        exit::close(self.connection.database());
    }
}

/// What holds for one result.
#[derive(Debug, Default)]
pub(crate) struct Once {
    /// Where it goes.
    pub(crate) target: Option<Target>,
    /// Whether it has one line a value.
    pub(crate) is_expanded: bool,
}

/// Runs statements of one connection.
pub(crate) struct Runner {
    pub(crate) connection: Connection,
    host: Arc<Host>,
    /// Ctrl-C, listened for from the first statement on, and the signals that end the program.
    interrupt: Option<Interrupts>,
    /// Where results go.
    pub(crate) target: Target,
    /// What holds for the next result alone.
    pub(crate) once: Once,
    /// A text that a command has had edited, which the history takes.
    pub(crate) edited: Option<String>,
    /// Columns and lines of the terminal before which a person sits: what does not fit goes to the pager.
    pub(crate) screen: Option<(usize, usize)>,
    /// Whether a person sits before it: footers are written, and errors do not end a script.
    pub(crate) interactive: bool,
    pub(crate) continue_on_error: bool,
    /// Errors that did not end a script.
    pub(crate) failures: usize,
}

impl Runner {
    /// A runner whose results go to `target`.
    pub(crate) fn new(connection: Connection, host: Arc<Host>, target: Target) -> Runner {
        host.hold(connection.database());
        Runner {
            connection,
            host,
            interrupt: None,
            target,
            once: Once::default(),
            edited: None,
            screen: None,
            interactive: false,
            continue_on_error: false,
            failures: 0,
        }
    }

    /// Where its work is done.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Runs one statement, writes its rows and its footer.
    pub(crate) fn statement(&mut self, sql: &str) -> Result<()> {
        let mut once = std::mem::take(&mut self.once);
        let screen = self.screen.filter(|_| self.connection.settings().pager);
        let screen = screen.map(|(columns, lines)| Screen { columns, lines, page: Arc::default() });
        let (summary, has_rows) = self.execute(sql, &mut once, screen.as_ref())?;
        if let Some(page) = screen.as_ref().and_then(|screen| screen.page.get()) {
            pager::show(page)?;
            // A Ctrl-C was for the pager.
            self.forget_interrupt();
        }
        summary.warnings.iter().for_each(|warning| tell(format_args!("warning: {warning}")));
        let is_timed = self.is_timed();
        if self.interactive || is_timed {
            let device = self.connection.database().device();
            tell(footer(&summary, has_rows, is_timed, device.has_gpu()));
        }
        Ok(())
    }

    /// Whether times are written after each statement.
    pub(crate) fn is_timed(&self) -> bool {
        self.connection.settings().timing.unwrap_or(self.interactive)
    }

    fn execute(&mut self, sql: &str, once: &mut Once, screen: Option<&Screen>) -> Result<(Summary, bool)> {
        let report = StatementReport::new();
        let (sender, receiver) = mpsc::channel(QUEUE);
        let host = self.host.clone();
        let task = host.spawn(run(self.connection.clone(), sql.to_string(), report.clone(), sender));
        match host.block_on(self.take(receiver, report.clone(), once, screen)) {
            Ok(Taken::All { has_rows }) => Ok((report.summary(), has_rows)),
            Ok(Taken::Failed(error)) => Err(CliError::of_statement(error, sql)),
            Ok(Taken::Silence) => {
                let panic = host.block_on(task).err().map_or("a task ended early".into(), |error| error.to_string());
                Err(SqlError::Internal(panic).into())
            }
            Err(error) => {
                // The statement goes on until it notices, and must not keep threads from the next.
                report.cancel().cancel();
                task.abort();
                host.abandon()?;
                Err(error)
            }
        }
    }

    /// Takes a statement's messages until its end. After an error the statement may still run; its rows are not wanted.
    async fn take(
        &mut self,
        mut receiver: mpsc::Receiver<Message>,
        report: Arc<StatementReport>,
        once: &mut Once,
        screen: Option<&Screen>,
    ) -> Result<Taken> {
        let settings = self.connection.settings();
        let listening = match self.interrupt.take() {
            Some(interrupt) => interrupt,
            None => self.host.interrupts()?,
        };
        let interrupt = self.interrupt.insert(listening);
        let target = once.target.as_mut().unwrap_or(&mut self.target);
        // The connection watches the time too, but its clock stands still while all its threads are busy.
        let allowed = settings.timeout;
        let timeout = async move {
            match allowed {
                Some(allowed) => tokio::time::sleep(allowed).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(timeout);
        let mut bar = Bar::new("running");
        let mut tick = tokio::time::interval(TICK);
        // Statements of our own may load for long before they have a plan or rows.
        let mut how_far: HowFar = Box::new({
            let report = report.clone();
            move || Execution::progress_of(None, &report)
        });
        let mut output: Option<Output> = None;
        let (mut writing, mut is_writing) = (None, false);
        let mut is_committing = false;
        loop {
            let event = tokio::select! {
                biased;
                () = interrupt.recv() => Event::Over(SqlError::Cancelled),
                () = &mut timeout, if !is_committing => {
                    Event::Over(SqlError::TimedOut { milliseconds: allowed.unwrap_or_default().as_millis() })
                }
                _ = tick.tick() => Event::Tick,
                written = written(&mut writing) => Event::Written(written?),
                // The last one, for rows of a fast source are always there; and none while some are written.
                message = receiver.recv(), if !is_writing => Event::Told(message),
            };
            match event {
                Event::Over(_) if !is_committing && !report.cancel().cancel() => is_committing = true,
                Event::Over(error) => {
                    if let Some(writing) = writing {
                        writing.stop().await;
                    }
                    return Err(error.into());
                }
                Event::Tick => bar.update(how_far()),
                Event::Written(open) => {
                    (writing, is_writing, output) = (None, false, open);
                    if output.is_none() {
                        return Ok(Taken::All { has_rows: true });
                    }
                }
                Event::Told(Some(Message::Started { schema, how_far: asked, counts })) => {
                    how_far = asked;
                    // A file is for a result, not for how many rows went elsewhere.
                    let is_wanted = !counts || matches!(target, Target::Stdout);
                    if !schema.fields().is_empty() && is_wanted {
                        let layout = Layout::of(&settings, once.is_expanded, screen);
                        output = Some(Output::open(target, settings.format, schema, layout)?);
                    }
                }
                Event::Told(Some(Message::Batch(batch))) => {
                    if let Some(open) = output.take() {
                        if matches!(target, Target::Stdout) {
                            bar.clear_for_output();
                        }
                        (writing, is_writing) = (Some(open.write(&self.host, batch)), true);
                    }
                }
                Event::Told(Some(Message::Done)) => {
                    bar.clear();
                    let Some(open) = output.take() else { return Ok(Taken::All { has_rows: false }) };
                    (writing, is_writing) = (Some(open.finish(&self.host)), true);
                }
                Event::Told(Some(Message::Failed(error))) => return Ok(Taken::Failed(error)),
                Event::Told(None) => return Ok(Taken::Silence),
            }
        }
    }

    /// Waits, and gives whether a Ctrl-C has ended that.
    pub(crate) fn pause(&mut self, length: Duration) -> Result<bool> {
        let mut interrupt = match self.interrupt.take() {
            Some(interrupt) => interrupt,
            None => self.host.interrupts()?,
        };
        let is_over = self.host.clone().block_on(async {
            tokio::select! {
                biased;
                () = interrupt.recv() => true,
                () = tokio::time::sleep(length) => false,
            }
        });
        self.interrupt = Some(interrupt);
        Ok(is_over)
    }

    /// Forgets a Ctrl-C that came while no statement ran.
    pub(crate) fn forget_interrupt(&mut self) {
        // A new listener knows nothing of signals before it.
        self.interrupt = None;
    }
}

/// Writes an error on one line, and below it the line of the statement that it is about, with a caret.
pub(crate) fn report_error(error: &CliError) {
    tell(format_args!("error: {error}"));
    error.excerpt().into_iter().flat_map(Excerpt::lines).for_each(tell);
}

/// The task of one statement.
async fn run(connection: Connection, sql: String, report: Arc<StatementReport>, sender: mpsc::Sender<Message>) {
    let end = match stream(&connection, &sql, report, &sender).await {
        Ok(()) => Message::Done,
        Err(error) => Message::Failed(error),
    };
    // The receiver is gone where the user has cancelled.
    let _ = sender.send(end).await;
}

async fn stream(
    connection: &Connection,
    sql: &str,
    report: Arc<StatementReport>,
    sender: &mpsc::Sender<Message>,
) -> Result<(), SqlError> {
    let Execution { schema, mut stream, plan, counts, .. } = connection.execute_with(sql, report.clone()).await?;
    let how_far = Box::new(move || Execution::progress_of(plan.as_ref(), &report));
    if sender.send(Message::Started { schema, how_far, counts }).await.is_err() {
        return Err(SqlError::Cancelled);
    }
    while let Some(batch) = stream.next().await {
        if sender.send(Message::Batch(batch?)).await.is_err() {
            return Err(SqlError::Cancelled);
        }
    }
    Ok(())
}
