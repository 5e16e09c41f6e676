//! The driver library: presence, contexts, device facts, errors in words.

use std::path::Path;
use std::sync::OnceLock;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute, CUresult};

use super::library::found_by_name;
use crate::backend::DeviceInfo;
use crate::error::{GpuError, Result};

/// The error of a driver status; failures that end the context become [`GpuError::DeviceLost`].
pub(super) fn check<T>(operation: &str, status: std::result::Result<T, DriverError>) -> Result<T> {
    status.map_err(|DriverError(code)| to_error(operation, code, describe_status(code), false))
}

/// As [`check`], for calls that launch a kernel or prepare its launch: a refusal of the launch alone becomes
/// [`GpuError::LaunchRefused`].
pub(super) fn check_launch<T>(operation: &str, status: std::result::Result<T, DriverError>) -> Result<T> {
    status.map_err(|DriverError(code)| to_error(operation, code, describe_status(code), true))
}

/// The driver's description of a status.
fn describe_status(code: CUresult) -> String {
    DriverError(code).error_string().map_or_else(|_| "no description".into(), |text| text.to_string_lossy().into())
}

fn to_error(operation: &str, code: CUresult, message: String, launch: bool) -> GpuError {
    let (operation, name) = (operation.to_string(), format!("{code:?}"));
    match code {
        code if is_fatal(code) => GpuError::DeviceLost { operation, code: name, message },
        code if launch && is_refusal(code) => GpuError::LaunchRefused { operation, code: name, message },
        _ => GpuError::Driver { operation, code: name, message },
    }
}

/// Statuses after which every later call of the context fails (CUDA driver API, `CUresult`): most are documented to
/// leave the process in an inconsistent state. An invalid context is one of them because each call binds its own.
fn is_fatal(code: CUresult) -> bool {
    use CUresult::*;
    matches!(
        code,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_CONTAINED
            | CUDA_ERROR_TENSOR_MEMORY_LEAK
            | CUDA_ERROR_EXTERNAL_DEVICE
            | CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUDA_ERROR_INVALID_CONTEXT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_DEINITIALIZED
            | CUDA_ERROR_UNKNOWN
    )
}

/// Statuses that refuse one launch: shape, shared memory or parameters are invalid for the kernel, or registers or
/// stacks are too few for its threads.
fn is_refusal(code: CUresult) -> bool {
    use CUresult::*;
    matches!(
        code,
        CUDA_ERROR_INVALID_VALUE
            | CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            | CUDA_ERROR_OUT_OF_MEMORY
            | CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
            | CUDA_ERROR_INVALID_CLUSTER_SIZE
            | CUDA_ERROR_INVALID_RESOURCE_TYPE
            | CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION
            | CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
    )
}

fn unavailable(reason: impl Into<String>, repair: &str) -> GpuError {
    GpuError::Unavailable { reason: reason.into(), repair: repair.to_string() }
}

/// True if the driver library is installed and trusted.
pub(super) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: the call loads and unloads shared libraries by name; `is_found` has checked the files.
    *PRESENT.get_or_init(|| is_found().is_ok() && unsafe { sys::is_culib_present() })
}

/// Refuses a driver library in the working folder, or one that other users can write.
fn is_found() -> std::result::Result<(), String> {
    let names = ["cuda", "nvcuda"].into_iter().flat_map(cudarc::get_lib_name_candidates);
    names.into_iter().try_for_each(|name| found_by_name(Path::new(&name)))
}

/// True if the driver's control node exists.
pub(super) fn has_node() -> bool {
    Path::new("/dev/nvidiactl").exists()
}

/// True if the driver is likely to start.
pub(super) fn seems_to_start() -> bool {
    has_node() && is_present()
}

/// Loads the driver library, once a process.
fn initialise() -> Result<()> {
    if !is_present() {
        if let Err(reason) = is_found() {
            let reason = format!("the driver library is not loaded: {reason}");
            return Err(unavailable(reason, "mend LD_LIBRARY_PATH, or use --device cpu"));
        }
        let (reason, repair) = match has_node() {
            true => (
                "the driver library libcuda.so was not found, though an NVIDIA device node exists",
                "install the driver's compute library (package libcuda1, or run the container with --gpus all)",
            ),
            false => (
                "the driver library libcuda.so was not found and there is no NVIDIA device node",
                "install the NVIDIA driver, or use --device cpu",
            ),
        };
        return Err(unavailable(reason, repair));
    }
    check("starting the driver", result::init())
}

/// CUDA version of the driver, major and minor; none without a driver.
pub(super) fn version() -> Option<(i32, i32)> {
    if !is_present() {
        return None;
    }
    let mut version = 0;
    // SAFETY: `version` is writable; the call needs no initialised driver.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok()?;
    Some((version / 1000, version % 1000 / 10))
}

/// Lowest compute capability of the kernels: reductions within a warp came with Ampere.
const CAPABILITY_MIN: (u32, u32) = (8, 0);

/// Refuses a device that cannot run the kernels.
fn check_capability(name: &str, (major, minor): (u32, u32)) -> Result<()> {
    match (major, minor) >= CAPABILITY_MIN {
        true => Ok(()),
        false => Err(unavailable(
            format!("{name} has compute capability {major}.{minor}, and kernels need 8.0 (Ampere) or later"),
            "use a newer GPU, or --device cpu",
        )),
    }
}

/// Number of devices.
pub(super) fn count() -> Result<usize> {
    initialise().map_err(as_unavailable)?;
    Ok(check("counting devices", result::device::get_count()).map_err(as_unavailable)? as usize)
}

/// The error of a device that cannot be opened; a device that never opened is not lost.
pub(super) fn as_unavailable(error: GpuError) -> GpuError {
    match error {
        GpuError::Driver { code, message, .. } | GpuError::DeviceLost { code, message, .. } => unavailable(
            format!("the driver returned {code}: {message}"),
            "check 'nvidia-smi' and that this user may open /dev/nvidia*",
        ),
        other => other,
    }
}

/// The primary context of a device, released when dropped.
pub(super) struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: a context may be current on any number of threads at once (CUDA driver API, context management).
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

/// Bytes of a fetch of the L2 cache.
const L2_FETCH_BYTES: usize = 32;

/// A device by its number.
fn device(ordinal: usize) -> Result<sys::CUdevice> {
    let devices = count()?;
    if ordinal >= devices {
        return Err(unavailable(
            format!("there is no CUDA device {ordinal}, this host has {devices}"),
            "name one of those that 'warpcube doctor' lists",
        ));
    }
    check("opening a device", result::device::get(ordinal as i32))
}

fn attribute(device: sys::CUdevice, which: Attribute) -> Result<i64> {
    // SAFETY: the handle came from the driver, by `device`.
    let value = unsafe { result::device::get_attribute(device, which) };
    Ok(i64::from(check("asking for a device attribute", value)?))
}

/// Starts the driver; the compute capability of a device that can run the kernels. Creates no context.
pub(super) fn start(ordinal: usize) -> Result<(u32, u32)> {
    let device = device(ordinal)?;
    let name = check("asking for the device's name", result::device::get_name(device))?;
    let capability = compute_capability(device)?;
    check_capability(&name, capability)?;
    Ok(capability)
}

fn compute_capability(device: sys::CUdevice) -> Result<(u32, u32)> {
    let major = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok((major as u32, minor as u32))
}

impl Context {
    pub(super) fn open(ordinal: usize) -> Result<Context> {
        let device = device(ordinal)?;
        // SAFETY: the handle came from the driver.
        let handle = check("creating a context", unsafe { result::primary_ctx::retain(device) })?;
        let context = Context { device, handle };
        context.fetch_little()?;
        Ok(context)
    }

    /// Asks the L2 cache to bring no more than the 32 bytes that a load misses: rows that survive a filter lie apart.
    /// A hint, which a device need not follow. On an H200 (2026-11-28) a query of SSB at scale 20 takes 0.163 ms in the
    /// mean, by the driver's own 64 bytes 0.167 and with 128 bytes 0.175; query 4.1 takes 0.316, 0.335 and 0.379.
    fn fetch_little(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the context is current on this thread.
        let status = unsafe { sys::cuCtxSetLimit(sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY, L2_FETCH_BYTES) };
        if let Err(error) = check("setting the bytes that the L2 cache fetches", status.result()) {
            tracing::info!(%error, "the L2 cache fetches what it does by default");
        }
        Ok(())
    }

    /// Makes the context current on this thread.
    pub(super) fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained for as long as `self` lives.
        check("binding the context", unsafe { result::ctx::set_current(self.handle) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, released once.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Largest parameter struct of a kernel in bytes, by the version of driver or compiler: CUDA 12.1 raised the limit.
pub(super) fn params_bytes_max(version: Option<(i32, i32)>) -> usize {
    match version {
        Some(version) if version < (12, 1) => 4_096,
        _ => 32_764,
    }
}

/// Facts about a device.
pub(super) fn describe(context: &Context) -> Result<DeviceInfo> {
    use Attribute::*;
    let (attribute, version) = (|which| attribute(context.device, which), version());
    // SAFETY: the device handle is valid.
    let memory = check("asking for memory", unsafe { result::device::total_mem(context.device) })?;
    let clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)? as f64;
    let bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)? as f64;
    Ok(DeviceInfo {
        name: check("asking for the device's name", result::device::get_name(context.device))?,
        emulated: false,
        runs_kernels: true,
        compute_capability: compute_capability(context.device)?,
        multiprocessors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        shared_memory_per_block: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        shared_memory_per_multiprocessor: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)? as usize,
        params_bytes_max: params_bytes_max(version),
        l2_bytes: attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        memory_bytes: memory as u64,
        // Two transfers a clock.
        peak_bandwidth: clock_khz * 1e3 * 2.0 * bus_bits / 8.0,
        driver: version.map_or_else(String::new, |(major, minor)| format!("{major}.{minor}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_take_fewer_parameters_before_cuda_12_1() {
        let known = [(12, 0), (12, 1), (13, 0)].map(|version| params_bytes_max(Some(version)));
        assert_eq!((known, params_bytes_max(None)), ([4_096, 32_764, 32_764], 32_764));
    }

    #[test]
    fn a_refused_launch_is_not_a_lost_device() {
        use CUresult::*;
        let error = |code, launch| to_error("launching kernel 'k'", code, "words".into(), launch);
        for code in [CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_OUT_OF_MEMORY] {
            let refused = error(code, true);
            assert!(matches!(&refused, GpuError::LaunchRefused { .. }) && !refused.is_device_lost(), "{refused}");
            let text = format!("GPU-010 launching kernel 'k' was refused by the device: {code:?}: words");
            assert_eq!(refused.to_string(), text);
            // For another call the same status is an error of that call.
            assert!(matches!(error(code, false), GpuError::Driver { .. }));
        }
        assert!(matches!(error(CUDA_ERROR_INVALID_HANDLE, true), GpuError::Driver { .. }));
    }

    #[test]
    fn statuses_that_end_a_context_lose_the_device() {
        use CUresult::*;
        let fatal = [
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_NVLINK_UNCORRECTABLE,
            CUDA_ERROR_CONTAINED,
            CUDA_ERROR_UNKNOWN,
            CUDA_ERROR_EXTERNAL_DEVICE,
            CUDA_ERROR_DEVICE_UNAVAILABLE,
            CUDA_ERROR_MPS_CLIENT_TERMINATED,
            CUDA_ERROR_INVALID_CONTEXT,
        ];
        for code in fatal {
            for launch in [true, false] {
                assert!(to_error("running kernels", code, "words".into(), launch).is_device_lost(), "{code:?}");
            }
            // A device that never opened is not lost.
            let error = as_unavailable(to_error("starting the driver", code, "words".into(), false));
            assert!(matches!(&error, GpuError::Unavailable { .. }), "{error}");
        }
        for code in [CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_READY, CUDA_ERROR_INVALID_IMAGE] {
            assert!(!to_error("an operation", code, "words".into(), false).is_device_lost(), "{code:?}");
        }
    }

    #[test]
    fn devices_before_ampere_are_refused_with_the_reason() {
        assert!(check_capability("NVIDIA H200", (9, 0)).is_ok());
        assert!(check_capability("NVIDIA A100", (8, 0)).is_ok());
        let error = check_capability("Tesla T4", (7, 5)).unwrap_err().to_string();
        assert!(error.contains("Tesla T4 has compute capability 7.5") && error.contains("--device cpu"), "{error}");
    }
}
