//! Subqueries that refer to the rows around them become joins, by one rule.
//!
//! The rule is that of Neumann and Kemper, *Unnesting Arbitrary Queries* (BTW 2015), in the form that goes from the top
//! down (Neumann, *Improving Unnesting of Complex Queries*, BTW 2025). A subquery is joined to the rows around it
//! ([`attach`]): EXISTS, IN, ANY and ALL by semi, anti and mark joins, scalar subqueries and LATERAL by left and inner
//! ones. Conditions at its top become the join's ([`peel`]). What refers to the rows around below that is computed for
//! all of them at once ([`push`]):
//!
//! ```text
//! (SELECT x FROM u WHERE u.k = t.k ORDER BY ts LIMIT 1)      Left Join: t.k = key
//!                                                              t
//!                                                              Filter: number <= 1
//!                                                                row_number() OVER (PARTITION BY u.k ORDER BY ts)
//!                                                                  u
//! ```
//!
//! Where an equality gives the value of what is referred to, as here, no domain is needed. Elsewhere the plan is joined
//! to the domain: the distinct values of the rows around. Rows and domain are copies of one plan, which
//! [`crate::shared`] computes once.
//!
//! Comparisons are three-valued by up to three marks: of a row that decides, of a row that is NULL, of any row where
//! the value itself is NULL. A scalar subquery of several rows raises in rows that read it ([`one_row`]).
//!
//! Invariants: subqueries within subqueries are joined first; a reference belongs to the innermost query around that
//! has the column. Columns of a node are what they were.

mod attach;
mod groups;
mod joins;
mod limits;
mod one_row;
mod outer;
mod peel;
mod push;
mod ranges;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, JoinType, ScalarValue, Spans};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier, Sort as SortExpr};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Case, Expr, Filter, Join, LogicalPlan, Operator, Projection, Sort, Subquery, Window,
};
use datafusion::optimizer::AnalyzerRule;

use self::attach::{Comparison, Scope};
use self::outer::{
    Names, any_nested, as_columns, columns, filtered, in_two_places, is_bound, is_correlated, named, projected,
    references,
};
use super::chain;
use crate::error::SqlError;
use crate::walk::{PlanWalk, Walk};

pub(super) use one_row::function;

/// The rule that makes joins of subqueries.
#[derive(Debug)]
pub(crate) struct UnnestSubqueries;

impl AnalyzerRule for UnnestSubqueries {
    fn name(&self) -> &str {
        "unnest_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_nested(&plan, &is_subquery)? && !has_lateral(&plan)? {
            return Ok(plan);
        }
        unnested(with_laterals(plan)?, &mut Names::default())
    }
}

/// The subquery that an expression is.
fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

fn is_subquery(expr: &Expr) -> bool {
    subquery_of(expr).is_some()
}

fn has_lateral(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_nested(|plan| {
        found |= matches!(plan, LogicalPlan::Join(join) if lateral(&join.right).is_some());
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// The subquery of LATERAL on the right side of a join.
fn lateral(plan: &LogicalPlan) -> Option<&Subquery> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => lateral(&alias.input),
        LogicalPlan::Subquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// The right side of a join that refers to the rows of the left: LATERAL, or a join in parentheses that has one.
fn beside(join: &Join) -> Result<Option<&LogicalPlan>> {
    if let Some(subquery) = lateral(&join.right) {
        return Ok(Some(&subquery.subquery));
    }
    let left = join.left.schema();
    let is_table = matches!(join.right.as_ref(), LogicalPlan::SubqueryAlias(_) | LogicalPlan::TableScan(_));
    let is_beside = !is_table && any_nested(&join.right, &|expr| is_bound(expr, left))?;
    Ok(is_beside.then_some(join.right.as_ref()))
}

/// The planner takes LATERAL for a plain table if only subqueries within it refer to the tables beside it.
fn with_laterals(plan: LogicalPlan) -> Result<LogicalPlan> {
    let wrapped = plan.transform_up_nested(|plan| {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        let is_plain = lateral(&join.right).is_none() && join.right.all_out_ref_exprs().is_empty();
        let left = join.left.schema();
        if !is_plain || !any_nested(&join.right, &|expr| is_bound(expr, left))? {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        let subquery = Subquery { subquery: join.right, outer_ref_columns: Vec::new(), spans: Spans::new() };
        let right = Arc::new(LogicalPlan::Subquery(subquery));
        Ok(Transformed::yes(LogicalPlan::Join(Join { right, ..join })))
    })?;
    Ok(wrapped.data)
}

/// A plan without subqueries that the rule takes.
fn unnested(plan: LogicalPlan, names: &mut Names) -> Result<LogicalPlan> {
    let mut changed = false;
    let done = plan.transform_up(|plan| {
        let plan = if changed { plan.recompute_schema()? } else { plan };
        let done = node(plan, names)?;
        changed |= done.transformed;
        Ok(done)
    })?;
    Ok(done.data)
}

/// Whether an expression has a subquery that the rule takes. A scalar subquery that refers to nothing around stays: it
/// is an argument.
fn is_taken(expr: &Expr) -> Result<bool> {
    expr.exists(takes)
}

fn takes(expr: &Expr) -> Result<bool> {
    match expr {
        Expr::ScalarSubquery(subquery) => is_correlated(&subquery.subquery),
        other => Ok(is_subquery(other)),
    }
}

/// The aggregation whose groups the expressions of a node read.
fn grouped(plan: &LogicalPlan) -> Option<&Aggregate> {
    match plan {
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_) => {
            match plan.inputs().first()? {
                LogicalPlan::Aggregate(aggregate) => Some(aggregate),
                plan @ (LogicalPlan::Filter(_) | LogicalPlan::Window(_)) => grouped(plan),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A subquery in which an expression of the rows around that is one of their groups is that group's column.
fn with_groups(subquery: LogicalPlan, aggregate: &Aggregate) -> Result<LogicalPlan> {
    let (rows, groups) = (aggregate.input.schema(), &aggregate.schema);
    let is_group = |expr: &Expr| -> Result<Option<usize>> {
        if !expr.contains_outer() || matches!(expr, Expr::OuterReferenceColumn(..)) {
            return Ok(None);
        }
        let expr = as_columns(expr.clone(), rows, &Expr::Column)?;
        Ok(aggregate.group_expr.iter().position(|group| *group == expr))
    };
    let named = subquery.transform_up_nested(|plan| {
        super::each_expression(
            plan,
            |expr| expr.contains_outer(),
            |expr, _| {
                expr.transform_down(|expr| match is_group(&expr)? {
                    Some(place) => {
                        let (qualifier, field) = groups.qualified_field(place);
                        let column = Column::new(qualifier.cloned(), field.name());
                        let group = Expr::OuterReferenceColumn(field.clone(), column);
                        Ok(Transformed::new(group, true, TreeNodeRecursion::Jump))
                    }
                    None => Ok(Transformed::no(expr)),
                })
            },
        )
    })?;
    Ok(named.data)
}

fn node(plan: LogicalPlan, names: &mut Names) -> Result<Transformed<LogicalPlan>> {
    let aggregate =
        grouped(&plan).filter(|aggregate| !aggregate.group_expr.iter().all(|group| matches!(group, Expr::Column(_))));
    let aggregate = aggregate.cloned();
    // Subqueries within subqueries first.
    let within = plan.map_exprs(|expr| {
        if !expr.exists(|expr| Ok(is_subquery(expr)))? {
            return Ok(Transformed::no(expr));
        }
        expr.transform_up(|expr| within(expr, aggregate.as_ref(), names))
    })?;
    let (plan, mut changed) = (within.data, within.transformed);
    if let LogicalPlan::Join(join) = &plan
        && let Some(subquery) = beside(join)?
    {
        let subquery = unnested(subquery.clone(), names)?;
        let joined = twice(&join.left, names, &mut |scope| lateral_join(scope, join, &subquery))?;
        return Ok(Transformed::yes(joined));
    }
    let mut taken = false;
    plan.apply_exprs(|expr| {
        taken = taken || is_taken(expr)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !taken {
        return Ok(Transformed::new_transformed(plan, changed));
    }
    changed = true;
    let plan = match plan {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => filter(predicate, &input, names)?,
        LogicalPlan::Projection(Projection { expr, input, schema, .. }) => twice(&input, names, &mut |scope| {
            let exprs = attached(scope, &expr)?;
            let exprs = exprs.into_iter().enumerate().map(|(at, expr)| named(expr.unalias(), &schema, at)).collect();
            projected(scope.take(), exprs)
        })?,
        LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, schema, .. }) => {
            twice(&input, names, &mut |scope| {
                let (groups, aggregates) = (attached(scope, &group_expr)?, attached(scope, &aggr_expr)?);
                let aggregate = Aggregate::try_new(Arc::new(scope.take()), groups, aggregates)?;
                renamed(LogicalPlan::Aggregate(aggregate), &schema)
            })?
        }
        LogicalPlan::Window(Window { window_expr, input, schema }) => twice(&input, names, &mut |scope| {
            let exprs = attached(scope, &window_expr)?;
            let (own, width) = (columns(&input), scope.plan.schema().fields().len());
            let window = LogicalPlan::Window(Window::try_new(exprs, Arc::new(scope.take()))?);
            let made = columns(&window).split_off(width);
            let exprs = own.into_iter().chain(made).enumerate().map(|(at, expr)| named(expr, &schema, at)).collect();
            projected(window, exprs)
        })?,
        LogicalPlan::Sort(Sort { expr, input, fetch }) => twice(&with_read_by(&expr, &input)?, names, &mut |scope| {
            let mut sorts = Vec::with_capacity(expr.len());
            for sort in &expr {
                let expr = attached_one(scope, sort.expr.clone())?;
                sorts.push(SortExpr { expr, ..sort.clone() });
            }
            let sort = LogicalPlan::Sort(Sort { expr: sorts, input: Arc::new(scope.take()), fetch });
            projected(sort, columns(&input))
        })?,
        LogicalPlan::Join(join) => on_join(join, names)?,
        other => return Ok(Transformed::new_transformed(other, changed)),
    };
    Ok(Transformed::new_transformed(plan, changed))
}

/// The input of a sort with the columns below its projection that subqueries of the keys refer to: the planner adds
/// those alone that the keys read themselves.
fn with_read_by(sorts: &[SortExpr], input: &LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(Projection { expr, input: below, schema, .. }) = input else {
        return Ok(input.clone());
    };
    let mut exprs = expr.clone();
    for sort in sorts {
        sort.expr.apply(|key| {
            let read = subquery_of(key).map(|subquery| references(&subquery.subquery)).transpose()?.unwrap_or_default();
            let is_missing = |column: &Column| !schema.has_column(column) && below.schema().has_column(column);
            for column in read.into_iter().filter(is_missing).map(Expr::Column) {
                if !exprs.contains(&column) {
                    exprs.push(column);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    projected(below.as_ref().clone(), exprs)
}

/// A subquery without subqueries that the rule takes.
fn within(expr: Expr, aggregate: Option<&Aggregate>, names: &mut Names) -> Result<Transformed<Expr>> {
    let mut inner = |mut subquery: Subquery| -> Result<(Subquery, bool)> {
        if let Some(aggregate) = aggregate {
            subquery.subquery = Arc::new(with_groups(Arc::unwrap_or_clone(subquery.subquery), aggregate)?);
        }
        let plan = subquery.subquery.as_ref();
        if !any_nested(plan, &is_subquery)? && !has_lateral(plan)? {
            return Ok((subquery, aggregate.is_some()));
        }
        let plan = unnested(plan.clone(), names)?;
        let outer_ref_columns = plan.all_out_ref_exprs();
        Ok((Subquery { subquery: Arc::new(plan), outer_ref_columns, ..subquery }, true))
    };
    Ok(match expr {
        Expr::Exists(Exists { subquery, negated }) => {
            let (subquery, changed) = inner(subquery)?;
            Transformed::new_transformed(Expr::Exists(Exists { subquery, negated }), changed)
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let (subquery, changed) = inner(subquery)?;
            Transformed::new_transformed(Expr::InSubquery(InSubquery { expr, subquery, negated }), changed)
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let (subquery, changed) = inner(subquery)?;
            let comparison = SetComparison { expr, subquery, op, quantifier };
            Transformed::new_transformed(Expr::SetComparison(comparison), changed)
        }
        Expr::ScalarSubquery(subquery) => {
            let (subquery, changed) = inner(subquery)?;
            Transformed::new_transformed(Expr::ScalarSubquery(subquery), changed)
        }
        other => Transformed::no(other),
    })
}

impl Scope<'_> {
    /// The rows with what was joined to them.
    fn take(&mut self) -> LogicalPlan {
        std::mem::take(&mut self.plan)
    }
}

/// Makes a plan over rows. If it builds a domain of them, makes it again over a shared table of the rows.
fn twice(
    rows: &LogicalPlan,
    names: &mut Names,
    make: &mut dyn FnMut(&mut Scope) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let mut scope = Scope { rows: rows.clone(), plan: rows.clone(), names, has_domain: false };
    let made = make(&mut scope)?;
    if !scope.has_domain {
        return Ok(made);
    }
    let shared = in_two_places(rows.clone(), scope.names)?;
    if shared == *rows {
        return Ok(made);
    }
    (scope.rows, scope.plan) = (shared.clone(), shared);
    make(&mut scope)
}

/// Expressions with what was joined in the place of subqueries.
fn attached(scope: &mut Scope, exprs: &[Expr]) -> Result<Vec<Expr>> {
    exprs.iter().map(|expr| attached_one(scope, expr.clone())).collect()
}

fn attached_one(scope: &mut Scope, expr: Expr) -> Result<Expr> {
    let attached = expr.transform_up(|expr| {
        if !takes(&expr)? {
            return Ok(Transformed::no(expr));
        }
        Ok(Transformed::yes(match expr {
            Expr::Exists(Exists { subquery, negated }) => {
                let found = scope.exists(Arc::unwrap_or_clone(subquery.subquery))?;
                if negated { !found } else { found }
            }
            Expr::ScalarSubquery(subquery) => scope.scalar(Arc::unwrap_or_clone(subquery.subquery))?,
            other => match comparison(other, false) {
                Ok((comparison, subquery)) => scope.compared(comparison, subquery)?,
                Err(other) => *other,
            },
        }))
    })?;
    Ok(attached.data)
}

/// The comparison that IN, ANY or ALL is.
fn comparison(expr: Expr, is_negated: bool) -> Result<(Comparison, LogicalPlan), Box<Expr>> {
    let (value, op, is_any, subquery) = match expr {
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let is_any = negated == is_negated;
            let op = if is_any { Operator::Eq } else { Operator::NotEq };
            return Ok((Comparison { value: *expr, op, is_any }, Arc::unwrap_or_clone(subquery.subquery)));
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            (*expr, op, quantifier == SetQuantifier::Any, subquery)
        }
        other => return Err(Box::new(other)),
    };
    let (op, is_any) = match (is_negated, op.negate()) {
        (false, _) => (op, is_any),
        (true, Some(op)) => (op, !is_any),
        (true, None) => {
            let quantifier = if is_any { SetQuantifier::Any } else { SetQuantifier::All };
            return Err(Box::new(Expr::SetComparison(SetComparison {
                expr: Box::new(value),
                subquery,
                op,
                quantifier,
            })));
        }
    };
    Ok((Comparison { value, op, is_any }, Arc::unwrap_or_clone(subquery.subquery)))
}

/// A filter: rows are kept by semi and anti joins where a conjunct is no more than a subquery.
fn filter(predicate: Expr, input: &LogicalPlan, names: &mut Names) -> Result<LogicalPlan> {
    let (mut plain, mut with) = (Vec::new(), Vec::new());
    for conjunct in split_conjunction_owned(predicate) {
        match is_taken(&conjunct)? {
            true => with.push(conjunct),
            false => plain.push(conjunct),
        }
    }
    let input = filtered(input.clone(), plain)?;
    twice(&input, names, &mut |scope| {
        let mut rest = Vec::new();
        for conjunct in &with {
            rest.extend(kept(scope, conjunct.clone())?);
        }
        let plan = filtered(scope.take(), rest)?;
        match plan.schema().fields().len() == input.schema().fields().len() {
            true => Ok(plan),
            false => projected(plan, columns(&input)),
        }
    })
}

/// Keeps the rows for which a conjunct is true, or gives the condition that is left of it.
fn kept(scope: &mut Scope, conjunct: Expr) -> Result<Option<Expr>> {
    let (inner, is_negated) = match conjunct {
        Expr::Not(inner) => (*inner, true),
        other => (other, false),
    };
    let again = |expr: Expr| if is_negated { Expr::Not(Box::new(expr)) } else { expr };
    let is_plain =
        |expr: &Expr| Ok::<_, datafusion::error::DataFusionError>(!expr.exists(|expr| Ok(is_subquery(expr)))?);
    match inner {
        Expr::Exists(Exists { subquery, negated }) => {
            scope.keep_existing(Arc::unwrap_or_clone(subquery.subquery), negated != is_negated)
        }
        Expr::InSubquery(InSubquery { ref expr, .. }) | Expr::SetComparison(SetComparison { ref expr, .. })
            if is_plain(expr)? && !expr.is_volatile() =>
        {
            match comparison(inner, is_negated) {
                Ok((comparison, subquery)) => scope.keep_compared(comparison, subquery),
                Err(other) => attached_one(scope, again(*other)).map(Some),
            }
        }
        Expr::Case(case) if decisions(&case).is_some() => {
            let Some((hit, unknown, is_any)) = decisions(&case) else { return Ok(Some(Expr::Case(case))) };
            if is_any != is_negated {
                return scope.keep_existing(hit, false);
            }
            let kept = scope.keep_existing(hit, true)?;
            let others = scope.keep_existing(unknown, true)?;
            Ok(kept.into_iter().chain(others).reduce(Expr::and))
        }
        other => attached_one(scope, again(other)).map(Some),
    }
}

/// The subqueries of a comparison with rows: of those that decide it, of those with which it is unknown, and whether
/// the first make it true. It is the other value without either.
fn decisions(case: &Case) -> Option<(LogicalPlan, LogicalPlan, bool)> {
    let Case { expr: None, when_then_expr, else_expr: Some(otherwise) } = case else { return None };
    let [(hit, value), (unknown, null)] = when_then_expr.as_slice() else { return None };
    let plan = |expr: &Expr| match expr {
        Expr::Exists(Exists { subquery, negated: false }) => Some(subquery.subquery.as_ref().clone()),
        _ => None,
    };
    let null = match null.as_ref() {
        Expr::Cast(cast) => cast.expr.as_ref(),
        null => null,
    };
    let truth = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Boolean(truth), _) => *truth,
        _ => None,
    };
    let (is_any, otherwise) = (truth(value)?, truth(otherwise)?);
    let is_null = matches!(null, Expr::Literal(value, _) if value.is_null());
    (is_any != otherwise && is_null).then_some(())?;
    Some((plan(hit)?, plan(unknown)?, is_any))
}

/// A plan whose columns have the names of a schema.
fn renamed(plan: LogicalPlan, schema: &DFSchemaRef) -> Result<LogicalPlan> {
    let exprs = columns(&plan).into_iter().enumerate().map(|(at, expr)| named(expr, schema, at)).collect();
    projected(plan, exprs)
}

/// A join whose condition has subqueries. Those of an inner join are conditions above it; each of another refers to
/// one side, and is joined to that.
fn on_join(join: Join, names: &mut Names) -> Result<LogicalPlan> {
    let (mut plain, mut with) = (Vec::new(), Vec::new());
    for conjunct in join.filter.iter().cloned().flat_map(split_conjunction_owned) {
        match is_taken(&conjunct)? {
            true => with.push(conjunct),
            false => plain.push(conjunct),
        }
    }
    let schema = join.schema.clone();
    if join.join_type == JoinType::Inner {
        let filter = (!plain.is_empty()).then(|| chain(Operator::And, plain));
        let rows = LogicalPlan::Join(Join { filter, ..join });
        return twice(&rows, names, &mut |scope| {
            let mut rest = Vec::new();
            for conjunct in &with {
                rest.extend(kept(scope, conjunct.clone())?);
            }
            projected(filtered(scope.take(), rest)?, columns(&rows))
        });
    }
    let (mut left, mut right) = (join.left.as_ref().clone(), join.right.as_ref().clone());
    for conjunct in with {
        let is_of = |side: &LogicalPlan| reads_alone(&conjunct, side.schema());
        let side = match (is_of(&left)?, is_of(&right)?) {
            (_, true) => &mut right,
            (true, false) => &mut left,
            (false, false) => {
                let reason = "a subquery in ON of an outer join that refers to both sides";
                return Err(SqlError::Unsupported(reason.into()).into());
            }
        };
        let rows = side.clone();
        let mut found = None;
        *side = twice(&rows, names, &mut |scope| {
            let name = scope.names.column();
            let value = attached_one(scope, conjunct.clone())?.alias(&name);
            found = Some(Expr::Column(Column::new_unqualified(name)));
            projected(scope.take(), columns(&rows).into_iter().chain([value]).collect())
        })?;
        plain.extend(found);
    }
    let Join { on, join_type, join_constraint, null_equality, null_aware, .. } = join;
    let filter = Some(chain(Operator::And, plain));
    let (left, right) = (Arc::new(left), Arc::new(right));
    let join = Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)?;
    projected(LogicalPlan::Join(join), schema.columns().into_iter().map(Expr::Column).collect())
}

/// Whether an expression, its subqueries included, reads columns of this schema and of no other side.
fn reads_alone(expr: &Expr, schema: &DFSchemaRef) -> Result<bool> {
    let mut reads_other = false;
    expr.apply(|expr| {
        if let Expr::Column(column) = expr {
            reads_other |= !schema.has_column(column);
        }
        if let Some(subquery) = subquery_of(expr) {
            reads_other |= references(&subquery.subquery)?.iter().any(|column| !schema.has_column(column));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!reads_other)
}

/// A join with the rows of LATERAL.
fn lateral_join(scope: &mut Scope, join: &Join, subquery: &LogicalPlan) -> Result<LogicalPlan> {
    let is_left = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        other => return Err(SqlError::Unsupported(format!("LATERAL in a {other} join")).into()),
    };
    let equal = |(left, right): &(Expr, Expr)| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left.clone()), Operator::Eq, Box::new(right.clone())))
    };
    let conditions = join.on.iter().map(equal);
    let conditions = conditions.chain(join.filter.iter().cloned().flat_map(split_conjunction_owned));
    let conditions = conditions.filter(|condition| *condition != datafusion::logical_expr::lit(true)).collect();
    let values = scope.lateral(subquery, &join.right, is_left, conditions)?;
    let exprs = columns(&join.left).into_iter().chain(values).enumerate();
    let exprs = exprs.map(|(at, expr)| named(expr.unalias(), &join.schema, at)).collect();
    projected(scope.take(), exprs)
}
