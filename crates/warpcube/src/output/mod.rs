//! Results in the formats users ask for, to the standard output or a file.
//!
//! A file is written under a hidden name beside its place and takes the place only when it is whole, so a failed or
//! cancelled statement leaves what was there before ([`warpcube_sql::outputs`]). Text on its way to a terminal has its
//! control characters escaped, in formats for machines too.

mod table;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use tokio::task::{JoinError, JoinHandle};
use warpcube_door::writers::{self, ResultWriter, Separation};
use warpcube_sql::outputs::{self, Destination, Hidden};

use warpcube_sql::{Expanded, FORMATS, Format, FormatInfo, Settings, SqlError};

use crate::console::STDOUT;
use crate::error::{CliError, Result};
use crate::escape::Escaping;
use crate::host::Host;
use table::{Style, TableWriter};

/// The terminal before which a person sits.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    /// Characters of a line.
    pub(crate) columns: usize,
    /// Lines of a result that it has room for.
    pub(crate) lines: usize,
    /// The result, if the screen is too small for it.
    pub(crate) page: Arc<OnceLock<String>>,
}

/// How a table looks.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Most rows on a terminal; 0 means all.
    rows_max: usize,
    /// Whether it has one line a value.
    expanded: Expanded,
    /// The text of NULL, if one is asked for.
    null: Option<String>,
    /// Whether values with separators have names above.
    has_header: bool,
    /// What stands between values, if not what the format has.
    separator: Option<u8>,
    /// The screen, if what is larger is kept for the pager.
    screen: Option<Screen>,
}

impl Layout {
    /// The settings' layout.
    pub(crate) fn of(settings: &Settings, is_expanded: bool, screen: Option<&Screen>) -> Layout {
        Layout {
            rows_max: settings.max_rows,
            expanded: if is_expanded { Expanded::On } else { settings.expanded },
            null: settings.null.clone(),
            has_header: settings.header,
            separator: settings.separator,
            screen: screen.cloned(),
        }
    }

    /// The text of NULL in tables.
    fn shown_null(&self) -> &str {
        self.null.as_deref().unwrap_or("NULL")
    }

    /// How values are separated by a format, whose own separator and NULL are these.
    fn separation(&self, separator: u8, null: &str, quotes: bool) -> Separation {
        Separation {
            separator: self.separator.unwrap_or(separator),
            null: self.null.clone().unwrap_or_else(|| null.into()),
            has_header: self.has_header,
            quotes,
        }
    }
}

/// Rows as the table that the shell shows of them, with lines of at most `width` characters.
///
/// # Errors
/// A value that has no text.
pub fn table_text(
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
    null: &str,
    width: Option<usize>,
) -> Result<String, ArrowError> {
    let null = Some(null.to_string());
    let layout = Layout { rows_max: 0, expanded: Expanded::Off, null, has_header: true, separator: None, screen: None };
    TableWriter::new(Box::new(io::sink()), schema.clone(), Style::Table, false, layout).text_of(batches, width)
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
    /// A file that takes several results as text, one behind the other.
    Several {
        /// Its path.
        path: PathBuf,
        /// The file.
        file: File,
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

    /// Opens the file for several results.
    ///
    /// # Errors
    /// The file cannot be written, or its extension is that of a format of one result.
    pub(crate) fn for_several(self) -> Result<Target> {
        let Target::File { path, .. } = self else { return Ok(self) };
        let error = |reason| CliError::Output { target: path.display().to_string(), reason };
        let open = || match Destination::of(&path)? {
            Destination::Special(path) => outputs::open_special(&path),
            _ => File::create(&path),
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        let of_one = |info: &&FormatInfo| is_binary(info.format) && info.extensions.contains(&extension.unwrap_or(""));
        if let Some(info) = FORMATS.iter().find(of_one) {
            return Err(error(format!("a file of {} holds one result, which \\once and \\g write", info.name)));
        }
        let file = open().map_err(|failed| error(failed.to_string()))?;
        Ok(Target::Several { path, file })
    }

    fn path(&self) -> Option<&PathBuf> {
        match self {
            Target::Stdout => None,
            Target::File { path, .. } | Target::Several { path, .. } => Some(path),
        }
    }

    fn name(&self) -> String {
        self.path().map_or_else(|| STDOUT.into(), |path| path.display().to_string())
    }

    /// The format where the settings leave it open.
    pub(crate) fn resolve(&self, format: Format) -> Result<Format> {
        let path = self.path();
        if format != Format::Auto {
            return Ok(format);
        }
        let extension = path.and_then(|path| path.extension());
        let Some(extension) = extension.map(|extension| extension.to_string_lossy().to_lowercase()) else {
            return Ok(Format::Table);
        };
        match FORMATS.iter().find(|info| info.extensions.contains(&extension.as_str())) {
            Some(info) => Ok(info.format),
            None if matches!(self, Target::Several { .. }) => Ok(Format::Table),
            None => Err(CliError::Output {
                target: self.name(),
                reason: format!("the extension '.{extension}' names no format; give one with --format or \\format"),
            }),
        }
    }
}

/// Whether a format is not text, and a file of it holds one result.
fn is_binary(format: Format) -> bool {
    matches!(format, Format::Parquet | Format::Arrow)
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
    /// Opens the output for one result.
    pub(crate) fn open(target: &mut Target, format: Format, schema: SchemaRef, layout: Layout) -> Result<Output> {
        let format = target.resolve(format)?;
        let name = target.name();
        let failed = |reason: String| CliError::Output { target: name.clone(), reason };
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
            Target::Several { .. } if is_binary(format) => {
                return Err(failed(format!("a file of {format} holds one result, which \\once and \\g write")));
            }
            Target::Several { file, .. } => {
                let terminal = file.is_terminal();
                let file = file.try_clone().map_err(|error| failed(error.to_string()))?;
                (Box::new(file), None, terminal)
            }
        };
        if is_binary(format) && terminal {
            return Err(failed(format!("{format} is not for terminals; use --output FILE")));
        }
        let is_file = place.is_some();
        let bytes = BufWriter::new(Stoppable { inner, stop: stop.clone() });
        // A table escapes its cells one by one, which then have their widths.
        let style = Style::of(format, &layout);
        let sink: Box<dyn Write + Send> = match terminal && style.is_none() {
            true => Box::new(Escaping::new(bytes)),
            false => Box::new(bytes),
        };
        let writer: io::Result<Box<dyn ResultWriter>> = match format {
            // These have a style.
            Format::Auto | Format::Table | Format::Box | Format::Line | Format::Markdown => {
                let style = style.unwrap_or(Style::Table);
                Ok(Box::new(TableWriter::new(sink, schema, style, terminal, layout)))
            }
            Format::Csv => Ok(writers::separated(sink, schema, layout.separation(b',', "", true))),
            Format::Tsv => Ok(writers::separated(sink, schema, layout.separation(b'\t', "", true))),
            Format::List => Ok(writers::separated(sink, schema, layout.separation(b'|', "NULL", false))),
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
