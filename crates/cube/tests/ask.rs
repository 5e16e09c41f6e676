//! Queries from text to cross-tab, over a small plan.

use warpcube_cube::aggregate::{CellValue, Progress, Request, aggregate};
use warpcube_cube::ask::{CrossTabAnswer, asked, cross_tab, labels};
use warpcube_cube::facts::{FactMeasure, InputColumn, InputValues, KeyLayout, Loader};
use warpcube_cube::model::{Attribute, CubeModel, Dimension, Measure, Rule, ValueType};
use warpcube_cube::query::{BoundQuery, CubeAxis, Target, bind, parse};

mod plan;

use plan::{facts, model};

fn answer(text: &str) -> CrossTabAnswer {
    let model = model();
    let query = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let bound = bind(&model, &query, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let BoundQuery::CrossTab(table) = bound else { panic!("{text}: {bound:?}") };
    let asked = asked(&model, &table).unwrap();
    let cells = aggregate(&facts(), &asked.area, &asked.measures, &Request::default(), &Progress::new()).unwrap();
    cross_tab(&model, &table, &asked, &cells).unwrap()
}

/// A page as lines of text: heads, then cells, `.` for an empty one.
fn lines(answer: &CrossTabAnswer, page: usize) -> Vec<String> {
    let page = &answer.pages[page];
    let head = |labels: &[warpcube_cube::ask::Label]| {
        let names = labels.iter().map(|label| "  ".repeat(label.indent as usize) + &label.caption);
        names.collect::<Vec<_>>().join("/")
    };
    let cell = |cell: &Option<CellValue>| cell.map_or(".".to_string(), |value| value.to_f64().to_string());
    let heads = page.columns.iter().map(|labels| head(labels)).collect::<Vec<_>>().join(" | ");
    let rows = page.rows.iter().map(|row| {
        let cells = row.cells.iter().map(cell).collect::<Vec<_>>().join(" ");
        format!("{}: {cells}", head(&row.labels))
    });
    [heads].into_iter().chain(rows).collect()
}

fn refusal(text: &str) -> String {
    refusal_of(&model(), text)
}

fn refusal_of(model: &CubeModel, text: &str) -> String {
    bind(model, &parse(text).unwrap(), text).expect_err(text).to_string()
}

/// A cube of one measure.
fn cube_of(dimensions: Vec<Dimension>) -> CubeModel {
    CubeModel::new("c", dimensions, model().measures()[..1].to_vec()).unwrap()
}

/// Names of the elements in rows, and of those that the point names.
fn names_in(model: &CubeModel, text: &str) -> Vec<String> {
    let BoundQuery::CrossTab(table) = bind(model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
    let places = table.point.iter().filter(|place| !place.is_default).map(|place| (place.axis, &place.target));
    let rows = table.rows.iter().flat_map(|set| set.targets.iter().map(|target| (set.axis, target)));
    let name = |(axis, target): (CubeAxis, &Target)| match (axis, target) {
        (CubeAxis::Dimension(at), Target::Element(id)) => model.dimensions()[at].element(*id).name().to_string(),
        other => panic!("{other:?}"),
    };
    rows.chain(places).map(name).collect()
}

#[test]
fn a_variance_report() {
    let report = answer("rows Europe, children(Europe), Japan cols Version where Year");
    assert_eq!(
        lines(&report, 0),
        ["  Actual |   Budget | Variance", "Europe: 180 180 0", "  France: 150 150 0", "  Spain: 30 30 0"],
        "a difference of 0 is filled, and Japan is empty"
    );
    assert_eq!(report.hidden, (1, 0));
    let heading: Vec<(&str, &str, bool)> =
        report.heading.iter().map(|(axis, place, default)| (axis.as_str(), place.as_str(), *default)).collect();
    assert_eq!(heading, [("Month", "Year", false), ("Measures", "Sales", true)]);
}

#[test]
fn defaults_are_totals_and_base_elements() {
    // Variance holds no version at weight 1 in all: the first version stands for the dimension.
    let report = answer("rows Region empty");
    assert_eq!(
        lines(&report, 0),
        ["", "World: 180", "  Europe: 180", "    France: 150", "    Spain: 30", "  Japan: ."]
    );
    assert_eq!(report.heading[0], ("Version".to_string(), "Actual".to_string(), true));
}

#[test]
fn stocks_take_the_last_month() {
    let report = answer("rows Measures * France, Spain cols Jan, Feb, Year where Actual");
    assert_eq!(
        lines(&report, 0),
        [
            "  Jan |   Feb | Year",
            "Sales/France: 100 50 150",
            "Sales/Spain: 30 . 30",
            "Heads/France: 5 6 6",
            "Heads/Spain: 2 . ."
        ]
    );
}

#[test]
fn pages_and_sums() {
    let report = answer("rows France, sum(Spain, Japan) cols Month pages Actual, Budget");
    assert_eq!(report.pages.len(), 2);
    assert_eq!(lines(&report, 1), ["  Jan |   Feb | Year", "France: 90 60 150", "sum of Spain, Japan: 30 . 30"]);
}

#[test]
fn top_and_bottom_rank_rows_and_keep_all_columns() {
    let shown = |text: &str| lines(&answer(text), 0);
    assert_eq!(
        shown("rows leaves(World) cols Jan, Feb where Actual top 2"),
        ["Jan | Feb", "France: 100 50", "Spain: 30 ."]
    );
    assert_eq!(shown("rows leaves(World) cols Jan, Feb where Actual bottom 1"), ["Jan | Feb", "Spain: 30 ."]);
    let by = "rows leaves(World) cols Jan, Feb where Actual bottom 2 by Feb";
    assert_eq!(shown(by), ["Jan | Feb", "France: 100 50", "Spain: 30 ."], "a row without a value is last at both ends");
    // Rows of several axes are one list without indents.
    let report = answer("rows Measures * France, Europe, Spain cols Actual * Jan, Feb top 4 by Jan");
    let ranked = [
        "Actual/Jan | Actual/Feb",
        "Sales/Europe: 130 50",
        "Sales/France: 100 50",
        "Sales/Spain: 30 .",
        "Heads/Europe: 7 6",
    ];
    assert_eq!(lines(&report, 0), ranked);
    assert_eq!((report.hidden, report.rows_cut), ((0, 0), 2));
    // Each page has rows of its own.
    let paged = answer("rows leaves(World) cols Jan, Feb pages Actual, Budget top 1 by Feb");
    assert_eq!(paged.pages.len(), 2);
    assert_eq!(lines(&paged, 1), ["Jan | Feb", "France: 90 60"]);
    assert_eq!((paged.hidden, paged.rows_cut), ((1, 0), 1));
    // Equal rows stand as the query has them; those of no value are last.
    assert_eq!(
        shown("rows Spain, Japan, France cols Variance where Year top 3"),
        ["Variance", "Spain: 0", "France: 0"]
    );
    let empty = "rows Japan, Spain, France cols Actual where Year bottom 3 empty";
    assert_eq!(shown(empty), ["Actual", "Spain: 30", "France: 150", "Japan: ."]);
    // The first column that is shown ranks where none is named; the columns are those of the query without top.
    assert_eq!(shown("rows Spain, France cols Feb, Jan where Actual top 1"), ["Feb | Jan", "France: 50 100"]);
    assert_eq!(shown("rows Japan, Spain cols Feb, Jan where Actual top 1"), ["Jan", "Spain: 30"]);
}

#[test]
fn top_that_ranks_nothing_is_refused() {
    let no_rows = "top and bottom keep rows, and the query has none: name their elements with rows";
    assert_eq!(refusal("cols Region where Actual top 2"), format!("column 26: {no_rows}"));
    assert_eq!(refusal("rows Region bottom 0"), "column 13: top and bottom keep one row at least");
    let no_column = "no column has this; by names one of the columns of the query: add it to cols";
    assert_eq!(refusal("rows Region cols Jan top 2 by Feb"), format!("column 31: {no_column}"));
    assert_eq!(refusal("rows Region cols Jan top 2 by France"), format!("column 31: {no_column}"));
    assert_eq!(
        refusal("rows Region cols Jan, Feb top 2 by Feb, Jan"),
        "column 41: dimension Month stands here a second time"
    );
    assert_eq!(
        lines(&answer("rows France, Spain cols Jan where Actual top 1 by Jan, Actual"), 0),
        ["Jan", "France: 100"]
    );
}

#[test]
fn names_that_do_not_bind_are_told() {
    assert_eq!(refusal("rows Frence"), "column 6: no dimension has an element Frence; near it: Region:France");
    assert_eq!(
        refusal("rows France, Jan"),
        "column 14: this is of dimension Month, and the set of Region; sets are joined by *"
    );
    assert_eq!(refusal("rows France cols Spain"), "column 18: dimension Region stands here a second time");
    assert_eq!(refusal("rows level(France, 0)"), "column 12: France is no dimension; level(dimension, number)");
    assert_eq!(
        refusal("rows Jan where Region"),
        "column 16: a dimension stands for all of its elements, and a point has one of each: name it"
    );
    assert_eq!(refusal("rows sum(Sales, Heads)"), "column 6: measures are not summed");
    assert_eq!(refusal("rows Spain..France"), "column 6: France stands before Spain in Region");
    assert_eq!(refusal("rows Nowhere:France"), "column 6: no dimension Nowhere");
    assert!(refusal("rows Region with size > 3").starts_with("column 6: dimension Region has no attribute size"));
}

#[test]
fn rows_stand_below_what_they_are_part_of() {
    let heads = |text: &str| {
        let heads = lines(&answer(text), 0).into_iter().skip(1);
        heads.map(|line| line.split(':').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        heads("rows World, Europe, France, Spain, Japan empty"),
        ["World", "  Europe", "    France", "    Spain", "  Japan"]
    );
    // Japan is a base element beside Europe: its level is that of France, its parent is not.
    assert_eq!(heads("rows Europe, Japan, France empty"), ["Europe", "Japan", "France"]);
    assert_eq!(
        heads("rows France, Spain, Europe, Japan, World empty"),
        ["    France", "    Spain", "  Europe", "  Japan", "World"]
    );
    // A total with a part on its other side has none that look like all of it.
    assert_eq!(heads("rows France, Europe, Spain empty"), ["France", "Europe", "Spain"]);
    assert_eq!(
        heads("rows World, Europe, Spain, Japan, France empty"),
        ["World", "  Europe", "    Spain", "  Japan", "  France"]
    );
    assert_eq!(heads("rows France, Europe, children(Europe) empty"), ["France", "Europe", "  France", "  Spain"]);
}

#[test]
fn a_name_of_both_is_the_dimension_in_sets_and_the_element_elsewhere() {
    let k = Dimension::from_lists("k", &["a", "b"], &[("K", &[("a", 1.0), ("b", 1.0)])]).unwrap();
    let other = Dimension::from_lists("other", &["k2"], &[]).unwrap();
    let model = cube_of(vec![k, other]);
    let names = |text: &str| names_in(&model, text);
    assert_eq!(names("rows k"), ["a", "b", "K"]);
    assert_eq!(names("rows level(k, 0)"), ["a", "b"]);
    assert_eq!(names("rows k:k, children(k)"), ["K", "a", "b"]);
    assert_eq!(names("rows other where k"), ["k2", "K"]);
}

#[test]
fn ranges_and_levels_below_an_element_bind() {
    let names = |text: &str| names_in(&model(), text);
    assert_eq!(names("rows France..Japan"), ["France", "Spain", "Japan"]);
    assert_eq!(names("rows Spain..World"), ["Spain", "Japan", "World"]);
    assert_eq!(names("rows children(World, 1)"), ["Europe", "Japan"]);
    assert_eq!(names("rows children(World, 2)"), ["France", "Spain"]);
    assert_eq!(names("rows descendants(World, 1)"), ["Europe", "Japan"]);
    let mut all = names("rows descendants(World, 2)");
    assert_eq!(names("rows descendants(World)"), all);
    all.sort();
    assert_eq!(all, ["Europe", "France", "Japan", "Spain"]);
    assert_eq!(refusal("rows France..Jan"), "column 6: the two ends of a range are of one dimension");
}

#[test]
fn a_name_of_several_dimensions_is_refused_with_names_that_parse() {
    let of = |name: &str| Dimension::from_lists(name, &["north", "far west"], &[]).unwrap();
    let model = cube_of(vec![of("from"), of("to town")]);
    let refused = |text: &str| refusal_of(&model, text);
    assert_eq!(refused("rows north"), "column 6: north is several elements: from:north, \"to town\":north");
    let quoted = "column 6: far west is several elements: from:\"far west\", \"to town\":\"far west\"";
    assert_eq!(refused("rows \"far west\""), quoted);
    assert_eq!(names_in(&model, "rows from:north where \"to town\":\"far west\""), ["north", "far west"]);
    assert!(refused("rows nort").ends_with("near it: from:north, \"to town\":north"), "{}", refused("rows nort"));
}

#[test]
fn filters_compare_values_of_one_kind() {
    let mut region = Dimension::from_lists("Region", &["a", "b", "c", "d"], &[]).unwrap();
    for (name, code, size) in [("a", "007", 7.0), ("b", "7", 8.5), ("c", "x", 10.0)] {
        let id = region.find(name).unwrap();
        region.set_attribute(id, "code", Attribute::Text(code.to_string())).unwrap();
        region.set_attribute(id, "size", Attribute::Number(size)).unwrap();
    }
    let model = cube_of(vec![region]);
    let names = |filter: &str| names_in(&model, &format!("rows Region with {filter}"));
    assert_eq!(names("code = x"), ["c"]);
    assert_eq!(names("code = \"x\""), ["c"]);
    assert_eq!(names("code <> x"), ["a", "b"], "an element without the attribute is never kept");
    assert_eq!(names("code = 007"), ["a"], "the text of a number is kept");
    assert_eq!(names("code = 7"), ["b"]);
    assert_eq!(names("code <= 7"), ["a", "b"]);
    assert_eq!(names("size <= 8.5"), ["a", "b"]);
    assert_eq!(names("size < 8.50"), ["a"]);
    assert_eq!(names("size <> 7"), ["b", "c"]);
    assert_eq!(names("size > 9"), ["c"], "numbers compare as numbers");
    for literal in ["large", "\"7\""] {
        let text = literal.trim_matches('"');
        let expected =
            format!("column 6: the attribute size holds numbers: it is compared with one, not with {text:?}");
        assert_eq!(refusal_of(&model, &format!("rows Region with size = {literal}")), expected);
    }
}

#[test]
fn a_distance_begins_at_a_base_element() {
    assert_eq!(
        refusal("nearest 1 to Actual, Europe, Jan"),
        "column 22: Europe is no base element of Region, and a distance begins at one: name it"
    );
    assert_eq!(
        refusal("nearest 1 to Actual, Jan"),
        "column 25: World (default) is no base element of Region, and a distance begins at one: name it"
    );
    assert_eq!(
        refusal("nearest 1 to sum(Japan, Spain), Jan"),
        "column 14: a sum over Region has no position: name a base element"
    );
    let text = "nearest 1 to France, Jan";
    assert!(bind(&model(), &parse(text).unwrap(), text).is_ok(), "Version has a base element as its default");
}

#[test]
fn heads_of_one_axis_differ() {
    let long =
        "rows sum(France, Spain, Japan, World), sum(France, Spain, Japan, Europe), sum(France, Spain) where Actual";
    let heads: Vec<String> = lines(&answer(long), 0).into_iter().skip(1).collect();
    assert_eq!(
        heads,
        [
            "sum of France, Spain, Japan, World: 360",
            "sum of France, Spain, Japan, Europe: 360",
            "sum of France, Spain: 180"
        ]
    );
    let one = lines(&answer("rows sum(France, Spain, Japan, World) where Actual"), 0);
    assert_eq!(one[1], "sum of France, Spain, Japan and 1 more: 360");
    let mut town = Dimension::from_lists("Town", &["A/1", "B/1", "x", "y", "z"], &[]).unwrap();
    for (name, caption) in [("A/1", "1"), ("B/1", "1"), ("x", "Springfield"), ("y", "Springfield"), ("z", "Zell")] {
        let id = town.find(name).unwrap();
        town.set_caption(id, Some(caption)).unwrap();
    }
    let model = cube_of(vec![town]);
    let captions = |text: &str| {
        let BoundQuery::CrossTab(table) = bind(&model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
        labels(&model, &table.rows[0]).into_iter().map(|label| label.caption).collect::<Vec<_>>()
    };
    assert_eq!(captions("rows Town"), ["A/1", "B/1", "Springfield (x)", "Springfield (y)", "Zell"]);
    assert_eq!(captions("rows \"A/1\", z, z"), ["1", "Zell", "Zell"]);
}

#[test]
fn sparse_areas_show_filled_rows_of_filled_pages() {
    let value = ValueType::Decimal { scale: 0 };
    let measures = vec![Measure { name: "v".to_string(), rule: Rule::Sum, value, format: None, over: None }];
    let names: Vec<String> = (0..2_000).map(|number| format!("e{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let dimensions = ["a", "b", "c"].map(|name| Dimension::from_lists(name, &names, &[]).unwrap());
    let model = CubeModel::new("c", dimensions.to_vec(), measures).unwrap();
    let mut loader =
        Loader::new(KeyLayout::for_sizes(&[2_000; 3]).unwrap(), vec![FactMeasure::new("v", Rule::Sum, value)]);
    let column = InputColumn { values: InputValues::Decimals(&[1, 2, 3]), filled: None };
    loader.append(&[&[1_999, 7, 7], &[5, 0, 5], &[3, 1_999, 4]], &[column]).unwrap();
    let facts = loader.finish(4).unwrap();
    let text = "rows a * b cols c";
    let shown = |text: &str| {
        let BoundQuery::CrossTab(table) = bind(&model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
        let asked = asked(&model, &table).unwrap();
        let request = Request { targets_max: u64::MAX, ..Request::default() };
        let cells = aggregate(&facts, &asked.area, &asked.measures, &request, &Progress::new()).unwrap();
        cross_tab(&model, &table, &asked, &cells).unwrap()
    };
    // Eight billion places, of which a walk through each would not end.
    let report = shown(text);
    let expected = ["e3 | e4 | e1999", "e7/e0: . . 2", "e7/e5: . 3 .", "e1999/e5: 1 . ."];
    assert_eq!(lines(&report, 0), expected);
    assert_eq!(report.hidden, (4_000_000 - 3, 2_000 - 3));
    let paged = shown("pages a rows b cols c");
    assert_eq!(paged.pages.len(), 2);
    assert_eq!(lines(&paged, 0), ["e4 | e1999", "e0: . 2", "e5: 3 ."]);
    assert_eq!(paged.hidden, (2_000 - 2, 2_000 - 3), "rows and columns that no page shows");
    let top = shown("rows a * b cols c top 2");
    assert_eq!(lines(&top, 0), ["e3 | e4 | e1999", "e1999/e5: 1 . .", "e7/e0: . . 2"]);
    assert_eq!((top.hidden, top.rows_cut), ((4_000_000 - 3, 2_000 - 3), 1));
}

/// A dimension whose names and captions differ in case alone.
fn of_cases() -> CubeModel {
    let mut dimension = Dimension::from_lists("D", &["A", "A-a", "B-b", "C-b", "x"], &[]).unwrap();
    for (name, caption) in [("A-a", "a"), ("B-b", "b"), ("C-b", "b"), ("x", "B")] {
        let id = dimension.find_key(name).unwrap();
        dimension.set_caption(id, Some(caption)).unwrap();
    }
    let other = Dimension::from_lists("E", &["X", "y"], &[]).unwrap();
    cube_of(vec![dimension, other])
}

#[test]
fn names_to_the_letter_win() {
    let model = of_cases();
    assert_eq!(names_in(&model, "rows a, A, D:a"), ["A-a", "A", "A-a"]);
    assert_eq!(names_in(&model, "rows B"), ["x"]);
    assert_eq!(names_in(&model, "rows x"), ["x"]);
    assert_eq!(names_in(&model, "rows X"), ["X"], "of two dimensions the one that writes it so");
    assert_eq!(refusal_of(&model, "rows b"), "column 6: b is several elements: D:B-b, D:C-b");
    assert_eq!(names_in(&model, "rows Y"), ["y"], "one name is found without regard to case");
}

#[test]
fn headings_tell_elements_apart() {
    let model = of_cases();
    let facts = {
        let measure = FactMeasure::new("v", Rule::Sum, ValueType::Decimal { scale: 0 });
        let mut loader = Loader::new(model.layout().clone(), vec![measure]);
        let column = InputColumn { values: InputValues::Decimals(&[1, 2]), filled: None };
        loader.append(&[&[2, 3], &[0, 0]], &[column]).unwrap();
        loader.finish(4).unwrap()
    };
    let heading = |text: &str| {
        let BoundQuery::CrossTab(table) = bind(&model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
        let asked = asked(&model, &table).unwrap();
        let cells = aggregate(&facts, &asked.area, &asked.measures, &Request::default(), &Progress::new()).unwrap();
        cross_tab(&model, &table, &asked, &cells).unwrap().heading[0].1.clone()
    };
    assert_eq!(heading("rows E where \"B-b\""), "B-b");
    assert_eq!(heading("rows E where \"C-b\""), "C-b");
    assert_eq!(heading("rows E where x"), "B");
    assert_eq!(heading("rows E where sum(\"B-b\", x)"), "sum of B-b, B");
}

#[test]
fn cross_tabs_that_are_too_large_are_refused() {
    let names: Vec<String> = (0..4_000).map(|number| format!("e{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let model = cube_of(["a", "b"].map(|name| Dimension::from_lists(name, &names, &[]).unwrap()).to_vec());
    let measure = FactMeasure::new("v", Rule::Sum, ValueType::Decimal { scale: 0 });
    let mut loader = Loader::new(KeyLayout::for_sizes(&[4_000; 2]).unwrap(), vec![measure]);
    let (all, values): (Vec<u32>, Vec<i64>) = (0..4_000).map(|at| (at, 1)).unzip();
    let column = InputColumn { values: InputValues::Decimals(&values), filled: None };
    loader.append(&[&all, &all], &[column]).unwrap();
    let facts = loader.finish(64).unwrap();
    let refused = |text: &str| {
        let BoundQuery::CrossTab(table) = bind(&model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
        let asked = asked(&model, &table).unwrap();
        let cells = aggregate(&facts, &asked.area, &asked.measures, &Request::default(), &Progress::new()).unwrap();
        cross_tab(&model, &table, &asked, &cells).map(|shown| shown.pages.len()).map_err(|error| error.to_string())
    };
    // A filled diagonal fills each row and each column.
    for text in ["rows a cols b", "rows a cols b empty"] {
        let error = refused(text).unwrap_err();
        assert!(error.starts_with("the cross-tab shows 16000000 cells, at most 10000000: "), "{error}");
    }
    assert_eq!(refused("rows a"), Ok(1));
}

#[test]
fn measures_are_no_elements() {
    let model = model();
    let count = |text: &str| {
        let BoundQuery::CrossTab(table) = bind(&model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
        table.rows[0].targets.len()
    };
    assert_eq!((count("rows leaves(Measures)"), count("rows level(Measures, 0)")), (2, 2));
    assert_eq!(refusal("rows level(Measures, 1)"), "column 12: measures have level 0 alone");
    assert_eq!(
        refusal("rows children(Measures)"),
        "column 15: Measures are the measures: measures have no elements below them"
    );
    assert_eq!(refusal("rows Sales..Heads"), "column 6: Sales is a measure: measures have no ranges; list them");
}
