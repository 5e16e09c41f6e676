//! Base elements that lie below an element over two paths, and so may count twice in it.

use std::collections::HashSet;

use super::{Dimension, ElementId, ElementKind};

/// Examples that are named.
const EXAMPLES_MAX: usize = 4;

/// Base elements of a dimension that reach one ancestor over two paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoPaths {
    /// The dimension.
    pub dimension: String,
    /// Number of the base elements.
    pub elements: u64,
    /// The first of them by position, each with the nearest such ancestor.
    pub examples: Vec<(String, String)>,
}

impl Dimension {
    /// The base elements that reach one ancestor over two paths; `None` if there are none. Edges of weight 0 add
    /// nothing and are no part of a path. Roots that share base elements are no such ancestors: nothing adds them up.
    ///
    /// Below an element with one parent, paths meet where they meet for the parent; the ancestors of others are walked.
    pub fn two_paths(&self) -> Option<TwoPaths> {
        let edges =
            self.order.iter().flat_map(|parent| self.element(*parent).children.iter().map(|edge| (*parent, edge)));
        let idle: HashSet<(ElementId, ElementId)> =
            edges.filter(|(_, edge)| edge.weight == 0.0).map(|(parent, edge)| (parent, edge.child)).collect();
        let idle = &idle;
        let parents = |id: ElementId| {
            let all = self.element(id).parents.iter().copied();
            all.filter(move |parent| !idle.contains(&(*parent, id)))
        };
        // By element number: the ancestor where two paths meet, and the last element whose ancestors were walked.
        let mut meets: Vec<Option<ElementId>> = vec![None; self.slots.len()];
        let mut seen: Vec<Option<ElementId>> = vec![None; self.slots.len()];
        for id in self.parents_first() {
            let above = parents(id).find_map(|parent| meets[parent.index()]);
            meets[id.index()] = match parents(id).nth(1) {
                None => above,
                Some(_) => {
                    let mut open: Vec<ElementId> = vec![id];
                    let mut next = 0;
                    let mut met = None;
                    while let Some(below) = open.get(next).copied().filter(|_| met.is_none()) {
                        for parent in parents(below) {
                            match seen[parent.index()].replace(id) {
                                Some(last) if last == id => met = met.or(Some(parent)),
                                _ => open.push(parent),
                            }
                        }
                        next += 1;
                    }
                    met.or(above)
                }
            };
        }
        let of_base = |id: &ElementId| {
            let met = meets[id.index()].filter(|_| self.element(*id).kind == ElementKind::Base)?;
            Some((self.element(*id).name.as_str(), self.element(met).name.as_str()))
        };
        let found = || self.order.iter().filter_map(of_base);
        let examples = found().take(EXAMPLES_MAX).map(|(one, other)| (one.to_owned(), other.to_owned())).collect();
        let elements = found().count() as u64;
        (elements > 0).then(|| TwoPaths { dimension: self.name.clone(), elements, examples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(consolidated: &[(&str, &[(&str, f64)])]) -> Option<(u64, Vec<String>)> {
        let dimension = Dimension::from_lists("D", &["a", "b", "c"], consolidated).unwrap();
        let found = dimension.two_paths()?;
        Some((found.elements, found.examples.into_iter().map(|(one, other)| format!("{one} {other}")).collect()))
    }

    #[test]
    fn paths_that_meet_are_found_and_alternative_roots_are_not() {
        let own: (&str, &[(&str, f64)]) = ("P", &[("a", 1.0), ("b", 1.0)]);
        assert_eq!(found(&[own, ("Q", &[("a", 1.0), ("c", 1.0)])]), None, "two roots");
        let below_one = [own, ("Q", &[("P", 1.0), ("a", 1.0)])];
        assert_eq!(found(&below_one), Some((1, vec!["a Q".into()])));
        // Paths that meet higher up; the nearest ancestor is named.
        let higher = [own, ("Q", &[("P", 1.0), ("c", 1.0)]), ("R", &[("P", -1.0)]), ("T", &[("Q", 1.0), ("R", 1.0)])];
        assert_eq!(found(&higher), Some((2, vec!["a T".into(), "b T".into()])));
        assert_eq!(found(&[own, ("Q", &[("P", 1.0), ("a", 0.0)])]), None, "weight 0 adds nothing");
        let idle = [own, ("Q", &[("a", 1.0)]), ("T", &[("P", 1.0), ("Q", 0.0)])];
        assert_eq!(found(&idle), None);
        let deep = [own, ("Q", &[("P", 1.0), ("a", 1.0)]), ("T", &[("Q", 1.0)]), ("U", &[("T", 1.0), ("Q", 1.0)])];
        assert_eq!(found(&deep), Some((2, vec!["a Q".into(), "b U".into()])));
    }
}
