//! Operators of JSON with several paths, and PostgreSQL's with a list of steps.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Value};

/// Makes calls of JSON's operators with several paths, `j -> ['$.a', '$.b']`, and with PostgreSQL's, `j #> '{a,0}'`.
pub(super) fn by_path(expr: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = expr else { return };
    let name = match op {
        BinaryOperator::Arrow | BinaryOperator::HashArrow => "json_extract",
        BinaryOperator::LongArrow | BinaryOperator::HashLongArrow => "json_extract_string",
        _ => return,
    };
    let path = match (&*op, right.as_ref()) {
        (BinaryOperator::Arrow | BinaryOperator::LongArrow, Expr::Array(_)) => right.as_ref().clone(),
        (BinaryOperator::HashArrow | BinaryOperator::HashLongArrow, path) => {
            let steps = match path {
                Expr::Value(value) => value.value.clone().into_string().and_then(|text| {
                    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?.to_string();
                    let step = |step: &str| step.trim().trim_matches('"').to_string();
                    let is_empty = inner.trim().is_empty();
                    Some(inner.split(',').map(step).filter(|_| !is_empty).collect::<Vec<_>>())
                }),
                list => texts(list),
            };
            let Some(steps) = steps else { return };
            // A pointer of JSON takes a step for a name or a number, as its value is an object or an array.
            let step = |step: &String| format!("/{}", step.replace('~', "~0").replace('/', "~1"));
            // Without a step it is all of the value.
            let path = if steps.is_empty() { "$".into() } else { steps.iter().map(step).collect() };
            Expr::value(Value::SingleQuotedString(path))
        }
        _ => return,
    };
    let value = std::mem::replace(left.as_mut(), Expr::value(Value::Null));
    let arguments = [value, path].map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    *expr = super::call(name, arguments.into());
}

/// The texts of a list that is written out.
pub(super) fn texts(list: &Expr) -> Option<Vec<String>> {
    let Expr::Array(array) = list else { return None };
    let text = |item: &Expr| match item {
        Expr::Value(value) => value.value.clone().into_string(),
        _ => None,
    };
    array.elem.iter().map(text).collect()
}
