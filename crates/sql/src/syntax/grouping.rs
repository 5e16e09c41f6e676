//! Grouping sets that DataFusion does not plan, as plain ones.
//!
//! DataFusion 55.2 plans items of single expressions: `ROLLUP ((a, b), c)`, sets within sets, `ROLLUP (a, a)` and
//! `GROUP BY ()` are refused, and a number in a set is a constant, not a column of the select list. Here a GROUP BY
//! with one of these becomes the list of its sets, as PostgreSQL has it: the items of GROUP BY are multiplied out,
//! ROLLUP and CUBE are the lists they stand for, a set has an expression once. `ROLLUP (a, t.a)` may have one column
//! twice.
//!
//! The file goes once DataFusion plans them.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select, SelectItem, Value,
};

use crate::error::{Result, SqlError};

/// Most sets, as PostgreSQL has it for CUBE.
const SETS_MAX: usize = 4096;

/// Expressions that a row is grouped by.
type Set = Vec<Expr>;

/// Multiplies out a GROUP BY that would not be planned otherwise.
///
/// # Errors
/// More sets than there may be, a position that the select list does not have.
pub(super) fn settle(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(items, _) = &mut select.group_by else { return Ok(()) };
    if items.iter().all(|item| !is_grouping(item) || is_plain(item, &select.projection)) {
        return Ok(());
    }
    let mut sets: Vec<Set> = vec![Vec::new()];
    for item in items.iter() {
        let of_item = sets_of(item)?;
        check(sets.len().saturating_mul(of_item.len()))?;
        let joined = |set: &Set| of_item.iter().map(|other| [set.as_slice(), other].concat()).collect::<Vec<_>>();
        sets = sets.iter().flat_map(joined).collect();
    }
    for set in &mut sets {
        let mut once: Set = Vec::with_capacity(set.len());
        for expr in set.drain(..) {
            let expr = in_select_list(expr, &select.projection)?;
            if !once.contains(&expr) {
                once.push(expr);
            }
        }
        *set = once;
    }
    *items = vec![Expr::GroupingSets(sets)];
    Ok(())
}

fn check(count: usize) -> Result<()> {
    match count {
        0..=SETS_MAX => Ok(()),
        _ => Err(SqlError::Unsupported(format!("{count} grouping sets, where {SETS_MAX} are the most"))),
    }
}

/// Whether an item of GROUP BY is more than an expression.
fn is_grouping(item: &Expr) -> bool {
    matches!(item, Expr::GroupingSets(_) | Expr::Rollup(_) | Expr::Cube(_))
        || matches!(item, Expr::Tuple(exprs) if exprs.is_empty())
}

/// Whether DataFusion plans an item as it is.
fn is_plain(item: &Expr, projection: &[SelectItem]) -> bool {
    let is_single = |expr: &Expr| {
        !is_grouping(expr) && nested(expr).is_none() && position(expr).is_none() && !matches!(expr, Expr::Tuple(_))
    };
    let is_once = |exprs: &[Expr]| {
        exprs.iter().enumerate().all(|(at, expr)| !exprs[..at].iter().any(|other| may_be_same(expr, other, projection)))
    };
    match item {
        Expr::GroupingSets(sets) => sets.iter().all(|set| set.iter().all(is_single) && is_once(set)),
        Expr::Rollup(sets) | Expr::Cube(sets) => {
            let exprs = sets.concat();
            sets.iter().all(|set| set.len() == 1) && exprs.iter().all(is_single) && is_once(&exprs)
        }
        _ => false,
    }
}

/// Whether two expressions are one, or columns that may be: one of them may tell its table, or be a name of the select
/// list.
fn may_be_same(one: &Expr, other: &Expr, projection: &[SelectItem]) -> bool {
    let is_same = |one: &Expr, other: &Expr| {
        one == other || column(one).is_some_and(|name| column(other).is_some_and(|other| name == other))
    };
    let named = |expr: &Expr| {
        let Expr::Identifier(name) = expr else { return None };
        projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value.eq_ignore_ascii_case(&name.value) => Some(expr),
            _ => None,
        })
    };
    let forms = |expr| [Some(expr), named(expr)].into_iter().flatten();
    forms(one).any(|one| forms(other).any(|other| is_same(one, other)))
}

/// The name of a column without its table.
fn column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.to_ascii_lowercase()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// The sets that an item stands for.
fn sets_of(item: &Expr) -> Result<Vec<Set>> {
    let flat = |exprs: &[Expr]| exprs.iter().flat_map(expressions).collect::<Set>();
    Ok(match item {
        Expr::GroupingSets(elements) => {
            let mut sets = Vec::new();
            for element in elements {
                match element.as_slice() {
                    [one] => sets.extend(sets_of(one)?),
                    many => sets.push(flat(many)),
                }
                check(sets.len())?;
            }
            sets
        }
        Expr::Rollup(elements) => (0..=elements.len()).rev().map(|kept| flat(&elements[..kept].concat())).collect(),
        Expr::Cube(elements) => {
            let count = u32::try_from(elements.len()).ok().and_then(|count| 1usize.checked_shl(count));
            check(count.unwrap_or(usize::MAX))?;
            let is_kept = |set: usize, at: usize| set >> (elements.len() - 1 - at) & 1 == 0;
            let of = |set: usize| {
                let kept = elements.iter().enumerate().filter(|(at, _)| is_kept(set, *at));
                kept.flat_map(|(_, element)| flat(element)).collect()
            };
            (0..count.unwrap_or(0)).map(of).collect()
        }
        other => match nested(other) {
            Some(nested) => sets_of(&nested)?,
            None => vec![expressions(other)],
        },
    })
}

/// The expressions of an item in parentheses.
fn expressions(expr: &Expr) -> Set {
    match expr {
        Expr::Tuple(exprs) => exprs.iter().flat_map(expressions).collect(),
        other => vec![other.clone()],
    }
}

/// ROLLUP and CUBE within sets, which the parser takes for calls.
fn nested(expr: &Expr) -> Option<Expr> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let [name] = name.0.as_slice() else { return None };
    let name = name.as_ident().filter(|name| name.quote_style.is_none())?;
    let element = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expressions(expr)),
        _ => None,
    };
    let elements = || list.args.iter().map(element).collect::<Option<Vec<_>>>();
    match name.value.to_ascii_lowercase().as_str() {
        "rollup" => elements().map(Expr::Rollup),
        "cube" => elements().map(Expr::Cube),
        _ => None,
    }
}

/// The position in the select list that a number stands for, from 1.
fn position(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(number, _) = &value.value else { return None };
    number.to_string().parse().ok()
}

/// An expression of a set, or what the select list has at the position that it names.
fn in_select_list(expr: Expr, projection: &[SelectItem]) -> Result<Expr> {
    let Some(position) = position(&expr) else { return Ok(expr) };
    let before = projection.get(..position).and_then(|items| items.split_last());
    let is_single = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    match before {
        Some((SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }, others))
            if others.iter().all(is_single) =>
        {
            Ok(item.clone())
        }
        Some(_) => Err(SqlError::Planning(format!("position {position} of a grouping set is at or behind a *"))),
        None => Err(SqlError::Planning(format!(
            "position {position} of a grouping set; the select list has {}",
            projection.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::{SetExpr, Statement};
    use datafusion::sql::sqlparser::parser::Parser;

    use super::super::dialect::SessionDialect;
    use super::*;

    /// What GROUP BY becomes.
    fn settled(group_by: &str) -> String {
        let sql = format!("SELECT a, b + 1 AS k FROM t GROUP BY {group_by}");
        let statements = Parser::parse_sql(&SessionDialect, &sql).unwrap();
        let [Statement::Query(query)] = statements.as_slice() else { panic!("{statements:?}") };
        let SetExpr::Select(select) = query.body.as_ref() else { panic!("{query}") };
        let mut select = select.as_ref().clone();
        settle(&mut select).map_or_else(|error| error.to_string(), |()| select.group_by.to_string())
    }

    #[test]
    fn sets_are_multiplied_out() {
        let sets = |sets: &str| format!("GROUP BY GROUPING SETS ({sets})");
        assert_eq!(settled("ROLLUP ((a, b), c)"), sets("(a, b, c), (a, b), ()"));
        assert_eq!(settled("CUBE ((a, b), c)"), sets("(a, b, c), (a, b), (c), ()"));
        assert_eq!(settled("GROUPING SETS (ROLLUP (a, b), CUBE (c), (d, e))"), {
            sets("(a, b), (a), (), (c), (), (d, e)")
        });
        assert_eq!(settled("GROUPING SETS (GROUPING SETS (a, (a, b)), ())"), sets("(a), (a, b), ()"));
        assert_eq!(settled("a, ROLLUP ((b, c)), GROUPING SETS ((a), ())"), { sets("(a, b, c), (a, b, c), (a), (a)") });
        assert_eq!(settled("ROLLUP (a, a)"), sets("(a), (a), ()"));
        assert_eq!(settled("ROLLUP (a, t.a)"), sets("(a, t.a), (a), ()"));
        assert_eq!(settled("CUBE (k, b + 1)"), sets("(k, b + 1), (k), (b + 1), ()"));
        assert_eq!(settled("GROUPING SETS ((1, 2), (a))"), sets("(a, b + 1), (a)"));
        assert_eq!(settled("()"), sets("()"));
        assert_eq!(settled("a, ()"), sets("(a)"));
    }

    #[test]
    fn what_is_planned_stays() {
        for group_by in ["a, b", "ROLLUP (a, b)", "CUBE (a, b + 1)", "GROUPING SETS ((a, b), (a), ())", "a, ROLLUP (b)"]
        {
            assert_eq!(settled(group_by), format!("GROUP BY {group_by}"));
        }
    }

    #[test]
    fn positions_are_of_the_select_list() {
        for position in ["0", "3"] {
            let error = settled(&format!("ROLLUP (a, {position})"));
            assert!(
                error.contains(&format!("position {position} of a grouping set; the select list has 2")),
                "{error}"
            );
        }
    }

    #[test]
    fn too_many_sets_are_refused() {
        let columns: Vec<String> = (0..13).map(|column| format!("(a{column}, b)")).collect();
        let error = settled(&format!("CUBE ({})", columns.join(", ")));
        assert!(error.contains("8192 grouping sets, where 4096 are the most"), "{error}");
    }
}
