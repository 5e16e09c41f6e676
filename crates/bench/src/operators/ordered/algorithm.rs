//! Names of the algorithms of ordered aggregation, and the shape of their launches.
//!
//! Figures are milliseconds on one H200 (2026-11-23): counts of 2^28 keys of 32 bits, outputs zeroed and written among
//! them, with the best chunk and local size found.

use std::fmt;
use std::str::FromStr;

/// How ordered aggregation is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderedAlgorithm {
    /// One pass with decoupled look-back over tiles in registers ([`super::OrderedAggregation`]). No atomics, no
    /// memory but O(tiles); the fastest on all data of that size: 65,536 runs 0.37, all distinct 1.00.
    SinglePass,
    /// Kernels of the paper "Code fusion of prefix sum with ordered aggregation" ([`super::FusedAggregation`]).
    Fused(Fusion, Variant),
}

/// How many kernels do mapping, partial prefix sums, offset computation, offset addition and aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fusion {
    /// A kernel each: the paper's base. Moves a word a row six times beside the keys. 65,536 runs with a private
    /// variable 4.41.
    FiveKernels,
    /// Mapping, partial sums and offsets in one. Moves a word a row four times. The same 3.41.
    ThreeKernels,
    /// Offsets are added by the aggregation: a word a row is written and read once. The paper's winner. The same 2.67.
    TwoKernels,
    /// All in one: keys are read once and partial sums stay in shared memory, while blocks wait for those before
    /// them. The paper advises against its barriers; look-back makes it the fastest of the four. The same 1.28.
    OneKernel,
}

/// How rows are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// An atomic addition a row by a thread a row. The fastest variant where all keys are distinct, one kernel 1.67;
    /// the slowest where threads meet: two kernels at 65,536 runs 91.8.
    DirectAtomics,
    /// An atomic addition a row by a thread a chunk of rows. Neighbouring threads meet less than with direct atomics:
    /// two kernels at 65,536 runs 7.09, but 83 where these are skewed.
    ChunkedAtomics,
    /// A sum in registers, added when the run changes or the chunk ends. The fastest variant on runs of many rows:
    /// two kernels at 65,536 runs 2.67.
    PrivateVariable,
    /// Sums of a chunk's runs in an array; only the first and the last are added by atomics. Close to the private
    /// variable on long runs, two kernels at 65,536 runs 3.06, and faster where sums of distinct keys would all be
    /// atomic: two kernels 7.13 against 7.81.
    PrivateArray,
}

/// Rows of a thread, and threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FusedTuning {
    /// Rows of a chunk (the paper's *intent*), a power of two.
    pub chunk: u32,
    /// Threads of a block that have rows (the paper's *local size*), a power of two; a block has a warp at least.
    pub local: u32,
}

impl OrderedAlgorithm {
    /// All: the single pass, and every fusion with every variant.
    pub fn all() -> impl Iterator<Item = OrderedAlgorithm> {
        let fused = |fusion| Variant::ALL.into_iter().map(move |variant| OrderedAlgorithm::Fused(fusion, variant));
        std::iter::once(OrderedAlgorithm::SinglePass).chain(Fusion::ALL.into_iter().flat_map(fused))
    }
}

impl Fusion {
    /// All, from the least fused on.
    pub const ALL: [Fusion; 4] = [Fusion::FiveKernels, Fusion::ThreeKernels, Fusion::TwoKernels, Fusion::OneKernel];

    /// Number of kernels.
    pub fn kernels(self) -> u32 {
        match self {
            Fusion::FiveKernels => 5,
            Fusion::ThreeKernels => 3,
            Fusion::TwoKernels => 2,
            Fusion::OneKernel => 1,
        }
    }
}

impl Variant {
    /// All, in the paper's order.
    pub const ALL: [Variant; 4] =
        [Variant::DirectAtomics, Variant::ChunkedAtomics, Variant::PrivateVariable, Variant::PrivateArray];
}

impl fmt::Display for Fusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fusion::FiveKernels => "five_kernel",
            Fusion::ThreeKernels => "three_kernel",
            Fusion::TwoKernels => "two_kernel",
            Fusion::OneKernel => "one_kernel",
        })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Variant::DirectAtomics => "direct_atomics",
            Variant::ChunkedAtomics => "chunked_atomics",
            Variant::PrivateVariable => "private_variable",
            Variant::PrivateArray => "private_array",
        })
    }
}

/// `single_pass`, or the fusion and the variant with a stroke between them, as in `two_kernel/private_array`.
impl fmt::Display for OrderedAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderedAlgorithm::SinglePass => f.write_str("single_pass"),
            OrderedAlgorithm::Fused(fusion, variant) => write!(f, "{fusion}/{variant}"),
        }
    }
}

impl FromStr for OrderedAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<OrderedAlgorithm, String> {
        OrderedAlgorithm::all()
            .find(|algorithm| algorithm.to_string() == name)
            .ok_or_else(|| format!("no algorithm of ordered aggregation is named {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let names: Vec<String> = OrderedAlgorithm::all().map(|algorithm| algorithm.to_string()).collect();
        assert_eq!(
            (names.len(), names[0].as_str(), names[1].as_str()),
            (17, "single_pass", "five_kernel/direct_atomics")
        );
        for (name, algorithm) in names.iter().zip(OrderedAlgorithm::all()) {
            assert_eq!(name.parse(), Ok(algorithm));
        }
        assert!("two_kernel".parse::<OrderedAlgorithm>().is_err());
    }
}
