//! A cube as a relation: a column for each level, the cells that a statement wants.

mod plan;
mod printed;

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;
use warpcube_cube::answer::{Cube, Relation};
use warpcube_cube::facts::{FactMeasure, InputColumn, InputValues, Loader, Rule, ValueType};
use warpcube_cube::model::{Change, CubeModel, Dimension, Measure};

use printed::printed;

fn cube() -> Cube {
    Cube { model: plan::model(), facts: Arc::new(plan::facts()), texts: Default::default() }
}

/// All columns of the first cells.
fn batch(cube: &Cube) -> RecordBatch {
    let relation = Relation::of(cube);
    let all: Vec<usize> = (0..relation.schema().fields().len()).collect();
    relation.batches(cube, &all, &[], usize::MAX).unwrap().remove(0)
}

#[test]
fn a_cube_is_a_relation_with_a_column_for_each_level() {
    assert_eq!(
        printed(&batch(&cube()))[..4],
        [
            "Version Region Region_1 Region_2 Month Month_1 Sales Heads",
            "Actual France Europe World Jan Year 100 5",
            "Actual France Europe World Feb Year 50 6",
            "Actual Spain Europe World Jan Year 30 2",
        ],
        "the variance has the budget at -1, so that its level is no column"
    );
}

#[test]
fn a_relation_reads_the_wanted_columns_of_the_wanted_cells() {
    let cube = cube();
    let relation = Relation::of(&cube);
    let names = relation.names(5).unwrap();
    assert_eq!(array_value_to_string(&names, 0).unwrap(), "Year");
    assert_eq!((names.len(), names.is_null(1)), (2, true), "each name once, and NULL");
    let column = |name: &str| relation.schema().index_of(name).unwrap();
    assert!(relation.names(column("Sales")).is_none(), "values are no names");
    let (month, region, sales) = (column("Month"), column("Region"), column("Sales"));
    let marks = |column: usize, wanted: &str| {
        let names = relation.names(column).unwrap();
        (column, (0..names.len()).map(|at| array_value_to_string(&names, at).unwrap() == wanted).collect::<Vec<_>>())
    };
    let rows = |kept: &[(usize, Vec<bool>)]| {
        let batches = relation.batches(&cube, &[sales, month], kept, usize::MAX).unwrap();
        batches.iter().flat_map(|batch| printed(batch).split_off(1)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[])[..3], ["100 Jan", "50 Feb", "30 Jan"]);
    assert_eq!(rows(&[marks(month, "Feb"), marks(region, "France")]), ["50 Feb", "60 Feb"]);
    assert_eq!(rows(&[marks(month, "Mar")]), [""; 0]);
    let first = relation.batches(&cube, &[sales], &[marks(month, "Feb")], 1).unwrap();
    assert_eq!(first.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let counted = relation.batches(&cube, &[], &[marks(month, "Feb")], usize::MAX).unwrap();
    assert_eq!(counted.iter().map(RecordBatch::num_rows).sum::<usize>(), 2, "rows without columns are counted");
}

/// A base element that a change has placed below a second element of a level, or below one at another weight.
#[test]
fn a_level_with_a_name_is_null_where_a_base_element_has_no_single_element_of_it() {
    let rows = [["A", "a1"], ["A", "a2"], ["B", "b1"], ["B", "b2"]].map(|row| row.map(Some));
    let (dimension, _) = Dimension::from_levels("Product", &["group", "sku"], rows.iter().map(|row| &row[..])).unwrap();
    let measure = Measure { over: None, ..plan::model().measures()[0].clone() };
    let mut model = CubeModel::new("c", vec![dimension], vec![measure]).unwrap();
    let id = |model: &CubeModel, name: &str| model.dimensions()[0].find(name).unwrap();
    let (a, b, a1, b1) = (id(&model, "A"), id(&model, "B"), id(&model, "a1"), id(&model, "b1"));
    let link = |parent, child, weight| Change::Link { parent, child, weight, place: None };
    model.apply(0, link(b, a1, 1.0), &|_| false).unwrap();
    model.apply(0, Change::Weigh { parent: b, child: b1, weight: 2.0 }, &|_| false).unwrap();
    assert_ne!(a, b);
    let measures = vec![FactMeasure::new("Sales", Rule::Sum, ValueType::Decimal { scale: 0 })];
    let mut loader = Loader::new(model.layout().clone(), measures);
    let input = InputColumn { values: InputValues::Decimals(&[1, 2, 3, 4]), filled: None };
    loader.append(&[&[0, 1, 2, 3]], &[input]).unwrap();
    let cube = Cube { model, facts: Arc::new(loader.finish(64).unwrap()), texts: Default::default() };
    let rows = printed(&batch(&cube));
    assert_eq!(rows, ["Product group Sales", "a1 1", "a2 A 2", "b1 3", "b2 B 4"]);
}
