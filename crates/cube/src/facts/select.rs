//! Some cells of facts, under another layout of their keys.

use super::loader::gather;
use super::{FactColumn, Facts, Keys, Values};
use crate::key::KeyLayout;

impl Facts {
    /// The cells at these places, in their order, with keys of another layout.
    ///
    /// The layout has the dimensions of this one in their order, and room for every coordinate: keys ascend in both.
    pub fn selected(&self, layout: &KeyLayout, places: &[usize]) -> Facts {
        let key = |place: &usize| match layout == self.layout() {
            true => self.keys().get(*place),
            false => layout.pack(&self.cell(*place)),
        };
        let keys = match layout.is_narrow() {
            true => Keys::Narrow(places.iter().map(|place| key(place) as u64).collect()),
            false => Keys::Wide(places.iter().map(key).collect()),
        };
        let columns = self.columns().iter().map(|column| column.at(places));
        let rows = self.row_counts().map(|rows| gather(rows, places));
        let carries = (0..self.columns().len()).map(|measure| self.carries_at(measure, places)).collect();
        let cancelled = (0..self.columns().len()).map(|measure| self.cancelled_at(measure, places)).collect();
        Facts::from_checked(layout.clone(), keys, columns.collect(), rows, self.pages().page_cells())
            .with_carries(carries)
            .with_cancelled(cancelled)
    }

    /// What the rows of the cells at these places cancelled.
    fn cancelled_at(&self, measure: usize, places: &[usize]) -> Option<Vec<f64>> {
        let cancelled = self.cancelled(measure).map(|cancelled| gather(cancelled, places));
        cancelled.filter(|cancelled| cancelled.iter().any(|one| *one != 0.0))
    }

    /// The carries of a measure in the cells at these places.
    pub(crate) fn carries_at(&self, measure: usize, places: &[usize]) -> Option<Vec<i64>> {
        self.carries(measure)
            .map(|carries| gather(carries, places))
            .filter(|carries| carries.iter().any(|one| *one != 0))
    }
}

impl FactColumn {
    /// The cells at these places.
    pub(crate) fn at(&self, places: &[usize]) -> FactColumn {
        let values = match &self.values {
            Values::Decimals(values) => Values::Decimals(gather(values, places)),
            Values::Doubles(values) => Values::Doubles(gather(values, places)),
        };
        let filled = self.filled.as_ref().filter(|filled| places.iter().any(|place| !filled.get(*place)));
        FactColumn {
            measure: self.measure.clone(),
            values,
            filled: filled.map(|filled| places.iter().map(|place| filled.get(*place)).collect()),
            counts: self.counts.as_ref().map(|counts| gather(counts, places)),
        }
    }
}
