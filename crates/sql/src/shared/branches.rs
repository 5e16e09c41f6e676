//! The branches of a shared UNION ALL: each is a table of its own.
//!
//! ```text
//! SubqueryAlias: total                      SubqueryAlias: total
//!   Union                                     Union
//!     Projection: k, sum(x), 's'       →        Projection: k, sum(x), 's'
//!       Aggregate: …                              TableScan: total branch 1 #1     a reader
//!     Projection: k, sum(y), 'c'                Projection: k, sum(y), 'c'
//!       Aggregate: …                              TableScan: total branch 2 #1     a reader
//! ```
//!
//! The union itself is copied. A reader that filters by a column that is a constant in each branch then reads the
//! branches that it asks for alone, since filters move below a union; readers that need all rows read all branches. A
//! branch that only filters and projects rows is copied as well.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, TableReference};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, SubqueryAlias, Union};

use super::found::{Found, cost};
use crate::syntax::TableOfWith;
use crate::walk::PlanWalk;

/// A plan with the branches of shared unions as tables of WITH, and these unions.
pub(super) fn apart(plan: LogicalPlan, found: &[Found]) -> Result<(LogicalPlan, Vec<Arc<LogicalPlan>>)> {
    let mut unions: Vec<Arc<LogicalPlan>> = Vec::new();
    let apart = plan.transform_down_nested(|plan| {
        let LogicalPlan::SubqueryAlias(alias) = &plan else { return Ok(Transformed::no(plan)) };
        let is_taken = |found: &&Found| found.is(alias) && found.is_shared() && !found.cost.always;
        let (LogicalPlan::Union(_), Some(_)) = (alias.input.as_ref(), found.iter().find(is_taken)) else {
            return Ok(Transformed::no(plan));
        };
        let Some(union) = named_branches(&alias.input, alias.alias.table(), &mut 0)? else {
            return Ok(Transformed::no(plan));
        };
        let union = Arc::new(union);
        if !unions.contains(&union) {
            unions.push(union.clone());
        }
        let alias = SubqueryAlias::try_new(union, alias.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)))
    })?;
    Ok((apart.data, unions))
}

/// A union of tables of WITH, whose names are made of that of the whole, and of what is not worth to be shared; none
/// if a branch has columns of equal names. `number` is that of the last branch.
fn named_branches(plan: &LogicalPlan, name: &str, number: &mut usize) -> Result<Option<LogicalPlan>> {
    if let LogicalPlan::Union(union) = plan {
        let inputs = union
            .inputs
            .iter()
            .map(|input| Ok::<_, DataFusionError>(named_branches(input, name, number)?.map(Arc::new)));
        let inputs = inputs.collect::<Result<Option<Vec<_>>>>()?;
        return Ok(inputs.map(|inputs| LogicalPlan::Union(Union { inputs, schema: union.schema.clone() })));
    }
    *number += 1;
    let table = TableOfWith::of(name);
    if cost(plan, table.and_then(|table| table.materialized))?.why.is_empty() {
        return Ok(Some(plan.clone()));
    }
    let names: BTreeSet<&String> = plan.schema().fields().iter().map(|field| field.name()).collect();
    if names.len() < plan.schema().fields().len() {
        return Ok(None);
    }
    let written = table.map_or(name, |table| table.name);
    let name = TableReference::bare(format!("{written} branch {number}{}", &name[written.len()..]));
    let constants = constants(plan);
    let columns = || plan.schema().iter().zip(&constants);
    let computed: Vec<Expr> =
        columns().filter(|(_, constant)| constant.is_none()).map(|(field, _)| Expr::Column(field.into())).collect();
    let shared = match computed.is_empty() || computed.len() == constants.len() {
        true => plan.clone(),
        false => LogicalPlan::Projection(Projection::try_new(computed, Arc::new(plan.clone()))?),
    };
    let shared = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(shared), name.clone())?);
    let columns = columns().map(|((qualifier, field), constant)| {
        let column = || Expr::Column(Column::new(Some(name.clone()), field.name()));
        constant.clone().unwrap_or_else(column).alias_qualified(qualifier.cloned(), field.name())
    });
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::new(shared))?)))
}

/// The constant that each column of a plan is, if it is one.
fn constants(plan: &LogicalPlan) -> Vec<Option<Expr>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let below = constants(&projection.input);
            let schema = projection.input.schema();
            projection
                .expr
                .iter()
                .map(|expr| constant(expr, &|column: &Column| below[schema.maybe_index_of_column(column)?].clone()))
                .collect()
        }
        LogicalPlan::SubqueryAlias(alias) => constants(&alias.input),
        LogicalPlan::Filter(filter) => constants(&filter.input),
        other => vec![None; other.schema().fields().len()],
    }
}

/// The constant that an expression is, over columns of which some are constants.
fn constant(expr: &Expr, of_column: &impl Fn(&Column) -> Option<Expr>) -> Option<Expr> {
    match expr {
        Expr::Literal(_, _) => Some(expr.clone()),
        Expr::Column(column) => of_column(column),
        Expr::Alias(alias) => constant(&alias.expr, of_column),
        Expr::Cast(cast) => {
            let mut cast = cast.clone();
            *cast.expr = constant(&cast.expr, of_column)?;
            Some(Expr::Cast(cast))
        }
        _ => None,
    }
}
