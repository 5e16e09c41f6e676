//! Sub-arrays on a device. `kernels/sub_array.cuh` is the device's side of this file.

use warpcube_gpu::prims::search::{Search, SearchMethod, SearchSide};
use warpcube_gpu::prims::{
    DeviceSlice, Element, Moved, Predicate, Queue, Reduction, Scan, ScanKind, Select, SelectOperands, SelectOrder,
};
use warpcube_gpu::{DeviceBuffer, Kernel, Params, Stream};

use super::array::{DeviceArray, DeviceValue, PointerKind, operand, padded};
use super::error::Result;
use crate::{Cells, SubArray};

/// The retrieval of one sub-array, with its memory: planned once, launched any number of times.
///
/// The plan counts candidates and results on the device and waits for both, so that a launch has room for exactly what
/// it finds.
pub struct Retrieval<'a, V> {
    array: &'a DeviceArray<V>,
    area: SubArray,
    blocks: u64,
    /// First candidate of each block; the places of both bounds where they are searched.
    begins: DeviceSlice,
    /// Candidates in front of each block, and in all.
    offsets: DeviceSlice,
    candidates: u64,
    ranges: Ranges,
    /// The selection among the candidates; absent if all lie inside.
    choice: Option<Selection>,
    emit: Kernel,
    results: u64,
    coordinates: DeviceSlice,
    values: DeviceSlice,
}

/// How candidates are found.
enum Ranges {
    /// Block by block, then summed up.
    InBlocks { ranges: Kernel, scan: Scan, scratch: DeviceBuffer },
    /// By the p-ary search of the keys of both bounds, which stand in `keys`.
    Searched { search: Box<Search>, keys: DeviceSlice },
    /// There are no cells.
    Nothing,
}

/// The candidates inside.
struct Selection {
    flags_kernel: Kernel,
    select: Select,
    scratch: DeviceBuffer,
    flags: DeviceSlice,
    /// Numbers of candidates; shorter than `flags` once the plan is made.
    chosen: DeviceSlice,
    count: DeviceSlice,
}

impl<V: DeviceValue> DeviceArray<V> {
    /// As `Storage::sub_array`: the filled cells of a sub-array in row-major order. The stream is waited for.
    ///
    /// # Errors
    /// A sub-array of another shape; a device that fails.
    pub fn sub_array(&self, stream: &mut Stream, area: &SubArray) -> Result<Cells<V>> {
        let retrieval = Retrieval::new(self, stream, area)?;
        retrieval.launch(stream)?;
        retrieval.read(stream)
    }
}

impl<'a, V: DeviceValue> Retrieval<'a, V> {
    /// Plans the retrieval of a sub-array. Waits for the stream.
    ///
    /// # Errors
    /// A sub-array of another shape; no room on the device.
    pub fn new(array: &'a DeviceArray<V>, stream: &mut Stream, area: &SubArray) -> Result<Self> {
        area.check(&array.shape)?;
        let (leading, _) = area.split(array.split);
        let extents = leading.low().iter().zip(leading.high()).map(|(low, high)| u64::from(high - low) + 1);
        let blocks: u64 = extents.product();
        let mut retrieval = Self {
            array,
            area: area.clone(),
            blocks,
            begins: array.room(Element::U64, blocks.max(2))?,
            offsets: array.room(Element::U64, blocks + 1)?,
            candidates: 0,
            ranges: Ranges::new(array, stream, area, blocks)?,
            choice: None,
            emit: array.kernel("wc_scheme_emit")?,
            results: 0,
            coordinates: array.room(Element::U32, 0)?,
            values: array.room(Element::U64, 0)?,
        };
        retrieval.launch_ranges(stream)?;
        let bounds = retrieval.read_bounds(stream)?;
        retrieval.candidates = bounds[1] - bounds[0];
        retrieval.results = retrieval.candidates;
        if !is_run(&array.shape.sizes()[array.split..], area, array.split) && retrieval.candidates > 0 {
            retrieval.choose(stream)?;
        }
        retrieval.coordinates = array.room(Element::U32, retrieval.results * array.shape.dimensions() as u64)?;
        retrieval.values = array.room(Element::U64, retrieval.results)?;
        Ok(retrieval)
    }

    /// Filled cells of the sub-array.
    pub fn len(&self) -> usize {
        self.results as usize
    }

    /// True if no cell of the sub-array is filled.
    pub fn is_empty(&self) -> bool {
        self.results == 0
    }

    /// Cells whose keys were looked at.
    pub fn candidates(&self) -> u64 {
        self.candidates
    }

    /// All device memory of a launch, for recorded work.
    pub fn buffers(&self) -> Vec<&DeviceBuffer> {
        let own = [&self.begins, &self.offsets, &self.coordinates, &self.values].map(DeviceSlice::buffer);
        let mut buffers = self.array.buffers();
        buffers.extend(own);
        match &self.ranges {
            Ranges::InBlocks { scratch, .. } => buffers.push(scratch),
            Ranges::Searched { keys, .. } => buffers.push(keys.buffer()),
            Ranges::Nothing => {}
        }
        if let Some(Selection { flags, chosen, count, scratch, .. }) = &self.choice {
            buffers.extend([flags.buffer(), chosen.buffer(), count.buffer(), scratch]);
        }
        buffers
    }

    /// Retrieves the cells: all steps from the bounds on.
    ///
    /// # Errors
    /// A device that fails.
    pub fn launch(&self, queue: &mut impl Queue) -> Result<()> {
        self.launch_ranges(queue)?;
        self.launch_choice(queue)?;
        if self.results > 0 {
            queue.launch(&self.emit, self.array.walk(self.results), &self.params())?;
        }
        Ok(())
    }

    /// The cells that the last launch found.
    ///
    /// # Errors
    /// A device that fails.
    pub fn read(&self, stream: &mut Stream) -> Result<Cells<V>> {
        let mut coordinates = vec![0u32; self.coordinates.len() as usize];
        let mut values = vec![V::default(); self.results as usize];
        if self.results > 0 {
            stream.download(self.coordinates.buffer(), 0, bytemuck::cast_slice_mut(&mut coordinates))?;
            stream.download(self.values.buffer(), 0, bytemuck::cast_slice_mut(&mut values))?;
        }
        Ok(Cells::new(self.array.shape.clone(), coordinates, values)?)
    }

    fn launch_ranges(&self, queue: &mut impl Queue) -> Result<()> {
        match &self.ranges {
            Ranges::Nothing => {}
            Ranges::InBlocks { ranges, scan, scratch } => {
                queue.launch(ranges, self.array.walk(self.blocks + 1), &self.params())?;
                scan.launch(queue, &self.offsets, &self.offsets, scratch)?;
            }
            Ranges::Searched { search, keys } => {
                search_bounds(self.array, search, keys, &self.begins, queue)?;
            }
        }
        Ok(())
    }

    /// The first and the last bound of the ranges: positions of a search, or sums from 0 to all candidates.
    fn read_bounds(&self, stream: &mut Stream) -> Result<[u64; 2]> {
        let mut bounds = [0u64; 2];
        match &self.ranges {
            Ranges::Nothing => {}
            Ranges::Searched { .. } => {
                stream.download(self.begins.buffer(), 0, bytemuck::cast_slice_mut(&mut bounds))?;
            }
            Ranges::InBlocks { .. } => {
                let at = self.blocks as usize * size_of::<u64>();
                stream.download(self.offsets.buffer(), at, bytemuck::cast_slice_mut(&mut bounds[1..]))?;
            }
        }
        Ok(bounds)
    }

    /// Counts the candidates inside and makes room for their numbers.
    fn choose(&mut self, stream: &mut Stream) -> Result<()> {
        let array = self.array;
        let moved = Moved::Rows(Element::U32);
        let select = Select::new(&array.device, Element::U8, Predicate::Flags, moved, SelectOrder::Stable)?;
        let choice = Selection {
            flags_kernel: array.kernel("wc_scheme_flags")?,
            scratch: array.scratch(select.scratch_bytes(self.candidates))?,
            select,
            flags: array.room(Element::U8, self.candidates)?,
            chosen: array.room(Element::U32, 0)?,
            count: array.room(Element::U64, 1)?,
        };
        let mut count = [0u64];
        let counter = choice.count.clone();
        self.choice = Some(choice);
        self.launch_choice(stream)?;
        stream.download(counter.buffer(), 0, bytemuck::cast_slice_mut(&mut count))?;
        self.results = count[0];
        if let Some(made) = &mut self.choice {
            made.chosen = array.room(Element::U32, self.results)?;
        }
        Ok(())
    }

    fn launch_choice(&self, queue: &mut impl Queue) -> Result<()> {
        let Some(Selection { flags_kernel, select, scratch, flags, chosen, count }) = &self.choice else {
            return Ok(());
        };
        queue.launch(flags_kernel, self.array.walk(self.candidates), &self.params())?;
        let operands = SelectOperands { input: None, flags: Some(flags), bounds: [0; 2], out: chosen, count };
        Ok(select.launch(queue, &operands, scratch)?)
    }

    fn params(&self) -> Params {
        let params = padded(padded(self.array.params(), self.area.low()), self.area.high());
        let params = params.u64(self.blocks).slice(&self.begins).slice(&self.offsets).u64(self.candidates);
        let (flags, chosen) = self.choice.as_ref().map(|choice| (&choice.flags, &choice.chosen)).unzip();
        let params = operand(operand(params, flags), chosen);
        params.u64(self.results).slice(&self.coordinates).slice(&self.values)
    }
}

impl Ranges {
    fn new<V: DeviceValue>(
        array: &DeviceArray<V>,
        stream: &mut Stream,
        area: &SubArray,
        blocks: u64,
    ) -> Result<Ranges> {
        if array.is_empty() {
            return Ok(Ranges::Nothing);
        }
        if array.kind == PointerKind::None {
            let search = Box::new(Search::new(&array.device, array.key, Element::U64)?);
            let keys = array.room(array.key, 2)?;
            let mut bytes = Vec::new();
            for bounds in [area.low(), area.high()] {
                let [high, low]: [u64; 2] = array.layout.pack(bounds);
                bytes.extend([low, high].map(u64::to_le_bytes).as_flattened()[..array.key.bytes()].iter());
            }
            stream.upload(keys.buffer(), 0, &bytes)?;
            return Ok(Ranges::Searched { search, keys });
        }
        let scan = Scan::new(&array.device, Element::U64, Reduction::Sum(Element::U64), ScanKind::Exclusive)?;
        let scratch = array.scratch(scan.scratch_bytes(blocks + 1))?;
        Ok(Ranges::InBlocks { ranges: array.kernel("wc_scheme_ranges")?, scan, scratch })
    }
}

/// Writes the first position not below the first key, and the first above the second one.
fn search_bounds<V: DeviceValue>(
    array: &DeviceArray<V>,
    search: &Search,
    keys: &DeviceSlice,
    places: &DeviceSlice,
    queue: &mut impl Queue,
) -> Result<()> {
    let Some(sorted) = array.keys()? else { return Ok(()) };
    for (at, side) in [(0, SearchSide::Lower), (1, SearchSide::Upper)] {
        let (key, place) = (keys.part(at, 1)?, places.part(at, 1)?);
        search.launch(queue, &sorted, false, &key, side, &place, SearchMethod::Pary)?;
    }
    Ok(())
}

/// True if every key between those of the bounds lies inside: behind the first dimension with several coordinates all
/// are whole.
fn is_run(sizes: &[u32], area: &SubArray, split: usize) -> bool {
    let bounds = || area.low()[split..].iter().zip(&area.high()[split..]);
    let Some(first) = bounds().position(|(low, high)| low < high) else { return true };
    bounds().zip(sizes).skip(first + 1).all(|((low, high), size)| *low == 0 && *high == size - 1)
}
