//! Equalities that tie the relations of a core: which relation is placed next in its tree, and by which keys.

use std::collections::BTreeSet;

use datafusion::logical_expr::Expr;

use super::columns::{RelationId, relations};
use super::graph::Core;

/// What the members of a core are tied by.
pub(super) struct Ties<'c> {
    /// Expressions that are equal to each other, each of one relation: `a = b AND b = c` ties `a` and `c` as well, and
    /// a table whose key has several parts may find all of them where a query names only some.
    pub(super) classes: Vec<Vec<(RelationId, &'c Expr)>>,
    /// Equalities with a side that reads several relations, or one that is no member.
    pub(super) others: Vec<&'c (Expr, Expr)>,
}

impl<'c> Ties<'c> {
    /// Those of a core.
    pub(super) fn of(core: &'c Core) -> Ties<'c> {
        let mut ties = Ties { classes: Vec::new(), others: Vec::new() };
        let member = |expr: &Expr| match relations(expr).into_iter().collect::<Vec<_>>()[..] {
            [only] if core.members.contains(&only) => Some(only),
            _ => None,
        };
        for edge in &core.edges {
            let (Some(one), Some(other)) = (member(&edge.0), member(&edge.1)) else {
                ties.others.push(edge);
                continue;
            };
            let sides = [(one, &edge.0), (other, &edge.1)];
            let (known, rest): (Vec<_>, Vec<_>) =
                ties.classes.into_iter().partition(|class| sides.iter().any(|side| class.contains(side)));
            ties.classes = rest;
            let mut class = known.into_iter().flatten().collect::<Vec<_>>();
            for side in sides {
                if !class.contains(&side) {
                    class.push(side);
                }
            }
            ties.classes.push(class);
        }
        ties
    }

    /// Pairs of an expression of `relation` and one of placed relations; of equal ones that which was placed first.
    fn pairs(&self, relation: RelationId, placed: &[RelationId]) -> Vec<(&'c Expr, &'c Expr)> {
        let in_class = |class: &Vec<(RelationId, &'c Expr)>| {
            let of = |wanted: RelationId| class.iter().find(|(owner, _)| *owner == wanted).map(|(_, expr)| *expr);
            Some((of(relation)?, placed.iter().find_map(|owner| of(*owner))?))
        };
        let others = self.others.iter().filter_map(|edge| oriented(edge, relation, placed));
        self.classes.iter().filter_map(in_class).chain(others).collect()
    }

    /// Whether an equality reads what hangs on the core and is not placed yet.
    pub(super) fn wait_for_hanging(&self, core: &Core, placed: &[RelationId]) -> bool {
        let waits = |relation: RelationId| !core.members.contains(&relation) && !placed.contains(&relation);
        self.others.iter().any(|(one, other)| relations(one).into_iter().chain(relations(other)).any(waits))
    }

    /// The position of the waiting relation to place next, tied to the fewest placed ones, with those.
    ///
    /// What hangs on a dimension comes before the next dimension: where a cycle can be closed on either side, a table
    /// of few rows is then probed with what the dimensions bring, and their own filters thin them out before.
    pub(super) fn next(&self, waiting: &[RelationId], placed: &[RelationId]) -> Option<(usize, BTreeSet<RelationId>)> {
        let owners = |relation: &RelationId| -> BTreeSet<RelationId> {
            self.pairs(*relation, placed).into_iter().flat_map(|(_, other)| relations(other)).collect()
        };
        let tied = waiting.iter().map(owners).enumerate().filter(|(_, owners)| !owners.is_empty());
        tied.min_by_key(|(_, owners)| (owners.len(), owners.contains(&placed[0])))
    }

    /// The keys of a relation that is placed now.
    pub(super) fn take(&mut self, relation: RelationId, placed: &[RelationId]) -> Vec<(Expr, Expr)> {
        let pairs = self.pairs(relation, placed).into_iter().map(|(own, other)| (own.clone(), other.clone())).collect();
        self.others.retain(|edge| oriented(edge, relation, placed).is_none());
        pairs
    }
}

/// An edge between `relation` and placed ones as (its side, the other side).
fn oriented<'e>(
    (left, right): &'e (Expr, Expr),
    relation: RelationId,
    placed: &[RelationId],
) -> Option<(&'e Expr, &'e Expr)> {
    let own = |expr: &Expr| relations(expr).into_iter().eq([relation]);
    let known = |expr: &Expr| {
        let read = relations(expr);
        !read.is_empty() && read.iter().all(|relation| placed.contains(relation))
    };
    if own(left) && known(right) { Some((left, right)) } else { (own(right) && known(left)).then_some((right, left)) }
}
