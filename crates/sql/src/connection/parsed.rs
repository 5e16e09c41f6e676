//! What a connection asks of a parsed statement: its plan, and what it names.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{ObjectNamePart, Statement as SqlStatement};

use super::{Connection, inserted};
use crate::error::{Result, SqlError};
use crate::rewrite::rewrite;
use crate::syntax::{self, Again};

impl Connection {
    /// The logical plan of a query, as it is before it is optimised.
    pub(super) async fn planned(&self, sql: &str) -> Result<LogicalPlan> {
        match planned(&self.state(), sql).await? {
            (plan, None) => Ok(plan),
            (_, Some(_)) => Err(syntax::no_returning()),
        }
    }
}

/// The plan of a text, with names in the case that tables have them in, and the SELECT that its RETURNING is.
pub(super) async fn planned(state: &SessionState, sql: &str) -> Result<(LogicalPlan, Option<ParsedStatement>)> {
    let mut again: Option<Again> = None;
    loop {
        let reading = again.as_ref().map_or(state, |again| &again.state);
        match Box::pin(planned_with(reading, sql)).await {
            Ok(planned) => return Ok(planned),
            Err(error) => again = Some(syntax::again(state, sql, again.take(), error).await?),
        }
    }
}

async fn planned_with(state: &SessionState, sql: &str) -> Result<(LogicalPlan, Option<ParsedStatement>)> {
    let (parsed, returning) = syntax::parse_returning(state, sql).await?;
    check_view(state, &parsed)?;
    Ok((plan_parsed(state, rewrite(parsed)?).await?, returning))
}

/// The plan of a statement; columns of one name are told apart where the planner refuses them.
pub(super) async fn plan_parsed(state: &SessionState, mut parsed: ParsedStatement) -> Result<LogicalPlan> {
    let error = match inserted::plan(state, parsed.clone()).await {
        Err(error) if syntax::is_about_repeated_names(&error) => error,
        planned => return Ok(planned?),
    };
    let told_apart = match syntax::distinguish(&mut parsed) {
        true => Some(inserted::plan(state, parsed.clone()).await),
        false => None,
    };
    let plan = match told_apart {
        Some(Ok(plan)) => plan,
        told_apart => match syntax::distinguish_wildcards(state, &mut parsed).await? {
            true => inserted::plan(state, parsed).await.map_err(|other| syntax::in_own_names(other, error))?,
            false => {
                return Err(match told_apart {
                    Some(Err(other)) => syntax::in_own_names(other, error),
                    _ => syntax::about_repeated_names(error),
                });
            }
        },
    };
    syntax::check_made(&plan)?;
    Ok(plan)
}

/// Tables by their full names, each once: a name alone is one of the state's default schema.
pub(super) fn resolved(tables: impl Iterator<Item = TableReference>, state: &SessionState) -> Arc<[TableReference]> {
    let names = &state.config_options().catalog;
    let full: BTreeSet<_> = tables.map(|table| table.resolve(&names.default_catalog, &names.default_schema)).collect();
    full.into_iter().map(TableReference::from).collect()
}

/// Refuses a view over itself: it would be planned from its text, and so for ever.
pub(super) fn check_view(state: &SessionState, parsed: &ParsedStatement) -> Result<()> {
    let ParsedStatement::Statement(statement) = parsed else { return Ok(()) };
    let SqlStatement::CreateView(view) = statement.as_ref() else { return Ok(()) };
    let name = view.name.to_string();
    let names = &state.config_options().catalog;
    let resolve = |table: TableReference| table.resolve(&names.default_catalog, &names.default_schema);
    let own = resolve(TableReference::parse_str(&name));
    let query = ParsedStatement::Statement(Box::new(SqlStatement::Query(view.query.clone())));
    let mut sources = state.resolve_table_references(&query)?.into_iter();
    if sources.any(|source| resolve(source) == own) { Err(SqlError::RecursiveView(name)) } else { Ok(()) }
}

/// Whether a `PREPARE` says of what types its parameters are.
pub(super) fn declares_types(parsed: &ParsedStatement) -> bool {
    let ParsedStatement::Statement(statement) = parsed else { return false };
    matches!(statement.as_ref(), SqlStatement::Prepare { data_types, .. } if !data_types.is_empty())
}

/// Whether a `DEALLOCATE` is of all prepared statements.
pub(super) fn deallocates_all(parsed: &ParsedStatement) -> bool {
    let ParsedStatement::Statement(statement) = parsed else { return false };
    let SqlStatement::Deallocate { name, prepare: _ } = statement.as_ref() else { return false };
    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all")
}

/// The name of the prepared statement that an `EXECUTE` names.
pub(super) fn executed(parsed: &ParsedStatement) -> Option<String> {
    let ParsedStatement::Statement(statement) = parsed else { return None };
    let SqlStatement::Execute { name: Some(name), .. } = statement.as_ref() else { return None };
    // As the planner writes it.
    let part = |part: &ObjectNamePart| match part.as_ident() {
        Some(ident) if ident.quote_style.is_some() => ident.value.clone(),
        Some(ident) => ident.value.to_ascii_lowercase(),
        None => part.to_string(),
    };
    Some(name.0.iter().map(part).collect::<Vec<_>>().join("."))
}
