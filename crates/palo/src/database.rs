//! The contents of `database.csv` as they stand, system dimensions and cubes included.

use warpcube_cube::store::{Field, LineEnd};

/// A database: its dimensions with their elements, and its cubes without their cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Database {
    /// Version of the server that wrote the file, from its comments.
    pub version: Option<String>,
    /// How lines end.
    pub line_end: LineEnd,
    /// Dimensions that the heading announces.
    pub dimension_size: u32,
    /// Cubes that the heading announces.
    pub cube_size: u32,
    /// Further fields of the heading, its type first.
    pub settings: Vec<Field>,
    /// Dimensions in their order.
    pub dimensions: Vec<Dimension>,
    /// Cubes in their order.
    pub cubes: Vec<Cube>,
    /// Sections of other titles, kept as they stand.
    pub other: Vec<Section>,
}

/// A dimension of a Palo database.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Number that cubes name it by.
    pub id: u32,
    /// Name; those that start with `#_` belong to the server.
    pub name: String,
    /// Type: 1 for users' dimensions, others for those of the server.
    pub kind: u32,
    /// Further fields of its row.
    pub settings: Vec<Field>,
    /// Its elements; `None` for dimensions that lie in another database of the server.
    pub elements: Option<Elements>,
}

/// The sections `[DIMENSION n]` and `[ELEMENTS DIMENSION n]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elements {
    /// Highest level.
    pub level: u32,
    /// Highest indent.
    pub indent: u32,
    /// Highest depth.
    pub depth: u32,
    /// Elements that the row announces.
    pub size: u32,
    /// Further fields of the row.
    pub settings: Vec<Field>,
    /// Rows of elements in their order.
    pub rows: Vec<Element>,
}

/// Type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Type 1, a numeric base element.
    Numeric,
    /// Type 2, an element that holds texts.
    Text,
    /// Type 4, a consolidated element.
    Consolidated,
}

impl ElementType {
    /// The type of a number in the file.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Numeric, Self::Text, Self::Consolidated].into_iter().find(|kind| kind.number() == number)
    }

    /// Its number in the file.
    pub fn number(self) -> u32 {
        match self {
            Self::Numeric => 1,
            Self::Text => 2,
            Self::Consolidated => 4,
        }
    }
}

/// A row of `[ELEMENTS DIMENSION n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Number that edges and cells name it by; numbers of removed elements are left out.
    pub id: u32,
    /// Name, unique in the dimension, case ignored.
    pub name: String,
    /// Position in the dimension's order.
    pub position: u32,
    /// Type.
    pub kind: ElementType,
    /// The server's mark of consolidations of texts.
    pub string_consolidation: bool,
    /// 0 for base elements, one above the highest child for others.
    pub level: u32,
    /// 1 for roots, one above that of the first parent for others.
    pub indent: u32,
    /// 0 for roots, one above the deepest parent for others.
    pub depth: u32,
    /// Numbers of its parents.
    pub parents: Vec<u32>,
    /// Numbers of its children.
    pub children: Vec<u32>,
    /// Weight of each child.
    pub weights: Vec<f64>,
    /// Further fields of the row.
    pub settings: Vec<Field>,
}

/// A row of `[CUBES]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cube {
    /// Number, part of the name of its cell file.
    pub id: u32,
    /// Name; those that start with `#_` belong to the server.
    pub name: String,
    /// Numbers of its dimensions in the order of cell paths.
    pub dimensions: Vec<u32>,
    /// Further fields of the row, its type first.
    pub settings: Vec<Field>,
}

/// A section of a title that this program does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Title without brackets.
    pub title: String,
    /// Rows as they stand.
    pub rows: Vec<Vec<Field>>,
}

/// Name of the file that holds the database without cells.
pub const DATABASE_FILE_NAME: &str = "database.csv";

/// Name of the file that holds the cells of a cube.
pub fn cube_file_name(cube: u32) -> String {
    format!("database_CUBE_{cube}.csv")
}
