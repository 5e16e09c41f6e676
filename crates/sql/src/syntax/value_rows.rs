//! VALUES with subqueries.
//!
//! DataFusion 55.2 computes the cells of VALUES while it makes operators, before any subquery has run. Here VALUES with
//! a subquery in a cell become a UNION ALL of SELECTs without FROM. The file goes once DataFusion runs such subqueries
//! before.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, Values, VisitorMut,
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
        _ => Ok(()),
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
