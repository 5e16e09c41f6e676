//! Export gives the files that were imported.

use std::fs;

use tempfile::tempdir;
use warpcube_cube::store;
use warpcube_cube::store::LineEnd;
use warpcube_palo::catalog::{Catalog, import};
use warpcube_palo::{CellValue, Database, ElementType, cube_file_name};

use crate::source::{Drawn, ODD, Source, assert_equal_folders, cell_file, facts_of, names, number, orderly, text};

#[test]
fn a_database_comes_out_as_it_went_in() {
    let source = Source::of_cells(&orderly());
    let imported = import(&source.folder(), &source.path("catalog")).unwrap();
    assert!(imported.skipped.is_empty());
    let catalog = imported.catalog;
    let expected =
        ["%23_E", "Plan", "Sales", "catalog.json", "database.csv", "database_CUBE_5.csv", "database_CUBE_77.csv"];
    assert_eq!(names(catalog.folder()), expected);
    let view = &catalog.cubes()[2];
    let reason = "dimension '#_USER_' is listed without elements: they are kept in another database of the server";
    assert_eq!((view.folder.as_deref(), view.reason.as_deref()), (None, Some(reason)));
    let error = catalog.cube_folder("#_view_local").unwrap_err().to_string();
    assert_eq!(error, format!("cube '#_VIEW_LOCAL' cannot be exported: {reason}"));
    assert!(catalog.cube_folder("Sale").unwrap_err().to_string().ends_with("did you mean 'Sales'?"));
    let sales = store::open(&catalog.cube_folder("sales").unwrap()).unwrap();
    assert_eq!((sales.facts.len(), sales.texts.len()), (4, 2));
    let opened = Catalog::open(catalog.folder()).unwrap();
    assert_eq!(opened, catalog);
    opened.export(&source.path("export")).unwrap();
    assert_equal_folders(&source.folder(), &source.path("export"), &["database.log"]);
    assert_eq!(names(source.temporary.path()), ["catalog", "export", "source"]);
}

#[test]
fn cells_in_a_form_of_their_own_come_out_as_they_went_in() {
    let source = Source::new(ODD.as_bytes());
    let imported = import(&source.folder(), &source.path("catalog")).unwrap();
    let (name, skipped) = &imported.skipped[0];
    assert_eq!((name.as_str(), skipped.count), ("Sales", 3));
    let cube = store::open(&imported.catalog.cube_folder("Sales").unwrap()).unwrap();
    let cells: [(&[&str], f64); 4] = [(&["C", "x"], 0.1), (&["A", "x"], 1.5), (&["B", "y"], 3.0), (&["A", "y"], 0.0)];
    assert_eq!(cube.facts, facts_of(&cube, &cells), "the last value of a cell counts");
    let texts: Vec<&str> = cube.texts.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts, ["last", "second"]);
    assert_eq!(source.exported(&imported.catalog, "export"), ODD);
    assert_equal_folders(&source.folder(), &source.path("export"), &["database.log"]);
}

/// Text of the machines database, of the shared data.
fn machines() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/palo-machines/database.csv");
    fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Cells at random elements of a cube's dimensions, in the order of their paths.
fn drawn_cells(database: &Database, cube: u32, count: u64) -> Vec<Drawn> {
    let cube = database.cubes.iter().find(|listed| listed.id == cube).unwrap();
    let rows: Vec<_> = cube
        .dimensions
        .iter()
        .map(|id| {
            &database.dimensions.iter().find(|dimension| dimension.id == *id).unwrap().elements.as_ref().unwrap().rows
        })
        .collect();
    let random =
        |seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mut cells = Vec::new();
    for seed in 0..count {
        let elements = rows
            .iter()
            .enumerate()
            .map(|(at, rows)| &rows[(random(seed * 64 + at as u64) >> 20) as usize % rows.len()]);
        let elements: Vec<_> = elements.collect();
        let path: Vec<u32> = elements.iter().map(|row| row.id).collect();
        let is_number = elements.iter().all(|row| row.kind == ElementType::Numeric);
        cells.push(if is_number {
            number(&path, random(seed) as i16 as f64 / 8.0)
        } else {
            text(&path, &format!("text {seed}"))
        });
    }
    cells.sort_by(|one, other| {
        let is_text = |cell: &Drawn| matches!(cell.1, CellValue::Text(_));
        (is_text(one), &one.0).cmp(&(is_text(other), &other.0))
    });
    cells.dedup_by(|one, other| one.0 == other.0);
    cells
}

#[test]
#[ignore = "reads ../shared/data/palo-machines"]
fn the_machines_database_round_trips() {
    let text = machines();
    let temporary = tempdir().unwrap();
    let [source, catalog, export] = ["source", "catalog", "export"].map(|name| temporary.path().join(name));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("database.csv"), &text).unwrap();
    let database = Database::read(text.as_slice()).unwrap();
    // The database as it stands has no cells.
    import(&source, &temporary.path().join("without")).unwrap().catalog.export(&temporary.path().join("same")).unwrap();
    assert_equal_folders(&source, &temporary.path().join("same"), &[]);
    for (cube, cells) in [(1, 4), (3, 5), (33, 8000), (35, 300)] {
        let cells = drawn_cells(&database, cube, cells);
        let dimensions = &database.cubes.iter().find(|listed| listed.id == cube).unwrap().dimensions;
        let file = cell_file(cube, &vec![7; dimensions.len()], LineEnd::Lf, &cells);
        fs::write(source.join(cube_file_name(cube)), file).unwrap();
    }
    fs::write(source.join(cube_file_name(34)), "[CUBE]\n34;1,1,1,1,1,1,1;\n[NUMERIC]\n[STRING]\n").unwrap();
    let imported = import(&source, &catalog).unwrap();
    assert!(imported.skipped.is_empty(), "{:?}", imported.skipped);
    assert!(imported.catalog.cubes().iter().filter(|cube| cube.folder.is_some()).count() > 10);
    imported.catalog.export(&export).unwrap();
    assert_equal_folders(&source, &export, &[]);
    let sales = store::open(&imported.catalog.cube_folder("Machines").unwrap()).unwrap();
    assert!(sales.facts.len() > 100 && sales.texts.len() > 500, "{} {}", sales.facts.len(), sales.texts.len());
}
