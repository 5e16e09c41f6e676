//! Project: a linear combination of two columns, or its sigmoid.

use warpcube_gpu::prims::tile::{TILE, TileTuning, are_aligned, vector_items};
use warpcube_gpu::prims::{DeviceSlice, Element, KEYS, Measured, Queue, check_element, check_length};
use warpcube_gpu::{Device, GpuError, Kernel, Params, Program, Result};

const NAME: &str = "project";
/// The tuning. Other shapes were not measured: these are at the floor.
const TUNING: Measured<TileTuning> = Measured {
    value: TileTuning { threads: 256, rows: 2, blocks: 6 },
    device: "NVIDIA H200",
    date: "2026-11-23",
    figure: "2^29 floats in 1.474 ms, their sigmoids in 1.476, floor 1.494",
};

/// What is computed of two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Projection {
    /// `a * x + b * y`.
    Linear,
    /// `1 / (1 + exp(-(a * x + b * y)))`.
    Sigmoid,
}

/// Projections of one kind on a device.
#[derive(Clone)]
pub struct Project {
    kernel: Kernel,
    item: Element,
}

impl Project {
    /// Compiles a projection of columns of [`Element::F32`] or [`Element::F64`].
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types.
    pub fn new(device: &Device, item: Element, projection: Projection) -> Result<Project> {
        let kernel = device.compile(&program(item, projection)?)?.kernel("wc_project")?;
        Ok(Project { kernel, item })
    }

    /// Writes the projection of `x` and `y` with the factors `a` and `b` to `out`, which may be one of them.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other types or lengths.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        [x, y]: [&DeviceSlice; 2],
        [a, b]: [f64; 2],
        out: &DeviceSlice,
    ) -> Result<()> {
        for (operand, slice) in [("the first column", x), ("the second column", y), ("the output", out)] {
            check_element(NAME, operand, slice, self.item)?;
            check_length(NAME, operand, slice, x.len())?;
        }
        let (n, vector) = (x.len(), vector_items(self.item.bytes()));
        if n == 0 {
            return Ok(());
        }
        let shape = TUNING.value.shape(NAME, TUNING.value.tiles(vector, n), 0)?;
        let aligned = are_aligned(&[x, y, out], vector);
        let params = Params::new().slice(x).slice(y).slice(out).f64(a).f64(b).u64(n).u64(aligned.into());
        queue.launch(&self.kernel, shape, &params)
    }
}

/// The program of one projection.
pub(crate) fn program(item: Element, projection: Projection) -> Result<Program> {
    if !matches!(item, Element::F32 | Element::F64) {
        return Err(GpuError::Contract(format!("{NAME}: no columns of {item}")));
    }
    let sigmoid = if projection == Projection::Sigmoid { "#define WC_SIGMOID\n" } else { "" };
    let types = format!("#define WC_ITEM {}\n{sigmoid}", item.c_type());
    let text = include_str!("../../kernels/project.cuh");
    Ok(Program::new(NAME, [&types, &TUNING.value.text(vector_items(item.bytes())), KEYS, TILE, text].concat()))
}

/// One item of the projection of columns of f32, on the host.
pub fn project(projection: Projection, x: f32, y: f32, a: f32, b: f32) -> f32 {
    let z = a.mul_add(x, b * y);
    match projection {
        Projection::Linear => z,
        Projection::Sigmoid => 1.0 / (1.0 + (-z).exp()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        for projection in [Projection::Linear, Projection::Sigmoid] {
            compile_for_gpus(&program(Element::F32, projection).unwrap());
        }
    }
}
