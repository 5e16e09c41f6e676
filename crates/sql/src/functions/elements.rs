//! `list_transform(l, (x, i) -> x + i)` and `list_filter`: lambdas of an element and its place, from 1, as in DuckDB.
//!
//! The functions of DataFusion 55.2 of these names give a lambda the element alone. The file goes once theirs give the
//! place, too.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, UInt32Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, filter, take, take_arrays};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature, HigherOrderUDF,
    HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
};

/// Both functions.
pub(crate) fn functions() -> [HigherOrderUDF; 2] {
    [("array_transform", "list_transform", false), ("array_filter", "list_filter", true)].map(
        |(name, alias, is_filter)| {
            let arguments = vec![ValueOrLambda::Value(()), ValueOrLambda::Lambda(())];
            let signature = HigherOrderSignature::exact(arguments, Volatility::Immutable);
            HigherOrderUDF::new_from_impl(OfElements { name, aliases: vec![alias.into()], is_filter, signature })
        },
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfElements {
    name: &'static str,
    aliases: Vec<String>,
    /// Whether elements are kept for which the lambda is true, or replaced by what it gives.
    is_filter: bool,
    signature: HigherOrderSignature,
}

impl OfElements {
    /// The list and the lambda among the arguments.
    fn parts<'a, V, L>(&self, arguments: &'a [ValueOrLambda<V, L>]) -> Result<(&'a V, &'a L)> {
        match arguments {
            [ValueOrLambda::Value(list), ValueOrLambda::Lambda(lambda)] => Ok((list, lambda)),
            _ => Err(DataFusionError::Plan(format!("{} takes a list and a lambda", self.name))),
        }
    }

    /// The element of a list's type.
    fn element(&self, list: &DataType) -> Result<FieldRef> {
        match list {
            DataType::List(field) => Ok(field.clone()),
            other => Err(DataFusionError::Plan(format!("{} expects a list, found {other}", self.name))),
        }
    }
}

impl HigherOrderUDFImpl for OfElements {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let element = self.element(self.parts(fields)?.0.data_type())?;
        let place = Arc::new(Field::new("place", DataType::Int64, false));
        Ok(LambdaParametersProgress::Complete(vec![vec![element, place]]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let (list, lambda) = self.parts(args.arg_fields)?;
        let data_type = match self.is_filter {
            true => list.data_type().clone(),
            false => DataType::new_list(lambda.data_type().clone(), lambda.is_nullable()),
        };
        Ok(Arc::new(Field::new("", data_type, list.is_nullable())))
    }

    fn coerce_value_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [DataType::List(_)] => Ok(arguments.to_vec()),
            [
                DataType::LargeList(field)
                | DataType::FixedSizeList(field, _)
                | DataType::ListView(field)
                | DataType::LargeListView(field),
            ] => Ok(vec![DataType::List(field.clone())]),
            [DataType::Null] => Ok(vec![DataType::new_list(DataType::Null, true)]),
            _ => Err(DataFusionError::Plan(format!("{} takes a list and a lambda", self.name))),
        }
    }

    /// Evaluates the lambda once for the elements of all rows; what stands behind a NULL is no element.
    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let (list, lambda) = self.parts(&args.args)?;
        let lists = list.to_array(args.number_rows)?;
        let lists = lists.as_list::<i32>();
        let offsets = lists.value_offsets();
        let length = |row: usize| if lists.is_valid(row) { (offsets[row + 1] - offsets[row]) as usize } else { 0 };
        let rows = || (0..lists.len()).flat_map(move |row| std::iter::repeat_n(row, length(row)));
        let within = || (0..lists.len()).flat_map(move |row| 0..length(row));
        let elements: UInt32Array =
            rows().zip(within()).map(|(row, place)| Some(offsets[row] as u32 + place as u32)).collect();
        let values = take(lists.values(), &elements, None)?;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(within().map(|place| place as i64 + 1)));
        let element = self.element(args.return_field.data_type())?;
        let spread = |columns: &[ArrayRef]| -> Result<Vec<ArrayRef>> {
            let rows = UInt32Array::from_iter_values(rows().map(|row| row as u32));
            Ok(take_arrays(columns, &rows, None)?)
        };
        let given = match values.is_empty() {
            true if self.is_filter => new_empty_array(&DataType::Boolean),
            true => new_empty_array(element.data_type()),
            false => {
                let given = lambda.evaluate(&[&|| Ok(values.clone()), &|| Ok(numbers.clone())], spread)?;
                given.into_array(values.len())?
            }
        };
        let (lengths, values): (Vec<usize>, ArrayRef) = match self.is_filter {
            false => ((0..lists.len()).map(length).collect(), given),
            true => {
                let is_kept: BooleanArray = match given.data_type() {
                    DataType::Boolean => given.as_boolean().iter().map(|kept| Some(kept == Some(true))).collect(),
                    DataType::Null => BooleanArray::from(vec![false; given.len()]),
                    other => {
                        let reason = format!("the lambda of {} gives {other} and no truth value", self.name);
                        return Err(DataFusionError::Plan(reason));
                    }
                };
                let mut lengths = vec![0; lists.len()];
                rows().zip(is_kept.values()).filter(|(_, is_kept)| *is_kept).for_each(|(row, _)| lengths[row] += 1);
                (lengths, filter(&values, &is_kept)?)
            }
        };
        let values = cast(&values, element.data_type())?;
        let list = ListArray::try_new(element, OffsetBuffer::from_lengths(lengths), values, lists.nulls().cloned())?;
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}
