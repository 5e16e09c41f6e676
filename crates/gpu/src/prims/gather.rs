//! Gather and scatter: values by row number. One program has both kernels.

use std::sync::Arc;

use crate::device::{Device, Kernel, Module};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use crate::prims::tuning::{Measured, on_h200};
use crate::prims::{DeviceSlice, Element, KEYS, Queue, check_element, check_length};
use crate::program::Program;

/// The tuning. What is gathered waits for row numbers, so that many small blocks hide more. Not measured: other shapes,
/// and row numbers in a random order.
const TUNING: Measured<TileTuning> = on_h200!(
    TileTuning { threads: 256, rows: 2, blocks: 4 },
    "2026-11-25",
    "2^31 words backwards gathered in 6.05 ms, scattered in 7.43, floor 5.98"
);

/// Gathers of one type on a device.
#[derive(Clone)]
pub struct Gather(Access);

/// Scatters of one type on a device.
#[derive(Clone)]
pub struct Scatter(Access);

#[derive(Clone)]
struct Access {
    operation: &'static str,
    kernel: Kernel,
    value: Element,
    index: Element,
}

impl Gather {
    /// Compiles gathers of `value` by row numbers of `index`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for row numbers other than u32 and u64.
    pub fn new(device: &Device, value: Element, index: Element) -> Result<Gather> {
        let kernel = module(device, "gather", value, index)?.kernel("wc_gather")?;
        Ok(Gather(Access { operation: "gather", kernel, value, index }))
    }

    /// Writes `input[rows[i]]` to `out[i]`; each row number is below the length of the input.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, and for row numbers of an empty input.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: &DeviceSlice,
        rows: &DeviceSlice,
        out: &DeviceSlice,
    ) -> Result<()> {
        self.0.launch(queue, [input, rows, out], [out, input])
    }
}

impl Scatter {
    /// Compiles scatters of `value` by row numbers of `index`.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for row numbers other than u32 and u64.
    pub fn new(device: &Device, value: Element, index: Element) -> Result<Scatter> {
        let kernel = module(device, "scatter", value, index)?.kernel("wc_scatter")?;
        Ok(Scatter(Access { operation: "scatter", kernel, value, index }))
    }

    /// Writes `input[i]` to `out[rows[i]]`; each row number is below the length of the output. Of two values with one
    /// row number either stays.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths, and for row numbers of an empty output.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        input: &DeviceSlice,
        rows: &DeviceSlice,
        out: &DeviceSlice,
    ) -> Result<()> {
        self.0.launch(queue, [input, rows, out], [input, out])
    }
}

impl Access {
    /// Launches over the slices; `[dense, random]` are those with a value a row number and with any number of values.
    fn launch(
        &self,
        queue: &mut impl Queue,
        [input, rows, out]: [&DeviceSlice; 3],
        [dense, random]: [&DeviceSlice; 2],
    ) -> Result<()> {
        let (operation, n) = (self.operation, rows.len());
        check_element(operation, "the input", input, self.value)?;
        check_element(operation, "the slice of row numbers", rows, self.index)?;
        check_element(operation, "the output", out, self.value)?;
        check_length(operation, "the slice of values by position", dense, n)?;
        if n == 0 {
            return Ok(());
        }
        if random.is_empty() {
            return Err(GpuError::Contract(format!("{operation}: {n} row numbers of 0 elements")));
        }
        let vector = vector(self.index);
        let shape = TUNING.value.shape(operation, TUNING.value.tiles(vector, n), 0)?;
        let aligned = are_aligned(&[rows, dense], vector);
        let params = Params::new().slice(input).slice(rows).slice(out).u64(n).u64(aligned.into());
        queue.launch(&self.kernel, shape, &params)
    }
}

/// Row numbers of 16 bytes.
fn vector(index: Element) -> u32 {
    vector_items(index.bytes())
}

fn module(device: &Device, operation: &str, value: Element, index: Element) -> Result<Arc<Module>> {
    if !matches!(index, Element::U32 | Element::U64) {
        return Err(GpuError::Contract(format!("{operation}: no row numbers of {index}")));
    }
    device.compile(&program(value, index))
}

/// The program of both kernels.
pub(crate) fn program(value: Element, index: Element) -> Program {
    let of_its_size = match value.bytes() {
        1 => "uint8_t",
        4 => "uint32_t",
        8 => "uint64_t",
        _ => "int4",
    };
    let types = format!("#define WC_VALUE {of_its_size}\n#define WC_INDEX {}\n", index.c_type());
    let text = include_str!("../../kernels/prims/gather.cuh");
    Program::new("gather", [&types, &TUNING.value.text(vector(index)), KEYS, TILE, text].concat())
}

/// The gather on the host.
pub fn gather<T: Copy>(input: &[T], rows: &[u64]) -> Vec<T> {
    rows.iter().map(|row| input[*row as usize]).collect()
}

/// The scatter on the host.
pub fn scatter<T: Copy>(input: &[T], rows: &[u64], out: &mut [T]) {
    for (value, row) in input.iter().zip(rows) {
        out[*row as usize] = *value;
    }
}
