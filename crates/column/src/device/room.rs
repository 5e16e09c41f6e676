//! The interface through which loads reserve device memory.

use warpcube_gpu::Reservation;

use crate::error::Result;

/// Reserves device memory for segments; residency evicts other columns for it.
pub(crate) trait Room: Sync {
    /// Reserves `bytes` bytes.
    ///
    /// # Errors
    /// [`ColumnError::OverBudget`](crate::error::ColumnError::OverBudget) without room.
    fn reserve(&self, bytes: u64) -> Result<Reservation>;
}
