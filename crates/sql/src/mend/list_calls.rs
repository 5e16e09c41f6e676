//! Functions of texts that are called with a list.
//!
//! DataFusion 55.2 makes a text of a list for functions whose arguments are coerced to texts, so that `length([1, 2])`
//! is 6, the length of `[1, 2]`. Here `length` is that of the list, as in DuckDB, and the others are refused. `concat`
//! and `concat_ws` take the text of any value, as in PostgreSQL.
//!
//! The file goes once DataFusion coerces no list to a text.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_nested::expr_fn::{array_length, cardinality};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};

/// Functions of texts that DataFusion calls with the text of a list.
const OF_TEXTS: [&str; 4] = ["character_length", "reverse", "lpad", "rpad"];

/// What a call of such a function with a list means; none if an expression is no such call.
pub(super) fn meaning(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return Ok(None) };
    let name = func.name();
    if !OF_TEXTS.contains(&name) {
        return Ok(None);
    }
    let Some(first) = args.first() else { return Ok(None) };
    let is_list = |data_type: &DataType| {
        matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _))
    };
    Ok(match (name, first.get_type(schema)?) {
        ("character_length", of) if is_list(&of) => Some(cast(array_length(first.clone()), DataType::Int64)),
        ("character_length", DataType::Map(_, _)) => Some(cast(cardinality(first.clone()), DataType::Int64)),
        (_, of) if of.is_nested() => {
            let reason = format!("{name} takes a text, not {of}; CAST(… AS VARCHAR) makes one");
            return Err(DataFusionError::Plan(reason));
        }
        _ => None,
    })
}
