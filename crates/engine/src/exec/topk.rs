//! Phases of a top-k around its scan, and the head of its rows.
//!
//! ```text
//! sample ─ best of the sample ─ scan ─ best of the candidates ─ columns of the result
//! ```
//!
//! The first two are there where there is a threshold; where partitions have bounds, the two kernels that find these.
//! The host decides nothing in between.
//! Where candidates are few, the last block of the scan does what follows it.

use std::sync::Arc;

use warpcube_gpu::prims::topk::TopK as Selection;
use warpcube_gpu::prims::{Sort, SortSpec};
use warpcube_gpu::{Device, DeviceInfo, GpuError, Kernel, Module, Program};

use crate::arena::Region;
use crate::codegen::memory::RankedMemory;
use crate::codegen::params::ParamList;
use crate::codegen::topk::{BOUNDS, BoundTop, GATHER, LARGEST, SAMPLE};
use crate::error::Result;
use crate::exec::phase::{Launch, Phase, Primitive, Slice, blocks};
use crate::exec::windows::WindowKernels;
use crate::plan::top::{RankedPlan, sort_of};
use crate::result::word;

/// How the best of some ranks are put in order.
enum Finding {
    /// By a selection.
    Selected(Box<Selection>),
    /// By a sort of all, by these tails too where there are some.
    Sorted(Box<Sort>, Option<Region>),
}

/// The kernels beside the scan.
pub(crate) struct TopKernels {
    /// Ranks the sample and puts its best in order.
    sample: Option<(Kernel, Finding)>,
    /// Find the largest values of partitions, and their bounds.
    bounds: Option<[Kernel; 2]>,
    /// Puts the best of the candidates in order.
    selection: Finding,
    /// Reads the result's columns.
    gather: Kernel,
    windows: Option<WindowKernels>,
}

impl BoundTop {
    /// The programs of `gpu::prims` that it takes.
    pub(crate) fn programs(&self, info: &DeviceInfo) -> Vec<Program> {
        if self.last_block().is_some() {
            return Vec::new();
        }
        let of = |ranked: &RankedPlan| match self.sorts() {
            false => self.selection(ranked).programs(info),
            true => sort_of(&self.ranks, self.payload()).programs(info),
        };
        let ranked = self.sample.iter().chain([&self.candidates]).flat_map(of);
        ranked.chain(self.window_programs()).collect()
    }

    /// The kernels, of the module with those of its own.
    pub(crate) fn kernels(&self, device: &Device, module: &Arc<Module>) -> Result<TopKernels> {
        let finding = |ranked: &RankedPlan, tails: Option<Region>| -> Result<Finding> {
            Ok(match self.sorts() {
                false => Finding::Selected(Box::new(Selection::new(device, &self.selection(ranked))?)),
                true => {
                    let SortSpec { columns, row } = sort_of(&self.ranks, self.payload());
                    Finding::Sorted(Box::new(Sort::new(device, &columns, row)?), tails)
                }
            })
        };
        let sample = match self.sampled() {
            Some((sample, memory)) => Some((module.kernel(&self.name(SAMPLE))?, finding(&sample, memory.tails)?)),
            None => None,
        };
        let kernel = |name| module.kernel(&self.name(name));
        let bounds = self.bounds.map(|_| Ok::<_, GpuError>([kernel(LARGEST)?, kernel(BOUNDS)?])).transpose()?;
        let selection = finding(&self.candidates, self.memory.candidates.tails)?;
        let windows = self.window_kernels(device, module)?;
        Ok(TopKernels { sample, bounds, selection, gather: module.kernel(&self.name(GATHER))?, windows })
    }

    /// What finds the threshold, or the bounds of partitions, if there are any.
    pub(crate) fn sample_phases<'a>(&self, kernels: &'a TopKernels, info: &DeviceInfo) -> Vec<Phase<'a>> {
        if let (Some([largest, found]), Some((plan, _))) = (&kernels.bounds, self.bounds()) {
            let launch = |kernel, items, params: &ParamList| {
                let operands = params.arguments().cloned().collect();
                Phase::Launch(Launch::over(kernel, items, blocks(info), operands))
            };
            let largest = launch(largest, self.rows, &self.sample_params);
            return vec![largest, launch(found, plan.partitions, &self.bounds_params)];
        }
        let (Some((kernel, finding)), Some(sample)) = (&kernels.sample, self.sampled()) else { return Vec::new() };
        let operands = self.sample_params.arguments().cloned().collect();
        let launch = Launch::over(kernel, sample.0.count, blocks(info), operands);
        vec![Phase::Launch(launch), self.in_order(finding, sample)]
    }

    /// What follows the scan.
    pub(crate) fn result_phases<'a>(&self, kernels: &'a TopKernels, info: &DeviceInfo) -> Vec<Phase<'a>> {
        let operands = self.gather_params.arguments().cloned().collect();
        let launch = Launch::over(&kernels.gather, self.k, blocks(info), operands);
        let candidates = (self.candidates, self.memory.candidates);
        let windows = kernels.windows.as_ref().map(|kernels| self.window_phases(kernels, info));
        let ordered = [self.in_order(&kernels.selection, candidates), Phase::Launch(launch)];
        ordered.into_iter().chain(windows.into_iter().flatten()).collect()
    }

    /// What puts the best ranks in order.
    fn in_order<'a>(&self, finding: &'a Finding, (plan, at): (RankedPlan, RankedMemory)) -> Phase<'a> {
        let element = self.ranks.element();
        let slice = |region, element, len| Slice { region, distance: 0, element, len };
        let (ranks, scratch) = (slice(at.ranks, element, plan.count), self.memory.scratch);
        Phase::Primitive(match finding {
            Finding::Selected(selection) => {
                let rows = slice(at.best[1], selection.spec().rows, plan.k);
                Primitive::Select { selection, ranks, best: slice(at.best[0], element, plan.k), rows, scratch }
            }
            Finding::Sorted(sort, tails) => {
                let tails = tails.map(|tails| slice(tails, element, plan.count));
                let beside = |region, element| slice(region, element, plan.count);
                let rows = sort.row().map(|row| beside(at.best[1], row));
                let values = at.carried.zip(sort.row()).map(|(carried, row)| beside(carried, row));
                Primitive::Sort { sort, keys: std::iter::once(ranks).chain(tails).collect(), values, rows, scratch }
            }
        })
    }
}

/// What the first words of the output tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TopHead {
    pub(crate) error: u64,
    pub(crate) flags: u64,
    /// Rows that were found.
    pub(crate) rows: u64,
    /// Whether rows below a threshold were left out.
    pub(crate) thresholded: bool,
}

impl TopHead {
    /// Reads it.
    pub(crate) fn of(bytes: &[u8]) -> TopHead {
        let [error, flags, rows, thresholded] = [0, 1, 2, 3].map(|at| word(bytes, at));
        TopHead { error, flags, rows, thresholded: thresholded != 0 }
    }
}
