//! Where libraries of CUDA are looked for, and which files are loaded.
//!
//! Loading a library runs its initialisers. No library comes from the working folder: it comes from the file that
//! `WARPCUBE_NVRTC` names, from where the system's loader finds it by name, from folders of CUDA toolkits, or from the
//! Python environment that `VIRTUAL_ENV` names. Every file has to be trusted ([`crate::trust`]).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::trust::trusted;

/// Names of NVRTC's file, newer versions first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Names and files of NVRTC to try, best first. `variable` gives the environment's variables.
pub(super) fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(path) = variable("WARPCUBE_NVRTC") {
        return vec![PathBuf::from(path)];
    }
    let folder = |name| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder);
    let mut folders: Vec<PathBuf> = toolkits.map(|home| home.join("lib64")).collect();
    folders.push("/usr/local/cuda/lib64".into());
    let mut environments: Vec<PathBuf> = folder("VIRTUAL_ENV").into_iter().collect();
    environments.extend(["/usr/local".into(), "/usr".into()]);
    // What the system's loader knows by name comes first.
    NAMES.iter().map(PathBuf::from).chain(installed(folders, &environments)).collect()
}

/// The libraries there are in folders of toolkits and in Python environments, newer versions of a folder first.
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

/// What the loader is given for a candidate: a name that it looks up, or a trusted file with all links followed.
///
/// # Errors
/// Why the library is not loaded.
pub(super) fn resolve(candidate: &Path) -> Result<PathBuf, String> {
    let is_name = !candidate.as_os_str().as_bytes().contains(&b'/');
    let not_loaded = |reason| format!("it is not loaded: {reason}");
    match is_name {
        true => found_by_name(candidate).map(|()| candidate.to_path_buf()).map_err(not_loaded),
        false => trusted(candidate).map_err(not_loaded),
    }
}

/// Refuses a name for which the loader would take a file out of the working folder, or one that is not trusted.
pub(super) fn found_by_name(name: &Path) -> Result<(), String> {
    let search = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    found_along(&search, name)
}

/// As [`found_by_name`], along the folders of `LD_LIBRARY_PATH`; behind them come the system's own. An empty or
/// relative folder stands for the working folder or for one in it.
fn found_along(search: &OsStr, name: &Path) -> Result<(), String> {
    for folder in search.as_bytes().split(|byte| matches!(byte, b':' | b';')) {
        let folder = Path::new(OsStr::from_bytes(folder));
        let file = Path::new(".").join(folder).join(name);
        if search.is_empty() || file.symlink_metadata().is_err() {
            continue;
        }
        if folder.is_relative() {
            let name = name.display();
            return Err(format!(
                "LD_LIBRARY_PATH has an empty or relative folder, by which {name} is that of the working folder"
            ));
        }
        return trusted(&file).map(drop);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nothing_is_looked_for_in_the_working_folder() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
        std::fs::create_dir_all(library.parent().unwrap()).unwrap();
        std::fs::write(&library, "").unwrap();
        let under = |name: &'static str, value: &OsStr| {
            candidates(|asked| (asked == name).then(|| value.to_os_string()).filter(|value| !value.is_empty()))
        };
        let plain = under("VIRTUAL_ENV", OsStr::new(""));
        for path in &plain {
            assert!(path.is_absolute() || NAMES.contains(&path.to_str().unwrap()), "{}", path.display());
        }
        assert!(under("VIRTUAL_ENV", folder.path().as_os_str()).contains(&library));
        // A relative environment or toolkit would be one of the working folder.
        for name in ["VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH"] {
            assert_eq!(under(name, OsStr::new(".")), plain);
        }
        assert_eq!(under("WARPCUBE_NVRTC", OsStr::new("some/library.so")), [Path::new("some/library.so")]);
    }

    #[test]
    fn both_versions_are_found_where_they_are_installed() {
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
    }

    #[test]
    fn the_loader_is_not_asked_for_what_it_would_find_in_the_working_folder() {
        // Tests run in the crate's folder, which has such a file.
        let name = Path::new("Cargo.toml");
        for search in ["", "/usr/lib", "/usr/lib:/lib", "src"] {
            assert_eq!(found_along(OsStr::new(search), name), Ok(()), "{search}");
        }
        for search in ["/usr/lib:", ":", "/usr/lib::/lib", ".", "src/..;/lib"] {
            let reason = found_along(OsStr::new(search), name).unwrap_err();
            assert!(reason.contains("working folder"), "{search}: {reason}");
        }
    }
}
