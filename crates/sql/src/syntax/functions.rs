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
    BinaryOperator, DictionaryField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, Ident, NullTreatment, ObjectName, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

use super::dialect::SessionDialect;
use super::items::folded;
use super::lambdas;
use super::rows::check_copied;
use super::{units, visits};
use crate::error::{Result, SqlError};

/// Names of functions and the names that sessions have for them.
pub(crate) const RENAMED: [(&str, &str); 69] = [
    ("aggregate", "list_aggregate"),
    ("apply", "array_transform"),
    ("approx_count_distinct", "approx_distinct"),
    ("arbitrary", "first_value"),
    ("argmax", "arg_max"),
    ("argmin", "arg_min"),
    ("array_aggr", "list_aggregate"),
    ("array_aggregate", "list_aggregate"),
    ("array_apply", "array_transform"),
    ("array_reverse_sort", "list_reverse_sort"),
    ("array_select", "list_select"),
    ("array_to_json", "to_json"),
    ("array_unique", "list_unique"),
    ("array_value", "make_array"),
    ("array_zip", "arrays_zip"),
    ("base64", "to_base64"),
    ("ceiling", "ceil"),
    ("countif", "count_if"),
    ("datediff", "date_diff"),
    ("datesub", "date_sub"),
    ("editdist3", "levenshtein"),
    ("every", "bool_and"),
    ("first", "first_value"),
    ("from_binary", "unbin"),
    ("from_hex", "unhex"),
    ("gen_random_uuid", "uuid"),
    ("geometric_mean", "geomean"),
    ("get_current_time", "current_time"),
    ("get_current_timestamp", "now"),
    ("greatest_common_divisor", "gcd"),
    ("iif", "if"),
    ("json_extract_path", "json_extract"),
    ("json_extract_path_text", "json_extract_string"),
    ("json_quote", "to_json"),
    ("last", "last_value"),
    ("lcase", "lower"),
    ("least_common_multiple", "lcm"),
    ("len", "length"),
    ("list", "array_agg"),
    ("list_aggr", "list_aggregate"),
    ("list_apply", "array_transform"),
    ("list_min", "array_min"),
    ("list_pack", "make_array"),
    ("list_value", "make_array"),
    ("max_by", "arg_max"),
    ("min_by", "arg_min"),
    ("mismatches", "hamming"),
    ("ord", "ascii"),
    ("pg_typeof", "typeof"),
    ("prefix", "starts_with"),
    ("regexp_matches", "regexp_like"),
    ("regexp_split_to_array", "string_split_regex"),
    ("roundbankers", "round_even"),
    ("row_to_json", "to_json"),
    ("sign", "signum"),
    ("split", "string_split"),
    ("statement_timestamp", "now"),
    ("str_split", "string_split"),
    ("str_split_regex", "string_split_regex"),
    ("strlen", "octet_length"),
    ("struct_extract", "get_field"),
    ("suffix", "ends_with"),
    ("to_binary", "bin"),
    ("transaction_timestamp", "now"),
    ("ucase", "upper"),
    ("unicode", "ascii"),
    ("uuidv4", "uuid"),
    ("variance", "var_samp"),
    ("wavg", "weighted_avg"),
];

/// Calls and the expressions that they are read as; one with a constant before one that takes any argument there.
pub(crate) const REWRITTEN: [(&str, &str); 84] = [
    ("add($1, $2)", "$1 + $2"),
    ("age($1)", "age(CAST(current_date AS TIMESTAMP), $1)"),
    ("ago($1)", "now() - $1"),
    ("arg_max($1, $2)", "first_value($1 ORDER BY $2 DESC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("arg_min($1, $2)", "first_value($1 ORDER BY $2 ASC NULLS LAST) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("count_if($1)", "count(*) FILTER (WHERE $1)"),
    ("count_star()", "count(*)"),
    ("date_add($1, $2)", "$1 + $2"),
    ("date_diff('century', $1, $2)", "century($2) - century($1)"),
    ("date_diff('day', $1, $2)", "CAST($2 AS DATE) - CAST($1 AS DATE)"),
    ("date_diff('decade', $1, $2)", "decade($2) - decade($1)"),
    (
        "date_diff('hour', $1, $2)",
        "CAST((date_part('epoch', date_trunc('hour', $2)) - date_part('epoch', date_trunc('hour', $1))) / \
         3600 AS BIGINT)",
    ),
    (
        "date_diff('isoyear', $1, $2)",
        "CAST(date_part('isoyear', $2) AS BIGINT) - CAST(date_part('isoyear', $1) AS BIGINT)",
    ),
    ("date_diff('microsecond', $1, $2)", "epoch_us($2) - epoch_us($1)"),
    ("date_diff('millennium', $1, $2)", "millennium($2) - millennium($1)"),
    ("date_diff('millisecond', $1, $2)", "epoch_ms($2) - epoch_ms($1)"),
    (
        "date_diff('minute', $1, $2)",
        "CAST((date_part('epoch', date_trunc('minute', $2)) - date_part('epoch', date_trunc('minute', \
         $1))) / 60 AS BIGINT)",
    ),
    (
        "date_diff('month', $1, $2)",
        "12 * (CAST(date_part('year', $2) AS BIGINT) - CAST(date_part('year', $1) AS BIGINT)) + \
         CAST(date_part('month', $2) AS BIGINT) - CAST(date_part('month', $1) AS BIGINT)",
    ),
    (
        "date_diff('quarter', $1, $2)",
        "4 * (CAST(date_part('year', $2) AS BIGINT) - CAST(date_part('year', $1) AS BIGINT)) + \
         CAST(date_part('quarter', $2) AS BIGINT) - CAST(date_part('quarter', $1) AS BIGINT)",
    ),
    (
        "date_diff('second', $1, $2)",
        "CAST((date_part('epoch', date_trunc('second', $2)) - date_part('epoch', date_trunc('second', \
         $1))) AS BIGINT)",
    ),
    ("date_diff('week', $1, $2)", "(CAST($2 AS DATE) - CAST($1 AS DATE)) / 7"),
    ("date_diff('year', $1, $2)", "CAST(date_part('year', $2) AS BIGINT) - CAST(date_part('year', $1) AS BIGINT)"),
    ("date_part($1, NULL)", "CAST(NULL AS INT)"),
    ("day($1)", "CAST(date_part('day', $1) AS BIGINT)"),
    ("dayname($1)", "to_char($1, '%A')"),
    ("dayofmonth($1)", "CAST(date_part('day', $1) AS BIGINT)"),
    ("dayofweek($1)", "CAST(date_part('dow', $1) AS BIGINT)"),
    ("dayofyear($1)", "CAST(date_part('doy', $1) AS BIGINT)"),
    (
        "days_in_month($1)",
        "CAST(date_part('day', CAST(make_date(date_part('year', $1) + date_part('month', $1) / 12, \
         date_part('month', $1) % 12 + 1, 1) - 1 AS DATE)) AS BIGINT)",
    ),
    ("divide($1, $2)", "$1 / $2"),
    ("epoch($1)", "CAST(date_part('epoch', $1) AS DOUBLE)"),
    ("favg($1)", "avg(CAST($1 AS DOUBLE))"),
    ("fdiv($1, $2)", "floor(CAST($1 AS DOUBLE) / $2)"),
    ("fsum($1)", "sum(CAST($1 AS DOUBLE))"),
    ("geomean($1)", "exp(avg(ln(CAST($1 AS DOUBLE))))"),
    ("histogram($1)", "list_histogram(array_agg($1) FILTER (WHERE $1 IS NOT NULL))"),
    ("json_group_array($1)", "'[' || string_agg(coalesce(to_json($1), 'null'), ',') || ']'"),
    ("kurtosis_pop($1)", "list_kurtosis_pop(array_agg(CAST($1 AS DOUBLE)) FILTER (WHERE $1 IS NOT NULL))"),
    ("list_last($1)", "array_element($1, -1)"),
    ("product($1)", "list_product(array_agg(CAST($1 AS DOUBLE)) FILTER (WHERE $1 IS NOT NULL))"),
    ("sem($1)", "sqrt(CAST(var_pop($1) AS DOUBLE) / count($1))"),
    ("skewness($1)", "list_skewness(array_agg(CAST($1 AS DOUBLE)) FILTER (WHERE $1 IS NOT NULL))"),
    (
        "weighted_avg($1, $2)",
        "sum(CAST($1 AS DOUBLE) * $2) / sum(CASE WHEN $1 IS NOT NULL THEN CAST($2 AS DOUBLE) END)",
    ),
    ("group_concat($1)", "string_agg($1, ',')"),
    ("group_concat($1, $2)", "string_agg($1, $2)"),
    ("hour($1)", "CAST(date_part('hour', $1) AS BIGINT)"),
    ("if($1, $2)", "CASE WHEN $1 THEN $2 END"),
    ("if($1, $2, $3)", "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("isodow($1)", "CAST(date_part('isodow', $1) AS BIGINT)"),
    ("isoyear($1)", "CAST(date_part('isoyear', $1) AS BIGINT)"),
    ("kahan_sum($1)", "sum(CAST($1 AS DOUBLE))"),
    (
        "last_day($1)",
        "CAST(make_date(date_part('year', $1) + date_part('month', $1) / 12, date_part('month', $1) % 12 + 1, 1) \
         - 1 AS DATE)",
    ),
    ("list_aggregate($1, 'avg')", "list_avg($1)"),
    ("list_aggregate($1, 'max')", "array_max($1)"),
    ("list_aggregate($1, 'min')", "array_min($1)"),
    ("list_aggregate($1, 'sum')", "list_sum($1)"),
    ("list_reverse_sort($1)", "array_sort($1, 'DESC', 'NULLS LAST')"),
    ("list_sort($1)", "array_sort($1, 'ASC', 'NULLS LAST')"),
    ("list_sort($1, $2)", "array_sort($1, $2, 'NULLS LAST')"),
    ("listagg($1)", "string_agg($1, ',')"),
    ("listagg($1, $2)", "string_agg($1, $2)"),
    ("make_timestamp_ms($1)", "epoch_ms($1)"),
    ("microsecond($1)", "CAST(date_part('microsecond', $1) AS BIGINT)"),
    ("millisecond($1)", "CAST(date_part('millisecond', $1) AS BIGINT)"),
    ("minute($1)", "CAST(date_part('minute', $1) AS BIGINT)"),
    ("mod($1, $2)", "$1 % $2"),
    ("month($1)", "CAST(date_part('month', $1) AS BIGINT)"),
    ("monthname($1)", "to_char($1, '%B')"),
    ("multiply($1, $2)", "$1 * $2"),
    ("quarter($1)", "CAST(date_part('quarter', $1) AS BIGINT)"),
    (
        "regexp_extract($1, $2)",
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(regexp_match($1, '(' || $2 || ')')[1], \
         '') END",
    ),
    (
        "regexp_extract($1, $2, 'i')",
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN coalesce(regexp_match($1, '((?i)' || $2 || ')')[1], '') END",
    ),
    (
        "regexp_extract($1, $2, $3)",
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL AND $3 IS NOT NULL THEN coalesce(regexp_match($1, \
         '(' || $2 || ')')[$3 + 1], '') END",
    ),
    ("regexp_full_match($1, $2)", "regexp_like($1, '^(?:' || $2 || ')$')"),
    ("second($1)", "CAST(floor(date_part('second', $1)) AS BIGINT)"),
    (
        "strftime($1, $2)",
        "to_char($1, replace(replace(replace(replace(replace($2, '%%', chr(1)), '%f', '%6f'), '%g', '%3f'), \
         '%n', '%9f'), chr(1), '%%'))",
    ),
    ("string_agg($1)", "string_agg($1, ',')"),
    (
        "string_split($1, $2)",
        "CASE WHEN $1 = '' THEN make_array('') WHEN $1 IS NOT NULL AND $2 IS NULL THEN make_array($1) \
         ELSE string_to_array($1, nullif($2, '')) END",
    ),
    ("subtract($1, $2)", "$1 - $2"),
    ("sumkahan($1)", "sum(CAST($1 AS DOUBLE))"),
    ("week($1)", "CAST(date_part('week', $1) AS BIGINT)"),
    ("weekday($1)", "CAST(date_part('dow', $1) AS BIGINT)"),
    ("weekofyear($1)", "CAST(date_part('week', $1) AS BIGINT)"),
    ("year($1)", "CAST(date_part('year', $1) AS BIGINT)"),
];

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
pub(crate) fn other_functions() -> impl Iterator<Item = &'static str> {
    let called = |(call, _): &(&'static str, &str)| call.split('(').next().unwrap_or_default();
    RENAMED.iter().map(|(name, _)| *name).chain(REWRITTEN.iter().map(called))
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
    Parser::new(&SessionDialect).try_with_sql(text)?.parse_expr()
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
fn operand(expr: Expr) -> Expr {
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

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        units::settle(expr);
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
                if self.0.higher_order_functions().contains_key(own) {
                    lambdas::of_arguments(function);
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

/// The arguments of `struct_pack(a := 1)` as those of `{'a': 1}`.
fn named_fields(function: &Function) -> Option<Vec<DictionaryField>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let field = |argument: &FunctionArg| match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), operator: _ }
        | FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), operator: _ } => {
            let key = Ident::with_quote('\'', folded(name));
            Some(DictionaryField { key, value: Box::new(value.clone()) })
        }
        _ => None,
    };
    list.args.iter().map(field).collect()
}

/// What a call is read as, where that is another expression; a name alone is changed in its place.
fn read(state: &SessionState, function: &mut Function) -> Result<Option<Expr>> {
    let [part] = function.name.0.as_slice() else { return Ok(None) };
    let Some(mut name) = part.as_ident().map(folded) else { return Ok(None) };
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
    if name == "struct_pack" {
        let wrong = || SqlError::Planning("struct_pack takes values with names, struct_pack(a := 1, b := 'x')".into());
        return Ok(Some(Expr::Dictionary(named_fields(function).ok_or_else(wrong)?)));
    }
    let Some(rewritings) = REWRITINGS.get(&name) else { return Ok(None) };
    let arguments = arguments(function).unwrap_or_default();
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
        let state = context.state();
        assert_eq!(REWRITINGS.values().map(Vec::len).sum::<usize>(), REWRITTEN.len());
        for name in REWRITINGS.keys() {
            // A function that the session has is read otherwise in a form that it lacks.
            let is_form = ["date_part", "list_sort", "string_agg"].contains(&name.as_str());
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
