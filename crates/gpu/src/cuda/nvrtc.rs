//! The CUDA run-time compiler: choice of an installed library, and compilation of source text.
//!
//! NVRTC comes with the CUDA toolkit (12 and 13 both work) or from PyPI (`nvidia-cuda-nvrtc`). It needs no GPU: the
//! tests compile every kernel for every supported architecture without one.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::Library;
use libloading::os::unix::{Library as Loaded, RTLD_LAZY};
use parking_lot::Mutex;

use super::driver;
use super::jitlink;
use super::library::{candidates, companion, resolve};
use crate::error::{GpuError, Result};
use crate::program::{Effort, Program};

/// The first version with `--Ofast-compile`.
const EFFORT_VERSION: (i32, i32) = (12, 9);

type Status = c_int;
type Handle = *mut c_void;

struct Api {
    path: String,
    version: (i32, i32),
    /// Target architectures, the oldest first; empty if unknown.
    architectures: Vec<u32>,
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
    _builtins: Library,
    _library: Library,
}

/// The first compiler found that fits the driver and, if one is named, a GPU of this architecture.
fn api(architecture: Option<u32>) -> Result<&'static Api> {
    static CHOSEN: Mutex<BTreeMap<Option<u32>, Result<&'static Api>>> = Mutex::new(BTreeMap::new());
    let choose = || choose(&candidates(|name| std::env::var_os(name)), driver::version(), architecture);
    CHOSEN.lock().entry(architecture).or_insert_with(choose).clone()
}

/// Path and version of an NVRTC, for GPUs of this architecture (`90` for Hopper) if one is named.
///
/// # Errors
/// [`GpuError::CompilerUnavailable`] if none was found, or only versions older than the GPU.
pub fn location(architecture: Option<u32>) -> Result<(String, (i32, i32))> {
    api(architecture).map(|api| (api.path.clone(), api.version))
}

/// The target architecture of programs for a GPU, and the compiler's version.
pub(super) fn target(architecture: u32) -> Result<(u32, (i32, i32))> {
    api(Some(architecture)).map(|api| (api.target(architecture).unwrap_or(architecture), api.version))
}

fn choose(candidates: &[PathBuf], driver: Option<(i32, i32)>, architecture: Option<u32>) -> Result<&'static Api> {
    let (mut tried, mut older) = (Vec::new(), None);
    for path in candidates {
        match loaded(path).and_then(|api| fits(api.version, driver).map(|()| api)) {
            Err(reason) => tried.push(format!("{}: {reason}", path.display())),
            Ok(api) => match architecture {
                Some(architecture) if api.target(architecture).is_none() => {
                    older.get_or_insert_with(|| api.older_than(architecture));
                }
                _ => return Ok(api),
            },
        }
    }
    let (package, upgrade) = (package(driver), "install a newer CUDA toolkit, or 'pip install --upgrade");
    let (reason, repair) = match older {
        Some(reason) => (reason, format!("{upgrade} {package}'")),
        None if tried.is_empty() => ("no file of it was found".into(), repair(driver)),
        None => (format!("tried {}", tried.join("; ")), repair(driver)),
    };
    Err(GpuError::CompilerUnavailable { reason, repair })
}

/// A library, loaded once and never unloaded.
fn loaded(path: &Path) -> std::result::Result<&'static Api, String> {
    static LOADED: Mutex<BTreeMap<PathBuf, &'static Api>> = Mutex::new(BTreeMap::new());
    let path = resolve(path)?;
    let mut libraries = LOADED.lock();
    if let Some(api) = libraries.get(&path) {
        return Ok(api);
    }
    let api: &'static Api = Box::leak(Box::new(load(&path)?));
    libraries.insert(path, api);
    Ok(api)
}

/// Refuses a compiler of a newer major version than the driver, which would not load its machine code.
fn fits(compiler: (i32, i32), driver: Option<(i32, i32)>) -> std::result::Result<(), String> {
    match driver {
        Some(driver) if compiler.0 > driver.0 => Err(format!(
            "its version is CUDA {}.{}, and the driver's is CUDA {}.{}",
            compiler.0, compiler.1, driver.0, driver.1
        )),
        _ => Ok(()),
    }
}

/// NVRTC's PyPI package for the driver.
fn package(driver: Option<(i32, i32)>) -> &'static str {
    match driver {
        Some((12, _)) => "nvidia-cuda-nvrtc-cu12",
        _ => "nvidia-cuda-nvrtc",
    }
}

/// Installation of an NVRTC for the driver.
fn repair(driver: Option<(i32, i32)>) -> String {
    format!(
        "install the CUDA toolkit, or 'pip install {}' in the Python environment of VIRTUAL_ENV, and name the \
         library's file in WARPCUBE_NVRTC if it is in an unusual place",
        package(driver)
    )
}

impl Api {
    /// The target for a GPU of an architecture: its own, or an earlier one of the same major number.
    fn target(&self, architecture: u32) -> Option<u32> {
        if self.architectures.is_empty() {
            return Some(architecture);
        }
        let runs = |known: &u32| known / 10 == architecture / 10 && *known <= architecture;
        self.architectures.iter().copied().filter(runs).max()
    }

    /// The reason why this version does not compile for a GPU.
    fn older_than(&self, architecture: u32) -> String {
        let capability = |architecture: u32| format!("{}.{}", architecture / 10, architecture % 10);
        let newest = self.architectures.iter().copied().max().unwrap_or_default();
        let (path, (major, minor)) = (&self.path, self.version);
        format!(
            "NVRTC {major}.{minor} in {path} compiles for compute capabilities up to {}, and the GPU has {}",
            capability(newest),
            capability(architecture)
        )
    }
}

/// Target architectures of a library; empty if unknown.
fn architectures(library: &Library) -> Vec<u32> {
    type Ask = unsafe extern "C" fn(*mut c_int) -> Status;
    // SAFETY: the names and signatures are those of nvrtc.h since CUDA 11.2.
    let (count, list) =
        unsafe { (library.get::<Ask>(c"nvrtcGetNumSupportedArchs"), library.get::<Ask>(c"nvrtcGetSupportedArchs")) };
    let (Ok(count), Ok(list)) = (count, list) else { return Vec::new() };
    let mut known = 0;
    // SAFETY: the number is writable.
    if unsafe { count(&mut known) } != 0 || known <= 0 {
        return Vec::new();
    }
    let mut numbers: Vec<c_int> = vec![0; known as usize];
    // SAFETY: the vector has the length that the library gave.
    match unsafe { list(numbers.as_mut_ptr()) } {
        0 => numbers.into_iter().map(|number| number as u32).collect(),
        _ => Vec::new(),
    }
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
        return Err("nvrtcVersion failed".into());
    }
    Ok(Api {
        path: path.display().to_string(),
        version: (major, minor),
        architectures: architectures(&library),
        create: symbol!("nvrtcCreateProgram"),
        compile: symbol!("nvrtcCompileProgram"),
        cubin_size: symbol!("nvrtcGetCUBINSize"),
        cubin: symbol!("nvrtcGetCUBIN"),
        log_size: symbol!("nvrtcGetProgramLogSize"),
        log: symbol!("nvrtcGetProgramLog"),
        destroy: symbol!("nvrtcDestroyProgram"),
        error_string: symbol!("nvrtcGetErrorString"),
        _builtins: builtins(path, &format!("libnvrtc-builtins.so.{major}.{minor}"))?,
        _library: library,
    })
}

/// Loads NVRTC's second library, which NVRTC opens by name: the loader returns the loaded library and searches no
/// folder.
fn builtins(nvrtc: &Path, name: &str) -> std::result::Result<Library, String> {
    let path = companion(nvrtc, name).map_err(|reason| format!("{name}: {reason}"))?;
    // SAFETY: the library holds tables; its initialisers have no preconditions.
    let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
    // SAFETY: with this flag the loader runs no code; it finds the loaded library of the name.
    let known = unsafe { Loaded::open(Some(name), RTLD_LAZY | libc::RTLD_NOLOAD) };
    known.map(|_| library).map_err(|_| format!("{} does not have the name {name}", path.display()))
}

/// Compiles a program for an architecture (`90` for Hopper) to a cubin.
///
/// # Errors
/// [`GpuError::CompilerUnavailable`] without an NVRTC for the architecture; [`GpuError::Compile`] with its log.
pub fn compile(program: &Program, architecture: u32) -> Result<Vec<u8>> {
    let api = api(Some(architecture))?;
    let architecture = api.target(architecture).unwrap_or(architecture);
    let text = |text: String| CString::new(text).map_err(|_| GpuError::Contract("a NUL byte in a program".into()));
    let source = text(program.full_source())?;
    let name = text(format!("{}.cu", program.name()))?;
    let options = options(program, architecture, api.version).into_iter().map(text).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let check = |call: &str, status: Status| match status {
        0 => Ok(()),
        _ => Err(GpuError::Compile {
            program: program.name().to_string(),
            // SAFETY: NVRTC returns a static string for any status.
            log: format!("{call}: {}", unsafe { CStr::from_ptr((api.error_string)(status)) }.to_string_lossy()),
        }),
    };
    let mut handle: Handle = std::ptr::null_mut();
    let none = std::ptr::null();
    // SAFETY: source and name live until the program is destroyed below.
    check("nvrtcCreateProgram", unsafe { (api.create)(&mut handle, source.as_ptr(), name.as_ptr(), 0, none, none) })?;
    let guard = ProgramHandle { api, handle };
    // SAFETY: the program is live and the option pointers too.
    if unsafe { (api.compile)(handle, pointers.len() as c_int, pointers.as_ptr()) } != 0 {
        return Err(GpuError::Compile { program: program.name().to_string(), log: guard.log() });
    }
    let mut size = 0;
    // SAFETY: the program was compiled; `size` is writable.
    check("nvrtcGetCUBINSize", unsafe { (api.cubin_size)(handle, &mut size) })?;
    let mut cubin = vec![0u8; size];
    // SAFETY: `cubin` has the size that NVRTC gave.
    check("nvrtcGetCUBIN", unsafe { (api.cubin)(handle, cubin.as_mut_ptr().cast()) })?;
    match program.has_device_launches() {
        true => jitlink::link(Path::new(&api.path), api.version.0, program.name(), &cubin, architecture),
        false => Ok(cubin),
    }
}

/// Succeeds if programs whose kernels launch kernels can be compiled for a GPU of this architecture.
///
/// # Errors
/// [`GpuError::CompilerUnavailable`] without NVRTC, nvJitLink or the device runtime library.
pub fn check_device_launches(architecture: u32) -> Result<()> {
    let api = api(Some(architecture))?;
    jitlink::check(Path::new(&api.path), api.version.0)
}

/// Versions of what links programs whose kernels launch kernels; without it, words that no version has.
pub(super) fn linker(architecture: u32) -> &'static str {
    let versions = api(Some(architecture)).and_then(|api| jitlink::versions(Path::new(&api.path), api.version.0));
    versions.unwrap_or("no linker")
}

/// Compiler options of a program for a version; part of the key of the cache on disk.
pub(super) fn options(program: &Program, architecture: u32, version: (i32, i32)) -> Vec<String> {
    let mut options =
        vec![format!("-arch=sm_{architecture}"), "--std=c++17".into(), "--device-int128".into(), "-lineinfo".into()];
    // Results equal the CPU's: no contraction of a*b+c.
    options.push("--fmad=false".into());
    let effort = match program.effort() {
        Effort::Full => None,
        _ if version < EFFORT_VERSION => None,
        Effort::Less => Some("min"),
        Effort::Least => Some("mid"),
    };
    options.extend(effort.map(|level| format!("--Ofast-compile={level}")));
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
        // SAFETY: `log` has the size that NVRTC gave.
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
pub(super) mod tests {
    use std::process::Command;

    use super::*;

    /// Source of a library of that version with all functions but `without`, for these architectures.
    fn library(major: u32, minor: u32, without: &str, architectures: &[u32]) -> String {
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
        let listed: String = architectures.iter().map(|number| format!("*a++ = {number}; ")).collect();
        let known = match architectures.len() {
            0 => String::new(),
            count => format!(
                "int nvrtcGetNumSupportedArchs(int* a) {{ *a = {count}; return 0; }}\n\
                 int nvrtcGetSupportedArchs(int* a) {{ {listed}return 0; }}"
            ),
        };
        format!("extern \"C\" {{\n{functions}{version}\n{known}\n}}\n")
    }

    #[test]
    fn a_compiler_newer_than_the_driver_is_refused() {
        assert_eq!(fits((13, 0), None), Ok(()));
        assert_eq!(fits((13, 1), Some((13, 0))), Ok(()));
        assert_eq!(fits((12, 9), Some((13, 0))), Ok(()));
        let reason = fits((13, 0), Some((12, 8))).unwrap_err();
        assert_eq!(reason, "its version is CUDA 13.0, and the driver's is CUDA 12.8");
        assert!(repair(Some((12, 8))).contains("'pip install nvidia-cuda-nvrtc-cu12'"));
        assert!(repair(None).contains("'pip install nvidia-cuda-nvrtc'"));
    }

    /// Builds a library of that name.
    pub(crate) fn build(path: &Path, source: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = path.with_extension("cc");
        std::fs::write(&text, source).unwrap();
        let name = format!("-Wl,-soname,{}", path.file_name().unwrap().display());
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
        let built = Command::new(compiler).args(["-shared", "-fPIC", &name, "-o"]).arg(path).arg(&text).status();
        assert!(built.unwrap().success());
    }

    fn build_builtins(library: &Path, major: u32, minor: u32, source: &str) -> PathBuf {
        let path = library.with_file_name(format!("libnvrtc-builtins.so.{major}.{minor}"));
        build(&path, source);
        path
    }

    #[test]
    fn the_first_compiler_for_the_gpu_is_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let built = |name: &str, major, minor, architectures: &[u32]| {
            let path = folder.path().canonicalize().unwrap().join(name);
            build(&path, &library(major, minor, "", architectures));
            build_builtins(&path, major, minor, "int tables;");
            path
        };
        let old = built("libnvrtc.so.12", 12, 2, &[50, 80, 86, 90]);
        let new = built("libnvrtc.so.13", 13, 0, &[80, 86, 90, 100, 120]);
        let both = [old.clone(), new.clone()];
        let version = |architecture| choose(&both, None, architecture).unwrap().version;
        assert_eq!((version(None), version(Some(90)), version(Some(120))), ((12, 2), (12, 2), (13, 0)));
        // Machine code of compute capability 12.0 runs on 12.1, that of 9.0 not on 10.0.
        let target = |path: &PathBuf, architecture| loaded(path).unwrap().target(architecture);
        assert_eq!([121, 120, 89, 100].map(|a| target(&new, a)), [Some(120), Some(120), Some(86), Some(100)]);
        assert_eq!([100, 120].map(|a| target(&old, a)), [None, None]);

        let error = choose(std::slice::from_ref(&old), Some((12, 8)), Some(120)).err().unwrap();
        assert!(matches!(&error, GpuError::CompilerUnavailable { .. }), "{error}");
        let expected = format!(
            "GPU-002 no usable CUDA run-time compiler (NVRTC): NVRTC 12.2 in {} compiles for compute capabilities up \
             to 9.0, and the GPU has 12.0; install a newer CUDA toolkit, or 'pip install --upgrade \
             nvidia-cuda-nvrtc-cu12'",
            old.display()
        );
        assert_eq!(error.to_string(), expected);
        // The newer one compiles for the GPU, but the driver refuses it.
        let error = choose(&both, Some((12, 8)), Some(120)).err().unwrap().to_string();
        assert_eq!(error, expected);
        let silent = built("libnvrtc.so", 12, 0, &[]);
        assert_eq!(target(&silent, 120), Some(120));
    }

    #[test]
    fn libraries_of_both_versions_load_with_their_builtins() {
        for (major, minor) in [(12, 8), (13, 0)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("libnvrtc.so.{major}"));
            build(&path, &library(major, minor, "", &[]));
            let reason = load(&path).err().unwrap();
            assert!(reason.contains(&format!("libnvrtc-builtins.so.{major}.{minor} beside it")), "{reason}");
            build_builtins(&path, major, minor, "int tables;");
            assert_eq!(load(&path).unwrap().version, (major as i32, minor as i32));
        }
    }

    #[test]
    fn builtins_that_others_can_write_or_that_have_another_name_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.12");
        build(&path, &library(12, 7, "", &[]));
        let trace = folder.path().join("trace");
        let text = format!(
            "#include <stdio.h>\n\
             __attribute__((constructor)) static void begin() {{ fclose(fopen(\"{}\", \"w\")); }}",
            trace.display()
        );
        let builtins = build_builtins(&path, 12, 7, &text);
        std::fs::set_permissions(&builtins, std::fs::Permissions::from_mode(0o666)).unwrap();
        let error = choose(std::slice::from_ref(&path), None, None).err().unwrap();
        assert!(matches!(&error, GpuError::CompilerUnavailable { .. }), "{error}");
        assert!(error.to_string().contains("libnvrtc-builtins.so.12.7 can be written by others"), "{error}");
        assert!(!trace.exists(), "its initialisers ran");
        std::fs::set_permissions(&builtins, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(load(&path).is_ok() && trace.exists());

        // NVRTC would search the name along the loader's folders.
        let other = folder.path().join("libnvrtc.so");
        build(&other, &library(12, 6, "", &[]));
        build(&folder.path().join("renamed.so"), "int tables;");
        std::fs::rename(folder.path().join("renamed.so"), other.with_file_name("libnvrtc-builtins.so.12.6")).unwrap();
        let reason = load(&other).err().unwrap();
        assert!(reason.contains("does not have the name libnvrtc-builtins.so.12.6"), "{reason}");
    }

    #[test]
    fn other_libraries_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.12");
        build(&path, &library(12, 0, "GetCUBIN", &[]));
        let reason = load(&path).err().unwrap();
        assert!(reason.contains("nvrtcGetCUBIN"), "{reason}");
        let text = folder.path().join("libnvrtc.so.13");
        std::fs::write(&text, "text").unwrap();
        assert!(load(&text).is_err() && load(&folder.path().join("none")).is_err());
    }
}
