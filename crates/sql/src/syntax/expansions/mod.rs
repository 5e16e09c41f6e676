//! Forms of SQL that stand for longer ones, written out before anything else of a statement is read.
//!
//! Aliases of the same select list ([`aliases`]), names of tables for their rows ([`records`]), `* RENAME`,
//! `* REPLACE` and COLUMNS ([`wildcards`]), PIVOT and UNPIVOT ([`pivots`]), ASOF JOIN ([`asof`]), TABLESAMPLE
//! ([`samples`]), SUMMARIZE ([`summaries`]), UNION BY NAME ([`by_name`]) and names for the first columns of a table
//! ([`column_lists`]) depend on the names of columns. A table's columns are those of the plan of `SELECT * FROM table`,
//! below the WITH clauses around it.
//!
//! Invariant: queries are written out from the inside, so that whatever is planned for its columns holds none of these
//! forms.

mod aliases;
mod asof;
mod by_name;
mod column_lists;
mod literals;
mod members;
mod nested_statements;
mod pivot_tokens;
mod pivots;
mod prefix_aliases;
mod records;
mod samples;
mod summaries;
mod tokens;
mod using_sample;
mod wildcards;

use std::collections::HashSet;
use std::ops::ControlFlow;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, Insert, ObjectName, Query, Select, SetExpr, Statement as SqlStatement, TableAlias, TableFactor,
    TableObject, TableWithJoins, UpdateTableFromKind, VisitorMut, With,
};
use datafusion::sql::sqlparser::tokenizer::TokenWithSpan;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::changes::found_table;
use super::dialect::parser_of;
use super::function_tables;
use super::items::{about_repeated_names, folded, is_about_repeated_names};
use super::names;
use super::orders;
use super::quotes::quoted;
use super::relations::{self, Surroundings};
use crate::error::{Result, SqlError};

use tokens::BY_NAME;
pub(super) use wildcards::share_of;

/// Reads words that sqlparser has no place for as words that it has.
///
/// # Errors
/// As for [`literals::joined`], [`tokens::read_for`] and [`using_sample::as_table_sample`].
pub(super) fn read_for(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    literals::joined(tokens)?;
    using_sample::as_table_sample(tokens)?;
    tokens::read_for(tokens)?;
    pivot_tokens::settle(tokens);
    prefix_aliases::behind_items(tokens);
    nested_statements::as_queries(tokens);
    Ok(())
}

/// Writes out all forms of a statement whose text is `sql`.
///
/// # Errors
/// [`SqlError::Unsupported`] for what is not done of a form, and what is wrong with tables whose columns are asked for.
pub(super) async fn write_out(state: &SessionState, parsed: &mut ParsedStatement, sql: &str) -> Result<()> {
    let (mut passed, mut is_named) = (0, false);
    loop {
        let mut find = Queries { passed, around: is_named.then(Vec::new), ..Queries::default() };
        let ControlFlow::Break(found) = super::visit(parsed, &mut find) else { return Ok(()) };
        let Some(Found { mut query, scopes, outer }) = found else { return Ok(()) };
        if !is_named {
            // Items have the names of what was written.
            names::keep(parsed, sql);
            is_named = true;
            continue;
        }
        in_query(state, &mut query, &scopes, outer).await?;
        // A name that is a column's stays as it is.
        let next = passed + usize::from(has_forms(&query));
        let mut put = Queries { passed, replacement: Some(query), ..Queries::default() };
        let _ = super::visit(parsed, &mut put);
        passed = next;
    }
}

/// Gives an INSERT … BY NAME the columns of its query, and a view all of its columns.
///
/// # Errors
/// What is wrong with the query.
pub(super) async fn name_columns(state: &SessionState, parsed: &mut ParsedStatement) -> Result<()> {
    let (insert, scopes) = match parsed {
        ParsedStatement::Statement(statement) => {
            column_lists::of_view(state, statement).await;
            match inserted(statement) {
                Some(found) => found,
                None => return Ok(()),
            }
        }
        ParsedStatement::Explain(explain) => return Box::pin(name_columns(state, &mut explain.statement)).await,
        _ => return Ok(()),
    };
    let is_mark =
        |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).is_some_and(|it| it.value == BY_NAME);
    if let (true, Some(query)) = (insert.columns.iter().any(is_mark), insert.source.clone()) {
        let columns = columns_of_query(state, query, &scopes).await?;
        let TableObject::TableName(table) = &insert.table else { return Ok(()) };
        let (_, table) = found_table(state, table).await?;
        let schema = table.schema();
        let name = |column: &Column| ObjectName::from(vec![quoted(in_case_of(&schema, &column.name))]);
        insert.columns = columns.iter().map(name).collect();
    }
    Ok(())
}

/// The name of a column; where there is none, that of the only one that is equal but for case.
fn in_case_of<'n>(schema: &'n Schema, name: &'n str) -> &'n str {
    let lower = name.to_lowercase();
    let mut others = schema.fields().iter().map(|field| field.name()).filter(|other| other.to_lowercase() == lower);
    match (schema.index_of(name), others.next(), others.next()) {
        (Err(_), Some(other), None) => other,
        _ => name,
    }
}

/// The INSERT that a statement is, prepares, or has behind WITH, and that WITH.
fn inserted(statement: &mut SqlStatement) -> Option<(&mut Insert, Vec<With>)> {
    match statement {
        SqlStatement::Insert(insert) => Some((insert, Vec::new())),
        SqlStatement::Prepare { statement, .. } => inserted(statement),
        SqlStatement::Query(query) => {
            let with = query.with.clone();
            match query.body.as_mut() {
                SetExpr::Insert(SqlStatement::Insert(insert)) => Some((insert, with.into_iter().collect())),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Queries with forms to be written out, up to one by its number, from the inside.
#[derive(Default)]
struct Queries {
    /// How many are passed over.
    passed: usize,
    surroundings: Surroundings,
    /// Of each query and statement around, innermost last, its tables, and whether it stands in WITH: names end there.
    around: Option<Vec<(Vec<TableWithJoins>, bool)>>,
    /// What takes the place of the query.
    replacement: Option<Box<Query>>,
}

/// A query with forms.
struct Found {
    query: Box<Query>,
    /// The WITH clauses that its tables may name.
    scopes: Vec<With>,
    /// The tables of each query around whose columns it may name.
    outer: Vec<Vec<TableWithJoins>>,
}

impl VisitorMut for Queries {
    /// None where the query is replaced.
    type Break = Option<Found>;

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<Self::Break> {
        if let Some(around) = &mut self.around {
            around.push((changed(statement), false));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_statement(&mut self, _statement: &mut SqlStatement) -> ControlFlow<Self::Break> {
        if let Some(around) = &mut self.around {
            around.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(around) = &mut self.around {
            let tables = selects(&mut query.body).into_iter().flat_map(|select| select.from.clone()).collect();
            around.push((tables, self.surroundings.is_in_with()));
        }
        self.surroundings.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if has_forms(query) {
            if self.passed == 0 {
                return ControlFlow::Break(match self.replacement.take() {
                    Some(replacement) => {
                        *query = *replacement;
                        None
                    }
                    None => Some(Found {
                        query: Box::new(query.clone()),
                        scopes: self.surroundings.scopes(),
                        outer: self.around.take().map(outer).unwrap_or_default(),
                    }),
                });
            }
            self.passed -= 1;
        }
        if let Some(around) = &mut self.around {
            around.pop();
        }
        self.surroundings.leave();
        ControlFlow::Continue(())
    }
}

/// The tables whose columns the expressions of a statement that changes one may name.
fn changed(statement: &SqlStatement) -> Vec<TableWithJoins> {
    match statement {
        SqlStatement::Update(update) => {
            let from = match &update.from {
                Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from.as_slice(),
                None => &[],
            };
            std::iter::once(&update.table).chain(from).cloned().collect()
        }
        SqlStatement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            from.iter().chain(delete.using.iter().flatten()).cloned().collect()
        }
        SqlStatement::Merge(merge) => {
            let alone = |relation: &TableFactor| TableWithJoins { relation: relation.clone(), joins: Vec::new() };
            [&merge.table, &merge.source].map(alone).into()
        }
        _ => Vec::new(),
    }
}

/// The tables around a query, which is the last one.
fn outer(around: Vec<(Vec<TableWithJoins>, bool)>) -> Vec<Vec<TableWithJoins>> {
    let mut outer = Vec::new();
    let mut is_last = false;
    for (number, (tables, is_in_with)) in around.into_iter().rev().enumerate() {
        if is_last {
            break;
        }
        if number > 0 {
            outer.push(tables);
        }
        is_last = is_in_with;
    }
    outer
}

/// Whether a query's own SELECTs have forms to be written out, or its order is by columns that its text does not tell.
fn has_forms(query: &Query) -> bool {
    column_lists::with_may_lack(query)
        || orders::is_of_unknown(query)
        || wildcards::ranks_wildcards(query)
        || records::order(query)
        || in_body(&query.body)
}

fn in_body(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => {
            select.from.iter().any(in_tables)
                || wildcards::are_in(select)
                || records::are_in(select)
                || aliases::are_in(select)
        }
        SetExpr::SetOperation { left, right, .. } => by_name::is_one(body) || in_body(left) || in_body(right),
        _ => false,
    }
}

fn in_tables(tables: &TableWithJoins) -> bool {
    is_form(&tables.relation) || tables.joins.iter().any(|join| join.global || is_form(&join.relation))
}

fn is_form(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => true,
        TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => true,
        TableFactor::NestedJoin { table_with_joins, .. } => in_tables(table_with_joins),
        other => column_lists::may_lack(other) || summaries::told_of(other).is_some(),
    }
}

async fn in_query(
    state: &SessionState,
    query: &mut Query,
    scopes: &[With],
    outer: Vec<Vec<TableWithJoins>>,
) -> Result<()> {
    if let SetExpr::Select(select) = query.body.as_ref()
        && let [TableWithJoins { relation, .. }] = select.from.as_slice()
        && let Some((told_of, has_facts)) = summaries::told_of(relation)
    {
        *query = summaries::of_query(state, told_of.clone(), has_facts, scopes).await?;
        return Ok(());
    }
    let mut completed = None;
    if column_lists::with_may_lack(query) {
        // The last one is the query's own.
        let around = scopes.split_last().map_or(scopes, |(_, around)| around);
        column_lists::of_with(state, query, around).await;
        completed = Some(around.iter().cloned().chain(query.with.clone()).collect::<Vec<_>>());
    }
    let scopes = completed.as_deref().unwrap_or(scopes);
    let mut hidden = Vec::new();
    for select in selects(&mut query.body) {
        for tables in &mut select.from {
            of_tables(state, tables, scopes, &mut hidden).await?;
        }
    }
    asof::call_hidden(query, &hidden)?;
    let has_aliases = selects(&mut query.body).into_iter().any(|select| aliases::are_in(select));
    let (mut names, mut outer_tables) = (HashSet::new(), HashSet::new());
    for tables in outer.into_iter().filter(|_| has_aliases) {
        outer_tables.extend(aliases::tables_of(&tables));
        // Tables around that stand beside the query, which is no part of their expressions, have no plan yet.
        let columns = columns_of(state, tables, scopes).await.unwrap_or_default();
        names.extend(columns.into_iter().map(|column| column.name));
    }
    if records::order(query) {
        let from = selects(&mut query.body).into_iter().flat_map(|select| select.from.clone()).collect();
        if let Ok(columns) = columns_beside(state, from, scopes).await {
            let names = columns.into_iter().map(|column| column.name).collect();
            records::spread_order(state, query, &names, scopes).await;
        }
    }
    let ranks_wildcards = wildcards::ranks_wildcards(query);
    for select in selects(&mut query.body) {
        let has_wildcards = ranks_wildcards || wildcards::are_in(select);
        if !has_wildcards && !records::are_in(select) && !aliases::are_in(select) {
            continue;
        }
        let columns = match has_wildcards {
            true => columns_of(state, select.from.clone(), scopes).await,
            false => columns_beside(state, select.from.clone(), scopes).await,
        };
        if has_wildcards {
            match &columns {
                Ok(columns) => {
                    wildcards::name_by_lambdas(state, select, columns).await?;
                    wildcards::write_out(select, columns, ranks_wildcards)?;
                }
                Err(_) => return columns.map(drop),
            }
        }
        // A table that reads columns of a query around has none that are known here.
        if let Ok(columns) = columns {
            let series = function_tables::calls_own_value(select).then(|| function_tables::VALUE.to_string());
            // A column comes before an alias in any case.
            let own = columns.into_iter().flat_map(|column| [column.name.to_lowercase(), column.name]);
            let known = own.chain(names.iter().cloned()).chain(series).collect();
            records::write_out(state, select, &known, scopes).await;
            aliases::write_out(state, select, &known, &outer_tables)?;
        }
    }
    by_name::settle(state, &mut query.body, scopes).await?;
    if orders::is_of_unknown(query) {
        let columns = columns_of_query(state, Box::new(orders::to_be_counted(query)), scopes).await?;
        orders::by_all(query, columns.len());
    }
    Ok(())
}

/// The SELECTs of a query; queries in parentheses have their own.
fn selects(body: &mut SetExpr) -> Vec<&mut Select> {
    match body {
        SetExpr::Select(select) => vec![select.as_mut()],
        SetExpr::SetOperation { left, right, .. } => {
            let mut found = selects(left);
            found.extend(selects(right));
            found
        }
        _ => Vec::new(),
    }
}

/// Writes out the forms of tables that are joined; those that `*` does not list are added to `hidden`.
fn of_tables<'a>(
    state: &'a SessionState,
    tables: &'a mut TableWithJoins,
    scopes: &'a [With],
    hidden: &'a mut Vec<asof::Hidden>,
) -> BoxFuture<'a, Result<()>> {
    async move {
        of_factor(state, &mut tables.relation, scopes, hidden).await?;
        let mut place = 0;
        while place < tables.joins.len() {
            of_factor(state, &mut tables.joins[place].relation, scopes, hidden).await?;
            if tables.joins[place].global {
                let left = TableWithJoins { relation: tables.relation.clone(), joins: tables.joins[..place].to_vec() };
                if let Some(before) = asof::of_join(state, left, &mut tables.joins[place], scopes, hidden).await? {
                    tables.joins.insert(place, before);
                    place += 1;
                }
            }
            place += 1;
        }
        Ok(())
    }
    .boxed()
}

fn of_factor<'a>(
    state: &'a SessionState,
    factor: &'a mut TableFactor,
    scopes: &'a [With],
    hidden: &'a mut Vec<asof::Hidden>,
) -> BoxFuture<'a, Result<()>> {
    async move {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => {
                of_tables(state, table_with_joins, scopes, hidden).await?
            }
            TableFactor::Pivot { table, .. } => {
                of_factor(state, table, scopes, hidden).await?;
                *factor = pivots::pivot(state, factor.clone(), scopes).await?;
            }
            TableFactor::Unpivot { table, .. } => {
                of_factor(state, table, scopes, hidden).await?;
                *factor = pivots::unpivot(state, factor.clone(), scopes).await?;
            }
            TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. } => {
                if let Some(sample) = sample.take() {
                    *factor = samples::of_table(state, factor.clone(), sample, scopes).await?;
                }
            }
            _ => {}
        }
        if column_lists::may_lack(factor) {
            column_lists::of_table(state, factor, scopes).await;
        }
        Ok(())
    }
    .boxed()
}

/// A column of a table.
struct Column {
    table: Option<TableReference>,
    name: String,
    data_type: DataType,
}

impl Column {
    /// Its name, with that of its table where another column has the name too.
    ///
    /// # Errors
    /// [`SqlError::Planning`] where its table has no name.
    fn called(&self, columns: &[Column]) -> Result<Expr> {
        let name = quoted(&self.name);
        if columns.iter().filter(|column| column.name == self.name).count() == 1 {
            return Ok(Expr::Identifier(name));
        }
        self.of_table().ok_or_else(|| SqlError::Planning(format!("column '{}' is that of several tables", self.name)))
    }

    /// Its name behind that of its table.
    fn of_table(&self) -> Option<Expr> {
        let table = self.table.as_ref()?;
        let parts = [table.catalog(), table.schema(), Some(table.table()), Some(self.name.as_str())];
        Some(Expr::CompoundIdentifier(parts.into_iter().flatten().map(quoted).collect()))
    }
}

/// The columns of tables that are joined.
async fn columns_of(state: &SessionState, tables: Vec<TableWithJoins>, scopes: &[With]) -> Result<Vec<Column>> {
    let mut tables = tables.into_iter();
    let Some(first) = tables.next() else { return Ok(Vec::new()) };
    let mut query = relations::all_of(first)?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from.extend(tables);
    }
    columns_of_query(state, query, scopes).await
}

/// The columns of tables that are joined, whose conditions may have rows by the names of tables: without these.
async fn columns_beside(state: &SessionState, tables: Vec<TableWithJoins>, scopes: &[With]) -> Result<Vec<Column>> {
    let known = columns_of(state, tables.clone(), scopes).await;
    if known.is_ok() || tables.iter().all(|from| from.joins.is_empty()) {
        return known;
    }
    let alone = |relation: TableFactor| TableWithJoins { relation, joins: Vec::new() };
    let apart = tables.into_iter().flat_map(|from| {
        std::iter::once(from.relation).chain(from.joins.into_iter().map(|join| join.relation)).map(alone)
    });
    columns_of(state, apart.collect(), scopes).await
}

async fn columns_of_factor(state: &SessionState, table: &TableFactor, scopes: &[With]) -> Result<Vec<Column>> {
    columns_of(state, vec![TableWithJoins { relation: table.clone(), joins: Vec::new() }], scopes).await
}

async fn columns_of_query(state: &SessionState, query: Box<Query>, scopes: &[With]) -> Result<Vec<Column>> {
    let plan = plan_of_query(state, query, scopes).await?;
    let column = |(table, field): (Option<&TableReference>, &FieldRef)| Column {
        table: table.cloned(),
        name: field.name().clone(),
        data_type: field.data_type().clone(),
    };
    Ok(plan.schema().iter().map(column).collect())
}

async fn plan_of_query(state: &SessionState, query: Box<Query>, scopes: &[With]) -> Result<LogicalPlan> {
    let planned = state.statement_to_plan(settled(state, query, scopes).await?).await;
    planned.map_err(|error| match is_about_repeated_names(&error) {
        true => about_repeated_names(error),
        false => error.into(),
    })
}

/// The texts of a query's only column, which is run now; none of NULLs.
async fn texts_of(state: &SessionState, query: Box<Query>, scopes: &[With]) -> Result<Vec<String>> {
    let plan = state.statement_to_plan(settled(state, query, scopes).await?).await?;
    let plan = state.create_physical_plan(&plan).await?;
    let mut found = Vec::new();
    for batch in collect(plan, state.task_ctx()).await? {
        let texts = cast(batch.column(0), &DataType::Utf8).map_err(|error| SqlError::Internal(error.to_string()))?;
        found.extend(texts.as_string::<i32>().iter().flatten().map(str::to_string));
    }
    Ok(found)
}

/// A query below the WITH clauses around it, as it is planned.
async fn settled(state: &SessionState, mut query: Box<Query>, scopes: &[With]) -> Result<ParsedStatement> {
    for with in scopes.iter().rev() {
        query = relations::below(with.clone(), query);
    }
    let statement = ParsedStatement::Statement(Box::new(SqlStatement::Query(query)));
    Ok(Box::pin(super::settled(state, statement, "")).await?.0)
}

/// A query by its text.
fn query_of(text: &str) -> Result<Box<Query>> {
    let parsed = parser_of(text).and_then(|mut parser| parser.parse_query());
    parsed.map_err(|error| SqlError::Internal(format!("{error} in {text}")))
}

/// A condition by its text.
pub(super) fn condition_of(text: &str) -> Result<Expr> {
    let parsed = parser_of(text).and_then(|mut parser| parser.parse_expr());
    parsed.map_err(|error| SqlError::Internal(format!("{error} in {text}")))
}

/// `(query) AS name`.
pub(super) fn subquery(lateral: bool, query: Box<Query>, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Derived { lateral, subquery: query, alias, sample: None }
}

pub(super) fn alias(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: quoted(name), columns: Vec::new(), at: None }
}

/// The last part of a table's name.
fn name_of(table: &TableFactor) -> Option<String> {
    relations::name_of(table)?.last().map(folded)
}

/// Names in quotes, one behind the other.
fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| quoted(name).to_string()).collect::<Vec<_>>().join(", ")
}
