//! What cubes make of the rows of their sources: digits, orders, delimiters, rows kept aside and attributes.

use crate::cube_text::{cells, define};
use crate::harness::Place;

#[test]
fn decimals_that_a_query_passes_on_are_read_by_their_digits() {
    let place = Place::new();
    place.write("f.csv", "k,amount\nA,1.005\nB,12345678901234567.89\nC,2\n");
    place.write("g.csv", "amount\n1.0050\n12345678901234567.890\n2.0\n");
    let definition = |sql: &str| {
        format!(
            "facts: {{sql: \"{sql}\", value: amount}}\nvalue: {{type: decimal(2)}}\ndimensions: {{K: {{column: k}}}}"
        )
    };
    let rounded = |told: &str| {
        let of_amount = told.lines().find(|line| line.contains(" of amount with more digits"));
        of_amount.map(|line| line.trim().split(' ').next().unwrap().to_string())
    };
    for (name, sql, count) in [
        ("a", "SELECT * FROM 'f.csv'", "1"),
        ("b", "SELECT k, amount FROM 'f.csv' WHERE k <> 'X' ORDER BY k", "1"),
        ("c", "SELECT k, amount FROM 'f.csv' UNION ALL SELECT 'Z', 0.0 FROM 'f.csv' WHERE k = 'X'", "2"),
        // Numbers are one value however they are written.
        ("e", "SELECT DISTINCT k, amount FROM 'f.csv'", "2"),
        ("g", "SELECT f.k, f.amount FROM 'f.csv' AS f JOIN 'g.csv' AS g ON f.amount = g.amount", "2"),
        ("d", "SELECT k, sum(amount) AS amount FROM 'f.csv' GROUP BY k", "2"),
    ] {
        let told = define(&place, name, &definition(sql)).unwrap();
        assert_eq!(rounded(&told).as_deref(), Some(count), "{sql}: {told}");
        if count == "1" {
            let expected = ["A = 1.01", "B = 12345678901234567.89", "C = 2.00"];
            assert_eq!(cells(&place, &format!("{name}.cube"), "rows K"), expected, "{sql}");
        }
    }
}

#[test]
fn the_order_of_a_query_counts_if_its_result_is_sorted() {
    let place = Place::new();
    place.write("f.csv", "k,amount,s\nz,1,3\ny,2,2\nx,3,1\nw,4,0\n");
    for (at, (sql, order)) in [
        ("SELECT k, amount FROM 'f.csv' ORDER BY amount", "zyxw"),
        ("SELECT k, sum(amount) AS amount FROM 'f.csv' GROUP BY k\n  Order\n  By amount;", "zyxw"),
        ("SELECT k, amount FROM 'f.csv' WHERE s < 9 ORDER BY s % 2, k DESC LIMIT 99", "ywzx"),
        ("SELECT k, amount FROM 'f.csv' UNION ALL SELECT 'a', 0 FROM 'f.csv' WHERE k = 'x' ORDER BY 1 DESC", "zyxwa"),
        ("WITH f AS (SELECT * FROM 'f.csv') SELECT k, amount FROM f ORDER BY amount % 2, amount", "ywzx"),
        ("SELECT k, sum(amount) AS amount FROM 'f.csv' GROUP BY k -- order by amount", "wxyz"),
        ("SELECT k, sum(amount) OVER (ORDER BY s) AS amount FROM 'f.csv'", "wxyz"),
        ("SELECT * FROM (SELECT k, amount FROM 'f.csv' ORDER BY amount % 2)", "ywzx"),
    ]
    .into_iter()
    .enumerate()
    {
        let sql = sql.replace('\n', "\\n");
        let name = format!("o{at}");
        let text = format!("facts: {{sql: \"{sql}\", value: amount}}\ndimensions: {{K: {{column: k}}}}");
        define(&place, &name, &text).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let found: Vec<String> =
            cells(&place, &format!("{name}.cube"), "rows K").iter().map(|cell| cell[..1].to_string()).collect();
        assert_eq!(found.concat(), order, "{sql}");
    }
}

#[test]
fn files_without_a_header_and_with_a_comma_in_front_of_fractions() {
    let place = Place::new();
    for (at, (text, extra)) in [
        ("A;1,5\nB;2,5\n", ""),
        ("A|1,5\nB|2,5\n", ", header: false"),
        ("A\t1,5\nB\t2,5\n", ""),
        ("\"A\";\"1,5\"\n\"B\";\"2,5\"\n", ", header: false"),
        ("'A';'1,5'\n'B';'2,5'\n", ", quote: \"'\""),
        ("A#1,5\nB#2,5\n", ", delimiter: '#'"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("h{at}");
        place.write(&format!("{name}.csv"), text);
        let facts = format!("facts: {{file: {name}.csv, value: column_2, decimal: ','{extra}}}");
        define(&place, &name, &format!("{facts}\ndimensions: {{K: {{column: column_1}}}}")).unwrap();
        assert_eq!(cells(&place, &format!("{name}.cube"), "rows K"), ["A = 1.5", "B = 2.5"], "{text:?}");
    }
    place.write("q.csv", "\"Konto, Name\";\"Betrag, EUR\"\nA;1,5\nB;2,5\n");
    let facts = "facts: {file: q.csv, decimal: ','}\nmeasures: {B: {column: 'Betrag, EUR'}}\n\
                 dimensions: {K: {column: 'Konto, Name'}}";
    define(&place, "q", facts).unwrap();
    assert_eq!(cells(&place, "q.cube", "rows K"), ["A = 1.5", "B = 2.5"]);
    // A quote that lines do not tell.
    place.write("s.csv", "code\ttxt\tamount\nBe5,\t'O''N'\t1\n''' e5'\t\t2\nK-73\ta b\t4\n");
    let facts =
        "facts: {file: s.csv, value: amount, delimiter: \"\\t\", quote: \"'\"}\ndimensions: {K: {column: code}}";
    define(&place, "s", facts).unwrap();
    assert!(cells(&place, "s.cube", "rows K").contains(&"' e5 = 2.0".to_string()));
}

#[test]
fn rows_kept_aside_are_as_they_are_written() {
    let place = Place::new();
    place.write("f.csv", "d,m,v\nA,2025-02-28,1\nX,2025-02-28,12345678901234567.89\nA,2025-02-31,2\nA,?,4\n");
    let facts =
        "facts: {file: f.csv, value: v, types: {m: date, v: decimal(2)}}\nvalue: {type: decimal(2)}\nunknown: aside";
    let dimensions = "dimensions: {D: {column: d, elements: [A]}, M: {column: m, levels: [year, month]}}";
    let told = define(&place, "a", &format!("{facts}\n{dimensions}")).unwrap();
    assert!(told.contains("3 rows kept aside"), "{told}");
    assert_eq!(cells(&place, "a.cube", "rows A where 2025"), ["A 2025 = 1.00"]);
    let info = place.run(&["cube", "info", "a.cube"]).ok();
    let file = info.lines().find(|line| line.contains("kept aside")).and_then(|line| line.split('\'').nth(1)).unwrap();
    let aside = place.run(&["--format", "csv", "-c", &format!("SELECT * FROM '{file}'")]).ok();
    assert_eq!(
        aside.lines().skip(1).collect::<Vec<_>>(),
        [
            "X,2025-02-28,12345678901234567.89,D: no element is named 'X'",
            "A,2025-02-31,2,M: '2025-02-31' is not of the type that types: says",
            "A,?,4,M: '?' is not of the type that types: says",
        ]
    );
    // Where such rows are refused or elements added, types count.
    for unknown in ["refuse", "add"] {
        let text = format!("{facts}\n{dimensions}").replace("unknown: aside", &format!("unknown: {unknown}"));
        let error = define(&place, "b", &text).unwrap_err();
        assert!(error.contains("'2025-02-31' is no date, as types: says (date)"), "{error}");
    }
    // They count for an element that is named.
    let named = "dimensions: {M: {column: m, elements: ['2025-02-28', Other], unknown: Other}}";
    define(&place, "n", &format!("{}\n{named}", facts.replace("\nunknown: aside", ""))).unwrap();
    assert_eq!(cells(&place, "n.cube", "rows Other"), ["Other = 6.00"]);
}

#[test]
fn attributes_of_text_files_keep_their_digits() {
    let place = Place::new();
    place.write("f.csv", "k,v,n\nA,1.25,  \nB,3,x\nC,5,\n");
    place.write(
        "t.csv",
        "id,parent,ean,code,size,number_format\nT,,,,,0.00\nA,T,123456789012345678,1E5,2,0.00\n\
         B,T,123456789012345679,2E3,10,0.00\nC,T,,,,\n",
    );
    let facts = "facts: {file: f.csv}\n\
                 measures: {v: {column: v, type: decimal(2), format: '0.#'}, n: {column: n, rule: count}}";
    let attributes = "key: id, parent: parent, attributes: [ean, code, size, number_format]";
    let definition = format!("{facts}\ndimensions: {{K: {{table: t.csv, column: k, {attributes}}}}}");
    define(&place, "a", &definition).unwrap();
    assert_eq!(cells(&place, "a.cube", "rows K with ean = 123456789012345678"), ["A = 1.25"]);
    assert_eq!(cells(&place, "a.cube", "rows K with code = \"1E5\""), ["A = 1.25"]);
    assert_eq!(cells(&place, "a.cube", "rows K with size > 9"), ["B = 3.00"]);
    let shown = place.run(&["--device", "cpu", "cube", "query", "a.cube", "rows B"]).ok();
    assert!(shown.contains("3.00"), "{shown}");
    // Texts of blanks are no values.
    assert_eq!(cells(&place, "a.cube", "rows T where n"), ["T = 1"]);
    let rows = place.run(&["cube", "query", "a.cube", "source at T, n", "--format", "csv"]).ok();
    assert_eq!(rows, "k,v,n\nB,3,x\n");
    place.write("t.csv", "id,parent,ean,code,size,number_format\nA,,1,2,3,[Red]0\nB,,,,,\nC,,,,,\n");
    let error = define(&place, "b", &definition).unwrap_err();
    assert!(error.contains("number_format '[Red]0' of 'A'"), "{error}");
}

#[test]
fn rows_of_one_element_have_one_caption_and_one_attribute() {
    let place = Place::new();
    place.write("f.csv", "k,amount\nA,1\n");
    let definition = "facts: {file: f.csv, value: amount}\n\
                      dimensions: {K: {table: t.csv, levels: [g, k], caption: c, attributes: [n]}}";
    for (rows, told) in [
        ("G,A,Old,1\nG,A,New,1\n", "row 2 of table"),
        ("G,A,Old,1\nG,A,Old,2\n", "the attribute n of 'A' is '2' here and '1' in another row: give its rows one"),
    ] {
        place.write("t.csv", format!("g,k,c,n\n{rows}"));
        let error = define(&place, "t", definition).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
    place.write("t.csv", "g,k,c,n\nG,A,,\nG,A,Old,1\nG,A,Old,\n");
    define(&place, "t", definition).unwrap();
    assert_eq!(cells(&place, "t.cube", "rows K with n = 1"), ["A = 1.0"]);
}
