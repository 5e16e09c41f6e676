//! Encoded copies on the host of columns that left the device; a restored column is not decoded again.
//!
//! A copy belongs to one version of a table, as its column did. It stays when the column is restored, so that the
//! column can leave again at no cost. Copies leave by least recent use, those of columns on the device first.

use std::sync::Arc;

use warpcube_gpu::{Device, DeviceBuffer};

use super::staging::{StagingPool, Uploader, place};
use crate::device::{Encoded, Lookup, ResidentColumn, Room};
use crate::error::Result;
use crate::format::Encoding;
use crate::units::ColumnFacts;

/// A column on the host, as it was on the device.
#[derive(Debug)]
pub(crate) struct HostColumn {
    index: usize,
    facts: Arc<ColumnFacts>,
    encoding: Encoding,
    segments: Vec<HostCopy>,
}

#[derive(Debug)]
struct HostCopy {
    values: Box<[u8]>,
    validity: Option<Box<[u8]>>,
    rows: u32,
}

impl HostColumn {
    /// Copies a column from the device.
    pub(crate) fn save(device: &Device, column: &ResidentColumn) -> Result<HostColumn> {
        let mut stream = device.stream()?;
        let mut copy = |buffer: &DeviceBuffer| -> Result<Box<[u8]>> {
            let mut bytes = vec![0; buffer.bytes()].into_boxed_slice();
            stream.download(buffer, 0, &mut bytes)?;
            Ok(bytes)
        };
        let mut segments = Vec::with_capacity(column.segments().len());
        for segment in column.segments() {
            let values = copy(segment.values())?;
            let validity = segment.validity().map(&mut copy).transpose()?;
            segments.push(HostCopy { values, validity, rows: segment.rows() });
        }
        let (facts, encoding) = (column.facts().clone(), column.encoding().clone());
        Ok(HostColumn { index: column.index(), facts, encoding, segments })
    }

    /// Copies the column back to the device.
    pub(crate) fn restore(&self, device: &Device, room: &dyn Room, staging: &StagingPool) -> Result<ResidentColumn> {
        let mut uploader = Uploader::new(device, staging)?;
        let mut segments = Vec::with_capacity(self.segments.len());
        for copy in &self.segments {
            segments.push(place(device, room, &mut uploader, &copy.values, copy.validity.as_deref(), copy.rows)?);
        }
        uploader.finish()?;
        let lookup = Lookup::of(&self.encoding, self.facts.storage, device, room)?;
        let encoded = Encoded { encoding: self.encoding.clone(), lookup, segments };
        Ok(ResidentColumn::new(self.index, self.facts.clone(), encoded))
    }

    /// Position in the table's schema.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// What is known of its values.
    pub(crate) fn facts(&self) -> &Arc<ColumnFacts> {
        &self.facts
    }

    /// How its segments hold its values.
    pub(crate) fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Bits of a value on average, as on the device.
    pub(crate) fn bits_per_value(&self) -> f64 {
        let values: usize = self.segments.iter().map(|copy| copy.values.len()).sum();
        8.0 * (values + self.lookup_bytes()) as f64 / self.facts.statistics.rows.max(1) as f64
    }

    /// Host memory of its segments and its lookup; a dictionary of strings is on the host in any case.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |copy: &HostCopy| copy.values.len() + copy.validity.as_ref().map_or(0, |words| words.len());
        (self.segments.iter().map(bytes).sum::<usize>() + self.lookup_bytes()) as u64
    }

    /// Bytes of its distinct values on the device, where its segments hold codes for them.
    fn lookup_bytes(&self) -> usize {
        match &self.encoding {
            Encoding::Dictionary(dictionary) => dictionary.values().len().max(1) * self.facts.storage.width(),
            _ => 0,
        }
    }
}
