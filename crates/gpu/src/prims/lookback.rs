//! Decoupled look-back: scratch memory of single-pass kernels. `kernels/prims/lookback.cuh` is the device's side of
//! this file.

use crate::buffer::DeviceBuffer;
use crate::error::Result;
use crate::prims::{Queue, check_scratch};

/// Kernel text of tickets and look-back.
pub const LOOKBACK: &str = include_str!("../../kernels/prims/lookback.cuh");

/// Bytes of the ticket counter and what keeps descriptors away from it.
const HEAD_BYTES: usize = 64;

/// Scratch memory of a launch over so many tiles, whose states have so many words.
pub fn scratch_bytes(tiles: u64, words: usize) -> usize {
    HEAD_BYTES + tiles as usize * words * size_of::<u64>()
}

/// Resets the ticket counter and the descriptors for a launch.
///
/// # Errors
/// [`crate::GpuError::Contract`] if the memory is too small.
pub fn reset(operation: &str, queue: &mut impl Queue, scratch: &DeviceBuffer, tiles: u64, words: usize) -> Result<()> {
    let bytes = scratch_bytes(tiles, words);
    check_scratch(operation, scratch, bytes)?;
    queue.fill(scratch, 0, 0, bytes)
}
