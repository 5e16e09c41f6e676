//! The aggregation map of one dimension: base element → targets with weights.

use super::AggregateError;
use crate::matrix::SparseMatrix;

/// Targets of each base element of one dimension, as a compressed sparse matrix.
///
/// An entry makes the base element a member of the target, whatever its weight. SUM uses the weight; COUNT, AVG, MIN
/// and MAX use the membership. A base element is one member of a target, whatever the number of paths between them.
/// Source: aggregation map, Meinke 2.3.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetMap {
    pub(super) matrix: SparseMatrix<f64>,
}

impl TargetMap {
    /// A map of `bases` base elements from one list of (base element, weight) a target. The weights of entries that
    /// name one base element twice add up; the base element stays a member if they cancel.
    ///
    /// # Errors
    /// A base element beyond `bases`, a weight that is not finite.
    pub fn from_targets(bases: u32, targets: &[Vec<(u32, f64)>]) -> Result<TargetMap, AggregateError> {
        let rows = targets.iter().enumerate().map(|(target, entries)| merged(target, entries, bases));
        let rows: Vec<Vec<(u32, f64)>> = rows.collect::<Result<_, _>>()?;
        Ok(TargetMap { matrix: SparseMatrix::from_rows(bases, rows.iter().map(Vec::as_slice)).transposed() })
    }

    /// The map of a matrix: rows are base elements, columns are targets.
    ///
    /// # Errors
    /// A weight that is not finite.
    pub fn from_matrix(matrix: SparseMatrix) -> Result<TargetMap, AggregateError> {
        let Some(entry) = matrix.weights.iter().position(|weight| !weight.is_finite()) else {
            return Ok(TargetMap { matrix });
        };
        let (target, weight) = (matrix.columns[entry] as usize, matrix.weights[entry].to_string());
        let base = matrix.offsets.partition_point(|&offset| offset <= entry) as u32 - 1;
        Err(AggregateError::Weight { target, base, weight })
    }

    /// A map in which each of `bases` base elements is its own target.
    pub fn identity(bases: u32) -> TargetMap {
        let rows: Vec<[(u32, f64); 1]> = (0..bases).map(|base| [(base, 1.0)]).collect();
        TargetMap { matrix: SparseMatrix::from_rows(bases, rows.iter().map(|row| row.as_slice())) }
    }

    /// Number of base elements.
    pub fn bases(&self) -> u32 {
        self.matrix.rows() as u32
    }

    /// Number of targets.
    pub fn targets(&self) -> u32 {
        self.matrix.width
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.matrix.entries()
    }

    /// Targets of a base element, ascending, with their weights.
    pub fn targets_of(&self, base: u32) -> (&[u32], &[f64]) {
        self.matrix.row(base as usize)
    }

    /// One list of (base element, weight) a target, base elements ascending.
    pub fn lists(&self) -> Vec<Vec<(u32, f64)>> {
        let turned = self.matrix.transposed();
        let list = |target| {
            let (bases, weights) = turned.row(target);
            bases.iter().copied().zip(weights.iter().copied()).collect()
        };
        (0..turned.rows()).map(list).collect()
    }

    /// True if all weights are whole numbers.
    pub fn is_whole(&self) -> bool {
        self.matrix.weights.iter().all(|weight| weight.fract() == 0.0)
    }

    /// The greatest magnitude of a weight, at least 1.
    pub(crate) fn magnitude(&self) -> f64 {
        self.matrix.weights.iter().fold(1.0, |most, weight| most.max(weight.abs()))
    }
}

/// The entries of one target, each base element once.
fn merged(target: usize, entries: &[(u32, f64)], bases: u32) -> Result<Vec<(u32, f64)>, AggregateError> {
    let mut sorted = entries.to_vec();
    sorted.sort_by_key(|entry| entry.0);
    sorted.dedup_by(|next, held| {
        let same = next.0 == held.0;
        if same {
            held.1 += next.1;
        }
        same
    });
    for &(base, weight) in &sorted {
        if base >= bases {
            return Err(AggregateError::Base { target, base, bases });
        }
        if !weight.is_finite() {
            return Err(AggregateError::Weight { target, base, weight: weight.to_string() });
        }
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_one_base_element_add_up_and_stay_when_they_cancel() {
        let map = TargetMap::from_targets(3, &[vec![(2, 1.0), (0, 1.0), (2, -1.0)], vec![(0, 0.5)]]).unwrap();
        assert_eq!(map.lists(), [vec![(0, 1.0), (2, 0.0)], vec![(0, 0.5)]]);
        assert_eq!(map.targets_of(0), (&[0, 1][..], &[1.0, 0.5][..]));
        assert_eq!((map.bases(), map.targets(), map.entries()), (3, 2, 3));
        assert!(!map.is_whole());
    }

    #[test]
    fn bad_entries_are_refused() {
        let base = TargetMap::from_targets(3, &[vec![], vec![(3, 1.0)]]);
        assert_eq!(base, Err(AggregateError::Base { target: 1, base: 3, bases: 3 }));
        for weight in [f64::NAN, f64::INFINITY] {
            let error = TargetMap::from_targets(3, &[vec![(1, weight)]]).unwrap_err();
            assert_eq!(error, AggregateError::Weight { target: 0, base: 1, weight: weight.to_string() });
        }
        assert!(TargetMap::from_targets(1, &[vec![(0, f64::MAX), (0, f64::MAX)]]).is_err());
    }
}
