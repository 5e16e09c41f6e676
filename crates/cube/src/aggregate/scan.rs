//! The scan of base cells, page by page: the source-based algorithm, and the first step of contraction.
//!
//! A page is skipped if one dimension has no target between its bounds (page prefilter), a cell if one of its base
//! elements has none (cell prefilter). A dimension in which every base element has at most one target adds to the rank
//! of a cell's result by one look-up; the others multiply the cell by their lists of targets. Source: Meinke 4.1, 4.2.

use std::ops::Range;

use super::area::strides;
use super::monoid::Monoid;
use super::sums::Sums;
use super::{AggregateError, Progress};
use crate::facts::{Bitmap, Facts};
use crate::matrix::SparseMatrix;

/// The rank of a base element without target.
const NO_RANK: u64 = u64::MAX;

/// Where the values of base cells come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Decimals.
    Decimals(&'a [i64]),
    /// Doubles.
    Doubles(&'a [f64]),
    /// Row counts.
    Counts(&'a [u64]),
    /// One a cell.
    Ones,
}

impl Source<'_> {
    /// Appends the values of `range`.
    fn read<M: Monoid>(self, range: Range<usize>, out: &mut Vec<M>) {
        match self {
            Source::Decimals(values) => out.extend(values[range].iter().map(|&value| M::of_decimal(value))),
            Source::Doubles(values) => out.extend(values[range].iter().map(|&value| M::of_double(value))),
            Source::Counts(values) => out.extend(values[range].iter().map(|&value| M::of_decimal(value as i64))),
            Source::Ones => out.extend(range.map(|_| M::of_decimal(1))),
        }
    }

    /// The value of one cell.
    pub(crate) fn value<M: Monoid>(self, cell: usize) -> M {
        match self {
            Source::Decimals(values) => M::of_decimal(values[cell]),
            Source::Doubles(values) => M::of_double(values[cell]),
            Source::Counts(values) => M::of_decimal(values[cell] as i64),
            Source::Ones => M::of_decimal(1),
        }
    }
}

/// A scan of all cells of one measure.
pub(crate) struct Scan<'a, M: Monoid> {
    facts: &'a Facts,
    source: Source<'a>,
    filled: Option<&'a Bitmap>,
    dimensions: Vec<Dimension<M>>,
}

struct Dimension<M: Monoid> {
    /// Of each base element, the number of those before it that have a target; one entry more at the end.
    covered: Vec<u32>,
    rows: Rows<M>,
}

enum Rows<M: Monoid> {
    /// At most one target a base element: its part of the rank, and its weight unless all are units.
    Single { ranks: Vec<u64>, weights: Option<Vec<M::Weight>> },
    /// Lists of targets.
    Several { offsets: Vec<usize>, ranks: Vec<u64>, weights: Vec<M::Weight> },
}

/// Buffers of one thread, one entry a cell of a page.
struct Buffers<M> {
    coordinates: Vec<u32>,
    ranks: Vec<u64>,
    values: Vec<M>,
    /// Coordinates of the dimensions with lists.
    lists: Vec<Vec<u32>>,
}

impl<'a, M: Monoid> Scan<'a, M> {
    /// A scan of `source` under one matrix (base element × target) a dimension; `filled` marks cells with a value.
    pub(crate) fn new(
        facts: &'a Facts,
        source: Source<'a>,
        filled: Option<&'a Bitmap>,
        matrices: &[SparseMatrix<M::Weight>],
    ) -> Scan<'a, M> {
        let widths: Vec<u32> = matrices.iter().map(|matrix| matrix.width).collect();
        let strides = strides(&widths);
        let dimensions = matrices.iter().enumerate().map(|(dimension, matrix)| {
            let bases = facts.pages().coordinate_max(dimension).map_or(0, |most| most as usize + 1);
            Dimension::new(matrix, strides[dimension], bases)
        });
        Scan { facts, source, filled, dimensions: dimensions.collect() }
    }

    /// Adds the cells of some pages to `sums`; gives the number of additions.
    pub(crate) fn run(
        &self,
        pages: Range<usize>,
        sums: &mut Sums<M>,
        progress: &Progress,
    ) -> Result<u64, AggregateError> {
        let cells = self.facts.pages().page_cells().min(self.facts.len());
        let lists = self.dimensions.iter().filter(|dimension| matches!(dimension.rows, Rows::Several { .. }));
        let mut buffers = Buffers {
            coordinates: vec![0; cells],
            ranks: Vec::with_capacity(cells),
            values: Vec::with_capacity(cells),
            lists: lists.map(|_| vec![0; cells]).collect(),
        };
        let mut additions = 0;
        for page in pages {
            progress.step()?;
            if self.is_relevant(page) {
                additions += self.page(page, sums, &mut buffers);
            }
        }
        Ok(additions)
    }

    /// The page prefilter.
    fn is_relevant(&self, page: usize) -> bool {
        let bounds = self.facts.pages().bounds(page);
        self.dimensions.iter().zip(bounds).all(|(dimension, &(least, greatest))| {
            dimension.covered[greatest as usize + 1] > dimension.covered[least as usize]
        })
    }

    fn page(&self, page: usize, sums: &mut Sums<M>, buffers: &mut Buffers<M>) -> u64 {
        let cells = self.facts.pages().cells(page);
        buffers.ranks.clear();
        buffers.ranks.resize(cells.len(), 0);
        buffers.values.clear();
        self.source.read(cells.clone(), &mut buffers.values);
        self.rank(page, cells.clone(), buffers);
        let Buffers { ranks, values, lists, .. } = buffers;
        let is_filled = |cell: usize| self.filled.is_none_or(|filled| filled.get(cells.start + cell));
        let relevant = (0..cells.len()).filter(|&cell| ranks[cell] != NO_RANK && is_filled(cell));
        let mut additions = 0;
        if lists.is_empty() {
            for cell in relevant {
                sums.add(ranks[cell], values[cell]);
                additions += 1;
            }
        } else {
            let several: Vec<&Dimension<M>> =
                self.dimensions.iter().filter(|dimension| matches!(dimension.rows, Rows::Several { .. })).collect();
            for cell in relevant {
                additions += expand(&several, lists, cell, ranks[cell], values[cell], sums);
            }
        }
        additions
    }

    /// Computes the ranks of a page's cells in the dimensions without lists, with their weights; the cell prefilter.
    fn rank(&self, page: usize, cells: Range<usize>, buffers: &mut Buffers<M>) {
        let bounds = self.facts.pages().bounds(page);
        let Buffers { coordinates, ranks, values, lists } = buffers;
        let mut lists = lists.iter_mut();
        for (number, dimension) in self.dimensions.iter().enumerate() {
            match &dimension.rows {
                Rows::Single { ranks: parts, weights } => {
                    let (least, greatest) = bounds[number];
                    if least == greatest {
                        let part = parts[least as usize];
                        ranks.iter_mut().for_each(|rank| *rank = rank.saturating_add(part));
                        coordinates.fill(least);
                    } else {
                        self.facts.coordinates(cells.clone(), number, coordinates);
                        for (rank, &base) in ranks.iter_mut().zip(&*coordinates) {
                            *rank = rank.saturating_add(parts[base as usize]);
                        }
                    }
                    if let Some(weights) = weights {
                        for (value, &base) in values.iter_mut().zip(&*coordinates) {
                            *value = value.weigh(weights[base as usize]);
                        }
                    }
                }
                Rows::Several { offsets, .. } => {
                    let Some(list) = lists.next() else { continue };
                    self.facts.coordinates(cells.clone(), number, list);
                    for (rank, &base) in ranks.iter_mut().zip(&*list) {
                        let empty = offsets[base as usize] == offsets[base as usize + 1];
                        *rank = if empty { NO_RANK } else { *rank };
                    }
                }
            }
        }
    }
}

impl<M: Monoid> Dimension<M> {
    /// `bases` is the number of coordinates that facts have; base elements without a row have no target.
    fn new(matrix: &SparseMatrix<M::Weight>, stride: u64, bases: usize) -> Dimension<M> {
        let covered = matrix.covered(bases);
        let rank = |&column: &u32| u64::from(column) * stride;
        if !matrix.is_single() {
            let offsets = (0..=bases).map(|base| matrix.offsets[base.min(matrix.rows())]).collect();
            let ranks = matrix.columns.iter().map(rank).collect();
            return Dimension { covered, rows: Rows::Several { offsets, ranks, weights: matrix.weights.clone() } };
        }
        let entry = |base| if base < matrix.rows() { matrix.row(base) } else { (&[][..], &[][..]) };
        let ranks = (0..bases).map(|base| entry(base).0.first().map_or(NO_RANK, rank)).collect();
        let weights = matrix.weights.iter().any(|weight| *weight != M::UNIT);
        let weights = weights.then(|| (0..bases).map(|base| entry(base).1.first().copied().unwrap_or(M::UNIT)));
        Dimension { covered, rows: Rows::Single { ranks, weights: weights.map(Iterator::collect) } }
    }
}

/// Adds one cell to the cross product of its lists; gives the number of additions.
fn expand<M: Monoid>(
    several: &[&Dimension<M>],
    lists: &[Vec<u32>],
    cell: usize,
    rank: u64,
    value: M,
    sums: &mut Sums<M>,
) -> u64 {
    let ([dimension, more_dimensions @ ..], [list, more_lists @ ..]) = (several, lists) else { return 0 };
    let Rows::Several { offsets, ranks, weights } = &dimension.rows else { return 0 };
    let base = list[cell] as usize;
    let entries = offsets[base]..offsets[base + 1];
    let targets = ranks[entries.clone()].iter().zip(&weights[entries.clone()]);
    if more_dimensions.is_empty() {
        targets.for_each(|(part, &weight)| sums.add(rank + part, value.weigh(weight)));
        return entries.len() as u64;
    }
    targets
        .map(|(part, &weight)| expand(more_dimensions, more_lists, cell, rank + part, value.weigh(weight), sums))
        .sum()
}
