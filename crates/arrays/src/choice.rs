//! The choice of a scheme from statistics: predicted bytes first, then speed of the main access.
//!
//! Source: Wang, *Sparse Array Representations … on GPUs*, sections 4.4 (aggregation), 7.1
//! (storage), 7.2.1.2 (random access, updates) and 7.2.1.3 (sub-arrays). The thesis orders schemes for each
//! operation; the first of that order whose bytes stay near the smallest scheme's is chosen.

use super::formulas::{self, Statistics};
use super::{Cells, Limits, Result, Scheme, SchemeError, Value};

/// Bytes that a scheme may take, in percent of the smallest scheme's, to be chosen for its speed.
///
/// The bound is a choice, not a measurement. Section 7.1 finds the storage of xCRS comparable to that of BESS at a
/// sparsity of 90 % and worse at 99 %.
const BYTES_PERCENT_MAX: u128 = 150;

/// The main access to an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Values of single cells, many at a time.
    Random,
    /// Sub-arrays.
    SubArray,
    /// Aggregations in one scan.
    Aggregation,
    /// Insertions and removals.
    Update,
}

/// A scheme that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The scheme.
    pub scheme: Scheme,
    /// Predicted bytes, index and values; absent if the scheme does not take the array.
    pub bytes: Option<u128>,
}

/// The scheme that statistics call for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemeChoice {
    /// The scheme.
    pub scheme: Scheme,
    /// Predicted bytes, index and values.
    pub bytes: u128,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
    /// All schemes with their predicted bytes.
    pub candidates: Vec<Candidate>,
}

/// Chooses a scheme for `cells`. An error if no scheme takes the array, which an update of too wide a key may meet.
pub fn choose<V: Value>(cells: &Cells<V>, access: Access, limits: &Limits) -> Result<SchemeChoice> {
    choose_by(&Statistics::of(cells), access, limits)
}

/// Chooses a scheme from statistics alone.
pub fn choose_by(statistics: &Statistics, access: Access, limits: &Limits) -> Result<SchemeChoice> {
    let dimensions = statistics.shape.dimensions();
    let predicted = |scheme| Candidate { scheme, bytes: buildable_bytes(scheme, statistics, limits) };
    let candidates: Vec<Candidate> = Scheme::all(dimensions).into_iter().map(predicted).collect();
    let bytes_of =
        |scheme| candidates.iter().find(|candidate| candidate.scheme == scheme).and_then(|found| found.bytes);
    if access == Access::Update {
        let bits = statistics.shape.bits(0..dimensions);
        let bytes = bytes_of(Scheme::Ptcs).ok_or(SchemeError::KeyWidth { scheme: Scheme::Ptcs, bits })?;
        let reasons = vec!["ptcs alone inserts and removes cells".to_string()];
        return Ok(SchemeChoice { scheme: Scheme::Ptcs, bytes, reasons, candidates });
    }
    let smallest = candidates.iter().filter_map(|candidate| Some((candidate.bytes?, candidate.scheme))).min();
    // The coordinate scheme takes every shape.
    let (least, smallest) = smallest.unwrap_or((0, Scheme::Coordinate));
    let mut reasons = vec![format!("{smallest} is smallest with {least} bytes")];
    for (scheme, merit) in preferences(access, dimensions) {
        match bytes_of(scheme) {
            None => reasons.push(format!("{scheme} {merit}, but exceeds a limit of its keys or pointers")),
            Some(bytes) if bytes * 100 > least * BYTES_PERCENT_MAX => {
                reasons.push(format!("{scheme} {merit}, but takes {bytes} bytes, above {BYTES_PERCENT_MAX} % of that"));
            }
            Some(bytes) => {
                reasons.push(format!("{scheme} {merit} and takes {bytes} bytes"));
                return Ok(SchemeChoice { scheme, bytes, reasons, candidates });
            }
        }
    }
    Ok(SchemeChoice { scheme: smallest, bytes: least, reasons, candidates })
}

/// Predicted bytes of a scheme that can be built within the limits.
fn buildable_bytes(scheme: Scheme, statistics: &Statistics, limits: &Limits) -> Option<u128> {
    let pointers = formulas::pointer_bytes(scheme, &statistics.shape)?;
    let bytes = formulas::predicted(scheme, statistics)?;
    let addressable = scheme != Scheme::OffsetValue || statistics.offsets_fit();
    (pointers <= u128::from(limits.pointer_bytes) && addressable).then_some(bytes)
}

/// Schemes in the thesis's order of speed for an access, with what speaks for each.
fn preferences(access: Access, dimensions: usize) -> Vec<(Scheme, &'static str)> {
    let hybrid = Scheme::measured_hybrid(dimensions);
    match access {
        Access::Random => vec![
            (Scheme::Xcrs, "finds a cell within one row"),
            (Scheme::Bxcrs, "finds a cell within one row, by a bitmap"),
            (hybrid, "finds a cell within one block"),
            (Scheme::Bess, "finds a cell by one binary search"),
        ],
        Access::SubArray => vec![
            (hybrid, "visits the blocks of a sub-array alone"),
            (Scheme::Xcrs, "visits the rows of a sub-array alone"),
            (Scheme::Bxcrs, "visits the filled rows of a sub-array alone"),
            (Scheme::Bess, "skips from run to run of a sub-array"),
        ],
        Access::Aggregation | Access::Update => vec![
            (Scheme::Bess, "compares groups by one key"),
            (hybrid, "compares groups by one key within a block"),
            (Scheme::Coordinate, "takes every shape"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    /// Cells at every `step`-th place of a shape.
    fn every(sizes: &[u32], step: u32) -> Cells<i64> {
        let shape = Shape::new(sizes).unwrap();
        let places = shape.places().unwrap() as u32;
        let tuple = |place: u32| {
            let mut rest = place;
            let mut tuple: Vec<u32> = sizes.iter().rev().map(|size| (rest % size, rest /= size).0).collect();
            tuple.reverse();
            tuple
        };
        let tuples: Vec<u32> = (0..places).step_by(step as usize).flat_map(tuple).collect();
        let values = vec![1; tuples.len() / sizes.len()];
        Cells::new(shape, tuples, values).unwrap()
    }

    fn chosen(cells: &Cells<i64>, access: Access) -> Scheme {
        choose(cells, access, &Limits::default()).unwrap().scheme
    }

    #[test]
    fn rows_of_many_cells_take_pointers_and_sparse_rows_do_not() {
        assert_eq!(chosen(&every(&[20, 20, 100], 3), Access::Random), Scheme::Xcrs);
        assert_eq!(chosen(&every(&[20, 20, 100], 99), Access::Random), Scheme::Hybrid { r: 3 });
        assert_eq!(chosen(&every(&[1000, 5], 499), Access::Random), Scheme::Bess);
        assert_eq!(chosen(&every(&[40, 40, 20, 8], 9), Access::SubArray), Scheme::Hybrid { r: 3 });
    }

    #[test]
    fn other_accesses_have_their_scheme() {
        let cells = every(&[20, 20, 100], 3);
        assert_eq!(chosen(&cells, Access::Aggregation), Scheme::Bess);
        assert_eq!(chosen(&cells, Access::Update), Scheme::Ptcs);
    }

    #[test]
    fn reasons_name_what_was_passed_over() {
        let choice = choose(&every(&[20, 20, 100], 3), Access::Random, &Limits { pointer_bytes: 100 }).unwrap();
        assert_eq!(choice.scheme, Scheme::Bess);
        assert!(choice.reasons[1].starts_with("xcrs finds a cell within one row, but exceeds"), "{:?}", choice.reasons);
        assert!(
            choice.candidates.iter().any(|candidate| candidate.scheme == Scheme::Xcrs && candidate.bytes.is_none())
        );
    }

    #[test]
    fn shapes_beyond_128_bits_leave_coordinates() {
        let wide = Cells::new(Shape::new([u32::MAX; 5]).unwrap(), vec![7; 5], vec![1i64]).unwrap();
        assert_eq!(chosen(&wide, Access::Aggregation), Scheme::Coordinate);
        let error = choose(&wide, Access::Update, &Limits::default()).unwrap_err();
        assert_eq!(error, SchemeError::KeyWidth { scheme: Scheme::Ptcs, bits: 160 });
    }
}
