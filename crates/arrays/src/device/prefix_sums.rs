//! Aggregation by prefixes of the dimensions on a device. `kernels/prefix_sums.cuh` is the device's side of
//! this file.

use warpcube_gpu::prims::histogram::{Histogram, HistogramBins};
use warpcube_gpu::prims::{DeviceSlice, Element, Moved, Predicate, Queue, Select, SelectOperands, SelectOrder};
use warpcube_gpu::{DeviceBuffer, Kernel, LaunchShape, Params, Stream};

use super::array::{DeviceArray, DeviceValue, PointerKind, THREADS, operand};
use super::error::{DeviceSchemeError, Result};
use crate::GroupBy;

/// Most threads that add up one group within a warp.
const WIDTH_MAX: u64 = 32;
/// Mean items of a group above which a block of threads adds it up: eight rounds of a warp.
const WARP_ITEMS_MAX: u64 = 256;

/// The k - 1 aggregations of one array, with their memory: planned once, launched any number of times.
///
/// The plan counts the groups of all prefixes on the device and waits for them.
pub struct Aggregation<'a, V> {
    array: &'a DeviceArray<V>,
    codes: DeviceSlice,
    histogram: Histogram,
    counts: DeviceSlice,
    select: Select,
    scratch: DeviceBuffer,
    kernels: Kernels,
    /// The longest prefix first.
    levels: Vec<Level>,
}

struct Kernels {
    cell_codes: Kernel,
    block_codes: Kernel,
    sums: Kernel,
    block_sums: Kernel,
    coordinates: Kernel,
}

/// One group-by.
struct Level {
    /// Dimensions of the group-by.
    length: usize,
    /// Items and groups.
    items: u64,
    groups: u64,
    heads: DeviceSlice,
    count: DeviceSlice,
    codes: DeviceSlice,
    positions: DeviceSlice,
    sums: DeviceSlice,
    coordinates: DeviceSlice,
}

impl<V: DeviceValue> DeviceArray<V> {
    /// As `Storage::prefix_sums`: sums by the prefixes of the dimensions, shortest first. The stream is waited for.
    /// Doubles are added in another order than on the CPU, the same in every run.
    ///
    /// # Errors
    /// [`DeviceSchemeError::Sums`] for integers whose sums may pass 64 bits; a device that fails.
    pub fn prefix_sums(&self, stream: &mut Stream) -> Result<Vec<GroupBy<V>>> {
        let aggregation = Aggregation::new(self, stream)?;
        aggregation.launch(stream)?;
        aggregation.read(stream)
    }
}

impl<'a, V: DeviceValue> Aggregation<'a, V> {
    /// Plans the aggregations. Waits for the stream.
    ///
    /// # Errors
    /// [`DeviceSchemeError::Sums`] for integers whose sums may pass 64 bits; no room on the device.
    pub fn new(array: &'a DeviceArray<V>, stream: &mut Stream) -> Result<Self> {
        if let Some(magnitude) = array.excess {
            return Err(DeviceSchemeError::Sums { magnitude });
        }
        let dimensions = array.shape.dimensions();
        // A head of a group of n dimensions has a code of at most n; non-heads have k.
        let (head, moved) = (Predicate::Text("x <= a".to_string()), Moved::Rows(Element::U32));
        let select = Select::new(&array.device, Element::U8, head, moved, SelectOrder::Stable)?;
        let mut aggregation = Self {
            array,
            codes: array.room(Element::U8, array.cells)?,
            histogram: Histogram::new(&array.device, Element::U8)?,
            counts: array.room(Element::U64, dimensions as u64)?,
            scratch: array.scratch(select.scratch_bytes(array.cells))?,
            select,
            kernels: Kernels {
                cell_codes: array.kernel("wc_scheme_cell_codes")?,
                block_codes: array.kernel("wc_scheme_block_codes")?,
                sums: array.kernel("wc_scheme_sums")?,
                block_sums: array.kernel("wc_scheme_block_sums")?,
                coordinates: array.kernel("wc_scheme_coordinates")?,
            },
            levels: Vec::new(),
        };
        aggregation.launch_codes(stream)?;
        let bins = HistogramBins::Codes { shift: 0, first: 1 };
        aggregation.histogram.launch(stream, &aggregation.codes, bins, &aggregation.counts)?;
        let mut counts = vec![0u64; dimensions];
        stream.download(aggregation.counts.buffer(), 0, bytemuck::cast_slice_mut(&mut counts))?;
        let mut items = array.cells;
        for length in (1..dimensions).rev() {
            let groups = counts[..length].iter().sum();
            aggregation.levels.push(Level::new(array, length, items, groups)?);
            items = groups;
        }
        Ok(aggregation)
    }

    /// Groups of all aggregations.
    pub fn groups(&self) -> u64 {
        self.levels.iter().map(|level| level.groups).sum()
    }

    /// All device memory of a launch, for recorded work.
    pub fn buffers(&self) -> Vec<&DeviceBuffer> {
        let mut buffers = self.array.buffers();
        buffers.extend([self.codes.buffer(), self.counts.buffer(), &self.scratch]);
        let of_levels = self.levels.iter().flat_map(Level::slices);
        buffers.extend(of_levels.map(DeviceSlice::buffer));
        buffers
    }

    /// Computes all aggregations, coordinates of groups included.
    ///
    /// # Errors
    /// A device that fails.
    pub fn launch(&self, queue: &mut impl Queue) -> Result<()> {
        if self.array.is_empty() || self.levels.is_empty() {
            return Ok(());
        }
        self.launch_codes(queue)?;
        let mut above: Option<&Level> = None;
        for level in &self.levels {
            let codes = above.map_or(&self.codes, |above| &above.codes);
            let bounds = [level.length as u64, 0];
            let (heads, count) = (&level.heads, &level.count);
            let operands = SelectOperands { input: Some(codes), flags: None, bounds, out: heads, count };
            self.select.launch(queue, &operands, &self.scratch)?;
            self.launch_sums(queue, level, above)?;
            above = Some(level);
        }
        Ok(())
    }

    /// The aggregations of the last launch, shortest prefix first.
    ///
    /// # Errors
    /// A device that fails.
    pub fn read(&self, stream: &mut Stream) -> Result<Vec<GroupBy<V>>> {
        let mut group_bys = Vec::new();
        for level in self.levels.iter().rev() {
            let mut coordinates = vec![0u32; level.coordinates.len() as usize];
            let mut sums = vec![V::default(); level.groups as usize];
            if level.groups > 0 {
                stream.download(level.coordinates.buffer(), 0, bytemuck::cast_slice_mut(&mut coordinates))?;
                stream.download(level.sums.buffer(), 0, bytemuck::cast_slice_mut(&mut sums))?;
            }
            group_bys.push(GroupBy::new((0..level.length).collect(), coordinates, sums));
        }
        Ok(group_bys)
    }

    /// Writes the code of each cell.
    fn launch_codes(&self, queue: &mut impl Queue) -> Result<()> {
        let (array, params) = (self.array, self.params(None, None));
        let dimensions = array.shape.dimensions();
        if array.is_empty() {
            return Ok(());
        }
        if dimensions - array.split > 1 || array.kind == PointerKind::None {
            queue.launch(&self.kernels.cell_codes, array.walk(array.cells), &params)?;
        } else {
            // Cells of a block differ in the last dimension alone.
            queue.fill(self.codes.buffer(), 0, dimensions as u8, array.cells as usize)?;
        }
        if array.kind != PointerKind::None {
            queue.launch(&self.kernels.block_codes, array.walk(array.blocks()), &params)?;
        }
        Ok(())
    }

    fn launch_sums(&self, queue: &mut impl Queue, level: &Level, above: Option<&Level>) -> Result<()> {
        let params = self.params(Some(level), above);
        let shape = match level.width() {
            Some(width) => self.array.walk(level.groups * width),
            None => {
                let walk = self.array.walk(level.groups * u64::from(THREADS));
                LaunchShape { shared_bytes: THREADS / 32 * size_of::<u64>() as u32, ..walk }
            }
        };
        let sums = if level.width().is_some() { &self.kernels.sums } else { &self.kernels.block_sums };
        queue.launch(sums, shape, &params)?;
        queue.launch(&self.kernels.coordinates, self.array.walk(level.groups), &params)?;
        Ok(())
    }

    fn params(&self, level: Option<&Level>, above: Option<&Level>) -> Params {
        let params = self.array.params().slice(above.map_or(&self.codes, |above| &above.codes));
        let params = operand(params, above.map(|above| &above.positions));
        let params = match (above, self.array.values()) {
            (Some(above), _) => params.slice(&above.sums),
            (None, Some(values)) => params.buffer(values),
            (None, None) => params.null(),
        };
        let number = |of: fn(&Level) -> u64| level.map_or(0, of);
        let params = params.u64(number(|level| level.items));
        let params = operand(params, level.map(|level| &level.heads));
        let params = params.u64(number(|level| level.groups)).u64(number(|level| level.width().unwrap_or(0)));
        let params = operand(params, level.map(|level| &level.codes));
        let params = operand(params, level.map(|level| &level.positions));
        let params = operand(params, level.map(|level| &level.sums));
        let params = operand(params, level.map(|level| &level.coordinates));
        params.u64(number(|level| level.length as u64))
    }
}

impl Level {
    fn new<V: DeviceValue>(array: &DeviceArray<V>, length: usize, items: u64, groups: u64) -> Result<Level> {
        Ok(Level {
            length,
            items,
            groups,
            heads: array.room(Element::U32, groups)?,
            count: array.room(Element::U64, 1)?,
            codes: array.room(Element::U8, groups)?,
            positions: array.room(Element::U32, groups)?,
            sums: array.room(Element::U64, groups)?,
            coordinates: array.room(Element::U32, groups * length as u64)?,
        })
    }

    /// Threads of a warp that add up one group, by the mean items of a group; absent where a block of threads does.
    fn width(&self) -> Option<u64> {
        let mean = self.items.div_ceil(self.groups.max(1));
        // A thread adds about four items.
        (mean <= WARP_ITEMS_MAX).then(|| mean.div_ceil(4).next_power_of_two().min(WIDTH_MAX))
    }

    fn slices(&self) -> [&DeviceSlice; 6] {
        [&self.heads, &self.count, &self.codes, &self.positions, &self.sums, &self.coordinates]
    }
}
