//! Contraction: SUM is linear, so the weight matrices of the dimensions can be applied one after the other.
//!
//! Base elements of a dimension that have the same targets under the same weights form a class. One scan adds up the
//! facts by the classes of all dimensions; then the tensor of sums is multiplied by the matrix (class × target) of one
//! dimension after the other. A dimension in which every base element has at most one target is done in the scan.
//! The work is one addition a fact, and then one a class tuple and target, shared over all targets: where the papers
//! add every base cell to each of its targets, contraction adds classes. `products.rs` has the order of the products.

use hashbrown::HashMap;

use super::TargetMap;
use super::area::places;
use super::component::Component;
use super::monoid::Monoid;
use super::products::{Product, Products};
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
pub(crate) struct ContractionPlan {
    /// Classes of each dimension; absent where the scan applies the map itself.
    classes: Vec<Option<Classes>>,
    /// The tensor of the scan, and the products behind it.
    products: Products,
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

impl ContractionPlan {
    /// Plans the contraction of one map a dimension; without `weighted` only membership counts.
    pub(crate) fn new(maps: &[&TargetMap], weighted: bool) -> ContractionPlan {
        let classes = |map: &&TargetMap| (!map.matrix.is_single()).then(|| Classes::of(map, weighted));
        let mut classes: Vec<Option<Classes>> = maps.iter().map(classes).collect();
        // Dimensions whose classes grow the tensor most go back to the scan, until ranks fit.
        while shape(&classes, maps).iter().map(|&size| size as f64).product::<f64>() > PLACES_MAX {
            let growth = |dimension: &usize| {
                let classes = classes[*dimension].as_ref().map_or(0, |classes| classes.members.len());
                classes as f64 / f64::from(maps[*dimension].targets())
            };
            let left = (0..maps.len()).filter(|&dimension| classes[dimension].is_some());
            let Some(worst) = left.max_by(|one, other| growth(one).total_cmp(&growth(other))) else { break };
            classes[worst] = None;
        }
        let product = |(dimension, classes): (usize, &Option<Classes>)| {
            let Classes { members, targets, entries, .. } = classes.as_ref()?;
            Some(Product::of(dimension, members.len() as u64, u64::from(*targets), *entries as u64))
        };
        let products = classes.iter().enumerate().filter_map(product).collect();
        ContractionPlan { products: Products::new(shape(&classes, maps), products), classes }
    }

    /// Predicted additions of a scan of `relevant` cells and all steps after it, and their cost.
    pub(crate) fn predict(&self, relevant: f64, tuning: &Tuning) -> (f64, f64) {
        let cost = |added: f64, places: f64| match is_dense(places as u64, added as u64, tuning) {
            true => added,
            false => added * HASHED,
        };
        let mut places: f64 = self.products.shape().iter().map(|&size| size as f64).product();
        let (mut filled, mut additions, mut total) = (relevant.min(places), relevant, cost(relevant, places));
        for step in self.products.steps() {
            let classes = step.classes.max(1) as f64;
            // An array is multiplied with all its places.
            let multiplied = if is_dense(places as u64, relevant as u64, tuning) { places } else { filled };
            let added = multiplied * step.entries as f64 / classes;
            places *= step.targets as f64 / classes;
            filled = added.min(places);
            additions += added;
            total += cost(added, places);
        }
        (additions, total)
    }

    /// True if the scan applies every map itself, so that contraction is the source-based algorithm.
    pub(crate) fn is_scan(&self) -> bool {
        self.products.is_empty()
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
        let scan = Scan::new(component, &coarse);
        let (units, unit_cells) = (component.facts.pages(), component.facts.page_cells());
        let scatter = Scatter { units, unit_cells, places: places(self.products.shape()), tuning };
        progress.expect(units as u64);
        let (mut tensor, mut additions) = scatter.parallel(|pages, sums| scan.run(pages, sums, progress))?;
        for step in self.products.steps() {
            let Some(classes) = &self.classes[step.dimension] else { continue };
            let rows = classes.rows(&matrices[step.dimension]);
            let more;
            (tensor, more) = tensor.multiplied(step, &rows, tuning, progress)?;
            additions += more;
        }
        Ok((tensor, additions))
    }
}

/// The tensor that the scan leaves: classes of each dimension, targets where the scan applies the map itself.
fn shape(classes: &[Option<Classes>], maps: &[&TargetMap]) -> Vec<u64> {
    let size = |(classes, map): (&Option<Classes>, &&TargetMap)| {
        classes.as_ref().map_or(map.targets().into(), |classes| classes.members.len() as u64)
    };
    classes.iter().zip(maps).map(size).collect()
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
}
