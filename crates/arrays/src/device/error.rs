//! Errors of storage schemes on a device.

use warpcube_gpu::GpuError;

use crate::cube_operator::Way;
use crate::{Scheme, SchemeError};

/// Result of an operation on a storage scheme on a device.
pub type Result<T, E = DeviceSchemeError> = std::result::Result<T, E>;

/// An error of a storage scheme on a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceSchemeError {
    /// The scheme has no kernels.
    #[error("scheme {scheme} is not on the device: convert the array to bess, xcrs, bxcrs or hybrid:r")]
    Scheme {
        /// The scheme.
        scheme: Scheme,
    },
    /// Kernels number cells in 32 bits.
    #[error("an array on the device has fewer than 2^32 cells, not {cells}: use the CPU")]
    Cells {
        /// Cells of the array.
        cells: usize,
    },
    /// Kernels add in 64 bits.
    #[error("sums may pass 64 bits: the magnitudes of all cells sum to {magnitude}; aggregate on the CPU")]
    Sums {
        /// Sum of the magnitudes of all cells.
        magnitude: u128,
    },
    /// A plan of a CUBE with tables.
    #[error("a CUBE on the device sorts; its plan has {way:?}: plan with the costs of a device")]
    Way {
        /// How a run finds groups.
        way: Way,
    },
    /// Coordinates or bounds outside of the shape.
    #[error(transparent)]
    Array(#[from] SchemeError),
    /// A device that fails.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}
