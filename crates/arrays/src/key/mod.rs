//! Keys of cells: the coordinates of a cell in the bits of one integer, the first dimension highest (BESS).
//!
//! [`KeyLayout`] says where each coordinate stands; a [`Key`] is the integer. Facts, storage schemes and the device
//! share both.

mod layout;
mod word;

pub use layout::{DIMENSIONS_MAX, KEY_BITS_MAX, KeyError, KeyLayout, coordinate_bits};
pub use word::Key;

/// One tuple of coordinates; as many entries as there are dimensions count.
pub type Tuple = [u32; DIMENSIONS_MAX];
