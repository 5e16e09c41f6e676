//! Statements of requests: they wait for their turn, run on the threads of statements, and end with their client.
//!
//! A statement's task makes pieces of its result ready and puts them into a queue that has few places, so that a slow
//! client slows its statement down, and memory stays bounded. The other end of the queue is a [`Rows`] on the threads
//! of requests. Dropping it cancels the statement and ends its turn at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use warpcube_door::{Crew, Threads};
use warpcube_sql::{
    Connection, Database, GivenTables, OwnStatement, ReadOnly, Registration, SqlError, StatementKind, StatementReport,
};

use crate::clients::Client;
use crate::error::Refusal;
use crate::turns::{NoTurn, Turn, Turns};

/// Pieces of a result that may wait for the client.
const QUEUE: usize = 4;
/// Rows of a piece at most: what the device gives may be one batch of many millions.
const ROWS: usize = 1 << 16;
/// The time for which a client may read nothing.
const STALL: Duration = Duration::from_secs(300);
/// How long idle threads have to end with the server.
const IDLE_END: Duration = Duration::from_millis(200);
/// How long a statement whose time is over, or that was killed, has to say so itself: its threads may all be busy.
const GRACE: Duration = Duration::from_millis(200);

/// Makes pieces of rows; of none, at their end, the last one.
pub(crate) type Encode<T> = Box<dyn FnMut(Option<RecordBatch>) -> Result<Option<T>, Refusal> + Send>;

/// A statement that a client asks for.
pub(crate) struct Statement {
    pub(crate) client: Arc<Client>,
    /// Its text, as lists and logs show it.
    pub(crate) text: String,
    /// Its text with values in place of parameters, where it has any.
    bound: Option<String>,
    /// Tables that it finds beside those of the catalog.
    given: Option<Arc<GivenTables>>,
}

impl Statement {
    /// A statement without parameters.
    pub(crate) fn of(client: Arc<Client>, text: String) -> Statement {
        Statement { client, text, bound: None, given: None }
    }

    /// The same with values in place of its parameters.
    pub(crate) fn bound_to(self, bound: Option<String>) -> Statement {
        Statement { bound, ..self }
    }

    /// The same among tables that are given to it.
    pub(crate) fn among(self, given: Arc<GivenTables>) -> Statement {
        Statement { given: Some(given), ..self }
    }

    fn sql(self) -> String {
        self.bound.unwrap_or(self.text)
    }
}

/// Statements of one database.
pub(crate) struct Statements {
    database: Database,
    crew: Crew,
    turns: Arc<Turns>,
}

impl Statements {
    /// Statements of a database, which run on the threads of a crew when their turn comes.
    pub(crate) fn new(database: Database, crew: Crew, turns: Turns) -> Statements {
        Statements { database, crew, turns: Arc::new(turns) }
    }

    /// The database.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Refuses all statements from now on, those that wait too.
    pub(crate) fn close(&self) {
        self.turns.close();
    }

    /// Ends the threads of statements. Called outside of a runtime.
    pub(crate) fn end(&self) {
        self.crew.end(IDLE_END);
    }

    /// Registers a statement, which is started then.
    pub(crate) fn register(&self, statement: &Statement) -> Registration {
        let session = Some(statement.client.name.clone());
        self.database.register_statement(session, &statement.text, &StatementReport::new())
    }

    /// Waits for a statement's turn.
    async fn turn(&self, client: &Client, statement: &Registration) -> Result<Turn, Refusal> {
        let refused = |reason: NoTurn| {
            let refusal = match reason {
                NoTurn::LineFull => Refusal::busy("too many statements of this token wait for their turn"),
                NoTurn::Closed => server_ends(),
            };
            statement.end(Some(refusal.code()));
            refusal
        };
        tokio::select! {
            turn = self.turns.wait(client.number) => turn.map_err(refused),
            () = statement.report().cancel().cancelled() => {
                Err(Refusal::of_statement(statement.failed(SqlError::Cancelled), ""))
            }
        }
    }

    /// Refuses a client that may change nothing; `what` names what it asks for.
    pub(crate) fn check_changes(&self, client: &Client, what: &str) -> Result<(), Refusal> {
        let connection = client.connect(&self.database).map_err(|error| Refusal::of_statement(error, ""))?;
        match connection.settings().read_only {
            ReadOnly::All => Err(Refusal::of_statement(SqlError::ReadOnly(what.into()), "")),
            ReadOnly::Off | ReadOnly::Files => Ok(()),
        }
    }

    /// A connection for a statement of a client.
    fn connect(&self, client: &Client, statement: &Registration) -> Result<Connection, Refusal> {
        client.connect(&self.database).map_err(|error| Refusal::of_statement(statement.failed(error), ""))
    }

    /// The columns of a query, which is planned and does not run; none of any other statement.
    ///
    /// # Errors
    /// Those of [`Statements::start`], and of the query.
    pub(crate) async fn plan(&self, statement: Statement) -> Result<Option<SchemaRef>, Refusal> {
        let registered = self.register(&statement);
        let _turn = self.turn(&statement.client, &registered).await?;
        let connection = self.connect(&statement.client, &registered)?;
        let given = statement.given.clone();
        let sql = statement.sql();
        let threads = self.crew.threads();
        let planned = threads.as_ref().and_then(|threads| {
            threads.spawn(async move {
                if connection.kind_of(&sql) == StatementKind::Command {
                    registered.forget();
                    return Ok(None);
                }
                let columns = connection.columns(registered, &sql, given.as_ref()).await;
                columns.map(Some).map_err(|error| Refusal::of_statement(error, &sql))
            })
        });
        let mut planned = Aborted(planned.ok_or_else(server_ends)?);
        (&mut planned.0)
            .await
            .unwrap_or_else(|error| Err(Refusal::of_statement(SqlError::Internal(error.to_string()), "")))
    }

    /// Registers a statement and starts it, as [`Statements::start_registered`].
    pub(crate) async fn start<T: Send + 'static>(
        &self,
        statement: Statement,
        begin: impl FnOnce(&SchemaRef, bool) -> Result<Encode<T>, Refusal> + Send + 'static,
    ) -> Result<Rows<T>, Refusal> {
        let registered = self.register(&statement);
        self.start_registered(statement, registered, begin).await
    }

    /// Waits for its turn and starts a statement on a connection of its own; `begin` is given its columns, and whether
    /// its rows tell how many were written, and gives what makes pieces of its rows.
    ///
    /// # Errors
    /// The server ends, or too many wait. Errors of the statement come with its rows.
    pub(crate) async fn start_registered<T: Send + 'static>(
        &self,
        statement: Statement,
        registered: Registration,
        begin: impl FnOnce(&SchemaRef, bool) -> Result<Encode<T>, Refusal> + Send + 'static,
    ) -> Result<Rows<T>, Refusal> {
        // What tells of statements that run, and ends them, does not wait for those.
        let (client, given) = (statement.client.clone(), statement.given.clone());
        let sql = statement.sql();
        let is_about_statements =
            matches!(OwnStatement::parse(&sql), Ok(Some(OwnStatement::ShowQueries | OwnStatement::Kill { .. })));
        let turn = match is_about_statements {
            true => None,
            false => Some(self.turn(&client, &registered).await?),
        };
        let threads = self.crew.threads().ok_or_else(server_ends)?;
        let connection = self.connect(&client, &registered)?;
        let limit = connection.settings().timeout;
        let (sender, messages) = channel(QUEUE);
        let running = registered.clone();
        let task = threads.spawn(async move {
            let refused = |refusal: Refusal| {
                registered.end(Some(refusal.code()));
                refusal
            };
            let work = async {
                // What a statement has changed is not undone by an error.
                let rows_max = client.rows_max.filter(|_| connection.kind_of(&sql) == StatementKind::Query);
                let execution = connection.execute_registered(registered.clone(), &sql, given.as_ref()).await;
                let execution = execution.map_err(|error| Refusal::of_statement(error, &sql))?;
                let mut encode = begin(&execution.schema, execution.counts).map_err(refused)?;
                let (mut rows, mut count) = (execution.stream, 0);
                while let Some(batch) = rows.next().await {
                    let batch = batch.map_err(|error| Refusal::of_statement(SqlError::from(error), &sql))?;
                    count += batch.num_rows() as u64;
                    if let Some(most) = rows_max.filter(|most| count > *most) {
                        return Err(refused(Refusal::too_many_rows(most, &client.name)));
                    }
                    for start in (0..batch.num_rows()).step_by(ROWS) {
                        let rows = batch.slice(start, ROWS.min(batch.num_rows() - start));
                        send(&sender, encode(Some(rows)).map_err(refused)?).await.map_err(refused)?;
                    }
                }
                send(&sender, encode(None)?).await
            };
            let end = work.await.map_or_else(Message::Failed, |()| Message::Done);
            // Nobody takes it where the client went away.
            let _ = sender.send(end).await;
        });
        let task = task.ok_or_else(server_ends)?;
        let began = Instant::now();
        let running = Running { statement: running, task, began, limit, _threads: threads, _turn: turn };
        Ok(Rows { messages, running: Some(running) })
    }
}

fn server_ends() -> Refusal {
    Refusal::busy("the server ends")
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
        let failed = match message {
            Some(Message::Piece(piece)) => return Some(Ok(piece)),
            Some(Message::Done) => None,
            Some(Message::Failed(refusal)) => Some(refusal),
            None => {
                let error = SqlError::Internal("the statement's task ended early".into());
                Some(Refusal::of_statement(running.statement.failed(error), ""))
            }
        };
        self.running = None;
        failed.map(Err)
    }
}

/// A statement that has its turn.
struct Running {
    statement: Registration,
    task: JoinHandle<()>,
    began: Instant,
    limit: Option<Duration>,
    _threads: Arc<Threads>,
    _turn: Option<Turn>,
}

impl Running {
    /// Waits until the statement has taken more time than it had, or was killed, and has not said so; gives the error.
    async fn late(&self) -> SqlError {
        let late = async {
            let Some(limit) = self.limit else { return std::future::pending().await };
            tokio::time::sleep_until((self.began + limit + GRACE).into()).await;
            SqlError::TimedOut { milliseconds: limit.as_millis() }
        };
        let killed = async {
            self.statement.report().cancel().cancelled().await;
            if !self.statement.is_stopped() {
                return std::future::pending().await;
            }
            tokio::time::sleep(GRACE).await;
            SqlError::Cancelled
        };
        let error = tokio::select! {
            error = late => error,
            error = killed => error,
        };
        self.statement.failed(error)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Changes that take their places already are not cut off.
        if self.statement.report().cancel().cancel() {
            self.task.abort();
            // The task may be in the midst of a batch. A statement that has ended stays as it has.
            self.statement.failed(SqlError::Cancelled);
        }
    }
}
