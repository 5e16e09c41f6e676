//! Facts after a change, as segments: those that the cube has, with fewer live cells, and one of the new cells.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Facts, Segment, Values};

/// Cells that one thread compares at a time.
const COMPARED_CELLS: usize = 1 << 16;

/// When segments are merged into one.
///
/// A pass over the facts reads cells that are not live, and launches once a segment. A merge writes all facts again, as
/// every change did that has no segment to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentTuning {
    /// Most segments.
    pub segments_max: usize,
    /// Most cells that are not live, in percent of all.
    pub removed_percent_max: usize,
}

impl Default for SegmentTuning {
    /// 8 segments, whose launches take a fifth of the shortest query on the device; a fifth of the cells.
    fn default() -> SegmentTuning {
        SegmentTuning { segments_max: 8, removed_percent_max: 20 }
    }
}

impl SegmentTuning {
    fn allows(&self, segments: usize, removed: usize, places: usize) -> bool {
        segments <= self.segments_max && removed * 100 <= places * self.removed_percent_max
    }
}

impl Facts {
    /// The facts without the cells at some places.
    pub fn without(&self, places: &[usize]) -> Facts {
        let mut removed = vec![false; self.places()];
        places.iter().for_each(|place| removed[*place] = true);
        self.with_removed(&removed)
    }

    /// The same cells, in one segment if the tuning allows no more of them, or no more cells that are not live.
    pub fn compacted(self, tuning: &SegmentTuning) -> Facts {
        let places = self.places();
        match tuning.allows(self.segments().len(), places - self.len(), places) {
            true => self,
            false => self.merged().into_owned(),
        }
    }

    /// These facts as a change of former ones, where the tuning allows that: the segments of the former ones, of which
    /// cells that differ are not live any more, and a segment of those that are new or differ. Others stay as they are,
    /// as do facts of another layout or of other measures.
    pub fn as_change_of(self, former: &Facts, tuning: &SegmentTuning) -> Facts {
        if self.layout() != former.layout() || self.measures() != former.measures() || !self.is_whole() {
            return self;
        }
        let (mut removed, mut is_known) = (Vec::with_capacity(former.places()), vec![false; self.places()]);
        for segment in former.segments() {
            for (cell, same) in self.same_cells(segment).into_iter().enumerate() {
                same.iter().for_each(|place| is_known[*place] = true);
                removed.push(same.is_none() && segment.is_live(cell));
            }
        }
        let added: Vec<usize> = (0..self.places()).filter(|place| !is_known[*place]).collect();
        let kept = former.len() - removed.iter().filter(|removed| **removed).count();
        let (segments, places) =
            (former.segments().len() + usize::from(!added.is_empty()), former.places() + added.len());
        let is_small = added.len() * 100 <= places * tuning.removed_percent_max;
        if !is_small || !tuning.allows(segments, former.places() - kept, places) {
            return self;
        }
        let changed = former.with_removed(&removed);
        if added.is_empty() {
            return changed;
        }
        let new = Arc::new(self.gathered(self.layout(), &added));
        let segments = changed.segments().iter().cloned().chain([new]);
        Facts::of_segments(self.layout().clone(), segments.collect())
    }

    /// The facts without the cells that are marked, by place.
    fn with_removed(&self, removed: &[bool]) -> Facts {
        let segment = |((start, _), segment): ((usize, &Segment), &Arc<Segment>)| {
            let removed = &removed[start..start + segment.len()];
            match removed.contains(&true) {
                true => Arc::new(Segment::clone(segment).with_live(removed.iter().map(|removed| !removed).collect())),
                false => segment.clone(),
            }
        };
        let segments = self.placed().zip(self.segments()).map(segment);
        Facts::of_segments(self.layout().clone(), segments.collect())
    }

    /// Of each live cell of a segment the place of the same cell with the same values.
    fn same_cells(&self, former: &Segment) -> Vec<Option<usize>> {
        let own = self.base();
        let of_range = |range: Range<usize>| {
            let mut at = own.keys().lower_bound(0..own.len(), former.keys().get(range.start));
            range.map(move |cell| {
                let key = former.keys().get(cell);
                while at < own.len() && own.keys().get(at) < key {
                    at += 1;
                }
                let is_same = at < own.len() && own.keys().get(at) == key && former.is_live(cell);
                (is_same && are_equal(former, cell, own, at)).then_some(at)
            })
        };
        let range = |number: usize| number * COMPARED_CELLS..((number + 1) * COMPARED_CELLS).min(former.len());
        let ranges = (0..former.len().div_ceil(COMPARED_CELLS)).into_par_iter().map(range);
        ranges.flat_map_iter(of_range).collect()
    }
}

/// True if two cells have the same values of the same measures, from as many rows.
fn are_equal(one: &Segment, cell: usize, other: &Segment, with: usize) -> bool {
    let number = |of: Option<&[u64]>, at: usize| of.map_or(1, |of| of[at]);
    if number(one.row_counts(), cell) != number(other.row_counts(), with) {
        return false;
    }
    one.columns().iter().zip(other.columns()).enumerate().all(|(measure, (own, of))| {
        if !own.is_filled(cell) || !of.is_filled(with) {
            return own.is_filled(cell) == of.is_filled(with);
        }
        let is_same = match (&own.values, &of.values) {
            (Values::Decimals(own), Values::Decimals(of)) => own[cell] == of[with],
            (Values::Doubles(own), Values::Doubles(of)) => own[cell].to_bits() == of[with].to_bits(),
            _ => false,
        };
        let carry = |of: &Segment, at: usize| of.carries(measure).map_or(0, |carries| carries[at]);
        let cancelled = |of: &Segment, at: usize| of.cancelled(measure).map_or(0.0, |cancelled| cancelled[at]);
        is_same
            && number(own.counts.as_deref(), cell) == number(of.counts.as_deref(), with)
            && carry(one, cell) == carry(other, with)
            && cancelled(one, cell) == cancelled(other, with)
    })
}
