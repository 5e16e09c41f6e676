//! Contraction of all rules and types on the emulated device, against aggregation on the CPU, where sizes and forms are
//! particular to it. `tests/equal` has random cubes.

use std::sync::Arc;

use warpcube_column::Residency;
use warpcube_cube::aggregate::{Algorithm, Area, CellColumn, Progress, Request, TargetMap, aggregate};
use warpcube_cube::device::{
    DeviceAggregation, DeviceAlgorithm, DeviceChoice, DeviceError, FactsSource, ResidentFacts,
};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType, Values};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

const ORDERS: [LaneOrder; 3] = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];
const RULES: [Rule; 5] = [Rule::Sum, Rule::Count, Rule::Avg, Rule::Min, Rule::Max];

fn on_device(facts: &Arc<Facts>, order: LaneOrder) -> DeviceAggregation {
    let device = Device::emulated(EmulatorOptions { order, ..EmulatorOptions::default() }, 1 << 28).unwrap();
    let source = FactsSource::new(facts.clone(), "test", "1");
    DeviceAggregation::new(Arc::new(ResidentFacts::new(Arc::new(Residency::new(device)), source)))
}

fn type_and_rows(values: InputValues<'_>) -> (ValueType, usize) {
    match values {
        InputValues::Decimals(values) => (ValueType::Decimal { scale: 2 }, values.len()),
        InputValues::Doubles(values) => (ValueType::Double, values.len()),
        InputValues::Rows => panic!("rows have no values"),
    }
}

/// A measure of each rule with these values at these coordinates; cells whose number `nulls` divides are empty.
fn facts(
    sizes: &[u32],
    spare_bits: u32,
    coordinates: &[Vec<u32>],
    values: InputValues<'_>,
    nulls: usize,
) -> Arc<Facts> {
    let (value_type, rows) = type_and_rows(values);
    let bits: Vec<u32> = KeyLayout::for_sizes(sizes).unwrap().bits().iter().map(|bits| bits + spare_bits).collect();
    let ones = vec![1; rows];
    let filled: Vec<bool> = (0..rows).map(|row| nulls == 0 || row % nulls != 0).collect();
    let measures = RULES.iter().map(|rule| FactMeasure::new(&rule.to_string(), *rule, value_type));
    // A measure that all cells have.
    let all = FactMeasure::new("all", Rule::Sum, ValueType::Decimal { scale: 0 });
    let mut loader = Loader::new(KeyLayout::new(&bits).unwrap(), measures.chain([all]).collect());
    let input = RULES.iter().map(|rule| {
        let values = if *rule == Rule::Count { InputValues::Rows } else { values };
        InputColumn { values, filled: Some(&filled) }
    });
    let all = InputColumn { values: InputValues::Decimals(&ones), filled: None };
    let input: Vec<InputColumn<'_>> = input.chain([all]).collect();
    loader.append(&coordinates.iter().map(Vec::as_slice).collect::<Vec<_>>(), &input).unwrap();
    Arc::new(loader.finish(512).unwrap())
}

fn by_cpu(facts: &Facts, area: &Area, measure: usize) -> (Vec<u64>, CellColumn) {
    let cells = aggregate(facts, area, &[measure], &Request::by(Algorithm::Source), &Progress::new()).unwrap();
    (cells.ranks().to_vec(), cells.columns()[0].clone())
}

fn contracted(
    on_device: &DeviceAggregation,
    area: &Area,
    measure: usize,
) -> Result<(Vec<u64>, CellColumn, &'static str), DeviceError> {
    let choice = DeviceChoice::named(DeviceAlgorithm::Contract);
    let (cells, arithmetic) = on_device.measure(&choice, area, measure, &Arc::default())?;
    Ok((cells.ranks, cells.column, arithmetic))
}

/// Checks all measures in three orders: the same cells as the CPU's, bit for bit but for sums of doubles, which are
/// within `error` of theirs and the same in all orders.
fn check(facts: &Arc<Facts>, areas: &[Area], error: f64) {
    let devices = ORDERS.map(|order| on_device(facts, order));
    for (area, measure) in
        areas.iter().flat_map(|area| (0..facts.base().columns().len()).map(move |measure| (area, measure)))
    {
        let (ranks, expected) = by_cpu(facts, area, measure);
        let found = devices.each_ref().map(|device| contracted(device, area, measure).unwrap());
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0], found[2]);
        let (found_ranks, found, _) = &found[0];
        assert_eq!((found_ranks, &found.name, found.value_type), (&ranks, &expected.name, expected.value_type));
        match (&found.values, &expected.values) {
            (Values::Doubles(found), Values::Doubles(expected)) if error > 0.0 => {
                let is_near = |(found, expected): (&f64, &f64)| (found - expected).abs() <= error;
                assert!(found.iter().zip(expected).all(is_near), "measure {measure}: {found:?} {expected:?}");
            }
            (found, expected) => assert_eq!(found, expected, "measure {measure} of {:?}", area.shape()),
        }
    }
}

fn total(bases: u32, weight: f64) -> TargetMap {
    TargetMap::from_targets(bases, &[(0..bases).map(|base| (base, weight)).collect()]).unwrap()
}

/// Base element `b` in target `b % targets`, at a weight that `weight` gives, and all in a last target.
fn spread(bases: u32, targets: u32, weight: impl Fn(u32) -> f64) -> TargetMap {
    let mut lists = vec![Vec::new(); targets as usize + 1];
    for base in 0..bases {
        lists[(base % targets) as usize].push((base, weight(base)));
        lists[targets as usize].push((base, weight(base + 1)));
    }
    TargetMap::from_targets(bases, &lists).unwrap()
}

/// Coordinates of rows in dimensions of these sizes, keys more than once.
fn coordinates(sizes: &[u32], rows: u32) -> Vec<Vec<u32>> {
    let column =
        |(at, size): (usize, &u32)| (0..rows).map(|row| row.wrapping_mul(7 + 6 * at as u32) / 3 % size).collect();
    sizes.iter().enumerate().map(column).collect()
}

#[test]
fn all_rules_over_totals_classes_and_products() {
    for (sizes, spare_bits, nulls) in [([9, 5, 40], 0, 0), ([9, 5, 40], 26, 3)] {
        let rows = coordinates(&sizes, 4000);
        let decimals: Vec<i64> = (0..4000).map(|row| row * 7919 % 2003 - 1000).collect();
        // Eighths: every sum is exact.
        let doubles: Vec<f64> = decimals.iter().map(|value| *value as f64 / 8.0 + 0.0).collect();
        let whole = |base: u32| f64::from(base % 4) - 1.0;
        let areas = [
            Area::new(sizes.map(|size| total(size, 1.0)).to_vec()),
            Area::new(vec![total(9, 1.0), TargetMap::identity(5), total(40, 2.0)]),
            Area::new(vec![spread(9, 3, whole), spread(5, 2, whole), spread(40, 7, whole)]),
        ];
        check(&facts(&sizes, spare_bits, &rows, InputValues::Decimals(&decimals), nulls), &areas, 0.0);
        check(&facts(&sizes, spare_bits, &rows, InputValues::Doubles(&doubles), nulls), &areas, 0.0);
    }
}

#[test]
fn sums_beyond_shared_memory() {
    // 40,000 places take more than 227 KiB of shared memory.
    let sizes = [200, 200];
    let rows: Vec<Vec<u32>> = [3, 7].map(|step| (0..5000).map(|row: u32| row * step / 2 % 200).collect()).to_vec();
    let decimals: Vec<i64> = (0..5000).map(|row| row * 7919 % 2003 - 1000).collect();
    let doubles: Vec<f64> = decimals.iter().map(|value| *value as f64 / 8.0 + 0.0).collect();
    let areas = [Area::new(vec![TargetMap::identity(200), TargetMap::identity(200)])];
    check(&facts(&sizes, 0, &rows, InputValues::Decimals(&decimals), 5), &areas, 0.0);
    check(&facts(&sizes, 0, &rows, InputValues::Doubles(&doubles), 0), &areas, 0.0);
}

/// Facts of one dimension, a value each.
fn line(values: InputValues<'_>) -> Arc<Facts> {
    let rows = type_and_rows(values).1;
    facts(&[rows as u32], 0, &[(0..rows as u32).collect()], values, 0)
}

fn arithmetic(facts: &Arc<Facts>, map: &TargetMap, measure: usize) -> Result<(Values, &'static str), DeviceError> {
    let device = on_device(facts, LaneOrder::Forward);
    contracted(&device, &Area::new(vec![map.clone()]), measure)
        .map(|(_, column, arithmetic)| (column.values, arithmetic))
}

#[test]
fn extremes_and_wide_sums_reach_the_ends_of_64_bits() {
    let ends = [i64::MAX, i64::MIN, i64::MAX - 1, 0, -1, i64::MIN + 1, 1];
    let facts = line(InputValues::Decimals(&ends));
    let weighted = vec![(0, 2.0), (1, 2.0), (2, -1.0), (5, -1.0)];
    let some = [vec![(0, 1.0), (1, 1.0)], vec![(1, 1.0)], vec![(3, 9.0), (4, 7.0)], vec![(0, 1e9), (5, 1e9)], weighted];
    check(&facts, &[Area::new(vec![total(7, 1.0)]), Area::new(vec![TargetMap::from_targets(7, &some).unwrap()])], 0.0);
    let (sums, used) = arithmetic(&facts, &total(7, 1.0), 0).unwrap();
    assert_eq!((sums, used), (Values::Decimals(vec![-2]), "128 bits"));
    let (sums, _) = arithmetic(&facts, &total(7, -3e9), 0).unwrap();
    assert_eq!(sums, Values::Decimals(vec![6_000_000_000]));
    let (greatest, twice) = (i128::from(i64::MAX), TargetMap::from_targets(7, &[vec![], vec![(0, 2.0)]]).unwrap());
    let error = arithmetic(&facts, &twice, 0).unwrap_err().to_string();
    assert_eq!(error, format!("target [1]: measure SUM is {}, which is beyond 64 bits", 2 * greatest));
}

#[test]
fn other_weights_round_once() {
    let facts = line(InputValues::Decimals(&[1, 1, 1, i64::MAX, -i64::MAX]));
    let thirds: Vec<(u32, f64)> = (0..3).map(|base| (base, 1.0 / 3.0)).collect();
    let large = vec![(3, 0.25), (4, 0.25), (0, 0.5)];
    let map = TargetMap::from_targets(5, &[thirds, vec![(0, 0.5)], vec![(0, -0.5)], large]).unwrap();
    let (sums, used) = arithmetic(&facts, &map, 0).unwrap();
    assert_eq!((sums, used), (Values::Decimals(vec![1, 1, -1, 1]), "doubles, rounded once"));
    // Weights are set aside by all other rules.
    check(&facts, &[Area::new(vec![map])], 1e-3);
}

#[test]
fn doubles_of_distant_magnitudes() {
    let sum = |values: &[f64]| {
        let (sums, used) = arithmetic(&line(InputValues::Doubles(values)), &total(values.len() as u32, 1.0), 0)?;
        assert_eq!(used, "doubles");
        let Values::Doubles(sums) = sums else { panic!("sums of doubles are doubles") };
        Ok::<f64, DeviceError>(sums[0])
    };
    assert_eq!(sum(&[0.1; 10]).unwrap(), 1.0);
    assert_eq!(sum(&[1e20, 1.0, -1e20]).unwrap(), 1.0);
    // Five limbs: magnitudes nearly 2^120 apart, of which the least is not exact.
    let least = sum(&[1e25, 1e-10, -1e25]).unwrap();
    assert!((least - 1e-10).abs() <= 5e-13 * 1e-10, "{least}");
    assert_eq!(sum(&[0.0, 0.0]).unwrap().to_bits(), 0);
    assert_eq!(sum(&[-0.25, 0.25]).unwrap().to_bits(), 0);
    assert_eq!(sum(&[f64::MAX, -f64::MAX, 3.0e307]).unwrap(), 3.0e307);
    assert_eq!(sum(&[1e-230, 3e-230]).unwrap(), 4e-230);
    for apart in [[1e-30, 1e30], [1e-300, 1e-300], [5e-324, 1.0]] {
        assert!(matches!(sum(&apart), Err(DeviceError::Unsupported { .. })), "{apart:?}");
    }
    let error = sum(&[f64::MAX, f64::MAX]).unwrap_err().to_string();
    assert_eq!(error, "target [0]: measure SUM is 3.59539e308, which is beyond the largest double");
}

#[test]
fn extremes_of_doubles_keep_their_bits() {
    let values = [f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.0, f64::MAX];
    let rules = [(3, Rule::Min), (4, Rule::Max)];
    let facts = line(InputValues::Doubles(&values));
    for (first, last) in (0..7).flat_map(|first| (first..7).map(move |last| (first, last))) {
        let map = TargetMap::from_targets(7, &[(first..=last).map(|base| (base, 1.0)).collect()]).unwrap();
        for (measure, rule) in rules {
            let expected = values[if rule == Rule::Min { first } else { last } as usize];
            assert_eq!(arithmetic(&facts, &map, measure).unwrap(), (Values::Doubles(vec![expected]), "doubles"));
        }
    }
}

/// Two cubes of which the device holds one: keys leave it like values, and come back.
#[test]
fn keys_leave_the_device_for_other_statements() {
    let sizes = [1 << 18; 3];
    // Keys are far apart: 8 bytes each.
    let rows = |seed: u32| -> Vec<Vec<u32>> {
        let column =
            |at: u32| (0..1 << 16).map(|row: u32| (row * 4 + seed).wrapping_mul(1 + 8 * at) % (1 << 18)).collect();
        (0..3).map(column).collect()
    };
    let decimals: Vec<i64> = (0..1 << 16).collect();
    let cubes = [1, 2].map(|seed| facts(&sizes, 0, &rows(seed), InputValues::Decimals(&decimals), 0));
    let of_one = on_device(&cubes[0], LaneOrder::Forward).facts().bytes(0, &Arc::default()).unwrap();
    assert!(of_one.keys > 8 << 16, "{of_one:?}");
    let budget = of_one.keys + of_one.values + (1 << 18);
    let residency = Arc::new(Residency::new(Device::emulated(EmulatorOptions::default(), budget).unwrap()));
    let devices = [0, 1].map(|cube| {
        let source = FactsSource::new(cubes[cube].clone(), &format!("cube {cube}"), "1");
        DeviceAggregation::new(Arc::new(ResidentFacts::new(residency.clone(), source)))
    });
    let area = Area::new(sizes.map(|size| total(size, 1.0)).to_vec());
    for _ in 0..2 {
        for device in &devices {
            let (ranks, column, _) = contracted(device, &area, 0).unwrap();
            assert_eq!((ranks, column.values), (vec![0], Values::Decimals(vec![(1 << 15) * ((1 << 16) - 1)])));
        }
    }
    assert!(residency.changes().evictions >= 6, "{:?}", residency.changes());
}
