//! A plan with parameters, optimised once for many statements.
//!
//! A statement takes it in one of two ways. Where nothing of the plan is kept from the device, it is lowered once, and
//! its fragments take the statement's values ([`fill`](crate::lower::fill)): neither planning nor binding is done
//! again. Otherwise the values take the places of the parameters, and the plan is lowered.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use parking_lot::Mutex;

use super::{Planned, tells_changes};
use crate::catalog::Catalogs;
use crate::lower::param_values;
use crate::mend::finer_times::FinerTimes;
use crate::placement::Basis;

/// An optimised plan with parameters of known types.
#[derive(Debug)]
pub(crate) struct Template {
    /// The plan, not yet lowered.
    pub(crate) optimized: LogicalPlan,
    /// Whether each parameter is compared with columns of its type and with nothing else, so that a fragment may take
    /// its value.
    fills: bool,
    /// Whether all its tables tell when they change.
    pub(crate) tells_changes: bool,
    /// The plan lowered, with what placement depended on; none where something of it is kept from the device.
    lowered: Mutex<Option<(Basis, Option<Arc<Planned>>)>>,
}

impl Template {
    /// A template of an optimised plan.
    pub(crate) fn new(optimized: LogicalPlan, fills: bool, catalogs: &Catalogs) -> Result<Template> {
        let tells_changes = tells_changes(&optimized, catalogs)?;
        Ok(Template { optimized, fills, tells_changes, lowered: Mutex::default() })
    }

    /// The lowered plan whose fragments take values, none where there is none; the outer none asks for lowering, since
    /// placement depends on something else by now.
    pub(crate) fn lowered(&self, now: Basis) -> Option<Option<Arc<Planned>>> {
        if !self.fills || !now.open {
            return Some(None);
        }
        match &*self.lowered.lock() {
            Some((_, Some(planned))) if !planned.is_misplaced(now) => Some(Some(planned.clone())),
            Some((basis, None)) if *basis == now => Some(None),
            _ => None,
        }
    }

    /// Keeps the lowered plan.
    pub(crate) fn keep(&self, now: Basis, lowered: Option<Arc<Planned>>) {
        *self.lowered.lock() = Some((now, lowered));
    }

    /// The optimised plan with values in place of its parameters. Casts of parameters and the like are folded, as the
    /// optimiser does where constants stand from the start: again and again, since one pass leaves casts of casts.
    pub(crate) fn with_values(&self, values: Vec<ScalarValue>, state: &SessionState) -> Result<LogicalPlan> {
        let plan = self.optimized.clone().replace_params_with_values(&param_values(values))?;
        let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> =
            vec![Arc::new(FinerTimes), Arc::new(SimplifyExpressions::new())];
        Optimizer::with_rules(rules).optimize(plan, state, |_, _| {})
    }
}
