//! Plans optimised once for many statements: templates.
//!
//! A template is an optimised plan with placeholders of known types, before lowering. For a statement, its values take
//! the places of the placeholders, and the plan is lowered. Prepared statements have placeholders of their own, and
//! expressions are simplified once more with the values in place; of all others the literals are lifted out of
//! simplified expressions ([`super::literals`]). Statements whose values can change the shape of the plan (NULL,
//! LIMIT), those that depend on the moment and those that the optimiser does not take with placeholders have no
//! template and are planned each time.
//!
//! Invariant: a template is used only under the epoch it was optimised under, and for a plan over the very same tables.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::ParamValues;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use quick_cache::sync::Cache;

use super::{Epoch, cache, is_template};
use crate::mend::finer_times::FinerTimes;
use crate::shared::SharedTable;
use crate::walk::PlanWalk;

/// Templates kept.
const TEMPLATES_MAX: usize = 256;

/// What a template is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// The catalog's and the settings' part of an epoch: templates stand before lowering, so that what was found unfit
    /// for the device since does not matter.
    epoch: (u64, u64),
    /// Of the plan.
    hash: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    /// The plan with its placeholders, not yet optimised.
    input: Arc<LogicalPlan>,
    /// The tables that it reads.
    tables: Arc<[Arc<dyn TableProvider>]>,
    /// The plan optimised; none where it cannot be.
    optimized: Option<Arc<LogicalPlan>>,
}

/// The templates of a database.
#[derive(Debug)]
pub(crate) struct Templates {
    entries: Cache<Key, Entry>,
}

impl Default for Templates {
    fn default() -> Templates {
        Templates { entries: cache(TEMPLATES_MAX) }
    }
}

impl Templates {
    /// The optimised plan of `input` with values in place of its placeholders; the flag says that the template was made
    /// now. None where there can be no template, and for values that it cannot take.
    pub(crate) fn plan(
        &self,
        input: &LogicalPlan,
        values: &ParamValues,
        epoch: Epoch,
        state: &SessionState,
    ) -> Option<(LogicalPlan, bool)> {
        if !is_template(input).ok()? {
            return None;
        }
        let (template, is_new) = self.template(input, epoch, state).ok()?;
        Some((template?.as_ref().clone().replace_params_with_values(values).ok()?, is_new))
    }

    /// Drops templates of older generations of the catalog.
    pub(crate) fn drop_stale(&self, generation: u64) {
        self.entries.retain(|key, _| key.epoch.0 >= generation);
    }

    fn template(
        &self,
        input: &LogicalPlan,
        epoch: Epoch,
        state: &SessionState,
    ) -> Result<(Option<Arc<LogicalPlan>>, bool)> {
        let tables = tables(input)?;
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let key = Key { epoch: (epoch.catalog, epoch.settings), hash: hasher.finish() };
        let is_same = |entry: &Entry| {
            let mut both = entry.tables.iter().zip(&tables);
            entry.tables.len() == tables.len()
                && both.all(|(known, table)| Arc::ptr_eq(known, table))
                && *entry.input == *input
        };
        if let Some(entry) = self.entries.get(&key).filter(is_same) {
            return Ok((entry.optimized, false));
        }
        // What the optimiser refuses with placeholders, it may take with values.
        let optimized = tracing::info_span!("optimize").in_scope(|| state.optimize(input)).ok().map(Arc::new);
        let entry = Entry { input: Arc::new(input.clone()), tables: tables.into(), optimized: optimized.clone() };
        self.entries.insert(key, entry);
        Ok((optimized, true))
    }
}

/// A plan with simpler expressions: constants folded, casts taken from columns where they can be; again and again, as
/// the optimiser does it, since one pass leaves casts of casts.
pub(crate) fn simplify(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> =
        vec![Arc::new(FinerTimes), Arc::new(SimplifyExpressions::new())];
    Optimizer::with_rules(rules).optimize(plan, state, |_, _| {})
}

/// The tables that a plan reads, those below its views included, in the order of its scans. What a shared table reads
/// is scanned beside it.
pub(super) fn tables(plan: &LogicalPlan) -> Result<Vec<Arc<dyn TableProvider>>> {
    let mut found = Vec::new();
    plan.apply_nested(|plan| {
        if let LogicalPlan::TableScan(scan) = plan
            && SharedTable::of(scan).is_none()
        {
            match scan.source.get_logical_plan() {
                Some(view) => found.extend(tables(&view)?),
                None => found.push(source_as_provider(&scan.source)?),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
