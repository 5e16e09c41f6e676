//! Definition files: what is read from them, and the place of every error.

use warpcube_cube::define::{FiscalYear, TimeLevels, UnknownElements, ValueTypeText, parse, schema};
use warpcube_cube::model::{Rule, Span, ValueType};

const PLAN: &str = r##"
cube: plan
facts: {sql: "SELECT * FROM 'gl/*.parquet'", value: amount}
value: {type: decimal(2), format: "#,##0"}
dimensions:
  Month:   {column: month, levels: [year, quarter, month], fiscal_start: Apr}
  Region:  {table: regions.csv, key: id, parent: parent_id, caption: name}
  Product: {table: products.csv, levels: [group, sku]}
  Version: {elements: [Actual, Budget], consolidated: {Variance: {Actual: 1, Budget: -1}}}
  Account: {elements: [Units, Revenue, Cost], consolidated: {Margin: {Revenue: 1, Cost: -1}}}
"##;

#[test]
fn the_plan() {
    let plan = parse(PLAN).unwrap();
    assert_eq!(plan.dimensions.names().collect::<Vec<_>>(), ["Month", "Region", "Product", "Version", "Account"]);
    assert_eq!(plan.value.value_type.0, ValueType::Decimal { scale: 2 });
    let month = &plan.dimensions["Month"];
    assert_eq!((month.fiscal_start.unwrap().number(), month.levels.len()), (4, 3));
    assert_eq!(plan.dimensions["Version"].consolidated["Variance"]["Budget"], -1.0);
    assert_eq!(plan.unknown, UnknownElements::Refuse);
}

#[test]
fn measures_and_unknown_elements() {
    let text = "
cube: staff
facts: {file: staff.parquet}
measures:
  Heads: {column: heads, rule: sum, over: {Month: last}, type: decimal(0)}
  Rows: {rule: count}
unknown: aside
dimensions:
  Month: {}
  Region: {unknown: Elsewhere}
  Product: {unknown: add  Others}
";
    let cube = parse(text).unwrap();
    let heads = &cube.measures["Heads"];
    assert_eq!(
        (heads.rule, heads.over["Month"], heads.value_type),
        (Rule::Sum, Span::Last, Some(ValueTypeText(ValueType::Decimal { scale: 0 })))
    );
    assert_eq!(cube.unknown, UnknownElements::Aside);
    assert_eq!(cube.dimensions["Region"].unknown, Some(UnknownElements::Named("Elsewhere".to_string())));
    assert_eq!(cube.dimensions["Product"].unknown, Some(UnknownElements::AddNamed("Others".to_string())));
    let written = serde_json::to_string(&cube).unwrap();
    assert_eq!(parse(&written).unwrap(), cube);
}

#[test]
fn a_definition_written_is_read_alike() {
    let plan = parse(PLAN).unwrap();
    let written = serde_json::to_string(&plan).unwrap();
    assert_eq!(parse(&written).unwrap(), plan, "JSON is YAML");
}

#[test]
fn errors_have_line_and_column() {
    let mut bad = Vec::new();
    let within = |dimension: &str| format!("cube: c\nfacts: {{file: f, value: v}}\ndimensions:\n  D: {dimension}\n");
    let names: Vec<String> = (0..33).map(|number| format!("D{number}: {{}}")).collect();
    let many = format!("cube: c\nfacts: {{file: f, value: v}}\ndimensions: {{{}}}\n", names.join(", "));
    for (text, expected) in [
        ("cube: [\n", "line 1, column 7: a text is expected here"),
        ("cube: c\nfact: {}\n", "line 2, column 1: unknown field `fact`"),
        (
            "cube: c\nfacts: {file: f, value: v}\nvalue: {type: decimal(19)}\ndimensions: {D: {}}\n",
            "line 3, column 15: no type",
        ),
        (
            "cube: ../../x\nfacts: {file: f, value: v}\ndimensions: {D: {}}\n",
            "line 1, column 7: cube: the name of a cube",
        ),
        ("cube: ..\nfacts: {file: f, value: v}\ndimensions: {D: {}}\n", "line 1, column 7: cube: the name of a cube"),
        ("", "line 1, column 1: the text of a definition ends here"),
        (
            "cube: c\nfacts: {file: f, value: v}\ndimensions: {D: {}}\n---\ncube: d\n",
            "line 5, column 1: a definition is one YAML document",
        ),
        (
            "cube: c\nfacts: {file: f, value: v}\ndimensions: {D: {}, d: {}}\n",
            "line 3, column 24: dimensions.d: 'd' and 'D' are one name: case does not count",
        ),
        (
            "cube: c\nfacts: {file: f, value: v}\ndimensions: {'': {}}\n",
            "line 3, column 18: dimensions.: a name is empty",
        ),
        (&many, "line 3, column 13: dimensions: a cube has at most 32 dimensions, not 33"),
        (&within("{elements: []}"), "line 4, column 17: this list is empty: name at least one"),
        (&within("{levels: []}"), "line 4, column 15: this list is empty: name at least one"),
        (&within("{elements: A}"), "line 4, column 17: a list is expected here: [A, B]"),
        (&within("[a]"), "line 4, column 6: fields are expected here: {name: value}"),
        (&within("{elements: [A, B, a, B]}"), "line 4, column 6: dimensions.D: 'B' stands here a second time"),
        (&within("{elements: [A], all: A}"), "line 4, column 6: dimensions.D: 'A' stands here a second time"),
        (
            "cube: c\nfacts: {file: f, value: v}\ndimensions: {D: {}, D: {}}\n",
            "line 3, column 21: D stands here a second time",
        ),
        (
            "cube: c\nfacts: {file: f, value: v}\ndimensions:\n  A: {}\n  A.b:\n    key: k\n    parent: p\n",
            "line 6, column 5: dimensions.A.b: key names a column of a table",
        ),
        (
            "cube: c\nfacts: {file: f, value: v}\nvalue: {format: 'abc'}\ndimensions: {D: {}}\n",
            "line 3, column 17: format \"abc\" has no # or 0",
        ),
        (
            "cube: c\nfacts: {file: f, value: v}\nvalue: {format: '[Red]-#,##0'}\ndimensions: {D: {}}\n",
            "line 3, column 17: format \"[Red]-#,##0\": [Red] is not shown",
        ),
        (
            "cube: c\nfacts: {file: f, value: v}\nvalue: {format: '#,##0;(#,##0);0;0'}\ndimensions: {D: {}}\n",
            "line 3, column 17: format \"#,##0;(#,##0);0;0\": sections are for positive numbers",
        ),
        (&within("{elements: [a], format: {a: '0#'}}"), "line 4, column 30: format \"0#\": before the point stand #"),
        (
            &within("{elements: [a], sort: s}"),
            "line 4, column 6: dimensions.D: elements stand as they are listed: leave sort out",
        ),
        (
            &within("{column: d, levels: [year], sort: s}"),
            "line 4, column 6: dimensions.D: levels of dates stand in the order of time: leave sort out",
        ),
        (
            "cube: c\nfacts: {file: f}\nmeasures:\n  M: {column: m, format: '0#'}\ndimensions: {D: {}}\n",
            "line 4, column 26: format \"0#\": before the point stand #, then zeros",
        ),
        (&within("{columns: x}"), "line 4, column 7: unknown field `columns`"),
        (&within("{column: d, levels: [year], fiscal_start: Foo}"), "line 4, column 48: no month \"Foo\""),
        (&within("{consolidated: {A: {B: x}}}"), "line 4, column 29: a number is expected here"),
        (&within("{table: t}"), "line 4, column 6: dimensions.D: a table needs levels, or key and parent"),
        (
            &within("{key: k, parent: p}"),
            "line 4, column 6: dimensions.D: key names a column of a table, and table is missing",
        ),
        (&within("{table: t, key: k}"), "line 4, column 6: dimensions.D: key and parent go together"),
        (
            &within("{column: d, levels: [month, year]}"),
            "line 4, column 6: dimensions.D: level \"year\" stands below \"month\"",
        ),
        (&within("{column: d, levels: [fortnight]}"), "line 4, column 6: dimensions.D: no unit of time \"fortnight\""),
        (
            &within("{elements: [a], levels: [a, b]}"),
            "line 4, column 6: dimensions.D: elements are listed, or come from levels",
        ),
        (
            "cube: c\nfacts: {file: f}\ndimensions: {D: {}}\n",
            "line 2, column 8: facts: value names the column of values",
        ),
        ("cube: c\nfacts: {value: f}\ndimensions: {D: {}}\n", "line 2, column 8: facts: sql or file is missing"),
        (
            "cube: c\nfacts: {file: f, value: v}\ndimensions: {}\n",
            "line 3, column 13: dimensions: a cube needs a dimension",
        ),
        (
            "cube: c\nfacts: {file: f}\nmeasures: {M: {rule: avg}}\ndimensions: {D: {}}\n",
            "line 3, column 15: measures.M: column is missing; only the rule count needs none",
        ),
        (
            "cube: c\nfacts: {file: f}\nmeasures: {M: {column: m, over: {X: last}}}\ndimensions: {D: {}}\n",
            "line 3, column 15: measures.M: over: the cube has no dimension X",
        ),
        (
            "cube: c\nfacts: {file: f, value: V}\ndimensions: {v: {}}\n",
            "line 3, column 17: dimensions.v: the measure V has this name, and both are columns",
        ),
        (
            "cube: c\nfacts: {file: f}\nmeasures: {A: {column: a}, B: {rule: count}}\ndimensions: {measures: {}}\n",
            "line 4, column 24: dimensions.measures: Measures names the axis of the measures",
        ),
    ] {
        let error = parse(text).expect_err(text).to_string();
        if !error.starts_with(expected) {
            bad.push(format!("{text}\n{error}\nexpected {expected}\n"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn fiscal_years_end_in_the_year_they_are_named_for() {
    let names = ["year", "half", "quarter", "month", "day"].map(str::to_string);
    let fiscal = TimeLevels::new(&names, FiscalYear::beginning(Some("Apr".parse().unwrap()))).unwrap();
    assert_eq!(fiscal.names(2026, 3, 31), ["FY26", "FY26-H2", "FY26-Q4", "2026-03", "2026-03-31"]);
    assert_eq!(fiscal.names(2026, 4, 1), ["FY27", "FY27-H1", "FY27-Q1", "2026-04", "2026-04-01"]);
    let calendar = TimeLevels::new(&names, FiscalYear::beginning(None)).unwrap();
    assert_eq!(calendar.names(2026, 12, 9), ["2026", "2026-H2", "2026-Q4", "2026-12", "2026-12-09"]);
}

#[test]
fn the_schema_knows_every_field() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    for field in ["cube", "facts", "value", "measures", "dimensions", "unknown"] {
        assert!(schema["properties"][field].is_object(), "{field}");
    }
    assert_eq!(schema["additionalProperties"], false);
    assert!(schema["$defs"]["DimensionDefinition"]["properties"]["fiscal_start"].is_object());
}
