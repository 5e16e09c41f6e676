//! A bound fragment with other constants in its filters.

use std::sync::Arc;

use crate::codegen::sink::BoundSink;
use crate::exec::bind::{BoundFragment, Root};
use crate::exec::binding::{Binding, BindingCache};
use crate::ir::{Expr, Fragment};
use crate::plan::order::{Item, Passing, filter_parts};
use crate::tuning::Tuning;

/// A share below which no shares are told apart.
const PASSING_LEAST: f64 = 1e-6;

impl BoundFragment {
    /// The same kernels for a fragment that differs from this one's in constants of filters alone. None where these
    /// constants ask for other kernels, or where many more or fewer rows pass. Estimates of bytes, and of what probes
    /// let pass, stay those of the constants that it was bound with.
    pub(crate) fn with_constants_of(&self, fragment: &Fragment, tuning: &Tuning) -> Option<BoundFragment> {
        if self.pipelines.len() != fragment.pipelines.len() {
            return None;
        }
        let filters = self.pipelines.iter().zip(&fragment.pipelines).map(|(pipeline, new)| {
            let parts = filter_parts(new);
            // Those over groups have a filter of their own, and no other.
            let passing = (!parts.is_empty()).then(|| Passing::of(&parts, &pipeline.plan.registers));
            let is_fit = |passing| fits(&pipeline.plan.passing, passing, tuning.passing_factor);
            passing.as_ref().is_none_or(is_fit).then_some((parts, passing))
        });
        let filters: Vec<(Vec<Expr>, Option<Passing>)> = filters.collect::<Option<_>>()?;
        let mut bound = self.clone();
        let last = bound.pipelines.len() - 1;
        for (index, (pipeline, (parts, passing))) in bound.pipelines.iter_mut().zip(filters).enumerate() {
            let Some(passing) = passing else { continue };
            for planned in &mut pipeline.order {
                if let Item::Filter(expr) = &mut planned.item {
                    expr.clone_from(parts.get(planned.part)?);
                    planned.share = *passing.shares.get(planned.part)?;
                }
            }
            if !pipeline.filters.put(&parts, &mut pipeline.params, &mut bound.arena) {
                return None;
            }
            let top = match (&mut bound.root, &mut pipeline.sink) {
                (Root::TopK(top), _) if index == last => Some(top),
                (_, BoundSink::TopK(top)) => Some(top),
                _ => None,
            };
            if let Some(top) = top
                && !top.sample_filters.put(&parts, &mut top.sample_params, &mut bound.arena)
            {
                return None;
            }
        }
        Some(bound)
    }
}

/// Whether about as many rows pass each group of filters, but for this factor.
fn fits(made_for: &Passing, now: &Passing, factor: f64) -> bool {
    let is_near = |(made_for, now): (&f64, &f64)| {
        let ratio = now.max(PASSING_LEAST) / made_for.max(PASSING_LEAST);
        (1.0 / factor..=factor).contains(&ratio)
    };
    made_for.groups.len() == now.groups.len() && made_for.groups.iter().zip(&now.groups).all(is_near)
}

/// A binding with the constants of another fragment of its shape, which `cache` keeps; none if these ask for other
/// kernels.
pub(super) fn taken_over(
    binding: &Binding,
    fragment: &Fragment,
    cache: &BindingCache,
    tuning: &Tuning,
) -> Option<Arc<Binding>> {
    let taken = Arc::new(binding.with_fragment(binding.fragment.with_constants_of(fragment, tuning)?));
    cache.keep(&taken);
    Some(taken)
}
