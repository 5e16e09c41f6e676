//! The coprocessor mode: columns that lie in page-locked memory of the host are sent for each query in chunks, on one
//! stream, while kernels work on the chunk before, on another; results stay on the device. A chunk's kernels wait for
//! the event behind its copies, and copies to a room for the event behind the kernels that read it before.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element, Moved, Predicate, Select, SelectOperands, SelectOrder};
use warpcube_gpu::{Event, GpuError, HostBuffer, Stream};

use super::hashed::{floats, room, scratch, taken, word};
use super::project::{A, B};
use super::{Bench, project};
use crate::operators::project::{Project, Projection};
use crate::operators::roofline::Roofline;
use crate::stats::{Sample, repeat};
use crate::suite::Failure;

/// Chunks of a column.
const CHUNKS: u64 = 32;
/// Runs of a case.
const RUNS: u32 = 3;
/// Items of a chunk's selection that are compared at most.
const SAMPLE: u64 = 1 << 20;
/// Items below it are selected.
const BOUND: f32 = 0.5;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let cases = ["select-sent/50", "project/linear-sent", "project/sigmoid-sent"];
    if !cases.iter().any(|case| bench.wants(case)) {
        return Ok(());
    }
    let (device, n) = (bench.device.clone(), bench.rows(29));
    let mut columns = Vec::new();
    for seed in [2, 3] {
        let column = floats(&device, &mut bench.stream, n, seed)?;
        let mut host = device.host_buffer(n as usize * 4)?;
        bench.stream.download(column.buffer(), column.offset(), host.as_mut_slice())?;
        columns.push((column, Arc::new(host)));
    }
    let (copies, kernels) = (device.stream()?, device.stream()?);
    let mut sent = Sent { n, copies, kernels, out: room(&device, Element::F32, n)?, columns };
    for (case, projection) in [(cases[1], Projection::Linear), (cases[2], Projection::Sigmoid)] {
        if bench.wants(case) {
            sent.project(bench, case, projection)?;
        }
    }
    if bench.wants(cases[0]) {
        sent.select(bench, cases[0])?;
    }
    Ok(())
}

/// Two columns, on the device and on the host, and the streams of copies and of kernels.
struct Sent {
    n: u64,
    columns: Vec<(DeviceSlice, Arc<HostBuffer>)>,
    copies: Stream,
    kernels: Stream,
    out: DeviceSlice,
}

impl Sent {
    /// First rows and lengths of all chunks.
    fn chunks(&self) -> Vec<(u64, u64)> {
        let rows = self.n.div_ceil(CHUNKS);
        (0..self.n).step_by(rows as usize).map(|from| (from, rows.min(self.n - from))).collect()
    }

    /// Milliseconds of the median of some runs; `work` puts a chunk's kernels on a stream, with the chunk's number.
    /// Chunks take the rooms in turn.
    fn time(
        &mut self,
        bench: &Bench<'_>,
        columns: usize,
        rooms: &[Vec<DeviceSlice>; 2],
        mut work: impl FnMut(&mut Stream, usize, u64, &[DeviceSlice]) -> Result<(), GpuError>,
    ) -> Result<Sample, Failure> {
        let chunks = self.chunks();
        repeat(RUNS, || {
            let start = Instant::now();
            let mut read: [Option<Event>; 2] = [None, None];
            for (at, (from, len)) in chunks.iter().enumerate() {
                bench.run.go_on()?;
                let (rooms, read) = (&rooms[at % 2], &mut read[at % 2]);
                read.as_ref().map_or(Ok(()), |read| self.copies.wait(read))?;
                for ((_, host), room) in self.columns[..columns].iter().zip(rooms) {
                    let (offset, bytes) = (*from as usize * 4, *len as usize * 4);
                    self.copies.upload_from(room.buffer(), room.offset(), host, offset, bytes)?;
                }
                let parts: Vec<DeviceSlice> = rooms.iter().map(|room| room.part(0, *len)).collect::<Result<_, _>>()?;
                self.kernels.wait(&self.copies.record()?)?;
                work(&mut self.kernels, at, *from, &parts)?;
                *read = Some(self.kernels.record()?);
            }
            self.copies.synchronize()?;
            self.kernels.synchronize()?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        })
    }

    /// Two rooms for a chunk of each column.
    fn rooms(&self, bench: &Bench<'_>, columns: usize) -> Result<[Vec<DeviceSlice>; 2], GpuError> {
        let len = self.n.div_ceil(CHUNKS);
        let rooms = || (0..columns).map(|_| room(&bench.device, Element::F32, len)).collect::<Result<Vec<_>, _>>();
        Ok([rooms()?, rooms()?])
    }

    fn project(&mut self, bench: &mut Bench<'_>, case: &str, projection: Projection) -> Result<(), Failure> {
        let projects = Project::new(&bench.device, Element::F32, projection)?;
        let (out, factors) = (self.out.clone(), [A.into(), B.into()]);
        let inputs = [self.columns[0].0.clone(), self.columns[1].0.clone()];
        let read = [inputs[0].buffer(), inputs[1].buffer()];
        let resident = bench
            .time(&read, &[out.buffer()], |work| projects.launch(work, [&inputs[0], &inputs[1]], factors, &out))?;
        bench.stream.fill(out.buffer(), 0, 0xff, self.n as usize * 4)?;
        bench.stream.synchronize()?;
        let rooms = self.rooms(bench, 2)?;
        let ms = self.time(bench, 2, &rooms, |stream, _, from, parts| {
            projects.launch(stream, [&parts[0], &parts[1]], factors, &out.part(from, parts[0].len())?)
        })?;
        project::verify(bench, case, projection, [&inputs[0], &inputs[1], &out])?;
        self.add(bench, case, ms, 2, resident);
        Ok(())
    }

    fn select(&mut self, bench: &mut Bench<'_>, case: &str) -> Result<(), Failure> {
        let device = bench.device.clone();
        let predicate = Predicate::Text("x < a".into());
        let selects = Select::new(&device, Element::F32, predicate, Moved::Values, SelectOrder::Any)?;
        let chunks = self.chunks().len() as u64;
        let (out, counts) = (self.out.clone(), room(&device, Element::U64, chunks)?);
        let memory = scratch(&device, selects.scratch_bytes(self.n))?;
        let bounds = [BOUND.to_bits().into(), 0];
        let input = self.columns[0].0.clone();
        let all = counts.part(0, 1)?;
        let operands = SelectOperands { input: Some(&input), flags: None, bounds, out: &out, count: &all };
        let written = [out.buffer(), counts.buffer(), &memory];
        let resident = bench.time(&[input.buffer()], &written, |work| selects.launch(work, &operands, &memory))?;
        let expected = word(&mut bench.stream, &counts, 0)?;
        // Overwritten, so that selections of the resident run are not taken for those of the chunks.
        for buffer in [out.buffer(), counts.buffer()] {
            bench.stream.fill(buffer, 0, 0xff, buffer.bytes())?;
        }
        bench.stream.synchronize()?;
        let rooms = self.rooms(bench, 1)?;
        // Each chunk's items go to its own place.
        let ms = self.time(bench, 1, &rooms, |stream, at, from, parts| {
            let (out, count) = (out.part(from, parts[0].len())?, counts.part(at as u64, 1)?);
            let operands = SelectOperands { input: Some(&parts[0]), flags: None, bounds, out: &out, count: &count };
            selects.launch(stream, &operands, &memory)
        })?;
        let mut found = 0;
        for (at, (from, len)) in self.chunks().into_iter().enumerate() {
            let count = word(&mut bench.stream, &counts, at as u64)?;
            if count > len {
                return Err(format!("{case}: {count} of {len} items of chunk {at}").into());
            }
            found += count;
            let (sample, given) = (count.min(SAMPLE), len.min(SAMPLE));
            let items = taken::<4>(&mut bench.stream, &out, from, sample)?;
            if items.into_iter().any(|item| !(0.0..BOUND).contains(&f32::from_le_bytes(item))) || given == 0 {
                return Err(format!("{case}: chunk {at} has items that are not selected").into());
            }
        }
        if found != expected {
            return Err(format!("{case}: {found} items instead of {expected}").into());
        }
        self.add(bench, case, ms, 1, resident);
        Ok(())
    }

    /// Adds a result beside the model's.
    fn add(&self, bench: &mut Bench<'_>, case: &str, time: Sample, columns: u64, resident: Sample) {
        let (bytes, chunks) = (4 * columns * self.n, self.chunks().len() as u64);
        let predicted_ms = bench.rates.sent_ms(bytes as f64, resident.ms, chunks);
        let more = json!({
            "rows": self.n, "chunks": chunks, "resident_ms": resident.ms, "predicted_ms": predicted_ms,
            "bytes_per_second": bytes as f64 / time.ms * 1e3,
        });
        bench.add(case, time, bytes, bytes as f64 / predicted_ms * 1e3, more);
    }
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{Device, EmulatorOptions};

    use super::*;
    use crate::prims::PrimitiveArgs;
    use crate::suite::Run;

    #[test]
    fn chunks_give_what_resident_columns_give() {
        let device = Device::emulated(EmulatorOptions::default(), 256 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(15, &[]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        run(&mut bench).unwrap();
        assert_eq!(bench.run.report.results.len(), 3);
        assert!(bench.run.report.results.iter().all(|result| result["chunks"] == CHUNKS));
    }
}
