//! Dimensions and cubes: lookup, levels, parent-child tables, refusals with their messages, sizes at the edges.

use warpcube_cube::error::ModelError;
use warpcube_cube::model::{
    Attribute, Balance, Change, CubeModel, Dimension, DimensionBuilder, ElementId, ElementKind, LevelIndex, Measure,
    ParentRow, Rule, Span, ValueType,
};

/// Children's names with their weights.
type Children<'a> = &'a [(&'a str, f64)];

fn no_facts(_: u32) -> bool {
    false
}

fn accounts() -> Dimension {
    let margin: Children<'_> = &[("Revenue", 1.0), ("Cost", -1.0)];
    Dimension::from_lists("Account", &["Units", "Revenue", "Cost"], &[("Margin", margin)]).unwrap()
}

fn flat(name: &str, count: usize) -> Dimension {
    let mut builder = DimensionBuilder::new(name).unwrap();
    builder.reserve(count);
    for number in 0..count {
        builder.add(&format!("e{number}"), ElementKind::Base).unwrap();
    }
    builder.finish().unwrap()
}

fn amount() -> Measure {
    let value = ValueType::Decimal { scale: 2 };
    Measure { name: "Amount".to_owned(), rule: Rule::Sum, value, format: None, over: None }
}

fn names(dimension: &Dimension, ids: &[ElementId]) -> Vec<String> {
    ids.iter().map(|id| dimension.element(*id).name().to_owned()).collect()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, ModelError>, message: &str) {
    assert_eq!(result.unwrap_err().to_string(), message);
}

#[test]
fn lookup_ignores_case_and_suggests_near_names_alone() {
    let mut dimension = accounts();
    let margin = dimension.find("mARGIN").unwrap();
    dimension.add_alias(margin, "DB1").unwrap();
    dimension.set_caption(margin, Some("Contribution")).unwrap();
    assert_eq!(dimension.find("db1").unwrap(), margin);
    assert_eq!(dimension.find("contribution").unwrap(), margin);
    assert_eq!(dimension.find_key("contribution"), None);
    refused(dimension.find("Revenu"), "dimension 'Account' has no element 'Revenu'; did you mean 'Revenue'?");
    refused(dimension.find("Zebra"), "dimension 'Account' has no element 'Zebra'");
    refused(
        dimension.add_alias(margin, "Cost"),
        "dimension 'Account': the name 'Cost' is taken by 'Cost'; names are unique",
    );
    let cost = dimension.find("Cost").unwrap();
    dimension.set_caption(cost, Some("contribution")).unwrap();
    assert_eq!(dimension.find("Contribution").unwrap(), margin, "a caption to the letter");
    refused(
        dimension.find("CONTRIBUTION"),
        "dimension 'Account': 'CONTRIBUTION' is the caption of several elements: Margin, Cost",
    );
}

#[test]
fn weights_multiply_along_paths_and_add_over_them() {
    let (a, b): (Children<'_>, Children<'_>) = (&[("x", 2.0), ("y", 0.5)], &[("x", -4.0), ("z", 0.0)]);
    let total: Children<'_> = &[("A", 2.0), ("B", 1.0)];
    let dimension = Dimension::from_lists("D", &["x", "y", "z"], &[("T", total), ("A", a), ("B", b)]).unwrap();
    let t = dimension.find("T").unwrap();
    let weights = dimension.base_weights(t).unwrap();
    // x cancels and z hangs on a zero edge: both are below T all the same.
    assert_eq!((weights.bases.as_slice(), weights.weights.as_slice()), (&[0, 1, 2][..], &[0.0, 1.0, 0.0][..]));
    assert!(weights.whole());
    assert_eq!(dimension.base_set(t), [0, 1, 2]);
    assert!(!dimension.base_weights(dimension.find("A").unwrap()).unwrap().whole());
    assert_eq!(names(&dimension, &dimension.descendants(t)), ["A", "x", "y", "B", "z"]);
    assert_eq!(names(&dimension, &dimension.descendants_within(t, 1)), ["A", "B"]);
    assert_eq!(names(&dimension, &dimension.children_at(t, 2)), ["x", "y", "z"]);
    assert!(dimension.children_at(t, 3).is_empty());
    assert_eq!(names(&dimension, &dimension.leaves(t)), ["x", "y", "z"]);
    assert_eq!(names(&dimension, &dimension.ancestors(dimension.find("x").unwrap())), ["A", "B", "T"]);
    assert_eq!((dimension.level(t), dimension.highest_level()), (2, Some(2)));
    assert_eq!(names(&dimension, &dimension.of_level(1)), ["A", "B"]);
    assert_eq!(names(&dimension, dimension.roots()), ["T"]);
    let map = dimension.base_map(&[t, dimension.find("y").unwrap()]).unwrap();
    assert_eq!(map.by_base.row(1), (&[0, 1][..], &[1.0, 1.0][..]));
    assert_eq!(map.by_target.row(1), (&[1][..], &[1.0][..]));
    assert_eq!(map.whole, [true, true]);
    let sum = dimension.base_map_of_sums(&[vec![(t, 1.0), (dimension.find("x").unwrap(), 3.0)]]).unwrap();
    assert_eq!(sum.by_target.row(0), (&[0, 1, 2][..], &[3.0, 1.0, 0.0][..]));
}

#[test]
fn weights_beyond_doubles_are_refused() {
    // Former versions stored such weights.
    let (a, b): (Children<'_>, Children<'_>) = (&[("x", 3.0)], &[("A", 3.0)]);
    let dimension = Dimension::from_lists("D", &["x", "blank"], &[("A", a), ("B", b)]).unwrap();
    let json = CubeModel::new("C", vec![dimension], vec![amount()]).unwrap().to_json().unwrap();
    let json = json.replace("\"weight\":\"3\"", "\"weight\":\"1e200\"").replace("\"blank\"", "\"  \"");
    let former = CubeModel::from_json(&json).unwrap();
    let dimension = &former.dimensions()[0];
    assert!(dimension.find("  ").is_ok(), "and blank names");
    refused(
        dimension.base_weights(dimension.find("B").unwrap()),
        "dimension 'D': the weights below 'B' multiply to more than a double holds",
    );
}

#[test]
fn the_default_element_is_the_root_that_holds_all_at_weight_one() {
    let mut dimension = accounts();
    assert_eq!(names(&dimension, &[dimension.default_element().unwrap()]), ["Units"]);
    let variance: Children<'_> = &[("Actual", 1.0), ("Budget", -1.0)];
    let all: Children<'_> = &[("Actual", 1.0), ("Budget", 1.0)];
    let version = |lists: &[(&str, Children<'_>)]| Dimension::from_lists("V", &["Actual", "Budget"], lists).unwrap();
    let without = version(&[("Variance", variance)]);
    assert_eq!(names(&without, &[without.default_element().unwrap()]), ["Actual"]);
    let with = version(&[("Variance", variance), ("All", all)]);
    assert_eq!(names(&with, &[with.default_element().unwrap()]), ["All"]);
    let cost = dimension.find("Cost").unwrap();
    dimension.set_default(Some(cost)).unwrap();
    assert_eq!(dimension.default_element(), Some(cost));
    dimension.apply(Change::Remove { element: cost }, &no_facts).unwrap();
    assert_eq!(names(&dimension, &[dimension.default_element().unwrap()]), ["Units"]);
}

#[test]
fn levels_skip_nulls_and_repeated_names_become_paths() {
    let rows: Vec<Vec<Option<&str>>> = vec![
        vec![Some("2025"), Some("Q1"), Some("1")],
        vec![Some("2025"), Some("Q1"), Some("2")],
        vec![Some("2026"), Some("Q1"), Some("1")],
        vec![Some("2026"), None, Some("13")],
        vec![None, None, Some("never")],
        vec![None, None, None],
        vec![Some("2025"), Some("Q1"), Some("1")],
    ];
    let levels = ["year", "quarter", "month"];
    let (mut dimension, found) = Dimension::from_levels("Month", &levels, rows.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(
        names(&dimension, dimension.elements()),
        ["2025-Q1-1", "2", "2026-Q1-1", "13", "never", "2025-Q1", "2026-Q1", "2025", "2026"]
    );
    assert_eq!((found[0], found[5]), (found[6], None));
    let first = found[0].unwrap();
    assert_eq!((dimension.element(first).base(), dimension.element(first).caption()), (Some(0), "1"));
    assert_eq!(dimension.level(dimension.find("2026").unwrap()), 2);
    assert_eq!(names(&dimension, &dimension.ancestors(first)), ["2025-Q1", "2025"]);
    assert_eq!(names(&dimension, &dimension.ancestors(found[3].unwrap())), ["2026"]);

    let more = [[Some("2026"), Some("Q1"), Some("2")], [Some("2026"), None, Some("13")]];
    let extended = dimension.extend_levels(more.iter().map(<[_; 3]>::as_slice)).unwrap();
    assert_eq!(extended[1], found[3]);
    assert_eq!(names(&dimension, &[extended[0].unwrap(), found[1].unwrap()]), ["2026-Q1-2", "2"]);
    let index = LevelIndex::new(&dimension, 0);
    assert_eq!(index.find(&more[0]), extended[0]);
    assert_eq!(index.find(&[Some("2026"), Some("Q9"), Some("2")]), None);

    let before = dimension.clone();
    let conflict = [Some("2026"), Some("Q1"), None];
    refused(
        dimension.extend_levels([conflict.as_slice()]),
        "dimension 'Month': 2026 → Q1 ends in NULL levels here, but other rows have elements below it",
    );
    refused(
        dimension.extend_levels([[Some("2026")].as_slice()]),
        "dimension 'Month': a row has 1 level values, hierarchy 'Month' has 3 levels",
    );
    assert_eq!(dimension, before);

    let seasons = [(first, [Some("Winter")]), (found[1].unwrap(), [None]), (found[2].unwrap(), [Some("Winter")])];
    dimension.add_hierarchy("Season", &["season"], seasons.iter().map(|(id, row)| (*id, row.as_slice()))).unwrap();
    let winter = dimension.find("winter").unwrap();
    assert_eq!(dimension.base_set(winter), [0, 2]);
    assert!(dimension.ancestors(first).contains(&winter));
}

#[test]
fn names_that_differ_in_case_alone_are_two_elements() {
    let rows = [[Some("DE")], [Some("de")], [Some("fr")]];
    let made = Dimension::from_levels("Region", &["country"], rows.iter().map(<[_; 1]>::as_slice));
    let (mut dimension, found) = made.unwrap();
    assert_eq!(names(&dimension, dimension.elements()), ["DE", "de", "fr"]);
    let id = |dimension: &Dimension, name: &str| dimension.find(name).unwrap();
    let [upper, lower, fr] = ["DE", "de", "FR"].map(|name| id(&dimension, name));
    assert_eq!([Some(upper), Some(lower), Some(fr)], found[..]);
    let ambiguous = |text: &str, names: &str| {
        format!(
            "dimension 'Region': '{text}' is no element; {names} are, which differ in case alone: write one of them"
        )
    };
    refused(dimension.find("De"), &ambiguous("De", "'DE' and 'de'"));
    assert_eq!((dimension.find_key("De"), dimension.find_key("Fr")), (None, Some(fr)));
    // A name in another case may be an alternative one, also of the same element; a caption to the letter comes first.
    dimension.add_alias(fr, "dE").unwrap();
    assert_eq!(id(&dimension, "dE"), fr);
    refused(dimension.find("De"), &ambiguous("De", "'DE', 'de' and 'dE'"));
    dimension.set_caption(lower, Some("De")).unwrap();
    assert_eq!(id(&dimension, "De"), lower);
    dimension.set_caption(lower, None).unwrap();
    let rename = |element, name: &str| Change::Rename { element, name: name.to_owned() };
    let taken = "dimension 'Region': the name 'de' is taken by 'de'; names are unique";
    refused(dimension.apply(rename(upper, "de"), &no_facts), taken);
    dimension.apply(rename(upper, "De"), &no_facts).unwrap();
    assert_eq!(id(&dimension, "De"), upper);
    dimension.apply(Change::Remove { element: upper }, &no_facts).unwrap();
    refused(dimension.find("DE"), &ambiguous("DE", "'de' and 'dE'"));
    dimension.apply(Change::Remove { element: lower }, &no_facts).unwrap();
    assert_eq!(id(&dimension, "DE"), fr, "one is left");
    dimension.add_alias(fr, "FR").unwrap();
    assert_eq!(id(&dimension, "Fr"), fr, "two names of one element");
    // The stored form keeps both, and lists as well as tables find their own.
    let model = CubeModel::new("c", vec![dimension.clone()], vec![amount()]).unwrap();
    assert_eq!(CubeModel::from_json(&model.to_json().unwrap()).unwrap(), model);
    let row = |key, parent| ParentRow { key, parent, caption: None, weight: 1.0 };
    let rows = [row("EU", None), row("eu", None), row("de", Some("EU")), row("DE", Some("eu"))];
    let table = Dimension::from_parents("Region", &rows).unwrap();
    assert_eq!(names(&table, &table.leaves(id(&table, "eu"))), ["DE"]);
    refused(
        Dimension::from_parents("Region", &[rows[0], rows[1], row("at", Some("Eu"))]),
        &ambiguous("Eu", "'EU' and 'eu'"),
    );
    let table = Dimension::from_parents("Region", &[row("EU", None), row("at", Some("eu"))]).unwrap();
    assert_eq!(names(&table, &table.leaves(id(&table, "EU"))), ["at"], "a parent in another case");
}

#[test]
fn parent_child_tables_take_several_parents_and_unordered_rows() {
    let row = |key, parent, caption| ParentRow { key, parent, caption, weight: 1.0 };
    let rows = [
        row("3", Some("1"), Some("France")),
        row("1", None, Some("Europe")),
        row("4", Some("1"), Some("Spain")),
        row("9", None, Some("Mediterranean")),
        row("4", Some("9"), None),
    ];
    let dimension = Dimension::from_parents("Region", &rows).unwrap();
    assert_eq!(names(&dimension, dimension.elements()), ["3", "1", "4", "9"]);
    assert_eq!(dimension.base_set(dimension.find("europe").unwrap()), [0, 1]);
    assert_eq!(dimension.element(dimension.find("Spain").unwrap()).parents().len(), 2);
    refused(
        Dimension::from_parents("Region", &[row("3", Some("7"), None)]),
        "dimension 'Region': 7 → 3 names an unknown element '7'",
    );
    refused(
        Dimension::from_parents("Region", &[rows[0], rows[1], rows[0]]),
        "dimension 'Region': 1 → 3 is given twice; add the weights up in one entry",
    );
}

#[test]
fn weights_whose_products_or_sums_grow_too_large_are_refused() {
    let cube = |dimension: Dimension| CubeModel::new("C", vec![dimension], vec![amount()]);
    let sums = |lists: &[(&str, Children<'_>)]| cube(Dimension::from_lists("D", &["x", "y"], lists).unwrap());
    let told = |element: &str, sum: &str| {
        format!(
            "dimension 'D': the weights of the base elements below '{element}' add up to {sum} by magnitude, over all \
             paths; the most is 1e15: give its edges smaller weights"
        )
    };
    // Along a path, over the base elements, by magnitude, and over paths that double fifty times.
    sums(&[("A", &[("x", 1e7)]), ("B", &[("A", 1e8)])]).unwrap();
    refused(sums(&[("A", &[("x", 1e8)]), ("B", &[("A", 1e8)]), ("C", &[("B", 1.0)])]), &told("B", "1e16"));
    refused(sums(&[("A", &[("x", 6e14), ("y", -6e14)])]), &told("A", "1.2e15"));
    let mut builder = DimensionBuilder::new("D").unwrap();
    let mut below = builder.add("x", ElementKind::Base).unwrap();
    for level in 0..60 {
        let [left, right, top] = ["l", "r", "t"].map(|side| format!("{side}{level}"));
        let [left, right, top] = [left, right, top].map(|name| builder.add(&name, ElementKind::Consolidated).unwrap());
        for (parent, child) in [(left, below), (right, below), (top, left), (top, right)] {
            builder.link(parent, child, 1.0).unwrap();
        }
        below = top;
    }
    refused(cube(builder.finish().unwrap()), &told("t49", "1.125899906842624e15"));
}

#[test]
fn broken_graphs_are_refused_with_their_path() {
    let (a, b): (Children<'_>, Children<'_>) = (&[("B", 1.0)], &[("A", 1.0)]);
    let build = |lists: &[(&str, Children<'_>)]| Dimension::from_lists("D", &["x"], lists);
    refused(build(&[("A", a), ("B", b)]), "dimension 'D': a cycle of consolidations: A → B → A");
    refused(build(&[("A", &[("A", 1.0)])]), "dimension 'D': a cycle of consolidations: A → A");
    refused(
        build(&[("Alpha", &[("Alphb", 1.0)])]),
        "dimension 'D': Alpha → Alphb names an unknown element 'Alphb'; did you mean 'Alpha'?",
    );
    refused(
        build(&[("A", &[("x", f64::NAN)])]),
        "dimension 'D': the weight of A → x is NaN; a weight is a number from -1e15 to 1e15",
    );
    refused(
        build(&[("A", &[("x", f64::INFINITY)])]),
        "dimension 'D': the weight of A → x is inf; a weight is a number from -1e15 to 1e15",
    );
    refused(build(&[("x", &[])]), "dimension 'D': the name 'x' is taken by 'x'; names are unique");
    refused(
        build(&[("A", &[("x", 1e308)])]),
        "dimension 'D': the weight of A → x is 1e308; a weight is a number from -1e15 to 1e15",
    );
    for blank in ["", "   ", "\u{a0}\t"] {
        refused(
            build(&[(blank, &[])]),
            "a name in dimension 'D' is empty or blank: give it a character that is no blank",
        );
    }
    let mut builder = DimensionBuilder::new("D").unwrap();
    let text = builder.add("note", ElementKind::Text).unwrap();
    let base = builder.add("x", ElementKind::Base).unwrap();
    refused(builder.link(text, base, 1.0), "dimension 'D': 'note' is a text element and cannot hold children");
    refused(
        builder.link(base, text, 1.0),
        "dimension 'D': 'x' is a base element and cannot hold children; add it as consolidated",
    );
}

#[test]
fn long_cycles_are_abbreviated() {
    let mut builder = DimensionBuilder::new("D").unwrap();
    let ids: Vec<_> = (0..100).map(|n| builder.add(&format!("n{n}"), ElementKind::Consolidated).unwrap()).collect();
    for at in 0..100 {
        builder.link(ids[at], ids[(at + 1) % 100], 1.0).unwrap();
    }
    refused(
        builder.finish(),
        "dimension 'D': a cycle of consolidations: n0 → n1 → n2 → n3 → … 93 more … → n97 → n98 → n99 → n0",
    );
}

#[test]
fn live_changes_keep_coordinates_and_report_freed_ones() {
    let mut dimension = accounts();
    let [units, revenue, cost, margin] =
        ["Units", "Revenue", "Cost", "Margin"].map(|name| dimension.find(name).unwrap());
    let change = |dimension: &mut Dimension, change| dimension.apply(change, &|base| base == 1);
    let effect = change(&mut dimension, Change::Remove { element: units }).unwrap();
    assert_eq!((effect.freed_base, dimension.at_base(0)), (Some(0), None));
    let add = Change::Add { name: "Tax".to_owned(), kind: ElementKind::Base, position: Some(0) };
    let tax = change(&mut dimension, add).unwrap().added.unwrap();
    assert_eq!((dimension.element(tax).base(), dimension.position(tax)), (Some(3), 0));
    let link = |parent, child| Change::Link { parent, child, weight: 1.0, place: Some(0) };
    refused(
        change(&mut dimension, link(revenue, tax)),
        "dimension 'Account': 'Revenue' holds facts and cannot become a consolidated element; add an \
         element that consolidates it instead",
    );
    refused(
        change(&mut dimension, link(cost, margin)),
        "dimension 'Account': a cycle of consolidations: Cost → Margin → Cost",
    );
    assert_eq!(change(&mut dimension, link(cost, tax)).unwrap().freed_base, Some(2));
    assert_eq!((dimension.level(margin), dimension.base_set(margin)), (2, vec![1, 3]));
    change(&mut dimension, Change::Move { child: tax, from: cost, to: margin, weight: -0.5 }).unwrap();
    change(&mut dimension, Change::Weigh { parent: margin, child: revenue, weight: 4.0 }).unwrap();
    assert_eq!(dimension.base_weights(margin).unwrap().weights, [4.0, -0.5]);
    refused(
        change(&mut dimension, Change::Unlink { parent: cost, child: tax }),
        "dimension 'Account': 'Tax' is no child of 'Cost'",
    );
    change(&mut dimension, Change::Rename { element: revenue, name: "REVENUE".to_owned() }).unwrap();
    change(&mut dimension, Change::Rename { element: revenue, name: "Sales".to_owned() }).unwrap();
    refused(dimension.find("Revenue"), "dimension 'Account' has no element 'Revenue'");
    refused(
        change(&mut dimension, Change::Rename { element: revenue, name: "Tax".to_owned() }),
        "dimension 'Account': the name 'Tax' is taken by 'Tax'; names are unique",
    );
    refused(
        change(&mut dimension, Change::Remove { element: units }),
        "dimension 'Account' has no element number 0: it was removed or never existed",
    );
}

#[test]
fn attributes_keep_one_kind() {
    let mut dimension = accounts();
    let cost = dimension.find("Cost").unwrap();
    dimension.set_attribute(cost, "Rank", Attribute::Number(2.5)).unwrap();
    assert_eq!(dimension.attribute(cost, "rank"), Some(&Attribute::Number(2.5)));
    refused(
        dimension.set_attribute(cost, "RANK", Attribute::Text("two".to_owned())),
        "dimension 'Account': attribute 'RANK' of 'Cost' is the text 'two'; the attribute holds numbers",
    );
    refused(
        dimension.set_attribute(cost, "Share", Attribute::Number(f64::NAN)),
        "dimension 'Account': attribute 'Share' of 'Cost' is NaN; give it a finite number",
    );
    assert_eq!(dimension.attributes().len(), 1);
}

#[test]
fn a_stored_cube_reads_back_equal_and_damage_is_told() {
    let mut dimension = accounts();
    let cost = dimension.find("Cost").unwrap();
    dimension.set_attribute(cost, "Rank", Attribute::Number(0.1)).unwrap();
    dimension.add_alias(cost, "Expense").unwrap();
    dimension.apply(Change::Remove { element: dimension.find("Units").unwrap() }, &no_facts).unwrap();
    let over = Some(Balance { dimension: "account".to_owned(), span: Span::Last });
    let cube = CubeModel::new("plan", vec![dimension], vec![Measure { over, ..amount() }]).unwrap();
    let json = cube.to_json().unwrap();
    assert_eq!(CubeModel::from_json(&json).unwrap(), cube);
    let damage = |from: &str, to: &str| {
        assert!(json.contains(from), "{json}");
        CubeModel::from_json(&json.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert_eq!(
        damage("\"version\":1", "\"version\":7"),
        "the stored model has version 7; this program reads version 1"
    );
    let stored = "the stored model of dimension 'Account' is damaged: ";
    assert_eq!(damage("\"base\":2", "\"base\":1"), format!("{stored}coordinate 1 belongs to two elements"));
    assert_eq!(damage("\"base\":2", "\"base\":9"), format!("{stored}coordinate 9 of 'Cost' is too large"));
    assert_eq!(damage("\"order\":[1,2,3]", "\"order\":[1,3]"), format!("{stored}'Cost' has no position"));
    assert_eq!(
        damage("\"parents\":[3]", "\"parents\":[2]"),
        format!("{stored}the parents of 'Revenue' do not list it")
    );
    assert_eq!(damage("\"parents\":[3]", "\"parents\":[]"), format!("{stored}children do not record their parents"));
    assert_eq!(
        damage("\"key_bits\":[", "\"key_bits\":[1,"),
        format!("{stored}the key layout has no place for its coordinates")
    );
    assert!(damage("\"weight\":\"-1\"", "\"weight\":null").starts_with("the stored model cannot be read: "));
    assert!(damage("\"Expense\"", "\"Revenue\"").contains("the name 'Revenue' is taken by 'Revenue'"));
}

#[test]
fn cubes_of_one_and_of_32_dimensions() {
    let one = CubeModel::new("one", vec![flat("D", 1)], vec![amount()]).unwrap();
    assert_eq!(one.layout().pack::<u128>(&[0]), 0);
    let many = |count: usize, size: usize| {
        let dimensions = (0..count).map(|at| flat(&format!("D{at}"), size)).collect();
        CubeModel::new("many", dimensions, vec![amount()])
    };
    let widest = many(32, 16).unwrap();
    assert_eq!(widest.layout().total_bits(), 128);
    assert_eq!(widest.layout().pack::<u128>(&[15; 32]), u128::MAX);
    refused(many(0, 1), "cube 'many' has 0 dimensions; a cube has 1 to 32");
    refused(many(33, 1), "cube 'many' has 33 dimensions; a cube has 1 to 32");
    assert!(many(32, 17).unwrap_err().to_string().starts_with("the key needs 160 bits, at most 128: D0 5 + D1 5 +"));
}

#[test]
fn a_cube_widens_its_keys_or_refuses_the_element() {
    let mut cube = CubeModel::new("plan", vec![flat("A", 16), flat("B", 3)], vec![amount()]).unwrap();
    let add = |number: usize| Change::Add { name: format!("new{number}"), kind: ElementKind::Base, position: None };
    for number in 0..16 {
        assert!(!cube.apply(0, add(number), &no_facts).unwrap().repacked);
    }
    assert!(cube.apply(0, add(16), &no_facts).unwrap().repacked);
    assert_eq!(cube.layout().bits()[0], 7);
    let mut full =
        CubeModel::new("full", (0..32).map(|at| flat(&format!("D{at}"), 16)).collect(), vec![amount()]).unwrap();
    let before = full.clone();
    assert!(matches!(full.apply(3, add(0), &no_facts), Err(ModelError::KeyTooWide { .. })));
    assert_eq!(full, before);
}

#[test]
fn measures_without_meaning_are_refused() {
    let cube = |measures| CubeModel::new("plan", vec![flat("Month", 3)], measures);
    refused(cube(vec![]), "cube 'plan' has no measure; define at least one");
    let twice = vec![amount(), Measure { name: "AMOUNT".to_owned(), ..amount() }];
    refused(cube(twice), "cube 'plan': two measures are named 'AMOUNT'; names are unique, case ignored");
    let scale = Measure { value: ValueType::Decimal { scale: 19 }, ..amount() };
    refused(cube(vec![scale]), "cube 'plan': measure 'Amount' has 19 digits after the point; a decimal has 0 to 18");
    let over = |dimension: &str| Some(Balance { dimension: dimension.to_owned(), span: Span::Average });
    refused(
        cube(vec![Measure { over: over("Mont"), ..amount() }]),
        "cube 'plan': measure 'Amount' balances over 'Mont', which is no dimension of the cube; did you mean 'Month'?",
    );
    refused(
        cube(vec![Measure { over: over("Month"), rule: Rule::Max, ..amount() }]),
        "cube 'plan': measure 'Amount' has a time balance ('over') and a rule other than sum; remove one of them",
    );
}

#[test]
fn a_million_elements_and_a_hundred_thousand_levels() {
    let years: Vec<String> = (0..100).map(|n| format!("y{n}")).collect();
    let days: Vec<String> = (0..1_000_000).map(|n| format!("d{n}")).collect();
    let rows: Vec<[Option<&str>; 2]> = (0..days.len()).map(|n| [Some(&*years[n % 100]), Some(&*days[n])]).collect();
    let (dimension, _) = Dimension::from_levels("Big", &["year", "day"], rows.iter().map(<[_; 2]>::as_slice)).unwrap();
    let map = dimension.base_map(&dimension.of_level(1)).unwrap();
    assert_eq!((map.by_base.rows(), map.by_base.columns.len()), (1_000_000, 1_000_000));

    let depth = 100_000;
    let mut builder = DimensionBuilder::new("Deep").unwrap();
    let base = builder.add("base", ElementKind::Base).unwrap();
    let mut below = base;
    for number in 0..depth {
        let parent = builder.add(&format!("n{number}"), ElementKind::Consolidated).unwrap();
        builder.link(parent, below, if number % 2 == 0 { -1.0 } else { 1.0 }).unwrap();
        below = parent;
    }
    let deep = builder.finish().unwrap();
    assert_eq!((deep.level(below), deep.descendants(below).len()), (depth, depth as usize));
    let all = deep.base_map(deep.elements()).unwrap();
    assert_eq!(all.by_target.row(depth as usize), (&[0][..], &[1.0][..]));
    assert_eq!(all.by_target.row(1), (&[0][..], &[-1.0][..]));
    let measures = vec![amount()];
    let cube = CubeModel::new("deep", vec![deep], measures).unwrap();
    assert_eq!(CubeModel::from_json(&cube.to_json().unwrap()).unwrap(), cube);
}

#[test]
fn elements_are_listed_beside_their_parents() {
    let bases = ["A", "B", "C", "D"];
    let (x, y): (Children<'_>, Children<'_>) = (&[("A", 1.0), ("B", 1.0)], &[("C", 1.0), ("D", -1.0)]);
    let all: Children<'_> = &[("X", 1.0), ("Y", 1.0)];
    for (lists, expected) in [
        (vec![], "A B C D"),
        (vec![("Y", y)], "A B C D Y"),
        (vec![("Z", &[("B", 1.0), ("D", -1.0)])], "A B C D Z"),
        (vec![("X", x)], "X A B C D"),
        (vec![("X", x), ("Y", y)], "X A B Y C D"),
        (vec![("Y", y), ("X", x), ("All", all)], "All X A B Y C D"),
        (vec![("Y", y), ("Z", &[("C", 1.0), ("A", 1.0)])], "Z C A B Y D"),
    ] {
        let dimension = Dimension::from_lists("D", &bases, &lists).unwrap();
        let names: Vec<&str> = dimension.nested().into_iter().map(|id| dimension.element(id).name()).collect();
        let expected = expected.split(' ').collect::<Vec<_>>();
        assert_eq!(names, expected, "{lists:?}");
    }
    let accounts = accounts();
    assert_eq!(accounts.nested(), accounts.elements(), "a total below its parts keeps its place");
}

#[test]
fn a_part_is_listed_on_the_side_of_its_total_where_the_others_stand() {
    let mut builder = DimensionBuilder::new("D").unwrap();
    let kinds = [("B", ElementKind::Base), ("T", ElementKind::Consolidated), ("A", ElementKind::Base)];
    let ids: Vec<_> = kinds.iter().map(|(name, kind)| builder.add(name, *kind).unwrap()).collect();
    let last = builder.add("C", ElementKind::Base).unwrap();
    [ids[0], ids[2], last].into_iter().for_each(|part| builder.link(ids[1], part, 1.0).unwrap());
    let mut dimension = builder.finish().unwrap();
    let listed = |dimension: &Dimension| {
        let names = |ids: Vec<_>| ids.into_iter().map(|id| dimension.element(id).name()).collect::<Vec<_>>().join(" ");
        (names(dimension.nested()), names(dimension.children_at(ids[1], 1)), names(dimension.leaves(ids[1])))
    };
    assert_eq!(listed(&dimension), ("T B A C".into(), "B A C".into(), "B A C".into()));
    // A place beside a sibling is one below the parent, too.
    let position = dimension.position(ids[0]) as usize;
    dimension.apply(Change::Reposition { element: last, position }, &no_facts).unwrap();
    assert_eq!(listed(&dimension), ("T C B A".into(), "C B A".into(), "C B A".into()));
    dimension.apply(Change::Reposition { element: ids[0], position: 3 }, &no_facts).unwrap();
    assert_eq!(listed(&dimension), ("T C A B".into(), "C A B".into(), "C A B".into()));
}
