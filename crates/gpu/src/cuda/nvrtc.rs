//! The CUDA run-time compiler: where it is found, and source text to machine code.
//!
//! NVRTC comes with the CUDA toolkit (12 and 13 both work) or from PyPI (`nvidia-cuda-nvrtc`). It needs no GPU: the
//! tests compile every kernel for every supported architecture without one.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::error::{GpuError, Result};
use crate::program::Program;

/// How to get NVRTC, for error messages.
const REPAIR: &str = "install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc', and name the library's file in \
                      WARPCUBE_NVRTC if it is in an unusual place";

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
    const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
    let mut found = Vec::new();
    if let Some(path) = std::env::var_os("WARPCUBE_NVRTC") {
        return vec![PathBuf::from(path)];
    }
    let mut folders = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = std::env::var_os(variable) {
            folders.push(Path::new(&home).join("lib64"));
        }
    }
    found.extend(NAMES.iter().map(PathBuf::from));
    folders.push("/usr/local/cuda/lib64".into());
    let mut environments: Vec<PathBuf> = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect();
    environments.push(".venv".into());
    environments.extend(["/usr/local".into(), "/usr".into()]);
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
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        found.extend(NAMES.iter().map(|name| folder.join(name)).filter(|path| path.exists()));
    }
    found
}

fn find() -> Result<Api> {
    let mut tried = Vec::new();
    for path in candidates() {
        match load(&path) {
            Ok(api) => return Ok(api),
            Err(reason) => tried.push(format!("{}: {reason}", path.display())),
        }
    }
    Err(GpuError::CompilerUnavailable { reason: format!("tried {}", tried.join("; ")), repair: REPAIR.to_string() })
}

fn load(path: &Path) -> std::result::Result<Api, String> {
    // SAFETY: loading NVRTC runs its initialisers, which have no preconditions.
    let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
    macro_rules! symbol {
        ($name:literal) => {
            // SAFETY: the name and signature are those of nvrtc.h, the same in CUDA 12 and 13.
            *unsafe { library.get($name.as_bytes()) }.map_err(|error| error.to_string())?
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
    let name = text(format!("{}.cu", program.name))?;
    let options = options(program, architecture).into_iter().map(text).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let failed = |what: &str, status: Status| GpuError::Compile {
        program: program.name.clone(),
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
        return Err(GpuError::Compile { program: program.name.clone(), log: guard.log() });
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

/// Compiler options of a program; part of the key of the cache on disk.
pub(super) fn options(program: &Program, architecture: u32) -> Vec<String> {
    let mut options =
        vec![format!("-arch=sm_{architecture}"), "--std=c++17".into(), "--device-int128".into(), "-lineinfo".into()];
    // Results equal the CPU's: no contraction of a*b+c.
    options.push("--fmad=false".into());
    options.extend(program.options.iter().cloned());
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
