//! Device memory of one contraction: one buffer, cut into parts, and the data that the host uploads before a launch.

use warpcube_gpu::PART_BYTES_MIN;

/// Offsets of parts of a buffer that does not exist yet, with the bytes that the host uploads to the first of them.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    uploaded: Vec<u8>,
    bytes: usize,
}

impl Workspace {
    /// A part with these bytes; all such parts come before others.
    pub(super) fn put(&mut self, bytes: &[u8]) -> usize {
        debug_assert_eq!(self.bytes, self.uploaded.len(), "uploaded parts come first");
        let at = self.bytes;
        self.uploaded.extend_from_slice(bytes);
        self.uploaded.resize(aligned(self.uploaded.len().max(at + 1)), 0);
        self.bytes = self.uploaded.len();
        at
    }

    /// A part of so many bytes.
    pub(super) fn take(&mut self, bytes: u64) -> usize {
        let at = self.bytes;
        self.bytes += aligned((bytes as usize).max(1));
        at
    }

    /// Bytes of all parts.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The data that the host uploads to the start of the buffer.
    pub(super) fn uploaded(&self) -> &[u8] {
        &self.uploaded
    }
}

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(PART_BYTES_MIN)
}
