//! Columns of unions go by position, where unions are within each other and where a branch has no rows.
//!
//! DataFusion 55.2 makes one union of a union and those among its branches. What stands between the two, as the casts
//! to common types, it puts above each inner branch, where names of columns are looked up that are those of the first
//! branch: a branch that has them in another order has its columns swapped, and one that has others is an error. Here
//! each inner branch has the names of its union first. The same is done before another rule leaves out branches without
//! rows: it makes a projection of the last branch that stays, in which it looks up the union's names.
//!
//! The file goes once the rules look at positions.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, Projection, Union};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule that makes one union of several.
pub(super) fn by_position(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = match plan {
        LogicalPlan::Union(union) => LogicalPlan::Union(with_names(union)?),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            LogicalPlan::Distinct(Distinct::All(match Arc::unwrap_or_clone(input) {
                LogicalPlan::Union(union) => Arc::new(LogicalPlan::Union(with_names(union)?)),
                input => Arc::new(input),
            }))
        }
        plan => plan,
    };
    rule.rewrite(plan, config)
}

/// The rule that leaves out what has no rows.
pub(super) fn without_empty(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let is_empty = |input: &LogicalPlan| match input {
        LogicalPlan::EmptyRelation(empty) => !empty.produce_one_row,
        _ => false,
    };
    let plan = match plan {
        LogicalPlan::Union(union) if union.inputs.iter().any(|input| is_empty(input)) => {
            let each =
                |input: &Arc<LogicalPlan>| if is_empty(input) { Ok(input.clone()) } else { renamed(input, &union) };
            let inputs = union.inputs.iter().map(each).collect::<Result<_>>()?;
            LogicalPlan::Union(Union { inputs, schema: union.schema })
        }
        plan => plan,
    };
    rule.rewrite(plan, config)
}

fn with_names(Union { inputs, schema }: Union) -> Result<Union> {
    Ok(Union { inputs: inputs.into_iter().map(in_branch).collect::<Result<_>>()?, schema })
}

/// A branch in which a union below a projection has branches of its own names.
fn in_branch(branch: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let Projection { expr, input, schema, .. } = match branch.as_ref() {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            return Ok(Arc::new(LogicalPlan::Distinct(Distinct::All(in_branch(input.clone())?))));
        }
        LogicalPlan::Projection(projection) => projection,
        _ => return Ok(branch),
    };
    let LogicalPlan::Union(union) = input.as_ref() else { return Ok(branch) };
    let inputs = union.inputs.iter().map(|input| renamed(input, union)).collect::<Result<_>>()?;
    let union = LogicalPlan::Union(Union { inputs, schema: union.schema.clone() });
    let projection = Projection::try_new_with_schema(expr.clone(), Arc::new(union), schema.clone())?;
    Ok(Arc::new(LogicalPlan::Projection(projection)))
}

/// An input of a union with the union's names.
fn renamed(input: &Arc<LogicalPlan>, union: &Union) -> Result<Arc<LogicalPlan>> {
    let names = || union.schema.fields().iter().map(|field| field.name());
    let columns = input.schema();
    if columns.fields().iter().map(|field| field.name()).eq(names()) {
        return Ok(input.clone());
    }
    let items = columns.iter().zip(names()).map(|(column, name)| Expr::from(column).alias(name));
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(items.collect(), input.clone())?)))
}
