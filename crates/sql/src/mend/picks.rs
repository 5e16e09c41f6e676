//! Values of sorted groups: at a share of the way through them, or the most frequent ones.
//!
//! The values of all groups are sorted at once and dealt out to their groups.

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, make_comparator};
use arrow::compute::{SortOptions, sort_to_indices, take};
use datafusion::error::Result;

/// Which value of a group is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick {
    /// The share of a percentile; a mode has none.
    pub(super) share: Option<f64>,
    /// Whether large values come first.
    pub(super) is_descending: bool,
}

impl Pick {
    /// The values of lists that have no NULL.
    pub(super) fn of_lists(self, lists: &ArrayRef) -> Result<ArrayRef> {
        let lists = lists.as_list::<i32>();
        let offsets: Vec<usize> = lists.value_offsets().iter().map(|offset| *offset as usize).collect();
        let values = lists.values();
        let (first, end) = (offsets[0], offsets[lists.len()]);
        let options = SortOptions { descending: self.is_descending, nulls_first: false };
        let order = sort_to_indices(&values.slice(first, end - first), Some(options), None)?;
        let mut list_of = vec![0; end - first];
        for (list, bounds) in offsets.windows(2).enumerate() {
            list_of[bounds[0] - first..bounds[1] - first].fill(list);
        }
        // Each list gets its values in their order, at the places that it has.
        let (mut sorted, mut next) = (vec![0u32; end - first], offsets.clone());
        for position in order.values() {
            let place = &mut next[list_of[*position as usize]];
            sorted[*place - first] = *position + first as u32;
            *place += 1;
        }
        let is_equal = make_comparator(values, values, SortOptions::default())?;
        let pick = |(list, bounds): (usize, &[usize])| {
            let of_list = &sorted[bounds[0] - first..bounds[1] - first];
            let is_equal = |one: u32, other: u32| is_equal(one as usize, other as usize).is_eq();
            if lists.is_null(list) { None } else { self.of_sorted(of_list, is_equal) }
        };
        let picked: UInt32Array = offsets.windows(2).enumerate().map(pick).collect();
        Ok(take(values, &picked, None)?)
    }

    /// One of the positions of sorted values.
    fn of_sorted(self, sorted: &[u32], is_equal: impl Fn(u32, u32) -> bool) -> Option<u32> {
        if let Some(share) = self.share {
            let number = (share * sorted.len() as f64).ceil().max(1.0) as usize;
            return sorted.get(number.min(sorted.len()).checked_sub(1)?).copied();
        }
        let runs = sorted.chunk_by(|one, other| is_equal(*one, *other));
        // Of equally long runs the first one.
        let longest = runs.reduce(|longest, run| if run.len() > longest.len() { run } else { longest });
        longest.map(|run| run[0])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, ListArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn picked(share: Option<f64>, is_descending: bool, lists: &ListArray) -> Vec<Option<i32>> {
        let lists: ArrayRef = Arc::new(lists.clone());
        let picked = Pick { share, is_descending }.of_lists(&lists).unwrap();
        picked.as_any().downcast_ref::<Int32Array>().unwrap().iter().collect()
    }

    #[test]
    fn values_are_picked_within_their_lists() {
        let list = |values: &[i32]| Some(values.iter().copied().map(Some).collect::<Vec<_>>());
        let lists = [list(&[9, 9, 9]), list(&[5, 1, 4, 1, 5]), None, list(&[]), list(&[2])];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        // A slice begins behind the first values.
        let lists = lists.slice(1, 4);
        assert_eq!(picked(None, false, &lists), [Some(1), None, None, Some(2)]);
        assert_eq!(picked(None, true, &lists), [Some(5), None, None, Some(2)]);
        for (share, up, down) in [(0.0, 1, 5), (0.2, 1, 5), (0.4, 1, 5), (0.5, 4, 4), (0.61, 5, 1), (1.0, 5, 1)] {
            assert_eq!(picked(Some(share), false, &lists), [Some(up), None, None, Some(2)], "{share}");
            assert_eq!(picked(Some(share), true, &lists), [Some(down), None, None, Some(2)], "{share}");
        }
    }
}
