//! Tiles: the items that a block works on at once. `kernels/prims/tile.cuh` is the device's side of this file.

use crate::backend::LaunchShape;
use crate::error::{GpuError, Result};
use crate::prims::DeviceSlice;

/// Kernel text of tiles.
pub const TILE: &str = include_str!("../../kernels/prims/tile.cuh");

/// Shape of a kernel's tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileTuning {
    /// Threads of a block, a multiple of 32.
    pub threads: u32,
    /// Rows of a warp's part; a lane holds as many times 16 bytes of the widest operand.
    pub rows: u32,
    /// Blocks of a multiprocessor, which the compiler keeps registers free for.
    pub blocks: u32,
}

impl TileTuning {
    /// The shape with fewer threads in more blocks, as far as needed for shared memory of `available` bytes.
    pub fn fitting(self, available: usize, shared_bytes: impl Fn(TileTuning) -> usize) -> TileTuning {
        let mut tuning = self;
        while shared_bytes(tuning) > available && tuning.threads > 128 {
            tuning = TileTuning { threads: tuning.threads / 2, blocks: tuning.blocks * 2, ..tuning };
        }
        tuning
    }

    /// Items of a tile where a lane holds `vector` items of a row.
    pub fn items(self, vector: u32) -> u64 {
        u64::from(self.threads) * u64::from(self.rows) * u64::from(vector)
    }

    /// Tiles of `n` items.
    pub fn tiles(self, vector: u32, n: u64) -> u64 {
        n.div_ceil(self.items(vector))
    }

    /// The definitions that kernels take their shape from.
    pub fn text(self, vector: u32) -> String {
        let TileTuning { threads, rows, blocks } = self;
        format!(
            "#define WC_THREADS {threads}\n#define WC_ROWS {rows}\n\
             #define WC_BLOCKS {blocks}\n#define WC_VEC {vector}\n"
        )
    }

    /// A launch of a block a tile.
    ///
    /// # Errors
    /// [`GpuError::Contract`] if a grid cannot have so many blocks.
    pub fn shape(self, operation: &str, tiles: u64, shared_bytes: usize) -> Result<LaunchShape> {
        let grid = u32::try_from(tiles).ok().filter(|grid| *grid <= i32::MAX as u32);
        let grid = grid.ok_or_else(|| {
            GpuError::Contract(format!("{operation}: {tiles} tiles, and a grid has {} blocks at most", i32::MAX))
        })?;
        Ok(LaunchShape { grid, block: self.threads, shared_bytes: shared_bytes as u32 })
    }
}

/// Items of 16 bytes, where the widest operand has elements of so many bytes.
pub const fn vector_items(bytes: usize) -> u32 {
    (16 / bytes) as u32
}

/// Whether kernels may load and store `vector` elements of each slice at once.
pub fn are_aligned(slices: &[&DeviceSlice], vector: u32) -> bool {
    slices.iter().all(|slice| {
        let bytes = (vector as usize * slice.element().bytes()).min(16);
        slice.is_aligned(bytes as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_shrink_to_the_shared_memory_of_a_device() {
        let tuning = TileTuning { threads: 1024, rows: 8, blocks: 1 };
        let bytes = |tuning: TileTuning| tuning.items(4) as usize * 6;
        assert_eq!(tuning.fitting(227 << 10, bytes), tuning);
        assert_eq!(tuning.fitting(99 << 10, bytes), TileTuning { threads: 512, rows: 8, blocks: 2 });
        assert_eq!(tuning.fitting(48 << 10, bytes).threads, 256);
        assert_eq!(tuning.fitting(0, bytes).threads, 128);
    }
}
