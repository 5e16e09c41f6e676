//! Errors of storage schemes. Each names the shape, the dimension or the cell, and what the caller can change.

use super::Scheme;
use crate::cube_operator::asked::{Algorithm, CUBE_DIMENSIONS_MAX};
use crate::key::DIMENSIONS_MAX;

/// Result of an operation on a storage scheme.
pub type Result<T> = std::result::Result<T, SchemeError>;

/// An error of a storage scheme. Dimensions and cells are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// The number of dimensions is outside 1..=32.
    #[error("an array has 1 to {DIMENSIONS_MAX} dimensions, not {found}")]
    Dimensions {
        /// Dimensions asked for.
        found: usize,
    },
    /// A dimension without elements holds no cell.
    #[error("dimension {dimension} has size 0: a dimension has at least one element")]
    EmptyDimension {
        /// The dimension.
        dimension: usize,
    },
    /// The product of the sizes exceeds 128 bits.
    #[error("the sizes of the {dimensions} dimensions multiply to more than 2^128 - 1 cells: remove or shrink some")]
    TooManyPlaces {
        /// Dimensions of the shape.
        dimensions: usize,
    },
    /// A list of coordinates is no whole number of tuples, or values are more or fewer than tuples.
    #[error("{coordinates} coordinates of {dimensions} dimensions do not belong to {values} cells")]
    Lengths {
        /// Length of the flat list of coordinates.
        coordinates: usize,
        /// Dimensions of the shape.
        dimensions: usize,
        /// Cells expected.
        values: usize,
    },
    /// A coordinate is at or above the size of its dimension.
    #[error("cell {cell}: coordinate {coordinate} of dimension {dimension} is outside 0..{size}")]
    Outside {
        /// Position of the cell in the list.
        cell: usize,
        /// The dimension.
        dimension: usize,
        /// The coordinate found.
        coordinate: u32,
        /// Size of the dimension.
        size: u32,
    },
    /// Cells are not in ascending row-major order.
    #[error("cell {cell} {coordinates:?} sorts before the cell in front of it: sort the cells, first dimension first")]
    Unsorted {
        /// Position of the cell in the list.
        cell: usize,
        /// Coordinates of the cell.
        coordinates: Vec<u32>,
    },
    /// Two cells have the same coordinates.
    #[error("cell {coordinates:?} is given twice: fold its values first")]
    Duplicate {
        /// Coordinates of the cell.
        coordinates: Vec<u32>,
    },
    /// A sub-array names a dimension that the shape lacks.
    #[error("there is no dimension {dimension}: the array has {dimensions}, counted from 0")]
    NoDimension {
        /// The dimension named.
        dimension: usize,
        /// Dimensions of the shape.
        dimensions: usize,
    },
    /// Bounds of a sub-array are reversed or outside of the dimension.
    #[error("bounds {low}..={high} of dimension {dimension} do not lie in order within 0..{size}")]
    Bounds {
        /// The dimension.
        dimension: usize,
        /// Lowest coordinate asked for.
        low: u32,
        /// Highest coordinate asked for.
        high: u32,
        /// Size of the dimension.
        size: u32,
    },
    /// The r of a hybrid scheme does not fit the dimensions of the array.
    #[error("hybrid:{r} needs r between 1 and the {dimensions} dimensions of the array")]
    HybridRatio {
        /// The r asked for.
        r: usize,
        /// Dimensions of the shape.
        dimensions: usize,
    },
    /// Bit-encoded keys exceed 128 bits.
    #[error("keys of scheme {scheme} take {bits} bits, more than 128: use another scheme or fewer dimensions")]
    KeyWidth {
        /// The scheme.
        scheme: Scheme,
        /// Bits of one key.
        bits: u32,
    },
    /// Offsets exceed what partitions of 2^64 places can address.
    #[error("scheme {scheme} addresses at most 2^64 partitions of 2^64 places: use bess or coordinate")]
    OffsetWidth {
        /// The scheme.
        scheme: Scheme,
    },
    /// The pointer arrays of a scheme exceed their budget.
    #[error(
        "pointer arrays of scheme {scheme} take {bytes} bytes for {blocks} blocks, more than the limit of {limit}: \
             use bess, or hybrid with a larger r"
    )]
    Pointers {
        /// The scheme.
        scheme: Scheme,
        /// Rows or blocks, filled or not.
        blocks: u128,
        /// Bytes of the arrays.
        bytes: u128,
        /// The limit in bytes.
        limit: u64,
    },
    /// The bytes of pointer arrays do not fit 128 bits.
    #[error("pointer arrays of scheme {scheme} take more than 2^128 bytes: use coordinate or bess")]
    PointersOverflow {
        /// The scheme.
        scheme: Scheme,
    },
    /// A trie is no scheme of files.
    #[error(
        "{scheme} is no scheme of files: its links serve changes in memory, and a cube's file is replaced whole; bess \
         stores the same keys"
    )]
    NoFile {
        /// The scheme.
        scheme: Scheme,
    },
    /// A trie numbers its nodes in 32 bits.
    #[error("scheme ptcs holds at most {limit} cells, not {cells}: use bess")]
    TrieSize {
        /// Cells asked for.
        cells: usize,
        /// Most cells of a trie.
        limit: usize,
    },
    /// The scheme does not change which cells are filled.
    #[error("scheme {scheme} cannot {operation} cells once it is built: convert the array to ptcs, or build it anew")]
    Fixed {
        /// The scheme.
        scheme: Scheme,
        /// What was asked for, as a verb: "insert", "remove".
        operation: &'static str,
    },
    /// A sum exceeds the range of its value type.
    #[error("the sum of group {group:?} of dimensions {dimensions:?} exceeds 64 bits")]
    SumOverflow {
        /// Dimensions of the group-by.
        dimensions: Vec<usize>,
        /// Coordinates of the group, one a dimension of the group-by.
        group: Vec<u32>,
    },
    /// A CUBE of too many dimensions.
    #[error("a CUBE has up to {CUBE_DIMENSIONS_MAX} dimensions (65,536 cuboids), not {found}: name fewer")]
    CubeDimensions {
        /// Dimensions asked for.
        found: usize,
    },
    /// A CUBE names a dimension twice.
    #[error("dimension {dimension} is named twice")]
    Repeated {
        /// The dimension.
        dimension: usize,
    },
    /// Keys, values and counts of a CUBE are not as many.
    #[error("{keys} keys do not belong to {values} values and their counts")]
    CubeRows {
        /// Keys given.
        keys: usize,
        /// Values given.
        values: usize,
    },
    /// A CUBE numbers rows in 32 bits.
    #[error("a CUBE takes fewer than 2^32 rows, not {rows}: aggregate parts of them first")]
    TooManyRows {
        /// Rows given.
        rows: usize,
    },
    /// The algorithm is not there where the CUBE runs.
    #[error("a CUBE by algorithm {algorithm} runs on the CPU alone: use auto, paths or smallest-parent")]
    NoAlgorithm {
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// A plan was made for rows of another layout.
    #[error("the plan of a CUBE was made for keys of another layout: make it for these rows")]
    OtherLayout,
    /// A generated array cannot hold the cells asked for.
    #[error("{cells} cells at sparsity {sparsity} are no array: at least one cell, a sparsity in 0..1")]
    Specification {
        /// Cells asked for.
        cells: usize,
        /// Share of empty places asked for, as text.
        sparsity: String,
    },
    /// An array of a given shape has fewer places than cells.
    #[error("{cells} cells do not fit an array of {places} places")]
    Crowded {
        /// Cells asked for.
        cells: usize,
        /// Places of the shape.
        places: u128,
    },
}

impl SchemeError {
    /// The error of an array of `count` dimensions in reverse order, with the numbers of their order.
    pub(crate) fn reversed(mut self, count: usize) -> Self {
        if let Self::SumOverflow { dimensions, .. } = &mut self {
            dimensions.iter_mut().for_each(|dimension| *dimension = count - 1 - *dimension);
        }
        self
    }
}
