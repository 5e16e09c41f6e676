//! Row values: `(a, b) = (1, 'x')`.
//!
//! DataFusion 55.2 makes structs of rows and compares these as wholes, in which NULL equals NULL and no comparison is
//! unknown. In SQL a comparison of rows is one of their components, three-valued: `=` is a conjunction, `<>` a
//! disjunction, and `<` compares the first components that differ. Here comparisons of row constructors, IN lists,
//! BETWEEN, IS NULL and CASE of them are written out; IN, ANY and ALL of a subquery become EXISTS with a condition over
//! its columns. Other operators between a row and a subquery are refused.
//!
//! Invariant: an expression is written in parentheses where it stands, since views are kept as text.
//!
//! The file goes once DataFusion compares rows by component.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr,
    Ident, Query, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value, Visit,
    Visitor,
};

use super::shape::in_halves;
use super::{call, relations, visits, when};
use crate::error::{Result, SqlError};

/// Writes out an expression that compares rows.
///
/// # Errors
/// [`SqlError::Planning`] for rows of unlike length, [`SqlError::Unsupported`] for a row beside a subquery.
pub(super) fn by_component(expr: &mut Expr) -> Result<()> {
    let written = match expr {
        Expr::BinaryOp { left, op, right } if is_comparison(op) => match (is_row(left), is_row(right)) {
            (true, true) => {
                if !matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq | BinaryOperator::Spaceship) {
                    check_copied([&**left, &**right])?;
                }
                compare(op, left, right)?
            }
            (true, false) if is_subquery(right) => return Err(beside_subquery(op)),
            (false, true) if is_subquery(left) => return Err(beside_subquery(op)),
            _ => return Ok(()),
        },
        Expr::IsDistinctFrom(left, right) if is_row(left) && is_row(right) => distinct(left, right)?,
        Expr::IsNotDistinctFrom(left, right) if is_row(left) && is_row(right) => {
            compare(&BinaryOperator::Spaceship, left, right)?
        }
        Expr::InList { expr: row, list, negated } if is_row(row) && list.iter().any(is_row) => {
            check_copied([&**row])?;
            let (is_any, op) = match negated {
                true => (false, BinaryOperator::NotEq),
                false => (true, BinaryOperator::Eq),
            };
            let compared = list.iter().map(|item| match item {
                item if is_row(item) => compare(&op, row, item),
                Expr::Value(value) if value.value == Value::Null => Ok(item.clone()),
                item => Err(SqlError::Planning(format!("{item} in the list of IN is no row"))),
            });
            chain(is_any, compared.collect::<Result<_>>()?)
        }
        Expr::Between { expr: row, negated, low, high } if is_row(row) && is_row(low) && is_row(high) => {
            check_copied([&**row, &**low, &**high])?;
            let (is_any, below, above) = match negated {
                true => (true, BinaryOperator::Lt, BinaryOperator::Gt),
                false => (false, BinaryOperator::GtEq, BinaryOperator::LtEq),
            };
            chain(is_any, vec![compare(&below, row, low)?, compare(&above, row, high)?])
        }
        Expr::IsNull(row) => match components(row) {
            Some(items) => chain(false, items.into_iter().map(|item| Expr::IsNull(Box::new(operand(item)))).collect()),
            None => return Ok(()),
        },
        Expr::IsNotNull(row) => match components(row) {
            Some(items) => {
                chain(false, items.into_iter().map(|item| Expr::IsNotNull(Box::new(operand(item)))).collect())
            }
            None => return Ok(()),
        },
        Expr::InSubquery { expr: row, subquery, negated } if is_row(row) => {
            let found = with_rows(row, &BinaryOperator::Eq, true, subquery)?;
            match negated {
                true => nested(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) }),
                false => found,
            }
        }
        Expr::AnyOp { left, compare_op, right, is_some: _ } if is_row(left) => match subquery_of(right) {
            Some(query) => with_rows(left, compare_op, true, query)?,
            None => return Err(SqlError::Unsupported(format!("{compare_op} ANY with a row on the left"))),
        },
        Expr::AllOp { left, compare_op, right } if is_row(left) => match subquery_of(right) {
            Some(query) => with_rows(left, compare_op, false, query)?,
            None => return Err(SqlError::Unsupported(format!("{compare_op} ALL with a row on the left"))),
        },
        Expr::Case { case_token: _, end_token: _, operand, conditions, else_result: _ }
            if operand.as_deref().is_some_and(is_row) =>
        {
            if let Some(row) = operand.take() {
                check_copied([&*row])?;
                for case in conditions {
                    case.condition = compare(&BinaryOperator::Eq, &row, &case.condition)?;
                }
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    *expr = written;
    Ok(())
}

/// The query of a subquery that stands as an operand.
fn subquery_of(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Nested(inner) => subquery_of(inner),
        Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

/// How the columns of a subquery are called that is compared with a row.
const COMPONENT: &str = "warpcube_component_";

/// A comparison of a row with any or all rows of a subquery: a CASE of whether a row decides it, and of whether a
/// comparison with one is unknown.
fn with_rows(row: &Expr, op: &BinaryOperator, is_any: bool, query: &Query) -> Result<Expr> {
    if !is_comparison(op) {
        return Err(SqlError::Unsupported(format!("{op} with a row on the left")));
    }
    check_copied([row])?;
    check_copied([query])?;
    let items = components(row).unwrap_or_default();
    let names: Vec<Ident> = (0..items.len()).map(|place| Ident::new(format!("{COMPONENT}{place}"))).collect();
    let others = Expr::Tuple(names.iter().cloned().map(Expr::Identifier).collect());
    let compared = nested(compare(op, row, &others)?);
    let exists = |condition: Expr| -> Result<Expr> {
        let columns = names.iter().map(|name| TableAliasColumnDef { name: name.clone(), data_type: None }).collect();
        let name = Ident::new(format!("{COMPONENT}rows"));
        let alias = Some(TableAlias { explicit: true, name, columns, at: None });
        let subquery = Box::new(query.clone());
        let relation = TableFactor::Derived { lateral: false, subquery, alias, sample: None };
        let mut subquery = relations::all_of(TableWithJoins { relation, joins: Vec::new() })?;
        if let SetExpr::Select(select) = subquery.body.as_mut() {
            select.selection = Some(condition);
        }
        Ok(Expr::Exists { subquery, negated: false })
    };
    let deciding = match is_any {
        true => compared.clone(),
        false => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(compared.clone()) },
    };
    let value = |value: bool| Expr::value(Value::Boolean(value));
    let unknown = when(exists(Expr::IsNull(Box::new(compared)))?, Expr::value(Value::Null), value(!is_any));
    let mut written = when(exists(deciding)?, value(is_any), unknown);
    // One CASE.
    if let Expr::Case { conditions, else_result, .. } = &mut written
        && let Some(Expr::Case { conditions: rest, else_result: last, .. }) = else_result.take().map(|unknown| *unknown)
    {
        conditions.extend(rest);
        *else_result = last;
    }
    Ok(nested(written))
}

/// Functions that give another value each time.
const VOLATILE: [&str; 2] = ["random", "uuid"];

/// The name of a function that gives another value each time.
fn volatile(function: &Function) -> Option<&'static str> {
    let ident = function.name.0.last()?.as_ident()?;
    VOLATILE.into_iter().find(|volatile| ident.value.eq_ignore_ascii_case(volatile))
}

/// Refuses what is written several times and would have several values.
///
/// # Errors
/// [`SqlError::Unsupported`] with the function's name.
pub(super) fn check_copied<'a, T: Visit + 'a>(parts: impl IntoIterator<Item = &'a T>) -> Result<()> {
    struct Volatile;
    impl Visitor for Volatile {
        type Break = &'static str;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
            match expr {
                Expr::Function(function) => volatile(function).map_or(ControlFlow::Continue(()), ControlFlow::Break),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    parts.into_iter().try_for_each(|part| match visits::visit(part, &mut Volatile) {
        ControlFlow::Break(name) => Err(SqlError::Unsupported(format!(
            "{name}() where its value is used several times; compute it in a table of WITH or in a subquery of FROM"
        ))),
        ControlFlow::Continue(()) => Ok(()),
    })
}

/// A row of more than names and constants as a call of `row`: DataFusion 55.2 plans no other tuples.
pub(super) fn as_call(expr: &mut Expr) {
    if let Expr::Tuple(items) = expr
        && items.iter().any(|item| !matches!(item, Expr::Identifier(_) | Expr::Value(_)))
    {
        let items = std::mem::take(items).into_iter();
        *expr = call("row", items.map(|item| FunctionArg::Unnamed(FunctionArgExpr::Expr(item))).collect());
    }
}

/// `GROUP BY (a, b)` has the keys a and b.
pub(super) fn of_groups(group_by: &mut GroupByExpr) {
    if let GroupByExpr::Expressions(keys, _) = group_by
        && keys.iter().any(|key| matches!(key, Expr::Tuple(_)))
    {
        let keys_of = |key| match key {
            Expr::Tuple(items) if !items.is_empty() => items,
            key => vec![key],
        };
        *keys = std::mem::take(keys).into_iter().flat_map(keys_of).collect();
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship)
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_subquery(inner),
        Expr::Subquery(_) => true,
        _ => false,
    }
}

fn beside_subquery(op: &BinaryOperator) -> SqlError {
    SqlError::Unsupported(format!("a row {op} a subquery"))
}

fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_row(inner),
        Expr::Tuple(items) => !items.is_empty(),
        Expr::Function(_) => components(expr).is_some(),
        _ => false,
    }
}

/// The components of a row constructor, `(a, b)` or `ROW(a, b)`.
pub(super) fn components(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(inner) => components(inner),
        Expr::Tuple(items) if !items.is_empty() => Some(items.clone()),
        Expr::Function(function) => {
            let [name] = function.name.0.as_slice() else { return None };
            let name = name.as_ident().filter(|name| name.quote_style.is_none())?;
            let FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }) =
                &function.args
            else {
                return None;
            };
            if !name.value.eq_ignore_ascii_case("row") || args.is_empty() || !clauses.is_empty() {
                return None;
            }
            let argument = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            };
            args.iter().map(argument).collect()
        }
        _ => None,
    }
}

/// The pairs of components of two rows.
fn pairs(left: &Expr, right: &Expr) -> Result<Option<Vec<(Expr, Expr)>>> {
    let (Some(left), Some(right)) = (components(left), components(right)) else { return Ok(None) };
    if left.len() != right.len() {
        let reason = format!("a row of {} columns is compared with one of {}", left.len(), right.len());
        return Err(SqlError::Planning(reason));
    }
    Ok(Some(left.into_iter().zip(right).collect()))
}

/// A comparison of two rows, or of two components.
fn compare(op: &BinaryOperator, left: &Expr, right: &Expr) -> Result<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let Some(pairs) = pairs(left, right)? else {
        return Ok(binary(operand(left.clone()), op, operand(right.clone())));
    };
    let each = |op: &BinaryOperator| -> Result<Vec<Expr>> {
        pairs.iter().map(|(left, right)| compare(op, left, right)).collect()
    };
    Ok(match op {
        Lt | LtEq | Gt | GtEq => {
            let strict = match op {
                LtEq => &Lt,
                GtEq => &Gt,
                other => other,
            };
            let mut written: Option<Expr> = None;
            for (left, right) in pairs.iter().rev() {
                written = Some(match written {
                    None => compare(op, left, right)?,
                    Some(behind) => {
                        let equal = compare(&Eq, left, right)?;
                        let behind = nested(binary(equal, &And, behind));
                        nested(binary(compare(strict, left, right)?, &Or, behind))
                    }
                });
            }
            written.unwrap_or_else(|| Expr::value(Value::Null))
        }
        NotEq => chain(true, each(op)?),
        _ => chain(false, each(op)?),
    })
}

fn distinct(left: &Expr, right: &Expr) -> Result<Expr> {
    Ok(match pairs(left, right)? {
        Some(pairs) => {
            let each = pairs.iter().map(|(left, right)| distinct(left, right));
            chain(true, each.collect::<Result<_>>()?)
        }
        None => Expr::IsDistinctFrom(Box::new(operand(left.clone())), Box::new(operand(right.clone()))),
    })
}

/// A chain of OR or of AND in parentheses; there is at least one operand.
fn chain(is_any: bool, operands: Vec<Expr>) -> Expr {
    let op = if is_any { BinaryOperator::Or } else { BinaryOperator::And };
    nested(in_halves(operands, &|left, right| binary(left, &op, right)))
}

fn binary(left: Expr, op: &BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// An expression that binds as an operand does.
pub(super) fn operand(expr: Expr) -> Expr {
    let is_one = match &expr {
        Expr::UnaryOp { op, expr } => *op == UnaryOperator::Minus && matches!(**expr, Expr::Value(_)),
        expr => matches!(
            expr,
            Expr::Identifier(_)
                | Expr::CompoundIdentifier(_)
                | Expr::Value(_)
                | Expr::Nested(_)
                | Expr::Function(_)
                | Expr::Tuple(_)
                | Expr::Subquery(_)
        ),
    };
    if is_one { expr } else { nested(expr) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let dialect = super::super::dialect::SessionDialect;
        let parser = datafusion::sql::sqlparser::parser::Parser::new(&dialect).try_with_sql(text);
        let mut expr = parser.unwrap().parse_expr().unwrap();
        match by_component(&mut expr) {
            Ok(()) => expr.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn rows_are_compared_by_component() {
        for (text, expected) in [
            ("(a, b) = (1, 2)", "(a = 1 AND b = 2)"),
            ("(a, b) <> ROW(1, 2)", "(a <> 1 OR b <> 2)"),
            ("(a, b, c) <= (1, 2, 3)", "(a < 1 OR (a = 1 AND (b < 2 OR (b = 2 AND c <= 3))))"),
            ("(a, b) IN ((1, 2), (3, 4))", "((a = 1 AND b = 2) OR (a = 3 AND b = 4))"),
            ("(a, b) NOT IN ((1, 2))", "((a <> 1 OR b <> 2))"),
            ("(a, b) IN ((1, 2), NULL)", "((a = 1 AND b = 2) OR NULL)"),
            ("(a, b) BETWEEN (1, 2) AND (3, 4)", "((a > 1 OR (a = 1 AND b >= 2)) AND (a < 3 OR (a = 3 AND b <= 4)))"),
            ("(a, b) IS NOT NULL", "(a IS NOT NULL AND b IS NOT NULL)"),
            ("(a OR b, (c, d)) = (e, (f, 2))", "((a OR b) = e AND (c = f AND d = 2))"),
            ("(a, b) IS DISTINCT FROM (1, NULL)", "(a IS DISTINCT FROM 1 OR b IS DISTINCT FROM NULL)"),
            ("CASE (a, b) WHEN (1, 2) THEN 3 END", "CASE WHEN (a = 1 AND b = 2) THEN 3 END"),
            ("(a, b) = (1, 2, 3)", "SQL-004 a row of 2 columns is compared with one of 3"),
            ("(a, b) = s", "(a, b) = s"),
            ("a IN (1, 2)", "a IN (1, 2)"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }
}
