//! Results in the formats users ask for, to the standard output or a file.
//!
//! A file is written under a hidden name beside its place and takes the place only when it is whole, so a failed or
//! cancelled statement leaves what was there before ([`warpcube_sql::outputs`]). Text on its way to a terminal has its
//! control characters escaped, in formats for machines too.

mod table;
mod writers;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tokio::task::{JoinError, JoinHandle};
use warpcube_sql::outputs::{self, Destination, Hidden};
use warpcube_sql::{Format, SqlError};

use crate::console::STDOUT;
use crate::error::{CliError, Result};
use crate::escape::Escaping;
use crate::host::Host;
use table::TableWriter;

/// Takes a result, batch by batch.
pub(crate) trait ResultWriter: Send {
    /// Writes some rows.
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;

    /// Writes what is left, such as a table or a footer.
    fn finish(&mut self) -> io::Result<()>;
}

/// Where results go.
#[derive(Debug)]
pub(crate) enum Target {
    /// The standard output.
    Stdout,
    /// A file; taken when a result was written to it, since one file holds one result.
    File {
        /// Its path.
        path: PathBuf,
        /// Whether a result is in it.
        taken: bool,
    },
}

impl Target {
    /// `--output`, or the standard output.
    pub(crate) fn new(output: Option<PathBuf>) -> Target {
        match output {
            Some(path) => Target::File { path, taken: false },
            None => Target::Stdout,
        }
    }

    fn name(&self) -> String {
        match self {
            Target::Stdout => STDOUT.into(),
            Target::File { path, .. } => path.display().to_string(),
        }
    }

    /// The format where the settings leave it open.
    pub(crate) fn resolve(&self, format: Format) -> Result<Format> {
        let Target::File { path, .. } = self else {
            return Ok(if format == Format::Auto { Format::Table } else { format });
        };
        if format != Format::Auto {
            return Ok(format);
        }
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("txt") | None => Ok(Format::Table),
            Some("csv") => Ok(Format::Csv),
            Some("tsv") => Ok(Format::Tsv),
            Some("json") => Ok(Format::Json),
            Some("ndjson" | "jsonl") => Ok(Format::Ndjson),
            Some("parquet") => Ok(Format::Parquet),
            Some("arrow" | "ipc" | "feather") => Ok(Format::Arrow),
            Some(other) => Err(CliError::Output {
                target: self.name(),
                reason: format!("the extension '.{other}' names no format; give one with --format"),
            }),
        }
    }
}

/// One result on its way out.
pub(crate) struct Output {
    writer: Box<dyn ResultWriter>,
    target: String,
    /// The hidden file and the place it takes when it is whole.
    place: Option<(Hidden, PathBuf)>,
    /// True if the rest of the result is not wanted.
    stop: Arc<AtomicBool>,
}

/// A piece of a result that another thread writes. Formatting may take long, and a pipe may never get a reader; the
/// caller can stop waiting.
pub(crate) struct Writing {
    task: JoinHandle<Result<Option<Output>>>,
    stop: Arc<AtomicBool>,
}

/// Longest wait for a stopped thread, which removes its file.
const STOP_WAIT: Duration = Duration::from_millis(50);

impl Writing {
    /// Waits for the output; it is gone when its end was written. May be dropped and asked again.
    pub(crate) async fn done(&mut self) -> Result<Option<Output>> {
        let gone = |error: JoinError| CliError::from(SqlError::Internal(error.to_string()));
        (&mut self.task).await.map_err(gone)?
    }

    /// Lets the thread end at its next byte.
    pub(crate) async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = tokio::time::timeout(STOP_WAIT, self.task).await;
    }
}

/// A writer that refuses bytes once the result is not wanted.
struct Stoppable<W> {
    inner: W,
    stop: Arc<AtomicBool>,
}

impl<W: Write> Write for Stoppable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::Error::other("stopped")),
            false => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Output {
    /// Opens the output for one result. `max_rows` caps tables on a terminal.
    pub(crate) fn open(target: &mut Target, format: Format, schema: SchemaRef, max_rows: usize) -> Result<Output> {
        let format = target.resolve(format)?;
        let name = target.name();
        let failed = |reason: String| CliError::Output { target: name.clone(), reason };
        let binary = matches!(format, Format::Parquet | Format::Arrow);
        let stop = Arc::new(AtomicBool::new(false));
        let (inner, place, terminal): (Box<dyn Write + Send>, _, _) = match target {
            Target::Stdout => {
                let stdout = io::stdout();
                let terminal = stdout.is_terminal();
                (Box::new(stdout), None, terminal)
            }
            Target::File { taken: true, .. } => {
                return Err(failed("it holds a result already; --output takes the result of one statement".into()));
            }
            Target::File { path, taken } => {
                let destination = Destination::of(path).and_then(create).map_err(|error| failed(error.to_string()))?;
                *taken = true;
                destination
            }
        };
        if binary && terminal {
            return Err(failed(format!("{format} is not for terminals; use --output FILE")));
        }
        let is_file = place.is_some();
        let bytes = BufWriter::new(Stoppable { inner, stop: stop.clone() });
        // A table escapes its cells one by one, which then have their widths.
        let sink: Box<dyn Write + Send> = match terminal && !matches!(format, Format::Auto | Format::Table) {
            true => Box::new(Escaping::new(bytes)),
            false => Box::new(bytes),
        };
        let writer: io::Result<Box<dyn ResultWriter>> = match format {
            Format::Auto | Format::Table => Ok(Box::new(TableWriter::new(sink, schema, terminal, max_rows))),
            Format::Csv => Ok(writers::separated(sink, schema, b',')),
            Format::Tsv => Ok(writers::separated(sink, schema, b'\t')),
            Format::Json => writers::json(sink, &schema),
            Format::Ndjson => writers::ndjson(sink, &schema),
            Format::Parquet => writers::parquet(sink, schema),
            Format::Arrow if is_file => writers::arrow_file(sink, &schema),
            Format::Arrow => writers::arrow_stream(sink, &schema),
        };
        match writer {
            Ok(writer) => Ok(Output { writer, target: name, place, stop }),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Writes some rows.
    pub(crate) fn write(self, host: &Host, batch: RecordBatch) -> Writing {
        self.aside(host, move |mut output| {
            output.writer.write(&batch).map_err(|error| output.error(&error))?;
            Ok(Some(output))
        })
    }

    /// Writes the end and puts a file in its place.
    pub(crate) fn finish(self, host: &Host) -> Writing {
        self.aside(host, |output| output.end().map(|()| None))
    }

    fn aside(self, host: &Host, step: impl FnOnce(Output) -> Result<Option<Output>> + Send + 'static) -> Writing {
        let stop = self.stop.clone();
        Writing { task: host.spawn_blocking(move || step(self)), stop }
    }

    fn end(mut self) -> Result<()> {
        self.writer.finish().map_err(|error| self.error(&error))?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(self.error(&io::Error::other("stopped")));
        }
        match self.place.take() {
            Some((hidden, place)) => hidden.take(&place).map_err(|error| self.error(&error)),
            None => Ok(()),
        }
    }

    fn error(&self, error: &io::Error) -> CliError {
        CliError::writing(&self.target, error)
    }
}

/// What to write to, the place it is to take if it is a plain file, and whether it is a terminal.
type Created = (Box<dyn Write + Send>, Option<(Hidden, PathBuf)>, bool);

fn create(destination: Destination) -> io::Result<Created> {
    match destination {
        Destination::Special(path) if path.metadata()?.file_type().is_fifo() => {
            Ok((Box::new(Pipe { path, file: None }), None, false))
        }
        Destination::Special(path) => {
            let file = outputs::open_special(&path)?;
            let terminal = file.is_terminal();
            Ok((Box::new(file), None, terminal))
        }
        Destination::Folder(_) => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")),
        Destination::File(place) => {
            let (hidden, file) = Hidden::file(&place)?;
            Ok((Box::new(file), Some((hidden, place)), false))
        }
    }
}

/// A pipe, opened at the first write on the writing thread: opening waits for a reader, and the caller can stop
/// waiting.
struct Pipe {
    path: PathBuf,
    file: Option<File>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(outputs::open_special(&self.path)?),
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
