//! Rows of one table as a result, in the table's order: those that a filter leaves.
//!
//! ```text
//! Projection: name                 Device: the same rows, sorted by nothing but their numbers
//!   Filter: id = 7            →
//!     TableScan: users
//! ```
//!
//! Only the plan of a whole statement is one, and only columns that are on the device are read ([`crate::placement`]):
//! rows that feed operators of the CPU, or columns that would have to come first, are not worth the way.

use std::sync::Arc;

use datafusion::logical_expr::{LogicalPlan, Sort};

use super::graph::source_of;
use super::rows::is_filtered;
use super::tables::TableFacts;
use super::{Reason, Refused, device, top_k};

/// Whether a plan filters the rows of one table and does nothing else with them.
pub(super) fn looks_up(plan: &LogicalPlan) -> bool {
    matches!(source_of(plan), LogicalPlan::TableScan(scan) if is_filtered(plan) || !scan.filters.is_empty())
}

/// The plan in place of one for which [`looks_up`] holds: a sort by no key.
pub(super) fn look_up(
    plan: &LogicalPlan,
    facts: &TableFacts,
    refused: &mut Vec<Refused>,
) -> Result<LogicalPlan, Reason> {
    let sort = Sort { expr: Vec::new(), input: Arc::new(plan.clone()), fetch: None };
    device(top_k::lower(&sort, facts)?, plan.clone(), facts, refused)
}
