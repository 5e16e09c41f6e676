//! SQL's words for what DataFusion's errors show as Rust's: syntax trees and expressions as `Debug` writes them, and
//! phrases about its own code.
//!
//! Literals become their values. Of a tree its kind remains, in words, and the names and texts in it:
//! `Unsupported ast node in sqltorel: IsNormalized { expr: Identifier(Ident { value: "x", … }), … }` becomes
//! `expression IS NORMALIZED of x`. It would not be needed if DataFusion displayed trees.

mod types;

pub use types::type_name;
pub(crate) use types::{sql_name, types_in_sql};

/// How many names of a tree are shown.
const NAMES_SHOWN: usize = 3;
/// Bytes of the longest literal that is shown as a value.
const VALUE_BYTES_MAX: usize = 10_000;
/// Phrases about DataFusion's code with those for people.
const PHRASES: [(&str, &str); 29] = [
    ("Unsupported LIMIT expression: Some(ScalarSubquery(<subquery>))", "LIMIT of a subquery; it takes a constant"),
    ("Unsupported OFFSET expression: Some(ScalarSubquery(<subquery>))", "OFFSET of a subquery; it takes a constant"),
    ("Unsupported ast node in sqltorel: ", "expression "),
    ("Unsupported ast node ", "in FROM: "),
    (" in create_relation", ""),
    ("ScalarSubquery(<subquery>)", "a subquery that refers to the rows around it"),
    ("While expanding wildcard, ", ""),
    // What follows says the same.
    ("Column in SELECT must be in GROUP BY or an aggregate function: ", ""),
    (" not supported by ExprPlanner:", ":"),
    ("Unsupported expr ", "not a value: "),
    ("Dot access not supported for non-string expr: ", "a field of a struct behind a dot: "),
    ("Unsupported SQL statement: ", ""),
    (" --> ", " to "),
    ("Execution error: ", ""),
    ("Invalid argument error: ", ""),
    ("Parser error: ", ""),
    ("Schema error: ", ""),
    ("Arrow error: ", ""),
    ("Unsupported LIMIT expression: ", "LIMIT of what is no constant: "),
    ("Unsupported OFFSET expression: ", "OFFSET of what is no constant: "),
    ("Unable to cast to Date32 for converting from i64 to i32 failed", "to_date() of what is no date"),
    (" must be an INTEGER, TIMESTAMP, DATE or NULL, got ", " must be a BIGINT, TIMESTAMP, DATE or NULL, got "),
    (" to store in a Decimal128 of precision ", " for a DECIMAL of precision "),
    (" in the physical expr", ""),
    (
        "physical plan is not yet implemented for GROUPING aggregate function",
        "grouping() of what is no key of GROUP BY",
    ),
    (" or must be part of an aggregate function", " or be part of an aggregate function"),
    (
        "Aggregate can not be used as a sliding accumulator because `retract_batch` is not implemented: ",
        "over a frame whose start moves: ",
    ),
    ("There is only support Literal types for field at idx: 1 in Window Function", "an offset that is no constant"),
    ("There is only support Literal types for field at idx: 2 in Window Function", "a default that is no constant"),
];
/// What the planner of operators says of an expression that it has no operator for.
const NO_OPERATOR: &str = "Physical plan does not support logical expression ";
/// Where subqueries of each kind are not planned, by how the expression begins.
const PLACES: [(&str, &str); 6] = [
    ("WindowFunction", "window functions in WHERE, HAVING, ON and GROUP BY; compute them in a subquery"),
    ("InSubquery", "IN (SELECT …) at this place; compute it in a subquery of FROM"),
    ("Exists", "EXISTS (SELECT …) at this place; compute it in a subquery of FROM"),
    ("SetComparison", "ANY and ALL of a subquery at this place; compute them in a subquery of FROM"),
    ("ScalarSubquery", "a subquery that refers to the rows around it, in this form; write it as a join"),
    ("OuterReferenceColumn", "a subquery that refers to the rows around it, in this form; write it as a join"),
];
/// What wraps a value in parentheses.
const WRAPPERS: [&str; 18] = [
    "Boolean",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float16",
    "Float32",
    "Float64",
    "Utf8",
    "Utf8View",
    "LargeUtf8",
    "Date32",
    "Literal",
    "Some",
];
/// What stands before a name or a text in a tree.
const NAMED: [&str; 4] = ["value: \"", "name: \"", "SingleQuotedString(\"", "Number(\""];

/// The text of an error in SQL's words.
pub(crate) fn in_sql(text: &str) -> String {
    if let Some(expression) = text.strip_prefix(NO_OPERATOR) {
        let place = PLACES.iter().find(|(kind, _)| name_at(expression) == *kind);
        return match place {
            Some((_, place)) => place.to_string(),
            None => format!("{} at this place", in_sql(expression).trim_end_matches([',', ' '])),
        };
    }
    let mut said = without_trees(text);
    for (theirs, ours) in PHRASES {
        said = said.replace(theirs, ours);
    }
    // What does appear is no help.
    if let Some((front, _)) = said.split_once(", currently only \"") {
        said.truncate(front.len());
    }
    without_code(&said)
}

/// The text with what aggregates are called in SQL for the types that compute them, and without names that the
/// optimiser gave.
fn without_code(text: &str) -> String {
    const ACCUMULATOR: &str = "Accumulator";
    let is_code = |word: &&str| {
        word.len() > ACCUMULATOR.len() && word.ends_with(ACCUMULATOR) || word.starts_with("__common_expr_")
    };
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(is_code).collect::<Vec<_>>();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.into_iter().fold(text.to_string(), |text, word| match word.strip_suffix(ACCUMULATOR) {
        Some(function) => text.replace(word, &words_of_function(function)),
        None => text.replace(word, "…"),
    })
}

/// `DistinctAvgGroups` as `AVG`.
fn words_of_function(name: &str) -> String {
    let name = name.strip_prefix("Distinct").unwrap_or(name);
    words(name.strip_suffix("Groups").unwrap_or(name))
}

/// The text with values in place of literals, and the kinds of trees in place of trees.
fn without_trees(text: &str) -> String {
    let mut said = String::new();
    let mut at = 0;
    while let Some(start) = tree_start(text, at) {
        said.push_str(&text[at..start]);
        let name = name_at(&text[start..]);
        let open = start + name.len();
        if is_struct(&text[open..]) {
            let Some(end) = closing(text, open) else {
                // A tree that is cut off has only its kind.
                return said + &words(name) + " …";
            };
            said.push_str(&summary(name, &text[open..end]));
            at = end;
        } else if let Some((value, end)) = value(text, start) {
            said.push_str(&value);
            at = end;
        } else {
            said.push_str(name);
            at = open;
        }
    }
    said + &text[at..]
}

/// Where the next name begins that brackets follow.
fn tree_start(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte == b'"';
    (from..bytes.len()).find(|&start| {
        bytes[start].is_ascii_uppercase() && (start == 0 || !is_name(bytes[start - 1])) && {
            let rest = &text[start + name_at(&text[start..]).len()..];
            rest.starts_with('(') || rest.starts_with(" {")
        }
    })
}

/// The name that a text begins with.
fn name_at(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// Whether braces follow a name, or the first of the names in parentheses behind it.
fn is_struct(mut rest: &str) -> bool {
    while let Some(inner) = rest.strip_prefix('(') {
        rest = &inner[name_at(inner).len()..];
    }
    rest.starts_with(" {")
}

/// The place behind the bracket that closes the next one from a place on; brackets in quotes do not count.
fn closing(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let mut characters = text[from..].char_indices();
    while let Some((place, character)) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => _ = characters.next(),
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth -= 1;
                if depth <= 0 {
                    return Some(from + place + 1);
                }
            }
            (None, _) => {}
        }
    }
    None
}

/// The value of a literal that begins at a place, and where it ends.
fn value(text: &str, start: usize) -> Option<(String, usize)> {
    let name = name_at(&text[start..]);
    let open = start + name.len();
    let end = closing(text, open)?;
    let inner = text.get(open + 1..end - 1).filter(|inner| inner.len() <= VALUE_BYTES_MAX)?;
    if name == "PGCustomBinaryOperator" {
        let names = inner.trim_matches(['[', ']']).replace('"', "").replace(", ", ".");
        return Some((format!("OPERATOR({names})"), end));
    }
    if name.starts_with("Interval") && name != "Interval" {
        return Some(("an interval".into(), end));
    }
    // A value with its digits; a type has a blank between them.
    if name.starts_with("Decimal") && !inner.contains(' ') && inner.matches(',').count() == 2 {
        return Some((inner.split(',').next().unwrap_or(inner).into(), end));
    }
    if !WRAPPERS.contains(&name) {
        return None;
    }
    let first = inner.strip_suffix(", None").unwrap_or(inner);
    let shown = if first.len() >= 2 && first.starts_with('"') && first.ends_with('"') {
        format!("'{}'", &first[1..first.len() - 1])
    } else if ["NULL", "true", "false", "NaN", "inf"].contains(&first)
        || first.starts_with(|c: char| c.is_ascii_digit() || c == '-')
    {
        first.into()
    } else {
        let (shown, inner_end) = value(first, 0)?;
        (inner_end == first.len()).then_some(shown)?
    };
    Some((shown, end))
}

/// The kind of a tree and the first names in it; a call by the type that implements the function.
fn summary(kind: &str, tree: &str) -> String {
    if ["ScalarFunction", "AggregateFunction", "WindowFunction"].contains(&kind)
        && let Some((_, function)) = tree.split_once("inner: ")
    {
        let function = words(name_at(function).trim_end_matches("Func")).to_lowercase().replace(' ', "_");
        return format!("{function}()");
    }
    if ["Query", "Subquery", "ScalarSubquery"].contains(&kind) {
        return "a subquery".into();
    }
    let mut names = Vec::new();
    let mut rest = tree;
    while let Some(start) = NAMED.iter().filter_map(|mark| Some(rest.find(mark)? + mark.len())).min() {
        let name = &rest[start..];
        let end = name.find('"').unwrap_or(name.len());
        names.push(&name[..end]);
        rest = &name[end..];
    }
    let more = if names.len() > NAMES_SHOWN { ", …" } else { "" };
    names.truncate(NAMES_SHOWN);
    match (kind, names.is_empty()) {
        ("Column" | "Identifier", false) => names.join("."),
        (_, false) => format!("{} of {}{more}", words(kind), names.join(", ")),
        (_, true) => words(kind),
    }
}

/// `IsNormalized` as `IS NORMALIZED`.
fn words(name: &str) -> String {
    let mut said = String::new();
    let mut before = None;
    for character in name.chars() {
        let is_new = character.is_ascii_uppercase() && before.is_some_and(|before: char| before.is_ascii_lowercase());
        if is_new {
            said.push(' ');
        }
        said.push(character.to_ascii_uppercase());
        before = Some(character);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_become_sql() {
        for (theirs, ours) in [
            (
                "Unsupported ast node in sqltorel: IsNormalized { expr: Identifier(Ident { value: \"x\", quote_style: \
                 None, span: Span(Location(1,8)..Location(1,9)) }), form: None, negated: false }",
                "expression IS NORMALIZED of x",
            ),
            (
                "Unsupported ast node in sqltorel: Collate { expr: Value(ValueWithSpan { value: \
                 SingleQuotedString(\"a\"), span: Span(Location(1,8)..Location(1,11)) }), collation: ObjectName([\
                 Identifier(Ident { value: \"C\", quote_style: Some('\"'), span: Span(Location(1,20)..Location(1,23)) \
                 })]) }",
                "expression COLLATE of a, C",
            ),
            ("a precision of Some(2)", "a precision of 2"),
            ("Unsupported SQL statement: GRANT SELECT ON t TO x", "GRANT SELECT ON t TO x"),
            ("got Literal(Utf8(\"x\"), None)", "got 'x'"),
            (
                "Physical plan does not support logical expression Exists(x, )",
                "EXISTS (SELECT …) at this place; compute it in a subquery of FROM",
            ),
            ("Physical plan does not support logical expression x, ", "x at this place"),
            (
                "Unsupported OFFSET expression: Some(ScalarSubquery(<subquery>))",
                "OFFSET of a subquery; it takes a constant",
            ),
            ("f(Decimal128(0.5,1,1), Decimal128(2, 1))", "f(0.5, Decimal128(2, 1))"),
            ("AvgAccumulator for (Utf8 --> Int64)", "AVG for (Utf8 to Int64)"),
            ("any_value(IntervalMonthDayNano(\"IntervalMonthDayNano { days: 1 }\"))", "any_value(an interval)"),
            ("DistinctMedianGroupsAccumulator of __common_expr_12 * 2", "MEDIAN of … * 2"),
            ("count(Int64(1)) FILTER (WHERE sum(Int64(1)) > Int64(1))", "count(1) FILTER (WHERE sum(1) > 1)"),
            (
                "no BinaryExpr(BinaryExpr { left: Column(Column { relation: Some(Bare { table: \"t\" }), name: \"a\" \
                 }), op: Plus, right: Literal(Int64(1), None) }) here",
                "no BINARY EXPR of a here",
            ),
            (
                "ScalarFunction(ScalarFunction { func: ScalarUDF { inner: AbsFunc { signature: Signature { \
                 type_signature: Numeric(1), volatility: Immutable } } }, args: [Column(Column { relation: None, name: \
                 \"a\" })] })",
                "abs()",
            ),
            (
                "Unsupported binary operator: PGCustomBinaryOperator([\"pg\", \"+\"])",
                "Unsupported binary operator: OPERATOR(pg.+)",
            ),
            (
                "Physical plan does not support logical expression ScalarSubquery(<subquery>)",
                "a subquery that refers to the rows around it, in this form; write it as a join",
            ),
            (
                "WindowFunction(WindowFunction { fun: WindowUDF(WindowUDF { inner: RowNumber { signature: Signature { \
                 volatility: Immutable } } }), params: WindowFunctionParams { args: [], order_by: [] } })",
                "row_number()",
            ),
            (
                "Unsupported expr Subquery(Query { with: None, body: Select(Select { select_token: Token",
                "not a value: SUBQUERY …",
            ),
        ] {
            assert_eq!(in_sql(theirs), ours);
        }
        let deep = format!("{}1{}", "Nested { expr: ".repeat(100_000), " }".repeat(100_000));
        assert_eq!(in_sql(&deep), "NESTED");
    }

    #[test]
    fn text_for_people_stays() {
        for text in [
            "sum(Utf8) does not exist; there are sum(Decimal), sum(Int64)",
            "Cannot cast Timestamp(Nanosecond, None) to Decimal128(12, 2)",
            "Coercion(TypeSignatureClass::Integer) is what it takes",
            "List(Int64) and Struct(\"a\": Int64)",
            "Too many columns! (two)",
        ] {
            assert_eq!(in_sql(text), text);
        }
    }
}
