//! Queries on a device: a batch is encoded on the host, goes to the device by one copy, and its cells come back by one.

use warpcube_gpu::prims::{DeviceSlice, Element, Queue};
use warpcube_gpu::{DeviceBuffer, Output, PART_BYTES_MIN, Params, Recording, Stream, Work};

use super::build::slice;
use super::kernels::Kernels;
use super::tree::{DeviceTree, column};
use crate::error::{Result, StreamError};
use crate::query::{Answers, Bound, Query, bounds, is_on_path, lowest};
use crate::schema::Measure;

/// Bounds of queries, encoded: `WcBounds` of the kernels.
pub(super) struct Bounds {
    parts: Parts,
    dimensions: u64,
    low: usize,
    high: Option<usize>,
    masks: usize,
    places: Option<usize>,
    sets: usize,
    memory: Option<DeviceBuffer>,
}

/// Arrays one behind the other, each at an aligned place.
#[derive(Default)]
struct Parts(Vec<u8>);

impl Parts {
    fn add<T: bytemuck::NoUninit>(&mut self, array: &[T]) -> usize {
        self.0.resize(self.0.len().next_multiple_of(PART_BYTES_MIN), 0);
        let at = self.0.len();
        self.0.extend_from_slice(bytemuck::cast_slice(array));
        at
    }
}

impl Bounds {
    /// Encodes the bounds of some queries.
    fn new(dimensions: usize, queries: &[Vec<Option<Bound<'_>>>]) -> Bounds {
        let cells = queries.len() * dimensions;
        let (mut low, mut high) = (Vec::with_capacity(cells), Vec::with_capacity(cells));
        let (mut masks, mut places, mut sets) = (Vec::with_capacity(queries.len()), Vec::new(), Vec::new());
        for query in queries {
            let mut mask = 0u64;
            for (level, bound) in query.iter().enumerate().skip(1) {
                let Some(bound) = bound else {
                    low.push(0);
                    high.push(0);
                    continue;
                };
                mask |= 1 << level;
                if let Some(set) = &bound.set {
                    places.resize(cells, 0u64);
                    places[low.len()] = (sets.len() as u64) << 32 | set.len() as u64;
                    sets.extend_from_slice(set);
                }
                low.push(bound.low);
                high.push(bound.high);
            }
            masks.push(mask);
        }
        let mut parts = Parts::default();
        Bounds {
            low: parts.add(&low),
            high: (low != high).then(|| parts.add(&high)),
            masks: parts.add(&masks),
            places: (!places.is_empty()).then(|| parts.add(&places)),
            sets: parts.add::<u32>(&sets),
            parts,
            dimensions: dimensions as u64,
            memory: None,
        }
    }

    /// Takes memory for all arrays.
    fn with_memory(mut self, kernels: &Kernels) -> Result<Bounds> {
        self.memory = Some(kernels.room(self.parts.0.len())?);
        Ok(self)
    }

    /// The bounds of one query, on the device.
    pub(super) fn upload(kernels: &Kernels, stream: &mut Stream, query: &[Option<Bound<'_>>]) -> Result<Bounds> {
        let bounds = Bounds::new(kernels.levels() - 1, &[query.to_vec()]).with_memory(kernels)?;
        if let Some(memory) = &bounds.memory {
            stream.upload(memory, 0, &bounds.parts.0)?;
        }
        Ok(bounds)
    }

    fn at(&self, params: Params, place: Option<usize>) -> Params {
        match self.memory.as_ref().zip(place) {
            Some((memory, place)) => params.buffer_at(memory, place),
            None => params.null(),
        }
    }

    pub(super) fn params(&self) -> Params {
        let arrays = [Some(self.low), self.high, Some(self.masks), self.places, Some(self.sets)];
        let params = arrays.into_iter().fold(Params::new(), |params, place| self.at(params, place));
        params.u64(self.dimensions)
    }
}

/// A batch of queries on a tree, with its memory; it may run any number of times.
pub struct QueryBatch<'a> {
    tree: &'a DeviceTree,
    bounds: Bounds,
    queries: usize,
    /// Queries, least and largest keys of entries: what queries off the popular path ask of their lowest level.
    entries: [usize; 3],
    count: u64,
    /// First links, numbers of links, and the scan of these with its scratch memory.
    work: [DeviceBuffer; 4],
    /// Numbers of nodes, then cells.
    results: DeviceBuffer,
}

impl<'a> QueryBatch<'a> {
    /// Encodes queries; the batch is split by what kernels do: those on the popular path need no entry.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions; no room on the device.
    pub fn new(tree: &'a DeviceTree, queries: &[Query]) -> Result<QueryBatch<'a>> {
        let kernels = &tree.kernels;
        let mut all = Vec::with_capacity(queries.len());
        for (number, query) in queries.iter().enumerate() {
            all.push(bounds(&kernels.schema, number, &query.conditions)?);
        }
        let mut entries: [Vec<u32>; 3] = Default::default();
        let mut add = |query: usize, low: u32, high: u32| {
            entries.iter_mut().zip([query as u32, low, high]).for_each(|(column, value)| column.push(value));
        };
        for (number, query) in all.iter().enumerate().filter(|(_, query)| !is_on_path(query)) {
            let Some(bound) = &query[lowest(query)] else { continue };
            match &bound.set {
                Some(set) => set.iter().for_each(|value| add(number, *value, *value)),
                None => add(number, bound.low, bound.high),
            }
        }
        let mut bounds = Bounds::new(kernels.levels() - 1, &all);
        let places = std::array::from_fn(|column| bounds.parts.add(&entries[column]));
        let bounds = bounds.with_memory(kernels)?;
        let count = entries[0].len() as u64;
        let words = |bytes: usize| kernels.room((count as usize + 1) * bytes);
        let work = [words(4)?, words(4)?, words(8)?, kernels.room(kernels.scan.scratch_bytes(count + 1))?];
        let results = kernels.room(queries.len() * (1 + 2 * kernels.measures().len()) * size_of::<u64>())?;
        Ok(QueryBatch { tree, bounds, queries: queries.len(), entries: places, count, work, results })
    }

    /// The cells of all queries; waits for the device.
    ///
    /// # Errors
    /// A sum that leaves 64 bits; a device that fails.
    pub fn answer(&self, stream: &mut Stream) -> Result<Answers> {
        if let Some(memory) = &self.bounds.memory {
            stream.upload(memory, 0, &self.bounds.parts.0)?;
        }
        self.launch(stream)?;
        let mut words = vec![0u64; self.results.bytes() / size_of::<u64>()];
        stream.download(&self.results, 0, bytemuck::cast_slice_mut(&mut words))?;
        self.decoded(&words)
    }

    /// The batch as recorded work: queries to the device, kernels, cells back.
    ///
    /// # Errors
    /// A device that fails.
    pub fn record(&self, stream: &mut Stream) -> Result<RecordedBatch<'_>> {
        let mut work = Work::new(&self.tree.kernels.device);
        if let Some(memory) = &self.bounds.memory {
            work.upload(memory, 0, &self.bounds.parts.0)?;
        }
        self.launch(&mut work)?;
        let output = work.download(&self.results, 0, self.results.bytes())?;
        Ok(RecordedBatch { batch: self, recording: stream.prepare(work)?, output })
    }

    /// Launches the kernels over queries that are on the device.
    ///
    /// # Errors
    /// A device that fails.
    pub fn launch(&self, queue: &mut impl Queue) -> Result<()> {
        let kernels = &self.tree.kernels;
        if self.queries == 0 || self.tree.nodes() == 0 {
            return Ok(queue.fill(&self.results, 0, 0, self.results.bytes())?);
        }
        let [first, counts, offsets, scratch] = &self.work;
        let params = self.tree.params().append(self.bounds.params()).u64(self.queries as u64).u64(self.count);
        let params = self.entries.iter().fold(params, |params, place| self.bounds.at(params, Some(*place)));
        let params = params.buffer(first).buffer(counts).buffer(offsets).buffer(&self.results);
        let params = params.buffer_at(&self.results, self.queries * size_of::<u64>());
        let (kernel, shape) = kernels.of_queries("wc_htree_on_path", self.queries as u64);
        queue.launch(kernel, shape, &params)?;
        if self.count == 0 {
            return Ok(());
        }
        let (kernel, shape) = kernels.of_queries("wc_htree_lists", self.count);
        queue.launch(kernel, shape, &params)?;
        let counts: DeviceSlice = slice(counts, Element::U32, 0, self.count + 1)?;
        kernels.scan.launch(queue, &counts, &slice(offsets, Element::U64, 0, self.count + 1)?, scratch)?;
        let (kernel, shape) = kernels.of_many("wc_htree_online");
        Ok(queue.launch(kernel, shape, &params)?)
    }

    /// Links that the last launch has followed, of all queries off the popular path; waits for the device.
    ///
    /// # Errors
    /// A device that fails.
    pub fn links(&self, stream: &mut Stream) -> Result<u64> {
        if self.count == 0 || self.tree.nodes() == 0 {
            return Ok(0);
        }
        Ok(column::<u64>(stream, &self.work[2], self.count, 1)?[0])
    }

    /// All device memory of a launch, for recorded work.
    pub fn buffers(&self) -> Vec<&DeviceBuffer> {
        let mut buffers = self.tree.buffers();
        buffers.extend(self.work.iter().chain([&self.results]).chain(&self.bounds.memory));
        buffers
    }

    /// Answers from the cells of kernels.
    fn decoded(&self, words: &[u64]) -> Result<Answers> {
        let measures = self.tree.kernels.measures();
        let mut answers = Answers { measures: measures.len(), ..Answers::default() };
        let (found, cells) = words.split_at(self.queries);
        answers.found = found.iter().map(|nodes| *nodes > 0).collect();
        answers.values.reserve(self.queries * measures.len());
        for (cell, is_found) in cells.chunks_exact(2 * measures.len()).zip(&answers.found) {
            for (measure, words) in cell.chunks_exact(2).enumerate() {
                let value = match measures[measure] {
                    _ if !is_found => 0,
                    Measure::Sum(_) | Measure::Count => {
                        let sum = (i128::from(words[1] as i64) << 32) + i128::from(words[0]);
                        i64::try_from(sum).map_err(|_| StreamError::Overflow { measure })?
                    }
                    Measure::Min(_) | Measure::Max(_) => words[0] as i64,
                };
                answers.values.push(value);
            }
        }
        Ok(answers)
    }
}

/// A recorded batch.
pub struct RecordedBatch<'a> {
    batch: &'a QueryBatch<'a>,
    recording: Recording,
    output: Output,
}

impl RecordedBatch<'_> {
    /// Runs it; waits for the device.
    ///
    /// # Errors
    /// A device that fails.
    pub fn run(&mut self, stream: &mut Stream) -> Result<()> {
        Ok(stream.run(&mut self.recording, &self.batch.buffers())?)
    }

    /// The cells of the last run.
    ///
    /// # Errors
    /// A sum that leaves 64 bits; a run that failed.
    pub fn answers(&self) -> Result<Answers> {
        let bytes = self.recording.output(&self.output)?;
        let (words, _) = bytes.as_chunks::<8>();
        self.batch.decoded(&words.iter().map(|word| u64::from_ne_bytes(*word)).collect::<Vec<u64>>())
    }
}

impl DeviceTree {
    /// The cells of some queries, on the popular path or off it; waits for the device.
    ///
    /// # Errors
    /// More or fewer conditions than dimensions; a sum that leaves 64 bits; no room on the device.
    pub fn answer(&self, stream: &mut Stream, queries: &[Query]) -> Result<Answers> {
        QueryBatch::new(self, queries)?.answer(stream)
    }
}
