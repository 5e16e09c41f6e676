//! Broken files, folders in use and damage: errors that name the file, and nothing left behind.

use std::fs;

use warpcube_cube::catalog::{Catalog, CatalogError, import};
use warpcube_cube::palo::LineEnd;

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

#[test]
fn folders_that_killed_imports_left_go_with_the_next_one() {
    let source = Source::of_cells(&orderly());
    for name in [".catalog.123", ".catalog.124", ".catalog.x", ".other.125"] {
        fs::create_dir(source.path(name)).unwrap();
        fs::write(source.path(name).join("database.csv"), "").unwrap();
    }
    // One of them is held by a process that runs.
    let held = fs::File::open(source.path(".catalog.124")).unwrap();
    held.lock().unwrap();
    let catalog = source.import();
    assert_eq!(names(source.temporary.path()), [".catalog.124", ".catalog.x", ".other.125", "catalog", "source"]);
    drop(held);
    fs::rename(catalog.folder(), source.path("moved")).unwrap();
    source.import();
    assert_eq!(names(source.temporary.path()), [".catalog.x", ".other.125", "catalog", "moved", "source"]);
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
