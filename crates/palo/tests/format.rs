//! Palo files: the real database, broken ones with line and field, cells that are skipped.

use warpcube_cube::model::ElementKind;
use warpcube_cube::store::{DimensionOrigin, LineEnd};
use warpcube_palo::{
    Cell, CellImport, CellReader, CellValue, CellWriter, Database, Dimension, PaloError, RecordKind, RecordReader,
    cube_file_name,
};

/// Text of the machines database, of the shared data.
fn machines() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/palo-machines/database.csv");
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn written(database: &Database) -> String {
    String::from_utf8(database.write(Vec::new()).unwrap()).unwrap()
}

/// A database of one dimension, A and B below T, and one cube.
const SMALL: &str = "# PALO DATABASE DATA
#\x20
# Description of data:
# SIZE_DIMENSIONS;SIZE_CUBES;TYPE
[DATABASE]
2;1;1;
# Description of data:
# ID;NAME;TYPE;...
[DIMENSIONS]
0;\"D\";1;1;1;1;
7;\"#_D_\";4;0;0;1;
# Description of data:\x20
# ID;NAME,LEVEL,INDENT,DEPTH,SIZE_ELEMENTS;\x20
[DIMENSION 0]
0;\"D\";1;2;1;4;
# Description of data:\x20
# ID;NAME,POSITION,TYPE,STRING_CONSOLIDATION,LEVEL,INDENT,DEPTH,PARENTS,CHILDREN,CHILDREN_WEIGHT;\x20
[ELEMENTS DIMENSION 0]
0;\"A\";1;1;0;0;2;1;9;;;
2;\"B\";0;1;0;0;2;1;9;;;
5;\"note\";3;2;0;0;1;0;;;;
9;\"T\";2;4;1;1;1;0;;0,2;1,-0.5;
# Description of data:
# ID;NAME;DIMENSIONS;TYPE;DELETABLE;RENAMABLE;...
[CUBES]
3;\"C\";0;2;1;1;
#\x20
#\x20
# PALO DATABASE DATA END
";

#[test]
#[ignore = "reads ../shared/data/palo-machines"]
fn the_machines_database_comes_out_byte_for_byte() {
    let text = machines();
    let database = Database::read(text.as_bytes()).unwrap();
    assert_eq!((database.dimensions.len(), database.cubes.len()), (25, 36));
    assert_eq!(database.version.as_deref(), Some("5.1.4 (5909)"));
    assert!(written(&database) == text, "the written file differs from the one read");
}

#[test]
#[ignore = "reads ../shared/data/palo-machines"]
fn the_machines_dimensions_survive_the_model_byte_for_byte() {
    let text = machines();
    let mut database = Database::read(text.as_bytes()).unwrap();
    for dimension in database.dimensions.iter_mut().filter(|dimension| dimension.elements.is_some()) {
        let (model, origin) = dimension.to_model().unwrap();
        *dimension = Dimension::from_model(&model, &origin).unwrap();
    }
    assert!(written(&database) == text, "the written file differs from the one read");
}

#[test]
#[ignore = "reads ../shared/data/palo-machines"]
fn the_machines_cube_has_the_shape_of_the_paper() {
    let text = machines();
    let database = Database::read(text.as_bytes()).unwrap();
    let cube = database.cube_model(database.cube("machines").unwrap()).unwrap();
    let counts: Vec<usize> = cube.model.dimensions().iter().map(|dimension| dimension.base_count()).collect();
    assert_eq!(counts, [14, 12, 50, 1000, 10, 70]);
    let cells: u64 = cube.model.dimensions().iter().map(|dimension| dimension.elements().len() as u64).product();
    assert_eq!(cells, 226_236_080_070);
    assert!(cube.model.layout().is_narrow());
    let years = &cube.model.dimensions()[0];
    assert_eq!(years.element(years.default_element().unwrap()).name(), "All Years");
    let machines = &cube.model.dimensions()[5];
    let all = machines.find("all machines").unwrap();
    let map = machines.base_map(&machines.of_level(1)).unwrap();
    assert_eq!((machines.level(all), machines.base_set(all).len()), (2, 70));
    assert!(map.whole.iter().all(|whole| *whole));
    let missing = database.cube("Machine").unwrap_err().to_string();
    assert_eq!(missing, "the database has no cube 'Machine'; did you mean 'Machines'?");
    let system = database.cube("#_SUBSET_LOCAL").unwrap();
    assert!(matches!(database.cube_model(system), Err(PaloError::NoElements { dimension }) if dimension == "#_USER_"));
}

#[test]
fn a_small_database_comes_out_byte_for_byte_with_either_line_end() {
    let crlf = SMALL.replace('\n', "\r\n");
    for (text, line_end) in [(SMALL, LineEnd::Lf), (crlf.as_str(), LineEnd::CrLf)] {
        let mut database = Database::read(text.as_bytes()).unwrap();
        assert_eq!(database.line_end, line_end);
        assert_eq!(written(&database), text);
        let (model, origin) = database.dimensions[0].to_model().unwrap();
        database.dimensions[0] = Dimension::from_model(&model, &origin).unwrap();
        assert_eq!(written(&database), text);
    }
    let marked = format!("\u{feff}{}", SMALL.replace(";1;\n", ";1\n").replace(",-0.5;\n", ",-5e-1;\n\n"));
    let read = Database::read(marked.as_bytes()).unwrap();
    assert_eq!(read.cubes, Database::read(SMALL.as_bytes()).unwrap().cubes);
}

#[test]
fn dimensions_of_the_model_get_numbers() {
    let database = Database::read(SMALL.as_bytes()).unwrap();
    let (mut model, mut origin) = database.dimensions[0].to_model().unwrap();
    let add = warpcube_cube::model::Change::Add { name: "N".to_owned(), kind: ElementKind::Base, position: None };
    let new = model.apply(add, &|_| false).unwrap().added.unwrap();
    let error = Dimension::from_model(&model, &origin).unwrap_err().to_string();
    assert_eq!(error, "element 'N' has no number of the server");
    assert!(origin.number(&model));
    assert_eq!(origin.palo_id(new), Some(10));
    assert_eq!(Dimension::from_model(&model, &origin).unwrap().to_model().unwrap().0.find("N").unwrap(), new);
    let mut fresh = DimensionOrigin::new(4);
    assert!(fresh.number(&model));
    let exported = Dimension::from_model(&model, &fresh).unwrap();
    let ids: Vec<u32> = exported.elements.unwrap().rows.iter().map(|row| row.id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
}

#[test]
fn broken_databases_are_refused_with_line_and_field() {
    let cases = [
        (
            "2;1;1;",
            "two;1;1;",
            "line 6, field 1 (number of dimensions): 'two' is not a whole number from 0 to 4294967295",
        ),
        ("2;1;1;", "2", "line 6, field 2 (number of cubes): missing: the row has 1 fields"),
        ("[CUBES]", "[CUBES", "line 25: a section heading ends with ']'"),
        ("[DATABASE]\n", "", "line 5: a row stands before any section"),
        ("7;\"#_D_\"", "0;\"#_D_\"", "line 11, field 1 (id): 0 is taken by line 10"),
        ("7;\"#_D_\"", "7;\"d\"", "line 11, field 2 (name): 'd' is taken by line 10; names ignore case"),
        ("7;\"#_D_\"", "7;\"\"", "line 11, field 2 (name): the name is empty"),
        ("[DIMENSION 0]", "[DIMENSION 1]", "line 14, field 1 (section): [DIMENSIONS] lists no dimension 1"),
        ("[DIMENSION 0]", "[DIMENSION 7]", "line 15, field 1 (id): 0 stands in the section of dimension 7"),
        ("0;\"D\";1;2;1;4;", "0;\"E\";1;2;1;4;", "line 15, field 2 (name): 'E' is listed as 'D' in [DIMENSIONS]"),
        ("2;\"B\";0;1;", "2;\"B\";0;3;", "line 20, field 4 (type): 3 is none of 1 numeric, 2 text, 4 consolidated"),
        ("2;\"B\";0;1;0;", "2;\"B\";0;1;2;", "line 20, field 5 (string consolidation): 2 is neither 0 nor 1"),
        ("2;\"B\"", "2;\"a\"", "line 20, field 2 (name): 'a' is taken by line 19; names ignore case"),
        ("2;\"B\"", "2;\"B\" ", "line 20, field 2 (text): text follows the closing quote"),
        ("2;\"B\"", "2;B\"", "line 20: a quote is opened and never closed"),
        ("2;\"B\"", "2;B\"\"", "line 20, field 2 (text): a quote stands within an unquoted field"),
        ("2;1;9;;;", "2;1;8;;;", "line 19, field 9 (parents): the dimension has no element 8"),
        ("2;1;9;;;", "2;1;;;;", "line 22, field 10 (children): element 0 does not list 'T' as its parent"),
        ("2;1;9;;;", "2;1;9,2;;;", "line 19, field 9 (parents): element 2 does not list 'A' as its child"),
        (";0,2;1,-0.5;", ";0,3;1,-0.5;", "line 22, field 10 (children): the dimension has no element 3"),
        (";0,2;1,-0.5;", ";0,0;1,-0.5;", "line 22, field 10 (children): element 0 is listed twice"),
        (";0,2;1,-0.5;", ";0,2;1;", "line 22, field 11 (weights): 1 weights for 2 children"),
        (";0,2;1,-0.5;", ";0,2;1,NaN;", "line 22, field 11 (weights): 'NaN' is not a finite number"),
        (";0,2;1,-0.5;", ";0,x;1,2;", "line 22, field 10 (children): 'x' is not a whole number from 0 to 4294967295"),
        ("\"T\";2;4;", "\"T\";2;1;", "line 22, field 10 (children): an element of type 1 has no children"),
        ("3;\"C\";0;", "3;\"C\";0,1;", "line 26, field 3 (dimensions): [DIMENSIONS] lists no dimension 1"),
    ];
    for (from, to, message) in cases {
        assert!(SMALL.contains(from), "{from}");
        let text = SMALL.replacen(from, to, 1);
        assert_eq!(Database::read(text.as_bytes()).unwrap_err().to_string(), message, "{from} → {to}");
    }
    assert_eq!(Database::read(&b""[..]).unwrap_err().to_string(), "line 0: the file ends without a section [DATABASE]");
    let not_text = [b"[DATABASE]\n1;1;".as_slice(), &[0xff], b";\n"].concat();
    assert_eq!(Database::read(not_text.as_slice()).unwrap_err().to_string(), "line 2: the text is not UTF-8");
}

#[test]
fn cycles_are_told_with_their_path() {
    let rows = "0;\"A\";0;4;0;0;2;1;1;1;1;\n1;\"B\";1;4;0;0;2;1;0;0;1;\n";
    let text = SMALL.replace("0;\"A\";1;1;0;0;2;1;9;;;\n2;\"B\";0;1;0;0;2;1;9;;;\n", rows);
    let text = text.replace("1;1;0;;0,2;1,-0.5;", "1;1;0;;;;");
    let database = Database::read(text.as_bytes()).unwrap();
    let error = database.cube_model(&database.cubes[0]).unwrap_err().to_string();
    assert_eq!(error, "dimension 'D': a cycle of consolidations: A → B → A");
}

const CELLS: &str = "[CUBE]\n3;4;\n[NUMERIC]\n0;1.5;\n9;2;\n2;-3;\n5;4;\n4;1;\n\
    [STRING]\n9;\"a \"\"note\"\";\nof two lines\";\n8;\"lost\";\n";

#[test]
fn cells_that_the_server_would_skip_are_counted_and_shown() {
    let database = Database::read(SMALL.as_bytes()).unwrap();
    let cube = database.cube_model(database.cube("C").unwrap()).unwrap();
    let dimension = &cube.model.dimensions()[0];
    let mut import = CellImport::new(&cube, CELLS.as_bytes()).unwrap();
    let cells: Vec<_> = import.by_ref().map(Result::unwrap).collect();
    let shown: Vec<_> = cells.iter().map(|c| (dimension.element(c.elements[0]).name(), c.value.clone())).collect();
    let note = CellValue::Text("a \"note\";\nof two lines".to_owned());
    assert_eq!(shown, [("A", CellValue::Number(1.5)), ("B", CellValue::Number(-3.0)), ("T", note)]);
    assert_eq!(
        import.skipped().to_string(),
        "4 cells were skipped: line 5: element 9 of dimension 'D' is consolidated; line 7: element 5 of dimension 'D' \
         holds texts alone; line 8: element 4 of dimension 'D' does not exist; line 12: element 8 of dimension 'D' \
         does not exist"
    );
    assert_eq!(cube.path(&cells[2].elements).unwrap(), [9]);
    let many = format!("[CUBE]\n3;4;\n[NUMERIC]\n{}", "9;1;\n".repeat(7));
    let mut import = CellImport::new(&cube, many.as_bytes()).unwrap();
    assert!(import.next().is_none());
    assert!(import.skipped().to_string().ends_with("'D' is consolidated; and 2 more"), "{}", import.skipped());
    let other = CellImport::new(&cube, "[CUBE]\n2;4;\n".as_bytes()).unwrap_err().to_string();
    assert_eq!(other, "line 2: the file holds cube 2, cube 'C' has number 3");
    let other = CellImport::new(&cube, "[CUBE]\n3;4,4;\n".as_bytes()).unwrap_err().to_string();
    assert_eq!(other, "line 2: the file has 2 dimensions, cube 'C' 1");
    assert_eq!(cube_file_name(cube.id), "database_CUBE_3.csv");
}

#[test]
fn broken_cells_are_refused_with_line_and_field() {
    let cases = [
        ("0;1.5;", "0;much;", "line 4, field 2 (value): 'much' is not a finite number"),
        ("0;1.5;", "0;inf;", "line 4, field 2 (value): 'inf' is not a finite number"),
        ("0;1.5;", "0;;", "line 4, field 2 (value): '' is not a finite number"),
        ("0;1.5;", "0,1;1.5;", "line 4, field 1 (element ids): 2 ids for the 1 dimensions of the cube"),
        ("0;1.5;", "-1;1.5;", "line 4, field 1 (element ids): '-1' is not a whole number from 0 to 4294967295"),
        ("0;1.5;", "0;1.5;2;", "line 4, field 3 (end of row): a cell has two fields"),
        ("[NUMERIC]", "[RULES]", "line 3: [RULES] is no section of a cube file; those are CUBE, NUMERIC and STRING"),
        ("[NUMERIC]\n", "", "line 3: section [CUBE] has a second row"),
        ("[CUBE]", "[NUMERIC]", "line 1: a cube file starts with section [CUBE] and its row"),
    ];
    for (from, to, message) in cases {
        let text = CELLS.replacen(from, to, 1);
        let read = CellReader::new(text.as_bytes()).and_then(|cells| cells.collect::<Result<Vec<Cell>, _>>());
        assert_eq!(read.unwrap_err().to_string(), message, "{from} → {to}");
    }
    let mut reader = CellReader::new("[CUBE]\n1;1;\n[NUMERIC]\n0;x;\n0;1;\n".as_bytes()).unwrap();
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

#[test]
fn the_cell_writer_refuses_what_the_format_cannot_hold() {
    let header = CellReader::new(CELLS.as_bytes()).unwrap().header().clone();
    let mut writer = CellWriter::new(Vec::new(), &header, LineEnd::Lf).unwrap();
    let refusals = [
        (&[0_u32, 1][..], CellValue::Number(1.0), "a cell of 2 ids was given to a cube of 1 dimensions"),
        (&[0], CellValue::Number(f64::NAN), "NaN cannot be written: numbers of a Palo file are finite"),
    ];
    for (path, value, message) in refusals {
        assert_eq!(writer.write(path, &value).unwrap_err().to_string(), message);
    }
    writer.write(&[1], &CellValue::Text("t".to_owned())).unwrap();
    let late = writer.write(&[0], &CellValue::Number(1.0)).unwrap_err().to_string();
    assert_eq!(late, "a numeric cell was given after a text cell; numbers come first");
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert!(text.contains("[STRING]\n1;\"t\";\n"), "{text}");
    assert!(text.contains("[NUMERIC]\n# "), "a refused cell left a trace: {text}");
}

#[test]
fn records_are_an_iterator_of_their_own_memory() {
    let text = "# one\r\n\r\n[S]\r\n1;\"a\r\nb;\"\"\";;x\r\n";
    let records: Vec<_> = RecordReader::new(text.as_bytes()).map(Result::unwrap).collect();
    let kinds: Vec<_> = records.iter().map(|row| (row.kind, row.line, row.len())).collect();
    assert_eq!(kinds, [(RecordKind::Comment, 1, 1), (RecordKind::Section, 3, 1), (RecordKind::Row, 4, 4)]);
    assert_eq!(records[2].text(1), Some("a\r\nb;\""));
    assert_eq!((records[2].text(2), records[2].text(3), records[2].text(4)), (Some(""), Some("x"), None));
}
