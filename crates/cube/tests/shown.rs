//! Numbers as they are shown: rests of sums of doubles, formats of elements.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Float64Type;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::answer::{Answer, AskOptions, Cube, CubeError, TableAnswer};
use warpcube_cube::facts::{FactMeasure, InputColumn, InputValues, Loader, Rule, ValueType};
use warpcube_cube::model::{Attribute, CubeModel, DimensionBuilder, ElementId, ElementKind, Measure};
use warpcube_cube::view::cross_tab_text;

fn ask(cube: &Cube, text: &str) -> Result<Answer, CubeError> {
    cube.ask(text, &AskOptions::default(), &Progress::new())
}

/// A cube of doubles: ten rows of 0.1 and one of 1.0, amounts with cents, and large numbers beside small ones.
fn doubles(rule: Rule, formats: &[(usize, &str, &str)]) -> Cube {
    let mut version = DimensionBuilder::new("Version").unwrap();
    let [std, act] = ["Std", "Act"].map(|name| version.add(name, ElementKind::Base).unwrap());
    let dev = version.add("Dev", ElementKind::Consolidated).unwrap();
    version.link(dev, std, 1.0).unwrap();
    version.link(dev, act, -1.0).unwrap();
    let mut item = DimensionBuilder::new("Item").unwrap();
    let names: Vec<String> =
        (0..10).map(|digit| digit.to_string()).chain(["x", "big", "tiny", "p", "q", "r"].map(Into::into)).collect();
    let items: Vec<ElementId> = names.iter().map(|name| item.add(name, ElementKind::Base).unwrap()).collect();
    let digits = item.add("Digits", ElementKind::Consolidated).unwrap();
    items[..10].iter().for_each(|digit| item.link(digits, *digit, 1.0).unwrap());
    let measure = Measure { name: "v".into(), rule, value: ValueType::Double, over: None, format: None };
    let mut dimensions = vec![version.finish().unwrap(), item.finish().unwrap()];
    for (dimension, element, pattern) in formats {
        let id = dimensions[*dimension].find(element).unwrap();
        dimensions[*dimension].set_attribute(id, "number_format", Attribute::Text(pattern.to_string())).unwrap();
    }
    let model = CubeModel::new("c", dimensions, vec![measure]).unwrap();
    let mut rows: Vec<(u32, u32, f64)> = (0..10).map(|digit| (0, digit, 0.1)).collect();
    rows.extend([(1, 0, 1.0), (0, 10, 1.01), (1, 10, 1.005 + 0.005)]);
    rows.extend([(0, 13, 0.1), (0, 14, 0.2), (0, 15, -0.3)]);
    rows.extend([(0, 11, 12_345_678_901.345), (1, 11, 12_345_678_901.0), (0, 12, 3e-9)]);
    let fact = FactMeasure { name: "v".into(), rule, value_type: ValueType::Double };
    let mut loader = Loader::new(model.layout().clone(), vec![fact]);
    let [versions, items]: [Vec<u32>; 2] =
        [rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).collect()];
    let values: Vec<f64> = rows.iter().map(|row| row.2).collect();
    let column = InputColumn { values: InputValues::Doubles(&values), filled: None };
    loader.append(&[&versions, &items], &[column]).unwrap();
    Cube { model, facts: Arc::new(loader.finish(4).unwrap()), texts: Default::default() }
}

#[test]
fn sums_of_doubles_are_shown_without_what_their_terms_do_not_leave() {
    let cube = doubles(Rule::Sum, &[]);
    let table = |query: &str| match ask(&cube, query).unwrap() {
        Answer::Table(table) => table,
        _ => panic!("{query} is no table"),
    };
    let query = "rows Digits, x, big, tiny cols Version";
    let shown = cross_tab_text(&cube.model, &table(query).cross_tab(&cube).unwrap(), None);
    let lines: Vec<&str> = shown.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "Digits                   1               1      0",
            "x                     1.01            1.01      0",
            "big     12,345,678,901.345  12,345,678,901  0.345",
            "tiny                  3e-9                   3e-9",
        ]
    );
    let values = |table: &TableAnswer| {
        let batches: Vec<RecordBatch> = table.long_form(&cube, 100).collect::<Result<_, _>>().unwrap();
        batches[0].column_by_name("value").unwrap().as_primitive::<Float64Type>().values().to_vec()
    };
    let bits = values(&table("rows Digits, x, big, tiny cols Dev"));
    assert!(bits[0] > 5e-17 && bits[1] != 0.0 && bits[2] != 0.345, "the long form keeps the bits: {bits:?}");
    let texts = values(&table("rows Digits, x, big, tiny cols Dev").without_rests(&cube).unwrap());
    assert_eq!(texts, [0.0, 0.0, bits[2], bits[3]], "only rests become 0");
    let Answer::Text(text) = ask(&cube, "explain at Digits, Dev").unwrap() else { panic!("explain is a text") };
    assert!(text.starts_with("v = 0\n"), "{text}");
}

/// A cube of one dimension with a total of all, of rows of doubles by element, and a sum of some of them.
fn of_rows(rule: Rule, names: &[&str], rows: &[(u32, f64)], groups: &[(&str, &[&str])]) -> Cube {
    let mut builder = DimensionBuilder::new("Item").unwrap();
    let ids: Vec<ElementId> = names.iter().map(|name| builder.add(name, ElementKind::Base).unwrap()).collect();
    for (group, parts) in groups {
        let id = builder.add(group, ElementKind::Consolidated).unwrap();
        for part in *parts {
            builder.link(id, ids[names.iter().position(|name| name == part).unwrap()], 1.0).unwrap();
        }
    }
    let measure = Measure { name: "v".into(), rule, value: ValueType::Double, over: None, format: None };
    let model = CubeModel::new("c", vec![builder.finish().unwrap()], vec![measure]).unwrap();
    let fact = FactMeasure { name: "v".into(), rule, value_type: ValueType::Double };
    let mut loader = Loader::new(model.layout().clone(), vec![fact]);
    for (element, value) in rows {
        let column = InputColumn { values: InputValues::Doubles(&[*value]), filled: None };
        loader.append(&[&[*element]], &[column]).unwrap();
    }
    Cube { model, facts: Arc::new(loader.finish(4).unwrap()), texts: Default::default() }
}

#[test]
fn rests_within_one_base_cell_are_shown_as_rests() {
    let rows: Vec<(u32, f64)> =
        (0..10).map(|_| (0, 0.1)).chain([(0, -1.0), (1, 12_345_678_901.345), (1, -12_345_678_901.0)]).collect();
    for (rule, second) in [(Rule::Sum, "0.345"), (Rule::Avg, "0.1725")] {
        let cube = of_rows(rule, &["a", "b"], &rows, &[("T", &["a"])]);
        let table = |query: &str| match ask(&cube, query).unwrap() {
            Answer::Table(table) => table,
            _ => panic!("{query} is no table"),
        };
        let shown = cross_tab_text(&cube.model, &table("rows a, b, T").cross_tab(&cube).unwrap(), None);
        let cells: Vec<&str> = shown.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(cells, ["0", second, "0"], "{rule}: {shown}");
        let values = |batches: Vec<RecordBatch>, name: &str| {
            batches[0].column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec()
        };
        let long = |table: TableAnswer| values(table.long_form(&cube, 9).collect::<Result<_, _>>().unwrap(), "value");
        assert!(long(*table("rows a")).iter().all(|value| *value != 0.0), "programs have the bits");
        assert_eq!(long(table("rows a").without_rests(&cube).unwrap()), [0.0]);
        let Answer::Rows(facts) = ask(&cube, "facts at a").unwrap() else { panic!("no rows") };
        assert!(values(facts.batches(&cube, 9).collect::<Result<_, _>>().unwrap(), "v")[0] != 0.0);
        let facts = facts.without_rests();
        assert_eq!(values(facts.batches(&cube, 9).collect::<Result<_, _>>().unwrap(), "v"), [0.0]);
    }
}

#[test]
fn rows_are_ranked_by_what_is_shown_in_every_form() {
    let rows = [(0, 0.1), (1, 0.2), (2, -0.3), (3, 1e-20), (4, 0.1), (4, 0.2), (5, 0.3)];
    let names = ["A", "B", "C", "D", "two", "one"];
    let cube = of_rows(Rule::Sum, &names, &rows, &[("Z", &["A", "B", "C"]), ("Y", &["A", "B", "C", "D"])]);
    // Z and Y are rests, so that D is more; `one` stands before `two` where the query has it so, as both show 0.3.
    for (query, expected) in [
        ("rows A, B, C, D, Z, Y top 3", ["B", "A", "D"].as_slice()),
        ("rows A, B, C, D, Z, Y bottom 2", &["C", "Z"]),
        ("rows one, two top 1", &["one"]),
        ("rows two, one bottom 1", &["two"]),
    ] {
        let Answer::Table(table) = ask(&cube, query).unwrap() else { panic!("{query} is no table") };
        let shown = table.cross_tab(&cube).unwrap();
        let heads: Vec<&str> = shown.pages[0].rows.iter().map(|row| row.labels[0].caption.as_str()).collect();
        assert_eq!(heads, expected, "{query}");
        let forms = [(*table).clone(), table.without_rests(&cube).unwrap()];
        for form in forms {
            let batches: Vec<RecordBatch> = form.long_form(&cube, 9).collect::<Result<_, _>>().unwrap();
            let names = batches[0].column_by_name("Item").unwrap().as_string::<i32>();
            assert_eq!(names.iter().flatten().collect::<Vec<_>>(), expected, "{query}");
        }
    }
}

#[test]
fn averages_of_doubles_have_rests_too() {
    let cube = doubles(Rule::Avg, &[]);
    let Answer::Table(table) = ask(&cube, "rows sum(p, q, r), q cols Std").unwrap() else { panic!("no table") };
    let shown = cross_tab_text(&cube.model, &table.cross_tab(&cube).unwrap(), None);
    assert!(shown.contains("sum of p, q, r    0\n") && shown.contains("q               0.2"), "{shown}");
}

#[test]
fn elements_have_formats_of_their_own() {
    let cube = doubles(Rule::Sum, &[(1, "x", "0.0 %"), (0, "Act", "0.000;(0.000)"), (1, "tiny", "no format")]);
    let shown = |query: &str| {
        let Answer::Table(table) = ask(&cube, query).unwrap() else { panic!("{query} is no table") };
        cross_tab_text(&cube.model, &table.cross_tab(&cube).unwrap(), None)
    };
    let lines = shown("rows Digits, x, tiny cols Version");
    let lines: Vec<&str> = lines.lines().skip(2).collect();
    let expected =
        ["Digits        1    1.000      0", "x       101.0 %  101.0 %  0.0 %", "tiny       3e-9            3e-9"];
    assert_eq!(lines, expected, "a row's format counts before a column's");
    assert!(shown("rows Std where x").contains("101.0 %"), "the heading's element has one");
    assert!(shown("rows Digits where Act").contains("1.000"));
}
