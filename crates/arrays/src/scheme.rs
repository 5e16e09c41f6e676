//! Names of the storage schemes.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::key::DIMENSIONS_MAX;

/// Names that parse, for messages.
const NAMES: &str = "coordinate, offset-value, bess, xcrs, xccs, bxcrs, hybrid:r, ptcs";

/// A storage scheme. The comments give the thesis's costs: a lookup, and when the scheme is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// One array of coordinates a dimension. Lookup `O(k log N)`; fits every shape (section 2.1.1).
    Coordinate,
    /// One row-major offset a cell. Lookup `O(log N)`; divisions recover coordinates (section 2.1.2).
    OffsetValue,
    /// One bit-encoded key a cell. Lookup `O(log N)`; smallest, and the fastest to aggregate (sections 2.1.3, 4.4).
    Bess,
    /// A pointer for every row. Lookup `O(log D_0)`, the fastest; pointers outgrow sparse data (section 3.2).
    Xcrs,
    /// xCRS with the dimensions in reverse order: columns in place of rows (section 3.2.1).
    Xccs,
    /// A pointer for every filled row, found by a bitmap with ranks. As xCRS in less space (section 3.3).
    Bxcrs,
    /// A pointer for every block of r - 1 dimensions, keys within: between xCRS (r = 2) and BESS (section 3.4).
    Hybrid {
        /// Dimensions that remain of the array once each block is one; 1 to k.
        r: usize,
    },
    /// A PATRICIA trie of bit-encoded keys. Largest and slowest; cells can be inserted and removed (section 3.5).
    Ptcs,
}

/// A text that names no scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no storage scheme: expected one of {NAMES}")]
pub struct UnknownScheme {
    /// The text.
    pub name: String,
}

impl Scheme {
    /// Every scheme of an array of `dimensions`, hybrid for each r from 1.
    pub fn all(dimensions: usize) -> Vec<Self> {
        let mut all = vec![Self::Coordinate, Self::OffsetValue, Self::Bess, Self::Xcrs, Self::Xccs, Self::Bxcrs];
        all.extend((1..=dimensions).map(|r| Self::Hybrid { r }));
        all.push(Self::Ptcs);
        all
    }

    /// The r at which section 7.2 measures hybrid, `⌈k / 2⌉ + 1`; at most k.
    pub fn measured_hybrid(dimensions: usize) -> Self {
        Self::Hybrid { r: (dimensions.div_ceil(2) + 1).min(dimensions) }
    }
}

impl Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Coordinate => "coordinate",
            Self::OffsetValue => "offset-value",
            Self::Bess => "bess",
            Self::Xcrs => "xcrs",
            Self::Xccs => "xccs",
            Self::Bxcrs => "bxcrs",
            Self::Ptcs => "ptcs",
            Self::Hybrid { r } => return formatter.pad(&format!("hybrid:{r}")),
        };
        formatter.pad(name)
    }
}

impl FromStr for Scheme {
    type Err = UnknownScheme;

    /// Parses what [`Display`] prints; case is ignored.
    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        let unknown = || UnknownScheme { name: name.to_string() };
        let lower = name.to_ascii_lowercase();
        if let Some(r) = lower.strip_prefix("hybrid:") {
            let r = r.parse().ok().filter(|r| (1..=DIMENSIONS_MAX).contains(r));
            return r.map(|r| Self::Hybrid { r }).ok_or_else(unknown);
        }
        Self::all(0).into_iter().find(|scheme| scheme.to_string() == lower).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for scheme in Scheme::all(32) {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
        }
        assert_eq!("BESS".parse(), Ok(Scheme::Bess));
        assert_eq!("hybrid:3".parse(), Ok(Scheme::Hybrid { r: 3 }));
    }

    #[test]
    fn other_names_are_refused_with_the_list() {
        for name in ["", "crs", "hybrid", "hybrid:", "hybrid:0", "hybrid:33", "hybrid:-1", "bess "] {
            let error = name.parse::<Scheme>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{name}' is no storage scheme")) && error.contains("ptcs"), "{error}");
        }
    }

    #[test]
    fn the_r_of_the_measurements() {
        let r = [1, 2, 3, 4, 8].map(Scheme::measured_hybrid);
        assert_eq!(r, [1, 2, 3, 3, 5].map(|r| Scheme::Hybrid { r }));
    }
}
