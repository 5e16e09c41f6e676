//! UNION ALL below other operators, which are done for each branch.
//!
//! ```text
//! Aggregate: groupBy=[[y]]             Aggregate: groupBy=[[y]], one table of groups
//!   Join: x = k                          Join: x = k
//!     Union                                TableScan: a
//!       TableScan: a              →        TableScan: dimension
//!       TableScan: b                     Join: x = k
//!     TableScan: dimension                 TableScan: b
//!                                          TableScan: dimension
//! ```
//!
//! Projections, filters, and joins that keep the rows of the side with the union distribute over it. A full join is
//! one, too: the left join, and the rows of the right side without a match; and so is a left join with a union on its
//! inner side: the inner joins with its branches, and the rows of the left side without a match in any. Semi, anti and
//! mark joins ask whether there is a match: their inner side may be the groups of a union ([`without_union`]).
//! Windows, whole orders and other joins do not distribute: they read the rows of a union from a list
//! ([`super::flatten`]).

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::{Column, DFSchema, JoinType, ScalarValue, TableReference};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan, Projection, Sort, Union};

use super::repeated::copied;
use super::tables::TableFacts;
use super::{Reason, Refused, first_rows};

/// Most branches: each is a pipeline with tables of its own.
const BRANCHES_MAX: usize = 16;

/// The plans of which a plan's rows are the union; none if there is no union that what is above distributes over.
/// Their columns are those of the plan by name and type.
pub(super) fn branches(plan: &LogicalPlan) -> Result<Option<Vec<LogicalPlan>>, Reason> {
    let branches = match plan {
        LogicalPlan::Union(union) => of_inputs(union.inputs.iter().map(|input| input.as_ref().clone()), &union.schema)?,
        LogicalPlan::Join(join) if join.join_type == JoinType::Full => of_inputs(halves(join)?, &join.schema)?,
        LogicalPlan::Join(join) => return of_join(join),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let Some(inputs) = branches(plan.inputs()[0])? else { return Ok(None) };
            let over = |input| plan.with_new_exprs(plan.expressions(), vec![input]).map_err(text);
            inputs.into_iter().map(over).collect::<Result<_, _>>()?
        }
        _ => return Ok(None),
    };
    match branches.len() {
        0..=BRANCHES_MAX => Ok(Some(branches)),
        count => Err(format!("a union of {count} branches, where {BRANCHES_MAX} are the most")),
    }
}

/// The branches of each input, with the columns of the whole.
fn of_inputs(inputs: impl IntoIterator<Item = LogicalPlan>, schema: &DFSchema) -> Result<Vec<LogicalPlan>, Reason> {
    let mut all = Vec::new();
    for input in inputs {
        for branch in branches(&input)?.unwrap_or_else(|| vec![input]) {
            let named = branch.schema().iter().zip(schema.iter()).map(|(own, (qualifier, field))| {
                Expr::Column(Column::from(own)).alias_qualified(qualifier.cloned(), field.name())
            });
            let named = Projection::try_new(named.collect(), Arc::new(branch)).map_err(text)?;
            all.push(LogicalPlan::Projection(named));
        }
    }
    Ok(all)
}

/// A join with the branches of its first side that may have some, and then of the other.
fn of_join(join: &Join) -> Result<Option<Vec<LogicalPlan>>, Reason> {
    let (left, right) = match join.join_type {
        JoinType::Inner => (true, true),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
        _ => (false, false),
    };
    let of = |distributes: bool, side: &LogicalPlan| if distributes { branches(side) } else { Ok(None) };
    let joined: Vec<Join> = match of(left, &join.left)? {
        Some(sides) => {
            copied(&join.right)?;
            sides.into_iter().map(|left| Join { left: Arc::new(left), ..join.clone() }).collect()
        }
        None => match of(right, &join.right)? {
            Some(sides) => {
                copied(&join.left)?;
                sides.into_iter().map(|right| Join { right: Arc::new(right), ..join.clone() }).collect()
            }
            None => return of_inner_side(join),
        },
    };
    let mut all = Vec::new();
    for join in joined {
        all.extend(of_join(&join)?.unwrap_or_else(|| vec![LogicalPlan::Join(join)]));
    }
    Ok(Some(all))
}

/// A left or right join whose inner side has branches: the inner joins with them, and the rows without a match.
fn of_inner_side(join: &Join) -> Result<Option<Vec<LogicalPlan>>, Reason> {
    let (inner, anti) = match join.join_type {
        JoinType::Left => (&join.right, JoinType::LeftAnti),
        JoinType::Right => (&join.left, JoinType::RightAnti),
        _ => return Ok(None),
    };
    let Some(sides) = branches(inner)? else { return Ok(None) };
    copied(&join.left)?;
    copied(&join.right)?;
    let mut all = Vec::with_capacity(sides.len() + 1);
    for side in sides {
        let side = Arc::new(side);
        let (left, right) = match anti {
            JoinType::LeftAnti => (join.left.clone(), side),
            _ => (side, join.right.clone()),
        };
        all.push(of_kind(&Join { left, right, ..join.clone() }, JoinType::Inner)?);
    }
    all.push(lonely(join, anti)?);
    of_inputs(all, &join.schema).map(Some)
}

/// The plan with the groups of all its columns in place of its rows if those are a union: the same ones, once each.
pub(super) fn without_union(plan: &Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>, Reason> {
    if branches(plan)?.is_none() {
        return Ok(plan.clone());
    }
    let columns = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let grouped = Aggregate::try_new(plan.clone(), columns, Vec::new()).map_err(text)?;
    Ok(Arc::new(LogicalPlan::Aggregate(grouped)))
}

/// The halves of a full join: the left join, and the rows of the right side without a match.
pub(super) fn halves(join: &Join) -> Result<[LogicalPlan; 2], Reason> {
    copied(&join.left)?;
    copied(&join.right)?;
    Ok([of_kind(join, JoinType::Left)?, lonely(join, JoinType::RightAnti)?])
}

/// A join of the same sides, of another kind.
fn of_kind(join: &Join, join_type: JoinType) -> Result<LogicalPlan, Reason> {
    let plan = Join::try_new(
        join.left.clone(),
        join.right.clone(),
        join.on.clone(),
        join.filter.clone(),
        join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    );
    plan.map(LogicalPlan::Join).map_err(text)
}

/// The rows of one side without a match, by an anti join, with NULL for the columns of the other.
fn lonely(join: &Join, anti: JoinType) -> Result<LogicalPlan, Reason> {
    let columns = |side: &LogicalPlan, is_there: bool| {
        let column = |(qualifier, field): (Option<&TableReference>, &FieldRef)| {
            if is_there {
                return Ok(Expr::Column(Column::from((qualifier, field))));
            }
            let null = ScalarValue::try_from(field.data_type()).map_err(text)?;
            Ok(Expr::Literal(null, None).alias_qualified(qualifier.cloned(), field.name()))
        };
        side.schema().iter().map(column).collect::<Result<Vec<_>, Reason>>()
    };
    let keeps_left = anti == JoinType::LeftAnti;
    let columns = [columns(&join.left, keeps_left)?, columns(&join.right, !keeps_left)?].concat();
    let lonely = Projection::try_new(columns, Arc::new(of_kind(join, anti)?)).map_err(text)?;
    Ok(LogicalPlan::Projection(lonely))
}

/// Whether a sort is for the first rows of a union.
pub(super) fn has_first_rows(sort: &Sort) -> bool {
    sort.fetch.is_some_and(|fetch| fetch > 0) && matches!(branches(&sort.input), Ok(Some(_)))
}

/// The plan in place of a sort for which [`has_first_rows`] holds: the first rows of a union are among those of its
/// branches.
pub(super) fn first_rows_of_branches(
    sort: &Sort,
    facts: &TableFacts,
    refused: &mut Vec<Refused>,
) -> Result<LogicalPlan, Reason> {
    let mut first =
        |branch| first_rows(&Sort { input: Arc::new(branch), ..sort.clone() }, facts, refused).map(Arc::new);
    let inputs = branches(&sort.input)?.into_iter().flatten().map(&mut first).collect::<Result<_, _>>()?;
    let union = LogicalPlan::Union(Union { inputs, schema: sort.input.schema().clone() });
    Ok(LogicalPlan::Sort(Sort { input: Arc::new(union), ..sort.clone() }))
}

fn text(error: DataFusionError) -> Reason {
    error.strip_backtrace()
}
