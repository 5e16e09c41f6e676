//! Sub-cubes on a device: the nodes that meet the conditions become the rows of a small tree of the inquired
//! dimensions, whose leaves are the cells.

use std::sync::Arc;

use warpcube_gpu::Stream;
use warpcube_gpu::prims::{DeviceSlice, Element, Gather, SortKey};

use super::build::slice;
use super::kernels::Kernels;
use super::rows::{Nodes, Rows as TreeRows, summary};
use super::tree::{DeviceTree, column};
use crate::error::Result;
use crate::query::{Query, Rows, SubCube, lowest, sub_cube};

impl DeviceTree {
    /// The cells of a sub-cube. The first one of its dimensions compiles a program.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions; an inquired dimension that is not there, or twice; a sum that leaves
    /// 64 bits; no room on the device.
    pub fn sub_cube(&self, stream: &mut Stream, asked: &SubCube) -> Result<Rows> {
        let schema = self.schema();
        let bounds = sub_cube(schema, asked)?;
        if asked.inquired.is_empty() {
            let answers = self.answer(stream, &[Query { conditions: asked.conditions.clone() }])?;
            let of_measure = |measure: usize| answers.get(0).map(|cell| cell[measure]).into_iter().collect();
            return Ok(Rows { keys: Vec::new(), measures: (0..schema.measures().len()).map(of_measure).collect() });
        }
        let levels = schema.levels_of(&asked.inquired);
        let level = levels.iter().copied().max().unwrap_or(0).max(lowest(&bounds));
        let found = self.matching(stream, level, &bounds, true)?;
        let kernels = Kernels::new(&self.kernels.device, &Arc::new(schema.of_dimensions(&asked.inquired)))?;
        if found.is_empty() {
            return DeviceTree::empty(&kernels)?.rows(stream);
        }
        let nodes = self.node_rows(stream, level, &levels)?;
        // Nodes ascend by the keys of the first levels.
        let is_sorted = levels.iter().copied().eq(1..=levels.len());
        let order = if is_sorted { found } else { sorted(&kernels, stream, &nodes, &found)? };
        let (magnitude, summary) = (self.magnitude, summary(&kernels, stream)?);
        let rows = TreeRows { nodes: Some(nodes), tuples: None, order, magnitude, summary };
        rows.assembled(&kernels, stream)?.rows(stream)
    }

    /// The leaves with their whole paths, on the host.
    fn rows(&self, stream: &mut Stream) -> Result<Rows> {
        let (last, count) = (self.kernels.levels() - 1, self.leaves());
        let levels: Vec<usize> = (1..=last).collect();
        let measures = self.kernels.measures().len() as u64;
        if count == 0 {
            return Ok(Rows { keys: vec![Vec::new(); last], measures: vec![Vec::new(); measures as usize] });
        }
        let nodes = self.node_rows(stream, last, &levels)?;
        let key = |at: usize| column::<u32>(stream, &nodes.columns, at as u64 * nodes.stride, count);
        let keys = (0..last).map(key).collect::<Result<Vec<Vec<u32>>>>()?;
        let measure = |at: u64| column::<i64>(stream, &self.measures, at * self.nodes() + self.starts[last], count);
        Ok(Rows { keys, measures: (0..measures).map(measure).collect::<Result<Vec<Vec<i64>>>>()? })
    }
}

/// Some nodes in the order of their keys.
fn sorted(kernels: &Kernels, stream: &mut Stream, nodes: &Nodes<'_>, found: &DeviceSlice) -> Result<DeviceSlice> {
    let (count, columns) = (found.len(), kernels.levels() - 1);
    let room = || slice(&kernels.room(count as usize * size_of::<u32>())?, Element::U32, 0, count);
    let gather = Gather::new(&kernels.device, Element::U32, Element::U32)?;
    let mut of_found = Vec::with_capacity(columns);
    for at in 0..columns as u64 {
        let keys = room()?;
        gather.launch(stream, &slice(&nodes.columns, Element::U32, at * nodes.stride, nodes.count)?, found, &keys)?;
        of_found.push(keys);
    }
    let keys: Vec<SortKey<'_>> = of_found.iter().map(|values| SortKey { values, valid: None }).collect();
    let (places, order) = (room()?, room()?);
    let scratch = kernels.room(kernels.sort.scratch_bytes(count))?;
    kernels.sort.launch(stream, &keys, Some(&places), &scratch)?;
    gather.launch(stream, found, &places, &order)?;
    Ok(order)
}
