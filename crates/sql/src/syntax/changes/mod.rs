//! Statements that change tables, as INSERT of what a SELECT gives.
//!
//! `DELETE FROM m WHERE p` becomes `INSERT INTO ⟨rows out of m⟩ SELECT m.⟨row⟩ FROM ⟨rows of m⟩ AS m WHERE p`, with the
//! hidden names of [`Role`]; UPDATE and MERGE insert rows with what becomes of them into `⟨changes of m⟩`. So WHERE,
//! FROM and USING take whatever SELECT takes, values are cast as those of INSERT are, and nothing changes before the
//! plan is executed. DataFusion 55.2 reads the filters of DELETE and UPDATE back from the optimised plan, and changes
//! its tables while it makes operators.
//!
//! Invariant: each field of a statement is read here or refused by name.

mod inserts;
mod merges;
mod parts;
mod returning;
mod upserts;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, ObjectName, Query, SelectItem, SetExpr,
    Statement as SqlStatement, TableFactor, TableObject, TableWithJoins, Truncate, TruncateTableTarget, Update,
    UpdateTableFromKind,
};

use super::rows;
use crate::error::{Result, SqlError};
use crate::memory_table::Action;
use parts::{Target, aliased, is_default, number};
pub(crate) use parts::{column_name, found_table};
pub(super) use returning::take as take_returning;
use upserts::Conflict;

/// Rewrites a statement that changes a table, below EXPLAIN and PREPARE too; gives whether joins of it merge columns.
pub(super) async fn rewrite(state: &SessionState, parsed: &mut ParsedStatement) -> Result<bool> {
    match parsed {
        ParsedStatement::Statement(statement) => Box::pin(of_statement(state, statement)).await,
        ParsedStatement::Explain(explain) => Box::pin(rewrite(state, &mut explain.statement)).await,
        _ => Ok(false),
    }
}

async fn of_statement(state: &SessionState, statement: &mut SqlStatement) -> Result<bool> {
    let rewritten = match statement {
        SqlStatement::Prepare { statement, .. } => return Box::pin(of_statement(state, statement)).await,
        SqlStatement::Query(query) => {
            let Some(with_tables) = changing(query)? else { return Ok(false) };
            *statement = with_tables;
            let SqlStatement::Query(query) = statement else { return Ok(false) };
            let (SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) | SetExpr::Merge(inner)) =
                query.body.as_mut()
            else {
                return Ok(false);
            };
            let merges = Box::pin(of_statement(state, inner)).await?;
            let mut inner = std::mem::replace(inner, SqlStatement::ShowFunctions { filter: None });
            if let (SqlStatement::Insert(insert), Some(mut with)) = (&mut inner, query.with.take())
                && let Some(source) = &mut insert.source
            {
                with.cte_tables.extend(source.with.take().into_iter().flat_map(|with| with.cte_tables));
                source.with = Some(with);
            }
            *statement = inner;
            return Ok(merges);
        }
        SqlStatement::Insert(insert) => {
            let conflict = Conflict::take(insert)?;
            inserts::complete(state, insert).await?;
            match conflict {
                Some(conflict) => match conflict.merge(state, insert).await? {
                    Some(merge) => merges::of_merge(state, merge).await?,
                    None => return Ok(false),
                },
                None => return Ok(false),
            }
        }
        SqlStatement::Delete(delete) => of_delete(state, delete.clone()).await?,
        SqlStatement::Update(update) => of_update(state, update.clone()).await?,
        SqlStatement::Truncate(truncate) => of_truncate(state, truncate.clone()).await?,
        SqlStatement::Merge(merge) => merges::of_merge(state, merge.clone()).await?,
        _ => return Ok(false),
    };
    let (rewritten, merges) = rewritten;
    *statement = rewritten;
    Ok(merges)
}

/// A statement with WITH in front, if it changes a table.
fn changing(query: &Query) -> Result<Option<SqlStatement>> {
    if !matches!(query.body.as_ref(), SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
    {
        return Ok(None);
    }
    let Query {
        with: _,
        body: _,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    let is_bare = order_by.is_none()
        && limit_clause.is_none()
        && fetch.is_none()
        && locks.is_empty()
        && for_clause.is_none()
        && settings.is_none()
        && format_clause.is_none()
        && pipe_operators.is_empty();
    match is_bare {
        true => Ok(Some(SqlStatement::Query(Box::new(query.clone())))),
        false => Err(SqlError::Unsupported(
            "ORDER BY, LIMIT and other clauses of a query after a statement that changes a table".into(),
        )),
    }
}

/// Refuses the first clause of a statement that is there.
fn refuse(statement: &str, clauses: &[(&str, bool)]) -> Result<()> {
    match clauses.iter().find(|(_, is_there)| *is_there) {
        Some((clause, _)) => Err(SqlError::Unsupported(format!("{clause} in {statement}"))),
        None => Ok(()),
    }
}

/// `INSERT INTO table source`.
fn insert_into(table: ObjectName, source: Box<Query>) -> SqlStatement {
    SqlStatement::Insert(Insert {
        insert_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        or: None,
        ignore: false,
        into: true,
        table: TableObject::TableName(table),
        table_alias: None,
        columns: Vec::new(),
        overwrite: false,
        source: Some(source),
        assignments: Vec::new(),
        partitioned: None,
        after_columns: Vec::new(),
        has_table_keyword: false,
        on: None,
        returning: None,
        output: None,
        replace_into: false,
        priority: None,
        insert_alias: None,
        settings: None,
        format_clause: None,
        multi_table_insert_type: None,
        multi_table_into_clauses: Vec::new(),
        multi_table_when_clauses: Vec::new(),
        multi_table_else_clause: None,
    })
}

async fn of_delete(state: &SessionState, delete: Delete) -> Result<(SqlStatement, bool)> {
    let Delete {
        delete_token: _,
        optimizer_hints,
        tables,
        from,
        using,
        selection,
        returning,
        output,
        // MySQL's.
        order_by,
        limit,
    } = delete;
    refuse(
        "DELETE",
        &[
            ("hints", !optimizer_hints.is_empty()),
            ("tables before FROM", !tables.is_empty()),
            ("RETURNING", returning.is_some()),
            ("OUTPUT", output.is_some()),
            ("ORDER BY", !order_by.is_empty()),
            ("LIMIT", limit.is_some()),
        ],
    )?;
    let (FromTable::WithFromKeyword(mut from) | FromTable::WithoutKeyword(mut from)) = from;
    let (Some(TableWithJoins { relation, joins }), true) = (from.pop(), from.is_empty()) else {
        return Err(SqlError::Unsupported("DELETE FROM several tables; name one there and the others in USING".into()));
    };
    refuse("DELETE", &[("JOIN, which USING takes,", !joins.is_empty())])?;
    let target = Target::of(state, relation, "DELETE FROM").await?;
    let mut tables = vec![TableWithJoins { relation: target.rows(), joins: Vec::new() }];
    tables.extend(using.unwrap_or_default());
    let items = vec![SelectItem::UnnamedExpr(target.row())];
    let (source, merges) = parts::select(items, tables, selection)?;
    let mut statement = insert_into(target.deleted(), source);
    target.unqualify(&mut statement);
    Ok((statement, merges))
}

async fn of_truncate(state: &SessionState, truncate: Truncate) -> Result<(SqlStatement, bool)> {
    let Truncate { table_names, partitions, table: _, if_exists, identity, cascade, on_cluster } = truncate;
    refuse(
        "TRUNCATE",
        &[
            ("several tables", table_names.len() != 1),
            ("PARTITION", partitions.is_some()),
            ("IF EXISTS", if_exists),
            ("IDENTITY", identity.is_some()),
            ("CASCADE or RESTRICT", cascade.is_some()),
            ("ON CLUSTER", on_cluster.is_some()),
        ],
    )?;
    let Some(TruncateTableTarget { name, only, has_asterisk }) = table_names.into_iter().next() else {
        return Err(SqlError::Syntax("TRUNCATE of no table".into()));
    };
    refuse("TRUNCATE", &[("ONLY", only), ("*", has_asterisk)])?;
    let target = Target::of(state, parts::table(name, None), "TRUNCATE").await?;
    let tables = vec![TableWithJoins { relation: target.rows(), joins: Vec::new() }];
    let (source, merges) = parts::select(vec![SelectItem::UnnamedExpr(target.row())], tables, None)?;
    Ok((insert_into(target.deleted(), source), merges))
}

async fn of_update(state: &SessionState, update: Update) -> Result<(SqlStatement, bool)> {
    let Update {
        update_token: _,
        optimizer_hints,
        table,
        assignments,
        from,
        selection,
        returning,
        output,
        or,
        order_by,
        limit,
    } = update;
    let is_before_set = matches!(from, Some(UpdateTableFromKind::BeforeSet(_)));
    refuse(
        "UPDATE",
        &[
            ("hints", !optimizer_hints.is_empty()),
            ("FROM before SET", is_before_set),
            ("RETURNING", returning.is_some()),
            ("OUTPUT", output.is_some()),
            ("OR", or.is_some()),
            ("ORDER BY", !order_by.is_empty()),
            ("LIMIT", limit.is_some()),
        ],
    )?;
    let TableWithJoins { relation, joins } = table;
    if let Some(join) = joins.iter().find(|join| parts::adds_rows(&join.join_operator)) {
        return Err(SqlError::Unsupported(format!(
            "'{join}' in UPDATE, which gives rows that are not in the table; use an inner join"
        )));
    }
    let target = Target::of(state, relation, "UPDATE").await?;
    let values = assigned(&target, assignments)?;
    let mut tables = vec![TableWithJoins { relation: target.rows(), joins }];
    if let Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) = from {
        tables.extend(from);
    }
    let mut items = vec![SelectItem::UnnamedExpr(target.row()), aliased(number(Action::Update as i64), "action")];
    for (column, value) in target.columns().iter().zip(values) {
        items.push(aliased(value.unwrap_or_else(|| target.column(column)), column));
    }
    let (source, merges) = parts::select(items, tables, selection)?;
    let mut statement = insert_into(target.changed(), source);
    target.unqualify(&mut statement);
    Ok((statement, merges))
}

/// The values of assignments by the table's columns.
fn assigned(target: &Target, assignments: Vec<Assignment>) -> Result<Vec<Option<Expr>>> {
    let mut values = vec![None; target.columns().len()];
    let mut assign = |name: &ObjectName, value: Expr| -> Result<()> {
        let column = target.column_number(name)?;
        let value = if is_default(&value) { target.default_of(column) } else { value };
        match values[column].replace(value) {
            None => Ok(()),
            Some(_) => Err(SqlError::Planning(format!("column '{name}' is set twice"))),
        }
    };
    for Assignment { target, value } in assignments {
        match (target, value) {
            (AssignmentTarget::ColumnName(name), value) => assign(&name, value)?,
            (AssignmentTarget::Tuple(names), Expr::Subquery(query)) => {
                for (place, name) in names.iter().enumerate() {
                    assign(name, parts::member_of_row(&query, names.len(), place)?)?;
                }
            }
            (AssignmentTarget::Tuple(names), value) => {
                let row = rows::components(&value);
                let values = match value {
                    Expr::Nested(value) if names.len() == 1 && row.is_none() => vec![*value],
                    value => row.filter(|row| row.len() == names.len()).ok_or_else(|| {
                        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                        SqlError::Unsupported(format!("SET ({}) = {value}", names.join(", ")))
                    })?,
                };
                names.iter().zip(values).try_for_each(|(name, value)| assign(name, value))?;
            }
        }
    }
    Ok(values)
}

/// The table of a name alone.
fn named(factor: &TableFactor) -> Option<&ObjectName> {
    match factor {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}
