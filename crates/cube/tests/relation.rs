//! A cube as a relation: columns and cells that are read.

mod plan;

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::util::display::array_value_to_string;
use warpcube_cube::answer::{Cube, Relation};

#[test]
fn a_relation_reads_the_wanted_columns_of_the_wanted_cells() {
    let cube = Cube { model: plan::model(), facts: Arc::new(plan::facts()), texts: Default::default() };
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
        let value = |batch: &RecordBatch, row, at| array_value_to_string(batch.column(at), row).unwrap();
        let row = |batch: &RecordBatch, row| format!("{} {}", value(batch, row, 0), value(batch, row, 1));
        let of_batch = |batch: &RecordBatch| (0..batch.num_rows()).map(|at| row(batch, at)).collect::<Vec<_>>();
        batches.iter().flat_map(of_batch).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[])[..3], ["100 Jan", "50 Feb", "30 Jan"]);
    assert_eq!(rows(&[marks(month, "Feb"), marks(region, "France")]), ["50 Feb", "60 Feb"]);
    assert_eq!(rows(&[marks(month, "Mar")]), [""; 0]);
    let first = relation.batches(&cube, &[sales], &[marks(month, "Feb")], 1).unwrap();
    assert_eq!(first.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let counted = relation.batches(&cube, &[], &[marks(month, "Feb")], usize::MAX).unwrap();
    assert_eq!(counted.iter().map(RecordBatch::num_rows).sum::<usize>(), 2, "rows without columns are counted");
}
