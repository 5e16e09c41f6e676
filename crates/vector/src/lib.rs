//! Loops over vectors of 1,024 values, compiled for several instruction sets, of which the machine's is taken at run
//! time.
//!
//! The only `unsafe` of this crate is the call of a function that was compiled for instructions that the machine has
//! ([`dispatch`]).

mod dispatch;
mod select;
mod unpack;
mod widen;

pub use select::{SELECTED, select, within};
pub use unpack::{GROUP, unpack};
pub use widen::widen;

/// Values of a vector.
pub const ROWS: usize = 1024;
