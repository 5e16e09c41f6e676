//! Cubes from the command line: made, asked, read in SQL, refreshed, imported and exported.

use std::fs::File;

use crate::harness::{Place, Ran};

pub(crate) const DEFINITION: &str = "\
cube: plan
facts: {file: gl.csv, value: amount}
value: {type: decimal(2), format: '#,##0.00'}
dimensions:
  Month:   {column: month, levels: [year, quarter, month]}
  Region:  {table: regions.csv, key: id, parent: parent_id, caption: name}
  Version: {elements: [Actual, Budget], consolidated: {Variance: {Actual: 1, Budget: -1}}}
";

pub(crate) const FACTS: &str = "\
month,region,version,amount,note
2026-01-05,FR,Actual,100.25,a
2026-01-20,FR,Actual,10.25,b
2026-02-01,FR,Budget,90.00,c
2026-02-01,ES,Actual,7.50,d
2026-04-01,JP,Actual,1000.00,e
2026-04-02,JP,Budget,1000.00,f
";

const REGIONS: &str = "\
id,parent_id,name
W,,World
EU,W,Europe
FR,EU,France
ES,EU,Spain
JP,W,Japan
";

/// A place with the sources of a plan.
fn sources() -> Place {
    let place = Place::new();
    place.write("plan.yaml", DEFINITION);
    place.write("gl.csv", FACTS);
    place.write("regions.csv", REGIONS);
    place
}

/// A place with the cube `plan.cube`.
pub(crate) fn plan() -> Place {
    let place = sources();
    let made = place.run(&["cube", "define", "plan.yaml"]);
    assert_eq!((made.code, made.err.as_str()), (0, ""), "{made:?}");
    assert!(made.out.starts_with("plan.cube: 6 rows, 5 cells ("), "{made:?}");
    place
}

pub(crate) fn query(place: &Place, query: &str) -> Ran {
    place.run(&["cube", "query", "plan.cube", query])
}

#[test]
fn a_definition_becomes_a_cube_that_is_asked() {
    let place = plan();
    let report = query(&place, "rows World, children(World) cols Version where 2026").ok();
    assert!(report.starts_with("Month: 2026\n"), "{report}");
    let lines: Vec<Vec<&str>> = report.lines().skip(4).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [
            vec!["World", "1,118.00", "1,090.00", "28.00"],
            vec!["Europe", "118.00", "90.00", "28.00"],
            vec!["Japan", "1,000.00", "1,000.00", "0.00"],
        ]
    );
    let info = place.run(&["cube", "info", "plan.cube"]).ok();
    assert!(info.contains("5 cells in") && info.contains("amount: SUM of decimal(2)"), "{info}");
    let schema = place.run(&["cube", "schema"]).ok();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert!(schema["properties"]["dimensions"].is_object(), "{schema}");
}

#[test]
fn cells_are_rows_for_programs_and_tables_for_sql() {
    let place = plan();
    let text = "rows children(World) cols Version where 2026";
    let csv = place.run(&["cube", "query", "plan.cube", "--format", "csv", text]).ok();
    let expected = "\
Month,Region,Version,measure,value,text
2026,EU,Actual,amount,118.00,
2026,EU,Budget,amount,90.00,
2026,EU,Variance,amount,28.00,
2026,JP,Actual,amount,1000.00,
2026,JP,Budget,amount,1000.00,
2026,JP,Variance,amount,0.00,
";
    assert_eq!(csv, expected);
    let sql =
        format!("SELECT region, version, value FROM cube('plan', '{text}') WHERE version = 'Variance' ORDER BY 1");
    assert_eq!(place.csv(&sql), "region,version,value\nEU,Variance,28.00\nJP,Variance,0.00\n");
    let by_cube = "SELECT region_1 AS area, version, sum(amount) AS total FROM 'plan.cube' GROUP BY 1, 2 ORDER BY 1, 2";
    let by_rows = "SELECT r.parent_id AS area, version, sum(CAST(amount AS DECIMAL(19, 2))) AS total FROM 'gl.csv' \
                   JOIN 'regions.csv' AS r ON r.id = region WHERE r.parent_id = 'EU' GROUP BY 1, 2 ORDER BY 1, 2";
    let of_europe = format!("SELECT * FROM ({by_cube}) WHERE area IS NOT NULL");
    assert_eq!(place.csv(&of_europe), place.csv(by_rows));
    assert_eq!(place.csv("SELECT count(*) AS cells, sum(amount) AS total FROM 'plan'"), "cells,total\n5,2208.00\n");
    let quarters = "SELECT quarter, sum(amount) AS total FROM 'plan.cube' GROUP BY 1 ORDER BY 1";
    assert_eq!(place.csv(quarters), "quarter,total\n2026-Q1,208.00\n2026-Q2,2000.00\n");
}

#[test]
fn explain_tells_how_a_cube_would_be_aggregated() {
    let place = plan();
    let query = "FROM cube('plan', 'rows Region cols Version where 2026') WHERE value > 100";
    let planned = place.csv(&format!("EXPLAIN VERBOSE SELECT * {query}"));
    let line = planned.lines().find(|line| line.contains("CubeExec: ")).unwrap_or_else(|| panic!("{planned}"));
    assert!(line.contains("cube=plan.cube, query=rows Region cols Version where 2026, algorithm="), "{line}");
    assert!(
        line.contains(" on the CPU, ") && line.contains(" targets (") && line.contains(" costs least for"),
        "{line}"
    );
    assert!(!line.contains(" ms"), "nothing has run: {line}");
    let ran = place.csv(&format!("EXPLAIN ANALYZE VERBOSE SELECT region {query}"));
    let line = ran.lines().find(|line| line.contains("CubeExec: ")).unwrap_or_else(|| panic!("{ran}"));
    assert!(line.contains(" targets filled in ") && line.contains(" ms ("), "{line}");
    assert!(line.contains("output_rows=") && line.contains("elapsed_compute="), "{line}");
    let query = "EXPLAIN VERBOSE SELECT * FROM cube('plan', 'rows World')";
    let arguments = ["--device", "emulated", "--set", "placement=cuda", "--format", "csv", "-c", query];
    let on_device = Ran::of(place.emulated().args(arguments).output().unwrap()).ok();
    assert!(on_device.contains("algorithm=gpu-contract on emulated"), "{on_device}");
    assert!(
        on_device.contains("the algorithm is chosen once they are on the device"),
        "nothing is loaded: {on_device}"
    );
}

#[test]
fn every_rule_gives_what_group_by_gives() {
    let place = Place::new();
    let definition = "\
cube: rules
facts: {file: rows.csv}
value: {type: decimal(2)}
measures:
  S: {column: v}
  N: {rule: count}
  C: {column: v, rule: count}
  A: {column: v, rule: avg}
  Least: {column: v, rule: min}
  Most: {column: v, rule: max}
dimensions:
  g: {levels: [g]}
  k: {levels: [k], all: All}
";
    place.write("rules.yaml", definition);
    let row = |number: u32| {
        let value = if number % 7 == 3 { String::new() } else { format!("{}.{:02}", number * 37 % 911, number % 100) };
        format!("g{},k{},{value}\n", number % 5, number * number % 13)
    };
    place.write("rows.csv", format!("g,k,v\n{}empty,k0,\n", (0..500).map(row).collect::<String>()));
    let made = place.run(&["cube", "define", "rules.yaml"]);
    assert_eq!(made.code, 0, "{made:?}");
    let rows = "SELECT g, k, CAST(v AS DECIMAL(19, 2)) AS v FROM 'rows.csv'";
    for (query, keys) in [("rows g where All", "g"), ("rows g * leaves(All)", "g, k")] {
        for (measure, aggregate) in [
            ("S", "CAST(sum(v) AS DOUBLE)"),
            ("N", "CAST(count(*) AS DOUBLE)"),
            ("C", "CAST(nullif(count(v), 0) AS DOUBLE)"),
            ("Least", "CAST(min(v) AS DOUBLE)"),
            ("Most", "CAST(max(v) AS DOUBLE)"),
            ("A", "CAST(avg(CAST(v AS DOUBLE)) AS DOUBLE)"),
        ] {
            let of_cube = format!(
                "SELECT {keys}, round(CAST(value AS DOUBLE), 6) AS v FROM cube('rules', '{query} cols {measure}') \
                 ORDER BY 1, 2"
            );
            let of_rows = format!(
                "SELECT * FROM (SELECT {keys}, round({aggregate}, 6) AS v FROM ({rows}) GROUP BY {keys}) \
                 WHERE v IS NOT NULL ORDER BY 1, 2"
            );
            assert_eq!(place.csv(&of_cube), place.csv(&of_rows), "{measure} of {query}");
        }
    }
    // Decimals keep their digits beside an average.
    let mixed = "SELECT measure, value, decimal FROM cube('rules', 'rows S, N, A where g:g1, k1') ORDER BY 1";
    let mixed = place.csv(mixed);
    let lines: Vec<&str> = mixed.lines().collect();
    assert_eq!(lines[0], "measure,value,decimal");
    assert!(lines[1].starts_with("A,") && lines[1].ends_with(',') && lines[2].starts_with("N,"), "{mixed}");
    assert!(lines[2].ends_with(".00") && lines[3].starts_with("S,"), "{mixed}");
}

#[test]
fn drill_through_reaches_base_cells_and_rows_of_the_source() {
    let place = plan();
    let ask = |text: &str| place.run(&["cube", "query", "plan.cube", "--format", "csv", text]).ok();
    let facts = ask("facts at Europe, Variance, 2026-Q1");
    let expected = "\
Month,Region,Version,weight,amount,rows
2026-01,FR,Actual,1.0,110.50,2
2026-02,FR,Budget,-1.0,90.00,1
2026-02,ES,Actual,1.0,7.50,1
";
    assert_eq!(facts, expected);
    let rows = ask("source at Europe, Actual, 2026-Q1");
    let notes: Vec<&str> = rows.lines().filter_map(|line| line.rsplit(',').next()).collect();
    assert_eq!(notes, ["note", "a", "b", "d"]);
    let nearest = ask("nearest 1 to ES, Budget, 2026-02");
    assert_eq!(nearest.lines().count(), 2, "{nearest}");
    let explained = query(&place, "explain at Europe, Variance, 2026").ok();
    assert!(explained.contains("Version: Variance = Actual − Budget"), "{explained}");
}

#[test]
fn an_average_has_room_for_its_sum() {
    let place = Place::new();
    place.write("f.csv", "k,n,x\na,6000000000000000000,1.5e308\na,6000000000000000000,1.5e308\nb,3,1.5\n");
    let measures = "{N: {column: n, rule: avg, type: decimal(0)}, X: {column: x, rule: avg, type: double}}";
    let dimensions = "{K: {column: k, all: T}}";
    place.write(
        "plan.yaml",
        format!("cube: plan\nfacts: {{file: f.csv}}\nmeasures: {measures}\ndimensions: {dimensions}\n"),
    );
    assert_eq!(place.run(&["cube", "define", "plan.yaml"]).code, 0);
    let check = |place: &Place| {
        let rows = place.run(&["cube", "query", "plan.cube", "rows a, T cols Measures", "--format", "csv"]).ok();
        let cells: Vec<f64> = rows.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
        assert_eq!(cells, [6e18, 1.5e308, 4e18, 1e308], "{rows}");
        for text in [
            "SELECT n, x FROM 'plan.cube' WHERE k = 'a'",
            "SELECT avg(n), avg(x / 2) * 2 FROM 'plan.cube' WHERE k = 'a'",
        ] {
            let row = place.run(&["--format", "csv", "-c", text]).ok();
            let row: Vec<f64> = row.lines().nth(1).unwrap().split(',').map(|value| value.parse().unwrap()).collect();
            assert_eq!(row, [6e18, 1.5e308], "{text}");
        }
        let facts = place.run(&["cube", "query", "plan.cube", "facts at a, N", "--format", "csv"]).ok();
        assert!(
            facts.lines().nth(1).is_some_and(|row| row.contains("6000000000000000000") || row.contains("6e18")),
            "{facts}"
        );
    };
    check(&place);
    assert_eq!(place.run(&["cube", "convert", "plan.cube", "--storage", "xcrs"]).code, 0);
    check(&place);
    // A device leaves these measures to the CPU, with the reason.
    let arguments = ["--device", "emulated", "cube", "query", "plan.cube", "explain at T, N"];
    let explained = Ran::of(place.emulated().args(arguments).output().unwrap()).ok();
    assert!(explained.starts_with("N = "), "{explained}");
    let named = ["--device", "emulated", "--set", "placement=cuda", "cube", "query", "plan.cube", "rows T cols N"];
    let refused = Ran::of(place.emulated().args(named).output().unwrap()).error(1);
    assert!(refused.contains("measure N has sums beyond its type"), "{refused}");
    let change = place.run(&["cube", "change", "plan.cube", "remove a"]);
    assert_eq!(change.code, 0, "{change:?}");
    let aside = place.run(&["--format", "csv", "-c", "SELECT \"sum of N\" FROM 'plan.cube/aside-3-0.arrow'"]).ok();
    assert!(aside.contains("12000000000000000000"), "{aside}");
}

#[test]
fn the_device_gives_the_cells_of_the_cpu() {
    let place = plan();
    let text = "rows Region cols Version * Month";
    let on_cpu = place.run(&["--set", "placement=files", "cube", "query", "plan.cube", text]).ok();
    let arguments = ["--device", "emulated", "--set", "placement=cuda", "cube", "query", "--timing", "plan.cube", text];
    let on_device = Ran::of(place.emulated().args(arguments).output().unwrap());
    assert_eq!((on_device.code, &on_device.out), (0, &on_cpu), "{on_device:?}");
    assert!(on_device.err.contains("on emulated"), "{on_device:?}");
}

#[test]
fn the_balance_of_a_measure_and_moved_defaults_are_told() {
    let place = sources();
    let measures =
        "facts: {file: gl.csv}\nmeasures:\n  Heads: {column: amount, over: {Month: last}}\n  Rows: {rule: count}";
    place.write("plan.yaml", DEFINITION.replace("facts: {file: gl.csv, value: amount}", measures));
    assert_eq!(place.run(&["cube", "define", "plan.yaml"]).code, 0);
    let info = place.run(&["cube", "info", "plan.cube"]).ok();
    let expected = "  Heads: SUM of decimal(2), last over Month\n  Rows: COUNT of decimal(0)\n";
    assert!(info.contains(expected), "{info}");
    let added = place.run(&["cube", "change", "plan.cube", "add Region:Beside"]);
    let kept = "  default of Region stays W; by the rule it would be FR: change 'default …' sets it";
    assert!(added.out.ends_with(&format!("\n{kept}\n")), "{added:?}");
    assert_eq!(place.run(&["cube", "change", "plan.cube", "remove Beside"]).out.lines().count(), 1);
    assert_eq!(place.run(&["cube", "define", "plan.yaml", "other.cube"]).code, 0);
    place.write("regions.csv", format!("{REGIONS}XX,,Beside\n"));
    for (cube, notes) in
        [("plan.cube", &["  added to Region: XX"][..]), ("other.cube", &["  added to Region: XX", kept])]
    {
        let done = place.run(&["cube", "refresh", cube]);
        assert_eq!(done.out.lines().skip(1).collect::<Vec<_>>(), notes, "{done:?}");
        let shown = place.run(&["cube", "query", cube, "rows Version where 2026"]).ok();
        assert!(shown.contains("Region: World (default)"), "{shown}");
    }
    // A default element that is gone leaves the rule.
    place.write("regions.csv", REGIONS.replace("W,,World\n", "").replace(",W,", ",,"));
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    assert!(done.out.contains("\n  default of Region is now FR, was W\n"), "{done:?}");
}

#[test]
fn a_refresh_that_fails_keeps_the_old_cube() {
    let place = plan();
    let total = |place: &Place| place.csv("SELECT sum(amount) AS total FROM 'plan.cube'");
    place.write("gl.csv", format!("{FACTS}2026-05-01,XX,Actual,1.00,g\n"));
    let refused = place.run(&["cube", "refresh", "plan.cube"]).error(1);
    assert!(refused.starts_with("CUBE-004 ") && refused.contains("XX") && refused.contains("unknown: "), "{refused}");
    assert_eq!(total(&place), "total\n2208.00\n");
    place.write("regions.csv", format!("{REGIONS}XX,W,Elsewhere\n"));
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(total(&place), "total\n2209.00\n");
    assert!(query(&place, "rows World cols 2026-05").ok().contains("1.00"));
}

#[test]
fn a_refresh_follows_the_source_and_tells_what_moved() {
    let place = plan();
    let europe = |place: &Place| {
        let rows = place.csv("SELECT value FROM cube('plan', 'rows Europe where Actual') ORDER BY 1");
        rows.lines().nth(1).map(String::from)
    };
    assert_eq!(europe(&place).as_deref(), Some("118.00"));
    place.write("regions.csv", REGIONS.replace("JP,W,Japan", "JP,EU,Japan\nIT,EU,Italy"));
    let done = place.run(&["cube", "refresh", "plan.cube"]);
    let notes: Vec<&str> = done.out.lines().skip(1).collect();
    assert_eq!(notes, ["  added to Region: IT", "  moved in Region: JP from W to EU"], "{done:?}");
    assert_eq!(europe(&place).as_deref(), Some("1118.00"));
    place.write("regions.csv", REGIONS);
    let done = place.run(&["cube", "load", "plan.cube"]);
    assert_eq!((done.code, done.out.lines().count()), (0, 1), "{done:?}");
    assert_eq!(europe(&place).as_deref(), Some("118.00"));
}

#[test]
fn a_cube_that_is_being_changed_names_its_holder() {
    let place = plan();
    let lock = File::options().write(true).read(true).open(place.path("plan.cube/lock")).unwrap();
    lock.lock().unwrap();
    let refused = place.run(&["cube", "refresh", "plan.cube"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("\nerror: CUBE-002 ") && refused.err.contains("is being changed by"), "{refused:?}");
    // Readers are not kept from it.
    query(&place, "rows World").ok();
}

#[test]
fn bad_input_is_told_with_its_place() {
    let place = sources();
    place.write("bad.yaml", DEFINITION.replace("key: id", "kee: id"));
    let error = place.run(&["cube", "define", "bad.yaml"]).error(1);
    assert!(error.starts_with("CUBE-003 ") && error.contains("bad.yaml") && error.contains("line 6"), "{error}");
    place.write("column.yaml", DEFINITION.replace("value: amount", "value: amont"));
    let error = place.run(&["cube", "define", "column.yaml"]).error(1);
    assert!(error.starts_with("CUBE-004 ") && error.contains("did you mean 'amount'"), "{error}");
    place.write("format.yaml", DEFINITION.replace("#,##0.00", "abc"));
    let error = place.run(&["cube", "define", "format.yaml"]).error(1);
    assert!(error.starts_with("CUBE-003 ") && error.contains("line 3, column 35: format \"abc\""), "{error}");
    place.write("unknown.yaml", DEFINITION.replace("Version: {elements", "Version: {unknown: Variance, elements"));
    let error = place.run(&["cube", "define", "unknown.yaml"]).error(1);
    assert!(error.starts_with("CUBE-004 ") && error.contains("line 7, column 12: dimensions.Version"), "{error}");
    let variance = "{Actual: 1, Budget: -1}";
    for (consolidated, told) in [
        ("{Actual: .nan}", "the weight of Variance → Actual is NaN"),
        ("{Actual: 1, Variance: 1}", "a cycle of consolidations: Variance → Variance"),
        ("{Aktual: 1}", "Variance → Aktual names an unknown element 'Aktual'"),
    ] {
        place.write("model.yaml", DEFINITION.replace(variance, consolidated));
        let error = place.run(&["cube", "define", "model.yaml"]).error(1);
        let is_placed = error.starts_with("CUBE-004 ") && error.contains("line 7, column 12: dimensions.Version: ");
        assert!(is_placed && error.contains(told), "{error}");
    }
    place.write("words.csv", FACTS.replace("90.00", "n/a"));
    place.write("words.yaml", DEFINITION.replace("gl.csv", "words.csv"));
    let error = place.run(&["cube", "define", "words.yaml"]).error(1);
    let told = "column 'amount': n/a in row 3 (month=2026-02-01, region=FR, version=Budget) is no number; values are";
    assert!(error.contains(told), "{error}");
    let error = place.run(&["cube", "define", "none.yaml"]).error(1);
    assert!(error.starts_with("CUBE-003 'none.yaml' cannot be read"), "{error}");
    let error = place.run(&["cube", "query", "plan.cube", "rows World"]).error(1);
    assert!(error.starts_with("CUBE-002 "), "{error}");

    let place = plan();
    let again = place.run(&["cube", "define", "plan.yaml"]).error(1);
    assert!(again.starts_with("CUBE-002 'plan.cube' holds a cube: 'warpcube cube refresh plan.cube'"), "{again}");
    // Nothing is read for it.
    place.write("gl.csv", "month\n");
    assert_eq!(place.run(&["cube", "define", "plan.yaml"]).error(1), again);
    place.write("other/x", "");
    let error = place.run(&["cube", "define", "plan.yaml", "other"]).error(1);
    assert!(error.starts_with("CUBE-002 'other' is not empty"), "{error}");
    place.write("gl.csv", FACTS);
    let error = query(&place, "rows Frence").error(1);
    assert!(error.starts_with("CUBE-001 column 6: no dimension has an element Frence"), "{error}");
    let arguments = ["cube", "query", "plan.cube", "--targets-max", "3", "rows Region cols Version"];
    let error = place.run(&arguments).error(1);
    assert!(error.starts_with("CUBE-005 the area has 15 targets") && error.contains("--targets-max"), "{error}");
    let error = place.error("SELECT * FROM cube('plan', 'rows Frence')");
    assert!(error.starts_with("CUBE-001 "), "{error}");
    assert!(place.error("SELECT * FROM cube('plan')").contains("takes two texts"));
    assert!(place.error("SELECT * FROM cube('plan', 'facts at World')").starts_with("CUBE-001 "));
    assert_eq!(place.run(&["cube", "query", "plan.cube", "--format", "xml", "rows World"]).code, 2);
    let facts = std::fs::read_dir(place.path("plan.cube")).unwrap().map(|entry| entry.unwrap().path());
    let facts =
        facts.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("facts")).unwrap();
    let mut bytes = std::fs::read(&facts).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&facts, bytes).unwrap();
    let damaged = query(&place, "rows World").error(1);
    assert!(damaged.starts_with("CUBE-002 "), "{damaged}");
}

#[test]
fn the_shell_asks_cubes_too() {
    let place = plan();
    let ran = place.input(&[], "\\cube query plan.cube rows World cols Variance where 2026\n\\cube info plan.cube\n");
    assert!(ran.out.contains("28.00") && ran.out.contains("5 cells in"), "{ran:?}");
    let wrong = place.run(&["-c", "\\cube nothing"]).error(1);
    assert!(wrong.contains("unrecognized subcommand"), "{wrong}");
}

#[test]
fn matrix_market_files_are_cubes_of_numbers() {
    let place = Place::new();
    place.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 0.5\n3 2 -2\n");
    let made = place.run(&["cube", "import", "a.mtx", "a.cube"]);
    assert_eq!(made.code, 0, "{made:?}");
    let cells = place.csv("SELECT * FROM 'a.cube'");
    assert_eq!(cells.lines().count(), 3, "{cells}");
    // Nothing in the file says that it counts from 0.
    let made = place.run(&["cube", "import", "a.mtx", "zero.cube", "--base", "0"]);
    assert!(made.code != 0 && made.err.contains("field 1"), "{made:?}");
    place.write("zero.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 1\n1 1 0.5\n");
    for base in ["0", "1"] {
        let made = place.run(&["cube", "import", "zero.mtx", &format!("from{base}.cube"), "--base", base]);
        assert_eq!(made.code, 0, "{made:?}");
    }
    let counted = place.csv("SELECT count(*) AS cells FROM cube('from0', 'rows d1:0 cols d2:0 empty')");
    assert_eq!(counted, "cells\n1\n");
    let error = place.error("SELECT * FROM cube('from1', 'rows d1:0')");
    assert!(error.starts_with("CUBE-001 "), "elements count from 1: {error}");
    assert_eq!(place.run(&["cube", "import", "zero.mtx", "t.cube", "--base", "2"]).code, 2);
    place.write("b.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 2\n1 1 0.5\n3 x -2\n");
    let error = place.run(&["cube", "import", "b.mtx", "b.cube"]).error(1);
    assert!(error.starts_with("CUBE-006 ") && error.contains("line 4"), "{error}");
}

#[test]
fn files_in_sql_are_found_from_every_folder() {
    let place = sources();
    // One table lies beside the definition, the other in the folder in which it was defined.
    let sql =
        "facts: {sql: \"SELECT f.* FROM 'gl.csv' AS f JOIN 'kept.csv' AS k ON k.version = f.version\", value: amount}";
    let definition = DEFINITION.replace("facts: {file: gl.csv, value: amount}", sql);
    std::fs::create_dir(place.path("defs")).unwrap();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    place.write("defs/plan.yaml", definition.replace("regions.csv", "../regions.csv"));
    place.write("defs/gl.csv", FACTS);
    place.write("gl.csv", "month,region,version,amount\n");
    place.write("kept.csv", "version\nActual\n");
    let made = place.run(&["cube", "define", "defs/plan.yaml"]);
    assert!(made.code == 0 && made.out.contains("4 rows"), "{made:?}");
    let elsewhere = |arguments: &[&str]| {
        Ran::of(place.command().current_dir(place.path("elsewhere")).args(arguments).output().unwrap())
    };
    let again = elsewhere(&["cube", "refresh", "../plan.cube"]);
    assert!(again.code == 0 && again.out.contains("4 rows"), "{again:?}");
    let rows = elsewhere(&["cube", "query", "../plan.cube", "--format", "csv", "source at JP, Actual, 2026"]).ok();
    assert_eq!(rows.lines().count(), 2, "{rows}");
}

#[test]
fn a_load_tells_what_may_not_be_meant() {
    let place = sources();
    place.write("plan.yaml", DEFINITION.replace("caption: name}", "caption: name, unknown: Frnce}"));
    let refused = place.run(&["cube", "define", "plan.yaml"]).error(1);
    assert!(refused.starts_with("CUBE-004 ") && refused.contains("Region has no element 'Frnce'"), "{refused}");
    place.write("plan.yaml", DEFINITION.replace("caption: name}", "caption: name, unknown: add Nowhere}"));
    place.write("gl.csv", format!("{FACTS}2026-05-01,XX,Actual,1.005,g\n2026-05-01,YY,Actual,0.125,h\n"));
    let made = place.run(&["cube", "define", "plan.yaml"]);
    let notes: Vec<&str> = made.out.lines().skip(1).collect();
    let expected = [
        "  added to Region: Nowhere",
        "  2 rows without an element of Region, for which the one counts that unknown: names",
        "  2 values of amount with more digits than its type or a double has, rounded",
    ];
    assert_eq!(notes, expected, "{made:?}");
}

#[test]
fn rows_kept_aside_are_a_table() {
    let place = sources();
    place.write("plan.yaml", DEFINITION.replace("caption: name}", "caption: name, unknown: aside}"));
    place.write("gl.csv", format!("{FACTS}2026-05-01,XX,Actual,1.50,g\n"));
    let made = place.run(&["cube", "define", "plan.yaml"]);
    assert!(made.out.contains("1 row kept aside"), "{made:?}");
    let info = place.run(&["cube", "info", "plan.cube"]).ok();
    let file = info.lines().find(|line| line.contains("kept aside")).and_then(|line| line.split('\'').nth(1)).unwrap();
    let rows = place.csv(&format!("SELECT region, amount, reason FROM '{file}'"));
    assert!(rows.starts_with("region,amount,reason\nXX,1.50,"), "{rows}");
}

#[test]
fn options_stand_before_or_behind_the_query() {
    let place = plan();
    let text = "rows children(World) where 2026, Actual";
    let before = place.run(&["cube", "query", "--format", "csv", "plan.cube", text]).ok();
    assert_eq!(place.run(&["cube", "query", "plan.cube", text, "--format", "csv"]).ok(), before);
    let words = ["cube", "query", "plan.cube", "rows", "children(World)", "where", "2026,", "Actual", "--format=csv"];
    assert_eq!(place.run(&words).ok(), before);
    let unknown = place.run(&["cube", "query", "plan.cube", text, "--fromat", "csv"]).error(2);
    assert!(unknown.contains("unexpected argument '--fromat'"), "{unknown}");
    let lines = "\\cube query plan.cube 'rows World' --format csv\n\\cube query 'plan.cube' rows \"EU\"\n";
    let ran = place.input(&[], lines);
    assert!(ran.out.contains("W,Actual,amount,1118.00") && ran.out.contains("Europe"), "{ran:?}");
    let bare = "\\cube query plan.cube rows children(World) where 2026, \"Actual\" --format csv\n";
    assert_eq!(place.input(&[], bare).ok(), before);
    let dashes = place.run(&["-c", "\\cube query plan.cube rows \"a --format csv\""]).error(1);
    assert!(dashes.starts_with("CUBE-001 ") && dashes.contains("a --format csv"), "{dashes}");
    let alone = place.run(&["-c", "\\cube"]).error(1);
    assert!(alone.contains("takes a command: demo, define, load"), "{alone}");
}

#[test]
fn a_query_is_measured_by_every_algorithm() {
    let place = plan();
    let text = "rows Region cols Version * Month";
    let arguments = ["--device", "emulated", "cube", "bench", "plan.cube", text, "--runs", "1", "--json", "bench.json"];
    let ran = Ran::of(place.emulated().args(arguments).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let names: Vec<&str> = ran.out.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    let of_device = ["gpu-contract", "gpu-source/shuffle/thread/h64", "gpu-target"];
    assert_eq!(names, [&["source", "source-parallel", "target", "contract"][..], &of_device].concat(), "{ran:?}");
    assert_eq!(ran.out.matches("same cells").count(), names.len(), "{ran:?}");
    let report: serde_json::Value = serde_json::from_slice(&place.read("bench.json")).unwrap();
    assert_eq!(report["results"].as_array().unwrap().len(), names.len(), "{report}");
    let one = ["cube", "bench", "plan.cube", "--algorithms", "target,gpu-target", "--runs", "1", text];
    let refused = place.run(&one);
    assert_ne!(refused.code, 0, "{refused:?}");
    let drawn = ["--device", "cpu", "cube", "bench", "plan.cube", "--random", "40", "--json", "drawn.json"];
    let ran = place.run(&drawn);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("40 cross-tabs of at most 10,000 cells: median "), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 6, "{ran:?}");
    let report: serde_json::Value = serde_json::from_slice(&place.read("drawn.json")).unwrap();
    assert_eq!((&report["results"][0]["queries"], &report["results"][0]["verified"]), (&40.into(), &true.into()));
    let wrong = place.run(&["cube", "bench", "plan.cube", "facts at World"]).error(2);
    assert!(wrong.contains("a cross-tab is measured"), "{wrong}");
}

#[test]
fn texts_have_no_rests_of_doubles_and_programs_have_their_bits() {
    let place = Place::new();
    let rows: String = (0..10).map(|row| format!("Std,{row},0.1\n")).collect();
    place.write("f.csv", format!("v,i,amount\n{rows}Act,0,1.0\n"));
    place.write(
        "c.yaml",
        "cube: c\nfacts: {file: f.csv, value: amount}\ndimensions:\n  \
         V: {elements: [Std, Act], consolidated: {Dev: {Std: 1, Act: -1}}, column: v}\n  \
         I: {column: i, all: All, format: {All: '0.00;(0.00);\"nil\"'}}\n",
    );
    assert_eq!(place.run(&["cube", "define", "c.yaml"]).code, 0);
    let asked = |more: &[&str]| place.run(&[&["cube", "query", "c.cube", "rows All where Dev"], more].concat()).ok();
    assert!(asked(&[]).contains("All  nil\n"), "{}", asked(&[]));
    assert_eq!(asked(&["--format", "csv"]).lines().nth(1), Some("Dev,All,amount,0.0,"));
    assert!(asked(&["--format", "json"]).contains("5.551115123125783e-17"), "{}", asked(&["--format", "json"]));
    place.run(&["cube", "query", "c.cube", "rows All where Dev", "--output", "c.csv"]).ok();
    place.run(&["cube", "query", "c.cube", "rows All where Dev", "--output", "c.ndjson"]).ok();
    let written = |name: &str| String::from_utf8(place.read(name)).unwrap();
    assert!(written("c.csv").contains(",0.0,") && written("c.ndjson").contains("e-17"));
}
