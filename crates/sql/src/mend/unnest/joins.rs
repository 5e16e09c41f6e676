//! Joins and unions of plans over rows of all values: rows meet where these are equal.

use std::sync::Arc;

use datafusion::common::{Column, DFSchemaRef, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator, SubqueryAlias, Union, when};

use super::outer::{columns, filtered, joined, named, projected};
use super::push::{Binding, Pushed, Pusher};

impl Pusher<'_> {
    pub(super) fn union(&mut self, inputs: Vec<Arc<LogicalPlan>>, schema: &DFSchemaRef) -> Result<Pushed> {
        let inputs = inputs.into_iter().map(|input| {
            let columns = input.schema().clone();
            Ok((self.push(Arc::unwrap_or_clone(input))?, columns))
        });
        let inputs: Vec<(Pushed, DFSchemaRef)> = inputs.collect::<Result<_>>()?;
        let wanted: Vec<bool> =
            (0..self.items.len()).map(|item| inputs.iter().any(|(input, _)| input.bound[item].is_some())).collect();
        let mut full = Vec::with_capacity(inputs.len());
        for (input, columns) in inputs {
            full.push((self.with_items(input, &wanted)?, columns));
        }
        let is_strict: Vec<bool> = (0..self.items.len())
            .map(|item| full.iter().all(|(input, _)| input.bound[item].as_ref().is_none_or(|bound| bound.is_strict)))
            .collect();
        let keys: Vec<Option<String>> = wanted.iter().map(|wanted| wanted.then(|| self.names.column())).collect();
        let mut branches = Vec::with_capacity(full.len());
        for (input, own) in full {
            let input = loosened(input, &is_strict)?;
            let mut exprs: Vec<Expr> = own.columns().into_iter().map(Expr::Column).collect();
            for (binding, key) in input.bound.iter().zip(&keys) {
                if let (Some(binding), Some(key)) = (binding, key) {
                    exprs.push(binding.expr().alias(key));
                }
            }
            branches.push(Arc::new(projected(input.plan, exprs)?));
        }
        let plan = LogicalPlan::Union(Union::try_new(branches)?);
        let places = plan.schema().columns().into_iter().map(Expr::Column).enumerate();
        let exprs = places.map(|(place, column)| match place < schema.fields().len() {
            true => named(column, schema, place),
            false => column,
        });
        let plan = projected(plan.clone(), exprs.collect())?;
        let bound = keys
            .into_iter()
            .zip(is_strict)
            .map(|(key, is_strict)| key.map(|key| Binding { column: Column::new_unqualified(key), is_strict }));
        Ok(Pushed { plan, bound: bound.collect(), is_single: false })
    }

    pub(super) fn join(&mut self, join: Join) -> Result<Pushed> {
        let schema = join.schema.clone();
        let Join { left, right, on, filter, join_type, null_equality, null_aware, .. } = join;
        let mirrored =
            matches!(join_type, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark);
        let (left, right, join_type) = match mirrored {
            true => (right, left, join_type.swap()),
            false => (left, right, join_type),
        };
        let op = match null_equality {
            NullEquality::NullEqualsNothing => Operator::Eq,
            NullEquality::NullEqualsNull => Operator::IsNotDistinctFrom,
        };
        let keys =
            on.into_iter().map(|(left, right)| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))));
        let conditions: Vec<Expr> = keys.chain(filter.into_iter().flat_map(split_conjunction_owned)).collect();
        let left = self.push(Arc::unwrap_or_clone(left))?;
        let mut right = self.push(Arc::unwrap_or_clone(right))?;
        if join_type == JoinType::LeftMark {
            right = of_mark(right, &schema)?;
        }
        let mut pushed = match join_type {
            JoinType::Inner => self.inner(left, right, conditions)?,
            _ => self.outer(left, right, join_type, conditions)?,
        };
        if let LogicalPlan::Join(join) = &mut pushed.plan {
            join.null_aware = null_aware;
        }
        self.exact(pushed, &schema)
    }

    pub(super) fn inner(&mut self, left: Pushed, right: Pushed, conditions: Vec<Expr>) -> Result<Pushed> {
        let mut own = Vec::new();
        let (mut with_items, mut bound) = (Vec::new(), Vec::new());
        for condition in conditions {
            match self.within([&condition])?.contains(&true) {
                true => with_items.push(condition),
                false => own.push(condition),
            }
        }
        for (left, right) in left.bound.into_iter().zip(right.bound) {
            bound.push(match (left, right) {
                (Some(left), Some(right)) => {
                    let is_strict = left.is_strict || right.is_strict;
                    own.push(Binding { is_strict, ..left.clone() }.is(left.expr(), right.expr()));
                    Some(Binding { is_strict, ..left })
                }
                (left, right) => left.or(right),
            });
        }
        let plan = joined(left.plan, right.plan, JoinType::Inner, own)?;
        self.filter(Pushed { plan, bound, is_single: false }, with_items)
    }

    /// A join whose left side decides which rows there are, or a full one.
    pub(super) fn outer(
        &mut self,
        left: Pushed,
        right: Pushed,
        join_type: JoinType,
        conditions: Vec<Expr>,
    ) -> Result<Pushed> {
        let is_full = join_type == JoinType::Full;
        let within = self.within(&conditions)?;
        let wanted: Vec<bool> = (0..self.items.len())
            .map(|item| within[item] || right.bound[item].is_some() || left.bound[item].is_some())
            .collect();
        let mut left = self.with_items(left, &wanted)?;
        let mut right = right;
        if is_full {
            right = self.with_items(right, &wanted)?;
            let loose = vec![false; self.items.len()];
            left = loosened(left, &loose)?;
            right = loosened(right, &loose)?;
        }
        let mut own = conditions.into_iter().map(|expr| self.bind(expr, &left.bound)).collect::<Result<Vec<_>>>()?;
        let mut bound = Vec::with_capacity(self.items.len());
        let mut united = Vec::new();
        for (left, right) in left.bound.into_iter().zip(right.bound) {
            if let (Some(left), Some(right)) = (&left, &right) {
                let is_strict = left.is_strict || right.is_strict;
                own.push(Binding { is_strict, ..left.clone() }.is(left.expr(), right.expr()));
                if is_full {
                    let name = self.names.column();
                    united.push(when(left.expr().is_null(), right.expr()).otherwise(left.expr())?.alias(&name));
                    bound.push(Some(Binding { column: Column::new_unqualified(name), is_strict: false }));
                    continue;
                }
            }
            bound.push(left);
        }
        let plan = joined(left.plan, right.plan, join_type, own)?;
        if united.is_empty() {
            return Ok(Pushed { plan, bound, is_single: false });
        }
        let exprs = columns(&plan).into_iter().chain(united).collect();
        Ok(Pushed { plan: projected(plan, exprs)?, bound, is_single: false })
    }
}

/// The right side of a mark join as the table by whose name the mark is called, bound columns included: optimisation
/// may leave no others.
fn of_mark(right: Pushed, schema: &DFSchemaRef) -> Result<Pushed> {
    let Some((Some(table), _)) = schema.iter().last() else { return Ok(right) };
    let Pushed { plan, bound, is_single } = right;
    let own = columns(&plan).into_iter().zip(plan.schema().fields()).map(|(column, field)| column.alias(field.name()));
    let plan = projected(plan.clone(), own.collect())?;
    let plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), table.clone())?);
    let of_table =
        |binding: Binding| Binding { column: Column::new(Some(table.clone()), binding.column.name), ..binding };
    let bound = bound.into_iter().map(|binding| binding.map(of_table)).collect();
    Ok(Pushed { plan, bound, is_single })
}

/// A plan whose bound columns are as strict as these: rows without a value go where others may have none.
fn loosened(input: Pushed, is_strict: &[bool]) -> Result<Pushed> {
    let Pushed { plan, mut bound, is_single } = input;
    let mut conditions = Vec::new();
    for (binding, is_strict) in bound.iter_mut().zip(is_strict) {
        if let Some(binding) = binding
            && binding.is_strict
            && !is_strict
        {
            conditions.push(binding.expr().is_not_null());
            binding.is_strict = false;
        }
    }
    Ok(Pushed { plan: filtered(plan, conditions)?, bound, is_single })
}
