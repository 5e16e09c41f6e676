//! The scan of base cells, segment by segment and page by page: the source-based algorithm, and the first step of
//! contraction.
//!
//! A page is skipped if one dimension has no target between its bounds (page prefilter), a cell if one of its base
//! elements has none (cell prefilter). A dimension in which every base element has at most one target adds to the rank
//! of a cell's result by one look-up; the others multiply the cell by their lists of targets. Source: Meinke 4.1, 4.2.

use std::ops::Range;

use super::area::strides;
use super::component::{Component, Part};
use super::monoid::Monoid;
use super::sums::Sums;
use super::{AggregateError, Progress};
use crate::facts::Segment;
use crate::matrix::SparseMatrix;

/// The rank of a base element without target.
const NO_RANK: u64 = u64::MAX;

/// A scan of all cells of a component: pages count from those of the first segment to those of the last.
pub(crate) struct Scan<'a, M: Monoid> {
    segments: Vec<SegmentScan<'a, M>>,
    page_cells: usize,
}

/// A scan of the cells of a segment.
struct SegmentScan<'a, M: Monoid> {
    part: Part<'a>,
    /// The number of its first page.
    first: usize,
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
    /// A scan of a component under one matrix (base element × target) a dimension.
    pub(crate) fn new(component: &Component<'a>, matrices: &[SparseMatrix<M::Weight>]) -> Scan<'a, M> {
        let mut first = 0;
        let segments = component.parts.iter().map(|part| {
            let scan = SegmentScan::new(*part, first, matrices);
            first += part.segment.pages().len();
            scan
        });
        Scan { segments: segments.collect(), page_cells: component.facts.page_cells() }
    }

    /// Adds the cells of some pages to `sums`; gives the number of additions.
    pub(crate) fn run(
        &self,
        pages: Range<usize>,
        sums: &mut Sums<M>,
        progress: &Progress,
    ) -> Result<u64, AggregateError> {
        let mut additions = 0;
        for scan in &self.segments {
            let of_segment = scan.first..scan.first + scan.part.segment.pages().len();
            let (from, end) = (pages.start.max(of_segment.start), pages.end.min(of_segment.end));
            if from < end {
                additions += scan.run(from - scan.first..end - scan.first, self.page_cells, sums, progress)?;
            }
        }
        Ok(additions)
    }
}

impl<'a, M: Monoid> SegmentScan<'a, M> {
    fn new(part: Part<'a>, first: usize, matrices: &[SparseMatrix<M::Weight>]) -> SegmentScan<'a, M> {
        let widths: Vec<u32> = matrices.iter().map(|matrix| matrix.width).collect();
        let strides = strides(&widths);
        let dimensions = matrices.iter().enumerate().map(|(dimension, matrix)| {
            let bases = part.segment.pages().coordinate_max(dimension).map_or(0, |most| most as usize + 1);
            Dimension::new(matrix, strides[dimension], bases)
        });
        SegmentScan { part, first, dimensions: dimensions.collect() }
    }

    fn facts(&self) -> &'a Segment {
        self.part.segment
    }

    fn run(
        &self,
        pages: Range<usize>,
        page_cells: usize,
        sums: &mut Sums<M>,
        progress: &Progress,
    ) -> Result<u64, AggregateError> {
        let cells = page_cells.min(self.facts().len());
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
        let bounds = self.facts().pages().bounds(page);
        self.dimensions.iter().zip(bounds).all(|(dimension, &(least, greatest))| {
            dimension.covered[greatest as usize + 1] > dimension.covered[least as usize]
        })
    }

    fn page(&self, page: usize, sums: &mut Sums<M>, buffers: &mut Buffers<M>) -> u64 {
        let cells = self.facts().pages().cells(page);
        buffers.ranks.clear();
        buffers.ranks.resize(cells.len(), 0);
        buffers.values.clear();
        self.part.source.read(cells.clone(), &mut buffers.values);
        self.rank(page, cells.clone(), buffers);
        let Buffers { ranks, values, lists, .. } = buffers;
        let is_filled = |cell: usize| self.part.filled.is_none_or(|filled| filled.get(cells.start + cell));
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
        let bounds = self.facts().pages().bounds(page);
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
                        self.facts().coordinates(cells.clone(), number, coordinates);
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
                    self.facts().coordinates(cells.clone(), number, list);
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
