//! The tables of a FROM whose joins merge columns, and the names of their columns.
//!
//! A name may be that of a common table expression, so that each table is planned below the WITH clauses around it.
//! Invariant: tables are found in the order in which [`super::merged`] rewrites them.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    Statement as SqlStatement, TableAlias, TableFactor, TableWithJoins, VisitorMut, With,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{Result, SqlError};

/// The tables of one query whose joins merge columns.
pub(super) struct Relations {
    pub(super) factors: Vec<TableFactor>,
    /// The common table expressions that they may name, outermost first.
    pub(super) scopes: Vec<With>,
}

/// The names of each table's columns, where they are known.
pub(super) struct Columns {
    tables: Vec<Option<Vec<String>>>,
    given: usize,
}

impl Columns {
    /// The number of the next table, from 1, and the names of its columns.
    pub(super) fn take(&mut self) -> (usize, Option<Vec<String>>) {
        self.given += 1;
        (self.given, self.tables.get_mut(self.given - 1).and_then(Option::take))
    }
}

impl Relations {
    /// Those of the innermost query, the first of several, that has such joins.
    pub(super) fn first(parsed: &mut ParsedStatement) -> Option<Relations> {
        match super::visit(parsed, &mut Find::default()) {
            ControlFlow::Break(relations) => Some(relations),
            ControlFlow::Continue(()) => None,
        }
    }

    /// The names of all columns; a table that reads columns of its neighbours has none that are known.
    pub(super) async fn columns(self, state: &SessionState) -> Result<Columns> {
        let mut tables = Vec::new();
        for factor in self.factors {
            let mut query = all_of(TableWithJoins { relation: factor, joins: Vec::new() })?;
            for with in self.scopes.iter().rev() {
                query = below(with.clone(), query);
            }
            let statement = ParsedStatement::Statement(Box::new(SqlStatement::Query(query)));
            // Planning the statement gives the error of a table.
            let plan = state.statement_to_plan(statement).await.ok();
            tables.push(plan.map(|plan| plan.schema().fields().iter().map(|field| field.name().clone()).collect()));
        }
        Ok(Columns { tables, given: 0 })
    }
}

/// Whether a query's own joins merge columns; those of queries in parentheses are theirs.
pub(super) fn in_body(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => in_select(select),
        SetExpr::SetOperation { left, right, .. } => in_body(left) || in_body(right),
        _ => false,
    }
}

/// Whether joins of a SELECT merge columns.
pub(super) fn in_select(select: &Select) -> bool {
    select.from.iter().any(in_tables)
}

fn in_tables(table: &TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => in_tables(table_with_joins),
        _ => false,
    };
    nested(&table.relation) || table.joins.iter().any(|join| merges(&join.join_operator) || nested(&join.relation))
}

/// Whether a join merges columns in a way that is known here.
pub(super) fn merges(operator: &JoinOperator) -> bool {
    matches!(constraint(operator), Some(JoinConstraint::Using(_) | JoinConstraint::Natural))
}

/// The columns that a join merges by USING.
pub(super) fn using(operator: &JoinOperator) -> &[ObjectName] {
    match constraint(operator) {
        Some(JoinConstraint::Using(names)) => names,
        _ => &[],
    }
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::*;
    match operator {
        Join(constraint)
        | Inner(constraint)
        | Left(constraint)
        | LeftOuter(constraint)
        | Right(constraint)
        | RightOuter(constraint)
        | FullOuter(constraint)
        | LeftSemi(constraint)
        | LeftAnti(constraint)
        | RightSemi(constraint)
        | RightAnti(constraint) => Some(constraint),
        _ => None,
    }
}

/// `SELECT * FROM table`.
pub(super) fn all_of(table: TableWithJoins) -> Result<Box<Query>> {
    select(|select| select.from.push(table))
}

/// `SELECT items`, of no table.
pub(super) fn of_items(items: Vec<SelectItem>) -> Result<Box<Query>> {
    select(|select| select.projection = items)
}

/// `SELECT *`, changed.
fn select(change: impl FnOnce(&mut Select)) -> Result<Box<Query>> {
    let parser = Parser::new(&GenericDialect {}).try_with_sql("SELECT *");
    let parsed = parser.and_then(|mut parser| parser.parse_query());
    let mut query = parsed.map_err(|error| SqlError::Internal(error.to_string()))?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        change(select);
    }
    Ok(query)
}

/// `WITH … (query)`.
pub(super) fn below(with: With, query: Box<Query>) -> Box<Query> {
    let mut outer = query.clone();
    *outer.body = SetExpr::Query(query);
    outer.with = Some(with);
    outer
}

/// Shows each table that a FROM joins, those of joins in parentheses too.
pub(super) fn each_factor(table: &TableWithJoins, found: &mut dyn FnMut(&TableFactor)) {
    for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => each_factor(table_with_joins, found),
            other => found(other),
        }
    }
}

/// The name by which columns of a table are called.
pub(super) fn name_of(table: &TableFactor) -> Option<Vec<Ident>> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(vec![alias.name.clone()]),
        TableFactor::Table { name, alias: None, args: None, .. } => parts(name),
        _ => None,
    }
}

/// Where the name of a table without one is put.
pub(super) fn alias_of(table: &mut TableFactor) -> Option<&mut Option<TableAlias>> {
    match table {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => Some(alias),
        _ => None,
    }
}

pub(super) fn parts(name: &ObjectName) -> Option<Vec<Ident>> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => Some(name.clone()),
        ObjectNamePart::Function(_) => None,
    };
    name.0.iter().map(part).collect()
}

/// The queries around the node that is visited, innermost last.
#[derive(Default)]
pub(super) struct Surroundings {
    queries: Vec<Around>,
}

impl Surroundings {
    pub(super) fn enter(&mut self, query: &Query) {
        self.queries.push(Around { with: query.with.clone(), visited: 0 });
    }

    pub(super) fn leave(&mut self) {
        self.queries.pop();
        if let Some(around) = self.queries.last_mut()
            && around.visited < around.expressions()
        {
            around.visited += 1;
        }
    }

    /// Whether what is visited next is a query of WITH.
    pub(super) fn is_in_with(&self) -> bool {
        self.queries.last().is_some_and(|around| around.visited < around.expressions())
    }

    /// The WITH clauses that what is visited may name.
    pub(super) fn scopes(&self) -> Vec<With> {
        self.queries.iter().filter_map(Around::visible).collect()
    }

    /// The same around the query that is visited.
    pub(super) fn scopes_around(&self) -> Vec<With> {
        self.queries.iter().rev().skip(1).rev().filter_map(Around::visible).collect()
    }

    /// Whether the query that is visited stands in another one, and may not name itself.
    pub(super) fn are_around_subquery(&self) -> bool {
        let around = self.queries.iter().rev().nth(1);
        around.is_some_and(|around| {
            let is_expression = around.visited < around.expressions();
            !(is_expression && around.with.as_ref().is_some_and(|with| with.recursive))
        })
    }
}

/// A query, and how many of its common table expressions have been visited.
struct Around {
    with: Option<With>,
    visited: usize,
}

impl Around {
    fn expressions(&self) -> usize {
        self.with.as_ref().map_or(0, |with| with.cte_tables.len())
    }

    /// The common table expressions that what is visited may name.
    fn visible(&self) -> Option<With> {
        let mut with = self.with.clone()?;
        with.cte_tables.truncate(self.visited + usize::from(with.recursive));
        (!with.cte_tables.is_empty()).then_some(with)
    }
}

#[derive(Default)]
struct Find {
    surroundings: Surroundings,
}

impl VisitorMut for Find {
    type Break = Relations;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Relations> {
        self.surroundings.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Relations> {
        if in_body(&query.body) {
            let mut factors = Vec::new();
            of_body(&query.body, &mut factors);
            return ControlFlow::Break(Relations { factors, scopes: self.surroundings.scopes() });
        }
        self.surroundings.leave();
        ControlFlow::Continue(())
    }
}

fn of_body(body: &SetExpr, factors: &mut Vec<TableFactor>) {
    match body {
        SetExpr::Select(select) if in_select(select) => {
            select.from.iter().for_each(|table| of_tables(table, factors));
        }
        SetExpr::SetOperation { left, right, .. } => {
            of_body(left, factors);
            of_body(right, factors);
        }
        _ => {}
    }
}

fn of_tables(table: &TableWithJoins, factors: &mut Vec<TableFactor>) {
    for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => of_tables(table_with_joins, factors),
            other => factors.push(other.clone()),
        }
    }
}

/// Gives select items that are columns their own names: DataFusion names those of tables around a LATERAL subquery as
/// references.
pub(super) fn name_columns(body: &mut SetExpr) {
    match body {
        SetExpr::SetOperation { left, .. } => name_columns(left),
        SetExpr::Query(query) => name_columns(&mut query.body),
        SetExpr::Select(select) => select.projection.iter_mut().for_each(|item| {
            let name = match item {
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.clone(),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => match names.last() {
                    Some(name) => name.clone(),
                    None => return,
                },
                _ => return,
            };
            if let SelectItem::UnnamedExpr(expr) = item {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: name };
            }
        }),
        _ => {}
    }
}
