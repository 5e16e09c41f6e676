//! What is asked of a CUBE: rules, the algorithm, and how many dimensions there may be.

use std::fmt;

/// Most dimensions of a CUBE: 65,536 cuboids.
pub const CUBE_DIMENSIONS_MAX: usize = 16;

/// A rule of aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The sum of values.
    Sum,
    /// The number of source rows.
    Count,
    /// The least value.
    Min,
    /// The largest value.
    Max,
    /// The sum over the number of source rows.
    Avg,
}

/// How the groups of all cuboids are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Whatever costs least for each cuboid.
    Auto,
    /// The cuboid of all dimensions, sorted anew for each of the fewest paths (Wang, algorithm 8).
    Paths,
    /// Each cuboid by itself, from the smallest one of one dimension more, sorted where its order is no prefix.
    SmallestParent,
    /// Each cuboid from its smallest parent by a table with an entry for each possible key; by hashing where that is
    /// too large.
    Dense,
    /// Each cuboid from its smallest parent by hashing.
    Hash,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Auto => "auto",
            Algorithm::Paths => "paths",
            Algorithm::SmallestParent => "smallest-parent",
            Algorithm::Dense => "dense",
            Algorithm::Hash => "hash",
        })
    }
}
