//! Explanations of cells: what they count.

use std::sync::Arc;

use warpcube_cube::aggregate::Progress;
use warpcube_cube::answer::{Answer, AskOptions, Cube};
use warpcube_cube::facts::{FactMeasure, InputColumn, InputValues, Loader};
use warpcube_cube::model::{CubeModel, Dimension, Measure, Rule, ValueType};

#[test]
fn explain_counts_the_cells_that_the_measure_fills() {
    let measures = [("X", Rule::Sum, ValueType::Decimal { scale: 0 }), ("Y", Rule::Sum, ValueType::Double)];
    let measure = |(name, rule, value): &(&str, Rule, ValueType)| Measure {
        name: name.to_string(),
        rule: *rule,
        value: *value,
        format: None,
        over: None,
    };
    let k = Dimension::from_lists("K", &["a", "b", "c"], &[("T", &[("a", 1.0), ("b", 1.0)])]).unwrap();
    let model = CubeModel::new("c", vec![k], measures.iter().map(measure).collect()).unwrap();
    let facts = measures.iter().map(|(name, rule, value)| FactMeasure::new(name, *rule, *value)).collect();
    let mut loader = Loader::new(model.layout().clone(), facts);
    let filled = [false, true, true];
    let x = InputColumn { values: InputValues::Decimals(&[0, 1, 2]), filled: Some(&filled) };
    let y = InputColumn { values: InputValues::Doubles(&[1.0, 2.0, 3.0]), filled: None };
    loader.append(&[&[0, 1, 2]], &[x, y]).unwrap();
    let cube = Cube { model, facts: Arc::new(loader.finish(64).unwrap()), texts: Default::default() };
    for (query, expected) in [
        ("explain at T, X", "X = 1\n  SUM over 1 of 2 base cells"),
        ("explain at T, Y", "Y = 3\n  SUM over 2 of 3 base cells"),
    ] {
        let Answer::Text(text) = cube.ask(query, &AskOptions::default(), &Progress::new()).unwrap() else {
            panic!("{query}")
        };
        assert!(text.starts_with(expected), "{text}");
    }
}
