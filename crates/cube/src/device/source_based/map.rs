//! The aggregation map as kernels read it, and the tables of the prefilter.

use warpcube_arrays::key::DIMENSIONS_MAX;
use warpcube_gpu::DeviceInfo;

use crate::aggregate::{Area, TargetMap, places, strides};
use crate::algorithm::{MapPlace, SourceVariant};
use crate::device::DeviceError;
use crate::device::plan::{PLACES_MAX, Summed, check_bound, whole_weight};
use crate::facts::Facts;

/// Largest map in shared memory in bytes.
const SHARED_MAP_BYTES_MAX: usize = 64 << 10;
/// Bytes of the parameters of `kernels/source.cuh` besides the map.
pub(super) const PARAMS_BYTES: usize = 8 * (20 + 4 * DIMENSIONS_MAX);
/// Fewest words of 64 bits of a map in parameters.
const PARAM_LONGS_MIN: usize = 64;

/// One dimension with the rows of the base elements that have facts.
struct Lists {
    dimension: usize,
    /// (target, weight) of each base element up to the greatest of the facts.
    rows: Vec<Vec<(u32, i32)>>,
}

/// The aggregation map of an area, for one measure.
pub(super) struct AggregationMap {
    /// Dimensions, those with one target a base element at most first.
    pub(super) order: Vec<usize>,
    /// Number of those dimensions.
    pub(super) singles: usize,
    /// Where the rows of each dimension in `order` begin, in words.
    pub(super) rows_at: Vec<u64>,
    /// Where targets and weights begin, in words.
    pub(super) targets_at: u64,
    pub(super) weights_at: u64,
    /// Distance of targets in ranks, of each dimension in `order`.
    pub(super) strides: Vec<u64>,
    /// True if a weight is not 1.
    pub(super) has_weights: bool,
    /// True if words have 16 bits.
    pub(super) is_narrow: bool,
    /// Number of words.
    pub(super) words: usize,
    /// The words, filled up to whole words of 64 bits.
    pub(super) bytes: Vec<u8>,
    /// For each base element of each dimension the number of those before it with a target, and one number more.
    pub(super) covered: Vec<u32>,
    /// Where a dimension, in the order of the key, begins in `covered`.
    pub(super) covered_at: Vec<u64>,
    /// Targets of the area.
    pub(super) targets: u64,
}

impl AggregationMap {
    /// The map of an area; `present` has a bit for each base element with facts.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] as for contraction.
    pub(super) fn new(
        facts: &Facts,
        area: &Area,
        (measure, summed): (usize, Summed),
        present: &[Vec<u64>],
    ) -> Result<AggregationMap, DeviceError> {
        let shape: Vec<u64> = area.shape().into_iter().map(u64::from).collect();
        let targets = places(&shape);
        if targets > PLACES_MAX {
            return Err(unsupported(format!("the area has {targets} targets, at most {PLACES_MAX}")));
        }
        let maps = area.maps_of(measure);
        let lists = maps.into_iter().zip(present).enumerate().map(|(dimension, (map, present))| {
            let bases = facts.coordinate_max(dimension).map_or(0, |most| most + 1);
            Ok(Lists { dimension, rows: rows(map, bases, present)? })
        });
        let mut lists = lists.collect::<Result<Vec<Lists>, DeviceError>>()?;
        check_bound(facts, summed.most, lists.iter().map(Lists::magnitude))?;
        let (mut covered, mut covered_at) = (Vec::new(), Vec::new());
        for list in &lists {
            covered_at.push(covered.len() as u64);
            list.cover(&mut covered);
        }
        lists.sort_by_key(|list| !list.is_single());
        let strides = strides(&shape);
        let (words, rows_at, targets_at, weights_at) = words(&lists);
        let is_narrow = words[..weights_at].iter().all(|word| *word <= u16::MAX.into())
            && words[weights_at..].iter().all(|weight| i16::try_from(*weight as i32).is_ok());
        let mut bytes: Vec<u8> = match is_narrow {
            true => words.iter().flat_map(|word| (*word as u16).to_le_bytes()).collect(),
            false => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        };
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        Ok(AggregationMap {
            order: lists.iter().map(|list| list.dimension).collect(),
            singles: lists.iter().filter(|list| list.is_single()).count(),
            rows_at,
            targets_at: targets_at as u64,
            weights_at: weights_at as u64,
            strides: lists.iter().map(|list| strides[list.dimension]).collect(),
            has_weights: lists.iter().any(Lists::has_weights),
            is_narrow,
            words: words.len(),
            bytes,
            covered,
            covered_at,
            targets,
        })
    }

    /// True if no target has a fact.
    pub(super) fn is_empty(&self) -> bool {
        let ends = self.covered_at.iter().skip(1).map(|at| *at as usize).chain([self.covered.len()]);
        ends.into_iter().any(|end| self.covered[end - 1] == 0)
    }

    /// Where the map lies for a variant, and the words of 64 bits that the parameters have for it. Children that
    /// kernels launch have no parameters of the host.
    pub(super) fn place(&self, variant: SourceVariant, info: &DeviceInfo) -> (MapPlace, usize) {
        let longs = self.bytes.len() / 8;
        let most = info.params_bytes_max.saturating_sub(PARAMS_BYTES) / 8;
        match variant.map {
            MapPlace::Constant if longs <= most && !variant.expansion.launches() => {
                (MapPlace::Constant, longs.next_power_of_two().max(PARAM_LONGS_MIN).min(most))
            }
            MapPlace::Shared if self.bytes.len() <= SHARED_MAP_BYTES_MAX => (MapPlace::Shared, 0),
            _ => (MapPlace::Global, 0),
        }
    }
}

impl Lists {
    fn is_single(&self) -> bool {
        self.rows.iter().all(|row| row.len() <= 1)
    }

    fn entries(&self) -> impl Iterator<Item = &(u32, i32)> {
        self.rows.iter().flatten()
    }

    fn has_weights(&self) -> bool {
        self.entries().any(|entry| entry.1 != 1)
    }

    /// The greatest magnitude of a weight, at least 1.
    fn magnitude(&self) -> u64 {
        self.entries().map(|entry| u64::from(entry.1.unsigned_abs())).max().unwrap_or(1).max(1)
    }

    fn cover(&self, covered: &mut Vec<u32>) {
        let mut count = 0;
        covered.push(0);
        for row in &self.rows {
            count += u32::from(!row.is_empty());
            covered.push(count);
        }
    }
}

/// Rows of all dimensions, then targets, then weights if there are any: the words, where rows of each dimension begin,
/// where targets and weights do.
fn words(lists: &[Lists]) -> (Vec<u32>, Vec<u64>, usize, usize) {
    let (mut words, mut rows_at, mut entry) = (Vec::new(), Vec::new(), 0);
    for list in lists {
        rows_at.push(words.len() as u64);
        words.push(entry);
        for row in &list.rows {
            entry += row.len() as u32;
            words.push(entry);
        }
    }
    let targets_at = words.len();
    words.extend(lists.iter().flat_map(Lists::entries).map(|entry| entry.0));
    let weights_at = words.len();
    if lists.iter().any(Lists::has_weights) {
        words.extend(lists.iter().flat_map(Lists::entries).map(|entry| entry.1 as u32));
    }
    (words, rows_at, targets_at, weights_at)
}

/// Targets of base elements below `bases`; none for those without facts.
fn rows(map: &TargetMap, bases: u32, present: &[u64]) -> Result<Vec<Vec<(u32, i32)>>, DeviceError> {
    let is_present = |base: u32| present.get(base as usize / 64).is_some_and(|word| word >> (base % 64) & 1 == 1);
    let row = |base: u32| {
        if base >= map.bases() || !is_present(base) {
            return Ok(Vec::new());
        }
        let (targets, weights) = map.targets_of(base);
        targets.iter().zip(weights).map(|(target, weight)| Ok((*target, whole_weight(*weight)?))).collect()
    };
    (0..bases).map(row).collect()
}

fn unsupported(reason: String) -> DeviceError {
    DeviceError::Unsupported { reason }
}
