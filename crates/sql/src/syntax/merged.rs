//! Columns that a RIGHT or FULL JOIN merges by USING.
//!
//! DataFusion 55.2 takes the left table's column for the merged one, which is NULL where a row of the right table has
//! no partner. Here the name stands for the right table's column in a RIGHT JOIN, and for the first of both that is not
//! NULL in a FULL JOIN, in all of a SELECT but its subqueries. It is done for the first join of a FROM whose sides have
//! names; NATURAL joins are left as they are.
//!
//! The file goes once DataFusion merges columns.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, OrderByKind,
    Query, ReplaceSelectElement, ReplaceSelectItem, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, VisitMut,
    VisitorMut,
};

use super::call;

/// A merged column: its name, and what stands for it.
type Merged = Vec<(Ident, Expr)>;

/// Puts what merged columns stand for in their place, in the SELECTs of a query and its ORDER BY.
pub(super) fn replace(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return in_sets(&mut query.body) };
    let merged = in_select(select);
    let is_shown = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => merged.iter().any(|(_, merged)| merged == expr),
        SelectItem::ExprWithAlias { alias, .. } => merged.iter().any(|(column, _)| same(column, alias)),
        SelectItem::Wildcard(_) => true,
        _ => false,
    };
    // A name in ORDER BY is that of an item, if there is one.
    if !select.projection.iter().any(is_shown)
        && let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        let mut names = Names { merged: &merged, depth: 0 };
        for key in keys {
            let _ = key.visit(&mut names);
        }
    }
}

/// The same in the operands of set operations; queries in parentheses are visited by themselves.
fn in_sets(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => drop(in_select(select)),
        SetExpr::SetOperation { left, right, .. } => {
            in_sets(left);
            in_sets(right);
        }
        _ => {}
    }
}

fn in_select(select: &mut Select) -> Merged {
    let of_table = |table: &TableWithJoins| match table.joins.first() {
        Some(join) => of_join(&table.relation, &join.join_operator, &join.relation),
        None => Vec::new(),
    };
    let merged: Merged = select.from.iter().flat_map(of_table).collect();
    if merged.is_empty() {
        return merged;
    }
    for item in &mut select.projection {
        if let SelectItem::Wildcard(options) = item
            && options.opt_replace.is_none()
            && options.opt_exclude.is_none()
            && options.opt_except.is_none()
        {
            let items = merged.iter().map(|(column, expr)| {
                let (expr, column_name) = (expr.clone(), column.clone());
                Box::new(ReplaceSelectElement { expr, column_name, as_keyword: true })
            });
            options.opt_replace = Some(ReplaceSelectItem { items: items.collect() });
        }
    }
    let _ = select.visit(&mut Names { merged: &merged, depth: 0 });
    merged
}

/// The columns that a join merges otherwise than DataFusion does.
fn of_join(left: &TableFactor, operator: &JoinOperator, right: &TableFactor) -> Merged {
    let (constraint, is_full) = match operator {
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (constraint, false),
        JoinOperator::FullOuter(constraint) => (constraint, true),
        _ => return Vec::new(),
    };
    let (JoinConstraint::Using(columns), Some(left), Some(right)) = (constraint, name_of(left), name_of(right)) else {
        return Vec::new();
    };
    let of = |table: &[Ident], column: &Ident| {
        Expr::CompoundIdentifier(table.iter().cloned().chain([column.clone()]).collect())
    };
    let merged = columns.iter().filter_map(|column| {
        let column = parts(column)?.pop()?;
        let expr = match is_full {
            false => of(&right, &column),
            true => {
                let both = [of(&left, &column), of(&right, &column)];
                call("coalesce", both.map(|side| FunctionArg::Unnamed(FunctionArgExpr::Expr(side))).into())
            }
        };
        Some((column, expr))
    });
    merged.collect()
}

/// The name by which columns of a table are called.
fn name_of(table: &TableFactor) -> Option<Vec<Ident>> {
    match table {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(vec![alias.name.clone()])
        }
        TableFactor::Table { name, alias: None, .. } => parts(name),
        _ => None,
    }
}

fn parts(name: &ObjectName) -> Option<Vec<Ident>> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => Some(name.clone()),
        ObjectNamePart::Function(_) => None,
    };
    name.0.iter().map(part).collect()
}

/// Whether two names are one: without quotes they are lower case.
fn same(one: &Ident, other: &Ident) -> bool {
    let read = |name: &Ident| match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    read(one) == read(other)
}

struct Names<'a> {
    merged: &'a [(Ident, Expr)],
    /// How many queries are around an expression within the SELECT.
    depth: usize,
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0
            && let Expr::Identifier(name) = expr
            && let Some((_, merged)) = self.merged.iter().find(|(column, _)| same(column, name))
        {
            *expr = merged.clone();
        }
        ControlFlow::Continue(())
    }
}
