//! Keys of facts as packed miniblocks: what the pass over facts reads beside the values.
//!
//! ```text
//! firsts   [M + 1] × word   the first key of each miniblock, and the last key of all; a word has 8 or 16 bytes
//! starts   [M + 1] × u32    where the offsets of each miniblock begin, in units of 16 bytes, and their end
//! offsets  [units] × 16     of each miniblock, and 32 bytes of zeros behind the last one:
//!            up to 32 units   128 offsets to the first key of as many bits as units, lowest first
//!            more units       128 keys as they stand, a word each
//! ```
//!
//! A miniblock is 128 consecutive facts; `M` is their number, and the last one is filled up with its last key. Keys
//! ascend, so an offset takes the bits of the distance between the first and the last key. The word in front of each
//! miniblock and the next one bound its keys: the coordinates above the highest bit in which both differ are those of
//! all its facts, and the pass looks them up once for 128 facts.
//!
//! The packed encodings of `warpcube_column` take three times the bytes on sorted keys with long runs.
//!
//! Source: frame of reference in miniblocks (GPU-FOR; Shanbhag, *Interactive Data Analytics Using GPUs*, 5.3), with the
//! first key as reference, over keys of BESS.

use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use rayon::prelude::*;
use warpcube_arrays::key::{Key, KeyLayout};
use warpcube_gpu::{Device, DeviceBuffer, Reservation, size_class};

use super::error::DeviceError;
use crate::facts::{Bitmap, Keys, Segment};

/// Kernel text that reads these keys.
pub(super) const RESIDENT_KEYS: &str = include_str!("../../kernels/resident_keys.cuh");
/// Facts of a miniblock.
pub(super) const MINIBLOCK_FACTS: usize = 128;
/// Units of 16 bytes up to which a miniblock has offsets.
const OFFSET_UNITS_MAX: u32 = 32;
/// Bytes of a unit.
const UNIT_BYTES: usize = 16;
/// Words of 32 bits that a reader of the last miniblock may read behind it.
const PADDING_WORDS: usize = 8;
/// Miniblocks that one thread packs at a time.
const GROUP_MINIBLOCKS: usize = 1024;
/// Bytes of one upload.
const UPLOAD_BYTES: usize = 64 << 20;

/// The packed keys of a segment in host memory, with the base elements that occur in live cells.
pub(super) struct PackedKeys {
    firsts: Vec<u8>,
    starts: Vec<u32>,
    offsets: Vec<u32>,
    present: Vec<Vec<u64>>,
}

impl PackedKeys {
    /// Packs the keys of a segment, on all cores of the current rayon pool.
    ///
    /// # Errors
    /// Keys of more than 64 GiB.
    pub(super) fn of(facts: &Segment) -> Result<PackedKeys, DeviceError> {
        let dimensions = 0..facts.layout().dimensions();
        let coordinates = |dimension| facts.pages().coordinate_max(dimension).map_or(0, |most| most as usize + 1);
        let coordinates: Vec<usize> = dimensions.map(coordinates).collect();
        match facts.keys() {
            Keys::Narrow(keys) => pack(keys, facts.live(), facts.layout(), &coordinates),
            Keys::Wide(keys) => pack(keys, facts.live(), facts.layout(), &coordinates),
        }
    }

    /// Copies the keys to a device; `reservation` holds at least [`PackedKeys::device_bytes`].
    pub(super) fn upload(&self, device: &Device, reservation: Reservation) -> Result<ResidentKeys, DeviceError> {
        let mut stream = device.stream()?;
        let mut put = |bytes: &[u8], purpose: &str| -> Result<DeviceBuffer, DeviceError> {
            let buffer = device.buffer(bytes.len(), purpose)?;
            for (part, bytes) in bytes.chunks(UPLOAD_BYTES).enumerate() {
                stream.upload(&buffer, part * UPLOAD_BYTES, bytes)?;
            }
            stream.synchronize()?;
            Ok(buffer)
        };
        Ok(ResidentKeys {
            firsts: put(&self.firsts, "first keys of a cube")?,
            starts: put(bytemuck::cast_slice(&self.starts), "miniblocks of a cube")?,
            offsets: put(bytemuck::cast_slice(&self.offsets), "keys of a cube")?,
            miniblocks: self.starts.len() as u64 - 1,
            present: self.present.clone(),
            _reservation: reservation,
        })
    }

    /// Bytes of device memory that the keys take, by the classes of the device's pool.
    pub(super) fn device_bytes(&self) -> u64 {
        let parts = [self.firsts.len(), self.starts.len() * 4, self.offsets.len() * 4];
        parts.iter().map(|bytes| size_class(*bytes) as u64).sum()
    }
}

/// Packed keys on a device.
pub(super) struct ResidentKeys {
    pub(super) firsts: DeviceBuffer,
    pub(super) starts: DeviceBuffer,
    pub(super) offsets: DeviceBuffer,
    pub(super) miniblocks: u64,
    /// A bit for each coordinate of each dimension, 1 if a live cell has it.
    pub(super) present: Vec<Vec<u64>>,
    _reservation: Reservation,
}

impl ResidentKeys {
    /// The memory that the keys take.
    pub(super) fn buffers(&self) -> [&DeviceBuffer; 3] {
        [&self.firsts, &self.starts, &self.offsets]
    }

    /// Bytes that the keys take.
    pub(super) fn bytes(&self) -> u64 {
        self.buffers().iter().map(|buffer| buffer.bytes() as u64).sum()
    }
}

/// Packs keys with coordinates below `coordinates[d]` in dimension `d`.
fn pack<K: Key + Pod>(
    keys: &[K],
    live: Option<&Bitmap>,
    layout: &KeyLayout,
    coordinates: &[usize],
) -> Result<PackedKeys, DeviceError> {
    let miniblocks = keys.len().div_ceil(MINIBLOCK_FACTS);
    let lengths: Vec<u32> = keys.par_chunks(MINIBLOCK_FACTS).map(units).collect();
    let total: u64 = lengths.iter().map(|units| u64::from(*units)).sum();
    if total > u64::from(u32::MAX) {
        return Err(DeviceError::Unsupported { reason: format!("keys take {total} units of 16 bytes, at most 2^32") });
    }
    let mut starts = Vec::with_capacity(miniblocks + 1);
    let mut start = 0;
    for units in &lengths {
        starts.push(start);
        start += units;
    }
    starts.push(start);
    let mut offsets = vec![0_u32; total as usize * UNIT_BYTES / 4 + PADDING_WORDS];
    let groups = split(&mut offsets, &starts);
    let present = Occurring::new(layout, coordinates);
    let chunks = keys.par_chunks(MINIBLOCK_FACTS * GROUP_MINIBLOCKS).zip(groups);
    chunks.zip(starts.par_chunks(GROUP_MINIBLOCKS)).enumerate().for_each(|(group, ((keys, out), starts))| {
        for (keys, start) in keys.chunks(MINIBLOCK_FACTS).zip(starts) {
            let from = (start - starts[0]) as usize * UNIT_BYTES / 4;
            pack_miniblock(keys, units(keys), &mut out[from..]);
        }
        let first = group * MINIBLOCK_FACTS * GROUP_MINIBLOCKS;
        let is_live = |at: usize| live.is_none_or(|live| live.get(first + at));
        present.add(keys.iter().enumerate().filter(|(at, _)| is_live(*at)).map(|(_, key)| key));
    });
    let firsts: Vec<K> = keys.iter().step_by(MINIBLOCK_FACTS).chain(keys.last()).copied().collect();
    Ok(PackedKeys { firsts: bytemuck::cast_slice(&firsts).to_vec(), starts, offsets, present: present.end() })
}

/// The words of each group of miniblocks.
fn split<'a>(mut words: &'a mut [u32], starts: &[u32]) -> Vec<&'a mut [u32]> {
    let last = starts.len() - 1;
    let groups = (0..last).step_by(GROUP_MINIBLOCKS).map(|group| {
        let length = (starts[(group + GROUP_MINIBLOCKS).min(last)] - starts[group]) as usize * UNIT_BYTES / 4;
        let (own, rest) = std::mem::take(&mut words).split_at_mut(length);
        words = rest;
        own
    });
    groups.collect()
}

/// Units of 16 bytes of a miniblock.
fn units<K: Key + Pod>(keys: &[K]) -> u32 {
    let distance = keys[keys.len() - 1].distance(keys[0]);
    match u64::BITS - distance.leading_zeros() {
        bits if bits <= OFFSET_UNITS_MAX => bits,
        _ => (size_of::<K>() * MINIBLOCK_FACTS / UNIT_BYTES) as u32,
    }
}

fn pack_miniblock<K: Key + Pod>(keys: &[K], units: u32, out: &mut [u32]) {
    let filled = (0..MINIBLOCK_FACTS).map(|fact| keys[fact.min(keys.len() - 1)]);
    if units > OFFSET_UNITS_MAX {
        let words: Vec<K> = filled.collect();
        let words: &[u32] = bytemuck::cast_slice(&words);
        out[..words.len()].copy_from_slice(words);
        return;
    }
    let (mut held, mut bits, mut at) = (0_u64, 0, 0);
    for key in filled {
        held |= key.distance(keys[0]) << bits;
        bits += units;
        if bits >= u32::BITS {
            out[at] = held as u32;
            held >>= u32::BITS;
            bits -= u32::BITS;
            at += 1;
        }
    }
}

/// The coordinates of facts in each dimension, as bits; several threads add to them.
struct Occurring(Vec<OccurringIn>);

struct OccurringIn {
    shift: u32,
    mask: u32,
    words: Vec<AtomicU64>,
}

impl Occurring {
    /// No coordinates below `coordinates[d]` in dimension `d`.
    fn new(layout: &KeyLayout, coordinates: &[usize]) -> Occurring {
        let of = |(dimension, count): (usize, &usize)| OccurringIn {
            shift: layout.shift(dimension),
            mask: layout.coordinate_max(dimension),
            words: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        };
        Occurring(coordinates.iter().enumerate().map(of).collect())
    }

    fn add<'k, K: Key + Pod>(&self, keys: impl Iterator<Item = &'k K>) {
        let mut before = None;
        for key in keys {
            let key = key.wide();
            // Bits that differ from the key before; all of them for the first key.
            let changed = before.map_or(u128::MAX, |before: u128| before ^ key);
            for OccurringIn { shift, mask, words } in &self.0 {
                if before.is_none() || (changed >> shift) as u32 & mask != 0 {
                    let coordinate = (key >> shift) as u32 & mask;
                    let (word, bit) = (&words[coordinate as usize / 64], 1 << (coordinate % 64));
                    if word.load(Ordering::Relaxed) & bit == 0 {
                        word.fetch_or(bit, Ordering::Relaxed);
                    }
                }
            }
            before = Some(key);
        }
    }

    fn end(self) -> Vec<Vec<u64>> {
        let bits = |words: Vec<AtomicU64>| words.into_iter().map(AtomicU64::into_inner).collect();
        self.0.into_iter().map(|dimension| bits(dimension.words)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of packed miniblocks, without those that fill up the last one.
    fn unpacked<K: Key + Pod>(packed: &PackedKeys, facts: usize) -> Vec<u128> {
        let firsts: &[K] = bytemuck::cast_slice(&packed.firsts);
        let mut keys = Vec::new();
        for (miniblock, pair) in packed.starts.windows(2).enumerate() {
            let bytes: &[u8] = bytemuck::cast_slice(&packed.offsets[pair[0] as usize * 4..]);
            let units = pair[1] - pair[0];
            for fact in 0..MINIBLOCK_FACTS {
                keys.push(match units {
                    0..=OFFSET_UNITS_MAX => {
                        let bit = fact * units as usize;
                        let window: u64 = bytemuck::pod_read_unaligned(&bytes[bit / 32 * 4..bit / 32 * 4 + 8]);
                        firsts[miniblock].wide() + u128::from(window >> (bit % 32) & ((1 << units) - 1))
                    }
                    _ => bytemuck::cast_slice::<u8, K>(&bytes[..size_of::<K>() * MINIBLOCK_FACTS])[fact].wide(),
                });
            }
        }
        keys.truncate(facts);
        keys
    }

    fn check<K: Key + Pod>(keys: &[K], bits: &[u32], units: &[u32]) {
        let packed = pack(keys, None, &KeyLayout::new(bits).unwrap(), &[]).unwrap();
        let found: Vec<u32> = packed.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(found, units);
        let expected: Vec<u128> = keys.iter().map(|key| key.wide()).collect();
        assert_eq!(unpacked::<K>(&packed, keys.len()), expected);
    }

    #[test]
    fn miniblocks_take_the_bits_of_their_distances() {
        let one: Vec<u64> = (0..300).map(|fact| 1000 + 3 * fact).collect();
        check(&one, &[32, 32], &[9, 9, 8]);
        check(&[7_u64], &[32], &[0]);
        let full: Vec<u64> = (0..128).map(|fact| fact * 33_818_640).collect();
        check(&full, &[64 - 32, 32], &[32]);
    }

    #[test]
    fn distant_keys_stand_as_they_are() {
        check(&[1_u64, 1 << 40], &[32, 32], &[64]);
        let wide: Vec<u128> = (0..200).map(|fact| (fact << 90) + 5).collect();
        check(&wide, &[32, 32, 32, 32], &[128, 128]);
        let near: Vec<u128> = (0..200).map(|fact| (1 << 100) + fact).collect();
        check(&near, &[32, 32, 32, 32], &[7, 7]);
    }

    #[test]
    fn groups_of_miniblocks_join() {
        let keys: Vec<u64> = (0..(MINIBLOCK_FACTS * GROUP_MINIBLOCKS * 2 + 5) as u64).map(|fact| fact * 2).collect();
        let packed = pack(&keys, None, &KeyLayout::new(&[10, 10]).unwrap(), &[1024; 2]).unwrap();
        let expected: Vec<u128> = keys.iter().map(|key| u128::from(*key)).collect();
        assert_eq!(unpacked::<u64>(&packed, keys.len()), expected);
        let set = |dimension: usize| packed.present[dimension].iter().map(|word| word.count_ones()).sum::<u32>();
        assert_eq!((set(0), set(1)), (513, 512));
    }
}
