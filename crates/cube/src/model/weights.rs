//! Weights of base elements below targets: the sparse matrix base × target → weight of a dimension.
//!
//! Weights multiply along a path and add over paths. A pass in topological order, parents first, adds up all paths at
//! once: its cost is the number of edges below the target. Entries whose weight is 0, by an edge or by cancellation,
//! stay in the matrix: a target is filled if any filled base cell lies below it, and COUNT, AVG, MIN and MAX read the
//! pattern of the matrix as the distinct base elements, each once, weights aside.

use super::topology::{Topology, WEIGHT_MAX};
use super::{Dimension, ElementId, ElementKind};
use crate::error::{ModelError, Result};
use crate::matrix::SparseMatrix;

/// Bound of whole numbers that a double holds exactly, 2⁵³.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Base elements at or below a target, with their weights in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BaseWeights {
    /// Distinct coordinates, ascending.
    pub bases: Vec<u32>,
    /// Weight of each, 0 included.
    pub weights: Vec<f64>,
}

impl BaseWeights {
    /// True if every weight is a whole number that a double holds exactly.
    pub fn whole(&self) -> bool {
        self.weights.iter().all(|weight| weight.fract() == 0.0 && weight.abs() <= EXACT_MAX)
    }
}

/// Weights of all base elements in a list of targets.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseMap {
    /// Rows are coordinates (holes are empty rows), columns are positions in the list of targets.
    pub by_base: SparseMatrix,
    /// Rows are positions in the list of targets, columns are coordinates.
    pub by_target: SparseMatrix,
    /// By target: true if all of its weights are whole numbers that doubles hold exactly.
    pub whole: Vec<bool>,
}

impl Dimension {
    /// Refuses weights below an element that add up to more than [`WEIGHT_MAX`] by magnitude.
    pub(crate) fn check_weights(&self) -> Result<()> {
        let Some(id) = self.topology().too_heavy else { return Ok(()) };
        let (dimension, element) = (self.name.clone(), self.element(id).name.clone());
        Err(ModelError::WeightSum { dimension, element, sum: self.topology().magnitudes[id.index()], max: WEIGHT_MAX })
    }

    /// Of some edges, as parent and child, the one that adds most to weights that [`Dimension::check_weights`] refuses;
    /// the last of several that add as much.
    pub(crate) fn heaviest(&self, edges: &[(ElementId, ElementId)]) -> Option<usize> {
        let topology = self.topology();
        let top = topology.too_heavy?;
        // Sums of the magnitudes of paths from the top to an element.
        let mut above = vec![0.0; self.slots.len()];
        above[top.index()] = 1.0;
        let mut parents_first = self.order.clone();
        parents_first.sort_unstable_by_key(|id| std::cmp::Reverse(topology.ranks[id.index()]));
        for id in parents_first.iter().filter(|id| topology.ranks[id.index()] <= topology.ranks[top.index()]) {
            for edge in &self.element(*id).children {
                above[edge.child.index()] += above[id.index()] * edge.weight.abs();
            }
        }
        let added = |(parent, child): &(ElementId, ElementId)| {
            let place = self.element(*parent).edge_to(*child)?;
            let weight = self.element(*parent).children[place].weight.abs();
            Some(above[parent.index()] * weight * topology.magnitudes[child.index()])
        };
        let added = edges.iter().enumerate().filter_map(|(at, edge)| Some((at, added(edge)?)));
        let heaviest = added.filter(|(_, added)| *added > 0.0).max_by(|(_, a), (_, b)| a.total_cmp(b));
        heaviest.map(|(at, _)| at)
    }

    /// Base elements at or below `id` with their weights; a base element holds itself at weight 1, a text element
    /// nothing.
    ///
    /// # Errors
    /// [`ModelError::WeightRange`] if a weight leaves the range of doubles.
    pub fn base_weights(&self, id: ElementId) -> Result<BaseWeights> {
        Walk::new(self).weights(&[(id, 1.0)])
    }

    /// Distinct coordinates at or below `id`, ascending: what COUNT, AVG, MIN and MAX are over.
    pub fn base_set(&self, id: ElementId) -> Vec<u32> {
        let mut bases: Vec<u32> = self.leaves(id).into_iter().filter_map(|leaf| self.element(leaf).base).collect();
        bases.sort_unstable();
        bases
    }

    /// Weights of all base elements in each target of a list; a target may repeat.
    ///
    /// # Errors
    /// [`ModelError::WeightRange`]; [`ModelError::TooMany`] for more than 2³² targets.
    pub fn base_map(&self, targets: &[ElementId]) -> Result<BaseMap> {
        let mut walk = Walk::new(self);
        let mut rows = vec![BaseWeights::default(); targets.len()];
        let mut lowest_first: Vec<usize> = (0..targets.len()).collect();
        lowest_first.sort_unstable_by_key(|target| walk.topology.ranks[targets[*target].index()]);
        for target in lowest_first {
            let id = targets[target];
            rows[target] = walk.weights(&[(id, 1.0)])?;
            // Products and sums of whole numbers do not depend on their order: weights of a target below this one are
            // taken over in whole, so that a deep hierarchy in a list is walked once.
            if walk.topology.whole && rows[target].whole() && self.element(id).kind == ElementKind::Consolidated {
                walk.known[id.index()] = Some(rows[target].clone());
            }
        }
        self.compressed(rows)
    }

    /// Weights of all base elements in targets that are weighted sums of elements.
    ///
    /// # Errors
    /// As [`Dimension::base_map`].
    pub fn base_map_of_sums(&self, targets: &[Vec<(ElementId, f64)>]) -> Result<BaseMap> {
        let mut walk = Walk::new(self);
        let rows = targets.iter().map(|parts| walk.weights(parts)).collect::<Result<Vec<_>>>()?;
        self.compressed(rows)
    }

    pub(super) fn compressed(&self, rows: Vec<BaseWeights>) -> Result<BaseMap> {
        if u32::try_from(rows.len()).is_err() {
            return Err(self.too_many("targets", u32::MAX as usize));
        }
        let whole = rows.iter().map(BaseWeights::whole).collect();
        let width = self.base_count() as u32;
        let mut by_target = SparseMatrix { offsets: vec![0], columns: Vec::new(), weights: Vec::new(), width };
        for row in rows {
            by_target.columns.extend(row.bases);
            by_target.weights.extend(row.weights);
            by_target.offsets.push(by_target.columns.len());
        }
        Ok(BaseMap { by_base: by_target.transposed(), by_target, whole })
    }
}

/// Working memory of walks below targets, by element number.
pub(super) struct Walk<'a> {
    dimension: &'a Dimension,
    topology: &'a Topology,
    weight: Vec<f64>,
    /// Number of the walk that last reached the element.
    reached: Vec<u32>,
    walk: u32,
    found: Vec<ElementId>,
    /// Weights of elements whose children are not walked.
    pub(super) known: Vec<Option<BaseWeights>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(dimension: &'a Dimension) -> Self {
        let count = dimension.slots.len();
        Self {
            dimension,
            topology: dimension.topology(),
            weight: vec![0.0; count],
            reached: vec![0; count],
            walk: 0,
            found: Vec::new(),
            known: vec![None; count],
        }
    }

    /// Weights of the base elements in the sum of `parts`.
    pub(super) fn weights(&mut self, parts: &[(ElementId, f64)]) -> Result<BaseWeights> {
        self.walk += 1;
        self.found.clear();
        for (id, weight) in parts {
            self.reach(*id);
            self.weight[id.index()] += weight;
        }
        self.gather();
        let ranks = &self.topology.ranks;
        self.found.sort_unstable_by_key(|id| std::cmp::Reverse(ranks[id.index()]));
        let mut entries = Vec::new();
        for id in &self.found {
            let weight = self.weight[id.index()];
            let element = self.dimension.element(*id);
            if let Some(base) = element.base {
                entries.push((base, weight));
            }
            match &self.known[id.index()] {
                Some(known) => {
                    for (base, below) in known.bases.iter().zip(&known.weights) {
                        if let Some(leaf) = self.dimension.at_base(*base) {
                            self.weight[leaf.index()] += weight * below;
                        }
                    }
                }
                None => element.children.iter().for_each(|e| self.weight[e.child.index()] += weight * e.weight),
            }
        }
        if entries.iter().any(|(_, weight)| !weight.is_finite()) {
            let element = parts.first().map_or_else(String::new, |(id, _)| self.dimension.element(*id).name.clone());
            return Err(ModelError::WeightRange { dimension: self.dimension.name.clone(), element });
        }
        entries.sort_unstable_by_key(|(base, _)| *base);
        let (bases, weights) = entries.into_iter().unzip();
        Ok(BaseWeights { bases, weights })
    }

    /// Finds everything below the elements found so far.
    fn gather(&mut self) {
        let mut next = 0;
        while next < self.found.len() {
            let id = self.found[next];
            next += 1;
            match self.known[id.index()].take() {
                Some(known) => {
                    known
                        .bases
                        .iter()
                        .filter_map(|base| self.dimension.at_base(*base))
                        .for_each(|leaf| self.reach(leaf));
                    self.known[id.index()] = Some(known);
                }
                None => self.dimension.element(id).children.iter().for_each(|edge| self.reach(edge.child)),
            }
        }
    }

    fn reach(&mut self, id: ElementId) {
        if self.reached[id.index()] != self.walk {
            self.reached[id.index()] = self.walk;
            self.weight[id.index()] = 0.0;
            self.found.push(id);
        }
    }
}
