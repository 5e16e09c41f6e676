//! Aliases of the same select list, `SELECT a + 1 AS x, x * 2`, in items behind them and in WHERE, and fields of
//! theirs, `x.a`.
//!
//! As in DuckDB, a column of the tables comes before an alias, and an alias before what a query around has. GROUP
//! BY, HAVING, QUALIFY and ORDER BY find aliases themselves, and subqueries none.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Ident, Select, SelectItem, TableWithJoins, Value, VisitorMut};

use super::super::items::{column_name, each_name, folded};
use super::super::relations;
use super::super::rows::check_copied;
use super::super::visits;
use super::quoted;
use crate::error::{Result, SqlError};
use crate::settings::Settings;

/// Most nodes of all expressions of a select list that name aliases: the time to plan a chain of them grows with the
/// cube of its length.
const NODES_MAX: usize = 20_000;

/// Whether an item or WHERE has a name that is an alias of an item.
pub(super) fn are_in(select: &Select) -> bool {
    let mut aliases = HashSet::new();
    let tables = tables_of(&select.from);
    for item in &select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if !aliases.is_empty() && names(expr, &aliases, &tables) {
            return true;
        }
        aliases.extend(alias_of(item));
    }
    !aliases.is_empty() && select.selection.as_ref().is_some_and(|condition| names(condition, &aliases, &tables))
}

/// What stands before a dot in the names of columns.
pub(super) fn tables_of(from: &[TableWithJoins]) -> HashSet<String> {
    let mut tables = HashSet::new();
    for from in from {
        relations::each_factor(from, &mut |factor| {
            tables.extend(relations::name_of(factor).iter().flatten().map(folded));
        });
    }
    tables
}

/// The name that may be an alias: a whole one, or the first part of several that is no table's.
fn first_name<'e>(expr: &'e Expr, tables: &HashSet<String>) -> Option<&'e Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.first().filter(|name| !tables.contains(&folded(name))),
        _ => None,
    }
}

/// The alias of an item, unless it is the name of its column.
fn alias_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } => {
            Some(folded(alias)).filter(|alias| column_name(expr).as_ref() != Some(alias))
        }
        _ => None,
    }
}

fn names(expr: &Expr, aliases: &HashSet<String>, tables: &HashSet<String>) -> bool {
    // The visit changes nothing.
    let mut expr = expr.clone();
    let mut found = false;
    each_name(&mut expr, &mut |name| {
        found |= first_name(name, tables).is_some_and(|name| aliases.contains(&folded(name)));
    });
    found
}

/// Puts the expressions of aliases in the place of their names, unless these are names of columns, or of tables around
/// (`outer`).
///
/// # Errors
/// [`SqlError::Unsupported`] for an alias of an expression that is another one each time, and for one that stands for
/// too much; [`SqlError::TooDeep`] for aliases of aliases that nest deeper than a statement may.
pub(super) fn write_out(
    state: &SessionState,
    select: &mut Select,
    columns: &HashSet<String>,
    outer: &HashSet<String>,
) -> Result<()> {
    let settings = state.config_options().extensions.get::<Settings>();
    let limit = settings.map_or_else(|| Settings::default().depth_limit, |settings| settings.depth_limit);
    let (mut known, mut repeated): (HashMap<String, Expr>, HashSet<String>) = (HashMap::new(), HashSet::new());
    let (mut nodes, mut tables) = (0, tables_of(&select.from));
    tables.extend(outer.iter().cloned());
    for item in &mut select.projection {
        let name = alias_of(item).filter(|name| !columns.contains(name));
        let own = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => known.contains_key(&folded(name)).then(|| folded(name)),
            _ => None,
        };
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        let is_put = put(expr, &known, &tables)?;
        let shape = shape_of(expr);
        if shape.deepest > limit {
            return Err(SqlError::TooDeep { depth: shape.deepest, limit });
        }
        nodes += if is_put { shape.nodes } else { 0 };
        if nodes > NODES_MAX {
            return Err(SqlError::Unsupported(
                "aliases that stand for more than 20,000 operands; name some in a subquery of FROM".into(),
            ));
        }
        if let Some(name) = name
            && !repeated.contains(&name)
        {
            // Which of two is meant would be open.
            if known.insert(name.clone(), expr.clone()).is_some() {
                known.remove(&name);
                repeated.insert(name);
            }
        }
        if let Some(name) = own {
            let expr = std::mem::replace(expr, Expr::value(Value::Null));
            *item = SelectItem::ExprWithAlias { expr, alias: quoted(&name) };
        }
    }
    select.selection.iter_mut().try_for_each(|condition| put(condition, &known, &tables).map(drop))
}

/// Gives whether an alias was named.
fn put(expr: &mut Expr, known: &HashMap<String, Expr>, tables: &HashSet<String>) -> Result<bool> {
    let (mut done, mut is_put) = (Ok(()), false);
    each_name(expr, &mut |expr| {
        let Some(name) = first_name(expr, tables) else { return };
        let Some(meant) = known.get(&folded(name)) else { return };
        if done.is_ok() {
            done = check_copied([meant]);
        }
        is_put = true;
        let whole = match meant {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Function(_) => meant.clone(),
            other => Expr::Nested(Box::new(other.clone())),
        };
        *expr = match expr {
            Expr::CompoundIdentifier(names) => {
                let field = |name: Ident| AccessExpr::Dot(Expr::Identifier(name));
                let access_chain = names.drain(..).skip(1).map(field).collect();
                Expr::CompoundFieldAccess { root: Box::new(whole), access_chain }
            }
            _ => whole,
        };
    });
    done.map(|()| is_put)
}

/// How many nodes an expression has, and how deep they are nested.
#[derive(Default)]
struct Shape {
    nodes: usize,
    depth: usize,
    deepest: usize,
}

impl VisitorMut for Shape {
    type Break = ();
    fn pre_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<()> {
        self.nodes += 1;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        ControlFlow::Continue(())
    }
    fn post_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

fn shape_of(expr: &mut Expr) -> Shape {
    let mut shape = Shape::default();
    let _ = visits::visit_mut(expr, &mut shape);
    shape
}
