//! Names in a cube folder, and what makes its files and entries durable.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Name of the manifest in the folder.
pub const MANIFEST_NAME: &str = "cube.json";
/// Name of the lock file in the folder.
pub const LOCK_NAME: &str = "lock";

/// The folder that a folder or file lies in.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the entries of a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes a file and makes its bytes durable.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
