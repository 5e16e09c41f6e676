//! Broken files, folders in use and damage: errors that name the file, and nothing left behind.

use std::fs;

use warpcube_cube::store::LineEnd;
use warpcube_palo::catalog::{Catalog, CatalogError, check_output, import, import_unless};

use crate::source::{DATABASE, ODD, SALES, Source, cell_file, change, names, orderly};

#[test]
fn broken_files_are_named_with_line_and_field_and_leave_nothing() {
    let broken = String::from_utf8(cell_file(SALES, &[10, 3], LineEnd::Lf, &orderly())).unwrap();
    let source = Source::new(broken.replace("0,0;1.5;", "0,0;much;").as_bytes());
    let error = import(&source.folder(), &source.path("catalog")).unwrap_err().to_string();
    let path = source.folder().join("database_CUBE_2.csv");
    let place = "line 10, field 2 (value): 'much' is not a finite number";
    assert_eq!(error, format!("'{}': {place}", path.display()));
    fs::write(&path, broken).unwrap();
    fs::write(source.folder().join("database.csv"), DATABASE.replace("0,2,6;1,-0.5,1;", "0,2,6;1,x,1;")).unwrap();
    let error = import(&source.folder(), &source.path("catalog")).unwrap_err().to_string();
    assert!(error.ends_with("database.csv': line 26, field 11 (weights): 'x' is not a finite number"), "{error}");
    fs::remove_file(source.folder().join("database.csv")).unwrap();
    let error = import(&source.folder(), &source.path("catalog")).unwrap_err();
    assert!(matches!(error, CatalogError::Io { .. }), "{error}");
    assert_eq!(names(source.temporary.path()), ["source"]);
}

#[test]
fn folders_that_hold_something_and_folders_without_a_catalog_are_refused() {
    let source = Source::of_cells(&orderly());
    let error = import(&source.folder(), &source.folder()).unwrap_err();
    assert!(matches!(error, CatalogError::NotEmpty { .. }), "{error}");
    let error = Catalog::open(&source.folder()).unwrap_err().to_string();
    assert!(error.ends_with("is no catalog of cubes: it has no catalog.json"), "{error}");
    fs::create_dir(source.path("catalog")).unwrap();
    let catalog = source.import();
    let error = catalog.export(catalog.folder()).unwrap_err();
    assert!(matches!(error, CatalogError::NotEmpty { .. }), "{error}");
}

/// What a hidden folder of an import or export says of itself.
const MARK: &str = "Written by a process of warpcube that has not ended; the next one here removes this folder.\n";

#[test]
fn folders_that_killed_imports_left_go_with_the_next_one_and_no_others() {
    let source = Source::of_cells(&orderly());
    let marked = [".catalog.01.warpcube-staging", ".catalog.02.warpcube-staging", ".out.03.warpcube-staging"];
    let others = [".catalog.2024", ".catalog.04.warpcube-staging", ".catalog.05.warpcube-staging", ".catalog.x"];
    for name in marked.into_iter().chain(others) {
        fs::create_dir_all(source.path(name).join("content")).unwrap();
        fs::write(source.path(name).join("content/database.csv"), "precious").unwrap();
    }
    for name in marked {
        fs::write(source.path(name).join("staging"), MARK).unwrap();
    }
    // A mark that is not whole, and a mark in a folder of another name.
    fs::write(source.path(others[2]).join("staging"), "mine").unwrap();
    fs::write(source.path(others[3]).join("staging"), MARK).unwrap();
    // One of them is held by a process that runs.
    let held = fs::File::open(source.path(marked[1]).join("staging")).unwrap();
    held.lock().unwrap();
    let left = |also: &[&str]| {
        let mut names: Vec<String> =
            others.iter().chain(also).chain(&["catalog", "source"]).map(|name| name.to_string()).collect();
        names.sort();
        names
    };
    let catalog = source.import();
    assert_eq!(names(source.temporary.path()), left(&[marked[1]]));
    drop(held);
    catalog.export(&source.path("out")).unwrap();
    assert_eq!(names(source.temporary.path()), left(&["out"]));
    for name in others {
        assert_eq!(fs::read(source.path(name).join("content/database.csv")).unwrap(), b"precious", "{name}");
    }
}

#[test]
fn a_cancelled_import_or_export_leaves_nothing() {
    let source = Source::of_cells(&orderly());
    let error = import_unless(&source.folder(), &source.path("catalog"), &|| false).unwrap_err();
    assert!(matches!(error, CatalogError::Cancelled), "{error}");
    assert_eq!(names(source.temporary.path()), ["source"]);
    let error = source.import().export_unless(&source.path("out"), &|| false).unwrap_err();
    assert!(matches!(error, CatalogError::Cancelled), "{error}");
    assert_eq!(names(source.temporary.path()), ["catalog", "source"]);
}

#[test]
fn outputs_into_cubes_and_over_files_of_a_database_are_refused() {
    let source = Source::new(ODD.as_bytes());
    let catalog = source.import();
    let at = |name: &str| catalog.folder().join(name);
    for name in ["Sales", "Sales/x.csv", "Sales/deep/er/x.csv", "Sales/cube.json"] {
        let error = check_output(&at(name)).unwrap_err().to_string();
        assert!(error.contains("lies in the folder of the cube") && error.contains("Sales"), "{name}: {error}");
    }
    let kept = ["catalog.json", "database.csv", "database_CUBE_2.csv", "database_CUBE_77.csv", ""];
    for name in kept {
        let error = check_output(&at(name)).unwrap_err().to_string();
        assert!(error.contains("is a file of the database of cubes in"), "{name}: {error}");
    }
    for free in [at("report.csv"), source.path("report.csv"), source.path("new/report.csv")] {
        check_output(&free).unwrap();
    }
    // Imports and exports make no folder in a cube's either.
    for error in
        [import(&source.folder(), &at("Sales/again")).unwrap_err(), catalog.export(&at("Sales/out")).unwrap_err()]
    {
        assert!(error.to_string().contains("lies in the folder of the cube"), "{error}");
    }
    assert!(!at("Sales/again").exists() && !at("Sales/out").exists());
}

#[test]
fn cells_that_are_written_twice_and_other_sizes_are_found_with_their_line() {
    let source = Source::new(ODD.replace("2;10,3;", "2;10,2;").as_bytes());
    let found = import(&source.folder(), &source.path("catalog")).unwrap().findings;
    let of_sales: Vec<String> = found
        .iter()
        .filter(|found| found.file == "database_CUBE_2.csv")
        .map(|found| format!("{}: {}", found.line, found.text))
        .collect();
    let dimension = of_sales[0].split('\'').nth(1).unwrap();
    let expected = [
        format!("2: [CUBE] says 2 elements of '{dimension}', the database has 3, which counts"),
        "8: 2 cells from here on were written before; their last values count".to_string(),
    ];
    assert_eq!(of_sales, expected);
    let orderly = Source::of_cells(&orderly());
    let found = import(&orderly.folder(), &orderly.path("catalog")).unwrap().findings;
    assert!(found.iter().all(|found| found.file != "database_CUBE_2.csv"), "{found:?}");
}

#[test]
fn damage_in_a_catalog_is_found() {
    let source = Source::new(ODD.as_bytes());
    let catalog = source.import();
    let kept = ["catalog.json", "database.csv", "database_CUBE_2.csv", "database_CUBE_5.csv", "database_CUBE_77.csv"];
    for name in kept {
        let path = catalog.folder().join(name);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(if name == "catalog.json" { 1 } else { 97 }) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, damaged).unwrap();
            let outcome = Catalog::open(catalog.folder()).and_then(|catalog| catalog.export(&source.path("export")));
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("is damaged"), "{name}: byte {at}: {error}");
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(source.exported(&catalog, "export"), ODD);
}

#[test]
fn a_cube_of_another_origin_is_not_exported() {
    let source = Source::of_cells(&orderly());
    let catalog = source.import();
    change(&catalog, "Sales", |cube| cube.origin = None);
    let error = catalog.export(&source.path("export")).unwrap_err().to_string();
    assert!(error.ends_with("its folder holds a cube that was not imported from the database"), "{error}");
}
