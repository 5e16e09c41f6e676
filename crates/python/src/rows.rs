//! The rows of a statement that runs.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use futures::StreamExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;
use warpcube::{Connection, Execution, GivenTables, Progress, Registration, SqlError, StatementReport, Threads};

use crate::errors::raised;
use crate::runtime::{TICK, done_within, ended, threads};
use crate::values::Converter;

/// How long a statement whose time is over, or that was killed, has to say so itself.
const GRACE: Duration = Duration::from_millis(200);
/// Batches that may wait to be read.
const QUEUE: usize = 4;

/// What a running statement sends.
enum Message {
    Columns { schema: SchemaRef, counts: bool, how_far: HowFar },
    Rows(RecordBatch),
    Failed(SqlError),
}

/// Asks a running statement how far it is.
type HowFar = Box<dyn Fn() -> Progress + Send>;

/// Rows, which are read once: as an Arrow stream, or as tuples. Dropping them cancels the statement.
#[pyclass(frozen, module = "warpcube._native")]
pub(crate) struct Rows {
    sql: String,
    source: Arc<Mutex<Source>>,
    /// Called with how far the statement is while it is waited for.
    progress: Option<Py<PyAny>>,
}

struct Source {
    /// None while the statement has not told its columns.
    schema: Option<SchemaRef>,
    /// Whether the rows tell how many were written.
    counts: bool,
    /// Batches that are there, last first.
    ready: Vec<RecordBatch>,
    running: Option<Running>,
    how_far: Option<HowFar>,
    error: Option<SqlError>,
}

/// The end of a running statement that reads.
struct Running {
    messages: Receiver<Message>,
    statement: Registration,
    /// When it was noticed that another statement has ended it by KILL.
    killed: Option<Instant>,
    task: JoinHandle<()>,
    /// When it began, and how long it may take.
    time: (Instant, Option<Duration>),
    _threads: Arc<Threads>,
}

impl Running {
    /// The error of a statement that takes more time than it has, or was killed, and does not end by itself.
    fn late(&mut self) -> Option<SqlError> {
        let (began, limit) = self.time;
        let is_late = |since: Instant, allowed: Duration| since.elapsed() > allowed + GRACE;
        let error = match limit.filter(|limit| is_late(began, *limit)) {
            Some(limit) => SqlError::TimedOut { milliseconds: limit.as_millis() },
            None if self.statement.is_stopped() => {
                let noticed = *self.killed.get_or_insert_with(Instant::now);
                is_late(noticed, Duration::ZERO).then_some(SqlError::Cancelled)?
            }
            None => return None,
        };
        Some(self.statement.failed(error))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.statement.report().cancel().cancel();
        self.task.abort();
    }
}

impl Source {
    fn take(&mut self, message: Option<Message>) {
        match message {
            Some(Message::Columns { schema, counts, how_far }) => {
                (self.schema, self.counts, self.how_far) = (Some(schema), counts, Some(how_far));
            }
            Some(Message::Rows(batch)) => self.ready.push(batch),
            Some(Message::Failed(error)) => {
                self.error = Some(error);
                self.running = None;
            }
            None => self.running = None,
        }
    }

    /// Waits a while for the statement's next message; false once there is none to wait for.
    fn wait(&mut self) -> bool {
        let Some(running) = &mut self.running else { return false };
        let message = done_within(pin!(running.messages.recv()), TICK);
        match (message, running.late()) {
            (Some(message), _) => self.take(message),
            (None, Some(error)) => self.take(Some(Message::Failed(error))),
            (None, None) => {}
        }
        true
    }
}

impl Rows {
    /// Runs a statement.
    pub(crate) fn start(
        connection: &Connection,
        sql: &str,
        text: &str,
        given: Option<Arc<GivenTables>>,
    ) -> PyResult<Rows> {
        let (sender, messages) = channel(QUEUE);
        let statement = connection.database().register_statement(None, text, &StatementReport::new());
        let (connection, asked, registered) = (connection.clone(), sql.to_string(), statement.clone());
        let time = (Instant::now(), connection.settings().timeout);
        let threads = threads()?;
        let task = threads.spawn(async move {
            let execution = connection.execute_registered(registered, &asked, given.as_ref()).await;
            let mut stream = match execution {
                Ok(execution) => {
                    let Execution { schema, counts, plan, report, .. } = &execution;
                    let (plan, report) = (plan.clone(), report.clone());
                    let how_far: HowFar = Box::new(move || Execution::progress_of(plan.as_ref(), &report));
                    let columns = Message::Columns { schema: schema.clone(), counts: *counts, how_far };
                    if sender.send(columns).await.is_err() {
                        return;
                    }
                    execution.stream
                }
                Err(error) => return drop(sender.send(Message::Failed(error)).await),
            };
            while let Some(batch) = stream.next().await {
                let message = match batch {
                    Ok(batch) => Message::Rows(batch),
                    Err(error) => Message::Failed(SqlError::from(error)),
                };
                if sender.send(message).await.is_err() {
                    return;
                }
            }
        });
        let task = task.ok_or_else(ended)?;
        let running = Some(Running { messages, statement, killed: None, task, time, _threads: threads });
        Ok(Rows::from(
            sql.to_string(),
            Source { schema: None, counts: false, ready: Vec::new(), running, how_far: None, error: None },
        ))
    }

    /// Rows that are there.
    pub(crate) fn of(sql: &str, schema: SchemaRef, mut batches: Vec<RecordBatch>) -> Rows {
        batches.reverse();
        Rows::from(
            sql.to_string(),
            Source { schema: Some(schema), counts: false, ready: batches, running: None, how_far: None, error: None },
        )
    }

    fn from(sql: String, source: Source) -> Rows {
        Rows { sql, source: Arc::new(Mutex::new(source)), progress: None }
    }

    /// Has `progress` called with how far the statement is while it is waited for.
    pub(crate) fn with_progress(self, progress: Option<Py<PyAny>>) -> Rows {
        Rows { progress, ..self }
    }

    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        let Some(progress) = &self.progress else { return Ok(()) };
        let Some(Progress { done, total, loading }) = locked(&self.source).how_far.as_ref().map(|how_far| how_far())
        else {
            return Ok(());
        };
        progress.call1(py, (done, total, loading)).map(drop)
    }

    /// Waits until `is_there` holds or the statement has ended; an exception of Python, as after Ctrl-C, cancels it.
    fn until(&self, py: Python<'_>, is_there: fn(&Source) -> bool) -> PyResult<MutexGuard<'_, Source>> {
        loop {
            let waited = py.detach(|| {
                let mut source = locked(&self.source);
                is_there(&source) || !source.wait()
            });
            if waited {
                // Another thread may hold the rows meanwhile, but never while it waits for the interpreter's lock.
                let source = locked(&self.source);
                // A statement that has failed has failed for whoever asks again.
                return match source.error.clone().filter(|_| source.ready.is_empty()) {
                    Some(error) => Err(raised(py, &error, &self.sql)),
                    None => Ok(source),
                };
            }
            let looked = py.check_signals().and_then(|()| self.tell(py));
            looked.inspect_err(|_| locked(&self.source).take(Some(Message::Failed(SqlError::Cancelled))))?;
        }
    }

    /// The columns.
    pub(crate) fn schema(&self, py: Python<'_>) -> PyResult<SchemaRef> {
        let source = self.until(py, |source| source.schema.is_some())?;
        source.schema.clone().ok_or_else(|| PyValueError::new_err("the statement has ended without columns"))
    }

    /// Whether the rows, of which the columns are known, tell how many were written.
    pub(crate) fn counts(&self) -> bool {
        locked(&self.source).counts
    }

    /// The next batch that has rows.
    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        Ok(self.until(py, |source| !source.ready.is_empty())?.ready.pop())
    }

    /// The next `limit` rows, or all that there are.
    pub(crate) fn taken(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<RecordBatch>> {
        let (mut batches, mut left) = (Vec::new(), limit);
        while left > 0
            && let Some(batch) = self.next_batch(py)?
        {
            if batch.num_rows() > left {
                locked(&self.source).ready.push(batch.slice(left, batch.num_rows() - left));
            }
            let batch = batch.slice(0, batch.num_rows().min(left));
            left -= batch.num_rows();
            batches.push(batch);
        }
        Ok(batches)
    }
}

#[pymethods]
impl Rows {
    /// The rows as an Arrow stream, which reads them as they come.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer that asks for other types casts what it gets, as the interface has it.
        drop(requested_schema);
        let schema = self.schema(py)?;
        let main = py.import("threading")?.call_method0("main_thread")?.getattr("ident")?;
        let is_main = py.import("threading")?.call_method0("get_ident")?.eq(main)?;
        let main = is_main.then(|| std::thread::current().id());
        let stream = Stream { schema, source: self.source.clone(), main };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(stream)), c"arrow_array_stream")
    }

    /// Reads up to `limit` rows, and keeps them for the stream, so that nothing waits there; all without a limit.
    #[pyo3(signature = (limit = None))]
    fn read(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<Rows> {
        let batches = self.taken(py, limit.unwrap_or(usize::MAX))?;
        Ok(Rows::of(&self.sql, self.schema(py)?, batches))
    }

    /// The rows that are left as a table of text, with lines of at most `width` characters.
    fn text(&self, py: Python<'_>, width: Option<usize>) -> PyResult<String> {
        let batches = self.taken(py, usize::MAX)?;
        let text = warpcube::table_text(&self.schema(py)?, batches, "NULL", width);
        text.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The next `limit` rows as tuples; all without a limit.
    #[pyo3(signature = (limit = None))]
    fn fetch<'py>(&self, py: Python<'py>, limit: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let schema = self.schema(py)?;
        let converter = Converter::new(py)?;
        let rows = PyList::empty(py);
        for batch in self.taken(py, limit.unwrap_or(usize::MAX))? {
            converter.append(py, &schema, &batch, &rows)?;
        }
        Ok(rows)
    }
}

/// The rows as Arrow's readers take them.
struct Stream {
    schema: SchemaRef,
    source: Arc<Mutex<Source>>,
    /// The main thread, if it made the stream: Python's exceptions of signals are raised there alone.
    main: Option<ThreadId>,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_main = self.main == Some(std::thread::current().id());
        loop {
            let mut source = locked(&self.source);
            if let Some(batch) = source.ready.pop() {
                return Some(Ok(batch));
            }
            if let Some(error) = source.error.clone() {
                return Some(Err(ArrowError::ExternalError(Box::new(error))));
            }
            if !source.wait() && source.error.is_none() {
                return None;
            }
            drop(source);
            // The main thread may wait for the interpreter's lock, as no other waits for the main thread with it.
            if is_main && Python::attach(|py| py.check_signals()).is_err() {
                locked(&self.source).take(Some(Message::Failed(SqlError::Cancelled)));
                return Some(Err(ArrowError::ExternalError(Box::new(SqlError::Cancelled))));
            }
        }
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

fn locked(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}
