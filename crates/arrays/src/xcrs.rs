//! xCRS, extended compressed row storage: a pointer for every row, filled or not, and the column of each cell.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 3.2. A row is one tuple of
//! all dimensions but the last. Arrays: `rptr` (rows + 1), `cind` and `val` (one a cell).

use super::blocked::{Blocked, Names};
use super::pointers::Dense;
use super::{Cells, Limits, Result, Scheme, Storage, Value};

/// Builds xCRS. An error gives the bytes of row pointers above the limit.
pub(crate) fn build<V: Value>(cells: &Cells<V>, limits: &Limits) -> Result<Box<dyn Storage<V>>> {
    let names = Names { scheme: Scheme::Xcrs, keys: "cind", pointers: "rptr" };
    let split = cells.shape().dimensions() - 1;
    Ok(Box::new(Blocked::<V, u32, Dense>::new(names, cells, split, limits)?))
}
