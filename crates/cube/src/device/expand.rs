//! One dimension of a contraction: classes become targets. `kernels/expand.cuh` is the device's side of this file.

use warpcube_gpu::{Device, LaunchShape, Params, Program, Stream};

use super::classes::Classes;
use super::contract::DeviceError;
use super::gather::{Sums, uploaded};

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks of a grid on a multiprocessor.
const BLOCKS: u64 = 32;

/// Sums of shape outer × classes × inner become sums of shape outer × targets × inner.
pub(super) struct Expand<'a> {
    pub(super) classes: &'a Classes,
    pub(super) outer: u64,
    pub(super) inner: u64,
}

impl Expand<'_> {
    /// Places of the result.
    pub(super) fn places(&self) -> u64 {
        self.outer * u64::from(self.classes.targets()) * self.inner
    }

    /// Launches the product.
    pub(super) fn launch(
        &self,
        device: &Device,
        stream: &mut Stream,
        input: &Sums,
        output: &Sums,
    ) -> Result<(), DeviceError> {
        let Classes { count, offsets, classes, weights, .. } = self.classes;
        let program = Program::new("cube targets", include_str!("../../kernels/expand.cuh"));
        let kernel = device.compile(&program)?.kernel("wc_cube_expand")?;
        let offsets = uploaded(device, stream, bytemuck::cast_slice(offsets), "entries of targets")?;
        let entries = uploaded(device, stream, bytemuck::cast_slice(classes), "classes of targets")?;
        let weights = uploaded(device, stream, bytemuck::cast_slice(weights), "weights of targets")?;
        let params = Params::new().buffer(&input.sums).buffer(&input.filled).buffer(&offsets).buffer(&entries);
        let params = params.buffer(&weights).buffer(&output.sums).buffer(&output.filled);
        let params = params.u64((*count).into()).u64(self.classes.targets().into()).u64(self.inner).u64(self.places());
        let blocks = self.places().div_ceil(THREADS.into()).min(u64::from(device.info().multiprocessors) * BLOCKS);
        let shape = LaunchShape { grid: blocks.max(1) as u32, block: THREADS, shared_bytes: 0 };
        stream.launch(&kernel, shape, &params)?;
        Ok(())
    }
}
