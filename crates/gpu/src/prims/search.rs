//! Search of many keys in one sorted sequence: for each the first place where it could stand, or the last.
//!
//! Two algorithms (`kernels/prims/search.cuh`): binary search, a key a lane, for many keys; p-ary search, a key a warp,
//! whose steps cut the range by 33, for keys so few that the device is not busy otherwise.

use super::{DeviceSlice, Element, KEYS, Key, Queue, check_element, check_length};
use crate::backend::LaunchShape;
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::program::Program;

const KERNELS: &str = include_str!("../../kernels/prims/search.cuh");
/// Threads of a block, `SEARCH_THREADS` of the kernels, and blocks a multiprocessor.
const THREADS: u32 = 256;
const BLOCKS: u32 = 8;

/// How keys are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SearchMethod {
    /// A key a lane: fast where there are more keys than lanes.
    Binary,
    /// A key a warp, 32 probes a step: fast where there are fewer keys than resident warps.
    Pary,
}

/// Which place of a key is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SearchSide {
    /// In front of elements equal to the key.
    Lower,
    /// Behind elements equal to the key.
    Upper,
}

/// A search for keys of one type.
#[derive(Clone)]
pub struct Search {
    key: Element,
    place: Element,
    multiprocessors: u32,
    binary: Kernel,
    pary: Kernel,
}

impl Search {
    /// Compiles the search for a device; `place` is the type of places, `U32` or `U64`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types of places; those of [`Device::compile`].
    pub fn new(device: &Device, key: Element, place: Element) -> Result<Search> {
        if !matches!(place, Element::U32 | Element::U64) {
            return Err(GpuError::Contract(format!("search: places of {place}, and u32 or u64 are needed")));
        }
        let module = device.compile(&program(key, place))?;
        let multiprocessors = device.info().multiprocessors;
        let (binary, pary) = (module.kernel("search_binary")?, module.kernel("search_pary")?);
        Ok(Search { key, place, multiprocessors, binary, pary })
    }

    /// The method for so many keys.
    pub fn method(&self, keys: u64) -> SearchMethod {
        let warps = self.multiprocessors * BLOCKS * THREADS / 32;
        if keys <= warps.into() { SearchMethod::Pary } else { SearchMethod::Binary }
    }

    /// Writes for each of `keys` the number of elements of `sorted` in front of its place. `sorted` ascends, or
    /// descends if told so. There is no scratch memory.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types and lengths, and sequences too long for the type of places; those of a
    /// launch.
    #[expect(clippy::too_many_arguments, reason = "operands of the primitive")]
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        sorted: &DeviceSlice,
        descending: bool,
        keys: &DeviceSlice,
        side: SearchSide,
        places: &DeviceSlice,
        method: SearchMethod,
    ) -> Result<()> {
        check_element("search", "the sorted sequence", sorted, self.key)?;
        check_element("search", "the keys", keys, self.key)?;
        check_element("search", "the places", places, self.place)?;
        check_length("search", "the places", places, keys.len())?;
        if self.place == Element::U32 && sorted.len() > u32::MAX.into() {
            let message = format!("search: places in {} elements do not fit into u32", sorted.len());
            return Err(GpuError::Contract(message));
        }
        if keys.is_empty() {
            return Ok(());
        }
        let params = Params::new().slice(sorted).u64(sorted.len()).slice(keys).u64(keys.len()).slice(places);
        let params = params.u64((side == SearchSide::Upper).into()).u64(descending.into());
        let (kernel, lanes) = match method {
            SearchMethod::Binary => (&self.binary, keys.len()),
            SearchMethod::Pary => (&self.pary, keys.len().saturating_mul(32)),
        };
        let grid = lanes.div_ceil(THREADS.into()).min(u64::from(self.multiprocessors * BLOCKS)) as u32;
        queue.launch(kernel, LaunchShape { grid, block: THREADS, shared_bytes: 0 }, &params)
    }
}

/// The program of a search.
fn program(key: Element, place: Element) -> Program {
    let definitions = format!("#define WC_SEARCH_KEY {}\n#define WC_SEARCH_PLACE {}\n", key.c_type(), place.c_type());
    Program::new(format!("search_{key}"), format!("{KEYS}{definitions}{KERNELS}"))
}

/// The place of each key.
pub fn reference<K: Key>(sorted: &[K], descending: bool, keys: &[K], side: SearchSide) -> Vec<u64> {
    let place = |key: &K| {
        let passes = |element: &K| {
            let order = element.ordered_bits().cmp(&key.ordered_bits());
            let order = if descending { order.reverse() } else { order };
            order.is_lt() || (side == SearchSide::Upper && order.is_eq())
        };
        sorted.partition_point(passes) as u64
    };
    keys.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        for (key, place) in [(Element::F32, Element::U32), (Element::I128, Element::U64)] {
            compile_for_gpus(&program(key, place));
        }
    }
}
