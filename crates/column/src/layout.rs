//! How a column's values lie on the device.

use std::fmt;

use crate::build::VECTOR_ROWS;
use crate::encoding::{Encoding, Packed, WIDTHS};
use crate::storage::Storage;

/// Layout of the values of all segments of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Values in storage width, one after the other.
    #[default]
    Plain,
    /// Offsets of a constant width in interleaved vectors.
    Packed(Packed),
}

/// Which layouts columns are loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingChoice {
    /// The smallest that is worth it.
    #[default]
    Auto,
    /// Values as they are.
    Plain,
    /// Packed wherever it is possible, worth it or not.
    Packed,
}

impl Layout {
    /// The encoding whose bytes segments of this layout have.
    pub(crate) fn encoding(self) -> Encoding {
        match self {
            Layout::Plain => Encoding::Plain,
            Layout::Packed(packed) => Encoding::Packed(packed),
        }
    }

    /// The layout whose segments have the bytes of an encoding; `None` where kernels read no such segments.
    pub(crate) fn of(encoding: &Encoding, storage: Storage) -> Option<Layout> {
        match encoding {
            Encoding::Plain => Some(Layout::Plain),
            Encoding::Packed(packed) => {
                let fits = WIDTHS.contains(&packed.width) && packed.width <= 8 * storage.width() as u32;
                (fits && !packed.patches && !storage.is_float()).then_some(Layout::Packed(*packed))
            }
            _ => None,
        }
    }

    /// Whether the values of a segment of `rows` rows take that many bytes.
    pub(crate) fn takes(self, bytes: usize, storage: Storage, rows: usize) -> bool {
        let vectors = rows.div_ceil(VECTOR_ROWS);
        match self {
            Layout::Plain => bytes == vectors * VECTOR_ROWS * storage.width(),
            Layout::Packed(packed) => {
                let reference = if packed.reference.is_none() { storage.width().max(4) } else { 0 };
                bytes == vectors * (VECTOR_ROWS / 8 * packed.width as usize + reference)
            }
        }
    }

    /// Bytes of a value on average, references apart.
    pub fn bytes_per_value(self, width: usize) -> f64 {
        match self {
            Layout::Plain => width as f64,
            Layout::Packed(packed) => f64::from(packed.width) / 8.0,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Plain => f.write_str("plain"),
            Layout::Packed(Packed { width, reference: Some(_), .. }) => write!(f, "packed({width})"),
            Layout::Packed(Packed { width, reference: None, .. }) => write!(f, "packed({width}, references)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_their_encodings_and_no_others() {
        let packed = |width, reference, patches| Packed { width, reference, patches };
        for layout in
            [Layout::Plain, Layout::Packed(packed(12, None, false)), Layout::Packed(packed(0, Some(7), false))]
        {
            assert_eq!(Layout::of(&layout.encoding(), Storage::I32), Some(layout));
        }
        let read = |encoding, storage| Layout::of(&encoding, storage).is_some();
        assert!(!read(Encoding::Packed(packed(12, None, true)), Storage::I32), "patches");
        assert!(!read(Encoding::Packed(packed(13, None, false)), Storage::I32), "no width of the ladder");
        assert!(!read(Encoding::Packed(packed(40, None, false)), Storage::I32), "more than the storage has");
        assert!(!read(Encoding::Packed(packed(12, None, false)), Storage::F32) && !read(Encoding::Rle, Storage::I32));
    }

    #[test]
    fn bytes_of_segments_are_those_of_whole_vectors() {
        assert!(
            Layout::Plain.takes(2048 * 8, Storage::I64, 1025) && !Layout::Plain.takes(1025 * 8, Storage::I64, 1025)
        );
        let own = Layout::Packed(Packed { width: 3, reference: None, patches: false });
        assert!(own.takes(2 * (3 * 128 + 4), Storage::I8, 1025) && own.takes(3 * 128 + 8, Storage::U64, 1024));
        let none = Layout::Packed(Packed { width: 0, reference: Some(7), patches: false });
        assert!(none.takes(0, Storage::I32, 5) && !none.takes(4, Storage::I32, 5));
    }
}
