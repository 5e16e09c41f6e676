//! Shapes of blocks.

/// Threads of a block, unless shared memory asks for a large one.
pub(crate) const SMALL_BLOCK: u32 = 256;
/// Warps of a large block.
pub(crate) const LARGE_WARPS: usize = 32;
/// Largest queue of a warp in bytes.
pub(crate) const QUEUE_BYTES_MAX: usize = 2 * (16 * 32 + 32);
