//! What the tests need beside Rust: a C++ compiler for the emulated device, NVRTC to compile kernels for real ones,
//! DataFusion's SQL test files, Python's libraries of data frames.
//!
//! Each is installed with the ordinary client where that is possible without asking (`apt-get` as root, `pip` in a
//! folder of the workspace, `rustup`, `cargo`). The compiler is indispensable; without one of the others a check is
//! skipped and said so.

use std::path::{Path, PathBuf};

use crate::process::{Result, cargo, output, program, root, run as run_program, succeeds};

/// NVRTC as it is tested here.
const NVRTC: &str = "nvidia-cuda-nvrtc==13.0.*";
/// The one before, that some programs are compiled with too.
const NVRTC_12: &str = "nvidia-cuda-nvrtc-cu12==12.*";
/// The crate with DataFusion's SQL test files, of the release that the workspace uses.
const SQL_FILES: (&str, &str) = ("datafusion-sqllogictest", "55.2.0");
/// What the tests of the Python module import.
const PYTHON_PACKAGES: &str = "crates/python/tests/requirements.txt";
/// Names of the library, best first.
const LIBRARIES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// Installs what is missing and says what there is.
pub(crate) fn run() -> Result<()> {
    compiler()?;
    for component in ["rustfmt", "clippy"] {
        if let Err(reason) = rust_component(component) {
            println!("{component}: {reason}");
        }
    }
    match nvrtc() {
        Ok(path) => println!("NVRTC: {}", path.display()),
        Err(reason) => println!("NVRTC: {reason}"),
    }
    match sql_files() {
        Ok(path) => println!("DataFusion's SQL files: {}", path.display()),
        Err(reason) => println!("DataFusion's SQL files: {reason}"),
    }
    match python_packages() {
        Ok(()) => println!("Python's packages: in .venv"),
        Err(reason) => println!("Python's packages: {reason}"),
    }
    Ok(())
}

/// Finds the C++ compiler of the emulated device, or installs it.
///
/// # Errors
/// What to do by hand.
pub(crate) fn compiler() -> Result<()> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let name = named.clone().unwrap_or_else(|| "g++".into());
    // CXX may bring flags.
    let mut words = name.split_whitespace();
    let (first, flags) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>());
    let works = || succeeds(program(first).args(&flags).arg("--version"));
    if works() {
        println!("C++ compiler: {name}");
        return Ok(());
    }
    if named.is_some() {
        return Err(format!("CXX names '{name}', which does not run"));
    }
    apt_get(&["g++"]).map_err(|reason| {
        format!("no C++ compiler ('{name}'): {reason}; the emulated device needs g++ 9 or later (or name one in CXX)")
    })?;
    match works() {
        true => Ok(()),
        false => Err(format!("g++ was installed and '{name}' still does not run")),
    }
}

/// Whether a component of the Rust toolchain is there; installed through rustup where it is not.
///
/// # Errors
/// What to do by hand.
pub(crate) fn rust_component(component: &str) -> Result<()> {
    let subcommand = if component == "rustfmt" { "fmt" } else { component };
    if succeeds(cargo().args([subcommand, "--version"])) {
        return Ok(());
    }
    let added = succeeds(program("rustup").args(["component", "add", component]));
    match added && succeeds(cargo().args([subcommand, "--version"])) {
        true => Ok(()),
        false => Err(format!("not installed; 'rustup component add {component}'")),
    }
}

/// Finds NVRTC: where `WARPCUBE_NVRTC` says, in `.venv`, or in a CUDA toolkit; installs it into `.venv` otherwise.
///
/// # Errors
/// What to do by hand.
pub(crate) fn nvrtc() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("WARPCUBE_NVRTC").map(PathBuf::from) {
        return match path.exists() {
            true => Ok(path),
            false => Err(format!("WARPCUBE_NVRTC names {}, which is not there", path.display())),
        };
    }
    if let Some(found) = installed() {
        return Ok(found);
    }
    environment()?;
    pip(&[NVRTC]).map_err(|reason| format!("{reason}; name the library's file in WARPCUBE_NVRTC if there is one"))?;
    installed().ok_or_else(|| "installed into .venv and not found there".into())
}

/// Installs what the tests of the Python module import, where one of it is missing.
///
/// # Errors
/// What to do by hand.
pub(crate) fn python_packages() -> Result<()> {
    let python = python()?;
    let imports = || succeeds(program(&python).args(["-c", "import duckdb, pandas, polars, pyarrow, pytest"]));
    if !imports() {
        pip(&["-r", PYTHON_PACKAGES])?;
    }
    match imports() {
        true => Ok(()),
        false => Err(format!("{PYTHON_PACKAGES} was installed and cannot be imported")),
    }
}

/// Finds NVRTC of CUDA 12 in a folder of its own, or installs it there.
///
/// # Errors
/// What to do by hand.
pub(crate) fn nvrtc_12() -> Result<PathBuf> {
    let folder = root().join(".venv/cuda-12");
    let library = folder.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
    if !library.exists() {
        environment()?;
        pip(&["--target", &folder.to_string_lossy(), NVRTC_12])?;
    }
    match library.exists() {
        true => Ok(library),
        false => Err(format!("{NVRTC_12} was installed and {} is not there", library.display())),
    }
}

fn installed() -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for python in children(&root().join(".venv/lib")) {
        folders.extend(children(&python.join("site-packages/nvidia")).map(|package| package.join("lib")));
    }
    folders.push("/usr/local/cuda/lib64".into());
    folders.iter().flat_map(|folder| LIBRARIES.map(|name| folder.join(name))).find(|path| path.exists())
}

fn children(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The interpreter of `.venv`, which is made if it is not there.
///
/// # Errors
/// What to do by hand.
pub(crate) fn python() -> Result<String> {
    environment()?;
    Ok(interpreter())
}

fn interpreter() -> String {
    root().join(".venv/bin/python").to_string_lossy().into_owned()
}

/// Makes the Python environment in `.venv`, if it is not there.
fn environment() -> Result<()> {
    if !Path::new(&interpreter()).exists() {
        let make = || succeeds(program("python3").args(["-m", "venv", ".venv"]));
        if !make() {
            // Debian has the module that makes environments in a package of its own.
            apt_get(&["python3-venv"]).map_err(|reason| format!("cannot make a Python environment: {reason}"))?;
            if !make() {
                return Err("'python3 -m venv .venv' fails".into());
            }
        }
    }
    Ok(())
}

/// Installs Python packages with the environment's own client.
///
/// # Errors
/// The command that failed.
pub(crate) fn pip(arguments: &[&str]) -> Result<()> {
    let mut pip = program(&interpreter());
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]).args(arguments);
    run_program(&mut pip)
}

/// Finds DataFusion's SQL test files where Cargo unpacks crates; asking Cargo about the crate brings it there.
///
/// # Errors
/// What to do by hand.
pub(crate) fn sql_files() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("WARPCUBE_SQLLOGICTEST").map(PathBuf::from) {
        return Ok(path);
    }
    let (name, version) = SQL_FILES;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let registries = home.ok_or("neither CARGO_HOME nor HOME is set")?.join("registry/src");
    let unpacked =
        || children(&registries).map(|registry| registry.join(format!("{name}-{version}"))).find(|path| path.is_dir());
    if unpacked().is_none() {
        output(cargo().args(["info", "--quiet", &format!("{name}@{version}")]))?;
    }
    unpacked().ok_or_else(|| format!("Cargo did not unpack {name} {version}"))
}

/// Installs Debian packages where that can be done without asking.
fn apt_get(packages: &[&str]) -> Result<()> {
    let by_hand = format!("'apt-get install {}'", packages.join(" "));
    if !succeeds(program("apt-get").arg("--version")) {
        return Err("no apt-get on this system: install it by the system's own means".into());
    }
    if output(program("id").arg("-u")).is_ok_and(|user| user.trim() != "0") {
        return Err(format!("as root run {by_hand}"));
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = program("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-y"]).args(arguments);
        run_program(&mut command)
    };
    // Old lists may do; what they lack the installation will name.
    let _ = apt_get(&["update"]);
    apt_get(&[&["install", "--no-install-recommends"], packages].concat())
}
