//! Launches of a top-k around its scan, and the head of its rows.
//!
//! ```text
//! sample ─ best of the sample ─ scan ─ best of the candidates ─ columns of the result
//! ```
//!
//! The first two are there where there is a threshold. All is put on one queue: the host decides nothing in between.
//! Where candidates are few, the last block of the scan does what follows it.

use std::sync::Arc;

use warpcube_gpu::prims::topk::{TopK as Selection, TopKSpec};
use warpcube_gpu::prims::{DeviceSlice, Sort, SortKey, SortSpec};
use warpcube_gpu::{Device, DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Module, Params, Program, Work};

use crate::arena::{Arena, Zone};
use crate::codegen::params::ParamList;
use crate::codegen::topk::{BoundTop, GATHER, Ranked, SAMPLE, sort_of};
use crate::error::Result;
use crate::exec::recorded::params_of;
use crate::exec::result::word;

/// Threads of a block of the kernels that take a row a thread, and blocks a multiprocessor.
const BLOCK: u32 = 256;
const BLOCKS: u32 = 8;

/// How the best of some ranks are put in order.
enum Finding {
    /// By a selection.
    Selected(Box<Selection>),
    /// By a sort of all, by these tails too where there are some.
    Sorted(Box<Sort>, Option<Zone>),
}

/// The kernels beside the scan.
pub(crate) struct TopKernels {
    /// Ranks the sample and puts its best in order.
    sample: Option<(Kernel, Finding)>,
    /// Puts the best of the candidates in order.
    selection: Finding,
    /// Reads the result's columns.
    gather: Kernel,
}

impl BoundTop {
    /// The programs of `gpu::prims` that it takes.
    pub(crate) fn programs(&self, info: &DeviceInfo) -> Vec<Program> {
        if self.last_block().is_some() {
            return Vec::new();
        }
        let of = |ranked: &Ranked| match self.sorts() {
            false => self.selection(ranked).programs(info),
            true => sort_of(&self.ranks, self.selection(ranked).rows).programs(info),
        };
        self.sample.iter().chain([&self.candidates]).flat_map(of).collect()
    }

    fn sorts(&self) -> bool {
        self.decision.form.sorts(&self.ranks)
    }

    /// The selection of the best of some ranks.
    fn selection(&self, ranked: &Ranked) -> TopKSpec {
        let spec = self.decision.form.spec(&self.ranks, self.rows, ranked.k);
        TopKSpec { keys: Some(ranked.count), ..spec }
    }

    /// The kernels, of the module with those of its own.
    pub(crate) fn kernels(&self, device: &Device, module: &Arc<Module>) -> Result<TopKernels> {
        let finding = |ranked: &Ranked| -> Result<Finding> {
            let selection = self.selection(ranked);
            Ok(match self.sorts() {
                false => Finding::Selected(Box::new(Selection::new(device, &selection)?)),
                true => {
                    let SortSpec { columns, row } = sort_of(&self.ranks, selection.rows);
                    Finding::Sorted(Box::new(Sort::new(device, &columns, row)?), ranked.tails)
                }
            })
        };
        let sample = match &self.sample {
            Some(sample) => Some((module.kernel(SAMPLE)?, finding(sample)?)),
            None => None,
        };
        Ok(TopKernels { sample, selection: finding(&self.candidates)?, gather: module.kernel(GATHER)? })
    }

    /// Launches what finds the threshold.
    pub(crate) fn record_sample(&self, work: &mut Work, run: &TopRun) -> Result<()> {
        let (Some((kernel, finding)), Some(sample)) = (&run.kernels.sample, &self.sample) else { return Ok(()) };
        run.launch(work, kernel, sample.count, &self.sample_params)?;
        run.put_in_order(work, self, finding, sample)
    }

    /// Launches what follows the scan.
    pub(crate) fn record_result(&self, work: &mut Work, run: &TopRun) -> Result<()> {
        run.put_in_order(work, self, &run.kernels.selection, &self.candidates)?;
        run.launch(work, &run.kernels.gather, self.k, &self.gather_params)
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

/// The operands of a run's launches.
pub(crate) struct TopRun<'a> {
    pub(crate) device: &'a Device,
    pub(crate) kernels: &'a TopKernels,
    pub(crate) layout: &'a Arena,
    pub(crate) arena: &'a DeviceBuffer,
}

impl TopRun<'_> {
    /// Launches a kernel that takes a row a thread.
    fn launch(&self, work: &mut Work, kernel: &Kernel, rows: u64, params: &ParamList) -> Result<()> {
        let most = self.device.info().multiprocessors * BLOCKS;
        let grid = rows.div_ceil(BLOCK.into()).clamp(1, most.into()) as u32;
        let params = params_of(Params::new(), params, self.layout, self.arena);
        Ok(work.launch(kernel, LaunchShape { grid, block: BLOCK, shared_bytes: 0 }, &params, false)?)
    }

    /// Puts the best ranks in order.
    fn put_in_order(&self, work: &mut Work, bound: &BoundTop, finding: &Finding, ranked: &Ranked) -> Result<()> {
        let (element, k) = (bound.ranks.element(), ranked.k);
        let slice = |zone, element, len| DeviceSlice::new(self.arena, self.layout.offset(zone), element, len);
        let scratch = self.arena.part(self.layout.offset(bound.scratch), bound.scratch.bytes())?;
        let ranks = slice(ranked.ranks, element, ranked.count)?;
        match finding {
            Finding::Selected(selection) => {
                let rows = slice(ranked.best[1], selection.spec().rows, k)?;
                Ok(selection.launch(work, &ranks, &slice(ranked.best[0], element, k)?, &rows, &scratch)?)
            }
            Finding::Sorted(sort, tails) => {
                let tails = tails.map(|tails| slice(tails, element, ranked.count)).transpose()?;
                let key = |values| SortKey { values, valid: None };
                let keys: Vec<SortKey> = std::iter::once(&ranks).chain(&tails).map(key).collect();
                let rows = slice(ranked.best[1], sort.row(), ranked.count)?;
                Ok(sort.launch(work, &keys, &rows, &scratch)?)
            }
        }
    }
}
