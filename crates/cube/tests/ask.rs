//! Queries from text to cross-tab, over a small plan.

use warpcube_cube::aggregate::{CellValue, Progress, Request, aggregate};
use warpcube_cube::ask::{CrossTabAnswer, asked, cross_tab};
use warpcube_cube::model::{CubeModel, Dimension};
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
    cross_tab(&model, &table, &asked, &cells)
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
    let query = parse(text).unwrap();
    bind(&model(), &query, text).unwrap_err().to_string()
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
    assert_eq!(lines(&report, 0), ["", "  France: 150", "  Spain: 30", "  Japan: .", "World: 180", "Europe: 180"]);
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
fn pages_sums_and_extremes() {
    let report = answer("rows France, sum(Spain, Japan) cols Month pages Actual, Budget");
    assert_eq!(report.pages.len(), 2);
    assert_eq!(lines(&report, 1), ["  Jan |   Feb | Year", "France: 90 60 150", "sum of Spain, Japan: 30 . 30"]);
    let top = answer("rows leaves(World) cols Jan, Feb where Actual top 2");
    assert_eq!(lines(&top, 0), ["Jan | Feb", "France: 100 50"]);
    let bottom = answer("rows leaves(World) cols Jan, Feb where Actual bottom 1");
    assert_eq!(lines(&bottom, 0), ["Jan", "Spain: 30"]);
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
}

#[test]
fn a_name_of_both_is_the_dimension_in_sets_and_the_element_elsewhere() {
    let k = Dimension::from_lists("k", &["a", "b"], &[("K", &[("a", 1.0), ("b", 1.0)])]).unwrap();
    let other = Dimension::from_lists("other", &["k2"], &[]).unwrap();
    let model = CubeModel::new("c", vec![k, other], plan::model().measures()[..1].to_vec()).unwrap();
    let names = |text: &str| {
        let BoundQuery::CrossTab(table) = bind(&model, &parse(text).unwrap(), text).unwrap() else { panic!("{text}") };
        let places = table.point.iter().filter(|place| !place.is_default).map(|place| (place.axis, &place.target));
        let rows = table.rows.iter().flat_map(|set| set.targets.iter().map(|target| (set.axis, target)));
        let name = |(axis, target): (CubeAxis, &Target)| match (axis, target) {
            (CubeAxis::Dimension(at), Target::Element(id)) => model.dimensions()[at].element(*id).name().to_string(),
            other => panic!("{other:?}"),
        };
        rows.chain(places).map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("rows k"), ["a", "b", "K"]);
    assert_eq!(names("rows level(k, 0)"), ["a", "b"]);
    assert_eq!(names("rows k:k, children(k)"), ["K", "a", "b"]);
    assert_eq!(names("rows other where k"), ["k2", "K"]);
}
