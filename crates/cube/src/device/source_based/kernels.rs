//! Kernels of the source-based algorithm, by the variant of their text.

use warpcube_gpu::prims::{Element, Reduction, Scan, ScanKind};
use warpcube_gpu::{Device, Kernel, Program};

use crate::algorithm::{Expansion, MapPlace, Preaggregation};
use crate::device::DeviceError;
use crate::device::cells::CellKernel;
use crate::device::keys::RESIDENT_KEYS;

/// The variant of the aggregation kernels' text.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceForm {
    pub(super) key_words: u32,
    pub(super) preaggregation: Preaggregation,
    pub(super) expansion: Expansion,
    pub(super) map: MapPlace,
    /// Words of 64 bits of a map in parameters.
    pub(super) map_longs: usize,
    pub(super) is_narrow: bool,
    pub(super) has_weights: bool,
    /// True if tables count additions.
    pub(super) is_counted: bool,
}

/// All kernels of a variant.
pub(super) struct SourceKernels {
    pub(super) filter: Kernel,
    pub(super) scan: Scan,
    pub(super) compact: Kernel,
    pub(super) add: Adding,
    pub(super) merge: Kernel,
    pub(super) cells: CellKernel,
}

/// Kernels that add cells to targets.
pub(super) enum Adding {
    /// One kernel does it.
    Cells(Kernel),
    /// Parents, the sums of their children's blocks, children; the host launches all.
    Children([Kernel; 3]),
    /// A copy of the parameters, and parents, which launch children.
    Launching([Kernel; 2]),
}

impl SourceForm {
    /// Compiles the kernels, or takes those that this process has compiled.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub(super) fn compile(&self, device: &Device) -> Result<SourceKernels, DeviceError> {
        let keys = format!("#define WC_KEY_WORDS {}\n{RESIDENT_KEYS}", self.key_words);
        let prefilter = Program::new("cube prefilter", keys + include_str!("../../../kernels/prefilter.cuh"));
        let merge = Program::new("cube merge", include_str!("../../../kernels/merge_tables.cuh"));
        let modules = device.compile_all(&[prefilter, self.program(), merge])?;
        let [prefilter, source, merge] = &modules[..] else { unreachable!("a module for each program") };
        let add = match self.expansion {
            Expansion::Thread => Adding::Cells(source.kernel("wc_source_thread")?),
            Expansion::Balanced => Adding::Cells(source.kernel("wc_source_balanced")?),
            Expansion::Children | Expansion::ChildBlocks => {
                // Raises the shared memory that the kernel may be launched with.
                source.kernel("wc_source_child_launched")?;
                Adding::Launching([source.kernel("wc_source_copy")?, source.kernel("wc_source_launching_parent")?])
            }
            Expansion::HostChildren | Expansion::HostChildBlocks => Adding::Children([
                source.kernel("wc_source_parent")?,
                source.kernel("wc_source_children")?,
                source.kernel("wc_source_child_grid")?,
            ]),
        };
        Ok(SourceKernels {
            filter: prefilter.kernel("wc_source_filter")?,
            scan: Scan::new(device, Element::U32, Reduction::Sum(Element::U32), ScanKind::Exclusive)?,
            compact: prefilter.kernel("wc_source_compact")?,
            add,
            merge: merge.kernel("wc_source_merge")?,
            cells: CellKernel::compile(device, 1)?,
        })
    }

    /// The text of the kernels that add.
    pub(super) fn program(&self) -> Program {
        let define = |name: &str, value: usize| format!("#define {name} {value}\n");
        let text = [
            define("WC_KEY_WORDS", self.key_words as usize),
            define("WC_WEIGHTS", self.has_weights.into()),
            define("WC_COUNTED", self.is_counted.into()),
            define("WC_MAP_PLACE", self.map as usize),
            format!("#define WC_MAP_WORD {}\n", if self.is_narrow { "uint16_t" } else { "uint32_t" }),
            define("WC_MAP_LONGS", self.map_longs),
            define("WC_PREAGGREGATION", self.preaggregation as usize),
            define("WC_EXPANSION", self.text_expansion()),
            define("WC_LAUNCHES", self.expansion.launches().into()),
            RESIDENT_KEYS.to_string(),
            include_str!("../../../kernels/source.cuh").to_string(),
            include_str!("../../../kernels/source_tables.cuh").to_string(),
            include_str!("../../../kernels/source_expansion.cuh").to_string(),
        ];
        let program = Program::new("cube source", text.concat());
        if self.expansion.launches() { program.with_device_launches() } else { program }
    }

    /// The number of the expansion in the text.
    fn text_expansion(&self) -> usize {
        match self.expansion {
            Expansion::Thread => 0,
            Expansion::Balanced => 1,
            expansion if expansion.has_grids() => 2,
            _ => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::GpuError;
    use warpcube_gpu::cuda::nvrtc;

    use super::*;
    use crate::algorithm::SourceVariant;

    /// Compiles a program for Hopper, where there is a compiler; one that launches kernels, where there is a linker.
    fn compile_for_gpus(program: &Program) {
        let is_there = match program.has_device_launches() {
            true => nvrtc::check_device_launches(90).is_ok(),
            false => nvrtc::location(Some(90)).is_ok(),
        };
        match nvrtc::compile(program, 90) {
            Ok(cubin) => assert!(!cubin.is_empty()),
            Err(GpuError::CompilerUnavailable { .. }) if !is_there => {}
            Err(error) => panic!("{}: {error:?}", program.name()),
        }
    }

    #[test]
    fn kernels_compile_for_gpus() {
        for (number, variant) in SourceVariant::pairs(1).into_iter().enumerate() {
            let map = MapPlace::ALL[number % 3];
            compile_for_gpus(
                &SourceForm {
                    key_words: 1 + number as u32 / 3 % 2,
                    preaggregation: variant.preaggregation,
                    expansion: variant.expansion,
                    map,
                    map_longs: if map == MapPlace::Constant { 3072 } else { 0 },
                    is_narrow: number % 2 == 0,
                    has_weights: number % 4 < 2,
                    is_counted: number % 8 == 7,
                }
                .program(),
            );
        }
        let keys = format!("#define WC_KEY_WORDS 2\n{RESIDENT_KEYS}");
        compile_for_gpus(&Program::new("prefilter", keys + include_str!("../../../kernels/prefilter.cuh")));
        compile_for_gpus(&Program::new("merge", include_str!("../../../kernels/merge_tables.cuh")));
    }
}
