//! Refreshed cubes: elements keep their coordinates, new ones are added.

use warpcube_cube::aggregate::Progress;
use warpcube_cube::build::{BuildError, Built, refresh};
use warpcube_cube::define::parse;
use warpcube_cube::model::{Change, CubeModel};

use crate::tables::{Memory, built, cells, cents, dates, definition_text, ints, outline, table, texts};

fn refreshed(memory: &Memory, dimensions: &str, old: &CubeModel) -> Result<Built, BuildError> {
    refresh(&parse(&definition_text(dimensions)).unwrap(), old, memory, &Progress::new())
}

/// Every element of the old model has its number, name and coordinate in the new one.
fn keeps(old: &CubeModel, new: &CubeModel) {
    for (old, new) in old.dimensions().iter().zip(new.dimensions()) {
        for id in old.elements() {
            let (before, after) = (old.element(*id), new.element(*id));
            assert_eq!((before.name(), before.base(), before.kind()), (after.name(), after.base(), after.kind()));
        }
        let held: Vec<_> = new.elements().iter().copied().filter(|id| old.get(*id).is_some()).collect();
        assert_eq!(held, old.elements(), "elements of the cube keep their order");
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
fn all_forms_grow() {
    let [first, later] = days();
    let old = built(&first, DIMENSIONS);
    let new = refreshed(&later, DIMENSIONS, &old.model).unwrap();
    keeps(&old.model, &new.model);
    assert_eq!(outline(&old, 0), "2026-02 2026-03 2026(2026-02 2026-03) Always(2026)");
    assert_eq!(
        outline(&new, 0),
        "2026-01 2026-02 2026-03 2026(2026-01 2026-02 2026-03) Always(2026 2027) 2027(2027-01) 2027-01",
        "January 2026 stands before February, and 2027 behind all"
    );
    assert_eq!(
        outline(&new, 1),
        "EU[Europe](FR DE ES) FR[France] DE[Germany] World(EU AS) AS[Asia](JP) ES[Spain] JP[Japan]",
        "the table's new parent of DE is reported, and captions stay"
    );
    assert_eq!(outline(&new, 2), "P1 P2 A(P1) B(P2 P9) P9 C(P3) P3");
    let moved: Vec<(&str, &str, &str)> = new
        .report
        .other_parents
        .iter()
        .map(|it| (it.dimension.as_str(), it.element.as_str(), it.parent.as_str()))
        .collect();
    assert_eq!(moved, [("Region", "DE", "AS"), ("Product", "P2", "A")]);
    assert_eq!(outline(&new, 3), "3 a-7[7] 5 7 a(a-7) x(3 5) y(7)");
    assert_eq!(outline(&new, 4), "k a m Two(k m) Total(Two a z) z");
    assert_eq!(
        cells(&new),
        ["2026-02 FR P2 5 z = 0.4", "2026-03 DE P2 7 k = 0.2", "2026-01 JP P3 3 a = 0.1", "2027-01 ES P1 a-7 m = 0.3",]
    );
    let added = &new.report.added;
    assert_eq!((added.len(), added[1].dimension.as_str()), (5, "Region"));
    assert_eq!(added[1].names, ["AS", "ES", "JP"]);
    // The same again adds nothing.
    let again = refreshed(&later, DIMENSIONS, &new.model).unwrap();
    assert_eq!((again.model, again.facts), (new.model, new.facts));
    assert!(again.report.added.is_empty());
}

#[test]
fn changes_of_the_cube_stay() {
    let [first, later] = days();
    let mut old = built(&first, DIMENSIONS).model;
    let none = |_: u32| false;
    let region = &old.dimensions()[1];
    let (france, europe) = (region.find("FR").unwrap(), region.find("EU").unwrap());
    let flat = old.dimensions()[4].find("m").unwrap();
    for (dimension, change) in [
        (1, Change::Unlink { parent: europe, child: france }),
        (1, Change::Caption { element: france, caption: Some("La France".to_string()) }),
        (1, Change::SetDefault { element: Some(france) }),
        (4, Change::Rename { element: flat, name: "Em".to_string() }),
        (4, Change::Alias { element: flat, alias: "m".to_string() }),
    ] {
        old.apply(dimension, change, &none).unwrap();
    }
    let new = refreshed(&later, DIMENSIONS, &old).unwrap();
    keeps(&old, &new.model);
    assert!(outline(&new, 1).starts_with("EU[Europe](DE ES) FR[La France] DE[Germany]"), "{}", outline(&new, 1));
    assert_eq!(new.model.dimensions()[1].default_element(), Some(france));
    assert_eq!(outline(&new, 4), "k a Em Two(k Em) Total(Two a z) z");
}

#[test]
fn listed_elements_and_members_of_consolidations() {
    let gl = table(vec![("v", texts(&["a", "d", "c"])), ("amount", cents(&[1, 2, 3]))]);
    let memory = Memory::default().with("gl", gl.slice(0, 1));
    let old = built(&memory, "V: {elements: [a, b], all: All, consolidated: {S: {a: 1, b: 1}, Gap: {a: 1, b: -1}}}");
    assert_eq!(outline(&old, 0), "a b S(a b) Gap(a b*-1) All(S)");
    let memory = Memory::default().with("gl", gl);
    let dimensions = "V: {elements: [a, c, b, d], all: All,
         consolidated: {S: {c: 1, a: 5, b: 1}, N: {c: 1, a: 1}, Gap: {a: 1, b: -1}}}";
    let new = refreshed(&memory, dimensions, &old.model).unwrap();
    keeps(&old.model, &new.model);
    assert_eq!(outline(&new, 0), "a b S(a b c) Gap(a b*-1) All(S d) c d N(c a)", "c counts once in All, by way of S");
    assert_eq!(cells(&new), ["a = 0.01", "c = 0.03", "d = 0.02"]);
}

#[test]
fn further_parents_are_followed_where_none_is_lost() {
    let gl = table(vec![("k", texts(&["a", "b"])), ("amount", cents(&[1, 2]))]);
    let day = |keys: &[&str], parents: &[&str]| {
        let parents = table(vec![("id", texts(keys)), ("up", texts(parents))]);
        Memory::default().with("gl", gl.clone()).with("t", parents)
    };
    let dimensions = "K: {table: t, key: id, parent: up, consolidated: {Both: {a: 1, b: 1}}}";
    let old = built(&day(&["P", "a", "b"], &[".", "P", "."]), dimensions);
    assert_eq!(outline(&old, 0), "P(a) a b Both(a b)");
    let later = day(&["P", "a", "b", "Q", "a"], &[".", "P", "Q", ".", "Q"]);
    let new = refreshed(&later, dimensions, &old.model).unwrap();
    assert_eq!(outline(&new, 0), "P(a) a b Both(a b) Q(b a)");
    assert!(new.report.other_parents.is_empty());
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
    let parents = table(vec![("id", texts(&["FR", "PA"])), ("up", texts(&[".", "FR"])), ("name", texts(&[".", "."]))]);
    assert_eq!(
        refused(&later.with("regions", parents), DIMENSIONS),
        "the definition no longer fits the cube: the table has 'PA' below 'FR', a base element of the cube; define the \
         cube anew"
    );
}
