//! Launches of a top-k around its scan, and its rows.
//!
//! ```text
//! sample ─ best of the sample ─ scan ─ best of the candidates ─ columns of the result
//! ```
//!
//! The first two are there where there is a threshold. All is put on one queue: the host decides nothing in between.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use warpcube_gpu::prims::topk::TopK as Selection;
use warpcube_gpu::prims::{DeviceSlice, Element, Sort, SortKey, SortSpec};
use warpcube_gpu::{Device, DeviceBuffer, DeviceInfo, Kernel, LaunchShape, Module, Params, Program, Work};

use crate::arena::{Arena, Zone};
use crate::codegen::params::ParamList;
use crate::codegen::topk::{BoundTop, GATHER, HEAD_WORDS, SAMPLE, sort_of_tails};
use crate::error::{EngineError, Result};
use crate::exec::recorded::params_of;
use crate::exec::result::integers;
use crate::ir::Ty;

/// Threads of a block of the kernels that take a row a thread, and blocks a multiprocessor.
const BLOCK: u32 = 256;
const BLOCKS: u32 = 8;

/// How the best of the candidates are put in order.
enum Finding {
    /// By their ranks.
    Ranks(Box<Selection>),
    /// By ranks and tails, with all others.
    Tails(Box<Sort>),
}

/// The kernels beside the scan.
pub(crate) struct TopKernels {
    /// Ranks the sample and selects its best.
    sample: Option<(Kernel, Selection)>,
    /// Puts the best of the candidates in order.
    selection: Finding,
    /// Reads the result's columns.
    gather: Kernel,
}

impl BoundTop {
    /// The programs of `gpu::prims` that it takes.
    pub(crate) fn programs(&self, info: &DeviceInfo) -> Vec<Program> {
        let selection = self.decision.form.spec(&self.ranks, self.rows, self.k);
        // That of the sample is the same: programs of the threshold algorithm serve every k.
        let own = (self.tails.is_none() || self.sample.is_some()).then(|| selection.programs(info));
        let sort = self.tails.map(|_| sort_of_tails(selection.rows).programs(info));
        own.into_iter().flatten().chain(sort.into_iter().flatten()).collect()
    }

    /// The kernels, of the module with those of its own.
    pub(crate) fn kernels(&self, device: &Device, module: &Arc<Module>) -> Result<TopKernels> {
        let selection = |k| Selection::new(device, &self.decision.form.spec(&self.ranks, self.rows, k));
        let sample =
            self.sampled().map(|sample| Ok::<_, EngineError>((module.kernel(SAMPLE)?, selection(sample.place)?)));
        let finding = match self.tails {
            None => Finding::Ranks(Box::new(selection(self.k)?)),
            Some(_) => {
                let SortSpec { columns, row } = sort_of_tails(self.numbers());
                Finding::Tails(Box::new(Sort::new(device, &columns, row)?))
            }
        };
        Ok(TopKernels { sample: sample.transpose()?, selection: finding, gather: module.kernel(GATHER)? })
    }

    /// Type of the places of candidates.
    fn numbers(&self) -> Element {
        self.decision.form.spec(&self.ranks, self.rows, self.k).rows
    }

    /// Launches what finds the threshold.
    pub(crate) fn record_sample(&self, work: &mut Work, run: &TopRun) -> Result<()> {
        let (Some((kernel, selection)), Some([ranks, best, places]), Some(sample)) =
            (&run.kernels.sample, self.sample, self.sampled())
        else {
            return Ok(());
        };
        run.launch(work, kernel, sample.rows, &self.sample_params)?;
        run.select(work, self, selection, (ranks, sample.rows), ([best, places], sample.place))
    }

    /// Launches what follows the scan.
    pub(crate) fn record_result(&self, work: &mut Work, run: &TopRun) -> Result<()> {
        let count = self.decision.form.candidates(self.rows);
        match (&run.kernels.selection, self.tails) {
            (Finding::Ranks(selection), _) => {
                run.select(work, self, selection, (self.candidates, count), (self.best, self.k))?;
            }
            (Finding::Tails(sort), Some(tails)) => run.sort(work, self, sort, (tails, count))?,
            (Finding::Tails(_), None) => return Err(EngineError::Malformed("a sort of tails without any".into())),
        }
        run.launch(work, &run.kernels.gather, self.k, &self.gather_params)
    }

    /// The batch of the rows whose words follow the head: columns `g0`, `g1`, ….
    pub(crate) fn batch(&self, rows: &TopRows) -> Result<RecordBatch> {
        let (row_words, valid_words) = (self.row_words(), self.valid_words());
        let value = |row: usize, position: usize, ty: Ty| {
            let words = &rows.words[row * row_words..][..row_words];
            let word = words[valid_words + position];
            (words[position / 64] >> (position % 64) & 1 == 1).then(|| match ty {
                Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::I128 => i128::from(word as i64),
                _ => i128::from(word),
            })
        };
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (position, column) in self.columns.iter().enumerate() {
            let values: Vec<Option<i128>> = (0..rows.count).map(|row| value(row, position, column.ty)).collect();
            arrays.push(integers(&values, &column.data_type, column.dictionary.as_ref())?);
            fields.push(Field::new(format!("g{position}"), column.data_type.clone(), true));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| EngineError::Malformed(error.to_string()))
    }
}

/// Rows of a top-k as they came from the device.
#[derive(Debug, Default)]
pub(crate) struct TopRows {
    /// Number of rows.
    pub(crate) count: usize,
    /// Validity and values, row by row.
    pub(crate) words: Vec<u64>,
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
        let words = words(&bytes[..8 * HEAD_WORDS]);
        TopHead { error: words[0], flags: words[1], rows: words[2], thresholded: words[3] != 0 }
    }
}

/// Bytes as words.
pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
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

    /// Puts all candidates in the order of ranks and tails.
    fn sort(&self, work: &mut Work, bound: &BoundTop, sort: &Sort, (tails, count): (Zone, u64)) -> Result<()> {
        let slice = |zone, element| DeviceSlice::new(self.arena, self.layout.offset(zone), element, count);
        let scratch = self.arena.part(self.layout.offset(bound.scratch), bound.scratch.bytes())?;
        let [ranks, tails] = [slice(bound.candidates, Element::U128)?, slice(tails, Element::U128)?];
        let key = |values| SortKey { values, valid: None };
        Ok(sort.launch(work, &[key(&ranks), key(&tails)], &slice(bound.best[1], bound.numbers())?, &scratch)?)
    }

    /// Selects the best `k` of `count` ranks.
    fn select(
        &self,
        work: &mut Work,
        bound: &BoundTop,
        selection: &Selection,
        (ranks, count): (Zone, u64),
        (best, k): ([Zone; 2], u64),
    ) -> Result<()> {
        let (element, rows) = (bound.ranks.element(), selection.spec().rows);
        let slice = |zone, element, len| DeviceSlice::new(self.arena, self.layout.offset(zone), element, len);
        let scratch = self.arena.part(self.layout.offset(bound.scratch), bound.scratch.bytes())?;
        let ranks = slice(ranks, element, count)?;
        Ok(selection.launch(work, &ranks, &slice(best[0], element, k)?, &slice(best[1], rows, k)?, &scratch)?)
    }
}
