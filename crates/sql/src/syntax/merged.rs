//! Columns that a join merges by USING or NATURAL.
//!
//! DataFusion 55.2 takes the left table's column for the merged one, which is NULL where a row of the right table has
//! no partner, lists it where that table has it, and finds it ambiguous in WHERE and behind a second join. Here USING
//! and NATURAL become ON, and in their SELECT the merged name stands for the left column (INNER, LEFT), the right one
//! (RIGHT) or the first of both that is not NULL (FULL); `*` lists merged columns once and first, as PostgreSQL does.
//! Names of columns are those of `SELECT * FROM table`, which is planned for each table of such a FROM. Subqueries that
//! call a merged column of an outer query need its table's name.
//!
//! The file goes once DataFusion merges columns.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, ExceptSelectItem, ExcludeSelectItem, Expr, FunctionArg, FunctionArgExpr, Ident,
    JoinConstraint, JoinOperator, ObjectName, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableAlias, TableFactor, TableWithJoins, Value, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::quotes::quoted;
use super::relations::{self, Columns, Relations};
use super::{call, items};
use crate::error::{Result, SqlError};

/// What a FROM shows to its SELECT.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a statement has few of them")]
enum Shown {
    Column {
        name: String,
        expr: Expr,
        is_merged: bool,
        /// Of a merged one, names of other columns that differ from its own in case alone.
        apart: Vec<String>,
    },
    /// All columns of a table whose names are not known: one that reads columns of its neighbours.
    All(Vec<Ident>),
}

impl Shown {
    fn is_named(&self, wanted: &str) -> bool {
        matches!(self, Shown::Column { name, .. } if name == wanted)
    }

    /// Whether a name means it. A merged column has the names of both sides, whatever the case of their letters.
    fn is_meant(&self, wanted: &str) -> bool {
        match self {
            Shown::Column { name, is_merged: true, apart, .. } => {
                is_same(name, wanted) && !apart.iter().any(|other| other == wanted)
            }
            other => other.is_named(wanted),
        }
    }
}

/// Which of two columns the merged one is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
    Both,
    /// The left table is all that a semi or anti join shows.
    LeftAlone,
    RightAlone,
}

/// Whether two names are equal but for case.
fn is_same(one: &str, other: &str) -> bool {
    one == other || one.to_lowercase() == other.to_lowercase()
}

/// Puts ON in the place of USING and NATURAL, inner queries first.
///
/// # Errors
/// [`SqlError::Planning`] for a column that a side lacks or has twice; [`SqlError::Unsupported`] where columns' names
/// would be needed that are not known.
pub(super) async fn resolve(state: &SessionState, parsed: &mut ParsedStatement) -> Result<()> {
    while let Some(relations) = Relations::first(parsed) {
        let columns = relations.columns(state).await?;
        let mut rewrite = Rewrite { columns: Some(columns) };
        if let ControlFlow::Break(done) = super::visit(parsed, &mut rewrite) {
            done?;
        }
    }
    Ok(())
}

fn sides(operator: &mut JoinOperator) -> Option<(&mut JoinConstraint, Side)> {
    Some(match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (constraint, Side::Left),
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => (constraint, Side::Left),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (constraint, Side::Right),
        JoinOperator::FullOuter(constraint) => (constraint, Side::Both),
        JoinOperator::LeftSemi(constraint) | JoinOperator::LeftAnti(constraint) => (constraint, Side::LeftAlone),
        JoinOperator::RightSemi(constraint) | JoinOperator::RightAnti(constraint) => (constraint, Side::RightAlone),
        _ => return None,
    })
}

/// Rewrites the first query whose joins merge columns.
struct Rewrite {
    /// Of the relations of its FROM, in their order.
    columns: Option<Columns>,
}

impl VisitorMut for Rewrite {
    type Break = Result<()>;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Result<()>> {
        match relations::in_body(&query.body) {
            true => ControlFlow::Break(self.columns.take().map_or(Ok(()), |mut columns| in_query(query, &mut columns))),
            false => ControlFlow::Continue(()),
        }
    }
}

fn in_query(query: &mut Query, columns: &mut Columns) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return in_sets(&mut query.body, columns) };
    let mut merged = in_select(select, columns)?;
    // A name in ORDER BY is that of an item, if there is one; DISTINCT ON compares expressions.
    if !matches!(select.distinct, Some(Distinct::On(_))) {
        for column in &mut merged {
            let item = select.projection.iter().find_map(|item| item_name(item, column));
            if let (Some(item), Shown::Column { expr, .. }) = (item, column) {
                *expr = Expr::Identifier(item);
            }
        }
    }
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        for key in keys {
            replace(key, &merged);
        }
    }
    Ok(())
}

/// The same in the operands of set operations; queries in parentheses are visited by themselves.
fn in_sets(body: &mut SetExpr, columns: &mut Columns) -> Result<()> {
    match body {
        SetExpr::Select(select) => in_select(select, columns).map(drop),
        SetExpr::SetOperation { left, right, .. } => {
            in_sets(left, columns)?;
            in_sets(right, columns)
        }
        _ => Ok(()),
    }
}

/// The merged columns of a SELECT, which has them in place of their names.
fn in_select(select: &mut Select, columns: &mut Columns) -> Result<Vec<Shown>> {
    let mut shown = Vec::new();
    if !relations::in_select(select) {
        return Ok(shown);
    }
    for table in &mut select.from {
        shown.extend(of_tables(table, columns)?);
    }
    tell_apart(&mut shown);
    let mut projection = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(options) => projection.extend(listed(&shown, options)?),
            item => projection.push(item),
        }
    }
    select.projection = projection;
    shown.retain(|column| matches!(column, Shown::Column { is_merged: true, .. }));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(name) = plain_name(expr)
            && let Some(Shown::Column { name: own, .. }) = shown.iter().find(|column| column.is_meant(&name))
        {
            let expr = std::mem::replace(expr, Expr::value(Value::Null));
            *item = SelectItem::ExprWithAlias { expr, alias: quoted(own) };
        }
    }
    replace(select, &shown);
    Ok(shown)
}

/// Gives merged columns the names of those beside them that are not theirs, whatever the case.
fn tell_apart(shown: &mut [Shown]) {
    let others = shown.iter().filter_map(|column| match column {
        Shown::Column { name, is_merged: false, .. } => Some(name.clone()),
        _ => None,
    });
    let others: Vec<String> = others.collect();
    for column in shown {
        if let Shown::Column { name, is_merged: true, apart, .. } = column {
            *apart = others.iter().filter(|other| *other != name && is_same(other, name)).cloned().collect();
        }
    }
}

/// The name of a column that is called without its table.
fn plain_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(items::folded(name)),
        Expr::Nested(inner) => plain_name(inner),
        _ => None,
    }
}

/// The name of an item that a merged column's name means in ORDER BY. Columns of tables are told by their tables'
/// names, since a name of two tables would be ambiguous.
fn item_name(item: &SelectItem, column: &Shown) -> Option<Ident> {
    let (Shown::Column { name, expr: merged, .. }, SelectItem::ExprWithAlias { expr, alias }) = (column, item) else {
        return None;
    };
    let is_merged = expr == merged && matches!(merged, Expr::CompoundIdentifier(_));
    (is_same(&items::folded(alias), name) && !is_merged).then(|| alias.clone())
}

/// The items that `*` stands for.
fn listed(shown: &[Shown], options: WildcardAdditionalOptions) -> Result<Vec<SelectItem>> {
    let WildcardAdditionalOptions { opt_exclude, opt_except, opt_replace, .. } = options;
    let mut left_out: Vec<String> = match opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => last_name(&name).into_iter().collect(),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter().filter_map(last_name).collect(),
        None => Vec::new(),
    };
    if let Some(ExceptSelectItem { first_element, additional_elements }) = opt_except {
        left_out.extend([first_element].iter().chain(&additional_elements).map(items::folded));
    }
    let replaced = opt_replace.map(|replace| replace.items).unwrap_or_default();
    let named = |expr: &Expr, name: &str| SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(name) };
    let item = |column: &Shown| match column {
        Shown::Column { name, expr, .. } => {
            match replaced.iter().find(|replaced| column.is_meant(&items::folded(&replaced.column_name))) {
                Some(other) => named(&other.expr, name),
                None if matches!(expr, Expr::CompoundIdentifier(_)) => SelectItem::UnnamedExpr(expr.clone()),
                None => named(expr, name),
            }
        }
        Shown::All(table) => SelectItem::QualifiedWildcard(
            SelectItemQualifiedWildcardKind::ObjectName(table.clone().into()),
            WildcardAdditionalOptions::default(),
        ),
    };
    let is_listed = |column: &&Shown| !left_out.iter().any(|name| column.is_meant(name));
    Ok(shown.iter().filter(is_listed).map(item).collect())
}

fn last_name(name: &ObjectName) -> Option<String> {
    relations::parts(name)?.pop().map(|name| items::folded(&name))
}

fn of_tables(table: &mut TableWithJoins, columns: &mut Columns) -> Result<Vec<Shown>> {
    let mut left = of_factor(&mut table.relation, columns)?;
    for join in &mut table.joins {
        let right = of_factor(&mut join.relation, columns)?;
        left = of_join(left, &mut join.join_operator, right)?;
    }
    Ok(left)
}

fn of_factor(factor: &mut TableFactor, columns: &mut Columns) -> Result<Vec<Shown>> {
    if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
        return of_tables(table_with_joins, columns);
    }
    let (number, names) = columns.take();
    let table = match relations::name_of(factor) {
        Some(name) => name,
        None => {
            let name = quoted(format!("relation {number}"));
            let named = TableAlias { explicit: true, name: name.clone(), columns: Vec::new(), at: None };
            if let Some(alias) = relations::alias_of(factor) {
                *alias = Some(named);
            }
            vec![name]
        }
    };
    Ok(match names {
        Some(names) => {
            let column = |name: String| {
                let (expr, apart) = (column_of(&table, &name), Vec::new());
                Shown::Column { expr, name, is_merged: false, apart }
            };
            names.into_iter().map(column).collect()
        }
        None => vec![Shown::All(table)],
    })
}

fn column_of(table: &[Ident], name: &str) -> Expr {
    Expr::CompoundIdentifier(table.iter().cloned().chain([quoted(name)]).collect())
}

/// What two sides show that are joined, where the join compares merged columns by ON.
fn of_join(left: Vec<Shown>, operator: &mut JoinOperator, right: Vec<Shown>) -> Result<Vec<Shown>> {
    let both = || left.iter().chain(&right).cloned().collect::<Vec<_>>();
    let Some((constraint, side)) = sides(operator) else { return Ok(both()) };
    let names: Vec<String> = match constraint {
        JoinConstraint::Using(columns) => columns.iter().filter_map(last_name).collect(),
        JoinConstraint::Natural => common(&left, &right)?,
        JoinConstraint::On(condition) => {
            replace(condition, &both());
            Vec::new()
        }
        JoinConstraint::None => Vec::new(),
    };
    let (mut condition, mut shown) = (None, Vec::new());
    let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
    for name in &names {
        let ((own, one), (others, other)) = (found(&left, name, "left")?, found(&right, name, "right")?);
        let equal =
            Expr::BinaryOp { left: Box::new(one.clone()), op: BinaryOperator::Eq, right: Box::new(other.clone()) };
        condition = Some(match condition {
            None => equal,
            Some(before) => Expr::BinaryOp { left: Box::new(before), op: BinaryOperator::And, right: Box::new(equal) },
        });
        let expr = match side {
            Side::Left | Side::LeftAlone => one,
            Side::Right | Side::RightAlone => other,
            Side::Both => {
                call("coalesce", [one, other].map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).into())
            }
        };
        let name = if matches!(side, Side::Right | Side::RightAlone) { others.clone() } else { own.clone() };
        shown.push(Shown::Column { name, expr, is_merged: true, apart: Vec::new() });
        of_left.push(own);
        of_right.push(others);
    }
    if matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural) {
        // Tables without a common column are joined whole.
        let all = || Expr::value(Value::Boolean(true));
        *constraint = JoinConstraint::On(condition.unwrap_or_else(all));
    }
    let rest = |side: Vec<Shown>, merged: Vec<String>| {
        side.into_iter().filter(move |column| !merged.iter().any(|name| column.is_named(name)))
    };
    if side != Side::RightAlone {
        shown.extend(rest(left, of_left));
    }
    if side != Side::LeftAlone {
        shown.extend(rest(right, of_right));
    }
    Ok(shown)
}

/// Names of columns that both sides have, in the order of the left one.
fn common(left: &[Shown], right: &[Shown]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let is_of_both = |name: &str| [left, right].iter().all(|side| side.iter().any(|column| column.is_named(name)));
    for column in left.iter().chain(right) {
        match column {
            Shown::Column { name, .. } if names.contains(name) => {}
            Shown::Column { name, .. } if names.iter().any(|other| is_same(other, name)) && !is_of_both(name) => {}
            Shown::Column { name, .. } => names.push(name.clone()),
            Shown::All(table) => {
                let reason = format!(
                    "NATURAL JOIN beside {}, which reads its neighbours; use ON",
                    Expr::CompoundIdentifier(table.clone())
                );
                return Err(SqlError::Unsupported(reason));
            }
        }
    }
    let is_it = |column: &Shown, wanted: &str| matches!(column, Shown::Column { name, .. } if is_same(name, wanted));
    let has = |side: &[Shown], name: &String| side.iter().any(|column| is_it(column, name));
    names.retain(|name| has(left, name) && has(right, name));
    // A name that both have is no partner of one in another case.
    let both: Vec<String> = names.iter().filter(|name| is_of_both(name)).cloned().collect();
    names.retain(|name| both.contains(name) || !both.iter().any(|other| is_same(other, name)));
    Ok(names)
}

/// The column of a name among those of a side, and its own name: in another case where none has the name itself.
fn found(side: &[Shown], name: &str, which: &str) -> Result<(String, Expr)> {
    let has_it = side.iter().any(|column| column.is_named(name));
    let mut columns = side.iter().filter_map(|column| match column {
        Shown::Column { name: own, expr, .. } if own == name || !has_it && is_same(own, name) => {
            Some((own.clone(), expr.clone()))
        }
        _ => None,
    });
    let mut unknown = side.iter().filter_map(|column| match column {
        Shown::All(table) => Some((name.to_string(), column_of(table, name))),
        Shown::Column { .. } => None,
    });
    match (columns.next(), columns.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => Err(SqlError::Planning(format!(
            "column '{name}' that USING or NATURAL merges is twice in the {which} side"
        ))),
        (None, _) => match (unknown.next(), unknown.next()) {
            (Some(found), None) => Ok(found),
            _ => Err(SqlError::Planning(format!("column '{name}' of USING is not in the {which} side of its join"))),
        },
    }
}

/// Puts merged columns in the place of their names, in all but subqueries.
fn replace(tree: &mut impl VisitMut, shown: &[Shown]) {
    items::each_name(tree, &mut |expr| {
        let Expr::Identifier(name) = expr else { return };
        let name = items::folded(name);
        let merged = shown.iter().find_map(|column| match column {
            Shown::Column { expr, is_merged: true, .. } if column.is_meant(&name) => Some(expr),
            _ => None,
        });
        if let Some(merged) = merged {
            *expr = merged.clone();
        }
    });
}
