//! Aliases of the same select list, `SELECT a + 1 AS x, x * 2`, in items behind them and in WHERE.
//!
//! As in DuckDB, a column of the tables comes before an alias, and an alias before what a query around has. GROUP
//! BY, HAVING, QUALIFY and ORDER BY find aliases themselves, and subqueries none.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem, Value, VisitorMut};

use super::super::items::{column_name, each_name, folded};
use super::super::rows::check_copied;
use super::super::visits;
use super::quoted;
use crate::error::{Result, SqlError};
use crate::settings::Settings;

/// Most nodes of an expression that an alias stands for.
const NODES_MAX: usize = 20_000;

/// Whether an item or WHERE has a name that is an alias of an item.
pub(super) fn are_in(select: &Select) -> bool {
    let mut aliases = HashSet::new();
    for item in &select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if !aliases.is_empty() && names(expr, &aliases) {
            return true;
        }
        aliases.extend(alias_of(item));
    }
    !aliases.is_empty() && select.selection.as_ref().is_some_and(|condition| names(condition, &aliases))
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

fn names(expr: &Expr, aliases: &HashSet<String>) -> bool {
    // The visit changes nothing.
    let mut expr = expr.clone();
    let mut found = false;
    each_name(&mut expr, &mut |name| {
        if let Expr::Identifier(name) = name {
            found |= aliases.contains(&folded(name));
        }
    });
    found
}

/// Puts the expressions of aliases in the place of their names, unless these are names of columns.
///
/// # Errors
/// [`SqlError::Unsupported`] for an alias of an expression that is another one each time, and for one that stands for
/// too much; [`SqlError::TooDeep`] for aliases of aliases that nest deeper than a statement may.
pub(super) fn write_out(state: &SessionState, select: &mut Select, columns: &HashSet<String>) -> Result<()> {
    let settings = state.config_options().extensions.get::<Settings>();
    let limit = settings.map_or_else(|| Settings::default().depth_limit, |settings| settings.depth_limit);
    let (mut known, mut repeated): (HashMap<String, Expr>, HashSet<String>) = (HashMap::new(), HashSet::new());
    for item in &mut select.projection {
        let name = alias_of(item).filter(|name| !columns.contains(name));
        let own = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => known.contains_key(&folded(name)).then(|| folded(name)),
            _ => None,
        };
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        put(expr, &known)?;
        let shape = shape_of(expr);
        if shape.deepest > limit {
            return Err(SqlError::TooDeep { depth: shape.deepest, limit });
        }
        if shape.nodes > NODES_MAX {
            return Err(SqlError::Unsupported("aliases that stand for more than 20,000 operands".into()));
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
    select.selection.iter_mut().try_for_each(|condition| put(condition, &known))
}

fn put(expr: &mut Expr, known: &HashMap<String, Expr>) -> Result<()> {
    let mut done = Ok(());
    each_name(expr, &mut |expr| {
        let Expr::Identifier(name) = expr else { return };
        let Some(meant) = known.get(&folded(name)) else { return };
        if done.is_ok() {
            done = check_copied([meant]);
        }
        *expr = match meant {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Function(_) => meant.clone(),
            other => Expr::Nested(Box::new(other.clone())),
        };
    });
    done
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
