//! What an algorithm that is named and cannot run says.

use std::sync::Arc;

use warpcube_cube::aggregate::Progress;
use warpcube_cube::answer::{Aggregator, Answer, AskOptions, Cube};
use warpcube_cube::facts::{self, FactMeasure, InputColumn, InputValues, KeyLayout, Loader};
use warpcube_cube::model::{CubeModel, Dimension, Measure, Rule, ValueType};
use warpcube_gpu::LaneOrder;

use crate::cube::{is_on_cuda, on_device};

fn cube() -> Cube {
    cube_of([0.5, 0.25])
}

/// A cube of one dimension with weights 1 and ½, a sum of decimals, one of these doubles, and a minimum without values.
fn cube_of(doubles: [f64; 2]) -> Cube {
    let weights: [(&str, &[(&str, f64)]); 2] = [("All", &[("A", 1.0), ("B", -1.0)]), ("Half", &[("A", 0.5)])];
    let kinds = [
        ("Sum", Rule::Sum, facts::Rule::Sum, ValueType::Decimal { scale: 0 }),
        ("Double", Rule::Sum, facts::Rule::Sum, ValueType::Double),
        ("Least", Rule::Min, facts::Rule::Min, ValueType::Decimal { scale: 0 }),
    ];
    let measures =
        kinds.map(|(name, rule, _, value)| Measure { name: name.to_string(), rule, value, format: None, over: None });
    let dimension = Dimension::from_lists("D", &["A", "B"], &weights).unwrap();
    let model = CubeModel::new("c", vec![dimension], measures.to_vec()).unwrap();
    let of_facts = kinds.map(|(name, _, rule, value)| {
        let value = match value {
            ValueType::Decimal { scale } => facts::ValueType::Decimal { scale },
            ValueType::Double => facts::ValueType::Double,
        };
        FactMeasure::new(name, rule, value)
    });
    let mut loader = Loader::new(KeyLayout::for_sizes(&[2]).unwrap(), of_facts.to_vec());
    let input = [
        InputColumn { values: InputValues::Decimals(&[3, 5]), filled: None },
        InputColumn { values: InputValues::Doubles(&doubles), filled: None },
        InputColumn { values: InputValues::Decimals(&[0, 0]), filled: Some(&[false, false]) },
    ];
    loader.append(&[&[0, 1]], &input).unwrap();
    Cube { model, facts: Arc::new(loader.finish(64).unwrap()), texts: Default::default() }
}

/// The table or text of a query, or the error.
fn told(cube: &Cube, query: &str, algorithm: &str, device: Option<&dyn Aggregator>) -> Result<String, String> {
    let algorithm = (!algorithm.is_empty()).then(|| algorithm.parse().unwrap());
    let options = AskOptions { algorithm, device, ..AskOptions::default() };
    match cube.ask(query, &options, &Progress::new()) {
        Ok(Answer::Table(table)) => {
            let decision = &table.report().decision;
            let place = if decision.place.device.is_some() { "device" } else { "cpu" };
            let refused = decision.place.refused.clone().unwrap_or_default();
            Ok(format!("{} on {place}; {refused}", decision.algorithm))
        }
        Ok(Answer::Text(text)) => Ok(text),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn an_algorithm_of_the_cpu_runs_there_and_one_of_the_device_needs_one() {
    let cube = cube();
    let device = on_device(&cube.facts, LaneOrder::Forward);
    let of_cpu = told(&cube, "rows All cols Sum", "target", Some(&device));
    assert_eq!(of_cpu.unwrap(), "target on cpu; target is an algorithm of the CPU");
    assert_eq!(told(&cube, "rows All cols Sum", "gpu-target", Some(&device)).unwrap(), "gpu-target on device; ");
    let error = told(&cube, "rows All cols Sum", "gpu-contract", None).unwrap_err();
    let expected = "gpu-contract is an algorithm of a device, and the cube is aggregated without one; the CPU has \
                    source, source-parallel, target, contract";
    assert_eq!(error, expected);
}

#[test]
fn contraction_takes_what_other_algorithms_of_the_device_refuse() {
    let cube = cube();
    let device = on_device(&cube.facts, LaneOrder::Forward);
    for (query, reason) in [
        ("rows Half cols Sum", "a weight is not whole"),
        ("rows Half cols Double", "a weight is not whole"),
        // No value of it is needed to refuse it.
        ("rows All cols Least", "measure Least is no sum"),
        ("rows All cols Sum, Least", "measure Least is no sum"),
    ] {
        for name in ["gpu-target", "gpu-source/shuffle/thread/h64"] {
            let error = told(&cube, query, name, Some(&device)).unwrap_err();
            let advice = "without a name the cost model chooses an algorithm";
            assert_eq!(error, format!("{name} does not aggregate this: {reason}; {advice}"));
        }
        for name in ["gpu-contract", ""] {
            assert_eq!(told(&cube, query, name, Some(&device)).unwrap(), "gpu-contract on device; ", "{query}");
        }
    }
    if is_on_cuda() {
        return;
    }
    let launching = "gpu-source/none/children/h1";
    let error = told(&cube, "rows All cols Sum", launching, Some(&device)).unwrap_err();
    assert!(error.starts_with(&format!("{launching} does not aggregate this: ")), "{error}");
    assert!(error.contains("kernels of the emulated device launch no kernels"), "{error}");
}

/// Doubles are added up in limbs by what adds up whole numbers.
#[test]
fn other_algorithms_of_the_device_take_sums_of_doubles() {
    for (values, is_taken) in [([0.1, -12_345.67], true), ([1e-3, 1e11], true), ([1e-20, 1e20], false)] {
        let cube = cube_of(values);
        let device = on_device(&cube.facts, LaneOrder::Forward);
        for name in ["gpu-target", "gpu-source/shuffle/thread/h64"] {
            let told = told(&cube, "rows All cols Double", name, Some(&device));
            match is_taken {
                true => assert_eq!(told.unwrap(), format!("{name} on device; ")),
                false => {
                    let reason = "measure Double has doubles whose sums have more than 100 bits";
                    let error = told.unwrap_err();
                    assert!(error.starts_with(&format!("{name} does not aggregate this: {reason}")), "{error}");
                }
            }
        }
    }
}

/// Doubles whose magnitudes are 2^200 apart have no sums on the device that keep what the CPU keeps.
#[test]
fn doubles_too_far_apart_run_on_the_cpu() {
    let cube = cube_of([1e-30, -1e30]);
    let device = on_device(&cube.facts, LaneOrder::Forward);
    let reason = "measure Double has doubles from 1e-30 to 1e30, whose sums would lose digits";
    let error = told(&cube, "rows All cols Double", "gpu-contract", Some(&device)).unwrap_err();
    assert!(error.starts_with(&format!("gpu-contract does not aggregate this: {reason}; ")), "{error}");
    let without = told(&cube, "rows All cols Double", "", Some(&device)).unwrap();
    assert!(without.ends_with(&format!(" on cpu; {reason}")), "{without}");
    let text = told(&cube, "explain at All, Double", "", Some(&device)).unwrap();
    assert!(text.ends_with(&format!("  not on the device: {reason}\n")), "{text}");
}

#[test]
fn explanations_tell_the_arithmetic_of_the_device() {
    let cube = cube();
    let device = on_device(&cube.facts, LaneOrder::Forward);
    for (at, arithmetic) in
        [("Half, Sum", "doubles, rounded once"), ("All, Double", "doubles"), ("All, Sum", "64 bits")]
    {
        let text = told(&cube, &format!("explain at {at}"), "", Some(&device)).unwrap();
        assert!(text.contains("Algorithm: gpu-contract on "), "{text}");
        assert!(text.ends_with(&format!("  done in {arithmetic}\n")), "{text}");
    }
}

#[test]
fn an_explanation_has_the_predictions_of_all_places() {
    let cube = cube();
    let device = on_device(&cube.facts, LaneOrder::Forward);
    let text = told(&cube, "explain at All, Sum", "", Some(&device)).unwrap();
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Algorithm: ")).collect();
    assert!(lines[0].starts_with("Algorithm: gpu-contract on "), "{text}");
    assert!(lines[0].contains("least time for about 2 relevant of 2 cells and 1 targets"), "{text}");
    let names: Vec<&str> = lines[1..8].iter().filter_map(|line| line.split_whitespace().next()).collect();
    let all = ["gpu-contract", "gpu-source/shuffle/thread/h64", "gpu-target"];
    assert_eq!(names, [&all[..], &["source", "source-parallel", "target", "contract"]].concat(), "{text}");
    assert!(lines[1..4].iter().all(|line| line.ends_with(" ms")), "{text}");
    assert_eq!(lines[8..], ["  done in 64 bits"]);
    let named = told(&cube, "explain at All, Sum", "source", None).unwrap();
    assert!(named.contains("Algorithm: source (source was asked for)\n  source "), "{named}");
    assert!(named.ends_with("  done: 2 additions in 64 bits\n"), "{named}");
}
