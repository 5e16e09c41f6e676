//! Cubes within `warpcube.allowed_paths` and under `warpcube.read_only`: imports, exports and the demo.

use std::os::unix::fs::symlink;

use crate::harness::Place;

/// Files in the folder `in`, which alone is allowed, and the same outside.
fn fenced() -> Place {
    let place = Place::new();
    for folder in ["", "in/"] {
        place.write(&format!("{folder}a.mtx"), "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 0.5\n");
        let database = "[DATABASE]\n0;0;1;\n[DIMENSIONS]\n[CUBES]\n";
        place.write(&format!("{folder}palo/database.csv"), database);
    }
    place
}

#[test]
fn imports_exports_and_the_demo_stay_within_the_allowed_folders() {
    let place = fenced();
    let allowed = format!("allowed_paths={}", place.path("in").display());
    let cube = |arguments: &[&str]| place.run(&[&["--set", &allowed, "cube"], arguments].concat());
    let done = cube(&["import", "in/palo", "in/cubes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(cube(&["export", "in/cubes", "in/again"]).code, 0);
    assert_eq!(place.read("in/again/database.csv"), place.read("palo/database.csv"));
    assert_eq!(cube(&["import", "in/a.mtx", "in/a.cube"]).code, 0);
    std::fs::create_dir(place.path("in/linked")).unwrap();
    symlink(place.path("palo/database.csv"), place.path("in/linked/database.csv")).unwrap();
    for (arguments, path) in [
        (&["import", "a.mtx", "in/b.cube"][..], "a.mtx"),
        (&["import", "in/a.mtx", "b.cube"], "b.cube"),
        (&["import", "palo", "in/more"], "palo"),
        (&["import", "in/linked", "in/more"], "in/linked/database.csv"),
        (&["export", "in/cubes", "out"], "out"),
        (&["export", "palo", "in/out"], "palo"),
        (&["demo", "demo"], "demo"),
    ] {
        let error = cube(arguments).error(1);
        assert_eq!(error, format!("FILE-007 {path}: outside of warpcube.allowed_paths"), "{arguments:?}");
        let last = arguments[arguments.len() - 1];
        assert!(!place.path(last).exists(), "{arguments:?}");
    }
    let lines = "\\cube import in/a.mtx c.cube\n";
    let shell = place.input(&["--set", &allowed], lines);
    assert!(shell.err.contains("FILE-007 c.cube") && !place.path("c.cube").exists(), "{shell:?}");
}

#[test]
fn a_read_only_session_imports_exports_and_makes_nothing() {
    let place = fenced();
    assert_eq!(place.run(&["cube", "import", "palo", "cubes"]).code, 0);
    for (arguments, what) in [
        (&["import", "a.mtx", "b.cube"][..], "an import of cubes"),
        (&["import", "palo", "more"], "an import of cubes"),
        (&["export", "cubes", "out"], "an export of cubes"),
        (&["demo", "demo"], "the demo of cubes"),
    ] {
        let error = place.run(&[&["--set", "read_only=on", "cube"], arguments].concat()).error(1);
        let expected = format!("FILE-008 {what}: the session is read-only (warpcube.read_only)");
        assert_eq!(error, expected, "{arguments:?}");
        assert!(!place.path(arguments[arguments.len() - 1]).exists(), "{arguments:?}");
    }
}
