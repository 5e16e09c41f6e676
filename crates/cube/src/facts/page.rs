//! Pages: runs of stored cells with the bounds of every coordinate.
//!
//! Aggregation skips a page if one dimension has no target between its bounds (the page prefilter; Meinke 4.2). Cells
//! are sorted, so the leading dimensions of a page often hold one coordinate, which is then read once a page.

use std::ops::Range;

use rayon::prelude::*;
use warpcube_arrays::key::KeyLayout;

use super::Keys;

/// Cells of a page where the caller names no size. A page of 64-bit keys fills half of a 64 KB first-level cache.
pub const PAGE_CELLS: usize = 4096;

/// Bounds of every page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pages {
    page_cells: usize,
    cells: usize,
    dimensions: usize,
    /// Least and greatest coordinate, shape pages × dimensions.
    bounds: Vec<(u32, u32)>,
}

impl Pages {
    /// Bounds of pages of `page_cells` cells, at least 1; the last page may be shorter.
    pub(super) fn of(layout: &KeyLayout, keys: &Keys, page_cells: usize) -> Pages {
        let (page_cells, cells) = (page_cells.max(1), keys.len());
        let bounds = (0..cells.div_ceil(page_cells)).into_par_iter().flat_map_iter(|page| {
            let range = page * page_cells..((page + 1) * page_cells).min(cells);
            let mut coordinates = vec![0; range.len()];
            (0..layout.dimensions())
                .map(|dimension| {
                    keys.coordinates(layout, range.clone(), dimension, &mut coordinates);
                    let least_and_greatest = |(least, greatest): (u32, u32), &coordinate: &u32| {
                        (least.min(coordinate), greatest.max(coordinate))
                    };
                    coordinates.iter().fold((u32::MAX, 0), least_and_greatest)
                })
                .collect::<Vec<_>>()
        });
        Pages { page_cells, cells, dimensions: layout.dimensions(), bounds: bounds.collect() }
    }

    /// Number of pages.
    pub fn len(&self) -> usize {
        self.cells.div_ceil(self.page_cells)
    }

    /// True if there is no page.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Cells of a page, the last one excepted.
    pub fn page_cells(&self) -> usize {
        self.page_cells
    }

    /// The cells of a page.
    pub fn cells(&self, page: usize) -> Range<usize> {
        page * self.page_cells..((page + 1) * self.page_cells).min(self.cells)
    }

    /// Least and greatest coordinate of every dimension in a page.
    pub fn bounds(&self, page: usize) -> &[(u32, u32)] {
        &self.bounds[page * self.dimensions..(page + 1) * self.dimensions]
    }

    /// The greatest coordinate of a dimension; nothing without cells.
    pub fn coordinate_max(&self, dimension: usize) -> Option<u32> {
        self.bounds.iter().skip(dimension).step_by(self.dimensions).map(|bounds| bounds.1).max()
    }
}
