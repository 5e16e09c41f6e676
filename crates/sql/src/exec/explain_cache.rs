//! Fragments of the plans that are kept, so that EXPLAIN finds what running a statement has found out: an EXPLAIN is
//! planned by itself and has fragments of its own.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::lower::Lowered;

/// Past so many entries those of plans that are gone are cleared away.
const ENTRIES: usize = 1024;

/// Weak references to fragments, by identity.
#[derive(Debug, Default)]
pub(crate) struct ExplainCache {
    fragments: Mutex<HashMap<String, Weak<Lowered>>>,
}

impl ExplainCache {
    /// Enters a fragment, in the place of an equal one.
    pub(crate) fn remember(&self, lowered: &Arc<Lowered>) {
        let mut fragments = self.fragments.lock();
        if fragments.len() >= ENTRIES {
            fragments.retain(|_, fragment| fragment.strong_count() > 0);
        }
        fragments.insert(lowered.identity.clone(), Arc::downgrade(lowered));
    }

    /// Lets a fragment know how many rows an equal one gives.
    pub(crate) fn tell(&self, lowered: &Lowered) {
        let twin = self.fragments.lock().get(&lowered.identity).and_then(Weak::upgrade);
        twin.into_iter().for_each(|twin| lowered.cardinality.take_over(&twin.cardinality));
    }

    /// The fragment if it is bound, else an equal one that is bound, else the fragment; each as `runs` gives it, which
    /// may read derived columns.
    pub(crate) fn bound(&self, lowered: &Arc<Lowered>, runs: impl Fn(Arc<Lowered>) -> Arc<Lowered>) -> Arc<Lowered> {
        let itself = runs(lowered.clone());
        let twin = || self.fragments.lock().get(&lowered.identity).and_then(Weak::upgrade);
        match itself.binding.is_bound() {
            true => itself,
            false => twin().map(runs).filter(|twin| twin.binding.is_bound()).unwrap_or(itself),
        }
    }
}
