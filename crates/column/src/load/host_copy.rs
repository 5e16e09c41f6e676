//! Host copies: encoded columns on the host after they left the device, which return without decoding.
//!
//! A copy belongs to the version of its table. It stays after the return of its column, so that the column can leave
//! again without a transfer.

use std::sync::Arc;

use warpcube_gpu::Device;

use super::staging::{Target, download, upload_column};
use crate::device::ResidentColumn;
use crate::error::{ColumnError, Result};
use crate::format::{EncodedChunk, Encoding};
use crate::units::ColumnFacts;

/// An encoded column on the host.
#[derive(Debug)]
pub(crate) struct HostColumn {
    index: usize,
    facts: Arc<ColumnFacts>,
    encoding: Encoding,
    chunks: Vec<EncodedChunk>,
}

impl HostColumn {
    /// Copies a column from the device.
    pub(crate) fn save(device: &Device, column: &ResidentColumn) -> Result<HostColumn> {
        let mut stream = device.stream()?;
        let chunks = column.segments().iter().map(|segment| download(&mut stream, segment)).collect::<Result<_>>()?;
        let (facts, encoding) = (column.facts().clone(), column.encoding().clone());
        Ok(HostColumn { index: column.index(), facts, encoding, chunks })
    }

    /// Copies the column to the device.
    pub(crate) fn restore(&self, target: Target<'_>) -> Result<ResidentColumn> {
        let chunks = self.chunks.iter().map(Ok::<_, ColumnError>);
        upload_column(target, self.index, self.facts.clone(), self.encoding.clone(), chunks)
    }

    /// Position in the table's schema.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Facts of the values.
    pub(crate) fn facts(&self) -> &Arc<ColumnFacts> {
        &self.facts
    }

    /// Encoding of the chunks.
    pub(crate) fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Average bits of a value, as on the device.
    pub(crate) fn bits_per_value(&self) -> f64 {
        let values: usize = self.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        8.0 * (values + self.lookup_bytes()) as f64 / self.facts.statistics.rows.max(1) as f64
    }

    /// Host memory of chunks and lookup. Facts and strings are on the host without a copy too.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes =
            |chunk: &EncodedChunk| chunk.bytes.len() + chunk.validity.as_ref().map_or(0, |words| 4 * words.len());
        (self.chunks.iter().map(bytes).sum::<usize>() + self.lookup_bytes()) as u64
    }

    /// Bytes of the distinct values of a dictionary column on the device.
    fn lookup_bytes(&self) -> usize {
        match &self.encoding {
            Encoding::Dictionary(dictionary) => dictionary.values().len().max(1) * self.facts.storage.width(),
            _ => 0,
        }
    }
}
