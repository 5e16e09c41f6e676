//! Every algorithm gives the cells of the single-threaded source-based one.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use warpcube_cube::aggregate::{Algorithm, CellValue, Cells, Progress};
use warpcube_cube::answer::{Aggregator, AlgorithmName, Answer, AskOptions, Cube, CubeError};

use crate::cube::{Case, cases, device_algorithms, on_device, whole};

fn cells(
    cube: &Cube,
    query: &str,
    algorithm: Option<AlgorithmName>,
    device: Option<&dyn Aggregator>,
) -> Result<Cells, CubeError> {
    // Areas of six dimensions stay small.
    let options = AskOptions { algorithm, targets_max: 20_000, device };
    match cube.ask(query, &options, &Progress::new())? {
        Answer::Table(table) => {
            let name = algorithm.map(|algorithm| algorithm.to_string());
            assert!(name.is_none_or(|name| name == table.report().algorithm));
            Ok(table.cells)
        }
        other => panic!("{query}: {other:?}"),
    }
}

fn cpu(algorithm: Algorithm) -> Option<AlgorithmName> {
    Some(AlgorithmName::Cpu(algorithm))
}

/// Runs `check` over drawn cases from a fixed seed.
fn run(count: u32, cases: impl Strategy<Value = Case>, check: impl Fn(&Case) -> Result<(), TestCaseError>) {
    let config = Config { cases: count, rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&cases, |case| check(&case)).unwrap();
}

#[test]
fn all_algorithms_give_the_same_cells() {
    let on_gpu = device_algorithms(&[1, 3, 64]);
    run(64, cases(whole()), |case| {
        let (cube, query) = (case.cube(), case.query());
        let expected = cells(&cube, &query, cpu(Algorithm::Source), None);
        let Ok(expected) = expected else { return Err(TestCaseError::reject("an area beyond the limit")) };
        let device = on_device(&cube.facts, case.order);
        let names = Algorithm::ALL.map(AlgorithmName::Cpu).map(Some).into_iter().chain([None]);
        for name in names.chain(on_gpu.iter().map(|algorithm| Some(AlgorithmName::Device(*algorithm)))) {
            let found = cells(&cube, &query, name, Some(&device)).unwrap();
            let told = name.map_or("chosen".to_string(), |name| name.to_string());
            prop_assert_eq!(found.ranks(), expected.ranks(), "{}: {}", told, query);
            prop_assert_eq!(found.columns(), expected.columns(), "{}: {}", told, query);
            let is_on_device = !matches!(name, Some(AlgorithmName::Cpu(_)));
            prop_assert_eq!(found.report().device.is_some(), is_on_device, "{}", told);
        }
        Ok(())
    });
}

#[test]
fn other_weights_agree_within_a_digit_and_run_on_the_cpu() {
    let weight = prop_oneof![2 => whole(), 1 => -2.0..2.0_f64, 1 => Just(0.1)];
    run(64, cases(weight), |case| {
        let (cube, query) = (case.cube(), case.query());
        let expected = cells(&cube, &query, cpu(Algorithm::Source), None);
        let Ok(expected) = expected else { return Err(TestCaseError::reject("an area beyond the limit")) };
        for algorithm in Algorithm::ALL {
            let found = cells(&cube, &query, cpu(algorithm), None).unwrap();
            prop_assert_eq!(found.ranks(), expected.ranks(), "{}: {}", algorithm, query);
            for (found, expected) in found.columns().iter().zip(expected.columns()) {
                for cell in 0..found.values.len() {
                    match (found.value(cell), expected.value(cell)) {
                        (Some(CellValue::Decimal { units, .. }), Some(CellValue::Decimal { units: expected, .. })) => {
                            prop_assert!(units.abs_diff(expected) <= 1, "{}: {} {}", algorithm, units, expected)
                        }
                        (found, expected) => prop_assert_eq!(found, expected, "{}", algorithm),
                    }
                }
            }
        }
        let device = on_device(&cube.facts, case.order);
        match cells(&cube, &query, None, Some(&device)) {
            // Weights of base elements without facts do not count, and the sums are those of whole weights.
            Ok(found) if found.report().device.is_some() => prop_assert_eq!(found.columns(), expected.columns()),
            Ok(found) => prop_assert_eq!(found.ranks(), expected.ranks()),
            Err(error) => panic!("{error}"),
        }
        Ok(())
    });
}
