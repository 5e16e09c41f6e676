//! FETCH: `FETCH FIRST n ROWS ONLY` is `LIMIT n`; with TIES and PERCENT it is a condition on ranks, as is `LIMIT n%`.
//!
//! DataFusion 55.2 has neither. `FETCH FIRST n ROWS WITH TIES` keeps the rows whose rank in the query's order is n at
//! most, or that of the last row before it and OFFSET's; PERCENT counts the rows, rounded up (of LIMIT down, as in
//! DuckDB), and then does the same by numbers of rows. The condition is one of QUALIFY, around the query where it has
//! DISTINCT, QUALIFY or set operations.

use datafusion::sql::sqlparser::ast::{
    Expr, Fetch, LimitClause, Offset, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableWithJoins, Value,
};

use super::expansions;
use super::items::column_name;
use super::orders;
use super::quotes::quoted;
use super::relations;
use crate::error::{Result, SqlError};

/// Reads FETCH of a query.
///
/// # Errors
/// [`SqlError::Syntax`] for LIMIT beside it and WITH TIES without ORDER BY; [`SqlError::Unsupported`] for an order
/// whose keys cannot be named.
pub(super) fn as_limit(query: &mut Query) -> Result<()> {
    let share = take_share(query)?;
    let (rows, with_ties, percent, rounded) = match (share, query.fetch.take()) {
        (Some(share), None) => (share, false, true, "floor"),
        (Some(_), Some(_)) => return Err(SqlError::Syntax("LIMIT and FETCH stand in one query".into())),
        (None, Some(Fetch { with_ties, percent, quantity })) => {
            let rows = quantity.unwrap_or_else(|| Expr::value(Value::Number("1".into(), false)));
            (rows, with_ties, percent, "ceil")
        }
        (None, None) => return Ok(()),
    };
    let offset = match &query.limit_clause {
        None => None,
        Some(LimitClause::LimitOffset { limit: None, offset, limit_by: _ }) => offset.as_ref(),
        Some(_) => return Err(SqlError::Syntax("LIMIT and FETCH stand in one query".into())),
    };
    if !with_ties && !percent {
        let offset = offset.cloned();
        query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(rows), offset, limit_by: Vec::new() });
        return Ok(());
    }
    let skipped = offset.map_or_else(|| "0".to_string(), |Offset { value, rows: _ }| value.to_string());
    orders::by_number(query);
    let is_bare = matches!(query.body.as_ref(), SetExpr::Select(select) if is_bare(select));
    let columns = columns(&query.body);
    if !is_bare {
        let inner =
            Query { with: None, order_by: None, limit_clause: None, pipe_operators: Vec::new(), ..query.clone() };
        let relation = expansions::subquery(false, Box::new(inner), Some(expansions::alias("rows")));
        query.body = relations::all_of(TableWithJoins { relation, joins: Vec::new() })?.body;
    }
    let keys = match &mut query.order_by {
        None if with_ties => return Err(SqlError::Syntax("FETCH … WITH TIES needs ORDER BY".into())),
        None => Vec::new(),
        Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) => {
            let called = keys.iter().map(|key| called(key, &columns, !is_bare)).collect::<Result<Vec<_>>>()?;
            if !is_bare {
                keys.clone_from(&called);
            }
            called
        }
        Some(OrderBy { kind: OrderByKind::All(_), .. }) => {
            return Err(SqlError::Unsupported("ORDER BY ALL with TIES and PERCENT of FETCH".into()));
        }
    };
    let order = match keys.is_empty() {
        true => String::new(),
        false => format!("ORDER BY {}", keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    let function = if with_ties { "rank" } else { "row_number" };
    let last = match percent {
        true => format!("CAST({rounded}(CAST(({rows}) AS DOUBLE) * count(*) OVER () / 100) AS BIGINT)"),
        false => format!("({rows})"),
    };
    let text = format!("{function}() OVER ({order}) <= {last} + ({skipped})");
    let condition = expansions::condition_of(&text)?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.qualify = Some(condition);
    }
    Ok(())
}

/// Takes a share of rows out of LIMIT.
fn take_share(query: &mut Query) -> Result<Option<Expr>> {
    let Some(LimitClause::LimitOffset { limit, offset, limit_by: _ }) = &mut query.limit_clause else {
        return Ok(None);
    };
    let Some(share) = limit.as_ref().and_then(expansions::share_of).cloned() else { return Ok(None) };
    if share.to_string().parse::<f64>().is_ok_and(|share| share > 100.0) {
        return Err(SqlError::Planning(format!("LIMIT of {share} percent; a share is 0 to 100")));
    }
    *limit = None;
    if offset.is_none() {
        query.limit_clause = None;
    }
    Ok(Some(share))
}

/// True if the text of a statement may have a FETCH with TIES or PERCENT or a LIMIT with a share, whose columns need
/// names.
pub(super) fn needs_names(sql: &str) -> bool {
    let sql = sql.to_ascii_lowercase();
    let has = |word: &str| sql.contains(word);
    has("fetch") && (has("ties") || has("percent")) || has("limit") && (has("%") || has("percent"))
}

/// Whether the rows of a SELECT are those that its order is about.
fn is_bare(select: &Select) -> bool {
    select.distinct.is_none() && select.qualify.is_none() && select.into.is_none() && select.top.is_none()
}

/// A column of a query whose rows are ranked.
struct Column {
    /// What it is computed of; none of a wildcard.
    computed: Option<Expr>,
    /// Its name, by which the order refers to it around the query.
    name: Option<Expr>,
}

/// The columns of a query, by their numbers.
fn columns(body: &SetExpr) -> Vec<Column> {
    let named = |expr: &Expr| Some(Expr::Identifier(quoted(column_name(expr)?)));
    match body {
        SetExpr::Select(select) => select
            .projection
            .iter()
            .map(|item| match item {
                SelectItem::UnnamedExpr(expr) => Column { computed: Some(expr.clone()), name: named(expr) },
                SelectItem::ExprWithAlias { expr, alias } => {
                    Column { computed: Some(expr.clone()), name: Some(Expr::Identifier(alias.clone())) }
                }
                _ => Column { computed: None, name: None },
            })
            .collect(),
        SetExpr::SetOperation { left, .. } => columns(left),
        SetExpr::Query(query) => columns(&query.body),
        _ => Vec::new(),
    }
}

/// A key of the order as a window has it, in a query or around it (`is_around`).
fn called(key: &OrderByExpr, columns: &[Column], is_around: bool) -> Result<OrderByExpr> {
    let mut key = key.clone();
    let by = |column: &Column| if is_around { column.name.clone() } else { column.computed.clone() };
    if let Expr::Value(value) = &key.expr
        && let Value::Number(number, _) = &value.value
    {
        let place = number.to_string().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        // A wildcard before it may be any number of columns.
        let is_known = |place: &usize| columns.iter().take(place + 1).all(|column| by(column).is_some());
        let column = place.filter(is_known).and_then(|place| by(columns.get(place)?));
        key.expr = column.ok_or_else(|| {
            SqlError::Unsupported(format!("ORDER BY {number} with TIES and PERCENT of FETCH; name the column"))
        })?;
    } else if let Some(column) = columns.iter().find(|column| is_around && column.computed.as_ref() == Some(&key.expr))
    {
        key.expr = column.name.clone().unwrap_or(key.expr);
    }
    Ok(key)
}
