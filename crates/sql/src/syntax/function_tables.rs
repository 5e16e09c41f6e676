//! Functions in FROM.
//!
//! - `FROM generate_series(1, 3) g` has a column `g`, `FROM range(3)` a column `range` and `FROM unnest(l)` a column
//!   `unnest`, as in PostgreSQL and DuckDB; behind an alias the function's name is known too, as in DuckDB. DataFusion
//!   55.2 calls them `value` and by the text of the call: series keep that name where a statement calls it, and a
//!   column of `unnest` is named where a query calls it so.
//! - `unnest(t.l)` and `generate_series(1, t.n)` read columns of tables before them and of queries around. DataFusion
//!   plans series of constants alone, and what it makes of `unnest` is no part of a subquery's plan: both are read for
//!   `LATERAL (SELECT unnest(t.l))`.
//! - So are series of times, which are lists of ours (`mend/time_series.rs`).
//! - `unnest(l) WITH ORDINALITY` has the numbers of its rows, as in PostgreSQL; DataFusion has none.
//! - `FROM json_each(j)`, `string_to_table(s, ',')` and their like are queries of one row whose lists are unnested.
//! - `FROM query('SELECT 1')`, `FROM query_table('t')` and `FROM query_table(['t', 'u'])` are DuckDB's: a query or
//!   tables by their texts, which macros may be given.
//!
//! The first three go once DataFusion names columns so, plans such items and counts rows.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, Ident, Join, ObjectName, Query, Select, SelectItem, SetExpr,
    Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::dialect::parser_of;
use super::items::{self, folded};
use super::quotes::quoted;
use super::relations::{self, parts};
use super::{call, lists, rows, statement_within, visits};
use crate::error::{Result, SqlError};

/// The column of a series.
pub(super) const VALUE: &str = "value";

/// Names columns of functions in a query's own FROM, of a statement that calls a column `value` or none.
pub(super) fn name_columns(query: &mut Query, calls_value: bool) {
    let mut is_any = false;
    each(&mut query.body, &mut |factor| is_any |= names_of(factor).is_some());
    if !is_any {
        return;
    }
    let calls_value = calls_value || is_called_in(&mut query.body);
    let mut called = Called::default();
    let _ = visits::visit_mut(query, &mut called);
    each(&mut query.body, &mut |factor| {
        let Some((table, function)) = names_of(factor) else { return };
        let is_series = matches!(factor, TableFactor::Table { .. });
        let own = folded(&table);
        let calls = |column: &Ident| {
            let column = folded(column);
            called.columns.contains(&column) || called.of_tables.contains(&(own.clone(), column))
        };
        let name = match () {
            () if called.of_tables.contains(&(own.clone(), VALUE.into())) => return,
            () if calls(&table) => table.clone(),
            () if calls(&function) => function,
            () if calls_value || !is_series => return,
            () => table.clone(),
        };
        if let TableFactor::Table { alias, .. } | TableFactor::UNNEST { alias, .. } = factor {
            let columns = vec![TableAliasColumnDef { name, data_type: None }];
            *alias = Some(TableAlias { explicit: true, name: table, columns, at: None });
        }
    });
}

/// Whether a statement calls a column `value`, by USING too, and names none so, which may be the one that is meant.
pub(super) fn calls_value(parsed: &mut ParsedStatement) -> bool {
    #[derive(Default)]
    struct Find {
        is_called: bool,
        is_alias: bool,
    }
    impl VisitorMut for Find {
        type Break = ();
        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            let names = |join: &Join| relations::using(&join.join_operator).iter().any(is_value);
            self.is_called |= select.from.iter().flat_map(|tables| &tables.joins).any(names);
            self.is_alias |= select
                .projection
                .iter()
                .any(|item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if folded(alias) == VALUE));
            ControlFlow::Continue(())
        }
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            self.is_called |= match expr {
                Expr::Identifier(name) => folded(name) == VALUE,
                Expr::CompoundIdentifier(names) => names.iter().any(|name| folded(name) == VALUE),
                _ => false,
            };
            ControlFlow::Continue(())
        }
    }
    fn is_value(name: &ObjectName) -> bool {
        parts(name).and_then(|parts| parts.last().map(folded)).as_deref() == Some(VALUE)
    }
    let mut find = Find::default();
    let _ = super::visit(parsed, &mut find);
    find.is_called && !find.is_alias
}

/// Whether a SELECT of functions alone calls a column `value` in its items or in WHERE, before it names an item so.
pub(super) fn calls_own_value(select: &mut Select) -> bool {
    let mut are_functions = true;
    for tables in &select.from {
        relations::each_factor(tables, &mut |factor| are_functions &= names_of(factor).is_some());
    }
    if !are_functions || select.from.is_empty() {
        return false;
    }
    let mut is_called = false;
    let mut find = |name: &mut Expr| {
        is_called |= matches!(name, Expr::Identifier(name) if folded(name) == VALUE);
    };
    let is_named = select.projection.iter_mut().any(|item| {
        items::each_name(item, &mut find);
        matches!(item, SelectItem::ExprWithAlias { alias, .. } if folded(alias) == VALUE)
    });
    if !is_named {
        items::each_name(&mut select.selection, &mut find);
    }
    is_called
}

/// The same of the SELECTs of a body.
fn is_called_in(body: &mut SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => calls_own_value(select),
        SetExpr::SetOperation { left, right, .. } => is_called_in(left) || is_called_in(right),
        _ => false,
    }
}

/// The name of the table of a function that has one column, and that of the function.
fn names_of(factor: &TableFactor) -> Option<(Ident, Ident)> {
    let (function, alias) = match factor {
        TableFactor::Table { name, args: Some(_), alias, .. } => {
            let function = parts(name)?.pop()?;
            let is_series = ["range", "generate_series"].contains(&folded(&function).as_str());
            (is_series.then_some(function)?, alias)
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: false, .. } => {
            let is_one = array_exprs.len() == 1;
            (is_one.then(|| Ident::new("unnest"))?, alias)
        }
        _ => return None,
    };
    match alias {
        Some(alias) if alias.columns.is_empty() => Some((alias.name.clone(), function)),
        Some(_) => None,
        None => Some((function.clone(), function)),
    }
}

/// Gives `unnest(l) WITH ORDINALITY`, and a series, the numbers of their rows as one more list.
pub(super) fn with_numbers(factor: &mut TableFactor) -> Result<()> {
    let series = match factor {
        TableFactor::Table { name, args: Some(args), with_ordinality: with_ordinality @ true, .. } => {
            let function = parts(name).and_then(|parts| parts.last().map(folded)).unwrap_or_default();
            if !["range", "generate_series"].contains(&function.as_str()) {
                return Ok(());
            }
            *with_ordinality = false;
            Some((function.clone(), call(&function, args.args.clone())))
        }
        _ => None,
    };
    if let (Some((function, list)), TableFactor::Table { alias, .. }) = (series, &factor) {
        let alias = Some(alias.clone().unwrap_or_else(|| named(&function)));
        *factor = TableFactor::UNNEST {
            alias,
            array_exprs: vec![list],
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: true,
        };
    }
    let TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality: with @ true, .. } = factor
    else {
        return Ok(());
    };
    let [list] = array_exprs.as_slice() else { return Ok(()) };
    rows::check_copied([list])?;
    lists::as_call(&mut array_exprs[0]);
    let list = array_exprs[0].clone();
    let argument = |expr: Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    let count = call("array_length", vec![argument(list)]);
    let one = Expr::value(Value::Number("1".into(), false));
    array_exprs.push(call("generate_series", vec![argument(one), argument(count)]));
    *with = false;
    let alias = alias.get_or_insert_with(|| named("unnest"));
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: Ident::new("unnest"), data_type: None });
    }
    if alias.columns.len() == 1 {
        alias.columns.push(TableAliasColumnDef { name: Ident::new("ordinality"), data_type: None });
    }
    Ok(())
}

/// An alias that is a name alone.
fn named(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::new(name), columns: Vec::new(), at: None }
}

/// The query that `query` and `query_table` name by texts; none of other functions.
///
/// # Errors
/// [`SqlError::Planning`] for arguments that are no constants, and what is wrong with the text.
pub(super) fn by_text(state: &SessionState, name: &ObjectName, given: &[FunctionArg]) -> Result<Option<Box<Query>>> {
    let [part] = name.0.as_slice() else { return Ok(None) };
    let Some(function) = part.as_ident().map(folded).filter(|name| name == "query" || name == "query_table") else {
        return Ok(None);
    };
    let is_query = function == "query";
    let wrong = || {
        let form =
            if is_query { "query('SELECT …')" } else { "query_table('table') or query_table(['one', 'other'])" };
        SqlError::Planning(format!("the function is {form}, of constants"))
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = given else { return Err(wrong()) };
    let text = |expr: &Expr| match expr {
        Expr::Value(value) => value.value.clone().into_string(),
        Expr::Identifier(name) if !is_query => Some(name.to_string()),
        _ => None,
    };
    let mut argument = argument;
    while let Expr::Nested(inner) = argument {
        argument = inner;
    }
    let texts: Vec<String> = match argument {
        Expr::Array(array) if !is_query => array.elem.iter().map(text).collect::<Option<_>>(),
        other => text(other).map(|text| vec![text]),
    }
    .filter(|texts| !texts.is_empty())
    .ok_or_else(wrong)?;
    let sql = match is_query {
        true => texts[0].clone(),
        false => {
            texts.iter().map(|text| format!("SELECT * FROM {}", table_of(text))).collect::<Vec<_>>().join(" UNION ALL ")
        }
    };
    match statement_within(state, &sql)? {
        ParsedStatement::Statement(statement) => match *statement {
            Statement::Query(query) => Ok(Some(query)),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// The name of a table in a text: one with points has parts, and one that is none without quotes gets some.
fn table_of(text: &str) -> String {
    let whole = |parser: &mut Parser| {
        let name = parser.parse_object_name(false)?;
        parser.expect_token(&Token::EOF).map(|_| name)
    };
    let parsed = parser_of(text).and_then(|mut parser| whole(&mut parser));
    parsed.map_or_else(|_| quoted(text).to_string(), |name| name.to_string())
}

/// Shows each table of a body's own SELECTs.
fn each(body: &mut SetExpr, found: &mut dyn FnMut(&mut TableFactor)) {
    match body {
        SetExpr::Select(select) => select.from.iter_mut().for_each(|tables| {
            found(&mut tables.relation);
            tables.joins.iter_mut().for_each(|join| found(&mut join.relation));
        }),
        SetExpr::SetOperation { left, right, .. } => {
            each(left, found);
            each(right, found);
        }
        _ => {}
    }
}

/// The names that a query calls columns by.
#[derive(Default)]
struct Called {
    /// Those without a table.
    columns: HashSet<String>,
    /// Those behind the name of a table.
    of_tables: HashSet<(String, String)>,
}

impl VisitorMut for Called {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let joins = select.from.iter().flat_map(|tables| &tables.joins);
        let names = joins.flat_map(|join| relations::using(&join.join_operator)).filter_map(|name| parts(name)?.pop());
        self.columns.extend(names.map(|name| folded(&name)));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => _ = self.columns.insert(folded(name)),
            Expr::CompoundIdentifier(names) => {
                if let [table, column] = names.as_slice() {
                    self.of_tables.insert((folded(table), folded(column)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Functions in FROM that give several rows, by PostgreSQL's names, with the queries that they stand for.
const OF_ROWS: [(&str, &str); 7] = [
    ("json_array_elements", "SELECT as_json(unnest(json_extract_list($1, '$[*]'))) AS value"),
    ("json_array_elements_text", "SELECT unnest(json_extract_string_list($1, '$[*]')) AS value"),
    (
        "json_each",
        "SELECT unnest(CASE json_type($1) WHEN 'ARRAY' THEN array_transform(range(json_array_length($1)), lambda i: \
         CAST(i AS VARCHAR)) ELSE json_keys($1) END) AS key, as_json(unnest(json_extract_list($1, \
         CASE json_type($1) WHEN 'ARRAY' THEN '$[*]' ELSE '$.*' END))) AS value",
    ),
    ("json_each_text", "SELECT unnest(json_keys($1)) AS key, unnest(json_extract_string_list($1, '$.*')) AS value"),
    ("json_object_keys", "SELECT unnest(json_keys($1)) AS $0"),
    ("regexp_split_to_table", "SELECT unnest(string_split_regex($1, $2)) AS $0"),
    ("string_to_table", "SELECT unnest(string_to_array($1, $2)) AS $0"),
];

/// Makes subqueries of functions that give several rows. A column without a name of its own has that of the table.
///
/// # Errors
/// [`SqlError::Planning`] for another number of arguments.
pub(super) fn with_rows(from: &mut [TableWithJoins]) -> Result<()> {
    from.iter_mut().enumerate().try_for_each(|(number, tables)| rows_in(tables, number > 0))
}

fn rows_in(tables: &mut TableWithJoins, has_before: bool) -> Result<()> {
    rows_of(&mut tables.relation, has_before)?;
    tables.joins.iter_mut().try_for_each(|join| rows_of(&mut join.relation, true))
}

fn rows_of(factor: &mut TableFactor, has_before: bool) -> Result<()> {
    let (name, given, alias) = match factor {
        TableFactor::Table { name, args: Some(given), with_ordinality: false, alias, .. } => (name, &given.args, alias),
        TableFactor::Function { name, args, with_ordinality: false, alias, .. } => (name, &*args, alias),
        TableFactor::NestedJoin { table_with_joins, .. } => return rows_in(table_with_joins, has_before),
        _ => return Ok(()),
    };
    let [part] = name.0.as_slice() else { return Ok(()) };
    let Some(called) = part.as_ident().map(folded) else { return Ok(()) };
    let own = called.strip_prefix("jsonb_").map_or(called.clone(), |rest| format!("json_{rest}"));
    let Some((_, text)) = OF_ROWS.iter().find(|(known, _)| *known == own) else { return Ok(()) };
    let count = if text.contains("$2") { 2 } else { 1 };
    if given.len() != count {
        let reason = format!("{called} takes {count} argument{}", if count == 1 { "" } else { "s" });
        return Err(SqlError::Planning(reason));
    }
    let alias = alias.take().unwrap_or_else(|| named(&called));
    let mut parts = text.split('$');
    let mut text = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let number = part.chars().next().and_then(|first| first.to_digit(10)).map(|number| number as usize);
        match number.map(|number| number.checked_sub(1).map(|place| &given[place])) {
            Some(Some(argument)) => text.push_str(&format!("({argument}){}", &part[1..])),
            Some(None) => text.push_str(&format!("{}{}", alias.name, &part[1..])),
            None => text.push_str(&format!("${part}")),
        }
    }
    let query = parser_of(&text).and_then(|mut parser| parser.parse_query());
    let subquery = query.map_err(|error| SqlError::Syntax(error.to_string()))?;
    *factor = TableFactor::Derived { lateral: has_before, subquery, alias: Some(alias), sample: None };
    Ok(())
}

/// Makes subqueries of the functions in FROM that read columns.
pub(super) fn with_columns_around(from: &mut [TableWithJoins]) {
    for (number, tables) in from.iter_mut().enumerate() {
        of_tables(tables, number > 0);
    }
}

fn of_tables(tables: &mut TableWithJoins, has_before: bool) {
    as_subquery(&mut tables.relation, has_before);
    tables.joins.iter_mut().for_each(|join| as_subquery(&mut join.relation, true));
}

/// Makes a subquery of a function that reads columns, of tables before it or of queries around.
fn as_subquery(factor: &mut TableFactor, has_before: bool) {
    let lists = match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => return of_tables(table_with_joins, has_before),
        TableFactor::UNNEST { array_exprs, with_offset: false, with_ordinality: false, .. } => array_exprs.clone(),
        TableFactor::Table { name, args: Some(given), with_ordinality: false, .. } => {
            let function = parts(name).and_then(|parts| parts.last().map(folded)).unwrap_or_default();
            if !["range", "generate_series"].contains(&function.as_str()) {
                return;
            }
            vec![call(&function, given.args.clone())]
        }
        _ => return,
    };
    let mut reads = Reads(false);
    lists.iter().for_each(|list| _ = visits::visit(list, &mut reads));
    let item =
        |list: Expr| SelectItem::UnnamedExpr(call("unnest", vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(list))]));
    if !reads.0 && !is_of_times(factor) {
        return;
    }
    let alias = match factor {
        TableFactor::UNNEST { alias, .. } => alias.take(),
        TableFactor::Table { name, alias, .. } => {
            let mut alias = alias.take().unwrap_or_else(|| named(&name.to_string()));
            if alias.columns.is_empty() {
                alias.columns.push(TableAliasColumnDef { name: Ident::new(VALUE), data_type: None });
            }
            Some(alias)
        }
        _ => return,
    };
    if let Ok(subquery) = relations::of_items(lists.into_iter().map(item).collect()) {
        *factor = TableFactor::Derived { lateral: has_before && reads.0, subquery, alias, sample: None };
    }
}

/// Whether a function in FROM is a series whose step may be an interval: DataFusion's tables of times end at changes of
/// clocks.
fn is_of_times(factor: &TableFactor) -> bool {
    fn may_be_interval(expr: &Expr) -> bool {
        match expr {
            Expr::Interval(_) | Expr::Function(_) => true,
            Expr::Cast { data_type, .. } => matches!(data_type, DataType::Interval { .. }),
            Expr::TypedString(typed) => matches!(typed.data_type, DataType::Interval { .. }),
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => may_be_interval(inner),
            Expr::BinaryOp { left, right, .. } => may_be_interval(left) || may_be_interval(right),
            _ => false,
        }
    }
    let TableFactor::Table { args: Some(given), .. } = factor else { return false };
    matches!(given.args.as_slice(), [_, _, FunctionArg::Unnamed(FunctionArgExpr::Expr(step))] if may_be_interval(step))
}

/// Whether an expression reads a column, or a query.
struct Reads(bool);

impl Visitor for Reads {
    type Break = ();
    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0 |= matches!(
            expr,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::CompoundFieldAccess { .. }
        );
        ControlFlow::Continue(())
    }
}
