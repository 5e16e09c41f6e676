//! Names of all aggregation algorithms, those of the CPU and those of a device.

mod cpu;
mod device;
mod source_variant;

use std::fmt;
use std::str::FromStr;

pub use cpu::Algorithm;
pub use device::DeviceAlgorithm;
pub use source_variant::{Expansion, HASH_FUNCTIONS_MAX, MapPlace, Preaggregation, SourceVariant, UnknownVariant};

/// An aggregation algorithm that a query may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AlgorithmName {
    /// One of the CPU.
    Cpu(Algorithm),
    /// One of a device.
    Device(DeviceAlgorithm),
}

/// A name of no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no aggregation algorithm is named {name}{reason}; the CPU has {}; a device has gpu-contract, gpu-target and {}, \
     where {}",
    Algorithm::ALL.map(Algorithm::name).join(", "),
    SourceVariant::FORM,
    SourceVariant::parts(),
)]
pub struct UnknownAlgorithm {
    /// The name.
    pub name: String,
    /// The reason, in brackets, of a wrong name that begins as one of `gpu-source`; empty for others.
    pub reason: String,
}

impl From<Algorithm> for AlgorithmName {
    fn from(algorithm: Algorithm) -> AlgorithmName {
        AlgorithmName::Cpu(algorithm)
    }
}

impl From<DeviceAlgorithm> for AlgorithmName {
    fn from(algorithm: DeviceAlgorithm) -> AlgorithmName {
        AlgorithmName::Device(algorithm)
    }
}

impl fmt::Display for AlgorithmName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlgorithmName::Cpu(algorithm) => algorithm.fmt(out),
            AlgorithmName::Device(algorithm) => algorithm.fmt(out),
        }
    }
}

impl FromStr for AlgorithmName {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<AlgorithmName, UnknownAlgorithm> {
        if let Some(algorithm) = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name) {
            return Ok(AlgorithmName::Cpu(algorithm));
        }
        name.parse().map(AlgorithmName::Device).map_err(|error| UnknownAlgorithm {
            name: name.to_string(),
            reason: if name.starts_with("gpu-source") { format!(" ({})", error.reason) } else { String::new() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_as_they_print() {
        let devices = DeviceAlgorithm::all_variants(&[1, 64]).into_iter().map(AlgorithmName::Device);
        for algorithm in Algorithm::ALL.map(AlgorithmName::Cpu).into_iter().chain(devices) {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_all_names() {
        let error = |name: &str| name.parse::<AlgorithmName>().unwrap_err().to_string();
        let all = "the CPU has source, source-parallel, target, contract; a device has gpu-contract, gpu-target and \
                   gpu-source/<preaggregation>/<expansion>[/<map>]/h<functions>, where preaggregation is none, \
                   first-shared, shuffle, strided or match, expansion is thread, balanced, children, child-blocks, \
                   host-children or host-child-blocks, map is constant, shared or global, and functions is from 1 to \
                   12288";
        assert_eq!(error("gpu"), format!("no aggregation algorithm is named gpu; {all}"));
        let reason = "0 hash functions, and there are from 1 to 12288";
        let wrong = "gpu-source/none/thread/h0";
        assert_eq!(error(wrong), format!("no aggregation algorithm is named {wrong} ({reason}); {all}"));
    }
}
