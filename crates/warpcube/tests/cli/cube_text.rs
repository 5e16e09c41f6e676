//! How cubes read text files: keys as they are written, numbers and dates by what a definition says.

use crate::harness::{Place, Ran};

/// The cells of a query as `names = value`, one a line.
pub fn cells(place: &Place, cube: &str, query: &str) -> Vec<String> {
    let long = place.run(&["--device", "cpu", "cube", "query", cube, query, "--format", "csv"]).ok();
    let line = |line: &str| {
        let mut parts: Vec<&str> = line.split(',').collect();
        parts.pop();
        let value = parts.pop().unwrap_or_default();
        parts.pop();
        format!("{} = {value}", parts.join(" "))
    };
    long.lines().skip(1).map(line).collect()
}

/// Defines the cube `name.cube` of a definition without its first line.
pub fn define(place: &Place, name: &str, definition: &str) -> Result<String, String> {
    place.write(&format!("{name}.yaml"), format!("cube: {name}\n{definition}\n"));
    let made = place.run(&["--device", "cpu", "cube", "define", &format!("{name}.yaml")]);
    match made.code {
        0 => Ok(made.out),
        _ => Err(made.error(1)),
    }
}

#[test]
fn keys_of_text_files_are_text_as_it_is_written() {
    let place = Place::new();
    for (at, codes) in [
        ["00354", "354"],
        ["1.10", "1.1"],
        ["1E5", "100000"],
        ["+1", "1"],
        ["2025-01-01T00:00:00", "2025-01-01"],
        ["12345678901234567890", "12345678901234567891"],
    ]
    .into_iter()
    .enumerate()
    {
        let [one, other] = codes;
        for (extension, delimiter) in [("csv", ','), ("tsv", '\t'), ("csv", ';'), ("psv", '|')] {
            let name = format!("c{at}{}", delimiter as u32);
            let file = format!("{name}.{extension}");
            place.write(&file, format!("code{delimiter}amount\n{one}{delimiter}1\n{other}{delimiter}10\n"));
            let facts = format!("facts: {{file: {file}, value: amount}}\nvalue: {{type: decimal(2)}}");
            define(&place, &name, &format!("{facts}\ndimensions: {{Code: {{column: code}}}}")).unwrap();
            let mut expected = [format!("{one} = 1.00"), format!("{other} = 10.00")];
            let mut found = cells(&place, &format!("{name}.cube"), "rows Code");
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{file}");
        }
    }
    // A table of them, its parents, a folder of files, and levels of the facts.
    place.write("gl/a.csv", "cc,g,amount\n007,01,1\n");
    place.write("gl/b.csv", "cc,g,amount\n7,1,10\n");
    place.write("cc.csv", "cc,up,size\n1,,\n01,,\n7,1,5\n007,01,30\n");
    let facts = "facts: {file: gl, value: amount}\ndimensions:";
    define(&place, "t", &format!("{facts}\n  CC: {{table: cc.csv, key: cc, parent: up, attributes: [size]}}")).unwrap();
    assert_eq!(cells(&place, "t.cube", "rows CC"), ["1 = 10.0", "7 = 10.0", "01 = 1.0", "007 = 1.0"]);
    assert_eq!(cells(&place, "t.cube", "rows CC with size > 5"), ["007 = 1.0"]);
    define(&place, "l", &format!("{facts} {{CC: {{levels: [g, cc]}}}}")).unwrap();
    assert_eq!(cells(&place, "l.cube", "rows level(CC, 1)"), ["01 = 1.0", "1 = 10.0"]);
}

#[test]
fn numbers_among_keys_stand_in_their_order() {
    let place = Place::new();
    place.write("f.csv", "m,amount\n10,1\n2,2\n1,4\n");
    define(&place, "m", "facts: {file: f.csv, value: amount}\ndimensions: {M: {column: m}}").unwrap();
    assert_eq!(cells(&place, "m.cube", "rows M"), ["1 = 4.0", "2 = 2.0", "10 = 1.0"]);
    // Numbers of a column that orders elements are written as the definition says.
    place.write("s.csv", "k;rank;amount\na;10,5;1\nb;2;2\nc;1,25;4\n");
    let facts = "facts: {file: s.csv, value: amount, decimal: \",\"}\ndimensions:";
    for (name, dimension) in [("s", "{column: k, sort: rank}"), ("t", "{table: s.csv, levels: [k], sort: rank}")] {
        define(&place, name, &format!("decimal: \",\"\n{facts} {{K: {dimension}}}")).unwrap();
        assert_eq!(cells(&place, &format!("{name}.cube"), "rows K"), ["c = 4.0", "b = 2.0", "a = 1.0"], "{dimension}");
    }
}

#[test]
fn measures_are_read_by_their_type() {
    let place = Place::new();
    let whole: String = (0..1500).map(|row| format!("a,{row}\n")).collect();
    place.write("late.csv", format!("p,amount\n{whole}b,0.5\nb,\nb, \n"));
    let dimensions = "dimensions: {P: {column: p, all: T}}";
    let facts =
        |file: &str| format!("facts: {{file: {file}, value: amount}}\nvalue: {{type: decimal(2)}}\n{dimensions}");
    define(&place, "late", &facts("late.csv")).unwrap();
    assert_eq!(cells(&place, "late.cube", "rows T"), ["T = 1124250.50"]);
    // No detour through doubles: 1.005 is rounded up, and 16 digits stay.
    place.write("exact.csv", "p,amount\na,1.005\nb,12345678901234567.89\nc,1e2\n");
    let told = define(&place, "exact", &facts("exact.csv")).unwrap();
    assert!(told.contains("1 value of amount with more digits than its type or a double has, rounded"), "{told}");
    assert_eq!(
        cells(&place, "exact.cube", "rows P"),
        ["a = 1.01", "b = 12345678901234567.89", "c = 100.00", "T = 12345678901234668.90"]
    );
    let rows = place.run(&["cube", "query", "exact.cube", "source at a", "--format", "csv"]).ok();
    assert_eq!(rows, "p,amount\na,1.005\n");
    for (value, told) in [
        ("abc", "abc in row 2 (p=b) is no number; values are numbers"),
        ("\"1.234,50\"", "1.234,50 in row 2 (p=b) is no number; if numbers are written so, write decimal: \",\" and"),
        ("\"1,234.50\"", "if numbers are written so, write decimal: \".\" and thousands: \",\""),
        ("1e30", "1e30 in row 2 (p=b) is beyond 92233720368547758.07, the largest decimal(2)"),
        ("NaN", "NaN in row 2 (p=b); NaN and infinity are in 1 row"),
    ] {
        place.write("bad.csv", format!("p,amount\na,1\nb,{value}\n"));
        let error = define(&place, "bad", &facts("bad.csv")).unwrap_err();
        assert!(error.contains(told), "{value}: {error}");
    }
}

#[test]
fn a_definition_says_how_text_is_written() {
    let place = Place::new();
    // Latin-1, with a comma in front of fractions and German dates.
    place.write("de.csv", &b"monat;konto;betrag\n01.04.2025;B\xfcro;1.234,50\n2.5.2025;B\xfcro;-0,25\n"[..]);
    let text = "decimal: \",\", thousands: \".\", encoding: latin1, types: {monat: date(DD.MM.YYYY)}";
    let dimensions = "dimensions: {K: {column: konto}, M: {column: monat, levels: [year, month]}}";
    let definition = |text: &str| {
        format!("facts: {{file: de.csv, value: betrag, {text}}}\nvalue: {{type: decimal(2)}}\n{dimensions}")
    };
    define(&place, "de", &definition(text)).unwrap();
    assert_eq!(cells(&place, "de.cube", "rows Büro where 2025"), ["Büro 2025 = 1234.25"]);
    let refreshed = place.run(&["cube", "refresh", "de.cube"]);
    assert_eq!(refreshed.code, 0, "{refreshed:?}");
    assert_eq!(cells(&place, "de.cube", "rows Büro where 2025-04"), ["Büro 2025-04 = 1234.50"]);
    // The same for all sources.
    place.write("k.csv", &b"konto;art\nB\xfcro;1\n"[..]);
    let of_all = format!(
        "facts: {{file: de.csv, value: betrag}}\nvalue: {{type: decimal(2)}}\ndimensions: {{K: {{table: k.csv, levels: \
         [art, konto]}}, M: {{column: monat, levels: [year]}}}}\n{}",
        text.replace(", ", "\n").replace("\",\"\n\"", "\",\"").replace(": \n", ": ")
    );
    define(&place, "all", &of_all).unwrap();
    assert_eq!(cells(&place, "all.cube", "rows 1"), ["1 2025 = 1234.25"]);

    let error =
        define(&place, "dates", &definition(&text.replace(", types: {monat: date(DD.MM.YYYY)}", ""))).unwrap_err();
    assert!(error.ends_with("for '01.04.2025' write types: {monat: date(DD.MM.YYYY)}"), "{error}");
    let error = define(&place, "bytes", &definition(&text.replace(", encoding: latin1", ""))).unwrap_err();
    let told = "de.csv, line 2, column 'konto': Encountered invalid UTF-8 data";
    assert!(
        error.contains(told) || error.contains("invalid UTF-8") && error.contains("write encoding: windows-1252"),
        "{error}"
    );
    let error = define(&place, "comma", &definition(&format!("delimiter: \",\", {text}"))).unwrap_err();
    assert!(error.contains("delimiter: ';'"), "{error}");

    place.write("none.csv", "A,1\nB,2\n");
    let without = "facts: {file: none.csv, value: column_2, header: false}\ndimensions: {R: {column: column_1}}";
    define(&place, "none", without).unwrap();
    assert_eq!(cells(&place, "none.cube", "rows R"), ["A = 1.0", "B = 2.0"]);
    place.write("pipes.csv", "k#v\n a,b #1\n");
    define(&place, "pipes", "facts: {file: pipes.csv, value: v, delimiter: \"#\"}\ndimensions: {K: {column: k}}")
        .unwrap();
    let sixteen: Vec<u8> = "\u{feff}k\tv\nü\t1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    place.write("u.tsv", sixteen);
    define(&place, "u", "facts: {file: u.tsv, value: v, encoding: utf-16}\ndimensions: {K: {column: k}}").unwrap();
    assert_eq!(cells(&place, "u.cube", "rows K"), ["ü = 1.0"]);
}

#[test]
fn what_is_said_of_text_is_refused_where_it_means_nothing() {
    let place = Place::new();
    place.copy("SELECT 354 AS cc, 5.0 AS amount, 'x' AS k", "f.parquet");
    place.write("f.csv", "cc,amount\n354,5\n");
    for (file, text, told) in [
        ("f.parquet", "delimiter: ;", "delimiter is about text files such as CSV"),
        ("f.parquet", "encoding: latin1", "encoding is about text files such as CSV"),
        ("f.csv", "types: {nope: text}", "types of the facts: there is no column 'nope'"),
        ("f.csv", "types: {cc: number}", "no type \"number\": text, integer, decimal(n)"),
        ("f.csv", "types: {amount: date}", "column 'amount' of the facts holds DATE; values are numbers"),
        ("f.csv", "types: {cc: date}", "the facts, column 'cc': '354' is no date, as types: says (date); mend it"),
        ("f.csv", "delimiter: \";;\"", "one character is expected here"),
        ("f.csv", "thousands: \".\"", "write decimal, too"),
        ("f.csv", "decimal: x", "decimal is a point or a comma"),
        ("f.csv", "encoding: ebcdic", "no encoding \"ebcdic\""),
    ] {
        let definition = format!("facts: {{file: {file}, value: amount, {text}}}\ndimensions: {{CC: {{column: cc}}}}");
        let error = define(&place, "d", &definition).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
    for (text, told) in [
        (
            "delimiter: ;",
            "delimiter, quote, encoding and header are about text files such as CSV, and the query reads none",
        ),
        ("decimal: ','", "decimal and thousands are about texts: name the columns of numbers in types, too"),
    ] {
        let sql = "SELECT * FROM 'f.parquet'";
        let definition =
            format!("facts: {{sql: \"{sql}\", value: amount, {text}}}\ndimensions: {{CC: {{column: cc}}}}");
        let error = define(&place, "d", &definition).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
        // For all sources it is said of text files and texts, whichever they are, and refused where there are none.
        let (facts, dimensions) = definition.split_once('\n').unwrap();
        let facts = facts.replace(&format!(", {text}"), "");
        let of_all = format!("{facts}\n{dimensions}\n{text}");
        let error = define(&place, "d", &of_all).unwrap_err();
        assert!(error.contains("text"), "{text}: {error}");
        let error = define(&place, "d", &of_all.replace(&format!("sql: \"{sql}\""), "file: f.parquet")).unwrap_err();
        let field = text.split(':').next().unwrap();
        assert!(error.contains(&format!("{field} is about text")), "{text}: {error}");
        let of_text = of_all.replace("f.parquet", "f.csv");
        match field {
            "decimal" => define(&place, field, &format!("{of_all}\ntypes: {{amount: decimal(2)}}")).unwrap(),
            _ => define(&place, field, &of_text.replace(';', "','")).unwrap(),
        };
    }
    let facts = "facts: {file: f.csv, value: amount}\n";
    let error = define(&place, "d", &format!("{facts}dimensions: {{CC: {{column: cc, header: true}}}}")).unwrap_err();
    assert!(error.contains("header is about a table, and table is missing"), "{error}");
    let error = define(&place, "d", &format!("{facts}dimensions: {{CC: {{column: cc}}}}\ntypes: {{x: text}}"));
    assert!(error.unwrap_err().contains("types: no source has a column 'x'"));
    let error = define(&place, "d", "facts: {file: '*.csv', value: amount, encoding: latin1}\ndimensions: {cc: {}}");
    assert!(error.unwrap_err().contains("encoding: latin1 is of one file"));
}

#[test]
fn keys_that_are_text_here_and_numbers_there_are_refused() {
    let place = Place::new();
    place.copy("SELECT 354 AS cc, 5.0 AS amount", "f.parquet");
    place.copy("SELECT '00354' AS cc, 5.0 AS amount", "t.parquet");
    place.copy("SELECT 354 AS cc, 'D' AS dept", "cc.parquet");
    place.write("f.csv", "cc,amount\n354,5\n");
    place.write("cc.csv", "cc,dept\n00354,D\n354,E\n");
    let definition = |facts: &str, table: &str| {
        format!("facts: {{value: amount, {facts}}}\ndimensions: {{CC: {{levels: [dept, cc], {table}}}}}")
    };
    for (facts, table) in [
        ("file: f.parquet", "table: cc.csv"),
        ("file: f.csv", "table: cc.parquet"),
        ("file: t.parquet", "table: cc.parquet"),
        ("sql: \"SELECT cc, amount FROM 'f.csv'\"", "table: cc.parquet"),
    ] {
        let error = define(&place, "u", &definition(facts, table)).unwrap_err();
        let told = ["dimension 'CC'", "is text", "holds BIGINT", "types: {cc: integer}", "types: {cc: text}"];
        assert!(told.iter().all(|told| error.contains(told)), "{error}");
    }
    define(&place, "a", &definition("file: f.parquet, types: {cc: text}", "table: cc.csv")).unwrap();
    assert_eq!(cells(&place, "a.cube", "rows level(CC, 0)"), ["354 = 5.0"]);
    define(&place, "b", &definition("file: t.parquet, types: {cc: integer}", "table: cc.parquet")).unwrap();
    assert_eq!(cells(&place, "b.cube", "rows D"), ["D = 5.0"]);
    define(&place, "c", &definition("file: t.parquet", "table: cc.csv")).unwrap();
    assert_eq!(cells(&place, "c.cube", "rows level(CC, 0)"), ["00354 = 5.0"]);
}

#[test]
fn keys_that_a_query_passes_on_are_text_too() {
    let place = Place::new();
    place.write("f.csv", "code,amount\n1.1,1\n1.10,2\n1.2,4\n");
    place.write("t.csv", "code,g\n1.1,x\n1.10,x\n1.2,y\n");
    let definition = |sql: &str, rest: &str| {
        format!("facts: {{sql: \"{sql}\", value: amount{rest}}}\ndimensions: {{Code: {{column: code}}}}")
    };
    let all = ["1.1 = 1.0", "1.10 = 2.0", "1.2 = 4.0"];
    for (at, (sql, rest)) in [
        ("SELECT code, amount FROM 'f.csv'", ""),
        ("SELECT code::varchar AS code, amount FROM 'f.csv'", ""),
        ("SELECT code, sum(amount) AS amount FROM 'f.csv' WHERE amount > 0 GROUP BY code", ""),
        ("SELECT f.code, amount FROM 'f.csv' AS f JOIN 't.csv' AS t ON f.code = t.code", ""),
        ("SELECT f.code, amount FROM 'f.csv' AS f, 't.csv' AS t WHERE f.code = t.code", ""),
        ("WITH f AS (SELECT * FROM 'f.csv') SELECT code, amount FROM f UNION ALL SELECT code, 0 FROM f", ""),
        ("SELECT code, amount FROM 'f.csv' WHERE code::double < 5", ", types: {code: text}"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("s{at}");
        define(&place, &name, &definition(sql, rest)).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(cells(&place, &format!("{name}.cube"), "rows Code"), all, "{sql}");
    }
    for sql in [
        "SELECT code, amount FROM 'f.csv' WHERE code < 5",
        "SELECT code::varchar AS code, amount FROM 'f.csv' WHERE code < 5",
        "SELECT code, amount FROM 'f.csv' AS f WHERE EXISTS (SELECT 1 FROM 't.csv' AS t WHERE t.code < f.code)",
    ] {
        let error = define(&place, "r", &definition(sql, "")).unwrap_err();
        assert!(error.contains("write types: {code: text}"), "{sql}: {error}");
    }
}

#[test]
fn copies_of_other_encodings_stay_within_the_allowed_folders() {
    let place = Place::new();
    place.write("in/f.csv", &b"k,v\n\xfc,1\n"[..]);
    place.write(
        "in/c.yaml",
        "cube: c\nfacts: {file: f.csv, value: v, encoding: latin1}\ndimensions: {K: {column: k}}\n",
    );
    let (allowed, temporary) = (format!("allowed_paths={}", place.path("in").display()), place.path("in/tmp"));
    std::fs::create_dir(&temporary).unwrap();
    let arguments = ["--set", &allowed, "cube", "define", "in/c.yaml", "in/c.cube"];
    let error = place.run(&arguments).error(1);
    assert!(error.contains("outside of warpcube.allowed_paths: convert it to UTF-8"), "{error}");
    let made = Ran::of(place.command().args(arguments).env("TMPDIR", &temporary).output().unwrap());
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

/// Makes the folder of the cube `old` one as versions wrote it that guessed the types of text files.
fn make_old(place: &Place) {
    let manifest: serde_json::Value = serde_json::from_slice(&place.read("old.cube/cube.json")).unwrap();
    let files = manifest["files"].as_array().unwrap();
    let origin = files.iter().find(|file| file["role"] == "origin").unwrap();
    let name = format!("old.cube/{}", origin["name"].as_str().unwrap());
    let text = String::from_utf8(place.read(&name)).unwrap();
    let older = text.replace(",\"is_written\":true", "");
    assert_ne!(text, older);
    place.write(&name, &older);
    let sum = |text: &str| format!("{:08x}", crc32(text.as_bytes()));
    let manifest = String::from_utf8(place.read("old.cube/cube.json")).unwrap();
    let (_, body) = manifest.split_once('\n').unwrap();
    let bytes = |text: &str| format!("\"bytes\": {}", text.len());
    let body = body.replace(&sum(&text), &sum(&older)).replace(&bytes(&text), &bytes(&older));
    place.write("old.cube/cube.json", format!("{{\"checksum\": \"{}\",\n{body}", sum(&body)));
}

#[test]
fn cubes_keep_the_types_that_they_were_made_with() {
    let place = Place::new();
    place.write("f.csv", "cc,amount\n354,1\n7,10\n");
    let definition = "facts: {file: f.csv, value: amount}\ndimensions: {CC: {column: cc}}";
    define(&place, "old", definition).unwrap();
    make_old(&place);
    place.write("f.csv", "cc,amount\n00354,1\n354,10\n");
    for command in ["refresh", "load"] {
        let ran = place.run(&["cube", command, "old.cube"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(cells(&place, "old.cube", "rows CC"), ["354 = 11.0"], "{command}");
        let rows = place.run(&["cube", "query", "old.cube", "source at 354", "--format", "csv"]).ok();
        assert_eq!(rows.lines().count(), 3, "{rows}");
    }
    let ran = place.run(&["cube", "load", "old.cube", "--definition", "old.yaml"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut found = cells(&place, "old.cube", "rows CC");
    found.sort();
    assert_eq!(found, ["00354 = 1.0", "354 = 10.0"]);
}

#[test]
fn cubes_keep_the_order_of_texts_that_they_were_made_with() {
    let place = Place::new();
    place.write("f.csv", "m,amount\nOkt,1\nNov,2\nDez,4\n");
    define(&place, "old", "facts: {file: f.csv, value: amount}\ndimensions: {M: {column: m}}").unwrap();
    let of_source = ["Okt = 1.0", "Nov = 2.0", "Dez = 4.0"];
    assert_eq!(cells(&place, "old.cube", "rows M"), of_source);
    make_old(&place);
    assert_eq!(place.run(&["cube", "refresh", "old.cube"]).code, 0);
    assert_eq!(cells(&place, "old.cube", "rows M"), ["Dez = 4.0", "Nov = 2.0", "Okt = 1.0"]);
    assert_eq!(place.run(&["cube", "load", "old.cube", "--definition", "old.yaml"]).code, 0);
    assert_eq!(cells(&place, "old.cube", "rows M"), of_source);
}

/// CRC-32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}

#[test]
fn messages_name_the_remedy() {
    let place = Place::new();
    place.write("f.csv", "cc,amount\nA,1\n");
    place.write("cc.csv", "id,up\nA,G\nB,H\nC,H\n");
    let facts = "facts: {file: f.csv, value: amount}\ndimensions:";
    let error = define(&place, "p", &format!("{facts} {{CC: {{column: cc, table: cc.csv, key: id, parent: up}}}}"));
    let told = "row 1 of table '";
    let rest = "the parent 'G' of 'A' is the key of no row, as parents of 2 more rows are. Add a row for it";
    let error = error.unwrap_err();
    assert!(error.contains(told) && error.contains(rest), "{error}");
    define(&place, "c", &format!("{facts} {{CC: {{column: cc, all: T}}}}")).unwrap();
    place.write("d.csv", "day,v\n04/05/2025,1\n13/04/2025,\"1,5\"\n");
    let days = "facts: {file: d.csv, value: v}\ndimensions: {D: {column: day, levels: [year]}}";
    let error = define(&place, "days", &days.replace("value: v", "value: v, decimal: ','")).unwrap_err();
    assert!(error.contains("types: {day: date(DD/MM/YYYY)}") && !error.contains("MM/DD"), "{error}");
    let error = define(&place, "days", &days.replace("value: v", "value: v, types: {v: decimal(2)}")).unwrap_err();
    assert!(error.contains("'1,5' is no number, as types: says (decimal(2)): if numbers are written so"), "{error}");
    place.write("bom.csv", "\u{feff}cc,amount\nA,1\n");
    let bom = "facts: {file: bom.csv, value: amount, encoding: windows-1252}\ndimensions: {CC: {column: cc}}";
    assert!(define(&place, "bom", bom).unwrap_err().contains("leave encoding out"));
    place.write("p.csv", "id,par\n1,\n2,1.0\n");
    place.write("two.csv", "k,amount\n2,1\n");
    let table = "{table: p.csv, column: k, key: id, parent: par}";
    let error = define(&place, "p", &format!("{} {{K: {table}}}", facts.replace("f.csv", "two.csv"))).unwrap_err();
    assert!(error.contains("and '1' is: write types: {par: integer}"), "{error}");
    place.write("mixed/a.csv", "k;v\nA;1\n");
    place.write("mixed/b.csv", "k,v\nA,1\n");
    let error = define(&place, "m", "facts: {file: mixed, value: v}\ndimensions: {K: {column: k}}").unwrap_err();
    assert!(error.contains("in a cube's definition, write delimiter and quote"), "{error}");
    for (query, told) in [
        ("rows leaves(CC)", "leaves() is of an element, and CC is a dimension: write level(CC, 0)"),
        ("rows children(CC)", "CC is a dimension; an element is expected here, as T"),
        ("rows descendants(CC)", "CC is a dimension; an element is expected here, as T"),
    ] {
        let error = place.run(&["cube", "query", "c.cube", query]).error(1);
        assert!(error.contains(told), "{query}: {error}");
    }
}

/// The file of dimensions of a database, without one of its cells.
const DATABASE: &str = "[DATABASE]\n2;1;1;\n[DIMENSIONS]\n0;\"Year\";1;1;1;1;\n1;\"Region\";1;1;1;1;\n\
    [DIMENSION 0]\n0;\"Year\";1;1;1;2;\n[ELEMENTS DIMENSION 0]\n0;\"All\";0;4;0;1;0;0;;1;1;\n\
    1;\"2025\";1;1;0;0;1;1;0;;;\n[DIMENSION 1]\n1;\"Region\";0;0;0;1;\n[ELEMENTS DIMENSION 1]\n\
    0;\"France\";0;1;0;0;0;0;;;;\n[CUBES]\n7;\"Sales\";0,1;2;1;1;\n";

#[test]
fn a_database_without_cells_is_told_and_its_cubes_are_named() {
    let place = Place::new();
    place.write("palo/database.csv", DATABASE);
    let imported = place.run(&["cube", "import", "palo/database.csv", "cubes"]);
    assert_eq!(imported.out, "cubes/Sales: no cells, as database_CUBE_7.csv is not beside database.csv\n");
    place.write("palo/database_CUBE_7.csv", "[CUBE]\n7;2,1;\n[NUMERIC]\n1,0;5.5;\n");
    let imported = place.run(&["cube", "import", "palo", "again"]);
    assert_eq!(imported.out, "again/Sales: 1 cell\n");
    for (cube, told) in [
        ("cubes", "'cubes' is no cube: it has no cube.json; below it are the cubes cubes/Sales"),
        ("cubes/Sale", "'cubes/Sale' is no cube: it has no cube.json; beside it are the cubes cubes/Sales"),
    ] {
        let error = place.run(&["cube", "info", cube]).error(1);
        assert_eq!(error.replace(&place.path("").display().to_string(), ""), format!("CUBE-002 {told}"), "{cube}");
    }
}
