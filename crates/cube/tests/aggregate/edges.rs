//! Limits, overflows and cancellation.

use warpcube_cube::aggregate::{AggregateError, Algorithm, Area, CellValue, Progress, Request, TargetMap, aggregate};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType};

/// Facts of one dimension and one measure.
fn line(rule: Rule, values: InputValues<'_>) -> Facts {
    let length = match values {
        InputValues::Decimals(values) => values.len(),
        InputValues::Doubles(values) => values.len(),
        InputValues::Rows => 0,
    } as u32;
    let value_type = match values {
        InputValues::Doubles(_) => ValueType::Double,
        _ => ValueType::Decimal { scale: 0 },
    };
    let layout = KeyLayout::for_sizes(&[length]).unwrap();
    let mut loader = Loader::new(layout, vec![FactMeasure::new("amount", rule, value_type)]);
    loader.append(&[&(0..length).collect::<Vec<_>>()], &[InputColumn { values, filled: None }]).unwrap();
    loader.finish(2).unwrap()
}

fn sum_of(facts: &Facts, targets: &[Vec<(u32, f64)>], algorithm: Algorithm) -> Result<Vec<CellValue>, AggregateError> {
    let map = TargetMap::from_targets(facts.len() as u32, targets)?;
    let cells = aggregate(facts, &Area::new(vec![map]), &[0], &Request::by(algorithm), &Progress::new())?;
    Ok((0..cells.len()).filter_map(|cell| cells.columns()[0].value(cell)).collect())
}

#[test]
fn only_a_final_cell_overflows() {
    let most = i64::MAX;
    let facts = line(Rule::Sum, InputValues::Decimals(&[most, most, most, -most]));
    let units = |units| CellValue::Decimal { units, scale: 0 };
    for algorithm in Algorithm::ALL {
        // The sum of three is beyond 64 bits, the total is not.
        let all = vec![(0, 1.0), (1, 1.0), (2, -1.0), (3, 0.0)];
        assert_eq!(sum_of(&facts, &[all], algorithm), Ok(vec![units(most)]));
        let targets = [vec![(0, 1.0)], vec![(0, 1.0), (3, 1.0)], vec![(0, 1.0), (1, 1.0)]];
        let expected = AggregateError::Overflow {
            target: vec![2],
            measure: "amount".to_string(),
            value: (2 * i128::from(most)).to_string(),
            limit: "64 bits",
        };
        assert_eq!(sum_of(&facts, &targets, algorithm), Err(expected), "{algorithm}");
    }
}

#[test]
fn weights_beyond_128_bits_are_computed_in_doubles() {
    let facts = line(Rule::Sum, InputValues::Decimals(&[i64::MAX, 3]));
    for algorithm in Algorithm::ALL {
        let huge = vec![(0, 2_f64.powi(70)), (0, -2_f64.powi(70)), (1, 2_f64.powi(61))];
        let three = CellValue::Decimal { units: 3 << 61, scale: 0 };
        assert_eq!(sum_of(&facts, &[huge], algorithm), Ok(vec![three]));
        let beyond = sum_of(&facts, &[vec![(0, 2_f64.powi(70))]], algorithm);
        assert!(matches!(beyond, Err(AggregateError::Overflow { .. })), "{algorithm}: {beyond:?}");
    }
}

#[test]
fn decimals_under_weights_that_doubles_do_not_have_round_half_away_from_zero() {
    let facts = line(Rule::Sum, InputValues::Decimals(&[5, 150, 1_000_005, 300_000, 12_345_678_905]));
    for (target, units) in [
        // 1.5, 3.5 and 43.5, and the same below zero; terms that cancel each other leave 1.5.
        (vec![(0, 0.3)], 2),
        (vec![(0, 0.7)], 4),
        (vec![(1, 0.29)], 44),
        (vec![(0, -0.3)], -2),
        (vec![(2, 0.3), (3, -1.0)], 2),
        (vec![(2, -0.3), (3, 1.0)], -2),
        (vec![(4, 0.3)], 3_703_703_672),
        // 1.45 and 0.4999995 are no halves.
        (vec![(0, 0.29)], 1),
        (vec![(0, 0.0999999)], 0),
    ] {
        for algorithm in Algorithm::ALL {
            let found = sum_of(&facts, std::slice::from_ref(&target), algorithm);
            assert_eq!(found, Ok(vec![CellValue::Decimal { units, scale: 0 }]), "{target:?} by {algorithm}");
        }
    }
}

#[test]
fn doubles_overflow_by_name() {
    let facts = line(Rule::Sum, InputValues::Doubles(&[f64::MAX, f64::MAX, -f64::MAX]));
    for algorithm in Algorithm::ALL {
        let beyond = sum_of(&facts, &[vec![(2, 1.0)], vec![(0, 1.0), (1, 1.0)]], algorithm);
        let Err(AggregateError::Overflow { target, limit, .. }) = beyond else { panic!("{beyond:?}") };
        assert_eq!((target, limit), (vec![1], "the largest double"));
        let kept = sum_of(&facts, &[vec![(1, 1.0), (2, 1.0)]], algorithm);
        assert_eq!(kept, Ok(vec![CellValue::Double(0.0)]));
    }
}

#[test]
fn an_area_beyond_the_limit_is_refused_with_its_size() {
    let layout = KeyLayout::for_sizes(&[1 << 20, 1 << 20]).unwrap();
    let measure = FactMeasure::new("amount", Rule::Sum, ValueType::Decimal { scale: 0 });
    let facts = Loader::new(layout, vec![measure]).finish(16).unwrap();
    let million = || TargetMap::identity(1 << 20);
    let area = Area::new(vec![million(), million()]);
    let error = aggregate(&facts, &area, &[0], &Request::default(), &Progress::new()).unwrap_err();
    let expected = "the area has 1099511627776 targets (1048576 × 1048576); at most 100000000 are allowed: \
                    choose fewer elements";
    assert_eq!(error.to_string(), expected);
    let request = Request { targets_max: 1 << 40, ..Request::default() };
    assert!(aggregate(&facts, &area, &[0], &request, &Progress::new()).unwrap().is_empty());
}

#[test]
fn another_cubes_area_is_refused() {
    let facts = line(Rule::Sum, InputValues::Decimals(&[1, 2]));
    let map = || TargetMap::identity(2);
    let run = |area: &Area, measures: &[usize]| {
        aggregate(&facts, area, measures, &Request::default(), &Progress::new()).unwrap_err().to_string()
    };
    let dimensions = run(&Area::new(vec![map(), map()]), &[0]);
    assert_eq!(dimensions, "the area does not fit the cube: the cube has 1 dimensions, the area has 2");
    let measures = run(&Area::new(vec![map()]), &[0, 1]);
    assert_eq!(measures, "the area does not fit the cube: the cube has 1 measures, number 1 is asked for");
    let other = Area::new(vec![map()]).with_measure_map(0, 0, TargetMap::identity(3));
    assert!(matches!(other, Err(AggregateError::Shape { .. })));
    assert!(Area::new(vec![map()]).with_measure_map(0, 1, map()).is_err());
}

#[test]
fn a_wish_to_stop_ends_every_algorithm() {
    let facts = line(Rule::Sum, InputValues::Decimals(&[1; 100]));
    let area = Area::new(vec![TargetMap::identity(100)]);
    for algorithm in Algorithm::ALL {
        let progress = Progress::new();
        let cells = aggregate(&facts, &area, &[0], &Request::by(algorithm), &progress).unwrap();
        assert_eq!(cells.len(), 100);
        assert!(progress.done() > 0);
        assert_eq!(progress.done(), progress.total(), "{algorithm}");
        progress.cancel();
        let stopped = aggregate(&facts, &area, &[0], &Request::by(algorithm), &progress);
        assert_eq!(stopped, Err(AggregateError::Cancelled), "{algorithm}");
    }
}

/// Base elements that were added after the load have no cells, and cells of elements without a row have no target.
#[test]
fn maps_and_facts_may_differ_in_base_elements() {
    let facts = line(Rule::Sum, InputValues::Decimals(&[1, 2, 4, 8, 16]));
    let maps = [
        TargetMap::from_targets(40, &[vec![(1, 1.0), (39, 1.0)], vec![(38, 1.0)]]).unwrap(),
        TargetMap::from_targets(2, &[vec![(1, 1.0), (0, 0.0)]]).unwrap(),
        TargetMap::from_targets(0, &[vec![]]).unwrap(),
    ];
    for algorithm in Algorithm::ALL.map(Some).into_iter().chain([None]) {
        let sums = maps.each_ref().map(|map| {
            let request = Request { algorithm, ..Request::default() };
            let cells = aggregate(&facts, &Area::new(vec![map.clone()]), &[0], &request, &Progress::new()).unwrap();
            (0..cells.len()).filter_map(|cell| cells.columns()[0].value(cell)).collect::<Vec<_>>()
        });
        let two = vec![CellValue::Decimal { units: 2, scale: 0 }];
        assert_eq!(sums, [two.clone(), two, vec![]], "{algorithm:?}");
    }
}

/// Classes of 20 dimensions of 64 base elements need 120 bits: some dimensions go back to the scan.
#[test]
fn contraction_of_many_dimensions_fits_its_ranks() {
    let dimensions = 20;
    let layout = KeyLayout::for_sizes(&vec![64; dimensions]).unwrap();
    let measure = FactMeasure::new("amount", Rule::Sum, ValueType::Decimal { scale: 0 });
    let mut loader = Loader::new(layout, vec![measure]);
    let columns: Vec<Vec<u32>> =
        (0..dimensions as u32).map(|dimension| (0..50).map(|row| (row * 7 + dimension * row) % 64).collect()).collect();
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let values: Vec<i64> = (0..50).collect();
    loader.append(&columns, &[InputColumn { values: InputValues::Decimals(&values), filled: None }]).unwrap();
    let facts = loader.finish(8).unwrap();
    // Every base element has a weight of its own in two targets.
    let targets = [1.0, 64.0].map(|unit| (0..64).map(|base| (base, unit + f64::from(base % 3))).collect::<Vec<_>>());
    let map = TargetMap::from_targets(64, &targets[..]).unwrap();
    let one = TargetMap::from_targets(64, &[(0..64).map(|base| (base, 1.0)).collect()]).unwrap();
    let maps: Vec<TargetMap> =
        (0..dimensions).map(|dimension| if dimension < 11 { map.clone() } else { one.clone() }).collect();
    let run = |algorithm| {
        let cells = aggregate(&facts, &Area::new(maps.clone()), &[0], &Request::by(algorithm), &Progress::new());
        cells.map(|cells| cells.columns()[0].clone())
    };
    assert!(run(Algorithm::Contract).is_err(), "64¹¹ does not fit 64 bits");
    assert_eq!(run(Algorithm::Contract), run(Algorithm::Source));
}

#[test]
fn doubles_overflow_in_final_cells_alone() {
    let double = |value| Ok(vec![CellValue::Double(value)]);
    let all = |weight: f64| vec![(0, weight), (1, weight), (2, weight)];
    let facts = line(Rule::Sum, InputValues::Doubles(&[1e308, 1e308, -1e308]));
    let average = line(Rule::Avg, InputValues::Doubles(&[f64::MAX, f64::MAX, f64::MAX]));
    for algorithm in Algorithm::ALL {
        assert_eq!(sum_of(&facts, &[all(1.0)], algorithm), double(1e308), "{algorithm}");
        // Sums that pass the largest double stand beside others, which keep all of their digits.
        let tiny = line(Rule::Sum, InputValues::Doubles(&[1e308, 1e308, -1e308, 5e-324]));
        let cells = sum_of(&tiny, &[all(1.0), vec![(3, 1.0)]], algorithm).unwrap();
        assert_eq!(cells, [CellValue::Double(1e308), CellValue::Double(5e-324)], "{algorithm}");
        // A product on the way passes it, too.
        let weighted = vec![(0, 1e300), (1, -1e300), (2, 1.0)];
        assert_eq!(sum_of(&facts, &[weighted], algorithm), double(-1e308), "{algorithm}");
        assert_eq!(sum_of(&average, &[all(1.0)], algorithm), double(f64::MAX), "{algorithm}");
        let error = sum_of(&facts, &[vec![(0, 1.0), (1, 1.0)]], algorithm).unwrap_err().to_string();
        assert_eq!(error, "target [0]: measure amount is 2e308, which is beyond the largest double", "{algorithm}");
    }
}

#[test]
fn averages_of_sums_beyond_the_type_are_exact() {
    let layout = KeyLayout::for_sizes(&[3]).unwrap();
    let load = |value_type, values: &[InputValues<'_>]| {
        let mut loader = Loader::new(layout.clone(), vec![FactMeasure::new("amount", Rule::Avg, value_type)]);
        for (coordinate, values) in values.iter().enumerate() {
            let rows = match values {
                InputValues::Decimals(values) => values.len(),
                InputValues::Doubles(values) => values.len(),
                InputValues::Rows => 0,
            };
            loader.append(&[&vec![coordinate as u32; rows]], &[InputColumn { values: *values, filled: None }]).unwrap();
        }
        loader.finish(2).unwrap()
    };
    let of = |values: &'static [i64]| InputValues::Decimals(values);
    let rows = [of(&[6_000_000_000_000_000_000; 2]), of(&[-6_000_000_000_000_000_000; 3]), of(&[5])];
    let decimals = load(ValueType::Decimal { scale: 0 }, &rows);
    let of = |values: &'static [f64]| InputValues::Doubles(values);
    let doubles = load(ValueType::Double, &[of(&[1.5e308; 2]), of(&[-1.5e308; 3]), of(&[5e-324])]);
    let targets = [vec![(0, 1.0)], vec![(0, 1.0), (1, 1.0)], vec![(2, 1.0)], vec![(0, 1.0), (1, 1.0), (2, 7.0)]];
    let double = |values: [f64; 4]| Ok(values.map(CellValue::Double).to_vec());
    for algorithm in Algorithm::ALL {
        let six = 6e18;
        assert_eq!(
            sum_of(&decimals, &targets, algorithm),
            double([six, -six / 5.0, 5.0, (5.0 - six) / 6.0]),
            "{algorithm}"
        );
        let expected = double([1.5e308, -1.5e308 / 5.0, 5e-324, -1.5e308 / 6.0]);
        assert_eq!(sum_of(&doubles, &targets, algorithm), expected, "{algorithm}");
    }
}

#[test]
fn rows_of_a_cell_overflow_by_their_sum_alone() {
    let layout = KeyLayout::for_sizes(&[1]).unwrap();
    let fold = |values: &[f64]| {
        let mut loader = Loader::new(layout.clone(), vec![FactMeasure::new("amount", Rule::Sum, ValueType::Double)]);
        let input = InputColumn { values: InputValues::Doubles(values), filled: None };
        loader.append(&[&vec![0; values.len()]], &[input]).unwrap();
        loader.finish(2)
    };
    let facts = fold(&[1e308, -1e308, 1e308]).unwrap();
    let all = vec![(0, 1.0)];
    assert_eq!(sum_of(&facts, &[all], Algorithm::Source), Ok(vec![CellValue::Double(1e308)]));
    assert!(fold(&[1e308, 1e308]).unwrap_err().to_string().contains("adds up to 2e308"));
}
