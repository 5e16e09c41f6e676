//! Functions of a list and a value: both are of one type, and `array_has` is false beside a NULL in the list.
//!
//! DataFusion 55.2 refuses `array_concat([1], NULL)`, whose NULL is a number there, and `array_has([1, 2], 1.5)`, a
//! BIGINT list and a decimal, and makes `x IN (1, NULL)` of `array_has([1, NULL], x)`, which is NULL where `x` is
//! another value than 1; of a column of lists it is false, as in DuckDB. Here NULL is a list among lists, a list and a
//! value have the type that they are compared in, and a list that is written out becomes one of IN without its NULLs,
//! where all other elements are there in each row.
//!
//! The file goes once DataFusion's functions have types in common, and `array_has` one meaning.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

/// Functions whose first arguments are a list and a value like its elements, and the one that joins lists.
const NAMES: [&str; 8] = [
    HAS,
    CONCAT,
    "array_append",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
];
const HAS: &str = "array_has";
/// The function of lists alone.
const CONCAT: &str = "array_concat";

/// The functions of a session, mended.
pub(super) fn functions(state: &SessionState) -> Vec<ScalarUDF> {
    let mended = |name: &str| {
        let original = state.udf(name).ok()?;
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(ScalarUDF::new_from_impl(OfElements { original, signature }))
    };
    NAMES.into_iter().filter_map(mended).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfElements {
    original: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for OfElements {
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
        self.original.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<Arc<Field>> {
        self.original.return_field_from_args(args)
    }

    /// The element's type and the value's are that of a comparison; all else is as DataFusion has it.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let alike = match types {
            lists if self.name() == CONCAT => lists
                .iter()
                .find(|list| !list.is_null())
                .map(|list| lists.iter().map(|own| if own.is_null() { list.clone() } else { own.clone() }).collect()),
            [list, value, rest @ ..] => common(list, value).map(|(list, value)| {
                let mut types = vec![list, value];
                types.extend_from_slice(rest);
                types
            }),
            _ => None,
        };
        let types = alike.as_deref().unwrap_or(types);
        let fields: Vec<_> = types.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
        let coerced = fields_with_udf(&fields, self.original.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.name() != HAS {
            return self.original.simplify(args, info);
        }
        let [list, value] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let Some(mut elements) = elements(list)? else { return Ok(ExprSimplifyResult::Original(args)) };
        elements.retain(|element| !matches!(element, Expr::Literal(value, _) if value.is_null()));
        let mut may_be_null = false;
        for element in &elements {
            may_be_null |= info.nullable(element)?;
        }
        if elements.is_empty() || may_be_null {
            return Ok(ExprSimplifyResult::Original(args));
        }
        Ok(ExprSimplifyResult::Simplified(value.clone().in_list(elements, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.original.invoke_with_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let original = Arc::new(self.original.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(OfElements { original, signature: self.signature.clone() }))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}

/// The types of a list and a value whose comparison needs casts; none where it needs none, or there is none.
fn common(list: &DataType, value: &DataType) -> Option<(DataType, DataType)> {
    let (DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _)) = list else {
        return None;
    };
    let own = field.data_type();
    if own == value || own.is_null() || value.is_null() {
        return None;
    }
    let kind = comparison_coercion(own, value)?;
    let field = Arc::new(field.as_ref().clone().with_data_type(kind.clone()));
    let list = match list {
        DataType::LargeList(_) => DataType::LargeList(field),
        _ => DataType::List(field),
    };
    Some((list, kind))
}

/// The elements of a list that is a constant or is written out.
fn elements(list: &Expr) -> Result<Option<Vec<Expr>>> {
    match list {
        Expr::Literal(value @ (ScalarValue::List(_) | ScalarValue::LargeList(_)), _) if !value.is_null() => {
            let rows = ScalarValue::convert_array_to_scalar_vec(&value.to_array()?)?;
            Ok(Some(rows.into_iter().flatten().flatten().map(lit).collect()))
        }
        Expr::ScalarFunction(function) if function.func.name() == "make_array" => Ok(Some(function.args.clone())),
        _ => Ok(None),
    }
}
