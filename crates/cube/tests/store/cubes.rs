//! Cubes for tests: random ones, a small one with every part, and numbered ones.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use proptest::prelude::*;
use warpcube_arrays::Scheme;
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, Loader, Rule, ValueType};
use warpcube_cube::model::{CubeModel, Dimension, DimensionBuilder, ElementId, ElementKind, Measure};
use warpcube_cube::store::{CellLayout, CubeOrigin, PaloOrigin, StoredCube, TextCell};
use warpcube_cube::store::{DimensionOrigin, Field, LineEnd};

/// A dimension of `bases` base elements, a text element and a total over all bases.
pub fn dimension(name: &str, bases: usize) -> Dimension {
    let mut builder = DimensionBuilder::new(name).unwrap();
    let total = builder.add("Total", ElementKind::Consolidated).unwrap();
    for number in 0..bases {
        let base = builder.add(&format!("e{number}"), ElementKind::Base).unwrap();
        builder.link(total, base, 0.1 + number as f64).unwrap();
    }
    builder.add("Note", ElementKind::Text).unwrap();
    builder.finish().unwrap()
}

pub fn model(name: &str, sizes: &[usize], measures: &[(Rule, ValueType)]) -> CubeModel {
    let dimensions = sizes.iter().enumerate().map(|(number, size)| dimension(&format!("D{number}"), *size));
    let measure = |(number, (rule, value)): (usize, &(Rule, ValueType))| Measure {
        name: format!("M{number}"),
        rule: *rule,
        value: *value,
        format: None,
        over: None,
    };
    CubeModel::new(name, dimensions.collect(), measures.iter().enumerate().map(measure).collect()).unwrap()
}

/// A source row: the number of its cell, the last dimension first, and a decimal and a double that may be NULL.
pub type Row = (u64, Option<i64>, Option<f64>);

/// The facts of rows.
pub fn facts(model: &CubeModel, rows: &[Row], page_cells: usize) -> Facts {
    let measures: Vec<FactMeasure> =
        model.measures().iter().map(|m| FactMeasure::new(&m.name, m.rule, m.value)).collect();
    let mut loader = Loader::new(model.layout().clone(), measures.clone());
    let mut columns: Vec<Vec<u32>> = Vec::new();
    let mut rest: Vec<u64> = rows.iter().map(|row| row.0).collect();
    for dimension in model.dimensions().iter().rev() {
        let size = dimension.base_count() as u64;
        columns.insert(0, rest.iter().map(|rest| (rest % size) as u32).collect());
        rest.iter_mut().for_each(|rest| *rest /= size);
    }
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let decimals: Vec<i64> = rows.iter().map(|row| row.1.unwrap_or(1)).collect();
    let doubles: Vec<f64> = rows.iter().map(|row| row.2.unwrap_or(1.0)).collect();
    let with_decimal: Vec<bool> = rows.iter().map(|row| row.1.is_some()).collect();
    let with_double: Vec<bool> = rows.iter().map(|row| row.2.is_some()).collect();
    let inputs: Vec<InputColumn<'_>> = measures
        .iter()
        .map(|measure| match (measure.rule, measure.value_type) {
            (Rule::Count, _) => InputColumn { values: InputValues::Rows, filled: Some(&with_decimal) },
            (_, ValueType::Double) => {
                InputColumn { values: InputValues::Doubles(&doubles), filled: Some(&with_double) }
            }
            _ => InputColumn { values: InputValues::Decimals(&decimals), filled: Some(&with_decimal) },
        })
        .collect();
    loader.append(&columns, &inputs).unwrap();
    loader.finish(page_cells).unwrap()
}

const RULES: [Rule; 5] = [Rule::Sum, Rule::Count, Rule::Avg, Rule::Min, Rule::Max];

fn measures() -> impl Strategy<Value = Vec<(Rule, ValueType)>> {
    let value = prop_oneof![(0..=18_u8).prop_map(|scale| ValueType::Decimal { scale }), Just(ValueType::Double)];
    prop::collection::vec((prop::sample::select(RULES.to_vec()), value), 1..5)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        4 => prop::collection::vec(1..40_usize, 1..6),
        // Keys above 64 bits.
        1 => prop::collection::vec(5..9_usize, 22..25),
    ]
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let decimal = prop_oneof![-999..999_i64, -(1_i64 << 50)..1_i64 << 50];
    let double = prop_oneof![(-999..999_i32).prop_map(|cents| f64::from(cents) / 100.0), -1e100..1e100_f64];
    let row = (prop_oneof![0..30_u64, any::<u64>()], prop::option::of(decimal), prop::option::of(double));
    prop::collection::vec(row, 0..120)
}

/// Texts with line ends, quotes and characters of several bytes.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "ß", "\"", "\n", "", "漢", " : "]), 0..6)
        .prop_map(|parts| parts.concat())
}

fn batch(numbers: Vec<Option<i64>>, texts: bool) -> RecordBatch {
    let number: ArrayRef = Arc::new(Int64Array::from(numbers.clone()));
    if !texts {
        return RecordBatch::try_from_iter_with_nullable([("amount", number, true)]).unwrap();
    }
    let names: StringArray = numbers.iter().map(|number| number.map(|number| format!("name {number}"))).collect();
    let name: ArrayRef = Arc::new(names);
    RecordBatch::try_from_iter_with_nullable([("amount", number, true), ("name", name, true)]).unwrap()
}

fn origin(dimensions: usize, number: u32) -> CubeOrigin {
    let sizes = (0..dimensions as u32).collect();
    let settings = vec![Field { text: "a;\"b".to_owned(), quoted: true }];
    let cells = (number % 3 > 0).then_some(CellLayout { sizes, settings, line_end: LineEnd::CrLf });
    let dimensions = (0..dimensions).map(|at| DimensionOrigin::new(number.wrapping_add(at as u32))).collect();
    CubeOrigin::Palo(PaloOrigin { cube: number, dimensions, cells })
}

/// Text cells at elements that seeds draw, consolidated and text elements among them.
fn texts(model: &CubeModel, seeds: Vec<(u32, String)>) -> Vec<TextCell> {
    let element = |seed: u32, at: usize, dimension: &Dimension| {
        ElementId::new(seed.rotate_left(5 * at as u32) % dimension.id_count() as u32)
    };
    let cell = |(seed, text): (u32, String)| {
        let dimensions = model.dimensions().iter().enumerate();
        TextCell { elements: dimensions.map(|(at, dimension)| element(seed, at, dimension)).collect(), text }
    };
    seeds.into_iter().map(cell).collect()
}

/// Random cubes with random parts.
pub fn cubes() -> impl Strategy<Value = StoredCube> {
    let aside = prop::collection::vec((prop::collection::vec(any::<Option<i64>>(), 0..9), any::<bool>()), 0..4);
    let others = (
        prop::option::of(text()),
        prop::collection::vec((any::<u32>(), text()), 0..6),
        aside,
        prop::option::of(any::<u32>()),
    );
    (sizes(), measures(), rows(), 1..300_usize, others).prop_map(|(sizes, measures, rows, page_cells, others)| {
        let model = model("random", &sizes, &measures);
        let (definition, seeds, aside, number) = others;
        StoredCube {
            facts: facts(&model, &rows, page_cells),
            scheme: if page_cells % 2 == 0 { Scheme::Bess } else { Scheme::Coordinate },
            definition,
            texts: texts(&model, seeds),
            aside: aside.into_iter().map(|(numbers, texts)| batch(numbers, texts)).collect(),
            origin: number.map(|number| origin(sizes.len(), number)),
            model,
        }
    })
}

/// A small cube with every part.
pub fn small() -> StoredCube {
    let decimal = ValueType::Decimal { scale: 2 };
    let model = model("small", &[3, 5], &[(Rule::Sum, decimal), (Rule::Avg, ValueType::Double)]);
    let rows = [(1, Some(150), Some(0.5)), (2, None, Some(1.25)), (3, Some(-7), None), (1, Some(1), Some(2.0))];
    StoredCube {
        facts: facts(&model, &rows, 2),
        scheme: Scheme::Bess,
        definition: Some("cube: small\n".to_owned()),
        texts: texts(&model, vec![(0, "a text".to_owned()), (7, "zwölf".to_owned())]),
        aside: vec![batch(vec![Some(3), None], true)],
        origin: Some(origin(2, 4)),
        model,
    }
}

/// A cube that tells its number by every part.
pub fn numbered(number: u64) -> StoredCube {
    let model = model("numbered", &[40, 7], &[(Rule::Sum, ValueType::Decimal { scale: 0 })]);
    let rows: Vec<Row> = (0..=number % 60).map(|row| (row * 31, Some((number + row) as i64), None)).collect();
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![number as f64; 3]));
    StoredCube {
        facts: facts(&model, &rows, 16),
        scheme: if number.is_multiple_of(3) { Scheme::Bxcrs } else { Scheme::Bess },
        definition: Some(format!("# {number}\n")),
        texts: texts(&model, vec![(number as u32, number.to_string())]),
        aside: vec![RecordBatch::try_from_iter([("number", numbers)]).unwrap(); (number % 2) as usize],
        origin: None,
        model,
    }
}

/// Names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Names that a folder of this generation has.
pub fn expected_names(folder: &Path) -> Vec<String> {
    let info = warpcube_cube::store::info(folder).unwrap();
    let mut names: Vec<String> = info.files.into_iter().map(|file| file.name).collect();
    names.extend(["cube.json".to_owned(), "lock".to_owned()]);
    names.sort();
    names
}
