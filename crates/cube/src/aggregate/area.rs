//! The area of a query: a cross product of targets.

use super::{AggregateError, TargetMap};
use crate::facts::Facts;

/// Targets of every dimension, and the maps of measures that aggregate otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Area {
    maps: Vec<TargetMap>,
    /// (measure, dimension, map).
    of_measures: Vec<(usize, usize, TargetMap)>,
}

impl Area {
    /// An area of one map a dimension, in the order of the cube's dimensions.
    pub fn new(maps: Vec<TargetMap>) -> Area {
        Area { maps, of_measures: Vec::new() }
    }

    /// Gives one measure another map over one dimension, of the same targets, as that of a time balance
    /// ([`crate::model::Dimension::balance_map`]).
    ///
    /// # Errors
    /// No such dimension, or another number of targets.
    pub fn with_measure_map(
        mut self,
        measure: usize,
        dimension: usize,
        map: TargetMap,
    ) -> Result<Area, AggregateError> {
        let reason = match self.maps.get(dimension) {
            None => format!("a measure has a map over dimension {dimension} of {}", self.maps.len()),
            Some(held) if held.targets() != map.targets() => format!(
                "dimension {dimension} has {} targets, the map of measure {measure} has {}",
                held.targets(),
                map.targets()
            ),
            Some(_) => {
                self.of_measures.retain(|other| (other.0, other.1) != (measure, dimension));
                self.of_measures.push((measure, dimension, map));
                return Ok(self);
            }
        };
        Err(AggregateError::Shape { reason })
    }

    /// Number of targets of each dimension.
    pub fn shape(&self) -> Vec<u32> {
        self.maps.iter().map(TargetMap::targets).collect()
    }

    /// Number of targets, filled or not; saturates at 2¹²⁸ − 1.
    pub fn targets(&self) -> u128 {
        self.maps.iter().fold(1, |product, map| u128::saturating_mul(product, map.targets().into()))
    }

    /// The maps that most measures use.
    pub fn maps(&self) -> &[TargetMap] {
        &self.maps
    }

    /// The maps of one measure.
    pub fn maps_of(&self, measure: usize) -> Vec<&TargetMap> {
        let of_measure = |dimension| self.of_measures.iter().find(|other| (other.0, other.1) == (measure, dimension));
        let map = |(dimension, map)| of_measure(dimension).map_or(map, |other| &other.2);
        self.maps.iter().enumerate().map(map).collect()
    }

    /// True if a measure has a map of its own.
    pub(super) fn has_own_maps(&self, measure: usize) -> bool {
        self.of_measures.iter().any(|other| other.0 == measure)
    }

    /// Checks the area against facts and a limit, before memory is taken.
    pub(crate) fn check(&self, facts: &Facts, targets_max: u64) -> Result<(), AggregateError> {
        let dimensions = facts.layout().dimensions();
        if self.maps.len() != dimensions {
            let reason = format!("the cube has {dimensions} dimensions, the area has {}", self.maps.len());
            return Err(AggregateError::Shape { reason });
        }
        let targets = self.targets();
        // Ranks of targets have 62 bits at most.
        let limit = targets_max.min(1 << 62);
        if targets > limit.into() {
            let shape = self.shape().iter().map(u32::to_string).collect::<Vec<_>>().join(" × ");
            return Err(AggregateError::AreaTooLarge { targets, shape, limit });
        }
        Ok(())
    }
}

/// Distance between the ranks of neighbours in each dimension, the last dimension's being 1; sizes fit 62 bits.
pub(crate) fn strides<S: Copy + Into<u64>>(sizes: &[S]) -> Vec<u64> {
    let mut strides = vec![1_u64; sizes.len()];
    for dimension in (1..sizes.len()).rev() {
        strides[dimension - 1] = strides[dimension].saturating_mul(sizes[dimension].into());
    }
    strides
}

/// Places of a shape.
pub(crate) fn places(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |places: u64, size| places.saturating_mul(*size))
}

/// The target tuple of a rank.
pub(super) fn tuple(sizes: &[u32], mut rank: u64) -> Vec<u32> {
    let mut tuple = vec![0; sizes.len()];
    for (place, &size) in tuple.iter_mut().zip(sizes).rev() {
        *place = (rank % u64::from(size)) as u32;
        rank /= u64::from(size);
    }
    tuple
}
