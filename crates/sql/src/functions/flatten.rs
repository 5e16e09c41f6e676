//! `flatten_all(l)`: the elements of all lists within a list, however deep.
//!
//! `unnest(l, recursive := true)` spreads them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// The function.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(FlattenAll { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FlattenAll {
    signature: Signature,
}

/// The element of a type that is a list.
fn element(data_type: &DataType) -> Option<&FieldRef> {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => Some(field),
        _ => None,
    }
}

impl ScalarUDFImpl for FlattenAll {
    fn name(&self) -> &str {
        "flatten_all"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let mut field = arguments.first().and_then(element).ok_or_else(|| {
            DataFusionError::Plan("flatten_all, and unnest with recursive or max_depth, take a list".into())
        })?;
        while let Some(within) = element(field.data_type()) {
            field = within;
        }
        match field.data_type() {
            DataType::Struct(_) => Err(DataFusionError::NotImplemented(
                "unnest(…, recursive := true) of structs: unnest(l) gives rows of structs, and s.* their members"
                    .into(),
            )),
            kind => Ok(DataType::new_list(kind.clone(), true)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut lists = args.args[0].to_array(args.number_rows)?;
        while let Some(field) = element(lists.data_type()).cloned() {
            let outer = cast(&lists, &DataType::List(field.clone()))?;
            let Some(within) = element(field.data_type()).cloned() else { break };
            let outer = outer.as_list::<i32>();
            let inner = cast(outer.values(), &DataType::List(within))?;
            lists = Arc::new(joined(outer, inner.as_list::<i32>())?);
        }
        Ok(ColumnarValue::Array(cast(&lists, args.return_field.data_type())?))
    }
}

/// Lists of the elements of lists; what stands behind a NULL is no element.
fn joined(outer: &ListArray, inner: &ListArray) -> Result<ListArray> {
    let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(outer.len()));
    for row in 0..outer.len() {
        let before = places.len();
        if outer.is_valid(row) {
            let lists = outer.value_offsets()[row] as usize..outer.value_offsets()[row + 1] as usize;
            for list in lists.filter(|list| inner.is_valid(*list)) {
                places.extend(inner.value_offsets()[list] as u32..inner.value_offsets()[list + 1] as u32);
            }
        }
        lengths.push(places.len() - before);
    }
    let values: ArrayRef = take(inner.values(), &UInt32Array::from(places), None)?;
    let DataType::List(field) = inner.data_type() else {
        return Err(DataFusionError::Internal("a list of another type".into()));
    };
    Ok(ListArray::try_new(field.clone(), OffsetBuffer::from_lengths(lengths), values, outer.nulls().cloned())?)
}
