//! Filters over partition keys that are not text.
//!
//! For `k = 2` DataFusion 55.2 lists the folder `k=2` alone, whatever the key's type, and so leaves out `k=02` and
//! `k=+2`, which are 2 as well and are found by `k < 3`. Here such an equality is asked in a form that lists all
//! folders and compares their values.
//!
//! The file goes once folders are chosen by values.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use super::each_node;
use crate::catalog::listing_of;
use crate::walk::Walk;

/// The plan with scans whose filters choose no folder by its name.
pub(super) fn mend(plan: LogicalPlan) -> Result<LogicalPlan> {
    each_node(plan, |plan| {
        let LogicalPlan::TableScan(mut scan) = plan else { return Ok(Transformed::no(plan)) };
        let Ok(table) = source_as_provider(&scan.source) else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let keys = listing_of(table.as_ref()).map(|listing| listing.options().table_partition_cols.as_slice());
        let is_text = |kind: &DataType| kind.is_string() || matches!(kind, DataType::Dictionary(_, _));
        let typed: Vec<&str> =
            keys.into_iter().flatten().filter(|(_, kind)| !is_text(kind)).map(|(key, _)| key.as_str()).collect();
        if typed.is_empty() {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        }
        let is_typed = |expr: &Expr| matches!(expr, Expr::Column(column) if typed.contains(&column.name.as_str()));
        let mut changed = false;
        for filter in &mut scan.filters {
            let told = std::mem::take(filter).transform_up(|expr| {
                Ok(match expr {
                    Expr::BinaryExpr(BinaryExpr { ref left, op: Operator::Eq, ref right })
                        if is_typed(left) || is_typed(right) =>
                    {
                        Transformed::yes(expr.is_true())
                    }
                    other => Transformed::no(other),
                })
            })?;
            changed |= told.transformed;
            *filter = told.data;
        }
        Ok(Transformed::new_transformed(LogicalPlan::TableScan(scan), changed))
    })
}
