//! Text cells as a record batch: a column of element numbers for each dimension, and the texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, LargeStringArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use arrow::error::ArrowError;

use super::TextCell;
use crate::model::{CubeModel, ElementId};

/// Name of the column of texts; columns of element numbers are `dimension 0` and so on.
const TEXT: &str = "text";

/// The batch of text cells, each of which names an element of every dimension.
///
/// # Errors
/// Those of Arrow.
pub(super) fn to_batch(model: &CubeModel, texts: &[TextCell]) -> Result<RecordBatch, ArrowError> {
    let elements = (0..model.dimensions().len()).map(|dimension| -> ArrayRef {
        let numbers = texts.iter().map(|cell| cell.elements[dimension].index() as u32);
        Arc::new(UInt32Array::from_iter_values(numbers))
    });
    let text: ArrayRef = Arc::new(LargeStringArray::from_iter_values(texts.iter().map(|cell| &cell.text)));
    RecordBatch::try_new(Arc::new(schema(model)), elements.chain([text]).collect())
}

/// The text cells of batches; nothing if their columns are not those of text cells.
pub(super) fn from_batches(model: &CubeModel, batches: &[RecordBatch]) -> Option<Vec<TextCell>> {
    let mut texts = Vec::new();
    for batch in batches {
        if *batch.schema() != schema(model) {
            return None;
        }
        let (text, elements) = batch.columns().split_last()?;
        let numbers: Vec<&UInt32Array> = elements.iter().map(|column| column.as_primitive::<UInt32Type>()).collect();
        let text = text.as_string::<i64>();
        texts.extend((0..text.len()).map(|row| TextCell {
            elements: numbers.iter().map(|column| ElementId::new(column.value(row))).collect(),
            text: text.value(row).to_owned(),
        }));
    }
    Some(texts)
}

fn schema(model: &CubeModel) -> Schema {
    let element = |dimension: usize| Field::new(format!("dimension {dimension}"), DataType::UInt32, false);
    let text = Field::new(TEXT, DataType::LargeUtf8, false);
    Schema::new((0..model.dimensions().len()).map(element).chain([text]).collect::<Vec<_>>())
}
