//! From text to the syntax tree that is planned.
//!
//! The tree is the parser's, changed where DataFusion would plan something else than SQL says: chains of AND, OR and
//! UNION ALL become balanced ([`shape`]), `FROM t` selects all columns, and select items have the names that the user
//! wrote ([`names`]). Names that a table has in another case are those of the table ([`spellings`], [`stored`]). Forms
//! that depend on the names of columns are written out ([`expansions`]). Joins by USING and NATURAL become joins by ON
//! ([`merged`]), rows are compared by component ([`rows`]), names of windows and of WITH are resolved ([`windows`],
//! [`scopes`]), and statements that change tables become INSERT ([`changes`]). What is nested too deep, a `JOIN`
//! without a condition, and clauses that nothing would read ([`unread`]) are refused.

mod altered;
mod beside;
mod casts;
mod changes;
mod copies;
mod created;
mod declared;
mod dialect;
mod doubles;
mod elsewhere;
mod escapes;
mod expansions;
mod fetch;
mod fields;
mod function_tables;
mod functions;
mod grouping;
mod items;
mod json_paths;
mod kinds;
mod lambdas;
mod lengths;
mod lists;
mod macros;
mod marks;
mod merged;
mod methods;
mod names;
mod orders;
mod quantifiers;
mod quotes;
mod readers;
mod relations;
mod repeated;
mod rows;
mod scopes;
mod shape;
mod signs;
mod similar;
mod spelled;
mod spellings;
mod statements;
mod stored;
mod temporary;
mod times;
mod told_casts;
mod units;
mod unread;
mod value_columns;
mod value_rows;
mod variables;
mod visits;
mod windows;

use std::ops::ControlFlow;

use datafusion::common::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Delete, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectFlavor, SelectItem,
    Statement as SqlStatement, TableFactor, UnaryOperator, Update, UpdateTableFromKind, Value, VisitorMut,
    WildcardAdditionalOptions, helpers::attached_token::AttachedToken,
};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;

use crate::error::{Result, SqlError};
use crate::settings::Settings;

pub(crate) use altered::{Altered, altered};
pub(crate) use beside::beside;
pub(crate) use changes::{column_name, found_table};
pub(crate) use declared::{Declared, DeclaredKey};
pub(crate) use dialect::{SessionDialect, parser_of};
use doubles::{as_double, is_power};
pub(crate) use functions::function_names;
pub(crate) use items::{
    about_repeated_names, distinguish, in_own_names, is_about_repeated_names, result_name, shown_name,
};
pub use kinds::StatementKind;
pub(crate) use kinds::kind;
pub(crate) use readers::read_by;
pub(crate) use repeated::{check_made, distinguish_wildcards};
pub(crate) use scopes::TableOfWith;
pub(crate) use signs::{is_bits, is_sign, is_told, shown as with_signs};
pub(crate) use spellings::{Again, again};
pub(crate) use times::has_nanoseconds;

/// Texts up to this length need no stack of their own.
const SHORT_BYTES: usize = 4 << 10;
/// Stack that a byte of text takes at most, where each operator is a level.
const STACK_BYTES_PER_BYTE: usize = 512;
/// A machine with little memory refuses larger stacks.
const STACK_BYTES_MAX: usize = 256 << 20;

/// One statement of SQL as it is planned.
///
/// # Errors
/// [`SqlError::Syntax`] for what is no statement or several, [`SqlError::TooDeep`] for what is nested deeper than
/// `warpcube.depth_limit`, and what no plan could be right for.
pub(crate) async fn parse(state: &SessionState, sql: &str) -> Result<ParsedStatement> {
    match parse_returning(state, sql).await? {
        (statement, None) => Ok(statement),
        (_, Some(_)) => Err(no_returning()),
    }
}

/// The error of a RETURNING whose rows nothing would give.
pub(crate) fn no_returning() -> SqlError {
    SqlError::Unsupported("RETURNING in a view or in a plan that is encoded".into())
}

/// A statement, and its RETURNING as a SELECT of its own.
///
/// # Errors
/// As for [`parse`].
pub(crate) async fn parse_returning(
    state: &SessionState,
    sql: &str,
) -> Result<(ParsedStatement, Option<ParsedStatement>)> {
    let set = variables::as_macro(state, sql).await?;
    let sql = set.as_deref().unwrap_or(sql);
    let ours = as_ours(state, sql)?;
    let sql = ours.as_deref().unwrap_or(sql);
    let created = created::as_query(state, sql).await?;
    let sql = created.as_deref().unwrap_or(sql);
    let insert = copies::as_insert(state, sql).await?;
    let sql = insert.as_deref().unwrap_or(sql);
    let mut statement = read_whole(state, sql)?;
    // These futures are large, and statements are planned within others' stacks.
    Box::pin(expansions::write_out(state, &mut statement, sql)).await?;
    expansions::name_columns(state, &mut statement).await?;
    Box::pin(settled(state, statement, sql)).await
}

/// The text of the statement that one with IF NOT EXISTS of a macro, or one of another system, means here; none for
/// others.
fn as_ours(state: &SessionState, sql: &str) -> Result<Option<String>> {
    macros::unless_there(state, sql).map_or_else(|| elsewhere::as_ours(state, sql), |ours| Ok(Some(ours)))
}

/// A statement without forms to be written out as it is planned, and its RETURNING.
async fn settled(
    state: &SessionState,
    mut statement: ParsedStatement,
    sql: &str,
) -> Result<(ParsedStatement, Option<ParsedStatement>)> {
    let mut merges_columns = on_stack(sql, || mend(state, &mut statement, sql))?;
    let returning = changes::take_returning(state, &mut statement).await?;
    merges_columns |= changes::rewrite(state, &mut statement).await?;
    value_rows::as_selects(&mut statement)?;
    if merges_columns {
        merged::resolve(state, &mut statement).await?;
    }
    Ok((statement, returning))
}

/// Runs what recurses over a text of some bytes.
fn with_stack<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let stack = (bytes * STACK_BYTES_PER_BYTE).min(STACK_BYTES_MAX);
    stacker::maybe_grow(stack, stack, work)
}

/// The parser's tree of a statement, however long its text is, no deeper than it may be.
fn read_whole(state: &SessionState, sql: &str) -> Result<ParsedStatement> {
    on_stack(sql, || read(state, sql))
}

/// Runs what recurses over a text. A chain that the parser gives up in its midst is dropped as deep as it is.
fn on_stack<T>(sql: &str, work: impl FnOnce() -> T) -> T {
    match sql.len() {
        ..=SHORT_BYTES => work(),
        bytes => with_stack(bytes, work),
    }
}

/// The parser's tree of a statement by the dialect of the session.
fn parse_alone(state: &SessionState, sql: &str) -> Result<ParsedStatement> {
    match state.config_options().sql_parser.dialect {
        Dialect::Generic => parse_generic(state, sql),
        // Other dialects are what sqlparser says they are.
        other => one(state.sql_to_statement(sql, &other)),
    }
}

/// The parser's tree of a statement, no deeper than it may be, with calls as names.
fn read(state: &SessionState, sql: &str) -> Result<ParsedStatement> {
    let mut parsed = parse_alone(state, sql)?;
    let settings = state.config_options().extensions.get::<Settings>();
    let limit = settings.map_or_else(|| Settings::default().depth_limit, |settings| settings.depth_limit);
    shape::settle(&mut parsed, limit)?;
    // Macros are methods, too, and what they bring along may have any form.
    let is_function = |name: &ObjectName| macros::is_there(state, name);
    if sql.contains('.') {
        methods::as_calls(&mut parsed, &is_function);
    }
    let has_macros = macros::write_out(state, &mut parsed)?;
    if has_macros {
        methods::as_calls(&mut parsed, &is_function);
    }
    if has_macros || readers::are_in(sql) {
        readers::as_names(&mut parsed);
    }
    temporary::with_lasting(state, &mut parsed);
    // A comprehension of lists has lambdas, too, and so has `* LIKE`.
    if has_macros || sql.contains("->") || sql.contains('[') || sql.contains('*') {
        functions::with_lambdas(state, &mut parsed);
    }
    Ok(parsed)
}

/// Mends a statement; gives whether joins of it merge columns.
fn mend(state: &SessionState, parsed: &mut ParsedStatement, sql: &str) -> Result<bool> {
    functions::by_other_names(state, parsed)?;
    unread::check(state, parsed)?;
    if fetch::needs_names(sql) {
        names::keep(parsed, sql);
    }
    let calls_value = function_tables::calls_value(parsed);
    let mut mends = Mends { scopes: scopes::Scopes::counted(parsed), calls_value, ..Mends::default() };
    if visit(parsed, &mut mends).is_break() {
        return Err(mends.refused.unwrap_or_else(|| SqlError::Syntax("expected a statement".into())));
    }
    names::keep(parsed, sql);
    lists::as_calls(parsed);
    Ok(mends.merges_columns)
}

fn parse_generic(state: &SessionState, sql: &str) -> Result<ParsedStatement> {
    if let Some(copy) = copies::to_file(state, sql)? {
        return Ok(copy);
    }
    if let Some(dropped) = macros::dropped(state, sql) {
        return parse_generic(state, &dropped);
    }
    let statement = statement_of(state, sql)?;
    match macros::as_view(&statement)? {
        Some(view) => parse_generic(state, &view),
        None => Ok(statement),
    }
}

/// The statement of a text within another one.
fn statement_within(state: &SessionState, text: &str) -> Result<ParsedStatement> {
    spelled::Within::note(state, text);
    statement_of(state, text)
}

/// The one statement of a text, as the parser reads it.
fn statement_of(state: &SessionState, sql: &str) -> Result<ParsedStatement> {
    let limit = state.config_options().sql_parser.recursion_limit.get();
    let tokens = Tokenizer::new(&SessionDialect, sql).tokenize_with_location().map_err(ParserError::from);
    let mut tokens = tokens.map_err(DataFusionError::from)?;
    spelled::put(state, sql, &mut tokens);
    expansions::read_for(&mut tokens)?;
    quotes::keep(&mut tokens).map_err(DataFusionError::from)?;
    let builder = DFParserBuilder::new(tokens).with_dialect(&SessionDialect).with_recursion_limit(limit);
    let mut statements = builder.build()?.parse_statements()?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_), false) => Err(SqlError::Syntax("expected one statement, found several".into())),
        (None, _) => Err(SqlError::Syntax("expected a statement".into())),
    }
}

fn one(parsed: datafusion::error::Result<ParsedStatement>) -> Result<ParsedStatement> {
    parsed.map_err(SqlError::from).map_err(|error| match error {
        SqlError::Unsupported(_) => SqlError::Syntax("expected one statement, found several".into()),
        SqlError::Planning(_) => SqlError::Syntax("expected a statement".into()),
        other => other,
    })
}

/// Visits all that sqlparser knows of a statement.
fn visit<V: VisitorMut>(parsed: &mut ParsedStatement, visitor: &mut V) -> ControlFlow<V::Break> {
    match parsed {
        ParsedStatement::Statement(statement) => visits::visit_mut(statement, visitor),
        ParsedStatement::Explain(explain) => visit(&mut explain.statement, visitor),
        ParsedStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => visits::visit_mut(query, visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    }
}

/// The query whose rows a statement gives, explains or prepares.
fn query_of(parsed: &mut ParsedStatement) -> Option<&mut Query> {
    match parsed {
        ParsedStatement::Statement(statement) => match statement.as_mut() {
            SqlStatement::Query(query) => Some(query),
            // Its columns go by position.
            SqlStatement::Insert(insert) => insert.source.as_deref_mut(),
            // Its list of names renames all columns.
            SqlStatement::CreateView(view) if !view.columns.is_empty() => Some(&mut view.query),
            SqlStatement::Prepare { statement, .. } => match statement.as_mut() {
                SqlStatement::Query(query) => Some(query),
                SqlStatement::Insert(insert) => insert.source.as_deref_mut(),
                _ => None,
            },
            _ => None,
        },
        ParsedStatement::Explain(explain) => query_of(&mut explain.statement),
        ParsedStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => Some(query),
            CopyToSource::Relation(_) => None,
        },
        _ => None,
    }
}

/// What the planner would misread.
#[derive(Default)]
struct Mends {
    refused: Option<SqlError>,
    /// Whether a join has USING or is NATURAL.
    merges_columns: bool,
    /// Whether a column is called as DataFusion calls that of a series.
    calls_value: bool,
    windows: windows::Windows,
    scopes: scopes::Scopes,
}

impl Mends {
    /// Goes on, or ends with what is refused.
    fn go_on(&mut self, done: Result<()>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.refused = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Refuses joins without a condition, of which DataFusion makes cross joins; semi and anti joins are of the left
    /// table.
    fn check_joins(&mut self, joins: &mut [Join]) -> ControlFlow<()> {
        use JoinOperator::*;
        for join in joins {
            let none = JoinConstraint::None;
            match &mut join.join_operator {
                Semi(constraint) => join.join_operator = LeftSemi(std::mem::replace(constraint, none)),
                Anti(constraint) => join.join_operator = LeftAnti(std::mem::replace(constraint, none)),
                _ => {}
            }
            self.merges_columns |= relations::merges(&join.join_operator);
            let (Join(JoinConstraint::None)
            | Inner(JoinConstraint::None)
            | Left(JoinConstraint::None)
            | LeftOuter(JoinConstraint::None)
            | Right(JoinConstraint::None)
            | RightOuter(JoinConstraint::None)
            | FullOuter(JoinConstraint::None)
            | LeftSemi(JoinConstraint::None)
            | RightSemi(JoinConstraint::None)
            | LeftAnti(JoinConstraint::None)
            | RightAnti(JoinConstraint::None)) = &join.join_operator
            else {
                continue;
            };
            let reason = format!("JOIN {} needs ON or USING; a cross join is CROSS JOIN", join.relation);
            self.refused = Some(SqlError::Syntax(reason));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Mends {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<()> {
        match statement {
            SqlStatement::CreateTable(table) => lengths::constrain(table),
            SqlStatement::Update(Update {
                from: Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)),
                ..
            }) => function_tables::with_columns_around(from),
            SqlStatement::Delete(Delete { using: Some(from), .. }) => function_tables::with_columns_around(from),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// FETCH is LIMIT; columns of functions have names; names of WITH and of windows begin.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        orders::beside_unnest(query);
        function_tables::name_columns(query, self.calls_value);
        self.scopes.enter(query);
        let done = self.windows.enter_query(query).and_then(|()| fetch::as_limit(query));
        self.go_on(done)
    }

    /// `FROM t` selects all columns; a join has a condition.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let done = self.windows.enter_select(select).and_then(|()| grouping::settle(select));
        self.go_on(done)?;
        rows::of_groups(&mut select.group_by);
        items::fold_left_out(&mut select.projection);
        function_tables::with_columns_around(&mut select.from);
        if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) && select.projection.is_empty() {
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
            select.flavor = SelectFlavor::Standard;
        }
        select.from.iter_mut().try_for_each(|table| self.check_joins(&mut table.joins))
    }

    fn post_visit_select(&mut self, _select: &mut Select) -> ControlFlow<()> {
        self.windows.leave();
        ControlFlow::Continue(())
    }

    /// Joins in parentheses have conditions too; those with a name are subqueries. Columns of LATERAL have names.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        self.scopes.read(factor);
        if let TableFactor::Derived { lateral: true, subquery, .. } = factor {
            relations::name_columns(&mut subquery.body);
        }
        let TableFactor::NestedJoin { table_with_joins, alias } = factor else { return ControlFlow::Continue(()) };
        self.check_joins(&mut table_with_joins.joins)?;
        if alias.is_some()
            && let Ok(subquery) = relations::all_of(table_with_joins.as_ref().clone())
        {
            *factor = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
        }
        ControlFlow::Continue(())
    }

    /// Columns of VALUES have types that hold all cells; ORDER BY ALL is by all columns.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.windows.leave();
        value_columns::with_room(&mut query.body);
        told_casts::tell(query);
        orders::by_number(query);
        orders::of_distinct(query);
        let done = self.scopes.leave().map_or(Ok(()), |ended| scopes::around_branches(query, ended));
        self.go_on(done)
    }

    /// Windows have no names.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let done = match expr {
            Expr::Function(function) => self.windows.inline(function),
            _ => Ok(()),
        };
        self.go_on(done)
    }

    /// A number with an exponent is a double, whatever other literals with a point are, and so is a power; AT TIME ZONE
    /// is a function; patterns have the backslash as their escape; rows are compared by component.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        quantifiers::as_list(expr);
        quantifiers::as_call(expr);
        rows::as_call(expr);
        let done = escapes::with_backslashes(expr)
            .and_then(|()| similar::as_match(expr))
            .and_then(|()| rows::by_component(expr))
            .and_then(|()| casts::as_functions(expr));
        self.go_on(done)?;
        if let Expr::BinaryOp { left, op, right } = expr
            && let Some(name) = function_of(op)
        {
            let name = functions::of_several(name, right).unwrap_or(name);
            let arguments = [left, right].map(|argument| {
                let argument = std::mem::replace(argument.as_mut(), Expr::value(Value::Null));
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
            });
            *expr = call(name, arguments.into());
        }
        times::with_all_digits(expr);
        times::as_product(expr);
        times::with_units(expr);
        fields::as_subscripts(expr);
        lengths::cut(expr);
        // Quotients of integers are integers anyway.
        if let Expr::BinaryOp { op: op @ BinaryOperator::DuckIntegerDivide, .. } = expr {
            *op = BinaryOperator::Divide;
        }
        if let Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } = expr {
            let arguments = [left, right].map(|argument| {
                let argument = std::mem::replace(argument.as_mut(), Expr::value(Value::Null));
                FunctionArg::Unnamed(FunctionArgExpr::Expr(match is_power(&argument) {
                    true => argument,
                    false => as_double(argument),
                }))
            });
            *expr = call("power", arguments.into());
        }
        let done = quantifiers::with_nulls(expr);
        self.go_on(done)?;
        // Two signs would be a comment in the text that views are kept as, and no number of an interval.
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } = expr
            && matches!(**inner, Expr::UnaryOp { op: UnaryOperator::Minus, .. } | Expr::Interval(_))
        {
            let negative = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
            **inner = Expr::Nested(Box::new(negative));
        }
        signs::of_operands(expr);
        signs::of_bits(expr);
        if let Expr::Value(value) = expr
            && let Value::Number(digits, _) = &value.value
            && digits.contains(['e', 'E'])
        {
            let text = Value::SingleQuotedString(digits.replace('_', ""));
            *expr = as_double(Expr::Value(text.with_span(value.span)));
        }
        if let Expr::AtTimeZone { timestamp, time_zone } = expr {
            let arguments = [time_zone, timestamp].map(|argument| {
                let argument = std::mem::replace(argument.as_mut(), Expr::value(Value::Null));
                FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
            });
            *expr = call("timezone", arguments.into());
        }
        ControlFlow::Continue(())
    }
}

/// `CASE WHEN … THEN … ELSE … END`.
fn when(condition: Expr, result: Expr, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: Some(Box::new(otherwise)),
    }
}

fn call(name: &str, args: Vec<FunctionArg>) -> Expr {
    let args = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A value as JSON.
pub(crate) fn as_json(value: Expr) -> Expr {
    call("to_json", vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))])
}

/// The function that an operator between texts or lists stands for.
fn function_of(op: &BinaryOperator) -> Option<&'static str> {
    match op {
        BinaryOperator::Arrow => Some("json_extract"),
        BinaryOperator::LongArrow => Some("json_extract_string"),
        BinaryOperator::PGOverlap => Some("array_has_any"),
        BinaryOperator::PGStartsWith => Some("starts_with"),
        _ => None,
    }
}
