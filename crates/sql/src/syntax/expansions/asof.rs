//! ASOF JOIN: each row of the left table with the one row of the right table that is nearest by an inequality.
//!
//! As in DuckDB, ON is a conjunction with one inequality, and the last column of USING is one by `>=`. The join becomes
//! one with `LATERAL (SELECT … WHERE … ORDER BY … LIMIT 1)`. Columns of USING that the right table has are not listed
//! by `*`, and are called by its name alone: they have a mark until then.
//!
//! A RIGHT or FULL JOIN has the rows of the right table, too, that are the nearest of none. There the nearest row is a
//! table of its own, whose columns `*` does not list, and the right table is joined to it by all of its columns, and by
//! numbers of the rows that are equal in these.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableWithJoins, Value, Visitor, VisitorMut,
    WildcardAdditionalOptions, With,
};

use super::super::items::{MARK, folded};
use super::super::relations::parts;
use super::super::visits;
use super::{
    Column, alias, columns_of, columns_of_factor, condition_of, list, name_of, query_of, quoted, selects, subquery,
};
use crate::error::{Result, SqlError};

/// A column that `*` does not list, of an ASOF JOIN.
pub(super) struct Hidden {
    table: String,
    name: String,
    /// Whether USING merges it, of the right table.
    is_merged: bool,
}

impl Hidden {
    fn marked(&self) -> String {
        format!("{}{MARK}", self.name)
    }
}

/// Makes an ASOF JOIN one with LATERAL; gives the join that has to stand before it, if there is one.
///
/// # Errors
/// [`SqlError::Planning`] for a condition that is not one of ASOF JOIN, [`SqlError::Unsupported`] for other joins.
pub(super) async fn of_join(
    state: &SessionState,
    left: TableWithJoins,
    join: &mut Join,
    scopes: &[With],
    hidden: &mut Vec<Hidden>,
) -> Result<Option<Join>> {
    use JoinOperator::{FullOuter, Inner, Left, LeftOuter, Right, RightOuter};
    join.global = false;
    // Whether rows of both tables stay that match none.
    let (constraint, is_outer, keeps_right) = match &join.join_operator {
        JoinOperator::Join(constraint) | Inner(constraint) => (constraint.clone(), false, false),
        Left(constraint) | LeftOuter(constraint) => (constraint.clone(), true, false),
        Right(constraint) | RightOuter(constraint) => (constraint.clone(), false, true),
        FullOuter(constraint) => (constraint.clone(), true, true),
        _ => return Err(SqlError::Unsupported("ASOF JOIN that is neither inner, LEFT, RIGHT nor FULL".into())),
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
        JoinConstraint::Using(_) if keeps_right => {
            return Err(SqlError::Unsupported("USING of ASOF RIGHT and FULL JOIN; write ON".into()));
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
                let column = Hidden { table: name.clone(), name: column.clone(), is_merged: true };
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
    let all = JoinConstraint::On(Expr::value(Value::Boolean(true)));
    if keeps_right {
        let mut hide = |table: &str, name: &str| {
            let column = Hidden { table: table.into(), name: name.into(), is_merged: false };
            let marked = quoted(column.marked()).to_string();
            hidden.push(column);
            marked
        };
        let nearest = format!("{name}{MARK}nearest");
        let number = hide(&name, "number");
        let columns: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let keys = list(columns.iter().map(String::as_str));
        let numbered = format!("SELECT *, row_number() OVER (PARTITION BY {keys}) AS {number} FROM {table}");
        let (mut found, mut equal) = (Vec::new(), Vec::new());
        for (place, column) in columns.iter().enumerate() {
            let (column, hit) = (own(column), hide(&nearest, &format!("nearest{place}")));
            equal.push(format!("{column} IS NOT DISTINCT FROM {}.{hit}", quoted(&nearest)));
            found.push(format!("{column} AS {hit}"));
        }
        let hit = hide(&nearest, "nearest");
        equal.push(format!("{}.{number} = {}.{hit}", quoted(&name), quoted(&nearest)));
        found.push(format!("{}.{number} AS {hit}", quoted(&name)));
        let query = query_of(&format!(
            "SELECT {} FROM ({numbered}) AS {} WHERE {conditions} ORDER BY {key}, {number} LIMIT 1",
            found.join(", "),
            quoted(&name)
        ))?;
        let before =
            Join { relation: subquery(true, query, Some(alias(&nearest))), global: false, join_operator: Left(all) };
        join.relation = subquery(false, query_of(&numbered)?, Some(alias(&name)));
        let equal = JoinConstraint::On(condition_of(&equal.join(" AND "))?);
        join.join_operator = if is_outer { FullOuter(equal) } else { RightOuter(equal) };
        return Ok(Some(before));
    }
    let query = query_of(&format!("SELECT {items} FROM {table} WHERE {conditions} ORDER BY {key} LIMIT 1"))?;
    join.relation = subquery(true, query, Some(alias(&name)));
    join.join_operator = if is_outer { Left(all) } else { Inner(all) };
    Ok(None)
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
                SelectItem::Wildcard(options) => leave_out(options, marked.iter().cloned()),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
                    let name = parts(table).and_then(|table| table.last().map(folded));
                    let own: Vec<&Hidden> =
                        hidden.iter().filter(|column| name.as_ref() == Some(&column.table)).collect();
                    if let Some(Hidden { table, .. }) = own.iter().find(|column| column.is_merged) {
                        return Err(SqlError::Unsupported(format!("{table}.* of ASOF JOIN … USING; name its columns")));
                    }
                    if !own.is_empty() {
                        leave_out(options, own.iter().map(|column| vec![quoted(column.marked())].into()));
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

/// Leaves more columns out of a wildcard.
fn leave_out(options: &mut WildcardAdditionalOptions, more: impl Iterator<Item = ObjectName>) {
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    names.extend(more);
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
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
    hidden.iter().find(|column| column.is_merged && column.table == table && column.name == name)
}

fn marked_column(column: &Hidden) -> Expr {
    let names: Vec<Ident> = vec![quoted(&column.table), quoted(column.marked())];
    Expr::CompoundIdentifier(names)
}
