//! Some cells of facts as facts of one segment, under another layout of their keys.

use std::borrow::Cow;

use rayon::prelude::*;
use warpcube_arrays::key::KeyLayout;

use super::{FactColumn, Facts, Keys, Segment, Values};

impl Facts {
    /// The cells at these places, whose keys ascend, with keys of another layout.
    ///
    /// The layout has the dimensions of this one in their order, and room for every coordinate: keys ascend in both.
    pub fn selected(&self, layout: &KeyLayout, places: &[usize]) -> Facts {
        Facts::of_segments(layout.clone(), vec![self.gathered(layout, places).into()])
    }

    /// The places of live cells, in the order of their keys.
    pub(crate) fn in_order(&self) -> Vec<usize> {
        let live = (0..self.places()).into_par_iter().filter(|place| self.is_live(*place));
        if self.segments().len() == 1 {
            return live.collect();
        }
        let mut pairs: Vec<(u128, usize)> = live.map(|place| (self.key(place), place)).collect();
        pairs.par_sort_by_key(|pair| pair.0);
        pairs.into_iter().map(|(_, place)| place).collect()
    }

    /// The same cells in one segment, all of them live.
    pub fn merged(&self) -> Cow<'_, Facts> {
        match self.is_whole() {
            true => Cow::Borrowed(self),
            false => Cow::Owned(self.selected(self.layout(), &self.in_order())),
        }
    }

    /// A segment of the cells at these places, whose keys ascend in this layout.
    pub(super) fn gathered(&self, layout: &KeyLayout, places: &[usize]) -> Segment {
        let key = |place: &usize| match layout == self.layout() {
            true => self.key(*place),
            false => layout.pack(&self.cell(*place)),
        };
        let keys = match layout.is_narrow() {
            true => Keys::Narrow(places.iter().map(|place| key(place) as u64).collect()),
            false => Keys::Wide(places.iter().map(key).collect()),
        };
        let measures = 0..self.measures().len();
        let columns = measures.clone().map(|measure| self.column(measure, places)).collect();
        let rows = self.unusual(places, 1, |segment| segment.row_counts());
        let carries = measures.clone().map(|measure| self.unusual(places, 0, |segment| segment.carries(measure)));
        let cancelled = measures.map(|measure| self.unusual(places, 0.0, |segment| segment.cancelled(measure)));
        Segment::from_checked(layout.clone(), keys, columns, rows, self.page_cells())
            .with_carries(carries.collect())
            .with_cancelled(cancelled.collect())
    }

    fn column(&self, measure: usize, places: &[usize]) -> FactColumn {
        let values = match &self.base().columns()[measure].values {
            Values::Decimals(_) => Values::Decimals(self.each(places, |segment, cell| {
                let Values::Decimals(values) = &segment.columns()[measure].values else { return 0 };
                values[cell]
            })),
            Values::Doubles(_) => Values::Doubles(self.each(places, |segment, cell| {
                let Values::Doubles(values) = &segment.columns()[measure].values else { return 0.0 };
                values[cell]
            })),
        };
        let filled: Vec<bool> = self.each(places, |segment, cell| segment.columns()[measure].is_filled(cell));
        // Empty cells have no rows.
        let count = |(place, filled): (&usize, &bool)| if *filled { self.count(measure, *place) } else { 0 };
        let counts = self.has_counts(measure).then(|| places.iter().zip(&filled).map(count).collect::<Vec<u64>>());
        FactColumn {
            measure: self.measures()[measure].clone(),
            values,
            filled: filled.contains(&false).then(|| filled.into_iter().collect()),
            counts: counts.filter(|counts| counts.iter().any(|count| *count > 1)),
        }
    }

    fn each<T>(&self, places: &[usize], value: impl Fn(&Segment, usize) -> T) -> Vec<T> {
        let of = |place: &usize| {
            let (segment, cell) = self.at(*place);
            value(segment, cell)
        };
        places.iter().map(of).collect()
    }

    /// A column that is absent while every entry is `usual`.
    fn unusual<T: Copy + PartialEq>(
        &self,
        places: &[usize],
        usual: T,
        column: impl Fn(&Segment) -> Option<&[T]>,
    ) -> Option<Vec<T>> {
        if self.segments().iter().all(|segment| column(segment).is_none()) {
            return None;
        }
        let all = self.each(places, |segment, cell| column(segment).map_or(usual, |column| column[cell]));
        all.iter().any(|one| *one != usual).then_some(all)
    }
}
