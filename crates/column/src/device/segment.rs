//! Resident columns: facts and segments, and the memory for them.

use std::sync::Arc;

use warpcube_gpu::{Device, DeviceBuffer, Reservation, size_class};

use crate::error::Result;
use crate::format::Encoding;
use crate::units::{ColumnFacts, Storage};

/// Reserves device memory for segments; residency evicts other columns for it.
pub(crate) trait Room: Sync {
    /// Reserves `bytes` bytes.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`](crate::error::ColumnError::OverBudget) without room.
    fn reserve(&self, bytes: u64) -> Result<Reservation>;
}

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

    /// Encoded values, padded to whole vectors.
    pub fn values(&self) -> &DeviceBuffer {
        &self.values
    }

    /// Validity words; `None` if every row is valid.
    pub fn validity(&self) -> Option<&DeviceBuffer> {
        self.validity.as_ref()
    }

    /// Reserved device memory in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.reservation.bytes()
    }

    /// Rows without padding.
    pub fn rows(&self) -> u32 {
        self.rows
    }
}

/// Distinct values of a dictionary column of numbers.
#[derive(Debug)]
pub(crate) struct Lookup {
    values: DeviceBuffer,
    /// Integers on the host too, by code.
    integers: Option<Arc<[i128]>>,
    reservation: Reservation,
}

impl Lookup {
    /// Uploads the distinct values of a dictionary encoding.
    pub(crate) fn of(
        encoding: &Encoding,
        storage: Storage,
        device: &Device,
        room: &dyn Room,
    ) -> Result<Option<Lookup>> {
        let Encoding::Dictionary(dictionary) = encoding else { return Ok(None) };
        // Null slots have code 0, so that there is at least one value.
        let distinct: &[u64] = if dictionary.values().is_empty() { &[0] } else { dictionary.values() };
        let bytes = distinct.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(storage.width()));
        let bytes: Vec<u8> = bytes.collect();
        let reservation = room.reserve(size_class(bytes.len()) as u64)?;
        let values = device.buffer(bytes.len(), "distinct values of a column")?;
        let mut stream = device.stream()?;
        stream.upload(&values, 0, &bytes)?;
        stream.synchronize()?;
        let integers = (!storage.is_float()).then(|| distinct.iter().map(|bits| integer(*bits, storage)).collect());
        Ok(Some(Lookup { values, integers, reservation }))
    }
}

/// The integer of zero-extended bits.
fn integer(bits: u64, storage: Storage) -> i128 {
    let above = 64 - 8 * storage.width() as u32;
    if storage.is_signed() { ((bits << above) as i64 >> above).into() } else { bits.into() }
}

impl AsRef<Segment> for Segment {
    fn as_ref(&self) -> &Segment {
        self
    }
}

/// An encoding with the segments of a column.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) encoding: Encoding,
    /// Distinct values of a dictionary column.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) segments: Vec<Segment>,
}

impl Encoded {
    /// The plain encoding.
    pub(crate) fn plain(segments: Vec<Segment>) -> Encoded {
        Encoded { encoding: Encoding::Plain, lookup: None, segments }
    }
}

/// A column on the device.
#[derive(Debug)]
pub struct ResidentColumn {
    index: usize,
    facts: Arc<ColumnFacts>,
    encoded: Encoded,
}

impl ResidentColumn {
    pub(crate) fn new(index: usize, facts: Arc<ColumnFacts>, encoded: Encoded) -> ResidentColumn {
        ResidentColumn { index, facts, encoded }
    }

    /// Position in the table's schema.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.facts.name
    }

    /// Facts of the values.
    pub fn facts(&self) -> &Arc<ColumnFacts> {
        &self.facts
    }

    /// Machine type of the values.
    pub fn storage(&self) -> Storage {
        self.facts.storage
    }

    /// Encoding of the segments.
    pub fn encoding(&self) -> &Encoding {
        &self.encoded.encoding
    }

    /// Distinct values of a dictionary column in storage width; its segments hold codes of [`Storage::U32`].
    pub fn lookup(&self) -> Option<&DeviceBuffer> {
        self.encoded.lookup.as_ref().map(|lookup| &lookup.values)
    }

    /// The integers of the lookup by code, ascending.
    pub fn distinct_integers(&self) -> Option<&Arc<[i128]>> {
        self.encoded.lookup.as_ref()?.integers.as_ref()
    }

    /// Average bytes of an encoded value, without references of vectors.
    pub fn bytes_per_value(&self) -> f64 {
        let constant = self.encoding().bytes_per_value(self.storage().width());
        constant.unwrap_or_else(|| self.value_bytes() as f64 / self.facts.statistics.rows.max(1) as f64)
    }

    /// Bytes of the encoded values of all segments.
    fn value_bytes(&self) -> usize {
        self.segments().iter().map(|segment| segment.values.bytes()).sum()
    }

    /// Segments by chunk.
    pub fn segments(&self) -> &[Segment] {
        &self.encoded.segments
    }

    /// Average bits of a value with references, patches and lookup, without validity.
    pub fn bits_per_value(&self) -> f64 {
        let bytes = self.value_bytes() + self.lookup().map_or(0, DeviceBuffer::bytes);
        8.0 * bytes as f64 / self.facts.statistics.rows.max(1) as f64
    }

    /// Reserved device memory in bytes.
    pub fn bytes(&self) -> u64 {
        let lookup = self.encoded.lookup.as_ref().map_or(0, |lookup| lookup.reservation.bytes());
        self.segments().iter().map(Segment::bytes).sum::<u64>() + lookup
    }
}
