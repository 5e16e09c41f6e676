//! Groups of packed offsets, unpacked slot by slot.
//!
//! A group has 256 offsets of `width` bits as strings of 32 lanes with eight slots each, cut into planes: pieces of 16,
//! 8, 4, 2 and 1 bytes of each lane's string, those of all lanes side by side. The lanes of a slot are unpacked side by
//! side, by vector instructions.

use crate::dispatch::dispatch;

/// Offsets of a group.
pub const GROUP: usize = 256;
const LANES: usize = 32;
const SLOTS: usize = 8;

/// A word of every lane.
type Row = [u32; LANES];

dispatch! {
    /// Unpacks the offsets of a group at a width of the ladder up to 32 bits: slot `k` of lane `i` comes to place
    /// `32 * k + i`. `planes` has `32 * width` bytes.
    pub fn unpack(width: u32, planes: &[u8], offsets: &mut [u32; GROUP]) {
        macro_rules! by_width {
            ($($known:literal)*) => {
                match width {
                    $($known => unpack_slots::<$known>(planes, offsets),)*
                    other => unreachable!("{other} is not a width of the ladder"),
                }
            };
        }
        by_width!(0 1 2 3 4 5 6 7 8 10 12 14 16 17 18 20 22 24 28 32)
    }
}

fn mask(width: usize) -> u32 {
    if width == 32 { u32::MAX } else { (1 << width) - 1 }
}

#[inline(always)]
fn unpack_slots<const WIDTH: usize>(planes: &[u8], offsets: &mut [u32; GROUP]) {
    let words = read_planes::<WIDTH>(planes);
    for (slot, row) in offsets.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let (word, shift) = (slot * WIDTH / 32, slot * WIDTH % 32);
        match shift + WIDTH > 32 {
            false => row.iter_mut().zip(&words[word]).for_each(|(offset, word)| *offset = word >> shift & mask(WIDTH)),
            true => {
                let parts = words[word].iter().zip(&words[word + 1]);
                row.iter_mut().zip(parts).for_each(|(offset, (low, high))| {
                    *offset = (low >> shift | high << (32 - shift)) & mask(WIDTH);
                });
            }
        }
    }
}

#[inline(always)]
fn read_planes<const WIDTH: usize>(planes: &[u8]) -> [Row; SLOTS] {
    let mut words = [[0u32; LANES]; SLOTS];
    let mut rest = planes;
    let mut word = 0;
    for _ in 0..WIDTH / 16 {
        rest = read_pieces::<4, 16>(rest, &mut words, &mut word);
    }
    if WIDTH & 8 != 0 {
        rest = read_pieces::<2, 8>(rest, &mut words, &mut word);
    }
    if WIDTH & 4 != 0 {
        rest = read_pieces::<1, 4>(rest, &mut words, &mut word);
    }
    if WIDTH & 2 != 0 {
        let (plane, next) = rest.split_at(LANES * 2);
        for (piece, value) in plane.as_chunks::<2>().0.iter().zip(&mut words[word]) {
            *value = u32::from(u16::from_le_bytes(*piece));
        }
        rest = next;
    }
    if WIDTH & 1 != 0 {
        for (piece, value) in rest.iter().zip(&mut words[word]) {
            *value |= u32::from(*piece) << (8 * (WIDTH & 2));
        }
    }
    words
}

/// Reads a plane of pieces of so many words.
#[inline(always)]
fn read_pieces<'a, const WORDS: usize, const BYTES: usize>(
    planes: &'a [u8],
    words: &mut [Row; SLOTS],
    word: &mut usize,
) -> &'a [u8] {
    let (plane, rest) = planes.split_at(LANES * BYTES);
    let pieces = plane.as_chunks::<BYTES>().0;
    for part in 0..WORDS {
        let row = &mut words[*word + part];
        for (value, piece) in row.iter_mut().zip(pieces) {
            *value =
                u32::from_le_bytes([piece[4 * part], piece[4 * part + 1], piece[4 * part + 2], piece[4 * part + 3]]);
        }
    }
    *word += WORDS;
    rest
}
