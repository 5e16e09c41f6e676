//! Functions by the names under which users of DuckDB and PostgreSQL know them.
//!
//! A call of a function that the session lacks is read by [`RENAMED`], names beside the session's own, and then by
//! [`REWRITTEN`], calls beside the expressions that they stand for; a form that the session's function lacks is read by
//! [`REWRITTEN`], too. Both sides are texts of SQL, in which `$1` and the others stand for arguments; a constant in a
//! call is the argument that it holds for. FILTER, OVER, DISTINCT and the other clauses of a call go to the aggregates
//! of its expression, or to the function that it becomes.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, CastKind, DataType, DictionaryField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, NullTreatment, ObjectName, Query, Select,
    TableFactor, UnaryOperator, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::ParserError;

use super::dialect::parser_of;
use super::items::folded;
use super::json_paths::{by_path, texts};
use super::quotes::quoted;
use super::rows::check_copied;
use super::{function_tables, units, visits};
use super::{lambdas, lists};
use crate::error::{Result, SqlError};
use crate::functions::leads_to_several;

use table::{RENAMED, REWRITTEN};

mod table;

/// An argument of a call in [`REWRITTEN`].
enum Argument {
    /// A constant, as text.
    Constant(String),
    /// Any expression, by its number from 0.
    Any(usize),
}

/// A line of [`REWRITTEN`].
struct Rewriting {
    call: &'static str,
    arguments: Vec<Argument>,
    expression: Expr,
    /// How often the expression has each argument.
    uses: Vec<usize>,
}

/// The names of functions that are read as others.
fn other_functions() -> impl Iterator<Item = &'static str> {
    let called = |(call, _): &(&'static str, &str)| call.split('(').next().unwrap_or_default();
    RENAMED.iter().map(|(name, _)| *name).chain(REWRITTEN.iter().map(called))
}

/// The names of all functions of a session, those that are read as others too.
pub(crate) fn function_names(state: &SessionState) -> impl Iterator<Item = String> {
    let scalar = state.scalar_functions().keys().chain(state.higher_order_functions().keys());
    let others = state.aggregate_functions().keys().chain(state.window_functions().keys());
    let own = scalar.chain(others).chain(state.table_functions().keys()).cloned();
    own.chain(other_functions().map(str::to_string))
}

/// [`REWRITTEN`] by name. A line that is no SQL is left out, which a test would see.
static REWRITINGS: LazyLock<HashMap<String, Vec<Rewriting>>> = LazyLock::new(|| {
    let mut by_name: HashMap<String, Vec<Rewriting>> = HashMap::new();
    for (call, expression) in REWRITTEN {
        if let (Ok(Expr::Function(function)), Ok(expression)) = (expression_of(call), expression_of(expression)) {
            let rewriting = Rewriting::new(call, &function, expression);
            by_name.entry(function.name.to_string()).or_default().push(rewriting);
        }
    }
    by_name
});

fn expression_of(text: &str) -> std::result::Result<Expr, ParserError> {
    parser_of(text)?.parse_expr()
}

/// The number of a placeholder, from 0.
fn placeholder(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else { return None };
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The arguments of a call, unless one has a name or is no expression.
fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(argument).collect()
}

impl Rewriting {
    fn new(call: &'static str, function: &Function, mut expression: Expr) -> Rewriting {
        let argument = |expr: &Expr| match placeholder(expr) {
            Some(number) => Argument::Any(number),
            None => Argument::Constant(expr.to_string().to_lowercase()),
        };
        let arguments: Vec<Argument> = arguments(function).unwrap_or_default().into_iter().map(argument).collect();
        let mut uses = vec![0; arguments.len()];
        let mut count = |_: &mut Expr, number: usize| uses[number] += 1;
        let _ = visits::visit_mut(&mut expression, &mut Placeholders { found: &mut count });
        Rewriting { call, arguments, expression, uses }
    }

    /// Whether the line is about a call with these arguments.
    fn is_of(&self, arguments: &[&Expr]) -> bool {
        let is_argument = |(argument, expr): (&Argument, &&Expr)| match argument {
            Argument::Any(_) => true,
            Argument::Constant(text) => expr.to_string().to_lowercase() == *text,
        };
        self.arguments.len() == arguments.len() && self.arguments.iter().zip(arguments).all(is_argument)
    }

    /// The expression for a call that the line is about.
    ///
    /// # Errors
    /// [`SqlError::Unsupported`] for clauses that the expression has no place for, and for an argument without a value
    /// of its own that the expression has several times.
    fn applied(&self, state: &SessionState, name: &str, call: &Function, arguments: &[&Expr]) -> Result<Expr> {
        let mut expression = self.expression.clone();
        let mut by_number: HashMap<usize, &Expr> = HashMap::new();
        for (argument, expr) in self.arguments.iter().zip(arguments) {
            if let Argument::Any(number) = argument {
                by_number.insert(*number, expr);
                if self.uses[*number] > 1 {
                    check_copied([*expr])?;
                }
            }
        }
        let mut put = |expr: &mut Expr, number: usize| {
            if let Some(argument) = by_number.get(&number) {
                *expr = operand((*argument).clone());
            }
        };
        let _ = visits::visit_mut(&mut expression, &mut Placeholders { found: &mut put });
        with_clauses(state, name, &mut expression, call)?;
        Ok(match expression {
            Expr::BinaryOp { .. } => Expr::Nested(Box::new(expression)),
            other => other,
        })
    }
}

/// An expression in the place of an operand.
pub(super) fn operand(expr: Expr) -> Expr {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Function(_) | Expr::Nested(_) => {
            expr
        }
        other => Expr::Nested(Box::new(other)),
    }
}

/// Shows each placeholder of an expression with its number.
struct Placeholders<'a> {
    found: &'a mut dyn FnMut(&mut Expr, usize),
}

impl VisitorMut for Placeholders<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(number) = placeholder(expr) {
            (self.found)(expr, number);
        }
        ControlFlow::Continue(())
    }
}

/// Shows each call of an aggregate in an expression.
struct Aggregates<'a> {
    state: &'a SessionState,
    found: &'a mut dyn FnMut(&mut Function) -> Result<()>,
}

impl VisitorMut for Aggregates<'_> {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        match self.state.aggregate_functions().contains_key(&function.name.to_string()) {
            true => (self.found)(function).map_or_else(ControlFlow::Break, ControlFlow::Continue),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Gives an expression the clauses of the call that it stands for: those of its aggregates, or of the function that it
/// is.
fn with_clauses(state: &SessionState, name: &str, expression: &mut Expr, call: &Function) -> Result<()> {
    let mut has_aggregate = false;
    let mut give = |function: &mut Function| {
        has_aggregate = true;
        take_clauses(name, function, call)
    };
    if let ControlFlow::Break(error) = visits::visit_mut(expression, &mut Aggregates { state, found: &mut give }) {
        return Err(error);
    }
    if has_aggregate {
        return Ok(());
    }
    if let Expr::Function(function) = expression {
        return take_clauses(name, function, call);
    }
    // No function takes them.
    let refused = |clause: &str| Err(SqlError::Unsupported(format!("{clause} of {name}")));
    let FunctionArguments::List(list) = &call.args else { return Ok(()) };
    match () {
        () if call.filter.is_some() => refused("FILTER"),
        () if call.over.is_some() => refused("OVER"),
        () if list.duplicate_treatment.is_some() => refused("DISTINCT"),
        () if is_ordered(&list.clauses) => refused("ORDER BY"),
        () if !call.within_group.is_empty() => refused("WITHIN GROUP"),
        () if call.null_treatment.is_some() || !list.clauses.is_empty() => refused("IGNORE and RESPECT NULLS"),
        () => Ok(()),
    }
}

/// Gives an expression the clauses of the call that it stands for, if the call has any.
pub(super) fn with_clauses_of(state: &SessionState, name: &str, expression: &mut Expr, call: &Function) -> Result<()> {
    let has_clauses = matches!(&call.args, FunctionArguments::List(list)
        if list.duplicate_treatment.is_some() || !list.clauses.is_empty())
        || call.filter.is_some()
        || call.over.is_some()
        || call.null_treatment.is_some()
        || !call.within_group.is_empty();
    if has_clauses { with_clauses(state, name, expression, call) } else { Ok(()) }
}

fn is_ordered(clauses: &[FunctionArgumentClause]) -> bool {
    clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)))
}

/// Gives a function the clauses of a call.
fn take_clauses(name: &str, function: &mut Function, call: &Function) -> Result<()> {
    let FunctionArguments::List(given) = &call.args else { return Ok(()) };
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let refused = |clause: &str| Err(SqlError::Unsupported(format!("{clause} of {name}")));
    if is_ordered(&list.clauses) && (call.over.is_some() || is_ordered(&given.clauses)) {
        return refused(if call.over.is_some() { "OVER" } else { "ORDER BY" });
    }
    list.duplicate_treatment = given.duplicate_treatment.or(list.duplicate_treatment.take());
    list.clauses.extend(given.clauses.clone());
    function.filter = match (function.filter.take(), call.filter.clone()) {
        (Some(own), Some(given)) => {
            let [left, right] = [own, given].map(|side| Box::new(Expr::Nested(side)));
            Some(Box::new(Expr::BinaryOp { left, op: BinaryOperator::And, right }))
        }
        (own, given) => own.or(given),
    };
    function.over = call.over.clone();
    function.null_treatment = call.null_treatment;
    function.within_group = call.within_group.clone();
    Ok(())
}

/// Reads calls of functions that the session lacks by their other names.
///
/// # Errors
/// [`SqlError::Unsupported`] for arguments and clauses that a function does not have.
pub(super) fn by_other_names(state: &SessionState, parsed: &mut ParsedStatement) -> Result<()> {
    match super::visit(parsed, &mut Calls { state }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Calls<'a> {
    state: &'a SessionState,
}

impl VisitorMut for Calls<'_> {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        function_tables::with_rows(&mut select.from).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        function_tables::with_numbers(factor).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        units::settle(expr);
        by_path(expr);
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        match read(self.state, function) {
            Ok(None) => {}
            Ok(Some(read)) => *expr = read,
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// Makes lambdas of the arguments of functions that take some, before any name in them is read.
pub(super) fn with_lambdas(state: &SessionState, parsed: &mut ParsedStatement) {
    struct Lambdas<'a>(&'a SessionState);
    impl VisitorMut for Lambdas<'_> {
        type Break = ();
        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Function(function) = expr
                && let [part] = function.name.0.as_slice()
                && let Some(name) = part.as_ident().map(folded)
            {
                let own = RENAMED.iter().find(|(other, _)| *other == name).map_or(name.as_str(), |(_, own)| *own);
                if name == "columns" {
                    lambdas::of_arguments(function, 0);
                } else if self.0.higher_order_functions().contains_key(own) {
                    lambdas::of_arguments(function, 1);
                }
            }
            ControlFlow::Continue(())
        }
    }
    let _ = super::visit(parsed, &mut Lambdas(state));
}

/// Whether a session has a function of this name.
fn has(state: &SessionState, name: &str) -> bool {
    state.scalar_functions().contains_key(name)
        || state.aggregate_functions().contains_key(name)
        || state.window_functions().contains_key(name)
        || state.higher_order_functions().contains_key(name)
}

/// Whether an expression is a truth value whatever its operands are.
fn is_condition(expr: &Expr) -> bool {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    match expr {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => matches!(op, And | Eq | Gt | GtEq | Lt | LtEq | NotEq | Or),
        Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
        Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::Exists { .. } => true,
        Expr::InList { .. } | Expr::Between { .. } | Expr::Like { .. } | Expr::ILike { .. } => true,
        _ => false,
    }
}

/// The arguments of `struct_insert(s, a := 1)` behind the struct as those of `{'a': 1}`.
fn changed_members(function: &Function) -> Option<Vec<DictionaryField>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(_), members @ ..] if !members.is_empty() => fields_of(members),
        _ => None,
    }
}

/// The arguments of `struct_pack(a := 1)` as those of `{'a': 1}`.
fn named_fields(function: &Function) -> Option<Vec<DictionaryField>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    fields_of(&list.args)
}

/// Arguments with names as members.
fn fields_of(arguments: &[FunctionArg]) -> Option<Vec<DictionaryField>> {
    let field = |argument: &FunctionArg| match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), operator: _ }
        | FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), operator: _ } => {
            let key = quoted(folded(name));
            Some(DictionaryField { key, value: Box::new(value.clone()) })
        }
        _ => None,
    };
    arguments.iter().map(field).collect()
}

/// The members of a call that gives a struct, each with its call: `date_part(['year', 'month'], d)`, and
/// `regexp_extract(s, '(\\d+)-(\\d+)', ['year', 'month'])` with a group for each name.
fn by_names(name: &str, call: &Function) -> Option<Vec<(String, Function)>> {
    let given = arguments(call)?;
    let with = |name: &str, given| with_arguments(call, name, given);
    match (name, given.as_slice()) {
        ("date_part" | "datepart", [units, time]) => {
            let text = |unit: &str| Expr::value(Value::SingleQuotedString(unit.into()));
            let of = |unit: String| (unit.clone(), with("date_part", vec![text(&unit), (*time).clone()]));
            Some(texts(units)?.into_iter().map(of).collect())
        }
        ("regexp_extract", [text, pattern, names]) => {
            let of = |(group, name): (usize, String)| {
                let group = Expr::value(Value::Number((group + 1).to_string(), false));
                (name, with("regexp_extract", vec![(*text).clone(), (*pattern).clone(), group]))
            };
            Some(texts(names)?.into_iter().enumerate().map(of).collect())
        }
        _ => None,
    }
}

/// The call with another name and other arguments.
fn with_arguments(call: &Function, name: &str, given: Vec<Expr>) -> Function {
    let mut made = call.clone();
    made.name = ObjectName::from(vec![Ident::new(name)]);
    let (duplicate_treatment, clauses) = match std::mem::replace(&mut made.args, FunctionArguments::None) {
        FunctionArguments::List(list) => (list.duplicate_treatment, list.clauses),
        _ => (None, Vec::new()),
    };
    let args = given.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    made.args = FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses });
    made
}

/// `ARRAY(SELECT …)`: the values of a query's column, in its order; of no row an empty list.
fn list_of(query: &Query) -> Result<Expr> {
    let item = "\u{2063}item";
    let list = format!("(SELECT coalesce(array_agg(\"{item}\"), []) FROM ({query}) AS list (\"{item}\"))");
    expression_of(&list).map_err(|error| SqlError::Syntax(error.to_string()))
}

/// The calls for the shares of `quantile_cont(x, [0.25, 0.75])`, or the paths of `json_extract(j, ['$.a', '$.b'])`, one
/// for each.
fn by_items(name: &str, call: &Function) -> Option<Vec<Function>> {
    match (name, arguments(call)?.as_slice()) {
        (
            "quantile"
            | "quantile_cont"
            | "quantile_disc"
            | "json_extract"
            | "json_extract_string"
            | "json_value"
            | "json_exists",
            [value, Expr::Array(shares)],
        ) => {
            let of = |share: &Expr| with_arguments(call, name, vec![(*value).clone(), share.clone()]);
            Some(shares.elem.iter().map(of).collect())
        }
        _ => None,
    }
}

/// A member of a struct with the value of a call, which may have another name.
fn member(state: &SessionState, (name, mut call): (String, Function)) -> Result<DictionaryField> {
    let value = read(state, &mut call)?.unwrap_or(Expr::Function(call));
    Ok(DictionaryField { key: quoted(name), value: Box::new(value) })
}

/// The function of JSON that gives all values that a path with `*` leads to, as a list.
pub(super) fn of_several(name: &str, path: &Expr) -> Option<&'static str> {
    let list = match name {
        "json_extract" => "json_extract_list",
        "json_extract_string" => "json_extract_string_list",
        _ => return None,
    };
    let Expr::Value(path) = path else { return None };
    let path = path.value.clone().into_string()?;
    leads_to_several(&path).then_some(list)
}

/// What a call is read as, where that is another expression; a name alone is changed in its place.
fn read(state: &SessionState, function: &mut Function) -> Result<Option<Expr>> {
    let [part] = function.name.0.as_slice() else { return Ok(None) };
    let Some(mut name) = part.as_ident().map(folded) else { return Ok(None) };
    if name == "array"
        && let FunctionArguments::Subquery(query) = &function.args
    {
        return list_of(query).map(Some);
    }
    // The parser gives them no parentheses.
    if matches!(function.args, FunctionArguments::None) && ["current_user", "session_user"].contains(&name.as_str()) {
        *function = with_arguments(function, &name, Vec::new());
    }
    let is_own = has(state, &name);
    if let Some((_, own)) = RENAMED.iter().find(|(other, _)| *other == name && !is_own) {
        name = (*own).to_string();
        function.name = ObjectName::from(vec![Ident::new(*own)]);
    }
    if name == "any_value"
        && let FunctionArguments::List(list) = &function.args
        && is_ordered(&list.clauses)
    {
        // DataFusion passes its order over.
        function.name = ObjectName::from(vec![Ident::new("first_value")]);
        function.null_treatment = Some(NullTreatment::IgnoreNulls);
    }
    if name == "sum"
        && let FunctionArguments::List(list) = &mut function.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(condition))] = list.args.as_mut_slice()
        && is_condition(condition)
    {
        // As in DuckDB; PostgreSQL adds up no truth values.
        let (kind, data_type) = (CastKind::Cast, DataType::BigInt(None));
        let expr = Box::new(std::mem::replace(condition, Expr::value(Value::Null)));
        *condition = Expr::Cast { kind, expr, data_type, array: false, format: None };
    }
    if let Some(members) = by_names(&name, function) {
        let members = members.into_iter().map(|of| member(state, of)).collect::<Result<_>>()?;
        return Ok(Some(Expr::Dictionary(members)));
    }
    if let Some(calls) = by_items(&name, function) {
        let value = |mut call: Function| Ok(read(state, &mut call)?.unwrap_or(Expr::Function(call)));
        let elem = calls.into_iter().map(value).collect::<Result<_>>()?;
        return Ok(Some(Expr::Array(Array { elem, named: false })));
    }
    if let Some(of_several) = arguments(function).and_then(|given| of_several(&name, given.get(1)?)) {
        function.name = ObjectName::from(vec![Ident::new(of_several)]);
        return Ok(None);
    }
    if let "struct_insert" | "struct_update" = name.as_str() {
        let wrong = || SqlError::Planning(format!("{name} takes a struct and values with names, {name}(s, b := 2)"));
        let members = changed_members(function).ok_or_else(wrong)?;
        function.name = ObjectName::from(vec![Ident::new("struct_concat")]);
        if let FunctionArguments::List(list) = &mut function.args {
            list.args.truncate(1);
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Dictionary(members))));
        }
        return Ok(None);
    }
    if name == "struct_pack" {
        let wrong = || SqlError::Planning("struct_pack takes values with names, struct_pack(a := 1, b := 'x')".into());
        return Ok(Some(Expr::Dictionary(named_fields(function).ok_or_else(wrong)?)));
    }
    // DuckDB takes the pattern first, too.
    if name == "strftime"
        && let Some([pattern @ Expr::Value(_), time]) = arguments(function).as_deref()
        && !matches!(time, Expr::Value(_))
    {
        *function = with_arguments(function, &name, vec![(*time).clone(), (*pattern).clone()]);
    }
    if name == "unnest" {
        return lists::with_depth(function).map(|()| None);
    }
    let Some(rewritings) = REWRITINGS.get(&name) else { return Ok(None) };
    let arguments = arguments(function).unwrap_or_default();
    // The session's `make_time` takes whole seconds, of texts too.
    let is_fraction = |seconds: &&Expr| matches!(seconds, Expr::Value(value) if value.to_string().contains('.'));
    if name == "make_time" && !arguments.get(2).is_some_and(is_fraction) {
        return Ok(None);
    }
    match rewritings.iter().find(|rewriting| rewriting.is_of(&arguments)) {
        Some(rewriting) => Ok(Some(rewriting.applied(state, &name, function, &arguments)?)),
        None if is_own => Ok(None),
        None => {
            let calls: Vec<&str> = rewritings.iter().map(|rewriting| rewriting.call).collect();
            Err(SqlError::Unsupported(format!("{function}; there is {}", calls.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    /// The user's page has each name.
    const PAGE: &str = include_str!("../../../../docs/sql.md");

    #[test]
    fn each_line_is_read_and_needed() {
        let context = SessionContext::new();
        let alone = context.state();
        crate::functions::functions().for_each(|udf| context.register_udf(udf));
        context.register_higher_order_function(std::sync::Arc::new(crate::functions::list_reduce()));
        let state = context.state();
        assert_eq!(REWRITINGS.values().map(Vec::len).sum::<usize>(), REWRITTEN.len());
        for name in REWRITINGS.keys() {
            // A function that the session has is read otherwise in a form that it lacks.
            let is_form = [
                "array_first",
                "array_push_front",
                "date_part",
                "list_first",
                "list_sort",
                "make_time",
                "max",
                "min",
                "string_agg",
            ]
            .contains(&name.as_str());
            assert_eq!(has(&alone, name), is_form, "{name}");
            assert!(PAGE.contains(&format!("`{name}`")), "docs/sql.md lacks {name}");
        }
        for (name, own) in RENAMED {
            assert!(!has(&state, name), "the session has {name} itself");
            assert!(has(&state, own) || REWRITINGS.contains_key(own), "nothing has {own}");
            assert!(PAGE.contains(&format!("`{name}`")), "docs/sql.md lacks {name}");
        }
        for udf in crate::functions::functions() {
            assert!(PAGE.contains(&format!("`{}`", udf.name())), "docs/sql.md lacks {}", udf.name());
        }
    }
}
