//! Plans of statements that were run before: by their text, by the shape of their text ([`shapes`]), and those of
//! prepared statements by the plan that was prepared ([`templates`]).
//!
//! What is kept by text is the optimised logical plan with its device nodes (which keep their bound kernels), never a
//! physical operator: those can be run only once. All connections of a database share what is kept ([`KeptPlans`]). An
//! entry is good for a connection with the same settings, by their content ([`Epoch`]), while the catalog is that it
//! was planned under and the files of its tables have not changed. A statement over a table that does not tell its
//! changes ([`tells_changes`]) is planned every time, and so are statements with functions such as `now()`, since the
//! optimiser folds them to a constant.

mod epoch;
mod holes;
mod shapes;
mod template;
mod templates;
mod written;

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, Statement as PlanStatement, Volatility};
use datafusion::physical_plan::ExecutionPlan;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, UnitWeighter};

use crate::catalog::Catalogs;
use crate::extension_types::ExtensionType;
use crate::lower::{DeviceNode, Refused};
use crate::memory_table::MemoryTable;
use crate::placement::{Basis, Declined};
use crate::shared::With;
use crate::walk::{PlanWalk, Walk};

pub(crate) use epoch::{Epoch, SettingsKeys};
use epoch::{TextAsked, TextKey};
pub(crate) use holes::{Holed, holed};
pub(crate) use shapes::{PlannedShape, Shape, Shapes, parameters};
pub(crate) use template::Template;
pub(crate) use templates::Templates;
use templates::tables;
pub(crate) use written::{is_sorted, reads_text, written_columns};

/// Statements kept.
const PLANS_MAX: usize = 256;
/// Longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// A statement ready for physical planning.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Optimised, with device nodes.
    pub(crate) plan: LogicalPlan,
    /// Operators that are not within device nodes.
    pub(crate) host_operators: u64,
    /// What stays on the CPU, and why.
    pub(crate) refused: Vec<Refused>,
    /// What a GPU would take of an EXPLAIN's plan, where there is none.
    pub(crate) with_gpu: Option<String>,
    /// Fragments among them whose columns are not on the device.
    pub(crate) declined: Vec<Declined>,
    /// The extension types of the result's columns.
    pub(crate) types: Vec<Option<ExtensionType>>,
    /// What that was decided by.
    pub(crate) basis: Basis,
    /// The operators of a plan with nothing to optimise, to be copied for each run.
    pub(crate) operators: OnceLock<Arc<dyn ExecutionPlan>>,
}

impl Planned {
    /// Whether fragments may belong elsewhere by now: columns may have come, have been asked for, or have left.
    pub(crate) fn is_misplaced(&self, now: Basis) -> bool {
        self.basis.columns.evictions != now.columns.evictions || !self.declined.is_empty() && self.basis != now
    }

    /// Whether some of the plan is for the device, and nothing was kept from it.
    pub(crate) fn is_for_device(&self) -> bool {
        let mut found = false;
        let walked = self.plan.apply_nested(|plan| {
            found |= DeviceNode::of(plan).is_some();
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        walked.is_ok() && found && self.refused.is_empty() && self.declined.is_empty()
    }

    /// Whether the plan is one fragment for the device with what is left for the CPU, which has no parameters.
    pub(crate) fn is_one_fragment(&self) -> bool {
        let (mut fragments, mut open) = (0, false);
        let walked = self.plan.apply_nested(|plan| {
            fragments += usize::from(matches!(plan, LogicalPlan::Extension(_)));
            if !matches!(plan, LogicalPlan::Extension(_)) {
                plan.apply_exprs(|expr| {
                    open |= expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))))?;
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.is_ok() && fragments == 1 && !open
    }

    /// Whether the CPU only sorts, projects, filters and cuts what comes back from the device: a few rows in one
    /// partition, for which DataFusion's rules for physical plans have nothing to do.
    pub(crate) fn is_lean(&self) -> bool {
        let mut lean = true;
        let walked = self.plan.apply_nested(|plan| {
            lean &= matches!(
                plan,
                LogicalPlan::Extension(_)
                    | LogicalPlan::Projection(_)
                    | LogicalPlan::Filter(_)
                    | LogicalPlan::Sort(_)
                    | LogicalPlan::Limit(_)
                    | LogicalPlan::SubqueryAlias(_)
                    | LogicalPlan::Subquery(_)
            );
            Ok(TreeNodeRecursion::Continue)
        });
        walked.is_ok() && lean
    }
}

#[derive(Debug, Clone)]
struct Entry {
    epoch: Epoch,
    tables: Arc<[TableReference]>,
    planned: Arc<Planned>,
}

/// What the connections of a database have planned.
#[derive(Debug, Default)]
pub(crate) struct KeptPlans {
    /// By the texts of statements.
    pub(crate) plans: PlanCache,
    pub(crate) shapes: Shapes,
    pub(crate) templates: Templates,
    pub(crate) settings: SettingsKeys,
    /// The catalog's generation that they are of.
    generation: AtomicU64,
}

impl KeptPlans {
    /// Drops plans of older generations of the catalog, once a generation; whether it did.
    pub(crate) fn drop_stale(&self, generation: u64) -> bool {
        if self.generation.fetch_max(generation, Ordering::AcqRel) >= generation {
            return false;
        }
        self.plans.drop_stale(generation);
        self.shapes.drop_stale(generation);
        self.templates.drop_stale(generation);
        true
    }
}

/// Plans by the texts of their statements and the settings they were planned with.
#[derive(Debug)]
pub(crate) struct PlanCache {
    entries: Cache<TextKey, Entry>,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache { entries: cache(PLANS_MAX) }
    }
}

impl PlanCache {
    /// The plan of a statement and the tables to look at before it is used, if it was planned under this epoch.
    pub(crate) fn get(&self, text: &str, epoch: Epoch) -> Option<(Arc<Planned>, Arc<[TableReference]>)> {
        let key = TextAsked { text, settings: epoch.settings };
        let entry = self.entries.get(&key).filter(|entry| entry.epoch == epoch)?;
        Some((entry.planned, entry.tables))
    }

    /// Drops plans of older generations of the catalog.
    pub(crate) fn drop_stale(&self, generation: u64) {
        self.entries.retain(|_, entry| entry.epoch.catalog >= generation);
    }

    /// Keeps the plan of a statement; one that has not been used for long leaves.
    pub(crate) fn keep(&self, text: &str, epoch: Epoch, tables: Arc<[TableReference]>, planned: &Arc<Planned>) {
        if text.len() <= TEXT_BYTES_MAX {
            let key = TextKey { text: text.into(), settings: epoch.settings };
            self.entries.insert(key, Entry { epoch, tables, planned: planned.clone() });
        }
    }
}

/// A cache of so many entries, in one part: a small one that is cut up would lose what is used.
fn cache<K: Eq + Hash, V: Clone>(entries_max: usize) -> Cache<K, V> {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(entries_max)
        .weight_capacity(entries_max as u64)
        .shards(1)
        .build()
        .expect("capacities are there");
    Cache::with_options(options, UnitWeighter, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// Whether a statement changes its connection as soon as it is planned: settings, what is prepared, functions.
pub(crate) fn is_immediate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Statement(statement) => !matches!(statement, PlanStatement::Execute(_)),
        LogicalPlan::Ddl(ddl) => matches!(ddl, DdlStatement::CreateFunction(_) | DdlStatement::DropFunction(_)),
        _ => false,
    }
}

/// Whether a plan that was not yet optimised means the same whenever it is run over the same tables.
pub(crate) fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    is_constant(plan, false)
}

/// Whether a plan with placeholders, not yet optimised, has one shape for all values but NULL.
pub(crate) fn is_template(plan: &LogicalPlan) -> Result<bool> {
    is_constant(plan, true)
}

/// Whether expressions give the same values whenever they are computed.
pub(crate) fn are_immutable(exprs: &[Expr]) -> Result<bool> {
    let mut immutable = true;
    for expr in exprs {
        expr.apply(|expr| {
            immutable &= is_immutable(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(immutable)
}

/// Functions whose type depends on the values of their arguments: with a placeholder they have another one.
const TYPED_BY_VALUES: [&str; 4] = ["round", "trunc", "arrow_cast", "arrow_try_cast"];

fn is_typed_by_placeholder(function: &ScalarFunction) -> Result<bool> {
    let mut found = false;
    for argument in function.args.iter().filter(|_| TYPED_BY_VALUES.contains(&function.name())) {
        found |= argument.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))))?;
    }
    Ok(found)
}

/// Whether the outermost step of an expression gives the same value for the same operands at any time.
fn is_immutable(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(function) => function.func.signature().volatility == Volatility::Immutable,
        Expr::ScalarVariable(_, _) => false,
        _ => true,
    }
}

/// Whether nothing in a plan depends on the moment, and nothing but `placeholders`, where they are allowed, on
/// parameters.
fn is_constant(plan: &LogicalPlan, placeholders: bool) -> Result<bool> {
    let mut repeatable = true;
    plan.apply_nested(|plan| {
        repeatable &= !matches!(
            plan,
            LogicalPlan::Statement(_)
                | LogicalPlan::Explain(_)
                | LogicalPlan::Analyze(_)
                | LogicalPlan::Dml(_)
                | LogicalPlan::Ddl(_)
                | LogicalPlan::Copy(_)
                | LogicalPlan::DescribeTable(_)
        );
        repeatable &= !matches!(plan, LogicalPlan::Extension(_)) || With::of(plan).is_some();
        // How many rows are kept is part of a plan's shape; VALUES take their types from what stands in them.
        let of_shape = matches!(plan, LogicalPlan::Limit(_) | LogicalPlan::Values(_));
        plan.apply_exprs(|expr| {
            expr.apply(|expr| {
                repeatable &= match expr {
                    Expr::Placeholder(placeholder) => placeholders && !of_shape && placeholder.field.is_some(),
                    Expr::ScalarFunction(function) => is_immutable(expr) && !is_typed_by_placeholder(function)?,
                    other => is_immutable(other),
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(repeatable)
}

/// Whether all tables of a plan, those below its views included, tell when they change: the generation of the catalog
/// grows with each version of a table in memory, and where a look at a table over files finds other files. No look at
/// files that are tables by their path, of a function or of a table that a program registered makes it grow.
pub(crate) fn tells_changes(plan: &LogicalPlan, catalogs: &Catalogs) -> Result<bool> {
    let known = |table: &Arc<dyn TableProvider>| {
        table.downcast_ref::<MemoryTable>().is_some_and(MemoryTable::is_listed)
            || table.is::<ListingTable>() && catalogs.looks_at(table)
    };
    Ok(tables(plan)?.iter().all(known))
}
