//! The compiled kernels and primitives of a schema on a device.

use std::collections::HashMap;
use std::sync::Arc;

use warpcube_gpu::prims::{
    Element, Moved, Predicate, RadixSort, Reduce, Reduction, Scan, ScanKind, SegmentedReduce, Select, SelectOrder,
    Sort, SortColumn, Split,
};
use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, Params, Program, Stream};

use crate::error::Result;
use crate::schema::{DIMENSIONS_MAX, Dimension, MEASURES_MAX, Measure, Schema};

/// Levels at most, `WC_LEVELS_MAX` of the kernels.
pub(super) const LEVELS_MAX: usize = DIMENSIONS_MAX + 1;

// Words of the summary: first nodes of levels and their number; the first attribute past its cardinality; the least and
// largest value of measures that are sums; first header entries of levels and their number; entries counted by the
// split; the first measure of which a sum leaves 64 bits. Words of what is not there are all ones.
pub(super) const SUMMARY_STARTS: usize = 0;
pub(super) const SUMMARY_BAD: usize = SUMMARY_STARTS + LEVELS_MAX + 1;
pub(super) const SUMMARY_EXTREMES: usize = SUMMARY_BAD + 1;
pub(super) const SUMMARY_HEADERS: usize = SUMMARY_EXTREMES + 2 * MEASURES_MAX;
pub(super) const SUMMARY_COUNT: usize = SUMMARY_HEADERS + LEVELS_MAX + 1;
pub(super) const SUMMARY_OVERFLOW: usize = SUMMARY_COUNT + 1;
pub(super) const SUMMARY_WORDS: usize = SUMMARY_OVERFLOW + 1;
/// Threads of a block of all kernels.
const THREADS: u32 = 256;
/// Threads of a block where a thread has a query.
const QUERY_THREADS: u32 = 128;
/// Most blocks on a multiprocessor; kernels walk over the rest.
const BLOCKS: u32 = 16;

/// What trees of a schema need on a device; made once, as it compiles programs.
pub struct Kernels {
    pub(super) device: Device,
    pub(super) schema: Arc<Schema>,
    /// Type of the keys that nodes are sorted by for side links: level and key.
    pub(super) side: Element,
    pub(super) key_bits: u32,
    pub(super) sort: Sort,
    pub(super) side_sort: RadixSort,
    /// Sums of u32 in front of each.
    pub(super) scan: Scan,
    pub(super) split: Split,
    pub(super) select: Select,
    pub(super) sums: SegmentedReduce,
    /// The least and the largest of segments, where measures need them.
    pub(super) extremes: [Option<SegmentedReduce>; 2],
    /// The least and the largest of a column.
    pub(super) bounds: [Reduce; 2],
    own: HashMap<&'static str, Kernel>,
}

/// The kernels of this module.
const NAMES: [&str; 17] = [
    "wc_htree_check",
    "wc_htree_heads",
    "wc_htree_starts",
    "wc_htree_emit",
    "wc_htree_links",
    "wc_htree_sides",
    "wc_htree_headers",
    "wc_htree_states",
    "wc_htree_sums",
    "wc_htree_expand",
    "wc_htree_descend",
    "wc_htree_place_new",
    "wc_htree_place_old",
    "wc_htree_on_path",
    "wc_htree_lists",
    "wc_htree_online",
    "wc_htree_match",
];

impl Kernels {
    /// Compiles what a schema needs.
    ///
    /// # Errors
    /// A program that does not compile.
    pub fn new(device: &Device, schema: &Arc<Schema>) -> Result<Arc<Kernels>> {
        let of_level = |level: usize| {
            let bits = schema.at_level(level).bits();
            SortColumn { bits, ..SortColumn::of(Element::U32) }
        };
        let columns: Vec<SortColumn> = (1..schema.levels()).map(of_level).collect();
        let key_bits = schema.dimensions().iter().map(Dimension::bits).max().unwrap_or(1);
        let side = if side_bits(schema, key_bits) <= u32::BITS { Element::U32 } else { Element::U64 };
        let (reduction, kind) = (Reduction::Sum(Element::U64), ScanKind::Exclusive);
        let of_segments = |of: Reduction| SegmentedReduce::new(device, Element::I64, of);
        let wanted = |of: Reduction, is: fn(&Measure) -> bool| {
            schema.measures().iter().any(is).then(|| of_segments(of)).transpose()
        };
        let extremes = [
            wanted(Reduction::Least, |measure| matches!(measure, Measure::Min(_)))?,
            wanted(Reduction::Largest, |measure| matches!(measure, Measure::Max(_)))?,
        ];
        let bound = |of: Reduction| Reduce::new(device, Element::I64, of);
        let module = device.compile(&program(schema.measures(), side))?;
        let own = NAMES.into_iter().map(|name| Ok((name, module.kernel(name)?)));
        let (rows, stable) = (Moved::Rows(Element::U32), SelectOrder::Stable);
        Ok(Arc::new(Kernels {
            sort: Sort::new(device, &columns, Some(Element::U32))?,
            side_sort: RadixSort::new(device, side, Some(Element::U32))?,
            scan: Scan::new(device, Element::U32, reduction, kind)?,
            split: Split::new(device)?,
            select: Select::new(device, Element::U8, Predicate::Flags, rows, stable)?,
            sums: of_segments(Reduction::Sum(Element::I64))?,
            extremes,
            bounds: [bound(Reduction::Least)?, bound(Reduction::Largest)?],
            own: own.collect::<Result<HashMap<&'static str, Kernel>>>()?,
            device: device.clone(),
            schema: schema.clone(),
            side,
            key_bits,
        }))
    }

    /// Dimensions and measures.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bits of the keys that nodes are sorted by.
    pub(super) fn side_bits(&self) -> u32 {
        side_bits(&self.schema, self.key_bits)
    }

    pub(super) fn levels(&self) -> usize {
        self.schema.levels()
    }

    pub(super) fn measures(&self) -> &[Measure] {
        self.schema.measures()
    }

    /// Memory of a tree, or of an operation.
    pub(super) fn room(&self, bytes: usize) -> Result<DeviceBuffer> {
        Ok(self.device.buffer(bytes, "an H-tree")?)
    }

    /// Launches a kernel of this module, a thread an item.
    pub(super) fn launch(&self, stream: &mut Stream, name: &str, items: u64, params: &Params) -> Result<()> {
        let shape = self.shape(items, THREADS);
        Ok(stream.launch(&self.own[name], shape, params)?)
    }

    /// A kernel, and how it is launched with a thread a query.
    pub(super) fn of_queries(&self, name: &str, queries: u64) -> (&Kernel, LaunchShape) {
        (&self.own[name], self.shape(queries, QUERY_THREADS))
    }

    /// A kernel, and how it is launched over a number of items that the device alone knows.
    pub(super) fn of_many(&self, name: &str) -> (&Kernel, LaunchShape) {
        (&self.own[name], self.shape(u64::MAX >> 1, THREADS))
    }

    /// The reduction of a measure.
    pub(super) fn reduction(&self, measure: Measure) -> &SegmentedReduce {
        let [least, largest] = &self.extremes;
        match measure {
            Measure::Sum(_) | Measure::Count => &self.sums,
            Measure::Min(_) => least.as_ref().unwrap_or(&self.sums),
            Measure::Max(_) => largest.as_ref().unwrap_or(&self.sums),
        }
    }

    fn shape(&self, items: u64, block: u32) -> LaunchShape {
        let most = u64::from(self.device.info().multiprocessors * BLOCKS);
        let grid = items.div_ceil(block.into()).clamp(1, most) as u32;
        LaunchShape { grid, block, shared_bytes: 0 }
    }
}

/// Bits of level and key.
fn side_bits(schema: &Schema, key_bits: u32) -> u32 {
    (usize::BITS - (schema.levels() - 1).leading_zeros()) + key_bits
}

/// How kernels join a measure.
fn operation(measure: Measure) -> &'static str {
    match measure {
        Measure::Sum(_) | Measure::Count => "0",
        Measure::Min(_) => "1",
        Measure::Max(_) => "2",
    }
}

/// The kernels for measures, with keys of side links of a type.
fn program(measures: &[Measure], side: Element) -> Program {
    let operations: Vec<&str> = measures.iter().map(|measure| operation(*measure)).collect();
    let (count, operations, side) = (measures.len(), operations.join(", "), side.c_type());
    let text = [
        &format!("#define WC_MEASURES {count}\n#define WC_OPERATIONS {operations}\n#define WC_SIDE {side}\n"),
        include_str!("../../kernels/htree.cuh"),
        include_str!("../../kernels/build.cuh"),
        include_str!("../../kernels/update.cuh"),
        include_str!("../../kernels/query.cuh"),
    ];
    Program::new("htree", text.concat())
}

/// Appends words, and zeros up to a number of words.
pub(super) fn padded(params: Params, words: &[u64], length: usize) -> Params {
    let zeros = std::iter::repeat_n(&0, length - words.len());
    words.iter().chain(zeros).fold(params, |params, word| params.u64(*word))
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn the_kernels_compile_for_cuda() {
        let all = [Measure::Sum(0), Measure::Count, Measure::Min(0), Measure::Max(0)];
        for program in [program(&all, Element::U32), program(&all[..1], Element::U64)] {
            match nvrtc::compile(&program, 90) {
                Ok(cubin) => assert!(!cubin.is_empty()),
                Err(GpuError::CompilerUnavailable { .. }) => return,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
