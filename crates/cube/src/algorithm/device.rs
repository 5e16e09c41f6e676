//! All algorithms of the device by name.

use std::fmt;
use std::str::FromStr;

use super::source_variant::{SourceVariant, UnknownVariant};

/// An aggregation algorithm of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceAlgorithm {
    /// Contraction by sparse weight matrices: `gpu-contract`.
    Contract,
    /// Target-based: `gpu-target`.
    Target,
    /// A variant of the source-based algorithm, by the variant's name.
    Source(SourceVariant),
}

impl DeviceAlgorithm {
    /// Contraction, target-based, and for each number of hash functions every pair of preaggregation and expansion of
    /// the source-based algorithm.
    pub fn all_variants(hash_functions: &[u32]) -> Vec<DeviceAlgorithm> {
        let pairs = hash_functions.iter().flat_map(|functions| SourceVariant::pairs(*functions));
        [DeviceAlgorithm::Contract, DeviceAlgorithm::Target]
            .into_iter()
            .chain(pairs.map(DeviceAlgorithm::Source))
            .collect()
    }
}

impl fmt::Display for DeviceAlgorithm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceAlgorithm::Contract => out.write_str("gpu-contract"),
            DeviceAlgorithm::Target => out.write_str("gpu-target"),
            DeviceAlgorithm::Source(variant) => variant.fmt(out),
        }
    }
}

impl FromStr for DeviceAlgorithm {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<DeviceAlgorithm, UnknownVariant> {
        match name {
            "gpu-contract" => Ok(DeviceAlgorithm::Contract),
            "gpu-target" => Ok(DeviceAlgorithm::Target),
            _ if name.starts_with("gpu-source") => name.parse().map(DeviceAlgorithm::Source),
            _ => {
                let reason = "there are gpu-contract, gpu-target and the variants of gpu-source".to_string();
                Err(UnknownVariant { name: name.to_string(), reason })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_as_they_print() {
        let all = DeviceAlgorithm::all_variants(&[1, 64]);
        assert_eq!(all.len(), 2 + 2 * 29);
        for algorithm in all {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let error = "contract".parse::<DeviceAlgorithm>().unwrap_err().to_string();
        assert!(error.ends_with("there are gpu-contract, gpu-target and the variants of gpu-source"), "{error}");
    }
}
