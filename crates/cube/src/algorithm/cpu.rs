//! Names of the CPU's aggregation algorithms.

use std::fmt;

/// An aggregation algorithm of the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Source-based on one thread: every relevant base cell adds its value to all its targets (Meinke, listing 2).
    /// The measure that the others are compared with.
    Source,
    /// Source-based on all cores: chunks of pages have results of their own, which merge in the order of chunks.
    SourceParallel,
    /// Target-based on all cores: every target looks up its base cells among the sorted keys. Quick for few targets
    /// above few cells.
    Target,
    /// Contraction: facts are added up over classes of base elements that share their targets, then multiplied by the
    /// sparse weight matrix of one dimension after the other. Quick where base cells have many targets.
    Contract,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 4] =
        [Algorithm::Source, Algorithm::SourceParallel, Algorithm::Target, Algorithm::Contract];

    /// The name in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Source => "source",
            Algorithm::SourceParallel => "source-parallel",
            Algorithm::Target => "target",
            Algorithm::Contract => "contract",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
