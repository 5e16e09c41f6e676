//! Cells of attribute cubes are attributes of elements.

use warpcube_cube::model::{Attribute, AttributeKind, Dimension};
use warpcube_cube::query::{BoundQuery, bind, parse};
use warpcube_cube::store;
use warpcube_palo::catalog::Catalog;

use crate::source::{Source, assert_equal_folders, change, orderly};

fn dimension(catalog: &Catalog, cube: &str, at: usize) -> Dimension {
    store::open(&catalog.cube_folder(cube).unwrap()).unwrap().model.dimensions()[at].clone()
}

#[test]
fn every_cube_of_the_dimension_has_them() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    for (cube, at) in [("Sales", 1), ("Plan", 0), ("#_E", 1)] {
        let dimension = dimension(&catalog, cube, at);
        let columns: Vec<(&str, AttributeKind)> =
            dimension.attributes().iter().map(|column| (column.name.as_str(), column.kind)).collect();
        assert_eq!(columns, [("caption", AttributeKind::Text), ("size", AttributeKind::Number)], "{cube}");
        let of = |element: &str, name: &str| dimension.attribute(dimension.find(element).unwrap(), name).cloned();
        let text = |text: &str| Some(Attribute::Text(text.to_owned()));
        assert_eq!((of("x", "caption"), of("y", "caption")), (text("a \"caption\""), None));
        assert_eq!(of("all", "Caption"), text("all of\nthem"));
        assert_eq!((of("x", "size"), of("y", "size")), (None, Some(Attribute::Number(4.5))));
    }
    assert!(dimension(&catalog, "Sales", 0).attributes().is_empty());
    catalog.export(&source.path("export")).unwrap();
    assert_equal_folders(&source.folder(), &source.path("export"), &["database.log"]);
}

#[test]
fn queries_take_elements_by_them() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    let cube = store::open(&catalog.cube_folder("Sales").unwrap()).unwrap();
    for (text, expected) in
        [("rows E with size > 4", 1), ("rows E with caption = \"all of\nthem\"", 1), ("rows E with size < 4", 0)]
    {
        let BoundQuery::CrossTab(bound) = bind(&cube.model, &parse(text).unwrap(), text).unwrap() else { panic!() };
        assert_eq!(bound.rows[0].targets.len(), expected, "{text}");
    }
}

#[test]
fn the_export_has_the_cells_of_the_attribute_cube() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    // An attribute that is changed in one cube is no cell of the database.
    change(&catalog, "Plan", |cube| {
        let changed = warpcube_cube::change::change(cube, "set y size = 5").unwrap();
        assert!(changed.1.is_not_exported);
        *cube = changed.0;
    });
    catalog.export(&source.path("export")).unwrap();
    assert_equal_folders(&source.folder(), &source.path("export"), &["database.log"]);
}
