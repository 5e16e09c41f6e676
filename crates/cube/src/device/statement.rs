//! One aggregation on the device from upload to cells, for algorithms whose last step is [`CellOutput`].

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use warpcube_column::{Pinned, Relation};
use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, Mark, Recording, Stream, Work, size_class};

use super::cells::{CellOutput, DeviceCells, FilledCells};
use super::error::DeviceError;
use super::keys::ResidentKeys;
use super::resident::{ResidentFacts, value_buffers};
use super::workspace::Workspace;

/// An aggregation that was recorded: it runs any number of times over the facts as they are.
pub trait RecordedRun {
    /// Runs all kernels over the facts and gives the milliseconds between events in front of and behind them.
    ///
    /// # Errors
    /// A device that fails.
    fn run(&mut self) -> Result<f64, DeviceError>;

    /// The filled targets that the last run found.
    ///
    /// # Errors
    /// A device that fails.
    fn cells(&mut self) -> Result<DeviceCells, DeviceError>;

    /// Choices of the run that may differ from the request, in words; empty without any.
    fn used(&self) -> String;
}

/// The launches of an algorithm, planned but for the memory.
pub(super) trait Steps {
    /// The data that the host uploads, and the bytes of all parts.
    fn workspace(&self) -> &Workspace;

    /// The last step.
    fn output(&self) -> &CellOutput;

    /// Launches all kernels before the last step.
    fn launch(&self, queue: &mut impl Queue, buffers: &StatementBuffers) -> Result<(), DeviceError>;

    /// As [`RecordedRun::used`].
    fn used(&self) -> String {
        String::new()
    }
}

/// The memory of a statement.
pub(super) struct StatementBuffers {
    pub(super) device: Device,
    /// The workspace.
    pub(super) buffer: DeviceBuffer,
    /// Those of each segment.
    pub(super) keys: Vec<Arc<ResidentKeys>>,
    pinned: Pinned,
}

impl StatementBuffers {
    /// Values and validity of the column in each segment.
    pub(super) fn relations(&self) -> &[Relation] {
        &self.pinned.tables
    }

    /// All device memory that kernels use.
    fn all(&self) -> Vec<&DeviceBuffer> {
        let keys = self.keys.iter().flat_map(|keys| keys.buffers());
        [&self.buffer].into_iter().chain(keys).chain(self.relations().iter().flat_map(value_buffers)).collect()
    }
}

/// A planned algorithm with its memory.
pub(super) struct Statement<S> {
    steps: S,
    buffers: StatementBuffers,
}

impl<S: Steps> Statement<S> {
    /// Loads a column, makes room, and plans the steps from the values of each segment and the bytes of device memory
    /// that are left beside them. `plan` is asked once for the bytes and once more when they are there.
    pub(super) fn new(
        facts: &ResidentFacts,
        column: usize,
        cancelled: &Arc<AtomicBool>,
        plan: impl Fn(&[Relation], u64) -> S,
    ) -> Result<Statement<S>, DeviceError> {
        let keys = facts.keys(cancelled)?;
        let (device, available) = (facts.device().clone(), Cell::new(0));
        let bytes = |tables: &[Relation]| {
            available.set(device.pool().available());
            size_class(plan(tables, available.get()).workspace().bytes()) as u64
        };
        let pinned = facts.admitted(column, cancelled, bytes)?;
        let steps = plan(&pinned.tables, available.get());
        let buffer = device.buffer(steps.workspace().bytes(), "sums of a cube")?;
        Ok(Statement { steps, buffers: StatementBuffers { device, buffer, keys, pinned } })
    }

    fn launch(&self, queue: &mut impl Queue) -> Result<(), DeviceError> {
        self.steps.launch(queue, &self.buffers)?;
        self.steps.output().launch(queue, &self.buffers.buffer)
    }

    fn read(&self, stream: &mut Stream) -> Result<FilledCells, DeviceError> {
        self.steps.output().read(stream, &self.buffers.device, &self.buffers.buffer)
    }

    fn upload(&self, stream: &mut Stream) -> Result<(), DeviceError> {
        Ok(stream.upload(&self.buffers.buffer, 0, self.steps.workspace().uploaded())?)
    }
}

/// A statement of any algorithm.
pub(super) trait Prepared {
    /// Runs it once and gives the filled targets.
    ///
    /// # Errors
    /// A device that fails.
    fn cells(&self, facts: &ResidentFacts) -> Result<FilledCells, DeviceError>;

    /// Records it.
    ///
    /// # Errors
    /// A device that fails.
    fn recorded(self: Box<Self>) -> Result<Box<dyn RecordedRun>, DeviceError>;
}

impl<S: Steps + 'static> Prepared for Statement<S> {
    fn cells(&self, facts: &ResidentFacts) -> Result<FilledCells, DeviceError> {
        let mut stream = facts.stream()?;
        self.upload(&mut stream)?;
        self.launch(&mut stream)?;
        let cells = self.read(&mut stream)?;
        facts.keep(stream);
        Ok(cells)
    }

    fn recorded(self: Box<Self>) -> Result<Box<dyn RecordedRun>, DeviceError> {
        let statement = *self;
        let mut stream = statement.buffers.device.stream()?;
        statement.upload(&mut stream)?;
        let mut work = Work::new(&statement.buffers.device);
        let begin = work.mark();
        statement.launch(&mut work)?;
        let marks = (begin, work.mark());
        let recording = stream.prepare(work)?;
        Ok(Box::new(RecordedStatement { statement, stream, recording, marks }))
    }
}

/// A statement that was recorded.
struct RecordedStatement<S> {
    statement: Statement<S>,
    stream: Stream,
    recording: Recording,
    marks: (Mark, Mark),
}

impl<S: Steps> RecordedRun for RecordedStatement<S> {
    fn run(&mut self) -> Result<f64, DeviceError> {
        self.stream.run(&mut self.recording, &self.statement.buffers.all())?;
        Ok(self.recording.elapsed_ms(self.marks.0, self.marks.1)?)
    }

    fn cells(&mut self) -> Result<DeviceCells, DeviceError> {
        self.statement.read(&mut self.stream).map(DeviceCells::from)
    }

    fn used(&self) -> String {
        self.statement.steps.used()
    }
}
