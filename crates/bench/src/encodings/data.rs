//! Columns made when they are read: nothing is kept on the host.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use warpcube_column::{CHUNK_ROWS, ColumnError, ColumnScan, ColumnSource, Result};

/// How the values of a column are drawn. Sorted, normal and Zipf are those of section 5.6.3 of Shanbhag,
/// "Interactive Data Analytics Using GPUs".
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Content {
    /// Uniform in `0 .. 2^bits` (as two's complement for 32 bits).
    Uniform { bits: u32 },
    /// Doubles that are hundredths, uniform in `0 .. 2^bits`.
    Hundredths { bits: u32 },
    /// Uniform in 12 bits, but about one in 16,384 has 31.
    Outliers,
    /// Runs of 19 equal values of 31 bits.
    Runs,
    /// One of 1,000 values of 31 bits.
    Few,
    /// Ascending, with `2^log2` distinct values.
    Sorted { log2: u32 },
    /// Around `2^mean_log2` with a standard deviation of 20, never negative.
    Normal { mean_log2: u32 },
    /// Nearly Zipf with that exponent over 2^20 values: what is drawn is continuous and cut to a whole number.
    Zipf { exponent: u32 },
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Uniform { bits } => write!(f, "uniform-{bits}"),
            Content::Hundredths { bits } => write!(f, "hundredths-{bits}"),
            Content::Outliers => f.write_str("outliers"),
            Content::Runs => f.write_str("runs"),
            Content::Few => f.write_str("few"),
            Content::Sorted { log2 } => write!(f, "sorted-2^{log2}"),
            Content::Normal { mean_log2 } => write!(f, "normal-2^{mean_log2}"),
            Content::Zipf { exponent } => write!(f, "zipf-{exponent}"),
        }
    }
}

/// One column.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) rows: usize,
    pub(super) content: Content,
    /// Every tenth value is NULL.
    pub(super) nulls: bool,
    /// Tells tables of equal content apart, so that each is loaded anew.
    pub(super) key: String,
}

impl Made {
    /// The value of a row, of hundredths their number; `None` is NULL.
    fn value(&self, row: usize) -> Option<i32> {
        let mixed = mix(row as u64);
        let is_null = self.nulls && mixed >> 40 & 0xffff < 6_554;
        let share = || (mixed >> 11) as f64 / (1u64 << 53) as f64;
        let value = || match self.content {
            Content::Uniform { bits } | Content::Hundredths { bits } => (mixed & ((1 << bits) - 1)) as u32 as i32,
            Content::Outliers if mixed >> 40 & 0x3fff == 0 => (mixed & 0x7fff_ffff) as i32,
            Content::Outliers => (mixed & 0xfff) as i32,
            Content::Runs => (mix(row as u64 / 19) & 0x7fff_ffff) as i32,
            Content::Few => (mix(mixed % 1000) & 0x7fff_ffff) as i32,
            Content::Sorted { log2 } => (((row as u128) << log2) / self.rows as u128) as i32,
            Content::Normal { mean_log2 } => {
                let other = mix(mixed);
                let halves =
                    [mixed, mixed >> 16, mixed >> 32, mixed >> 48, other, other >> 16, other >> 32, other >> 48];
                let sum: u64 = halves.into_iter().map(|half| half & 0xffff).sum();
                // Eight uniform numbers have a standard deviation of √(8 / 12).
                ((1 << mean_log2) + ((sum as f64 / 65_536.0 - 4.0) * 20.0 / 0.816_5) as i32).max(0)
            }
            Content::Zipf { exponent } => zipf(exponent, share()),
        };
        (!is_null).then(value)
    }

    /// Whether values are doubles.
    pub(super) fn is_float(&self) -> bool {
        matches!(self.content, Content::Hundredths { .. })
    }

    /// Rows of a chunk.
    fn chunk(&self, chunk: usize) -> Range<usize> {
        chunk * CHUNK_ROWS..((chunk + 1) * CHUNK_ROWS).min(self.rows)
    }

    fn chunks(&self) -> usize {
        self.rows.div_ceil(CHUNK_ROWS)
    }

    /// The sum of all values; of hundredths, of their numbers.
    pub(super) fn sum(&self) -> i64 {
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

    fn array(&self, rows: Range<usize>) -> ArrayRef {
        let nulls = self.nulls.then(|| NullBuffer::from_iter(rows.clone().map(|row| self.value(row).is_some())));
        let values = rows.map(|row| self.value(row).unwrap_or_default());
        match self.is_float() {
            true => Arc::new(Float64Array::new(values.map(|value| f64::from(value) / 100.0).collect(), nulls)),
            false => Arc::new(Int32Array::new(values.collect(), nulls)),
        }
    }
}

/// Values that [`Content::Zipf`] draws from.
const ZIPF_VALUES: f64 = (1 << 20) as f64;

/// The value below which a share of a Zipf distribution lies, by the inverse of the integral of `x^-exponent`.
fn zipf(exponent: u32, share: f64) -> i32 {
    let power = 1.0 - f64::from(exponent);
    let value = match exponent {
        1 => ZIPF_VALUES.powf(share),
        _ => (1.0 - share * (1.0 - ZIPF_VALUES.powf(power))).powf(1.0 / power),
    };
    value as i32
}

impl ColumnSource for Made {
    fn name(&self) -> &str {
        "made"
    }

    fn key(&self) -> String {
        self.key.clone()
    }

    fn version(&self) -> String {
        "1".into()
    }

    fn schema(&self) -> SchemaRef {
        let data_type = if self.is_float() { DataType::Float64 } else { DataType::Int32 };
        Arc::new(Schema::new(vec![Field::new("x", data_type, self.nulls)]))
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn open(&self, _columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        Ok(Box::new(self.clone()))
    }
}

impl ColumnScan for Made {
    fn partitions(&self) -> usize {
        self.chunks()
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let batch = RecordBatch::try_new(self.schema(), vec![self.array(self.chunk(partition))]);
        sink(batch.map_err(|error| ColumnError::source(error.to_string()))?)
    }
}

/// The finaliser of SplitMix64: spreads row numbers over 64 bits.
fn mix(row: u64) -> u64 {
    let mut x = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
