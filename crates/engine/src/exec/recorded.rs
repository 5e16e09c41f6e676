//! The phases of a run over one arena, recorded so that a repeat is one call.

use std::time::Duration;

use warpcube_gpu::{Device, DeviceBuffer, Recording, Stream, Work};

use crate::arena::Arena;
use crate::error::Result;
use crate::exec::phase::{HostOutputs, Phase};

/// A recording with what to read of it.
pub(crate) struct Recorded {
    recording: Recording,
    /// After the upload, then after each launch group if `times_launches`, else after the last.
    got: HostOutputs,
    times_launches: bool,
    /// The first launch group of a run that goes on.
    from: Option<usize>,
}

impl Recorded {
    /// Records phases over an arena.
    pub(crate) fn new(
        phases: &[Phase],
        (layout, arena): (&Arena, &DeviceBuffer),
        device: &Device,
        stream: &mut Stream,
        (times_launches, from): (bool, Option<usize>),
    ) -> Result<Recorded> {
        let (mut work, mut got) = (Work::new(device), HostOutputs::default());
        for phase in phases {
            phase.record(&mut work, (layout, arena), &mut got)?;
        }
        Ok(Recorded { recording: stream.prepare(work)?, got, times_launches, from })
    }

    /// Whether this is a recording over `arena`, with or without a time for each launch group.
    pub(crate) fn is_for(&self, arena: &DeviceBuffer, times_launches: bool) -> bool {
        self.times_launches == times_launches && self.recording.is_on(&[arena])
    }

    /// Whether the next run may replay it: it runs a fragment from its start.
    pub(crate) fn is_whole(&self) -> bool {
        self.from.is_none()
    }

    /// Runs all and waits for it.
    pub(crate) fn run(&mut self, stream: &mut Stream, arena: &DeviceBuffer) -> Result<()> {
        Ok(stream.run(&mut self.recording, &[arena])?)
    }

    /// What the host gets: control and groups, or the compacted groups.
    pub(crate) fn outputs(&self) -> Result<Vec<&[u8]>> {
        Ok(self.got.outputs.iter().map(|output| self.recording.output(output)).collect::<Result<_, _>>()?)
    }

    /// Time on the device of the last run.
    pub(crate) fn device_time(&self) -> Result<Duration> {
        self.between(0, self.got.marks.len() - 1)
    }

    /// Time of one launch of the last run, if launches were timed and it was part of that.
    pub(crate) fn launch_time(&self, group: usize) -> Result<Option<Duration>> {
        let group = group.checked_sub(self.from.unwrap_or(0)).filter(|_| self.times_launches);
        group.map(|group| self.between(group, group + 1)).transpose()
    }

    fn between(&self, from: usize, to: usize) -> Result<Duration> {
        let milliseconds = self.recording.elapsed_ms(self.got.marks[from], self.got.marks[to])?;
        Ok(Duration::from_secs_f64(milliseconds.max(0.0) / 1e3))
    }
}
