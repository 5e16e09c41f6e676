//! The CUDA linker: programs whose kernels launch kernels are linked with the device runtime library.
//!
//! nvJitLink and `libcudadevrt.a` come with the CUDA toolkit, or from PyPI (`nvidia-nvjitlink`, `nvidia-cuda-runtime`).
//! Both are taken from the folder of NVRTC or of the system's loader. Linking needs no GPU.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use libloading::Library;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::library::companion;
use crate::error::{GpuError, Result};
use crate::program::hexadecimal;

type Status = c_int;
type Handle = *mut c_void;

/// Types of input (`nvJitLinkInputType`).
const CUBIN: c_int = 1;
const LIBRARY: c_int = 6;

struct Api {
    create: unsafe extern "C" fn(*mut Handle, c_uint, *const *const c_char) -> Status,
    add_data: unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> Status,
    add_file: unsafe extern "C" fn(Handle, c_int, *const c_char) -> Status,
    complete: unsafe extern "C" fn(Handle) -> Status,
    cubin_size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    cubin: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    log_size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
    log: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Handle) -> Status,
    /// The device runtime library.
    runtime: PathBuf,
    /// Versions of both libraries, in words.
    versions: String,
    _library: Library,
}

/// Succeeds if the linker and the device runtime library of an NVRTC are there.
///
/// # Errors
/// [`GpuError::CompilerUnavailable`] with the reason.
pub(super) fn check(nvrtc: &Path, major: i32) -> Result<()> {
    api(nvrtc, major).map(|_| ())
}

/// Versions of the linker and of the device runtime library of an NVRTC: part of the key of linked programs.
///
/// # Errors
/// As [`check`].
pub(super) fn versions(nvrtc: &Path, major: i32) -> Result<&'static str> {
    api(nvrtc, major).map(|api| api.versions.as_str())
}

/// The linker beside an NVRTC of a major version, loaded once and never unloaded.
fn api(nvrtc: &Path, major: i32) -> Result<&'static Api> {
    static LOADED: Mutex<BTreeMap<PathBuf, &'static Api>> = Mutex::new(BTreeMap::new());
    let mut loaded = LOADED.lock();
    if let Some(api) = loaded.get(nvrtc) {
        return Ok(api);
    }
    let unavailable = |reason: String| GpuError::CompilerUnavailable {
        reason: format!("kernels that launch kernels cannot be linked: {reason}"),
        repair: "install the CUDA toolkit, or 'pip install nvidia-nvjitlink nvidia-cuda-runtime' beside NVRTC".into(),
    };
    let api: &'static Api = Box::leak(Box::new(load(nvrtc, major).map_err(unavailable)?));
    loaded.insert(nvrtc.to_path_buf(), api);
    Ok(api)
}

fn load(nvrtc: &Path, major: i32) -> std::result::Result<Api, String> {
    let path = companion(nvrtc, &format!("libnvJitLink.so.{major}"))?;
    let runtime = companion(nvrtc, "libcudadevrt.a")?;
    // SAFETY: loading nvJitLink runs its initialisers, which have no preconditions.
    let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
    macro_rules! symbol {
        ($name:literal) => {
            // SAFETY: the name and signature are those of nvJitLink.h, the same in CUDA 12 and 13.
            *unsafe { library.get($name.as_bytes()) }.map_err(|error| format!("it has no {}: {error}", $name))?
        };
    }
    let versions = format!("nvJitLink {}, cudadevrt {}", version(&library, &path)?, digest(&runtime)?);
    Ok(Api {
        create: symbol!("nvJitLinkCreate"),
        add_data: symbol!("nvJitLinkAddData"),
        add_file: symbol!("nvJitLinkAddFile"),
        complete: symbol!("nvJitLinkComplete"),
        cubin_size: symbol!("nvJitLinkGetLinkedCubinSize"),
        cubin: symbol!("nvJitLinkGetLinkedCubin"),
        log_size: symbol!("nvJitLinkGetErrorLogSize"),
        log: symbol!("nvJitLinkGetErrorLog"),
        destroy: symbol!("nvJitLinkDestroy"),
        runtime,
        versions,
        _library: library,
    })
}

/// The linker's version; of one older than the function that tells it (CUDA 12.2), the digest of its file.
fn version(library: &Library, path: &Path) -> std::result::Result<String, String> {
    type Ask = unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> Status;
    // SAFETY: the name and signature are those of nvJitLink.h, the same in CUDA 12 and 13.
    let Ok(ask) = (unsafe { library.get::<Ask>(c"nvJitLinkVersion") }) else { return digest(path) };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are writable.
    match unsafe { ask(&mut major, &mut minor) } {
        0 => Ok(format!("{major}.{minor}")),
        status => Err(format!("nvJitLinkVersion returned {status}")),
    }
}

/// The digest of a library's file: an archive does not tell its version.
fn digest(path: &Path) -> std::result::Result<String, String> {
    let mut hasher = Sha256::new();
    let mut file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    io::copy(&mut file, &mut hasher).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(hexadecimal(hasher, 20))
}

/// Links relocatable machine code of an architecture with the device runtime library.
///
/// # Errors
/// [`GpuError::CompilerUnavailable`] without the linker; [`GpuError::Compile`] with its log.
pub(super) fn link(nvrtc: &Path, major: i32, program: &str, code: &[u8], architecture: u32) -> Result<Vec<u8>> {
    let api = api(nvrtc, major)?;
    let text = |text: Vec<u8>| CString::new(text).map_err(|_| GpuError::Contract("a NUL byte in a path".into()));
    let option = text(format!("-arch=sm_{architecture}").into_bytes())?;
    let (name, runtime) = (text(program.as_bytes().to_vec())?, text(api.runtime.as_os_str().as_bytes().to_vec())?);
    let mut handle: Handle = std::ptr::null_mut();
    // SAFETY: the handle is writable and the one option lives until the call returns.
    let created = unsafe { (api.create)(&mut handle, 1, [option.as_ptr()].as_ptr()) };
    let linking = Linking { api, handle, program };
    linking.check("nvJitLinkCreate", created)?;
    // SAFETY: the linker is live; the code is borrowed until the linker is destroyed, and the name too.
    let added = unsafe { (api.add_data)(handle, CUBIN, code.as_ptr().cast(), code.len(), name.as_ptr()) };
    linking.check("nvJitLinkAddData", added)?;
    // SAFETY: the linker is live and the path lives until it is destroyed.
    linking.check("nvJitLinkAddFile", unsafe { (api.add_file)(handle, LIBRARY, runtime.as_ptr()) })?;
    // SAFETY: the linker is live.
    linking.check("nvJitLinkComplete", unsafe { (api.complete)(handle) })?;
    let mut size = 0;
    // SAFETY: linking is complete; `size` is writable.
    linking.check("nvJitLinkGetLinkedCubinSize", unsafe { (api.cubin_size)(handle, &mut size) })?;
    let mut linked = vec![0_u8; size];
    // SAFETY: `linked` has the size that the linker gave.
    linking.check("nvJitLinkGetLinkedCubin", unsafe { (api.cubin)(handle, linked.as_mut_ptr().cast()) })?;
    Ok(linked)
}

/// A linker, destroyed when dropped.
struct Linking<'a> {
    api: &'static Api,
    handle: Handle,
    program: &'a str,
}

impl Linking<'_> {
    fn check(&self, call: &str, status: Status) -> Result<()> {
        match status {
            0 => Ok(()),
            _ => {
                let log = format!("{call} returned {status}: {}", self.log());
                Err(GpuError::Compile { program: self.program.to_string(), log })
            }
        }
    }

    fn log(&self) -> String {
        let mut size = 0;
        // SAFETY: `size` is writable; a linker that was not created is not asked.
        if self.handle.is_null() || unsafe { (self.api.log_size)(self.handle, &mut size) } != 0 {
            return "no log".into();
        }
        // One byte more than the linker asks for: versions differ in counting the end.
        let mut log = vec![0_u8; size + 1];
        // SAFETY: `log` has the size that the linker gave.
        unsafe { (self.api.log)(self.handle, log.as_mut_ptr().cast()) };
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_string()
    }
}

impl Drop for Linking<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: created once, destroyed once.
            unsafe { (self.api.destroy)(&mut self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc;
    use super::super::nvrtc::tests::build;
    use super::*;
    use crate::program::Program;

    #[test]
    fn kernels_that_launch_kernels_are_linked() {
        let text = "struct P { uint64_t* out; };
            WC_KERNEL(child, P, 64, 1) { if (threadIdx.x == 0) p.out[0] = 1; }
            WC_KERNEL(parent, P, 32, 1) {
                if (threadIdx.x == 0) child<<<1, 64, 0>>>(p);
                if (cudaGetLastError() != cudaSuccess) __trap();
            }";
        let program = Program::new("launches", text).with_device_launches();
        assert!(program.has_device_launches() && !Program::new("launches", text).has_device_launches());
        match nvrtc::check_device_launches(90) {
            Ok(()) => {
                let linked = nvrtc::compile(&program, 90).unwrap();
                let holds = |name: &[u8]| linked.windows(name.len()).any(|window| window == name);
                assert!(holds(b"child") && holds(b"parent") && linked.len() > 100_000, "{} bytes", linked.len());
            }
            Err(GpuError::CompilerUnavailable { reason, .. }) => eprintln!("not linked: {reason}"),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Source of a linker of a version, or of one that does not tell it.
    fn library(version: Option<(u32, u32)>) -> String {
        let names = ["Create", "AddData", "AddFile", "Complete", "GetLinkedCubinSize", "GetLinkedCubin"];
        let names = names.into_iter().chain(["GetErrorLogSize", "GetErrorLog", "Destroy"]);
        let functions: String = names.map(|name| format!("int nvJitLink{name}() {{ return 0; }}\n")).collect();
        let told = version.map_or(String::new(), |(major, minor)| {
            format!("int nvJitLinkVersion(unsigned* a, unsigned* b) {{ *a = {major}; *b = {minor}; return 0; }}\n")
        });
        format!("extern \"C\" {{\n{functions}{told}}}\n")
    }

    #[test]
    fn versions_tell_linkers_and_runtimes_apart() {
        let versions = |version, runtime: &str| {
            let folder = tempfile::tempdir().unwrap();
            let nvrtc = folder.path().join("libnvrtc.so.0");
            build(&nvrtc.with_file_name("libnvJitLink.so.0"), &library(version));
            fs::write(nvrtc.with_file_name("libcudadevrt.a"), runtime).unwrap();
            load(&nvrtc, 0).unwrap_or_else(|reason| panic!("{reason}")).versions
        };
        let first = versions(Some((13, 0)), "one");
        assert!(first.starts_with("nvJitLink 13.0, cudadevrt "), "{first}");
        assert_eq!(versions(Some((13, 0)), "one"), first);
        assert_ne!(versions(Some((13, 1)), "one"), first);
        assert_ne!(versions(Some((13, 0)), "two"), first);
        assert_eq!(versions(None, "one").len(), "nvJitLink ".len() + 40 + ", cudadevrt ".len() + 40);
    }

    #[test]
    fn a_missing_linker_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = check(&folder.path().join("libnvrtc.so.0"), 0).unwrap_err().to_string();
        assert!(error.contains("it has no libnvJitLink.so.0 beside it"), "{error}");
    }
}
