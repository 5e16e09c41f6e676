//! The one device buffer of a statement, laid out before anything is launched.
//!
//! ```text
//! [ constants: uploaded in one copy | zeroed in one fill | result: its head zeroed too | scratch: undefined ]
//! ```
//!
//! A [`Zone`] is a range of it; zones are aligned to 256 bytes. On the emulated device a *redzone* lies behind each
//! zone, which the device watches: a kernel that leaves its zone is found there and does not damage the next one.

use std::ops::Range;

/// Alignment of zones in bytes.
const ALIGNMENT: usize = 256;
/// Least bytes of a redzone.
const REDZONE_BYTES: usize = 256;

/// Part of the arena a zone lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Constant,
    Zeroed,
    Result,
    Scratch,
}

/// A range of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zone {
    part: Part,
    offset: usize,
    bytes: usize,
}

impl Zone {
    /// Size in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }
}

/// Layout of an arena and the content of its constants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    constants: Vec<u8>,
    zeroed: usize,
    result_head: usize,
    result: usize,
    scratch: usize,
    /// Bytes between zones.
    gap: usize,
    zones: Vec<Zone>,
}

impl Arena {
    /// An arena without zones, which will have redzones or not.
    pub(crate) fn new(redzones: bool) -> Arena {
        Arena { gap: if redzones { REDZONE_BYTES } else { 0 }, ..Arena::default() }
    }

    /// Bytes from a zone's start to that of the next one.
    fn extent(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(ALIGNMENT) + self.gap
    }

    fn zone(&mut self, part: Part, offset: usize, bytes: usize) -> Zone {
        let zone = Zone { part, offset, bytes };
        self.zones.push(zone);
        zone
    }

    /// A zone that is uploaded.
    pub(crate) fn constant(&mut self, content: &[u8]) -> Zone {
        let offset = self.constants.len();
        self.constants.extend_from_slice(content);
        self.constants.resize(offset + self.extent(content.len()), 0);
        self.zone(Part::Constant, offset, content.len())
    }

    /// A zone that is zero when the first kernel starts.
    pub(crate) fn zeroed(&mut self, bytes: usize) -> Zone {
        let offset = self.zeroed;
        self.zeroed += self.extent(bytes);
        self.zone(Part::Zeroed, offset, bytes)
    }

    /// The one zone of the result, whose first `head` bytes are zero when the first kernel starts.
    pub(crate) fn result(&mut self, head: usize, bytes: usize) -> Zone {
        assert_eq!(self.result, 0, "an arena has one result");
        (self.result_head, self.result) = (head, self.extent(bytes));
        self.zone(Part::Result, 0, bytes)
    }

    /// A zone whose content is undefined.
    pub(crate) fn scratch(&mut self, bytes: usize) -> Zone {
        let offset = self.scratch;
        self.scratch += self.extent(bytes);
        self.zone(Part::Scratch, offset, bytes)
    }

    /// Content of the constants, at the arena's start.
    pub(crate) fn constants(&self) -> &[u8] {
        &self.constants
    }

    /// Offset and length of the part to be zeroed.
    pub(crate) fn zeroed_range(&self) -> (usize, usize) {
        (self.constants.len(), self.zeroed + self.result_head)
    }

    /// Size of the arena in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.constants.len() + self.zeroed + self.result + self.scratch
    }

    /// What lies between zones, for [`warpcube_gpu::DeviceBuffer::set_redzones`]; nothing where there are no redzones.
    pub(crate) fn redzones(&self) -> Vec<Range<usize>> {
        let behind = |zone: &Zone| {
            let start = self.offset(*zone);
            start + zone.bytes..start + self.extent(zone.bytes)
        };
        if self.gap == 0 { Vec::new() } else { self.zones.iter().map(behind).collect() }
    }

    /// Where a zone begins, in bytes from the arena's start; final once all zones are laid out.
    pub(crate) fn offset(&self, zone: Zone) -> usize {
        zone.offset
            + match zone.part {
                Part::Constant => 0,
                Part::Zeroed => self.constants.len(),
                Part::Result => self.constants.len() + self.zeroed,
                Part::Scratch => self.constants.len() + self.zeroed + self.result,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_do_not_overlap() {
        let mut arena = Arena::default();
        let (scratch, zeroed) = (arena.scratch(10), arena.zeroed(300));
        let (constant, result) = (arena.constant(&[1, 2, 3]), arena.result(24, 100));
        assert_eq!((arena.offset(constant), arena.offset(zeroed)), (0, 256));
        assert_eq!((arena.offset(result), arena.offset(scratch)), (768, 1024));
        assert_eq!((arena.zeroed_range(), arena.bytes()), ((256, 536), 1280));
        assert_eq!(scratch.bytes(), 10);
        assert!(arena.redzones().is_empty());
    }

    #[test]
    fn redzones_fill_what_zones_leave() {
        let mut arena = Arena::new(true);
        let zones =
            [arena.scratch(10), arena.zeroed(300), arena.constant(&[1; 256]), arena.result(24, 100), arena.zeroed(0)];
        let mut ranges = arena.redzones();
        assert!(ranges.iter().all(|range| range.len() >= REDZONE_BYTES));
        ranges.extend(zones.map(|zone| arena.offset(zone)..arena.offset(zone) + zone.bytes()));
        ranges.sort_by_key(|range| (range.start, range.end));
        let end = ranges.iter().fold(0, |end, range| {
            assert_eq!(range.start, end);
            range.end
        });
        assert_eq!(end, arena.bytes());
        // What is uploaded and zeroed covers whole redzones.
        assert_eq!((arena.constants().len(), arena.zeroed_range()), (512, (512, 768 + 256 + 24)));
    }
}
