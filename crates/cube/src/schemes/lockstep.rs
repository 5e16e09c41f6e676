//! Many binary searches over one sorted list, taken step by step together.
//!
//! A binary search over more keys than a cache holds waits for memory at every step. The searches of one group are
//! independent and of equal length, so that the processor overlaps their loads.

use std::array;

/// Searches of one group: as many loads as are in flight at a time on current processors.
pub(crate) const GROUP: usize = 16;

/// Position of each wanted key in the ascending list `keys`, absent where the list lacks it.
#[inline]
pub(crate) fn find<K: Copy + Ord>(keys: &[K], wanted: &[K; GROUP]) -> [Option<usize>; GROUP] {
    if keys.is_empty() {
        return [None; GROUP];
    }
    let mut bases = [0usize; GROUP];
    let mut size = keys.len();
    // The wanted key, if it is there, lies in bases[i]..bases[i] + size.
    while size > 1 {
        let half = size / 2;
        for (base, wanted) in bases.iter_mut().zip(wanted) {
            let middle = *base + half;
            *base = if keys[middle] <= *wanted { middle } else { *base };
        }
        size -= half;
    }
    array::from_fn(|index| (keys[bases[index]] == wanted[index]).then_some(bases[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_equal_single_searches() {
        for length in 0..70u64 {
            let keys: Vec<u64> = (0..length).map(|key| 3 * key + 1).collect();
            for start in 0..220 {
                let wanted = array::from_fn(|index| (start + 7 * index as u64) % 220);
                let expected = wanted.map(|wanted| keys.binary_search(&wanted).ok());
                assert_eq!(find(&keys, &wanted), expected, "{length} keys from {start}");
            }
        }
    }
}
