//! The manifest of a catalog: the cubes of the database and what is kept of each.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{CATALOG_NAME, CatalogError, Result};
use crate::PaloError;
use warpcube_cube::error::Nearest;
use warpcube_cube::model::{folded, nearest};
use warpcube_cube::store::{RECORD_NAME, check_outside, checked};

/// Version of the folder that is written and read.
pub const CATALOG_VERSION: u64 = 1;
/// Longest name of a cube's folder in bytes.
const FOLDER_NAME_BYTES_MAX: usize = 200;

/// A folder of imported cubes.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    folder: PathBuf,
    contents: Contents,
}

/// The fields of the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contents {
    pub(super) version: u64,
    /// `database.csv`.
    pub(super) database: KeptFile,
    pub(super) cubes: Vec<CatalogCube>,
    /// Cell files of cubes that the database does not list.
    pub(super) unlisted: Vec<KeptFile>,
}

/// A cube of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogCube {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Name of its cube folder; absent if the cube is no model's.
    pub folder: Option<String>,
    /// Why the cube is no model's.
    pub reason: Option<String>,
    /// The cell file, if it is kept as it stood.
    pub cells: Option<KeptFile>,
}

/// A file that is kept as it stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 (IEEE) of its bytes, eight hexadecimal digits.
    pub checksum: String,
}

impl Catalog {
    /// Opens a catalog; cubes are not read.
    ///
    /// # Errors
    /// [`CatalogError::NoCatalog`]; [`CatalogError::Store`] for a damaged manifest and for another version.
    pub fn open(folder: &Path) -> Result<Catalog> {
        let contents: Option<Contents> = checked::read(&folder.join(CATALOG_NAME), CATALOG_VERSION..=CATALOG_VERSION)?;
        let contents = contents.ok_or_else(|| CatalogError::NoCatalog { folder: folder.to_path_buf() })?;
        Ok(Catalog { folder: folder.to_path_buf(), contents })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The cubes of the database in its order, system cubes (`#_…`) included.
    pub fn cubes(&self) -> &[CatalogCube] {
        &self.contents.cubes
    }

    /// The folder of a cube by name, case ignored.
    ///
    /// # Errors
    /// [`CatalogError::Palo`] with the nearest names; [`CatalogError::NotImported`] for a cube that is no model's.
    pub fn cube_folder(&self, name: &str) -> Result<PathBuf> {
        let wanted = folded(name);
        let Some(cube) = self.cubes().iter().find(|cube| folded(&cube.name) == wanted) else {
            let nearest: Nearest = nearest(name, self.cubes().iter().map(|cube| cube.name.as_str()));
            let source = PaloError::Unknown { what: "cube", wanted: format!("'{name}'"), nearest };
            return Err(CatalogError::palo(&self.folder)(source));
        };
        match &cube.folder {
            Some(folder) => Ok(self.folder.join(folder)),
            None => {
                let reason = cube.reason.clone().unwrap_or_default();
                Err(CatalogError::NotImported { cube: cube.name.clone(), reason })
            }
        }
    }

    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }
}

/// Refuses a place in the folder of a cube, a folder of cubes and the files of one as the place of an output.
///
/// # Errors
/// [`CatalogError::Store`] with [`StoreError::Within`](warpcube_cube::store::StoreError::Within),
/// [`CatalogError::OfDatabase`].
pub fn check_output(path: &Path) -> Result<()> {
    check_outside(path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let is_taken = |folder: &Path| {
        Catalog::open(folder).is_ok_and(|catalog| {
            let Contents { database, cubes, unlisted, .. } = &catalog.contents;
            let kept = cubes.iter().filter_map(|cube| cube.cells.as_ref()).chain(unlisted).chain([database]);
            let names = kept.map(|file| file.name.as_str()).chain([CATALOG_NAME, RECORD_NAME]);
            folder == path || names.chain(cubes.iter().filter_map(|cube| cube.folder.as_deref())).any(|own| own == name)
        })
    };
    match [path, parent].into_iter().find(|folder| is_taken(folder)) {
        Some(folder) => Err(CatalogError::OfDatabase { path: path.to_path_buf(), folder: folder.to_path_buf() }),
        None => Ok(()),
    }
}

/// Name of the folder of a cube: its name, letters, digits, blanks, `_` and `-` as they are, other bytes as `%` and two
/// hexadecimal digits; a name that gets too long is cut and ends with the cube's number.
pub(super) fn folder_name(number: u32, name: &str) -> String {
    let mut folder = String::new();
    for character in name.chars() {
        let plain = character.is_alphanumeric() || matches!(character, '_' | '-' | ' ');
        let mut bytes = [0; 4];
        let text = character.encode_utf8(&mut bytes);
        let spelled = match plain {
            true => text.to_owned(),
            false => text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        };
        if folder.len() + spelled.len() > FOLDER_NAME_BYTES_MAX {
            return format!("{folder}%-{number}");
        }
        folder.push_str(&spelled);
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_names_that_every_system_takes() {
        let cases =
            [("Machines", "Machines"), ("#_Years", "%23_Years"), ("a/b.c", "a%2Fb%2Ec"), ("Größe 1", "Größe 1")];
        for (name, folder) in cases {
            assert_eq!(folder_name(1, name), folder);
        }
        let long = "#".repeat(400);
        assert!(folder_name(7, &long).ends_with("%-7") && folder_name(7, &long).len() < 255);
        assert_ne!(folder_name(7, &long), folder_name(8, &long));
    }
}
