//! All forms of dimensions.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date64Array, Decimal128Array, DictionaryArray, Int8Array, Int64Array, LargeStringArray,
    StringArray, StringViewArray, TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::Int16Type;
use warpcube_cube::build::NamedElements;
use warpcube_cube::model::Attribute;

use crate::tables::{Memory, built, cells, cents, dates, default_of, defined, failure, ints, outline, table, texts};

#[test]
fn lists_with_consolidations() {
    let memory = Memory::default().with(
        "gl",
        table(vec![
            ("version", texts(&["ACTUAL", "budget", "Actual"])),
            ("account", texts(&["Cost", "Revenue", "Cost"])),
            ("amount", cents(&[1, 20, 300])),
        ]),
    );
    let cube = built(
        &memory,
        "Version: {elements: [Actual, Budget], consolidated: {Variance: {Actual: 1, Budget: -1}}}
         Account: {elements: [Revenue, Cost], consolidated: {Twice: {Margin: 2}, Margin: {revenue: 1, Cost: -1}}}",
    );
    assert_eq!(outline(&cube, 0), "Actual Budget Variance(Actual Budget*-1)");
    assert_eq!(outline(&cube, 1), "Revenue Cost Twice(Margin*2) Margin(Revenue Cost*-1)");
    assert_eq!(cells(&cube), ["Actual Cost = 3.01", "Budget Revenue = 0.2"]);
    assert_eq!((default_of(&cube, 0), default_of(&cube, 1)), ("Actual", "Revenue"));
    assert_eq!((cube.report.rows, cube.report.rows_loaded, cube.report.cells), (3, 3, 2));
    assert_eq!(
        *memory.queries.borrow(),
        [
            "SELECT * FROM (TABLE gl\n) AS facts LIMIT 0",
            "SELECT \"version\", \"account\", \"amount\" FROM (TABLE gl\n) AS facts"
        ],
        "columns are read once, and no others"
    );
}

#[test]
fn a_table_of_parents() {
    let gl = table(vec![("Region", texts(&["fr", "JP", "fr"])), ("amount", cents(&[1, 2, 3]))]);
    let regions = table(vec![
        ("ID", texts(&["W", "EU", "FR", "DE", "JP", "G7", "FR"])),
        ("parent_id", texts(&[".", "W", "EU", "EU", "", ".", "g7"])),
        ("name", texts(&["World", "Europe", "France", "Germany", ".", ".", "France"])),
        (
            "share",
            Arc::new(arrow::array::Float64Array::from(vec![None, None, Some(0.5), Some(1.0), None, None, Some(2.0)])),
        ),
        ("people", ints(&[8000, 500, 68, 84, 125, 7, 68])),
        ("capital", texts(&[".", ".", "Paris", "Berlin", "Tokyo", ".", "."])),
    ]);
    let memory = Memory::default().with("gl", gl).with("regions.csv", regions);
    let cube = built(
        &memory,
        "Region: {table: regions.csv, key: id, parent: parent_id, weight: share, caption: name,
         attributes: [people, Capital]}",
    );
    assert_eq!(outline(&cube, 0), "W[World](EU) EU[Europe](FR*0.5 DE) FR[France] DE[Germany] JP G7(FR*2)");
    assert_eq!(cells(&cube), ["FR = 0.04", "JP = 0.02"]);
    assert_eq!(default_of(&cube, 0), "FR", "no root holds every base element at weight 1");
    let dimension = &cube.model.dimensions()[0];
    let france = dimension.find("France").unwrap();
    assert_eq!(dimension.attribute(france, "people"), Some(&Attribute::Number(68.0)));
    assert_eq!(dimension.attribute(france, "capital"), Some(&Attribute::Text("Paris".to_string())));
    assert_eq!(dimension.attribute(dimension.find("W").unwrap(), "capital"), None);
}

#[test]
fn whole_numbers_that_doubles_do_not_have_are_texts() {
    let gl = table(vec![("k", texts(&["A"])), ("amount", cents(&[1]))]);
    let keys = table(vec![
        ("id", texts(&["A", "B"])),
        ("up", texts(&[".", "."])),
        ("ean", ints(&[123_456_789_012_345_678, 1])),
        ("size", ints(&[1 << 53, -7])),
        ("price", cents(&[123_456_789, 5])),
    ]);
    let memory = Memory::default().with("gl", gl).with("keys.parquet", keys);
    let cube =
        built(&memory, "K: {table: keys.parquet, column: k, key: id, parent: up, attributes: [ean, size, price]}");
    let dimension = &cube.model.dimensions()[0];
    let of = |name: &str| dimension.attribute(dimension.find("A").unwrap(), name).cloned().unwrap();
    assert_eq!(of("ean"), Attribute::Text("123456789012345678".to_string()));
    assert_eq!(
        (of("size"), of("price")),
        (Attribute::Number(9_007_199_254_740_992.0), Attribute::Number(1_234_567.89))
    );
}

#[test]
fn a_table_of_levels() {
    let gl = table(vec![("Number", texts(&["P1", "p3", "P4"])), ("amount", cents(&[1, 2, 3]))]);
    let products = table(vec![
        ("group", texts(&["Toys", "Food", "Toys", "food", "Spare"])),
        ("Number", texts(&["P2", "P3", "P1", "P4", "."])),
        ("label", texts(&["Doll", "Bread", ".", "Milk", "Parts"])),
    ]);
    let memory = Memory::default().with("gl", gl).with("products.csv", products);
    let cube = built(
        &memory,
        "Product: {table: products.csv, levels: [group, number], caption: label, all: Everything, default: toys}",
    );
    assert_eq!(
        outline(&cube, 0),
        "P2[Doll] P3[Bread] P1 P4[Milk] Spare[Parts] Toys(P2 P1) Food(P3) food(P4) Everything(Spare Toys Food food)",
        "rows of the table give the order, a row without a number is a base element itself"
    );
    assert_eq!(cells(&cube), ["P3 = 0.02", "P1 = 0.01", "P4 = 0.03"]);
    assert_eq!(default_of(&cube, 0), "Toys");
}

#[test]
fn alternative_names_come_from_columns() {
    let gl = table(vec![("region", texts(&["FR", "JP"])), ("amount", cents(&[1, 2]))]);
    let rows = [("id", ["W", "FR", "JP"]), ("up", [".", "W", "W"]), ("name", ["World", "France", "Japan"])];
    let names = [("iso", ["001", "FRA", "JPN"]), ("other", [".", "france", "Nippon"])];
    let columns = rows.iter().chain(&names).map(|(name, column)| (*name, texts(column)));
    let regions = table(columns.collect());
    let memory = Memory::default().with("gl", gl).with("regions", regions);
    let of = |names: &str| format!("region: {{table: regions, key: id, parent: up, caption: name, names: {names}}}");
    let cube = built(&memory, &of("[iso, other]"));
    let dimension = &cube.model.dimensions()[0];
    let aliases = |name: &str| dimension.element(dimension.find(name).unwrap()).aliases().to_vec();
    assert_eq!(aliases("nippon"), ["JPN", "Nippon"], "a name in another case finds the only one");
    assert_eq!(aliases("fr"), ["FRA", "france"], "captions may repeat, names may not");
    assert_eq!(aliases("World"), ["001"]);
    let one = built(&memory, &of("iso"));
    assert!(one.model.dimensions()[0].find("Nippon").is_err());
    // A name of another element.
    let twice = table(vec![("id", texts(&["FR", "JP"])), ("up", texts(&[".", "."])), ("iso", texts(&["JP", "."]))]);
    let gl = table(vec![("region", texts(&["FR"])), ("amount", cents(&[1]))]);
    let memory = Memory::default().with("gl", gl).with("regions", twice);
    let error = failure(&memory, "region: {table: regions, key: id, parent: up, names: iso}");
    assert!(error.contains("JP"), "{error}");
}

#[test]
fn a_value_that_is_group_and_member_is_the_member() {
    let gl = table(vec![("sku", texts(&["X", "Z"])), ("amount", cents(&[1, 2]))]);
    let products = table(vec![("group", texts(&["X", "Y"])), ("sku", texts(&["X", "Z"]))]);
    let memory = Memory::default().with("gl", gl).with("p", products);
    let cube = built(&memory, "Product: {table: p, levels: [group, sku]}");
    assert_eq!(outline(&cube, 0), "X-X[X] Z X(X-X) Y(Z)");
    assert_eq!(cells(&cube), ["X-X = 0.01", "Z = 0.02"]);
}

#[test]
fn levels_of_dates() {
    let gl = table(vec![
        ("day", dates(&["2026-04-01", "2025-12-31", "2026-03-31", "2026-03-01"])),
        ("amount", cents(&[1, 2, 3, 4])),
    ]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(&memory, "Month: {column: Day, levels: [year, quarter, month], fiscal_start: Apr}");
    assert_eq!(
        outline(&cube, 0),
        "2025-12 2026-03 2026-04 FY26-Q3(2025-12) FY26-Q4(2026-03) FY27-Q1(2026-04) FY26(FY26-Q3 FY26-Q4) FY27(FY27-Q1)"
    );
    assert_eq!(cells(&cube), ["2025-12 = 0.02", "2026-03 = 0.07", "2026-04 = 0.01"]);
    let cube = built(&memory, "Day: {levels: [half, day], column: day, all: Ever}");
    assert_eq!(
        outline(&cube, 0),
        "2025-12-31 2026-03-01 2026-03-31 2026-04-01 2025-H2(2025-12-31) 2026-H1(2026-03-01 2026-03-31 2026-04-01) \
         Ever(2025-H2 2026-H1)"
    );
    assert_eq!(default_of(&cube, 0), "Ever");
}

#[test]
fn every_type_of_dates() {
    let seconds = [1_774_915_200, 1_774_915_199];
    let columns: [(&str, ArrayRef); 6] = [
        ("seconds", Arc::new(TimestampSecondArray::from(seconds.to_vec()))),
        ("ahead", Arc::new(TimestampSecondArray::from(seconds.to_vec()).with_timezone("+01:00"))),
        ("micros", Arc::new(TimestampMicrosecondArray::from(seconds.map(|it| it * 1_000_000).to_vec()))),
        ("date64", Arc::new(Date64Array::from(seconds.map(|it| it * 1_000).to_vec()))),
        ("text", texts(&["2026-03-31", "2026-03-30T23:59:59"])),
        ("dictionary", Arc::new(DictionaryArray::<Int16Type>::from_iter(["2026-03-31", "2026-03-30"]))),
    ];
    for (name, array) in columns {
        let memory = Memory::default().with("gl", table(vec![("day", array), ("amount", cents(&[1, 2]))]));
        let cube = built(&memory, "Day: {column: day, levels: [month, day]}");
        let expected = match name {
            "ahead" => vec!["2026-03-31 = 0.03"],
            _ => vec!["2026-03-30 = 0.02", "2026-03-31 = 0.01"],
        };
        assert_eq!(cells(&cube), expected, "{name}");
    }
    let months = table(vec![("month", texts(&["2026-03", "2025-11"])), ("amount", cents(&[1, 2]))]);
    let cube = built(&Memory::default().with("gl", months), "Month: {column: month, levels: [year, month]}");
    assert_eq!(outline(&cube, 0), "2025-11 2026-03 2025(2025-11) 2026(2026-03)");
}

#[test]
fn levels_of_columns_of_the_facts() {
    let gl = table(vec![
        ("year", ints(&[2026, 2025, 2026, 2026, 2025])),
        ("month", ints(&[10, 1, 9, 10, 2])),
        ("amount", cents(&[1, 2, 3, 4, 5])),
    ]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(&memory, "Time: {levels: [Year, month], all: Always}");
    assert_eq!(outline(&cube, 0), "1 2 9 10 2025(1 2) 2026(9 10) Always(2025 2026)", "numbers ascend as numbers");
    assert_eq!(cells(&cube), ["1 = 0.02", "2 = 0.05", "9 = 0.03", "10 = 0.05"]);
    assert_eq!(memory.queries.borrow()[1], "SELECT DISTINCT \"year\", \"month\" FROM (TABLE gl\n) AS facts");
}

#[test]
fn names_that_repeat_under_other_parents_become_paths() {
    let gl =
        table(vec![("year", ints(&[2026, 2025, 2025])), ("month", ints(&[1, 1, 2])), ("amount", cents(&[1, 2, 3]))]);
    let cube = built(&Memory::default().with("gl", gl), "Time: {levels: [year, month]}");
    assert_eq!(outline(&cube, 0), "2025-1[1] 2 2026-1[1] 2025(2025-1 2) 2026(2026-1)");
    assert_eq!(cells(&cube), ["2025-1 = 0.02", "2 = 0.03", "2026-1 = 0.01"]);
}

#[test]
fn null_levels_are_skipped_and_values_in_another_case_are_others() {
    let gl = table(vec![
        ("area", texts(&["Europe", "europe", "Asia", ".", "EUROPE"])),
        ("country", texts(&["France", "FRANCE", ".", "Nowhere", "."])),
        ("city", texts(&["Paris", "Lyon", ".", ".", "Brussels"])),
        ("amount", cents(&[1, 2, 3, 4, 5])),
    ]);
    let cube = built(&Memory::default().with("gl", gl), "Place: {levels: [area, country, city]}");
    assert_eq!(
        outline(&cube, 0),
        "Asia Brussels Paris Lyon Nowhere France(Paris) FRANCE(Lyon) EUROPE(Brussels) Europe(France) europe(FRANCE)"
    );
    let told = [NamedElements {
        dimension: "Place".to_owned(),
        names: vec!["EUROPE and Europe and europe".to_owned(), "France and FRANCE".to_owned()],
    }];
    assert_eq!(cube.report.alike, told);
    assert_eq!(cells(&cube), ["Asia = 0.03", "Brussels = 0.05", "Paris = 0.01", "Lyon = 0.02", "Nowhere = 0.04"]);
}

#[test]
fn values_of_a_column_of_every_type() {
    let dictionary: DictionaryArray<Int16Type> = ["b", "a", "B"].into_iter().collect();
    let columns: [(ArrayRef, &str); 10] = [
        (texts(&["b", "a", "B"]), "B a b"),
        (Arc::new(LargeStringArray::from(vec!["b", "a", "B"])), "B a b"),
        (
            Arc::new(StringViewArray::from(vec!["b", "a text of more than twelve bytes", "B"])),
            "B a text of more than twelve bytes b",
        ),
        (Arc::new(dictionary), "B a b"),
        (ints(&[10, 9, 10]), "9 10"),
        (Arc::new(Int8Array::from(vec![-1, 0, -1])), "-1 0"),
        (Arc::new(UInt64Array::from(vec![u64::MAX, 2, u64::MAX])), "2 18446744073709551615"),
        (Arc::new(BooleanArray::from(vec![true, false, true])), "false true"),
        (Arc::new(Decimal128Array::from(vec![10, 9, 10]).with_precision_and_scale(4, 0).unwrap()), "9 10"),
        (Arc::new(TimestampSecondArray::from(vec![3_600, 0, 3_600])), "1970-01-01 1970-01-01 01:00:00"),
    ];
    for (array, expected) in columns {
        let name = array.data_type().to_string();
        let memory = Memory::default().with("gl", table(vec![("key", array), ("amount", cents(&[1, 2, 4]))]));
        let cube = built(&memory, "Key: {}");
        let outline = outline(&cube, 0);
        assert_eq!(outline, expected, "{name}");
        let amount = |cell: &String| cell.rsplit_once("0.0").unwrap().1.parse::<i64>().unwrap();
        let sums: Vec<i64> = cells(&cube).iter().map(amount).collect();
        assert_eq!(sums.iter().sum::<i64>(), 7, "{name}: {:?}", cells(&cube));
        assert_eq!(sums.len(), if expected.contains('B') { 3 } else { 2 }, "{name}");
    }
}

#[test]
fn dictionaries_with_null_and_unused_values() {
    let values = StringArray::from(vec![Some("unused"), Some("a"), None, Some("b")]);
    let keys = arrow::array::Int16Array::from(vec![Some(1), Some(3), Some(1)]);
    let array: ArrayRef = Arc::new(DictionaryArray::<Int16Type>::new(keys, Arc::new(values)));
    let memory = Memory::default().with("gl", table(vec![("key", array), ("amount", cents(&[1, 2, 4]))]));
    let cube = built(&memory, "Key: {elements: [a, b]}");
    assert_eq!(cells(&cube), ["a = 0.05", "b = 0.02"]);
}

#[test]
fn all_stands_over_consolidations_of_roots() {
    let gl = table(vec![("country", texts(&["FR", "DE", "JP", "SE"])), ("amount", cents(&[1, 2, 3, 4]))]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(
        &memory,
        "Country: {all: World, consolidated: {Europe: {Core: 1, SE: 1}, Core: {FR: 1, DE: 1},
         North: {SE: 1, DE: 1}, Gap: {JP: 1, FR: -1}}}",
    );
    assert_eq!(
        outline(&cube, 0),
        "DE FR JP SE Europe(Core SE) Core(FR DE) North(SE DE) Gap(JP FR*-1) World(Europe JP)",
        "North and Gap would count countries twice"
    );
    assert_eq!(default_of(&cube, 0), "World");
}

#[test]
fn an_empty_table_of_facts_makes_an_empty_cube() {
    let gl = table(vec![("a", texts(&[])), ("b", texts(&[])), ("d", dates(&[])), ("amount", cents(&[]))]);
    let cube = built(
        &Memory::default().with("gl", gl),
        "A: {all: Total}
         L: {levels: [a, b]}
         D: {column: d, levels: [year, day]}
         V: {column: a, elements: [x]}",
    );
    assert_eq!((outline(&cube, 0), outline(&cube, 1), outline(&cube, 2)), ("Total()".into(), "".into(), "".into()));
    assert!(cube.facts.is_empty());
    assert_eq!(cube.report.rows, 0);
}

#[test]
fn files_are_quoted_and_columns_too() {
    let file = table(vec![("a \"b\"", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef), ("v", cents(&[1, 2]))]);
    let memory = Memory::default().with("it's here.parquet", file);
    let cube = crate::tables::defined(
        &memory,
        "cube: c\nfacts: {file: it's here.parquet, value: V}\ndimensions: {'A \"B\"': {}}",
    )
    .unwrap();
    assert_eq!(memory.queries.borrow()[0], "SELECT * FROM 'it''s here.parquet' LIMIT 0");
    assert_eq!(memory.queries.borrow()[2], "SELECT \"a \"\"b\"\"\", \"v\" FROM 'it''s here.parquet'");
    assert_eq!(cells(&cube), ["1 = 0.01", "2 = 0.02"]);
    assert_eq!(cube.model.measures()[0].name, "V");
}

#[test]
fn texts_keep_the_order_that_the_source_proves() {
    // Rows as `region text`.
    let order = |rows: &str, by: &str| {
        let rows: Vec<(&str, &str)> = rows.split(", ").map(|row| row.split_once(' ').unwrap()).collect();
        let (regions, names): (Vec<&str>, Vec<&str>) = rows.iter().copied().unzip();
        let amounts = cents(&vec![1; rows.len()]);
        let gl = table(vec![("Region", texts(&regions)), ("Name", texts(&names)), ("amount", amounts)]);
        let memory = Memory::default().with("gl", gl.clone()).with("gl.csv", gl);
        let memory = if by.contains("sorted") { memory.sorted() } else { memory };
        let by = by.replace(" sorted", "");
        let text = format!("cube: c\nfacts: {{{by}, value: amount}}\ndimensions: {{Region: {{}}, Name: {{}}}}\n");
        outline(&defined(&memory, &text).unwrap(), 1)
    };
    let (file, sql, sorted) = ("file: gl.csv", "sql: TABLE gl", "sql: TABLE gl sorted");
    for (rows, by, expected) in [
        // Sorted rows; names of one region behind those of another, the first and the last of which lack some.
        ("A z, A z, A y, B x, A x", file, "z y x"),
        ("A z, A y, A x, B z, B y, B x", file, "z y x"),
        ("A y, A x, B z, B y, B x", file, "z y x"),
        ("A y, A x, B z, B y, B x, C z, C y", file, "z y x"),
        ("A b01, A b02, B b00, B b01, B b02", file, "b00 b01 b02"),
        ("A z, B z, A y, B y", file, "z y"),
        ("A zz, A ZZ, A y, B ZZ, B Y", file, "zz ZZ y Y"),
        // Runs that contradict each other, that leave two names open, or have a name twice: ascending.
        ("A z, A y, B y, B z", file, "y z"),
        ("A z, A x, A y, B z, B y, B x", file, "x y z"),
        ("A z, A x, B y, B x", file, "x y z"),
        ("A z, A y, A z, A x, B x", file, "x y z"),
        // A query without an order has none; with one it is a file.
        ("A z, A y, A x", sql, "x y z"),
        ("A z, A y, A x", sorted, "z y x"),
        // Names of a calendar stand by it, whatever the source has.
        ("A Apr, A May, A Jan, B Apr, B May, B Jan", file, "Jan Apr May"),
        ("A Apr, A Dec, B Jan, B Apr, B Dec", file, "Jan Apr Dec"),
        ("A Okt, A Dez, B Mai", sorted, "Mai Okt Dez"),
        ("A Q2, A Q3, B Q1, B Q2", file, "Q1 Q2 Q3"),
        ("A P04, A P12, B P01", file, "P01 P04 P12"),
        ("A Wk3, A Wk20, A Wk1", file, "Wk1 Wk3 Wk20"),
        ("A Q4 2024, A Q1 2025, B Q3 2024", file, "Q3 2024 Q4 2024 Q1 2025"),
        ("A Wed, A Mon, A Sun", sql, "Mon Wed Sun"),
        // Texts that are whole numbers or dates ascend by value.
        ("A 10, A 9, A 1", file, "1 9 10"),
        ("A 1e3, A 010, A 9.5", file, "9.5 010 1e3"),
        ("A nan, A 10, A 9", file, "nan 10 9"),
        ("A 2026-03-01, A 2026-02-01, A 2025-12-01", file, "2025-12-01 2026-02-01 2026-03-01"),
    ] {
        assert_eq!(order(rows, by), expected, "{rows:?} of {by}");
    }
}

#[test]
fn runs_end_where_other_columns_change_that_the_text_does_not_tell() {
    // The group of an account ends no run of accounts; an upper level and a year do.
    let gl = table(vec![
        ("year", texts(&["24", "24", "24", "25", "25", "25", "25"])),
        ("kind", texts(&["q", "q", "p", "q", "q", "q", "p"])),
        ("account", texts(&["m", "k", "b", "z", "m", "k", "b"])),
        ("amount", cents(&[1; 7])),
    ]);
    let memory = Memory::default().with("gl.csv", gl);
    let text = "cube: c\nfacts: {file: gl.csv, value: amount}\ndimensions: {year: {}, Kind: {}, Account: {}}\n";
    let cube = defined(&memory, text).unwrap();
    assert_eq!((outline(&cube, 1), outline(&cube, 2)), ("q p".to_string(), "z m k b".to_string()));
    let levels = text.replace("Kind: {}, Account: {}", "Account: {levels: [kind, account]}");
    assert_eq!(outline(&defined(&memory, &levels).unwrap(), 1), "z m k b q(z m k) p(b)");
}

#[test]
fn sort_names_the_column_that_orders_elements() {
    let gl = table(vec![
        ("half", texts(&["H2", "H1", "H1", "H2"])),
        ("month", texts(&["Okt", "Mai", "Jan", "Nov"])),
        ("number", ints(&[10, 5, 1, 11])),
        ("sku", texts(&["B", "A", "B", "A"])),
        ("amount", cents(&[1, 2, 3, 4])),
    ]);
    let skus = table(vec![
        ("group", texts(&["Y", "X", "Y"])),
        ("sku", texts(&["A", "B", "C"])),
        ("parent", texts(&["C", "C", "."])),
        ("rank", ints(&[2, 1, 3])),
        ("name", texts(&["a", "b", "c"])),
    ]);
    let memory = Memory::default().with("gl", gl).with("skus.csv", skus);
    for (dimension, expected) in [
        ("Month: {column: month, sort: number}", "Jan Mai Okt Nov"),
        ("Month: {column: month}", "Jan Mai Okt Nov"),
        ("Month: {levels: [half, month], sort: NUMBER}", "Jan Mai Okt Nov H1(Jan Mai) H2(Okt Nov)"),
        ("Month: {column: half, sort: month}", "H1 H2"),
        ("Sku: {table: skus.csv, levels: [group, sku], sort: rank, caption: name}", "B[b] A[a] C[c] X(B) Y(A C)"),
        ("Sku: {table: skus.csv, key: sku, parent: parent, sort: rank, caption: name}", "B[b] A[a] C[c](B A)"),
    ] {
        assert_eq!(outline(&built(&memory, dimension), 0), expected, "{dimension}");
    }
    assert!(failure(&memory, "Month: {column: month, sort: nmber}").contains("number"));
}

#[test]
fn elements_have_number_formats() {
    let gl = table(vec![("a", texts(&["Rate", "Sales"])), ("amount", cents(&[1, 2]))]);
    let memory = Memory::default().with("gl", gl);
    let cube = built(&memory, "A: {column: a, format: {rate: '0.0 %'}}");
    let dimension = &cube.model.dimensions()[0];
    let format = |name: &str| dimension.attribute(dimension.find(name).unwrap(), "number_format").cloned();
    assert_eq!((format("Rate"), format("Sales")), (Some(Attribute::Text("0.0 %".to_string())), None));
    assert!(failure(&memory, "A: {column: a, format: {Rats: '0'}}").contains("Rate"));
}
