//! Compiled kernels on disk, by content.
//!
//! The key covers source, prelude, options, architecture and NVRTC version, and of programs that are linked the
//! versions of nvJitLink and of the device runtime library. A file is an 8-byte magic, the SHA-256 of the image and the
//! image; a program whose file fails this check is compiled again. Folder and file belong to this user and are writable
//! by no other, because the device runs their content; otherwise nothing is cached. Files appear by renaming, so that
//! devices, threads and processes share the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::nvrtc;
use crate::error::Result;
use crate::program::{Program, hexadecimal};
use crate::trust::{is_own_file, private_folder, publish, sweep};

const MAGIC: &[u8; 8] = b"WCCUBIN1";
const DIGEST_BYTES: usize = 32;
/// Age past which an unfinished file belongs to an ended process: a write takes milliseconds.
const UNFINISHED_AGE: Duration = Duration::from_secs(3600);

/// The folder of compiled kernels: `WARPCUBE_CACHE`, or `warpcube/kernels` in the user's cache folder.
pub fn cache_folder() -> Option<PathBuf> {
    match std::env::var_os("WARPCUBE_CACHE") {
        Some(folder) if folder.is_empty() => None,
        Some(folder) => Some(PathBuf::from(folder).join("kernels")),
        None => Some(dirs::cache_dir()?.join("warpcube").join("kernels")),
    }
}

/// The program's machine code; the flag is true if the compiler ran.
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
        tracing::debug!(%error, path = %path.display(), "a compiled kernel could not be cached on disk");
    }
    Ok((image, true))
}

/// True if the program's machine code is on disk.
pub(super) fn is_on_disk(program: &Program, architecture: u32) -> bool {
    path(program, architecture).is_some_and(|path| is_own_file(&path))
}

fn path(program: &Program, architecture: u32) -> Option<PathBuf> {
    cache_folder().filter(|folder| private_folder(folder).is_ok()).map(|folder| folder.join(key(program, architecture)))
}

fn key(program: &Program, architecture: u32) -> String {
    // Without a compiler the target is the GPU's own architecture and the version unknown.
    let (target, version) = nvrtc::target(architecture).unwrap_or((architecture, (0, 0)));
    let options = nvrtc::options(program, target, version).join(" ");
    let linker = program.has_device_launches().then(|| nvrtc::linker(architecture));
    name(program, &options, version, linker)
}

/// The file of a program by all that its machine code depends on.
fn name(program: &Program, options: &str, compiler: (i32, i32), linker: Option<&str>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{}|{options}|{compiler:?}", program.hash()));
    if let Some(linker) = linker {
        hasher.update(format!("|{linker}"));
    }
    format!("{}.cubin", hexadecimal(hasher, 20))
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
    publish(path, &[MAGIC, &Sha256::digest(image), image])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::write_new;

    #[test]
    fn each_version_has_its_own_file() {
        let (program, other) = (Program::new("a", "x"), Program::new("a", "y"));
        let linker = "nvJitLink 13.0, cudadevrt 0";
        let names = [
            name(&program, "-a", (13, 0), None),
            name(&other, "-a", (13, 0), None),
            name(&program, "-b", (13, 0), None),
            name(&program, "-a", (12, 9), None),
            name(&program, "-a", (13, 0), Some(linker)),
            name(&program, "-a", (13, 0), Some("nvJitLink 13.1, cudadevrt 0")),
            name(&program, "-a", (13, 0), Some("nvJitLink 13.0, cudadevrt 1")),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        // The linker is asked about by programs that are linked alone.
        let (launches, (target, version)) = (program.with_device_launches(), nvrtc::target(90).unwrap_or((90, (0, 0))));
        let options = |program| nvrtc::options(program, target, version).join(" ");
        assert_eq!(key(&program, 90), name(&program, &options(&program), version, None));
        assert_eq!(key(&launches, 90), name(&launches, &options(&launches), version, Some(nvrtc::linker(90))));
    }

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
    fn unfinished_files_of_an_ended_process_are_removed() {
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
    fn devices_write_one_kernel_at_the_same_time() {
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
