//! An H-tree in device memory.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use warpcube_gpu::prims::{DeviceSlice, Element};
use warpcube_gpu::{DeviceBuffer, Params, Stream};

use super::kernels::{Kernels, LEVELS_MAX, padded};
use crate::cpu::CpuTree;
use crate::error::Result;
use crate::schema::Schema;
use crate::tree::{Header, Level, Tree};

/// An H-tree in device memory: the arrays of [`Tree`], those of all levels in one piece each.
pub struct DeviceTree {
    pub(super) kernels: Arc<Kernels>,
    /// First nodes of all levels, and the number of nodes.
    pub(super) starts: Vec<u64>,
    /// First header entries of all levels, and their number.
    pub(super) headers: Vec<u64>,
    /// Keys, parents, leftmost children, numbers of children, side links.
    pub(super) nodes: [DeviceBuffer; 5],
    /// Keys, first links, numbers of links.
    pub(super) entries: [DeviceBuffer; 3],
    /// A column of all nodes a measure.
    pub(super) measures: DeviceBuffer,
    /// What the sums of any tuples stay below.
    pub(super) magnitude: u128,
}

impl DeviceTree {
    /// A tree without tuples.
    ///
    /// # Errors
    /// No room on the device.
    pub fn empty(kernels: &Arc<Kernels>) -> Result<DeviceTree> {
        let none = kernels.room(1)?;
        let starts = vec![0; kernels.levels() + 1];
        let (nodes, entries) = (std::array::from_fn(|_| none.clone()), std::array::from_fn(|_| none.clone()));
        Ok(DeviceTree {
            kernels: kernels.clone(),
            headers: starts.clone(),
            starts,
            nodes,
            entries,
            measures: none,
            magnitude: 0,
        })
    }

    /// Nodes of all levels.
    pub fn nodes(&self) -> u64 {
        self.starts[self.kernels.levels()]
    }

    /// Nodes of a level.
    pub(super) fn of_level(&self, level: usize) -> u64 {
        self.starts[level + 1] - self.starts[level]
    }

    /// Distinct tuples.
    pub fn leaves(&self) -> u64 {
        self.of_level(self.kernels.levels() - 1)
    }

    /// Bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        self.buffers().iter().map(|buffer| buffer.bytes() as u64).sum()
    }

    /// The memory of the arrays, for recorded work.
    pub fn buffers(&self) -> Vec<&DeviceBuffer> {
        self.nodes.iter().chain(&self.entries).chain([&self.measures]).collect()
    }

    /// Kernels and schema.
    pub fn kernels(&self) -> &Arc<Kernels> {
        &self.kernels
    }

    /// Dimensions and measures.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.kernels.schema
    }

    /// `WcTree` of the kernels.
    pub(super) fn params(&self) -> Params {
        let arrays = self.nodes.iter().chain(&self.entries).chain([&self.measures]);
        let params = arrays.fold(Params::new(), |params, array| params.buffer(array));
        let params = params.u64(self.nodes()).u64(self.kernels.levels() as u64);
        padded(padded(params, &self.starts, LEVELS_MAX + 1), &self.headers, LEVELS_MAX + 1)
    }

    /// The measures of a level's nodes, one of them.
    pub(super) fn measure(&self, number: usize, level: usize) -> Result<DeviceSlice> {
        let at = number as u64 * self.nodes() + self.starts[level];
        Ok(DeviceSlice::new(&self.measures, at as usize * 8, Element::I64, self.of_level(level))?)
    }

    /// Copies the arrays to the host.
    ///
    /// # Errors
    /// A device that fails.
    pub fn download(&self, stream: &mut Stream) -> Result<Tree> {
        let levels = (0..self.kernels.levels()).map(|level| self.download_level(stream, level));
        Ok(Tree { levels: levels.collect::<Result<Vec<Level>>>()? })
    }

    fn download_level(&self, stream: &mut Stream, level: usize) -> Result<Level> {
        let (first, count) = (self.starts[level], self.of_level(level));
        let (entry, entries) = (self.headers[level], self.headers[level + 1] - self.headers[level]);
        let mut node = |array: usize| column::<u32>(stream, &self.nodes[array], first, count);
        let (keys, parents, leftmost_children) = (node(0)?, node(1)?, node(2)?);
        let (child_counts, side_links) = (node(3)?, node(4)?);
        let mut of_entries = |array: usize| column::<u32>(stream, &self.entries[array], entry, entries);
        let header = Header { keys: of_entries(0)?, first: of_entries(1)?, counts: of_entries(2)? };
        let measure = |number| column::<i64>(stream, &self.measures, number * self.nodes() + first, count);
        let measures = (0..self.kernels.measures().len() as u64).map(measure).collect::<Result<Vec<Vec<i64>>>>()?;
        Ok(Level { keys, parents, leftmost_children, child_counts, side_links, measures, header })
    }

    /// True if the arrays are those of a tree on the CPU.
    ///
    /// # Errors
    /// A device that fails.
    pub fn equals(&self, stream: &mut Stream, other: &CpuTree) -> Result<bool> {
        Ok(self.download(stream)? == *other.tree())
    }
}

/// A part of an array on the host.
pub(super) fn column<T: Pod + Zeroable>(
    stream: &mut Stream,
    array: &DeviceBuffer,
    first: u64,
    count: u64,
) -> Result<Vec<T>> {
    let mut column = vec![T::zeroed(); count as usize];
    stream.download(array, first as usize * size_of::<T>(), bytemuck::cast_slice_mut(&mut column))?;
    Ok(column)
}
