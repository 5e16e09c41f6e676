//! Aggregations, windows and DISTINCT ON over rows of all values: the values are groups and partitions.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{GroupingSet, Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Cast, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, Window, lit, when,
};

use super::super::held_filters::has_empty_group;
use super::outer::{columns, joined, named};
use super::push::{Binding, Pushed, Pusher, named_as, refused};
use crate::walk::Walk;

impl Pusher<'_> {
    pub(super) fn window(&mut self, window: Window) -> Result<Pushed> {
        let Window { window_expr, input, schema } = window;
        let own = columns(&input);
        let input = self.push(Arc::unwrap_or_clone(input))?;
        let input = self.with_items_of(input, &window_expr)?;
        let keys = input.keys();
        let width = input.plan.schema().fields().len();
        let bound = window_expr.into_iter().map(|expr| {
            let expr = self.bind(expr, &input.bound)?.transform_down(|expr| {
                let Expr::WindowFunction(mut function) = expr else { return Ok(Transformed::no(expr)) };
                let WindowFunction { params, .. } = function.as_mut();
                params.partition_by.extend(keys.iter().cloned());
                Ok(Transformed::new(Expr::WindowFunction(function), true, TreeNodeRecursion::Jump))
            })?;
            Ok(expr.data)
        });
        let exprs = bound.collect::<Result<Vec<_>>>()?;
        let Pushed { plan, bound, is_single } = input;
        let plan = LogicalPlan::Window(Window::try_new(exprs, Arc::new(plan))?);
        let made = plan.schema().columns().split_off(width).into_iter().map(Expr::Column);
        let exprs = own.into_iter().chain(made).enumerate().map(|(place, expr)| named(expr, &schema, place));
        self.project(Pushed { plan, bound, is_single }, exprs.collect())
    }

    pub(super) fn aggregate(&mut self, aggregate: Aggregate) -> Result<Pushed> {
        let gives_a_row = has_empty_group(&aggregate);
        if gives_a_row && empty_groups(&aggregate) > 1 {
            return Err(refused("several empty grouping sets"));
        }
        if let Some(running) = self.running_aggregates(&aggregate)? {
            return Ok(running);
        }
        let (aggr_expr, schema) = (aggregate.aggr_expr.clone(), aggregate.schema.clone());
        let grouped = self.grouped(aggregate)?;
        if !gives_a_row {
            return Ok(grouped);
        }
        // A row for each of the domain, where there are no rows to aggregate.
        let wanted: Vec<bool> = grouped.bound.iter().map(Option::is_some).collect();
        let (domain, found) = self.domain(&wanted)?;
        let conditions = grouped.bound.iter().zip(&found).filter_map(|(bound, found)| {
            let (bound, found) = (bound.as_ref()?, found.as_ref()?);
            Some(bound.is(found.expr(), bound.expr()))
        });
        let plan = joined(domain, grouped.plan, JoinType::Left, conditions.collect())?;
        let first = schema.fields().len() - aggr_expr.len();
        let mut exprs = Vec::with_capacity(schema.fields().len());
        for (place, column) in schema.columns().into_iter().enumerate() {
            let column = Expr::Column(column);
            let value = match place.checked_sub(first) {
                Some(aggregate) => of_no_rows(&aggr_expr[aggregate], column, &schema, place)?,
                None if schema.field(place).name() == Aggregate::INTERNAL_GROUPING_ID => {
                    let all = lit((1u64 << (first - 1)) - 1).cast_to(schema.field(place).data_type(), &schema)?;
                    when(column.clone().is_null(), all).otherwise(column)?
                }
                None => column,
            };
            exprs.push(named(value, &schema, place));
        }
        let is_single = grouped.is_single;
        self.project(Pushed { plan, bound: found, is_single }, exprs)
    }

    /// An aggregation that has no row for values without rows.
    pub(super) fn grouped(&mut self, aggregate: Aggregate) -> Result<Pushed> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let input = self.push(Arc::unwrap_or_clone(input))?;
        let mut input = self.with_items_of(input, group_expr.iter().chain(&aggr_expr))?;
        let has_sets = matches!(group_expr.as_slice(), [Expr::GroupingSet(_)]);
        if has_sets {
            input = self.with_own_keys(input)?;
        }
        let keys = input.keys();
        let each = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
            exprs.into_iter().map(|expr| self.bind(expr, &input.bound)).collect()
        };
        let aggregates = each(aggr_expr)?;
        let mut is_single = false;
        // The groups, and the place of each column of theirs in what the aggregation gives.
        let (groups, places) = match group_expr.as_slice() {
            [Expr::GroupingSet(set)] => {
                let sets = sets_of(set);
                let sets = sets.into_iter().map(|set| Ok(keys.iter().cloned().chain(each(set)?).collect()));
                let sets = vec![Expr::GroupingSet(GroupingSet::GroupingSets(sets.collect::<Result<_>>()?))];
                let columns = schema.fields().len() - aggregates.len();
                (sets, (0..columns).map(|place| place + keys.len()).collect::<Vec<usize>>())
            }
            _ => {
                let (mut groups, mut places) = (keys.clone(), Vec::new());
                for group in each(group_expr)? {
                    let place = groups.iter().position(|known| *known == group).unwrap_or_else(|| {
                        groups.push(group);
                        groups.len() - 1
                    });
                    places.push(place);
                }
                is_single = groups.len() == keys.len();
                (self.under_own_names(groups), places)
            }
        };
        let Pushed { plan, bound, .. } = input;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, aggregates)?);
        let made = plan.schema().columns();
        let first = made.len() - (schema.fields().len() - places.len());
        let places = places.into_iter().chain(first..made.len());
        let exprs = places.enumerate().map(|(place, of)| {
            let column = Expr::Column(made[of].clone());
            let data_type = schema.field(place).data_type();
            let column = match plan.schema().field(of).data_type() == data_type {
                true => column,
                false => Expr::Cast(Cast::new(Box::new(column), data_type.clone())),
            };
            named(column, &schema, place)
        });
        let exprs = exprs.collect();
        // The keys come first.
        let mut given = HashMap::new();
        for (place, key) in keys.iter().enumerate() {
            given.insert(key.clone(), made[place].clone());
        }
        let bound = bound.into_iter().map(|binding| {
            let Binding { column, is_strict } = binding?;
            let column = given.get(&Expr::Column(column))?.clone();
            Some(Binding { column, is_strict })
        });
        let bound = bound.collect();
        self.project(Pushed { plan, bound, is_single }, exprs)
    }

    /// Groups under names that no column has. DataFusion 55.2 takes what a column of the domain decides in the domain
    /// for what it decides in a join of it, and leaves out other groups beside it.
    pub(super) fn under_own_names(&mut self, groups: Vec<Expr>) -> Vec<Expr> {
        match self.has_domain {
            true => groups.into_iter().map(|group| group.alias(self.names.column())).collect(),
            false => groups,
        }
    }

    pub(super) fn distinct_on(&mut self, on: DistinctOn) -> Result<Pushed> {
        let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = on;
        let input = self.push(Arc::unwrap_or_clone(input))?;
        let sorts = sort_expr.iter().flatten().map(|sort| &sort.expr);
        let input = self.with_items_of(input, on_expr.iter().chain(&select_expr).chain(sorts))?;
        let input = self.with_own_keys(input)?;
        let keys = input.keys();
        let each = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
            exprs.into_iter().map(|expr| self.bind(expr, &input.bound)).collect()
        };
        let on = keys.iter().cloned().chain(each(on_expr)?).collect();
        let select = each(select_expr)?.into_iter().enumerate().map(|(place, expr)| named_as(expr, &schema, place));
        let select = select.chain(keys.iter().cloned()).collect();
        let sorts = match sort_expr {
            Some(sorts) => {
                let mut all: Vec<SortExpr> = keys.into_iter().map(|key| key.sort(true, false)).collect();
                for sort in sorts {
                    all.push(SortExpr { expr: self.bind(sort.expr, &input.bound)?, ..sort });
                }
                Some(all)
            }
            None => None,
        };
        let Pushed { plan, bound, is_single } = input;
        let distinct = DistinctOn::try_new(on, select, sorts, Arc::new(plan))?;
        Ok(Pushed { plan: LogicalPlan::Distinct(Distinct::On(distinct)), bound, is_single })
    }
}

/// An aggregate where its column is NULL because there were no rows: a count is 0.
pub(super) fn of_no_rows(aggregate: &Expr, column: Expr, schema: &DFSchemaRef, place: usize) -> Result<Expr> {
    let Expr::AggregateFunction(function) = aggregate.clone().unalias() else { return Ok(column) };
    let default = function.func.default_value(schema.field(place).data_type())?;
    if default.is_null() {
        return Ok(column);
    }
    when(column.clone().is_null(), lit(default)).otherwise(column)
}

/// The grouping sets of a clause, the largest first.
fn sets_of(set: &GroupingSet) -> Vec<Vec<Expr>> {
    match set {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).rev().map(|length| exprs[..length].to_vec()).collect(),
        GroupingSet::Cube(exprs) => (0..1usize << exprs.len())
            .map(|left_out| {
                let stays = exprs.iter().enumerate().filter(|(place, _)| left_out >> place & 1 == 0);
                stays.map(|(_, expr)| expr.clone()).collect()
            })
            .collect(),
    }
}

/// The grouping sets without a column.
fn empty_groups(aggregate: &Aggregate) -> usize {
    match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().filter(|set| set.is_empty()).count(),
        _ => 1,
    }
}
