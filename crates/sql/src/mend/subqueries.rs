//! IN of a subquery is unknown where SQL says so.
//!
//! DataFusion 55.2 turns `x IN (SELECT y …)` into a join that marks rows with a match, wherever it is no conjunct of
//! a WHERE by itself, and into a plain anti join where `x` is a constant. Both know true and false alone: `x NOT IN
//! (SELECT y …) OR x = 7` keeps all rows although a `y` is NULL. Here such a predicate becomes a CASE that is NULL if
//! nothing matches and `x` or a `y` is NULL, an empty subquery apart.
//!
//! Subqueries that refer to the rows around them are joins by then ([`super::unnest`]).
//!
//! Conjuncts over a column stay otherwise: a semi join need not tell NULL from false, and anti joins know NULL. The
//! file goes once marks have three values.

use std::ops::RangeFrom;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{ScalarValue, TableReference};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Case, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, SubqueryAlias, lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use crate::syntax::TableOfWith;
use crate::walk::{PlanWalk, Walk};

/// The rule that gives subqueries' IN its third value.
#[derive(Debug)]
pub(crate) struct UnknownIn;

impl AnalyzerRule for UnknownIn {
    fn name(&self) -> &str {
        "unknown_in"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut numbers = 0..;
        let told = plan.transform_up_nested(|plan| {
            let LogicalPlan::Filter(filter) = plan else { return Ok(Transformed::no(plan)) };
            let is_in = |expr: &Expr| Ok(matches!(expr, Expr::InSubquery(_)));
            if !filter.predicate.exists(is_in)? {
                return Ok(Transformed::no(LogicalPlan::Filter(filter)));
            }
            let Filter { predicate, input, .. } = filter;
            let conjuncts = split_conjunction_owned(predicate)
                .into_iter()
                .map(|conjunct| in_conjunct(conjunct, &input, &mut numbers));
            let predicate = conjunction(conjuncts.collect::<Result<Vec<_>>>()?).unwrap_or_else(|| lit(true));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
        })?;
        Ok(told.data)
    }
}

fn in_conjunct(conjunct: Expr, input: &LogicalPlan, numbers: &mut RangeFrom<usize>) -> Result<Expr> {
    if is_joined(&conjunct) {
        return Ok(conjunct);
    }
    let told = conjunct.transform_down(|expr| {
        Ok(match expr {
            // A CASE of ours, seen again.
            Expr::Case(case) if is_told(&case) => Transformed::new(Expr::Case(case), false, TreeNodeRecursion::Jump),
            Expr::InSubquery(found) => told(found, input, numbers)?,
            other => Transformed::no(other),
        })
    })?;
    Ok(told.data)
}

/// Whether a conjunct becomes a join that is right.
fn is_joined(conjunct: &Expr) -> bool {
    // Any other value may turn out a constant, which becomes a filter on the subquery that drops its NULLs.
    let is_anti = |found: &InSubquery| {
        let value = match found.expr.as_ref() {
            Expr::Cast(cast) => cast.expr.as_ref(),
            value => value,
        };
        matches!(value, Expr::Column(_))
    };
    match conjunct {
        Expr::InSubquery(found) => !found.negated || is_anti(found),
        Expr::Not(inner) => matches!(inner.as_ref(), Expr::InSubquery(found) if !found.negated && is_anti(found)),
        _ => false,
    }
}

fn is_told(case: &Case) -> bool {
    let [(first, _), (_, unknown)] = case.when_then_expr.as_slice() else { return false };
    matches!(first.as_ref(), Expr::InSubquery(_))
        && matches!(unknown.as_ref(), Expr::Literal(ScalarValue::Boolean(None), _))
}

/// The predicate with three values. The subquery stands in up to three places, under a name by which its copies are
/// found and may be shared; `numbers` are for these names.
fn told(found: InSubquery, input: &LogicalPlan, numbers: &mut RangeFrom<usize>) -> Result<Transformed<Expr>> {
    let InSubquery { expr, mut subquery, negated } = found;
    let is_nullable = subquery.subquery.schema().field(0).is_nullable();
    let may_be_null = expr.nullable(input.schema().as_ref()).unwrap_or(true);
    if is_nullable || may_be_null {
        let name = TableOfWith::given("subquery", numbers.next().unwrap_or_default());
        let named = SubqueryAlias::try_new(subquery.subquery, TableReference::bare(name))?;
        subquery.subquery = Arc::new(LogicalPlan::SubqueryAlias(named));
    }
    let column = Expr::from(subquery.subquery.schema().columns().swap_remove(0));
    let mut unknown = Vec::new();
    if is_nullable {
        let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).filter(column.is_null())?.build()?;
        unknown.push(has_rows(plan, &subquery)?);
    }
    if may_be_null {
        unknown.push(expr.as_ref().clone().is_null().and(has_rows(subquery.subquery.as_ref().clone(), &subquery)?));
    }
    let found = Expr::InSubquery(InSubquery { expr, subquery, negated: false });
    let Some(unknown) = unknown.into_iter().reduce(Expr::or) else {
        // A NOT would make an anti join of it.
        let told = if negated { Expr::IsNotTrue(Box::new(found)) } else { found };
        return Ok(Transformed::new(told, false, TreeNodeRecursion::Jump));
    };
    let value = |truth: Option<bool>| Expr::Literal(ScalarValue::Boolean(truth), None);
    let told = when(found, value(Some(!negated))).when(unknown, value(None)).otherwise(value(Some(negated)))?;
    Ok(Transformed::new(told, true, TreeNodeRecursion::Jump))
}

/// Whether a plan in a subquery's place has rows, counted once.
fn has_rows(plan: LogicalPlan, like: &Subquery) -> Result<Expr> {
    let subquery = |plan: LogicalPlan| Subquery { subquery: Arc::new(plan), ..like.clone() };
    let plan = LogicalPlanBuilder::from(plan).limit(0, Some(1))?;
    let counted = plan.aggregate(Vec::<Expr>::new(), vec![count(lit(1i64))])?.build()?;
    Ok(Expr::ScalarSubquery(subquery(counted)).gt(lit(0i64)))
}
