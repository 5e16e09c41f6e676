//! Rows that a tree is made of, and what the device tells of an operation.

use warpcube_gpu::prims::{DeviceSlice, Element};
use warpcube_gpu::{DeviceBuffer, Params, Stream};

use super::kernels::{Kernels, SUMMARY_BAD, SUMMARY_EXTREMES, SUMMARY_OVERFLOW, SUMMARY_WORDS};
use super::tree::DeviceTree;
use super::tuples::DeviceTuples;
use crate::error::Result;
use crate::schema::Measure;
use crate::tuples::attribute_error;

/// Nodes of a tree's level.
pub(super) struct Nodes<'a> {
    pub(super) tree: &'a DeviceTree,
    pub(super) level: usize,
    /// Keys of levels up to the root.
    pub(super) columns: DeviceBuffer,
    /// Rows from a column to the next.
    pub(super) stride: u64,
    pub(super) count: u64,
}

/// Rows in an order: nodes of a tree, then tuples.
pub(super) struct Rows<'a> {
    pub(super) nodes: Option<Nodes<'a>>,
    pub(super) tuples: Option<&'a DeviceTuples>,
    /// Numbers of rows in the order of their paths.
    pub(super) order: DeviceSlice,
    /// What the sums of any rows stay below.
    pub(super) magnitude: u128,
    pub(super) summary: DeviceBuffer,
}

/// Memory for a summary, cleared.
pub(super) fn summary(kernels: &Kernels, stream: &mut Stream) -> Result<DeviceBuffer> {
    let summary = kernels.room(SUMMARY_WORDS * 8)?;
    stream.fill(&summary, 0, 0, SUMMARY_WORDS * 8)?;
    for word in [SUMMARY_BAD, SUMMARY_OVERFLOW] {
        stream.fill(&summary, word * 8, 0xff, 8)?;
    }
    Ok(summary)
}

/// The summary as it is now; waits for the device.
pub(super) fn told(stream: &mut Stream, summary: &DeviceBuffer) -> Result<[u64; SUMMARY_WORDS]> {
    let mut words = [0; SUMMARY_WORDS];
    stream.download(summary, 0, bytemuck::cast_slice_mut(&mut words))?;
    Ok(words)
}

impl Rows<'_> {
    pub(super) fn count(&self) -> u64 {
        self.order.len()
    }

    /// Rows that are nodes.
    pub(super) fn old(&self) -> u64 {
        self.nodes.as_ref().map_or(0, |nodes| nodes.count)
    }

    /// `WcRows` of the kernels.
    pub(super) fn params(&self) -> Params {
        let params = match &self.nodes {
            Some(nodes) => Params::new().buffer(&nodes.columns).u64(nodes.stride).u64(nodes.count),
            None => Params::new().null().u64(0).u64(0),
        };
        match self.tuples {
            Some(tuples) => params.buffer(&tuples.columns).u64(tuples.stride),
            None => params.null().u64(0),
        }
    }

    /// Looks at the attributes and values of the tuples, for [`Rows::check`].
    pub(super) fn inspect(&self, stream: &mut Stream) -> Result<()> {
        let Some(tuples) = self.tuples.filter(|tuples| !tuples.is_empty()) else { return Ok(()) };
        let kernels = &tuples.kernels;
        tuples.check(stream, &self.summary)?;
        for (number, value) in sums(kernels.measures()) {
            for (which, bound) in kernels.bounds.iter().enumerate() {
                let at = (SUMMARY_EXTREMES + 2 * number + which) * 8;
                let out = DeviceSlice::new(&self.summary, at, Element::I64, 1)?;
                let scratch = kernels.room(bound.scratch_bytes(tuples.rows))?;
                bound.launch(stream, &tuples.values()[value], &out, &scratch)?;
            }
        }
        Ok(())
    }

    /// Refuses attributes past their cardinality; gives what the sums of any rows stay below, the tuples' included.
    pub(super) fn check(&self, stream: &mut Stream, told: &[u64]) -> Result<u128> {
        let Some(tuples) = self.tuples.filter(|tuples| !tuples.is_empty()) else { return Ok(self.magnitude) };
        let schema = &tuples.kernels.schema;
        if told[SUMMARY_BAD] != u64::MAX {
            let (row, level) = (told[SUMMARY_BAD] / 32, told[SUMMARY_BAD] % 32);
            let mut value = [0u8; 4];
            let at = (level * tuples.stride + row) as usize * size_of::<u32>();
            stream.download(&tuples.columns, at, &mut value)?;
            let dimension = schema.path()[level as usize];
            return Err(attribute_error(schema, row, dimension, u32::from_ne_bytes(value)));
        }
        let magnitude = |number: usize| {
            let extremes = &told[SUMMARY_EXTREMES + 2 * number..][..2];
            extremes.iter().map(|word| u128::from((*word as i64).unsigned_abs())).max().unwrap_or(0)
        };
        let largest = sums(schema.measures()).map(|(number, _)| magnitude(number)).max().unwrap_or(0);
        // The number of tuples is a sum too.
        Ok(self.magnitude + largest.max(1) * u128::from(tuples.rows))
    }
}

/// The numbers and columns of measures that are sums.
pub(super) fn sums(measures: &[Measure]) -> impl Iterator<Item = (usize, usize)> {
    let sum = |(number, measure): (usize, &Measure)| match measure {
        Measure::Sum(value) => Some((number, *value)),
        Measure::Count | Measure::Min(_) | Measure::Max(_) => None,
    };
    measures.iter().enumerate().filter_map(sum)
}
