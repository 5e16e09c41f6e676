//! Base cells as rows: drill-through and nearest cells.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::shown::base_shown;
use super::{Cube, CubeError};
use crate::aggregate::{AggregateError, Progress, drill_through, nearest};
use crate::ask::{asked_at, positions};
use crate::query::{BoundPlace, CubeAxis, Target};

/// Base cells of an answer, of which batches are made one by one: 16 bytes a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseRows {
    /// Places in the facts ([`crate::facts::Facts::at`]).
    cells: Vec<usize>,
    own: Own,
    measure: usize,
    /// Values that are nothing but a rest are 0.
    is_text: bool,
}

/// The column that rows have beside elements and values.
#[derive(Debug, Clone, PartialEq)]
enum Own {
    Weights(Vec<f64>),
    Distances(Vec<u64>),
}

impl BaseRows {
    /// The columns of the batches.
    ///
    /// # Errors
    /// [`CubeError::Arrow`] if the arrays are refused.
    pub fn schema(&self, cube: &Cube) -> Result<SchemaRef, CubeError> {
        self.batch(cube, 0..0).map(|batch| batch.schema())
    }

    /// The same rows for a text for people, with 0 for sums of doubles that are less than the rows of a cell leave.
    pub fn without_rests(self) -> BaseRows {
        BaseRows { is_text: true, ..self }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The rows, `batch_rows` at a time; each batch is made when it is asked for.
    pub fn batches<'a>(
        &'a self,
        cube: &'a Cube,
        batch_rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch, CubeError>> + 'a {
        let rows = batch_rows.max(1);
        let starts = (0..self.len()).step_by(rows);
        starts.map(move |start| self.batch(cube, start..self.len().min(start + rows)))
    }

    fn batch(&self, cube: &Cube, range: Range<usize>) -> Result<RecordBatch, CubeError> {
        let own: (&str, ArrayRef) = match &self.own {
            Own::Weights(weights) => ("weight", Arc::new(Float64Array::from(weights[range.clone()].to_vec()))),
            Own::Distances(distances) => ("distance", Arc::new(UInt64Array::from(distances[range.clone()].to_vec()))),
        };
        cube.rows(&self.cells[range], own, (self.measure, self.is_text))
    }
}

impl Cube {
    /// The base cells below a cell that are filled in the point's measure: an element of each dimension, weight and
    /// value.
    pub(super) fn facts_at(&self, point: &[BoundPlace], progress: &Progress) -> Result<BaseRows, CubeError> {
        let asked = asked_at(&self.model, point)?;
        let measure = asked.measures.first().copied().unwrap_or_default();
        let target = vec![0; asked.targets.len()];
        let found = drill_through(&self.facts, &asked.area, measure, &target, 0, usize::MAX, progress);
        let found = found.map_err(|error| CubeError::aggregate(error, &self.model, &asked))?;
        let (cells, weights) = found.into_iter().map(|base| (base.cell, base.weight)).unzip();
        Ok(BaseRows { cells, own: Own::Weights(weights), measure, is_text: false })
    }

    /// The base cells nearest to a point that are filled in its measure; the point is a base element of each dimension.
    pub(super) fn nearest_to(&self, count: u64, to: &[BoundPlace], progress: &Progress) -> Result<BaseRows, CubeError> {
        let positions: Vec<Vec<u32>> = self.model.dimensions().iter().map(positions).collect();
        let mut at = vec![0; positions.len()];
        let mut measure = 0;
        for place in to {
            match (place.axis, &place.target) {
                (CubeAxis::Measures, target) => measure = target.measure().unwrap_or_default(),
                (CubeAxis::Dimension(position), Target::Element(element)) => {
                    at[position] = self.model.dimensions()[position].position(*element);
                }
                (CubeAxis::Dimension(position), _) => {
                    let reason = format!(
                        "a sum over {} has no position: name an element",
                        self.model.dimensions()[position].name()
                    );
                    return Err(CubeError::Aggregate(AggregateError::Shape { reason }));
                }
            }
        }
        let tables: Vec<Option<&[u32]>> = positions.iter().map(|positions| Some(positions.as_slice())).collect();
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.facts.len());
        let found = nearest(&self.facts, measure, &tables, &at, count, progress).map_err(CubeError::Aggregate)?;
        let (cells, distances) = found.into_iter().map(|one| (one.cell, one.distance)).unzip();
        Ok(BaseRows { cells, own: Own::Distances(distances), measure, is_text: false })
    }

    /// Rows of base cells: elements, a column of their own, the value of a measure, the number of source rows.
    fn rows(
        &self,
        cells: &[usize],
        own: (&str, ArrayRef),
        (measure, is_text): (usize, bool),
    ) -> Result<RecordBatch, CubeError> {
        let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        let layout = self.facts.layout();
        for (number, dimension) in self.model.dimensions().iter().enumerate() {
            let name = |cell: &usize| {
                let base = layout.coordinate(self.facts.key(*cell), number);
                dimension.at_base(base).map(|element| dimension.element(element).name())
            };
            fields.push(Field::new(dimension.name(), DataType::Utf8, true));
            columns.push(Arc::new(cells.iter().map(name).collect::<StringArray>()));
        }
        let (name, column) = own;
        fields.push(Field::new(self.free_name(name), column.data_type().clone(), false));
        columns.push(column);
        let column = self.facts.value_array(measure, cells, |cell, value| match is_text {
            true => base_shown(&self.facts, measure, cell, value),
            false => value,
        })?;
        fields.push(Field::new(&self.model.measures()[measure].name, column.data_type().clone(), true));
        columns.push(column);
        let rows = cells.iter().map(|cell| self.facts.rows(*cell));
        fields.push(Field::new(self.free_name("rows"), DataType::UInt64, false));
        columns.push(Arc::new(UInt64Array::from_iter_values(rows)));
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }

    /// A name that no dimension and no measure has: underscores are added until it is free.
    fn free_name(&self, name: &str) -> String {
        let mut free = name.to_string();
        while self.model.dimension_index(&free).is_some() || self.model.measure_index(&free).is_some() {
            free.push('_');
        }
        free
    }
}
