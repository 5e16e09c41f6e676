//! Every algorithm gives the cells of the single-threaded source-based one.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use warpcube_cube::aggregate::{Algorithm, Progress};
use warpcube_cube::answer::{Aggregator, AlgorithmName, Answer, AskOptions, Cube, CubeError, TableAnswer};
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm};
use warpcube_cube::model::Span;
use warpcube_gpu::LaneOrder;

use crate::bounds::check_cells;
use crate::cube::{ALL, Case, DOUBLES, DrawnMeasure, SUMS, cases, device_algorithms, number_of, on_device, whole};

pub fn cells(
    cube: &Cube,
    query: &str,
    algorithm: Option<AlgorithmName>,
    device: Option<&dyn Aggregator>,
) -> Result<TableAnswer, CubeError> {
    // Areas of six dimensions stay small.
    let options = AskOptions { algorithm, targets_max: 20_000, device };
    match cube.ask(query, &options, &Progress::new())? {
        Answer::Table(table) => {
            assert!(algorithm.is_none_or(|named| named == table.report().decision.algorithm));
            Ok(*table)
        }
        other => panic!("{query}: {other:?}"),
    }
}

fn cpu(algorithm: Algorithm) -> Option<AlgorithmName> {
    Some(AlgorithmName::Cpu(algorithm))
}

/// Runs `check` over drawn cases: so many from seed 5, or `WARPCUBE_TEST_CASES` from `WARPCUBE_TEST_SEED`.
pub fn run(count: u32, cases: impl Strategy<Value = Case>, check: impl Fn(&Case) -> Result<(), TestCaseError>) {
    let (cases_count, seed) = (number_of("WARPCUBE_TEST_CASES", count), number_of("WARPCUBE_TEST_SEED", 5));
    let rng_seed = RngSeed::Fixed(seed);
    let config = Config { cases: cases_count, rng_seed, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&cases, |case| check(&case)).unwrap();
}

#[test]
fn all_algorithms_give_the_same_cells() {
    all_agree(64, &device_algorithms(&[1, 3, 64]), &SUMS);
}

/// To the last bit, where contraction promises less.
#[test]
fn source_based_and_target_based_algorithms_give_the_doubles_of_the_cpu() {
    let mut on_gpu = device_algorithms(&[3]);
    on_gpu.retain(|algorithm| *algorithm != DeviceAlgorithm::Contract);
    all_agree(16, &on_gpu, &DOUBLES);
}

/// All algorithms of the CPU and some of the device give the same bits; without a name for sums of decimals.
fn all_agree(count: u32, on_gpu: &[DeviceAlgorithm], measures: &'static [DrawnMeasure]) {
    run(count, cases(whole(), measures, &[Span::First, Span::Last]), |case| {
        let (cube, query) = (case.cube(), case.query(case.measures));
        let expected = cells(&cube, &query, cpu(Algorithm::Source), None);
        let Ok(expected) = expected else { return Err(TestCaseError::reject("an area beyond the limit")) };
        let device = on_device(&cube.facts, case.order);
        let run = |algorithm: &DeviceAlgorithm| {
            drop(cells(&cube, &query, Some(AlgorithmName::Device(*algorithm)), Some(&device)));
        };
        device.facts().device().rehearse(Some("cube source"), || on_gpu.iter().for_each(run));
        let unnamed = on_gpu.contains(&DeviceAlgorithm::Contract).then_some(None);
        let names = Algorithm::ALL.map(AlgorithmName::Cpu).map(Some).into_iter().chain(unnamed);
        for name in names.chain(on_gpu.iter().map(|algorithm| Some(AlgorithmName::Device(*algorithm)))) {
            let found = cells(&cube, &query, name, Some(&device)).unwrap();
            let told = name.map_or("chosen".to_string(), |name| name.to_string());
            let (found, expected) = (&found.cells, &expected.cells);
            prop_assert_eq!(found.ranks(), expected.ranks(), "{}: {}", told, query);
            prop_assert_eq!(found.columns(), expected.columns(), "{}: {}", told, query);
            let is_on_device = !matches!(name, Some(AlgorithmName::Cpu(_)));
            prop_assert_eq!(found.report().decision.place.device.is_some(), is_on_device, "{}", told);
        }
        Ok(())
    });
}

/// All rules and types, by the algorithms of the CPU and by contraction on the device, where all of them run.
fn all_measures_agree(count: u32, weight: impl Strategy<Value = f64> + Clone + 'static, is_whole: bool) {
    const SPANS: [Span; 3] = [Span::First, Span::Last, Span::Average];
    run(count, cases(weight, &ALL, if is_whole { &SPANS[..2] } else { &SPANS }), |case| {
        let cube = case.cube();
        let devices = [case.order, LaneOrder::Seeded(11)].map(|order| on_device(&cube.facts, order));
        for measures in [&ALL[..2], &ALL[2..3], &ALL[3..8], &ALL[8..]] {
            check_measures(&cube, &case.query(measures), measures, &devices, is_whole)?;
        }
        Ok(())
    });
}

fn check_measures(
    cube: &Cube,
    query: &str,
    measures: &[DrawnMeasure],
    devices: &[DeviceAggregation],
    is_whole: bool,
) -> Result<(), TestCaseError> {
    let names: Vec<&str> = measures.iter().map(|measure| measure.name).collect();
    let expected = match cells(cube, query, cpu(Algorithm::Source), None) {
        Err(error @ CubeError::Overflow { .. }) => Err(error.to_string()),
        Err(_) => return Err(TestCaseError::reject("an area beyond the limit")),
        Ok(expected) => Ok(expected),
    };
    let check = |name: &str, found: Result<TableAnswer, CubeError>| match (&expected, found) {
        (Ok(expected), Ok(found)) => {
            check_cells(cube, expected, &found, is_whole, name)?;
            Ok(Some(found))
        }
        // Sums of doubles in errors may differ in their last digits.
        (Err(_), Err(CubeError::Overflow { .. })) if !is_whole => Ok(None),
        (Err(expected), Err(found)) => {
            prop_assert_eq!(&found.to_string(), expected, "{}: {}", name, query);
            Ok(None)
        }
        (expected, found) => {
            let (expected, found) = (expected.as_ref().err(), found.err().map(|error| error.to_string()));
            Err(TestCaseError::fail(format!("{name}: {query}: {expected:?}, {found:?}")))
        }
    };
    for algorithm in &Algorithm::ALL[1..] {
        check(&format!("{algorithm} {names:?}"), cells(cube, query, cpu(*algorithm), None))?;
    }
    let contraction = Some(AlgorithmName::Device(DeviceAlgorithm::Contract));
    let mut found = Vec::new();
    for device in devices.iter().chain(&devices[..1]) {
        found.push(check(&format!("gpu-contract {names:?}"), cells(cube, query, contraction, Some(device)))?);
    }
    // The same bits in another order of lanes, and once more.
    for again in &found[1..] {
        match (&found[0], again) {
            (Some(first), Some(again)) => prop_assert_eq!(first.cells.columns(), again.cells.columns(), "{}", query),
            (first, again) => prop_assert_eq!(first.is_some(), again.is_some(), "{}", query),
        }
    }
    let chosen = check("chosen", cells(cube, query, None, Some(&devices[0])))?;
    prop_assert!(chosen.is_none_or(|chosen| chosen.report().decision.place.device.is_some()), "{}", query);
    Ok(())
}

#[test]
fn all_rules_and_types_agree_under_whole_weights() {
    all_measures_agree(48, whole(), true);
}

#[test]
fn all_rules_and_types_agree_under_other_weights() {
    all_measures_agree(48, prop_oneof![2 => whole(), 1 => -2.0..2.0_f64, 1 => Just(0.1)], false);
}
