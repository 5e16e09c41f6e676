//! Plain segments: the input of encoding and the output of decoding.
//!
//! ```text
//! values   [vectors * 1024] × width bytes, row i at i * width, little endian; padding and null slots are no values
//! validity [vectors * 32] × u32, bit i % 32 of word i / 32 is 1 if row i is valid; absent if all rows are valid
//! ```
//!
//! Decoded segments have zeros in null slots and padding. The plain encoding is the values with these zeros.

use super::codec::{Codec, EncodedBytes};
use super::values::{Plain, clear_nulls, padded};
use crate::error::encoding::Result;
use crate::units::Storage;

/// The codec of the plain encoding.
pub(crate) struct PlainCodec;

impl Codec for PlainCodec {
    fn takes(&self, bytes: usize, storage: Storage, rows: usize) -> bool {
        bytes == padded(rows) * storage.width()
    }

    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(plain.values());
        clear_nulls(out, plain.storage().width(), plain.validity(), plain.rows());
        Ok(())
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        Ok(segment.bytes.to_vec())
    }
}
