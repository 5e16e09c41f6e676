//! Changes of cubes show in the export.

use std::fs;

use warpcube_cube::model::{Change, ElementId, ElementKind};
use warpcube_cube::store::LineEnd;
use warpcube_cube::store::{self, TextCell};
use warpcube_palo::catalog::import;
use warpcube_palo::cube_file_name;

use crate::source::{ODD, SALES, Source, cell_file, change, facts_of, names, number, orderly, rows, text};

#[test]
fn changed_facts_and_texts_show_in_the_export() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    change(&catalog, "Sales", |cube| {
        let cells: [(&[&str], f64); 4] =
            [(&["A", "x"], 2.5), (&["B", "x"], 7.0), (&["C", "x"], 0.1), (&["B", "y"], -3e20)];
        cube.facts = facts_of(cube, &cells);
        cube.texts[0].text = "another".to_owned();
        cube.texts.pop();
    });
    let expected = cell_file(
        SALES,
        &[10, 3],
        LineEnd::Lf,
        &[
            number(&[0, 0], 2.5),
            number(&[2, 0], 7.0),
            number(&[2, 1], -3e20),
            number(&[6, 0], 0.1),
            text(&[9, 2], "another"),
        ],
    );
    assert_eq!(source.exported(&catalog, "export"), String::from_utf8(expected).unwrap());
    // A cube without a cell file gets one with its first fact.
    change(&catalog, "Plan", |cube| cube.facts = facts_of(cube, &[(&["y"], 4.0)]));
    catalog.export(&source.path("second")).unwrap();
    let plan = fs::read(source.path("second").join(cube_file_name(8))).unwrap();
    assert_eq!(plan, cell_file(8, &[3], LineEnd::Lf, &[number(&[1], 4.0)]));
}

#[test]
fn a_changed_cube_keeps_the_order_and_the_skipped_cells_of_its_file() {
    let source = Source::new(ODD.as_bytes());
    let catalog = source.import();
    change(&catalog, "Sales", |cube| {
        let cells: [(&[&str], f64); 4] =
            [(&["C", "x"], 0.1), (&["A", "x"], -1.5), (&["B", "x"], 6.0), (&["A", "y"], 0.0)];
        cube.facts = facts_of(cube, &cells);
        let elements = cube.texts[0].elements.clone();
        cube.texts.remove(1);
        cube.texts.push(TextCell {
            elements: vec![elements[0], cube.model.dimensions()[1].find("x").unwrap()],
            text: "new".into(),
        });
    });
    let export = source.exported(&catalog, "export");
    let expected = [
        "[CUBE]",
        "2;10,3;",
        "[NUMERIC]",
        "6,0;0.1;",
        "0,0;-1.5;",
        "9,0;8;",
        "4,0;5;",
        "0,1;0;",
        "2,0;6;",
        "[STRING]",
        "9,2;\"last\";",
        "8,0;\"lost\";",
        "9,0;\"new\";",
    ];
    assert_eq!(rows(&export), expected);
    assert!(!source.path("export").join("database_CUBE_2.csv.kept").exists());
}

#[test]
fn changed_dimensions_show_in_the_export() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    let add = |name: &str, kind| Change::Add { name: name.to_owned(), kind, position: None };
    let mut new = ElementId::new(0);
    change(&catalog, "Sales", |cube| {
        let effect = cube.model.apply(0, add("N", ElementKind::Base), &|_| true).unwrap();
        new = effect.effect.added.unwrap();
        assert!(!effect.repacked);
        cube.facts = facts_of(cube, &[(&["N", "y"], 3.0), (&["A", "x"], 1.0)]);
    });
    let export = source.exported(&catalog, "export");
    assert_eq!(rows(&export)[..5], ["[CUBE]", "2;6,3;", "[NUMERIC]", "0,0;1;", "10,1;3;"]);
    let again = import(&source.path("export"), &source.path("again")).unwrap();
    let sales = store::open(&again.catalog.cube_folder("Sales").unwrap()).unwrap();
    let dimension = &sales.model.dimensions()[0];
    assert_eq!(dimension.element(dimension.find("N").unwrap()).kind(), ElementKind::Base);
    assert_eq!((sales.facts.len(), again.skipped.len()), (2, 0));
    // Two cubes change one dimension, each in its own way.
    change(&catalog, "Sales", |cube| {
        cube.model.apply(1, add("z", ElementKind::Base), &|_| true).unwrap();
    });
    change(&catalog, "Plan", |cube| {
        cube.model.apply(0, add("w", ElementKind::Base), &|_| true).unwrap();
    });
    let error = catalog.export(&source.path("third")).unwrap_err().to_string();
    assert_eq!(
        error,
        "the cubes disagree about dimension 'E': it was changed in 'Sales' and otherwise in 'Plan': take one of the \
         two back, as change 'remove …' does with an element that was added, and make the changes of the other one \
         in both cubes, in one order"
    );
    assert!(!source.path("third").exists());
}

#[test]
fn elements_that_other_cubes_have_are_not_lost() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    change(&catalog, "Plan", |cube| {
        let y = cube.model.dimensions()[0].find("y").unwrap();
        cube.model.apply(0, Change::Remove { element: y }, &|_| false).unwrap();
    });
    let error = catalog.export(&source.path("export")).unwrap_err().to_string();
    assert_eq!(error, "the cubes disagree about dimension 'E': 'Plan' lost or changed element 'y', which '#_E' has");
    assert_eq!(names(source.temporary.path()), ["catalog", "source"]);
}
