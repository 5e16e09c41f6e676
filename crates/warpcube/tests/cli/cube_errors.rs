//! What cubes refuse, in the words of who wrote the text, and with its place.

use std::process::Command;

use crate::cubes::{DEFINITION, FACTS, plan, query};
use crate::harness::{Place, Ran};

/// The error of a definition over the facts `gl.csv`.
fn defined(place: &Place, text: &str) -> String {
    place.write("gl.csv", FACTS);
    place.write("d.yaml", text);
    place.run(&["cube", "define", "d.yaml", "d.cube"]).error(1)
}

#[test]
fn definitions_are_refused_with_file_line_and_column() {
    let place = Place::new();
    let file = place.path("d.yaml").display().to_string();
    let error = defined(
        &place,
        "cube: c\nfacts:\n  sql: |\n    SELECT month, region, amount\n    FROM 'gl.csv' WHRE x\n  value: amount\n\
         dimensions: {month: {}}\n",
    );
    let expected = format!("SQL-001 syntax error: {file}: line 3, column 3: facts.sql: ");
    assert!(error.starts_with(&expected) && error.ends_with("at line 2, column 20"), "{error}");
    // The name of a file, which becomes a longer one, does not move the place.
    let error = defined(
        &place,
        "cube: c\nfacts: {sql: \"SELECT * FROM 'gl.csv' WHRE x = 1\", value: amount}\ndimensions: {month: {}}\n",
    );
    assert!(error.ends_with("at line 1, column 29"), "{error}");
    for (dimension, told) in [
        ("{column: nope}", "dimension 'R': there is no column 'nope' in the facts"),
        ("{column: month, levels: [year], all: '2026'}", "dimensions.R: dimension 'R': the name '2026' is taken"),
        ("{column: version, all: Actual}", "dimension 'R', column 'version': 'Actual' is a consolidated element"),
        ("{elements: [A, B, A]}", "dimensions.R: 'A' stands here a second time"),
    ] {
        let text = format!("cube: c\nfacts: {{file: gl.csv, value: amount}}\ndimensions:\n  R: {dimension}\n");
        let error = defined(&place, &text);
        assert!(error.contains(&format!("{file}: line 4, column 6: {told}")), "{error}");
    }
    place.write("t.csv", "id,up,w\n2026-01,T,1\n2026-02,T,1e308\nT,,\n");
    place.write("blank.csv", "id,up\nT,\n   ,T\n");
    for (table, told) in [
        ("table: t.csv, weight: w", "t.csv': the weight of T → 2026-02 is 1e308; a weight is a number"),
        ("table: blank.csv", "blank.csv': the key is NULL, empty or blank; every row names an element"),
    ] {
        let month = format!("{{column: month, key: id, parent: up, {table}}}");
        let error =
            defined(&place, &format!("cube: c\nfacts: {{file: gl.csv, value: amount}}\ndimensions: {{M: {month}}}\n"));
        assert!(error.contains("row 2 of table '") && error.contains(told), "{error}");
    }
    let elements: Vec<String> = (0..32).map(|number| format!("e{number}")).collect();
    let dimension = |number: u32| format!("  D{number}: {{column: month, elements: [{}]}}\n", elements.join(", "));
    let wide: String = (0..32).map(dimension).collect();
    let error = defined(&place, &format!("cube: c\nfacts: {{file: gl.csv, value: amount}}\ndimensions:\n{wide}"));
    assert!(error.starts_with(&format!("CUBE-004 {file}: line 4, column 3: the key needs 1")), "{error}");
    let error = defined(&place, "cube: c\nfacts: {file: gl.csv, value: nope}\ndimensions: {month: {}}\n");
    assert!(error.starts_with(&format!("CUBE-004 {file}: line 2, column 8: measure 'nope': ")), "{error}");
    let error = defined(&place, &DEFINITION.replace("cube: plan", "cube: ../../x"));
    assert!(error.starts_with(&format!("CUBE-003 {file}: line 1, column 7: cube: the name of a cube")), "{error}");
}

#[test]
fn plain_words_for_numbers_and_names() {
    let place = plan();
    let error = place.run(&["cube", "query", "plan.cube", "--targets-max", "abc", "rows World"]).error(2);
    assert_eq!(error, "CLI-001 invalid value 'abc' for '--targets-max <CELLS>': a whole number is expected");
    let error = place.run(&["cube", "convert", "plan.cube", "--storage", "foo"]).error(2);
    assert!(error.ends_with("auto, bess, coordinate, offset-value, xcrs, xccs, bxcrs or hybrid:r"), "{error}");
    for missing in [&["import", "none", "x"][..], &["import", "none.mtx", "x"], &["export", "none", "x"]] {
        let error = place.run(&[&["cube"], missing].concat()).error(2);
        assert!(error.starts_with(&format!("CLI-003 cannot read {}: ", missing[1])), "{error}");
    }
}

#[test]
fn an_explanation_has_no_format() {
    let place = plan();
    for options in [&["--format", "csv"][..], &["-o", "cell.csv"]] {
        let arguments = [&["cube", "query", "plan.cube", "explain at World"], options].concat();
        let error = place.run(&arguments).error(2);
        assert!(error.starts_with("CLI-001 explain at gives a text"), "{error}");
    }
    assert!(!place.path("cell.csv").exists());
}

#[test]
fn cross_tabs_that_are_too_large_are_refused() {
    let place = Place::new();
    let rows: Vec<String> = (0..4_000).map(|number| format!("a{number},b{number},1")).collect();
    place.write("f.csv", format!("a,b,v\n{}\n", rows.join("\n")));
    place.write("c.yaml", "cube: c\nfacts: {file: f.csv, value: v}\ndimensions: {a: {}, b: {}}\n");
    assert_eq!(place.run(&["cube", "define", "c.yaml"]).code, 0);
    let ask = |options: &[&str]| place.run(&[&["cube", "query", "c.cube", "rows a cols b empty"], options].concat());
    let error = ask(&[]).error(1);
    assert!(error.starts_with("CUBE-005 the cross-tab shows 16000000 cells, at most 10000000: "), "{error}");
    let error = ask(&["--targets-max", "1000"]).error(1);
    let told = "choose fewer elements, or raise --targets-max";
    assert!(error.starts_with("CUBE-005 the area has 16000000 targets") && error.ends_with(told), "{error}");
}

/// Time runs out while cells are aggregated, on one thread.
#[test]
fn cross_tabs_keep_the_timeout() {
    let place = Place::new();
    place.run(&["cube", "demo"]);
    let arguments = ["--set", "timeout=1ms", "cube", "query", "demo/plan.cube", "--algorithm", "source"];
    let text = "rows Region cols Month where Margin, Variance";
    let error = place.run(&[&arguments[..], &[text]].concat()).error(1);
    assert!(error.starts_with("SQL-008 timed out after 1 ms"), "{error}");
    let shell = format!("\\cube query demo/plan.cube --algorithm source {text}");
    let error = place.run(&["--set", "timeout=1ms", "-c", &shell]).error(1);
    assert!(error.starts_with("SQL-008 timed out after 1 ms"), "{error}");
}

#[test]
fn the_shell_takes_options_first() {
    let place = plan();
    let expected = query(&place, "rows World where Actual").ok();
    for line in [
        "\\cube query --algorithm source plan.cube rows World where \"Actual\"",
        "\\cube query --algorithm=source --timing plan.cube 'rows World where Actual'",
        "\\cube query --algorithm source plan.cube rows World where Actual --targets-max 9",
    ] {
        let ran = Ran::of(Command::output(place.command().args(["-c", line])).unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (0, expected.as_str()), "{line}: {ran:?}");
    }
    let check = place.run(&["-c", "\\cube change --check plan.cube add Region:\"New one\""]);
    assert!(check.out.contains("plan.cube: 1 change could be made"), "{check:?}");
}
