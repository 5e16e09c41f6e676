//! Clauses of queries: WITH, SELECT, set operations, ORDER BY, LIMIT, and what stands behind them.

use datafusion::sql::sqlparser::ast::{
    Cte, ExprWithAlias, ExprWithAliasAndOrderBy, Fetch, GroupByExpr, GroupByWithModifier, LimitClause, Offset, OrderBy,
    OrderByExpr, OrderByKind, OrderByOptions, PipeOperator, Query, Select, SelectInto, SelectItem, SetExpr, Values,
    WildcardAdditionalOptions, With,
};

use super::{refuse, relations};
use crate::error::{Result, SqlError};

/// Checks the clauses of a query; its subqueries are visited by themselves. `may_make_table` says whether INTO may
/// stand in its SELECT.
pub(super) fn query(query: &Query, may_make_table: bool) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        // Of other databases.
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if let Some(With { with_token: _, recursive: _, cte_tables }) = with {
        cte_tables.iter().try_for_each(common_table)?;
    }
    set_expression(body, may_make_table)?;
    if let Some(OrderBy { kind, interpolate }) = order_by {
        refuse([("INTERPOLATE", interpolate.is_some())])?;
        if let OrderByKind::Expressions(keys) = kind {
            keys.iter().try_for_each(order_key)?;
        }
    }
    match limit_clause {
        Some(LimitClause::LimitOffset { limit: _, offset, limit_by }) => {
            if let Some(Offset { value: _, rows: _ }) = offset {}
            refuse([("LIMIT … BY", !limit_by.is_empty())])?;
        }
        Some(LimitClause::OffsetCommaLimit { offset: _, limit: _ }) | None => {}
    }
    if let Some(Fetch { with_ties: _, percent: _, quantity: _ }) = fetch {}
    if let Some(lock) = locks.first() {
        return Err(SqlError::Unsupported(lock.to_string()));
    }
    if let Some(clause) = for_clause {
        return Err(SqlError::Unsupported(clause.to_string()));
    }
    refuse([("SETTINGS", settings.is_some()), ("FORMAT", format_clause.is_some())])?;
    pipe_operators.iter().try_for_each(pipe_operator)
}

fn common_table(table: &Cte) -> Result<()> {
    // The name that a table is given carries MATERIALIZED.
    let Cte { alias, query, from, materialized: _, closing_paren_token: _ } = table;
    relations::alias(alias)?;
    if let SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) = query.body.as_ref() {
        return Err(SqlError::Unsupported(format!("'{}' of WITH, which changes a table", alias.name)));
    }
    refuse([("FROM behind a common table expression", from.is_some())])
}

fn set_expression(body: &SetExpr, may_make_table: bool) -> Result<()> {
    match body {
        SetExpr::Select(select) => self::select(select, may_make_table),
        SetExpr::SetOperation { left, op: _, set_quantifier: _, right } => {
            set_expression(left, false)?;
            set_expression(right, false)
        }
        SetExpr::Values(Values { explicit_row: _, value_keyword: _, rows: _ }) => Ok(()),
        SetExpr::Table(table) => Err(SqlError::Unsupported(format!("{table} for SELECT * FROM"))),
        // Queries in parentheses are visited by themselves; the planner refuses statements in the place of a query.
        SetExpr::Query(_) | SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => Ok(()),
    }
}

fn select(select: &Select, may_make_table: bool) -> Result<()> {
    let Select {
        select_token: _,
        // Comments.
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top: _,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from: _,
        lateral_views: _,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by: _,
        distribute_by,
        sort_by: _,
        having: _,
        named_window: _,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    if let Some(modifiers) = select_modifiers.as_ref().filter(|modifiers| modifiers.is_any_set()) {
        return Err(SqlError::Unsupported(format!("SELECT{modifiers}")));
    }
    projection.iter().try_for_each(item)?;
    if let Some(SelectInto { temporary, unlogged, table: _, name: _ }) = into {
        refuse([
            ("SELECT … INTO TEMPORARY", *temporary),
            ("SELECT … INTO UNLOGGED", *unlogged),
            ("SELECT … INTO within another statement", !may_make_table),
        ])?;
    }
    refuse([
        ("EXCLUDE behind the select list", exclude.is_some()),
        ("PREWHERE", prewhere.is_some()),
        ("CONNECT BY", !connect_by.is_empty()),
        ("DISTRIBUTE BY", !distribute_by.is_empty()),
        ("SELECT AS STRUCT and AS VALUE", value_table_mode.is_some()),
    ])?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    match modifiers.first() {
        None => Ok(()),
        Some(GroupByWithModifier::Rollup) => Err(instead("GROUP BY … WITH ROLLUP", "GROUP BY ROLLUP (…)")),
        Some(GroupByWithModifier::Cube) => Err(instead("GROUP BY … WITH CUBE", "GROUP BY CUBE (…)")),
        Some(GroupByWithModifier::Totals) => Err(SqlError::Unsupported("GROUP BY … WITH TOTALS".into())),
        Some(GroupByWithModifier::GroupingSets(_)) => {
            Err(instead("GROUP BY … GROUPING SETS", "GROUP BY GROUPING SETS (…)"))
        }
    }
}

fn instead(clause: &str, other: &str) -> SqlError {
    SqlError::Unsupported(format!("{clause}; write {other}"))
}

fn item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(_)
        | SelectItem::ExprWithAlias { expr: _, alias: _ }
        | SelectItem::ExprWithAliases { expr: _, aliases: _ } => Ok(()),
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
            let WildcardAdditionalOptions {
                wildcard_token: _,
                opt_ilike,
                opt_exclude: _,
                opt_except: _,
                opt_replace: _,
                opt_rename,
                opt_alias,
            } = options;
            refuse([
                ("* ILIKE", opt_ilike.is_some()),
                ("* RENAME", opt_rename.is_some()),
                ("* AS", opt_alias.is_some()),
            ])
        }
    }
}

pub(super) fn order_key(key: &OrderByExpr) -> Result<()> {
    let OrderByExpr { expr: _, options: OrderByOptions { asc: _, nulls_first: _ }, with_fill } = key;
    refuse([("ORDER BY … WITH FILL", with_fill.is_some())])
}

fn pipe_operator(operator: &PipeOperator) -> Result<()> {
    match operator {
        PipeOperator::Limit { expr: _, offset: _ }
        | PipeOperator::Where { expr: _ }
        | PipeOperator::As { alias: _ } => Ok(()),
        PipeOperator::OrderBy { exprs } => exprs.iter().try_for_each(order_key),
        PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } => exprs.iter().try_for_each(item),
        PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
            let is_ordered = |expr: &ExprWithAliasAndOrderBy| {
                let ExprWithAliasAndOrderBy { expr: ExprWithAlias { expr: _, alias: _ }, order_by } = expr;
                let OrderByOptions { asc, nulls_first } = order_by;
                asc.is_some() || nulls_first.is_some()
            };
            let any_ordered = full_table_exprs.iter().chain(group_by_expr).any(is_ordered);
            refuse([("ASC and DESC in |> AGGREGATE", any_ordered)])
        }
        PipeOperator::Union { set_quantifier: _, queries: _ }
        | PipeOperator::Intersect { set_quantifier: _, queries: _ }
        | PipeOperator::Except { set_quantifier: _, queries: _ } => Ok(()),
        PipeOperator::Join(join) => relations::join(join),
        // The planner refuses these.
        PipeOperator::Set { .. }
        | PipeOperator::Drop { .. }
        | PipeOperator::TableSample { .. }
        | PipeOperator::Rename { .. }
        | PipeOperator::Call { .. }
        | PipeOperator::Pivot { .. }
        | PipeOperator::Unpivot { .. } => Ok(()),
    }
}
