//! Bulk random access on a device. `kernels/get.cuh` is the device's side of this file.

use warpcube_gpu::prims::search::{Search, SearchMethod, SearchSide};
use warpcube_gpu::prims::{DeviceSlice, Element, Queue};
use warpcube_gpu::{DeviceBuffer, Kernel, Stream};

use super::array::{DeviceArray, DeviceValue, PointerKind, operand};
use super::error::Result;

/// A bulk random access to so many cells of an array, with its memory.
///
/// Operands in device memory: [`Lookup::coordinates`], written by the caller; [`Lookup::values`] and
/// [`Lookup::found`], written by a launch.
pub struct Lookup<'a, V> {
    array: &'a DeviceArray<V>,
    tuples: u64,
    coordinates: DeviceSlice,
    values: DeviceSlice,
    found: DeviceSlice,
    /// Number of the first tuple outside of the shape; all ones if there is none.
    outside: DeviceSlice,
    steps: Steps,
}

/// How keys are found.
enum Steps {
    /// By one kernel, within their blocks.
    InBlocks(Kernel),
    /// Among all keys, by the primitive `search`.
    Searched { search: Box<Search>, encode: Kernel, fetch: Kernel, keys: DeviceSlice, places: DeviceSlice },
}

impl<V: DeviceValue> DeviceArray<V> {
    /// As `Storage::get`: values of many cells. The stream is waited for.
    ///
    /// # Errors
    /// A coordinate outside of the shape; a device that fails.
    pub fn get(&self, stream: &mut Stream, coordinates: &[u32]) -> Result<Vec<Option<V>>> {
        let tuples = self.shape.tuples(coordinates)?;
        let lookup = Lookup::new(self, tuples as u64)?;
        lookup.upload(stream, coordinates)?;
        lookup.launch(stream)?;
        lookup.read(stream, coordinates)
    }
}

impl<'a, V: DeviceValue> Lookup<'a, V> {
    /// A lookup of so many tuples.
    ///
    /// # Errors
    /// No room on the device; a kernel that does not compile.
    pub fn new(array: &'a DeviceArray<V>, tuples: u64) -> Result<Self> {
        let steps = match array.kind {
            PointerKind::None => Steps::Searched {
                search: Box::new(Search::new(&array.device, array.key, Element::U32)?),
                encode: array.kernel("wc_scheme_encode")?,
                fetch: array.kernel("wc_scheme_fetch")?,
                keys: array.room(array.key, tuples)?,
                places: array.room(Element::U32, tuples)?,
            },
            PointerKind::Dense | PointerKind::Ranked => Steps::InBlocks(array.kernel("wc_scheme_find")?),
        };
        Ok(Self {
            array,
            tuples,
            coordinates: array.room(Element::U32, tuples * array.shape.dimensions() as u64)?,
            values: array.room(Element::U64, tuples)?,
            found: array.room(Element::U32, tuples.div_ceil(32))?,
            outside: array.room(Element::U64, 1)?,
            steps,
        })
    }

    /// Coordinates of all tuples, one flat list of `u32`.
    pub fn coordinates(&self) -> &DeviceSlice {
        &self.coordinates
    }

    /// Bits of the values of all tuples, 0 for an empty cell.
    pub fn values(&self) -> &DeviceSlice {
        &self.values
    }

    /// A bit a tuple in words of 32, lowest first: 1 where the cell is filled.
    pub fn found(&self) -> &DeviceSlice {
        &self.found
    }

    /// All device memory of a launch, for recorded work.
    pub fn buffers(&self) -> Vec<&DeviceBuffer> {
        let own = [&self.coordinates, &self.values, &self.found, &self.outside].map(DeviceSlice::buffer);
        let mut buffers = self.array.buffers();
        buffers.extend(own);
        if let Steps::Searched { keys, places, .. } = &self.steps {
            buffers.extend([keys.buffer(), places.buffer()]);
        }
        buffers
    }

    /// Copies coordinates of all tuples to the device.
    ///
    /// # Errors
    /// Fewer or more tuples than the lookup has; a device that fails.
    pub fn upload(&self, stream: &mut Stream, coordinates: &[u32]) -> Result<()> {
        self.array.shape.tuples(coordinates)?;
        Ok(stream.upload(self.coordinates.buffer(), 0, bytemuck::cast_slice(coordinates))?)
    }

    /// Searches all tuples: by the p-ary search where BESS has fewer of them than warps are resident.
    ///
    /// # Errors
    /// A device that fails.
    pub fn launch(&self, queue: &mut impl Queue) -> Result<()> {
        let method = match &self.steps {
            Steps::Searched { search, .. } => search.method(self.tuples),
            Steps::InBlocks(_) => SearchMethod::Binary,
        };
        self.launch_by(queue, method)
    }

    /// As [`Lookup::launch`], by a search method that BESS follows; other schemes halve the keys of a block.
    ///
    /// # Errors
    /// A device that fails.
    pub fn launch_by(&self, queue: &mut impl Queue, method: SearchMethod) -> Result<()> {
        let (array, n) = (self.array, self.tuples);
        queue.fill(self.outside.buffer(), 0, 0xff, size_of::<u64>())?;
        if n == 0 {
            return Ok(());
        }
        let searched = match &self.steps {
            Steps::Searched { keys, places, .. } => [Some(keys), Some(places)],
            Steps::InBlocks(_) => [None, None],
        };
        let params = array.params().slice(&self.coordinates).u64(n);
        let params = searched.into_iter().fold(params, operand);
        let params = params.slice(&self.values).slice(&self.found).slice(&self.outside);
        let shape = array.walk(n);
        match &self.steps {
            Steps::InBlocks(find) => queue.launch(find, shape, &params)?,
            Steps::Searched { search, encode, fetch, keys, places } => {
                queue.launch(encode, shape, &params)?;
                match array.keys()? {
                    Some(sorted) => search.launch(queue, &sorted, false, keys, SearchSide::Lower, places, method)?,
                    // Places at the end of no keys.
                    None => queue.fill(places.buffer(), 0, 0, n as usize * size_of::<u32>())?,
                }
                queue.launch(fetch, shape, &params)?;
            }
        }
        Ok(())
    }

    /// The result of the last launch; `coordinates` are those that were uploaded.
    ///
    /// # Errors
    /// The first coordinate outside of the shape; a device that fails.
    pub fn read(&self, stream: &mut Stream, coordinates: &[u32]) -> Result<Vec<Option<V>>> {
        let mut outside = [0u64];
        let mut values = vec![V::default(); self.tuples as usize];
        let mut found = vec![0u32; self.tuples.div_ceil(32) as usize];
        stream.download(self.outside.buffer(), 0, bytemuck::cast_slice_mut(&mut outside))?;
        if let Ok(cell) = usize::try_from(outside[0])
            && cell < self.tuples as usize
        {
            let dimensions = self.array.shape.dimensions();
            self.array.shape.check(cell, &coordinates[cell * dimensions..(cell + 1) * dimensions])?;
        }
        stream.download(self.values.buffer(), 0, bytemuck::cast_slice_mut(&mut values))?;
        stream.download(self.found.buffer(), 0, bytemuck::cast_slice_mut(&mut found))?;
        let is_found = |at: usize| found[at / 32] >> (at % 32) & 1 != 0;
        Ok(values.into_iter().enumerate().map(|(at, value)| is_found(at).then_some(value)).collect())
    }
}
