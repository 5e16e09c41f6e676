//! Columns made when they are read: nothing is kept on the host.

use std::sync::Arc;

use arrow::array::{Int32Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpcube_column::{CHUNK_ROWS, ColumnScan, ColumnSource, Result};

/// One column of 32-bit integers, uniform in `0 .. 2^bits` (as two's complement for 32 bits).
#[derive(Debug, Clone)]
pub(crate) struct Uniform {
    pub(crate) rows: usize,
    pub(crate) bits: u32,
    /// Every tenth value is NULL.
    pub(crate) nulls: bool,
    /// Tells tables of equal content apart, so that each is loaded anew.
    pub(crate) key: String,
}

impl Uniform {
    /// The value of a row; `None` is NULL.
    fn value(&self, row: usize) -> Option<i32> {
        let mixed = mix(row as u64);
        let is_null = self.nulls && mixed >> 40 & 0xffff < 6_554;
        (!is_null).then_some((mixed & ((1 << self.bits) - 1)) as u32 as i32)
    }

    fn chunk(&self, chunk: usize) -> std::ops::Range<usize> {
        chunk * CHUNK_ROWS..((chunk + 1) * CHUNK_ROWS).min(self.rows)
    }

    fn chunks(&self) -> usize {
        self.rows.div_ceil(CHUNK_ROWS)
    }

    /// The sum of all values.
    pub(crate) fn sum(&self) -> i64 {
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        std::thread::scope(|scope| {
            let part = |thread: usize| {
                let chunks = (thread..self.chunks()).step_by(threads);
                chunks.flat_map(|chunk| self.chunk(chunk)).filter_map(|row| self.value(row)).map(i64::from).sum::<i64>()
            };
            let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
            parts.into_iter().map(|part| part.join().expect("no panic in a sum")).sum()
        })
    }
}

impl ColumnSource for Uniform {
    fn name(&self) -> &str {
        "uniform"
    }

    fn key(&self) -> String {
        self.key.clone()
    }

    fn version(&self) -> String {
        "1".into()
    }

    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("x", DataType::Int32, self.nulls)]))
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn open(&self, _columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        Ok(Box::new(self.clone()))
    }
}

impl ColumnScan for Uniform {
    fn partitions(&self) -> usize {
        self.chunks()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let rows = self.chunk(partition);
        let array = match self.nulls {
            false => Int32Array::from_iter_values(rows.map(|row| self.value(row).unwrap_or_default())),
            true => {
                let nulls = NullBuffer::from_iter(rows.clone().map(|row| self.value(row).is_some()));
                let values = rows.map(|row| self.value(row).unwrap_or_default()).collect();
                Int32Array::new(values, Some(nulls))
            }
        };
        let batch = RecordBatch::try_new(self.schema(), vec![Arc::new(array)]);
        sink(batch.map_err(|error| warpcube_column::ColumnError::source(error.to_string()))?)
    }
}

/// The finaliser of SplitMix64: spreads row numbers over 64 bits.
pub(crate) fn mix(row: u64) -> u64 {
    let mut x = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
