//! Batches of tuples in device memory.

use std::sync::Arc;

use warpcube_gpu::prims::{DeviceSlice, Element, SortKey};
use warpcube_gpu::{DeviceBuffer, HostBuffer, Params, Stream};

use super::kernels::{Kernels, LEVELS_MAX, SUMMARY_BAD, padded};
use crate::error::{Result, StreamError};
use crate::tuples::Tuples;

/// Columns begin at multiples of so many rows.
const ALIGNED_ROWS: usize = 64;

/// A batch of tuples: a column a level of the path, then a column a value.
pub struct DeviceTuples {
    pub(super) kernels: Arc<Kernels>,
    pub(super) rows: u64,
    /// Rows from one column of attributes to the next.
    pub(super) stride: u64,
    pub(super) columns: DeviceBuffer,
    values: Vec<DeviceSlice>,
}

impl DeviceTuples {
    /// Room for so many tuples, whose columns are written by the caller: attributes are checked by what uses them.
    ///
    /// # Errors
    /// 2^32 rows; no room on the device.
    pub fn new(kernels: &Arc<Kernels>, rows: usize) -> Result<DeviceTuples> {
        if rows >= u32::MAX as usize {
            return Err(StreamError::TooMany { count: rows as u64, what: "rows" });
        }
        let stride = rows.next_multiple_of(ALIGNED_ROWS);
        let columns = kernels.room(stride * (kernels.levels() - 1) * size_of::<u32>())?;
        let value = |_| {
            let buffer = kernels.room(rows * size_of::<i64>())?;
            Ok(DeviceSlice::new(&buffer, 0, Element::I64, rows as u64)?)
        };
        let values = (0..kernels.schema.values()).map(value).collect::<Result<Vec<DeviceSlice>>>()?;
        Ok(DeviceTuples { kernels: kernels.clone(), rows: rows as u64, stride: stride as u64, columns, values })
    }

    /// Copies tuples to the device.
    ///
    /// # Errors
    /// Tuples of another schema; no room on the device.
    pub fn upload(kernels: &Arc<Kernels>, stream: &mut Stream, tuples: &Tuples) -> Result<DeviceTuples> {
        let (attributes, values) = (tuples.attributes(), tuples.values());
        if attributes.len() != kernels.schema.dimensions().len() || values.len() != kernels.schema.values() {
            return Err(StreamError::Other { what: "the batch", owner: "schema" });
        }
        let device = DeviceTuples::new(kernels, tuples.len())?;
        for (dimension, column) in attributes.iter().enumerate() {
            stream.upload(&device.columns, device.offset(dimension), bytemuck::cast_slice(column))?;
        }
        for (value, column) in device.values.iter().zip(values) {
            stream.upload(value.buffer(), value.offset(), bytemuck::cast_slice(column))?;
        }
        Ok(device)
    }

    /// Page-locked memory of tuples, for [`DeviceTuples::copy`]: all columns of attributes in the schema's order, then
    /// those of values.
    ///
    /// # Errors
    /// No memory.
    pub fn page_locked(kernels: &Kernels, tuples: &Tuples) -> Result<Arc<HostBuffer>> {
        let attributes = tuples.attributes().iter().map(|column| bytemuck::cast_slice::<u32, u8>(column));
        let values = tuples.values().iter().map(|column| bytemuck::cast_slice::<i64, u8>(column));
        let columns: Vec<&[u8]> = attributes.chain(values).collect();
        let mut host = kernels.device.host_buffer(columns.iter().map(|column| column.len()).sum())?;
        let mut rest = host.as_mut_slice();
        for column in columns {
            let (own, behind) = rest.split_at_mut(column.len());
            own.copy_from_slice(column);
            rest = behind;
        }
        Ok(Arc::new(host))
    }

    /// Copies all columns from page-locked memory, without waiting.
    ///
    /// # Errors
    /// A device that fails.
    pub fn copy(&self, stream: &mut Stream, host: &Arc<HostBuffer>) -> Result<()> {
        let bytes = self.rows as usize * size_of::<u32>();
        let dimensions = self.kernels.levels() - 1;
        for dimension in 0..dimensions {
            stream.upload_from(&self.columns, self.offset(dimension), host, dimension * bytes, bytes)?;
        }
        for (number, value) in self.values.iter().enumerate() {
            let from = dimensions * bytes + number * 2 * bytes;
            stream.upload_from(value.buffer(), value.offset(), host, from, 2 * bytes)?;
        }
        Ok(())
    }

    /// Where the column of a dimension begins, in bytes.
    fn offset(&self, dimension: usize) -> usize {
        let level = self.kernels.schema.path().iter().position(|of_level| *of_level == dimension).unwrap_or(0);
        level * self.stride as usize * size_of::<u32>()
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// A dimension's column of attributes, to be written.
    ///
    /// # Errors
    /// A dimension that is not there.
    pub fn attributes(&self, dimension: usize) -> Result<DeviceSlice> {
        Ok(DeviceSlice::new(&self.columns, self.offset(dimension), Element::U32, self.rows)?)
    }

    /// The columns of values, to be written.
    pub fn values(&self) -> &[DeviceSlice] {
        &self.values
    }

    /// The numbers of the tuples in the order of their paths.
    pub(super) fn sorted(&self, stream: &mut Stream) -> Result<DeviceSlice> {
        let Kernels { sort, .. } = &*self.kernels;
        let of_level = |level: u64| {
            let offset = (level * self.stride) as usize * size_of::<u32>();
            Ok(DeviceSlice::new(&self.columns, offset, Element::U32, self.rows)?)
        };
        let columns = (0..self.kernels.levels() as u64 - 1).map(of_level).collect::<Result<Vec<DeviceSlice>>>()?;
        let keys: Vec<SortKey<'_>> = columns.iter().map(|values| SortKey { values, valid: None }).collect();
        let order = self.kernels.room(self.rows as usize * size_of::<u32>())?;
        let order = DeviceSlice::new(&order, 0, Element::U32, self.rows)?;
        let scratch = self.kernels.room(sort.scratch_bytes(self.rows))?;
        sort.launch(stream, &keys, Some(&order), &scratch)?;
        Ok(order)
    }

    /// Looks for attributes past their cardinality.
    pub(super) fn check(&self, stream: &mut Stream, summary: &DeviceBuffer) -> Result<()> {
        let dimensions = self.kernels.levels() - 1;
        let params = Params::new().buffer(&self.columns).u64(self.stride).u64(self.rows).u64(dimensions as u64);
        let of_level = |level: usize| self.kernels.schema.at_level(level).cardinality;
        let cardinalities: Vec<u64> = (1..=dimensions).map(of_level).collect();
        let params = padded(params.buffer_at(summary, SUMMARY_BAD * 8), &cardinalities, LEVELS_MAX);
        self.kernels.launch(stream, "wc_htree_check", self.rows, &params)
    }
}
