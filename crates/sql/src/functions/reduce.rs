//! `list_reduce(l, (a, b) -> a + b)`: the elements of a list brought together from the first to the last, as in DuckDB.
//!
//! All rows take their next element in one step: a step evaluates the lambda once for the rows whose lists are long
//! enough. Its values have the type of the elements.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::{cast, interleave, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
};

use super::raised;

/// The function.
pub(crate) fn function() -> HigherOrderUDF {
    let arguments = vec![ValueOrLambda::Value(()), ValueOrLambda::Lambda(())];
    HigherOrderUDF::new_from_impl(Reduce { signature: HigherOrderSignature::exact(arguments, Volatility::Immutable) })
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

/// The list and the lambda among the arguments.
fn parts<V, L>(arguments: &[ValueOrLambda<V, L>]) -> Result<(&V, &L)> {
    match arguments {
        [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] => Ok((list, lambda)),
        _ => Err(DataFusionError::Plan("list_reduce takes a list and a lambda of two arguments".into())),
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
        let element = element(parts(fields)?.0.data_type())?;
        Ok(LambdaParametersProgress::Complete(vec![vec![element.clone(), element]]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let element = element(parts(args.arg_fields)?.0.data_type())?;
        Ok(Arc::new(Field::new("", element.data_type().clone(), true)))
    }

    fn coerce_value_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [DataType::List(_)] => Ok(arguments.to_vec()),
            [DataType::LargeList(field) | DataType::FixedSizeList(field, _)] => Ok(vec![DataType::List(field.clone())]),
            [DataType::Null] => Ok(vec![DataType::new_list(DataType::Null, true)]),
            _ => Err(DataFusionError::Plan("list_reduce takes a list and a lambda of two arguments".into())),
        }
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let (list, lambda) = parts(&args.args)?;
        let lists = list.to_array(args.number_rows)?;
        let lists = lists.as_list::<i32>();
        let offsets = lists.value_offsets();
        let length = |row: usize| if lists.is_valid(row) { (offsets[row + 1] - offsets[row]) as usize } else { 0 };
        if (0..lists.len()).any(|row| lists.is_valid(row) && length(row) == 0) {
            return Err(raised("list_reduce of a list without elements".into()));
        }
        let place = |row: usize, step: usize| (length(row) > step).then(|| offsets[row] as u32 + step as u32);
        let elements = |rows: &[usize], step: usize| {
            let places: UInt32Array = rows.iter().map(|row| place(*row, step)).collect();
            take(lists.values(), &places, None)
        };
        let mut rows: Vec<usize> = (0..lists.len()).collect();
        let mut reduced = match lists.values().is_empty() {
            true => new_null_array(args.return_field.data_type(), lists.len()),
            false => elements(&rows, 0)?,
        };
        for step in 1.. {
            rows.retain(|row| length(*row) > step);
            if rows.is_empty() {
                break;
            }
            let numbers = UInt32Array::from_iter_values(rows.iter().map(|row| *row as u32));
            let (before, next) = (take(&reduced, &numbers, None)?, elements(&rows, step)?);
            let spread = |columns: &[ArrayRef]| {
                columns.iter().map(|column| Ok(take(column, &numbers, None)?)).collect::<Result<Vec<_>>>()
            };
            let value = lambda.evaluate(&[&|| Ok(before.clone()), &|| Ok(next.clone())], spread)?;
            let value = cast(&value.into_array(rows.len())?, reduced.data_type())?;
            let mut places: Vec<(usize, usize)> = (0..lists.len()).map(|row| (0, row)).collect();
            rows.iter().enumerate().for_each(|(at, row)| places[*row] = (1, at));
            reduced = interleave(&[reduced.as_ref(), value.as_ref()], &places)?;
        }
        Ok(ColumnarValue::Array(reduced))
    }
}
