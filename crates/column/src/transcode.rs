//! Plain segments to segments in a named encoding, byte for byte as [`encode`] makes them.

use warpcube_gpu::{Device, size_class};

use crate::encoding::{Encoding, Plain, encode};
use crate::error::{ColumnError, Result};
use crate::load::Room;
use crate::segment::Segment;
use crate::storage::Storage;

/// A plain segment in host memory.
pub(crate) struct HostPlain {
    values: Vec<u8>,
    validity: Option<Vec<u32>>,
    rows: usize,
    storage: Storage,
}

impl HostPlain {
    /// Copies a plain segment from the device.
    pub(crate) fn download(device: &Device, storage: Storage, segment: &Segment) -> Result<HostPlain> {
        let mut stream = device.stream()?;
        let mut values = vec![0; segment.values().bytes()];
        stream.download(segment.values(), 0, &mut values)?;
        let validity = match segment.validity() {
            Some(words) => {
                let mut copy = vec![0; words.bytes() / 4];
                stream.download(words, 0, bytemuck::cast_slice_mut(&mut copy))?;
                Some(copy)
            }
            None => None,
        };
        Ok(HostPlain { values, validity, rows: segment.rows() as usize, storage })
    }

    /// The segment as encodings take it.
    pub(crate) fn plain(&self) -> Result<Plain<'_>> {
        Plain::new(self.storage, &self.values, self.validity.as_deref(), self.rows).map_err(ColumnError::source)
    }
}

/// Encodes plain segments of a column; each plain form is dropped once its encoded one is there. The parameters of the
/// encoding hold every valid value.
pub(crate) fn encode_segments(
    device: &Device,
    room: &dyn Room,
    storage: Storage,
    encoding: &Encoding,
    segments: Vec<Segment>,
) -> Result<Vec<Segment>> {
    let mut stream = device.stream()?;
    let mut encoded = Vec::with_capacity(segments.len());
    for segment in segments {
        let host = HostPlain::download(device, storage, &segment)?;
        let bytes = encode(encoding, &host.plain()?).map_err(ColumnError::source)?;
        let validity = segment.validity().map_or(0, |words| size_class(words.bytes()) as u64);
        let reservation = room.reserve(size_class(bytes.len()) as u64 + validity)?;
        let values = device.buffer(bytes.len(), "an encoded column segment")?;
        stream.upload(&values, 0, &bytes)?;
        stream.synchronize()?;
        encoded.push(Segment::new(values, segment.validity().cloned(), segment.rows(), reservation));
    }
    Ok(encoded)
}
