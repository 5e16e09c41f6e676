//! A column on the device: its segments with all that is known of it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_gpu::{DeviceBuffer, Reservation};

use crate::dictionary::Dictionary;
use crate::layout::Layout;
use crate::statistics::Statistics;
use crate::storage::Storage;

/// An encoded run of one column on the device.
#[derive(Debug)]
pub struct Segment {
    values: DeviceBuffer,
    validity: Option<DeviceBuffer>,
    rows: u32,
    reservation: Reservation,
}

impl Segment {
    pub(crate) fn new(
        values: DeviceBuffer,
        validity: Option<DeviceBuffer>,
        rows: u32,
        reservation: Reservation,
    ) -> Segment {
        Segment { values, validity, rows, reservation }
    }

    /// Values, padded to whole vectors, in the column's layout.
    pub fn values(&self) -> &DeviceBuffer {
        &self.values
    }

    /// Validity words; `None` if every row is valid.
    pub fn validity(&self) -> Option<&DeviceBuffer> {
        self.validity.as_ref()
    }

    /// Device memory it takes, as reserved.
    pub(crate) fn bytes(&self) -> u64 {
        self.reservation.bytes()
    }

    /// Rows without padding.
    pub fn rows(&self) -> u32 {
        self.rows
    }
}

/// A column on the device with all that is known of it.
#[derive(Debug)]
pub struct ResidentColumn {
    index: usize,
    name: String,
    data_type: DataType,
    storage: Storage,
    layout: Layout,
    segments: Vec<Segment>,
    statistics: Statistics,
    dictionary: Option<Arc<Dictionary>>,
}

impl ResidentColumn {
    pub(crate) fn new(
        index: usize,
        name: String,
        data_type: DataType,
        storage: Storage,
        (layout, segments): (Layout, Vec<Segment>),
        statistics: Statistics,
        dictionary: Option<Arc<Dictionary>>,
    ) -> ResidentColumn {
        ResidentColumn { index, name, data_type, storage, layout, segments, statistics, dictionary }
    }

    /// Position in the table's schema.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Arrow type of the column.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Machine type of its values.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// How the values of its segments lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Its segments, one a chunk.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bounds and counts.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The dictionary of a string column.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// Device memory it takes, as reserved.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(Segment::bytes).sum()
    }
}
