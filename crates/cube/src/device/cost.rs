//! The cost model of the device: which algorithm takes the fewest milliseconds for an area.
//!
//! Rates are those of one NVIDIA H200 (`bench/results/cube-algorithms-h200.json`, queries M1 to B3 over 41 and 281
//! million facts; bench/results/cubes.md). There contraction is 19 to 1,500 times as quick as the next algorithm, and
//! near the time of one pass over the facts. So three candidates suffice: contraction; the source-based variant whose
//! six times have the least geometric mean; the target-based algorithm. The latter two are chosen where contraction
//! keeps so many sums of classes that those take longer than the facts do, or more than there is room for: targets of
//! several dimensions that overlap, or weigh base elements one by one.
//!
//! Sums of decimals in 64 bits were measured. Contraction of anything else is taken to cost half as much again for each
//! further limb of a sum, and as much again for the rows of an AVG; no other algorithm of the device aggregates it.
//!
//! Over the six queries, class sums aside, contraction is predicted within 20 % and the source-based variant within a
//! factor of 2.3, by which another algorithm has to be quicker. The target-based algorithm has its rate from two of
//! them: the others do not tell how many miniblocks a target reads.

use super::error::DeviceError;
use super::keys::MINIBLOCK_FACTS;
use super::plan::{DevicePlan, PLACES_MAX};
use crate::aggregate::{Area, Decision, Place, Prediction, TargetMap, in_segments, rounded};
use crate::algorithm::{DeviceAlgorithm, Expansion, MapPlace, Preaggregation, SourceVariant};
use crate::facts::{Facts, Rule, Segment};

/// Launches and waits of a statement in milliseconds: M1 takes 0.0813, its bytes alone 0.0726.
const LAUNCHES_MS: f64 = 0.009;
/// A launch for each segment of the facts but the first, in milliseconds: a third of the above, which has three; not
/// measured.
const SEGMENT_MS: f64 = 0.003;
/// Nanoseconds of a fact in a contraction whose dimensions have one class each: B1 takes 0.501 ms for 281,057,088.
const TOTAL_NS: f64 = 0.0018;
/// Nanoseconds of a fact whose classes are looked up: 0.0033 to 0.0044 in B2, B3, M2, M3.
const FACT_NS: f64 = 0.0036;
/// Nanoseconds of a fact whose key is looked at, by the difference of the two above.
const KEY_NS: f64 = FACT_NS - TOTAL_NS;
/// Nanoseconds of a sum of classes that is written, or read for a product: 9 bytes at 4.55 TB/s, the rate of M1.
const CLASS_SUM_NS: f64 = 0.002;
/// Nanoseconds of a relevant cell of the source-based algorithm: B1 and M1 take 0.068 and 0.045, with one addition.
const CELL_NS: f64 = 0.04;
/// Nanoseconds of an addition to a hash table: 0.008 to 0.046 in B2, B3, M2, M3.
const ADDITION_NS: f64 = 0.02;
/// Nanoseconds of a slot of a hash table, which is cleared and merged: 32 bytes at 4.55 TB/s.
const SLOT_NS: f64 = 0.007;
/// Nanoseconds of a fact that a target reads: 0.037 in M1 and 0.046 in B1, whose one target reads all facts.
const READ_NS: f64 = 0.04;
/// Contraction stays unless another algorithm is predicted to be this many times as quick: the error of predictions.
const DOUBT: f64 = 2.3;
/// Facts that a prediction looks at.
const SAMPLE_FACTS: usize = 256;
/// Distance of the facts that are looked at, as a share of all: the golden ratio, which no period of the keys meets.
const SAMPLE_STEP: f64 = 0.618_033_988_749_895;

/// The source-based variant among the candidates.
const SOURCE: SourceVariant = SourceVariant {
    preaggregation: Preaggregation::Shuffle,
    expansion: Expansion::Thread,
    map: MapPlace::Constant,
    hash_functions: 64,
};

impl DeviceAlgorithm {
    /// The algorithms that the cost model chooses from.
    pub const CANDIDATES: [DeviceAlgorithm; 3] =
        [DeviceAlgorithm::Contract, DeviceAlgorithm::Source(SOURCE), DeviceAlgorithm::Target];
}

/// The decision of the device for an area, with the plan that it was made by.
pub struct DeviceChoice {
    /// The decision; its milliseconds are those of one measure.
    pub decision: Decision<DeviceAlgorithm>,
    /// The measure that the decision was made for, with the plan of its contraction.
    plan: Option<(usize, DevicePlan)>,
}

impl DeviceChoice {
    /// The algorithm that the caller names.
    pub fn named(algorithm: DeviceAlgorithm) -> DeviceChoice {
        DeviceChoice { decision: Decision::asked_for(algorithm, 0), plan: None }
    }

    /// True if the caller named the algorithm.
    pub(super) fn is_named(&self) -> bool {
        self.plan.is_none() && self.decision.predicted.is_empty()
    }

    /// The plan of a measure's contraction, where that was chosen for this measure.
    pub(super) fn plan(&self, measure: usize) -> Option<&DevicePlan> {
        let plan = self.plan.as_ref().filter(|plan| plan.0 == measure);
        plan.filter(|_| self.decision.algorithm == DeviceAlgorithm::Contract).map(|plan| &plan.1)
    }
}

/// Chooses among the candidates; `plan` is that of contraction, absent where no fact has a value.
///
/// # Errors
/// [`DeviceError::Unsupported`] where no candidate has room for the area.
pub(super) fn choose(
    facts: &Facts,
    area: &Area,
    measure: usize,
    plan: Option<DevicePlan>,
) -> Result<DeviceChoice, DeviceError> {
    let decision = |algorithm, reason, predicted, ms| {
        let (place, targets) = (Place::default(), area.targets());
        Decision { place, algorithm, predicted, reason, ms, load_ms: 0.0, targets }
    };
    let Some(plan) = plan else {
        let decision = decision(DeviceAlgorithm::Contract, "no fact has a value".to_string(), Vec::new(), 0.0);
        return Ok(DeviceChoice { decision, plan: None });
    };
    let rule = facts.measures()[measure].rule;
    let launches = segments_ms(facts);
    let (sample, targets) = (Sample::of(facts, &area.maps_of(measure)), area.targets());
    let mut predicted = Vec::new();
    let too_large = plan.check_room().err();
    if too_large.is_none() {
        let (sums, products) = plan.work();
        let class_sums = (sums + products) * plan.accumulation.monoid.words() as f64;
        let ms = contraction_ms(sample.touched, plan.looked_up.is_empty(), class_sums);
        let ms = (ms * f64::from(1 + plan.accumulation.limbs) / 2.0 + launches) * rule.passes();
        let (algorithm, additions) = (DeviceAlgorithm::Contract, sample.relevant + products);
        predicted.push(Prediction { algorithm, additions, cost: ms });
    }
    if targets <= PLACES_MAX.into() && rule == Rule::Sum && plan.is_narrow() {
        let additions = sample.additions;
        let ms = source_ms([facts.len() as f64, sample.relevant, additions, targets as f64]) + launches;
        predicted.push(Prediction { algorithm: DeviceAlgorithm::Source(SOURCE), additions, cost: ms });
        let ms = LAUNCHES_MS + sample.reads * READ_NS / 1e6 + launches;
        predicted.push(Prediction { algorithm: DeviceAlgorithm::Target, additions, cost: ms });
    }
    let least = predicted.iter().min_by(|one, other| doubted_ms(one).total_cmp(&doubted_ms(other))).copied();
    let (algorithm, ms) = match (least, too_large) {
        (Some(least), _) => (least.algorithm, least.cost),
        (None, Some(error)) => return Err(error),
        (None, None) => unreachable!("contraction is a candidate where there is room for it"),
    };
    let (all, cells, many) = (facts.len() as f64, rounded(sample.relevant), rounded(targets as f64));
    let mut reason = format!("least time for about {cells} relevant of {} cells and {many} targets", rounded(all));
    reason.push_str(&in_segments(facts));
    if let Err(DeviceError::Unsupported { reason: too_large }) = plan.check_room() {
        reason.push_str(&format!("; not {}: {too_large}", DeviceAlgorithm::Contract));
    }
    Ok(DeviceChoice { decision: decision(algorithm, reason, predicted, ms), plan: Some((measure, plan)) })
}

/// Milliseconds by which an algorithm is compared with contraction.
fn doubted_ms(prediction: &Prediction<DeviceAlgorithm>) -> f64 {
    if prediction.algorithm == DeviceAlgorithm::Contract { prediction.cost } else { prediction.cost * DOUBT }
}

/// Milliseconds of one pass over the facts of miniblocks that are not left out, whose classes are looked up or are one,
/// and of the sums of classes that are written and read behind it.
pub(super) fn contraction_ms(facts: f64, is_total: bool, class_sums: f64) -> f64 {
    let each = if is_total { TOTAL_NS } else { FACT_NS };
    LAUNCHES_MS + (facts * each + class_sums * CLASS_SUM_NS) / 1e6
}

/// Milliseconds of the launches over segments behind the first.
pub(super) fn segments_ms(facts: &Facts) -> f64 {
    (facts.segments().len() - 1) as f64 * SEGMENT_MS
}

/// Milliseconds of the prefilter over all facts, of relevant cells, their additions, and the hash tables, which have
/// two to four slots a target.
fn source_ms([facts, relevant, additions, targets]: [f64; 4]) -> f64 {
    let slots = f64::from(SOURCE.hash_functions) * targets * 3.0;
    LAUNCHES_MS + (facts * KEY_NS + relevant * CELL_NS + additions * ADDITION_NS + slots * SLOT_NS) / 1e6
}

/// Counts of all facts, estimated from a sample. All counts but the first include one more fact, with as many targets
/// as a fact may have: an area whose few cells the sample misses goes to contraction, whose time has a bound.
pub(super) struct Sample {
    /// Facts with a target.
    relevant: f64,
    /// Facts of miniblocks that may have a target.
    pub(super) touched: f64,
    /// Additions of facts to targets.
    additions: f64,
    /// Facts that targets read, at most: a target reads a whole miniblock of keys if one may belong to it.
    reads: f64,
}

impl Sample {
    pub(super) fn of(facts: &Facts, maps: &[&TargetMap]) -> Sample {
        let add = |all: Sample, of: Sample| Sample {
            relevant: all.relevant + of.relevant,
            touched: all.touched + of.touched,
            additions: all.additions + of.additions,
            reads: all.reads + of.reads,
        };
        let none = Sample { relevant: 0.0, touched: 0.0, additions: 0.0, reads: 0.0 };
        facts.segments().iter().map(|segment| Sample::of_segment(segment, maps)).fold(none, add)
    }

    fn of_segment(facts: &Segment, maps: &[&TargetMap]) -> Sample {
        let (layout, all, count) = (facts.layout(), facts.len(), facts.len().min(SAMPLE_FACTS));
        let unseen = if count < all { 1.0 } else { 0.0 };
        let most = |map: &&TargetMap| (0..map.bases()).map(|base| map.targets_of(base).0.len()).max().unwrap_or(0);
        let (mut relevant, mut touched) = (0.0, unseen);
        let mut additions = unseen * maps.iter().map(|map| most(map) as f64).product::<f64>();
        let mut reads = unseen * maps.iter().map(|map| f64::from(map.targets())).product::<f64>();
        for number in 0..count {
            let fact = (((number as f64 * SAMPLE_STEP).fract() * all as f64) as usize).min(all - 1);
            let first = fact - fact % MINIBLOCK_FACTS;
            let last = (first + MINIBLOCK_FACTS).min(all) - 1;
            let keys = [first, fact, last].map(|fact| facts.keys().get(fact));
            let (mut own, mut read, mut is_same) = (1.0, 1.0, true);
            for (dimension, map) in maps.iter().enumerate() {
                let [first, base, last] = keys.map(|key| layout.coordinate(key, dimension));
                let targets = if base < map.bases() { map.targets_of(base).0.len() } else { 0 };
                own *= targets as f64;
                is_same &= first == last;
                read *= if is_same { targets as f64 } else { f64::from(map.targets()) };
            }
            relevant += f64::from(own > 0.0);
            touched += f64::from(read > 0.0);
            additions += own;
            reads += read;
        }
        let share = all as f64 / count.max(1) as f64;
        let touched = (touched * share).min(all as f64);
        Sample { relevant: relevant * share, touched, additions: additions * share, reads: reads * share }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts, relevant cells, additions, targets, and the milliseconds of contraction and of [`SOURCE`] on an H200.
    const MEASURED: [(&str, [f64; 4], [f64; 2]); 6] = [
        ("M1", [41_294_400.0, 41_294_400.0, 41_294_400.0, 1.0], [0.0816, 1.856]),
        ("M2", [41_294_400.0, 6_451_200.0, 1_489_370_400.0, 2519.0], [0.186, 31.28]),
        ("M3", [41_294_400.0, 28_828_800.0, 4_572_338_400.0, 874_437.0], [0.138, 212.9]),
        ("B1", [281_057_088.0, 281_057_088.0, 281_057_088.0, 1.0], [0.502, 19.23]),
        ("B2", [281_057_088.0, 281_057_088.0, 5_047_793_664.0, 228.0], [1.0, 81.34]),
        ("B3", [281_057_088.0, 281_057_088.0, 4_215_856_320.0, 17_460.0], [0.952, 50.92]),
    ];

    #[test]
    fn predictions_are_near_the_times_that_were_measured() {
        for (query, counts, [contraction, source]) in MEASURED {
            let share = contraction_ms(counts[0], counts[3] == 1.0, 0.0) / contraction;
            assert!((0.8..1.2).contains(&share), "{query}: contraction is predicted at {share} of its time");
            let share = source_ms(counts) / source;
            assert!((1.0 / 2.3..2.3).contains(&share), "{query}: {SOURCE} is predicted at {share} of its time");
        }
    }
}
