//! Results over HTTP: their formats, which a request names or accepts, and their bytes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use axum::body::Bytes;
use warpcube_door::writers::{self, ResultWriter, Separation};

use crate::error::Refusal;
use crate::statements::Encode;

/// A format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Ndjson,
    Csv,
    Arrow,
}

impl Format {
    /// Each with its name and its media type; the first one where a request accepts anything.
    const ALL: [(Format, &'static str, &'static str); 4] = [
        (Format::Json, "json", "application/json"),
        (Format::Ndjson, "ndjson", "application/x-ndjson"),
        (Format::Csv, "csv", "text/csv"),
        (Format::Arrow, "arrow", "application/vnd.apache.arrow.stream"),
    ];

    /// The format of a name.
    pub(crate) fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().find(|(_, known, _)| *known == name).map(|(format, ..)| *format)
    }

    /// Its media type.
    pub(crate) fn media_type(self) -> &'static str {
        Format::ALL[self as usize].2
    }

    /// The format that a header `Accept` wants most; of equals the one it names first.
    pub(crate) fn accepted(header: &str) -> Option<Format> {
        let mut best: Option<(Format, f32)> = None;
        for wanted in header.split(',') {
            let mut parts = wanted.split(';').map(str::trim);
            let range = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
            let matches = |media_type: &str| match range.strip_suffix('*') {
                Some(front) => front == "*/" || front.ends_with('/') && media_type.starts_with(front),
                None => range == media_type,
            };
            let found = Format::ALL.iter().find(|(.., media_type)| matches(media_type));
            if let Some((format, ..)) = found.filter(|_| weight > best.map_or(0.0, |(_, best)| best)) {
                best = Some((*format, weight));
            }
        }
        best.map(|(format, _)| format)
    }
}

/// Bytes that a writer has written and that are not taken yet.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Option<Bytes> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (!bytes.is_empty()).then(|| Bytes::from(bytes))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What makes bytes of the rows with these columns.
pub(crate) fn encode(format: Format, schema: &SchemaRef) -> Result<Encode<Bytes>, Refusal> {
    let failed = |error: io::Error| Refusal::request(format!("the result cannot be written: {error}"));
    let written = Written::default();
    let sink = Box::new(written.clone());
    let mut writer: Box<dyn ResultWriter> = match format {
        Format::Json => writers::json(sink, schema).map_err(failed)?,
        Format::Ndjson => writers::ndjson(sink, schema).map_err(failed)?,
        Format::Csv => writers::separated(sink, schema.clone(), Separation::csv()),
        Format::Arrow => writers::arrow_stream(sink, schema).map_err(failed)?,
    };
    Ok(Box::new(move |rows: Option<RecordBatch>| {
        match rows {
            Some(rows) => writer.write(&rows).map_err(failed)?,
            None => writer.finish().map_err(failed)?,
        }
        Ok(written.take())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_client_wants_most() {
        assert_eq!(Format::accepted("*/*"), Some(Format::Json));
        assert_eq!(Format::accepted("text/*, application/json;q=0.5"), Some(Format::Csv));
        assert_eq!(Format::accepted("text/csv;q=0.2, application/x-ndjson; q=0.9"), Some(Format::Ndjson));
        assert_eq!(Format::accepted("Application/vnd.apache.arrow.stream"), Some(Format::Arrow));
        assert_eq!(Format::accepted("text/html, */*;q=0.1"), Some(Format::Json));
        assert_eq!(Format::accepted("text/html"), None);
        assert_eq!(Format::accepted("text/csv;q=0"), None);
        assert_eq!(Format::accepted(""), None);
        for (format, name, media_type) in Format::ALL {
            assert_eq!((Format::named(name), format.media_type()), (Some(format), media_type));
        }
    }
}
