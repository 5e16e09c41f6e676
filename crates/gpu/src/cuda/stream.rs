//! One CUDA stream.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::CudaModule;
use super::driver::{Context, check, check_launch};
use super::event::CudaEvent;
use super::recording::CudaRecording;
use crate::backend::{BackendEvent, BackendModule, BackendRecording, BackendStream, LaunchShape, WorkStep};
use crate::error::{GpuError, Result};

pub(super) struct CudaStream {
    pub(super) context: Arc<Context>,
    pub(super) handle: sys::CUstream,
}

// SAFETY: stream handles may be used from any thread with the context current; `&mut self` serialises the uses.
unsafe impl Send for CudaStream {}

impl CudaStream {
    pub(super) fn new(context: Arc<Context>) -> Result<CudaStream> {
        context.bind()?;
        let handle = check("creating a stream", result::stream::create(result::stream::StreamKind::NonBlocking))?;
        Ok(CudaStream { context, handle })
    }
}

impl BackendStream for CudaStream {
    unsafe fn upload(&mut self, target: u64, source: *const u8, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the stream is live and its context current; the caller promises the ranges.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(target, source.cast(), bytes, self.handle) };
        check("copying to the device", status.result())
    }

    unsafe fn download(&mut self, target: *mut u8, source: u64, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: as for `upload`.
        let status = unsafe { sys::cuMemcpyDtoHAsync_v2(target.cast(), source, bytes, self.handle) };
        check("copying from the device", status.result())
    }

    unsafe fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the stream is live and its context current; the caller promises both ranges.
        let status = unsafe { sys::cuMemcpyDtoDAsync_v2(target, source, bytes, self.handle) };
        check("copying on the device", status.result())
    }

    unsafe fn fill(&mut self, target: u64, value: u8, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the stream is live and its context current; the caller promises the range.
        let status = unsafe { sys::cuMemsetD8Async(target, value, bytes, self.handle) };
        check("filling device memory", status.result())
    }

    /// A kernel launched `early` starts by programmatic dependent launch.
    unsafe fn launch(
        &mut self,
        module: &dyn BackendModule,
        kernel: &str,
        shape: LaunchShape,
        params: &[u8],
        early: bool,
    ) -> Result<()> {
        let module = (module as &dyn Any)
            .downcast_ref::<CudaModule>()
            .ok_or_else(|| GpuError::Contract(format!("kernel '{kernel}' is not a CUDA kernel")))?;
        let function = module.function(kernel)?;
        self.context.bind()?;
        let mut pointer = params.as_ptr().cast_mut().cast::<std::ffi::c_void>();
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: shape.grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: shape.block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shape.shared_bytes,
            hStream: self.handle,
            attrs: &mut attribute,
            numAttrs: u32::from(early && module.can_start_early),
        };
        // SAFETY: stream and function are live, their context is current. The call reads the configuration, its one
        // attribute and the one parameter, a struct passed by value, all of which live until it returns. The caller
        // promises the struct's size and addresses.
        let status = unsafe { sys::cuLaunchKernelEx(&config, function.handle, &mut pointer, std::ptr::null_mut()) };
        check_launch(&format!("launching kernel '{kernel}' as {shape:?}"), status.result())
    }

    unsafe fn record(&mut self, steps: &[WorkStep], _: u64) -> Result<Box<dyn BackendRecording>> {
        Ok(Box::new(CudaRecording::new(self.context.clone(), steps)?))
    }

    unsafe fn replay(&mut self, recording: &mut dyn BackendRecording, steps: &[WorkStep], host: u64) -> Result<()> {
        let recording = (recording as &mut dyn Any)
            .downcast_mut::<CudaRecording>()
            .ok_or_else(|| GpuError::Contract("the recording belongs to another device".into()))?;
        let handle = self.handle;
        // SAFETY: the handle is this stream's; the caller promises that the steps are valid and the recording is not in
        // flight.
        unsafe { recording.run((self, handle), steps, host) }
    }

    fn record_event(&mut self) -> Result<Arc<dyn BackendEvent>> {
        let event = CudaEvent::new(self.context.clone(), false)?;
        // SAFETY: event and stream are live and of the context that `CudaEvent::new` has made current.
        check("recording an event", unsafe { result::event::record(event.handle, self.handle) })?;
        Ok(Arc::new(event))
    }

    fn wait_event(&mut self, event: &dyn BackendEvent) -> Result<()> {
        let event = (event as &dyn Any)
            .downcast_ref::<CudaEvent>()
            .ok_or_else(|| GpuError::Contract("the event belongs to another device".into()))?;
        self.context.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are live and of one context, which is current: `Stream::wait` refuses the event of
        // another device.
        check("waiting for an event", unsafe { result::stream::wait_event(self.handle, event.handle, flags) })
    }

    fn synchronize(&mut self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the stream is live.
        check("running kernels", unsafe { result::stream::synchronize(self.handle) })
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once, destroyed once, with its context current. The driver releases a stream whose work
            // has not ended when it has (CUDA driver API, `cuStreamDestroy`).
            let _ = unsafe { result::stream::destroy(self.handle) };
        }
    }
}
