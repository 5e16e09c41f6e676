//! Merge of two sorted sequences of keys, alone or with payload, stable: of equal keys those of the first come first.
//!
//! The output is cut into tiles of one size; one kernel finds where each begins in both inputs, one merges tiles
//! (`kernels/prims/merge.cuh`).

use super::radix_sort::records::{Records, check_records, payload_type, places};
use super::{Element, KEYS, Key, Queue, check_scratch};
use crate::backend::LaunchShape;
use crate::buffer::DeviceBuffer;
use crate::device::{Device, Kernel};
use crate::error::Result;
use crate::launch::Params;
use crate::program::Program;

const KERNELS: &str = include_str!("../../kernels/prims/merge.cuh");
/// Threads of a block that finds where tiles begin.
const SPLIT_THREADS: u32 = 128;

/// How a merge is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeTuning {
    /// Threads of a block.
    pub threads: u32,
    /// Rows of a thread; an odd number keeps threads of a warp in different banks.
    pub items: u32,
    /// Blocks a multiprocessor, which bounds registers.
    pub blocks: u32,
}

impl MergeTuning {
    /// The tuning for keys of a type: 40 registers of keys and sources a thread at most. On an H200 2³¹ and more u32
    /// take 7.17 ms, 57 % of its bandwidth (2026-11-26, `large/merge`); other shapes were not tried.
    pub fn of(key: Element) -> MergeTuning {
        let items = match key.bytes() {
            1..=4 => 15,
            5..=8 => 11,
            _ => 5,
        };
        MergeTuning { threads: 256, items, blocks: 4 }
    }
}

/// A merge of keys of one type, alone or with payload of one type.
#[derive(Clone)]
pub struct Merge {
    key: Element,
    payload: Option<Element>,
    tuning: MergeTuning,
    splits: Kernel,
    tiles: Kernel,
}

impl Merge {
    /// Compiles the merge for a device.
    ///
    /// # Errors
    /// Those of [`Device::compile`].
    pub fn new(device: &Device, key: Element, payload: Option<Element>) -> Result<Merge> {
        Merge::with_tuning(device, key, payload, MergeTuning::of(key))
    }

    /// The same, cut as told.
    ///
    /// # Errors
    /// As [`Merge::new`].
    pub fn with_tuning(device: &Device, key: Element, payload: Option<Element>, tuning: MergeTuning) -> Result<Merge> {
        let module = device.compile(&program(key, payload, &tuning))?;
        let (splits, tiles) = (module.kernel("merge_splits")?, module.kernel("merge_tiles")?);
        Ok(Merge { key, payload, tuning, splits, tiles })
    }

    fn tiles(&self, rows: u64) -> u64 {
        rows.div_ceil(u64::from(self.tuning.threads) * u64::from(self.tuning.items))
    }

    /// Bytes of scratch memory for `rows` rows of output.
    pub fn scratch_bytes(&self, rows: u64) -> usize {
        (self.tiles(rows) as usize + 1) * 8
    }

    /// Merges two inputs that are sorted, both ascending or both descending, to `output`, which lies apart.
    ///
    /// # Errors
    /// [`crate::GpuError::Contract`] for other types and lengths, and too little scratch memory; those of a launch.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        inputs: [Records<'_>; 2],
        output: Records<'_>,
        descending: bool,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let lengths = inputs.map(|input| input.keys.len());
        let rows = lengths[0] + lengths[1];
        for (role, input, length) in
            [("the first input", inputs[0], lengths[0]), ("the second input", inputs[1], lengths[1])]
        {
            check_records("merge", role, input, self.key, self.payload, length, false)?;
        }
        check_records("merge", "the output", output, self.key, self.payload, rows, false)?;
        check_scratch("merge", scratch, self.scratch_bytes(rows))?;
        if rows == 0 {
            return Ok(());
        }
        let all = [inputs[0], inputs[1], output];
        let params = places(Params::new(), all).u64(lengths[0]).u64(lengths[1]);
        let params = params.u64(descending.into()).buffer(scratch);
        let tiles = self.tiles(rows);
        let grid = (tiles + 1).div_ceil(SPLIT_THREADS.into()) as u32;
        queue.launch(&self.splits, LaunchShape { grid, block: SPLIT_THREADS, shared_bytes: 0 }, &params)?;
        let MergeTuning { threads: block, items, .. } = self.tuning;
        let source_bytes = if self.payload.is_some() { 4 } else { 0 };
        let shared_bytes = block * items * (self.key.bytes() as u32 + source_bytes);
        queue.launch(&self.tiles, LaunchShape { grid: tiles as u32, block, shared_bytes }, &params)
    }
}

/// The program of a merge.
fn program(key: Element, payload: Option<Element>, tuning: &MergeTuning) -> Program {
    let MergeTuning { threads, items, blocks } = tuning;
    let values = payload.map(|payload| format!("#define WC_MERGE_PAYLOAD {}\n", payload_type(payload.bytes())));
    let definitions = format!(
        "#define WC_MERGE_KEY {}\n{}#define WC_MERGE_THREADS {threads}\n#define WC_MERGE_ITEMS {items}\n\
         #define WC_MERGE_BLOCKS {blocks}\n",
        key.c_type(),
        values.unwrap_or_default(),
    );
    let name = format!("merge_{key}_{}", payload.map_or(0, Element::bytes));
    Program::new(name, format!("{KEYS}{definitions}{KERNELS}"))
}

/// For each row of the output its row in the first input, or, counted from the first's length on, in the second.
pub fn reference<K: Key>(first: &[K], second: &[K], descending: bool) -> Vec<u64> {
    let (mut a, mut b) = (0, 0);
    std::iter::from_fn(|| {
        let takes_first = match (first.get(a), second.get(b)) {
            (None, None) => return None,
            (Some(left), Some(right)) if descending => left.ordered_bits() >= right.ordered_bits(),
            (Some(left), Some(right)) => left.ordered_bits() <= right.ordered_bits(),
            (left, _) => left.is_some(),
        };
        let (row, next) = if takes_first { (a, &mut a) } else { (first.len() + b, &mut b) };
        *next += 1;
        Some(row as u64)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    #[test]
    fn kernels_compile_for_gpus() {
        for (key, payload) in [(Element::U32, None), (Element::F64, Some(Element::U32)), (Element::U128, None)] {
            compile_for_gpus(&program(key, payload, &MergeTuning::of(key)));
        }
    }
}
