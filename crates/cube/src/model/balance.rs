//! Time balance: the weights of base elements where a target has its first, last or average value in place of the sum.
//!
//! An element below which all weights are 1 is a span: its balance is one of its base elements, or the mean of all of
//! them. Every other element is computed from its children, as a sum is: its balance is the weighted sum of theirs, so
//! that the growth of a stock from 2025 to 2026 is the difference of the two years' balances. Both are linear in the
//! facts: every algorithm of aggregation takes them as weights.

use super::weights::Walk;
use super::{BaseMap, BaseWeights, Dimension, ElementId, Span};
use crate::error::Result;

impl Dimension {
    /// Weights of all base elements in the balances of targets that are weighted sums of elements. A sum of spans at
    /// weight 1 is one span. A base element that does not count in a span has no entry: the balance of a year whose
    /// last month is empty is empty.
    ///
    /// # Errors
    /// As [`Dimension::base_map`].
    pub fn balance_map(&self, targets: &[Vec<(ElementId, f64)>], span: Span) -> Result<BaseMap> {
        let mut walks = BalanceWalks::new(self, span);
        let rows = targets.iter().map(|parts| walks.weights(parts)).collect::<Result<Vec<_>>>()?;
        self.compressed(rows)
    }
}

/// Walks below the targets of one measure.
struct BalanceWalks<'a> {
    dimension: &'a Dimension,
    span: Span,
    /// By element number: true if all weights below the element are 1.
    is_span: Vec<bool>,
    /// By element number: true if the balances of all spans at or below the element are known to `sums`.
    is_settled: Vec<bool>,
    /// Finds the base elements of spans.
    members: Walk<'a>,
    /// Adds up the balances of spans.
    sums: Walk<'a>,
}

impl<'a> BalanceWalks<'a> {
    fn new(dimension: &'a Dimension, span: Span) -> Self {
        let count = dimension.slots.len();
        let mut is_span = vec![false; count];
        for id in dimension.parents_first().into_iter().rev() {
            let edges = dimension.element(id).children();
            is_span[id.index()] = edges.iter().all(|edge| edge.weight == 1.0 && is_span[edge.child.index()]);
        }
        let is_settled = vec![false; count];
        Self { dimension, span, is_span, is_settled, members: Walk::new(dimension), sums: Walk::new(dimension) }
    }

    fn weights(&mut self, parts: &[(ElementId, f64)]) -> Result<BaseWeights> {
        if parts.iter().all(|(id, weight)| *weight == 1.0 && self.is_span[id.index()]) {
            return self.balance(parts);
        }
        let mut open: Vec<ElementId> = parts.iter().map(|(id, _)| *id).collect();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut self.is_settled[id.index()], true) {
                continue;
            }
            let edges = self.dimension.element(id).children();
            match self.is_span[id.index()] && !edges.is_empty() {
                true => self.sums.known[id.index()] = Some(self.balance(&[(id, 1.0)])?),
                false => open.extend(edges.iter().map(|edge| edge.child)),
            }
        }
        self.sums.weights(parts)
    }

    /// The balance of the span of some elements. Each of its base elements counts once, whatever the paths to it.
    fn balance(&mut self, parts: &[(ElementId, f64)]) -> Result<BaseWeights> {
        let BaseWeights { bases, .. } = self.members.weights(parts)?;
        let position = |base: &u32| self.dimension.at_base(*base).map(|element| self.dimension.position(element));
        let bases = match self.span {
            Span::First => bases.into_iter().min_by_key(position).into_iter().collect(),
            Span::Last => bases.into_iter().max_by_key(position).into_iter().collect(),
            Span::Average => bases,
        };
        let weights = vec![1.0 / bases.len() as f64; bases.len()];
        Ok(BaseWeights { bases, weights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lists = Vec<Vec<(u32, f64)>>;

    /// Two years of two months each, the later month before the earlier one, and elements that consolidate them.
    fn months() -> Dimension {
        let year = |first: &'static str, second: &'static str| [(second, 1.0), (first, 1.0)];
        let (y25, y26) = (year("11/25", "12/25"), year("11/26", "12/26"));
        let consolidated: [(&str, &[(&str, f64)]); 6] = [
            ("2025", &y25),
            ("2026", &y26),
            ("All", &[("2025", 1.0), ("2026", 1.0), ("12/26", 1.0)]),
            ("Growth", &[("2026", 1.0), ("2025", -1.0)]),
            ("Twice", &[("Growth", 2.0), ("12/26", 0.0)]),
            ("None", &[]),
        ];
        Dimension::from_lists("Month", &["11/25", "12/25", "11/26", "12/26"], &consolidated).unwrap()
    }

    fn lists(targets: &[&[&str]], span: Span) -> Lists {
        let dimension = months();
        let part = |name: &&str| (dimension.find(name).unwrap(), 1.0);
        let targets: Vec<Vec<_>> = targets.iter().map(|names| names.iter().map(part).collect()).collect();
        let map = dimension.balance_map(&targets, span).unwrap().by_target;
        let list = |row| map.row(row).0.iter().copied().zip(map.row(row).1.iter().copied()).collect();
        (0..map.rows()).map(list).collect()
    }

    #[test]
    fn a_span_has_one_base_element_or_the_mean() {
        let targets: [&[&str]; 4] = [&["2025"], &["All"], &["None"], &["11/25", "2026"]];
        assert_eq!(lists(&targets, Span::First), [vec![(0, 1.0)], vec![(0, 1.0)], vec![], vec![(0, 1.0)]]);
        assert_eq!(lists(&targets, Span::Last), [vec![(1, 1.0)], vec![(3, 1.0)], vec![], vec![(3, 1.0)]]);
        let mean = |bases: &[u32]| bases.iter().map(|&base| (base, 1.0 / bases.len() as f64)).collect::<Vec<_>>();
        let means = [mean(&[0, 1]), mean(&[0, 1, 2, 3]), vec![], mean(&[0, 2, 3])];
        assert_eq!(lists(&targets, Span::Average), means, "December 2026 lies below All on two paths, and counts once");
    }

    #[test]
    fn other_elements_add_the_balances_of_their_children() {
        let targets: [&[&str]; 3] = [&["Growth"], &["Twice"], &["Growth", "2025"]];
        let last = [vec![(1, -1.0), (3, 1.0)], vec![(1, -2.0), (3, 2.0)], vec![(1, 0.0), (3, 1.0)]];
        assert_eq!(lists(&targets, Span::Last), last);
        let first = [vec![(0, -1.0), (2, 1.0)], vec![(0, -2.0), (2, 2.0), (3, 0.0)], vec![(0, 0.0), (2, 1.0)]];
        assert_eq!(lists(&targets, Span::First), first);
        let growth = vec![(0, -0.5), (1, -0.5), (2, 0.5), (3, 0.5)];
        assert_eq!(lists(&targets[..1], Span::Average), [growth]);
    }
}
