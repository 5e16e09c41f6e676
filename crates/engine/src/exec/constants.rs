//! A bound fragment with other constants in its filters.

use std::sync::Arc;

use warpcube_column::Relation;

use crate::exec::bind::{BoundFragment, Guesses, Root};
use crate::exec::binding::{Binding, BindingCache};
use crate::exec::run::Engine;
use crate::ir::{Expr, Fragment};
use crate::plan::order::{Item, filter_parts, share_of};

/// How many times more or fewer rows may pass the filters of a pipeline than with the constants that its kernel was
/// made for: the order of its steps and what it loads whole fit about as many.
const PASSING_FACTOR: f64 = 4.0;
/// A share below which no shares are told apart.
const PASSING_LEAST: f64 = 1e-6;

impl BoundFragment {
    /// The same kernels for a fragment that differs from this one's in constants of filters alone. None where these
    /// constants ask for other kernels, or where much more or fewer rows pass.
    pub(crate) fn with_constants_of(&self, fragment: &Fragment) -> Option<BoundFragment> {
        if !self.takes_constants || self.pipelines.len() != fragment.pipelines.len() {
            return None;
        }
        let mut bound = self.clone();
        let last = bound.pipelines.len() - 1;
        for (index, (pipeline, new)) in bound.pipelines.iter_mut().zip(&fragment.pipelines).enumerate() {
            let parts = filter_parts(new);
            if parts.is_empty() {
                continue;
            }
            let mut known: Vec<(usize, &mut Expr)> = Vec::new();
            known.extend(pipeline.order.iter_mut().filter_map(|planned| match &mut planned.item {
                Item::Filter(expr) => Some((planned.part, expr)),
                Item::Probe(_, _) | Item::Limit { .. } => None,
            }));
            known.sort_unstable_by_key(|(part, _)| *part);
            if known.len() != parts.len() {
                return None;
            }
            let before = share_of(known.iter().map(|(_, expr)| &**expr), &pipeline.registers).max(PASSING_LEAST);
            let ratio = share_of(&parts, &pipeline.registers).max(PASSING_LEAST) / before;
            known.into_iter().zip(&parts).for_each(|((_, expr), new)| expr.clone_from(new));
            if !(1.0 / PASSING_FACTOR..=PASSING_FACTOR).contains(&ratio) {
                return None;
            }
            if !pipeline.filters.put(&parts, &mut pipeline.params, &mut bound.arena) {
                return None;
            }
            if let Root::TopK(top) = &mut bound.root
                && index == last
                && !top.sample_filters.put(&parts, &mut top.sample_params, &mut bound.arena)
            {
                return None;
            }
        }
        Some(bound)
    }
}

impl Engine {
    /// The last binding of a fragment of the shape, with this one's constants; none if that was for other columns or
    /// these constants ask for other kernels.
    pub(super) fn taken_over(
        &self,
        fragment: &Fragment,
        cache: &BindingCache,
        tables: &[Relation],
        guesses: Guesses,
    ) -> Option<Arc<Binding>> {
        let latest = cache.latest().filter(|latest| latest.is_for(tables, guesses))?;
        let binding = Arc::new(latest.with_fragment(latest.fragment.with_constants_of(fragment)?));
        cache.keep(&binding);
        Some(binding)
    }
}
