//! Where the warps of a scan that stops leave where they stand (`stops.cuh`).

use crate::arena::{Arena, Region};
use crate::plan::pipeline::PipelinePlan;

/// Bytes from one ticket counter to the next: each has a line of memory to itself.
pub(crate) const TICKETS_STRIDE: usize = 128;
/// Most warps of a multiprocessor.
pub(crate) const WARPS_PER_MULTIPROCESSOR: u32 = 64;
/// Bytes of a warp's state: `WC_STATE_WORDS` of stops.cuh.
const STATE_BYTES: usize = 32;

/// Where the warps of a scan leave their states, for each of its launches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopMemory {
    /// A ticket counter a launch.
    pub(crate) counters: Region,
    /// A state a warp.
    pub(crate) states: Region,
    /// `uint32_t` a lane, the slots that are left, then the queue, for each warp.
    pub(crate) rows: Region,
    /// Bytes of a launch of the last two.
    pub(super) launch_bytes: [usize; 2],
    /// Words of a warp in `rows`.
    pub(super) row_words: usize,
}

impl StopMemory {
    /// The regions of a scan that resumes.
    pub(crate) fn lay_out(arena: &mut Arena, plan: &PipelinePlan, multiprocessors: u32) -> Option<StopMemory> {
        if !plan.resumes {
            return None;
        }
        let (warps, launches) = ((multiprocessors * WARPS_PER_MULTIPROCESSOR) as usize, plan.tickets.len());
        let row_words = 32 + plan.shared.queue_entries.div_ceil(2);
        let launch_bytes = [warps * STATE_BYTES, warps * 4 * row_words];
        Some(StopMemory {
            counters: arena.zeroed(TICKETS_STRIDE * launches),
            states: arena.zeroed(launch_bytes[0] * launches),
            rows: arena.scratch(launch_bytes[1] * launches),
            launch_bytes,
            row_words,
        })
    }
}
