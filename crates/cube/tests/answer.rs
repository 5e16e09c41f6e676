//! Answers of a cube: text, long form, base cells, explanations, errors.

mod plan;
mod printed;

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use warpcube_arrays::random::Random;
use warpcube_column::Residency;
use warpcube_cube::aggregate::{Area, Cells, Decision, Place, Progress};
use warpcube_cube::answer::{Aggregator, Answer, AskOptions, Cube, CubeError, SourceCell, TableAnswer, long_schema};
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm, FactsSource, PlaceTimes, ResidentFacts};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType};
use warpcube_cube::model::{CubeModel, Dimension, DimensionBuilder, ElementId, ElementKind, Measure};
use warpcube_cube::query::random_cross_tab;
use warpcube_cube::view::cross_tab_text;
use warpcube_gpu::{Device, EmulatorOptions};

use printed::printed;

fn cube() -> Cube {
    Cube { model: plan::model(), facts: Arc::new(plan::facts()), texts: Default::default() }
}

fn ask(cube: &Cube, text: &str) -> Result<Answer, CubeError> {
    cube.ask(text, &AskOptions::default(), &Progress::new())
}

fn text(query: &str, width: Option<usize>) -> String {
    let cube = cube();
    let Answer::Table(table) = ask(&cube, query).unwrap() else { panic!("{query} is no table") };
    cross_tab_text(&cube.model, &table.cross_tab(&cube).unwrap(), width)
}

fn long(cube: &Cube, query: &str) -> RecordBatch {
    let Answer::Table(table) = ask(cube, query).unwrap() else { panic!("{query} is no table") };
    let batch = whole(cube, &table);
    assert_eq!(batch.schema(), long_schema(cube, &table.table));
    batch
}

/// All rows of an answer, made three at a time.
fn whole(cube: &Cube, table: &TableAnswer) -> RecordBatch {
    let cells = table.long_form(cube, 3);
    let schema = cells.schema();
    let batches: Vec<RecordBatch> = cells.collect::<Result<_, _>>().unwrap();
    assert!(batches.iter().rev().skip(1).all(|batch| batch.num_rows() == 3));
    concat_batches(&schema, &batches).unwrap()
}

#[test]
fn a_cross_tab_is_aligned_and_indented() {
    let shown = text("rows Europe, children(Europe), Japan cols Version where Year", None);
    let expected = "\
Month: Year · Measures: Sales (default)

          Actual  Budget  Variance
──────────────────────────────────
Europe       180     180         0
  France     150     150         0
  Spain       30      30         0

1 row without a value hidden (the option `empty` shows all)
";
    assert_eq!(shown, expected);
}

#[test]
fn several_axes_repeat_their_heads_once() {
    let shown = text("rows Measures * France, Spain cols Version:Actual, Budget * Jan, Feb", None);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines,
        [
            "               Actual    Budget",
            "               Jan  Feb  Jan  Feb",
            "─────────────────────────────────",
            "Sales  France  100   50   90   60",
            "       Spain    30        30",
            "Heads  France    5    6    5    5",
            "       Spain     2         2",
        ]
    );
}

#[test]
fn narrow_terminals_get_blocks_of_columns() {
    let shown = text("rows France cols Jan, Feb, Year where Actual", Some(18));
    let lines: Vec<&str> = shown.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "        Jan  Feb",
            "────────────────",
            "France  100   50",
            "",
            "        Year",
            "────────────",
            "France   150"
        ]
    );
}

#[test]
fn nothing_filled_is_said() {
    assert!(text("rows Japan cols Version", None).contains("No cell of it is filled."));
}

#[test]
fn long_form_has_a_row_for_each_filled_cell() {
    let cube = cube();
    let batch = long(&cube, "rows World, France cols Variance, Actual where Year, Sales");
    assert_eq!(
        printed(&batch),
        [
            "Version Region Month measure value text",
            "Variance World Year Sales 0",
            "Actual World Year Sales 180",
            "Variance France Year Sales 0",
            "Actual France Year Sales 150",
        ]
    );
    let top = long(&cube, "rows leaves(World) cols Jan, Feb where Actual bottom 2");
    assert_eq!(
        printed(&top)[1..],
        ["Actual Spain Jan Sales 30", "Actual France Jan Sales 100", "Actual France Feb Sales 50"]
    );
    assert_eq!(long(&cube, "rows Japan cols Month empty").num_rows(), 3);
    let empty = long(&cube, "rows Japan, Spain cols Feb, Jan where Actual top 1 by Jan empty");
    assert_eq!(printed(&empty)[1..], ["Actual Spain Feb Sales", "Actual Spain Jan Sales 30"]);
}

/// A hundred million cells, of which the first batch is taken: rows that are made at once would take gigabytes.
#[test]
fn empty_cells_of_a_large_area_are_made_batch_by_batch() {
    let names: Vec<String> = (0..10_000).map(|number| format!("e{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let dimension = |name| Dimension::from_lists(name, &names, &[]).unwrap();
    let measure = Measure { over: None, ..plan::model().measures()[0].clone() };
    let model = CubeModel::new("c", vec![dimension("A"), dimension("B")], vec![measure]).unwrap();
    let measures = vec![FactMeasure::new("Sales", Rule::Sum, ValueType::Decimal { scale: 0 })];
    let mut loader = Loader::new(model.layout().clone(), measures);
    let input = InputColumn { values: InputValues::Decimals(&[7, 9]), filled: None };
    loader.append(&[&[0, 9_999], &[2, 9_999]], &[input]).unwrap();
    let cube = Cube { model, facts: Arc::new(loader.finish(64).unwrap()), texts: Default::default() };
    let Answer::Table(table) = ask(&cube, "rows A cols B empty").unwrap() else { panic!("no table") };
    let mut cells = table.long_form(&cube, 4);
    let first = cells.next().unwrap().unwrap();
    assert_eq!(printed(&first)[1..], ["e0 e0 Sales", "e0 e1 Sales", "e0 e2 Sales 7", "e0 e3 Sales"]);
}

#[test]
fn texts_are_counted_below_a_cross_tab() {
    let mut cube = cube();
    let shown = |cube: &Cube, query: &str| {
        let Answer::Table(table) = ask(cube, query).unwrap() else { panic!("{query} is no table") };
        cross_tab_text(&cube.model, &table.cross_tab(cube).unwrap(), None)
    };
    // Japan has no number, France has one.
    for (region, text) in [(2, "closed"), (0, "open")] {
        cube.texts.insert([0, region, 0].map(ElementId::new).to_vec(), text.to_string());
    }
    let none = shown(&cube, "rows Japan where Jan, Actual");
    assert!(none.contains("\nNo cell of it has a number.\n"), "{none}");
    assert!(none.ends_with("\n1 text at these cells: --format csv shows texts\n"), "{none}");
    let both = shown(&cube, "rows France, Japan where Jan, Actual");
    assert!(both.ends_with("\n2 texts at these cells: --format csv shows texts\n"), "{both}");
    assert!(!shown(&cube, "rows France, Japan where Feb, Actual").contains("text"));
}

/// A cube of a dimension `k` with an element, and measures of one value each.
fn of_measures(measures: &[(&str, Rule, ValueType, i64)]) -> Cube {
    let k = Dimension::from_lists("k", &["a"], &[]).unwrap();
    let measure = |(name, rule, value, _): &(&str, Rule, ValueType, i64)| Measure {
        name: name.to_string(),
        rule: *rule,
        value: *value,
        format: None,
        over: None,
    };
    let of_facts = measures.iter().map(|(name, rule, value, _)| FactMeasure::new(name, *rule, *value)).collect();
    let mut loader = Loader::new(KeyLayout::for_sizes(&[1]).unwrap(), of_facts);
    let (decimals, doubles): (Vec<[i64; 1]>, Vec<[f64; 1]>) =
        measures.iter().map(|(.., units)| ([*units], [*units as f64])).unzip();
    let values = measures.iter().zip(decimals.iter().zip(&doubles));
    let columns = values.map(|((_, rule, value, _), (decimal, double))| match (rule, value) {
        (Rule::Count, _) => InputColumn { values: InputValues::Rows, filled: None },
        (_, ValueType::Double) => InputColumn { values: InputValues::Doubles(double), filled: None },
        _ => InputColumn { values: InputValues::Decimals(decimal), filled: None },
    });
    loader.append(&[&[0]], &columns.collect::<Vec<_>>()).unwrap();
    let model = CubeModel::new("c", vec![k], measures.iter().map(measure).collect()).unwrap();
    Cube { model, facts: Arc::new(loader.finish(4).unwrap()), texts: Default::default() }
}

#[test]
fn decimals_keep_their_digits_beside_doubles() {
    let decimal = |scale| ValueType::Decimal { scale };
    let odd = 9_007_199_254_740_993;
    let cube = of_measures(&[
        ("X", Rule::Sum, decimal(0), odd),
        ("M", Rule::Avg, decimal(0), odd),
        ("N", Rule::Count, decimal(0), 0),
        ("P", Rule::Sum, decimal(2), 150),
        ("D", Rule::Max, ValueType::Double, 3),
    ]);
    let rows = |query: &str| printed(&long(&cube, query));
    assert_eq!(rows("where X"), ["k measure value text", "a X 9007199254740993"]);
    assert_eq!(rows("cols N, P"), ["k measure value text", "a N 1.00", "a P 1.50"]);
    assert_eq!(rows("cols N, X"), ["k measure value text", "a N 1", "a X 9007199254740993"]);
    assert_eq!(rows("cols M, D"), ["k measure value text", "a M 9007199254740992.0", "a D 3.0"]);
    assert_eq!(
        rows("cols X, M, N"),
        [
            "k measure value text decimal",
            "a X 9007199254740992.0 9007199254740993",
            "a M 9007199254740992.0",
            "a N 1.0 1"
        ]
    );
}

#[test]
fn rows_of_several_measures_are_ranked_without_rounding() {
    let decimal = |scale| ValueType::Decimal { scale };
    let even = 9_007_199_254_740_992;
    let cube = of_measures(&[
        ("X", Rule::Sum, decimal(0), even),
        ("Y", Rule::Sum, decimal(0), even + 1),
        ("D", Rule::Max, ValueType::Double, even),
        ("Z", Rule::Sum, decimal(2), even * 100 + 1),
    ]);
    for (query, expected) in [
        ("rows X, Y cols k top 1", "Y"),
        ("rows D, Y cols k top 1", "Y"),
        ("rows Y, D cols k bottom 1", "D"),
        ("rows X, Z cols k top 1", "Z"),
        ("rows Z, X cols k bottom 1", "X"),
    ] {
        let Answer::Table(table) = ask(&cube, query).unwrap() else { panic!("{query} is no table") };
        let shown = &table.cross_tab(&cube).unwrap().pages[0];
        assert_eq!(shown.rows.iter().map(|row| row.labels[0].caption.as_str()).collect::<Vec<_>>(), [expected]);
        assert!(printed(&long(&cube, query))[1].starts_with(&format!("a {expected} ")), "{query}");
    }
}

#[test]
fn ranked_rows_are_one_list_with_all_heads() {
    let shown = text("rows Measures * France, Spain cols Actual where Jan top 3", None);
    let lines: Vec<&str> = shown.lines().skip(4).collect();
    let expected =
        ["Sales  France     100", "Sales  Spain       30", "Heads  France       5", "", "1 row of a lower rank hidden"];
    assert_eq!(lines, expected);
}

#[test]
fn texts_stand_at_any_cell() {
    let mut cube = cube();
    let element = |dimension: usize, name: &str| cube.model.dimensions()[dimension].find(name).unwrap();
    let cell = vec![element(0, "Variance"), element(1, "Japan"), element(2, "Year")];
    cube.texts.insert(cell, "not planned".to_string());
    assert_eq!(
        printed(&long(&cube, "rows Japan, Spain cols Variance where Year"))[1..],
        ["Variance Japan Year Sales not planned", "Variance Spain Year Sales 0"]
    );
    assert_eq!(
        printed(&long(&cube, "rows Spain, Japan, Japan cols Measures where Variance, Year"))[1..],
        [
            "Variance Spain Year Sales 0",
            "Variance Japan Year Sales not planned",
            "Variance Japan Year Heads not planned",
            "Variance Japan Year Sales not planned",
            "Variance Japan Year Heads not planned",
        ]
    );
    assert_eq!(long(&cube, "rows Spain, Japan cols Measures where Variance, Year empty").num_rows(), 4);
}

#[test]
fn sums_in_rows_have_names_of_their_own() {
    let rows = printed(&long(&cube(), "rows sum(France, Spain, Japan, World), sum(France, Spain, Japan, Europe)"));
    assert!(rows[1].contains("sum of France, Spain, Japan, World"), "{rows:?}");
    assert!(rows[2].contains("sum of France, Spain, Japan, Europe"), "{rows:?}");
}

#[test]
fn a_dimension_of_texts_stands_at_its_first_element() {
    let mut notes = DimensionBuilder::new("Notes").unwrap();
    for name in ["first", "second"] {
        notes.add(name, ElementKind::Text).unwrap();
    }
    let notes = notes.finish().unwrap();
    let k = Dimension::from_lists("k", &["a"], &[]).unwrap();
    let model = CubeModel::new("c", vec![k, notes], plan::model().measures()[..1].to_vec()).unwrap();
    let element = |dimension: usize, name: &str| model.dimensions()[dimension].find(name).unwrap();
    let texts = [(vec![element(0, "a"), element(1, "first")], "told".to_string())];
    let measure = FactMeasure::new("Sales", Rule::Sum, ValueType::Decimal { scale: 0 });
    let facts = Loader::new(KeyLayout::for_sizes(&[1, 1]).unwrap(), vec![measure]).finish(4).unwrap();
    let cube = Cube { model: model.clone(), facts: Arc::new(facts), texts: texts.into_iter().collect() };
    assert_eq!(printed(&long(&cube, "rows k"))[1..], ["a first Sales told"]);
}

#[test]
fn base_cells_are_those_of_the_measure() {
    let mut cube = cube();
    let value = ValueType::Decimal { scale: 0 };
    let measures = ["Sales", "Heads"].map(|name| FactMeasure::new(name, Rule::Sum, value));
    let mut loader = Loader::new(cube.facts.layout().clone(), measures.to_vec());
    let sales = InputColumn { values: InputValues::Decimals(&[1, 2]), filled: Some(&[true, false]) };
    let heads = InputColumn { values: InputValues::Decimals(&[3, 4]), filled: Some(&[false, true]) };
    loader.append(&[&[0, 0], &[0, 1], &[0, 0]], &[sales, heads]).unwrap();
    cube.facts = Arc::new(loader.finish(4).unwrap());
    let rows = |query: &str| printed(&base_rows(&cube, query)).split_off(1);
    assert_eq!(rows("facts at Actual, World, Year, Sales"), ["Actual France Jan 1.0 1 1"]);
    assert_eq!(rows("facts at Actual, World, Jan, Heads"), ["Actual Spain Jan 1.0 4 1"]);
    assert_eq!(rows("nearest 2 to Actual, France, Jan, Heads"), ["Actual Spain Jan 1 4 1"]);
    assert_eq!(rows("nearest 2 to Actual, France, Jan, Sales"), ["Actual France Jan 0 1 1"]);
}

/// All base cells of an answer, made two at a time.
fn base_rows(cube: &Cube, query: &str) -> RecordBatch {
    let Answer::Rows(rows) = ask(cube, query).unwrap() else { panic!("{query} gives no rows") };
    let batches: Vec<RecordBatch> = rows.batches(cube, 2).collect::<Result<_, _>>().unwrap();
    assert!(batches.iter().rev().skip(1).all(|batch| batch.num_rows() == 2));
    let whole = concat_batches(&rows.schema(cube).unwrap(), &batches).unwrap();
    assert_eq!(whole.num_rows(), rows.len());
    whole
}

#[test]
fn drill_through_lists_base_cells_with_weights() {
    assert_eq!(
        printed(&base_rows(&cube(), "facts at Variance, Europe, Year, Heads")),
        ["Version Region Month weight Heads rows", "Actual France Feb 1.0 6 1", "Budget France Feb -1.0 5 1",]
    );
}

#[test]
fn nearest_cells_come_by_distance() {
    assert_eq!(
        printed(&base_rows(&cube(), "nearest 2 to Actual, Japan, Jan")),
        ["Version Region Month distance Sales rows", "Actual Spain Jan 1 30 1", "Actual France Jan 2 100 1"]
    );
    assert!(ask(&cube(), "nearest 1 to sum(Japan, Spain)").unwrap_err().to_string().contains("has no position"));
}

#[test]
fn an_explanation_names_children_and_the_algorithm() {
    let Answer::Text(text) = ask(&cube(), "explain at Variance, Europe").unwrap() else { panic!("no text") };
    for part in [
        "Sales = 0\n  SUM over 6 of 6 base cells\n",
        "Version: Variance = Actual − Budget; 2 base elements below it\n",
        "Region: Europe = France + Spain; 2 base elements below it\n",
        "Month: Year (default) = Jan + Feb",
        "Algorithm: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn source_rows_belong_to_base_elements() {
    let Answer::Source(source) = ask(&cube(), "source at Actual, Europe, Year").unwrap() else { panic!("no source") };
    assert_eq!(source, SourceCell { bases: vec![Some(vec![0]), Some(vec![0, 1]), None], measure: 0 });
}

fn emulated(cube: &Cube) -> DeviceAggregation {
    let device = Device::emulated(EmulatorOptions::default(), 1 << 28).unwrap();
    let source = FactsSource::new(cube.facts.clone(), "plan", "1");
    DeviceAggregation::new(Arc::new(ResidentFacts::new(Arc::new(Residency::new(device)), source)))
}

#[test]
fn a_device_answers_as_the_cpu_does() {
    let cube = cube();
    let device = emulated(&cube);
    let options = AskOptions { device: Some(&device), ..AskOptions::default() };
    let query = "rows Region cols Version * Measures where Year";
    let Answer::Table(found) = cube.ask(query, &options, &Progress::new()).unwrap() else { panic!("no table") };
    let place = &found.report().decision.place;
    assert!(place.refused.is_none() && place.device.is_some(), "{place:?}");
    assert_eq!(whole(&cube, &found), long(&cube, query));
}

/// A device that leaves areas to the CPU, or takes them by its emulation.
struct Leaving {
    device: DeviceAggregation,
    times: PlaceTimes,
}

impl Aggregator for Leaving {
    fn aggregate(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        named: Option<DeviceAlgorithm>,
        progress: &Progress,
    ) -> Result<Result<Cells, String>, CubeError> {
        self.device.aggregate(facts, area, measures, named, progress)
    }

    fn place(&self, _: &Facts, _: &Area, _: &[usize], cpu: &dyn Fn() -> f64) -> Place {
        assert!(cpu() > 0.0);
        self.times.place(&self.device_name())
    }

    fn forecast(
        &self,
        facts: &Facts,
        area: &Area,
        measures: &[usize],
        progress: &Progress,
    ) -> Result<Result<Decision, String>, CubeError> {
        Aggregator::forecast(&self.device, facts, area, measures, progress)
    }

    fn device_name(&self) -> String {
        self.device.device_name()
    }
}

#[test]
fn estimates_choose_the_place_and_are_told() {
    let cube = cube();
    let mut leaving =
        Leaving { device: emulated(&cube), times: PlaceTimes { cpu: 5.0, device: 1.0, before: 30.0, saved: 2.0 } };
    let query = "rows Region cols Version * Measures where Year";
    let estimated = "the CPU is estimated at 5.00 ms, the device at 1.00 ms";
    for on_device in [false, true] {
        if on_device {
            leaving.times.before = 0.0;
        }
        let options = AskOptions { device: Some(&leaving), ..AskOptions::default() };
        let Answer::Table(found) = cube.ask(query, &options, &Progress::new()).unwrap() else { panic!("no table") };
        assert_eq!(whole(&cube, &found), long(&cube, query));
        let decision = &found.report().decision;
        let place = &decision.place;
        assert_eq!((place.device.is_some(), place.saved_ms), (on_device, if on_device { 0.0 } else { 4.0 }));
        assert!(place.reason.as_ref().unwrap().starts_with(estimated), "{place:?}");
        let outlook = cube.outlook(&found.table, &options, &Progress::new()).unwrap();
        assert_eq!((outlook.algorithm, outlook.place.device.is_some()), (decision.algorithm, on_device));
        assert!(outlook.to_string().contains(estimated), "{outlook}");
        let Answer::Text(text) = cube.ask("explain at France", &options, &Progress::new()).unwrap() else { panic!() };
        assert!(text.contains(&format!("\n  {estimated}")), "{text}");
    }
    let Answer::Table(table) = ask(&cube, query).unwrap() else { panic!("no table") };
    let outlook = cube.outlook(&table.table, &AskOptions::default(), &Progress::new()).unwrap();
    assert_eq!(outlook, table.report().decision);
    let few = AskOptions { targets_max: 5, ..AskOptions::default() };
    let error = cube.outlook(&table.table, &few, &Progress::new()).unwrap_err().to_string();
    assert!(error.starts_with("the area has "), "{error}");
}

#[test]
fn cross_tabs_are_drawn_within_a_limit() {
    let cube = cube();
    let mut random = Random::new(7);
    let (mut largest, mut texts) = (0, HashSet::new());
    for _ in 0..300 {
        let text = random_cross_tab(&cube.model, 20, &mut random);
        let Answer::Table(table) = ask(&cube, &text).unwrap() else { panic!("{text}") };
        let targets = table.report().decision.targets;
        assert!((1..=20).contains(&targets), "{targets}: {text}");
        largest = largest.max(targets);
        texts.insert(text);
    }
    assert!(largest > 10 && texts.len() > 200, "{largest}, {}", texts.len());
    for form in ["children(", "descendants(", "leaves(", "level(", "sum(", " cols ", " pages ", " where ", " * "] {
        assert!(texts.iter().any(|text| text.contains(form)), "{form}");
    }
}

#[test]
fn errors_name_places_cells_and_limits() {
    let cube = cube();
    let error = ask(&cube, "rows Frence").unwrap_err();
    let CubeError::Query { message, excerpt } = &error else { panic!("{error}") };
    assert!(message.starts_with("column 6: no dimension has an element Frence"), "{message}");
    assert!(excerpt.contains("rows Frence"), "{excerpt}");
    let options = AskOptions { targets_max: 5, ..AskOptions::default() };
    let error = cube.ask("rows Region cols Month", &options, &Progress::new()).unwrap_err().to_string();
    assert!(error.starts_with("the area has 15 targets"), "{error}");
    let mut large = cube.clone();
    let value = ValueType::Decimal { scale: 0 };
    let measures = ["Sales", "Heads"].map(|name| FactMeasure::new(name, Rule::Sum, value));
    let mut loader = Loader::new(cube.facts.layout().clone(), measures.to_vec());
    let column = || InputColumn { values: InputValues::Decimals(&[i64::MAX, 1]), filled: None };
    loader.append(&[&[0, 0], &[0, 1], &[0, 0]], &[column(), column()]).unwrap();
    large.facts = Arc::new(loader.finish(4).unwrap());
    assert_eq!(
        ask(&large, "rows Europe cols Jan where Actual").unwrap_err().to_string(),
        "Sales at Actual, Europe, Jan is 9223372036854775808, beyond 9223372036854775807, the largest decimal(0)"
    );
}

/// A cube of one measure over named dimensions of two elements each; the first cell is filled.
fn small(dimensions: &[(&str, [&str; 2])], measure: &str, value: f64) -> Cube {
    let of = |(name, elements): &(&str, [&str; 2])| Dimension::from_lists(name, elements, &[]).unwrap();
    let dimensions: Vec<Dimension> = dimensions.iter().map(of).collect();
    let count = dimensions.len();
    let definition =
        Measure { name: measure.to_string(), rule: Rule::Sum, value: ValueType::Double, format: None, over: None };
    let model = CubeModel::new("c", dimensions, vec![definition]).unwrap();
    let mut loader = Loader::new(model.layout().clone(), vec![FactMeasure::new(measure, Rule::Sum, ValueType::Double)]);
    let coordinates = vec![&[0_u32][..]; count];
    let column = InputColumn { values: InputValues::Doubles(&[value]), filled: None };
    loader.append(&coordinates, &[column]).unwrap();
    Cube { model, facts: Arc::new(loader.finish(4).unwrap()), texts: Default::default() }
}

#[test]
fn the_columns_of_the_long_form_are_fixed() {
    let columns = |cube: &Cube, query: &str| {
        let fields = long(cube, query).schema();
        fields.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
    };
    let imported = small(&[("D", ["a", "b"])], "Value", 1.0);
    assert_eq!(columns(&imported, "rows D"), ["D", "measure", "value", "text"]);
    let odd = small(&[("Value", ["a", "b"]), ("value_", ["c", "d"]), ("TEXT", ["e", "f"])], "v", 1.0);
    assert_eq!(columns(&odd, "rows a"), ["Value__", "value_", "TEXT_", "measure", "value", "text"]);
}

#[test]
fn control_characters_of_names_are_escaped() {
    let cube = small(&[("D\u{7}", ["a\nb", "c"]), ("E", ["\u{1b}[2J", "f"])], "v\u{1b}", 1.0);
    let Answer::Table(table) = ask(&cube, "rows \"D\u{7}\" where \"\u{1b}[2J\"").unwrap() else { panic!() };
    let shown = cross_tab_text(&cube.model, &table.cross_tab(&cube).unwrap(), None);
    assert_eq!(shown.lines().next(), Some("E: \\x1b[2J"));
    assert!(shown.contains("a\\nb  1"), "{shown}");
    let Answer::Text(explained) = ask(&cube, "explain at \"a\nb\"").unwrap() else { panic!() };
    assert!(explained.starts_with("v\\x1b = 1\n"), "{explained}");
    assert!(explained.contains("\nD\\x07: a\\nb\n") && !explained.contains('\u{1b}'), "{explained}");
    assert_eq!(long(&cube, "rows \"D\u{7}\"").schema().field(0).name(), "D\u{7}", "programs get names as they are");
}

#[test]
fn doubles_without_a_format_are_short() {
    let shown = |value: f64| {
        let cube = small(&[("D", ["a", "b"])], "v", value);
        let Answer::Table(table) = ask(&cube, "rows a").unwrap() else { panic!() };
        let text = cross_tab_text(&cube.model, &table.cross_tab(&cube).unwrap(), None);
        text.lines().last().unwrap().trim_start_matches('a').trim().to_string()
    };
    for (value, text) in [
        (1e308, "1e308"),
        (1e-320, "1e-320"),
        (-1.5e20, "-1.5e20"),
        (1.23456789e15, "1.234568e15"),
        (999_999_999_999_999.0, "999,999,999,999,999"),
        (1e-5, "0.00001"),
        (0.0, "0"),
        (2.5, "2.5"),
    ] {
        assert_eq!(shown(value), text);
    }
}
