//! Work of a device, timed by its own events.

use warpcube_gpu::{Device, DeviceBuffer, GpuError, Stream, Work};

use crate::stats::{Sample, repeat};

/// Records work once and times its runs; `go_on` is asked before each.
///
/// # Errors
/// What `describe` and `go_on` say; a device that fails.
pub(crate) fn timed<E: From<GpuError>>(
    device: &Device,
    stream: &mut Stream,
    runs: u32,
    buffers: &[&DeviceBuffer],
    mut go_on: impl FnMut() -> Result<(), E>,
    describe: impl FnOnce(&mut Work) -> Result<(), E>,
) -> Result<Sample, E> {
    let mut work = Work::new(device);
    let start = work.mark();
    describe(&mut work)?;
    let end = work.mark();
    let mut recording = stream.prepare(work)?;
    repeat(runs, || {
        go_on()?;
        stream.run(&mut recording, buffers)?;
        Ok(recording.elapsed_ms(start, end)?)
    })
}
