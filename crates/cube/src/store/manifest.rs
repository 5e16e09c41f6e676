//! The manifest: which files make up the cube, and statistics that need no page.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checked;
use super::error::{Result, StoreError};

/// Version of the folder that is written; this one and those before it are read. Version 2 has files of former
/// generations, and facts in several segments.
pub const MANIFEST_VERSION: u64 = 2;
/// Version of the arrays of storage schemes that is written and read.
pub const SCHEME_VERSION: u64 = 1;

/// The prefix in names of columns of the index.
pub(super) const INDEX_PREFIX: &str = "index ";

/// The manifest of a cube folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the folder.
    pub version: u64,
    /// Name of the cube.
    pub cube: String,
    /// Random hexadecimal digits, drawn when the cube is created and kept by its replacements; empty in folders of
    /// versions that drew none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// Number of the state: 1 for a new cube, one more for each replacement.
    pub generation: u64,
    /// When the generation was written, in seconds since 1970 (UTC).
    pub written: u64,
    /// Dimensions in the order of the key.
    pub dimensions: Vec<DimensionSummary>,
    /// Statistics of the facts.
    pub facts: FactsSummary,
    /// Number of text cells.
    pub texts: u64,
    /// Rows kept aside.
    pub aside: u64,
    /// The files of the generation, those of former generations among them whose content is the same.
    pub files: Vec<FileEntry>,
}

/// Statistics of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DimensionSummary {
    /// Name.
    pub name: String,
    /// Elements, consolidated ones included.
    pub elements: u64,
    /// Coordinates, those of removed base elements included.
    pub coordinates: u64,
    /// Bits in a key.
    pub bits: u32,
}

/// Statistics of the stored facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactsSummary {
    /// Filled base cells.
    pub cells: u64,
    /// Storage scheme of the cells.
    pub scheme: String,
    /// Version of the scheme's arrays.
    #[serde(default = "first")]
    pub scheme_version: u64,
    /// Bits of a key.
    pub key_bits: u32,
    /// Cells of a page of the facts in memory.
    pub page_cells: u64,
    /// Columns in the order of the file; of several segments the encoding in the first, and the bytes in all.
    pub columns: Vec<ColumnSummary>,
    /// Pointers, bitmaps and directories of the scheme, in the order of their files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<ColumnSummary>,
    /// The segments of the facts in the order of their files; none if one segment has all cells, and all are live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentSummary>,
}

/// Statistics of a segment of the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentSummary {
    /// Its cells.
    pub cells: u64,
    /// Those of them that later segments replaced or removed: as many numbers are in a file of their own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub removed: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn first() -> u64 {
    1
}

/// Statistics of a column of the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSummary {
    /// Name of the column: `key`, `index …`, `measure …`; of an array of pointers: `rptr` and others.
    pub name: String,
    /// Its encoding.
    pub encoding: String,
    /// Bytes of its pages.
    pub bytes: u64,
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The model.
    Model,
    /// A segment of the facts.
    Facts,
    /// The cells of a segment that are not live any more.
    Removed,
    /// An array of the scheme whose entries are no cells.
    Index,
    /// The definition.
    Definition,
    /// Text cells.
    Texts,
    /// Rows kept aside.
    Aside,
    /// Data that an import keeps beside the model.
    Origin,
}

/// A file of the cube.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its content.
    pub role: Role,
    /// Its name in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 (IEEE) of its bytes, eight hexadecimal digits; absent for column files, whose pages have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

impl Role {
    const ALL: [Role; 8] = [
        Role::Model,
        Role::Facts,
        Role::Removed,
        Role::Index,
        Role::Definition,
        Role::Texts,
        Role::Aside,
        Role::Origin,
    ];

    /// Stem and extension of the file's name.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            Role::Model => ("model", "json"),
            Role::Facts => ("facts", "warpcols"),
            Role::Removed => ("removed", "warpcols"),
            Role::Index => ("index", "warpcols"),
            Role::Definition => ("definition", "yaml"),
            Role::Texts => ("texts", "arrow"),
            Role::Aside => ("aside", "arrow"),
            Role::Origin => ("origin", "json"),
        }
    }

    /// True for roles of which a generation has several files.
    fn is_numbered(self) -> bool {
        matches!(self, Role::Removed | Role::Index | Role::Aside)
    }

    /// Name of the file of a generation; `number` counts the files of a numbered role.
    pub(super) fn file_name(self, generation: u64, number: usize) -> String {
        let (stem, extension) = self.name();
        match self.is_numbered() {
            true => format!("{stem}-{generation}-{number}.{extension}"),
            false => format!("{stem}-{generation}.{extension}"),
        }
    }

    /// True for names that [`Role::file_name`] gives.
    pub(super) fn is_file_name(name: &str) -> bool {
        numbers_of(name).is_some()
    }

    /// The numbers in a name of [`Role::file_name`]: its generation, and the number of a numbered role; nothing for
    /// other names.
    fn numbers_in(self, name: &str) -> Option<Vec<&str>> {
        let (stem, extension) = self.name();
        let numbers = name.strip_prefix(stem)?.strip_suffix(extension)?.strip_prefix('-')?.strip_suffix('.')?;
        let parts: Vec<&str> = numbers.split('-').collect();
        let count = if self.is_numbered() { 2 } else { 1 };
        (parts.len() == count && parts.iter().all(|part| is_number(part))).then_some(parts)
    }
}

/// The numbers in the name of a cube's file, as digits; nothing for names of other files.
fn numbers_of(name: &str) -> Option<Vec<&str>> {
    Role::ALL.into_iter().find_map(|role| role.numbers_in(name))
}

impl FileEntry {
    /// The generation that wrote the file.
    pub(super) fn generation(&self) -> &str {
        numbers_of(&self.name).map_or("", |numbers| numbers[0])
    }

    /// The number of a file of a numbered role.
    fn number(&self) -> Option<usize> {
        numbers_of(&self.name)?.get(1)?.parse().ok()
    }
}

/// True for a text of decimal digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Manifest {
    /// Reads a manifest by the name of its file; `None` if there is no such file.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Version`], [`StoreError::Io`].
    pub(super) fn read_named(folder: &Path, name: &str) -> Result<Option<Manifest>> {
        let path = folder.join(name);
        let read: Option<Manifest> = checked::read(&path, 1..=MANIFEST_VERSION)?;
        let mut files = read.iter().flat_map(|manifest| &manifest.files);
        match files.find(|file| !Role::is_file_name(&file.name)) {
            Some(file) => Err(StoreError::damaged(&path, format!("'{}' is no name of a cube's file", file.name))),
            None => Ok(read),
        }
    }

    /// A name of this state that no other state has, nor any state of another cube that was in the folder.
    pub fn state(&self) -> String {
        self.state_of(&self.generation.to_string())
    }

    /// The state of a generation of the cube.
    pub(super) fn state_of(&self, generation: &str) -> String {
        match self.identity.as_str() {
            "" => generation.to_owned(),
            identity => format!("{identity} {generation}"),
        }
    }

    /// Length of all files but the manifest.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Length of the files of facts and their index.
    pub fn facts_bytes(&self) -> u64 {
        let of_facts = |file: &&FileEntry| matches!(file.role, Role::Facts | Role::Removed | Role::Index);
        self.files.iter().filter(of_facts).map(|file| file.bytes).sum()
    }

    /// The file of the cells of a segment that are not live, if there are any.
    pub(super) fn removed(&self, segment: usize) -> Option<&FileEntry> {
        self.of_role(Role::Removed).find(|file| file.number() == Some(segment))
    }

    /// Bytes of the pages of the index: keys or the arrays of the scheme.
    pub fn index_bytes(&self) -> u64 {
        let is_index = |column: &&ColumnSummary| {
            column.name.starts_with(INDEX_PREFIX) || ["key", "high key"].contains(&column.name.as_str())
        };
        let columns = self.facts.columns.iter().filter(is_index).chain(&self.facts.pointers);
        columns.map(|column| column.bytes).sum()
    }

    /// Bytes of those files a filled base cell; nothing without cells.
    pub fn bytes_per_fact(&self) -> Option<f64> {
        (self.facts.cells > 0).then(|| self.facts_bytes() as f64 / self.facts.cells as f64)
    }

    /// Files of a role, in their order.
    pub(super) fn of_role(&self, role: Role) -> impl Iterator<Item = &FileEntry> {
        self.files.iter().filter(move |file| file.role == role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_recognised() {
        for role in Role::ALL {
            assert!(Role::is_file_name(&role.file_name(17, 3)), "{role:?}");
        }
        let others = ["facts.warpcols", "facts-.warpcols", "facts-1-2.warpcols", "facts-x.warpcols", "aside-1.arrow"];
        for name in others.into_iter().chain(["model-1.yaml", "../model-1.json", "lock", "facts-1.warpcols.new"]) {
            assert!(!Role::is_file_name(name), "{name}");
        }
    }
}
