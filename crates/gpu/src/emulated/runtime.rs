//! Binding of the library that runs grids of fibers (`kernels/emulator.cc`).

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

use libloading::Library;

use super::{EmulatorOptions, LaneOrder, RESIDENT_BLOCKS};
use crate::backend::LaunchShape;
use crate::error::{GpuError, Result};

/// Room for an error message.
const MESSAGE_BYTES: usize = 4096;

/// The bit that turns an address of this process into an unmapped one.
const NOWHERE: u64 = 1 << 50;

/// A kernel's entry; the argument is the address of its parameter struct.
pub(super) type Entry = unsafe extern "C" fn(*const c_void);

type Run = unsafe extern "C" fn(*const Request, *mut c_char, usize) -> i32;

/// Mirrors `wc_emu_request` of `kernels/emulator_runtime.h`.
#[repr(C)]
struct Request {
    entry: Entry,
    params: *const c_void,
    hidden: *const c_void,
    kernel: *const c_char,
    seed: u64,
    time_limit_ms: u64,
    grid: u32,
    block: u32,
    shared_bytes: u32,
    order: u32,
    resident_blocks: u32,
    params_bytes: u32,
}

/// Parameters of a launch, aligned as a struct with 16-byte members is.
pub(super) struct Arguments {
    /// The struct.
    pub(super) params: Vec<u128>,
    /// For a kernel launched early: the struct that its threads read until they wait.
    pub(super) hidden: Option<Vec<u128>>,
}

impl Arguments {
    /// The struct of a kernel that is not launched early.
    pub(super) fn new(params: &[u8]) -> Arguments {
        let mut copy = vec![0u128; params.len().div_ceil(size_of::<u128>()).max(1)];
        bytemuck::cast_slice_mut::<u128, u8>(&mut copy)[..params.len()].copy_from_slice(params);
        Arguments { params: copy, hidden: None }
    }

    /// The struct of a kernel launched early: until a thread waits, every word that `is_address` finds to be a device
    /// address is an unmapped one.
    pub(super) fn hide(mut self, is_address: impl Fn(u64) -> bool) -> Arguments {
        let mut hidden = self.params.clone();
        let words = bytemuck::cast_slice_mut::<u128, u64>(&mut hidden);
        words.iter_mut().filter(|word| is_address(**word)).for_each(|word| *word ^= NOWHERE);
        self.hidden = Some(hidden);
        self
    }
}

/// The loaded library.
pub(super) struct Runtime {
    run: Run,
    _library: Library,
}

impl Runtime {
    pub(super) fn load(path: &Path) -> Result<Runtime> {
        let unusable = |error: libloading::Error| GpuError::Unavailable {
            reason: format!("the emulated device's library {} cannot be loaded: {error}", path.display()),
            repair: "delete that file; with the address sanitizer start with LD_PRELOAD=$(g++ \
                     -print-file-name=libasan.so)"
                .into(),
        };
        // SAFETY: the library was built from this crate's source into a folder that only this user can write; its
        // initialisers have no preconditions.
        let library = unsafe { Library::new(path) }.map_err(unusable)?;
        // SAFETY: the symbol has this signature in the source, whose hash is part of the file's name.
        let run = *unsafe { library.get::<Run>(c"wc_emu_run") }.map_err(unusable)?;
        Ok(Runtime { run, _library: library })
    }

    /// Runs a kernel to its end.
    ///
    /// # Safety
    /// `entry` belongs to a loaded module linked to this library; `arguments` hold a parameter struct of its kernel,
    /// whose addresses are valid for the kernel's accesses.
    pub(super) unsafe fn run(
        &self,
        entry: Entry,
        kernel: &str,
        shape: LaunchShape,
        arguments: &Arguments,
        options: &EmulatorOptions,
    ) -> Result<()> {
        let kernel = CString::new(kernel).map_err(|_| GpuError::Contract("a kernel's name holds a zero".into()))?;
        let (order, seed) = match options.order {
            LaneOrder::Forward => (0, 0),
            LaneOrder::Reversed => (1, 0),
            LaneOrder::Seeded(seed) => (2, seed),
        };
        let request = Request {
            entry,
            params: arguments.params.as_ptr().cast(),
            hidden: arguments.hidden.as_ref().map_or(std::ptr::null(), |hidden| hidden.as_ptr().cast()),
            kernel: kernel.as_ptr(),
            seed,
            time_limit_ms: options.time_limit.as_millis() as u64,
            grid: shape.grid,
            block: shape.block,
            shared_bytes: shape.shared_bytes,
            order,
            resident_blocks: RESIDENT_BLOCKS,
            params_bytes: size_of_val(arguments.params.as_slice()) as u32,
        };
        let mut message: [c_char; MESSAGE_BYTES] = [0; MESSAGE_BYTES];
        // SAFETY: the request and its pointers are valid until the call returns, the message has the given room, and
        // the caller promises entry and parameters.
        let status = unsafe { (self.run)(&request, message.as_mut_ptr(), MESSAGE_BYTES) };
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library ends the message with a zero byte within its room.
        let reason = unsafe { CStr::from_ptr(message.as_ptr()) };
        Err(GpuError::Emulator(reason.to_string_lossy().into_owned()))
    }
}
