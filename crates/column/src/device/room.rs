//! Who grants device memory to columns.

use warpcube_gpu::Reservation;

use crate::error::Result;

/// Grants device memory for segments; residency evicts other columns for it.
pub(crate) trait Room: Sync {
    /// Reserves `bytes` or says why not.
    fn reserve(&self, bytes: u64) -> Result<Reservation>;
}
