//! Data of an imported cube that a Palo or Jedox database records and the model does not have.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::model::{Dimension, ElementId};

/// Type of users' dimensions.
const USER_KIND: u32 = 1;

/// Data of a cube that a Palo database records beside the model and the cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaloOrigin {
    /// Number of the cube.
    pub cube: u32,
    /// Origin of each dimension.
    pub dimensions: Vec<DimensionOrigin>,
    /// The form of the cell file; absent if the database had none.
    pub cells: Option<CellLayout>,
}

/// The form of a cell file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellLayout {
    /// Elements of each dimension, by the writer's count.
    pub sizes: Vec<u32>,
    /// Further fields of the row of section `[CUBE]`.
    pub settings: Vec<Field>,
    /// How lines end.
    pub line_end: LineEnd,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineEnd {
    /// A line feed.
    #[default]
    Lf,
    /// A carriage return and a line feed.
    CrLf,
}

/// A field apart from its row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// The text, without quotes.
    pub text: String,
    /// True if it stands between quotes.
    pub quoted: bool,
}

/// Data of a dimension that the server records and the model does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DimensionOrigin {
    /// Its number.
    pub id: u32,
    /// Its type.
    pub kind: u32,
    /// Further fields of its row in `[DIMENSIONS]`.
    pub settings: Vec<Field>,
    /// Further fields of its row in `[DIMENSION n]`.
    pub header_settings: Vec<Field>,
    /// By element number of the model.
    pub elements: Vec<Option<ElementOrigin>>,
}

/// Data of an element that the server records and the model does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElementOrigin {
    /// Its number.
    pub id: u32,
    /// The server's mark of consolidations of texts.
    pub string_consolidation: bool,
    /// Further fields of its row.
    pub settings: Vec<Field>,
}

impl DimensionOrigin {
    /// The origin of a dimension that the server does not know yet: a user's dimension that may be deleted, renamed
    /// and changed. Its elements get their numbers from [`DimensionOrigin::number`].
    pub fn new(id: u32) -> Self {
        let settings = vec![Field { text: "1".to_owned(), quoted: false }; 3];
        Self { id, kind: USER_KIND, settings, header_settings: Vec::new(), elements: Vec::new() }
    }

    /// The server's number of an element; `None` for elements that were added since.
    pub fn palo_id(&self, id: ElementId) -> Option<u32> {
        self.elements.get(id.index())?.as_ref().map(|element| element.id)
    }

    /// Gives numbers above all others to elements that have none; false if the numbers run out.
    #[must_use]
    pub fn number(&mut self, dimension: &Dimension) -> bool {
        self.elements.resize(dimension.id_count(), None);
        let mut next = self.elements.iter().flatten().map(|element| u64::from(element.id) + 1).max().unwrap_or(0);
        for id in dimension.elements() {
            if self.elements[id.index()].is_none() {
                let Ok(number) = u32::try_from(next) else { return false };
                let origin = ElementOrigin { id: number, string_consolidation: false, settings: Vec::new() };
                self.elements[id.index()] = Some(origin);
                next += 1;
            }
        }
        true
    }

    /// Elements of the model by the server's numbers; those that no longer live are left out.
    pub fn by_palo_id(&self, dimension: &Dimension) -> HashMap<u32, ElementId> {
        dimension.elements().iter().filter_map(|id| Some((self.palo_id(*id)?, *id))).collect()
    }
}
