//! The sort of records on one core: radix sort, least significant digit first, over some bits of the keys.

use std::ops::Range;

use crate::key::Key;

/// A key, and the number of its row.
pub(crate) type Record<K> = (K, u32);

/// Bits of a digit.
const DIGIT_BITS: u32 = 8;
/// Records below which a sort by comparison is quicker than passes over 256 counters.
const RADIX_RECORDS_MIN: usize = 512;

/// Sorts records by bits `bits` of their keys; those in front of it are the same in all of them. `spare` is memory for
/// as many records. Records that are equal there come in any order.
pub(crate) fn sort<K: Key>(records: &mut [Record<K>], spare: &mut Vec<Record<K>>, bits: Range<u32>) {
    if records.len() < RADIX_RECORDS_MIN {
        return records.sort_unstable_by_key(|record| record.0);
    }
    spare.resize(spare.len().max(records.len()), Record::default());
    let spare = &mut spare[..records.len()];
    let mut is_in_spare = false;
    for shift in bits.clone().step_by(DIGIT_BITS as usize) {
        let width = DIGIT_BITS.min(bits.end - shift);
        let (from, to) = if is_in_spare { (&*spare, &mut *records) } else { (&*records, &mut *spare) };
        is_in_spare ^= pass(from, to, |key| key.field(shift, width) as usize);
    }
    if is_in_spare {
        records.copy_from_slice(spare);
    }
}

/// Moves records to the order of a digit; does not if it is the same in all.
fn pass<K: Key>(from: &[Record<K>], to: &mut [Record<K>], digit: impl Fn(K) -> usize) -> bool {
    let mut places = [0usize; 1 << DIGIT_BITS];
    from.iter().for_each(|record| places[digit(record.0)] += 1);
    if places[digit(from[0].0)] == from.len() {
        return false;
    }
    let mut before = 0;
    for place in &mut places {
        before += std::mem::replace(place, before);
    }
    for record in from {
        let place = &mut places[digit(record.0)];
        to[*place] = *record;
        *place += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn long_and_short_runs_are_sorted_by_some_bits() {
        for len in [0, 1, RADIX_RECORDS_MIN - 1, RADIX_RECORDS_MIN, 5000] {
            for bits in [0..64, 3..20, 7..7, 40..57] {
                let mut random = Random::new(len as u64);
                // Bits in front of the range are alike.
                let mask = 1u64.checked_shl(bits.end).map_or(u64::MAX, |end| end - 1);
                let mut records: Vec<Record<u64>> = (0..len as u32).map(|row| (random.next() & mask, row)).collect();
                let given = records.clone();
                sort(&mut records, &mut Vec::new(), bits.clone());
                assert!(records.is_sorted_by_key(|record| record.0 >> bits.start.min(63)), "{len} {bits:?}");
                records.sort_unstable_by_key(|record| record.1);
                assert_eq!(records, given, "records are the same");
            }
        }
    }

    #[test]
    fn wide_keys_are_sorted_across_words() {
        let mut random = Random::new(1);
        let mut draw = || u128::from(random.next()) << 64 | u128::from(random.next());
        let mut records: Vec<Record<u128>> = (0..2000).map(|row| (draw(), row)).collect();
        sort(&mut records, &mut Vec::new(), 0..128);
        assert!(records.is_sorted_by_key(|record| record.0));
    }
}
