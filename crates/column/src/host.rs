//! Encoded copies on the host of columns that left the device: what comes back from them is not decoded again.
//!
//! A copy belongs to one version of a table, as its column did. It stays when the column is restored, so that the
//! column can leave again at no cost; copies go by least recent use, those of columns on the device first.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_gpu::{Device, DeviceBuffer};

use crate::dictionary::Dictionary;
use crate::encode::Encoded;
use crate::error::Result;
use crate::layout::Layout;
use crate::load::{Room, place};
use crate::segment::{Lookup, ResidentColumn, Traits, encoding_in_words};
use crate::staging::{StagingPool, Uploader};
use crate::statistics::Statistics;
use crate::storage::Storage;

/// A column on the host, as it was on the device.
#[derive(Debug)]
pub(crate) struct HostColumn {
    index: usize,
    name: String,
    data_type: DataType,
    storage: Storage,
    layout: Layout,
    statistics: Statistics,
    dictionary: Option<Arc<Dictionary>>,
    lookup: Option<Box<[u8]>>,
    traits: Option<Traits>,
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
        let lookup = column.lookup().map(copy).transpose()?;
        Ok(HostColumn {
            index: column.index(),
            name: column.name().to_string(),
            data_type: column.data_type().clone(),
            storage: column.storage(),
            layout: column.layout(),
            statistics: column.statistics().clone(),
            dictionary: column.dictionary().cloned(),
            lookup,
            traits: column.traits(),
            segments,
        })
    }

    /// Copies the column back to the device.
    pub(crate) fn restore(&self, device: &Device, room: &dyn Room, staging: &StagingPool) -> Result<ResidentColumn> {
        let mut uploader = Uploader::new(device, staging)?;
        let mut segments = Vec::with_capacity(self.segments.len());
        for copy in &self.segments {
            segments.push(place(device, room, &mut uploader, &copy.values, copy.validity.as_deref(), copy.rows)?);
        }
        uploader.finish()?;
        let lookup =
            self.lookup.as_ref().map(|values| Lookup::place(device, room, values, self.storage)).transpose()?;
        Ok(ResidentColumn::new(
            self.index,
            self.name.clone(),
            self.data_type.clone(),
            self.storage,
            Encoded { layout: self.layout, lookup, segments, traits: self.traits },
            self.statistics.clone(),
            self.dictionary.clone(),
        ))
    }

    /// Position in the table's schema.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Name of the column.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Arrow type of the column.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Its encoding in words.
    pub(crate) fn encoding(&self) -> String {
        let values = self.lookup.as_ref().map(|values| values.len() / self.storage.width());
        encoding_in_words(self.layout, values)
    }

    /// What a pass over its values told.
    pub(crate) fn traits(&self) -> Option<Traits> {
        self.traits
    }

    /// Bits of a value on average, as on the device.
    pub(crate) fn bits_per_value(&self) -> f64 {
        let values: usize = self.segments.iter().map(|copy| copy.values.len()).sum();
        let lookup = self.lookup.as_ref().map_or(0, |values| values.len());
        8.0 * (values + lookup) as f64 / self.statistics.rows.max(1) as f64
    }

    /// Strings of its dictionary, where it has one.
    pub(crate) fn dictionary_values(&self) -> Option<usize> {
        self.dictionary.as_ref().map(|dictionary| dictionary.len())
    }

    /// Host memory of its segments and its lookup; a dictionary of strings is on the host in any case.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = |copy: &HostCopy| copy.values.len() + copy.validity.as_ref().map_or(0, |words| words.len());
        let lookup = self.lookup.as_ref().map_or(0, |values| values.len());
        self.segments.iter().map(|copy| bytes(copy) as u64).sum::<u64>() + lookup as u64
    }
}
