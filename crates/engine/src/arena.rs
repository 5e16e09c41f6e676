//! The one device buffer of a statement, laid out before anything is launched.
//!
//! ```text
//! [ constants: uploaded in one copy | zeroed in one fill | result: its head zeroed too | scratch: undefined ]
//! ```
//!
//! A [`Region`] is a range of it; regions are aligned to 256 bytes. On the emulated device a *redzone* lies behind each
//! region, which the device watches: a kernel that leaves its region is found there and does not damage the next one.

use std::borrow::Cow;
use std::ops::Range;

use warpcube_gpu::DevicePtr;

/// Alignment of regions in bytes.
const ALIGNMENT: usize = 256;
/// Least bytes of a redzone.
const REDZONE_BYTES: usize = 256;

/// Part of the arena a region lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Constant,
    Zeroed,
    Result,
    Scratch,
}

/// A range of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    part: Part,
    offset: usize,
    bytes: usize,
}

impl Region {
    /// Size in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }
}

/// An address among constants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pointer<'pin> {
    /// Of memory outside of the arena.
    Address(DevicePtr<'pin>),
    /// So many bytes into a region.
    Within(Region, usize),
}

/// Layout of an arena and the content of its constants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    constants: Vec<u8>,
    /// Constants that are addresses within the arena: offset, region and distance from its start.
    addresses: Vec<(usize, Region, usize)>,
    zeroed: usize,
    result_head: usize,
    result: usize,
    scratch: usize,
    /// Bytes between regions.
    gap: usize,
    regions: Vec<Region>,
}

impl Arena {
    /// An arena without regions, which will have redzones or not.
    pub(crate) fn new(redzones: bool) -> Arena {
        Arena { gap: if redzones { REDZONE_BYTES } else { 0 }, ..Arena::default() }
    }

    /// Bytes from a region's start to that of the next one.
    fn extent(&self, bytes: usize) -> usize {
        bytes.next_multiple_of(ALIGNMENT) + self.gap
    }

    fn region(&mut self, part: Part, offset: usize, bytes: usize) -> Region {
        let region = Region { part, offset, bytes };
        self.regions.push(region);
        region
    }

    /// A region that is uploaded.
    pub(crate) fn constant(&mut self, content: &[u8]) -> Region {
        let offset = self.constants.len();
        self.constants.extend_from_slice(content);
        self.constants.resize(offset + self.extent(content.len()), 0);
        self.region(Part::Constant, offset, content.len())
    }

    /// An arena without regions, as that of the same statement with other constants.
    pub(crate) fn beside(&self) -> Arena {
        Arena { gap: self.gap, ..Arena::default() }
    }

    /// All regions, in the order in which they were made.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Whether regions are constants of as many bytes as those of another arena, which has no others.
    pub(crate) fn is_laid_out_as(&self, regions: &[Region], other: &Arena) -> bool {
        let is_same = |(own, new): (&Region, &Region)| {
            own.part == Part::Constant && new.part == Part::Constant && own.bytes == new.bytes
        };
        regions.len() == other.regions.len()
            && other.addresses.is_empty()
            && regions.iter().zip(&other.regions).all(is_same)
    }

    /// Copies the constants of another arena to regions that are laid out as all of its.
    pub(crate) fn take_constants(&mut self, regions: &[Region], other: &Arena) {
        for (own, new) in regions.iter().zip(&other.regions) {
            self.constants[own.offset..][..own.bytes].copy_from_slice(&other.constants[new.offset..][..new.bytes]);
        }
    }

    /// A region of addresses that is uploaded.
    pub(crate) fn pointers(&mut self, pointers: &[Pointer<'_>]) -> Region {
        let outside = |pointer: &Pointer<'_>| match pointer {
            Pointer::Address(address) => address.word(),
            Pointer::Within(..) => 0,
        };
        let content: Vec<u64> = pointers.iter().map(outside).collect();
        let region = self.constant(bytemuck::cast_slice(&content));
        let within = |(index, pointer): (usize, &Pointer<'_>)| match pointer {
            Pointer::Within(target, distance) => Some((region.offset + 8 * index, *target, *distance)),
            Pointer::Address(_) => None,
        };
        self.addresses.extend(pointers.iter().enumerate().filter_map(within));
        region
    }

    /// A region that is zero when the first kernel starts.
    pub(crate) fn zeroed(&mut self, bytes: usize) -> Region {
        let offset = self.zeroed;
        self.zeroed += self.extent(bytes);
        self.region(Part::Zeroed, offset, bytes)
    }

    /// The one region of the result, whose first `head` bytes are zero when the first kernel starts.
    pub(crate) fn result(&mut self, head: usize, bytes: usize) -> Region {
        assert_eq!(self.result, 0, "an arena has one result");
        (self.result_head, self.result) = (head, self.extent(bytes));
        self.region(Part::Result, 0, bytes)
    }

    /// A region whose content is undefined.
    pub(crate) fn scratch(&mut self, bytes: usize) -> Region {
        let offset = self.scratch;
        self.scratch += self.extent(bytes);
        self.region(Part::Scratch, offset, bytes)
    }

    /// Content of the constants, of an arena that starts there.
    pub(crate) fn constants(&self, start: DevicePtr<'_>) -> Cow<'_, [u8]> {
        if self.addresses.is_empty() {
            return Cow::Borrowed(&self.constants);
        }
        let mut constants = self.constants.clone();
        for (offset, region, distance) in &self.addresses {
            let target = start.offset(self.offset(*region) + distance);
            constants[*offset..offset + 8].copy_from_slice(&target.word().to_le_bytes());
        }
        Cow::Owned(constants)
    }

    /// Offset and length of the part to be zeroed.
    pub(crate) fn zeroed_range(&self) -> (usize, usize) {
        (self.constants.len(), self.zeroed + self.result_head)
    }

    /// Size of the arena in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.constants.len() + self.zeroed + self.result + self.scratch
    }

    /// What lies between regions, for [`warpcube_gpu::DeviceBuffer::set_redzones`]; nothing where redzones are off.
    pub(crate) fn redzones(&self) -> Vec<Range<usize>> {
        let behind = |region: &Region| {
            let start = self.offset(*region);
            start + region.bytes..start + self.extent(region.bytes)
        };
        if self.gap == 0 { Vec::new() } else { self.regions.iter().map(behind).collect() }
    }

    /// Where a region begins, in bytes from the arena's start; final once all regions are laid out.
    pub(crate) fn offset(&self, region: Region) -> usize {
        region.offset
            + match region.part {
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
    fn addresses_within_the_arena_follow_it() {
        let mut arena = Arena::default();
        let cells = arena.zeroed(64);
        let pointers = arena.pointers(&[Pointer::Address(DevicePtr::NULL.offset(7)), Pointer::Within(cells, 16)]);
        let words = |start: usize| -> Vec<u64> {
            let constants = arena.constants(DevicePtr::NULL.offset(start));
            let at = arena.offset(pointers);
            constants[at..at + 16].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
        };
        assert_eq!(words(4096), [7, 4096 + 256 + 16]);
        assert_eq!(words(0), [7, 256 + 16]);
    }

    #[test]
    fn redzones_fill_what_zones_leave() {
        let mut arena = Arena::new(true);
        let regions =
            [arena.scratch(10), arena.zeroed(300), arena.constant(&[1; 256]), arena.result(24, 100), arena.zeroed(0)];
        let mut ranges = arena.redzones();
        assert!(ranges.iter().all(|range| range.len() >= REDZONE_BYTES));
        ranges.extend(regions.map(|region| arena.offset(region)..arena.offset(region) + region.bytes()));
        ranges.sort_by_key(|range| (range.start, range.end));
        let end = ranges.iter().fold(0, |end, range| {
            assert_eq!(range.start, end);
            range.end
        });
        assert_eq!(end, arena.bytes());
        // What is uploaded and zeroed covers whole redzones.
        assert_eq!((arena.constants(DevicePtr::NULL).len(), arena.zeroed_range()), (512, (512, 768 + 256 + 24)));
    }
}
