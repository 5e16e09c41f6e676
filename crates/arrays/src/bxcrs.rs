//! BxCRS, bit-encoded extended compressed row storage: a pointer for every filled row, found by its rank in a bitmap.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, section 3.3. Arrays: `rptr_c`
//! (filled rows + 1), `compwrd` and `count1` (one a group of 31 rows), `cind` and `val` (one a cell).

use super::blocked::{Blocked, Names};
use super::pointers::Ranked;
use super::{Cells, Limits, Result, Scheme, Storage, Value};

/// Builds BxCRS. An error gives the bytes of bitmap and rank table above the limit.
pub(crate) fn build<V: Value>(cells: &Cells<V>, limits: &Limits) -> Result<Box<dyn Storage<V>>> {
    let names = Names { scheme: Scheme::Bxcrs, keys: "cind", pointers: "rptr_c" };
    let split = cells.shape().dimensions() - 1;
    Ok(Box::new(Blocked::<V, u32, Ranked>::new(names, cells, split, limits)?))
}
