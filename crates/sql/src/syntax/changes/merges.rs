//! MERGE, as INSERT of changes.
//!
//! The source gets a column that says that a row of it is there; which rows without a partner are joined, the clauses
//! tell. The first clause that holds for a pair of rows says what becomes of it: each value is a CASE over all clauses.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Ident, Join, JoinConstraint, JoinOperator, Merge, MergeAction, MergeClause,
    MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, Query, SelectItem, SetExpr,
    Statement as SqlStatement, TableAlias, TableFactor, TableWithJoins, Value, Values, VisitorMut,
    WildcardAdditionalOptions,
};

use super::super::items::{each_name, folded};
use super::super::rows::check_copied;
use super::super::visits;
use super::parts::{self, Target, aliased, column_of, number};
use super::{assigned, insert_into, named, refuse};
use crate::error::{Result, SqlError};
use crate::memory_table::Action;

/// The column of the source that is never NULL.
const THERE: &str = "\u{2063}there";

/// A clause: when it holds, what it does, and the values of the row, by column; none where the row keeps its own.
struct Clause {
    condition: Expr,
    action: Action,
    values: Vec<Option<Expr>>,
}

pub(super) async fn of_merge(state: &SessionState, merge: Merge) -> Result<(SqlStatement, bool)> {
    let Merge { merge_token: _, optimizer_hints, into: _, table, source, on, clauses, output } = merge;
    refuse("MERGE", &[("hints", !optimizer_hints.is_empty()), ("OUTPUT", output.is_some())])?;
    let target = Target::of(state, table, "MERGE INTO").await?;
    let (source, name) = marked(source)?;
    let there = column_of(&name, THERE);
    let sides = Sides { target: target.qualifier(), source: &name };
    let (mut without_target, mut without_source) = (false, false);
    if clauses.is_empty() {
        return Err(SqlError::Syntax("expected WHEN in MERGE".into()));
    }
    let mut read = Vec::with_capacity(clauses.len());
    let mut always = Vec::new();
    for MergeClause { when_token: _, clause_kind, predicate, action } in clauses {
        let (with_row, with_source) = match clause_kind {
            MergeClauseKind::Matched => (true, true),
            MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => (false, true),
            MergeClauseKind::NotMatchedBySource => (true, false),
        };
        if always.contains(&(with_row, with_source)) {
            return Err(SqlError::Planning(
                "a WHEN of MERGE is never reached: an earlier one without a condition takes all of its rows".into(),
            ));
        }
        if predicate.is_none() {
            always.push((with_row, with_source));
        }
        without_target |= !with_row;
        without_source |= !with_source;
        let mut condition = and(is_there(target.row(), with_row), is_there(there.clone(), with_source));
        if let Some(mut predicate) = predicate {
            check_copied([&predicate])?;
            sides.read(&mut predicate, with_row, with_source)?;
            condition = and(condition, Expr::Nested(Box::new(predicate)));
        }
        read.push(of_clause(&target, &sides, condition, action, (with_row, with_source))?);
    }
    let constraint = JoinConstraint::On(*on);
    let join_operator = match (without_target, without_source) {
        (true, true) => JoinOperator::FullOuter(constraint),
        (true, false) => JoinOperator::Right(constraint),
        (false, true) => JoinOperator::Left(constraint),
        (false, false) => JoinOperator::Inner(constraint),
    };
    let joins = vec![Join { relation: source, global: false, join_operator }];
    let tables = vec![TableWithJoins { relation: target.rows(), joins }];
    let action = case(&read, |clause| number(clause.action as i64), None);
    let mut items = vec![SelectItem::UnnamedExpr(target.row()), aliased(action.clone(), "action")];
    for (column, name) in target.columns().iter().enumerate() {
        let own = target.column(name);
        let value = |clause: &Clause| clause.values[column].clone().unwrap_or_else(|| own.clone());
        items.push(aliased(case(&read, value, Some(own.clone())), name));
    }
    let (query, merges) = parts::select(items, tables, Some(Expr::IsNotNull(Box::new(action))))?;
    let mut statement = insert_into(target.changed(), query);
    target.unqualify(&mut statement);
    Ok((statement, merges))
}

fn of_clause(
    target: &Target,
    sides: &Sides,
    condition: Expr,
    action: MergeAction,
    (with_row, with_source): (bool, bool),
) -> Result<Clause> {
    let own = || vec![None; target.columns().len()];
    match (action, with_row) {
        (MergeAction::Delete { delete_token: _ }, true) => {
            Ok(Clause { condition, action: Action::Delete, values: own() })
        }
        (MergeAction::Update(update), true) => {
            let MergeUpdateExpr { update_token: _, assignments, update_predicate, delete_predicate } = update;
            let has_where = update_predicate.is_some() || delete_predicate.is_some();
            refuse("MERGE", &[("WHERE of an action", has_where)])?;
            let mut values = assigned(target, assignments)?;
            values.iter_mut().flatten().try_for_each(|value| sides.read(value, with_row, with_source))?;
            Ok(Clause { condition, action: Action::Update, values })
        }
        (MergeAction::Insert(insert), false) => {
            let MergeInsertExpr { insert_token: _, columns, kind_token: _, kind, insert_predicate } = insert;
            refuse("MERGE", &[("WHERE of an action", insert_predicate.is_some())])?;
            let MergeInsertKind::Values(Values { explicit_row: _, value_keyword: _, mut rows }) = kind else {
                return Err(SqlError::Unsupported("INSERT ROW in MERGE".into()));
            };
            let (Some(row), true) = (rows.pop(), rows.is_empty()) else {
                return Err(SqlError::Planning("INSERT of several rows in MERGE".into()));
            };
            let numbers = match columns.is_empty() {
                true => (0..target.columns().len()).collect(),
                false => columns.iter().map(|name| target.column_number(name)).collect::<Result<Vec<_>>>()?,
            };
            if numbers.len() != row.content.len() {
                let (values, columns) = (row.content.len(), numbers.len());
                return Err(SqlError::Planning(format!("{values} values for {columns} columns in MERGE")));
            }
            let mut values: Vec<Option<Expr>> = own();
            for (column, mut value) in numbers.into_iter().zip(row.content) {
                match parts::is_default(&value) {
                    true => value = target.default_of(column),
                    false => sides.read(&mut value, with_row, with_source)?,
                }
                if values[column].replace(value).is_some() {
                    let name = &target.columns()[column];
                    return Err(SqlError::Planning(format!("column '{name}' is set twice")));
                }
            }
            for (column, value) in values.iter_mut().enumerate() {
                value.get_or_insert_with(|| target.default_of(column));
            }
            Ok(Clause { condition, action: Action::Insert, values })
        }
        (MergeAction::Insert(_), true) => Err(SqlError::Planning("INSERT of MERGE belongs in WHEN NOT MATCHED".into())),
        (_, false) => Err(SqlError::Planning(
            "WHEN NOT MATCHED of MERGE takes INSERT: it has no row of the table to change".into(),
        )),
    }
}

/// The source with its mark, and its name.
fn marked(source: TableFactor) -> Result<(TableFactor, Ident)> {
    let Some(name) = name_of(&source) else {
        return Err(SqlError::Unsupported("a source of MERGE without a name; give it one with AS".into()));
    };
    let items = vec![
        SelectItem::Wildcard(WildcardAdditionalOptions::default()),
        aliased(Expr::value(Value::Boolean(true)), THERE),
    ];
    let (subquery, _) = parts::select(items, vec![TableWithJoins { relation: source, joins: Vec::new() }], None)?;
    let alias = TableAlias { explicit: true, name: name.clone(), columns: Vec::new(), at: None };
    Ok((TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None }, name))
}

/// The names of both sides.
struct Sides<'a> {
    target: &'a Ident,
    source: &'a Ident,
}

impl Sides<'_> {
    /// Reads an expression of a clause whose rows have one side alone: bare names are columns of that side, and columns
    /// of the other are refused. Bare names within subqueries stay.
    fn read(&self, expr: &mut Expr, with_row: bool, with_source: bool) -> Result<()> {
        let (own, absent, clause) = match (with_row, with_source) {
            (true, true) => return Ok(()),
            (false, _) => (self.source, self.target, "NOT MATCHED"),
            (true, false) => (self.target, self.source, "NOT MATCHED BY SOURCE"),
        };
        each_name(expr, &mut |expr| {
            if let Expr::Identifier(name) = expr {
                *expr = Expr::CompoundIdentifier(vec![own.clone(), name.clone()]);
            }
        });
        let mut reader = OneSide { absent, is_hidden: Vec::new(), refused: None };
        let _ = visits::visit_mut(expr, &mut reader);
        match reader.refused {
            Some(column) => Err(SqlError::Planning(format!(
                "'{column}' in WHEN {clause} of MERGE, for whose rows '{absent}' has none"
            ))),
            None => Ok(()),
        }
    }
}

struct OneSide<'a> {
    absent: &'a Ident,
    /// For each query around, whether a table of it has the name of the absent side.
    is_hidden: Vec<bool>,
    refused: Option<String>,
}

impl VisitorMut for OneSide<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let absent = folded(self.absent);
        let tables = match query.body.as_ref() {
            SetExpr::Select(select) => select.from.as_slice(),
            _ => &[],
        };
        let is_absent = |factor: &TableFactor| name_of(factor).is_some_and(|name| folded(&name) == absent);
        let hides = |table: &TableWithJoins| {
            is_absent(&table.relation) || table.joins.iter().any(|join| is_absent(&join.relation))
        };
        self.is_hidden.push(tables.iter().any(hides));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.is_hidden.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(parts) if !self.is_hidden.contains(&true) => {
                let table = parts.len().checked_sub(2).and_then(|place| parts.get(place));
                if table.is_some_and(|table| folded(table) == folded(self.absent)) {
                    self.refused = Some(expr.to_string());
                    return ControlFlow::Break(());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The name that a table's columns are called by.
fn name_of(factor: &TableFactor) -> Option<Ident> {
    let alias = match factor {
        TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } => alias.as_ref(),
        _ => None,
    };
    alias.map(|alias| alias.name.clone()).or_else(|| named(factor)?.0.last()?.as_ident().cloned())
}

fn is_there(expr: Expr, is: bool) -> Expr {
    match is {
        true => Expr::IsNotNull(Box::new(expr)),
        false => Expr::IsNull(Box::new(expr)),
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}

/// `CASE WHEN condition THEN value … ELSE other END` over all clauses.
fn case(clauses: &[Clause], value: impl Fn(&Clause) -> Expr, other: Option<Expr>) -> Expr {
    let when = |clause: &Clause| CaseWhen { condition: clause.condition.clone(), result: value(clause) };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: clauses.iter().map(when).collect(),
        else_result: other.map(Box::new),
    }
}
