//! Names of the algorithms.

use std::fmt;
use std::str::FromStr;

/// The order in which a radix sort takes the digits of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RadixAlgorithm {
    /// Least significant digit first: passes over all rows, each by one digit (Adinets and Merrill, 2022). Reads keys
    /// once more than passes move them.
    #[default]
    Lsd,
    /// Most significant digit first: one pass by the highest eight bits, then a segmented sort of its bins by the bits
    /// below (Stehle and Jacobsen, 2017). Reads keys twice more than passes move them; bins that fit into shared memory
    /// are sorted there, so few rows and keys of many bits take fewer passes.
    Msd,
}

impl RadixAlgorithm {
    /// All of them.
    pub const ALL: [RadixAlgorithm; 2] = [RadixAlgorithm::Lsd, RadixAlgorithm::Msd];
}

impl fmt::Display for RadixAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RadixAlgorithm::Lsd => "lsd",
            RadixAlgorithm::Msd => "msd",
        })
    }
}

impl FromStr for RadixAlgorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<RadixAlgorithm, String> {
        let mut all = RadixAlgorithm::ALL.into_iter();
        all.find(|algorithm| algorithm.to_string() == name)
            .ok_or_else(|| format!("no algorithm of the radix sort is named {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for algorithm in RadixAlgorithm::ALL {
            assert_eq!(algorithm.to_string().parse::<RadixAlgorithm>(), Ok(algorithm));
        }
        assert!("radix".parse::<RadixAlgorithm>().is_err());
    }
}
