//! Batches of tuples.

use crate::error::{Result, StreamError};
use crate::schema::Schema;

/// A batch of tuples by columns, checked against a schema. Tuples with equal attributes are one leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuples {
    attributes: Vec<Vec<u32>>,
    values: Vec<Vec<i64>>,
    rows: usize,
}

impl Tuples {
    /// Tuples of a column a dimension, in the schema's order, and a column a value.
    ///
    /// # Errors
    /// Other columns than the schema has, or of unequal lengths; an attribute past its cardinality; 2^32 rows.
    pub fn new(schema: &Schema, attributes: Vec<Vec<u32>>, values: Vec<Vec<i64>>) -> Result<Tuples> {
        let (dimensions, expected) = (schema.dimensions(), schema.values());
        if attributes.len() != dimensions.len() || values.len() != expected {
            let (attributes, values) = (attributes.len(), values.len());
            return Err(StreamError::Columns { attributes, values, dimensions: dimensions.len(), expected });
        }
        let rows = attributes[0].len();
        let lengths = attributes.iter().map(Vec::len).chain(values.iter().map(Vec::len));
        if let Some(length) = lengths.into_iter().find(|length| *length != rows) {
            return Err(StreamError::Ragged { length, rows });
        }
        if rows >= u32::MAX as usize {
            return Err(StreamError::TooMany { count: rows as u64, what: "rows" });
        }
        let past = |(column, dimension): (&Vec<u32>, usize)| {
            let cardinality = dimensions[dimension].cardinality;
            Some((column.iter().position(|value| u64::from(*value) >= cardinality)?, dimension))
        };
        let all = attributes.iter().zip(0..);
        if let Some((row, dimension)) = all.filter_map(past).min() {
            return Err(attribute_error(schema, row as u64, dimension, attributes[dimension][row]));
        }
        Ok(Tuples { attributes, values, rows })
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// A column a dimension.
    pub fn attributes(&self) -> &[Vec<u32>] {
        &self.attributes
    }

    /// A column a value.
    pub fn values(&self) -> &[Vec<i64>] {
        &self.values
    }
}

/// The error of an attribute past its cardinality.
pub(crate) fn attribute_error(schema: &Schema, row: u64, dimension: usize, value: u32) -> StreamError {
    let dimension = &schema.dimensions()[dimension];
    StreamError::Attribute { row, name: dimension.name.clone(), value, cardinality: dimension.cardinality }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Dimension, Measure, Order};

    #[test]
    fn batches_of_another_form_are_refused() {
        let dimensions = vec![Dimension::new("a", 3), Dimension::new("b", 1 << 32)];
        let schema = Schema::new(dimensions, 1, vec![Measure::Sum(0)], &Order::Cardinality).unwrap();
        let refused = |attributes: &[&[u32]], values: &[&[i64]]| {
            let attributes = attributes.iter().map(|column| column.to_vec()).collect();
            let values = values.iter().map(|column| column.to_vec()).collect();
            Tuples::new(&schema, attributes, values).map(|tuples| tuples.len()).map_err(|error| error.to_string())
        };
        assert_eq!(refused(&[&[2, 0], &[u32::MAX, 0]], &[&[1, 2]]), Ok(2));
        assert!(refused(&[&[1]], &[&[1]]).unwrap_err().starts_with("tuples have 1 attributes and 1 values"));
        assert!(refused(&[&[1], &[1]], &[]).unwrap_err().contains("and 0 values"));
        assert!(refused(&[&[1], &[1, 2]], &[&[1]]).unwrap_err().contains("has 2 rows"));
        let error = refused(&[&[0, 4, 3], &[1, 2, 3]], &[&[0, 0, 0]]).unwrap_err();
        assert_eq!(error, "row 1: dimension 'a' has value 4; its cardinality is 3");
    }
}
