//! LIMIT and OFFSET over rows of all values: the rows of each are numbered.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchemaRef, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as SortExpr;
use datafusion::logical_expr::{
    Cast, Distinct, Expr, ExprFunctionExt, Limit, LogicalPlan, Projection, Sort, SubqueryAlias, Window, lit, when,
};

use super::outer::{columns, filtered, named};
use super::push::{Pushed, Pusher, named_as, refused};

impl Pusher<'_> {
    /// The rows behind `skip` and no more than `fetch` of those with equal values.
    pub(super) fn limit(&mut self, input: LogicalPlan, skip: Option<Expr>, fetch: Option<Expr>) -> Result<Pushed> {
        let schema = input.schema().clone();
        match input {
            LogicalPlan::Projection(Projection { expr, input, .. }) if !expr.iter().any(Expr::is_volatile) => {
                let input = self.limit(Arc::unwrap_or_clone(input), skip, fetch)?;
                let input = self.with_items_of(input, &expr)?;
                let exprs = expr.into_iter().map(|expr| self.bind(expr, &input.bound)).collect::<Result<Vec<_>>>()?;
                let exprs = exprs.into_iter().enumerate().map(|(place, expr)| named_as(expr, &schema, place));
                self.project(input, exprs.collect())
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
                let columns = columns(&input);
                let input = self.limit(Arc::unwrap_or_clone(input), skip, fetch)?;
                let exprs = columns.into_iter().enumerate().map(|(place, column)| named(column, &schema, place));
                self.project(input, exprs.collect())
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                if let (Some(skip), Some(fetch)) =
                    (rows_of(skip.as_ref().unwrap_or(&lit(0u64))), fetch.as_ref().and_then(rows_of))
                    && let Some(nearest) = self.nearest(&sort, skip, fetch)?
                {
                    return Ok(nearest);
                }
                let Sort { expr, input, .. } = sort;
                let input = self.push(Arc::unwrap_or_clone(input))?;
                let (input, order) = self.sorts(input, expr)?;
                self.first(input, order, skip, fetch, &schema)
            }
            // The order of the rows is that of columns that are gone.
            LogicalPlan::Distinct(Distinct::On(on)) if on.sort_expr.is_some() => Err(refused("LIMIT over DISTINCT ON")),
            other => {
                let input = self.push(other)?;
                self.first(input, Vec::new(), skip, fetch, &schema)
            }
        }
    }

    pub(super) fn first(
        &mut self,
        input: Pushed,
        order: Vec<SortExpr>,
        skip: Option<Expr>,
        fetch: Option<Expr>,
        schema: &DFSchemaRef,
    ) -> Result<Pushed> {
        let input = self.with_items_of(input, skip.iter().chain(&fetch))?;
        let keys = input.keys();
        let Pushed { plan, bound, is_single } = input;
        let is_one = fetch == Some(lit(1u64));
        if keys.is_empty() {
            let plan = match order.is_empty() {
                true => plan,
                false => LogicalPlan::Sort(Sort { expr: order, input: Arc::new(plan), fetch: None }),
            };
            let (skip, fetch) = (skip.map(as_count).transpose()?, fetch.map(as_count).transpose()?);
            let plan = LogicalPlan::Limit(Limit { skip, fetch, input: Arc::new(plan) });
            return Ok(Pushed { plan, bound, is_single: is_single || is_one });
        }
        let name = self.names.column();
        let number = row_number().partition_by(keys).order_by(order).build()?;
        let plan = LogicalPlan::Window(Window::try_new(vec![number.alias(&name)], Arc::new(plan))?);
        let number = Expr::Column(Column::new_unqualified(name));
        let whole = |expr: Expr| -> Expr {
            match &expr {
                Expr::Literal(..) => expr,
                _ => Expr::Cast(Cast::new(Box::new(expr), DataType::UInt64)),
            }
        };
        let mut conditions = Vec::new();
        // NULL leaves out no row.
        let none = |skip: Expr| match skip {
            Expr::Literal(..) => Ok(skip),
            skip => when(skip.clone().is_null(), lit(0u64)).otherwise(skip),
        };
        let skip = skip.map(|skip| self.bind(skip, &bound).map(whole).and_then(none)).transpose()?;
        if let Some(skip) = &skip {
            conditions.push(number.clone().gt(skip.clone()));
        }
        if let Some(fetch) = fetch {
            let fetch = whole(self.bind(fetch, &bound)?);
            let is_written = matches!(fetch, Expr::Literal(..));
            let last = match (skip, fetch.clone()) {
                (Some(Expr::Literal(skip, _)), Expr::Literal(fetch, _)) => lit(skip.add(fetch)?),
                (Some(skip), fetch) => skip + fetch,
                (None, fetch) => fetch,
            };
            let is_before = number.lt_eq(last);
            conditions.push(if is_written { is_before } else { is_before.or(fetch.is_null()) });
        }
        let plan = filtered(plan, conditions)?;
        self.exact(Pushed { plan, bound, is_single: is_single || is_one }, schema)
    }
}

/// A number of rows that is written out.
fn rows_of(rows: &Expr) -> Option<u64> {
    match rows {
        Expr::Literal(ScalarValue::UInt64(rows), _) => *rows,
        _ => None,
    }
}

/// A number of rows as LIMIT has it.
fn as_count(rows: Expr) -> Result<Box<Expr>> {
    Ok(Box::new(match rows {
        Expr::Literal(rows, _) => lit(rows.cast_to(&DataType::Int64)?),
        other => other,
    }))
}
