//! SUMMARIZE: a row of facts for each column of a query, and DESCRIBE where a query stands: a row of its name and type.
//!
//! The statement is read as `SELECT * FROM summarize((query))`, which is no function of the session. The query is a
//! table of WITH that one aggregation for some columns reads, whose lists of facts become rows.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr as Expression, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Query, TableFactor, With};

use super::super::items::constant;
use super::super::statements::{DESCRIBE, SUMMARIZE};
use super::{plan_of_query, query_of, quoted};
use crate::error::Result;
use crate::memory_table::MemoryTable;
use crate::words::type_name;

/// The query whose columns a table tells of, and whether that is by their facts.
pub(super) fn told_of(table: &TableFactor) -> Option<(&Query, bool)> {
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
    match part.as_ident()?.value.as_str() {
        SUMMARIZE => Some((query, true)),
        DESCRIBE => Some((query, false)),
        _ => None,
    }
}

/// Columns whose facts one aggregation has: each reads all columns of the query, and looks for each fact among all.
const TOGETHER: usize = 32;

/// The columns of the facts, behind the number of a column.
const FACTS: [&str; 12] = [
    "column_name",
    "column_type",
    "min",
    "max",
    "approx_unique",
    "avg",
    "std",
    "q25",
    "q50",
    "q75",
    "count",
    "null_percentage",
];

/// The query of the facts, or of names and types alone.
///
/// # Errors
/// What is wrong with the query.
pub(super) async fn of_query(state: &SessionState, query: Query, has_facts: bool, scopes: &[With]) -> Result<Query> {
    let planned = plan_of_query(state, Box::new(query.clone()), scopes).await?;
    // The types that the query has when it runs.
    let plan = state.analyzer().execute_and_check(planned.clone(), state.config_options(), |_, _| {})?;
    if !has_facts {
        let row = |(place, field): (usize, &FieldRef)| {
            let text =
                |text: Option<String>| text.map_or_else(|| "CAST(NULL AS VARCHAR)".to_string(), |text| constant(&text));
            let is_nullable = constant(if field.is_nullable() { "YES" } else { "NO" });
            let (name, data_type) = (constant(field.name()), constant(&type_name(field)));
            let (key, default) = declared_of(&planned, place);
            format!("({name}, {data_type}, {is_nullable}, {}, {}, {})", text(key), text(default), text(None))
        };
        let rows: Vec<String> = plan.schema().fields().iter().enumerate().map(row).collect();
        return Ok(*query_of(&format!(
            "SELECT * FROM (VALUES {}) AS described(column_name, column_type, \"null\", \"key\", \"default\", extra)",
            rows.join(", ")
        ))?);
    }
    let facts: Vec<[String; FACTS.len()]> = plan.schema().fields().iter().map(|field| facts(field)).collect();
    let branch = |(first, facts): (usize, &[[String; FACTS.len()]])| {
        let list = |values: Vec<String>, name: &str| format!("[{}] AS {name}", values.join(", "));
        let numbers = (0..facts.len()).map(|place| (first * TOGETHER + place).to_string()).collect();
        let of_fact =
            |(place, name): (usize, &&str)| list(facts.iter().map(|facts| facts[place].clone()).collect(), name);
        let lists: Vec<String> = FACTS.iter().enumerate().map(of_fact).collect();
        let rows: Vec<String> = FACTS.iter().map(|name| format!("unnest({name}) AS {name}")).collect();
        format!(
            "SELECT unnest(number) AS number, {} FROM (SELECT {}, {} FROM summarized) AS together",
            rows.join(", "),
            list(numbers, "number"),
            lists.join(", ")
        )
    };
    let branches: Vec<String> = facts.chunks(TOGETHER).enumerate().map(branch).collect();
    let text = format!(
        "WITH summarized AS ({query}) SELECT {} FROM ({}) AS facts ORDER BY number",
        FACTS.join(", "),
        branches.join(" UNION ALL ")
    );
    Ok(*query_of(&text)?)
}

/// The key that a table in memory has a column of a plan in, `PRI` or `UNI`, and its default.
fn declared_of(plan: &LogicalPlan, place: usize) -> (Option<String>, Option<String>) {
    let none = (None, None);
    match plan {
        LogicalPlan::Projection(projection) => match projection.expr.get(place) {
            Some(Expression::Column(column)) => match projection.input.schema().index_of_column(column) {
                Ok(place) => declared_of(&projection.input, place),
                Err(_) => none,
            },
            _ => none,
        },
        LogicalPlan::SubqueryAlias(alias) => declared_of(&alias.input, place),
        LogicalPlan::TableScan(scan) => {
            let Ok(provider) = source_as_provider(&scan.source) else { return none };
            let Some(table) = provider.downcast_ref::<MemoryTable>() else { return none };
            let name = plan.schema().field(place).name();
            let keys = table.declared_keys().into_iter().filter(|(_, columns)| columns.contains(name));
            let key = keys.map(|(is_primary, _)| if is_primary { "PRI" } else { "UNI" }).min();
            (key.map(String::from), table.default_of(name).map(ToString::to_string))
        }
        _ => none,
    }
}

/// The facts of a column, in the order of [`FACTS`].
fn facts(field: &Field) -> [String; FACTS.len()] {
    let (name, data_type) = (field.name(), field.data_type());
    let (column, type_name) = (quoted(name), type_name(field));
    let is_bytes = matches!(data_type, DataType::Binary | DataType::BinaryView | DataType::LargeBinary);
    // Bytes as results show them: they need not be a text.
    let as_text = |of: &str| match is_bytes {
        true => format!("encode({of}, 'hex')"),
        false => format!("CAST({of} AS VARCHAR)"),
    };
    let none = || "CAST(NULL AS VARCHAR)".to_string();
    let is_map = matches!(data_type, DataType::Map(..));
    let is_number = data_type.is_numeric();
    let is_time = matches!(data_type, DataType::Date32 | DataType::Timestamp(..));
    let of_order = |function: &str| if is_map { none() } else { as_text(&format!("{function}({column})")) };
    let of_number = |function: &str| match is_number {
        true => as_text(&format!("{function}(CAST({column} AS DOUBLE))")),
        false => none(),
    };
    // Times are measured by their microseconds.
    let time = |micros: &str| match data_type {
        DataType::Timestamp(_, Some(_)) => {
            format!("timezone('UTC', make_timestamp(CAST(round({micros}) AS BIGINT)))")
        }
        _ => format!("make_timestamp(CAST(round({micros}) AS BIGINT))"),
    };
    let average = match is_time {
        true => as_text(&time(&format!("avg(CAST(epoch_us({column}) AS DOUBLE))"))),
        false => of_number("avg"),
    };
    // Functions of approximations take few types.
    let measured = match data_type {
        data_type if data_type.is_integer() => column.to_string(),
        _ if is_time => format!("epoch_us({column})"),
        _ => format!("CAST({column} AS DOUBLE)"),
    };
    let quantile = |share: &str| {
        let found = format!("approx_percentile_cont({share}) WITHIN GROUP (ORDER BY {measured})");
        match data_type {
            data_type if data_type.is_integer() => as_text(&format!("CAST(round({found}) AS DECIMAL(20, 0))")),
            DataType::Date32 => as_text(&format!("CAST({} AS DATE)", time(&found))),
            _ if is_time => as_text(&time(&found)),
            _ if is_number => as_text(&found),
            _ => none(),
        }
    };
    let unique = format!("approx_distinct({})", as_text(&column.to_string()));
    let percentage = format!("100.0 * (count(*) - count({column})) / nullif(count(*), 0)");
    [
        constant(name),
        constant(&type_name),
        of_order("min"),
        of_order("max"),
        format!("CAST({unique} AS BIGINT)"),
        average,
        of_number("stddev"),
        quantile("0.25"),
        quantile("0.5"),
        quantile("0.75"),
        "count(*)".into(),
        format!("CAST({percentage} AS DECIMAL(9, 2))"),
    ]
}
