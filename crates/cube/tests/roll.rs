//! The CUBE of a cube as tables: names, rules, dimensions, groups of enough rows, what is refused.

mod plan;
mod printed;

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use warpcube_arrays::cube_operator::Algorithm;
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader};
use warpcube_cube::model::{CubeModel, Dimension, Measure, Rule, ValueType};
use warpcube_cube::progress::Progress;
use warpcube_cube::roll::{Roll, RollError, roll};

use printed::printed;

fn asked(dimensions: &[usize], having: Option<u64>) -> Roll {
    Roll { dimensions: dimensions.to_vec(), measure: 0, having, algorithm: Algorithm::Auto }
}

/// The tables by their ascending dimensions, with sorted lines.
fn tables(model: &CubeModel, facts: &Facts, asked: &Roll) -> BTreeMap<Vec<usize>, Vec<String>> {
    let mut tables = BTreeMap::new();
    let progress = Progress::new();
    roll(model, facts, asked, &progress, |dimensions, batch: RecordBatch| {
        let mut order: Vec<usize> = (0..dimensions.len()).collect();
        order.sort_by_key(|place| dimensions[*place]);
        let columns: Vec<usize> = order.iter().copied().chain([dimensions.len()]).collect();
        let mut lines = printed(&batch.project(&columns).unwrap());
        lines[1..].sort();
        let dimensions = order.iter().map(|place| dimensions[*place]).collect();
        assert!(tables.insert(dimensions, lines).is_none());
        Ok::<(), RollError>(())
    })
    .unwrap();
    assert_eq!((progress.done(), progress.total()), (tables.len() as u64, 1 << asked.dimensions.len()));
    tables
}

#[test]
fn a_table_for_each_combination() {
    let tables = tables(&plan::model(), &plan::facts(), &asked(&[1, 0], None));
    assert_eq!(tables.len(), 4);
    assert_eq!(tables[&vec![]], ["Sales", "360"]);
    assert_eq!(tables[&vec![0]], ["Version Sales", "Actual 180", "Budget 180"]);
    assert_eq!(tables[&vec![1]], ["Region Sales", "France 300", "Spain 60"]);
    let both = ["Version Region Sales", "Actual France 150", "Actual Spain 30", "Budget France 150", "Budget Spain 30"];
    assert_eq!(tables[&vec![0, 1]], both);
}

/// A cube of three dimensions with a measure of each rule; decimals have scale 2.
fn ruled(bits: [u32; 3], value: ValueType) -> (CubeModel, Facts) {
    let names = ["a", "b", "c"];
    let dimension = |name: &str| Dimension::from_lists(name, &names, &[]).unwrap();
    let rules = [Rule::Sum, Rule::Count, Rule::Avg, Rule::Min, Rule::Max];
    let measure = |rule: Rule| Measure { name: rule.to_string(), rule, value, format: None, over: None };
    let model = CubeModel::new("c", ["x", "y", "z"].map(dimension).to_vec(), rules.map(measure).to_vec()).unwrap();
    let measures = rules.map(|rule| FactMeasure::new(&rule.to_string(), rule, value));
    let mut loader = Loader::new(KeyLayout::new(&bits).unwrap(), measures.to_vec());
    let (decimals, doubles) = ([150, 250, -75, 1000], [1.5, 2.5, -0.75, 10.0]);
    let values = match value {
        ValueType::Decimal { .. } => InputValues::Decimals(&decimals),
        ValueType::Double => InputValues::Doubles(&doubles),
    };
    let input = |filled: &'static [bool]| InputColumn { values, filled: Some(filled) };
    let [all, some]: [&'static [bool]; 2] = [&[true; 4], &[true, true, true, false]];
    let input = [input(all), input(some), input(some), input(some), input(all)];
    // Two rows of one cell, a cell, and one without a COUNT, an AVG and a MIN.
    loader.append(&[&[0, 0, 0, 2], &[1, 1, 2, 1], &[0, 0, 1, 2]], &input).unwrap();
    (model, loader.finish(2).unwrap())
}

#[test]
fn every_rule_over_keys_of_both_widths_and_both_types() {
    for bits in [[2, 2, 2], [32, 32, 32]] {
        for value in [ValueType::Decimal { scale: 2 }, ValueType::Double] {
            let (model, facts) = ruled(bits, value);
            let of = |measure: usize, dimensions: &[usize]| {
                let table = tables(&model, &facts, &Roll { measure, ..asked(&[0, 1], None) }).remove(dimensions);
                let numbers = table.unwrap_or_default().split_off(1).into_iter();
                let parsed = |line: String| {
                    let (names, number) = line.rsplit_once(' ').unwrap_or(("", &line));
                    (names.to_string(), number.parse::<f64>().unwrap())
                };
                numbers.map(parsed).collect::<Vec<_>>()
            };
            let by_x = |a: f64, c: Option<f64>| {
                let group = |name: &str, value| (name.to_string(), value);
                [group("a", a)].into_iter().chain(c.map(|c| group("c", c))).collect::<Vec<_>>()
            };
            assert_eq!(of(0, &[0]), by_x(3.25, Some(10.0)), "SUM");
            assert_eq!(of(1, &[0]), by_x(3.0, None), "COUNT");
            assert_eq!(of(2, &[0]), by_x(3.25 / 3.0, None), "AVG");
            assert_eq!(of(3, &[0]), by_x(-0.75, None), "MIN");
            assert_eq!(of(4, &[0]), by_x(2.5, Some(10.0)), "MAX");
            assert_eq!(of(0, &[]), [(String::new(), 13.25)]);
            assert_eq!(of(0, &[0, 1]).len(), 3);
        }
    }
}

#[test]
fn groups_of_enough_source_rows() {
    let (model, facts) = ruled([2; 3], ValueType::Decimal { scale: 2 });
    let tables = tables(&model, &facts, &asked(&[0, 1], Some(3)));
    let groups: Vec<_> = tables.into_iter().map(|(dimensions, lines)| (dimensions, lines[1..].to_vec())).collect();
    let lines = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
    assert_eq!(groups[..2], [(vec![], lines(&["13.25"])), (vec![0], lines(&["a 3.25"]))]);
    assert_eq!(groups[2..], [(vec![1], lines(&["b 14.00"]))], "b has the two rows of one cell and one of another");
}

#[test]
fn what_is_no_sum_of_cells_is_refused() {
    let run = |model: &CubeModel, facts: &Facts, asked: &Roll, progress: &Progress| {
        roll(model, facts, asked, progress, |_, _| Ok::<(), RollError>(())).map_err(|error| error.to_string())
    };
    let (model, facts) = (plan::model(), plan::facts());
    let stock = Roll { measure: 1, ..asked(&[0], None) };
    let error = run(&model, &facts, &stock, &Progress::new()).unwrap_err();
    assert_eq!(error, "measure 'Heads' balances over a dimension: ask for its cells with 'warpcube cube query'");
    let twice = run(&model, &facts, &asked(&[0, 0], None), &Progress::new());
    assert_eq!(twice, Err("dimension 0 is named twice".to_string()));
    let stopped = Progress::new();
    stopped.cancel();
    assert_eq!(run(&model, &facts, &asked(&[0], None), &stopped), Err("cancelled".to_string()));
}
