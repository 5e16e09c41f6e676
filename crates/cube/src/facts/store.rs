//! The facts of a cube: a base segment, and segments of later changes.

use std::sync::Arc;

use warpcube_arrays::key::KeyLayout;

use super::{FactColumn, FactMeasure, FactsError, Keys, Segment};

/// The filled base cells of a cube.
///
/// They lie in segments. A later segment has cells in place of those of former ones, which are not live any more: each
/// key has one live cell. Cells have places: those of the first segment in the order of their keys, then those of the
/// next.
#[derive(Debug, Clone)]
pub struct Facts {
    layout: KeyLayout,
    measures: Vec<FactMeasure>,
    /// One at least; each has cells if there are several.
    segments: Vec<Arc<Segment>>,
    /// The place of the first cell of each segment.
    starts: Vec<usize>,
    cells: usize,
}

/// Equal segments.
impl PartialEq for Facts {
    fn eq(&self, other: &Facts) -> bool {
        (&self.layout, &self.measures, &self.segments) == (&other.layout, &other.measures, &other.segments)
    }
}

impl Facts {
    /// Facts of one segment from stored arrays: keys strictly ascending, `columns` of one value a key, `rows` the
    /// number of source rows of each key (absent if each has one), pages of `page_cells` cells.
    ///
    /// # Errors
    /// [`FactsError::Damaged`] if an invariant of the module does not hold.
    pub fn from_parts(
        layout: KeyLayout,
        keys: Keys,
        columns: Vec<FactColumn>,
        rows: Option<Vec<u64>>,
        page_cells: usize,
    ) -> Result<Facts, FactsError> {
        let segment = Segment::from_parts(layout.clone(), keys, columns, rows, page_cells)?;
        Ok(Facts::of_segments(layout, vec![segment.into()]))
    }

    /// Facts of segments that were read: the base, and later ones.
    ///
    /// # Errors
    /// [`FactsError::Damaged`] if a key has two live cells.
    pub(crate) fn from_segments(layout: KeyLayout, segments: Vec<Arc<Segment>>) -> Result<Facts, FactsError> {
        for (number, segment) in segments.iter().enumerate().skip(1) {
            let is_double = |cell: &usize| {
                let key = segment.keys().get(*cell);
                segment.is_live(*cell) && segments[..number].iter().any(|former| former.find(key).is_some())
            };
            if let Some(cell) = (0..segment.len()).find(is_double) {
                let cell = layout.unpack(segment.keys().get(cell));
                return Err(FactsError::Damaged { reason: format!("cell {cell:?} stands in two segments") });
            }
        }
        Ok(Facts::of_segments(layout, segments))
    }

    /// Facts of segments, each key of which has one live cell. The first one stays if no other has cells.
    pub(super) fn of_segments(layout: KeyLayout, mut segments: Vec<Arc<Segment>>) -> Facts {
        let first = segments[0].clone();
        segments.retain(|segment| !segment.is_empty());
        if segments.is_empty() {
            segments.push(first);
        }
        let measures = segments[0].columns().iter().map(|column| column.measure.clone()).collect();
        let ends = segments.iter().scan(0, |end, segment| {
            *end += segment.len();
            Some(*end)
        });
        let starts = std::iter::once(0).chain(ends).take(segments.len()).collect();
        let cells = segments.iter().map(|segment| segment.live_cells()).sum();
        Facts { layout, measures, segments, starts, cells }
    }

    /// Layout of the keys.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// The measures, in the order of definition.
    pub fn measures(&self) -> &[FactMeasure] {
        &self.measures
    }

    /// The base, and segments of later changes.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// The first segment, which has all cells where there is no other.
    pub fn base(&self) -> &Segment {
        &self.segments[0]
    }

    /// True if one segment has all cells, and all of them are live.
    pub fn is_whole(&self) -> bool {
        self.segments.len() == 1 && self.base().live().is_none()
    }

    /// Number of filled base cells.
    pub fn len(&self) -> usize {
        self.cells
    }

    /// True if no cell is filled.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Places of all segments.
    pub(crate) fn places(&self) -> usize {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    /// The segments with the places of their first cells.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (usize, &Segment)> {
        self.starts.iter().copied().zip(self.segments.iter().map(|segment| &**segment))
    }

    /// The segment of a place, and the cell in it.
    pub fn at(&self, place: usize) -> (&Segment, usize) {
        let number = match self.segments.len() {
            1 => 0,
            _ => self.starts.partition_point(|start| *start <= place) - 1,
        };
        (&self.segments[number], place - self.starts[number])
    }

    /// The key of a place.
    pub(crate) fn key(&self, place: usize) -> u128 {
        let (segment, cell) = self.at(place);
        segment.keys().get(cell)
    }

    /// Coordinates of a place.
    pub fn cell(&self, place: usize) -> Vec<u32> {
        self.layout.unpack(self.key(place))
    }

    /// True if a place has a live cell.
    pub(crate) fn is_live(&self, place: usize) -> bool {
        let (segment, cell) = self.at(place);
        segment.is_live(cell)
    }

    /// Number of cells with a value of a measure.
    pub(crate) fn filled(&self, measure: usize) -> usize {
        let of =
            |segment: &Arc<Segment>| segment.columns()[measure].filled.as_ref().map_or(segment.len(), |it| it.count());
        self.segments.iter().map(of).sum()
    }

    /// The place of a coordinate tuple, if it is filled.
    pub fn find(&self, coordinates: &[u32]) -> Option<usize> {
        let fits = |(dimension, &coordinate): (usize, &u32)| coordinate <= self.layout.coordinate_max(dimension);
        if coordinates.len() != self.layout.dimensions() || !coordinates.iter().enumerate().all(fits) {
            return None;
        }
        let key = self.layout.pack(coordinates);
        self.placed().find_map(|(start, segment)| Some(start + segment.find(key)?))
    }

    /// Source rows of a place.
    pub(crate) fn rows(&self, place: usize) -> u64 {
        let (segment, cell) = self.at(place);
        segment.row_counts().map_or(1, |rows| rows[cell])
    }

    /// True if a cell has several source rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.segments.iter().any(|segment| segment.row_counts().is_some())
    }

    /// Rows with a value of a measure at a place.
    pub(crate) fn count(&self, measure: usize, place: usize) -> u64 {
        let (segment, cell) = self.at(place);
        segment.columns()[measure].counts.as_ref().map_or(1, |counts| counts[cell])
    }

    /// True if a cell of an AVG folds several rows.
    pub(crate) fn has_counts(&self, measure: usize) -> bool {
        self.segments.iter().any(|segment| segment.columns()[measure].counts.is_some())
    }

    /// True if a sum of an AVG is beyond its type.
    pub(crate) fn has_carries(&self, measure: usize) -> bool {
        self.segments.iter().any(|segment| segment.carries(measure).is_some())
    }

    /// True if rows of a cell cancelled each other.
    pub(crate) fn has_cancelled(&self, measure: usize) -> bool {
        self.segments.iter().any(|segment| segment.cancelled(measure).is_some())
    }

    /// What the rows of a place cancelled.
    pub(crate) fn cancelled(&self, measure: usize, place: usize) -> f64 {
        let (segment, cell) = self.at(place);
        segment.cancelled(measure).map_or(0.0, |cancelled| cancelled[cell])
    }

    /// Cells of a page, the last one of a segment excepted.
    pub(crate) fn page_cells(&self) -> usize {
        self.base().pages().page_cells()
    }

    /// Pages of all segments.
    pub(crate) fn pages(&self) -> usize {
        self.segments.iter().map(|segment| segment.pages().len()).sum()
    }

    /// The greatest coordinate of a dimension; nothing without cells.
    pub(crate) fn coordinate_max(&self, dimension: usize) -> Option<u32> {
        self.segments.iter().filter_map(|segment| segment.pages().coordinate_max(dimension)).max()
    }

    /// True if all cells, also those that are not live, lie below these numbers of coordinates.
    pub fn lies_within(&self, counts: impl IntoIterator<Item = usize>) -> bool {
        let lies = |(dimension, count)| self.coordinate_max(dimension).is_none_or(|most| (most as usize) < count);
        counts.into_iter().enumerate().all(lies)
    }

    /// The coordinates of a dimension at which cells lie.
    pub fn coordinates(&self, dimension: usize) -> Vec<bool> {
        let mut lie = vec![false; self.coordinate_max(dimension).map_or(0, |most| most as usize + 1)];
        for segment in &self.segments {
            let mut coordinates = vec![0; segment.len()];
            segment.coordinates(0..segment.len(), dimension, &mut coordinates);
            let live = coordinates.into_iter().enumerate().filter(|(cell, _)| segment.is_live(*cell));
            live.for_each(|(_, coordinate)| lie[coordinate as usize] = true);
        }
        lie
    }

    /// The greatest magnitude of a measure's stored values.
    pub(crate) fn magnitude(&self, measure: usize) -> f64 {
        self.segments.iter().map(|segment| segment.magnitude(measure)).fold(0.0, f64::max)
    }

    /// The least and the greatest magnitude of a measure's doubles, zeros left out; 0 and 0 without others.
    pub(crate) fn double_range(&self, measure: usize) -> (f64, f64) {
        let ranges = self.segments.iter().map(|segment| segment.double_range(measure)).filter(|range| range.1 > 0.0);
        ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or((0.0, 0.0))
    }
}
