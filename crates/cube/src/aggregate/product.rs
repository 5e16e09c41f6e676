//! The product of sums over several dimensions with the sparse weight matrix of one dimension.

use rayon::prelude::*;

use super::monoid::Monoid;
use super::products::Product;
use super::sums::{Scatter, Tensor, is_dense};
use super::{AggregateError, Progress, Tuning};
use crate::matrix::SparseMatrix;

/// Places that one thread multiplies at a time.
const PART_PLACES: usize = 1 << 13;
/// Results between two looks at the wish to stop.
const POLL_RESULTS: usize = 1 << 10;

impl<M: Monoid> Tensor<M> {
    /// Multiplies a dimension by its matrix class × target; gives the number of additions, too.
    pub(crate) fn multiplied(
        self,
        step: &Product,
        matrix: &SparseMatrix<M::Weight>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(Tensor<M>, u64), AggregateError> {
        let places = step.places();
        match self {
            Tensor::Dense { values, filled } if is_dense(places, values.len() as u64, tuning) => {
                let additions = step.additions();
                Ok((dense(&values, &filled, step, matrix, progress)?, additions))
            }
            tensor => sparse(&tensor.into_entries(), step, matrix, places, tuning, progress),
        }
    }
}

/// Every run of `inner` results gathers the runs of its classes, in their order.
fn dense<M: Monoid>(
    values: &[M],
    filled: &[bool],
    step: &Product,
    matrix: &SparseMatrix<M::Weight>,
    progress: &Progress,
) -> Result<Tensor<M>, AggregateError> {
    let (inner, width, classes) = (step.inner as usize, matrix.width as usize, matrix.rows());
    let places = step.outer as usize * width * inner;
    let turned = matrix.transposed();
    let mut sums = vec![M::NEUTRAL; places];
    let mut any = vec![false; places];
    progress.expect(1);
    let runs = sums.par_chunks_mut(inner.max(1)).zip(any.par_chunks_mut(inner.max(1)));
    runs.enumerate().with_min_len(PART_PLACES.div_ceil(inner.max(1))).try_for_each(|(run, (sums, any))| {
        if run % POLL_RESULTS == 0 {
            progress.check()?;
        }
        let (columns, weights) = turned.row(run % width);
        for (&class, &weight) in columns.iter().zip(weights) {
            let from = ((run / width) * classes + class as usize) * inner;
            for (sum, value) in sums.iter_mut().zip(&values[from..from + inner]) {
                // The value of an unfilled place is neutral under every weight.
                *sum = sum.join(value.weigh(weight));
            }
            for (any, filled) in any.iter_mut().zip(&filled[from..from + inner]) {
                *any |= filled;
            }
        }
        Ok::<(), AggregateError>(())
    })?;
    progress.step()?;
    Ok(Tensor::Dense { values: sums, filled: any })
}

/// Every entry adds to the results of its class.
fn sparse<M: Monoid>(
    entries: &[(u64, M)],
    step: &Product,
    matrix: &SparseMatrix<M::Weight>,
    places: u64,
    tuning: &Tuning,
    progress: &Progress,
) -> Result<(Tensor<M>, u64), AggregateError> {
    let (inner, width, classes) = (step.inner, u64::from(matrix.width), matrix.rows() as u64);
    progress.expect(1);
    let scatter = Scatter { units: entries.len(), unit_cells: 1, places, tuning };
    let result = scatter.parallel(|range, sums| {
        let mut additions = 0;
        for (number, &(rank, value)) in entries[range].iter().enumerate() {
            if number % POLL_RESULTS == 0 {
                progress.check()?;
            }
            let (outer, class, place) = (rank / inner / classes, rank / inner % classes, rank % inner);
            let (columns, weights) = matrix.row(class as usize);
            for (&column, &weight) in columns.iter().zip(weights) {
                sums.add((outer * width + u64::from(column)) * inner + place, value.weigh(weight));
            }
            additions += columns.len() as u64;
        }
        Ok(additions)
    })?;
    progress.step()?;
    Ok(result)
}
