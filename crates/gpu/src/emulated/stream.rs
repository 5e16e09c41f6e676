//! A stream of the emulated device: a submission returns when its work is done, so an event is done once recorded.

use std::any::Any;
use std::sync::Arc;

use super::faults::Operation;
use super::module::EmulatedModule;
use super::runtime::Arguments;
use super::shared::{Shared, lost};
use crate::backend::{BackendEvent, BackendModule, BackendRecording, BackendStream, LaunchShape, Submitted, WorkStep};
use crate::error::{GpuError, Result};

pub(super) struct EmulatedStream {
    pub(super) shared: Arc<Shared>,
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
        // SAFETY: `Memory::write` finds the target range within one buffer; the caller promises that no other stream
        // touches it and that the source is readable.
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
        // SAFETY: `Memory::read` finds the source range within one buffer; the other range is new.
        let out = || unsafe { std::ptr::copy_nonoverlapping(source as *const u8, copied.as_mut_ptr(), bytes) };
        self.shared.memory.read("a copy", source, bytes, out)?;
        // SAFETY: as for `upload`.
        let into = || unsafe { std::ptr::copy_nonoverlapping(copied.as_ptr(), target as *mut u8, bytes) };
        self.shared.memory.write("a copy", target, bytes, into)
    }

    unsafe fn fill(&mut self, target: u64, value: u8, bytes: usize) -> Result<()> {
        // SAFETY: `Memory::write` finds the range within one buffer.
        let fill = || unsafe { std::ptr::write_bytes(target as *mut u8, value, bytes) };
        self.shared.memory.write("a fill", target, bytes, fill)
    }

    /// A kernel launched `early` must call `wc_wait_previous`, though earlier work is done here.
    unsafe fn launch(
        &mut self,
        module: &dyn BackendModule,
        kernel: &str,
        shape: LaunchShape,
        params: &[u8],
        early: bool,
    ) -> Result<()> {
        let faults = &self.shared.options.faults;
        if faults.lost_launch.is_due() {
            return Err(lost(format!("kernel '{kernel}'")));
        }
        if faults.refused_launch.is_due() {
            return Err(GpuError::LaunchRefused {
                operation: format!("launching kernel '{kernel}' as {shape:?}"),
                code: "EMULATED_REFUSAL".into(),
                message: "an injected refusal".into(),
            });
        }
        faults.hold(Operation::Launch, &format!("kernel '{kernel}'"), self.shared.options.time_limit)?;
        let module = (module as &dyn Any)
            .downcast_ref::<EmulatedModule>()
            .ok_or_else(|| GpuError::Contract(format!("kernel '{kernel}' is no kernel of the emulated device")))?;
        let found = module.kernel(kernel)?;
        check_params(kernel, found.params_bytes, params)?;
        let mut arguments = Arguments::new(params);
        if early {
            arguments = arguments.hide(|word| self.shared.memory.holds(word));
        }
        let runtime = self.shared.toolchain.runtime();
        // SAFETY: the entry belongs to a loaded module linked to this runtime; the struct has the kernel's size; the
        // caller promises its content.
        unsafe { runtime.run(found.entry, kernel, shape, &arguments, &self.shared.options) }?;
        if faults.stray_launch.is_due() {
            self.shared.memory.damage_redzones();
        }
        self.shared.memory.check_guards(&format!("kernel '{kernel}'"))
    }

    unsafe fn record(&mut self, _steps: &[WorkStep], _host: u64) -> Result<Box<dyn BackendRecording>> {
        Ok(Box::new(Submitted::default()))
    }

    unsafe fn replay(&mut self, recording: &mut dyn BackendRecording, steps: &[WorkStep], base: u64) -> Result<()> {
        // SAFETY: the caller promises it for every step.
        unsafe { Submitted::replay(recording, self, steps, base) }
    }

    fn record_event(&mut self) -> Result<Arc<dyn BackendEvent>> {
        Ok(Arc::new(EmulatedEvent { shared: self.shared.clone() }))
    }

    fn wait_event(&mut self, event: &dyn BackendEvent) -> Result<()> {
        event.synchronize()
    }

    fn synchronize(&mut self) -> Result<()> {
        self.shared.wait("a synchronisation")
    }
}

/// A point in the work of a stream, all of which is done.
struct EmulatedEvent {
    shared: Arc<Shared>,
}

impl BackendEvent for EmulatedEvent {
    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.wait("waiting for an event")
    }
}
