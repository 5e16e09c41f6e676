//! Groups of packed segments: 256 offsets as 32 lane strings, cut into planes.
//!
//! A group of offsets of `width` bits has `32 * width` bytes. The width is a compile-time constant of the inner loops
//! over the 32 lanes, which compile to vector instructions.
//!
//! ```text
//! offset of row r:  half h = r / 128, lane i = r % 128 / 4, slot k = 4 * h + r % 4
//! lane string:      slot k at bits [k * width, (k + 1) * width), slot 0 lowest; 8 * width bits = width bytes
//! pieces:           width / 16 of 16 bytes, then one each of 8, 4, 2, 1 bytes by the binary digits of width % 16
//! plane:            the piece of lane i at i * piece; a group is its planes in the order of the pieces
//! ```
//!
//! Source: the vertical layout of SIMD-BP128 (Lemire and Boytsov, "Decoding billions of integers per second through
//! vectorization"), here with 32 lanes and loads of whole 16 bytes for each lane.

pub(crate) use warpcube_vector::unpack as unpack_in_slots;

/// Rows of a group.
pub const GROUP_ROWS: usize = 256;
/// Lanes of a group.
const LANES: usize = 32;
/// Values of a lane.
const SLOTS: usize = 8;

/// A word or a slot of every lane.
type Row = [u32; LANES];
/// Packs offsets of up to 32 bits; drops bits past the width.
type Pack = fn(&[u32; GROUP_ROWS], &mut [u8]);

/// The instance of a function for a width of up to 32 bits.
macro_rules! by_width {
    ($function:ident, $width:expr; $($known:literal)*) => {
        match $width {
            $($known => $function::<$known>,)*
            other => unreachable!("{other} is not a width of the ladder"),
        }
    };
}

/// The function that packs groups at a width of the ladder up to 32 bits.
pub(crate) fn packer(width: u32) -> Pack {
    by_width!(pack, width; 0 1 2 3 4 5 6 7 8 10 12 14 16 17 18 20 22 24 28 32)
}

fn mask(width: usize) -> u32 {
    if width == 32 { u32::MAX } else { (1 << width) - 1 }
}

fn pack<const WIDTH: usize>(offsets: &[u32; GROUP_ROWS], planes: &mut [u8]) {
    let mut slots = [[0u32; LANES]; SLOTS];
    for (half, offsets) in offsets.as_chunks::<128>().0.iter().enumerate() {
        for (lane, four) in offsets.as_chunks::<4>().0.iter().enumerate() {
            for (slot, offset) in four.iter().enumerate() {
                slots[4 * half + slot][lane] = offset & mask(WIDTH);
            }
        }
    }
    let mut words = [[0u32; LANES]; SLOTS];
    for (slot, row) in slots.iter().enumerate() {
        let (word, shift) = (slot * WIDTH / 32, slot * WIDTH % 32);
        for lane in 0..LANES {
            words[word][lane] |= row[lane] << shift;
        }
        if shift + WIDTH > 32 {
            for lane in 0..LANES {
                words[word + 1][lane] |= row[lane] >> (32 - shift);
            }
        }
    }
    write_planes::<WIDTH>(&words, planes);
}

/// Unpacks a group of offsets of up to 32 bits.
pub(crate) fn unpack(width: u32, planes: &[u8], offsets: &mut [u32; GROUP_ROWS]) {
    let mut slots = [0; GROUP_ROWS];
    unpack_in_slots(width, planes, &mut slots);
    for (half, offsets) in offsets.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        for (lane, four) in offsets.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            for (slot, offset) in four.iter_mut().enumerate() {
                *offset = slots[LANES * (4 * half + slot) + lane];
            }
        }
    }
}

/// The row in its group of each place, where offsets are unpacked slot by slot.
pub(crate) fn row_of_place(place: usize) -> usize {
    row_of(place % LANES, place / LANES)
}

/// Writes the words of all lane strings to planes.
fn write_planes<const WIDTH: usize>(words: &[Row; SLOTS], planes: &mut [u8]) {
    let mut rest = planes;
    let mut word = 0;
    for count in pieces(WIDTH) {
        let (plane, next) = rest.split_at_mut(LANES * count * 4);
        for (lane, piece) in plane.chunks_exact_mut(count * 4).enumerate() {
            for (part, bytes) in piece.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                *bytes = words[word + part][lane].to_le_bytes();
            }
        }
        (rest, word) = (next, word + count);
    }
    if WIDTH & 2 != 0 {
        let (plane, next) = rest.split_at_mut(LANES * 2);
        for (piece, value) in plane.as_chunks_mut::<2>().0.iter_mut().zip(&words[word]) {
            *piece = (*value as u16).to_le_bytes();
        }
        rest = next;
    }
    if WIDTH & 1 != 0 {
        for (piece, value) in rest.iter_mut().zip(&words[word]) {
            *piece = (value >> (8 * (WIDTH & 2))) as u8;
        }
    }
}

/// Lengths in words of the pieces of 16, 8 and 4 bytes.
fn pieces(width: usize) -> impl Iterator<Item = usize> {
    std::iter::repeat_n(4, width / 16).chain((width & 8 != 0).then_some(2)).chain((width & 4 != 0).then_some(1))
}

/// Packs offsets of more than 32 bits. Their widths are whole bytes; a lane string has as many 64-bit words.
pub(crate) fn pack_wide(width: u32, offsets: &[u64; GROUP_ROWS], planes: &mut [u8]) {
    by_width!(pack_bytes, width / 8; 5 6 7 8)(offsets, planes);
}

/// Unpacks offsets of more than 32 bits.
pub(crate) fn unpack_wide(width: u32, planes: &[u8], offsets: &mut [u64; GROUP_ROWS]) {
    by_width!(unpack_bytes, width / 8; 5 6 7 8)(planes, offsets);
}

fn pack_bytes<const BYTES: usize>(offsets: &[u64; GROUP_ROWS], planes: &mut [u8]) {
    for lane in 0..LANES {
        let mut words = [0; BYTES];
        for slot in 0..SLOTS {
            let offset = offsets[row_of(lane, slot)] & (u64::MAX >> (64 - 8 * BYTES));
            let (word, shift) = (slot * BYTES / 8, slot * BYTES % 8 * 8);
            words[word] |= offset << shift;
            if shift + 8 * BYTES > 64 {
                words[word + 1] |= offset >> (64 - shift);
            }
        }
        for (word, value) in words.iter().enumerate() {
            let at = wide_place::<BYTES>(lane, word);
            planes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
}

fn unpack_bytes<const BYTES: usize>(planes: &[u8], offsets: &mut [u64; GROUP_ROWS]) {
    for lane in 0..LANES {
        let words: [u64; BYTES] = std::array::from_fn(|word| {
            let at = wide_place::<BYTES>(lane, word);
            u64::from_le_bytes(planes[at..at + 8].try_into().expect("eight bytes"))
        });
        for slot in 0..SLOTS {
            let (word, shift) = (slot * BYTES / 8, slot * BYTES % 8 * 8);
            let high = if shift + 8 * BYTES > 64 { words[word + 1] << (64 - shift) } else { 0 };
            offsets[row_of(lane, slot)] = (words[word] >> shift | high) & (u64::MAX >> (64 - 8 * BYTES));
        }
    }
}

/// Place in the group of a 64-bit word of a lane string: two in each piece of 16 bytes, an odd last word in a piece of
/// 8.
fn wide_place<const BYTES: usize>(lane: usize, word: usize) -> usize {
    let piece = if word / 2 < BYTES / 2 { 16 } else { 8 };
    LANES * 16 * (word / 2) + lane * piece + 8 * (word % 2)
}

/// Row in the group of a lane's slot.
fn row_of(lane: usize, slot: usize) -> usize {
    128 * (slot / 4) + 4 * lane + slot % 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_what_it_unpacks() {
        for width in super::super::packed::WIDTHS {
            let below = |value: u64| if width == 64 { value } else { value & ((1 << width) - 1) };
            let offsets: [u64; GROUP_ROWS] =
                std::array::from_fn(|row| below((row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)));
            let mut planes = vec![0; 32 * width as usize];
            let mut back = [0u64; GROUP_ROWS];
            if width <= 32 {
                packer(width)(&offsets.map(|offset| offset as u32), &mut planes);
                let mut narrow = [0; GROUP_ROWS];
                unpack(width, &planes, &mut narrow);
                back = narrow.map(u64::from);
            } else {
                pack_wide(width, &offsets, &mut planes);
                unpack_wide(width, &planes, &mut back);
            }
            assert_eq!(back, offsets, "width {width}");
        }
    }

    #[test]
    fn planes_are_as_drawn() {
        // Width 7: planes of 4, 2 and 1 bytes. Only lane 3 has values: slot k holds k + 1.
        let mut offsets = [0; GROUP_ROWS];
        (0..8).for_each(|slot| offsets[row_of(3, slot)] = slot as u32 + 1);
        let mut planes = vec![0; 32 * 7];
        packer(7)(&offsets, &mut planes);
        let string = (0..8u64).fold(0, |string, slot| string | (slot + 1) << (7 * slot)).to_le_bytes();
        let mut expected = vec![0; 32 * 7];
        expected[12..16].copy_from_slice(&string[..4]);
        expected[128 + 6..128 + 8].copy_from_slice(&string[4..6]);
        expected[192 + 3] = string[6];
        assert_eq!(planes, expected);
    }
}
