//! Contraction: SUM is linear, so the weight matrices of the dimensions can be applied one after the other.
//!
//! Base elements of a dimension that have the same targets under the same weights form a class. One scan adds up the
//! facts by the classes of all dimensions; then the tensor of sums is multiplied by the matrix (class × target) of one
//! dimension after the other. A dimension in which every base element has at most one target is done in the scan.
//! The work is one addition a fact, and then one a class tuple and target, shared over all targets: where the papers
//! add every base cell to each of its targets, contraction adds classes.
//!
//! Order: a step over a dimension of *c* classes, *t* targets and *e* entries costs *e*/*c* additions a place and
//! leaves *t*/*c* places of each. Costs of this form are least in ascending order of (*t*/*c* − 1)/(*e*/*c*) (the rank
//! of Ibaraki and Kameda, *On the optimal nesting order for computing N-relational joins*, 1984).

use hashbrown::HashMap;

use super::TargetMap;
use super::component::Component;
use super::monoid::Monoid;
use super::product::Axis;
use super::scan::Scan;
use super::sums::{HASHED, Scatter, Tensor, is_dense};
use super::{AggregateError, Progress, Tuning};
use crate::matrix::SparseMatrix;

/// Ranks of the class tensor stay below this.
const PLACES_MAX: f64 = 4.6e18;
/// The class of a base element without target.
const NO_CLASS: u32 = u32::MAX;

/// The plan of a contraction: the classes of each dimension, and the order of steps.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Classes of each dimension; absent where the scan applies the map itself.
    classes: Vec<Option<Classes>>,
    /// Dimensions with classes, in the order of their steps.
    steps: Vec<usize>,
    /// Size of each dimension after the scan.
    sizes: Vec<u32>,
}

/// Base elements with the same row of a map.
#[derive(Debug, Clone)]
struct Classes {
    /// The class of each base element.
    of_base: Vec<u32>,
    /// A base element of each class.
    members: Vec<u32>,
    /// Entries of all classes.
    entries: usize,
    /// Number of targets.
    targets: u32,
}

impl Plan {
    /// Plans the contraction of one map a dimension; without `weighted` only membership counts.
    pub(crate) fn new(maps: &[&TargetMap], weighted: bool) -> Plan {
        let classes = |map: &&TargetMap| (!map.matrix.is_single()).then(|| Classes::of(map, weighted));
        let classes: Vec<Option<Classes>> = maps.iter().map(classes).collect();
        let mut plan = Plan { classes, steps: Vec::new(), sizes: Vec::new() };
        plan.sizes = plan.sizes_of(maps);
        // Dimensions whose classes grow the tensor most go back to the scan, until ranks fit.
        while plan.sizes.iter().map(|&size| f64::from(size)).product::<f64>() > PLACES_MAX {
            let growth = |dimension: &usize| f64::from(plan.sizes[*dimension]) / f64::from(maps[*dimension].targets());
            let left = (0..maps.len()).filter(|&dimension| plan.classes[dimension].is_some());
            let Some(worst) = left.max_by(|one, other| growth(one).total_cmp(&growth(other))) else { break };
            plan.classes[worst] = None;
            plan.sizes = plan.sizes_of(maps);
        }
        plan.steps = (0..maps.len()).filter(|&dimension| plan.classes[dimension].is_some()).collect();
        let rank = |&dimension: &usize| plan.classes[dimension].as_ref().map_or(0.0, Classes::rank);
        plan.steps.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
        plan
    }

    fn sizes_of(&self, maps: &[&TargetMap]) -> Vec<u32> {
        let size = |(classes, map): (&Option<Classes>, &&TargetMap)| {
            classes.as_ref().map_or(map.targets(), |classes| classes.members.len() as u32)
        };
        self.classes.iter().zip(maps).map(size).collect()
    }

    /// Predicted additions of a scan of `relevant` cells and all steps after it, and their cost.
    pub(crate) fn predict(&self, relevant: f64, tuning: &Tuning) -> (f64, f64) {
        let cost = |added: f64, places: f64| match is_dense(places as u64, added as u64, tuning) {
            true => added,
            false => added * HASHED,
        };
        let mut places: f64 = self.sizes.iter().map(|&size| f64::from(size)).product();
        let (mut filled, mut additions, mut total) = (relevant.min(places), relevant, cost(relevant, places));
        for classes in self.steps.iter().filter_map(|&dimension| self.classes[dimension].as_ref()) {
            let members = classes.members.len().max(1) as f64;
            // An array is multiplied with all its places.
            let multiplied = if is_dense(places as u64, relevant as u64, tuning) { places } else { filled };
            let added = multiplied * classes.entries as f64 / members;
            places *= f64::from(classes.targets) / members;
            filled = added.min(places);
            additions += added;
            total += cost(added, places);
        }
        (additions, total)
    }

    /// True if the scan applies every map itself, so that contraction is the source-based algorithm.
    pub(crate) fn is_scan(&self) -> bool {
        self.steps.is_empty()
    }

    /// Contracts one component; gives the number of additions, too.
    pub(crate) fn run<M: Monoid>(
        &self,
        component: &Component<'_>,
        tuning: &Tuning,
        progress: &Progress,
    ) -> Result<(Tensor<M>, u64), AggregateError> {
        let matrices = component.matrices::<M>();
        let coarse: Vec<SparseMatrix<M::Weight>> = self
            .classes
            .iter()
            .zip(&matrices)
            .map(|(classes, matrix)| classes.as_ref().map_or_else(|| matrix.clone(), Classes::coarse::<M>))
            .collect();
        let scan = Scan::new(component.facts, component.source, component.filled, &coarse);
        let pages = component.facts.pages();
        let mut sizes: Vec<u64> = self.sizes.iter().map(|&size| size.into()).collect();
        let scatter =
            Scatter { units: pages.len(), unit_cells: pages.page_cells(), places: sizes.iter().product(), tuning };
        progress.expect(pages.len() as u64);
        let (mut tensor, mut additions) = scatter.parallel(|pages, sums| scan.run(pages, sums, progress))?;
        for &dimension in &self.steps {
            let Some(classes) = &self.classes[dimension] else { continue };
            let axis =
                Axis { outer: sizes[..dimension].iter().product(), inner: sizes[dimension + 1..].iter().product() };
            let rows = classes.rows(&matrices[dimension]);
            let more;
            (tensor, more) = tensor.multiplied(axis, &rows, tuning, progress)?;
            additions += more;
            sizes[dimension] = classes.targets.into();
        }
        Ok((tensor, additions))
    }
}

impl Classes {
    /// Classes in the order of their first base elements.
    fn of(map: &TargetMap, weighted: bool) -> Classes {
        let mut numbers: HashMap<(&[u32], Vec<u64>), u32> = HashMap::new();
        let mut classes = Classes { of_base: Vec::new(), members: Vec::new(), entries: 0, targets: map.targets() };
        for base in 0..map.bases() {
            let (targets, weights) = map.targets_of(base);
            if targets.is_empty() {
                classes.of_base.push(NO_CLASS);
                continue;
            }
            let bits = if weighted { weights.iter().map(|weight| weight.to_bits()).collect() } else { Vec::new() };
            let next = classes.members.len() as u32;
            let class = *numbers.entry((targets, bits)).or_insert(next);
            if class == next {
                classes.members.push(base);
                classes.entries += targets.len();
            }
            classes.of_base.push(class);
        }
        classes
    }

    /// The matrix base element × class.
    fn coarse<M: Monoid>(&self) -> SparseMatrix<M::Weight> {
        let rows: Vec<[(u32, M::Weight); 1]> = self.of_base.iter().map(|&class| [(class, M::UNIT)]).collect();
        let row = |row: &'_ [(u32, M::Weight); 1]| if row[0].0 == NO_CLASS { 0 } else { 1 };
        SparseMatrix::from_rows(self.members.len() as u32, rows.iter().map(|entry| &entry[..row(entry)]))
    }

    /// The matrix class × target.
    fn rows<W: Copy>(&self, matrix: &SparseMatrix<W>) -> SparseMatrix<W> {
        let row = |&base: &u32| {
            let (columns, weights) = matrix.row(base as usize);
            columns.iter().copied().zip(weights.iter().copied()).collect()
        };
        let rows: Vec<Vec<(u32, W)>> = self.members.iter().map(row).collect();
        SparseMatrix::from_rows(self.targets, rows.iter().map(Vec::as_slice))
    }

    /// Growth of the tensor over the cost of a place.
    fn rank(&self) -> f64 {
        let classes = self.members.len() as f64;
        (f64::from(self.targets) / classes - 1.0) / (self.entries as f64 / classes)
    }
}
