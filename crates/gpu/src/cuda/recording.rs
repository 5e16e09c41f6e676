//! Recorded work: submitted step by step the first time, then a CUDA graph, captured from a stream once and launched by
//! one call.
//!
//! Making a graph takes longer than submitting its steps, and work that never runs again, such as that of a statement
//! with literals of its own, does not pay it back. Each mark is an event, recorded by a node of the graph, so its time
//! can be read after every run. Source: CUDA driver API, stream management (capture) and graph management.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::{Context, check, check_launch};
use super::event::CudaEvent;
use crate::backend::{BackendRecording, BackendStream, WorkStep, submit_steps};
use crate::error::{GpuError, Result};

pub(super) struct CudaRecording {
    context: Arc<Context>,
    /// Null until the second run.
    graph: sys::CUgraphExec,
    has_run: bool,
    events: Vec<CudaEvent>,
}

// SAFETY: graph and event handles may be used from any thread with the context current; `&mut self` serialises the
// launches.
unsafe impl Send for CudaRecording {}

impl CudaRecording {
    /// A recording of these steps.
    pub(super) fn new(context: Arc<Context>, steps: &[WorkStep]) -> Result<CudaRecording> {
        let marks = steps.iter().filter(|step| matches!(step, WorkStep::Mark));
        let events = marks.map(|_| CudaEvent::new(context.clone(), true)).collect::<Result<_>>()?;
        Ok(CudaRecording { context, graph: std::ptr::null_mut(), has_run: false, events })
    }

    /// Submits the steps of the recording to an idle stream, given with its handle.
    ///
    /// # Safety
    /// As for [`BackendStream::replay`](crate::backend::BackendStream::replay).
    pub(super) unsafe fn run<S: BackendStream>(
        &mut self,
        (stream, handle): (&mut S, sys::CUstream),
        steps: &[WorkStep],
        host: u64,
    ) -> Result<()> {
        self.context.bind()?;
        if !std::mem::replace(&mut self.has_run, true) {
            let mut events = self.events.iter();
            let mark = |_: &mut S| {
                let event = events.next().ok_or_else(|| GpuError::Contract("more marks than recorded".into()))?;
                // SAFETY: event and stream are live and of one context.
                check("recording an event", unsafe { result::event::record(event.handle, handle) })
            };
            // SAFETY: by the caller's promise.
            return unsafe { submit_steps(stream, steps, host, mark) };
        }
        if self.graph.is_null() {
            // SAFETY: as above; capturing runs no step.
            unsafe { self.capture((stream, handle), steps, host) }?;
        }
        // SAFETY: graph and stream are live and of one context, which is current; modules of the graph's kernels live
        // as long as the recording. The caller promises addresses and that no launch of the graph is in flight.
        check_launch("launching recorded work", unsafe { sys::cuGraphLaunch(self.graph, handle) }.result())
    }

    /// Captures the steps on an idle stream.
    ///
    /// # Safety
    /// As for [`CudaRecording::run`].
    unsafe fn capture<S: BackendStream>(
        &mut self,
        (stream, handle): (&mut S, sys::CUstream),
        steps: &[WorkStep],
        host: u64,
    ) -> Result<()> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is live.
        check("recording work", unsafe { sys::cuStreamBeginCapture_v2(handle, mode) }.result())?;
        let mut events = self.events.iter();
        let mark = |_: &mut S| {
            let event = events.next().ok_or_else(|| GpuError::Contract("more marks than recorded".into()))?;
            let flag = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
            // SAFETY: event and stream are live and of one context.
            let status = unsafe { sys::cuEventRecordWithFlags(event.handle, handle, flag) };
            check("recording an event", status.result())
        };
        // SAFETY: calls on a capturing stream touch no memory; the caller promises the rest.
        let captured = unsafe { submit_steps(stream, steps, host, mark) };
        let mut graph = std::ptr::null_mut();
        // A capture that failed is ended too: the stream would be unusable.
        // SAFETY: the stream is capturing and `graph` is writable.
        let ended = check("recording work", unsafe { sys::cuStreamEndCapture(handle, &mut graph) }.result());
        let made = captured.and(ended).and_then(|()| {
            // SAFETY: `graph` is the graph just captured and the handle is writable.
            let status = unsafe { sys::cuGraphInstantiateWithFlags(&mut self.graph, graph, 0) };
            check_launch("preparing recorded work", status.result())
        });
        if !graph.is_null() {
            // SAFETY: made by the driver above, destroyed once; the executable graph does not need it.
            let _ = unsafe { sys::cuGraphDestroy(graph) };
        }
        made
    }
}

impl BackendRecording for CudaRecording {
    fn elapsed_ms(&self, from: usize, to: usize) -> Result<f64> {
        let event = |index: usize| {
            self.events
                .get(index)
                .map(|event| event.handle)
                .ok_or_else(|| GpuError::Contract("the recording has no such mark".into()))
        };
        let (from, to) = (event(from)?, event(to)?);
        self.context.bind()?;
        // SAFETY: both events are live; for one that no launch has recorded, or whose launch runs, the call gives a
        // status.
        let elapsed = unsafe { result::event::elapsed(from, to) };
        Ok(f64::from(check("reading an event", elapsed)?))
    }
}

impl Drop for CudaRecording {
    fn drop(&mut self) {
        if !self.graph.is_null() && self.context.bind().is_ok() {
            // SAFETY: made once, destroyed once, with its context current. The driver frees a graph in flight after its
            // end (CUDA driver API, `cuGraphExecDestroy`).
            let _ = unsafe { sys::cuGraphExecDestroy(self.graph) };
        }
    }
}
