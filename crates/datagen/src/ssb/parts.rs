//! The part table. A part's colour and name are the first three of a shuffle of all 92 colours, so a part takes 92
//! draws of that stream and one of each other.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringBuilder};

use super::dists::{COLORS, CONTAINERS, TYPES};
use super::people::append;
use crate::random::Stream;

/// Parts in sequence, from any row on.
pub(super) struct Parts {
    next: u64,
    end: u64,
    colors: Stream,
    maker: Stream,
    category: Stream,
    brand: Stream,
    kind: Stream,
    size: Stream,
    container: Stream,
}

impl Parts {
    /// The parts of `range`, counted from 0.
    pub(super) fn new(range: Range<u64>) -> Self {
        let at = |seed| Stream::at(seed, range.start);
        Self {
            next: range.start,
            end: range.end,
            colors: Stream::at(709_314_158, COLORS.len() as u64 * range.start),
            maker: at(1),
            category: at(637_858_759),
            brand: at(46_831_694),
            kind: at(1_841_581_359),
            size: at(1_193_163_244),
            container: at(727_633_698),
        }
    }

    /// The columns of up to `rows` further rows; `None` at the end.
    pub(super) fn columns(&mut self, rows: usize) -> Option<Vec<ArrayRef>> {
        if self.next == self.end {
            return None;
        }
        let first = self.next;
        let last = self.end.min(first + rows as u64);
        self.next = last;

        let rows = (last - first) as usize;
        let builder = |bytes: usize| StringBuilder::with_capacity(rows, rows * bytes);
        let (mut names, mut makers, mut categories) = (builder(14), builder(6), builder(7));
        let (mut brands, mut colors, mut kinds, mut containers) = (builder(9), builder(7), builder(22), builder(9));
        let mut sizes = Vec::with_capacity(rows);
        let mut text = String::with_capacity(32);
        for _ in first..last {
            let [color, one, two] = self.shuffled_colors();
            append(&mut names, &mut text, |to| write!(to, "{one} {two}"));
            colors.append_value(color);

            let (maker, category, brand) = (self.maker.draw(1, 5), self.category.draw(1, 5), self.brand.draw(1, 40));
            append(&mut makers, &mut text, |to| write!(to, "MFGR#{maker}"));
            append(&mut categories, &mut text, |to| write!(to, "MFGR#{maker}{category}"));
            append(&mut brands, &mut text, |to| write!(to, "MFGR#{maker}{category}{brand}"));

            let kind = self.kind.index(TYPES.0.len() * TYPES.1.len() * TYPES.2.len());
            let (outer, inner) = (kind / TYPES.2.len(), kind % TYPES.2.len());
            let (class, finish) = (TYPES.0[outer / TYPES.1.len()], TYPES.1[outer % TYPES.1.len()]);
            append(&mut kinds, &mut text, |to| write!(to, "{class} {finish} {}", TYPES.2[inner]));

            sizes.push(self.size.draw(1, 50) as i32);
            let container = self.container.index(CONTAINERS.0.len() * CONTAINERS.1.len());
            let (size, form) = (container / CONTAINERS.1.len(), container % CONTAINERS.1.len());
            append(&mut containers, &mut text, |to| write!(to, "{} {}", CONTAINERS.0[size], CONTAINERS.1[form]));
        }

        let keys = Int32Array::from_iter_values((first..last).map(|number| number as i32 + 1));
        Some(vec![
            Arc::new(keys),
            Arc::new(names.finish()),
            Arc::new(makers.finish()),
            Arc::new(categories.finish()),
            Arc::new(brands.finish()),
            Arc::new(colors.finish()),
            Arc::new(kinds.finish()),
            Arc::new(Int32Array::from(sizes)),
            Arc::new(containers.finish()),
        ])
    }

    /// Shuffles all colours and keeps the first three. Every place is swapped with any place, so late swaps can
    /// still reach the first three and none may be left out.
    fn shuffled_colors(&mut self) -> [&'static str; 3] {
        let mut order: [u8; COLORS.len()] = std::array::from_fn(|i| i as u8);
        for i in 0..order.len() {
            order.swap(i, self.colors.index(COLORS.len()));
        }
        [order[0], order[1], order[2]].map(|color| COLORS[usize::from(color)])
    }
}
