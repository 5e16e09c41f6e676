//! The templates of prepared statements ([`super::template`]), by their plans.
//!
//! Statements whose values can change the shape of the plan (NULL, LIMIT), those that depend on the moment and those
//! that the optimiser does not take with placeholders have no template and are planned each time.
//!
//! Invariant: a template is used only under the epoch it was optimised under, and for a plan over the very same tables.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use quick_cache::sync::Cache;

use super::shapes::parameters;
use super::template::Template;
use super::{Epoch, cache, is_template};
use crate::catalog::Catalogs;
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
    /// None where the plan cannot be optimised with placeholders.
    template: Option<Arc<Template>>,
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
    /// The template of a plan whose placeholders have these fields; the flag says that it was made now. None where
    /// there can be none.
    pub(crate) fn get(
        &self,
        input: &LogicalPlan,
        fields: &[FieldRef],
        (epoch, catalogs): (Epoch, &Catalogs),
        state: &SessionState,
    ) -> Option<(Arc<Template>, bool)> {
        if !is_template(input).ok()? {
            return None;
        }
        let (template, is_new) = self.template(input, fields, (epoch, catalogs), state).ok()?;
        Some((template?, is_new))
    }

    /// Drops templates of older generations of the catalog.
    pub(crate) fn drop_stale(&self, generation: u64) {
        self.entries.retain(|key, _| key.epoch.0 >= generation);
    }

    fn template(
        &self,
        input: &LogicalPlan,
        fields: &[FieldRef],
        (epoch, catalogs): (Epoch, &Catalogs),
        state: &SessionState,
    ) -> Result<(Option<Arc<Template>>, bool)> {
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
            return Ok((entry.template, false));
        }
        // What the optimiser refuses with placeholders, it may take with values.
        let types = parameters(input, fields.len())?;
        let fills = types.iter().map(Option::as_ref).eq(fields.iter().map(|field| Some(field.data_type())));
        let optimized = tracing::info_span!("optimize").in_scope(|| state.optimize(input)).ok();
        let template = optimized.map(|optimized| Template::new(optimized, fills, catalogs)).transpose()?.map(Arc::new);
        let entry = Entry { input: Arc::new(input.clone()), tables: tables.into(), template: template.clone() };
        self.entries.insert(key, entry);
        Ok((template, true))
    }
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
