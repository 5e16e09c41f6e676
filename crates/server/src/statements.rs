//! Statements of requests: they wait for their turn, run on the threads of statements, and end with their client.
//!
//! A statement's task makes pieces of its result ready and puts them into a queue that has few places, so that a slow
//! client slows its statement down, and memory stays bounded. The other end of the queue is a [`Rows`] on the threads
//! of requests. Dropping it cancels the statement and frees its place at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tracing::info;
use warpcube_door::Crew;
use warpcube_sql::{Database, SqlError, StatementKind, StatementReport};

use crate::error::Refusal;
use crate::metrics::{Metrics, Outcome};

/// Pieces of a result that may wait for the client.
const QUEUE: usize = 4;
/// Rows of a piece at most: what the device gives may be one batch of many millions.
const ROWS: usize = 1 << 16;
/// Statements that may wait for their turn.
const WAITING_MAX: u64 = 4096;
/// The time for which a client may read nothing.
const STALL: Duration = Duration::from_secs(300);
/// How long idle threads have to end with the server.
const IDLE_END: Duration = Duration::from_millis(200);
/// How long a statement whose time is over has to say so itself: its threads may all be busy.
const TIMEOUT_GRACE: Duration = Duration::from_millis(200);

/// Makes pieces of rows; of none, at their end, the last one.
pub(crate) type Encode<T> = Box<dyn FnMut(Option<RecordBatch>) -> Result<Option<T>, Refusal> + Send>;

/// Statements of one database.
pub(crate) struct Statements {
    database: Database,
    crew: Arc<Crew>,
    /// The places of statements that run; waiting ones get them in their order.
    places: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Statements {
    /// Statements of a database, of which `most` run at once, on the threads of a crew.
    pub(crate) fn new(database: Database, crew: Crew, most: usize, metrics: Arc<Metrics>) -> Statements {
        Statements { database, crew: Arc::new(crew), places: Arc::new(Semaphore::new(most)), metrics }
    }

    /// The database.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Refuses all statements from now on, those that wait too.
    pub(crate) fn close(&self) {
        self.places.close();
    }

    /// Ends the threads of statements. Called outside of a runtime.
    pub(crate) fn end(&self) {
        self.crew.end(IDLE_END);
    }

    /// Waits for a place.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        if self.metrics.waiting() >= WAITING_MAX {
            return Err(Refusal::busy("too many statements wait for their turn"));
        }
        let _waiting = self.metrics.wait();
        self.places.clone().acquire_owned().await.map_err(|_| Refusal::busy("the server ends"))
    }

    /// The columns of a query, which is planned and does not run; none of any other statement.
    ///
    /// # Errors
    /// Those of [`Statements::start`], and of the query.
    pub(crate) async fn plan(&self, sql: String) -> Result<Option<SchemaRef>, Refusal> {
        let _place = self.place().await?;
        let connection = self.database.connect();
        let threads = self.crew.threads();
        let planned = threads.as_ref().and_then(|threads| {
            threads.spawn(async move {
                if connection.kind_of(&sql) == StatementKind::Command {
                    return Ok(None);
                }
                let execution = connection.execute(&sql).await;
                execution.map(|execution| Some(execution.schema)).map_err(|error| Refusal::of_statement(error, &sql))
            })
        });
        let mut planned = Aborted(planned.ok_or_else(|| Refusal::busy("the server ends"))?);
        (&mut planned.0)
            .await
            .unwrap_or_else(|error| Err(Refusal::of_statement(SqlError::Internal(error.to_string()), "")))
    }

    /// Waits for a place and starts a statement on a connection of its own; `begin` is given its columns, and whether
    /// its rows tell how many were written, and gives what makes pieces of its rows.
    ///
    /// # Errors
    /// The server ends, or too many wait. Errors of the statement come with its rows.
    pub(crate) async fn start<T: Send + 'static>(
        &self,
        sql: String,
        begin: impl FnOnce(&SchemaRef, bool) -> Result<Encode<T>, Refusal> + Send + 'static,
    ) -> Result<Rows<T>, Refusal> {
        let place = self.place().await?;
        let ended = || Refusal::busy("the server ends");
        let threads = self.crew.threads().ok_or_else(ended)?;
        let connection = self.database.connect();
        let limit = connection.settings().timeout;
        let (sender, messages) = channel(QUEUE);
        let report = StatementReport::new();
        let (reported, metrics, held) = (report.clone(), self.metrics.clone(), threads.clone());
        let task = threads.spawn(async move {
            // The threads stay while this runs on them.
            let _threads = held;
            let work = async {
                let execution = connection.execute_with(&sql, reported).await;
                let execution = execution.map_err(|error| Refusal::of_statement(error, &sql))?;
                let mut encode = begin(&execution.schema, execution.counts)?;
                let mut rows = execution.stream;
                while let Some(batch) = rows.next().await {
                    let batch = batch.map_err(|error| Refusal::of_statement(SqlError::from(error), &sql))?;
                    for start in (0..batch.num_rows()).step_by(ROWS) {
                        let rows = batch.slice(start, ROWS.min(batch.num_rows() - start));
                        metrics.add_rows(rows.num_rows());
                        send(&sender, encode(Some(rows))?).await?;
                    }
                }
                send(&sender, encode(None)?).await
            };
            let end = work.await.map_or_else(Message::Failed, |()| Message::Done);
            // Nobody takes it where the client went away.
            let _ = sender.send(end).await;
        });
        let task = task.ok_or_else(ended)?;
        self.metrics.begun();
        let running = Running {
            report,
            task,
            crew: self.crew.clone(),
            metrics: self.metrics.clone(),
            began: Instant::now(),
            limit,
            outcome: Outcome::Cancelled,
            _place: place,
        };
        Ok(Rows { messages, running: Some(running) })
    }
}

/// Puts a piece into the queue, once there is room.
async fn send<T>(sender: &Sender<Message<T>>, piece: Option<T>) -> Result<(), Refusal> {
    let Some(piece) = piece else { return Ok(()) };
    match tokio::time::timeout(STALL, sender.send(Message::Piece(piece))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Refusal::of_statement(SqlError::Cancelled, "")),
        Err(_) => Err(Refusal::request(format!("the client has read nothing for {} s", STALL.as_secs()))),
    }
}

/// A task that ends with its reader.
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a statement's task sends.
enum Message<T> {
    Piece(T),
    Failed(Refusal),
    Done,
}

/// The pieces of a result.
pub(crate) struct Rows<T> {
    messages: Receiver<Message<T>>,
    /// None once the statement has ended.
    running: Option<Running>,
}

impl<T> Rows<T> {
    /// The next piece; none at the end, which a failed statement has behind its error.
    pub(crate) async fn next(&mut self) -> Option<Result<T, Refusal>> {
        let running = self.running.as_mut()?;
        let message = tokio::select! {
            biased;
            message = self.messages.recv() => message,
            error = running.late() => Some(Message::Failed(Refusal::of_statement(error, ""))),
        };
        let (outcome, failed) = match message {
            Some(Message::Piece(piece)) => return Some(Ok(piece)),
            Some(Message::Done) => (Outcome::Done, None),
            Some(Message::Failed(refusal)) => (refusal.outcome, Some(refusal)),
            None => {
                let error = SqlError::Internal("the statement's task ended early".into());
                (Outcome::Failed, Some(Refusal::of_statement(error, "")))
            }
        };
        running.outcome = outcome;
        self.running = None;
        if let Some(refusal) = &failed {
            info!(code = refusal.code(), "a statement failed");
        }
        failed.map(Err)
    }
}

/// A statement that has its place.
struct Running {
    report: Arc<StatementReport>,
    task: JoinHandle<()>,
    crew: Arc<Crew>,
    metrics: Arc<Metrics>,
    began: Instant,
    limit: Option<Duration>,
    outcome: Outcome,
    _place: OwnedSemaphorePermit,
}

impl Running {
    /// Waits until the statement has taken more time than it had and has not said so; gives the error.
    async fn late(&self) -> SqlError {
        let Some(limit) = self.limit else { return std::future::pending().await };
        tokio::time::sleep_until((self.began + limit + TIMEOUT_GRACE).into()).await;
        SqlError::TimedOut { milliseconds: limit.as_millis() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Changes that take their places already are not cut off.
        if self.report.cancel().cancel() {
            self.task.abort();
            self.crew.give_up(self.task.abort_handle());
        }
        self.metrics.ended(self.outcome, self.began.elapsed());
    }
}
