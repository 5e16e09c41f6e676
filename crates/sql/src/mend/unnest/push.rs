//! A plan for one row around becomes a plan for all of them: references to the rows around become columns.
//!
//! The paper's dependent join of a domain (the distinct values that the plan refers to) and a plan is pushed down until
//! the plan refers to nothing. There an equality of a filter, `u.k = t.k`, gives the value of `t.k` for each row of the
//! plan, and no domain is needed; where a value has none, the domain is joined. All above keeps rows of other values
//! apart: aggregations group by the values, windows divide by them, LIMIT numbers the rows of each.
//!
//! Invariants: a pushed plan has the columns of the plan, in their order and by their names, and columns of the bound
//! values beside them. It may have rows for values that no row around has: a join with these rows drops them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchemaRef, JoinType, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, FetchType, Filter, Limit, LogicalPlan, Operator, Projection,
    SkipType, Sort, SubqueryAlias, Union, Unnest, lit,
};

use super::outer::{Names, as_columns, columns, filtered, items, joined, named, projected};
use crate::error::SqlError;
use crate::walk::{PlanWalk, Walk};

/// A column that has the value of an item in each row.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub(super) column: Column,
    /// True if NULL in the column matches no row around: an equality bound it.
    pub(super) is_strict: bool,
}

impl Binding {
    /// The condition that a value is that of this column.
    pub(super) fn is(&self, value: Expr, column: Expr) -> Expr {
        let op = if self.is_strict { Operator::Eq } else { Operator::IsNotDistinctFrom };
        Expr::BinaryExpr(BinaryExpr::new(Box::new(value), op, Box::new(column)))
    }

    pub(super) fn expr(&self) -> Expr {
        Expr::Column(self.column.clone())
    }
}

/// A plan for all rows around.
#[derive(Debug)]
pub(super) struct Pushed {
    pub(super) plan: LogicalPlan,
    /// Of each item its column, as far as the plan refers to it.
    pub(super) bound: Vec<Option<Binding>>,
    /// Whether there is at most one row for the bound values.
    pub(super) is_single: bool,
}

impl Pushed {
    /// The bound columns, each once.
    pub(super) fn keys(&self) -> Vec<Expr> {
        let mut keys: Vec<Expr> = Vec::new();
        for binding in self.bound.iter().flatten() {
            if !keys.contains(&binding.expr()) {
                keys.push(binding.expr());
            }
        }
        keys
    }
}

/// Pushes plans of one place of a statement.
pub(super) struct Pusher<'a> {
    /// What plans refer to of the rows around.
    pub(super) items: Vec<Expr>,
    /// The rows around.
    pub(super) rows: &'a LogicalPlan,
    pub(super) names: &'a mut Names,
    /// Whether a domain was built of the rows around.
    pub(super) has_domain: bool,
}

impl<'a> Pusher<'a> {
    /// What pushes plans that refer to these rows.
    pub(super) fn new(plan: &LogicalPlan, rows: &'a LogicalPlan, names: &'a mut Names) -> Result<Pusher<'a>> {
        Ok(Pusher { items: items(plan, rows.schema())?, rows, names, has_domain: false })
    }

    /// The items within expressions.
    pub(super) fn within<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Result<Vec<bool>> {
        let mut within = vec![false; self.items.len()];
        for expr in exprs {
            for (item, within) in self.items.iter().zip(&mut within) {
                *within = *within || expr.exists(|expr| Ok(expr == item))?;
            }
        }
        Ok(within)
    }

    pub(super) fn refers(&self, plan: &LogicalPlan) -> Result<bool> {
        plan.exists(|plan| {
            let mut found = false;
            plan.apply_exprs(|expr| {
                found |= expr.exists(|expr| Ok(self.items.contains(expr)))?;
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(found)
        })
    }

    /// The plan for all rows around.
    ///
    /// # Errors
    /// [`SqlError::Unsupported`] for operators that no domain goes through.
    pub(super) fn push(&mut self, plan: LogicalPlan) -> Result<Pushed> {
        if !self.refers(&plan)? {
            return Ok(Pushed { plan, bound: vec![None; self.items.len()], is_single: false });
        }
        let schema = plan.schema().clone();
        match plan {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let input = self.push(Arc::unwrap_or_clone(input))?;
                self.filter(input, split_conjunction_owned(predicate))
            }
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let input = self.push(Arc::unwrap_or_clone(input))?;
                let input = self.with_items_of(input, &expr)?;
                let exprs = expr.into_iter().map(|expr| self.bind(expr, &input.bound)).collect::<Result<Vec<_>>>()?;
                let exprs = exprs.into_iter().enumerate().map(|(place, expr)| named_as(expr, &schema, place));
                self.project(input, exprs.collect())
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
                let columns = columns(&input);
                let input = self.push(Arc::unwrap_or_clone(input))?;
                let exprs = columns.into_iter().enumerate().map(|(place, column)| named(column, &schema, place));
                self.project(input, exprs.collect())
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Sort(Sort { expr, input, fetch }) => match fetch {
                Some(fetch) => {
                    let sort = LogicalPlan::Sort(Sort { expr, input, fetch: None });
                    self.limit(sort, None, Some(lit(fetch as u64)))
                }
                None => {
                    let input = self.push(Arc::unwrap_or_clone(input))?;
                    let (input, expr) = self.sorts(input, expr)?;
                    let Pushed { plan, bound, is_single } = input;
                    let plan = LogicalPlan::Sort(Sort { expr, input: Arc::new(plan), fetch: None });
                    Ok(Pushed { plan, bound, is_single })
                }
            },
            LogicalPlan::Limit(limit) => {
                let skip = match limit.get_skip_type()? {
                    SkipType::Literal(0) => None,
                    SkipType::Literal(skip) => Some(lit(skip as u64)),
                    SkipType::UnsupportedExpr => limit.skip.as_deref().cloned(),
                };
                let fetch = match limit.get_fetch_type()? {
                    FetchType::Literal(fetch) => fetch.map(|fetch| lit(fetch as u64)),
                    FetchType::UnsupportedExpr => limit.fetch.as_deref().cloned(),
                };
                let Limit { input, .. } = limit;
                self.limit(Arc::unwrap_or_clone(input), skip, fetch)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.push(Arc::unwrap_or_clone(input))?;
                let Pushed { plan, bound, is_single } = self.exact(input, &schema)?;
                if !self.has_domain {
                    return Ok(Pushed { plan: LogicalPlan::Distinct(Distinct::All(Arc::new(plan))), bound, is_single });
                }
                let (groups, as_before) = (self.under_own_names(columns(&plan)), plan.schema().clone());
                let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), groups, Vec::new())?);
                let exprs = columns(&plan).into_iter().enumerate();
                let exprs = exprs.map(|(place, column)| named(column, &as_before, place)).collect();
                Ok(Pushed { plan: projected(plan, exprs)?, bound, is_single })
            }
            LogicalPlan::Distinct(Distinct::On(on)) => self.distinct_on(on),
            LogicalPlan::Union(Union { inputs, schema }) => self.union(inputs, &schema),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Unnest(Unnest { input, exec_columns, options, .. }) => {
                let input = self.push(Arc::unwrap_or_clone(input))?;
                let Pushed { plan, bound, .. } = self.with_own_keys(input)?;
                let plan = LogicalPlan::Unnest(Unnest::try_new(Arc::new(plan), exec_columns, options)?);
                Ok(Pushed { plan, bound, is_single: false })
            }
            LogicalPlan::RecursiveQuery(_) => Err(refused("WITH RECURSIVE")),
            LogicalPlan::Values(_) => Err(refused("VALUES")),
            other => Err(refused(&other.display().to_string())),
        }
    }

    /// An expression with bound columns in the place of items.
    pub(super) fn bind(&self, expr: Expr, bound: &[Option<Binding>]) -> Result<Expr> {
        self.replaced(expr, &|place| bound[place].as_ref().map(Binding::expr))
    }

    pub(super) fn replaced(&self, expr: Expr, value: &dyn Fn(usize) -> Option<Expr>) -> Result<Expr> {
        let replaced = expr.transform_down(|expr| {
            let place = self.items.iter().position(|item| *item == expr);
            Ok(match place.and_then(value) {
                Some(value) => Transformed::new(value, true, TreeNodeRecursion::Jump),
                None => Transformed::no(expr),
            })
        })?;
        Ok(replaced.data)
    }

    /// A projection, with the bound columns beside what it has.
    pub(super) fn project(&mut self, input: Pushed, mut exprs: Vec<Expr>) -> Result<Pushed> {
        let Pushed { plan, bound, is_single } = input;
        // Of each item the place of its column.
        let mut places: Vec<Option<(usize, bool)>> = Vec::with_capacity(bound.len());
        for binding in &bound {
            let Some(Binding { column, is_strict }) = binding else {
                places.push(None);
                continue;
            };
            let is_it = |expr: &Expr| matches!(expr.clone().unalias(), Expr::Column(found) if found == *column);
            let place = match exprs.iter().position(is_it) {
                Some(place) => place,
                None => {
                    exprs.push(Expr::Column(column.clone()).alias(self.names.column()));
                    exprs.len() - 1
                }
            };
            places.push(Some((place, *is_strict)));
        }
        let plan = projected(plan, exprs)?;
        let column = |place: usize| Column::from(plan.schema().qualified_field(place));
        let bound = places
            .into_iter()
            .map(|place| place.map(|(place, is_strict)| Binding { column: column(place), is_strict }));
        let bound = bound.collect();
        Ok(Pushed { plan, bound, is_single })
    }

    /// A plan with the columns of a schema alone, and with columns of its own for what is bound.
    pub(super) fn exact(&mut self, input: Pushed, schema: &DFSchemaRef) -> Result<Pushed> {
        let exprs = schema.columns().into_iter().map(Expr::Column).collect();
        self.project(input, exprs)
    }

    /// A plan whose bound columns are none of those that the plan has.
    pub(super) fn with_own_keys(&mut self, input: Pushed) -> Result<Pushed> {
        let Pushed { plan, bound, is_single } = input;
        let mut exprs = columns(&plan);
        let mut own = Vec::with_capacity(bound.len());
        for binding in bound {
            own.push(binding.map(|Binding { column, is_strict }| {
                let name = self.names.column();
                exprs.push(Expr::Column(column).alias(&name));
                Binding { column: Column::new_unqualified(name), is_strict }
            }));
        }
        Ok(Pushed { plan: projected(plan, exprs)?, bound: own, is_single })
    }

    /// A plan that has all items of these expressions.
    pub(super) fn with_items_of<'e>(
        &mut self,
        input: Pushed,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Pushed> {
        let wanted = self.within(exprs)?;
        self.with_items(input, &wanted)
    }

    /// A plan that has these items: what it lacks comes from the domain.
    pub(super) fn with_items(&mut self, input: Pushed, wanted: &[bool]) -> Result<Pushed> {
        let lacks: Vec<bool> =
            wanted.iter().zip(&input.bound).map(|(wanted, bound)| *wanted && bound.is_none()).collect();
        if !lacks.contains(&true) {
            return Ok(input);
        }
        let Pushed { plan, mut bound, is_single } = input;
        let of_domain: Vec<bool> = lacks.iter().zip(&bound).map(|(lacks, bound)| *lacks || bound.is_some()).collect();
        let (domain, found) = self.domain(&of_domain)?;
        let mut kept = columns(&plan);
        let mut conditions = Vec::new();
        for ((bound, found), lacks) in bound.iter_mut().zip(found).zip(lacks) {
            let Some(found) = found else { continue };
            if lacks {
                kept.push(found.expr());
                *bound = Some(found);
            } else if let Some(bound) = bound {
                conditions.push(bound.is(found.expr(), bound.expr()));
            }
        }
        let plan = match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row && empty.schema.fields().is_empty() => domain,
            plan => projected(joined(domain, plan, JoinType::Inner, conditions)?, kept)?,
        };
        Ok(Pushed { plan, bound, is_single })
    }

    /// The distinct values of these items.
    pub(super) fn domain(&mut self, of: &[bool]) -> Result<(LogicalPlan, Vec<Option<Binding>>)> {
        self.has_domain = true;
        let (mut exprs, mut found) = (Vec::new(), Vec::new());
        for (item, of) in self.items.iter().zip(of) {
            if !of {
                found.push(None);
                continue;
            }
            let value = as_columns(item.clone(), self.rows.schema(), &Expr::Column)?;
            let name = self.names.column();
            exprs.push(value.alias(&name));
            found.push(Some(Binding { column: Column::new_unqualified(name), is_strict: false }));
        }
        let values = projected(self.rows.clone(), exprs)?;
        Ok((LogicalPlan::Distinct(Distinct::All(Arc::new(values))), found))
    }

    /// Conditions over a plan: equalities bind what it lacks.
    pub(super) fn filter(&mut self, input: Pushed, conjuncts: Vec<Expr>) -> Result<Pushed> {
        let wanted = self.within(&conjuncts)?;
        let lacking: Vec<usize> =
            (0..self.items.len()).filter(|item| wanted[*item] && input.bound[*item].is_none()).collect();
        let mut equal = HashMap::new();
        for item in &lacking {
            let found = conjuncts.iter().enumerate().find_map(|(place, conjunct)| {
                let (value, is_strict) = self.equal(conjunct, *item, &input.plan)?;
                Some((place, value, is_strict))
            });
            if let Some(found) = found {
                equal.insert(*item, found);
            }
        }
        if equal.len() < lacking.len() {
            let Pushed { plan, bound, is_single } = self.with_items(input, &wanted)?;
            let conjuncts = conjuncts.into_iter().map(|conjunct| self.bind(conjunct, &bound));
            let plan = filtered(plan, conjuncts.collect::<Result<_>>()?)?;
            return Ok(Pushed { plan, bound, is_single });
        }
        let Pushed { plan, mut bound, is_single } = input;
        let mut kept = Vec::new();
        for (place, conjunct) in conjuncts.into_iter().enumerate() {
            if equal.values().any(|(taken, _, _)| *taken == place) {
                continue;
            }
            kept.push(self.replaced(conjunct, &|item| match &bound[item] {
                Some(binding) => Some(binding.expr()),
                None => equal.get(&item).map(|(_, value, _)| value.clone()),
            })?);
        }
        let plan = filtered(plan, kept)?;
        let mut exprs = columns(&plan);
        let own = exprs.len();
        for item in lacking {
            let Some((_, value, is_strict)) = equal.remove(&item) else { continue };
            let column = match value {
                Expr::Column(column) => column,
                value => {
                    let name = self.names.column();
                    exprs.push(value.alias(&name));
                    Column::new_unqualified(name)
                }
            };
            bound[item] = Some(Binding { column, is_strict });
        }
        let plan = if exprs.len() == own { plan } else { projected(plan, exprs)? };
        Ok(Pushed { plan, bound, is_single })
    }

    /// What an item equals by a conjunct, and whether rows without that value are dropped.
    pub(super) fn equal(&self, conjunct: &Expr, item: usize, input: &LogicalPlan) -> Option<(Expr, bool)> {
        let outer = &self.items[item];
        if conjunct == outer {
            return Some((lit(true), false));
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = conjunct else { return None };
        let is_strict = match op {
            Operator::Eq => true,
            Operator::IsNotDistinctFrom => false,
            _ => return None,
        };
        let value = match (left.as_ref() == outer, right.as_ref() == outer) {
            (true, false) => right,
            (false, true) => left,
            _ => return None,
        };
        let refers = value.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_))));
        if refers.unwrap_or(true) || !value.any_column_refs() || value.is_volatile() {
            return None;
        }
        let as_column = as_columns(outer.clone(), self.rows.schema(), &Expr::Column).ok()?;
        let is_alike = value.get_type(input.schema()).ok()? == as_column.get_type(self.rows.schema()).ok()?;
        is_alike.then(|| (value.as_ref().clone(), is_strict))
    }

    pub(super) fn sorts(&mut self, input: Pushed, sorts: Vec<SortExpr>) -> Result<(Pushed, Vec<SortExpr>)> {
        let input = self.with_items_of(input, sorts.iter().map(|sort| &sort.expr))?;
        let bound = sorts.into_iter().map(|sort| Ok(SortExpr { expr: self.bind(sort.expr, &input.bound)?, ..sort }));
        let bound = bound.collect::<Result<_>>()?;
        Ok((input, bound))
    }
}

/// An expression under a column's name, without a cast of what is the column already.
pub(super) fn named_as(expr: Expr, schema: &DFSchemaRef, place: usize) -> Expr {
    let (qualifier, field) = schema.qualified_field(place);
    let (relation, name): (Option<TableReference>, String) = expr.qualified_name();
    match relation.as_ref() == qualifier && name == *field.name() {
        true => expr,
        false => named(expr.unalias(), schema, place),
    }
}

pub(super) fn refused(what: &str) -> datafusion::error::DataFusionError {
    SqlError::Unsupported(format!("{what} in a subquery that refers to the rows around it")).into()
}
