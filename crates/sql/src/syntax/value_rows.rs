//! VALUES with subqueries, with dates beside timestamps, and with texts beside dates and times.
//!
//! DataFusion 55.2 computes the cells of VALUES while it makes operators, before any subquery has run. Here VALUES with
//! a subquery in a cell become a UNION ALL of SELECTs without FROM. A date above or below a timestamp has nanoseconds
//! in DataFusion, which end in 2262; here a constant date there is a timestamp. A text beside a date or a time is one,
//! as in PostgreSQL, but for the rows of INSERT, which have the types of its columns. The file goes once DataFusion
//! runs such subqueries before, timestamps have microseconds, and it reads such texts.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, TimezoneInfo,
    TypedString, Value, Values, VisitorMut,
};

use super::dialect::parser_of;
use super::visits::has_query;
use crate::error::{Result, SqlError};

/// Writes VALUES with subqueries as SELECTs, wherever they stand in a statement.
///
/// # Errors
/// [`SqlError::Planning`] for rows of unlike length.
pub(super) fn as_selects(parsed: &mut ParsedStatement) -> Result<()> {
    match super::visit(parsed, &mut ValueRows::default()) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

#[derive(Default)]
struct ValueRows {
    /// Whether the statement is an INSERT, whose own rows have the types of its table's columns.
    inserts: bool,
    /// Queries around the one that is visited.
    depth: usize,
}

impl VisitorMut for ValueRows {
    type Break = SqlError;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<SqlError> {
        self.inserts |= matches!(statement, Statement::Insert(_));
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        if let (SetExpr::Values(values), false) = (query.body.as_mut(), self.inserts && self.depth == 0) {
            dates_as_timestamps(values);
            texts_as_times(values);
        }
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

/// The type that a constant of a type, or a cast, says.
fn kind(cell: &Expr) -> Option<&DataType> {
    match cell {
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => Some(data_type),
        _ => None,
    }
}

fn cast(cell: &mut Expr, data_type: DataType) {
    let expr = Box::new(std::mem::replace(cell, Expr::value(Value::Null)));
    *cell = Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None };
}

/// Casts texts to the dates, times and timestamps that their columns have.
fn texts_as_times(values: &mut Values) {
    let is_text =
        |cell: &Expr| matches!(cell, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    for column in 0..values.rows.first().map_or(0, |row| row.content.len()) {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        let is_time = |kind: &&DataType| {
            matches!(kind, DataType::Date | DataType::Time(..) | DataType::Timestamp(..) | DataType::Datetime(_))
        };
        let Some(time) = cells().filter_map(kind).find(is_time).cloned() else { continue };
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(column).filter(|cell| is_text(cell)) {
                cast(cell, time.clone());
            }
        }
    }
}

/// Casts constant dates to timestamps in columns with a constant timestamp.
fn dates_as_timestamps(values: &mut Values) {
    for column in 0..values.rows.first().map_or(0, |row| row.content.len()) {
        let cells = || values.rows.iter().filter_map(|row| row.content.get(column));
        if !cells().any(|cell| matches!(kind(cell), Some(DataType::Timestamp(..) | DataType::Datetime(_)))) {
            continue;
        }
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(column).filter(|cell| kind(cell) == Some(&DataType::Date)) {
                cast(cell, DataType::Timestamp(None, TimezoneInfo::None));
            }
        }
    }
}

/// `SELECT cell AS column1, …`.
fn select(cells: Vec<Expr>) -> Result<SetExpr> {
    let parser = parser_of("SELECT 1");
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
