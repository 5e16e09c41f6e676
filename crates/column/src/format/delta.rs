//! Delta: the first of every four rows as its distance from a line, the next three as differences.
//!
//! A quad is four consecutive rows. Its string and the head of its vector decode it, independently of other quads.
//! Arithmetic is modulo 2^32 or 2^64; the smallest of several differences is that of signed numbers.
//!
//! ```text
//! 0             groups  [4 V] × 32 * W bytes, as in packed segments: the four offsets of a quad, W bits each, are
//!                       its string of 4 * W bits
//! 128 * W * V   heads   [V] × 4 words: base, near, far, least
//! ```
//!
//! ```text
//! string of a quad:  H bits of distance, then three offsets of D bits; zeros above them
//! first row of quad q of a vector  =  base + q % 32 * near + q / 32 * far + distance
//! next rows of a quad              =  row before + least + offset
//! ```
//!
//! `W` and `D` are constants of the column; `H` is the smaller of 4 * W - 3 * D and the bits of a word. If `W` is a
//! whole word, so is `D`. The line of a vector is flat or leads from its first to its last quad: the one with the
//! smaller distances. `far` is its step over 32 quads, `near` its step over one quad, both rounded down.
//!
//! Null slots, and padding in the quad of the last row, repeat the value before them. Strings of later quads are zeros;
//! readers replace their values by the first value that they read. Words are those of packed segments, 4 or 8 bytes.
//! Source: ours. GPU-DFOR (section 5.4 of Shanbhag, "Interactive Data Analytics Using GPUs") sums differences over
//! whole tiles, so that lanes wait for each other; here a lane decodes its quads alone.

use super::WIDTHS;
use super::bitpack::GROUP_ROWS;
use super::codec::{Codec, EncodedBytes};
use super::packed::{ladder, pack_group, unpack_group};
use super::values::Plain;
use super::word::{Native, Word, with_native, word_at};
use crate::error::encoding::{EncodingError, Result};
use crate::units::{Storage, VECTOR_ROWS};

/// Rows of a quad.
const QUAD: usize = 4;
/// Quads of a vector.
const QUADS: usize = VECTOR_ROWS / QUAD;
/// Quads of half a group, one for each lane.
const LANES: usize = 32;
/// Words of a vector's head.
const HEAD_WORDS: usize = 4;

/// Parameters of a delta segment or column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delta {
    /// Bits of a row, a quarter of a quad's string: one of [`WIDTHS`], at most a word of the storage.
    pub width: u32,
    /// Bits of the offset of a difference.
    pub differences: u32,
}

/// A vector's head.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Head<W> {
    base: W,
    near: W,
    far: W,
    least: W,
}

impl<W: Word> Head<W> {
    /// The head of a vector, and the bits of its widest distance and its widest offset.
    fn of<T: Native<Word = W>>(quads: &[[T; QUAD]]) -> (Head<W>, u32, u32) {
        let first = |quad: usize| quads[quad][0].to_word();
        let (rise, run) = (number(first(quads.len() - 1).minus(first(0))), quads.len().max(2) as i64 - 1);
        let (whole, rest) = (rise.div_euclid(run), rise.rem_euclid(run));
        let far = whole.wrapping_mul(LANES as i64).wrapping_add(LANES as i64 * rest / run);
        let (far, near) = (W::from_u64(far as u64), W::from_u64((far >> LANES.ilog2()) as u64));
        let along = |near, far| {
            let line = Head { base: first(0), near, far, least: W::default() };
            let distances = || line.line().zip(quads).map(|(at, quad)| number(quad[0].to_word().minus(at)));
            let low = W::from_u64(distances().min().expect("there are quads") as u64);
            let high = W::from_u64(distances().max().expect("there are quads") as u64);
            (Head { base: line.base.plus(low), ..line }, high.minus(low).significant())
        };
        let lines = [along(W::default(), W::default()), along(near, far)];
        let (line, distance) = lines.into_iter().min_by_key(|(_, bits)| *bits).expect("there are two lines");
        let differences = || quads.iter().flat_map(|quad| quad.windows(2).map(difference));
        let least = W::from_u64(differences().min().expect("there are quads") as u64);
        let most = W::from_u64(differences().max().expect("there are quads") as u64);
        (Head { least, ..line }, distance, most.minus(least).significant())
    }

    /// The points of the line, one for each quad.
    fn line(self) -> impl Iterator<Item = W> {
        let steps = |from: W, step: W| std::iter::successors(Some(from), move |at| Some(at.plus(step)));
        steps(self.base, self.far).take(QUADS / LANES).flat_map(move |at| steps(at, self.near).take(LANES))
    }

    fn read(heads: &[u8], vector: usize) -> Head<W> {
        let word = |at| word_at(heads, HEAD_WORDS * vector + at).expect("the length was checked");
        Head { base: word(0), near: word(1), far: word(2), least: word(3) }
    }

    fn write(self, bytes: &mut [u8]) {
        let words = [self.base, self.near, self.far, self.least];
        bytes.chunks_exact_mut(W::BYTES).zip(words).for_each(|(bytes, word)| word.write(bytes));
    }
}

/// The quads of a vector's rows.
fn quads<'a, T>(plain: &Plain<'_>, vector: usize, values: &'a [T; VECTOR_ROWS]) -> &'a [[T; QUAD]] {
    let rows = (plain.rows() - vector * VECTOR_ROWS).min(VECTOR_ROWS);
    &values.as_chunks::<QUAD>().0[..rows.div_ceil(QUAD)]
}

/// The second of two values less the first.
fn difference<T: Native>(pair: &[T]) -> i64 {
    number(pair[1].to_word().minus(pair[0].to_word()))
}

/// A word as a signed number.
fn number<W: Word>(word: W) -> i64 {
    let above = 64 - W::BITS;
    (word.to_u64() << above) as i64 >> above
}

/// Bits shifted left, or right by a negative distance.
fn shifted(bits: u64, by: i32) -> u64 {
    match by {
        0..64 => bits << by,
        -63..0 => bits >> -by,
        _ => 0,
    }
}

/// The low bits of a word.
fn low(word: u64, bits: u32) -> u64 {
    if bits >= 64 { word } else { word & ((1 << bits) - 1) }
}

impl Delta {
    /// The narrowest parameters for distances and offsets of these bits.
    pub(crate) fn narrowest(storage: Storage, distance: u32, differences: u32) -> Delta {
        let word = 8 * storage.word_bytes() as u32;
        let width = ladder((distance + 3 * differences).div_ceil(4));
        if width < word { Delta { width, differences } } else { Delta { width: word, differences: word } }
    }

    /// The narrowest parameters that hold a segment; `None` for floats.
    pub fn fit(plain: &Plain<'_>) -> Option<Delta> {
        if plain.storage().is_float() {
            return None;
        }
        let (mut distance, mut differences) = (0, 0);
        with_native!(plain.storage(), Value => for vector in 0..plain.vectors() {
            let (_, of_heads, of_others) = Head::of(quads(plain, vector, &plain.filled::<Value>(vector)));
            (distance, differences) = (distance.max(of_heads), differences.max(of_others));
        });
        Some(Delta::narrowest(plain.storage(), distance, differences))
    }

    /// Bits of a quad's distance.
    pub fn distance(&self, storage: Storage) -> u32 {
        (4 * self.width - 3 * self.differences).min(8 * storage.word_bytes() as u32)
    }

    /// Bytes of a segment.
    pub(crate) fn bytes(&self, storage: Storage, vectors: usize) -> usize {
        vectors * (VECTOR_ROWS / 8 * self.width as usize + HEAD_WORDS * storage.word_bytes())
    }

    /// The fields of a quad's string: first bit and number of bits.
    fn fields(&self, storage: Storage) -> [(i32, u32); QUAD] {
        let distance = self.distance(storage);
        let offset = |number: u32| ((distance + number * self.differences) as i32, self.differences);
        [(0, distance), offset(0), offset(1), offset(2)]
    }

    fn encode_native<T: Native>(&self, plain: &Plain<'_>, out: &mut [u8]) -> Result<()> {
        let (width, fields) = (self.width as usize, self.fields(plain.storage()));
        let (groups, heads) = out.split_at_mut(plain.vectors() * VECTOR_ROWS / 8 * width);
        for (vector, bytes) in heads.chunks_exact_mut(HEAD_WORDS * T::Word::BYTES).enumerate() {
            let values = plain.filled::<T>(vector);
            let quads = quads(plain, vector, &values);
            let (head, ..) = Head::of(quads);
            head.write(bytes);
            let mut offsets = [T::Word::default(); VECTOR_ROWS];
            let quads = quads.iter().zip(offsets.as_chunks_mut::<QUAD>().0);
            for (quad, ((values, offsets), at)) in quads.zip(head.line()).enumerate() {
                let mut last = at.minus(head.least);
                let parts = values.map(|value| {
                    let part = value.to_word().minus(last).minus(head.least);
                    last = value.to_word();
                    part
                });
                if let Some(wide) = parts.iter().zip(&fields).position(|(part, field)| part.significant() > field.1) {
                    let row = vector * VECTOR_ROWS + quad * QUAD + wide;
                    let reason = format!("its value needs more than {} bits", fields[wide].1);
                    return Err(EncodingError::Overflow { encoding: "delta", row, reason });
                }
                for (number, offset) in offsets.iter_mut().enumerate() {
                    let from = (number * width) as i32;
                    let cut = parts.iter().zip(&fields).map(|(part, (at, _))| shifted(part.to_u64(), at - from));
                    *offset = T::Word::from_u64(low(cut.fold(0, |all, part| all | part), self.width));
                }
            }
            let planes = groups[vector * 128 * width..(vector + 1) * 128 * width].chunks_exact_mut(32 * width.max(1));
            let groups = offsets.as_chunks::<GROUP_ROWS>().0;
            planes.zip(groups).for_each(|(planes, offsets)| pack_group(self.width, offsets, planes));
        }
        Ok(())
    }

    /// Distance and offsets of a quad.
    fn parts<W: Word>(&self, fields: &[(i32, u32); QUAD], offsets: [W; QUAD]) -> [W; QUAD] {
        fields.map(|(at, bits)| {
            let place = |number: usize| (number as u32 * self.width) as i32 - at;
            let part = (0..QUAD).fold(0, |all, number| all | shifted(offsets[number].to_u64(), place(number)));
            W::from_u64(low(part, bits))
        })
    }

    fn decode_native<T: Native>(&self, segment: EncodedBytes<'_>) -> Vec<u8> {
        let (fields, rows) = (self.fields(segment.storage), segment.rows);
        let (groups, heads) = self.split(segment);
        let mut values = vec![0; segment.padded() * T::BYTES];
        let mut offsets = [T::Word::default(); GROUP_ROWS];
        for (vector, values) in values.chunks_exact_mut(VECTOR_ROWS * T::BYTES).enumerate() {
            let head = Head::<T::Word>::read(heads, vector);
            let mut line = head.line();
            for (group, values) in values.chunks_exact_mut(GROUP_ROWS * T::BYTES).enumerate() {
                unpack_group(self.width, self.group(groups, 4 * vector + group), &mut offsets);
                let quads = values.chunks_exact_mut(QUAD * T::BYTES).zip(offsets.as_chunks::<QUAD>().0);
                for ((values, offsets), at) in quads.zip(&mut line) {
                    let mut last = at.minus(head.least);
                    for (value, part) in values.chunks_exact_mut(T::BYTES).zip(self.parts(&fields, *offsets)) {
                        last = last.plus(head.least).plus(part);
                        T::from_word(last).write(value);
                    }
                }
            }
            let (first, behind) = values.split_at_mut((rows - vector * VECTOR_ROWS).min(VECTOR_ROWS) * T::BYTES);
            behind.chunks_exact_mut(T::BYTES).for_each(|value| value.copy_from_slice(&first[..T::BYTES]));
        }
        values
    }

    /// Groups and heads.
    fn split<'a>(&self, segment: EncodedBytes<'a>) -> (&'a [u8], &'a [u8]) {
        segment.bytes.split_at(segment.padded() / 8 * self.width as usize)
    }

    /// A group's planes.
    fn group<'a>(&self, groups: &'a [u8], number: usize) -> &'a [u8] {
        let bytes = 32 * self.width as usize;
        &groups[number * bytes..(number + 1) * bytes]
    }
}

impl Codec for Delta {
    fn check(&self, storage: Storage) -> Result<()> {
        let word = 8 * storage.word_bytes() as u32;
        let fits = WIDTHS.contains(&self.width) && self.width <= word && 3 * self.differences <= 4 * self.width;
        let reason = match storage.is_float() {
            true => "floats have no differences",
            false if fits && (self.width < word || self.differences == word) => return Ok(()),
            false => "its fields do not fit the words of the storage",
        };
        Err(EncodingError::NotApplicable { encoding: "delta", storage, reason })
    }

    fn takes(&self, bytes: usize, storage: Storage, rows: usize) -> bool {
        bytes == self.bytes(storage, rows.div_ceil(VECTOR_ROWS))
    }

    fn encode(&self, plain: &Plain<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.resize(self.bytes(plain.storage(), plain.vectors()), 0);
        with_native!(plain.storage(), Value => self.encode_native::<Value>(plain, out))
    }

    fn decode(&self, segment: EncodedBytes<'_>) -> Result<Vec<u8>> {
        Ok(with_native!(segment.storage, Value => self.decode_native::<Value>(segment)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernels look up the codes of padding too.
    #[test]
    fn padding_decodes_to_values_of_the_segment() {
        let values: Vec<u8> = (0..2048i32).flat_map(|row| row.min(1099).to_le_bytes()).collect();
        let plain = Plain::new(Storage::I32, &values, None, 1_100).unwrap();
        let delta = Delta::fit(&plain).unwrap();
        assert_eq!(delta, Delta { width: 0, differences: 0 }, "a line");
        let mut bytes = Vec::new();
        delta.encode(&plain, &mut bytes).unwrap();
        let segment = EncodedBytes { bytes: &bytes, storage: Storage::I32, validity: None, rows: 1_100 };
        let decoded = delta.decode(segment).unwrap();
        let decoded: Vec<i32> = decoded.as_chunks().0.iter().map(|value| i32::from_le_bytes(*value)).collect();
        assert_eq!(decoded[..1_100], (0..1_100).collect::<Vec<_>>());
        assert!(decoded[1_100..].iter().all(|value| *value == 1_024), "{:?}", &decoded[1_100..]);
    }
}
