//! Live cubes changed from the command line: elements, consolidations, names, the storage scheme.

use std::fs::File;

use crate::cubes::{DEFINITION, FACTS, plan, query};
use crate::harness::{Place, Ran};

fn change(place: &Place, text: &str) -> Ran {
    place.run(&["cube", "change", "plan.cube", text])
}

/// What a change that is made tells, without the time it took.
fn told(ran: Ran) -> Vec<String> {
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    let line = |line: &str| match line.starts_with(' ') {
        true => line.to_string(),
        false => line.split(" (").next().unwrap_or(line).to_string(),
    };
    ran.err.lines().map(line).collect()
}

fn total(place: &Place, area: &str) -> String {
    let csv = place.run(&["cube", "query", "plan.cube", "--format", "csv", &format!("rows {area} where Actual, 2026")]);
    csv.ok().lines().nth(1).and_then(|line| line.split(',').nth(4)).unwrap_or("none").to_string()
}

#[test]
fn elements_are_added_moved_renamed_and_removed() {
    let place = plan();
    let lines = told(change(&place, "add Iberia of ES below EU; unlink ES from EU; rename JP to Nippon"));
    assert_eq!(
        lines,
        ["plan.cube: 3 changes", "  a refresh places ES (Region) as the source has it: change the source too",]
    );
    assert_eq!((total(&place, "Iberia"), total(&place, "Europe")), ("7.50".into(), "118.00".into()));
    assert_eq!(total(&place, "jp"), "1000.00", "the old name is an alternative one");
    let lines = told(change(&place, "move FR below W weight 2"));
    assert_eq!(lines[0], "plan.cube: 1 change");
    assert_eq!((total(&place, "World"), total(&place, "Europe")), ("1228.50".into(), "7.50".into()));
    // Words of several arguments are one text.
    let words = ["cube", "change", "plan.cube", "add", "Version:Forecast", "before", "Budget"];
    assert_eq!(place.run(&words).code, 0);
    let versions = place.run(&["cube", "query", "plan.cube", "--format", "csv", "rows Version where W, 2026 empty"]);
    let names: Vec<String> = versions.ok().lines().skip(1).map(|row| row.split(',').nth(2).unwrap().into()).collect();
    assert_eq!(names, ["Actual", "Forecast", "Budget", "Variance"]);
    let lines = told(change(&place, "remove FR, Forecast"));
    assert_eq!(lines[1], "  2 facts of FR (Region) kept aside");
    assert_eq!(total(&place, "World"), "1007.50");
    let info = place.run(&["cube", "info", "plan.cube"]).ok();
    assert!(info.contains("generation 5") && info.contains("2 rows of the source kept aside"), "{info}");
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    let place = plan();
    let before = place.read("plan.cube/cube.json");
    for (text, expected) in [
        ("add Region:IT; remove Frence", "CUBE-007 column 23: no dimension has an element Frence"),
        ("move W below EU", "CUBE-007 column 1: dimension 'Region': a cycle of consolidations: EU → W → EU"),
        ("add Region:jp", "CUBE-007 column 1: dimension 'Region': the name 'jp' is taken by 'JP'"),
        ("drop JP", "CUBE-007 column 1: expected add, rename,"),
    ] {
        let refused = change(&place, text).error(1);
        assert!(refused.starts_with(expected), "{text}: {refused}");
    }
    let checked = place.run(&["cube", "change", "plan.cube", "remove JP", "--check"]);
    assert_eq!(told(checked)[..2], ["plan.cube: 1 change could be made", "  2 facts of JP (Region) kept aside"]);
    assert_eq!(place.read("plan.cube/cube.json"), before);
    let read_only = place.run(&["--set", "read_only=true", "cube", "change", "plan.cube", "remove JP"]).error(1);
    assert!(read_only.contains("a change of a cube"), "{read_only}");
    let lock = File::options().write(true).read(true).open(place.path("plan.cube/lock")).unwrap();
    lock.lock().unwrap();
    let held = change(&place, "remove JP").error(1);
    assert!(held.starts_with("CUBE-002 ") && held.contains("is being changed by"), "{held}");
    assert_eq!(place.run(&["cube", "change", "plan.cube"]).code, 2);
}

#[test]
fn a_refresh_keeps_what_was_made_by_hand() {
    let place = plan();
    change(&place, "add Region:IT below EU; add Core of FR, IT; rename FR to Gaul; caption IT Italia; remove JP");
    place.write("gl.csv", format!("{FACTS}2026-05-01,IT,Actual,5.00,g\n"));
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!((total(&place, "Core"), total(&place, "Europe")), ("115.50".into(), "123.00".into()));
    assert_eq!(total(&place, "Gaul"), "110.50", "rows of the source find the new name");
    assert_eq!(total(&place, "JP"), "1000.00", "the source still has it");
    // The element that rows count for may be one that was made by hand.
    let place = plan();
    change(&place, "add Region:Elsewhere");
    place.write("gl.csv", format!("{FACTS}2026-05-01,XX,Actual,5.00,g\n"));
    place.write("new.yaml", DEFINITION.replace("caption: name}", "caption: name, unknown: Elsewhere}"));
    let refused = place.run(&["cube", "load", "plan.cube", "--definition", "new.yaml"]).error(1);
    assert!(refused.contains("Region has no element 'Elsewhere'"), "{refused}");
}

#[test]
fn the_shell_changes_cubes_too() {
    let place = plan();
    let lines = "\\cube change plan.cube add \"New area\" of FR weight -1; caption \"New area\" \"Less\"\n\
                 \\cube change plan.cube remove Nowhere --check\n\\cube query plan.cube \
                 rows \"New area\" where Actual, 2026\n";
    let ran = place.input(&["--continue-on-error"], lines);
    assert!(ran.out.contains("Less") && ran.out.contains("-110.50"), "{ran:?}");
    assert!(ran.err.contains("CUBE-007 ") && ran.err.contains("no dimension has an element Nowhere"), "{ran:?}");
}

#[test]
fn facts_are_stored_in_the_scheme_that_is_named() {
    let place = plan();
    let text = "rows Region cols Version * Month";
    let cells = query(&place, text).ok();
    let scheme = |place: &Place| {
        let json: serde_json::Value =
            serde_json::from_str(&place.run(&["cube", "info", "plan.cube", "--json"]).ok()).unwrap();
        json["facts"]["scheme"].as_str().unwrap().to_string()
    };
    assert_eq!(scheme(&place), "bess");
    for name in ["coordinate", "offset-value", "xcrs", "xccs", "bxcrs", "hybrid:1", "hybrid:3", "bess"] {
        let done = place.run(&["cube", "convert", "plan.cube", "--storage", name]);
        assert!(done.code == 0 && done.err.contains(&format!(" to {name} with an index of ")), "{done:?}");
        assert_eq!((scheme(&place).as_str(), &query(&place, text).ok()), (name, &cells));
    }
    let same = place.run(&["cube", "convert", "plan.cube", "--storage", "bess"]);
    assert!(same.err.starts_with("plan.cube stays bess with an index of "), "{same:?}");
    assert_eq!(place.run(&["cube", "convert", "plan.cube", "--storage", "auto"]).code, 0);
    let info = place.run(&["cube", "info", "plan.cube", "--storage"]).ok();
    assert!(info.contains("index of the facts by storage scheme") && info.contains("hybrid:2"), "{info}");
    let trie = place.run(&["cube", "convert", "plan.cube", "--storage", "ptcs"]).error(1);
    assert!(trie.starts_with("CUBE-002 ") && trie.contains("ptcs is no scheme of files"), "{trie}");
    let unknown = place.run(&["cube", "convert", "plan.cube", "--storage", "crs"]).error(2);
    assert!(unknown.contains("'crs' is no storage scheme"), "{unknown}");
}

#[test]
fn a_definition_names_the_scheme_and_a_conversion_stays() {
    let place = plan();
    place.write("other.yaml", format!("{DEFINITION}storage: bxcrs\n"));
    let made = place.run(&["cube", "define", "other.yaml", "other.cube"]);
    assert_eq!(made.code, 0, "{made:?}");
    let info = |place: &Place| place.run(&["cube", "info", "other.cube"]).ok();
    assert!(info(&place).contains("scheme bxcrs"), "{}", info(&place));
    assert_eq!(place.run(&["cube", "convert", "other.cube", "--storage", "xcrs"]).code, 0);
    assert_eq!(place.run(&["cube", "change", "other.cube", "add Region:IT"]).code, 0);
    assert_eq!(place.run(&["cube", "refresh", "other.cube"]).code, 0);
    assert!(info(&place).contains("scheme xcrs"), "{}", info(&place));
    assert_eq!(place.run(&["cube", "load", "other.cube"]).code, 0);
    assert!(info(&place).contains("scheme bxcrs"), "{}", info(&place));
    place.write("auto.yaml", format!("{DEFINITION}storage: auto\n"));
    assert_eq!(place.run(&["cube", "define", "auto.yaml", "auto.cube"]).code, 0);
    place.write("wrong.yaml", format!("{DEFINITION}storage: crs\n"));
    let wrong = place.run(&["cube", "define", "wrong.yaml", "wrong.cube"]).error(1);
    assert!(wrong.starts_with("CUBE-003 ") && wrong.contains("'crs' is no storage scheme"), "{wrong}");
}
