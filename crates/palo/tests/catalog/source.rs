//! A small database folder, and changes to the cubes that are imported from it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, Loader, Rule, ValueType};
use warpcube_cube::store::LineEnd;
use warpcube_cube::store::{CubeLock, StoredCube};
use warpcube_palo::catalog::{Catalog, import};
use warpcube_palo::{CellValue, CellWriter, CubeHeader, VALUE_MEASURE, cube_file_name};

/// Dimensions `D` (A, B, C below T, and the text element `note`) and `E` (x and y below `all`), a dimension of another
/// database, the cube `Sales`, an attribute cube, a cube of the other database's dimension, and one without a file.
/// Numbers of the elements of `D` do not follow their positions.
pub const DATABASE: &str = "# PALO DATABASE DATA
# version: 5.1.4 (5909)
#\x20
# Description of data:
# SIZE_DIMENSIONS;SIZE_CUBES;TYPE
[DATABASE]
4;4;1;
# Description of data:
# ID;NAME;TYPE;...
[DIMENSIONS]
0;\"#_USER_\";3;\"System\";\"#_USER_\";0;0;0;
3;\"D\";1;1;1;1;
4;\"E\";1;1;1;1;
7;\"#_E_\";4;0;0;1;
# Description of data:\x20
# ID;NAME,LEVEL,INDENT,DEPTH,SIZE_ELEMENTS;\x20
[DIMENSION 3]
3;\"D\";1;2;1;5;
# Description of data:\x20
# ID;NAME,POSITION,TYPE,STRING_CONSOLIDATION,LEVEL,INDENT,DEPTH,PARENTS,CHILDREN,CHILDREN_WEIGHT;\x20
[ELEMENTS DIMENSION 3]
0;\"A\";1;1;0;0;2;1;9;;;
2;\"B\";0;1;0;0;2;1;9;;;
5;\"note\";3;2;0;0;1;0;;;;
6;\"C\";4;1;0;0;2;1;9;;;
9;\"T\";2;4;1;1;1;0;;0,2,6;1,-0.5,1;
# Description of data:\x20
# ID;NAME,LEVEL,INDENT,DEPTH,SIZE_ELEMENTS;\x20
[DIMENSION 4]
4;\"E\";1;2;1;3;
# Description of data:\x20
# ID;NAME,POSITION,TYPE,STRING_CONSOLIDATION,LEVEL,INDENT,DEPTH,PARENTS,CHILDREN,CHILDREN_WEIGHT;\x20
[ELEMENTS DIMENSION 4]
0;\"x\";0;1;0;0;2;1;2;;;
1;\"y\";1;1;0;0;2;1;2;;;
2;\"all\";2;4;0;1;1;0;;0,1;1,1;
# Description of data:\x20
# ID;NAME,LEVEL,INDENT,DEPTH,SIZE_ELEMENTS;\x20
[DIMENSION 7]
7;\"#_E_\";0;1;0;2;
# Description of data:\x20
# ID;NAME,POSITION,TYPE,STRING_CONSOLIDATION,LEVEL,INDENT,DEPTH,PARENTS,CHILDREN,CHILDREN_WEIGHT;\x20
[ELEMENTS DIMENSION 7]
0;\"caption\";0;2;0;0;1;0;;;;
1;\"size\";1;1;0;0;1;0;;;;
# Description of data:
# ID;NAME;DIMENSIONS;TYPE;DELETABLE;RENAMABLE;...
[CUBES]
1;\"#_E\";7,4;3;0;0;
2;\"Sales\";3,4;2;1;1;
5;\"#_VIEW_LOCAL\";4,0;5;0;0;
8;\"Plan\";4;2;1;1;
#\x20
#\x20
# PALO DATABASE DATA END
";

pub const SALES: u32 = 2;

/// A cell of a file: a path and a number or a text.
pub type Drawn = (Vec<u32>, CellValue);

pub fn number(path: &[u32], value: f64) -> Drawn {
    (path.to_vec(), CellValue::Number(value))
}

pub fn text(path: &[u32], value: &str) -> Drawn {
    (path.to_vec(), CellValue::Text(value.to_owned()))
}

pub fn cell_file(cube: u32, sizes: &[u32], line_end: LineEnd, cells: &[Drawn]) -> Vec<u8> {
    let header = CubeHeader { cube, sizes: sizes.to_vec(), settings: Vec::new() };
    let mut writer = CellWriter::new(Vec::new(), &header, line_end).unwrap();
    cells.iter().for_each(|(path, value)| writer.write(path, value).unwrap());
    writer.finish().unwrap()
}

/// A database folder with these cells of the cube `Sales`.
pub struct Source {
    pub temporary: TempDir,
}

impl Source {
    pub fn new(sales: &[u8]) -> Source {
        let source = Source { temporary: tempdir().unwrap() };
        fs::create_dir(source.folder()).unwrap();
        let captions = [number(&[1, 1], 4.5), text(&[0, 0], "a \"caption\""), text(&[0, 2], "all of\nthem")];
        let others = [number(&[1, 7], 1.0), text(&[0, 3], "a view")];
        let files = [
            ("database.csv", DATABASE.as_bytes().to_vec()),
            ("database_CUBE_1.csv", cell_file(1, &[2, 3], LineEnd::Lf, &captions)),
            ("database_CUBE_2.csv", sales.to_vec()),
            ("database_CUBE_5.csv", cell_file(5, &[3, 9], LineEnd::CrLf, &others)),
            ("database_CUBE_77.csv", b"not listed".to_vec()),
            ("database.log", b"no part of the database".to_vec()),
        ];
        files.iter().for_each(|(name, bytes)| fs::write(source.folder().join(name), bytes).unwrap());
        source
    }

    /// The source with cells by `CellWriter`.
    pub fn of_cells(cells: &[Drawn]) -> Source {
        Source::new(&cell_file(SALES, &[10, 3], LineEnd::Lf, cells))
    }

    pub fn folder(&self) -> PathBuf {
        self.temporary.path().join("source")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub fn import(&self) -> Catalog {
        import(&self.folder(), &self.path("catalog")).unwrap().catalog
    }

    /// The cells of `Sales` in an export.
    pub fn exported(&self, catalog: &Catalog, name: &str) -> String {
        catalog.export(&self.path(name)).unwrap();
        fs::read_to_string(self.path(name).join(cube_file_name(SALES))).unwrap()
    }
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Rows of a cell file, without comments.
pub fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

pub fn assert_equal_folders(source: &Path, export: &Path, left_out: &[&str]) {
    let expected: Vec<String> = names(source).into_iter().filter(|name| !left_out.contains(&name.as_str())).collect();
    assert_eq!(names(export), expected);
    for name in expected {
        assert!(fs::read(source.join(&name)).unwrap() == fs::read(export.join(&name)).unwrap(), "{name} differs");
    }
}

/// Loads a cube and stores it with the cells that `change` makes of its cells.
pub fn change(catalog: &Catalog, name: &str, change: impl FnOnce(&mut StoredCube)) {
    let held = CubeLock::lock(&catalog.cube_folder(name).unwrap()).unwrap();
    let mut cube = held.open().unwrap();
    change(&mut cube);
    held.replace(&cube).unwrap();
}

/// Facts of cells by names of elements.
pub fn facts_of(cube: &StoredCube, cells: &[(&[&str], f64)]) -> Facts {
    let measure = FactMeasure::new(VALUE_MEASURE, Rule::Sum, ValueType::Double);
    let mut loader = Loader::new(cube.model.layout().clone(), vec![measure]);
    for (cell, value) in cells {
        let coordinate = |(name, dimension): (&&str, &warpcube_cube::model::Dimension)| {
            vec![dimension.element(dimension.find(name).unwrap()).base().unwrap()]
        };
        let columns: Vec<Vec<u32>> = cell.iter().zip(cube.model.dimensions()).map(coordinate).collect();
        let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        let values = InputColumn { values: InputValues::Doubles(&[*value]), filled: None };
        loader.append(&columns, &[values]).unwrap();
    }
    loader.finish(cube.facts.base().pages().page_cells()).unwrap()
}

/// Cells in the order and spelling of the server.
pub fn orderly() -> Vec<Drawn> {
    vec![
        number(&[0, 0], 1.5),
        number(&[0, 1], 0.0),
        number(&[2, 1], -3e20),
        number(&[6, 0], 0.1),
        text(&[9, 2], "a text at a consolidated cell"),
        text(&[5, 0], "of a text element;\n# no comment"),
    ]
}

/// Cells out of order, repeated, at consolidated and unknown elements; a number in a spelling of its own, a text
/// without quotes, two sections of numbers.
pub const ODD: &str = "[CUBE]\n2;10,3;\n[NUMERIC]\n6,0;0.10;\n0,0;1;\n2,1;3;\n9,0;8;\n0,0;1.5;\n4,0;5;\n\
    [STRING]\n9,2;plain;\n9,2;\"last\";\n8,0;\"lost\";\n[NUMERIC]\n0,1;-0;\n[STRING]\n0,2;\"second\";\n";
