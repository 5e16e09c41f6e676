//! Macros: `CREATE MACRO f(a, b := 2) AS a + b`, as views whose names end with parentheses.
//!
//! So a catalog keeps macros as it keeps views. A macro without arguments is the view of its query, or of the one row
//! of its expression: `FROM m()` is `FROM "m()" AS m`, and `m()` a scalar subquery, which is computed once a statement.
//! A macro with arguments, or of the connection alone, is the view of its text: a call is its expression or its query
//! with the call's arguments in the place of its own, as in DuckDB. An argument that stands in it twice is computed
//! twice. `SET VARIABLE x = 1` makes such a macro (`variables.rs`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::SchemaProvider;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, CreateView, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, MacroArg,
    MacroDefinition, ObjectName, ObjectNamePart, SelectItem, SetExpr, Statement as SqlStatement, TableFactor,
    TableFunctionArgs, Value, VisitMut, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token};
use futures::FutureExt;

use super::dialect::parser_of;
use super::expansions::{alias, subquery};
use super::items::{constant, folded};
use super::quotes::quoted;
use super::{function_tables, functions, statement_of, statement_within, stored, visits};
use crate::default_schema::{CATALOG, SCHEMA, VARIABLE};
use crate::error::{Result, SqlError};

/// Deepest nesting of macros that call others.
const DEPTH_MAX: usize = 64;
/// Most operands that the arguments of one statement's macros have where they stand.
const OPERANDS_MAX: usize = 20_000;

/// The text of the view that a macro is; none of other statements.
///
/// # Errors
/// [`SqlError::Syntax`] for a name that is none.
pub(super) fn as_view(parsed: &ParsedStatement) -> Result<Option<String>> {
    let ParsedStatement::Statement(statement) = parsed else { return Ok(None) };
    let SqlStatement::CreateMacro { or_replace, temporary, name, args, definition } = statement.as_ref() else {
        return Ok(None);
    };
    let view = called(name).ok_or_else(|| SqlError::Syntax(format!("'{name}' is no name of a macro")))?;
    let create = format!(
        "CREATE {}{}VIEW",
        if *or_replace { "OR REPLACE " } else { "" },
        if *temporary { "TEMPORARY " } else { "" }
    );
    if *temporary || args.is_some() {
        // The tree writes a list of no arguments as none.
        let text = statement.to_string();
        let text = match args {
            Some(_) => text,
            None => text.replacen(&format!("MACRO {name} AS"), &format!("MACRO {name}() AS"), 1),
        };
        return Ok(Some(format!("{create} {view} AS SELECT {} AS macro", constant(&text))));
    }
    Ok(Some(match definition {
        MacroDefinition::Expr(expr) => format!("{create} {view} AS SELECT {expr} AS value"),
        MacroDefinition::Table(query) => format!("{create} {view} AS {query}"),
    }))
}

/// Whether a view is a macro.
pub(super) fn is_one(view: &CreateView) -> bool {
    let last = view.name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|name| name.value.ends_with("()"))
}

/// The text of `DROP VIEW` for a `DROP MACRO`, or DROP FUNCTION; none of other statements, and of functions that a
/// program has registered.
pub(super) fn dropped(state: &SessionState, sql: &str) -> Option<String> {
    let mut parser = begun(sql, "drop")?;
    parser.parse_keyword(Keyword::DROP).then_some(())?;
    parser.parse_one_of_keywords(&[Keyword::MACRO, Keyword::FUNCTION])?;
    let _ = parser.parse_keyword(Keyword::TABLE);
    let exists = if parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]) { "IF EXISTS " } else { "" };
    let name = parser.parse_object_name(false).ok()?;
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    while parser.consume_token(&Token::SemiColon) {}
    let own = folded(name.0.last()?.as_ident()?);
    let is_macro = parser.peek_token_ref().token == Token::EOF && !state.scalar_functions().contains_key(&own);
    is_macro.then_some(format!("DROP VIEW {exists}{}", called(&name)?))
}

/// A CREATE MACRO … IF NOT EXISTS without its condition, or a statement that makes nothing where the macro is there;
/// none of other statements.
pub(super) fn unless_there(state: &SessionState, sql: &str) -> Option<String> {
    let mut parser = begun(sql, "create")?;
    parser.parse_keyword(Keyword::CREATE).then_some(())?;
    let _ = parser.parse_one_of_keywords(&[Keyword::TEMP, Keyword::TEMPORARY]);
    parser.parse_one_of_keywords(&[Keyword::MACRO, Keyword::FUNCTION])?;
    let start = parser.peek_token_ref().span.start;
    parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]).then_some(())?;
    let end = parser.get_current_token().span.end;
    let name = parser.parse_object_name(false).ok()?;
    if let Some((view, ..)) = view_of(state, &name) {
        return Some(format!("CREATE VIEW IF NOT EXISTS {view} AS SELECT 1"));
    }
    // The same number of characters, so that places stay.
    let (mut ours, mut at) = (String::with_capacity(sql.len()), Location { line: 1, column: 1 });
    for character in sql.chars() {
        let is_left_out = start <= at && at < end && character != '\n';
        ours.push(if is_left_out { ' ' } else { character });
        at = match character {
            '\n' => Location { line: at.line + 1, column: 1 },
            _ => Location { line: at.line, column: at.column + 1 },
        };
    }
    Some(ours)
}

/// A parser of a statement that begins with a word, or with a comment.
fn begun(sql: &str, word: &str) -> Option<Parser<'static>> {
    let text = sql.trim_start();
    let is_it = text.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word));
    (is_it || text.starts_with("--") || text.starts_with("/*")).then(|| parser_of(sql).ok())?
}

/// Writes out calls of macros, of variables and of the functions that name tables by texts; gives whether there were
/// any.
///
/// # Errors
/// [`SqlError::Planning`] for arguments that a macro does not take, [`SqlError::Unsupported`] for macros that are too
/// deep or too long.
pub(super) fn write_out(state: &SessionState, parsed: &mut ParsedStatement) -> Result<bool> {
    let is_view = matches!(parsed, ParsedStatement::Statement(it) if matches!(**it, SqlStatement::CreateView(_)));
    let mut calls = Calls { state, depth: 0, places: 0, has_found: false, is_view };
    match super::visit(parsed, &mut calls) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(calls.has_found),
    }
}

/// The name of the view of a macro. Functions have names in any case, in quotes too.
pub(super) fn called(name: &ObjectName) -> Option<ObjectName> {
    let mut parts: Vec<Ident> = name.0.iter().map(|part| part.as_ident().cloned()).collect::<Option<_>>()?;
    let last = parts.pop()?;
    parts.push(quoted(format!("{}()", last.value.to_lowercase())));
    Some(ObjectName(parts.into_iter().map(ObjectNamePart::Identifier).collect()))
}

/// The text of a macro in the view that it is.
fn text_of(view: &SqlStatement) -> Option<String> {
    let SqlStatement::CreateView(view) = view else { return None };
    let SetExpr::Select(select) = view.query.body.as_ref() else { return None };
    match (select.projection.as_slice(), select.from.as_slice()) {
        ([SelectItem::ExprWithAlias { expr: Expr::Value(text), alias }], []) if alias.value == "macro" => {
            text.value.clone().into_string()
        }
        _ => None,
    }
}

/// The macro that a variable is.
pub(super) fn of_variable(name: &str) -> ObjectName {
    let own = format!("{VARIABLE}{}", name.to_lowercase());
    ObjectName::from([CATALOG, SCHEMA, own.as_str()].map(quoted).to_vec())
}

/// The macro of the variable that a call of `getvariable` names.
///
/// # Errors
/// [`SqlError::Planning`] for a name that is no constant.
fn variable(call: &Function) -> Result<Option<ObjectName>> {
    let [part] = call.name.0.as_slice() else { return Ok(None) };
    if part.as_ident().is_none_or(|name| folded(name) != "getvariable") {
        return Ok(None);
    }
    let name = match &call.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [argument] => value_of(argument),
            _ => None,
        },
        _ => None,
    };
    match name {
        Some(Expr::Value(name)) => Ok(name.value.clone().into_string().map(|name| of_variable(&name))),
        _ => Err(SqlError::Planning("getvariable takes the name of a variable, a constant: getvariable('x')".into())),
    }
}

/// Whether a name with a schema is that of a macro.
pub(super) fn is_there(state: &SessionState, name: &ObjectName) -> bool {
    name.0.len() > 1 && view_of(state, name).is_some()
}

/// The view of a macro that is there, and its schema.
fn view_of(state: &SessionState, name: &ObjectName) -> Option<(ObjectName, TableReference, Arc<dyn SchemaProvider>)> {
    let view = called(name)?;
    let reference = stored::reference(&view)?;
    let schema = state.schema_for_ref(reference.clone()).ok()?;
    schema.table_exist(reference.table()).then_some((view, reference, schema))
}

/// What a call means.
enum Found {
    /// The view of a macro without arguments.
    View(ObjectName),
    Macro(Vec<MacroArg>, Box<MacroDefinition>),
}

struct Calls<'a> {
    state: &'a SessionState,
    /// The macros around.
    depth: usize,
    /// How many operands arguments have where they stand.
    places: usize,
    /// Whether a macro was called.
    has_found: bool,
    /// Whether the statement makes a view, whose plan would keep the values of variables.
    is_view: bool,
}

impl Calls<'_> {
    /// The macro of a name.
    fn found(&self, name: &ObjectName) -> Option<Found> {
        let (view, reference, schema) = view_of(self.state, name)?;
        // The view of a text waits for nothing.
        let table = schema.table(reference.table()).now_or_never().and_then(std::result::Result::ok).flatten();
        let parsed = |text: &str| match statement_of(self.state, text).ok()? {
            ParsedStatement::Statement(statement) => Some(statement),
            _ => None,
        };
        let text = table.and_then(|table| text_of(parsed(table.get_table_definition()?)?.as_ref()));
        let statement = text.and_then(|text| match statement_within(self.state, &text).ok()? {
            ParsedStatement::Statement(statement) => Some(statement),
            _ => None,
        });
        let Some(statement) = statement else { return Some(Found::View(view)) };
        match *statement {
            SqlStatement::CreateMacro { args, temporary, definition, .. } if temporary || args.is_some() => {
                Some(Found::Macro(args.unwrap_or_default(), Box::new(definition)))
            }
            _ => Some(Found::View(view)),
        }
    }

    /// Puts a call's arguments in the place of a macro's own, and writes out the macros within.
    fn applied(
        &mut self,
        name: &ObjectName,
        args: &[MacroArg],
        given: &[FunctionArg],
        body: &mut impl VisitMut,
    ) -> Result<()> {
        if self.depth >= DEPTH_MAX {
            return Err(SqlError::Unsupported(format!("macro {name}, more than {DEPTH_MAX} macros deep")));
        }
        let values = bound(name, args, given)?;
        let _ =
            visits::visit_mut(body, &mut Arguments { values: &values, places: &mut self.places, hidden: Vec::new() });
        if self.places > OPERANDS_MAX {
            return Err(SqlError::Unsupported(format!(
                "macros whose arguments have more than {OPERANDS_MAX} operands together"
            )));
        }
        self.depth += 1;
        let done = visits::visit_mut(body, self);
        self.depth -= 1;
        match done {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// The expression of a call.
    fn expression(&mut self, call: &Function) -> Result<Option<Expr>> {
        let none = Vec::new();
        let given = match &call.args {
            FunctionArguments::List(list) => &list.args,
            FunctionArguments::None => &none,
            FunctionArguments::Subquery(_) => return Ok(None),
        };
        let variable = variable(call)?;
        let is_variable = variable.is_some();
        if is_variable && self.is_view {
            let text = "getvariable in a view or in a macro without arguments, which would keep the value of now; give \
                        it to a macro with an argument, or write CREATE TEMPORARY MACRO";
            return Err(SqlError::Unsupported(text.into()));
        }
        let name = variable.unwrap_or_else(|| call.name.clone());
        let found = self.found(&name);
        self.has_found |= found.is_some();
        let (args, definition) = match found {
            Some(Found::Macro(args, definition)) => (args, definition),
            Some(Found::View(view)) if given.is_empty() && call.over.is_none() && call.filter.is_none() => {
                let query = parser_of(&format!("SELECT * FROM {view}")).and_then(|mut parser| parser.parse_query());
                return Ok(query.ok().map(Expr::Subquery));
            }
            Some(Found::View(_)) => {
                return Err(SqlError::Planning(format!("macro {name} takes no arguments, FILTER and OVER")));
            }
            None if is_variable => return Ok(Some(Expr::value(Value::Null))),
            None => return Ok(None),
        };
        let MacroDefinition::Expr(mut body) = *definition else {
            return Err(SqlError::Planning(format!("macro {name} gives a table: FROM {name}(…)")));
        };
        self.applied(&name, &args, if is_variable { &[] } else { given }, &mut body)?;
        functions::with_clauses_of(self.state, &name.to_string(), &mut body, call)?;
        Ok(Some(functions::operand(body)))
    }

    /// The query of a call in FROM.
    fn table(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table {
            name,
            alias: named,
            args: Some(TableFunctionArgs { args: given, settings: None }),
            ..
        } = factor
        else {
            return Ok(());
        };
        let own = named.clone().or_else(|| Some(alias(&folded(name.0.last()?.as_ident()?))));
        if let Some(query) = function_tables::by_text(self.state, name, given)? {
            self.has_found = true;
            *factor = subquery(false, query, own);
            let done = visits::visit_mut(factor, self);
            return done.break_value().map_or(Ok(()), Err);
        }
        let found = self.found(name);
        self.has_found |= found.is_some();
        match found {
            Some(Found::Macro(args, definition)) => {
                let MacroDefinition::Table(mut query) = *definition else {
                    let reason = format!("macro {name} gives a value and no table: SELECT {name}(…)");
                    return Err(SqlError::Planning(reason));
                };
                self.applied(name, &args, given, query.as_mut())?;
                let reads_beside = given.iter().any(|argument| !matches!(value_of(argument), Some(Expr::Value(_))));
                *factor = subquery(reads_beside, query, own);
                Ok(())
            }
            Some(Found::View(view)) if given.is_empty() => {
                if let TableFactor::Table { name, alias, args, .. } = factor {
                    (*name, *alias, *args) = (view, own, None);
                }
                Ok(())
            }
            Some(Found::View(_)) => Err(SqlError::Planning(format!("macro {name} takes no arguments"))),
            None => Ok(()),
        }
    }
}

impl VisitorMut for Calls<'_> {
    type Break = SqlError;

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        self.table(factor).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        match self.expression(call) {
            Ok(None) => {}
            Ok(Some(body)) => *expr = body,
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// The expression that an argument is.
fn value_of(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        | FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(value), .. } => Some(value),
        _ => None,
    }
}

/// The values of a macro's arguments in a call, by their names.
fn bound(name: &ObjectName, args: &[MacroArg], given: &[FunctionArg]) -> Result<HashMap<String, Expr>> {
    let wrong = || {
        let form = |arg: &MacroArg| match &arg.default_expr {
            Some(default) => format!("{} := {default}", arg.name),
            None => arg.name.to_string(),
        };
        let forms: Vec<String> = args.iter().map(form).collect();
        SqlError::Planning(format!("the macro is {name}({}); a call has other arguments", forms.join(", ")))
    };
    let mut values = HashMap::new();
    let mut in_order = args.iter();
    for argument in given {
        let parameter = match argument {
            FunctionArg::Unnamed(_) => in_order.next().map(|arg| folded(&arg.name)),
            FunctionArg::Named { name, .. } | FunctionArg::ExprNamed { name: Expr::Identifier(name), .. } => {
                Some(folded(name)).filter(|name| args.iter().any(|arg| folded(&arg.name) == *name))
            }
            FunctionArg::ExprNamed { .. } => None,
        };
        let (Some(parameter), Some(value)) = (parameter, value_of(argument)) else { return Err(wrong()) };
        if values.insert(parameter, value.clone()).is_some() {
            return Err(wrong());
        }
    }
    for arg in args {
        let parameter = folded(&arg.name);
        if let Entry::Vacant(missing) = values.entry(parameter) {
            missing.insert(arg.default_expr.clone().ok_or_else(wrong)?);
        }
    }
    Ok(values)
}

/// How many expressions an expression has, itself among them.
fn operands(expr: &Expr) -> usize {
    struct Count(usize);
    impl Visitor for Count {
        type Break = ();
        fn pre_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(0);
    let _ = visits::visit(expr, &mut count);
    count.0
}

/// Puts values in the place of a macro's arguments, and of the first name of `argument.field`.
struct Arguments<'a> {
    values: &'a HashMap<String, Expr>,
    places: &'a mut usize,
    /// Parameters of the lambdas around, which hide arguments of their names.
    hidden: Vec<String>,
}

impl Arguments<'_> {
    fn value(&self, name: &Ident) -> Option<&Expr> {
        let name = folded(name);
        self.values.get(&name).filter(|_| !self.hidden.contains(&name))
    }
}

impl VisitorMut for Arguments<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            self.hidden.extend(lambda.params.iter().map(|parameter| folded(&parameter.name)));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let value = match expr {
            Expr::Lambda(lambda) => {
                self.hidden.truncate(self.hidden.len() - lambda.params.iter().count());
                None
            }
            Expr::Identifier(name) => self.value(name).map(|value| functions::operand(value.clone())),
            Expr::CompoundIdentifier(names) => names.split_first().and_then(|(first, rest)| {
                let value = self.value(first)?.clone();
                let field = |name: &Ident| AccessExpr::Dot(Expr::Identifier(name.clone()));
                Some(match value {
                    Expr::Identifier(own) => Expr::CompoundIdentifier([&[own], rest].concat()),
                    Expr::CompoundIdentifier(own) => Expr::CompoundIdentifier([own.as_slice(), rest].concat()),
                    other => Expr::CompoundFieldAccess {
                        root: Box::new(functions::operand(other)),
                        access_chain: rest.iter().map(field).collect(),
                    },
                })
            }),
            _ => None,
        };
        if let Some(value) = value {
            *self.places += operands(&value);
            if *self.places <= OPERANDS_MAX {
                *expr = value;
            }
        }
        ControlFlow::Continue(())
    }
}
