//! Texts of queries and what is parsed from them.

use proptest::prelude::*;
use warpcube_cube::query::{
    CrossTab, Direction, Extreme, Literal, Place, Query, QueryError, Selection, Set, Term, parse,
};

fn table(text: &str) -> CrossTab {
    match parse(text) {
        Ok(Query::CrossTab(table)) => table,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> QueryError {
    parse(text).expect_err(text)
}

/// A set in words: functions with their arguments, and filters in brackets.
fn words(set: &Set) -> String {
    set.iter().map(term).collect::<Vec<_>>().join(" | ")
}

fn term(term: &Term) -> String {
    let selection = match &term.selection {
        Selection::Name(name) => name.to_string(),
        Selection::Range(first, last) => format!("{first} to {last}"),
        Selection::Children(of, depth) => format!("children {depth} of {of}"),
        Selection::Descendants(of, depth) => format!("descendants {depth:?} of {of}"),
        Selection::Leaves(of) => format!("leaves of {of}"),
        Selection::Level(dimension, level) => format!("level {level} of {dimension}"),
        Selection::Sum(set) => format!("sum of ({})", words(set)),
    };
    let filter = term.filter.as_ref();
    selection + &filter.map_or(String::new(), |f| format!(" [{} {:?} {:?}]", f.attribute, f.comparison, f.literal))
}

#[test]
fn examples_of_the_tour() {
    let asked = table("rows Europe, children(Europe) cols Version where Margin, FY26");
    assert_eq!(words(&asked.rows[0]), "Europe | children 1 of Europe");
    assert_eq!(words(&asked.columns[0]), "Version");
    let Place::Element(second) = &asked.point[1] else { panic!("{:?}", asked.point) };
    assert_eq!((asked.point.len(), second.name.as_str()), (2, "FY26"));

    let Ok(Query::Facts(point)) = parse("facts at France, Cost, Actual, 2026-03") else { panic!() };
    assert_eq!(point.len(), 4);
    let Ok(Query::Nearest { count: 5, to }) = parse("nearest 5 to France, Cost") else { panic!() };
    assert_eq!(to.len(), 2);
    assert!(matches!(parse("explain"), Ok(Query::Explain(point)) if point.is_empty()));
    assert!(matches!(parse("source at Region:France"), Ok(Query::Source(point)) if point.len() == 1));
}

#[test]
fn all_terms() {
    let asked = table(
        "ROWS Region:\"South, west\"..Spain * descendants(Europe, 2), leaves(Asia) * level(Time, 0) with price >= 1.5 \
         Columns sum(a, children(b)) with kind <> \"x \"\"y\"\"\" pages Month Top 3 EMPTY",
    );
    assert_eq!(words(&asked.rows[0]), "Region:South, west to Spain");
    assert_eq!(words(&asked.rows[1]), "descendants Some(2) of Europe | leaves of Asia");
    assert_eq!(words(&asked.rows[2]), "level 0 of Time [price GreaterOrEqual Number(1.5, \"1.5\")]");
    assert_eq!(words(&asked.columns[0]), "sum of (a | children 1 of b) [kind NotEqual Text(\"x \\\"y\\\"\")]");
    assert_eq!(words(&asked.pages[0]), "Month");
    let Some(Extreme { direction, count, by, .. }) = asked.extreme else { panic!("no top") };
    assert_eq!((direction, count, by.len()), (Direction::Top, 3, 0));
    let Some(Extreme { direction, by, .. }) = table("rows a bottom 2 by b, sum(c, d) where e").extreme else {
        panic!()
    };
    assert_eq!((direction, by.len()), (Direction::Bottom, 2));
    assert!(asked.shows_empty);
}

#[test]
fn words_of_the_language_are_names_between_quotes_and_where_a_name_is_expected() {
    assert_eq!(words(&table("rows \"rows\" cols sum, top where x").columns[0]), "sum | top");
    let filter = table("rows a with \"Infinity\" = inf").rows[0][0].filter.clone().unwrap();
    assert_eq!(filter.literal, Literal::Text("inf".to_string()));
}

#[test]
fn errors_name_the_place() {
    for (text, column, message) in [
        ("", 1, "expected rows, cols, pages, where, top, bottom or empty, found the end"),
        ("select 1", 1, "expected rows, cols, pages, where, top, bottom or empty, found select"),
        ("rows", 5, "expected an element, found the end"),
        ("rows a,", 8, "expected an element, found the end"),
        ("rows a rows b", 8, "rows stands here a second time"),
        ("rows a top 1 bottom 2", 14, "top or bottom stands here a second time"),
        ("rows a\ncols b top x", 12, "expected how many rows are wanted, a whole number, found x"),
        ("rows kids(a)", 6, "no function kids: there are children, descendants, leaves, level and sum"),
        ("rows top(a, 3)", 6, "top is an option of the whole query: rows … top 3 by a column"),
        ("rows a top 3 of b", 14, "expected rows, cols, pages, where, top, bottom or empty, found of"),
        ("rows leaves(a, 2)", 14, "expected ), found ,"),
        ("rows level(a, 99999999999)", 15, "99999999999 is too large for a level"),
        ("rows \"é\" cols \"a", 15, "this quote is not closed"),
        ("rows a;", 7, "expected rows, cols, pages, where, top, bottom or empty, found ;"),
        ("rows a#", 7, "'#' is no part of a query; names with other characters are quoted: \"…\""),
        ("rows \"\"", 6, "a name between quotes is empty"),
        ("rows a with b", 14, "expected =, <>, <, <=, > or >=, found the end"),
        ("where children(a)", 7, "children(…) is a set, and a point has one element a dimension: sum(children(…))"),
        ("facts France", 7, "expected at, found France"),
        ("nearest -1 to a", 9, "expected how many cells are wanted, a whole number, found -1"),
        ("facts at a top 3", 12, "expected the end of the query, found top"),
    ] {
        let found = error(text);
        assert_eq!((found.message.as_str(), found.column), (message, column), "{text}");
    }
    assert_eq!(error("rows a\ncols kids(b)").excerpt("rows a\ncols kids(b)"), "cols kids(b)\n     ^^^^");
}

#[test]
fn deep_sums_are_refused() {
    let deep = |depth: usize| format!("rows {}a{}", "sum(".repeat(depth), ")".repeat(depth));
    assert!(parse(&deep(64)).is_ok());
    assert_eq!(error(&deep(100_000)).message, "sums are nested deeper than 64");
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-z\"(),:*.<=> \n€-]{0,40}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.span.start <= error.span.end && error.span.end <= text.len());
            error.excerpt(&text);
        }
    }

    #[test]
    fn any_name_can_be_quoted(name in "\\PC{1,20}") {
        let text = format!("rows \"{}\"", name.replace('"', "\"\""));
        prop_assert_eq!(words(&table(&text).rows[0]), name);
    }
}
