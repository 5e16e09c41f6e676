//! A column on the device: its segments with all that is known of it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_gpu::{Device, DeviceBuffer, Reservation, size_class};

use crate::dictionary::Dictionary;
use crate::encode::Encoded;
use crate::encoding::Profile;
use crate::error::Result;
use crate::layout::Layout;
use crate::load::Room;
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

/// Distinct values of a numeric column whose segments hold codes for them.
#[derive(Debug)]
pub(crate) struct Lookup {
    values: DeviceBuffer,
    /// The same on the host, in the order of the codes, where they are integers.
    integers: Option<Arc<[i128]>>,
    reservation: Reservation,
}

impl Lookup {
    /// Distinct values in storage width; at least one, for the codes of null slots.
    pub(crate) fn bytes_of(values: &[u64], storage: Storage) -> Vec<u8> {
        let values = values.iter().chain(values.is_empty().then_some(&0));
        values.flat_map(|bits| bits.to_le_bytes().into_iter().take(storage.width())).collect()
    }

    /// Sends distinct values in storage width to the device.
    pub(crate) fn place(device: &Device, room: &dyn Room, bytes: &[u8], storage: Storage) -> Result<Lookup> {
        let reservation = room.reserve(size_class(bytes.len()) as u64)?;
        let values = device.buffer(bytes.len(), "distinct values of a column")?;
        let mut stream = device.stream()?;
        stream.upload(&values, 0, bytes)?;
        stream.synchronize()?;
        let integers = (!storage.is_float()).then(|| bytes.chunks_exact(storage.width()).map(|b| integer(b, storage)));
        Ok(Lookup { values, integers: integers.map(Iterator::collect), reservation })
    }
}

/// A value of an integer storage, little endian.
fn integer(bytes: &[u8], storage: Storage) -> i128 {
    let bits = bytes.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let above = 64 - 8 * bytes.len() as u32;
    match storage {
        Storage::I8 | Storage::I16 | Storage::I32 | Storage::I64 => ((bits << above) as i64 >> above).into(),
        _ => bits.into(),
    }
}

/// What a pass over a column's values tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Distinct valid values, estimated to a few percent.
    pub distinct: u64,
    /// Runs of equal values, cut where a vector ends; null slots belong to the run before them.
    pub runs: u64,
    /// Whether no valid value is smaller than the valid one before it; never said of floats.
    pub is_sorted: bool,
}

impl Traits {
    pub(crate) fn of(profile: &Profile, storage: Storage) -> Traits {
        Traits {
            distinct: profile.distinct.estimate(),
            runs: profile.runs,
            is_sorted: profile.is_sorted() && !storage.is_float(),
        }
    }
}

impl AsRef<Segment> for Segment {
    fn as_ref(&self) -> &Segment {
        self
    }
}

/// A column on the device with all that is known of it.
#[derive(Debug)]
pub struct ResidentColumn {
    index: usize,
    name: String,
    data_type: DataType,
    storage: Storage,
    encoded: Encoded,
    statistics: Statistics,
    dictionary: Option<Arc<Dictionary>>,
}

impl ResidentColumn {
    pub(crate) fn new(
        index: usize,
        name: String,
        data_type: DataType,
        storage: Storage,
        encoded: Encoded,
        statistics: Statistics,
        dictionary: Option<Arc<Dictionary>>,
    ) -> ResidentColumn {
        ResidentColumn { index, name, data_type, storage, encoded, statistics, dictionary }
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

    /// How the values of its segments lie, or the codes, where it has a lookup.
    pub fn layout(&self) -> Layout {
        self.encoded.layout
    }

    /// Its distinct values in storage width, where its segments hold codes for them: values of
    /// [`Storage::U32`], whatever the column's storage.
    pub fn lookup(&self) -> Option<&DeviceBuffer> {
        self.encoded.lookup.as_ref().map(|lookup| &lookup.values)
    }

    /// The values of its lookup where they are integers, ascending: the value at a code's place is the code's.
    pub fn distinct_integers(&self) -> Option<&Arc<[i128]>> {
        self.encoded.lookup.as_ref()?.integers.as_ref()
    }

    /// Its encoding in words.
    pub fn encoding(&self) -> String {
        let values = self.lookup().map(|values| values.bytes() / self.storage.width());
        encoding_in_words(self.layout(), values)
    }

    /// Bytes of a value on average, references of vectors apart.
    pub fn bytes_per_value(&self) -> f64 {
        let width = if self.lookup().is_some() { Storage::U32.width() } else { self.storage.width() };
        self.layout().bytes_per_value(width).unwrap_or_else(|| {
            let bytes: usize = self.segments().iter().map(|segment| segment.values.bytes()).sum();
            bytes as f64 / self.statistics.rows.max(1) as f64
        })
    }

    /// Its segments, one a chunk.
    pub fn segments(&self) -> &[Segment] {
        &self.encoded.segments
    }

    /// Bounds and counts.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The dictionary of a string column.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }

    /// What a pass over its values told; `None` if it was loaded without one.
    pub fn traits(&self) -> Option<Traits> {
        self.encoded.traits
    }

    /// Bits of a value on average, with all that its encoding has beside values; validity is not counted.
    pub fn bits_per_value(&self) -> f64 {
        let values = self.segments().iter().map(|segment| segment.values.bytes()).sum::<usize>();
        let lookup = self.lookup().map_or(0, DeviceBuffer::bytes);
        8.0 * (values + lookup) as f64 / self.statistics.rows.max(1) as f64
    }

    /// Device memory it takes, as reserved.
    pub fn bytes(&self) -> u64 {
        let lookup = self.encoded.lookup.as_ref().map_or(0, |lookup| lookup.reservation.bytes());
        self.segments().iter().map(Segment::bytes).sum::<u64>() + lookup
    }
}

/// A layout in words, with the number of distinct values where there is a lookup.
pub(crate) fn encoding_in_words(layout: Layout, distinct: Option<usize>) -> String {
    match distinct {
        Some(values) => format!("{layout} dictionary({values})"),
        None => layout.to_string(),
    }
}
