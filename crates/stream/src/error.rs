//! Errors of stream cubes.

use warpcube_gpu::GpuError;

/// Most dimensions: a warp has a lane for each level, the root's included.
pub const DIMENSIONS_MAX: usize = 31;
/// Most measures.
pub const MEASURES_MAX: usize = 8;

/// Result of an operation on a stream cube.
pub type Result<T> = std::result::Result<T, StreamError>;

/// An error of a stream cube.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StreamError {
    /// Too few or too many dimensions.
    #[error("a stream cube has 1 to {DIMENSIONS_MAX} dimensions, not {count}")]
    Dimensions {
        /// Their number.
        count: usize,
    },
    /// Two dimensions of one name, or a dimension twice in an order or a sub-cube.
    #[error("dimension '{name}' is named twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A name or a number that no dimension has.
    #[error("no dimension is called '{name}'; there are {known}")]
    UnknownDimension {
        /// The name.
        name: String,
        /// The names of all dimensions.
        known: String,
    },
    /// An order that leaves dimensions out.
    #[error("the order names {given} of {dimensions} dimensions; it has to name all")]
    Order {
        /// Dimensions that it names.
        given: usize,
        /// All dimensions.
        dimensions: usize,
    },
    /// A dimension without values, or with more than 32 bits number.
    #[error("dimension '{name}' has a cardinality of {cardinality}; it is 1 to 2^32")]
    Cardinality {
        /// The dimension.
        name: String,
        /// Its cardinality.
        cardinality: u64,
    },
    /// Too few or too many measures.
    #[error("a stream cube has 1 to {MEASURES_MAX} measures, not {count}")]
    Measures {
        /// Their number.
        count: usize,
    },
    /// A measure of a column of values that tuples do not have.
    #[error("measure {measure} is of value {value}; tuples have {values} values")]
    MeasureValue {
        /// The measure's number.
        measure: usize,
        /// The column it names.
        value: usize,
        /// Columns of values.
        values: usize,
    },
    /// A batch with other columns than the schema has.
    #[error("tuples have {attributes} attributes and {values} values; the cube has {dimensions} and {expected}")]
    Columns {
        /// Columns of attributes.
        attributes: usize,
        /// Columns of values.
        values: usize,
        /// Dimensions of the schema.
        dimensions: usize,
        /// Values of the schema.
        expected: usize,
    },
    /// Columns of a batch that differ in length.
    #[error("a column of the batch has {length} rows; the first one has {rows}")]
    Ragged {
        /// Its rows.
        length: usize,
        /// Those of the first column.
        rows: usize,
    },
    /// An attribute past its dimension's cardinality.
    #[error("row {row}: dimension '{name}' has value {value}; its cardinality is {cardinality}")]
    Attribute {
        /// The first such row, counted from 0.
        row: u64,
        /// The first such dimension of it.
        name: String,
        /// The value.
        value: u32,
        /// The dimension's cardinality.
        cardinality: u64,
    },
    /// More rows or nodes than 32 bits number.
    #[error("a tree of {count} {what}; it has fewer than 2^32")]
    TooMany {
        /// Their number.
        count: u64,
        /// Rows or nodes.
        what: &'static str,
    },
    /// A sum or a number of tuples that leaves 64 bits.
    #[error("measure {measure}: a sum leaves the range of 64 bits")]
    Overflow {
        /// The measure's number.
        measure: usize,
    },
    /// A query with more or fewer conditions than there are dimensions.
    #[error("query {query} has {given} conditions; the cube has {dimensions} dimensions")]
    Conditions {
        /// The query's number.
        query: usize,
        /// Its conditions.
        given: usize,
        /// Dimensions of the cube.
        dimensions: usize,
    },
    /// Trees or batches of another schema or another device.
    #[error("{what} belongs to another {owner}")]
    Other {
        /// What is mixed up.
        what: &'static str,
        /// A schema or a device.
        owner: &'static str,
    },
    /// A device that fails.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}
