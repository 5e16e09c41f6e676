//! Runs the tests of the module, `tests/*.py`, with the shared object of this build beside the Python sources.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter: that of the workspace's `.venv`, which `cargo xtask setup` makes, or `WARPCUBE_PYTHON`.
fn interpreter() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let named = std::env::var_os("WARPCUBE_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or(own);
    let imports = Command::new(&python).args(["-c", "import duckdb, pandas, polars, pyarrow, pytest"]).output();
    imports.is_ok_and(|done| done.status.success()).then_some(python)
}

#[test]
fn python_tests_pass() {
    let Some(python) = interpreter() else {
        println!("skipped: no Python with the packages of tests/requirements.txt; 'cargo xtask setup' installs them");
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = std::env::current_exe().unwrap().with_file_name("libwarpcube_python.so");
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("warpcube");
    std::fs::create_dir(&package).unwrap();
    for file in here.join("python/warpcube").read_dir().unwrap().flatten() {
        std::os::unix::fs::symlink(file.path(), package.join(file.file_name())).unwrap();
    }
    std::os::unix::fs::symlink(&library, package.join("_native.abi3.so")).unwrap();
    let mut pytest = Command::new(python);
    pytest
        .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .current_dir(here)
        .env("PYTHONPATH", folder.path());
    let done = pytest.output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    println!("{told}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{told}");
}
