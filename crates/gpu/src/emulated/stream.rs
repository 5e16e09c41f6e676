//! A stream of the emulated device: all work is done when its submission returns.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::backend::{Shared, lost};
use super::module::EmulatedModule;
use super::runtime::Arguments;
use crate::backend::{BackendModule, BackendRecording, BackendStream, LaunchShape, WorkStep};
use crate::error::{GpuError, Result};

pub(super) struct EmulatedStream {
    shared: Arc<Shared>,
}

impl EmulatedStream {
    pub(super) fn new(shared: Arc<Shared>) -> EmulatedStream {
        EmulatedStream { shared }
    }
}

/// Refuses parameters whose size is not that of the kernel's struct.
fn check_params(kernel: &str, expected: usize, params: &[u8]) -> Result<()> {
    // An empty struct has one byte in C++.
    let given = params.len().max(1);
    if given != expected {
        return Err(GpuError::Emulator(format!(
            "kernel '{kernel}': its parameter struct has {expected} bytes, the launcher gave {given}"
        )));
    }
    Ok(())
}

impl BackendStream for EmulatedStream {
    unsafe fn upload(&mut self, target: u64, source: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: the target range is found within one buffer of this device, which no other stream touches, and the
        // caller vouches for the source.
        let copy = || unsafe { std::ptr::copy_nonoverlapping(source, target as *mut u8, bytes) };
        self.shared.memory.write("an upload", target, bytes, copy)
    }

    unsafe fn download(&mut self, target: *mut u8, source: u64, bytes: usize) -> Result<()> {
        // SAFETY: as for `upload`, with the roles exchanged.
        let copy = || unsafe { std::ptr::copy_nonoverlapping(source as *const u8, target, bytes) };
        self.shared.memory.read("a download", source, bytes, copy)
    }

    unsafe fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<()> {
        let mut copied = vec![0u8; bytes];
        // SAFETY: the source range is found within a buffer of this device; the other one is new.
        let out = || unsafe { std::ptr::copy_nonoverlapping(source as *const u8, copied.as_mut_ptr(), bytes) };
        self.shared.memory.read("a copy", source, bytes, out)?;
        // SAFETY: as for `upload`.
        let into = || unsafe { std::ptr::copy_nonoverlapping(copied.as_ptr(), target as *mut u8, bytes) };
        self.shared.memory.write("a copy", target, bytes, into)
    }

    unsafe fn fill(&mut self, target: u64, value: u8, bytes: usize) -> Result<()> {
        // SAFETY: the range is found within one buffer of this device.
        let fill = || unsafe { std::ptr::write_bytes(target as *mut u8, value, bytes) };
        self.shared.memory.write("a fill", target, bytes, fill)
    }

    /// A kernel that is launched `early` has to wait for those before it, though here they are done.
    unsafe fn launch(
        &mut self,
        module: &dyn BackendModule,
        kernel: &str,
        shape: LaunchShape,
        params: &[u8],
        early: bool,
    ) -> Result<()> {
        if self.shared.options.faults.launch_fails() {
            return Err(lost(format!("kernel '{kernel}'")));
        }
        if self.shared.options.faults.launch_is_refused() {
            return Err(GpuError::LaunchRefused {
                operation: format!("launching kernel '{kernel}' as {shape:?}"),
                code: "EMULATED_REFUSAL".into(),
                message: "a refusal asked for by a test".into(),
            });
        }
        self.shared.options.faults.hold(kernel, self.shared.options.time_limit)?;
        let module = module
            .as_any()
            .downcast_ref::<EmulatedModule>()
            .ok_or_else(|| GpuError::Contract(format!("kernel '{kernel}' is not of the emulated device")))?;
        let found = module.kernel(kernel)?;
        check_params(kernel, found.params_bytes, params)?;
        let mut arguments = Arguments::new(params);
        if early {
            arguments = arguments.hide(|word| self.shared.memory.holds(word));
        }
        let runtime = self.shared.toolchain.runtime();
        // SAFETY: the entry is of a loaded module, linked to this runtime when it was built; the struct has the size
        // the kernel expects; the caller vouches for its content.
        unsafe { runtime.run(found.entry, kernel, shape, &arguments, &self.shared.options) }?;
        if self.shared.options.faults.launch_strays() {
            self.shared.memory.damage_redzones();
        }
        self.shared.memory.check_guards(&format!("kernel '{kernel}'"))
    }

    unsafe fn record(&mut self, _steps: &[WorkStep], _host: u64) -> Result<Box<dyn BackendRecording>> {
        Ok(Box::new(EmulatedRecording { marks: Vec::new() }))
    }

    unsafe fn replay(&mut self, recording: &mut dyn BackendRecording, steps: &[WorkStep], base: u64) -> Result<()> {
        let recording = recording
            .as_any_mut()
            .downcast_mut::<EmulatedRecording>()
            .ok_or_else(|| GpuError::Contract("a recording that is not of the emulated device".into()))?;
        recording.marks.clear();
        for step in steps {
            // SAFETY: the caller promises for every step what its method asks for.
            unsafe {
                match step {
                    WorkStep::Upload { target, host } => {
                        self.upload(*target, (base + host.start as u64) as *const u8, host.len())?;
                    }
                    WorkStep::Download { source, host } => {
                        self.download((base + host.start as u64) as *mut u8, *source, host.len())?;
                    }
                    WorkStep::Fill { target, value, bytes } => self.fill(*target, *value, *bytes)?,
                    WorkStep::Launch { module, kernel, shape, params, early } => {
                        self.launch(module.as_ref(), kernel, *shape, params, *early)?;
                    }
                    WorkStep::Mark => recording.marks.push(Instant::now()),
                }
            }
        }
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool> {
        Ok(true)
    }

    fn synchronize(&mut self) -> Result<()> {
        self.shared.memory.check_guards("a synchronisation")
    }
}

/// Steps are kept by the caller; what is left are the times of the last replay.
struct EmulatedRecording {
    marks: Vec<Instant>,
}

impl BackendRecording for EmulatedRecording {
    fn elapsed_ms(&self, from: usize, to: usize) -> Result<f64> {
        match (self.marks.get(from), self.marks.get(to)) {
            (Some(from), Some(to)) => Ok(to.saturating_duration_since(*from).as_secs_f64() * 1e3),
            _ => Err(GpuError::Contract("a mark that was not made".into())),
        }
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
