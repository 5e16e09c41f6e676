//! What was made by hand over deliveries of the source that name, lack or bring elements.

use warpcube_cube::aggregate::Progress;
use warpcube_cube::answer::Relation;
use warpcube_cube::build::{BuildReport, Built, NamedElements, rebuild, refresh};
use warpcube_cube::change::{self, change};
use warpcube_cube::define::parse;
use warpcube_cube::model::{Attribute, CubeModel, Dimension, ElementKind};
use warpcube_cube::store::StoredCube;

use crate::tables::{
    Memory, built, cells, cents, cents_or_null, definition_text, doubles, ints, outline, table, texts, tried,
};

const REGIONS: &str = "R: {table: t, key: id, parent: up, names: also}";

/// A delivery: facts of 1, 2, 4, … and rows `id parent alias [alias]` of a table, a dot for NULL.
fn day(facts: &[&str], rows: &[&str]) -> Memory {
    let amounts: Vec<i64> = (0..facts.len()).map(|at| 1 << at).collect();
    let column = |at: usize| texts(&rows.iter().map(|row| row.split(' ').nth(at).unwrap_or(".")).collect::<Vec<_>>());
    let t = table(vec![("id", column(0)), ("up", column(1)), ("also", column(2)), ("b", column(3))]);
    Memory::default().with("gl", table(vec![("r", texts(facts)), ("amount", cents(&amounts))])).with("t", t)
}

/// A cube with its last report.
struct Live {
    dimensions: String,
    cube: StoredCube,
    built: Built,
}

impl Live {
    fn new(memory: &Memory, dimensions: &str) -> Live {
        let built = built(memory, dimensions);
        let stored = StoredCube::new(built.model.clone(), built.facts.clone());
        let cube = StoredCube { definition: Some(definition_text(dimensions)), ..stored };
        Live { dimensions: dimensions.to_string(), cube, built }
    }

    fn change(&mut self, text: &str) -> change::ChangeReport {
        let (cube, report) = change(&self.cube, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        self.cube = cube;
        report
    }

    fn refused(&self, text: &str) -> String {
        change(&self.cube, text).unwrap_err().to_string()
    }

    /// Refreshes twice: the second time changes nothing.
    fn refresh(&mut self, memory: &Memory) -> &BuildReport {
        let definition = parse(&definition_text(&self.dimensions)).unwrap();
        let built = refresh(&definition, &self.cube.model, memory, &Progress::new()).unwrap();
        let again = refresh(&definition, &built.model, memory, &Progress::new()).unwrap();
        assert_eq!((&again.model, &again.facts), (&built.model, &built.facts));
        assert!(again.report.given.is_empty() && again.report.away.is_empty(), "told once: {:?}", again.report);
        self.set(built)
    }

    fn load(&mut self, memory: &Memory) -> &BuildReport {
        let definition = parse(&definition_text(&self.dimensions)).unwrap();
        let built = rebuild(&definition, &self.cube.model, memory, &Progress::new()).unwrap();
        self.set(built)
    }

    /// Takes what was built, as the folder of a cube gives it back.
    fn set(&mut self, built: Built) -> &BuildReport {
        let model = CubeModel::from_json(&built.model.to_json().unwrap()).unwrap();
        assert_eq!(model, built.model);
        self.cube = StoredCube { model, facts: built.facts.clone(), ..self.cube.clone() };
        self.built = built;
        &self.built.report
    }

    fn dimension(&self) -> &Dimension {
        &self.cube.model.dimensions()[0]
    }

    fn outline(&self) -> String {
        outline(&self.built, 0)
    }

    /// The name of the element that a text stands for.
    fn found(&self, name: &str) -> &str {
        let dimension = self.dimension();
        dimension.element(dimension.find(name).unwrap()).name()
    }

    fn size(&self, name: &str) -> Option<&Attribute> {
        self.dimension().attribute(self.dimension().find(name).unwrap(), "size")
    }
}

fn listed(all: &[NamedElements]) -> String {
    all.iter().map(|one| one.names.join(", ")).collect::<Vec<_>>().join("; ")
}

fn given(report: &BuildReport) -> Vec<String> {
    report.given.iter().map(|one| format!("{} of {}", one.name, one.element)).collect()
}

#[test]
fn an_element_is_known_by_the_key_of_the_source() {
    let rows = ["EU . .", "SE EU .", "NO EU ."];
    let first = day(&["SE", "NO"], &rows);
    let named = day(&["SE", "NO", "Nordic"], &["EU . .", "SE EU Nordic", "NO EU ."]);
    let number = Attribute::Number(5.0);
    let five = Some(&number);
    let with_group = "EU(SE NO) SE NO Nordic(SE NO)";
    let live = || {
        let mut live = Live::new(&first, REGIONS);
        live.change("add Nordic of SE, NO; set SE size = 5");
        live.refresh(&named);
        assert_eq!((live.outline().as_str(), live.built.report.taken.len()), (with_group, 1));
        assert_eq!(cells(&live.built), ["SE = 0.05", "NO = 0.02"]);
        live
    };
    // The alias is taken back, moves on, or becomes an element.
    let moved = day(&["SE", "NO"], &["EU . .", "SE EU .", "NO EU Nordic"]);
    for next in [&first, &moved] {
        let mut live = live();
        let report = live.refresh(next);
        assert_eq!((listed(&report.added), listed(&report.removed)), (String::new(), String::new()));
        assert_eq!((live.outline().as_str(), live.size("SE"), live.size("NO")), (with_group, five, None));
    }
    let mut adopted = live();
    let report = adopted.refresh(&day(&["SE", "NO"], &["EU . .", "SE EU .", "NO EU .", "Nordic EU ."]));
    assert_eq!(listed(&report.adopted), "Nordic");
    assert_eq!((adopted.outline().as_str(), adopted.size("SE")), ("EU(SE NO Nordic) SE NO Nordic", five));
    // A cube of a former version has one name, of which it does not say whether it is the key.
    let mut former = live();
    let json = former.cube.model.to_json().unwrap();
    let older = json.replace("\"source_names\":[\"Nordic\"]", "\"source_name\":\"Nordic\"");
    assert_ne!(json, older);
    former.cube.model = CubeModel::from_json(&older).unwrap();
    former.refresh(&first);
    assert_eq!((former.outline().as_str(), former.size("SE")), (with_group, five));
    // Two aliases that elements made by hand have.
    let dimensions = REGIONS.replace("names: also", "names: [also, b]");
    let mut two = Live::new(&first, &dimensions);
    two.change("add North of SE, NO; add Nordic of SE, NO");
    let both = day(&["SE", "NO", "North", "Nordic"], &["EU . .", "SE EU North Nordic", "NO EU ."]);
    assert_eq!(two.refresh(&both).taken.len(), 2);
    assert_eq!(cells(&two.built), ["SE = 0.13", "NO = 0.02"]);
    // An element that was renamed to what becomes the alias of another one.
    let mut renamed = Live::new(&first, REGIONS);
    renamed.change("rename SE to Nordic; set Nordic size = 5; add G of Nordic, NO");
    let json = renamed.cube.model.to_json().unwrap();
    let older = json.replace(",\"key\":\"SE\"", "");
    assert_ne!(json, older);
    let mut former = Live::new(&first, REGIONS);
    former.cube.model = CubeModel::from_json(&older).unwrap();
    former.refresh(&moved);
    assert_eq!((former.outline().as_str(), former.size("Nordic")), ("EU(Nordic NO) Nordic NO G(Nordic NO)", five));
    renamed.refresh(&moved);
    assert_eq!(renamed.outline(), "EU(Nordic NO) Nordic NO G(Nordic NO)");
    assert_eq!((renamed.size("Nordic"), renamed.size("NO"), renamed.found("SE")), (five, None, "Nordic"));
}

#[test]
fn a_name_given_by_hand_gives_way_to_one_of_the_source_and_comes_back() {
    let first = day(&["SE", "NO"], &["EU . .", "SE EU .", "NO EU ."]);
    let with_dk = day(&["SE", "NO", "DK"], &["EU . .", "DK EU .", "SE EU .", "NO EU ."]);
    for (text, before) in [("rename SE to DK", "DK"), ("alias SE DK", "SE"), ("caption SE DK", "SE")] {
        let mut live = Live::new(&first, REGIONS);
        live.change(text);
        assert_eq!(live.found("DK"), before);
        let report = live.refresh(&with_dk);
        assert_eq!((given(report), listed(&report.added)), (vec!["DK of SE".to_string()], "DK".to_string()), "{text}");
        assert_eq!(cells(&live.built), ["DK = 0.04", "SE = 0.01", "NO = 0.02"]);
        assert_eq!(live.found("DK"), "DK");
        // Queries and changes that name it are warned.
        let warned = live.change("set DK size = 1").warnings;
        assert!(warned.len() == 1 && warned[0].starts_with("DK stands for DK of the source; a change"), "{warned:?}");
        live.refresh(&first);
        assert_eq!((live.found("DK"), live.found("SE")), (before, before), "{text}: it is free again");
        assert_eq!(live.change("set SE size = 2").warnings, [""; 0]);
    }
    // Another name given by hand ends the wait.
    let mut live = Live::new(&first, REGIONS);
    live.change("rename SE to DK");
    live.refresh(&with_dk);
    live.change("rename SE to Sweden");
    live.refresh(&first);
    assert_eq!((live.found("Sweden"), live.dimension().find("DK").is_err()), ("Sweden", true));
    // Names of levels.
    let levels = "P: {levels: [fam, dep], all: All}";
    let day = |fam: &[&str], dep: &[&str]| {
        let amounts: Vec<i64> = (0..fam.len()).map(|at| 1 << at).collect();
        let gl = table(vec![("fam", texts(fam)), ("dep", texts(dep)), ("amount", cents(&amounts))]);
        Memory::default().with("gl", gl)
    };
    let first = day(&["Food", "Food"], &["Dairy", "Meat"]);
    let mut live = Live::new(&first, levels);
    live.change("rename Dairy to Cheese");
    let report = live.refresh(&day(&["Food", "Food", "Drink"], &["Dairy", "Meat", "Cheese"]));
    assert_eq!(given(report), ["Cheese of Dairy"]);
    live.refresh(&first);
    assert_eq!((live.found("Cheese"), live.found("Dairy")), ("Cheese", "Cheese"));
}

#[test]
fn what_was_made_by_hand_comes_back_with_its_element() {
    let rows = ["EU . .", "SE EU .", "NO EU ."];
    let (whole, without) = (day(&["SE", "NO"], &rows), day(&["NO"], &["EU . .", "NO EU ."]));
    let plain = "R: {table: t, key: id, parent: up}";
    let mut live = Live::new(&whole, plain);
    live.change(
        "add Nordics of SE, NO below EU; unlink SE from EU; unlink NO from EU; rename SE to Sweden; \
         caption Sweden Sverige; alias Sweden Svea; set Sweden size = 5; default Sweden",
    );
    live.refresh(&whole);
    let (before, outline) = (live.cube.model.clone(), live.outline());
    assert_eq!(outline, "EU(Nordics) Sweden[Sverige] NO Nordics(Sweden NO)");
    let report = live.refresh(&without);
    assert_eq!((listed(&report.removed), listed(&report.away)), ("Sweden".to_string(), "Sweden".to_string()));
    assert_eq!(live.outline(), "EU(Nordics) NO Nordics(NO)");
    assert!(live.dimension().find("Sweden").is_err() && live.dimension().find("SE").is_err());
    let report = live.refresh(&whole);
    assert_eq!(listed(&report.added), "Sweden");
    assert_eq!(live.outline(), outline);
    assert_eq!((live.found("Svea"), live.size("Sweden")), ("Sweden", Some(&Attribute::Number(5.0))));
    assert_eq!(live.dimension().chosen_default(), live.dimension().find("Sweden").ok());
    assert_eq!(live.cube.model, before, "all is as before");
    // The parent that an edge was taken from is away.
    let mut live = Live::new(&whole, plain);
    live.change("add Nordics of SE, NO; unlink SE from EU");
    live.refresh(&day(&["SE", "NO"], &["SE . .", "NO . ."]));
    assert_eq!(live.outline(), "SE NO Nordics(SE NO)");
    live.refresh(&whole);
    assert_eq!(live.outline(), "EU(NO) SE NO Nordics(SE NO)");
    // Elements that are values of facts, of which there are none for once; a group that is removed takes its edges.
    let values = "R: {column: r}";
    let mut live = Live::new(&whole, values);
    live.change("add Nordics of SE, NO weight 2; rename SE to Sweden");
    live.refresh(&day(&[], &rows));
    assert_eq!(live.outline(), "Nordics()");
    let mut removed = Live::new(&whole, values);
    removed.set(live.built.clone());
    removed.change("remove Nordics");
    assert_eq!(removed.dimension().absent().len(), 1, "the name of SE is left");
    removed.refresh(&whole);
    assert_eq!(removed.outline(), "NO Sweden");
    live.refresh(&whole);
    assert!(live.outline().contains("Nordics(Sweden NO*2)"), "{}", live.outline());
}

#[test]
fn a_load_tells_what_it_drops_and_what_counts_nowhere() {
    let rows = ["W . .", "EU W .", "SE EU .", "NO EU .", "FR EU ."];
    let memory = day(&["SE", "NO", "FR"], &rows);
    let plain = "R: {table: t, key: id, parent: up}";
    let mut live = Live::new(&memory, plain);
    let report = live.change(
        "add Nordics of SE, NO below EU; unlink SE from EU; unlink NO from EU; rename FR to France; \
         caption SE Sverige; set NO size = 5",
    );
    assert!(report.nowhere.is_empty(), "{report:?}");
    assert_eq!(listed(&live.refresh(&memory).nowhere), "");
    let mut removed = Live::new(&memory, plain);
    removed.set(live.built.clone());
    assert_eq!(removed.change("remove Nordics").nowhere[0].names, ["SE", "NO"]);
    assert_eq!(listed(&removed.refresh(&memory).nowhere), "SE, NO");
    let report = live.load(&memory);
    assert_eq!(listed(&report.dropped), "caption Sverige of SE, size of NO, name France of FR, Nordics");
    assert_eq!((listed(&report.unlinked), listed(&report.nowhere)), ("SE from EU, NO from EU".into(), "SE, NO".into()));
    live.change("relink SE; relink NO");
    let report = live.load(&memory);
    assert_eq!((listed(&report.dropped), listed(&report.nowhere)), (String::new(), String::new()));
    assert_eq!(live.outline(), "W(EU) EU(SE NO FR) SE NO FR");
}

#[test]
fn a_relink_gives_no_edge_that_the_source_has_no_more() {
    let first = day(&["SE", "NO"], &["EU . .", "AM . .", "SE EU .", "NO AM ."]);
    let moved = day(&["SE", "NO"], &["EU . .", "AM . .", "SE AM .", "NO EU ."]);
    let mut live = Live::new(&first, REGIONS);
    live.change("unlink SE from EU");
    live.refresh(&moved);
    let refused = "the source does not have SE below EU any more: link places it there";
    assert!(live.refused("relink SE").ends_with(refused), "{}", live.refused("relink SE"));
    assert!(live.refused("relink SE below EU").ends_with(refused));
    live.refresh(&first);
    assert_eq!(live.outline(), "EU() AM(NO) SE NO", "the edge stays away when it is back");
    live.change("relink SE");
    live.refresh(&first);
    assert_eq!(live.outline(), "EU(SE) AM(NO) SE NO");
    assert_eq!(
        live.refused("link SE below EU weight 0.5"),
        "column 15: SE lies below EU already; its weight changes with move SE from EU below EU weight 0.5"
    );
}

#[test]
fn changes_that_a_refresh_undoes_are_told_as_the_last_of_them_left_it() {
    let memory = day(&["SE", "NO"], &["EU . 1", "SE EU 2", "NO EU 3"]);
    let dimensions = "R: {table: t, key: id, parent: up, caption: b, attributes: [also], all: W,
        format: {SE: \"0.0\"}}";
    let told = |text: &str| {
        let report = Live::new(&memory, dimensions).change(text);
        let all = |all: &[change::SourceElements]| all.iter().flat_map(|one| one.names.clone()).collect::<Vec<_>>();
        let lists = [&report.unlinked, &report.of_source, &report.labels_of_source].map(|list| all(list).join(", "));
        lists.join(" | ")
    };
    assert_eq!(told("unlink NO from EU; relink NO"), " |  | ");
    assert_eq!(told("unlink NO from EU; link NO below EU weight 0.5"), " | NO | ");
    assert_eq!(told("unlink NO from EU"), "NO from EU |  | ");
    assert_eq!(told("place NO before SE"), " | NO | ");
    assert_eq!(told("add X below EU; place X before SE"), " |  | ");
    let labels = "set SE also = \"9\"; caption NO North; set SE number_format = \"0\"";
    assert_eq!(told(labels), " |  | also of SE, caption of NO, number_format of SE");
    assert_eq!(told("caption NO North; rename North to Nord"), " |  | caption of NO, caption of Nord");
    assert_eq!(told("set NO number_format = \"0\"; caption W World; set W also = \"9\"; set SE size = 1"), " |  | ");
    // They stay where the definition gives none.
    let mut live = Live::new(&memory, dimensions);
    live.change(
        "set NO number_format = \"0.000\"; caption W World; add X below EU; caption X Ex; set X also = \"9\"; \
         set SE number_format = \"0\"",
    );
    live.refresh(&memory);
    let text = |name: &str, attribute: &str| {
        let id = live.dimension().find(name).unwrap();
        match live.dimension().attribute(id, attribute) {
            Some(Attribute::Text(text)) => text.clone(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!([text("NO", "number_format"), text("SE", "number_format"), text("X", "also")], ["0.000", "0.0", "9"]);
    assert_eq!((live.found("World"), live.found("Ex")), ("W", "X"));
}

#[test]
fn the_base_of_a_relation_has_the_names_of_the_table() {
    let day = |fam: &[&str], sku: &[&str]| {
        let amounts: Vec<i64> = (0..fam.len()).map(|at| 1 << at).collect();
        let gl = table(vec![("fam", texts(fam)), ("sku", texts(sku)), ("amount", cents(&amounts))]);
        Memory::default().with("gl", gl)
    };
    let mut live = Live::new(&day(&["Food", "Food"], &["Milk", "Ham"]), "P: {levels: [fam, sku]}");
    live.refresh(&day(&["Food", "Food", "Drink"], &["Milk", "Ham", "Milk"]));
    let Built { model, facts, .. } = live.built.clone();
    let cube = warpcube_cube::answer::Cube { model, facts: facts.into(), texts: Default::default() };
    let relation = Relation::of(&cube);
    let all: Vec<usize> = (0..relation.schema().fields().len()).collect();
    let batch = &relation.batches(&cube, &all, &[], usize::MAX).unwrap()[0];
    let names: Vec<String> = (0..batch.num_rows())
        .map(|row| arrow::util::display::array_value_to_string(batch.column(0), row).unwrap())
        .collect();
    assert_eq!(names, ["Milk", "Ham", "Milk"]);
}

#[test]
fn names_that_two_rows_give_are_refused_with_both() {
    let gl = table(vec![
        ("a", texts(&["A-B", "A", "X", "Y"])),
        ("b", texts(&["C", "B-C", "C", "B-C"])),
        ("amount", cents(&[1, 2, 4, 8])),
    ]);
    let refused = tried(&Memory::default().with("gl", gl), "P: {levels: [a, b]}").unwrap_err().to_string();
    assert!(refused.contains("A → B-C and A-B → C both get the name 'P-A-B-C'"), "{refused}");
    let memory = day(&["SE"], &["EU . .", "SE EU .", "NO EU SE"]);
    let refused = tried(&memory, REGIONS).unwrap_err().to_string();
    assert!(refused.contains("row 3") && refused.contains("'SE' is to be an alternative name"), "{refused}");
}

/// [`day`], whose table lacks the group `EU` where levels give it.
fn day_of(dimensions: &str, facts: &[&str], rows: &[&str]) -> Memory {
    let is_row = |row: &&str| !(dimensions.contains("levels") && *row == "EU . .");
    day(facts, &rows.iter().copied().filter(is_row).collect::<Vec<_>>())
}

fn respelled(report: &BuildReport) -> Vec<String> {
    report.respelled.iter().map(|one| format!("{} was {}", one.after, one.before)).collect()
}

#[test]
fn a_second_spelling_is_a_second_element_and_the_first_keeps_what_was_made_by_hand() {
    for dimensions in [REGIONS, "R: {column: r}", "R: {table: t, column: r, levels: [up, id]}"] {
        let mut live = Live::new(&day_of(dimensions, &["de", "fr"], &["EU . .", "de EU .", "fr EU ."]), dimensions);
        live.change("caption de \"Germany\"; alias de Allemagne; set de size = 80; add R:Mine of de");
        let report = live.refresh(&day_of(dimensions, &["de", "DE"], &["EU . .", "de EU .", "fr EU .", "DE EU ."]));
        assert_eq!(listed(&report.added), "DE");
        assert!(["de and DE", "DE and de"].contains(&listed(&report.alike).as_str()), "{:?}", report.alike);
        assert!(respelled(report).is_empty());
        let mut found = cells(&live.built);
        found.sort();
        assert_eq!(found, ["DE = 0.02", "de = 0.01"], "{dimensions}");
        assert_eq!([live.found("Allemagne"), live.found("Germany"), live.found("DE")], ["de", "de", "DE"]);
        assert!(live.size("de").is_some() && live.size("DE").is_none());
        let mine = live.dimension().find("Mine").unwrap();
        assert_eq!(live.dimension().leaves(mine), [live.dimension().find("de").unwrap()]);
        assert!(live.refused("remove De").contains("are, which differ in case alone: write one of them"));
        // Of the two the source writes another one: it is neither's.
        let report = live.refresh(&day_of(dimensions, &["dE"], &["EU . .", "dE EU ."]));
        assert!(respelled(report).is_empty() && listed(&report.added) == "dE", "{dimensions}: {report:?}");
        assert!(live.size("dE").is_none());
        let report = live.refresh(&day_of(dimensions, &["de", "dE"], &["EU . .", "de EU .", "dE EU ."]));
        assert!(respelled(report).is_empty());
        assert!(live.size("de").is_some(), "it is back: {dimensions}");
    }
}

#[test]
fn a_name_that_the_source_writes_in_another_case_is_the_same_element() {
    for dimensions in [REGIONS, "R: {column: r}", "R: {table: t, column: r, levels: [up, id]}"] {
        let mut live =
            Live::new(&day_of(dimensions, &["Berlin", "fr"], &["EU . .", "Berlin EU .", "fr EU ."]), dimensions);
        live.change("alias Berlin Spree; set Berlin size = 4; rename fr to France; add R:Mine of Berlin");
        let report = live.refresh(&day_of(dimensions, &["BERLIN", "FR"], &["EU . .", "BERLIN EU .", "FR EU ."]));
        assert_eq!(respelled(report), ["BERLIN was Berlin", "FR was fr"], "{dimensions}");
        assert!(report.added.is_empty() && report.removed.is_empty() && report.renamed.is_empty(), "{report:?}");
        assert_eq!(cells(&live.built).len(), 2);
        assert_eq!([live.found("Spree"), live.found("Berlin"), live.found("fr")], ["BERLIN", "BERLIN", "France"]);
        assert!(live.size("BERLIN").is_some());
        let aliases = live.dimension().element(live.dimension().find("BERLIN").unwrap()).aliases();
        assert_eq!(aliases, ["Spree"], "the former spelling is no name: {dimensions}");
        // Then both: the former spelling is a new element.
        let report =
            live.refresh(&day_of(dimensions, &["BERLIN", "Berlin"], &["EU . .", "BERLIN EU .", "Berlin EU ."]));
        assert_eq!(listed(&report.added), "Berlin");
        assert_eq!([live.found("Spree"), live.found("Berlin")], ["BERLIN", "Berlin"]);
        // One of them is gone, then it is back under another spelling: what was made by hand waits for its own name.
        let report = live.refresh(&day_of(dimensions, &["Berlin"], &["EU . .", "Berlin EU ."]));
        assert!(respelled(report).is_empty() && live.size("Berlin").is_none(), "{dimensions}");
        live.refresh(&day_of(dimensions, &["BERLIN", "Berlin"], &["EU . .", "BERLIN EU .", "Berlin EU ."]));
        assert!(live.size("BERLIN").is_some() && live.size("Berlin").is_none(), "{dimensions}");
    }
    // An element made by hand is the source's that has its name in another case.
    let mut live = Live::new(&day(&["fr"], &["EU . .", "fr EU ."]), REGIONS);
    live.change("add R:de below EU; set de size = 80");
    let report = live.refresh(&day(&["DE"], &["EU . .", "fr EU .", "DE EU ."]));
    assert_eq!(listed(&report.adopted), "de");
    assert!(live.found("de") == "DE" && live.size("DE").is_some());
    // One beside the source's stays one.
    live.change("add R:De below EU; rename fr to FR");
    let report = live.refresh(&day(&["DE", "fr"], &["EU . .", "fr EU .", "DE EU ."]));
    assert!(report.adopted.is_empty());
    assert_eq!([live.found("De"), live.found("DE"), live.found("fr")], ["De", "DE", "FR"]);
    assert_eq!(cells(&live.built), ["FR = 0.02", "DE = 0.01"]);
}

#[test]
fn a_group_of_the_source_becomes_a_base_element_and_a_base_element_a_group() {
    let group = day(&["a"], &["X . .", "a X .", "b X ."]);
    let base = day(&["a", "X"], &["X . .", "a . .", "b . ."]);
    let empty = day(&["a"], &["X . .", "a . .", "b . ."]);
    // What is below the group by hand cannot stay where facts lie, however the element is called.
    for (changes, name) in [("add h below X", "X"), ("add h below X; rename X to Old", "Old")] {
        let mut live = Live::new(&group, REGIONS);
        live.change(changes);
        let report = live.refresh(&base);
        assert_eq!(listed(&report.dropped), format!("h below {name}, where facts lie"));
        assert_eq!(cells(&live.built), [format!("{name} = 0.02"), "a = 0.01".to_string()], "{changes}");
        live.refresh(&group);
        assert_eq!(live.outline(), format!("{name}(a b) a b h"), "{changes}");
        live.refresh(&base);
    }
    // Rows without an element, which count for it, are facts there, too; a key in another case as well.
    for (facts, more) in [(["a", "Y"], ", unknown: X"), (["a", "x"], "")] {
        let dimensions = format!("R: {{table: t, key: id, parent: up, names: also{more}}}");
        let mut live = Live::new(&group, REGIONS);
        live.dimensions = dimensions;
        live.change("add h below X");
        let report = live.refresh(&day(&facts, &["X . .", "a . .", "b . ."]));
        assert_eq!(listed(&report.dropped), "h below X, where facts lie", "{facts:?}");
        assert_eq!(cells(&live.built), ["X = 0.02", "a = 0.01"], "{facts:?}");
    }
    // Without facts there the element stays a group: also where rows that name it have no value, and where it stands
    // for rows without an element and there are none.
    let mut valueless = day(&["a", "X"], &["X . .", "a . .", "b . ."]);
    valueless =
        valueless.with("gl", table(vec![("r", texts(&["a", "X"])), ("amount", cents_or_null(&[Some(1), None]))]));
    for (memory, more) in [(&empty, ""), (&valueless, ""), (&empty, ", unknown: X"), (&valueless, ", unknown: X")] {
        let mut live = Live::new(&group, REGIONS);
        live.dimensions = format!("R: {{table: t, key: id, parent: up, names: also{more}}}");
        live.change("add h below X");
        assert_eq!(listed(&live.refresh(memory).dropped), "", "{more}");
        assert_eq!(live.outline(), "X(h) a b h", "{more}");
    }
    // What a change takes, a refresh keeps.
    for more in ["unknown: X", "unknown: add X"] {
        let dimensions = format!("R: {{table: t, key: id, parent: up, {more}}}");
        let mut live = Live::new(&empty, &dimensions);
        live.change("add h below X");
        assert_eq!(listed(&live.refresh(&empty).dropped), "", "{more}");
        assert_eq!(live.outline(), "X(h) a b h", "{more}");
        // A row that counts for it is a fact there.
        let report = live.refresh(&day(&["a", "Y"], &["X . .", "a . .", "b . ."]));
        assert_eq!(listed(&report.dropped), "h below X, where facts lie", "{more}");
        assert_eq!(cells(&live.built), ["X = 0.02", "a = 0.01"], "{more}");
    }
    // The base element that becomes a group keeps its place below what was made by hand.
    let mut live = Live::new(&base, REGIONS);
    live.change("add All of X, a weight 2");
    live.refresh(&group);
    assert_eq!(live.outline(), "X(a b) a b All(X a*2)");
    live.refresh(&base);
    assert_eq!(live.outline(), "X a b All(X a*2)");
}

#[test]
fn attributes_by_hand_follow_the_kind_that_the_source_has_now() {
    let dimensions = "R: {table: t, key: id, parent: up, attributes: [also]}";
    let numbers = || {
        let t = table(vec![("id", texts(&["X", "a"])), ("up", texts(&[".", "X"])), ("also", ints(&[1, 2]))]);
        Memory::default().with("gl", table(vec![("r", texts(&["a"])), ("amount", cents(&[1]))])).with("t", t)
    };
    let words = day(&["a"], &["X . large", "a X small"]);
    let value =
        |live: &Live, name: &str| live.dimension().attribute(live.dimension().find(name).unwrap(), "also").cloned();
    let mut live = Live::new(&numbers(), dimensions);
    live.change("add h below X; set h also = 5");
    live.refresh(&words);
    assert_eq!(value(&live, "h"), Some(Attribute::Text("5".to_string())));
    live.change("add i below X; set i also = \"tiny\"");
    let report = live.refresh(&numbers());
    assert_eq!(listed(&report.dropped), "also of i");
    assert_eq!((value(&live, "h"), value(&live, "i")), (Some(Attribute::Number(5.0)), None));
}

#[test]
fn an_edge_that_weights_of_the_source_make_too_heavy_is_dropped_and_told() {
    let dimensions = "R: {table: t, key: id, parent: up, weight: b}";
    let weighed = |weight: f64| {
        let rows = [("Top", None, 1.0), ("Mid", Some("Top"), weight), ("a", Some("Mid"), 1.0), ("b", Some("Mid"), 1.0)];
        let id = texts(&rows.map(|(id, ..)| id));
        let up = texts(&rows.map(|(_, up, _)| up.unwrap_or(".")));
        let t = table(vec![("id", id), ("up", up), ("b", doubles(&rows.map(|(.., weight)| weight)))]);
        Memory::default().with("gl", table(vec![("r", texts(&["a"])), ("amount", cents(&[1]))])).with("t", t)
    };
    let mut live = Live::new(&weighed(1.0), dimensions);
    live.change(
        "add h below Mid weight 1e9; add i below Mid weight 2; add j below Top weight 3; add G of h weight 1e9",
    );
    assert!(live.refused("add k below G weight 1e15; add l below G weight 1e15").contains("add up to"));
    let report = live.refresh(&weighed(1e9));
    assert!(listed(&report.dropped).starts_with("h below Mid, "), "{report:?}");
    assert!(listed(&report.dropped).contains("below Top add up to 1.0"), "{report:?}");
    assert_eq!(live.outline(), "Top(Mid*1000000000 j*3) Mid(a b i*2) a b h i j G(h*1000000000)");
    // An element of the source that only a dropped edge had made a group is a base element again.
    let mut live = Live::new(&weighed(1.0), dimensions);
    live.change("add h below b weight 1e9");
    let is_base = |live: &Live| {
        let dimension = live.dimension();
        dimension.element(dimension.find("b").unwrap()).kind() == ElementKind::Base
    };
    assert!(!is_base(&live));
    assert!(listed(&live.refresh(&weighed(1e9)).dropped).starts_with("h below b, "));
    assert!(is_base(&live));
    // The source's own weights are refused where they stand.
    let definition = parse(&definition_text(dimensions)).unwrap();
    let error = refresh(&definition, &live.cube.model, &weighed(1e15), &Progress::new()).unwrap_err();
    assert!(error.to_string().contains("add up to"), "{error}");
}
