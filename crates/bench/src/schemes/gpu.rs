//! Operations on the device, each verified. Kernels are timed by events around recorded work over resident data;
//! random access is timed on the host, too, with page-locked coordinates copied to the device and results back.

use std::fmt::Display;
use std::time::Instant;

use serde_json::{Value, json};
use warpcube_arrays::Storage;
use warpcube_arrays::device::{Aggregation, DeviceArray, Lookup, Retrieval};
use warpcube_gpu::{Device, Stream, Work};

use super::case::Operation;
use super::cpu::{Measured, check};
use super::data::Data;
use crate::stats::{Sample, repeat};
use crate::timing::timed;

/// One array on the device.
pub(super) struct GpuBench<'a> {
    device: Device,
    stream: Stream,
    data: &'a Data,
    array: DeviceArray<i64>,
    sizes: (u64, f64),
    runs: u32,
}

impl<'a> GpuBench<'a> {
    /// Copies an array to the device; gives the milliseconds of that, too.
    ///
    /// # Errors
    /// No room on the device.
    pub(super) fn new(
        device: &Device,
        data: &'a Data,
        stored: &dyn Storage<i64>,
        runs: u32,
    ) -> Result<(GpuBench<'a>, f64), String> {
        // The first array compiles the kernels.
        drop(DeviceArray::new(device, stored).map_err(message)?);
        let begin = Instant::now();
        let array = DeviceArray::new(device, stored).map_err(message)?;
        let upload_ms = begin.elapsed().as_secs_f64() * 1e3;
        let (device, stream) = (device.clone(), device.stream().map_err(message)?);
        let sizes = (stored.sizes().total(), stored.sizes().ratio::<i64>(data.shape()).map_err(message)?);
        Ok((GpuBench { device, stream, data, array, sizes, runs }, upload_ms))
    }

    /// Measures an operation beside `on_cpu`, what one core takes.
    ///
    /// # Errors
    /// A device that fails, or a result that is wrong.
    pub(super) fn measure(
        &mut self,
        operation: Operation,
        on_cpu: &Measured,
        upload_ms: f64,
    ) -> Result<Measured, String> {
        match operation {
            Operation::Storage => {
                check("the number of bytes", self.array.bytes() == self.sizes.0)?;
                Ok(Measured { cpu_ms: 0.0, figures: json!({"ratio": self.sizes.1, "bytes": self.sizes.0}) })
            }
            Operation::Construction => {
                let cells = self.array.len();
                check("the array", cells == self.data.cells.len())?;
                let warm_ms = on_cpu.cpu_ms + upload_ms;
                let figures = json!({"warm_ms": warm_ms, "upload_ms": upload_ms, "built": cells});
                Ok(Measured { cpu_ms: on_cpu.cpu_ms, figures })
            }
            Operation::Random => self.random(on_cpu),
            Operation::SubArray(number) => self.sub_array(number, on_cpu),
            Operation::Aggregation => self.aggregation(on_cpu),
        }
    }

    fn random(&mut self, on_cpu: &Measured) -> Result<Measured, String> {
        let (data, stream) = (self.data, &mut self.stream);
        let count = data.found.len();
        let lookup = Lookup::new(&self.array, count as u64).map_err(message)?;
        lookup.upload(stream, &data.asked).map_err(message)?;
        let launch = |work: &mut Work| lookup.launch(work);
        let device = timed(&self.device, stream, self.runs, &lookup.buffers(), || Ok(()), launch).map_err(message)?;
        let found = lookup.read(stream, &data.asked).map_err(message)?;
        check("random access", found == data.found)?;
        let warm_ms = with_transfers(&self.device, stream, self.runs, data, &lookup)?;
        let mut figures = beside(device, on_cpu, "lookups", count);
        figures["warm_ms"] = warm_ms.into();
        figures["speedup"] = (on_cpu.cpu_ms / warm_ms).into();
        Ok(Measured { cpu_ms: on_cpu.cpu_ms, figures })
    }

    fn sub_array(&mut self, number: usize, on_cpu: &Measured) -> Result<Measured, String> {
        let ((area, inside), stream) = (&self.data.areas[number], &mut self.stream);
        let retrieval = Retrieval::new(&self.array, stream, area).map_err(message)?;
        let launch = |work: &mut Work| retrieval.launch(work);
        let device =
            timed(&self.device, stream, self.runs, &retrieval.buffers(), || Ok(()), launch).map_err(message)?;
        check("the sub-array", retrieval.read(stream).map_err(message)? == *inside)?;
        let mut figures = beside(device, on_cpu, "found", inside.len());
        figures["candidates"] = retrieval.candidates().into();
        Ok(Measured { cpu_ms: on_cpu.cpu_ms, figures })
    }

    fn aggregation(&mut self, on_cpu: &Measured) -> Result<Measured, String> {
        let (data, stream) = (self.data, &mut self.stream);
        let aggregation = Aggregation::new(&self.array, stream).map_err(message)?;
        let launch = |work: &mut Work| aggregation.launch(work);
        let device =
            timed(&self.device, stream, self.runs, &aggregation.buffers(), || Ok(()), launch).map_err(message)?;
        let found = aggregation.read(stream).map_err(message)?;
        check("the aggregation", data.is_sums(&found))?;
        Ok(Measured { cpu_ms: on_cpu.cpu_ms, figures: beside(device, on_cpu, "groups", data.groups()) })
    }
}

/// Milliseconds of a random access on the host's clock: page-locked coordinates to the device, the search, values and
/// bits of filled cells back to page-locked memory. The results of the last run are compared.
fn with_transfers(
    device: &Device,
    stream: &mut Stream,
    runs: u32,
    data: &Data,
    lookup: &Lookup<'_, i64>,
) -> Result<f64, String> {
    let count = data.found.len();
    let mut work = Work::new(device);
    let asked: Vec<u8> = data.asked.iter().flat_map(|at| at.to_le_bytes()).collect();
    work.upload(lookup.coordinates().buffer(), 0, &asked).map_err(message)?;
    lookup.launch(&mut work).map_err(message)?;
    let values = work.download(lookup.values().buffer(), 0, count * size_of::<i64>()).map_err(message)?;
    let filled = work.download(lookup.found().buffer(), 0, count.div_ceil(32) * size_of::<u32>()).map_err(message)?;
    let mut recording = stream.prepare(work).map_err(message)?;
    let time = repeat(runs, || {
        let begin = Instant::now();
        stream.run(&mut recording, &lookup.buffers()).map_err(message)?;
        Ok::<f64, String>(begin.elapsed().as_secs_f64() * 1e3)
    })?;
    let (values, _) = recording.output(&values).map_err(message)?.as_chunks::<8>();
    let filled = recording.output(&filled).map_err(message)?;
    let is_right = |(at, expected): (usize, &Option<i64>)| {
        let is_filled = filled[at / 8] >> (at % 8) & 1 != 0;
        expected.is_some() == is_filled && expected.unwrap_or_default() == i64::from_le_bytes(values[at])
    };
    check("random access with transfers", data.found.iter().enumerate().all(is_right))?;
    Ok(time.ms)
}

/// Figures of so many results, beside what one core takes.
fn beside(device: Sample, on_cpu: &Measured, what: &str, count: usize) -> Value {
    let mut figures = json!({
        "device_ms": device.ms, "spread": device.spread, "one_core_ms": on_cpu.cpu_ms,
        "ns_each": device.ms * 1e6 / count.max(1) as f64,
    });
    figures[what] = count.into();
    figures
}

fn message(error: impl Display) -> String {
    error.to_string()
}
