//! An array in a storage scheme on a device. `kernels/array.cuh` is the device's side of this file.

use std::borrow::Cow;
use std::sync::Arc;

use bytemuck::Pod;
use warpcube_gpu::prims::{DeviceSlice, Element};
use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, Module, Params, Program};

use super::error::{DeviceSchemeError, Result};
use crate::key::{DIMENSIONS_MAX, KeyLayout};
use crate::{ArrayData, NamedArray, Scheme, Shape, Storage, Value};

/// Threads of a block of all kernels.
pub(super) const THREADS: u32 = 256;
/// Most blocks on a multiprocessor; kernels walk over the rest.
const BLOCKS: u32 = 32;

/// A value that kernels move and add.
pub trait DeviceValue: Value + Pod {
    /// The type in which kernels add it.
    const SUM_TYPE: &'static str;
    /// Its name for primitives.
    const ELEMENT: Element;

    /// The sum of the magnitudes of values, if it may exceed that type.
    fn excess(values: &[Self]) -> Option<u128>;
}

impl DeviceValue for i64 {
    const SUM_TYPE: &'static str = "uint64_t";
    const ELEMENT: Element = Element::I64;

    fn excess(values: &[i64]) -> Option<u128> {
        let magnitude: u128 = values.iter().map(|value| u128::from(value.unsigned_abs())).sum();
        (magnitude > i64::MAX as u128).then_some(magnitude)
    }
}

impl DeviceValue for f64 {
    const SUM_TYPE: &'static str = "double";
    const ELEMENT: Element = Element::F64;

    fn excess(_values: &[f64]) -> Option<u128> {
        None
    }
}

/// How kernels find the cells of a block, `WC_POINTERS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PointerKind {
    /// There is one block.
    None = 0,
    /// A pointer for every block.
    Dense = 1,
    /// A pointer for every filled block, by its rank in a bitmap.
    Ranked = 2,
}

/// A sparse array in BESS, xCRS, BxCRS or hybrid, in device memory.
pub struct DeviceArray<V> {
    pub(super) device: Device,
    pub(super) shape: Shape,
    pub(super) layout: KeyLayout,
    /// Leading dimensions, which are addressed by block.
    pub(super) split: usize,
    pub(super) kind: PointerKind,
    pub(super) key: Element,
    pub(super) cells: u64,
    pub(super) excess: Option<u128>,
    pub(super) module: Arc<Module>,
    scheme: Scheme,
    blocks: u64,
    buffers: ArrayBuffers,
    values: std::marker::PhantomData<V>,
}

/// Arrays of a scheme in device memory; those that a scheme lacks are absent.
#[derive(Default)]
struct ArrayBuffers {
    keys: Option<DeviceBuffer>,
    values: Option<DeviceBuffer>,
    starts: Option<DeviceBuffer>,
    words: Option<DeviceBuffer>,
    counts: Option<DeviceBuffer>,
}

impl<V: DeviceValue> DeviceArray<V> {
    /// Copies the arrays of a scheme to a device and compiles its kernels.
    ///
    /// # Errors
    /// [`DeviceSchemeError::Scheme`] for a scheme that has no kernels; [`DeviceSchemeError::Cells`] above 2^32 - 1
    /// cells; no room on the device.
    pub fn new(device: &Device, array: &dyn Storage<V>) -> Result<Self> {
        let (scheme, shape, cells) = (array.scheme(), array.shape().clone(), array.len());
        let dimensions = shape.dimensions();
        let (split, kind) = match scheme {
            Scheme::Bess => (0, PointerKind::None),
            Scheme::Xcrs => (dimensions - 1, PointerKind::Dense),
            Scheme::Bxcrs => (dimensions - 1, PointerKind::Ranked),
            Scheme::Hybrid { r } => (dimensions + 1 - r, PointerKind::Dense),
            Scheme::Coordinate | Scheme::OffsetValue | Scheme::Xccs | Scheme::Ptcs => {
                return Err(DeviceSchemeError::Scheme { scheme });
            }
        };
        if u32::try_from(cells).is_err() || cells as u32 == u32::MAX {
            return Err(DeviceSchemeError::Cells { cells });
        }
        let arrays = array.arrays();
        let key = key_element(&arrays).ok_or(DeviceSchemeError::Scheme { scheme })?;
        let excess = arrays.iter().find_map(|array| match array.data {
            ArrayData::Values(values) => V::excess(values),
            _ => None,
        });
        let buffers = ArrayBuffers::upload(device, &arrays)?;
        // The pointer arrays bound the number of blocks to far below 64 bits.
        let blocks = shape.product(0..split).and_then(|blocks| u64::try_from(blocks).ok());
        let blocks = blocks.ok_or(DeviceSchemeError::Scheme { scheme })?;
        let module = device.compile(&program::<V>(key, kind))?;
        let layout = KeyLayout::of_part(&shape.sizes()[split..]);
        let (device, cells, values) = (device.clone(), cells as u64, std::marker::PhantomData);
        Ok(Self { device, shape, layout, split, kind, key, cells, excess, module, scheme, blocks, buffers, values })
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Shape of the array.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of filled cells.
    pub fn len(&self) -> usize {
        self.cells as usize
    }

    /// True if no cell is filled.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Bytes of all arrays in device memory.
    pub fn bytes(&self) -> u64 {
        self.buffers.all().map(|buffer| buffer.bytes() as u64).sum()
    }

    /// The memory of the arrays, for recorded work.
    pub fn buffers(&self) -> Vec<&DeviceBuffer> {
        self.buffers.all().collect()
    }

    /// One of the module's kernels.
    pub(super) fn kernel(&self, name: &str) -> Result<Kernel> {
        Ok(self.module.kernel(name)?)
    }

    /// The keys.
    pub(super) fn keys(&self) -> Result<Option<DeviceSlice>> {
        let slice = |keys| DeviceSlice::new(keys, 0, self.key, self.cells);
        Ok(self.buffers.keys.as_ref().map(slice).transpose()?)
    }

    /// The values.
    pub(super) fn values(&self) -> Option<&DeviceBuffer> {
        self.buffers.values.as_ref()
    }

    /// Blocks of the array, filled or not.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// `WcArray` of the kernels.
    pub(super) fn params(&self) -> Params {
        let ArrayBuffers { keys, values, starts, words, counts } = &self.buffers;
        let params =
            [keys, values, starts, words, counts].into_iter().fold(Params::new(), |params, buffer| match buffer {
                Some(buffer) => params.buffer(buffer),
                None => params.null(),
            });
        let filled = starts.as_ref().map_or(0, |starts| starts.bytes() as u64 / 8 - 1);
        let params = params.u64(self.cells).u64(self.blocks).u64(filled);
        let params = params.u64(self.shape.dimensions() as u64).u64(self.split as u64);
        let lead = || std::iter::repeat_n(0, self.split);
        let of_all = |of_trailing: &[u32]| lead().chain(of_trailing.iter().copied()).collect::<Vec<u32>>();
        let params = padded(params, self.shape.sizes());
        padded(padded(params, &of_all(self.layout.shifts())), &of_all(self.layout.bits()))
    }

    /// A launch of a thread an item, as far as the device has room.
    pub(super) fn walk(&self, items: u64) -> LaunchShape {
        walk(&self.device, items)
    }

    /// Memory for so many elements, at least one.
    pub(super) fn room(&self, element: Element, len: u64) -> Result<DeviceSlice> {
        let bytes = (len as usize * element.bytes()).max(1);
        let buffer = self.device.buffer(bytes, "a storage scheme")?;
        Ok(DeviceSlice::new(&buffer, 0, element, len)?)
    }

    /// Scratch memory of a primitive.
    pub(super) fn scratch(&self, bytes: usize) -> Result<DeviceBuffer> {
        Ok(self.device.buffer(bytes, "scratch memory of a storage scheme")?)
    }
}

impl ArrayBuffers {
    fn upload<V: DeviceValue>(device: &Device, arrays: &[NamedArray<'_, V>]) -> Result<Self> {
        let mut buffers = Self::default();
        let mut stream = device.stream()?;
        for array in arrays {
            let bytes: Cow<'_, [u8]> = match array.data {
                ArrayData::Words32(words) => bytemuck::cast_slice(words).into(),
                ArrayData::Words64(words) => bytemuck::cast_slice(words).into(),
                ArrayData::Values(values) => bytemuck::cast_slice(values).into(),
                // Kernels take the lower word first.
                ArrayData::Pairs64(pairs) => {
                    let words: Vec<u64> = pairs.iter().flat_map(|[high, low]| [*low, *high]).collect();
                    bytemuck::cast_slice(&words).to_vec().into()
                }
            };
            let slot = match array.name {
                "bei" | "cind" => &mut buffers.keys,
                "rptr" | "bptr" | "rptr_c" => &mut buffers.starts,
                "compwrd" => &mut buffers.words,
                "count1" => &mut buffers.counts,
                _ => &mut buffers.values,
            };
            if !bytes.is_empty() {
                let buffer = device.buffer(bytes.len(), "an array of a storage scheme")?;
                stream.upload(&buffer, 0, &bytes)?;
                *slot = Some(buffer);
            }
        }
        stream.synchronize()?;
        Ok(buffers)
    }

    fn all(&self) -> impl Iterator<Item = &DeviceBuffer> {
        [&self.keys, &self.values, &self.starts, &self.words, &self.counts].into_iter().flatten()
    }
}

/// Type of the keys; absent where no array has keys.
fn key_element<V>(arrays: &[NamedArray<'_, V>]) -> Option<Element> {
    let keys = arrays.iter().find(|array| matches!(array.name, "bei" | "cind"))?;
    match keys.data {
        ArrayData::Words32(_) => Some(Element::U32),
        ArrayData::Words64(_) => Some(Element::U64),
        ArrayData::Pairs64(_) => Some(Element::U128),
        ArrayData::Values(_) => None,
    }
}

/// The kernels of one layout.
fn program<V: DeviceValue>(key: Element, kind: PointerKind) -> Program {
    let (key, sum) = (key.c_type(), V::SUM_TYPE);
    let definitions = format!("#define WC_KEY {key}\n#define WC_POINTERS {}\n#define WC_VALUE {sum}\n", kind as u32);
    let text = [
        &definitions,
        include_str!("../../kernels/array.cuh"),
        include_str!("../../kernels/get.cuh"),
        include_str!("../../kernels/sub_array.cuh"),
        include_str!("../../kernels/prefix_sums.cuh"),
    ];
    Program::new("storage scheme", text.concat())
}

/// A launch of a thread an item, as far as the device has room.
pub(super) fn walk(device: &Device, items: u64) -> LaunchShape {
    let most = u64::from(device.info().multiprocessors * BLOCKS);
    let grid = items.div_ceil(THREADS.into()).clamp(1, most) as u32;
    LaunchShape { grid, block: THREADS, shared_bytes: 0 }
}

/// A word a dimension, and zeros up to the most dimensions.
pub(super) fn padded(params: Params, words: &[u32]) -> Params {
    let zeros = std::iter::repeat_n(&0, DIMENSIONS_MAX - words.len());
    words.iter().chain(zeros).fold(params, |params, word| params.u64((*word).into()))
}

/// An operand that a launch may lack.
pub(super) fn operand(params: Params, slice: Option<&DeviceSlice>) -> Params {
    match slice {
        Some(slice) => params.slice(slice),
        None => params.null(),
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn the_kernels_of_every_layout_compile_for_cuda() {
        let dense = [Element::U32, Element::U64, Element::U128].map(|key| program::<i64>(key, PointerKind::Dense));
        let others = [
            program::<i64>(Element::U64, PointerKind::None),
            program::<f64>(Element::U128, PointerKind::None),
            program::<f64>(Element::U32, PointerKind::Ranked),
        ];
        for program in dense.into_iter().chain(others) {
            match nvrtc::compile(&program, 90) {
                Ok(cubin) => assert!(!cubin.is_empty()),
                Err(GpuError::CompilerUnavailable { .. }) => return,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
