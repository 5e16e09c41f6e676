//! Compiled kernels on disk, by content.
//!
//! The key covers source, prelude, options, architecture and NVRTC version. A file is an 8-byte magic, the SHA-256 of
//! the image and the image; what does not check is compiled again. Folder and file must belong to this user and be
//! writable by no other user, because their content is run on the device; where that cannot be had, nothing is cached.
//! Files appear by renaming, so that any number of devices, threads and processes may share the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::nvrtc;
use crate::error::Result;
use crate::program::Program;
use crate::trust::{is_own_file, private_folder, sweep, temporary, write_new};

const MAGIC: &[u8; 8] = b"WCCUBIN1";
const DIGEST_BYTES: usize = 32;
/// An unfinished file as old as this is of a process that was ended: a kernel is written in milliseconds.
const UNFINISHED_AGE: Duration = Duration::from_secs(3600);

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
    path(program, architecture).is_some_and(|path| is_own_file(&path))
}

fn path(program: &Program, architecture: u32) -> Option<PathBuf> {
    cache_folder().filter(|folder| private_folder(folder).is_ok()).map(|folder| folder.join(key(program, architecture)))
}

fn key(program: &Program, architecture: u32) -> String {
    // Without a compiler the cache may still hold what an earlier one made; its version is then unknown.
    let (target, version) = nvrtc::target(architecture).unwrap_or((architecture, (0, 0)));
    let options = nvrtc::options(program, target, version).join(" ");
    let mut hasher = Sha256::new();
    hasher.update(format!("{}|{options}|{version:?}", program.hash()));
    let digest = hasher.finalize();
    let hex: String = digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.cubin")
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = is_own_file(path).then(|| fs::read(path).ok())??;
    let image = content.strip_prefix(MAGIC)?.split_at_checked(DIGEST_BYTES)?;
    if Sha256::digest(image.1).as_slice() != image.0 {
        return None;
    }
    content.drain(..MAGIC.len() + DIGEST_BYTES);
    Some(content)
}

fn write(path: &Path, image: &[u8]) -> std::io::Result<()> {
    path.parent().inspect(|folder| sweep(folder, UNFINISHED_AGE));
    let unfinished = temporary(path, "tmp");
    write_new(&unfinished, &[MAGIC, &Sha256::digest(image), image])?;
    fs::rename(&unfinished, path)
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
    fn a_file_that_others_could_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cubin");
        write(&path, b"image").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(read(&path), None);
        write(&path, b"image").unwrap();
        assert_eq!(read(&path).as_deref(), Some(&b"image"[..]));
    }

    #[test]
    fn what_an_ended_process_left_neither_blocks_the_cache_nor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cubin");
        // Of a process with the number of this one.
        let left: Vec<PathBuf> =
            (0..1000).map(|count| path.with_extension(format!("{}-{count}.tmp", std::process::id()))).collect();
        for unfinished in &left {
            write_new(unfinished, &[b"half"]).unwrap();
            let long_ago = std::time::SystemTime::now() - 2 * UNFINISHED_AGE;
            fs::File::options().write(true).open(unfinished).unwrap().set_modified(long_ago).unwrap();
        }
        write(&path, b"image").unwrap();
        assert_eq!(read(&path).as_deref(), Some(&b"image"[..]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn devices_that_keep_one_kernel_at_once_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cubin");
        let image = vec![7u8; 1 << 20];
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for _ in 0..4 {
                        write(&path, &image).unwrap();
                        assert_eq!(read(&path).as_deref(), Some(&image[..]));
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no unfinished file is left");
    }
}
