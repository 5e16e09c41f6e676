//! Facts that name no base element: refused, kept aside, added, or counted for another element.

use std::sync::Arc;

use arrow::array::Float64Array;
use arrow::compute::concat_batches;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::build::source_rows;
use warpcube_cube::define::parse;

use crate::tables::{Memory, aside, built, cells, cents, dates, defined, failure, ints, outline, table, texts};

/// Regions: two rows of known ones, NULL, an unknown one twice, one of another spelling, a consolidated one.
fn memory() -> Memory {
    Memory::default().with(
        "gl",
        table(vec![
            ("region", texts(&["France", ".", "Atlantis", "japan", "ATLANTIS", "World", "Frence"])),
            ("version", texts(&["A", "A", "B", "A", "A", "A", "A"])),
            ("amount", cents(&[1, 2, 3, 4, 5, 6, 7])),
        ]),
    )
}

const REGION: &str = "Region: {elements: [France, Japan], consolidated: {World: {France: 1, Japan: 1}}";

#[test]
fn refused_with_all_that_is_unknown() {
    let message = failure(&memory(), &format!("{REGION}}}\nVersion: {{elements: [A]}}"));
    assert_eq!(
        message,
        "dimension 'Region', column 'region': NULL or blank text names no element, in 1 row, first in row 2 \
         (region=NULL, version=A); no element is named 'Atlantis', in 1 row; no element is named 'ATLANTIS', in 1 row; \
         'World' is a consolidated element, and facts lie at base elements, in 1 row; no element is named 'Frence', in \
         1 row. To go on, write in the dimension unknown: aside (the rows are kept aside), unknown: add (the elements \
         are added), or unknown: with the name of a base element they count for. \
         dimension 'Version', column 'version': no element is named 'B', in 1 row, first in row 3 (region=Atlantis, \
         version=B). To go on, write in the dimension unknown: aside (the rows are kept aside), unknown: add (the \
         elements are added), or unknown: with the name of a base element they count for"
    );
}

#[test]
fn near_names_and_captions_are_told() {
    let gl = table(vec![
        ("region", texts(&["Frence", "Frence", "x1", "x2", "x3", "x4", "x5", "x6"])),
        ("amount", cents(&[1, 1, 1, 1, 1, 1, 1, 1])),
    ]);
    let memory = Memory::default().with("gl", gl);
    let message = failure(&memory, "Region: {elements: [France]}");
    assert!(message.contains("'Frence', in 2 rows, first in row 1"), "{message}");
    assert!(message.contains("; and 2 more values in 2 rows; did you mean 'France'? To go on"), "{message}");
    let gl = table(vec![("region", texts(&["France"])), ("amount", cents(&[1]))]);
    let regions = table(vec![("id", texts(&["FR"])), ("up", texts(&["."])), ("name", texts(&["France"]))]);
    let message = failure(
        &Memory::default().with("gl", gl).with("r", regions),
        "Region: {table: r, key: id, parent: up, caption: name}",
    );
    assert!(message.ends_with(". 'France' is the caption of 'FR', and facts name elements by their keys"), "{message}");
}

#[test]
fn kept_aside_with_the_reason() {
    let cube = built(&memory(), &format!("{REGION}, unknown: aside}}\nVersion: {{elements: [A], unknown: aside}}"));
    assert_eq!(cells(&cube), ["France A = 0.01", "Japan A = 0.04"]);
    assert_eq!(
        aside(&cube),
        [
            ".|A|0.02|Region: NULL or blank text names no element",
            "Atlantis|B|0.03|Region: no element is named 'Atlantis'; Version: no element is named 'B'",
            "ATLANTIS|A|0.05|Region: no element is named 'ATLANTIS'",
            "World|A|0.06|Region: 'World' is a consolidated element, and facts lie at base elements",
            "Frence|A|0.07|Region: no element is named 'Frence'",
        ]
    );
    let report = &cube.report;
    assert_eq!((report.rows, report.rows_loaded, report.rows_aside, report.cells), (7, 2, 5, 2));
    assert_eq!(cube.aside.schema.field(3).name(), "reason");
}

#[test]
fn the_cube_decides_where_the_dimension_does_not() {
    let text = format!(
        "cube: c\nfacts: {{sql: TABLE gl, value: amount}}\nunknown: aside\ndimensions:\n  {REGION}}}\n\
         \x20 Version: {{unknown: add, elements: [A]}}\n"
    );
    let cube = defined(&memory(), &text).unwrap();
    assert_eq!(aside(&cube).len(), 5);
    assert_eq!(outline(&cube, 1), "A B");
}

#[test]
fn added_without_a_parent() {
    let message = failure(&memory(), &format!("{REGION}, unknown: add}}\nVersion: {{}}"));
    assert!(message.starts_with("dimension 'Region', column 'region': NULL or blank text"), "{message}");
    assert!(message.contains("'World' is a consolidated element"), "{message}");
    assert!(
        message.ends_with("write unknown: aside (they are kept aside), or the name of a base element they count for")
    );
    let gl = table(vec![
        ("region", texts(&["Zealand", "France", "atlantis", "Atlantis"])),
        ("amount", cents(&[1, 2, 3, 4])),
    ]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(&memory, &format!("{REGION}, unknown: add, all: All}}"));
    assert_eq!(
        outline(&cube, 0),
        "France Japan Atlantis Zealand atlantis World(France Japan) All(World Atlantis Zealand atlantis)",
        "by ascending value, without a parent but the one over all roots"
    );
    assert_eq!(cube.report.added[0].names, ["Atlantis", "Zealand", "atlantis"]);
    assert_eq!(cells(&cube), ["France = 0.02", "Atlantis = 0.04", "Zealand = 0.01", "atlantis = 0.03"]);
}

#[test]
fn counted_for_a_named_element() {
    let cube = built(&memory(), &format!("{REGION}, unknown: japan}}\nVersion: {{}}"));
    assert_eq!(cells(&cube), ["France A = 0.01", "Japan A = 0.24", "Japan B = 0.03"]);
    assert_eq!(cube.report.rows_renamed, [("Region".to_string(), 5)]);
    assert!(cube.report.added.is_empty());
    // A row that another dimension keeps aside counts for no element.
    let cube = built(&memory(), &format!("{REGION}, unknown: japan}}\nVersion: {{elements: [A], unknown: aside}}"));
    assert_eq!((cube.report.rows_aside, &cube.report.rows_renamed[..]), (1, &[("Region".to_string(), 4)][..]));
    let added = "unknown: add Elsewhere";
    let cube = built(&memory(), &format!("{REGION}, {added}}}\nVersion: {{{added}}}"));
    assert_eq!(outline(&cube, 0), "France Japan Elsewhere World(France Japan)");
    assert_eq!(outline(&cube, 1), "A B", "no row needs it");
    assert_eq!(cube.report.added[0].names, ["Elsewhere"]);
    assert_eq!(cube.report.rows_renamed, [("Region".to_string(), 5)]);
    for (how, name) in [("", "World"), ("", "Every"), ("add ", "World"), ("add ", "Every")] {
        let message = failure(&memory(), &format!("{REGION}, all: Every, unknown: {how}{name}}}\nVersion: {{}}"));
        let expected = format!("dimensions.Region.unknown: '{name}' is no base element; unknown: names a base element");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_name_that_no_element_has_is_refused_with_the_nearest() {
    for (name, near) in
        [("Frence", "; did you mean 'France'?"), ("asdie", "; did you mean 'aside'?"), ("Elsewhere", ".")]
    {
        let message = failure(&memory(), &format!("{REGION}, unknown: {name}}}\nVersion: {{}}"));
        assert_eq!(
            message,
            format!(
                "dimensions.Region.unknown: Region has no element '{name}'{near} To add it where facts need it, write \
                 add {name}"
            )
        );
    }
}

#[test]
fn null_dates_and_texts_that_are_none() {
    let gl = table(vec![("day", dates(&["2026-01-01", "."])), ("amount", cents(&[1, 2]))]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(&memory, "Day: {column: day, levels: [year, day], unknown: add Undated}");
    assert_eq!(cells(&cube), ["2026-01-01 = 0.01", "Undated = 0.02"]);
    let gl = table(vec![
        ("day", texts(&["2026-01", "someday", "2026-02-30", "2026-02-28"])),
        ("amount", cents(&[1, 2, 3, 4])),
    ]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(&memory, "Day: {column: day, levels: [year, day], unknown: aside}");
    assert_eq!(cells(&cube), ["2026-02-28 = 0.04"], "a month is no day");
    let cube = built(&memory, "Day: {column: day, levels: [year, month], unknown: add}");
    assert_eq!(outline(&cube, 0), "2026-01 2026-02 2026(2026-01 2026-02) 2026-02-30 someday");
}

#[test]
fn level_rows_that_end_above_others_are_consolidated_keys() {
    let gl = table(vec![
        ("area", texts(&["Europe", "Europe", ".", "Asia"])),
        ("country", texts(&["France", ".", ".", "."])),
        ("amount", cents(&[1, 2, 3, 4])),
    ]);
    let memory = Memory::default().with("gl", gl);
    let message = failure(&memory, "Place: {levels: [area, country]}");
    assert!(message.contains("column 'area', 'country': 'Europe' is a consolidated element"), "{message}");
    assert!(
        message.contains("row 2 (area=Europe, country=NULL); NULL or blank text names no element, in 1 row. To"),
        "{message}"
    );
    let cube = built(&memory, "Place: {levels: [area, country], unknown: aside}");
    assert_eq!(outline(&cube, 0), "Asia France Europe(France)");
    assert_eq!((cells(&cube).len(), aside(&cube).len()), (2, 2));
}

#[test]
fn a_value_of_several_elements_of_a_table() {
    let gl = table(vec![("month", texts(&["1", "2025-1", "2"])), ("amount", cents(&[1, 2, 3]))]);
    let months = table(vec![("year", texts(&["2025", "2026", "2026"])), ("month", texts(&["1", "1", "2"]))]);
    let memory = Memory::default().with("gl", gl).with("m", months);
    let message = failure(&memory, "Month: {table: m, levels: [year, month]}");
    assert!(message.contains("'1' is several elements: 2025-1, 2026-1, in 1 row"), "{message}");
    assert!(message.contains("derive the levels from columns of the facts"), "{message}");
    let cube = built(&memory, "Month: {table: m, levels: [year, month], unknown: aside}");
    assert_eq!(cells(&cube), ["2025-1 = 0.02", "2 = 0.03"]);
}

#[test]
fn nan_and_infinity() {
    let values = Float64Array::from(vec![Some(1.0), Some(f64::NAN), Some(f64::NEG_INFINITY), None]);
    let gl = table(vec![("k", texts(&["a", "a", "b", "c"])), ("x", Arc::new(values))]);
    let memory = Memory::default().with("gl", gl);
    for value_type in ["double", "decimal(2)"] {
        let text = |unknown: &str| {
            format!(
                "cube: c\nfacts: {{sql: TABLE gl, value: x}}\nvalue: {{type: {value_type}}}\n\
                 unknown: {unknown}\ndimensions: {{K: {{}}}}"
            )
        };
        for unknown in ["refuse", "add", "a"] {
            assert_eq!(
                defined(&memory, &text(unknown)).unwrap_err().to_string(),
                "measure 'x', column 'x': NaN in row 2 (k=a); NaN and infinity are in 2 rows. To keep such rows aside, \
                 write unknown: aside for the cube"
            );
        }
        let cube = defined(&memory, &text("aside")).unwrap();
        assert_eq!(cells(&cube), ["a = 1"], "{value_type}");
        assert_eq!(aside(&cube), ["a|NaN|x: NaN or infinity", "b|-inf|x: NaN or infinity"]);
        assert_eq!((cube.report.rows_loaded, cube.report.rows_empty), (1, 1));
    }
}

#[test]
fn source_rows_are_those_that_make_the_cell() {
    let x = Float64Array::from(vec![Some(1.0), Some(f64::NAN), None, Some(2.0), Some(3.0)]);
    let y = Float64Array::from(vec![None, Some(1.0), Some(3.0), Some(4.0), Some(f64::INFINITY)]);
    let keys = texts(&["a", "a", "a", "b", "b"]);
    let gl = table(vec![("k", keys), ("n", ints(&[0, 1, 2, 3, 4])), ("x", Arc::new(x)), ("y", Arc::new(y))]);
    let memory = Memory::default().with("gl", gl);
    let text = "cube: c\nfacts: {sql: TABLE gl}\nunknown: aside\nmeasures: {X: {column: x}, Y: {column: y}, \
                Xs: {column: x, rule: count}, All: {rule: count}}\ndimensions: {k: {}}";
    let cube = defined(&memory, text).unwrap();
    assert_eq!(cells(&cube), ["a = 1 3 1 2", "b = 2 4 1 1"]);
    let rows = |bases: Option<Vec<u32>>, measure: usize| {
        let definition = parse(text).unwrap();
        let found = source_rows(&definition, &cube.model, (&[bases], measure), &memory, &Progress::new()).unwrap();
        let found = concat_batches(&found[0].schema(), &found).unwrap();
        arrow::util::display::ArrayFormatter::try_new(found.column(1), &Default::default())
            .map(|numbers| (0..found.num_rows()).map(|row| numbers.value(row).to_string()).collect::<String>())
            .unwrap()
    };
    // NaN and infinity are kept aside, NULL is no value.
    for (measure, expected) in ["03", "23", "03", "023"].into_iter().enumerate() {
        assert_eq!(rows(None, measure), expected, "measure {measure}");
    }
    assert_eq!(rows(Some(vec![1]), 0), "3");
}

#[test]
fn all_over_roots_that_share_elements_is_refused_with_both_paths() {
    let parents = table(vec![
        ("id", texts(&["EU", "NATO", "West", "FR", "FR", "SE"])),
        ("up", texts(&[".", ".", "NATO", "EU", "West", "EU"])),
    ]);
    let gl = table(vec![("region", texts(&["FR", "SE"])), ("amount", cents(&[1, 2]))]);
    let memory = Memory::default().with("gl", gl).with("regions", parents);
    let dimensions = "region: {table: regions, key: id, parent: up, all: World}";
    assert_eq!(
        failure(&memory, dimensions),
        "dimensions.region: all would count base elements several times: World → EU → FR and World → NATO → West → FR; \
         without all, name the total in consolidated or in the table"
    );
    // Shares of one whole count once.
    let shares = table(vec![
        ("id", texts(&["A", "B", "FR", "FR", "SE"])),
        ("up", texts(&[".", ".", "A", "B", "B"])),
        ("w", Arc::new(Float64Array::from(vec![1.0, 1.0, 0.3, 0.7, 1.0]))),
    ]);
    let gl = table(vec![("region", texts(&["FR", "SE"])), ("amount", cents(&[1, 2]))]);
    let shared = Memory::default().with("gl", gl).with("regions", shares);
    let cube = built(&shared, &dimensions.replace("parent: up", "parent: up, weight: w"));
    assert_eq!(outline(&cube, 0), "A(FR*0.3) B(FR*0.7 SE) FR SE World(A B)");
    let cube = built(&memory, &dimensions.replace("all: World", "consolidated: {World: {EU: 1}}"));
    assert_eq!(outline(&cube, 0), "EU(FR SE) NATO(West) West(FR) FR SE World(EU)");
}

#[test]
fn facts_name_elements_to_the_letter_and_else_the_only_one_in_another_case() {
    let gl = table(vec![("r", texts(&["berlin", "de", "DE", "De"])), ("amount", cents(&[1, 2, 4, 8]))]);
    let t = table(vec![("id", texts(&["Berlin", "de", "DE", "EU"])), ("up", texts(&["eu", "EU", "EU", "."]))]);
    let levels = table(vec![("id", texts(&["Berlin", "de", "DE"])), ("up", texts(&["eu", "EU", "EU"]))]);
    let memory = Memory::default().with("gl", gl).with("t", t).with("l", levels);
    for form in ["table: t, key: id, parent: up", "table: l, levels: [up, id]", "elements: [Berlin, de, DE]"] {
        let cube = |unknown: &str| built(&memory, &format!("R: {{{form}, column: r, unknown: {unknown}}}"));
        let error = failure(&memory, &format!("R: {{{form}, column: r}}"));
        assert!(
            error.contains("'De' is no element; 'de' and 'DE' are, which differ in case alone, in 1 row"),
            "{error}"
        );
        assert!(error.contains("Write one of the names in the facts"), "{error}");
        let aside = cube("aside");
        assert_eq!((cells(&aside).len(), aside.report.rows_aside), (3, 1), "{form}");
        assert!(cells(&aside).contains(&"Berlin = 0.01".to_owned()), "{form}");
        let added = cube("add");
        assert!(cells(&added).contains(&"De = 0.08".to_owned()), "{form}: {:?}", cells(&added));
    }
    let t = table(vec![("id", texts(&["at", "eu", "EU"])), ("up", texts(&["Eu", ".", "."]))]);
    let gl = table(vec![("r", texts(&["at"])), ("amount", cents(&[1]))]);
    let error = failure(&Memory::default().with("gl", gl).with("t", t), "R: {table: t, key: id, parent: up}");
    let told = "the parent 'Eu' of 'at' is the key of no row; 'eu' and 'EU' are, which differ in case alone";
    assert!(error.contains("row 1") && error.contains(told), "{error}");
}

#[test]
fn rows_that_name_elements_in_another_case_are_counted() {
    let told = |dimensions: &str, regions: &[&str]| {
        let amounts: Vec<i64> = (0..regions.len()).map(|at| 1 << at).collect();
        let gl = table(vec![("region", texts(regions)), ("amount", cents(&amounts))]);
        let t = table(vec![
            ("id", texts(&["EU", "Berlin", "Paris", "PARIS"])),
            ("up", texts(&[".", "eu", "Eu", "eu"])),
            ("g", texts(&["G", "G", "G", "G"])),
        ]);
        let built = built(&Memory::default().with("gl", gl).with("t", t), dimensions);
        let text = |one: &warpcube_cube::build::OtherCase| {
            format!(
                "{} {} {}: {}",
                one.dimension,
                one.table.as_deref().unwrap_or("facts"),
                one.rows,
                one.names.join(", ")
            )
        };
        (cells(&built), built.report.other_case.iter().map(text).collect::<Vec<_>>())
    };
    let facts = ["Berlin", "berlin", "Paris", "BERLIN", "berlin", "PARIS"];
    let sums = ["Berlin = 0.27", "Paris = 0.04", "PARIS = 0.32"];
    let of_facts = "Region facts 3: berlin is Berlin, BERLIN is Berlin".to_string();
    for (dimensions, expected) in [
        ("Region: {elements: [Berlin, Paris, PARIS]}", vec![of_facts.clone()]),
        ("Region: {column: region, table: t, levels: [g, id]}", vec![of_facts.clone()]),
        (
            "Region: {column: region, table: t, key: id, parent: up}",
            vec![of_facts.clone(), "Region t 3: eu is EU, Eu is EU".to_string()],
        ),
    ] {
        assert_eq!(told(dimensions, &facts), (sums.map(str::to_string).to_vec(), expected), "{dimensions}");
    }
    // Values of the facts alone are elements of their own; rows kept aside name none.
    assert!(told("Region: {}", &facts).1.is_empty());
    let aside = told("Region: {elements: [Berlin], unknown: aside}", &["berlin", "paris"]);
    assert_eq!(aside.1, ["Region facts 1: berlin is Berlin"]);
}

#[test]
fn blanks_name_no_element() {
    let memory = |regions: &[&str], ids: &[&str]| {
        let gl = table(vec![("region", texts(regions)), ("amount", cents(&vec![1; regions.len()]))]);
        let t = table(vec![("id", texts(ids)), ("up", texts(&vec!["  "; ids.len()]))]);
        Memory::default().with("gl", gl).with("t", t)
    };
    let rows = memory(&["a", "   ", "\u{a0}"], &["a"]);
    for dimension in ["Region: {}", "Region: {elements: [a]}", "Region: {levels: [region]}"] {
        let message = failure(&rows, dimension);
        let told = "NULL or blank text names no element, in 2 rows, first in row 2 (region=   )";
        assert!(message.contains(told), "{dimension}: {message}");
    }
    assert_eq!(cells(&built(&rows, "Region: {unknown: add rest}")), ["a = 0.01", "rest = 0.02"]);
    let parents = "Region: {table: t, key: id, parent: up}";
    assert_eq!(outline(&built(&memory(&["a"], &["a", "b"]), parents), 0), "a b");
    let message = failure(&memory(&["a"], &["a", "  "]), parents);
    assert!(message.contains("row 2 of table 't': the key is NULL, empty or blank; every row names an element"));
}
