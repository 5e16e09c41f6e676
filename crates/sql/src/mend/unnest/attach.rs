//! Subqueries become joins with the rows around them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ExprSchema, JoinType, ScalarValue, Spans};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Subquery, SubqueryAlias, lit, when,
};

use super::super::chain;
use super::groups::of_no_rows;
use super::one_row::one_row;
use super::outer::{Names, as_columns, columns, filtered, is_correlated, joined, projected, refuse_other_rows};
use super::peel::{Peeled, Rows, Use, peel};
use super::push::{Binding, Pushed, Pusher};
use crate::walk::Walk;

/// The rows around subqueries, with what these have become beside them.
pub(super) struct Scope<'a> {
    /// The rows around, of which domains are built.
    pub(super) rows: LogicalPlan,
    /// These with what was joined to them.
    pub(super) plan: LogicalPlan,
    pub(super) names: &'a mut Names,
    /// Whether a domain was built.
    pub(super) has_domain: bool,
}

/// What is joined to the rows around, under names of its own.
struct Side {
    plan: LogicalPlan,
    /// The names of columns in it.
    names: HashMap<Column, String>,
    /// Of items their columns.
    bound: Vec<(Expr, Binding)>,
}

/// A comparison of a value with all or any of those of a subquery.
pub(super) struct Comparison {
    pub(super) value: Expr,
    pub(super) op: Operator,
    pub(super) is_any: bool,
}

impl Comparison {
    /// Whether this is NOT IN of a column. Any other value may turn out a constant, on either side, and a join that
    /// knows NULL would become a filter that drops NULLs.
    fn is_column_not_in(&self) -> bool {
        let value = match &self.value {
            Expr::Cast(cast) => cast.expr.as_ref(),
            value => value,
        };
        !self.is_any && self.op == Operator::NotEq && matches!(value, Expr::Column(_))
    }

    /// What one row decides: that the outcome is true of ANY, and false of ALL.
    fn deciding(&self, other: Expr) -> Expr {
        let compared =
            |op| Expr::BinaryExpr(BinaryExpr::new(Box::new(self.value.clone()), op, Box::new(other.clone())));
        match (self.is_any, self.op.negate()) {
            (true, _) => compared(self.op),
            (false, Some(op)) => compared(op),
            (false, None) => Expr::Not(Box::new(compared(self.op))),
        }
    }
}

impl Scope<'_> {
    /// The side of these rows, with the columns that expressions of them read.
    fn side<'e>(
        &mut self,
        rows: LogicalPlan,
        reads: impl IntoIterator<Item = &'e Expr>,
        is_shared: bool,
    ) -> Result<Side> {
        let pushed = self.pushed(rows)?;
        self.side_of(pushed, reads, is_shared)
    }

    fn pushed(&mut self, rows: LogicalPlan) -> Result<(Pushed, Vec<Expr>)> {
        let mut pusher = Pusher::new(&rows, &self.rows, self.names)?;
        let pushed = pusher.push(rows)?;
        let (items, has_domain) = (pusher.items, pusher.has_domain);
        self.has_domain |= has_domain;
        Ok((pushed, items))
    }

    fn side_of<'e>(
        &mut self,
        (pushed, items): (Pushed, Vec<Expr>),
        reads: impl IntoIterator<Item = &'e Expr>,
        is_shared: bool,
    ) -> Result<Side> {
        let Pushed { plan, bound, .. } = pushed;
        let bound: Vec<(Expr, Binding)> =
            items.into_iter().zip(bound).filter_map(|(item, bound)| Some((item, bound?))).collect();
        let read = reads.into_iter().flat_map(Expr::column_refs).cloned();
        let read: Vec<Column> = read.chain(bound.iter().map(|(_, binding)| binding.column.clone())).collect();
        let (mut names, mut exprs) = (HashMap::new(), Vec::new());
        for column in read {
            if let Entry::Vacant(free) = names.entry(column) {
                let name = self.names.column();
                exprs.push(Expr::Column(free.key().clone()).alias(&name));
                free.insert(name);
            }
        }
        if exprs.is_empty() {
            exprs.push(lit(true).alias(self.names.column()));
        }
        let mut plan = projected(plan, exprs)?;
        if is_shared {
            refuse_other_rows(&plan)?;
            let name = self.names.shared("subquery");
            plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), name)?);
        }
        Ok(Side { plan, names, bound })
    }

    /// Joins a side by conditions over its rows and those around. Gives the name of its table.
    fn join(&mut self, side: &Side, join_type: JoinType, conditions: Vec<Expr>) -> Result<String> {
        let table = self.names.table();
        let right = SubqueryAlias::try_new(Arc::new(side.plan.clone()), table.as_str())?;
        let mut all = Vec::with_capacity(conditions.len() + side.bound.len());
        // NULL is told from NULL by a condition alone if none of them is an equality.
        let is_strict = side.bound.iter().any(|(_, binding)| binding.is_strict);
        for (item, binding) in &side.bound {
            let value = as_columns(item.clone(), self.rows.schema(), &Expr::Column)?;
            let column = side.column(&binding.column, &table);
            let has_nulls = value.nullable(self.rows.schema())?;
            let is_strict = binding.is_strict || !has_nulls && is_strict;
            all.push(Binding { is_strict, ..binding.clone() }.is(value, column));
        }
        for condition in conditions {
            all.push(self.seen(condition, side, &table)?);
        }
        let plan = std::mem::take(&mut self.plan);
        self.plan = joined(plan, LogicalPlan::SubqueryAlias(right), join_type, all)?;
        Ok(table)
    }

    /// An expression over a side and the rows around, above their join.
    fn seen(&self, expr: Expr, side: &Side, table: &str) -> Result<Expr> {
        as_columns(expr, self.plan.schema(), &|column| side.column(&column, table))
    }

    /// Adds a mark to rows that a row of the side meets the conditions with.
    fn mark(&mut self, side: &Side, conditions: Vec<Expr>) -> Result<Expr> {
        let table = self.join(side, JoinType::LeftMark, conditions)?;
        Ok(Expr::Column(Column::new(Some(table), "mark")))
    }

    /// Whether conditions over a side are alike for all rows around.
    fn is_for_all(&self, side: &Side, conditions: &[Expr]) -> Result<bool> {
        let refers = !side.bound.is_empty() || conditions.iter().any(Expr::contains_outer);
        Ok(!refers && !is_correlated(&side.plan)?)
    }

    /// Whether a row of the side meets the conditions: a mark, or a count that is an argument if it is one for all rows
    /// around.
    fn found(&mut self, side: &Side, conditions: Vec<Expr>) -> Result<Expr> {
        if !self.is_for_all(side, &conditions)? {
            return self.mark(side, conditions);
        }
        let table = self.names.table();
        let rows = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(side.plan.clone()), table.as_str())?);
        let of_side = |column: Column| side.column(&column, &table);
        let conditions = conditions.into_iter().map(|condition| as_columns(condition, &DFSchema::empty(), &of_side));
        let rows = filtered(rows, conditions.collect::<Result<_>>()?)?;
        let counted = Aggregate::try_new(Arc::new(rows), Vec::new(), vec![count(lit(1i64))])?;
        let counted = Arc::new(LogicalPlan::Aggregate(counted));
        let subquery = Subquery { subquery: counted, outer_ref_columns: Vec::new(), spans: Spans::new() };
        Ok(Expr::ScalarSubquery(subquery).gt(lit(0i64)))
    }

    /// Whether a subquery has rows.
    pub(super) fn exists(&mut self, subquery: LogicalPlan) -> Result<Expr> {
        let Peeled { rows, conditions, .. } = peel(subquery, Use::Exists)?;
        match rows {
            Rows::Some => Ok(lit(true)),
            Rows::None => Ok(lit(false)),
            Rows::One(row) => {
                let (_, conditions) = self.row(row, Vec::new(), conditions)?;
                Ok(Expr::IsTrue(Box::new(chain(Operator::And, conditions))))
            }
            Rows::Of(rows) => {
                let side = self.side(rows, &conditions, false)?;
                self.found(&side, conditions)
            }
        }
    }

    /// Keeps the rows for which a subquery has rows, or has none.
    pub(super) fn keep_existing(&mut self, subquery: LogicalPlan, is_negated: bool) -> Result<Option<Expr>> {
        let Peeled { rows, conditions, .. } = peel(subquery.clone(), Use::Exists)?;
        let Rows::Of(rows) = rows else {
            let found = self.exists(subquery)?;
            return Ok(Some(if is_negated { !found } else { found }));
        };
        let side = self.side(rows, &conditions, false)?;
        self.keep(&side, conditions, is_negated)
    }

    /// Keeps the rows around for which a row of the side meets the conditions, or none does. What is one answer for all
    /// of them is a condition that is left.
    fn keep(&mut self, side: &Side, conditions: Vec<Expr>, is_negated: bool) -> Result<Option<Expr>> {
        if self.is_for_all(side, &conditions)? {
            let found = self.found(side, conditions)?;
            return Ok(Some(if is_negated { !found } else { found }));
        }
        self.join(side, if is_negated { JoinType::LeftAnti } else { JoinType::LeftSemi }, conditions)?;
        Ok(None)
    }

    /// A comparison whose value is drawn once for each row.
    fn drawn(&mut self, comparison: Comparison) -> Result<Comparison> {
        if !comparison.value.is_volatile() {
            return Ok(comparison);
        }
        let value = Column::new_unqualified(self.names.column());
        let mut exprs = columns(&self.plan);
        exprs.push(comparison.value.alias(&value.name));
        let plan = std::mem::take(&mut self.plan);
        self.plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
        Ok(Comparison { value: Expr::Column(value), ..comparison })
    }

    /// A three-valued comparison with the values of a subquery.
    pub(super) fn compared(&mut self, comparison: Comparison, subquery: LogicalPlan) -> Result<Expr> {
        let comparison = self.drawn(comparison)?;
        let (value_nullable, other_nullable, peeled) = self.nulls_of(&comparison, subquery)?;
        let Peeled { rows, mut values, conditions } = peeled;
        let decided = |is_decided: bool| lit(comparison.is_any == is_decided);
        let rows = match rows {
            Rows::None | Rows::Some => return Ok(decided(false)),
            Rows::One(row) => {
                let (mut values, conditions) = self.row(row, values, conditions)?;
                let (value, other) = (comparison.value.clone(), values.swap_remove(0));
                let compared = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), comparison.op, Box::new(other)));
                return match conditions.is_empty() {
                    true => Ok(compared),
                    false => when(chain(Operator::And, conditions), compared).otherwise(decided(false)),
                };
            }
            Rows::Of(rows) => rows,
        };
        let other = values.swap_remove(0);
        let side = self.side(rows, conditions.iter().chain([&other]), value_nullable || other_nullable)?;
        let with = |condition: Option<Expr>| conditions.iter().cloned().chain(condition).collect::<Vec<_>>();
        let is_null = comparison.value.clone().is_null();
        let value = self.held(comparison.value.clone())?;
        let comparison = Comparison { value, ..comparison };
        let hit = self.found(&side, with(Some(comparison.deciding(other.clone()))))?;
        let mut unknown = Vec::new();
        if other_nullable {
            unknown.push(self.found(&side, with(Some(other.is_null())))?);
        }
        if value_nullable {
            let has_rows = self.found(&side, with(None))?;
            unknown.push(is_null.and(has_rows));
        }
        let Some(unknown) = unknown.into_iter().reduce(Expr::or) else {
            return Ok(if comparison.is_any { hit } else { !hit });
        };
        let null = Expr::Literal(ScalarValue::Boolean(None), None);
        when(hit, lit(comparison.is_any)).when(unknown, null).otherwise(lit(!comparison.is_any))
    }

    /// Keeps the rows for which a comparison with the values of a subquery is true.
    pub(super) fn keep_compared(&mut self, comparison: Comparison, subquery: LogicalPlan) -> Result<Option<Expr>> {
        let comparison = self.drawn(comparison)?;
        let (value_nullable, other_nullable, peeled) = self.nulls_of(&comparison, subquery.clone())?;
        let Peeled { rows, mut values, conditions } = peeled;
        let Rows::Of(rows) = rows else { return Ok(Some(self.compared(comparison, subquery)?)) };
        let other = values.swap_remove(0);
        let pushed = self.pushed(rows)?;
        let is_null_told = !comparison.is_any && (value_nullable || other_nullable);
        let is_column = matches!(other, Expr::Column(_));
        let is_alike = is_column && pushed.1.is_empty() && !is_correlated(&pushed.0.plan)?;
        let knows_null = is_null_told && comparison.is_column_not_in() && conditions.is_empty() && is_alike;
        let side = self.side_of(pushed, conditions.iter().chain([&other]), is_null_told && !knows_null)?;
        let with = |condition: Expr| conditions.iter().cloned().chain([condition]).collect::<Vec<_>>();
        let is_null = comparison.value.clone().is_null();
        let value = self.held(comparison.value.clone())?;
        let comparison = Comparison { value, ..comparison };
        let is_negated = !comparison.is_any;
        let mut left = self.keep(&side, with(comparison.deciding(other.clone())), is_negated)?;
        if knows_null {
            if let LogicalPlan::Join(join) = &mut self.plan {
                join.null_aware = true;
            }
            return Ok(left);
        }
        if is_null_told && other_nullable {
            left = left.into_iter().chain(self.keep(&side, with(other.is_null()), true)?).reduce(Expr::and);
        }
        if is_null_told && value_nullable {
            let known = match self.is_for_all(&side, &conditions)? {
                true => Some(!is_null.and(self.found(&side, conditions)?)),
                false => self.keep(&side, with(comparison.value.is_null()), true)?,
            };
            left = left.into_iter().chain(known).reduce(Expr::and);
        }
        Ok(left)
    }

    /// Whether the sides of a comparison may be NULL, and the peeled subquery.
    fn nulls_of(&self, comparison: &Comparison, subquery: LogicalPlan) -> Result<(bool, bool, Peeled)> {
        let value_nullable = comparison.value.nullable(self.plan.schema()).unwrap_or(true);
        let other_nullable = subquery.schema().field(0).is_nullable();
        Ok((value_nullable, other_nullable, peel(subquery, Use::Values)?))
    }

    /// An expression over the rows around, told from columns of a subquery.
    fn held(&self, value: Expr) -> Result<Expr> {
        let schema = self.plan.schema();
        let held = value.transform_up(|expr| {
            Ok(match expr {
                Expr::Column(column) => {
                    let field = schema.field_from_column(&column)?.clone();
                    Transformed::yes(Expr::OuterReferenceColumn(field, column))
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(held.data)
    }

    /// The value of a scalar subquery.
    pub(super) fn scalar(&mut self, subquery: LogicalPlan) -> Result<Expr> {
        let data_type = subquery.schema().field(0).data_type().clone();
        let Peeled { rows, mut values, conditions } = peel(subquery, Use::Scalar)?;
        let rows = match rows {
            Rows::None | Rows::Some => return Ok(Expr::Literal(ScalarValue::try_from(&data_type)?, None)),
            Rows::One(row) => {
                let (mut values, conditions) = self.row(row, values, conditions)?;
                let value = values.swap_remove(0);
                return match conditions.is_empty() {
                    true => Ok(value),
                    false => when(chain(Operator::And, conditions), value).end(),
                };
            }
            Rows::Of(rows) => rows,
        };
        let mut value = values.swap_remove(0);
        let (mut pushed, items) = self.pushed(rows)?;
        // What reads the subquery's rows alone is computed among them, and so is NULL where there is none.
        let found = Column::new_unqualified(self.names.column());
        let mut exprs = columns(&pushed.plan);
        if value.contains_outer() {
            exprs.push(lit(true).alias(&found.name));
            value = when(Expr::Column(found.clone()).is_not_null(), value).end()?;
        } else {
            exprs.push(value.alias(&found.name));
            value = Expr::Column(found);
        }
        pushed.plan = projected(pushed.plan, exprs)?;
        if pushed.is_single {
            let side = self.side_of((pushed, items), [&value], false)?;
            let table = self.join(&side, JoinType::Left, Vec::new())?;
            return self.seen(value, &side, &table);
        }
        let (keys, rows) = (pushed.keys(), Column::new_unqualified(self.names.column()));
        let mut made = vec![count(lit(1i64)).alias(&rows.name)];
        let mut names = HashMap::new();
        for column in value.column_refs() {
            let name = self.names.column();
            made.push(first_value(Expr::Column(column.clone()), Vec::new()).alias(&name));
            names.insert(column.clone(), Expr::Column(Column::new_unqualified(name)));
        }
        value = as_columns(value.clone(), &DFSchema::empty(), &|column| {
            names.get(&column).cloned().unwrap_or(Expr::Column(column))
        })?;
        let Pushed { plan, bound, .. } = pushed;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), keys, made)?);
        let pushed = Pushed { plan, bound, is_single: true };
        let rows = Expr::Column(rows);
        let side = self.side_of((pushed, items), [&value, &rows], false)?;
        let table = self.join(&side, JoinType::Left, Vec::new())?;
        Ok(one_row(self.seen(value, &side, &table)?, self.seen(rows, &side, &table)?))
    }

    /// The row of an aggregation without groups for each row around: values and conditions over it.
    fn row(
        &mut self,
        aggregate: Aggregate,
        values: Vec<Expr>,
        conditions: Vec<Expr>,
    ) -> Result<(Vec<Expr>, Vec<Expr>)> {
        let (aggregates, schema) = (aggregate.aggr_expr.clone(), aggregate.schema.clone());
        let plan = LogicalPlan::Aggregate(aggregate.clone());
        let mut pusher = Pusher::new(&plan, &self.rows, self.names)?;
        let is_for_all = pusher.items.is_empty();
        let pushed = match is_for_all {
            true => pusher.push(plan)?,
            false => match pusher.running_aggregates(&aggregate)? {
                Some(running) => running,
                None => pusher.grouped(aggregate)?,
            },
        };
        let (items, has_domain) = (pusher.items, pusher.has_domain);
        self.has_domain |= has_domain;
        let side = self.side_of((pushed, items), values.iter().chain(&conditions), false)?;
        let join_type = if is_for_all { JoinType::Inner } else { JoinType::Left };
        let table = self.join(&side, join_type, Vec::new())?;
        let of_row = |column: Column| {
            let seen = side.column(&column, &table);
            if is_for_all {
                return seen;
            }
            match schema.index_of_column(&column) {
                Ok(place) => of_no_rows(&aggregates[place], seen.clone(), &schema, place).unwrap_or(seen),
                Err(_) => seen,
            }
        };
        let each = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
            exprs.into_iter().map(|expr| as_columns(expr, self.rows.schema(), &of_row)).collect()
        };
        Ok((each(values)?, each(conditions)?))
    }

    /// Joins the rows of a LATERAL subquery by conditions over its columns, which have these names.
    pub(super) fn lateral(
        &mut self,
        subquery: &LogicalPlan,
        alias: &LogicalPlan,
        is_left: bool,
        conditions: Vec<Expr>,
    ) -> Result<Vec<Expr>> {
        let Peeled { rows, values, conditions: own } = peel(subquery.clone(), Use::Table)?;
        let schema = alias.schema();
        // Conditions over the columns of the subquery and those of the rows around.
        let placed = |values: &[Expr], condition: Expr| -> Result<Expr> {
            let placed = condition.transform_up(|expr| {
                Ok(match &expr {
                    Expr::Column(column) => match schema.index_of_column(column) {
                        Ok(place) => Transformed::yes(values[place].clone()),
                        Err(_) => Transformed::no(expr),
                    },
                    _ => Transformed::no(expr),
                })
            })?;
            Ok(placed.data)
        };
        if let Rows::One(row) = rows {
            let (values, mut all) = self.row(row, values, own)?;
            for condition in conditions {
                all.push(placed(&values, condition)?);
            }
            if all.is_empty() {
                return Ok(values);
            }
            if is_left {
                let holds = chain(Operator::And, all);
                return values.into_iter().map(|value| when(holds.clone(), value).end()).collect();
            }
            let plan = std::mem::take(&mut self.plan);
            self.plan = filtered(plan, all)?;
            return Ok(values);
        }
        let Rows::Of(rows) = rows else {
            return Err(DataFusionError::Internal("LATERAL without rows".into()));
        };
        let (mut pushed, items) = self.pushed(rows)?;
        let mut shown = values.clone();
        if is_left {
            let mut exprs = columns(&pushed.plan);
            let mut found = None;
            for value in &mut shown {
                let taken = std::mem::replace(value, lit(true));
                *value = match &taken {
                    Expr::Column(_) => taken,
                    computed if !computed.contains_outer() => {
                        let name = self.names.column();
                        exprs.push(taken.alias(&name));
                        Expr::Column(Column::new_unqualified(name))
                    }
                    _ => {
                        let found = found.get_or_insert_with(|| {
                            let name = self.names.column();
                            exprs.push(lit(true).alias(&name));
                            Expr::Column(Column::new_unqualified(name))
                        });
                        when(found.clone().is_not_null(), taken).end()?
                    }
                };
            }
            pushed.plan = projected(pushed.plan, exprs)?;
        }
        let mut all = own;
        for condition in conditions {
            // Columns of the subquery are placed where its rows are, those around are held.
            let around = condition.transform_up(|expr| match &expr {
                Expr::Column(column) if schema.index_of_column(column).is_err() => {
                    Ok(Transformed::yes(self.held(expr)?))
                }
                _ => Ok(Transformed::no(expr)),
            })?;
            all.push(placed(&values, around.data)?);
        }
        let side = self.side_of((pushed, items), shown.iter().chain(&values).chain(&all), false)?;
        let join_type = if is_left { JoinType::Left } else { JoinType::Inner };
        let table = self.join(&side, join_type, all)?;
        shown.into_iter().map(|value| self.seen(value, &side, &table)).collect()
    }
}

impl Side {
    /// A column above a join of the side. What the side does not have is one of the rows around.
    fn column(&self, column: &Column, table: &str) -> Expr {
        match self.names.get(column) {
            Some(name) => Expr::Column(Column::new(Some(table), name)),
            None => Expr::Column(column.clone()),
        }
    }
}
