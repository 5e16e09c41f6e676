//! Functions of texts that are called with a list.
//!
//! DataFusion 55.2 makes a text of a list for functions whose arguments are coerced to texts, so that `length([1, 2])`
//! is 6, the length of `[1, 2]`. Here `length` is that of the list, as in DuckDB, and the others are refused. `concat`
//! and `concat_ws` take the text of any value, as in PostgreSQL.
//!
//! The file goes once DataFusion coerces no list to a text.

use std::collections::HashSet;
use std::sync::LazyLock;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::{string, unicode};
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

/// Functions of texts by name.
static OF_TEXTS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let all = string::functions().into_iter().chain(unicode::functions());
    all.map(|function| function.name().to_string()).filter(|name| !name.starts_with("concat")).collect()
});

/// What a call of such a function with a list means; none if an expression is no such call.
pub(super) fn meaning(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return Ok(None) };
    let Some(first) = args.first().filter(|_| OF_TEXTS.contains(func.name())) else { return Ok(None) };
    let of = first.get_type(schema)?;
    if !matches!(of, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _)) {
        return Ok(None);
    }
    match func.name() {
        "character_length" => Ok(Some(cast(array_length(first.clone()), DataType::Int64))),
        name => {
            let reason = format!("{name} takes a text, not {of}; CAST(… AS VARCHAR) makes one");
            Err(DataFusionError::Plan(reason))
        }
    }
}
