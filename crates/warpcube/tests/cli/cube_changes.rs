//! Live cubes changed from the command line: elements, consolidations, names, the storage scheme.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use crate::cubes::{DEFINITION, FACTS, plan, query};
use crate::harness::{Place, Ran};

fn change(place: &Place, text: &str) -> Ran {
    place.run(&["cube", "change", "plan.cube", text])
}

/// What a change that is made tells, without the time it took.
fn told(ran: Ran) -> Vec<String> {
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let line = |line: &str| match line.starts_with(' ') {
        true => line.to_string(),
        false => line.split(" (").next().unwrap_or(line).to_string(),
    };
    ran.out.lines().map(line).collect()
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
        ["plan.cube: 3 changes", "  unlinked in Region until change 'relink …', at a refresh and load too: ES from EU",]
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

/// Names of the files of facts, with their numbers and times.
fn facts_files(place: &Place) -> Vec<(String, u64, SystemTime)> {
    let entries = std::fs::read_dir(place.path("plan.cube")).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap()));
    let of_facts = files.filter(|(name, _)| name.starts_with("facts") || name.starts_with("removed"));
    let mut files: Vec<_> = of_facts.map(|(name, of)| (name, of.ino(), of.modified().unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_rename_writes_no_facts_and_a_refresh_the_cells_that_differ() {
    let place = plan();
    let first = facts_files(&place);
    assert_eq!(told(change(&place, "rename JP to Nippon"))[0], "plan.cube: 1 change");
    assert_eq!(facts_files(&place), first);
    place.run(&["cube", "refresh", "plan.cube"]).ok();
    assert_eq!(facts_files(&place), first, "the source has the same facts");
    place.write("gl.csv", format!("{FACTS}2026-01-05,ES,Actual,1.00,g\n"));
    place.run(&["cube", "refresh", "plan.cube"]).ok();
    let files = facts_files(&place);
    assert_eq!((&files[..1], files[1].0.as_str(), files.len()), (&first[..], "facts-4.warpcols", 2));
    let info = place.run(&["cube", "info", "plan.cube"]).ok();
    assert!(
        info.contains("  6 cells in ") && info.contains("    in 2 segments; later ones replaced 0 cells\n"),
        "{info}"
    );
    assert_eq!((total(&place, "ES"), total(&place, "World")), ("8.50".into(), "1119.00".into()));
    let rows = place.run(&["--format", "csv", "-c", "SELECT count(*), sum(amount) FROM 'plan.cube'"]).ok();
    assert_eq!(rows.lines().nth(1), Some("6,2209.00"));
    let explained = query(&place, "explain at Actual, 2026, World").ok();
    assert!(explained.contains("; a pass over 2 segments)"), "{explained}");
    assert_eq!(told(change(&place, "remove ES"))[1], "  2 facts of ES (Region) kept aside");
    assert_eq!(total(&place, "World"), "1110.50");
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    let place = plan();
    let before = place.read("plan.cube/cube.json");
    for (text, expected) in [
        ("add Region:IT; remove Frence", "CUBE-007 column 23: no dimension has an element Frence"),
        ("move W below EU", "CUBE-007 column 1: dimension 'Region': a cycle of consolidations: EU → W → EU"),
        ("add Region:JP", "CUBE-007 column 1: dimension 'Region': the name 'JP' is taken by 'JP'"),
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
    let held = change(&place, "remove JP");
    assert!(held.code == 1 && held.err.starts_with("warning: waiting for another process"), "{held:?}");
    assert!(held.err.contains("\nerror: CUBE-002 ") && held.err.contains("is being changed by"), "{held:?}");
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
fn what_was_unlinked_by_hand_stays_unlinked() {
    let place = plan();
    let notes = |ran: Ran| told(ran).split_off(1);
    let twice = |example: &str| {
        let what = "base element of Region lies below an element over two paths, and may count twice there";
        format!("  1 {what}: {example}")
    };
    assert_eq!(
        notes(change(&place, "add Iberia of ES below EU")),
        [twice("ES below EU")],
        "not the default that stays"
    );
    assert_eq!(total(&place, "Europe"), "125.50");
    change(&place, "unlink ES from EU");
    let stays = "  stays unlinked in Region until change 'relink …', by which it may count twice: ES from EU";
    assert_eq!(notes(place.run(&["cube", "refresh", "plan.cube"])), [stays]);
    assert_eq!((total(&place, "Europe"), total(&place, "Iberia")), ("118.00".into(), "7.50".into()));
    // A load makes the cube without the group, so that no element holds what was unlinked.
    let dropped = "  1 thing made by hand in Region dropped: Iberia";
    let nowhere = "  unlinked in Region and below no element, which counts them: ES; change 'relink ES' mends it";
    assert_eq!(notes(place.run(&["cube", "load", "plan.cube"])), [dropped, stays, nowhere]);
    assert_eq!(total(&place, "Europe"), "110.50");
    assert_eq!(told(change(&place, "relink ES below EU")), ["plan.cube: 1 change"]);
    assert_eq!(total(&place, "Europe"), "118.00");
    assert_eq!(notes(place.run(&["cube", "refresh", "plan.cube"])), [""; 0]);
    // A move to a group made by hand takes the edge away, too.
    change(&place, "add Region:South of JP below EU; move ES from EU below South; unlink JP from South");
    assert_eq!(notes(place.run(&["cube", "refresh", "plan.cube"])), [stays]);
    assert_eq!(total(&place, "Europe"), "118.00");
    // A definition whose table places an element below one twice is told so when it is defined.
    place.write("regions.csv", "id,parent_id,name\nW,,World\nEU,W,Europe\nFR,EU,France\nFR,W,\nES,EU,Spain\nJP,W,\n");
    for arguments in [&["cube", "define", "--check", "plan.yaml"][..], &["cube", "define", "plan.yaml", "twice.cube"]] {
        let ran = place.run(arguments);
        assert!(ran.code == 0 && ran.out.contains(&twice("FR below W")), "{ran:?}");
    }
}

#[test]
fn a_second_element_of_a_name_qualifies_both() {
    let place = Place::new();
    let products = "fam,dep,sku\nFood,Dairy,s1\nFood,Deli,s2\nDrink,Beer,s3\n";
    place.write("p.csv", products);
    place.write("f.csv", "sku,amount\ns1,1\ns2,2\ns3,4\ns4,8\n");
    place.write(
        "plan.yaml",
        "cube: plan\nfacts: {file: f.csv, value: amount}\nunknown: aside\n\
         dimensions: {P: {table: p.csv, levels: [fam, dep, sku], all: All}}\n",
    );
    assert_eq!(place.run(&["cube", "define", "plan.yaml"]).code, 0);
    assert_eq!(change(&place, "add Cold of Dairy, Beer below All weight 0; caption Dairy Milk").code, 0);
    place.write("p.csv", format!("{products}Drink,Dairy,s4\n"));
    let renamed = "  Food-Dairy (P) was named Dairy: more or fewer elements have its value in the source now";
    let warning =
        "warning: Dairy stands for Food-Dairy, which had the name first; the source has it for Drink-Dairy, too";
    let mut is_told = false;
    for how in ["refresh", "load", "refresh"] {
        let lines = told(place.run(&["cube", how, "plan.cube"]));
        is_told |= lines.contains(&renamed.to_string());
        let asked = place.run(&["cube", "query", "plan.cube", "rows Dairy", "--format", "csv"]);
        assert_eq!(asked.out, "P,measure,value,text\nFood-Dairy,amount,1.0,\n");
        assert_eq!(asked.err.trim_end(), warning, "{how}");
        let sql = "SELECT fam, dep, sum(amount) AS v FROM 'plan.cube' WHERE dep = 'Dairy' GROUP BY 1, 2 ORDER BY 1";
        let rows = place.run(&["--format", "csv", "-c", sql]).ok();
        assert_eq!(rows, "fam,dep,v\nDrink,Dairy,8.0\nFood,Dairy,1.0\n", "{how}");
    }
    assert!(is_told);
    let cells =
        place.run(&["--format", "csv", "-c", "SELECT p, value FROM cube('plan.cube', 'rows Dairy, Drink-Dairy')"]);
    assert_eq!(cells.out, "p,value\nFood-Dairy,1.0\nDrink-Dairy,8.0\n");
    assert!(cells.err.contains(warning), "{cells:?}");
    let changed = change(&place, "set Dairy boss = M");
    assert!(changed.err.contains(warning), "{changed:?}");
    assert_eq!(query(&place, "rows Food-Dairy").err, "");
}

#[test]
fn a_name_given_by_hand_gives_way_to_one_of_the_source_with_a_warning() {
    let place = plan();
    assert_eq!(change(&place, "rename ES to PT; set FR color = blue").code, 0);
    let regions = place.read("regions.csv");
    let regions = String::from_utf8(regions).unwrap();
    place.write("regions.csv", format!("{regions}PT,EU,Portugal\n"));
    let lines = told(place.run(&["cube", "refresh", "plan.cube"]));
    let given = "  PT is another element of Region in the source: ES, which a change had given the name, gets it again \
                 once it is free";
    assert!(lines.contains(&given.to_string()), "{lines:?}");
    let asked = place.run(&["cube", "query", "plan.cube", "rows PT where Actual, 2026 empty"]);
    assert!(
        asked.err.contains("warning: PT stands for PT of the source; a change had given the name to ES"),
        "{asked:?}"
    );
    place.write("regions.csv", &regions);
    let lines = told(place.run(&["cube", "refresh", "plan.cube"]));
    assert_eq!(lines[1..], ["  gone from Region: PT"]);
    let asked = place.run(&["cube", "query", "plan.cube", "rows PT where Actual, 2026"]);
    assert_eq!((asked.code, asked.err.as_str()), (0, ""), "{asked:?}");
    // A delivery without an element takes nothing that was made by hand from it.
    place.write("regions.csv", regions.replace("FR,EU,France\n", ""));
    place.write("plan.yaml", format!("unknown: aside\n{DEFINITION}"));
    let lines = told(place.run(&["cube", "load", "plan.cube", "--definition", "plan.yaml"]));
    assert!(lines.iter().any(|line| line.contains("made by hand in Region dropped")), "{lines:?}");
}

#[test]
fn a_definition_file_that_differs_is_told() {
    let place = plan();
    assert_eq!(place.run(&["cube", "refresh", "plan.cube"]).err, "");
    place.write("plan.yaml", format!("{DEFINITION}# all: Total\n"));
    for how in ["refresh", "load"] {
        let ran = place.run(&["cube", how, "plan.cube"]);
        assert_eq!(ran.code, 0);
        assert!(ran.err.starts_with("warning: ") && ran.err.contains("load plan.cube --definition "), "{ran:?}");
    }
    let ran = place.run(&["cube", "load", "plan.cube", "--definition", "plan.yaml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(place.run(&["cube", "refresh", "plan.cube"]).err, "");
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
        assert!(done.code == 0 && done.out.contains(&format!(" to {name} with an index of ")), "{done:?}");
        assert_eq!((scheme(&place).as_str(), &query(&place, text).ok()), (name, &cells));
    }
    let same = place.run(&["cube", "convert", "plan.cube", "--storage", "bess"]);
    assert!(same.out.starts_with("plan.cube stays bess with an index of "), "{same:?}");
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

/// Dimensions D (A, B below T) and E (x, y), which the cubes Sales and Plan share; an attribute cube of D.
const DATABASE: &str = "[DATABASE]
3;3;1;
[DIMENSIONS]
3;\"D\";1;1;1;1;
4;\"E\";1;1;1;1;
7;\"#_D_\";4;0;0;1;
[DIMENSION 3]
3;\"D\";1;2;1;3;
[ELEMENTS DIMENSION 3]
0;\"A\";0;1;0;0;2;1;2;;;
1;\"B\";1;1;0;0;2;1;2;;;
2;\"T\";2;4;1;1;1;0;;0,1;1,1;
[DIMENSION 4]
4;\"E\";1;2;1;2;
[ELEMENTS DIMENSION 4]
0;\"x\";0;1;0;0;1;0;;;;
1;\"y\";1;1;0;0;1;0;;;;
[DIMENSION 7]
7;\"#_D_\";0;1;0;1;
[ELEMENTS DIMENSION 7]
0;\"size\";0;1;0;0;1;0;;;;
[CUBES]
1;\"#_D\";7,3;3;0;0;
2;\"Sales\";3,4;2;1;1;
8;\"Plan\";3;2;1;1;
";

#[test]
fn elements_of_a_database_go_from_all_of_its_cubes() {
    let place = crate::harness::Place::new();
    place.write("palo/database.csv", DATABASE);
    place.write("palo/database_CUBE_1.csv", "[CUBE]\n1;1,3;\n[NUMERIC]\n0,0;7;\n0,1;8;\n");
    place.write("palo/database_CUBE_2.csv", "[CUBE]\n2;3,2;\n[NUMERIC]\n0,0;1;\n1,0;2;\n1,1;4;\n");
    place.write("palo/database_CUBE_8.csv", "[CUBE]\n8;3;\n[NUMERIC]\n0;3;\n1;5;\n");
    let imported = place.run(&["cube", "import", "palo", "cubes"]);
    assert!(imported.out.contains("1 cube of the system"), "{imported:?}");
    let sales = |text: &str| place.run(&["cube", "change", "cubes/Sales", text]);
    let check = place.run(&["cube", "change", "cubes/Sales", "remove B", "--check"]);
    assert!(check.out.contains("removed from #_D, Plan too"), "{check:?}");
    let removed = sales("remove B");
    assert_eq!(removed.code, 0, "{removed:?}");
    let told: Vec<&str> = removed.out.lines().skip(1).collect();
    let others = "  removed from #_D, Plan too: the dimensions are the database's";
    assert_eq!(told, [others, "  4 facts of B (D) kept aside"]);
    let cells = place.run(&["cube", "query", "cubes/Plan", "rows D", "--format", "csv"]).ok();
    assert_eq!(cells, "D,measure,value,text\nA,Value,3.0,\nT,Value,3.0,\n");
    let exported = place.run(&["cube", "export", "cubes", "again"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let plan = String::from_utf8(place.read("again/database_CUBE_8.csv")).unwrap();
    assert!(plan.contains("\n0;3;") && !plan.contains("\n1;5;"), "{plan}");
    assert!(!String::from_utf8(place.read("again/database.csv")).unwrap().contains("\"B\""));
    // What the removal left in all cubes is no change of theirs: one of them may have changed more.
    assert_eq!(sales("rename A to A1; add D:N below T").code, 0);
    let exported = place.run(&["cube", "export", "cubes", "changed"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    assert_eq!(place.run(&["cube", "import", "changed", "changed cubes"]).code, 0);
    let cells = place.run(&["cube", "query", "changed cubes/Plan", "rows D empty", "--format", "csv"]).ok();
    assert_eq!(cells, "D,measure,value,text\nT,Value,3.0,\nA1,Value,3.0,\nN,Value,,\n");
    // Neither the cube nor the folder of cubes has a source that a load reads.
    for cube in ["cubes/Sales", "cubes"] {
        for command in ["refresh", "load"] {
            let error = place.run(&["cube", command, cube]).error(1);
            let expected = format!("CUBE-004 '{cube}' was imported from a database");
            assert!(error.starts_with(&expected) && error.contains("warpcube cube import DATABASE FOLDER"), "{error}");
        }
    }
    let source = place.run(&["cube", "query", "cubes/Plan", "source at A"]).error(1);
    assert!(source.contains("imported from a database") && source.ends_with("ask for facts at"), "{source}");
    // Elements that a change adds are of one cube until an export.
    assert_eq!(sales("add D:C; remove D:C").code, 0);
    assert_eq!(place.run(&["cube", "import", "again", "more"]).code, 0);
}

#[test]
fn a_base_element_of_other_cubes_of_a_database_stays_one() {
    let place = crate::harness::Place::new();
    place.write("palo/database.csv", DATABASE);
    place.write("palo/database_CUBE_1.csv", "[CUBE]\n1;1,3;\n[NUMERIC]\n0,1;8;\n");
    place.write("palo/database_CUBE_2.csv", "[CUBE]\n2;3,2;\n[NUMERIC]\n1,0;2;\n1,1;4;\n");
    place.write("palo/database_CUBE_8.csv", "[CUBE]\n8;3;\n[NUMERIC]\n0;3;\n1;5;\n");
    assert_eq!(place.run(&["cube", "import", "palo", "cubes"]).code, 0);
    let sales = |text: &str| place.run(&["cube", "change", "cubes/Sales", text]);
    // Sales has no cell at A, and other cubes have.
    for text in ["add D:C below A", "add D:C; link C below A", "link B below A"] {
        let refused = sales(text).error(1);
        let expected = "the cubes disagree about dimension 'D': cube 'Plan' holds facts at 'A', too: add an element \
                        that consolidates it instead";
        assert_eq!(refused.trim_end(), format!("CUBE-007 {expected}"));
    }
    let group = "add Group of A below T; unlink A from T; add C below Group; add F below C";
    assert_eq!(sales(group).code, 0, "an element that the change has added is of this cube alone");
    let exported = place.run(&["cube", "export", "cubes", "again"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    // Where no cube has facts at it, it may consolidate others, and the export has it so.
    place.write("palo/database_CUBE_1.csv", "[CUBE]\n1;1,3;\n[NUMERIC]\n0,1;8;\n");
    place.write("palo/database_CUBE_8.csv", "[CUBE]\n8;3;\n[NUMERIC]\n1;5;\n");
    assert_eq!(place.run(&["cube", "import", "palo", "free"]).code, 0);
    assert_eq!(place.run(&["cube", "change", "free/Sales", "add D:C below A"]).code, 0);
    let exported = place.run(&["cube", "export", "free", "later"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    assert_eq!(place.run(&["cube", "import", "later", "back"]).code, 0);
    let cells = place.run(&["cube", "query", "back/Plan", "rows A, C, T empty", "--format", "csv"]).ok();
    assert_eq!(cells, "D,measure,value,text\nA,Value,,\nC,Value,,\nT,Value,5.0,\n");
}

#[test]
fn a_renamed_element_of_levels_keeps_its_name_of_the_source() {
    let place = plan();
    assert_eq!(change(&place, "rename 2026-01 to January").code, 0);
    let refused = change(&place, "add Month:2026-01 below 2026-Q1").error(1);
    assert!(refused.contains("'2026-01' is an alternative name of 'January'"), "{refused}");
    let by_source = || place.run(&["cube", "query", "plan.cube", "rows 2026-01", "--format", "csv"]).ok();
    let shown = by_source();
    assert!(shown.lines().nth(1).unwrap().starts_with("January,"), "{shown}");
    assert_eq!(place.run(&["cube", "refresh", "plan.cube"]).code, 0);
    assert_eq!(by_source(), shown);
}

#[test]
fn elements_that_exchange_their_names_keep_their_facts_after_a_refresh() {
    let place = plan();
    let before = [total(&place, "FR"), total(&place, "JP")];
    assert_ne!(before[0], before[1]);
    assert_eq!(told(change(&place, "rename FR to JP; rename JP to FR"))[0], "plan.cube: 2 changes");
    let after = || [total(&place, "JP"), total(&place, "fr")];
    assert_eq!(after(), before);
    for _ in 0..2 {
        assert_eq!(place.run(&["cube", "refresh", "plan.cube"]).code, 0);
        assert_eq!(after(), before, "rows of the source find their elements");
    }
    assert_eq!(change(&place, "rename JP to FR; rename FR to JP").code, 0);
    assert_eq!([total(&place, "FR"), total(&place, "JP")], before);
}

#[test]
fn elements_of_a_cube_that_is_kept_as_it_stands_are_not_removed() {
    let place = crate::harness::Place::new();
    // A cube of a dimension whose elements lie in another database is no model.
    let database = DATABASE
        .replace("3;3;1;\n", "4;4;1;\n")
        .replace("[DIMENSIONS]\n", "[DIMENSIONS]\n0;\"#_USER_\";3;\"System\";\"#_USER_\";0;0;0;\n");
    place.write("palo/database.csv", format!("{database}9;\"Odd\";3,0;2;1;1;\n"));
    place.write("palo/database_CUBE_9.csv", "[CUBE]\n9;3,1;\n[NUMERIC]\n0,0;1;\n");
    assert_eq!(place.run(&["cube", "import", "palo", "cubes"]).code, 0);
    let refused = place.run(&["cube", "change", "cubes/Sales", "remove B"]).error(1);
    let told =
        "CUBE-007 the cubes disagree about dimension 'D': cube 'Odd' has it, too, and its cells are kept as they";
    assert!(refused.starts_with(told), "{refused}");
    let refused = place.run(&["cube", "change", "cubes/Sales", "add D:C below A"]).error(1);
    assert!(refused.contains("cube 'Odd' has 'A', too, and its cells are kept as they stand"), "{refused}");
    assert_eq!(place.run(&["cube", "change", "cubes/Sales", "remove E:y"]).code, 0);
    assert_eq!(place.run(&["cube", "export", "cubes", "again"]).code, 0);
}

#[test]
fn a_refresh_without_the_last_element_of_a_dimension_stores_the_others() {
    let place = Place::new();
    let rows = |codes: std::ops::Range<u32>| -> String {
        let row = |code: u32| format!("k{code:04},{code}\n");
        ["k,v\n".to_string()].into_iter().chain(codes.map(row)).collect()
    };
    place.write("f.csv", rows(0..2_000));
    place.write("c.yaml", "cube: c\nfacts: {file: f.csv, value: v}\ndimensions: {K: {column: k, all: All}}\n");
    place.run(&["cube", "define", "c.yaml", "c.cube"]).ok();
    place.write("f.csv", rows(0..1_999));
    place.run(&["cube", "refresh", "c.cube"]).ok();
    let sum = place.run(&["cube", "query", "c.cube", "rows All", "--format", "csv"]).ok();
    assert!(sum.contains("1997001"), "{sum:?}");
}
