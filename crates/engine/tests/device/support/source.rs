//! Tables in memory, cut into partitions and batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use warpcube_column::{ColumnScan, ColumnSource, Result};

/// How rows are cut.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub partitions: usize,
    pub batch_rows: usize,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { partitions: 3, batch_rows: 700 }
    }
}

/// A table in memory.
#[derive(Debug, Clone)]
pub struct MemoryTable {
    name: String,
    key: String,
    schema: SchemaRef,
    partitions: Arc<Vec<Vec<RecordBatch>>>,
}

impl MemoryTable {
    /// A table of columns of one length, in three partitions of small batches.
    pub fn new(name: &str, columns: Vec<(&str, ArrayRef)>) -> MemoryTable {
        MemoryTable::shaped(name, columns, Shape::default())
    }

    /// A table cut as asked.
    pub fn shaped(name: &str, columns: Vec<(&str, ArrayRef)>, shape: Shape) -> MemoryTable {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch =
            RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect()).unwrap();
        let rows = batch.num_rows();
        let per_partition = rows.div_ceil(shape.partitions).max(1);
        let partitions = (0..shape.partitions)
            .map(|partition| {
                let (start, end) = ((partition * per_partition).min(rows), ((partition + 1) * per_partition).min(rows));
                let starts = (start..end).step_by(shape.batch_rows);
                starts.map(|at| batch.slice(at, shape.batch_rows.min(end - at))).collect()
            })
            .collect();
        let key = format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        MemoryTable { name: name.into(), key, schema, partitions: Arc::new(partitions) }
    }

    /// All rows of a column.
    pub fn column(&self, column: usize) -> Vec<Option<super::Scalar>> {
        let batches = self.partitions.iter().flatten();
        batches.flat_map(|batch| super::scalars(batch.column(column))).collect()
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.partitions.iter().flatten().map(RecordBatch::num_rows).sum()
    }
}

impl ColumnSource for MemoryTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn key(&self) -> String {
        self.key.clone()
    }

    fn version(&self) -> String {
        "1".into()
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn rows(&self) -> Option<u64> {
        Some(self.row_count() as u64)
    }

    fn open(&self, columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        Ok(Box::new(MemoryScan { partitions: self.partitions.clone(), columns: columns.to_vec() }))
    }
}

struct MemoryScan {
    partitions: Arc<Vec<Vec<RecordBatch>>>,
    columns: Vec<usize>,
}

impl ColumnScan for MemoryScan {
    fn partitions(&self) -> usize {
        self.partitions.len()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        for batch in &self.partitions[partition] {
            sink(batch.project(&self.columns).unwrap())?;
        }
        Ok(())
    }
}
