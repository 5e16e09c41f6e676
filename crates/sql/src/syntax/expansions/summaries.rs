//! SUMMARIZE: a row of facts for each column of a query.
//!
//! The statement is read as `SELECT * FROM summarize((query))`, which is no function of the session. The query is a
//! table of WITH that one aggregation for each column reads.

use arrow::datatypes::DataType;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Query, TableFactor, With};

use super::super::items::constant;
use super::super::statements::NAME;
use super::{Column, columns_of_query, query_of, quoted};
use crate::error::Result;
use crate::words::sql_name;

/// The query whose columns a table tells of.
pub(super) fn summarized(table: &TableFactor) -> Option<&Query> {
    let (name, args) = match table {
        TableFactor::Function { name, args, .. } => (name, args),
        // Where the statement stands in another one.
        TableFactor::Table { name, args: Some(given), .. } => (name, &given.args),
        _ => return None,
    };
    let ([part], [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Subquery(query)))]) =
        (name.0.as_slice(), args.as_slice())
    else {
        return None;
    };
    part.as_ident().is_some_and(|name| name.value == NAME).then_some(query)
}

/// The query of the facts.
///
/// # Errors
/// What is wrong with the query.
pub(super) async fn of_query(state: &SessionState, query: Query, scopes: &[With]) -> Result<Query> {
    let columns = columns_of_query(state, Box::new(query.clone()), scopes).await?;
    let of_column = |(number, column): (usize, &Column)| facts(number, &column.name, &column.data_type);
    let branches: Vec<String> = columns.iter().enumerate().map(of_column).collect();
    let text = format!(
        "WITH summarized AS ({query}) SELECT column_name, column_type, min, max, approx_unique, avg, std, q25, q50, \
         q75, count, null_percentage FROM ({}) AS facts ORDER BY number",
        branches.join(" UNION ALL ")
    );
    Ok(*query_of(&text)?)
}

/// The SELECT of a column's facts.
fn facts(number: usize, name: &str, data_type: &DataType) -> String {
    let (column, type_name) = (quoted(name), sql_name(data_type));
    let as_text = |of: &str| format!("CAST({of} AS VARCHAR)");
    let none = || "CAST(NULL AS VARCHAR)".to_string();
    let is_nested = data_type.is_nested();
    let is_number = data_type.is_numeric();
    let of_order = |function: &str| if is_nested { none() } else { as_text(&format!("{function}({column})")) };
    let of_number = |function: &str| match is_number {
        true => as_text(&format!("{function}(CAST({column} AS DOUBLE))")),
        false => none(),
    };
    // Functions of approximations take few types.
    let measured = if data_type.is_integer() { column.to_string() } else { format!("CAST({column} AS DOUBLE)") };
    let quantile = |share: &str| match is_number {
        true => as_text(&format!("approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {measured})")),
        false => none(),
    };
    let unique =
        if is_nested { "CAST(NULL AS BIGINT)".into() } else { format!("approx_distinct(CAST({column} AS VARCHAR))") };
    format!(
        "SELECT {number} AS number, {} AS column_name, {} AS column_type, {} AS min, {} AS max, \
         CAST({unique} AS BIGINT) AS approx_unique, {} AS avg, {} AS std, {} AS q25, {} AS q50, {} AS q75, \
         count(*) AS count, CAST(100.0 * (count(*) - count({column})) / nullif(count(*), 0) AS DECIMAL(9, 2)) AS \
         null_percentage FROM summarized",
        constant(name),
        constant(&type_name),
        of_order("min"),
        of_order("max"),
        of_number("avg"),
        of_number("stddev"),
        quantile("0.25"),
        quantile("0.5"),
        quantile("0.75"),
    )
}
