//! Arrival codes to sorted codes, on the device.

use std::sync::{Arc, LazyLock};

use warpcube_gpu::{Device, DeviceBuffer, LaunchShape, Module, Params, Program, Stream};

use crate::error::Result;

/// Purpose: replaces each arrival code by its final code when a string column closes.
/// Inputs: codes u32 `[rows]`, in place; table u32 `[codes]`. Mapping: one thread a row, grid-stride.
/// Bytes: 8 a row (read and write), the table from cache. Valid for any number of rows. Null slots hold code 0, and are
/// mapped too.
const SOURCE: &str = r"
struct RemapParams { uint32_t* codes; const uint32_t* table; uint64_t rows; };

WC_KERNEL(remap_codes, RemapParams, 256, 1) {
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.rows; row += step) {
        p.codes[row] = wc_load_cached(p.table + p.codes[row]);
    }
}
";

const BLOCK: u32 = 256;

/// The program of the kernel.
pub(crate) fn program() -> Program {
    static PROGRAM: LazyLock<Program> = LazyLock::new(|| Program::new("remap_codes", SOURCE));
    PROGRAM.clone()
}

/// Launches the remapping of `rows` codes by the table at a byte offset of a buffer.
pub(crate) fn remap_codes(
    device: &Device,
    stream: &mut Stream,
    codes: &DeviceBuffer,
    (table, offset): (&DeviceBuffer, usize),
    rows: usize,
) -> Result<()> {
    let module: Arc<Module> = device.compile(&program())?;
    let kernel = module.kernel("remap_codes")?;
    let grid = (rows as u32).div_ceil(BLOCK).clamp(1, device.info().multiprocessors * 8);
    let shape = LaunchShape { grid, block: BLOCK, shared_bytes: 0 };
    stream.launch(&kernel, shape, &Params::new().buffer(codes).buffer_at(table, offset).u64(rows as u64))?;
    Ok(())
}
