//! What a contraction does, before anything is on the device: classes, places, the order of steps, bounds.

use super::classes::Classes;
use super::contract::DeviceError;
use crate::aggregate::Area;
use crate::facts::Facts;

/// Places of the largest array of sums: 4 GiB of words, and a byte each.
pub(super) const PLACES_MAX: u64 = 1 << 29;
/// Most dimensions that a kernel takes.
pub(super) const DIMENSIONS_MAX: usize = 32;
/// Whole numbers below this, 2^53, are doubles.
const DOUBLES_EXACT: f64 = 9_007_199_254_740_992.0;

/// The classes of an area's dimensions.
pub(super) struct Plan {
    pub(super) classes: Vec<Classes>,
    /// Dimensions whose base elements the pass over facts looks up, in the order of the key.
    pub(super) looked_up: Vec<usize>,
    /// Dimensions whose classes become targets by a matrix, the one that grows least first.
    pub(super) multiplied: Vec<usize>,
}

impl Plan {
    /// Plans the sums of a measure. `present` has the base elements with facts, a bit each.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] with the reason.
    pub(super) fn new(facts: &Facts, area: &Area, measure: usize, present: &[Vec<u64>]) -> Result<Plan, DeviceError> {
        let maps = area.maps_of(measure);
        let classes = maps.into_iter().zip(present).map(|(map, present)| Classes::of(map, true, present));
        let Some(classes) = classes.collect::<Option<Vec<_>>>() else {
            return Err(DeviceError::Unsupported { reason: "a weight is not whole".to_string() });
        };
        let looked_up: Vec<usize> = (0..classes.len()).filter(|at| !classes[*at].is_trivial()).collect();
        let mut multiplied: Vec<usize> = (0..classes.len()).filter(|at| !classes[*at].is_selection()).collect();
        let growth = |at: &usize| f64::from(classes[*at].targets()) / f64::from(classes[*at].count.max(1));
        multiplied.sort_by(|one, other| growth(one).total_cmp(&growth(other)));
        check_bound(facts, measure, classes.iter().map(|classes| classes.magnitude))?;
        Ok(Plan { classes, looked_up, multiplied })
    }

    /// Refuses sums that would take too much memory at once.
    pub(super) fn check_room(&self) -> Result<(), DeviceError> {
        match self.peak_places() {
            places if places <= PLACES_MAX => Ok(()),
            places => {
                let reason = format!("{places} sums would be kept at once, at most {PLACES_MAX}");
                Err(DeviceError::Unsupported { reason })
            }
        }
    }

    /// True if no target has a fact.
    pub(super) fn is_empty(&self) -> bool {
        self.classes.iter().any(|classes| classes.count == 0)
    }

    /// Classes of each dimension: the shape of the sums that the pass over facts gives.
    pub(super) fn class_shape(&self) -> Vec<u64> {
        self.classes.iter().map(|classes| u64::from(classes.count)).collect()
    }

    /// The shape of the last sums: targets of each dimension that was multiplied, classes of the others.
    pub(super) fn last_shape(&self) -> Vec<u64> {
        let mut shape = self.class_shape();
        self.multiplied.iter().for_each(|at| shape[*at] = self.classes[*at].targets().into());
        shape
    }

    /// Places of all sums that a contraction writes, and the additions of its products.
    pub(super) fn work(&self) -> (f64, f64) {
        let product = |shape: &[f64]| shape.iter().product::<f64>();
        let mut shape: Vec<f64> = self.class_shape().iter().map(|size| *size as f64).collect();
        let (mut all, mut additions) = (product(&shape), 0.0);
        for dimension in &self.multiplied {
            let classes = &self.classes[*dimension];
            additions += product(&shape) * classes.classes.len() as f64 / f64::from(classes.count.max(1));
            shape[*dimension] = classes.targets().into();
            all += product(&shape);
        }
        (all, additions)
    }

    /// Places of the largest input and output together.
    fn peak_places(&self) -> u64 {
        let mut shape = self.class_shape();
        let mut before = places(&shape);
        let mut peak = before;
        for dimension in &self.multiplied {
            shape[*dimension] = self.classes[*dimension].targets().into();
            let after = places(&shape);
            peak = peak.max(before.saturating_add(after));
            before = after;
        }
        peak
    }

    /// Dimensions whose numbers become targets alike, in order: neighbours that need no table are one axis.
    pub(super) fn axes(&self) -> Vec<Axis> {
        let shape = self.last_shape();
        let targets: Vec<u64> = self.classes.iter().map(|classes| classes.targets().into()).collect();
        let mut axes: Vec<Axis> = Vec::new();
        for (dimension, classes) in self.classes.iter().enumerate() {
            let stride = places(&targets[dimension + 1..]);
            let size = shape[dimension];
            let is_table = classes.is_selection() && u64::from(classes.targets()) != size;
            let axis = Axis { size, stride, targets: is_table.then(|| classes.selected()) };
            match axes.last_mut() {
                Some(last) if last.targets.is_none() && axis.targets.is_none() && last.stride == stride * size => {
                    *last = Axis { size: last.size * size, stride, targets: None };
                }
                // A dimension of one place at target 0 adds nothing.
                _ if size == 1 && !is_table => {}
                _ => axes.push(axis),
            }
        }
        axes
    }
}

/// Refuses sums that may pass 64 bits; `magnitudes` has the greatest weight of each dimension.
pub(super) fn check_bound(
    facts: &Facts,
    measure: usize,
    magnitudes: impl Iterator<Item = u64>,
) -> Result<(), DeviceError> {
    // A fact has one weight a dimension: no sum passes the sum of magnitudes times the largest weights. The magnitude
    // is rounded to a double: the next one is not below it. It is 1 at least, so that products of weights hold, too.
    let most = facts.magnitude(measure);
    let most = if most < DOUBLES_EXACT { most.max(1.0) } else { most.next_up() };
    let all = (most as u128).saturating_mul(facts.len() as u128);
    match magnitudes.fold(all, |bound, magnitude| bound.saturating_mul(magnitude.into())) {
        bound if bound <= i64::MAX as u128 => Ok(()),
        bound => Err(DeviceError::Unsupported { reason: format!("sums may pass 64 bits: {bound} is their bound") }),
    }
}

/// A run of dimensions of the last sums.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) size: u64,
    /// Distance of neighbouring targets in the ranks of the area.
    pub(super) stride: u64,
    /// The target of each number; the number itself where absent.
    pub(super) targets: Option<Vec<u32>>,
}

/// Places of a shape.
pub(super) fn places(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |places: u64, size| places.saturating_mul(*size))
}

/// Distance of neighbours in each dimension, the last one's being 1.
pub(super) fn strides(shape: &[u64]) -> Vec<u64> {
    (0..shape.len()).map(|dimension| places(&shape[dimension + 1..])).collect()
}
