//! The node that stands for device work in a logical plan.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, ParamValues};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use super::Lowered;
use super::operators::operators;
use crate::walk::Walk;

/// A fragment in place of the plan it was lowered from.
#[derive(Clone)]
pub(crate) struct DeviceNode {
    /// None where the node came from another session and was not planned here yet.
    lowered: Option<Arc<Lowered>>,
    /// The plan that the fragment stands for, as lowering saw it.
    original: LogicalPlan,
    /// The same plan with its mends; none where the node came from another session.
    on_cpu: Option<LogicalPlan>,
    /// How many operators it stands for.
    operators: u64,
    /// The values of the parameters that the plans have; none where they have none.
    values: Option<Arc<ParamValues>>,
}

impl DeviceNode {
    /// A node in place of `original`; `on_cpu` is that plan with its mends.
    pub(crate) fn new(lowered: Lowered, original: LogicalPlan, on_cpu: LogicalPlan) -> DeviceNode {
        let operators = operators(&original);
        DeviceNode { lowered: Some(Arc::new(lowered)), original, on_cpu: Some(on_cpu), operators, values: None }
    }

    /// A node of another session's plan: what can run where is for the session that received it to say.
    pub(crate) fn received(original: LogicalPlan) -> DeviceNode {
        let operators = operators(&original);
        DeviceNode { lowered: None, original, on_cpu: None, operators, values: None }
    }

    /// The node that a plan is, if it is one.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<&DeviceNode> {
        let LogicalPlan::Extension(extension) = plan else { return None };
        extension.node.as_any().downcast_ref()
    }

    /// The fragment, once it was lowered here.
    pub(crate) fn lowered(&self) -> Option<&Arc<Lowered>> {
        self.lowered.as_ref()
    }

    /// The plan it was lowered from.
    pub(crate) fn original(&self) -> &LogicalPlan {
        &self.original
    }

    /// How many operators of the plan it stands for.
    pub(crate) fn operators(&self) -> u64 {
        self.operators
    }

    /// The node with values of its parameters, and the fragment with them.
    pub(crate) fn filled(&self, lowered: Arc<Lowered>, values: Arc<ParamValues>) -> DeviceNode {
        DeviceNode { lowered: Some(lowered), values: Some(values), ..self.clone() }
    }

    /// The values of the parameters that its plans have.
    pub(crate) fn values(&self) -> Option<&Arc<ParamValues>> {
        self.values.as_ref()
    }

    /// What the CPU runs instead, with parameters where the node has values of some.
    pub(crate) fn on_cpu(&self) -> &LogicalPlan {
        self.on_cpu.as_ref().unwrap_or(&self.original)
    }
}

impl fmt::Debug for DeviceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_for_explain(f)
    }
}

// Two nodes are equal if they stand for equal plans.
impl PartialEq for DeviceNode {
    fn eq(&self, other: &Self) -> bool {
        self.original == other.original
    }
}

impl Eq for DeviceNode {}

impl PartialOrd for DeviceNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.original.partial_cmp(&other.original)
    }
}

impl Hash for DeviceNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.original.hash(state);
    }
}

impl UserDefinedLogicalNodeCore for DeviceNode {
    fn name(&self) -> &str {
        "Device"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.original.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        // The planner runs the subqueries it finds here before the node: those that are arguments of the fragment. The
        // original plan has them too, not lowered and without values of parameters.
        let is_subquery = |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_)));
        let own = self.original.expressions().into_iter();
        let own = own.filter(|expr| self.lowered.is_none() || !expr.exists(is_subquery).unwrap_or(true));
        let subqueries = self.lowered.iter().flat_map(|lowered| lowered.subqueries());
        own.chain(subqueries.cloned().map(Expr::ScalarSubquery)).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Device: {}", self.lowered.as_ref().map_or("not lowered yet", |lowered| &lowered.what))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        // Lowering is the last thing done to a plan: nobody has reason to change the expressions.
        if !inputs.is_empty() || exprs != self.expressions() {
            return Err(DataFusionError::Internal("a device node cannot be rewritten".into()));
        }
        Ok(self.clone())
    }
}
