//! A column on the device: its segments with all that is known of it.

use std::sync::Arc;

use warpcube_gpu::{Device, DeviceBuffer, Reservation, size_class};

use super::room::Room;
use crate::error::Result;
use crate::format::Encoding;
use crate::units::{ColumnFacts, Storage};

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

    /// Values, padded to whole vectors, in the column's encoding.
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
    /// Sends the distinct values of a column's encoding to the device, if it is a dictionary.
    pub(crate) fn of(
        encoding: &Encoding,
        storage: Storage,
        device: &Device,
        room: &dyn Room,
    ) -> Result<Option<Lookup>> {
        let Encoding::Dictionary(dictionary) = encoding else { return Ok(None) };
        // At least one, for the codes of null slots.
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

/// The value of an integer storage that has these bits, zero-extended.
fn integer(bits: u64, storage: Storage) -> i128 {
    let above = 64 - 8 * storage.width() as u32;
    match storage {
        Storage::I8 | Storage::I16 | Storage::I32 | Storage::I64 => ((bits << above) as i64 >> above).into(),
        _ => bits.into(),
    }
}

impl AsRef<Segment> for Segment {
    fn as_ref(&self) -> &Segment {
        self
    }
}

/// The segments of a column in its encoding.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) encoding: Encoding,
    /// Distinct values, where the segments hold codes for them.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) segments: Vec<Segment>,
}

impl Encoded {
    /// Plain segments as they are.
    pub(crate) fn plain(segments: Vec<Segment>) -> Encoded {
        Encoded { encoding: Encoding::Plain, lookup: None, segments }
    }
}

/// A column on the device with all that is known of it.
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

    /// What is known of its values.
    pub fn facts(&self) -> &Arc<ColumnFacts> {
        &self.facts
    }

    /// Machine type of its values.
    pub fn storage(&self) -> Storage {
        self.facts.storage
    }

    /// How its segments hold its values.
    pub fn encoding(&self) -> &Encoding {
        &self.encoded.encoding
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

    /// Bytes of a value on average, references of vectors apart.
    pub fn bytes_per_value(&self) -> f64 {
        self.encoding().bytes_per_value(self.storage().width()).unwrap_or_else(|| {
            let bytes: usize = self.segments().iter().map(|segment| segment.values.bytes()).sum();
            bytes as f64 / self.facts.statistics.rows.max(1) as f64
        })
    }

    /// Its segments, one a chunk.
    pub fn segments(&self) -> &[Segment] {
        &self.encoded.segments
    }

    /// Bits of a value on average, with all that its encoding has beside values; validity is not counted.
    pub fn bits_per_value(&self) -> f64 {
        let values = self.segments().iter().map(|segment| segment.values.bytes()).sum::<usize>();
        let lookup = self.lookup().map_or(0, DeviceBuffer::bytes);
        8.0 * (values + lookup) as f64 / self.facts.statistics.rows.max(1) as f64
    }

    /// Device memory it takes, as reserved.
    pub fn bytes(&self) -> u64 {
        let lookup = self.encoded.lookup.as_ref().map_or(0, |lookup| lookup.reservation.bytes());
        self.segments().iter().map(Segment::bytes).sum::<u64>() + lookup
    }
}
