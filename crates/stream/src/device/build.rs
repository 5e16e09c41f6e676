//! From rows in an order to a tree: levels, measures, side links, header tables.
//!
//! The host waits twice: for the numbers of nodes, and for the places of header entries. All else is launched behind
//! each other.

use std::sync::Arc;

use warpcube_gpu::prims::radix_sort::{RadixOrder, Records};
use warpcube_gpu::prims::{DeviceSlice, Element};
use warpcube_gpu::{DeviceBuffer, Params, Stream};

use super::kernels::{Kernels, LEVELS_MAX, SUMMARY_COUNT, SUMMARY_HEADERS, SUMMARY_OVERFLOW, SUMMARY_STARTS, padded};
use super::rows::{Rows, sums, told};
use super::tree::DeviceTree;
use crate::error::{Result, StreamError};
use crate::schema::MEASURES_MAX;

/// Rows of a tile, `WC_TILE` of the kernels.
const TILE_ROWS: u64 = 256;

/// What rows say about the levels before there are nodes.
struct Heads {
    tiles: u64,
    differs: DeviceBuffer,
    ranks: DeviceBuffer,
}

impl Rows<'_> {
    /// The tree of the rows.
    pub(super) fn assembled(&self, kernels: &Arc<Kernels>, stream: &mut Stream) -> Result<DeviceTree> {
        if self.count() == 0 {
            return DeviceTree::empty(kernels);
        }
        let levels = kernels.levels();
        self.inspect(stream)?;
        let heads = self.heads(kernels, stream)?;
        let words = told(stream, &self.summary)?;
        let magnitude = self.check(stream, &words)?;
        let starts = words[SUMMARY_STARTS..][..=levels].to_vec();
        let count = starts[levels];
        if count >= u64::from(u32::MAX) {
            return Err(StreamError::TooMany { count, what: "nodes" });
        }
        let mut tree = DeviceTree { starts, magnitude, ..DeviceTree::empty(kernels)? };
        let offsets = self.emit(stream, &mut tree, &heads)?;
        drop(heads);
        self.roll_up(stream, &mut tree, &offsets)?;
        link(stream, &mut tree, &offsets, &self.summary)?;
        let words = told(stream, &self.summary)?;
        if words[SUMMARY_OVERFLOW] != u64::MAX {
            return Err(StreamError::Overflow { measure: words[SUMMARY_OVERFLOW] as usize });
        }
        tree.headers = words[SUMMARY_HEADERS..][..=levels].to_vec();
        Ok(tree)
    }

    /// Finds heads of nodes, and numbers them by tiles.
    fn heads(&self, kernels: &Kernels, stream: &mut Stream) -> Result<Heads> {
        let (count, levels) = (self.count(), kernels.levels() as u64);
        let tiles = count.div_ceil(TILE_ROWS);
        let counted = levels * tiles + 1;
        let differs = kernels.room(count as usize)?;
        let counts = kernels.room(counted as usize * size_of::<u32>())?;
        stream.fill(&counts, (counted as usize - 1) * size_of::<u32>(), 0, size_of::<u32>())?;
        let params = self.params().slice(&self.order).u64(count).u64(levels).u64(tiles);
        kernels.launch(stream, "wc_htree_heads", tiles * 32, &params.buffer(&differs).buffer(&counts))?;
        let ranks = kernels.room(counted as usize * size_of::<u64>())?;
        let scratch = kernels.room(kernels.scan.scratch_bytes(counted))?;
        let (counts, out) = (slice(&counts, Element::U32, 0, counted)?, slice(&ranks, Element::U64, 0, counted)?);
        kernels.scan.launch(stream, &counts, &out, &scratch)?;
        let params = Params::new().buffer(&ranks).u64(levels).u64(tiles);
        let params = params.buffer_at(&self.summary, SUMMARY_STARTS * 8);
        kernels.launch(stream, "wc_htree_starts", levels + 1, &params)?;
        Ok(Heads { tiles, differs, ranks })
    }

    /// Writes nodes; gives where children begin, level after level: [`offsets_of`].
    fn emit(&self, stream: &mut Stream, tree: &mut DeviceTree, heads: &Heads) -> Result<DeviceBuffer> {
        let kernels = tree.kernels.clone();
        let (nodes, levels) = (tree.nodes(), kernels.levels() as u64);
        for array in &mut tree.nodes {
            *array = kernels.room(nodes as usize * size_of::<u32>())?;
        }
        let offsets = kernels.room((nodes + levels) as usize * size_of::<u64>())?;
        let params = self.params().slice(&self.order).u64(self.count()).u64(levels).u64(heads.tiles);
        let params = params.buffer(&heads.differs).buffer(&heads.ranks);
        let [keys, parents, leftmost, ..] = &tree.nodes;
        let params = params.buffer(keys).buffer(parents).buffer(leftmost).buffer(&offsets);
        let params = padded(params, &tree.starts, LEVELS_MAX + 1);
        kernels.launch(stream, "wc_htree_emit", heads.tiles * 32, &params)?;
        Ok(offsets)
    }

    /// Joins the measures of rows to those of leaves, and those of children to those of nodes.
    fn roll_up(&self, stream: &mut Stream, tree: &mut DeviceTree, offsets: &DeviceBuffer) -> Result<()> {
        let kernels = tree.kernels.clone();
        let (count, measures) = (self.count(), kernels.measures());
        let states = kernels.room(count as usize * measures.len() * size_of::<i64>())?;
        let params = Params::new().slice(&self.order).u64(count).u64(self.old());
        let params = match &self.nodes {
            Some(nodes) => {
                let first = nodes.tree.starts[nodes.level] as usize * size_of::<i64>();
                params.u64(nodes.tree.nodes()).buffer_at(&nodes.tree.measures, first)
            }
            None => params.u64(0).null(),
        };
        let of_tuples = |number: usize| {
            let value = measures.get(number).and_then(|measure| measure.value());
            self.tuples.zip(value).map(|(tuples, value)| &tuples.values()[value])
        };
        let params = (0..MEASURES_MAX).map(of_tuples).fold(params, |params, value| match value {
            Some(value) => params.slice(value),
            None => params.null(),
        });
        kernels.launch(stream, "wc_htree_states", count, &params.buffer(&states))?;
        tree.measures = kernels.room(tree.nodes() as usize * measures.len() * size_of::<i64>())?;
        let levels = kernels.levels();
        let below = |level: usize| if level + 1 == levels { count } else { tree.of_level(level + 1) };
        let scratch = |measure| {
            let of_level = |level| kernels.reduction(measure).scratch_bytes(below(level), tree.of_level(level));
            (0..levels).map(of_level).max().unwrap_or(0)
        };
        let scratch = kernels.room(measures.iter().map(|measure| scratch(*measure)).max().unwrap_or(0))?;
        // Without a bound on all sums each is looked at.
        let is_checked = tree.magnitude > i64::MAX as u128;
        for (number, measure) in measures.iter().enumerate() {
            let mut items = slice(&states, Element::I64, number as u64 * count, count)?;
            for level in (0..levels).rev() {
                let nodes = tree.of_level(level);
                let (out, ends) = (tree.measure(number, level)?, offsets_of(tree, offsets, level)?);
                if nodes == below(level) {
                    // A node has one child each.
                    let bytes = nodes as usize * size_of::<i64>();
                    stream.copy(out.buffer(), out.offset(), items.buffer(), items.offset(), bytes)?;
                } else {
                    kernels.reduction(*measure).launch(stream, &items, &ends, &out, &scratch)?;
                    if is_checked && sums(measures).any(|(sum, _)| sum == number) {
                        let params = Params::new().slice(&ends).u64(nodes).slice(&items).u64(number as u64);
                        let params = params.buffer_at(&self.summary, SUMMARY_OVERFLOW * 8);
                        kernels.launch(stream, "wc_htree_sums", nodes * 32, &params)?;
                    }
                }
                items = out;
            }
        }
        Ok(())
    }
}

/// Counts children, sorts the nodes of all levels by key, and makes the header tables.
fn link(stream: &mut Stream, tree: &mut DeviceTree, offsets: &DeviceBuffer, summary: &DeviceBuffer) -> Result<()> {
    let kernels = tree.kernels.clone();
    let (nodes, levels, side) = (tree.nodes(), kernels.levels(), kernels.side);
    let [keys, _, _, children, side_links] = &tree.nodes;
    let sorted = kernels.room(nodes as usize * side.bytes())?;
    let params = Params::new().buffer(offsets).buffer(keys).u64(nodes).u64(levels as u64);
    let params = params.u64(kernels.key_bits.into()).buffer(children).buffer(&sorted);
    kernels.launch(stream, "wc_htree_links", nodes, &padded(params, &tree.starts, LEVELS_MAX + 1))?;
    let other = kernels.room(nodes as usize * side.bytes())?;
    let other_links = kernels.room(nodes as usize * size_of::<u32>())?;
    let (keys, other) = (slice(&sorted, side, 0, nodes)?, slice(&other, side, 0, nodes)?);
    let [links, other_links] = [side_links, &other_links].map(|links| slice(links, Element::U32, 0, nodes));
    let (links, other_links) = (links?, other_links?);
    let scratch = kernels.room(kernels.side_sort.scratch_bytes(nodes))?;
    let order = RadixOrder { bits: 0..kernels.side_bits(), descending: false };
    let records = Records { keys: &keys, values: Some(&links) };
    let other = Records { keys: &other, values: Some(&other_links) };
    kernels.side_sort.launch_numbering(stream, records, other, &order, &scratch)?;

    let flags = kernels.room(nodes as usize)?;
    let params = Params::new().slice(&keys).u64(nodes).u64(levels as u64).buffer(side_links).buffer(&flags);
    kernels.launch(stream, "wc_htree_sides", nodes, &padded(params, &tree.starts, LEVELS_MAX + 1))?;
    let cardinality = |level: usize| if level == 0 { 1 } else { kernels.schema.at_level(level).cardinality };
    let entries: u64 = (0..levels).map(|level| tree.of_level(level).min(cardinality(level))).sum();
    let begins = kernels.room((entries as usize + 1) * size_of::<u64>())?;
    let (out, count) =
        (slice(&begins, Element::U64, 0, entries + 1)?, slice(summary, Element::U64, SUMMARY_COUNT as u64, 1)?);
    let scratch = kernels.room(kernels.split.scratch_bytes(nodes))?;
    kernels.split.launch(stream, &slice(&flags, Element::U8, 0, nodes)?, &out, &count, &scratch)?;
    for array in &mut tree.entries {
        *array = kernels.room(entries as usize * size_of::<u32>())?;
    }
    let params = Params::new().slice(&keys).buffer(&begins).slice(&count).u64(levels as u64);
    let params = tree.entries.iter().fold(params.u64(kernels.key_bits.into()), |params, array| params.buffer(array));
    let params = params.buffer_at(summary, SUMMARY_HEADERS * 8);
    kernels.launch(stream, "wc_htree_headers", entries, &padded(params, &tree.starts, LEVELS_MAX + 1))
}

/// Where the children of a level's nodes begin, and their number; of leaves the rows.
fn offsets_of(tree: &DeviceTree, offsets: &DeviceBuffer, level: usize) -> Result<DeviceSlice> {
    slice(offsets, Element::U64, tree.starts[level] + level as u64, tree.of_level(level) + 1)
}

/// Some elements of a buffer.
pub(super) fn slice(buffer: &DeviceBuffer, element: Element, first: u64, count: u64) -> Result<DeviceSlice> {
    Ok(DeviceSlice::new(buffer, first as usize * element.bytes(), element, count)?)
}
