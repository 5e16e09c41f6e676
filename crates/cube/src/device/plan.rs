//! The plan of a contraction, made before anything is on the device: classes, places, the order of steps, bounds.

use super::accumulation::{Accumulation, DeviceMonoid, FactValues, bound, is_narrow, is_wide, most};
use super::classes::{Classes, Weighting};
use super::error::DeviceError;
use super::source::FactsSource;
use crate::aggregate::{Component, Extreme, Product, Products, Summand, places};
use crate::facts::{Facts, Rule};

/// Places of the largest array of sums: 4 GiB of words, and a byte each; half of it where a sum has two words.
pub(super) const PLACES_MAX: u64 = 1 << 29;
/// Facts whose sums hold in several limbs.
const LIMB_FACTS_MAX: usize = 1 << 31;
/// Message of an `expect`: classes exist if weights may be fractions, or are known to be whole.
const HAS_WORDS: &str = "every weight has a word";

/// The result that a component gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Sums,
    Least,
    Greatest,
}

impl Wanted {
    /// The result that a rule needs.
    pub(super) fn of(rule: Rule) -> Wanted {
        match rule {
            Rule::Sum | Rule::Count | Rule::Avg => Wanted::Sums,
            Rule::Min => Wanted::Least,
            Rule::Max => Wanted::Greatest,
        }
    }
}

/// How a component adds up, and the classes of an area's dimensions.
pub(super) struct DevicePlan {
    pub(super) accumulation: Accumulation,
    pub(super) classes: Vec<Classes>,
    /// Dimensions whose base elements the pass over facts looks up, in the order of the key.
    pub(super) looked_up: Vec<usize>,
    /// The tensor of classes, and the products that make targets of them.
    pub(super) products: Products,
}

impl DevicePlan {
    /// Plans the sums of a component, or its least or greatest values. `present` has the base elements with facts, a
    /// bit each.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] with the reason.
    pub(super) fn new(
        source: &FactsSource,
        component: &Component<'_>,
        wanted: Wanted,
        present: &[Vec<u64>],
    ) -> Result<DevicePlan, DeviceError> {
        let (facts, measure) = (component.facts, component.measure);
        if facts.has_carries(measure) {
            let name = &facts.measures()[measure].name;
            return Err(DeviceError::Unsupported { reason: format!("measure {name} has sums beyond its type") });
        }
        let is_double = component.summand == Summand::Doubles;
        let members = |accumulation| DevicePlan::members(component, accumulation, present);
        let plan = match (wanted, component.summand) {
            (Wanted::Least, _) => members(Accumulation::order(measure, is_double, Extreme::<false>::ORDER)),
            (Wanted::Greatest, _) => members(Accumulation::order(measure, is_double, Extreme::<true>::ORDER)),
            (_, Summand::Ones) => members(Accumulation::ones(measure)),
            (_, Summand::Counts) => {
                let column = source.counts_column(measure).expect("row counts are a column");
                members(Accumulation::whole(column, 2, DeviceMonoid::Wide))
            }
            (_, Summand::Doubles) if !component.weighted => members(Accumulation::doubles(facts, measure)?),
            (_, Summand::Doubles) => {
                let classes = DevicePlan::classes(component, Weighting::Doubles, false, present);
                DevicePlan::of(Accumulation::doubles(facts, measure)?, classes.expect(HAS_WORDS))
            }
            (_, Summand::Decimals) => DevicePlan::decimals(component, present),
        };
        if plan.accumulation.limbs > 1 && facts.len() > LIMB_FACTS_MAX {
            let reason = format!("{} facts, at most {LIMB_FACTS_MAX} in sums of more than 64 bits", facts.len());
            return Err(DeviceError::Unsupported { reason });
        }
        Ok(plan)
    }

    /// A plan for which every weight is 1.
    fn members(component: &Component<'_>, accumulation: Accumulation, present: &[Vec<u64>]) -> DevicePlan {
        let weighting = match accumulation.monoid {
            DeviceMonoid::Precise => Weighting::DoubleMembers,
            _ => Weighting::Members,
        };
        let classes = DevicePlan::classes(component, weighting, false, present);
        DevicePlan::of(accumulation, classes.expect(HAS_WORDS))
    }

    /// The narrowest exact sums of decimals under whole weights; pairs of doubles under others.
    fn decimals(component: &Component<'_>, present: &[Vec<u64>]) -> DevicePlan {
        let (facts, measure) = (component.facts, component.measure);
        let weighting = if component.weighted { Weighting::Whole } else { Weighting::Members };
        let whole = DevicePlan::classes(component, weighting, true, present);
        // The bound of the sums of so many facts.
        let bound_of = |classes: &[Classes], facts_count: usize| {
            let magnitudes = classes.iter().map(|classes| classes.magnitude);
            bound(most(facts, measure), facts_count, magnitudes)
        };
        match whole {
            Some(classes) if is_narrow(bound_of(&classes, facts.len())) => {
                DevicePlan::of(Accumulation::whole(measure, 1, DeviceMonoid::Narrow), classes)
            }
            Some(classes) if is_wide(bound_of(&classes, facts.len())) => {
                // A value under the weights of the pass has 64 bits.
                let classes = match is_narrow(bound_of(&classes, 1)) {
                    true => classes,
                    false => DevicePlan::classes(component, weighting, false, present).expect(HAS_WORDS),
                };
                DevicePlan::of(Accumulation::whole(measure, 2, DeviceMonoid::Wide), classes)
            }
            _ => {
                let limbs = if is_narrow(bound_of(&[], facts.len())) { 1 } else { 2 };
                let classes = DevicePlan::classes(component, Weighting::Doubles, false, present).expect(HAS_WORDS);
                DevicePlan::of(Accumulation::whole(measure, limbs, DeviceMonoid::Precise), classes)
            }
        }
    }

    /// The classes of all dimensions; `None` if whole weights are wanted and one is not.
    fn classes(
        component: &Component<'_>,
        weighting: Weighting,
        folds: bool,
        present: &[Vec<u64>],
    ) -> Option<Vec<Classes>> {
        let maps = component.maps.iter().zip(present);
        maps.map(|(map, present)| Classes::of(map, weighting, folds, present)).collect()
    }

    fn of(accumulation: Accumulation, classes: Vec<Classes>) -> DevicePlan {
        let looked_up: Vec<usize> = (0..classes.len()).filter(|at| !classes[*at].is_trivial()).collect();
        let product = |(dimension, classes): (usize, &Classes)| {
            let entries = classes.classes.len() as u64;
            Product::of(dimension, classes.count.into(), classes.targets().into(), entries)
        };
        let multiplied = classes.iter().enumerate().filter(|(_, classes)| !classes.is_selection());
        let shape = classes.iter().map(|classes| u64::from(classes.count)).collect();
        let products = Products::new(shape, multiplied.map(product).collect());
        DevicePlan { accumulation, classes, looked_up, products }
    }

    /// True if the plan adds up decimals in 64 bits.
    pub(super) fn is_narrow(&self) -> bool {
        self.accumulation.monoid == DeviceMonoid::Narrow
    }

    /// Refuses sums that would take too much memory at once.
    pub(super) fn check_room(&self) -> Result<(), DeviceError> {
        let most = PLACES_MAX / self.accumulation.monoid.words();
        match self.kept_places() {
            places if places <= most => Ok(()),
            places => {
                let reason = format!("{places} sums would be kept at once, at most {most}");
                Err(DeviceError::Unsupported { reason })
            }
        }
    }

    /// True if the pass over facts needs a total alone: whole numbers of one class in one limb.
    pub(super) fn is_total(&self) -> bool {
        let Accumulation { values, limbs, .. } = self.accumulation;
        self.looked_up.is_empty() && values == FactValues::Whole && limbs == 1
    }

    /// True if no target has a fact.
    pub(super) fn is_empty(&self) -> bool {
        self.classes.iter().any(|classes| classes.count == 0)
    }

    /// Places of all sums that a contraction writes, and the additions of its products.
    pub(super) fn work(&self) -> (f64, f64) {
        let steps = || self.products.steps().iter();
        let first = places(self.products.shape()) as f64;
        let all = first + steps().map(|step| step.places() as f64).sum::<f64>();
        (all, steps().map(|step| step.additions() as f64).sum())
    }

    /// Places of all sums for which a contraction has memory at once: those of classes, which are limbs and the pairs
    /// that these become, and two arrays that take the sums of products in turn.
    fn kept_places(&self) -> u64 {
        let of_classes = places(self.products.shape());
        let of_classes = if self.accumulation.has_pairs() { of_classes.saturating_mul(2) } else { of_classes };
        turns(self.products.steps()).iter().fold(of_classes, |kept, places| kept.saturating_add(*places))
    }

    /// Dimensions whose numbers become targets alike, in order: neighbours that need no table are one axis.
    pub(super) fn axes(&self) -> Vec<Axis> {
        let shape = self.products.last_shape();
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

/// Places of the two arrays that take the sums of products in turn.
pub(super) fn turns(steps: &[Product]) -> [u64; 2] {
    [0, 1].map(|turn| steps.iter().skip(turn).step_by(2).map(Product::places).max().unwrap_or(0))
}

/// A column of whole numbers that an algorithm adds up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summed {
    /// Its place among the columns of the facts' source.
    pub(super) column: usize,
    /// The greatest magnitude, at least 1.
    pub(super) most: u128,
}

impl Summed {
    /// The decimals of a measure.
    pub(super) fn decimals(facts: &Facts, measure: usize) -> Summed {
        Summed { column: measure, most: most(facts, measure) }
    }
}

/// Refuses sums of as many numbers up to `most` as there are facts that may pass 64 bits; `magnitudes` has the greatest
/// weight of each dimension.
pub(super) fn check_bound(facts: &Facts, most: u128, magnitudes: impl Iterator<Item = u64>) -> Result<(), DeviceError> {
    match bound(most, facts.len(), magnitudes) {
        bound if is_narrow(bound) => Ok(()),
        bound => Err(DeviceError::Unsupported { reason: format!("sums may pass 64 bits: {bound} is their bound") }),
    }
}

/// A weight of 32 bits, as algorithms have them that multiply facts by weights.
pub(super) fn whole_weight(weight: f64) -> Result<i32, DeviceError> {
    let refused = |reason: &str| Err(DeviceError::Unsupported { reason: reason.to_string() });
    match weight.fract() == 0.0 {
        true if weight.abs() <= f64::from(i32::MAX) => Ok(weight as i32),
        true => refused("a weight is too large: it has more than 32 bits"),
        false => refused("a weight is not whole"),
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
