//! Hybrid: a pointer for every block of r - 1 trailing dimensions, and a bit-encoded key for each cell of a block.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 3.4. r = 2 keeps what xCRS
//! keeps; r = 1 has a pointer for every place. Arrays: `bptr` (blocks + 1), `bei` and `val` (one a cell). Keys take 32
//! bits, 64 or twice 64, as the trailing dimensions need.

use super::blocked::{Blocked, Names};
use super::pointers::Dense;
use super::{Cells, Limits, Result, Scheme, SchemeError, Storage, Value};

/// Builds hybrid for `r`. An error names an r that does not fit, too wide a key, or the bytes of pointers above the
/// limit.
pub(crate) fn build<V: Value>(cells: &Cells<V>, r: usize, limits: &Limits) -> Result<Box<dyn Storage<V>>> {
    let dimensions = cells.shape().dimensions();
    if r == 0 || r > dimensions {
        return Err(SchemeError::HybridRatio { r, dimensions });
    }
    let scheme = Scheme::Hybrid { r };
    let names = Names { scheme, keys: "bei", pointers: "bptr" };
    let split = dimensions - (r - 1);
    match cells.shape().bits(split..dimensions) {
        0..=32 => Ok(Box::new(Blocked::<V, u32, Dense>::new(names, cells, split, limits)?)),
        33..=64 => Ok(Box::new(Blocked::<V, u64, Dense>::new(names, cells, split, limits)?)),
        65..=128 => Ok(Box::new(Blocked::<V, [u64; 2], Dense>::new(names, cells, split, limits)?)),
        bits => Err(SchemeError::KeyWidth { scheme, bits }),
    }
}
