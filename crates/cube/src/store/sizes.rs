//! Bytes of the facts' index in every storage scheme, measured by encoding its arrays; the choice among them.
//!
//! The formulas of the thesis ([`warpcube_arrays::formulas`]) predict arrays of whole words. Pages are packed, and the
//! order changes: ascending keys take a byte or two a cell, a pointer for every row takes its bits for empty rows too.

use warpcube_arrays::{Scheme, SchemeError};

use super::error::{Result, StoreError};
use super::{StoredCube, facts_file, index};
use crate::facts::{Keys, Segment};

/// A scheme is chosen before BESS where its index has at most this share of the bytes of BESS, in percent.
///
/// The bound is a choice, not a measurement: BESS is read without arithmetic, and other schemes are turned into its
/// keys when a cube is opened.
const PERCENT_MAX: u64 = 90;

/// Bytes of the index in one scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemeSize {
    /// The scheme.
    pub scheme: Scheme,
    /// Bytes of its pages, or why it does not take the facts.
    pub bytes: Result<u64, SchemeError>,
}

/// The bytes that the index of a cube's facts takes in every scheme. Builds each of them in memory.
///
/// # Errors
/// [`StoreError::Contradiction`] for arrays without an encoding, which arrays of words have.
pub fn scheme_sizes(cube: &StoredCube) -> Result<Vec<SchemeSize>> {
    let dimensions = cube.model.dimensions().len();
    let facts = cube.facts.merged();
    let size = |scheme| Ok(SchemeSize { scheme, bytes: bytes(cube, facts.base(), scheme)? });
    Scheme::all(dimensions).into_iter().map(size).collect()
}

fn bytes(cube: &StoredCube, facts: &Segment, scheme: Scheme) -> Result<Result<u64, SchemeError>> {
    let index = match index::of(scheme, &cube.model, facts) {
        Ok(index) => index,
        Err(error) => return Ok(Err(error)),
    };
    let measured = |words: &[u64]| {
        let reason =
            |error| StoreError::Contradiction { cube: cube.model.name().to_owned(), reason: format!("{error}") };
        facts_file::array_bytes(words).map_err(reason)
    };
    let total = match (index, facts.keys()) {
        (Some(index), _) => index.of_cells.iter().chain(&index.pointers).map(|(_, words)| measured(words)).sum(),
        (None, Keys::Narrow(keys)) => measured(keys),
        (None, Keys::Wide(keys)) => {
            let word = |shift: u32| keys.iter().map(|key| (key >> shift) as u64).collect::<Vec<u64>>();
            Ok(measured(&word(0))? + measured(&word(u64::BITS))?)
        }
    };
    total.map(Ok)
}

/// The scheme that the measured bytes call for: the smallest, if it is clearly smaller than BESS.
pub fn chosen(sizes: &[SchemeSize]) -> Scheme {
    let known = || sizes.iter().filter_map(|size| Some((*size.bytes.as_ref().ok()?, size.scheme)));
    let bess = known().find(|(_, scheme)| *scheme == Scheme::Bess).map_or(u64::MAX, |(bytes, _)| bytes);
    match known().min_by_key(|(bytes, _)| *bytes) {
        Some((bytes, scheme)) if u128::from(bytes) * 100 <= u128::from(bess) * u128::from(PERCENT_MAX) => scheme,
        _ => Scheme::Bess,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_scheme_has_to_be_clearly_smaller() {
        let sizes = |xcrs: u64| {
            let of = |scheme, bytes| SchemeSize { scheme, bytes };
            let refused = Err(SchemeError::NoFile { scheme: Scheme::Ptcs });
            [of(Scheme::Bess, Ok(100)), of(Scheme::Xcrs, Ok(xcrs)), of(Scheme::Ptcs, refused)]
        };
        assert_eq!((chosen(&sizes(90)), chosen(&sizes(91))), (Scheme::Xcrs, Scheme::Bess));
        assert_eq!(chosen(&[]), Scheme::Bess);
    }
}
