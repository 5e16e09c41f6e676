//! Changes of a live cube by statements: all or none, facts of removed elements kept aside.

use arrow::util::pretty::pretty_format_batches;
use warpcube_cube::change::{ChangeReport, change};
use warpcube_cube::facts::Facts;
use warpcube_cube::model::{Attribute, CubeModel, Dimension, ElementId};
use warpcube_cube::query::parse_changes;
use warpcube_cube::store::{self, CubeLock, StoredCube, TextCell};

mod plan;

use plan::{facts, model};

fn cube() -> StoredCube {
    let (model, facts) = (model(), facts());
    let all: Vec<usize> = (0..facts.len()).collect();
    // The model leaves room for further elements.
    let facts = facts.selected(model.layout(), &all);
    StoredCube::new(model, facts)
}

/// A cube with a definition, whose elements are the source's.
fn sourced() -> StoredCube {
    StoredCube { definition: Some("cube: plan".to_owned()), ..cube() }
}

fn changed_from(cube: &StoredCube, text: &str) -> (StoredCube, ChangeReport) {
    let (changed, report) = change(cube, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    // What a change makes is a cube that can be stored and comes back equal.
    let folder = tempfile::tempdir().unwrap();
    store::create(&folder.path().join("c"), &changed).unwrap();
    assert_eq!(store::open(&folder.path().join("c")).unwrap(), changed, "{text}");
    (changed, report)
}

fn changed(text: &str) -> StoredCube {
    changed_from(&cube(), text).0
}

fn refused(text: &str) -> String {
    change(&cube(), text).unwrap_err().to_string()
}

/// Elements by position, consolidated ones with their children.
fn outline(model: &CubeModel, dimension: usize) -> String {
    let dimension = &model.dimensions()[dimension];
    let element = |id: &ElementId| {
        let element = dimension.element(*id);
        let children = element.children().iter().map(|edge| {
            let weight = if edge.weight == 1.0 { String::new() } else { format!("*{}", edge.weight) };
            format!("{}{weight}", dimension.element(edge.child).name())
        });
        match element.base() {
            Some(_) => element.name().to_owned(),
            None => format!("{}({})", element.name(), children.collect::<Vec<_>>().join(" ")),
        }
    };
    dimension.elements().iter().map(element).collect::<Vec<_>>().join(" ")
}

/// Cells as names and values of the first measure.
fn cells(model: &CubeModel, facts: &Facts) -> Vec<String> {
    let name =
        |(dimension, base): (&Dimension, u32)| dimension.element(dimension.at_base(base).unwrap()).name().to_owned();
    let values = match &facts.base().columns()[0].values {
        warpcube_cube::facts::Values::Decimals(values) => values.clone(),
        warpcube_cube::facts::Values::Doubles(_) => Vec::new(),
    };
    let cell = |at: usize| {
        let names: Vec<String> = model.dimensions().iter().zip(facts.cell(at)).map(name).collect();
        format!("{} {}", names.join(" "), values[at])
    };
    (0..facts.len()).map(cell).collect()
}

const REGIONS: &str = "France Spain Japan World(Europe Japan) Europe(France Spain)";

#[test]
fn elements_are_added_with_edges() {
    let of = |text: &str| outline(&changed(text).model, 1);
    assert_eq!(of("add Region:Italy"), format!("{REGIONS} Italy"));
    assert_eq!(of("ADD Italy BELOW europe;"), REGIONS.replace("France Spain)", "France Spain Italy)") + " Italy");
    assert_eq!(
        of("add Gap of France, Spain weight -0.5 below World weight 2 before Spain; add \"New one\" after Gap"),
        "France Gap(France Spain*-0.5) New one Spain Japan World(Europe Japan Gap*2) Europe(France Spain)"
    );
    assert_eq!(of("add Region:Empty of Japan; unlink Japan from Empty"), format!("{REGIONS} Empty()"));
    let both = changed("add Version:Forecast; add Miss of Forecast, Budget weight -1; default Miss");
    assert_eq!(outline(&both.model, 0), "Actual Budget Variance(Actual Budget*-1) Forecast Miss(Forecast Budget*-1)");
    let version = &both.model.dimensions()[0];
    assert_eq!(version.element(version.default_element().unwrap()).name(), "Miss");
    assert!(version.element(version.find("Forecast").unwrap()).is_handmade());
    assert_eq!(both.facts.len(), 6);
}

#[test]
fn keys_grow_with_a_dimension() {
    let more = (0..30).map(|number| format!("add Month:M{number}")).collect::<Vec<_>>().join(";");
    let (wide, report) = changed_from(&cube(), &more);
    assert_eq!(report.changes, 30);
    assert!(wide.model.layout().bits()[2] >= 5 && model().layout().bits()[2] < 5);
    assert_eq!(wide.facts.layout(), wide.model.layout());
    assert_eq!(cells(&wide.model, &wide.facts), cells(&model(), &facts()));
}

#[test]
fn elements_move_and_weigh() {
    let of = |text: &str| outline(&changed(text).model, 1);
    assert_eq!(of("move Spain below World"), "France Spain Japan World(Europe Japan Spain) Europe(France)");
    assert_eq!(of("move Spain below Europe weight 3"), "France Spain Japan World(Europe Japan) Europe(France Spain*3)");
    assert_eq!(
        of("link Spain below World weight -1; move Spain from World below Europe weight 2"),
        "France Spain Japan World(Europe Japan) Europe(France Spain*2)"
    );
    assert_eq!(
        of("unlink Spain from Europe; add Region:Apart of Spain"),
        "France Spain Japan World(Europe Japan) Europe(France) Apart(Spain)"
    );
    assert_eq!(of("place World before France"), "World(Europe Japan) France Spain Japan Europe(France Spain)");
    assert_eq!(of("place France after World"), "Spain Japan World(Europe Japan) France Europe(Spain France)");
    assert_eq!(of("place Japan before Japan; place Japan after Japan"), REGIONS);
}

#[test]
fn names_and_labels() {
    let (cube, report) = changed_from(
        &sourced(),
        "rename Spain to \"España\"; caption France \"La France\"; alias France Hexagon; set France size = 5.5;
         set Japan size = 7; set Japan code = jp; set France code = 33; caption Japan x; caption Japan",
    );
    let region = &cube.model.dimensions()[1];
    let (france, japan) = (region.find("hexagon").unwrap(), region.find("Japan").unwrap());
    assert_eq!(region.find("Spain").unwrap(), region.find("España").unwrap(), "rows of the source find the old name");
    assert_eq!((region.element(france).caption(), region.element(japan).has_caption()), ("La France", false));
    assert_eq!(region.attribute(france, "SIZE"), Some(&Attribute::Number(5.5)));
    assert_eq!(region.attribute(france, "code"), Some(&Attribute::Text("33".to_owned())));
    assert_eq!((report.changes, report.of_source.len()), (9, 0));
    // A cube without a source has no rows to find the old name.
    let region = changed("rename Spain to Hispania; add Region:Spain").model;
    assert_eq!(outline(&region, 1), "France Hispania Japan World(Europe Japan) Europe(France Hispania) Spain");
    assert_eq!(outline(&changed("rename spain to SPAIN").model, 1), REGIONS.replace("Spain", "SPAIN"));
}

#[test]
fn a_name_and_an_alternative_name_change_places() {
    for cube in [cube(), sourced()] {
        let alias = if cube.definition.is_some() { "" } else { "alias Spain XX; " };
        let back = if cube.definition.is_some() { "rename Spain to XX; " } else { "" };
        let (cube, _) = changed_from(&cube, &format!("{alias}{back}rename XX to Spain; rename Spain to XX"));
        let region = &cube.model.dimensions()[1];
        let spain = region.element(region.find("Spain").unwrap());
        assert_eq!((spain.name(), spain.aliases()), ("XX", &["Spain".to_owned()][..]));
        assert_eq!(region.find("XX").unwrap(), region.find("Spain").unwrap());
    }
}

#[test]
fn elements_exchange_their_names() {
    let of = |text: &str| outline(&changed(text).model, 1);
    let exchanged = "Spain France Japan World(Europe Japan) Europe(Spain France)";
    assert_eq!(of("rename France to Spain; rename Spain to France"), exchanged);
    assert_eq!(of("rename france to SPAIN; rename sPAIN to France"), exchanged.replace("Spain", "SPAIN"));
    assert_eq!(
        of("rename France to Spain; rename Spain to Japan; rename Japan to France; add Italy below France"),
        "Spain Japan France(Italy) World(Europe France) Europe(Spain Japan) Italy",
        "a ring; a statement behind it finds the new names"
    );
    assert_eq!(
        of("rename France to Spain; rename Japan to France; rename Spain to Japan"),
        "Spain Japan France World(Europe France) Europe(Spain Japan)",
        "a ring in another order"
    );
    assert_eq!(
        of("rename France to Spain; rename Spain to Iberia"),
        "Spain Iberia Japan World(Europe Japan) Europe(Spain Iberia)"
    );
    assert_eq!(of("rename Spain to T; rename France to Spain; rename T to France"), exchanged, "one after the other");
    // Captions, which an element may have that another one has for a name: each stands for who had it before.
    let model =
        changed("caption France Gaul; caption Spain Iberia; rename Gaul to Iberia; rename Iberia to Gaul").model;
    assert_eq!(outline(&model, 1), "Iberia Gaul Japan World(Europe Japan) Europe(Iberia Gaul)");
    let captions = [0, 1].map(|id| model.dimensions()[1].element(ElementId::new(id)).caption());
    assert_eq!(captions, ["Iberia", "Gaul"]);
    // Elements of several dimensions, found by an alternative name and by a caption.
    let model = changed(
        "alias France Hexagon; caption Spain Iberia; rename Hexagon to Spain; rename Jan to Feb; \
         rename Iberia to France; rename Feb to Jan",
    )
    .model;
    assert_eq!((outline(&model, 1), outline(&model, 2)), (exchanged.to_owned(), "Feb Jan Year(Feb Jan)".to_owned()));
    let region = &model.dimensions()[1];
    let (first, second) = (region.element(ElementId::new(0)), region.element(ElementId::new(1)));
    assert_eq!((first.name(), first.aliases(), first.has_caption()), ("Spain", &["Hexagon".to_owned()][..], false));
    assert_eq!((second.name(), second.caption()), ("France", "France"));
    assert_eq!(cells(&model, &facts())[..2], ["Actual Spain Feb 100", "Actual Spain Jan 50"], "facts stay");
}

#[test]
fn names_that_are_not_given_up_are_refused() {
    let taken = |column, name: &str, other: &str| {
        let taken = match name == other {
            true => format!("the name '{name}' is taken by '{other}'"),
            false => format!("'{name}' is an alternative name of '{other}'"),
        };
        format!("column {column}: dimension 'Region': {taken}; names are unique")
    };
    assert_eq!(refused("rename France to Spain; rename Japan to France"), taken(1, "Spain", "Spain"));
    assert_eq!(refused("rename France to Spain; add Region:Italy; rename Spain to France"), taken(1, "Spain", "Spain"));
    assert_eq!(refused("rename France to Spain; rename France to Gaul"), taken(1, "Spain", "Spain"));
    assert_eq!(
        refused("rename France to Spain; rename Japan to Spain; rename Spain to X"),
        taken(25, "Spain", "Spain")
    );
    // An element keeps a name that has become its alternative one.
    assert_eq!(
        refused("alias Spain Iberia; rename France to Spain; rename Spain to Iberia"),
        taken(21, "Spain", "Spain")
    );
    assert_eq!(
        refused("alias Spain Iberia; rename France to Iberia; rename Spain to France"),
        taken(21, "Iberia", "Spain")
    );
}

#[test]
fn rows_of_the_source_find_elements_that_have_exchanged_names() {
    let (cube, report) =
        changed_from(&sourced(), "rename France to Spain; rename Spain to Japan; rename Japan to Nippon");
    let region = &cube.model.dimensions()[1];
    let found = |name: &str| region.element(region.find_of_source(name).unwrap()).name().to_owned();
    assert_eq!([found("france"), found("Spain"), found("JAPAN")], ["Spain", "Japan", "Nippon"]);
    assert_eq!(region.find("France").unwrap(), region.find("Spain").unwrap(), "nobody else has it");
    assert_eq!(region.element(region.find("Japan").unwrap()).aliases(), [""; 0]);
    assert_eq!((report.of_source.len(), report.defaults.len()), (0, 0));
    // The names of the source stay through further changes.
    let (cube, _) = changed_from(&cube, "rename Spain to Japan; rename Japan to Spain; rename Nippon to N");
    let region = &cube.model.dimensions()[1];
    let found = |name: &str| region.element(region.find_of_source(name).unwrap()).name().to_owned();
    assert_eq!([found("France"), found("Spain"), found("Japan")], ["Japan", "Spain", "N"]);
    let (cube, _) = changed_from(&cube, "remove N");
    assert_eq!(cube.model.dimensions()[1].find_of_source("Japan"), cube.model.dimensions()[1].find("Japan").ok());
}

#[test]
fn an_element_that_is_renamed_by_its_caption_has_the_new_one() {
    let (cube, _) = changed_from(&sourced(), "caption Spain Espagne; rename espagne to Iberia; rename France to Gaul");
    let region = &cube.model.dimensions()[1];
    let spain = region.element(region.find("Spain").unwrap());
    assert_eq!((spain.name(), spain.caption()), ("Iberia", "Iberia"));
    assert!(region.find("Espagne").is_err());
    let (cube, _) = changed_from(&cube, "caption Gaul \"La France\"; rename Gaul to France");
    assert_eq!(cube.model.dimensions()[1].element(ElementId::new(0)).caption(), "La France", "found by its name");
}

#[test]
fn default_elements_that_a_change_moves_are_told() {
    let moves = |text: &str| {
        let (_, report) = changed_from(&cube(), text);
        report.defaults.iter().map(|one| format!("{}: {} {}", one.dimension, one.before, one.after)).collect::<Vec<_>>()
    };
    assert_eq!(moves("add Region:Italy"), [""; 0]);
    assert_eq!(moves("add Region:Italy below World; add Version:Forecast"), [""; 0]);
    assert_eq!(moves("add Region:Italy; default Italy"), [""; 0], "a statement says so");
    assert_eq!(moves("move Spain below World weight 2; remove Actual"), ["Version: Actual Budget"]);
    // A default element that the rule would move stays.
    let (cube, report) = changed_from(&cube(), "add Region:Italy");
    let region = &cube.model.dimensions()[1];
    assert_eq!(region.element(region.default_element().unwrap()).name(), "World");
    let kept = &report.defaults_kept[0];
    assert_eq!((kept.before.as_str(), kept.after.as_str(), report.defaults_kept.len()), ("World", "France", 1));
}

#[test]
fn edges_of_the_source_are_unlinked_until_a_relink() {
    let listed = |report: &ChangeReport| {
        let edges =
            report.unlinked.iter().flat_map(|it| it.names.iter().map(|edge| format!("{}: {edge}", it.dimension)));
        edges.collect::<Vec<_>>()
    };
    let (cube, report) = changed_from(&sourced(), "unlink Spain from Europe; move Spain below World weight 2");
    assert_eq!(listed(&report), ["Region: Spain from Europe"]);
    let (cube, _) = changed_from(&cube, "unlink Spain from World; relink Spain below Europe");
    assert_eq!(outline(&cube.model, 1), REGIONS);
    let spain = |cube: &StoredCube| cube.model.dimensions()[1].element(ElementId::new(1)).unlinked().len();
    assert_eq!(spain(&cube), 1, "World is left");
    let refused = |text: &str| change(&cube, text).unwrap_err().to_string();
    assert_eq!(
        refused("relink Spain below Europe"),
        "column 20: Spain is unlinked from World, not from Europe: link places it below further ones"
    );
    assert_eq!(
        refused("relink France"),
        "column 8: France is unlinked from no element: link places it below further ones"
    );
    let (cube, _) = changed_from(&cube, "relink Spain");
    assert_eq!(spain(&cube), 0);
    assert_eq!(outline(&cube.model, 1), REGIONS.replace("Japan)", "Japan Spain*2)"));
    // A move to a group made by hand stays, as the edge to it does; one between elements of the source does not.
    let (cube, report) =
        changed_from(&sourced(), "add Iberia of Spain below Europe; unlink Spain from Iberia; move Spain below Iberia");
    assert_eq!((listed(&report), spain(&cube)), (vec!["Region: Spain from Europe".to_string()], 1));
    let (cube, report) = changed_from(&sourced(), "move Spain from Europe below World");
    assert_eq!((listed(&report), spain(&cube), report.of_source.len()), (Vec::new(), 0, 1));
    // Elements that go take it along; a link ends it.
    let (cube, _) = changed_from(&sourced(), "unlink Spain from Europe; unlink France from Europe; remove Europe");
    assert_eq!(spain(&cube), 0);
    assert_eq!(spain(&changed_from(&sourced(), "unlink Spain from Europe; link Spain below Europe").0), 0);
    assert_eq!(spain(&changed("unlink Spain from Europe")), 0, "a cube without a source has nothing to come back");
}

#[test]
fn base_elements_over_two_paths_are_told() {
    let told = |text: &str| {
        let report = changed_from(&sourced(), text).1;
        report
            .two_paths
            .iter()
            .map(|it| format!("{} {} {:?}", it.dimension, it.elements, it.examples))
            .collect::<Vec<_>>()
    };
    let twice = r#"Region 1 [("Spain", "Europe")]"#;
    assert_eq!(told("add Iberia of Spain below Europe"), [twice]);
    assert_eq!(told("add Iberia of Spain below Europe; unlink Spain from Europe"), [""; 0]);
    assert_eq!(told("add Iberia of Spain; add Other of Iberia, Japan"), [""; 0], "further roots");
    assert_eq!(told("add Iberia of Spain below Europe weight 0"), [""; 0]);
}

#[test]
fn facts_and_texts_of_removed_elements_are_kept_aside() {
    let text = |region: u32, text: &str| TextCell {
        elements: vec![ElementId::new(0), ElementId::new(region), ElementId::new(0)],
        text: text.to_owned(),
    };
    let noted = StoredCube { texts: vec![text(0, "fr"), text(1, "es"), text(4, "eu")], ..sourced() };
    let (cube, report) =
        changed_from(&noted, "rename Spain to Espana; remove Espana, Feb; remove Europe; remove Japan");
    assert_eq!(outline(&cube.model, 1), "France World()");
    assert_eq!(cells(&cube.model, &cube.facts), ["Actual France Jan 100", "Budget France Jan 90"]);
    let aside: Vec<(&str, &str, u64)> =
        report.facts_aside.iter().map(|it| (it.dimension.as_str(), it.element.as_str(), it.facts)).collect();
    assert_eq!(aside, [("Region", "Spain", 2), ("Month", "Feb", 2)], "under the names before the change");
    assert_eq!((report.texts_aside, &cube.texts), (2, &vec![text(0, "fr")]));
    let rows = cube.aside.iter().map(|batch| pretty_format_batches(std::slice::from_ref(batch)).unwrap().to_string());
    let rows: Vec<String> = rows.flat_map(|table| table.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let row = |parts: &[&str]| {
        rows.iter().any(|row| row.split('|').map(str::trim).filter(|it| !it.is_empty()).eq(parts.iter().copied()))
    };
    assert!(row(&["Version", "Region", "Month", "Sales", "Heads", "reason"]), "{rows:#?}");
    assert!(row(&["Actual", "Spain", "Jan", "30", "2", "Region: 'Spain' was removed"]), "{rows:#?}");
    assert!(row(&["Budget", "France", "Feb", "60", "5", "Month: 'Feb' was removed"]), "{rows:#?}");
    assert!(row(&["Actual", "Spain", "Jan", "es", "Region: 'Spain' was removed"]), "{rows:#?}");
    let of_source: Vec<(&str, String)> =
        report.of_source.iter().map(|it| (it.dimension.as_str(), it.names.join(" "))).collect();
    assert_eq!(of_source, [("Region", "Espana Europe Japan".to_owned()), ("Month", "Feb".to_owned())]);
    // What is aside already stays so.
    let (again, report) = changed_from(&cube, "remove France");
    assert_eq!((again.facts.len(), again.aside.len(), report.facts_aside[0].facts), (0, 4, 2));
}

#[test]
fn refusals_name_the_place_and_change_nothing() {
    for (text, expected) in [
        (
            "",
            "column 1: expected add, rename, move, link, unlink, relink, place, remove, caption, alias, set or \
             default, found the end",
        ),
        ("add Region:Italy remove Spain", "column 18: expected ; or the end of the change, found remove"),
        (
            "add Italy",
            "column 5: Italy needs its dimension, one of Version, Region, Month: write dimension:Italy, \
             or below and a parent",
        ),
        ("add Regin:Italy", "column 5: no dimension Regin; did you mean 'Region'?"),
        ("add Region:Spain", "column 1: dimension 'Region': the name 'Spain' is taken by 'Spain'; names are unique"),
        ("remove Spian", "column 8: no dimension has an element Spian; near it: Region:Spain"),
        (
            "rename Spain to France",
            "column 1: dimension 'Region': the name 'France' is taken by 'France'; names are unique",
        ),
        ("move Europe below Europe", "column 1: dimension 'Region': a cycle of consolidations: Europe → Europe"),
        (
            "add Region:A of World; link A below World",
            "column 24: dimension 'Region': a cycle of consolidations: World → A → World",
        ),
        (
            "link Spain below Europe",
            "column 18: Spain lies below Europe already; its weight changes with move Spain from Europe below Europe \
             weight 1",
        ),
        ("move Spain below World, World", "column 25: World stands here a second time"),
        ("unlink Spain from World", "column 1: dimension 'Region': 'Spain' is no child of 'World'"),
        ("move Spain from World below Europe", "column 1: dimension 'Region': 'Spain' is no child of 'World'"),
        ("move Spain below Yeer", "column 18: dimension 'Region' has no element 'Yeer'"),
        ("move Spain below Month:Year", "column 18: Month:Year stands in a change of dimension Region"),
        (
            "add Paris below France",
            "column 1: dimension 'Region': 'France' holds facts and cannot become a consolidated element; \
             add an element that consolidates it instead",
        ),
        (
            "add Italy below Europe weight NaN",
            "column 1: dimension 'Region': the weight of Europe → Italy is NaN; a weight is a number from -1e15 to \
             1e15",
        ),
        (
            "add Italy below Europe weight 1e308",
            "column 1: dimension 'Region': the weight of Europe → Italy is 1e308; a weight is a number from -1e15 to \
             1e15",
        ),
        (
            "add Big of Spain weight 1e9; add Bigger of Big weight 1e9",
            "column 30: dimension 'Region': the weights of the base elements below 'Bigger' add up to 1e18 by \
             magnitude, over all paths; the most is 1e15: give its edges smaller weights",
        ),
        (
            "add \"  \" below Europe",
            "column 1: a name in dimension 'Region' is empty or blank: give it a character that is no blank",
        ),
        (
            "rename Spain to \" \"",
            "column 1: a name in dimension 'Region' is empty or blank: give it a character that is no blank",
        ),
        (
            "alias Spain \" \"",
            "column 1: a name in dimension 'Region' is empty or blank: give it a character that is no blank",
        ),
        (
            "caption Spain \" \"",
            "column 1: a name in dimension 'Region' is empty or blank: give it a character that is no blank",
        ),
        ("add Italy below Europe weight much", "column 31: expected a weight, a number, found much"),
        ("place Spain", "column 12: expected before or after, found the end"),
        (
            "set Spain size = 5; set France size = large",
            "column 21: dimension 'Region': attribute 'size' of 'France' is the text 'large'; the attribute \
             holds numbers",
        ),
        ("add Region:Italy;\nremove Itly", "line 2, column 8: no dimension has an element Itly; near it: Region:Italy"),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn base_elements_without_facts_become_consolidated() {
    let cube = changed("add Osaka below Japan; add Tokyo below Japan weight 0.5");
    assert_eq!(
        outline(&cube.model, 1),
        "France Spain Japan(Osaka Tokyo*0.5) World(Europe Japan) Europe(France Spain) Osaka Tokyo"
    );
}

#[test]
fn statements_are_separated_by_semicolons() {
    assert_eq!(parse_changes("remove a; remove b ;").unwrap().len(), 2);
    assert!(parse_changes("remove a;; remove b").is_err());
    assert_eq!(parse_changes("caption a; caption b c").unwrap().len(), 2);
}

#[test]
fn a_refused_change_leaves_the_stored_cube() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    store::create(&path, &cube()).unwrap();
    let held = CubeLock::lock(&path).unwrap();
    assert!(change(&held.open().unwrap(), "add Region:Italy; remove Nowhere").is_err());
    assert_eq!(held.open().unwrap(), cube());
    let (changed, _) = change(&held.open().unwrap(), "remove Region:France").unwrap();
    assert_eq!(held.replace(&changed).unwrap(), 2);
    let info = store::info(&path).unwrap();
    assert_eq!((info.facts.cells, info.aside), (2, 4));
}

#[test]
fn names_that_differ_in_case_alone_are_two_elements() {
    let cube = changed("add Region:SPAIN below World; rename France to spain; rename Japan to japan");
    let dimension = &cube.model.dimensions()[1];
    let name = |text: &str| dimension.find(text).map(|id| dimension.element(id).name());
    assert_eq!((name("SPAIN").unwrap(), name("spain").unwrap(), name("JAPAN").unwrap()), ("SPAIN", "spain", "japan"));
    let told = "'sPain' is no element; 'Spain', 'SPAIN' and 'spain' are, which differ in case alone: write one of them";
    assert!(change(&cube, "remove sPain").unwrap_err().to_string().ends_with(told));
    assert!(change(&cube, "remove Region:sPain").unwrap_err().to_string().ends_with(told));
    // The source still finds an element that was renamed to its own name in another case.
    let (cube, _) = changed_from(&sourced(), "rename Spain to SPAIN; add Region:spain below World");
    let dimension = &cube.model.dimensions()[1];
    assert_eq!(dimension.find_of_source("Spain"), dimension.find_key("SPAIN"));
    assert_ne!(dimension.find_key("spain"), dimension.find_key("SPAIN"));
}

#[test]
fn errors_tell_whose_alternative_name_is_taken() {
    let (cube, _) = changed_from(&sourced(), "rename Spain to Espagne");
    let refused = change(&cube, "add Region:Spain").unwrap_err().to_string();
    let expected = "'Spain' is an alternative name of 'Espagne'; names are unique";
    assert!(refused.ends_with(expected), "{refused}");
    let refused = change(&cube, "rename Measures to x").unwrap_err().to_string();
    assert!(refused.ends_with("Measures are the measures: measures are those of the definition, and are not changed"));
    let refused = change(&cube, "add Measures:New").unwrap_err().to_string();
    assert!(refused.ends_with("measures are those of the definition, and are not changed"), "{refused}");
}

#[test]
fn formats_of_elements_are_formats() {
    let cube = changed("set France number_format = 0.00; set Spain number_format = \"#,##0;(#,##0)\"");
    let dimension = &cube.model.dimensions()[1];
    let format = |name: &str| dimension.attribute(dimension.find(name).unwrap(), "number_format").cloned();
    assert_eq!(format("France"), Some(Attribute::Text("0.00".to_owned())));
    assert_eq!(format("Spain"), Some(Attribute::Text("#,##0;(#,##0)".to_owned())));
    let error = refused("set France Number_Format = \"[Red]0\"");
    assert!(error.starts_with("column 1: format \"[Red]0\": [Red] is not shown"), "{error}");
}
