//! Time balance: the value of a stock over a span of a dimension is its first, last or average value, not its sum.

use super::map::TargetMap;
use crate::matrix::SparseMatrix;
use crate::model::Span;

impl TargetMap {
    /// The map of a measure with a time balance over this dimension. `positions[b]` is the position of base element
    /// `b`; the number of the base element breaks ties.
    ///
    /// The operation is linear: weights become 0 or are divided by the number of members. A base element that does not
    /// count is no longer a member, so that the balance of a year without its last month is empty.
    ///
    /// # Panics
    /// If `positions` has no entry for a member.
    pub fn balanced(&self, span: Span, positions: &[u32]) -> TargetMap {
        let lists = self.lists().into_iter().map(|mut list| {
            let place = |entry: &&(u32, f64)| (positions[entry.0 as usize], entry.0);
            let kept = match span {
                Span::First => list.iter().min_by_key(place).copied(),
                Span::Last => list.iter().max_by_key(place).copied(),
                Span::Average => {
                    let members = list.len() as f64;
                    list.iter_mut().for_each(|entry| entry.1 /= members);
                    return list;
                }
            };
            kept.into_iter().collect()
        });
        let lists: Vec<Vec<(u32, f64)>> = lists.collect();
        TargetMap { matrix: SparseMatrix::from_rows(self.bases(), lists.iter().map(Vec::as_slice)).transposed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_position_or_the_mean_is_left() {
        let map = TargetMap::from_targets(4, &[vec![(0, 1.0), (1, 1.0), (3, 2.0)], vec![], vec![(2, 1.0)]]).unwrap();
        let positions = [5, 9, 0, 1];
        let lists = |span| map.balanced(span, &positions).lists();
        assert_eq!(lists(Span::First), [vec![(3, 2.0)], vec![], vec![(2, 1.0)]]);
        assert_eq!(lists(Span::Last), [vec![(1, 1.0)], vec![], vec![(2, 1.0)]]);
        let thirds = vec![(0, 1.0 / 3.0), (1, 1.0 / 3.0), (3, 2.0 / 3.0)];
        assert_eq!(lists(Span::Average), [thirds, vec![], vec![(2, 1.0)]]);
    }
}
