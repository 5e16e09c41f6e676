//! PIVOT, an aggregation with a FILTER for each value, and UNPIVOT, the lists of a row's columns unnested.
//!
//! The columns of a pivoted table that neither its aggregates nor its pivot columns name are what its rows are grouped
//! by. GROUP BY of the statement PIVOT stands among the aggregates, with a mark for an alias. Without a list of values
//! they are those that the table has when the statement is planned, in their order.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, ExprWithAlias, Function, FunctionArg, FunctionArgExpr, FunctionArguments, NullInclusion,
    PivotValueSource, TableFactor, Value, Visitor, With,
};

use super::super::items::{column_name, constant, folded};
use super::super::statements::KEY;
use super::super::visits;
use super::{Column, columns_of_factor, condition_of, list, query_of, quoted, subquery, texts_of, wildcards};
use crate::error::{Result, SqlError};
use crate::report::StatementReport;

/// Most columns that values become.
const COLUMNS_MAX: usize = 10_000;

/// A value of the pivot columns: the condition of its rows, and its name.
struct Pivoted {
    condition: String,
    name: String,
}

/// The table that PIVOT makes of another.
///
/// # Errors
/// [`SqlError::Unsupported`] for what is not done of PIVOT, and [`SqlError::Planning`] for values without names.
pub(super) async fn pivot(state: &SessionState, factor: TableFactor, scopes: &[With]) -> Result<TableFactor> {
    let TableFactor::Pivot { table, aggregate_functions, value_column, value_source, default_on_null, alias } = factor
    else {
        return Ok(factor);
    };
    if default_on_null.is_some() {
        return Err(SqlError::Unsupported("DEFAULT ON NULL of PIVOT".into()));
    }
    let (keys, aggregates): (Vec<_>, Vec<_>) = aggregate_functions
        .into_iter()
        .partition(|aggregate| aggregate.alias.as_ref().is_some_and(|alias| alias.value == KEY));
    let columns = columns_of_factor(state, &table, scopes).await?;
    let used = named(value_column.iter().chain(aggregates.iter().map(|aggregate| &aggregate.expr)));
    let keys: Vec<String> = match keys.is_empty() {
        true => {
            columns.iter().filter(|column| !used.contains(&column.name)).map(|column| column.name.clone()).collect()
        }
        false => keys.iter().map(|key| name_of_key(&key.expr)).collect::<Result<_>>()?,
    };
    let pivoted = match value_source {
        PivotValueSource::List(values) => {
            let of_value = |value: &ExprWithAlias| listed(&value_column, value);
            values.iter().map(of_value).collect::<Result<Vec<_>>>()?
        }
        PivotValueSource::Any(order) if order.is_empty() => found(state, &table, &value_column, scopes).await?,
        PivotValueSource::Any(_) => return Err(SqlError::Unsupported("ORDER BY of PIVOT's values".into())),
        PivotValueSource::Subquery(_) => {
            return Err(SqlError::Unsupported("a subquery for the values of PIVOT; list them".into()));
        }
    };
    if pivoted.len().saturating_mul(aggregates.len()) > COLUMNS_MAX {
        let reason = format!("PIVOT into more than {COLUMNS_MAX} columns");
        return Err(SqlError::Unsupported(reason));
    }
    let is_one = matches!(aggregates.as_slice(), [ExprWithAlias { alias: None, .. }]);
    let mut items: Vec<String> = keys.iter().map(|key| list([key.as_str()])).collect();
    let mut taken: HashSet<String> = keys.iter().cloned().collect();
    for Pivoted { condition, name } in &pivoted {
        for ExprWithAlias { expr, alias } in &aggregates {
            let name = match (is_one, alias) {
                (true, _) => name.clone(),
                (false, Some(alias)) => format!("{name}_{}", folded(alias)),
                (false, None) => format!("{name}_{}", expr.to_string().to_lowercase()),
            };
            let name = free(name, &mut taken);
            items.push(format!("{} AS {}", filtered(expr, condition)?, quoted(&name)));
        }
    }
    if items.is_empty() {
        return Err(SqlError::Planning("PIVOT into no column: the table has no value".into()));
    }
    let group_by = match keys.is_empty() {
        true => String::new(),
        false => format!(" GROUP BY {}", list(keys.iter().map(String::as_str))),
    };
    let query = query_of(&format!("SELECT {} FROM {table}{group_by}", items.join(", ")))?;
    Ok(subquery(false, query, alias))
}

/// A name that no column before has: with a number behind it if one has, as in DuckDB.
fn free(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let found = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let found = found.unwrap_or(name);
    taken.insert(found.clone());
    found
}

fn name_of_key(call: &Expr) -> Result<String> {
    let key = match call {
        Expr::Function(Function { args: FunctionArguments::List(list), .. }) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(key))] => key,
            _ => call,
        },
        _ => call,
    };
    column_name(key).ok_or_else(|| SqlError::Unsupported(format!("GROUP BY {key} of PIVOT, which is no column")))
}

/// The names of columns in expressions.
fn named<'a>(exprs: impl Iterator<Item = &'a Expr>) -> HashSet<String> {
    struct Names(HashSet<String>);
    impl Visitor for Names {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                self.0.extend(column_name(expr));
            }
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(HashSet::new());
    exprs.for_each(|expr| _ = visits::visit(expr, &mut names));
    names.0
}

/// A value of a list.
fn listed(columns: &[Expr], value: &ExprWithAlias) -> Result<Pivoted> {
    let values = match &value.expr {
        Expr::Tuple(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    };
    if values.len() != columns.len() {
        let (given, wanted) = (values.len(), columns.len());
        return Err(SqlError::Planning(format!("{given} values for {wanted} columns of PIVOT")));
    }
    let names = values.iter().map(name_of_value).collect::<Result<Vec<_>>>()?;
    let name = value.alias.as_ref().map_or_else(|| names.join("_"), folded);
    let equal = |(column, value): (&Expr, &Expr)| format!("({column}) = ({value})");
    let conditions: Vec<String> = columns.iter().zip(values).map(equal).collect();
    Ok(Pivoted { condition: conditions.join(" AND "), name })
}

fn name_of_value(value: &Expr) -> Result<String> {
    Ok(match value {
        Expr::Value(constant) => match &constant.value {
            Value::Placeholder(_) => return Err(SqlError::Unsupported("a parameter among the values of PIVOT".into())),
            Value::Null => return Err(SqlError::Unsupported("NULL among the values of PIVOT".into())),
            other => other.clone().into_string().unwrap_or_else(|| other.to_string()),
        },
        Expr::TypedString(typed) => typed.value.value.clone().into_string().unwrap_or_else(|| value.to_string()),
        Expr::UnaryOp { expr, .. } if matches!(**expr, Expr::Value(_)) => value.to_string(),
        other => return Err(SqlError::Unsupported(format!("{other} among the values of PIVOT, which is no constant"))),
    })
}

/// The values that a table has now, without NULL: every combination of those of each column.
async fn found(state: &SessionState, table: &TableFactor, columns: &[Expr], scopes: &[With]) -> Result<Vec<Pivoted>> {
    let Some(report) = state.config().get_extension::<StatementReport>() else {
        return Err(SqlError::Unsupported("PIVOT without a list of values where nothing runs".into()));
    };
    report.note_read_to_plan();
    let mut pivoted = vec![Pivoted { condition: String::new(), name: String::new() }];
    for column in columns {
        let query = query_of(&format!(
            "SELECT CAST(value AS VARCHAR) AS name FROM (SELECT DISTINCT {column} AS value FROM {table}) AS found \
             WHERE value IS NOT NULL ORDER BY value LIMIT {}",
            COLUMNS_MAX + 1
        ))?;
        let values = texts_of(state, query, scopes).await?;
        let with = |before: &Pivoted| {
            let (condition, name) = match before.name.is_empty() && before.condition.is_empty() {
                true => (String::new(), String::new()),
                false => (format!("{} AND ", before.condition), format!("{}_", before.name)),
            };
            let longer = move |value: &String| Pivoted {
                condition: format!("{condition}CAST({column} AS VARCHAR) = {}", constant(value)),
                name: format!("{name}{value}"),
            };
            values.iter().map(longer).collect::<Vec<_>>()
        };
        if pivoted.len().saturating_mul(values.len()) > COLUMNS_MAX {
            return Err(SqlError::Unsupported(format!("PIVOT into more than {COLUMNS_MAX} columns")));
        }
        pivoted = pivoted.iter().flat_map(with).collect();
    }
    Ok(pivoted)
}

/// An aggregate of the rows of a condition.
fn filtered(aggregate: &Expr, condition: &str) -> Result<Expr> {
    let mut aggregate = aggregate.clone();
    let Expr::Function(function) = &mut aggregate else {
        return Err(SqlError::Unsupported(format!("{aggregate} in PIVOT, which is no call of an aggregate")));
    };
    if function.over.is_some() || !matches!(function.args, FunctionArguments::List(_)) {
        return Err(SqlError::Unsupported(format!("{aggregate} in PIVOT")));
    }
    let condition = condition_of(condition)?;
    function.filter = Some(Box::new(match function.filter.take() {
        None => condition,
        Some(own) => {
            let [left, right] = [*own, condition].map(|side| Box::new(Expr::Nested(Box::new(side))));
            Expr::BinaryOp { left, op: BinaryOperator::And, right }
        }
    }));
    Ok(aggregate)
}

/// The table that UNPIVOT makes of another.
///
/// # Errors
/// [`SqlError::UnknownColumn`], and [`SqlError::Planning`] for other numbers of columns than of values.
pub(super) async fn unpivot(state: &SessionState, factor: TableFactor, scopes: &[With]) -> Result<TableFactor> {
    let TableFactor::Unpivot { table, value, null_inclusion, name, columns: items, alias } = factor else {
        return Ok(factor);
    };
    let value_name = |value: &Expr| match value {
        Expr::Identifier(value) => Ok(folded(value)),
        other => Err(SqlError::Planning(format!("{other}, a column of values of UNPIVOT, is no name"))),
    };
    let value_names: Vec<String> = match &value {
        Expr::Tuple(values) => values.iter().map(value_name).collect::<Result<_>>()?,
        value => vec![value_name(value)?],
    };
    let count = value_names.len();
    let columns = columns_of_factor(state, &table, scopes).await?;
    let (mut names, mut values, mut used) = (Vec::new(), vec![Vec::new(); count], HashSet::new());
    for ExprWithAlias { expr, alias } in &items {
        let called: Option<Vec<&Column>> = match alias {
            None if count == 1 => wildcards::named(expr, &columns)?,
            _ => None,
        };
        if let Some(called) = called {
            for column in called {
                names.push(constant(&column.name));
                values[0].push(list([column.name.as_str()]));
                used.insert(column.name.clone());
            }
            continue;
        }
        let parts = match expr {
            Expr::Tuple(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        if parts.len() != count {
            let given = parts.len();
            return Err(SqlError::Planning(format!("{expr} of UNPIVOT, {given} for {count} columns of values")));
        }
        let own = match alias {
            Some(alias) => folded(alias),
            None => {
                let name = |part: &Expr| column_name(part).unwrap_or_else(|| part.to_string());
                parts.iter().map(name).collect::<Vec<_>>().join("_")
            }
        };
        names.push(constant(&own));
        values.iter_mut().zip(parts).for_each(|(values, part)| values.push(part.to_string()));
        let found = named(std::iter::once(expr));
        if let Some(name) = found.iter().find(|name| !columns.iter().any(|column| column.name == **name)) {
            return Err(SqlError::UnknownColumn { name: name.clone(), nearest: None });
        }
        used.extend(found);
    }
    let rest = columns.iter().map(|column| column.name.as_str()).filter(|name| !used.contains(*name));
    let name = folded(&name);
    let kept = list(rest.clone().chain([name.as_str()]).chain(value_names.iter().map(String::as_str)));
    let mut inner: Vec<String> = rest.map(|name| list([name])).collect();
    inner.push(format!("unnest([{}]) AS {}", names.join(", "), quoted(&name)));
    for (values, name) in values.iter().zip(&value_names) {
        inner.push(format!("unnest([{}]) AS {}", values.join(", "), quoted(name)));
    }
    let condition = match null_inclusion {
        Some(NullInclusion::IncludeNulls) => String::new(),
        Some(NullInclusion::ExcludeNulls) | None => {
            let conditions = value_names.iter().map(|name| format!("{} IS NOT NULL", quoted(name)));
            format!(" WHERE {}", conditions.collect::<Vec<_>>().join(" AND "))
        }
    };
    let inner = inner.join(", ");
    let query = query_of(&format!("SELECT {kept} FROM (SELECT {inner} FROM {table}) AS unpivoted{condition}"))?;
    Ok(subquery(false, query, alias))
}
