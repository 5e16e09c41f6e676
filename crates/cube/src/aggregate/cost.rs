//! The cost model: predicted work of each algorithm from a sample of cells, and the exact counts of an area.
//!
//! Unit of cost: one addition to an array. The number of cores does not enter, so that the choice, and with it the last
//! bits of sums of doubles, is the same on every machine. Milliseconds, which compare the CPU with a device, count
//! cores.

use rayon::prelude::*;

use super::contract::ContractionPlan;
use super::sums::{HASHED, is_dense};
use super::target::SCAN_CELLS_A_BASE;
use super::{Algorithm, Decision, Place, Prediction, TargetMap, Tuning};
use crate::facts::{Facts, Segment};

/// Cells that a prediction looks at.
const SAMPLE_CELLS: usize = 4096;
/// Cost of reading the coordinates of a cell, for each dimension.
const READ: f64 = 0.5;
/// Cost of one binary search among keys, for each bit of their number.
const SEARCH: f64 = 3.0;
/// Cost of a target besides its searches and cells.
const VISIT: f64 = 20.0;
/// Nanoseconds of an addition to an array on one core: 3.3 to 5.1 by the single-threaded algorithm in queries M1 to B3
/// (`bench/results/cube-tables-h200.json`).
const ADDITION_NS: f64 = 4.1;
/// Milliseconds of an aggregation of few cells: the threads and the cells of the result.
const LEAST_MS: f64 = 0.1;

/// Exact counts of an area, as the tables 5.1 and 5.2 of Meinke have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Filled base cells with at least one target.
    pub relevant_cells: u64,
    /// Additions of base cells to targets: the sum of the numbers of targets of all relevant cells.
    pub additions: u64,
}

/// Counts relevant cells and cell-to-target additions by one pass over the facts.
///
/// # Panics
/// If the number of maps is not that of the facts' dimensions.
pub fn work(facts: &Facts, maps: &[TargetMap]) -> Work {
    counts(facts, maps, Segment::is_live)
}

/// The number of cells with a target that a measure fills.
pub(crate) fn cells_below(facts: &Facts, maps: &[TargetMap], measure: usize) -> u64 {
    counts(facts, maps, |segment, cell| segment.columns()[measure].is_filled(cell)).relevant_cells
}

/// Counts over the cells that take part.
fn counts(facts: &Facts, maps: &[TargetMap], takes_part: impl Fn(&Segment, usize) -> bool + Sync) -> Work {
    assert_eq!(maps.len(), facts.layout().dimensions(), "one map a dimension");
    let count = |(facts, page): (&Segment, usize)| {
        let cells = facts.pages().cells(page);
        let mut products: Vec<u64> = cells.clone().map(|cell| takes_part(facts, cell).into()).collect();
        let mut coordinates = vec![0; cells.len()];
        for (dimension, map) in maps.iter().enumerate() {
            facts.coordinates(cells.clone(), dimension, &mut coordinates);
            for (product, &base) in products.iter_mut().zip(&coordinates) {
                *product *= map.matrix.row_length(base as usize) as u64;
            }
        }
        let relevant = products.iter().filter(|&&product| product > 0).count() as u64;
        Work { relevant_cells: relevant, additions: products.iter().sum() }
    };
    let none = || Work { relevant_cells: 0, additions: 0 };
    let pages: Vec<(&Segment, usize)> = pages(facts).collect();
    pages.into_par_iter().map(count).reduce(none, |one, other| Work {
        relevant_cells: one.relevant_cells + other.relevant_cells,
        additions: one.additions + other.additions,
    })
}

/// The pages of all segments.
fn pages(facts: &Facts) -> impl Iterator<Item = (&Segment, usize)> {
    facts.placed().flat_map(|(_, segment)| (0..segment.pages().len()).map(move |page| (segment, page)))
}

/// Milliseconds of a cost on the cores that the chunks of so many facts keep busy.
fn milliseconds(cost: f64, facts: usize, tuning: &Tuning) -> f64 {
    let cores = rayon::current_num_threads().min(facts.div_ceil(tuning.chunk_cells)).max(1);
    LEAST_MS + cost * ADDITION_NS / 1e6 / cores as f64
}

/// Predicts the cost of every algorithm and takes the least; the single-threaded one is never chosen. `passes` are
/// those of all measures.
pub(super) fn choose(
    facts: &Facts,
    maps: &[&TargetMap],
    plan: &ContractionPlan,
    passes: f64,
    tuning: &Tuning,
) -> Decision<Algorithm> {
    let sample = Sample::of(facts, maps);
    let targets: f64 = maps.iter().map(|map| f64::from(map.targets())).product();
    let addition = if is_dense(targets as u64, sample.additions as u64, tuning) { 1.0 } else { HASHED };
    let read = sample.read * READ * maps.len() as f64;
    let source = read + sample.additions * addition;
    let (contracted, steps) = plan.predict(sample.relevant, tuning);
    let search: f64 = facts.placed().map(|(_, segment)| search_cost(segment.len() as f64, maps)).sum();
    let target = targets * search + sample.additions * maps.len() as f64;
    let predicted = [
        Prediction { algorithm: Algorithm::Source, additions: sample.additions, cost: source },
        Prediction { algorithm: Algorithm::SourceParallel, additions: sample.additions, cost: source },
        Prediction { algorithm: Algorithm::Target, additions: sample.additions, cost: target },
        Prediction { algorithm: Algorithm::Contract, additions: contracted, cost: read + steps },
    ];
    let candidates = predicted.iter().filter(|prediction| prediction.algorithm != Algorithm::Source);
    let least = candidates.min_by(|one, other| one.cost.total_cmp(&other.cost));
    let least = *least.expect("there are three candidates");
    // Contraction without steps is a scan like the source-based one, and is called so.
    let algorithm = match least.algorithm {
        Algorithm::Contract if plan.is_scan() => Algorithm::SourceParallel,
        algorithm => algorithm,
    };
    Decision {
        place: Place::default(),
        algorithm,
        reason: reason(algorithm, &sample, targets, &predicted) + &in_segments(facts),
        predicted: predicted.to_vec(),
        ms: milliseconds(least.cost * passes, facts.len(), tuning),
        load_ms: 0.0,
        targets: maps.iter().map(|map| u128::from(map.targets())).product(),
    }
}

fn reason(algorithm: Algorithm, sample: &Sample, targets: f64, predicted: &[Prediction<Algorithm>]) -> String {
    let others = predicted.iter().filter(|prediction| prediction.algorithm != Algorithm::Source);
    let costs: Vec<String> = others
        .map(|Prediction { algorithm, additions, cost }| {
            format!("{algorithm} {} ({} additions)", rounded(*cost), rounded(*additions))
        })
        .collect();
    format!(
        "{algorithm} costs least for about {} relevant cells and {} targets; predicted costs: {}",
        rounded(sample.relevant),
        rounded(targets),
        costs.join(", ")
    )
}

/// The segments of facts in words, where there are several.
pub(crate) fn in_segments(facts: &Facts) -> String {
    match facts.segments().len() {
        1 => String::new(),
        segments => format!("; a pass over {segments} segments"),
    }
}

/// A number in three digits or so.
pub(crate) fn rounded(number: f64) -> String {
    match number {
        small if small < 1e3 => format!("{small:.0}"),
        thousands if thousands < 1e6 => format!("{:.1} thousand", thousands / 1e3),
        millions if millions < 1e9 => format!("{:.1} million", millions / 1e6),
        more => format!("{:.1} billion", more / 1e9),
    }
}

/// Counts over evenly spaced cells of the pages that pass the prefilter.
struct Sample {
    /// Cells of those pages.
    read: f64,
    /// Relevant cells.
    relevant: f64,
    /// Cell-to-target additions.
    additions: f64,
}

impl Sample {
    fn of(facts: &Facts, maps: &[&TargetMap]) -> Sample {
        let pages = relevant_pages(facts, maps);
        let read: usize = pages.iter().map(|(segment, page)| segment.pages().cells(*page).len()).sum();
        let cells = read.min(SAMPLE_CELLS);
        let (mut relevant, mut additions) = (0, 0.0);
        for number in 0..cells {
            // Evenly spaced over the cells of relevant pages, the lengths of last pages aside.
            let place = (number as u128 * read as u128 / cells as u128) as usize;
            let (segment, page) = pages[(place / facts.page_cells()).min(pages.len() - 1)];
            let within = segment.pages().cells(page);
            let key = segment.keys().get(within.start + place % within.len());
            let lengths = maps.iter().enumerate().map(|(dimension, map)| {
                map.matrix.row_length(facts.layout().coordinate(key, dimension) as usize) as f64
            });
            let product: f64 = lengths.product();
            relevant += usize::from(product > 0.0);
            additions += product;
        }
        let share = read as f64 / cells.max(1) as f64;
        Sample { read: read as f64, relevant: relevant as f64 * share, additions: additions * share }
    }
}

fn relevant_pages<'a>(facts: &'a Facts, maps: &[&TargetMap]) -> Vec<(&'a Segment, usize)> {
    let covered: Vec<Vec<u32>> = maps.iter().map(|map| map.matrix.covered(map.bases() as usize)).collect();
    let is_relevant = |(segment, page): &(&Segment, usize)| {
        let bounds = segment.pages().bounds(*page).iter();
        bounds.zip(&covered).all(|(&(least, greatest), covered)| {
            let last = covered.len() - 1;
            covered[(greatest as usize + 1).min(last)] > covered[(least as usize).min(last)]
        })
    };
    pages(facts).filter(is_relevant).collect()
}

/// Cost of finding the cells of one target: binary searches while ranges are long, then a scan.
fn search_cost(cells: f64, maps: &[&TargetMap]) -> f64 {
    let (mut cost, mut ranges, mut length) = (VISIT, 1.0, cells);
    for map in maps {
        let list = map.entries() as f64 / f64::from(map.targets().max(1));
        if length <= list * SCAN_CELLS_A_BASE as f64 {
            break;
        }
        cost += ranges * list * length.log2().max(1.0) * SEARCH;
        ranges *= list;
        length /= f64::from(map.bases().max(1));
    }
    cost + ranges * length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts, dimensions, additions of queries by the single-threaded algorithm, and its milliseconds beside an H200.
    const MEASURED: [(&str, [f64; 3], f64); 6] = [
        ("M1", [41_294_400.0, 6.0, 41_294_400.0], 702.0),
        ("M2", [41_294_400.0, 6.0, 1_489_370_400.0], 6_761.0),
        ("M3", [41_294_400.0, 6.0, 4_572_338_400.0], 15_571.0),
        ("B1", [281_057_088.0, 8.0, 281_057_088.0], 4_620.0),
        ("B2", [281_057_088.0, 8.0, 5_047_793_664.0], 31_453.0),
        ("B3", [281_057_088.0, 8.0, 4_215_856_320.0], 26_714.0),
    ];

    #[test]
    fn milliseconds_are_near_those_that_were_measured() {
        for (query, [facts, dimensions, additions], ms) in MEASURED {
            let share = (facts * dimensions * READ + additions) * ADDITION_NS / 1e6 / ms;
            assert!((0.7..1.3).contains(&share), "{query} is predicted at {share} of its time");
        }
    }
}
