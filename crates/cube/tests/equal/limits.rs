//! Sums at the limits of the device: 64 bits, zero and repeated weights, base elements that the area has not, areas
//! whose classes take too much room.

use std::sync::Arc;

use warpcube_cube::aggregate::{Algorithm, Area, Progress, Request, TargetMap, aggregate};
use warpcube_cube::device::{DeviceAlgorithm, DeviceCells, DeviceError};
use warpcube_cube::facts::{
    Bitmap, FactColumn, FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Keys, Loader, Rule, ValueType, Values,
};
use warpcube_gpu::LaneOrder;

use crate::cube::{device_algorithms, on_device};

fn measure() -> FactMeasure {
    FactMeasure::new("amount", Rule::Sum, ValueType::Decimal { scale: 0 })
}

/// Facts of one dimension, a value each.
fn line(values: &[i64]) -> Arc<Facts> {
    let bases: Vec<u32> = (0..values.len() as u32).collect();
    let mut loader = Loader::new(KeyLayout::for_sizes(&[bases.len() as u32]).unwrap(), vec![measure()]);
    loader.append(&[&bases], &[InputColumn { values: InputValues::Decimals(values), filled: None }]).unwrap();
    Arc::new(loader.finish(64).unwrap())
}

fn expected(facts: &Facts, area: &Area) -> DeviceCells {
    let cells = aggregate(facts, area, &[0], &Request::by(Algorithm::Source), &Progress::new()).unwrap();
    let Values::Decimals(sums) = &cells.columns()[0].values else { panic!("sums of decimals are decimals") };
    DeviceCells { ranks: cells.ranks().to_vec(), sums: sums.clone() }
}

/// Checks all algorithms of the device against the CPU.
fn check(facts: &Arc<Facts>, maps: Vec<TargetMap>) {
    let (area, on_device) = (Area::new(maps), on_device(facts, LaneOrder::Forward));
    let expected = expected(facts, &area);
    let sums = |algorithm| drop(on_device.sums(algorithm, &area, 0, &Arc::default()));
    let device = on_device.facts().device();
    device.rehearse(Some("cube source"), || device_algorithms(&[2]).into_iter().for_each(sums));
    for algorithm in device_algorithms(&[2]) {
        let found = on_device.sums(algorithm, &area, 0, &Arc::default()).unwrap();
        assert_eq!(found, expected, "{algorithm}");
    }
}

fn map(bases: u32, targets: &[Vec<(u32, f64)>]) -> TargetMap {
    TargetMap::from_targets(bases, targets).unwrap()
}

/// The reason for which every algorithm of the device refuses sums in 64 bits over an area.
fn refused(facts: &Arc<Facts>, map: &TargetMap) -> String {
    let (area, on_device) = (Area::new(vec![map.clone()]), on_device(facts, LaneOrder::Forward));
    let reasons = device_algorithms(&[2]).into_iter().map(|algorithm| {
        match on_device.sums(algorithm, &area, 0, &Arc::default()) {
            Err(DeviceError::Unsupported { reason }) => reason,
            other => panic!("{algorithm}: {other:?}"),
        }
    });
    let mut reasons: Vec<String> = reasons.collect();
    reasons.dedup();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

#[test]
fn sums_reach_the_ends_of_64_bits() {
    // Bounds are those of doubles: 2^10 below the end.
    let most = i64::MAX / 8 - (1 << 10);
    let all = |weight: f64| vec![(0, weight), (1, weight), (2, weight), (3, weight)];
    check(&line(&[most, most - 1, -most, most]), vec![map(4, &[all(1.0), all(-1.0), vec![(0, -1.0), (2, 1.0)]])]);
    check(&line(&[most, most, most, most]), vec![map(4, &[all(2.0), all(-2.0), vec![(0, 1.0)]])]);
}

/// As a double, 0x2aaaaaaaaaaaaaff is rounded down to a third of 2^63: three of them pass 64 bits.
#[test]
fn bounds_are_not_rounded_down() {
    let value = 0x2aaa_aaaa_aaaa_aaff;
    assert!(value as f64 * 3.0 <= i64::MAX as f64);
    let total = map(3, &[vec![(0, 1.0), (1, 1.0), (2, 1.0)]]);
    assert!(refused(&line(&[value; 3]), &total).starts_with("sums may pass 64 bits: "));
    let area = Area::new(vec![total]);
    let on_device = on_device(&line(&[value; 3]), LaneOrder::Forward);
    let choice = on_device.choose(&area, 0, &Arc::default()).unwrap();
    let error = on_device.measure(&choice, &area, 0, &Arc::default()).unwrap_err().to_string();
    let sum = 3 * i128::from(value);
    assert_eq!(error, format!("target [0]: measure amount is {sum}, which is beyond 64 bits"));
    // Values of 0 have bounds as well: products of weights stay below 64 bits.
    let large = map(3, &[vec![(0, f64::from(i32::MAX))]]);
    check(&line(&[0; 3]), vec![large]);
}

#[test]
fn weights_of_zero_and_repeated_base_elements_fill_their_targets() {
    let facts = line(&[7, -7, 0, 1 << 28]);
    let zero = vec![(0, 0.0), (1, -0.0)];
    let repeated = vec![(3, 1.0), (3, 1.0), (0, 2.0), (0, -2.0)];
    check(&facts, vec![map(4, &[zero.clone(), repeated.clone(), vec![], vec![(2, 5.0)]])]);
    check(&facts, vec![map(4, std::slice::from_ref(&zero))]);
    check(&facts, vec![map(4, &[vec![(2, -0.0)], vec![(3, f64::from(-i32::MAX))]])]);
    // No target at all, and none with a base element.
    check(&facts, vec![map(4, &[])]);
    check(&facts, vec![map(4, &[vec![], vec![]])]);
}

/// Algorithms that multiply facts by weights take weights of 32 bits; contraction multiplies classes.
#[test]
fn weights_beyond_32_bits_are_contracted() {
    let (facts, beyond) = (line(&[3, 1]), map(2, &[vec![(0, f64::from(i32::MAX) + 1.0)], vec![(0, -1.0), (1, 1.0)]]));
    let (area, on_device) = (Area::new(vec![beyond]), on_device(&facts, LaneOrder::Forward));
    for algorithm in device_algorithms(&[2]) {
        match on_device.sums(algorithm, &area, 0, &Arc::default()) {
            Ok(found) if algorithm == DeviceAlgorithm::Contract => assert_eq!(found, expected(&facts, &area)),
            Err(DeviceError::Unsupported { reason }) => {
                assert_eq!(reason, "a weight is too large: it has more than 32 bits");
            }
            other => panic!("{algorithm}: {other:?}"),
        }
    }
}

/// Cells of base elements that a map has not have no target; those of a map without cells change nothing.
#[test]
fn maps_and_facts_may_differ_in_base_elements() {
    let facts = line(&(1..=300).collect::<Vec<i64>>());
    let all = |bases: u32| map(bases, &[(0..bases).map(|base| (base, 1.0)).collect()]);
    for bases in [0, 1, 70, 299, 300, 1000] {
        check(&facts, vec![all(bases)]);
        check(&facts, vec![TargetMap::identity(bases)]);
    }
}

/// Values of empty cells have no meaning, and are no part of a total.
#[test]
fn values_of_empty_cells_do_not_count() {
    let word = |word: u64| (0..64).filter(|bit| (word * 64 + bit) % 3 != 0).fold(0, |bits, bit| bits | 1 << bit);
    let filled = Bitmap::from_words((0..5).map(word).collect(), 300).unwrap();
    let column = FactColumn {
        measure: measure(),
        values: Values::Decimals((0..300).map(|cell| if cell % 3 == 0 { 1 << 50 } else { cell }).collect()),
        filled: Some(filled),
        counts: None,
    };
    let other = FactColumn { values: Values::Decimals(vec![1; 300]), filled: None, ..column.clone() };
    let layout = KeyLayout::for_sizes(&[300]).unwrap();
    let keys = Keys::Narrow((0..300).collect());
    let facts = Arc::new(Facts::from_parts(layout, keys, vec![column, other], None, 64).unwrap());
    check(&facts, vec![map(300, &[(0..300).map(|base| (base, 1.0)).collect()])]);
    check(&facts, vec![map(300, &[(0..300).map(|base| (base, 2.0)).collect(), vec![(0, 1.0)]])]);
}

/// Targets that weigh base elements one by one: a class each, 2^30 sums of classes for 8 targets.
#[test]
fn the_cost_model_leaves_contraction_where_classes_have_no_room() {
    let bases: Vec<u32> = (0..1024).collect();
    let values: Vec<i64> = bases.iter().map(|base| i64::from(*base) - 500).collect();
    let layout = KeyLayout::for_sizes(&[1024; 3]).unwrap();
    let mut loader = Loader::new(layout, vec![measure()]);
    let turned: Vec<u32> = bases.iter().map(|base| base * 37 % 1024).collect();
    let input = [InputColumn { values: InputValues::Decimals(&values), filled: None }];
    loader.append(&[&bases, &turned, &turned], &input).unwrap();
    let facts = Arc::new(loader.finish(64).unwrap());
    let own = |weight: f64| bases.iter().map(|base| (*base, f64::from(*base) + weight)).collect::<Vec<_>>();
    let single = map(1024, &[own(1.0), own(2.0)]);
    let (area, on_device) = (Area::new(vec![single; 3]), on_device(&facts, LaneOrder::Forward));
    let choice = on_device.choose(&area, 0, &Arc::default()).unwrap();
    assert_ne!(choice.decision.algorithm, DeviceAlgorithm::Contract);
    let expected_reason = "not gpu-contract: 1075843072 sums would be kept at once, at most 536870912";
    assert!(choice.decision.reason.ends_with(expected_reason), "{}", choice.decision.reason);
    assert_eq!(choice.decision.predicted.len(), 2);
    let found = on_device.sums(choice.decision.algorithm, &area, 0, &Arc::default()).unwrap();
    assert_eq!(found, expected(&facts, &area));
    // 2^26 sums of classes have room, but take longer than 1,024 facts.
    let few = map(1024, &[own(1.0)[..256].to_vec(), own(2.0)[..256].to_vec()]);
    let smaller = Area::new(vec![few.clone(), map(1024, &[own(1.0), own(2.0)]), few]);
    let choice = on_device.choose(&smaller, 0, &Arc::default()).unwrap();
    assert_eq!((choice.decision.predicted.len(), choice.decision.algorithm == DeviceAlgorithm::Contract), (3, false));
    // A single cell, which no sample meets, is contracted.
    let single = Area::new(vec![map(1024, &[vec![(7, 1.0)]]), map(1024, &[own(1.0)]), map(1024, &[own(1.0)])]);
    let choice = on_device.choose(&single, 0, &Arc::default()).unwrap();
    assert_eq!(choice.decision.algorithm, DeviceAlgorithm::Contract, "{:?}", choice.decision.predicted);
}

/// Products keep their sums in two arrays in turn, beside those of classes: three products of 2^27 sums and more do
/// not fit, though each two neighbours do.
#[test]
fn the_sums_of_all_products_have_room_together() {
    let (classes, targets) = (558, 614);
    let layout = KeyLayout::for_sizes(&[classes; 3]).unwrap();
    let mut loader = Loader::new(layout, vec![measure()]);
    let bases: Vec<u32> = (0..classes).collect();
    let values = vec![1; bases.len()];
    let input = [InputColumn { values: InputValues::Decimals(&values), filled: None }];
    loader.append(&[&bases, &bases, &bases], &input).unwrap();
    let facts = Arc::new(loader.finish(64).unwrap());
    let area = |targets: u32| {
        let target = |at: u32| if at < classes { vec![(at, 1.0)] } else { vec![(0, f64::from(at))] };
        Area::new(vec![map(classes, &(0..targets).map(target).collect::<Vec<_>>()); 3])
    };
    let on_device = on_device(&facts, LaneOrder::Forward);
    let reason = |targets: u32| on_device.choose(&area(targets), 0, &Arc::default()).unwrap().decision.reason;
    let kept = [558 * 558 * 558, 614 * 614 * 614, 614 * 614 * 558].iter().sum::<u64>();
    let expected = format!("not gpu-contract: {kept} sums would be kept at once, at most 536870912");
    assert!(reason(targets).ends_with(&expected), "{}", reason(targets));
    assert!(!reason(559).contains("kept at once"), "{}", reason(559));
}

/// Partial sums of doubles may pass the largest double; only a final cell is refused.
#[test]
fn doubles_have_room_on_the_way() {
    let values = [1e308, 1e308, -1e308, 1e280];
    let measure = FactMeasure::new("amount", Rule::Sum, ValueType::Double);
    let mut loader = Loader::new(KeyLayout::for_sizes(&[4]).unwrap(), vec![measure]);
    loader.append(&[&[0, 1, 2, 3]], &[InputColumn { values: InputValues::Doubles(&values), filled: None }]).unwrap();
    let facts = Arc::new(loader.finish(64).unwrap());
    let on_device = on_device(&facts, LaneOrder::Forward);
    let ask = |targets: &[Vec<(u32, f64)>]| {
        let area = Area::new(vec![map(4, targets)]);
        let choice = on_device.choose(&area, 0, &Arc::default()).unwrap();
        on_device.measure(&choice, &area, 0, &Arc::default())
    };
    let all = vec![(0, 1.0), (1, 1.0), (2, 1.0)];
    let (cells, _) = ask(&[all, vec![(3, 1.0)], vec![(0, 4.0), (1, -4.0), (3, 2.0)]]).unwrap();
    let Values::Doubles(sums) = &cells.column.values else { panic!("sums of doubles are doubles") };
    assert_eq!(sums, &[1e308, 1e280, 2e280]);
    let error = ask(&[vec![(0, 1.0), (1, 1.0)]]).unwrap_err().to_string();
    assert_eq!(error, "target [0]: measure amount is 2e308, which is beyond the largest double");
}
