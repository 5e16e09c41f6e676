//! `list_reduce(l, (a, b) -> a + b)`: the elements of a list brought together from the first to the last, as in DuckDB.
//!
//! All rows take their next element in one step: a step evaluates the lambda once for the rows whose lists are long
//! enough. Its values have the type of the elements, or one that holds them and the first value where there is one. A
//! third parameter is the place of the element, from 1.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array, new_null_array};
use arrow::compute::{cast, interleave, is_null, nullif, take};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::raised;

/// The function.
pub(crate) fn function() -> HigherOrderUDF {
    HigherOrderUDF::new_from_impl(Reduce { signature: HigherOrderSignature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Reduce {
    signature: HigherOrderSignature,
}

/// The element of a list's type.
fn element(list: &DataType) -> Result<FieldRef> {
    match list {
        DataType::List(field) => Ok(field.clone()),
        other => Err(DataFusionError::Plan(format!("list_reduce expects a list, found {other}"))),
    }
}

/// The list, the lambda and the first value among the arguments.
fn parts<V, L>(arguments: &[ValueOrLambda<V, L>]) -> Result<(&V, &L, Option<&V>)> {
    match arguments {
        [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] => Ok((list, lambda, None)),
        [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda), ValueOrLambda::Value(first)] => {
            Ok((list, lambda, Some(first)))
        }
        _ => Err(wrong()),
    }
}

fn wrong() -> DataFusionError {
    let reason = "list_reduce takes a list, a lambda of two or three arguments and maybe a first value";
    DataFusionError::Plan(reason.into())
}

/// The type of the values of a list with a first value: that of the elements if they may stand beside each other, with
/// room for the digits of sums.
fn reduced_type(element: &DataType, first: &DataType) -> DataType {
    let is_one = first.is_null() || element.is_numeric() && first.is_numeric();
    let common = if is_one { comparison_coercion(element, first) } else { None };
    match common.unwrap_or_else(|| if first.is_null() { element } else { first }.clone()) {
        DataType::Decimal128(_, scale) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
        other => other,
    }
}

impl HigherOrderUDFImpl for Reduce {
    fn name(&self) -> &str {
        "list_reduce"
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let (list, _, first) = parts(fields)?;
        let element = element(list.data_type())?;
        let before =
            first.map_or_else(|| element.clone(), |first| Arc::new(first.as_ref().clone().with_name("before")));
        let place = Arc::new(Field::new("place", DataType::Int64, false));
        Ok(LambdaParametersProgress::Complete(vec![vec![before, element, place]]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let (list, _, first) = parts(args.arg_fields)?;
        let data_type = match first {
            Some(first) => first.data_type().clone(),
            None => element(list.data_type())?.data_type().clone(),
        };
        Ok(Arc::new(Field::new("", data_type, true)))
    }

    fn coerce_value_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let (list, first) = match arguments {
            [list] => (list, None),
            [list, first] => (list, Some(first)),
            _ => return Err(wrong()),
        };
        let (list, element) = match list {
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                (DataType::List(field.clone()), field.data_type().clone())
            }
            DataType::Null => (DataType::new_list(DataType::Null, true), DataType::Null),
            _ => return Err(wrong()),
        };
        Ok(std::iter::once(list).chain(first.map(|first| reduced_type(&element, first))).collect())
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let (list, lambda, first) = parts(&args.args)?;
        let lists = list.to_array(args.number_rows)?;
        let lists = lists.as_list::<i32>();
        let offsets = lists.value_offsets();
        let length = |row: usize| if lists.is_valid(row) { (offsets[row + 1] - offsets[row]) as usize } else { 0 };
        if first.is_none() && (0..lists.len()).any(|row| lists.is_valid(row) && length(row) == 0) {
            return Err(raised("list_reduce of a list without elements".into()));
        }
        let place = |row: usize, step: usize| (length(row) > step).then(|| offsets[row] as u32 + step as u32);
        let elements = |rows: &[usize], step: usize| {
            let places: UInt32Array = rows.iter().map(|row| place(*row, step)).collect();
            take(lists.values(), &places, None)
        };
        let mut rows: Vec<usize> = (0..lists.len()).collect();
        let mut reduced = match first {
            // A NULL has no first value.
            Some(first) => {
                let first = cast(&first.to_array(args.number_rows)?, args.return_field.data_type())?;
                nullif(&first, &is_null(lists)?)?
            }
            None if lists.values().is_empty() => new_null_array(args.return_field.data_type(), lists.len()),
            None => elements(&rows, 0)?,
        };
        for step in usize::from(first.is_none()).. {
            rows.retain(|row| length(*row) > step);
            if rows.is_empty() {
                break;
            }
            let numbers = UInt32Array::from_iter_values(rows.iter().map(|row| *row as u32));
            let (before, next) = (take(&reduced, &numbers, None)?, elements(&rows, step)?);
            let spread = |columns: &[ArrayRef]| {
                columns.iter().map(|column| Ok(take(column, &numbers, None)?)).collect::<Result<Vec<_>>>()
            };
            let place: ArrayRef = Arc::new(Int64Array::from(vec![step as i64 + 1; rows.len()]));
            let given: [&dyn Fn() -> Result<ArrayRef>; 3] =
                [&|| Ok(before.clone()), &|| Ok(next.clone()), &|| Ok(place.clone())];
            let value = lambda.evaluate(&given, spread)?;
            let value = cast(&value.into_array(rows.len())?, reduced.data_type())?;
            let mut places: Vec<(usize, usize)> = (0..lists.len()).map(|row| (0, row)).collect();
            rows.iter().enumerate().for_each(|(at, row)| places[*row] = (1, at));
            reduced = interleave(&[reduced.as_ref(), value.as_ref()], &places)?;
        }
        Ok(ColumnarValue::Array(reduced))
    }
}
