//! References to the rows around a subquery, and the names that the rule gives.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, Join, JoinConstraint, LogicalPlan, Operator, Projection, SubqueryAlias,
};

use super::super::chain;
use super::super::raising::may_raise;
use crate::error::SqlError;
use crate::shared::other_rows;
use crate::syntax::TableOfWith;
use crate::walk::{PlanWalk, Walk};

/// Numbers for names that no statement writes.
#[derive(Debug, Default)]
pub(super) struct Names(usize);

impl Names {
    fn number(&mut self) -> usize {
        self.0 += 1;
        self.0
    }

    /// A name of a column without a table.
    pub(super) fn column(&mut self) -> String {
        format!("__key_{}", self.number())
    }

    /// A name of a table.
    pub(super) fn table(&mut self) -> String {
        format!("__subquery_{}", self.number())
    }

    /// A name by which copies of a plan are found and shared.
    pub(super) fn shared(&mut self, what: &str) -> String {
        TableOfWith::given(what, self.number())
    }
}

/// Whether a plan, or a subquery in it, refers to rows around it.
pub(super) fn is_correlated(plan: &LogicalPlan) -> Result<bool> {
    any_nested(plan, &|expr| matches!(expr, Expr::OuterReferenceColumn(..)))
}

/// The columns of rows around it that a plan, or a subquery in it, refers to.
pub(super) fn references(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    plan.apply_nested(|plan| {
        plan.apply_exprs(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr
                    && !found.contains(column)
                {
                    found.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Whether an expression of a plan, or of a subquery in it, is sought.
pub(super) fn any_nested(plan: &LogicalPlan, is_sought: &dyn Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    plan.apply_nested(|plan| {
        plan.apply_exprs(|expr| {
            found |= expr.exists(|expr| Ok(is_sought(expr)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Whether an expression is a column of the rows around, of this schema.
pub(super) fn is_bound(expr: &Expr, outer: &DFSchema) -> bool {
    matches!(expr, Expr::OuterReferenceColumn(_, column) if outer.has_column(column))
}

/// An expression whose references to rows of this schema are its columns; `rename` is for columns of the subquery.
pub(super) fn as_columns(expr: Expr, outer: &DFSchema, rename: &dyn Fn(Column) -> Expr) -> Result<Expr> {
    let columns = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Column(column) => Transformed::yes(rename(column)),
            Expr::OuterReferenceColumn(_, column) if outer.has_column(&column) => {
                Transformed::yes(Expr::from(outer.qualified_field_from_column(&column)?))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(columns.data)
}

/// The largest expressions over rows of this schema alone that have a value for all rows, in order of appearance, each
/// once.
pub(super) fn items(plan: &LogicalPlan, outer: &DFSchema) -> Result<Vec<Expr>> {
    let mut items = Vec::new();
    plan.apply(|plan| {
        plan.apply_exprs(|expr| {
            expr.apply(|expr| {
                if !is_item(expr, outer)? {
                    return Ok(TreeNodeRecursion::Continue);
                }
                if !items.contains(expr) {
                    items.push(expr.clone());
                }
                Ok(TreeNodeRecursion::Jump)
            })
        })
    })?;
    Ok(items)
}

fn is_item(expr: &Expr, outer: &DFSchema) -> Result<bool> {
    if is_bound(expr, outer) {
        return Ok(true);
    }
    let is_computed = matches!(
        expr,
        Expr::BinaryExpr(_)
            | Expr::Cast(_)
            | Expr::ScalarFunction(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Negative(_)
            | Expr::Case(_)
    );
    // Conjuncts are taken one by one.
    let is_chain = matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }));
    if !is_computed || is_chain {
        return Ok(false);
    }
    let (mut has_bound, mut has_other) = (false, false);
    expr.apply(|expr| {
        has_bound |= is_bound(expr, outer);
        has_other |= match expr {
            Expr::BinaryExpr(_)
            | Expr::Cast(_)
            | Expr::ScalarFunction(_)
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::Negative(_)
            | Expr::Case(_)
            | Expr::Literal(..) => expr.is_volatile_node(),
            other => !is_bound(other, outer),
        };
        Ok(if has_other { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !has_bound || has_other {
        return Ok(false);
    }
    Ok(!may_raise(&as_columns(expr.clone(), outer, &Expr::Column)?, outer)?)
}

/// An expression over columns of a schema with what these are in their places.
pub(super) fn substituted(expr: Expr, schema: &DFSchema, values: &[Expr]) -> Result<Expr> {
    let substituted = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let place = schema.index_of_column(&column)?;
                Transformed::yes(values[place].clone().unalias())
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(substituted.data)
}

/// The columns of a plan as expressions.
pub(super) fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// A plan of these columns.
pub(super) fn projected(plan: LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?))
}

/// A plan of these conditions.
pub(super) fn filtered(plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    if conditions.is_empty() {
        return Ok(plan);
    }
    Ok(LogicalPlan::Filter(Filter::try_new(chain(Operator::And, conditions), Arc::new(plan))?))
}

/// A join by conditions.
pub(super) fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    conditions: Vec<Expr>,
) -> Result<LogicalPlan> {
    let filter = match (conditions.is_empty(), join_type) {
        // A cross join.
        (true, JoinType::Inner) => None,
        _ => Some(chain(Operator::And, conditions)),
    };
    let join = Join::try_new(
        Arc::new(left),
        Arc::new(right),
        Vec::new(),
        filter,
        join_type,
        JoinConstraint::On,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(LogicalPlan::Join(join))
}

/// An expression under a column's name.
pub(super) fn named(expr: Expr, schema: &DFSchema, place: usize) -> Expr {
    let (qualifier, field) = schema.qualified_field(place);
    match &expr {
        Expr::Column(column) if column.relation.as_ref() == qualifier && column.name == *field.name() => expr,
        _ => expr.alias_qualified(qualifier.cloned(), field.name()),
    }
}

/// A plan that stands in two places. One that is not cheap becomes a shared table with the plan's columns.
pub(super) fn in_two_places(plan: LogicalPlan, names: &mut Names) -> Result<LogicalPlan> {
    if is_cheap(&plan) && other_rows(&plan)?.is_none() {
        return Ok(plan);
    }
    refuse_other_rows(&plan)?;
    let given: Vec<String> = plan.schema().fields().iter().map(|_| names.column()).collect();
    let inner = columns(&plan).into_iter().zip(&given).map(|(column, name)| column.alias(name)).collect();
    let schema = plan.schema().clone();
    let name = names.shared("rows");
    let alias = SubqueryAlias::try_new(Arc::new(projected(plan, inner)?), name.as_str())?;
    let outer = given.iter().enumerate().map(|(place, given)| {
        let column = Expr::Column(Column::new(Some(name.as_str()), given));
        named(column, &schema, place)
    });
    projected(LogicalPlan::SubqueryAlias(alias), outer.collect())
}

/// Refuses a plan that stands in several places and has other rows each time, where it cannot be computed once because
/// it refers to rows around it.
///
/// # Errors
/// [`SqlError::Unsupported`] with the part that gives other rows.
pub(super) fn refuse_other_rows(plan: &LogicalPlan) -> Result<()> {
    if is_correlated(plan)?
        && let Some(what) = other_rows(plan)?
    {
        let reason =
            format!("{what} in a subquery that refers to the rows around it, where its rows are used several times");
        return Err(SqlError::Unsupported(reason).into());
    }
    Ok(())
}

fn is_cheap(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => true,
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            plan.inputs().into_iter().all(is_cheap)
        }
        _ => false,
    }
}
