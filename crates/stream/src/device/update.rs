//! Builds, batches and removals: the rows that a tree is made of, and their order.

use std::sync::Arc;

use warpcube_gpu::Stream;
use warpcube_gpu::prims::{DeviceSlice, Element, SelectOperands};

use super::build::slice;
use super::kernels::{Kernels, LEVELS_MAX, SUMMARY_COUNT, padded};
use super::query::Bounds;
use super::rows::{Nodes, Rows, summary, told};
use super::tree::DeviceTree;
use super::tuples::DeviceTuples;
use crate::error::{Result, StreamError};
use crate::query::{Condition, bounds};

/// Columns begin at multiples of so many rows.
const ALIGNED_ROWS: u64 = 64;

impl DeviceTree {
    /// The tree of some tuples.
    ///
    /// # Errors
    /// An attribute past its cardinality; a sum that leaves 64 bits; more nodes than 32 bits number; no room.
    pub fn build(stream: &mut Stream, tuples: &DeviceTuples) -> Result<DeviceTree> {
        let kernels = &tuples.kernels;
        let (order, summary) = (tuples.sorted(stream)?, summary(kernels, stream)?);
        let rows = Rows { nodes: None, tuples: Some(tuples), order, magnitude: 0, summary };
        rows.assembled(kernels, stream)
    }

    /// The tree with a batch added.
    ///
    /// # Errors
    /// Tuples of other kernels; as [`DeviceTree::build`].
    pub fn insert(&self, stream: &mut Stream, tuples: &DeviceTuples) -> Result<DeviceTree> {
        let kernels = &self.kernels;
        if !Arc::ptr_eq(kernels, &tuples.kernels) {
            return Err(StreamError::Other { what: "the batch", owner: "schema or device" });
        }
        if self.nodes() == 0 {
            return DeviceTree::build(stream, tuples);
        }
        let (old, added) = (self.leaves(), tuples.rows);
        let count = old + added;
        if count >= u64::from(u32::MAX) {
            return Err(StreamError::TooMany { count, what: "rows" });
        }
        let sorted = tuples.sorted(stream)?;
        let places = room(kernels, added)?;
        let order = room(kernels, count)?;
        let params = self.params().buffer(&tuples.columns).u64(tuples.stride).u64(added).u64(old);
        let params = params.slice(&sorted).slice(&places).slice(&order);
        kernels.launch(stream, "wc_htree_descend", added, &params)?;
        kernels.launch(stream, "wc_htree_place_new", added, &params)?;
        kernels.launch(stream, "wc_htree_place_old", old, &params)?;
        let nodes = Some(self.leaf_rows(stream)?);
        let (magnitude, summary) = (self.magnitude, summary(kernels, stream)?);
        Rows { nodes, tuples: Some(tuples), order, magnitude, summary }.assembled(kernels, stream)
    }

    /// The tree without the tuples that meet a condition a dimension, in the schema's order.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions; no room.
    pub fn remove(&self, stream: &mut Stream, conditions: &[Condition]) -> Result<DeviceTree> {
        let kernels = &self.kernels;
        let bounds = bounds(&kernels.schema, 0, conditions)?;
        let last = kernels.levels() - 1;
        let (order, nodes) = (self.matching(stream, last, &bounds, false)?, self.leaf_rows(stream)?);
        let (magnitude, summary) = (self.magnitude, summary(kernels, stream)?);
        Rows { nodes: Some(nodes), tuples: None, order, magnitude, summary }.assembled(kernels, stream)
    }

    /// The leaves as rows.
    fn leaf_rows(&self, stream: &mut Stream) -> Result<Nodes<'_>> {
        let levels: Vec<usize> = (1..self.kernels.levels()).collect();
        self.node_rows(stream, levels.len(), &levels)
    }

    /// The nodes of a level as rows, with the keys of some levels.
    pub(super) fn node_rows(&self, stream: &mut Stream, level: usize, levels: &[usize]) -> Result<Nodes<'_>> {
        let kernels = &self.kernels;
        let count = self.of_level(level);
        let stride = count.next_multiple_of(ALIGNED_ROWS);
        let columns = kernels.room(stride as usize * levels.len() * size_of::<u32>())?;
        let slot = |of_level| levels.iter().position(|wanted| *wanted == of_level).map_or(u64::MAX, |at| at as u64);
        let slots: Vec<u64> = (0..LEVELS_MAX).map(slot).collect();
        let params = self.params().u64(level as u64).buffer(&columns).u64(stride);
        kernels.launch(stream, "wc_htree_expand", count, &padded(params, &slots, LEVELS_MAX))?;
        Ok(Nodes { tree: self, level, columns, stride, count })
    }

    /// The nodes of a level that meet bounds, or all others; waits for their number.
    pub(super) fn matching(
        &self,
        stream: &mut Stream,
        level: usize,
        bounds: &[Option<crate::query::Bound<'_>>],
        is_wanted: bool,
    ) -> Result<DeviceSlice> {
        let kernels = &self.kernels;
        let (count, summary) = (self.of_level(level), summary(kernels, stream)?);
        let (flags, nodes) = (kernels.room(count as usize)?, room(kernels, count)?);
        if count == 0 {
            return Ok(nodes);
        }
        let bounds = Bounds::upload(kernels, stream, bounds)?;
        let params = self.params().append(bounds.params()).u64(level as u64).u64(is_wanted.into()).buffer(&flags);
        kernels.launch(stream, "wc_htree_match", count, &params)?;
        let (flags, found) =
            (slice(&flags, Element::U8, 0, count)?, slice(&summary, Element::U64, SUMMARY_COUNT as u64, 1)?);
        let operands = SelectOperands { input: None, flags: Some(&flags), bounds: [0; 2], out: &nodes, count: &found };
        let scratch = kernels.room(kernels.select.scratch_bytes(count))?;
        kernels.select.launch(stream, &operands, &scratch)?;
        let words = told(stream, &summary)?;
        Ok(nodes.part(0, words[SUMMARY_COUNT])?)
    }
}

/// Memory for so many numbers of rows.
fn room(kernels: &Kernels, rows: u64) -> Result<DeviceSlice> {
    let buffer = kernels.room(rows as usize * size_of::<u32>())?;
    slice(&buffer, Element::U32, 0, rows)
}
