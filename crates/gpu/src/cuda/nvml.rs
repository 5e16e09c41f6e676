//! What the driver's management library (NVML) tells of devices while the driver itself is still being started, which
//! takes some tenths of a second.

use std::ffi::{c_int, c_uint, c_void};

use libloading::{Library, Symbol};

/// Name of the library's file, which the driver installs.
const NAME: &str = "libnvidia-ml.so.1";

type Handle = *mut c_void;
type Status = c_int;

/// The compute capability of this host's devices, where the library is there and all devices have the same: which of
/// them the driver will count as its first is not known here.
pub(super) fn compute_capability() -> Option<(u32, u32)> {
    // SAFETY: the driver's own library, whose initialisers ask nothing of who loads it.
    let library = unsafe { Library::new(NAME) }.ok()?;
    // SAFETY: the types are those of nvml.h, where `nvmlDevice_t` is a pointer and `nvmlReturn_t` an enumeration.
    unsafe {
        let init: Symbol<unsafe extern "C" fn() -> Status> = library.get(b"nvmlInit_v2\0").ok()?;
        let shutdown: Symbol<unsafe extern "C" fn() -> Status> = library.get(b"nvmlShutdown\0").ok()?;
        done(init())?;
        let found = ask(&library);
        shutdown();
        found
    }
}

/// # Safety
/// NVML is initialised.
unsafe fn ask(library: &Library) -> Option<(u32, u32)> {
    // SAFETY: as above; every pointer is to a variable of the type that the call writes.
    unsafe {
        let count: Symbol<unsafe extern "C" fn(*mut c_uint) -> Status> =
            library.get(b"nvmlDeviceGetCount_v2\0").ok()?;
        let device: Symbol<unsafe extern "C" fn(c_uint, *mut Handle) -> Status> =
            library.get(b"nvmlDeviceGetHandleByIndex_v2\0").ok()?;
        let capability: Symbol<unsafe extern "C" fn(Handle, *mut c_int, *mut c_int) -> Status> =
            library.get(b"nvmlDeviceGetCudaComputeCapability\0").ok()?;
        let mut devices = 0;
        done(count(&mut devices))?;
        let mut found = None;
        for index in 0..devices {
            let (mut handle, mut major, mut minor) = (std::ptr::null_mut(), 0, 0);
            done(device(index, &mut handle))?;
            done(capability(handle, &mut major, &mut minor))?;
            let this = (u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
            if found.is_some_and(|other| other != this) {
                return None;
            }
            found = Some(this);
        }
        found
    }
}

fn done(status: Status) -> Option<()> {
    (status == 0).then_some(())
}
