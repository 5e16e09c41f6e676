//! A small plan: versions with a variance, regions, months of a year, and two measures, one of them a stock.

use warpcube_cube::facts::{self, FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader};
use warpcube_cube::model::{Balance, CubeModel, Dimension, Measure, Rule, Span, ValueType};

const SCALE: u8 = 0;

/// Its model.
pub fn model() -> CubeModel {
    let version =
        Dimension::from_lists("Version", &["Actual", "Budget"], &[("Variance", &[("Actual", 1.0), ("Budget", -1.0)])]);
    let region = Dimension::from_lists(
        "Region",
        &["France", "Spain", "Japan"],
        &[("World", &[("Europe", 1.0), ("Japan", 1.0)]), ("Europe", &[("France", 1.0), ("Spain", 1.0)])],
    );
    let month = Dimension::from_lists("Month", &["Jan", "Feb"], &[("Year", &[("Jan", 1.0), ("Feb", 1.0)])]);
    let measure = |name: &str, over| Measure {
        name: name.to_string(),
        rule: Rule::Sum,
        value: ValueType::Decimal { scale: SCALE },
        format: None,
        over,
    };
    let stock = Balance { dimension: "Month".to_string(), span: Span::Last };
    let dimensions = vec![version.unwrap(), region.unwrap(), month.unwrap()];
    CubeModel::new("plan", dimensions, vec![measure("Sales", None), measure("Heads", Some(stock))]).unwrap()
}

/// Rows of (version, region, month, sales, heads) by coordinate.
pub fn facts() -> Facts {
    let rows: [[i64; 5]; 6] =
        [[0, 0, 0, 100, 5], [0, 0, 1, 50, 6], [0, 1, 0, 30, 2], [1, 0, 0, 90, 5], [1, 0, 1, 60, 5], [1, 1, 0, 30, 2]];
    let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<i64>>();
    let coordinates: Vec<Vec<u32>> = (0..3).map(|at| column(at).into_iter().map(|it| it as u32).collect()).collect();
    let coordinates: Vec<&[u32]> = coordinates.iter().map(Vec::as_slice).collect();
    let value = facts::ValueType::Decimal { scale: SCALE };
    let measures = ["Sales", "Heads"].map(|name| FactMeasure::new(name, facts::Rule::Sum, value));
    let mut loader = Loader::new(KeyLayout::for_sizes(&[2, 3, 2]).unwrap(), measures.to_vec());
    let (sales, heads) = (column(3), column(4));
    let input = [&sales, &heads].map(|values| InputColumn { values: InputValues::Decimals(values), filled: None });
    loader.append(&coordinates, &input).unwrap();
    loader.finish(4).unwrap()
}
