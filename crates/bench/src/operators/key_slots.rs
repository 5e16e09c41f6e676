//! Slots of keys of 32 bits in tables: by multiply-shift hashing, or the key's own place in a range.
//! `kernels/key_slots.cuh` is the device's side of this file.

use warpcube_gpu::prims::{DeviceSlice, Element, TileTuning, check_element, check_length};
use warpcube_gpu::{GpuError, Params, Result};

/// Kernel text of slots.
pub(crate) const KEY_SLOTS: &str = include_str!("../../kernels/key_slots.cuh");

/// The factor of multiply-shift hashing: 2^32 over the golden ratio, made odd (Knuth 3, 6.4). Keys that follow each
/// other, or lie apart by one step, go to places far from each other.
const FACTOR: u32 = 0x9e37_79b1;

/// Keys from `least` to `most`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRange {
    /// The smallest key there may be.
    pub least: u32,
    /// The largest one.
    pub most: u32,
}

/// A column of keys and the column of values beside it, both of [`Element::U32`].
#[derive(Debug, Clone, Copy)]
pub struct Pairs<'a> {
    /// The keys.
    pub keys: &'a DeviceSlice,
    /// As many values.
    pub values: &'a DeviceSlice,
}

/// How the rows of a hash join or a hash aggregation are cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableTuning {
    /// Tiles of a block whose table lies in device memory; linear probing takes one row a lane.
    pub tile: TileTuning,
    /// Threads of a block with a table in shared memory; a lane has as many rows.
    pub shared_threads: u32,
}

/// How a key leads to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeySlots {
    least: u32,
    width: u32,
    factor: u32,
    shift: u32,
    mask: u64,
}

impl KeyRange {
    /// All keys of 32 bits.
    pub const ALL: KeyRange = KeyRange { least: 0, most: u32::MAX };

    /// Number of keys; none for a range that ends before it begins.
    pub fn keys(self) -> u64 {
        (u64::from(self.most) + 1).saturating_sub(self.least.into())
    }

    /// Refuses a range without a key.
    pub(crate) fn check(self, operation: &str) -> Result<()> {
        if self.keys() > 0 {
            return Ok(());
        }
        let KeyRange { least, most } = self;
        Err(GpuError::Contract(format!("{operation}: keys from {least} to {most}, which are none")))
    }
}

impl Pairs<'_> {
    /// Refuses columns of other types or of different lengths.
    pub(crate) fn check(&self, operation: &str, role: &str) -> Result<()> {
        check_element(operation, &format!("{role} keys"), self.keys, Element::U32)?;
        check_element(operation, &format!("{role} values"), self.values, Element::U32)?;
        check_length(operation, &format!("{role} values"), self.values, self.keys.len())
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.keys.len()
    }
}

impl KeySlots {
    /// A slot for each key of a range.
    pub(crate) fn direct(range: KeyRange) -> KeySlots {
        let KeyRange { least, most } = range;
        KeySlots { least, width: most - least, factor: 1, shift: 0, mask: range.keys() - 1 }
    }

    /// `2^log` slots by hash, `log` from 1 to 32.
    pub(crate) fn hashed(range: KeyRange, log: u32) -> KeySlots {
        let KeyRange { least, most } = range;
        KeySlots { least, width: most - least, factor: FACTOR, shift: 32 - log, mask: (1 << log) - 1 }
    }

    /// The members `KeySlots` of parameter structs.
    pub(crate) fn params(self, params: Params) -> Params {
        let KeySlots { least, width, factor, shift, mask } = self;
        params.u64(least.into()).u64(width.into()).u64(factor.into()).u64(shift.into()).u64(mask)
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::prims::radix_partition::{PartitionBy, radix_partition};

    use super::*;

    /// The slot of a key; none if the range has not got the key.
    fn home(slots: KeySlots, key: u32) -> Option<u64> {
        let relative = key.wrapping_sub(slots.least);
        (relative <= slots.width).then(|| (relative.wrapping_mul(slots.factor) >> slots.shift).into())
    }

    #[test]
    fn partitions_hold_slots_that_follow_each_other() {
        let range = KeyRange { least: 1000, most: 250_000 };
        let (least, most) = (range.least.into(), range.most.into());
        let keys: Vec<u32> = (range.least..=range.most).collect();
        let ways = [
            (KeySlots::direct(range), PartitionBy::Range { least, most }),
            (KeySlots::hashed(range, 20), PartitionBy::Hash { least, most }),
        ];
        for (slots, by) in ways {
            let partitions = radix_partition(&keys, by).unwrap();
            let of =
                |rows: &Vec<u64>| rows.iter().map(|row| home(slots, keys[*row as usize]).unwrap()).collect::<Vec<_>>();
            let homes: Vec<Vec<u64>> = partitions.iter().map(of).filter(|homes| !homes.is_empty()).collect();
            assert!(homes.windows(2).all(|pair| pair[0].iter().max() <= pair[1].iter().min()));
            assert_eq!((home(slots, 999), home(slots, 250_001)), (None, None));
        }
    }

    #[test]
    fn keys_that_follow_each_other_meet_rarely() {
        let slots = KeySlots::hashed(KeyRange::ALL, 12);
        for step in [1, 7, 64, 1 << 16] {
            let mut homes: Vec<_> = (0..2048u32).map(|i| home(slots, i.wrapping_mul(step))).collect();
            homes.sort_unstable();
            homes.dedup();
            assert!(homes.len() > 1500, "step {step}: {} slots", homes.len());
        }
    }
}
