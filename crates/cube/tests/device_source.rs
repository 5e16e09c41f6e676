//! What is particular to source-based and target-based aggregation on the device: places of maps, jumps over pages,
//! recorded runs, counts of additions, memory. `tests/equal` shows that all algorithms give the same cells.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use warpcube_column::Residency;
use warpcube_cube::aggregate::{Algorithm, Area, Progress, Request, TargetMap, aggregate, work};
use warpcube_cube::device::{
    DeviceAggregation, DeviceAlgorithm, DeviceCells, Expansion, FactsSource, MapPlace, PARENT_CELLS, Preaggregation,
    ResidentFacts, SourceBased, SourceVariant,
};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType, Values};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];

/// True if tests run on the first GPU: if `WARPCUBE_TEST_DEVICE` is `cuda`.
fn is_on_cuda() -> bool {
    std::env::var("WARPCUBE_TEST_DEVICE").is_ok_and(|device| device == "cuda")
}

/// A cube and an area of it.
#[derive(Debug, Clone)]
struct Case {
    /// Base elements of each dimension, and the bits of its coordinates.
    sizes: Vec<u32>,
    bits: Vec<u32>,
    /// Coordinates and value of each fact; facts of one key add up.
    facts: Vec<(Vec<u32>, Option<i64>)>,
    /// Targets of each dimension: base elements with weights.
    targets: Vec<Vec<Vec<(u32, f64)>>>,
}

impl Case {
    fn facts(&self) -> Arc<Facts> {
        let measure = FactMeasure::new("amount", Rule::Sum, ValueType::Decimal { scale: 2 });
        let mut loader = Loader::new(KeyLayout::new(&self.bits).unwrap(), vec![measure]);
        let column = |dimension: usize| self.facts.iter().map(|fact| fact.0[dimension]).collect::<Vec<u32>>();
        let columns: Vec<Vec<u32>> = (0..self.sizes.len()).map(column).collect();
        let values: Vec<i64> = self.facts.iter().map(|fact| fact.1.unwrap_or(0)).collect();
        let filled: Vec<bool> = self.facts.iter().map(|fact| fact.1.is_some()).collect();
        let coordinates: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let input = [InputColumn { values: InputValues::Decimals(&values), filled: Some(&filled) }];
        loader.append(&coordinates, &input).unwrap();
        Arc::new(loader.finish(64).unwrap())
    }

    fn area(&self) -> Area {
        let map = |(size, targets): (&u32, &Vec<_>)| TargetMap::from_targets(*size, targets).unwrap();
        Area::new(self.sizes.iter().zip(&self.targets).map(map).collect())
    }

    /// The cells by algorithm (1).
    fn expected(&self) -> DeviceCells {
        let by = Request::by(Algorithm::Source);
        let cells = aggregate(&self.facts(), &self.area(), &[0], &by, &Progress::new()).unwrap();
        let Values::Decimals(sums) = &cells.columns()[0].values else { panic!("sums of decimals are decimals") };
        DeviceCells { ranks: cells.ranks().to_vec(), sums: sums.clone() }
    }

    fn resident(&self, order: LaneOrder) -> Arc<ResidentFacts> {
        self.resident_in(order, 1 << 28)
    }

    /// The facts on a device of so many bytes of budget.
    fn resident_in(&self, order: LaneOrder, budget: u64) -> Arc<ResidentFacts> {
        let device = match is_on_cuda() {
            true => Device::cuda(0, Some(budget)).unwrap(),
            false => Device::emulated(EmulatorOptions { order, ..EmulatorOptions::default() }, budget).unwrap(),
        };
        let source = FactsSource::new(self.facts(), "test", "1");
        Arc::new(ResidentFacts::new(Arc::new(Residency::new(device)), source))
    }
}

/// Targets of a dimension: consolidated elements over base elements and the consolidated ones before them, so that base
/// elements lie below a target on several paths.
fn dimension(size: u32) -> impl Strategy<Value = Vec<Vec<(u32, f64)>>> {
    let children = prop::collection::vec((0..size + 4, -2_i32..4), 1..8);
    prop::collection::vec(children, 1..6).prop_map(move |elements| {
        let mut targets: Vec<Vec<(u32, f64)>> = Vec::new();
        for children in elements {
            let mut target = Vec::new();
            for (child, weight) in children {
                match targets.get(child.wrapping_sub(size) as usize) {
                    Some(below) => target.extend(below.iter().map(|entry| (entry.0, entry.1 * f64::from(weight)))),
                    None => target.push((child % size, f64::from(weight))),
                }
            }
            targets.push(target);
        }
        targets
    })
}

/// Every dimension as it is, one target for all base elements, or drawn.
fn targets(size: u32) -> impl Strategy<Value = Vec<Vec<(u32, f64)>>> {
    prop_oneof![
        1 => Just((0..size).map(|base| vec![(base, 1.0)]).collect()),
        1 => Just(vec![(0..size).map(|base| (base, 1.0)).collect()]),
        3 => dimension(size),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let sizes = prop::collection::vec(1_u32..12, 1..5);
    (sizes, any::<bool>()).prop_flat_map(|(sizes, is_wide)| {
        let least = |size: &u32| (u32::BITS - (size - 1).leading_zeros()).max(1);
        let bits: Vec<u32> = sizes.iter().map(|size| if is_wide { 30 } else { least(size) }).collect();
        let coordinates: Vec<_> = sizes.iter().map(|size| 0..*size).collect();
        let value = prop::option::weighted(0.9, -1000_i64..1000);
        let facts = prop::collection::vec((coordinates, value), 0..900);
        let targets: Vec<_> = sizes.iter().map(|size| targets(*size)).collect();
        (facts, targets).prop_map(move |(facts, targets)| Case {
            sizes: sizes.clone(),
            bits: bits.clone(),
            facts,
            targets,
        })
    })
}

/// Runs `check` over drawn cases: so many from seed 21, or `WARPCUBE_TEST_CASES` from `WARPCUBE_TEST_SEED`.
fn cases(count: u32, check: impl Fn(&Case)) {
    let number = |variable: &str| std::env::var(variable).ok().map(|text| text.parse::<u64>().expect("a number"));
    let count = number("WARPCUBE_TEST_CASES").map_or(count, |count| count as u32);
    let rng_seed = RngSeed::Fixed(number("WARPCUBE_TEST_SEED").unwrap_or(21));
    let config = Config { cases: count, rng_seed, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    runner
        .run(&case(), |case| {
            check(&case);
            Ok(())
        })
        .unwrap();
}

fn named(name: &str) -> DeviceAlgorithm {
    name.parse().unwrap()
}

/// All algorithms that the device runs, the emulated one none whose kernels launch kernels; each pair of preaggregation
/// and expansion with `functions`.
fn all_variants(functions: u32) -> Vec<DeviceAlgorithm> {
    let launches = |algorithm: &DeviceAlgorithm| match algorithm {
        DeviceAlgorithm::Source(variant) => variant.expansion.launches() && !is_on_cuda(),
        _ => false,
    };
    DeviceAlgorithm::all_variants(&[functions]).into_iter().filter(|algorithm| !launches(algorithm)).collect()
}

/// Checks the cells of some algorithms.
fn check(case: &Case, order: LaneOrder, algorithms: &[DeviceAlgorithm]) {
    let resident = case.resident(order);
    let (on_device, expected, area) = (DeviceAggregation::new(resident.clone()), case.expected(), case.area());
    resident.device().rehearse(Some("cube source"), || {
        algorithms.iter().for_each(|algorithm| drop(on_device.sums(*algorithm, &area, 0, &Arc::default())));
    });
    for algorithm in algorithms {
        let found = on_device.sums(*algorithm, &area, 0, &Arc::default()).unwrap();
        assert_eq!(found, expected, "{algorithm}");
    }
}

#[test]
fn maps_in_shared_and_global_memory_give_the_cells_of_the_cpu() {
    let pairs = ["match/thread", "first-shared/balanced", "strided/host-children", "none/host-child-blocks"];
    let name = |pair, map: MapPlace| format!("gpu-source/{pair}/{}/h64", map.name());
    let names = pairs.into_iter().flat_map(|pair| MapPlace::ALL.map(|map| name(pair, map)));
    let algorithms: Vec<DeviceAlgorithm> = names.map(|name| named(&name)).collect();
    ORDERS.into_iter().for_each(|order| cases(8, |case| check(case, order, &algorithms)));
}

/// Facts of every third key of a cube, with a value each.
fn regular(sizes: &[u32], bits: &[u32], targets: Vec<Vec<Vec<(u32, f64)>>>) -> Case {
    let cells: u32 = sizes.iter().product();
    let fact = |number: u32| {
        let mut rest = number;
        let mut key = vec![0; sizes.len()];
        for (coordinate, size) in key.iter_mut().zip(sizes).rev() {
            *coordinate = rest % size;
            rest /= size;
        }
        (key, Some(i64::from(number % 97) - 40))
    };
    let facts = (0..cells).step_by(3).map(fact).collect();
    Case { sizes: sizes.to_vec(), bits: bits.to_vec(), facts, targets }
}

fn total(size: u32) -> Vec<Vec<(u32, f64)>> {
    vec![(0..size).map(|base| (base, 1.0)).collect()]
}

fn each(size: u32) -> Vec<Vec<(u32, f64)>> {
    (0..size).map(|base| vec![(base, 1.0)]).collect()
}

#[test]
fn targets_jump_over_pages_without_their_cells() {
    let sizes = [40, 30, 50];
    let ends = vec![vec![(0, 1.0), (39, -2.0)], vec![(20, 3.0)]];
    let narrow = regular(&sizes, &[6, 5, 6], vec![ends.clone(), each(30), each(50)]);
    let wide = regular(&sizes, &[32, 32, 32], vec![ends, each(30), total(50)]);
    for order in ORDERS {
        [&narrow, &wide].into_iter().for_each(|case| check(case, order, &[named("gpu-target")]));
    }
}

#[test]
fn recorded_runs_give_the_same_cells_each_time() {
    let case =
        regular(&[9, 8, 7], &[4, 3, 3], vec![each(9), total(8), vec![vec![(1, 2.0), (3, 1.0)], vec![(3, -1.0)]]]);
    let resident = case.resident(LaneOrder::Forward);
    let (on_device, expected) = (DeviceAggregation::new(resident.clone()), case.expected());
    let sums = |algorithm| drop(on_device.sums(algorithm, &case.area(), 0, &Arc::default()));
    resident.device().rehearse(Some("cube source"), || all_variants(2).into_iter().for_each(sums));
    for algorithm in all_variants(2) {
        let mut recorded = on_device.record(algorithm, &case.area(), 0, &Arc::default()).unwrap().unwrap();
        for _ in 0..2 {
            recorded.run().unwrap();
            assert_eq!(recorded.cells().unwrap(), expected, "{algorithm}");
        }
        let is_by_host = algorithm.to_string().contains("/host-child");
        assert_eq!(recorded.used().contains("children launched by the host"), is_by_host, "{algorithm}");
    }
}

#[test]
fn preaggregation_saves_atomic_additions() {
    let additions = |case: &Case, name: &str| {
        let variant: SourceVariant = name.parse().unwrap();
        SourceBased::new(case.resident(LaneOrder::Forward), variant)
            .additions(&case.area(), 0, &Arc::default())
            .unwrap()
    };
    let all = regular(&[9, 8, 7], &[4, 3, 3], vec![total(9), total(8), total(7)]);
    assert_eq!(additions(&all, "gpu-source/none/thread/h7"), 168);
    for name in
        ["first-shared/thread", "shuffle/thread", "match/thread", "strided/balanced", "strided/host-child-blocks"]
    {
        // A warp of 32 cells adds once; 168 cells are 6 warps.
        assert_eq!(additions(&all, &format!("gpu-source/{name}/h7")), 6, "{name}");
    }
    // Neighbouring cells have three targets each in turn: a warp of targets adds three times, the last one too.
    let thrice = vec![vec![(0, 1.0), (1, 1.0)], vec![(0, 2.0), (1, 1.0)], vec![(1, 1.0), (0, 1.0)]];
    let several = regular(&[2, 32, 3], &[1, 5, 2], vec![thrice, total(32), total(3)]);
    let expected = work(&several.facts(), several.area().maps()).additions;
    assert_eq!((expected, additions(&several, "gpu-source/none/balanced/h1")), (192, 192));
    for name in ["strided/balanced", "match/host-children"] {
        assert_eq!(additions(&several, &format!("gpu-source/{name}/h1")), 3 * 6, "{name}");
    }
}

/// A lane of a warp that adds: the target's rank, and the number of targets of its cell.
type Lane = (u64, usize);

/// Atomic additions of a warp whose active lanes are those that are given, by lane.
fn warp_additions(preaggregation: Preaggregation, lanes: &[Option<Lane>]) -> u64 {
    let ranks = || lanes.iter().flatten().map(|lane| lane.0);
    let active = ranks().count();
    let saved = match preaggregation {
        Preaggregation::None => 0,
        // All lanes with the target of the first active one are one addition.
        Preaggregation::FirstShared | Preaggregation::Shuffle => {
            ranks().filter(|rank| Some(*rank) == ranks().next()).count().saturating_sub(1)
        }
        // A lane with the target of the lane of its number modulo lane 0's targets leaves its addition to that.
        Preaggregation::Strided => {
            let stride = lanes[0].map_or(0, |lane| lane.1);
            let rank = |lane: usize| lanes[lane].map(|lane| lane.0);
            let joins = |lane: &usize| rank(*lane).is_some() && rank(*lane) == rank(lane % stride);
            if (1..32).contains(&stride) { (stride..lanes.len()).filter(joins).count() } else { 0 }
        }
        Preaggregation::Match => active - ranks().collect::<BTreeSet<u64>>().len(),
    };
    (active - saved) as u64
}

/// Atomic additions by a walk over cells in the order of their keys and over each cell's targets, the last dimension's
/// first.
fn reference_additions(case: &Case, variant: SourceVariant) -> u64 {
    let (facts, area) = (case.facts(), case.area());
    let targets = |fact: usize| {
        let mut ranks = vec![0_u64];
        for (map, base) in area.maps().iter().zip(facts.cell(fact)) {
            let list = map.targets_of(base).0;
            let below = |rank: &u64| {
                let first = rank * u64::from(map.targets());
                list.iter().map(move |target| first + u64::from(*target)).collect::<Vec<u64>>()
            };
            ranks = ranks.iter().flat_map(below).collect();
        }
        ranks
    };
    let filled = (0..facts.len()).filter(|fact| facts.base().columns()[0].is_filled(*fact));
    let cells: Vec<Vec<u64>> = filled.map(targets).filter(|targets| !targets.is_empty()).collect();
    let lane = |cell: &Vec<u64>, at: usize| cell.get(at).map(|rank| (*rank, cell.len()));
    let warp = |lanes: &[Option<Lane>]| warp_additions(variant.preaggregation, lanes);
    let in_turn = |cells: &[Vec<u64>]| {
        let longest = cells.iter().map(Vec::len).max().unwrap_or(0);
        let step = |at: usize| warp(&cells.iter().map(|cell| lane(cell, at)).collect::<Vec<_>>());
        (0..longest).map(step).sum::<u64>()
    };
    let side_by_side = |cells: &[Vec<u64>]| {
        let lanes: Vec<_> = cells.iter().flat_map(|cell| (0..cell.len()).map(move |at| lane(cell, at))).collect();
        lanes.chunks(32).map(warp).sum::<u64>()
    };
    match variant.expansion {
        Expansion::Thread => cells.chunks(32).map(in_turn).sum(),
        Expansion::Balanced => cells.chunks(256).map(side_by_side).sum(),
        _ => cells.chunks(PARENT_CELLS as usize).map(side_by_side).sum(),
    }
}

#[test]
fn atomic_additions_are_those_of_a_walk_over_warps() {
    // Each order of lanes has expansions of its own: kernels that count compile for seconds.
    let expansions: [&[Expansion]; 3] =
        [&[Expansion::Thread], &[Expansion::Balanced], &[Expansion::HostChildren, Expansion::HostChildBlocks]];
    for (order, expansions) in ORDERS.into_iter().zip(expansions) {
        cases(12, |case| {
            let resident = case.resident(order);
            let variants = all_variants(5).into_iter().filter_map(|algorithm| match algorithm {
                DeviceAlgorithm::Source(variant) if expansions.contains(&variant.expansion) => Some(variant),
                _ => None,
            });
            let variants: Vec<SourceVariant> = variants.collect();
            let additions = |variant: &SourceVariant| {
                SourceBased::new(resident.clone(), *variant).additions(&case.area(), 0, &Arc::default())
            };
            let rehearsal = || variants.iter().for_each(|variant| drop(additions(variant)));
            resident.device().rehearse(Some("cube source"), rehearsal);
            for variant in &variants {
                assert_eq!(additions(variant).unwrap(), reference_additions(case, *variant), "{variant}");
            }
        });
    }
}

#[test]
fn hash_functions_end_at_the_memory_budget() {
    let case = regular(&[9, 8, 7], &[4, 3, 3], vec![each(9), each(8), each(7)]);
    let on_device = DeviceAggregation::new(case.resident_in(LaneOrder::Forward, 1 << 22));
    let algorithm = named("gpu-source/none/thread/h12288");
    let mut recorded = on_device.record(algorithm, &case.area(), 0, &Arc::default()).unwrap().unwrap();
    recorded.run().unwrap();
    assert_eq!(recorded.cells().unwrap(), case.expected());
    let used = recorded.used();
    let functions: u32 = used.split(' ').next().unwrap().parse().unwrap();
    // A table has 1,024 slots of 16 bytes: no more than 256 in 4 MiB.
    assert!((128..256).contains(&functions), "{used}");
}

#[test]
fn kernels_of_the_emulated_device_launch_none() {
    if is_on_cuda() {
        return;
    }
    let case = regular(&[4, 4], &[2, 2], vec![total(4), each(4)]);
    let on_device = DeviceAggregation::new(case.resident(LaneOrder::Forward));
    for name in ["gpu-source/none/children/h1", "gpu-source/strided/child-blocks/shared/h1"] {
        let error = on_device.sums(named(name), &case.area(), 0, &Arc::default()).unwrap_err().to_string();
        assert!(error.contains("kernels of the emulated device launch no kernels"), "{error}");
    }
}
