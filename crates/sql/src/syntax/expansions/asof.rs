//! ASOF JOIN: each row of the left table with the one row of the right table that is nearest by an inequality.
//!
//! As in DuckDB, ON is a conjunction with one inequality, and the last column of USING is one by `>=`. The join becomes
//! one with `LATERAL (SELECT … WHERE … ORDER BY … LIMIT 1)`. Columns of USING that the right table has are not listed
//! by `*`, and are called by its name alone: they have a mark until then.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableWithJoins, Value, Visitor, VisitorMut, With,
};

use super::super::items::{MARK, folded};
use super::super::relations::parts;
use super::super::visits;
use super::{Column, alias, columns_of, columns_of_factor, name_of, query_of, quoted, selects, subquery};
use crate::error::{Result, SqlError};

/// A column that USING merges, of the right table of an ASOF JOIN.
pub(super) struct Hidden {
    table: String,
    name: String,
}

impl Hidden {
    fn marked(&self) -> String {
        format!("{}{MARK}", self.name)
    }
}

/// Makes an ASOF JOIN one with LATERAL.
///
/// # Errors
/// [`SqlError::Planning`] for a condition that is not one of ASOF JOIN, [`SqlError::Unsupported`] for other joins.
pub(super) async fn of_join(
    state: &SessionState,
    left: TableWithJoins,
    join: &mut Join,
    scopes: &[With],
    hidden: &mut Vec<Hidden>,
) -> Result<()> {
    join.global = false;
    let (constraint, is_outer) = match &join.join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (constraint.clone(), false),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (constraint.clone(), true),
        _ => return Err(SqlError::Unsupported("ASOF JOIN that is neither inner nor LEFT".into())),
    };
    let Some(name) = name_of(&join.relation) else {
        return Err(SqlError::Unsupported("ASOF JOIN with a table without a name; give it one with AS".into()));
    };
    let columns = columns_of_factor(state, &join.relation, scopes).await?;
    let others = columns_of(state, vec![left], scopes).await?;
    let own = |column: &str| format!("{}.{}", quoted(&name), quoted(column));
    let (conditions, key, items) = match constraint {
        JoinConstraint::On(condition) => {
            let mut conditions = Vec::new();
            conjuncts(condition, &mut conditions);
            let key = nearest(&conditions, &name, &columns, &others)?;
            let conditions: Vec<String> = conditions.iter().map(ToString::to_string).collect();
            (conditions, key, vec!["*".to_string()])
        }
        JoinConstraint::Using(names) => {
            let names: Vec<String> = names.iter().filter_map(|name| parts(name)?.last().map(folded)).collect();
            let Some(last) = names.last() else {
                return Err(SqlError::Syntax("expected columns in USING of ASOF JOIN".into()));
            };
            let mut conditions = Vec::new();
            for name in &names {
                if !columns.iter().any(|column| column.name == *name) {
                    return Err(SqlError::UnknownColumn { name: name.clone(), nearest: None });
                }
                let mut same = others.iter().filter(|column| column.name == *name);
                let other = match (same.next(), same.next()) {
                    (Some(other), None) => other.of_table(),
                    (None, _) => return Err(SqlError::UnknownColumn { name: name.clone(), nearest: None }),
                    _ => None,
                };
                let Some(other) = other else {
                    let reason = format!("column '{name}' of USING is not one column of one table on the left");
                    return Err(SqlError::Planning(reason));
                };
                let op = if name == last { ">=" } else { "=" };
                conditions.push(format!("{other} {op} {}", own(name)));
            }
            let rest = columns.iter().filter(|column| !names.contains(&column.name));
            let mut items: Vec<String> = rest.map(|column| own(&column.name)).collect();
            for column in &names {
                let column = Hidden { table: name.clone(), name: column.clone() };
                items.push(format!("{} AS {}", own(&column.name), quoted(column.marked())));
                hidden.push(column);
            }
            (conditions, format!("{} DESC", own(last)), items)
        }
        JoinConstraint::Natural | JoinConstraint::None => {
            return Err(SqlError::Syntax("ASOF JOIN needs ON or USING".into()));
        }
    };
    let (items, table, conditions) = (items.join(", "), &join.relation, conditions.join(" AND "));
    let query = query_of(&format!("SELECT {items} FROM {table} WHERE {conditions} ORDER BY {key} LIMIT 1"))?;
    join.relation = subquery(true, query, Some(alias(&name)));
    let all = JoinConstraint::On(Expr::value(Value::Boolean(true)));
    join.join_operator = if is_outer { JoinOperator::Left(all) } else { JoinOperator::Inner(all) };
    Ok(())
}

/// The operands of a conjunction.
fn conjuncts(condition: Expr, found: &mut Vec<Expr>) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(*left, found);
            conjuncts(*right, found);
        }
        Expr::Nested(inner) if matches!(*inner, Expr::BinaryOp { op: BinaryOperator::And, .. }) => {
            conjuncts(*inner, found);
        }
        other => found.push(other),
    }
}

/// What rows of the right table are ordered by, so that the nearest by the inequality is the first.
fn nearest(conditions: &[Expr], name: &str, columns: &[Column], others: &[Column]) -> Result<String> {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq};
    let sides = |expr: &Expr| {
        let mut sides = Sides { name, columns, others, left: false, right: false, ambiguous: None };
        let _ = visits::visit(expr, &mut sides);
        match sides.ambiguous {
            Some(name) => Err(SqlError::Planning(format!("column '{name}' of ASOF JOIN is that of both tables"))),
            None => Ok((sides.left, sides.right)),
        }
    };
    // Of conditions those of both tables; others hold for a row of one table.
    let mut inequalities = Vec::new();
    for condition in conditions {
        let of_both = sides(condition)? == (true, true);
        if let Expr::BinaryOp { left, op: op @ (Gt | GtEq | Lt | LtEq), right } = condition
            && of_both
        {
            inequalities.push((left, op, right));
        }
    }
    let [(left, op, right)] = inequalities.as_slice() else {
        return Err(SqlError::Planning("ON of ASOF JOIN has one inequality of both tables, by <, <=, > or >=".into()));
    };
    let is_below = matches!(op, Gt | GtEq);
    let (key, is_descending) = match (sides(left)?, sides(right)?) {
        ((_, false), (false, true)) => (right, is_below),
        ((false, true), (_, false)) => (left, !is_below),
        _ => {
            return Err(SqlError::Planning(
                "the inequality of ASOF JOIN compares the left table with the right".into(),
            ));
        }
    };
    Ok(format!("{key} {}", if is_descending { "DESC" } else { "ASC" }))
}

/// Which tables an expression reads.
struct Sides<'a> {
    name: &'a str,
    columns: &'a [Column],
    others: &'a [Column],
    left: bool,
    right: bool,
    ambiguous: Option<String>,
}

impl Visitor for Sides<'_> {
    type Break = ();
    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => {
                let name = folded(name);
                let is_of = |columns: &[Column]| columns.iter().any(|column| column.name == name);
                match (is_of(self.others), is_of(self.columns)) {
                    (true, true) => self.ambiguous = Some(name),
                    (_, is_right) => {
                        self.right |= is_right;
                        self.left |= !is_right;
                    }
                }
            }
            Expr::CompoundIdentifier(names) => {
                let table = names.len().checked_sub(2).and_then(|table| names.get(table)).map(folded);
                let is_right = table.as_deref() == Some(self.name);
                self.right |= is_right;
                self.left |= !is_right;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Leaves hidden columns out of `*`, and calls those that a query names.
///
/// # Errors
/// [`SqlError::Unsupported`] for `*` of a table that has hidden ones.
pub(super) fn call_hidden(query: &mut Query, hidden: &[Hidden]) -> Result<()> {
    if hidden.is_empty() {
        return Ok(());
    }
    let marked: Vec<ObjectName> = hidden.iter().map(|column| vec![quoted(column.marked())].into()).collect();
    for select in selects(&mut query.body) {
        for item in &mut select.projection {
            match item {
                SelectItem::Wildcard(options) => {
                    let mut names = match options.opt_exclude.take() {
                        Some(ExcludeSelectItem::Single(name)) => vec![name],
                        Some(ExcludeSelectItem::Multiple(names)) => names,
                        None => Vec::new(),
                    };
                    names.extend(marked.iter().cloned());
                    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), _) => {
                    let name = parts(table).and_then(|table| table.last().map(folded));
                    if let Some(column) = hidden.iter().find(|column| name.as_ref() == Some(&column.table)) {
                        let table = &column.table;
                        return Err(SqlError::Unsupported(format!("{table}.* of ASOF JOIN … USING; name its columns")));
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    if let Some(column) = called(expr, hidden) {
                        let (expr, alias) = (marked_column(column), quoted(&column.name));
                        *item = SelectItem::ExprWithAlias { expr, alias };
                    }
                }
                _ => {}
            }
        }
        // The tables do not name each other's columns by then.
        let tables = std::mem::take(&mut select.from);
        let _ = visits::visit_mut(select, &mut Calls { hidden });
        select.from = tables;
    }
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
        && matches!(*query.body, SetExpr::Select(_))
    {
        keys.iter_mut().for_each(|key| _ = visits::visit_mut(key, &mut Calls { hidden }));
    }
    Ok(())
}

struct Calls<'a> {
    hidden: &'a [Hidden],
}

impl VisitorMut for Calls<'_> {
    type Break = ();
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(column) = called(expr, self.hidden) {
            *expr = marked_column(column);
        }
        ControlFlow::Continue(())
    }
}

/// The hidden column that an expression is.
fn called<'a>(expr: &Expr, hidden: &'a [Hidden]) -> Option<&'a Hidden> {
    let Expr::CompoundIdentifier(names) = expr else { return None };
    let [.., table, name] = names.as_slice() else { return None };
    let (table, name) = (folded(table), folded(name));
    hidden.iter().find(|column| column.table == table && column.name == name)
}

fn marked_column(column: &Hidden) -> Expr {
    let names: Vec<Ident> = vec![quoted(&column.table), quoted(column.marked())];
    Expr::CompoundIdentifier(names)
}
