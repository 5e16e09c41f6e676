//! Compiled kernels on disk, by content.
//!
//! The key covers source, prelude, options, architecture and NVRTC version. A file is an 8-byte magic, the SHA-256 of
//! the image and the image; what does not check is compiled again. The folder must belong to this user and be
//! writable by nobody else, because its content is run on the device; where that cannot be had, nothing is cached.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::nvrtc;
use crate::error::Result;
use crate::program::Program;

const MAGIC: &[u8; 8] = b"WCCUBIN1";
const DIGEST_BYTES: usize = 32;

/// The folder of compiled kernels: `WARPCUBE_CACHE`, or `warpcube/kernels` in the user's cache folder.
pub fn cache_folder() -> Option<PathBuf> {
    match std::env::var_os("WARPCUBE_CACHE") {
        Some(folder) if folder.is_empty() => None,
        Some(folder) => Some(PathBuf::from(folder).join("kernels")),
        None => Some(dirs::cache_dir()?.join("warpcube").join("kernels")),
    }
}

/// The program's machine code, and whether the compiler had to run.
pub(super) fn cubin(program: &Program, architecture: u32) -> Result<(Vec<u8>, bool)> {
    let path = path(program, architecture);
    if let Some(path) = &path
        && let Some(image) = read(path)
    {
        return Ok((image, false));
    }
    let span = tracing::info_span!("compile", program = program.name());
    let image = span.in_scope(|| nvrtc::compile(program, architecture))?;
    if let Some(path) = &path
        && let Err(error) = write(path, &image)
    {
        tracing::debug!(%error, path = %path.display(), "a compiled kernel could not be kept");
    }
    Ok((image, true))
}

/// Whether the program's machine code is on disk.
pub(super) fn is_kept(program: &Program, architecture: u32) -> bool {
    path(program, architecture).is_some_and(|path| path.exists())
}

fn path(program: &Program, architecture: u32) -> Option<PathBuf> {
    cache_folder().filter(|folder| is_private(folder)).map(|folder| folder.join(key(program, architecture)))
}

fn key(program: &Program, architecture: u32) -> String {
    // Without a compiler the cache may still hold what an earlier one made; its version is then unknown.
    let version = nvrtc::location().map(|(_, version)| version).unwrap_or_default();
    let options = nvrtc::options(program, architecture, version).join(" ");
    let mut hasher = Sha256::new();
    hasher.update(format!("{}|{options}|{version:?}", program.hash()));
    let digest = hasher.finalize();
    let hex: String = digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.cubin")
}

/// Makes the folder if it is missing; whether it is ours alone, so that compiled kernels are kept in it.
pub fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    if fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).is_err() {
        return false;
    }
    let (Ok(folder), Ok(own)) = (fs::metadata(folder), fs::metadata("/proc/self")) else { return false };
    folder.uid() == own.uid() && folder.mode() & 0o022 == 0
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = fs::read(path).ok()?;
    let image = content.strip_prefix(MAGIC)?.split_at_checked(DIGEST_BYTES)?;
    if Sha256::digest(image.1).as_slice() != image.0 {
        return None;
    }
    content.drain(..MAGIC.len() + DIGEST_BYTES);
    Some(content)
}

fn write(path: &Path, image: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = fs::File::create(&temporary)?;
    file.write_all(MAGIC)?;
    file.write_all(&Sha256::digest(image))?;
    file.write_all(image)?;
    drop(file);
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cubin");
        write(&path, b"image").unwrap();
        assert_eq!(read(&path).as_deref(), Some(&b"image"[..]));
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path), None);
        fs::write(&path, b"WCC").unwrap();
        assert_eq!(read(&path), None);
    }

    #[test]
    fn a_folder_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("kernels");
        assert!(is_private(&inner));
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_private(&inner));
    }
}
