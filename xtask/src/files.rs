//! The text files of the project, as tidy and chores read them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Result, root};

/// Folders that hold nothing of the project's own.
const SKIPPED: [&str; 4] = ["target", "data", "out", "__pycache__"];
/// Folders with a dot that do.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".config"];

/// A text file of the project.
pub(crate) struct TextFile {
    /// Path from the root, with slashes.
    pub(crate) path: String,
    /// Content.
    pub(crate) text: String,
}

impl TextFile {
    /// Whether the file has one of these extensions.
    pub(crate) fn is(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }
}

/// All text files of the project, by path.
pub(crate) fn text_files() -> Result<Vec<TextFile>> {
    let root = root();
    let mut files = Vec::new();
    walk(&root, &root, &mut files).map_err(|error| format!("cannot read the workspace: {error}"))?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<TextFile>) -> std::io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if !hidden && !SKIPPED.contains(&name.as_str()) {
                walk(root, &path, files)?;
            }
        } else if let Ok(text) = fs::read_to_string(&path) {
            files.push(TextFile { path: relative(root, &path), text });
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    let path: PathBuf = path.strip_prefix(root).unwrap_or(path).into();
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
