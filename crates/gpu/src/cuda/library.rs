//! Search for the libraries of CUDA.
//!
//! Loading a library runs its initialisers. No library comes from the working folder: NVRTC comes from the file that
//! `WARPCUBE_NVRTC` names, from the folders of the system's loader, from folders of CUDA toolkits, or from the Python
//! environment that `VIRTUAL_ENV` names. The loader gets absolute paths, because its own search accepts empty and
//! relative folders. Only `cudarc` opens the driver by name: before, every file that the loader could find along
//! `LD_LIBRARY_PATH` is checked. Every file has to be trusted ([`crate::trust`]).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::trust::trusted;

/// Names of NVRTC's file, newer versions first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
/// Folders that the system's loader searches by default.
const SYSTEM_FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// Subfolders that glibc prefers by processor: any of the first (since 2.33), any nesting of the others (until 2.36).
const HARDWARE_FOLDERS: &str = "glibc-hwcaps";
const OLD_HARDWARE_FOLDERS: [&str; 7] = ["tls", "haswell", "xeon_phi", "avx512_1", "x86_64", "aarch64", "atomics"];

/// Files of NVRTC to try, best first. `variable` gives the environment's variables.
pub(super) fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let known = loader_folders(&variable("LD_LIBRARY_PATH").unwrap_or_default());
    let of_loader = |name: &str| -> Vec<PathBuf> {
        known.iter().map(|folder| folder.join(name)).filter(|path| path.exists()).collect()
    };
    if let Some(path) = variable("WARPCUBE_NVRTC") {
        let path = PathBuf::from(path);
        let of_name = path.to_str().filter(|_| is_name(&path)).and_then(|name| of_loader(name).into_iter().next());
        return vec![of_name.unwrap_or(path)];
    }
    let folder = |name| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder);
    let mut folders: Vec<PathBuf> = toolkits.map(|home| home.join("lib64")).collect();
    folders.push("/usr/local/cuda/lib64".into());
    let mut environments: Vec<PathBuf> = folder("VIRTUAL_ENV").into_iter().collect();
    environments.extend(["/usr/local".into(), "/usr".into()]);
    // Folders of the system's loader come first.
    NAMES.into_iter().flat_map(of_loader).chain(installed(folders, &environments)).collect()
}

/// Folders that the system's loader searches: the absolute ones of `LD_LIBRARY_PATH`, those of its configuration, and
/// the default ones.
fn loader_folders(search: &OsStr) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = entries(search).filter(|folder| is_plain(folder)).map(PathBuf::from).collect();
    let mut files: Vec<PathBuf> =
        fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    files.insert(0, "/etc/ld.so.conf".into());
    for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()) {
        folders.extend(text.lines().map(|line| PathBuf::from(line.trim())).filter(|folder| is_plain(folder)));
    }
    folders.extend(SYSTEM_FOLDERS.map(PathBuf::from));
    folders
}

/// The folders of `LD_LIBRARY_PATH`; an empty entry means the working folder.
fn entries(search: &OsStr) -> impl Iterator<Item = &Path> {
    let entries = search.as_bytes().split(|byte| matches!(byte, b':' | b';'));
    entries.filter(|_| !search.is_empty()).map(|entry| Path::new(OsStr::from_bytes(entry)))
}

/// True if a folder is absolute and has no variable of the loader, such as `$ORIGIN`.
fn is_plain(folder: &Path) -> bool {
    folder.is_absolute() && !has_variable(folder)
}

fn has_variable(folder: &Path) -> bool {
    folder.as_os_str().as_bytes().contains(&b'$')
}

/// True if the loader would search for the library instead of opening a file.
fn is_name(path: &Path) -> bool {
    !path.as_os_str().as_bytes().contains(&b'/')
}

/// NVRTC's files in folders of toolkits and in Python environments; per folder the newer version first.
fn installed(mut folders: Vec<PathBuf>, environments: &[PathBuf]) -> Vec<PathBuf> {
    for environment in environments {
        for library in ["lib", "local/lib"] {
            let Ok(entries) = environment.join(library).read_dir() else { continue };
            for python in entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with("python3")) {
                for packages in ["site-packages", "dist-packages"] {
                    let nvidia = python.path().join(packages).join("nvidia");
                    folders.extend(["cu13", "cu12", "cuda_nvrtc"].map(|folder| nvidia.join(folder).join("lib")));
                }
            }
        }
    }
    let files = |folder: &PathBuf| NAMES.map(|name| folder.join(name)).into_iter().filter(|path| path.exists());
    folders.iter().filter(|folder| folder.is_dir()).flat_map(files).collect()
}

/// The trusted file of a candidate with all links followed.
///
/// # Errors
/// The reason why the library is not loaded.
pub(super) fn resolve(candidate: &Path) -> Result<PathBuf, String> {
    match is_name(candidate) {
        true => Err("no folder of the system's loader has a library of this name".into()),
        false => trusted(candidate).map_err(not_loaded),
    }
}

/// The trusted file of a library that another one opens by name: in its folder, or in one of the system's loader.
///
/// # Errors
/// The reason why the library is not loaded.
pub(super) fn companion(library: &Path, name: &str) -> Result<PathBuf, String> {
    let known = loader_folders(&std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default());
    let mut places = std::iter::once(library.with_file_name(name)).chain(known.iter().map(|folder| folder.join(name)));
    let missing = || format!("it has no {name} beside it");
    let found = places.find(|path| path.exists()).ok_or_else(missing)?;
    trusted(&found).map_err(not_loaded)
}

fn not_loaded(reason: String) -> String {
    format!("it is not loaded: {reason}")
}

/// Refuses a name for which the loader could open a file of the working folder or one that is not trusted.
pub(super) fn found_by_name(name: &Path) -> Result<(), String> {
    found_along(&std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default(), name)
}

/// As [`found_by_name`], along the folders of `LD_LIBRARY_PATH`, which precede the system's own. All files of the name
/// are checked, because the loader skips files for other processors.
fn found_along(search: &OsStr, name: &Path) -> Result<(), String> {
    for folder in entries(search) {
        if has_variable(folder) {
            let folder = folder.display();
            return Err(format!(
                "LD_LIBRARY_PATH has the folder {folder}, in which the loader replaces what '$' names"
            ));
        }
        for file in files_in(&Path::new(".").join(folder), name) {
            if folder.is_relative() {
                let name = name.display();
                return Err(format!(
                    "LD_LIBRARY_PATH has an empty or relative folder, by which {name} is that of the working folder"
                ));
            }
            trusted(&file)?;
        }
    }
    Ok(())
}

/// Files that the loader may open for a name in one folder of its search.
fn files_in(folder: &Path, name: &Path) -> Vec<PathBuf> {
    let preferred = fs::read_dir(folder.join(HARDWARE_FOLDERS)).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = preferred.map(|entry| entry.path()).collect();
    let mut nests = vec![folder.to_path_buf()];
    for _ in 0..=OLD_HARDWARE_FOLDERS.len() {
        let within = nests.iter().flat_map(|nest| OLD_HARDWARE_FOLDERS.map(|part| nest.join(part)));
        let deeper = within.filter(|nest| nest.is_dir()).collect();
        folders.append(&mut nests);
        nests = deeper;
    }
    folders.iter().map(|folder| folder.join(name)).filter(|file| file.symlink_metadata().is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_working_folder_is_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
        std::fs::create_dir_all(library.parent().unwrap()).unwrap();
        std::fs::write(&library, "").unwrap();
        let under = |name: &'static str, value: &OsStr| {
            candidates(|asked| (asked == name).then(|| value.to_os_string()).filter(|value| !value.is_empty()))
        };
        let plain = under("VIRTUAL_ENV", OsStr::new(""));
        for path in &plain {
            assert!(path.is_absolute(), "{}", path.display());
        }
        assert!(under("VIRTUAL_ENV", folder.path().as_os_str()).contains(&library));
        // A relative environment or toolkit would lie in the working folder.
        for name in ["VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH"] {
            assert_eq!(under(name, OsStr::new(".")), plain);
        }
        assert_eq!(under("WARPCUBE_NVRTC", OsStr::new("some/library.so")), [Path::new("some/library.so")]);
        // A name is searched as the loader does, except in the working folder, which has such a file.
        assert_eq!(under("WARPCUBE_NVRTC", OsStr::new("Cargo.toml")), [Path::new("Cargo.toml")]);
        assert!(resolve(Path::new("Cargo.toml")).is_err_and(|reason| reason.contains("of this name")));
    }

    #[test]
    fn the_folders_of_the_loader_are_absolute_and_plain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.12");
        std::fs::write(&path, "").unwrap();
        let search = OsString::from(format!(":.:lib:$ORIGIN:/usr/$LIB;{}", folder.path().display()));
        let folders = loader_folders(&search);
        assert_eq!(folders[0], folder.path());
        assert!(folders.iter().all(|folder| is_plain(folder)), "{folders:?}");
        assert_eq!(loader_folders(OsStr::new("")), folders[1..]);
        let found = candidates(|name| (name == "LD_LIBRARY_PATH").then(|| search.clone()));
        assert!(found.contains(&path), "{found:?}");
        let named = |name: &str| match name {
            "WARPCUBE_NVRTC" => Some("libnvrtc.so.12".into()),
            "LD_LIBRARY_PATH" => Some(search.clone()),
            _ => None,
        };
        assert_eq!(candidates(named), [path]);
    }

    #[test]
    fn the_second_library_is_a_trusted_one_in_the_same_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (first, name) = (folder.path().join("libnvrtc.so.13"), "libnvrtc-builtins.so.0.7");
        let reason = companion(&first, name).unwrap_err();
        assert_eq!(reason, "it has no libnvrtc-builtins.so.0.7 beside it");
        let second = folder.path().join(name);
        std::fs::write(&second, "").unwrap();
        assert_eq!(companion(&first, name), Ok(second.canonicalize().unwrap()));
        std::fs::set_permissions(&second, std::fs::Permissions::from_mode(0o666)).unwrap();
        let reason = companion(&first, name).unwrap_err();
        assert!(reason.starts_with("it is not loaded: ") && reason.contains("can be written by others"), "{reason}");
    }

    #[test]
    fn both_versions_are_found_in_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join("venv/lib/python3.12/site-packages/nvidia");
        let toolkit = folder.path().join("toolkit/lib64");
        let twelve = packages.join("cuda_nvrtc/lib/libnvrtc.so.12");
        let thirteen = packages.join("cu13/lib/libnvrtc.so.13");
        let plain = toolkit.join("libnvrtc.so");
        for path in [&twelve, &thirteen, &plain, &packages.join("cu13/lib/libnvrtc-builtins.so.13.0")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = installed(vec![toolkit, "/no/such/folder".into()], &[folder.path().join("venv")]);
        assert_eq!(found, [plain, thirteen, twelve]);
    }

    #[test]
    fn a_library_that_others_can_write_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.13");
        std::fs::write(&path, "").unwrap();
        let search = folder.path().as_os_str();
        assert_eq!(resolve(&path), Ok(path.canonicalize().unwrap()));
        assert_eq!(found_along(search, Path::new("libnvrtc.so.13")), Ok(()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let reason = resolve(&path).unwrap_err();
        assert!(reason.starts_with("it is not loaded: ") && reason.contains("can be written by others"), "{reason}");
        assert!(found_along(search, Path::new("libnvrtc.so.13")).is_err_and(|reason| reason.contains("others")));
        assert_eq!(found_along(search, Path::new("libnvrtc.so.12")), Ok(()));
        // The loader would skip a file that is no library.
        let good = tempfile::tempdir().unwrap();
        std::fs::write(good.path().join("libnvrtc.so.13"), "").unwrap();
        let both = OsString::from(format!("{}:{}", good.path().display(), folder.path().display()));
        assert!(found_along(&both, Path::new("libnvrtc.so.13")).is_err_and(|reason| reason.contains("others")));
    }

    #[test]
    fn subfolders_that_the_loader_prefers_are_searched() {
        for subfolder in ["glibc-hwcaps/x86-64-v3", "tls", "haswell/x86_64", "tls/haswell/avx512_1/x86_64"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(subfolder).join("libcuda.so");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let judged = || found_along(folder.path().as_os_str(), Path::new("libcuda.so"));
            assert_eq!(judged(), Ok(()), "{subfolder}");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
            assert!(judged().is_err_and(|reason| reason.contains("others")), "{subfolder}");
        }
    }

    #[test]
    fn a_search_path_with_the_working_folder_is_refused() {
        // Tests run in the crate's folder, which has such a file.
        let name = Path::new("Cargo.toml");
        for search in ["", "/usr/lib", "/usr/lib:/lib", "src"] {
            assert_eq!(found_along(OsStr::new(search), name), Ok(()), "{search}");
        }
        for search in ["/usr/lib:", ":", "/usr/lib::/lib", ".", "src/..;/lib"] {
            let reason = found_along(OsStr::new(search), name).unwrap_err();
            assert!(reason.contains("working folder"), "{search}: {reason}");
        }
        for search in ["$ORIGIN", "/usr/$LIB:/lib", "/usr/lib:${ORIGIN}/../lib"] {
            let reason = found_along(OsStr::new(search), name).unwrap_err();
            assert!(reason.contains("the loader replaces what '$' names"), "{search}: {reason}");
        }
    }
}
