//! Top-k in plain Rust, and what a result has to satisfy.

use std::cmp::Reverse;

use super::{Order, Ties};
use crate::prims::{Key, OrderedBits};

/// Bits whose largest are wanted.
fn rank<K: Key>(key: K, order: Order) -> OrderedBits {
    match order {
        Order::Largest => key.ordered_bits(),
        Order::Smallest => !key.ordered_bits(),
    }
}

/// The first `min(k, n)` rows by key, of equal keys by row.
pub fn top_k<K: Key>(keys: &[K], k: u64, order: Order) -> Vec<u64> {
    let mut rows: Vec<u64> = (0..keys.len() as u64).collect();
    rows.sort_by_key(|row| (Reverse(rank(keys[*row as usize], order)), *row));
    rows.truncate(k as usize);
    rows
}

/// Whether keys and rows are a result of top-k over `keys` by the contract of [`super`].
///
/// # Errors
/// The first place that is not.
pub fn check<K: Key>(
    keys: &[K],
    k: u64,
    order: Order,
    ties: Ties,
    out_keys: &[K],
    out_rows: &[u64],
) -> Result<(), String> {
    let expected = top_k(keys, k, order);
    if (out_keys.len(), out_rows.len()) != (expected.len(), expected.len()) {
        return Err(format!("{} keys and {} rows for {}", out_keys.len(), out_rows.len(), expected.len()));
    }
    for (at, row) in expected.iter().enumerate() {
        let (own, want) = (out_rows[at], keys[*row as usize]);
        let Some(key) = keys.get(own as usize) else { return Err(format!("row {own} at {at}: there is none")) };
        let same = |key: K| key.ordered_bits() == want.ordered_bits();
        if !same(out_keys[at]) || !same(*key) {
            return Err(format!("{:?} of row {own} = {key:?} at {at} instead of {want:?}", out_keys[at]));
        }
        if at > 0 && rank(out_keys[at - 1], order) == rank(out_keys[at], order) && out_rows[at - 1] >= own {
            return Err(format!("row {own} at {at} behind row {} of an equal key", out_rows[at - 1]));
        }
        if ties == Ties::FirstRows && own != *row {
            return Err(format!("row {own} at {at} instead of {row}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_from_others() {
        let keys = [1.0f32, f32::NAN, 3.0, -0.0, 3.0, 0.0];
        assert_eq!(top_k(&keys, 3, Order::Largest), [1, 2, 4]);
        assert_eq!(top_k(&keys, 9, Order::Smallest), [3, 5, 0, 2, 4, 1]);
        let largest = |ties, rows: [u64; 2]| check(&keys, 2, Order::Largest, ties, &[f32::NAN, 3.0], &rows);
        assert_eq!(largest(Ties::Any, [1, 4]), Ok(()));
        assert!(largest(Ties::FirstRows, [1, 4]).is_err());
        assert_eq!(largest(Ties::FirstRows, [1, 2]), Ok(()));
        assert!(largest(Ties::Any, [1, 0]).is_err());
        assert!(largest(Ties::Any, [1, 9]).is_err());
        let pair = |rows: [u64; 2]| check(&keys, 2, Order::Smallest, Ties::Any, &[0.0, 0.0], &rows);
        assert_eq!(pair([3, 5]), Ok(()));
        assert!(pair([5, 3]).is_err() && pair([3, 3]).is_err());
    }
}
