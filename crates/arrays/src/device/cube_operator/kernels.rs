//! The compiled kernels and primitives of the CUBE operator.

use std::marker::PhantomData;

use warpcube_gpu::prims::{
    DeviceSlice, Element, Gather, Histogram, Moved, Predicate, RadixSort, Reduction, SegmentedReduce, Select,
    SelectOrder,
};
use warpcube_gpu::{Device, DeviceBuffer, Kernel, Program};

use super::DeviceKey;
use crate::device::array::DeviceValue;
use crate::device::error::Result;

/// What the CUBE of rows with keys and values of two types needs on a device; made once, as it compiles programs.
pub struct CubeKernels<K, V> {
    pub(super) device: Device,
    pub(super) reorder: Kernel,
    pub(super) codes: Kernel,
    /// Of the iceberg.
    pub(super) refine: Kernel,
    pub(super) enough: Kernel,
    pub(super) sort: RadixSort,
    pub(super) histogram: Histogram,
    /// Rows of codes of at least the first bound.
    pub(super) heads: Select,
    /// Keys, codes by the rows of heads.
    pub(super) keys_of: Gather,
    pub(super) codes_of: Gather,
    /// Values, counts by the numbers of rows.
    pub(super) values_of: Gather,
    pub(super) counts_of: Gather,
    pub(super) number: SegmentedReduce,
    pub(super) counts: SegmentedReduce,
    pub(super) sums: SegmentedReduce,
    pub(super) least: SegmentedReduce,
    pub(super) largest: SegmentedReduce,
    types: PhantomData<(K, V)>,
}

impl<K: DeviceKey, V: DeviceValue> CubeKernels<K, V> {
    /// Compiles them.
    ///
    /// # Errors
    /// A program that does not compile.
    pub fn new(device: &Device) -> Result<Self> {
        let module = device.compile(&program(K::ELEMENT))?;
        let head = Predicate::Text("x >= a".to_string());
        let reduce = |input, of| SegmentedReduce::new(device, input, of);
        Ok(CubeKernels {
            reorder: module.kernel("wc_cube_reorder")?,
            codes: module.kernel("wc_cube_codes")?,
            refine: module.kernel("wc_cube_refine")?,
            enough: module.kernel("wc_cube_enough")?,
            sort: RadixSort::new(device, K::ELEMENT, Some(Element::U32))?,
            histogram: Histogram::new(device, Element::U8)?,
            heads: Select::new(device, Element::U8, head, Moved::Rows(Element::U64), SelectOrder::Stable)?,
            keys_of: Gather::new(device, K::ELEMENT, Element::U64)?,
            codes_of: Gather::new(device, Element::U8, Element::U64)?,
            values_of: Gather::new(device, V::ELEMENT, Element::U32)?,
            counts_of: Gather::new(device, Element::U64, Element::U32)?,
            number: reduce(Element::U8, Reduction::Count)?,
            counts: reduce(Element::U64, Reduction::Sum(Element::U64))?,
            sums: reduce(V::ELEMENT, Reduction::Sum(V::ELEMENT))?,
            least: reduce(V::ELEMENT, Reduction::Least)?,
            largest: reduce(V::ELEMENT, Reduction::Largest)?,
            device: device.clone(),
            types: PhantomData,
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Memory for so many elements, at least one.
    pub(super) fn room(&self, element: Element, len: u64) -> Result<DeviceSlice> {
        Ok(DeviceSlice::new(&self.scratch(len as usize * element.bytes())?, 0, element, len)?)
    }

    /// Memory of a primitive.
    pub(super) fn scratch(&self, bytes: usize) -> Result<DeviceBuffer> {
        Ok(self.device.buffer(bytes.max(1), "a CUBE")?)
    }
}

/// The kernels for keys of a type.
fn program(key: Element) -> Program {
    let definitions = format!("#define WC_KEY {}\n#define WC_POINTERS 0\n#define WC_VALUE uint64_t\n", key.c_type());
    let text =
        [&definitions, include_str!("../../../kernels/array.cuh"), include_str!("../../../kernels/cube_operator.cuh")];
    Program::new("cube operator", text.concat())
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;

    #[test]
    fn the_kernels_compile_for_cuda() {
        for key in [Element::U64, Element::U128] {
            match nvrtc::compile(&program(key), 90) {
                Ok(cubin) => assert!(!cubin.is_empty()),
                Err(GpuError::CompilerUnavailable { .. }) => return,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}
