//! Time balances of elements with weights: sums of their children's balances, by every algorithm.

use std::sync::Arc;

use warpcube_cube::aggregate::{Algorithm, CellValue, Progress};
use warpcube_cube::answer::{AlgorithmName, Answer, AskOptions, Cube};
use warpcube_cube::device::DeviceAlgorithm;
use warpcube_cube::facts::{self, FactMeasure, InputColumn, InputValues, KeyLayout, Loader};
use warpcube_cube::model::{Balance, CubeModel, Dimension, Measure, Rule, Span, ValueType};
use warpcube_gpu::LaneOrder;

use crate::cube::{device_algorithms, on_device};

const SPANS: [(&str, Span); 3] = [("First", Span::First), ("Last", Span::Last), ("Average", Span::Average)];

/// Stocks of two regions in two years of two months each, and what years are made of.
fn cube() -> Cube {
    let consolidated: [(&str, &[(&str, f64)]); 5] = [
        ("2025", &[("Jan25", 1.0), ("Dec25", 1.0)]),
        ("2026", &[("Jan26", 1.0), ("Dec26", 1.0)]),
        ("Years", &[("2025", 1.0), ("2026", 1.0)]),
        ("Growth", &[("2026", 1.0), ("2025", -1.0)]),
        ("Plan", &[("2026", 1.0), ("Growth", 2.0)]),
    ];
    let months = Dimension::from_lists("Month", &["Jan25", "Dec25", "Jan26", "Dec26"], &consolidated).unwrap();
    let regions = [("All", &[("A", 1.0), ("B", 1.0)][..])];
    let regions = Dimension::from_lists("Region", &["A", "B"], &regions).unwrap();
    let measure = |(name, span): &(&str, Span)| Measure {
        name: (*name).to_string(),
        rule: Rule::Sum,
        value: ValueType::Decimal { scale: 0 },
        format: None,
        over: Some(Balance { dimension: "Month".to_string(), span: *span }),
    };
    let model = CubeModel::new("stocks", vec![months, regions], SPANS.iter().map(measure).collect()).unwrap();
    let decimal = facts::ValueType::Decimal { scale: 0 };
    let of_facts = SPANS.map(|(name, _)| FactMeasure::new(name, facts::Rule::Sum, decimal));
    let mut loader = Loader::new(KeyLayout::for_sizes(&[4, 2]).unwrap(), of_facts.to_vec());
    // B has no stock in December 2026.
    let values: &[i64] = &[40, 80, 120, 160, 60, 20, 10];
    let input = SPANS.map(|_| InputColumn { values: InputValues::Decimals(values), filled: None });
    loader.append(&[&[0, 1, 2, 3, 0, 1, 2], &[0, 0, 0, 0, 1, 1, 1]], &input).unwrap();
    Cube { model, facts: Arc::new(loader.finish(64).unwrap()), texts: Default::default() }
}

#[test]
fn elements_with_weights_add_the_balances_of_their_children() {
    let cube = cube();
    let device = on_device(&cube.facts, LaneOrder::Forward);
    // 2025, 2026, Years, Growth, Plan and the months of both years as one sum, of A, B and All.
    let wholes: [(&str, [[Option<i64>; 3]; 6]); 3] = [
        (
            "Last",
            [
                [Some(80), Some(20), Some(100)],
                [Some(160), None, Some(160)],
                [Some(160), None, Some(160)],
                [Some(80), Some(-20), Some(60)],
                [Some(320), Some(-40), Some(280)],
                [Some(160), None, Some(160)],
            ],
        ),
        (
            "First",
            [
                [Some(40), Some(60), Some(100)],
                [Some(120), Some(10), Some(130)],
                [Some(40), Some(60), Some(100)],
                [Some(80), Some(-50), Some(30)],
                [Some(280), Some(-90), Some(190)],
                [Some(40), Some(60), Some(100)],
            ],
        ),
        // Months without a stock divide, too.
        (
            "Average",
            [
                [Some(60), Some(40), Some(100)],
                [Some(140), Some(5), Some(145)],
                [Some(100), Some(23), Some(123)],
                [Some(80), Some(-35), Some(45)],
                [Some(300), Some(-65), Some(235)],
                [Some(100), Some(23), Some(123)],
            ],
        ),
    ];
    let of_cpu = Algorithm::ALL.map(AlgorithmName::Cpu);
    for (measure, expected) in wholes {
        let on_gpu = match measure {
            "Average" => vec![DeviceAlgorithm::Contract],
            _ => device_algorithms(&[3]),
        };
        let on_gpu = on_gpu.into_iter().map(AlgorithmName::Device);
        for algorithm in of_cpu.into_iter().chain(on_gpu) {
            let options = AskOptions { algorithm: Some(algorithm), device: Some(&device), ..AskOptions::default() };
            let query = format!("rows 2025, 2026, Years, Growth, Plan, sum(2025, 2026) cols A, B, All where {measure}");
            let Answer::Table(table) = cube.ask(&query, &options, &Progress::new()).unwrap() else { panic!() };
            let cells = &table.cells;
            for (row, expected) in expected.iter().enumerate() {
                for (column, expected) in expected.iter().enumerate() {
                    let found = cells.find(&[row as u32, column as u32]);
                    let found = found.and_then(|cell| cells.columns()[0].value(cell));
                    let expected = expected.map(|units| CellValue::Decimal { units, scale: 0 });
                    assert_eq!(found, expected, "{measure} by {algorithm} in row {row}, column {column}");
                }
            }
        }
    }
}
