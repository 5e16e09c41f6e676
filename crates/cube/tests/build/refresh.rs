//! Refreshed cubes: all follows the source but what was made by hand.

use proptest::prelude::*;
use warpcube_cube::aggregate::Progress;
use warpcube_cube::build::{BuildError, Built, DefaultMove, MovedElement, NamedElements, rebuild, refresh};
use warpcube_cube::define::parse;
use warpcube_cube::model::{Attribute, Change, CubeModel, ElementId, ElementKind};

use crate::tables::{Memory, built, cells, cents, dates, definition_text, ints, outline, table, texts, tried};

fn refreshed(memory: &Memory, dimensions: &str, old: &CubeModel) -> Result<Built, BuildError> {
    refresh(&parse(&definition_text(dimensions)).unwrap(), old, memory, &Progress::new())
}

/// The elements that have other parents than before, as `element: before → after`.
fn moved(built: &Built) -> Vec<String> {
    let text = |it: &MovedElement| format!("{}: {} → {}", it.element, it.before.join(" "), it.after.join(" "));
    built.report.moved.iter().map(text).collect()
}

/// The elements that levels name otherwise than before.
fn renamed(built: &Built) -> Vec<String> {
    built.report.renamed.iter().map(|it| format!("{}: {} → {}", it.dimension, it.before, it.after)).collect()
}

fn names(elements: &[NamedElements]) -> Vec<String> {
    elements.iter().map(|it| format!("{}: {}", it.dimension, it.names.join(" "))).collect()
}

/// Applies changes to a model, as to a live cube.
fn change(model: &mut CubeModel, dimension: usize, changes: impl IntoIterator<Item = Change>) {
    for change in changes {
        model.apply(dimension, change, &|_| false).unwrap();
    }
}

/// Facts and tables of the first and of a later day.
fn days() -> [Memory; 2] {
    let first = Memory::default()
        .with(
            "gl",
            table(vec![
                ("month", dates(&["2026-02-01", "2026-03-01"])),
                ("region", texts(&["FR", "DE"])),
                ("sku", texts(&["P1", "P2"])),
                ("area", texts(&["x", "y"])),
                ("place", ints(&[5, 7])),
                ("flat", texts(&["m", "k"])),
                ("amount", cents(&[1, 2])),
            ]),
        )
        .with(
            "regions",
            table(vec![
                ("id", texts(&["EU", "FR", "DE"])),
                ("up", texts(&[".", "EU", "EU"])),
                ("name", texts(&["Europe", "France", "Germany"])),
            ]),
        )
        .with("products", table(vec![("group", texts(&["A", "B"])), ("sku", texts(&["P1", "P2"]))]));
    let later = Memory::default()
        .with(
            "gl",
            table(vec![
                ("month", dates(&["2026-01-01", "2026-03-01", "2027-01-01", "2026-02-01"])),
                ("region", texts(&["JP", "DE", "ES", "fr"])),
                ("sku", texts(&["P3", "P2", "P1", "P2"])),
                ("area", texts(&["X", "y", "a", "x"])),
                ("place", ints(&[3, 7, 7, 5])),
                ("flat", texts(&["a", "K", "m", "z"])),
                ("amount", cents(&[10, 20, 30, 40])),
            ]),
        )
        .with(
            "regions",
            table(vec![
                ("id", texts(&["AS", "EU", "ES", "FR", "JP", "DE"])),
                ("up", texts(&[".", ".", "EU", "EU", "AS", "AS"])),
                ("name", texts(&["Asia", "Europa", "Spain", "Gaul", "Japan", "Germany"])),
            ]),
        )
        .with(
            "products",
            table(vec![("group", texts(&["A", "B", "A", "C"])), ("sku", texts(&["P2", "P9", "P1", "P3"]))]),
        );
    [first, later]
}

const DIMENSIONS: &str = "Month: {column: month, levels: [year, month], all: Always}
    Region: {table: regions, key: id, parent: up, caption: name, all: World}
    Product: {table: products, levels: [group, sku]}
    Place: {levels: [area, place]}
    Flat: {all: Total, consolidated: {Two: {k: 1, m: 1}}}";

#[test]
fn all_forms_follow_the_source() {
    let [first, later] = days();
    let old = built(&first, DIMENSIONS);
    let new = refreshed(&later, DIMENSIONS, &old.model).unwrap();
    let anew = built(&later, DIMENSIONS);
    for dimension in 0..5 {
        assert_eq!(outline(&new, dimension), outline(&anew, dimension));
    }
    assert_eq!(outline(&new, 3), "3 a-7[7] 5 y-7[7] X(3) a(a-7) x(5) y(y-7)");
    let place = &new.model.dimensions()[3];
    assert_eq!(place.element(place.find("7").unwrap()).name(), "y-7", "the short name finds the older one");
    assert_eq!(renamed(&new), ["Place: 7 → y-7"]);
    assert_eq!(
        outline(&new, 1),
        "AS[Asia](JP DE) EU[Europa](ES FR) ES[Spain] FR[Gaul] JP[Japan] DE[Germany] World(AS EU)"
    );
    assert_eq!(
        names(&new.report.added),
        ["Month: 2026-01 2027-01 2027", "Region: AS ES JP", "Product: P9 P3 C", "Place: 3 a-7 X a", "Flat: a z"]
    );
    assert_eq!(names(&new.report.removed), [""; 0]);
    assert_eq!(moved(&new), ["DE: EU → AS", "P2: B → A"]);
    // The same again changes nothing.
    let again = refreshed(&later, DIMENSIONS, &new.model).unwrap();
    assert_eq!((&again.model, &again.facts), (&new.model, &new.facts));
    assert_eq!((again.report.added.len(), again.report.removed.len(), again.report.moved.len()), (0, 0, 0));
    assert_eq!(renamed(&again), [""; 0]);
}

#[test]
fn names_of_levels_are_those_of_the_source_by_refresh_and_load_alike() {
    let day = |rows: &[(&str, &str)]| {
        let (groups, skus): (Vec<&str>, Vec<&str>) = rows.iter().copied().unzip();
        let areas: Vec<&str> = groups.iter().map(|group| group.split('/').next().unwrap()).collect();
        let groups: Vec<&str> = groups.iter().map(|group| group.split('/').nth(1).unwrap()).collect();
        Memory::default()
            .with("gl", table(vec![("k", texts(&skus)), ("amount", cents(&vec![1; skus.len()]))]))
            .with("t", table(vec![("area", texts(&areas)), ("group", texts(&groups)), ("sku", texts(&skus))]))
    };
    let dimensions = "K: {column: k, table: t, levels: [area, group, sku], unknown: aside}";
    let one = day(&[("Food/Dairy", "a"), ("Food/Deli", "b"), ("Drink/Beer", "c")]);
    let two = day(&[("Drink/Dairy", "d"), ("Food/Dairy", "a"), ("Food/Deli", "b"), ("Drink/Beer", "c")]);
    let mut old = built(&one, dimensions).model;
    let deli = old.dimensions()[0].find("Deli").unwrap();
    let dairy = old.dimensions()[0].find("Dairy").unwrap();
    let caption = Change::Caption { element: dairy, caption: Some("Milk".to_string()) };
    change(&mut old, 0, [caption, Change::Rename { element: deli, name: "Ham".to_string() }]);
    let definition = parse(&definition_text(dimensions)).unwrap();
    let loaded = |memory: &Memory, old: &CubeModel| rebuild(&definition, old, memory, &Progress::new()).unwrap();
    let (fresh, load) = (refreshed(&two, dimensions, &old).unwrap(), loaded(&two, &old));
    assert_eq!(
        outline(&fresh, 0),
        "d a b c Drink-Dairy[Dairy](d) Food-Dairy[Milk](a) Ham(b) Beer(c) Drink(Drink-Dairy Beer) Food(Food-Dairy Ham)"
    );
    assert_eq!(outline(&load, 0), outline(&built(&two, dimensions), 0));
    for new in [&fresh, &load] {
        assert_eq!(renamed(new), ["K: Dairy → Food-Dairy"]);
        let k = &new.model.dimensions()[0];
        assert_eq!(k.element(k.find("dairy").unwrap()).name(), "Food-Dairy", "the short name finds the older one");
    }
    // It does so after further refreshes and loads, and the names of one department are those of a first build.
    for again in [refreshed(&two, dimensions, &fresh.model).unwrap(), loaded(&two, &load.model)] {
        let k = &again.model.dimensions()[0];
        assert_eq!((k.element(k.find("dairy").unwrap()).name(), renamed(&again).len()), ("Food-Dairy", 0));
    }
    for back in [refreshed(&one, dimensions, &fresh.model).unwrap(), loaded(&one, &load.model)] {
        let k = &back.model.dimensions()[0];
        let dairy = k.element(k.find("Food-Dairy").unwrap());
        assert_eq!((dairy.name(), renamed(&back)), ("Dairy", vec!["K: Food-Dairy → Dairy".to_string()]));
        let there = refreshed(&two, dimensions, &back.model).unwrap();
        assert_eq!(renamed(&there), ["K: Dairy → Food-Dairy"], "names tell nothing of what was before");
    }
    // A name that a change gave stays, also where values might give it.
    let mut old = fresh.model.clone();
    let drink = old.dimensions()[0].find("Drink-Dairy").unwrap();
    change(&mut old, 0, [Change::Rename { element: drink, name: "Drink-Food-Dairy".to_string() }]);
    let k = refreshed(&two, dimensions, &old).unwrap().model.dimensions()[0].clone();
    assert!(
        k.find("Drink-Food-Dairy").is_ok() && k.find("Drink-Dairy").is_ok(),
        "{:?}",
        k.all_names().collect::<Vec<_>>()
    );
}

#[test]
fn edges_that_a_change_took_away_stay_away() {
    let day = |weight: i64| {
        Memory::default().with("gl", table(vec![("k", texts(&["a", "b"])), ("amount", cents(&[1, 2]))])).with(
            "t",
            table(vec![
                ("id", texts(&["T", "P", "a", "b"])),
                ("up", texts(&[".", "T", "P", "P"])),
                ("w", ints(&[1, 1, weight, 1])),
            ]),
        )
    };
    let dimensions = "K: {table: t, key: id, parent: up, weight: w}";
    let mut old = built(&day(1), dimensions).model;
    let k = &old.dimensions()[0];
    let (p, a) = (k.find("P").unwrap(), k.find("a").unwrap());
    let group = ElementId::new(k.id_count() as u32);
    let away = [Change::Unlink { parent: p, child: a }, Change::KeepUnlinked { parent: p, child: a, weight: 1.0 }];
    let add = Change::Add { name: "G".to_string(), kind: ElementKind::Consolidated, position: None };
    let link = |parent, child| Change::Link { parent, child, weight: 1.0, place: None };
    change(&mut old, 0, [add, link(group, a), link(p, group)]);
    change(&mut old, 0, away);
    let definition = parse(&definition_text(dimensions)).unwrap();
    let new = refreshed(&day(3), dimensions, &old).unwrap();
    assert_eq!(outline(&new, 0), "T(P) P(b G) a b G(a)");
    assert_eq!((names(&new.report.unlinked), &new.report.two_paths[..]), (vec!["K: a from P".into()], &[][..]));
    let again = refreshed(&day(3), dimensions, &new.model).unwrap();
    assert_eq!(again.model, new.model);
    let load = rebuild(&definition, &new.model, &day(3), &Progress::new()).unwrap();
    assert_eq!(
        (outline(&load, 0).as_str(), names(&load.report.unlinked)),
        ("T(P) P(b) a b", vec!["K: a from P".into()])
    );
    assert_eq!(load.report.defaults_kept.len(), 1, "no total holds a: {:?}", load.report);
    // A link of the two ends it; the weight is the source's.
    let mut linked = load.model.clone();
    let k = &linked.dimensions()[0];
    let (p, a) = (k.find("P").unwrap(), k.find("a").unwrap());
    assert_eq!(k.element(a).unlinked()[0].weight, 3.0);
    change(&mut linked, 0, [link(p, a)]);
    let back = refreshed(&day(3), dimensions, &linked).unwrap();
    assert_eq!((outline(&back, 0).as_str(), back.report.unlinked.len()), ("T(P) P(a*3 b) a b", 0));
    // Without it a group made by hand beside the source's edge is told.
    let mut twice = built(&day(1), dimensions).model;
    let add = Change::Add { name: "G".to_string(), kind: ElementKind::Consolidated, position: None };
    change(&mut twice, 0, [add, link(group, a), link(p, group)]);
    let told = refreshed(&day(1), dimensions, &twice).unwrap().report.two_paths;
    assert_eq!((told[0].elements, &told[0].examples[..]), (1, &[("a".to_string(), "P".to_string())][..]));
}

#[test]
fn an_alternative_name_of_the_source_leaves_an_element_made_by_hand() {
    let day = |alias: &str| {
        let gl = table(vec![("k", texts(&["a", "b", alias])), ("amount", cents(&[1, 2, 4]))]);
        Memory::default().with("gl", gl).with(
            "t",
            table(vec![
                ("id", texts(&["P", "a", "b"])),
                ("up", texts(&[".", "P", "P"])),
                ("also", texts(&[".", alias, "."])),
            ]),
        )
    };
    let dimensions = "K: {table: t, key: id, parent: up, names: also}";
    let mut old = built(&day("x"), dimensions).model;
    let b = old.dimensions()[0].find("b").unwrap();
    let mine = ElementId::new(old.dimensions()[0].id_count() as u32);
    let add = Change::Add { name: "Mine".to_string(), kind: ElementKind::Consolidated, position: None };
    change(&mut old, 0, [add, Change::Link { parent: mine, child: b, weight: 1.0, place: None }]);
    let new = refreshed(&day("Mine"), dimensions, &old).unwrap();
    assert_eq!(outline(&new, 0), "P(a b) a b Mine(b)");
    assert_eq!(cells(&new), ["a = 0.05", "b = 0.02"], "rows of the source find a by its alternative name");
    let taken = &new.report.taken[0];
    assert_eq!((taken.name.as_str(), taken.element.as_str()), ("Mine", "a"));
    let again = refreshed(&day("Mine"), dimensions, &new.model).unwrap();
    assert_eq!((&again.model, &again.facts), (&new.model, &new.facts));
    // A name that a change gave is one made by hand, too.
    let mut renamed = built(&day("x"), dimensions).model;
    let name = Change::Rename { element: b, name: "Mine".to_string() };
    change(&mut renamed, 0, [name, Change::Alias { element: b, alias: "b".to_string() }]);
    let renamed = refreshed(&day("Mine"), dimensions, &renamed).unwrap();
    assert_eq!(outline(&renamed, 0), "P(a Mine) a Mine");
    assert_eq!(cells(&renamed), ["a = 0.05", "Mine = 0.02"]);
    // An alternative name that a change gave an element made by hand is no name of an element of the source.
    let gone = table(vec![("id", texts(&["P", "b"])), ("up", texts(&[".", "P"])), ("also", texts(&[".", "."]))]);
    let gl = table(vec![("k", texts(&["b"])), ("amount", cents(&[1]))]);
    let without = Memory::default().with("gl", gl).with("t", gone);
    let mut named = refreshed(&without, dimensions, &old).unwrap().model;
    let mine = named.dimensions()[0].find("Mine").unwrap();
    change(&mut named, 0, [Change::Alias { element: mine, alias: "a".to_string() }]);
    assert_eq!(outline(&refreshed(&day("x"), dimensions, &named).unwrap(), 0), "P(a b) a b Mine(b)");
}

#[test]
fn what_was_made_by_hand_stays() {
    let [first, later] = days();
    let mut old = built(&first, DIMENSIONS).model;
    let region = &old.dimensions()[1];
    let (france, germany, europe) =
        (region.find("FR").unwrap(), region.find("DE").unwrap(), region.find("EU").unwrap());
    let next = ElementId::new(region.id_count() as u32);
    let add = |name: &str, kind| Change::Add { name: name.to_string(), kind, position: None };
    let link = |parent, child, weight| Change::Link { parent, child, weight, place: None };
    change(
        &mut old,
        1,
        [
            add("Mine", ElementKind::Consolidated),
            link(next, france, 1.0),
            link(next, germany, -1.0),
            link(europe, next, 2.0),
            Change::Unlink { parent: europe, child: france },
            Change::Alias { element: france, alias: "Hexagon".to_string() },
            Change::SetDefault { element: Some(next) },
            Change::SetAttribute {
                element: france,
                attribute: "color".to_string(),
                value: Attribute::Text("bleu".into()),
            },
            Change::Caption { element: france, caption: Some("La France".to_string()) },
        ],
    );
    let flat = old.dimensions()[4].find("m").unwrap();
    let forecast = ElementId::new(old.dimensions()[4].id_count() as u32);
    change(
        &mut old,
        4,
        [
            Change::Rename { element: flat, name: "Em".to_string() },
            Change::Alias { element: flat, alias: "m".to_string() },
            add("plan", ElementKind::Base),
            Change::Reposition { element: forecast, position: 1 },
        ],
    );
    let new = refreshed(&later, DIMENSIONS, &old).unwrap();
    assert_eq!(
        outline(&new, 1),
        "AS[Asia](JP DE) EU[Europa](ES Mine*2 FR) ES[Spain] FR[Gaul] JP[Japan] DE[Germany] World(AS EU) Mine(FR DE*-1)",
        "an edge between elements of the source is the source's, and so is a caption that it has"
    );
    let region = &new.model.dimensions()[1];
    assert_eq!(region.element(region.default_element().unwrap()).name(), "Mine");
    let france = region.find("Hexagon").unwrap();
    assert_eq!(region.attribute(france, "color"), Some(&Attribute::Text("bleu".to_string())));
    assert_eq!(outline(&new, 4), "K plan a Em z Two(K Em) Total(Two a z)");
    assert_eq!(cells(&new).len(), 4, "facts find the old name: {:?}", cells(&new));
    let again = refreshed(&later, DIMENSIONS, &new.model).unwrap();
    assert_eq!((&again.model, &again.facts), (&new.model, &new.facts));
}

#[test]
fn exchanged_names_stay_and_facts_find_their_elements() {
    let [first, later] = days();
    let mut old = built(&first, DIMENSIONS).model;
    let exchange = |model: &mut CubeModel, dimension: usize, names: [&str; 2]| {
        let ids = names.map(|name| model.dimensions()[dimension].find(name).unwrap());
        let renamed = vec![(ids[0], names[1].to_string()), (ids[1], names[0].to_string())];
        change(model, dimension, [Change::RenameAll { names: renamed }]);
        let of_source = ids.into_iter().zip(names).map(|(element, name)| (element, name.to_string()));
        change(model, dimension, of_source.map(|(element, name)| Change::SourceName { element, name }));
    };
    change(&mut old, 4, [Change::Add { name: "h".to_string(), kind: ElementKind::Base, position: None }]);
    exchange(&mut old, 1, ["FR", "DE"]);
    exchange(&mut old, 2, ["P1", "P2"]);
    exchange(&mut old, 4, ["k", "h"]);
    let new = refreshed(&later, DIMENSIONS, &old).unwrap();
    assert_eq!(
        outline(&new, 1),
        "AS[Asia](JP FR) EU[Europa](ES DE) ES[Spain] DE[Gaul] JP[Japan] FR[Germany] World(AS EU)",
        "captions and parents are those of the source's elements"
    );
    assert_eq!(outline(&new, 4), "h a m z Two(h m) Total(Two a z) k");
    let exchanged = |cell: &String| {
        let other = |word: &str| match word {
            "FR" => "DE".to_string(),
            "DE" => "FR".to_string(),
            "P1" => "P2".to_string(),
            "P2" => "P1".to_string(),
            "K" => "h".to_string(),
            word => word.to_string(),
        };
        cell.split(' ').map(other).collect::<Vec<_>>().join(" ")
    };
    // Names of the dimension of levels of the facts stay as the first day gave them.
    let plain = refreshed(&later, DIMENSIONS, &built(&first, DIMENSIONS).model).unwrap();
    let sorted = |mut cells: Vec<String>| {
        cells.sort();
        cells
    };
    assert_eq!(sorted(cells(&new)), sorted(cells(&plain).iter().map(exchanged).collect()));
    let again = refreshed(&later, DIMENSIONS, &new.model).unwrap();
    assert_eq!((&again.model, &again.facts), (&new.model, &new.facts));
    assert_eq!((again.report.added.len(), again.report.removed.len(), again.report.moved.len()), (0, 0, 0));
}

#[test]
fn moved_and_removed_elements_are_told() {
    let gl = |keys: &[&str]| {
        let amounts: Vec<i64> = (1..=keys.len() as i64).collect();
        table(vec![("k", texts(keys)), ("amount", cents(&amounts))])
    };
    let day = |facts: &[&str], keys: &[&str], parents: &[&str], weights: &[i64]| {
        let parents = table(vec![("id", texts(keys)), ("up", texts(parents)), ("w", ints(weights))]);
        Memory::default().with("gl", gl(facts)).with("t", parents)
    };
    let dimensions = "K: {table: t, key: id, parent: up, weight: w, unknown: aside}";
    let keys = ["T", "P", "Q", "a", "b", "c"];
    let old = built(&day(&["a", "b", "c"], &keys, &[".", "T", "T", "P", "P", "Q"], &[1; 6]), dimensions);
    assert_eq!(outline(&old, 0), "T(P Q) P(a b) Q(c) a b c");
    // a moves, b weighs twice, c and its group are gone, and a fact still names c.
    let later = day(&["a", "b", "c"], &["T", "P", "R", "a", "b"], &[".", "T", "T", "R", "P"], &[1, 1, 1, 1, 2]);
    let new = refreshed(&later, dimensions, &old.model).unwrap();
    assert_eq!(outline(&new, 0), "T(P R) P(b*2) R(a) a b");
    assert_eq!(moved(&new), ["a: P → R", "b: P → P × 2"]);
    assert_eq!((names(&new.report.added), names(&new.report.removed)), (vec!["K: R".into()], vec!["K: Q c".into()]));
    assert_eq!((new.report.rows_aside, cells(&new)), (1, vec!["a = 0.01".to_string(), "b = 0.02".to_string()]));
    let default = |before: &str, after: &str| DefaultMove {
        dimension: "K".to_string(),
        before: before.to_string(),
        after: after.to_string(),
    };
    assert_eq!((&new.report.defaults[..], &new.report.defaults_kept[..]), (&[][..], &[default("T", "a")][..]));
    let k = &new.model.dimensions()[0];
    assert_eq!(k.element(k.default_element().unwrap()).name(), "T", "though it weighs b by 2");
    // An element that stands beside the total.
    let beside = dimensions.replace("unknown: aside", "unknown: add");
    let more = day(&["a", "b", "c", "d"], &keys, &[".", "T", "T", "P", "P", "Q"], &[1; 6]);
    let new = refreshed(&more, &beside, &old.model).unwrap();
    let kept = &new.report.defaults_kept[..];
    assert_eq!((names(&new.report.added), kept), (vec!["K: d".into()], &[default("T", "a")][..]));
    // A default element that is gone leaves the rule.
    let other = day(&["a"], &["U", "a"], &[".", "U"], &[1, 1]);
    assert_eq!(refreshed(&other, dimensions, &old.model).unwrap().report.defaults, [default("T", "U")]);
    let strict = dimensions.replace(", unknown: aside", "");
    let refused = refreshed(&later, &strict, &old.model).unwrap_err().to_string();
    assert!(refused.contains("no element is named 'c'"), "{refused}");
}

#[test]
fn an_edge_made_by_hand_by_which_the_group_would_hold_itself_is_dropped() {
    let gl = table(vec![("k", texts(&["a"])), ("amount", cents(&[1]))]);
    let day = |keys: &[&str], parents: &[&str]| {
        let parents = table(vec![("id", texts(keys)), ("up", texts(parents))]);
        Memory::default().with("gl", gl.clone()).with("t", parents)
    };
    let dimensions = "K: {table: t, key: id, parent: up}";
    let mut old = built(&day(&["P", "Q", "a", "b"], &[".", ".", "P", "Q"]), dimensions).model;
    let k = &old.dimensions()[0];
    let (p, q, mine) = (k.find("P").unwrap(), k.find("Q").unwrap(), ElementId::new(k.id_count() as u32));
    let link = |parent, child| Change::Link { parent, child, weight: 1.0, place: None };
    let add = Change::Add { name: "Mine".to_string(), kind: ElementKind::Consolidated, position: None };
    change(&mut old, 0, [add, link(p, mine), link(mine, q)]);
    // The source places P below Q, which Mine holds below P.
    let turned = refreshed(&day(&["P", "Q", "a", "b"], &["Q", ".", "P", "Q"]), dimensions, &old).unwrap();
    assert_eq!(outline(&turned, 0), "P(a Mine) Q(P b) a b Mine()");
    assert_eq!(names(&turned.report.dropped), ["K: Q below Mine, which lies below it"]);
    // The source has an element of the same name now: it is the source's.
    let later = day(&["P", "Q", "a", "b", "Mine", "x"], &[".", ".", "P", "Q", "Q", "Mine"]);
    let new = refreshed(&later, dimensions, &old).unwrap();
    assert_eq!(outline(&new, 0), "P(a) Q(b Mine) a b Mine(x) x");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A refresh after any change of the tables is a build anew, and tells every difference of names and parents.
    #[test]
    fn without_changes_by_hand_a_refresh_is_a_build(
        first in proptest::collection::vec((0..4_usize, 0..6_usize), 1..12),
        later in proptest::collection::vec((0..4_usize, 0..6_usize), 1..12),
    ) {
        let day = |rows: &[(usize, usize)]| {
            let mut seen = std::collections::HashSet::new();
            let rows: Vec<_> = rows.iter().filter(|row| seen.insert(row.1)).collect();
            let groups: Vec<String> = rows.iter().map(|row| format!("g{}", row.0)).collect();
            let keys: Vec<String> = rows.iter().map(|row| format!("k{}", row.1)).collect();
            let text = |names: &[String]| texts(&names.iter().map(String::as_str).collect::<Vec<_>>());
            let amounts: Vec<i64> = (1..=rows.len() as i64).collect();
            Memory::default()
                .with("gl", table(vec![("k", text(&keys)), ("L", text(&keys)), ("amount", cents(&amounts))]))
                .with("t", table(vec![("g", text(&groups)), ("k", text(&keys))]))
        };
        let dimensions = "K: {column: k, table: t, levels: [g, k], all: All}\n    L: {}";
        let old = built(&day(&first), dimensions);
        let new = refreshed(&day(&later), dimensions, &old.model).unwrap();
        let anew = built(&day(&later), dimensions);
        // A default element that the rule would move stays.
        let mut model = new.model.clone();
        for at in 0..2 {
            model.apply(at, Change::SetDefault { element: None }, &|_| false).unwrap();
        }
        prop_assert_eq!((&model, &new.facts), (&anew.model, &anew.facts));
        let all = |built: &Built| {
            let dimension = &built.model.dimensions()[0];
            dimension.elements().iter().map(|id| dimension.element(*id).name().to_string()).collect::<Vec<_>>()
        };
        let without = |one: &Built, other: &Built| {
            let other = all(other);
            all(one).into_iter().filter(|name| !other.contains(name)).collect::<Vec<_>>()
        };
        let told = |told: &[NamedElements]| {
            told.iter().filter(|it| it.dimension == "K").flat_map(|it| it.names.clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(told(&new.report.added), without(&new, &old));
        prop_assert_eq!(told(&new.report.removed), without(&old, &new));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A refresh and a load give the cube of a build, whatever groups become base elements and base elements groups.
    #[test]
    fn names_that_are_groups_here_and_base_elements_there_give_the_cube_of_a_build(
        first in (0..6_usize, proptest::array::uniform6((0..7_usize, 0..6_usize))),
        later in (0..6_usize, proptest::array::uniform6((0..7_usize, 0..6_usize))),
    ) {
        const NAMES: [&str; 6] = ["X", "Y", "Z", "x", "A", "A-X"];
        let day = |(turn, rows): &(usize, [(usize, usize); 6])| {
            let name = |at: usize| NAMES[(at + turn) % 6];
            let up = |at: usize| Some(rows[at].0 % (at + 1)).filter(|up| *up < at);
            let parents: Vec<&str> = (0..6).map(|at| up(at).map_or(".", name)).collect();
            let keys: Vec<&str> = (0..6).map(name).collect();
            let bases: Vec<&str> = keys.iter().copied().filter(|key| !parents.contains(key)).collect();
            let fact = |at: usize| bases[at % bases.len()];
            let facts: Vec<&str> = (0..6).map(fact).collect();
            let groups: Vec<&str> = (0..6).map(|at| name(rows[at].1)).collect();
            let gl = vec![
                ("k", texts(&facts)),
                ("g", texts(&groups)),
                ("l", texts(&keys)),
                ("amount", cents(&[1, 2, 4, 8, 16, 32])),
            ];
            let t = table(vec![("id", texts(&keys)), ("up", texts(&parents))]);
            Memory::default().with("gl", table(gl)).with("t", t)
        };
        let dimensions = "K: {column: k, table: t, key: id, parent: up, all: All}\n    L: {levels: [g, l]}";
        let definition = parse(&definition_text(dimensions)).unwrap();
        // Values with a '-' between them may be the path of other ones, which is refused.
        let (Ok(old), Ok(anew)) = (tried(&day(&first), dimensions), tried(&day(&later), dimensions)) else {
            return Ok(());
        };
        let cube = |built: &Built| (outline(built, 0), outline(built, 1), cells(built));
        for run in [refresh, rebuild] {
            let new = run(&definition, &old.model, &day(&later), &Progress::new()).unwrap();
            prop_assert_eq!(cube(&new), cube(&anew));
        }
    }
}

#[test]
fn keys_grow_with_their_dimension() {
    let day = |count: i64| {
        let keys: Vec<i64> = (0..count).rev().collect();
        table(vec![("k", ints(&keys)), ("amount", cents(&keys))])
    };
    let old = built(&Memory::default().with("gl", day(2)), "K: {}");
    let new = refreshed(&Memory::default().with("gl", day(300)), "K: {}", &old.model).unwrap();
    assert_eq!(new.facts.len(), 300);
    assert_eq!(new.facts.layout(), new.model.layout());
    assert!(new.model.layout().bits()[0] >= 9);
    assert_eq!(cells(&new)[..3], ["0 = 0", "1 = 0.01", "2 = 0.02"]);
}

#[test]
fn another_cube_is_refused() {
    let [first, later] = days();
    let old = built(&first, DIMENSIONS).model;
    let refused = |memory: &Memory, dimensions: &str| refreshed(memory, dimensions, &old).unwrap_err().to_string();
    assert_eq!(
        refused(&later, "Flat: {}"),
        "the definition no longer fits the cube: its dimensions are Flat, those of the cube Month, Region, Product, \
         Place, Flat; define the cube anew"
    );
    let text = definition_text(DIMENSIONS).replace("decimal(2)", "double");
    let error = refresh(&parse(&text).unwrap(), &old, &later, &Progress::new()).unwrap_err().to_string();
    assert!(error.contains("its measures are amount SUM double, those of the cube amount SUM decimal(2)"), "{error}");
}

#[test]
fn an_order_that_a_refresh_changes_is_told() {
    let source = |names: &[&str]| {
        let gl = table(vec![("Name", texts(names)), ("amount", cents(&vec![1; names.len()]))]);
        Memory::default().with("gl.csv", gl)
    };
    let text = "cube: c\nfacts: {file: gl.csv, value: amount}\ndimensions: {Name: {}}\n";
    let old = crate::tables::defined(&source(&["z", "y", "x"]), text).unwrap();
    for (names, reordered) in [
        (&["z", "y", "x"][..], ""),
        (&["w", "z", "x", "a"], ""),
        (&["z", "x", "y", "z"], "x before z"),
        (&["y", "z"], "y before z"),
    ] {
        let new = refresh(&parse(text).unwrap(), &old.model, &source(names), &Progress::new()).unwrap();
        let told: Vec<&str> = new.report.reordered.iter().flat_map(|it| &it.names).map(String::as_str).collect();
        assert_eq!(told.join(", "), reordered, "{names:?}");
    }
}
