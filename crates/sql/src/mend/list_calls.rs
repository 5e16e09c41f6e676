//! Functions of texts that are called with a list.
//!
//! DataFusion 55.2 makes a text of a list for functions whose arguments are coerced to texts, so that `length([1, 2])`
//! is 6, the length of `[1, 2]`, and refuses lists of structs. Here `length` takes any list and is the length of it, as
//! in DuckDB, and the others are refused. `concat` and `concat_ws` take the text of any value, as in PostgreSQL.
//!
//! The file goes once DataFusion coerces no list to a text.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::functions::{string, unicode};
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, cast,
};

/// The function whose other names are `length` and `char_length`.
const LENGTH: &str = "character_length";
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
    if !is_list(&of) {
        return Ok(None);
    }
    match func.name() {
        LENGTH => Ok(Some(cast(array_length(first.clone()), DataType::Int64))),
        name => {
            let reason = format!("{name} takes a text, not {of}; CAST(… AS VARCHAR) makes one");
            Err(DataFusionError::Plan(reason))
        }
    }
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _))
}

/// The function of a session, mended.
pub(super) fn function(state: &SessionState) -> Option<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Some(ScalarUDF::new_from_impl(Length { original: state.udf(LENGTH).ok()?, signature }))
}

/// The length of a text, which is planned for a list too; [`meaning`] is what that is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Length {
    original: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Length {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn aliases(&self) -> &[String] {
        self.original.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if types.first().is_some_and(is_list) { Ok(DataType::Int64) } else { self.original.return_type(types) }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if let [list] = types
            && is_list(list)
        {
            return Ok(vec![list.clone()]);
        }
        let fields: Vec<_> = types.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
        let coerced = fields_with_udf(&fields, self.original.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.original.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}
