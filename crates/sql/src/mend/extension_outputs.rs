//! Extension types of results and files. Operators have none but those of the columns that they read.
//!
//! DataFusion 55.2 gives an operator the metadata of a column that its projection names, forgets it where a scan takes
//! the projection over, and refuses the operators for that. So projections of a plan for operators name no extension
//! types ([`super::extension_types`] has named them): the result has those of the plan, and a file that COPY writes
//! those that `with_metadata` gives its columns. The file goes once scans keep the metadata of projections.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::functions::core::with_metadata;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union, lit};

use super::extension_types::{common, with_types};
use crate::extension_types::ExtensionType;
use crate::walk::{PlanWalk, Walk};

/// The extension types of what a plan gives.
pub(crate) fn of_result(plan: &LogicalPlan) -> Vec<Option<ExtensionType>> {
    plan.schema().fields().iter().map(|field| ExtensionType::of(field)).collect()
}

/// An optimised plan for operators; none where it is one already.
pub(crate) fn for_operators(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut found = false;
    plan.apply_nested(|plan| {
        plan.apply_exprs(|expr| {
            found |= expr.exists(|expr| Ok(matches!(expr, Expr::Alias(alias) if alias.metadata.is_some())))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(None);
    }
    let of_copies = plan.clone().transform_down(|plan| match plan {
        LogicalPlan::Copy(copy) => Ok(Transformed::new(of_copy(copy)?, true, TreeNodeRecursion::Stop)),
        plan => Ok(Transformed::no(plan)),
    })?;
    let of_node = |plan| {
        let plan = match plan {
            LogicalPlan::Union(Union { inputs, schema }) => {
                let of_column =
                    |column: usize| common(inputs.iter().map(|input| ExtensionType::of(input.schema().field(column))));
                let types: Vec<_> = (0..schema.fields().len()).map(of_column).collect();
                let schema = with_types(&schema, &types)?;
                LogicalPlan::Union(Union { inputs, schema })
            }
            plan => plan.map_exprs(|expr| expr.transform_up(|expr| Ok(without_type(expr))))?.data,
        };
        Ok(Transformed::yes(plan.recompute_schema()?))
    };
    Ok(Some(of_copies.data.transform_up_nested(of_node)?.data))
}

fn without_type(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Alias(alias) if alias.metadata.is_some() => Transformed::yes(Expr::Alias(alias.with_metadata(None))),
        other => Transformed::no(other),
    }
}

/// COPY of columns with the metadata that their files tell.
fn of_copy(mut copy: CopyTo) -> Result<LogicalPlan> {
    let schema = copy.input.schema().clone();
    let items = schema.iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        let Some(of) = ExtensionType::of(field) else { return column };
        let entries = of.metadata().to_hashmap().into_iter().flat_map(|(key, value)| [lit(key), lit(value)]);
        let typed = with_metadata().call(std::iter::once(column).chain(entries).collect());
        typed.alias_qualified(table.cloned(), field.name())
    });
    let items: Vec<Expr> = items.collect();
    copy.input = Arc::new(LogicalPlanBuilder::from(Arc::unwrap_or_clone(copy.input)).project(items)?.build()?);
    Ok(LogicalPlan::Copy(copy))
}
