//! Elements whose names differ in case alone: two elements, found to the letter, else in another case where one alone
//! is so written.

use crate::cube_text::{cells, define};
use crate::harness::Place;

#[test]
fn names_that_differ_in_case_alone_are_two_elements_and_told() {
    let place = Place::new();
    place.write("f.csv", "code,g,amount\ntrue,x,1\nTRUE,X,2\nfalse,x,4\n");
    place.write("t.csv", "code,up\ntrue,All\nTRUE,all\nfalse,All\nAll,\nall,\n");
    for (name, dimension, told) in [
        ("column", "{column: code}", "true and TRUE"),
        ("levels", "{levels: [g, code]}", "x and X, true and TRUE"),
        ("table", "{table: t.csv, column: code, key: code, parent: up}", "true and TRUE, All and all"),
        ("added", "{elements: [other], column: code, unknown: add}", "TRUE and true"),
    ] {
        let facts = "facts: {file: f.csv, value: amount}\ndimensions:";
        let made = define(&place, name, &format!("{facts} {{Code: {dimension}}}")).unwrap();
        let note = format!("elements of Code that differ in case alone are elements of their own: {told}\n");
        assert!(made.contains(&note), "{name}: {made}");
        let cube = format!("{name}.cube");
        let found = cells(&place, &cube, "rows TRUE, true, FALSE");
        assert_eq!(found, ["TRUE = 2.0", "true = 1.0", "false = 4.0"], "{name}");
        let ambiguous = place.run(&["cube", "query", &cube, "rows True"]).error(1);
        assert!(ambiguous.contains("'True' is no element; "), "{name}: {ambiguous}");
        assert!(ambiguous.ends_with(" are, which differ in case alone: write one of them"), "{name}: {ambiguous}");
        let sql = format!("SELECT code, amount FROM '{cube}' WHERE code = 'TRUE'");
        assert_eq!(place.csv(&sql), "code,amount\nTRUE,2.0\n", "{name}");
        let facts = place.run(&["cube", "query", &cube, "source at TRUE", "--format", "csv"]).ok();
        assert_eq!(facts, "code,g,amount\nTRUE,X,2\n", "{name}");
    }
    // A refresh that has one of them no more, and one that writes it otherwise.
    place.write("f.csv", "code,g,amount\ntrue,x,1\nfalse,x,4\n");
    let again = place.run(&["cube", "refresh", "column.cube"]).ok();
    assert!(!again.contains("case") && again.contains("gone from Code: TRUE"), "{again}");
    place.write("f.csv", "code,g,amount\nTrue,x,1\nfalse,x,4\n");
    let again = place.run(&["cube", "refresh", "column.cube"]).ok();
    let told = "True (Code) was true in the source before, which differs in case alone: it is the same\n";
    assert!(again.contains(told) && !again.contains("gone from"), "{again}");
}

#[test]
fn facts_in_lower_case_find_the_keys_of_a_table_and_change_adds_the_other_spelling() {
    let place = Place::new();
    place.write("t.csv", "city,up\nBerlin,DE\nBonn,DE\nDE,\n");
    place.write("f.csv", "city,amount\nberlin,1\nBONN,2\n");
    let facts = "facts: {file: f.csv, value: amount}\ndimensions:";
    let made = define(&place, "c", &format!("{facts} {{City: {{table: t.csv, key: city, parent: up}}}}")).unwrap();
    let rows = "  2 rows with elements of City in another case: berlin is Berlin, BONN is Bonn\n";
    assert!(made.contains(rows) && !made.contains("parents"), "{made}");
    for command in ["load", "refresh"] {
        let made = place.run(&["cube", command, "c.cube"]).ok();
        assert!(made.contains(rows), "{command}: {made}");
    }
    place.write("t.csv", "city,up\nBerlin,de\nBonn,De\nDE,\n");
    let made = place.run(&["cube", "refresh", "c.cube"]).ok();
    assert!(made.contains("t.csv with parents in City in another case: de is DE, De is DE\n"), "{made}");
    let found = place.run(&["cube", "query", "c.cube", "source at Berlin", "--format", "csv"]).ok();
    assert_eq!(found, "city,amount\nberlin,1\n");
    assert_eq!(cells(&place, "c.cube", "rows leaves(de)"), ["Berlin = 1.0", "Bonn = 2.0"]);
    assert_eq!(place.run(&["cube", "change", "c.cube", "add City:berlin below DE"]).code, 0);
    assert_eq!(place.run(&["cube", "change", "c.cube", "rename Bonn to bonn"]).code, 0);
    assert_eq!(place.run(&["cube", "refresh", "c.cube"]).code, 0);
    let found = cells(&place, "c.cube", "rows leaves(DE)");
    assert_eq!(found, ["bonn = 2.0", "berlin = 1.0"], "rows find the element of their spelling");
}

#[test]
fn an_export_refuses_names_that_differ_in_case_alone() {
    let place = Place::new();
    place.write(
        "palo/database.csv",
        "[DATABASE]\n1;1;1;\n[DIMENSIONS]\n0;\"Region\";1;1;1;1;\n[DIMENSION 0]\n0;\"Region\";0;0;0;1;\n\
         [ELEMENTS DIMENSION 0]\n0;\"de\";0;1;0;0;0;0;;;;\n[CUBES]\n7;\"Sales\";0;2;1;1;\n",
    );
    place.write("palo/database_CUBE_7.csv", "[CUBE]\n7;1;\n[NUMERIC]\n0;5.5;\n");
    assert_eq!(place.run(&["cube", "import", "palo", "cubes"]).code, 0);
    assert_eq!(place.run(&["cube", "change", "cubes/Sales", "add Region:DE"]).code, 0);
    let refused = place.run(&["cube", "export", "cubes", "again"]).error(1);
    let told = "elements 'de' and 'DE' of dimension 'Region' differ in case alone, and names of a Palo database ignore \
                case: rename one of them with cube change";
    assert!(refused.ends_with(told), "{refused}");
    assert!(!place.path("again").exists());
    assert_eq!(place.run(&["cube", "change", "cubes/Sales", "rename DE to DE2"]).code, 0);
    assert_eq!(place.run(&["cube", "export", "cubes", "again"]).code, 0);
}
