//! Sparse arrays: keys of cells, and how the filled cells of a k-dimensional array are kept, found and added up.
//!
//! Source: Wang, *Sparse Array Representations and Some Selected Array Operations on GPUs*, chapters 3 and 4 ("the
//! thesis" in the files of this module). A scheme is built from sorted [`Cells`] by [`Scheme::build`] and used by the
//! trait [`Storage`]; [`device`] has those that kernels read. [`cube_operator`] aggregates by all combinations of
//! dimensions. [`key`] has the keys of cells that cubes use too.
//!
//! Invariants: every scheme gives the same answers; the map between tuples and index entries is a bijection; an empty
//! cell is not zero. Arrays that kernels read are plain arrays, named by [`Storage::arrays`].

mod bess;
mod blocked;
mod build;
mod bxcrs;
mod cells;
mod choice;
mod coordinate;
pub mod cube_operator;
pub mod device;
mod error;
pub mod formulas;
pub mod generate;
mod group_by;
mod hybrid;
pub mod key;
mod limits;
mod linear;
mod lockstep;
mod offset_value;
mod pointers;
mod ptcs;
pub mod random;
mod ranked_bitmap;
pub mod restore;
mod scheme;
mod shape;
mod sorted;
mod storage;
mod sub_array;
mod value;
mod xccs;
mod xcrs;

pub use build::convert;
pub use cells::Cells;
pub use choice::{Access, Candidate, SchemeChoice, choose};
pub use error::{Result, SchemeError};
pub use group_by::GroupBy;
pub(crate) use group_by::PrefixSums;
pub use limits::Limits;
pub use scheme::{Scheme, UnknownScheme};
pub use shape::Shape;
pub(crate) use storage::StoredKey;
pub use storage::{ArrayData, NamedArray, Sizes, Storage};
pub use sub_array::SubArray;
pub use value::Value;
