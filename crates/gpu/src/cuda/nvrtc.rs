//! The CUDA run-time compiler: where it is found, and source text to machine code.
//!
//! NVRTC comes with the CUDA toolkit (12 and 13 both work) or from PyPI (`nvidia-cuda-nvrtc`). It needs no GPU: the
//! tests compile every kernel for every supported architecture without one.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use super::driver;
use crate::error::{GpuError, Result};
use crate::program::{Effort, Program};

/// The first version that is known to take `--Ofast-compile`.
const EFFORT_VERSION: (i32, i32) = (12, 9);

/// Names of the library's file, newer versions first.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

type Status = c_int;
type Handle = *mut c_void;

struct Api {
    path: String,
    version: (i32, i32),
    create: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status,
    cubin_size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    log_size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    log: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    _builtins: Option<Library>,
    _library: Library,
}

fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(find).as_ref().map_err(Clone::clone)
}

/// Where NVRTC was found and its version, or why it was not.
pub fn location() -> Result<(String, (i32, i32))> {
    api().map(|api| (api.path.clone(), api.version))
}

/// File names and folders to try, best first.
fn candidates() -> Vec<PathBuf> {
    if let Some(path) = std::env::var_os("WARPCUBE_NVRTC") {
        return vec![PathBuf::from(path)];
    }
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    let mut folders: Vec<PathBuf> = toolkits.map(|home| Path::new(&home).join("lib64")).collect();
    folders.push("/usr/local/cuda/lib64".into());
    let mut environments: Vec<PathBuf> = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect();
    environments.push(".venv".into());
    environments.extend(["/usr/local".into(), "/usr".into()]);
    // What the system's linker knows by name comes first.
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

fn find() -> Result<Api> {
    let driver = driver::version();
    let mut tried = Vec::new();
    for path in candidates() {
        match load(&path).and_then(|api| fits(api.version, driver).map(|()| api)) {
            Ok(api) => return Ok(api),
            Err(reason) => tried.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(GpuError::CompilerUnavailable { reason: format!("tried {}", tried.join("; ")), repair: repair(driver) })
}

/// Whether a driver loads what a compiler makes: machine code of its own major version and of older ones.
fn fits(compiler: (i32, i32), driver: Option<(i32, i32)>) -> std::result::Result<(), String> {
    match driver {
        Some(driver) if compiler.0 > driver.0 => Err(format!(
            "it is of CUDA {}.{}, and the driver is for CUDA {}.{}",
            compiler.0, compiler.1, driver.0, driver.1
        )),
        _ => Ok(()),
    }
}

/// How to get an NVRTC that fits the driver.
fn repair(driver: Option<(i32, i32)>) -> String {
    let package = match driver {
        Some((12, _)) => "nvidia-cuda-nvrtc-cu12",
        _ => "nvidia-cuda-nvrtc",
    };
    format!(
        "install the CUDA toolkit, or 'pip install {package}', and name the library's file in WARPCUBE_NVRTC if it is \
         in an unusual place"
    )
}

fn load(path: &Path) -> std::result::Result<Api, String> {
    // SAFETY: loading NVRTC runs its initialisers, which have no preconditions.
    let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
    macro_rules! symbol {
        ($name:literal) => {
            // SAFETY: the name and signature are those of nvrtc.h, the same in CUDA 12 and 13.
            *unsafe { library.get($name.as_bytes()) }.map_err(|error| format!("it has no {}: {error}", $name))?
        };
    }
    let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status = symbol!("nvrtcVersion");
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are writable.
    if unsafe { version(&mut major, &mut minor) } != 0 {
        return Err("it does not tell its version".into());
    }
    // NVRTC opens its second library by name alone, without looking beside itself: loaded before, it is found. Where
    // the system's linker knows it (an installed toolkit) this may fail and does no harm.
    let builtins = path.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
    // SAFETY: the library holds tables; its initialisers have no preconditions.
    let builtins = unsafe { Library::new(builtins) }.ok();
    Ok(Api {
        path: path.display().to_string(),
        version: (major, minor),
        create: symbol!("nvrtcCreateProgram"),
        compile: symbol!("nvrtcCompileProgram"),
        cubin_size: symbol!("nvrtcGetCUBINSize"),
        cubin: symbol!("nvrtcGetCUBIN"),
        log_size: symbol!("nvrtcGetProgramLogSize"),
        log: symbol!("nvrtcGetProgramLog"),
        destroy: symbol!("nvrtcDestroyProgram"),
        error_string: symbol!("nvrtcGetErrorString"),
        _builtins: builtins,
        _library: library,
    })
}

/// Compiles a program for an architecture (`90` for Hopper) to a cubin.
///
/// # Errors
/// [`GpuError::CompilerUnavailable`] without NVRTC, [`GpuError::Compile`] with its log otherwise.
pub fn compile(program: &Program, architecture: u32) -> Result<Vec<u8>> {
    let api = api()?;
    let text = |text: String| CString::new(text).map_err(|_| GpuError::Contract("a NUL byte in a program".into()));
    let source = text(program.full_source())?;
    let name = text(format!("{}.cu", program.name()))?;
    let options = options(program, architecture, api.version).into_iter().map(text).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let failed = |what: &str, status: Status| GpuError::Compile {
        program: program.name().to_string(),
        // SAFETY: NVRTC returns a static string for any status.
        log: format!("{what}: {}", unsafe { CStr::from_ptr((api.error_string)(status)) }.to_string_lossy()),
    };
    let mut handle: Handle = std::ptr::null_mut();
    // SAFETY: source and name live until the program is destroyed below.
    let status =
        unsafe { (api.create)(&mut handle, source.as_ptr(), name.as_ptr(), 0, std::ptr::null(), std::ptr::null()) };
    if status != 0 {
        return Err(failed("nvrtcCreateProgram", status));
    }
    let guard = ProgramHandle { api, handle };
    // SAFETY: the program is live and the option pointers too.
    let status = unsafe { (api.compile)(guard.handle, pointers.len() as c_int, pointers.as_ptr()) };
    if status != 0 {
        return Err(GpuError::Compile { program: program.name().to_string(), log: guard.log() });
    }
    let mut size = 0;
    // SAFETY: the program was compiled; `size` is writable.
    let status = unsafe { (api.cubin_size)(guard.handle, &mut size) };
    if status != 0 || size == 0 {
        return Err(failed("nvrtcGetCUBINSize", status));
    }
    let mut cubin = vec![0u8; size];
    // SAFETY: `cubin` has the size NVRTC asked for.
    let status = unsafe { (api.cubin)(guard.handle, cubin.as_mut_ptr().cast()) };
    if status != 0 {
        return Err(failed("nvrtcGetCUBIN", status));
    }
    Ok(cubin)
}

/// Options of a program for a version of the compiler; part of the key of the cache on disk.
pub(super) fn options(program: &Program, architecture: u32, version: (i32, i32)) -> Vec<String> {
    let mut options =
        vec![format!("-arch=sm_{architecture}"), "--std=c++17".into(), "--device-int128".into(), "-lineinfo".into()];
    // Results equal the CPU's: no contraction of a*b+c.
    options.push("--fmad=false".into());
    let effort = match program.effort() {
        _ if version < EFFORT_VERSION => None,
        Effort::Full => None,
        Effort::Less => Some("min"),
        Effort::Least => Some("mid"),
    };
    options.extend(effort.map(|given_up| format!("--Ofast-compile={given_up}")));
    options.extend(program.options().iter().cloned());
    options
}

struct ProgramHandle {
    api: &'static Api,
    handle: Handle,
}

impl ProgramHandle {
    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: the program is live; `size` is writable.
        if unsafe { (self.api.log_size)(self.handle, &mut size) } != 0 {
            return "no log".into();
        }
        let mut log = vec![0u8; size];
        // SAFETY: `log` has the size NVRTC asked for.
        unsafe { (self.api.log)(self.handle, log.as_mut_ptr().cast()) };
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_string()
    }
}

impl Drop for ProgramHandle {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        unsafe { (self.api.destroy)(&mut self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What a library of that version has to export, but for one function.
    fn library(major: u32, minor: u32, without: &str) -> String {
        let names = [
            "CreateProgram",
            "CompileProgram",
            "GetCUBINSize",
            "GetCUBIN",
            "GetProgramLogSize",
            "GetProgramLog",
            "DestroyProgram",
            "GetErrorString",
        ];
        let functions = names.into_iter().filter(|name| *name != without);
        let functions: String = functions.map(|name| format!("int nvrtc{name}() {{ return 0; }}\n")).collect();
        let version = format!("int nvrtcVersion(int* a, int* b) {{ *a = {major}; *b = {minor}; return 0; }}");
        format!("extern \"C\" {{\n{functions}{version}\n}}\n")
    }

    #[test]
    fn a_compiler_that_is_newer_than_the_driver_is_left_aside() {
        assert_eq!(fits((13, 0), None), Ok(()));
        assert_eq!(fits((13, 1), Some((13, 0))), Ok(()));
        assert_eq!(fits((12, 9), Some((13, 0))), Ok(()));
        let reason = fits((13, 0), Some((12, 8))).unwrap_err();
        assert_eq!(reason, "it is of CUDA 13.0, and the driver is for CUDA 12.8");
        assert!(repair(Some((12, 8))).contains("'pip install nvidia-cuda-nvrtc-cu12'"));
        assert!(repair(None).contains("'pip install nvidia-cuda-nvrtc'"));
    }

    fn build(path: &Path, source: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = path.with_extension("cc");
        std::fs::write(&text, source).unwrap();
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
        let built = Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(path).arg(&text).status().unwrap();
        assert!(built.success());
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
    fn libraries_of_both_versions_are_taken_with_their_builtins() {
        for (major, minor) in [(12, 8), (13, 0)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("libnvrtc.so.{major}"));
            build(&path, &library(major, minor, ""));
            let api = load(&path).unwrap();
            assert_eq!(api.version, (major as i32, minor as i32));
            assert!(api._builtins.is_none());
            build(&folder.path().join(format!("libnvrtc-builtins.so.{major}.{minor}")), "int tables;");
            assert!(load(&path).unwrap()._builtins.is_some());
        }
    }

    #[test]
    fn what_is_no_library_of_nvrtc_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.12");
        build(&path, &library(12, 0, "GetCUBIN"));
        let reason = load(&path).err().unwrap();
        assert!(reason.contains("nvrtcGetCUBIN"), "{reason}");
        let text = folder.path().join("libnvrtc.so.13");
        std::fs::write(&text, "text").unwrap();
        assert!(load(&text).is_err() && load(&folder.path().join("none")).is_err());
    }
}
