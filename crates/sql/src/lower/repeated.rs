//! Inputs that may have other rows each time they are computed, and so are not computed twice.
//!
//! Lowering copies an input where it takes an aggregation apart by its distinct values, or a join by the branches of a
//! union. The rows that a LIMIT without an order lets pass, and what a volatile function gives, differ from one copy to
//! the next.

use datafusion::logical_expr::LogicalPlan;

use super::Reason;
use crate::shared::other_rows;

/// # Errors
/// The input may have other rows the second time.
pub(super) fn copied(plan: &LogicalPlan) -> Result<(), Reason> {
    match other_rows(plan).map_err(|error| error.strip_backtrace())? {
        Some(what) => Err(format!("{what} in an input that would be computed several times")),
        None => Ok(()),
    }
}
