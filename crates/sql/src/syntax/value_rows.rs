//! VALUES with subqueries, and with dates beside timestamps.
//!
//! DataFusion 55.2 computes the cells of VALUES while it makes operators, before any subquery has run. Here VALUES with
//! a subquery in a cell become a UNION ALL of SELECTs without FROM. A date above or below a timestamp has nanoseconds
//! in DataFusion, which end in 2262; here a constant date there is a timestamp. The file goes once DataFusion runs such
//! subqueries before, and timestamps have microseconds.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, TimezoneInfo, TypedString,
    Value, Values, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SessionDialect;
use super::visits::has_query;
use crate::error::{Result, SqlError};

/// Writes VALUES with subqueries as SELECTs, wherever they stand in a statement.
///
/// # Errors
/// [`SqlError::Planning`] for rows of unlike length.
pub(super) fn as_selects(parsed: &mut ParsedStatement) -> Result<()> {
    match super::visit(parsed, &mut ValueRows) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct ValueRows;

impl VisitorMut for ValueRows {
    type Break = SqlError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        match rewrite(&mut query.body) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn rewrite(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            rewrite(left)?;
            rewrite(right)
        }
        SetExpr::Values(Values { rows, .. }) if rows.iter().flat_map(|row| &row.content).any(has_query) => {
            let width = rows.first().map_or(0, |row| row.content.len());
            if rows.iter().any(|row| row.content.len() != width) {
                return Err(SqlError::Planning("the rows of VALUES differ in their numbers of columns".into()));
            }
            let mut all: Option<SetExpr> = None;
            for row in rows.drain(..) {
                let one = select(row.content)?;
                all = Some(match all {
                    None => one,
                    Some(all) => SetExpr::SetOperation {
                        op: SetOperator::Union,
                        set_quantifier: SetQuantifier::All,
                        left: Box::new(all),
                        right: Box::new(one),
                    },
                });
            }
            if let Some(all) = all {
                *body = all;
            }
            Ok(())
        }
        SetExpr::Values(values) => {
            dates_as_timestamps(values);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Casts constant dates to timestamps in columns with a constant timestamp.
fn dates_as_timestamps(values: &mut Values) {
    let kind = |cell: &Expr| match cell {
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => Some(data_type.clone()),
        _ => None,
    };
    for column in 0..values.rows.first().map_or(0, |row| row.content.len()) {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        if !cells().any(|cell| matches!(kind(cell), Some(DataType::Timestamp(..) | DataType::Datetime(_)))) {
            continue;
        }
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(column).filter(|cell| kind(cell) == Some(DataType::Date)) {
                let date = Box::new(std::mem::replace(cell, Expr::value(Value::Null)));
                let (kind, data_type) = (CastKind::Cast, DataType::Timestamp(None, TimezoneInfo::None));
                *cell = Expr::Cast { kind, expr: date, data_type, array: false, format: None };
            }
        }
    }
}

/// `SELECT cell AS column1, …`.
fn select(cells: Vec<Expr>) -> Result<SetExpr> {
    let parser = Parser::new(&SessionDialect).try_with_sql("SELECT 1");
    let parsed = parser.and_then(|mut parser| parser.parse_query());
    let mut body = parsed.map_err(|error| SqlError::Internal(error.to_string()))?.body;
    if let SetExpr::Select(select) = body.as_mut() {
        let item = |(number, expr)| {
            let alias = Ident::new(format!("column{}", number + 1));
            SelectItem::ExprWithAlias { expr, alias }
        };
        select.projection = cells.into_iter().enumerate().map(item).collect();
    }
    Ok(*body)
}
