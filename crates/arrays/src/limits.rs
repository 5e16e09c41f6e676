//! Limits of what a scheme may take.

use super::{Result, Scheme, SchemeError};

/// Limits of construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of arrays that grow with the shape, not with the cells: pointers, bitmap and ranks.
    pub pointer_bytes: u64,
}

impl Default for Limits {
    /// 1 GiB of pointers.
    fn default() -> Self {
        Self { pointer_bytes: 1 << 30 }
    }
}

impl Limits {
    /// An error if `bytes` of pointer arrays for `blocks` blocks exceed the limit.
    pub(crate) fn check(&self, scheme: Scheme, blocks: u128, bytes: u128) -> Result<()> {
        let limit = self.pointer_bytes;
        match bytes <= u128::from(limit) {
            true => Ok(()),
            false => Err(SchemeError::Pointers { scheme, blocks, bytes, limit }),
        }
    }
}
