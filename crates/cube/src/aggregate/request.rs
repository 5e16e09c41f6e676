//! The request of an aggregation, and its report.

use super::{Algorithm, Decision};

/// Most targets of an area unless the caller says otherwise.
pub const TARGETS_MAX: u64 = 100_000_000;

/// Settings of one aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The algorithm; the cost model chooses if absent.
    pub algorithm: Option<Algorithm>,
    /// Most targets of the area, filled or not.
    pub targets_max: u64,
    /// Sizes that do not change results beyond the last bits of sums of doubles.
    pub tuning: Tuning,
}

impl Default for Request {
    fn default() -> Request {
        Request { algorithm: None, targets_max: TARGETS_MAX, tuning: Tuning::default() }
    }
}

impl Request {
    /// A request for one algorithm.
    pub fn by(algorithm: Algorithm) -> Request {
        Request { algorithm: Some(algorithm), ..Request::default() }
    }
}

/// Sizes of work units and accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Least cells or entries of a chunk, the unit of parallel work.
    pub chunk_cells: usize,
    /// Most places of an array of sums; larger results are hashed.
    pub dense_places: u64,
}

impl Default for Tuning {
    /// Chunks of 65,536 cells: 31 of a cube of 2 million cells. Arrays of up to 4,194,304 places: 64 MB of sums.
    fn default() -> Tuning {
        Tuning { chunk_cells: 1 << 16, dense_places: 1 << 22 }
    }
}

/// The report of an aggregation.
#[derive(Debug, Clone, PartialEq)]
pub struct AggregateReport {
    /// Where and how it ran.
    pub decision: Decision,
    /// Number type of each measure's sums.
    pub arithmetic: Vec<&'static str>,
    /// Filled targets.
    pub filled_targets: u64,
    /// Additions that the algorithm performed, over all measures; absent where they are not counted, as on a device.
    pub additions: Option<u64>,
}
