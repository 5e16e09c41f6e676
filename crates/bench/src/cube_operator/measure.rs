//! The measured CUBEs.

use std::time::{Duration, Instant};

use serde_json::json;
use warpcube_arrays::SchemeError;
use warpcube_arrays::cube_operator::{Algorithm, Costs, Cuboid, Plan, Rows, Rule, cube, iceberg};
use warpcube_arrays::device::{CubeKernels, DeviceCuboid, DeviceRows, DeviceSchemeError};
use warpcube_arrays::key::KeyLayout;
use warpcube_arrays::random::Random;
use warpcube_gpu::{Device, GpuError, Stream};

use super::digest::Digest;
use super::{CubeOperatorArgs, Job};
use crate::report::Case;
use crate::stats::repeat;
use crate::suite::{Failure, Run};

const RULES: [Rule; 5] = [Rule::Sum, Rule::Count, Rule::Min, Rule::Max, Rule::Avg];

/// Rows, and what their CUBE is held against.
pub(super) struct Bench {
    layout: KeyLayout,
    keys: Vec<u64>,
    values: Vec<i64>,
    dimensions: Vec<usize>,
    having: u64,
    runs: u32,
    kernels: CubeKernels<u64, i64>,
    /// The cuboids of all groups, and of those of enough rows, by `auto` on one core.
    expected: [Digest; 2],
}

impl Bench {
    /// Draws rows and compiles kernels.
    ///
    /// # Errors
    /// Keys of more than 64 bits; a device that fails.
    pub(super) fn new(device: &Device, arguments: &CubeOperatorArgs) -> Result<Bench, Failure> {
        let CubeOperatorArgs { rows, attributes, values, having, runs, .. } = *arguments;
        let layout = KeyLayout::for_sizes(&vec![values; attributes as usize]);
        let layout = layout.map_err(|error| Failure::Usage(format!("--attributes and --values: {error}")))?;
        if !layout.is_narrow() {
            let bits = layout.total_bits();
            return Err(Failure::Usage(format!("--attributes and --values: keys of {bits} bits, and 64 are measured")));
        }
        let mut random = Random::new(1);
        let mut tuple = vec![0; attributes as usize];
        let mut key = |_| {
            tuple.fill_with(|| random.below(values.into()) as u32);
            layout.pack(&tuple)
        };
        let keys: Vec<u64> = (0..rows).map(&mut key).collect();
        let mut random = Random::new(2);
        let values = (0..rows).map(|_| random.below(1000) as i64).collect();
        let mut bench = Bench {
            dimensions: (0..attributes as usize).collect(),
            kernels: CubeKernels::new(device).map_err(message)?,
            expected: Default::default(),
            layout,
            keys,
            values,
            having,
            runs,
        };
        let mut expected = [Digest::default(), Digest::default()];
        let (rows, plan) = bench.planned(Algorithm::Auto, &Costs::CPU)?;
        cube(&rows, &plan, |cuboid| {
            expected.iter_mut().zip([0, having]).for_each(|(digest, having)| digest.add(&cuboid, having));
            Ok::<(), SchemeError>(())
        })
        .map_err(message)?;
        bench.expected = expected;
        Ok(bench)
    }

    fn rows(&self) -> Result<Rows<'_, u64, i64>, Failure> {
        Rows::new(&self.layout, &self.keys, &self.values, None).map_err(message)
    }

    fn planned(&self, algorithm: Algorithm, costs: &Costs) -> Result<(Rows<'_, u64, i64>, Plan), Failure> {
        let rows = self.rows()?;
        let plan = Plan::new(&rows.extent(), &self.dimensions, &RULES, algorithm, costs).map_err(message)?;
        Ok((rows, plan))
    }

    /// Measures a case and compares its groups.
    ///
    /// # Errors
    /// Other groups; a device that fails; a run that was stopped.
    pub(super) fn measure(&self, run: &Run, job: Job) -> Result<Case, Failure> {
        let mut result = match job {
            Job::Iceberg => self.iceberg()?,
            Job::Cube(algorithm) => self.on_cpu(algorithm)?,
        };
        result.name = job.name();
        if job.is_on_device() {
            self.on_device(run, job, &mut result)?;
        }
        Ok(result.verified(true))
    }

    fn on_cpu(&self, algorithm: Algorithm) -> Result<Case, Failure> {
        let (rows, plan) = self.planned(algorithm, &Costs::CPU)?;
        let mut noted = Noted::default();
        let begin = Instant::now();
        cube(&rows, &plan, |cuboid| noted.note(&cuboid)).map_err(message)?;
        let ms = noted.without(begin.elapsed());
        check("the cuboids of one core", &noted.digest, &self.expected[0])?;
        let sorts = plan.runs().iter().filter(|run| run.is_sorted_anew()).count();
        let Noted { digest, .. } = noted;
        Ok(Case::new(
            "",
            json!({
                "rows": self.keys.len(), "cuboids": digest.cuboids(), "groups": digest.groups(),
                "runs": plan.runs().len(), "sorts": sorts, "cpu_ms": ms,
            }),
        ))
    }

    fn iceberg(&self) -> Result<Case, Failure> {
        let rows = self.rows()?;
        let mut noted = Noted::default();
        let begin = Instant::now();
        let found = iceberg(&rows, &self.dimensions, &RULES, self.having, |cuboid| noted.note(&cuboid));
        let found = found.map_err(message)?;
        let ms = noted.without(begin.elapsed());
        check("the iceberg", &noted.digest, &self.expected[1])?;
        Ok(Case::new(
            "",
            json!({
                "rows": self.keys.len(), "cuboids": found.cuboids, "groups": found.groups, "sorted": found.sorted,
                "cpu_ms": ms,
            }),
        ))
    }

    /// Adds the times of the device to those of one core.
    fn on_device(&self, run: &Run, job: Job, result: &mut Case) -> Result<(), Failure> {
        let (rows, extent) = (self.rows()?, self.rows()?.extent());
        let (algorithm, expected) = match job {
            Job::Cube(algorithm) => (Some(algorithm), &self.expected[0]),
            Job::Iceberg => (None, &self.expected[1]),
        };
        let plan = |algorithm| Plan::new(&extent, &self.dimensions, &RULES, algorithm, &Costs::H200).map_err(message);
        let plan = algorithm.map(plan).transpose()?;
        let mut stream = self.kernels.device().stream()?;
        let uploaded = |stream: &mut Stream| DeviceRows::new(&self.kernels, stream, &rows).map_err(message);
        let compute = |on_device: &OnDevice<'_>, stream: &mut Stream, take: &mut Take<'_>| {
            let done = match &plan {
                Some(plan) => on_device.cube(stream, plan, take),
                None => on_device.iceberg(stream, &extent, &self.dimensions, &RULES, self.having, take).map(drop),
            };
            done.map_err(message)
        };
        let on_device = uploaded(&mut stream)?;
        let mut digest = Digest::default();
        compute(&on_device, &mut stream, &mut |stream, groups| read(stream, groups, |cuboid| digest.add(cuboid, 0)))?;
        check("the cuboids of the device", &digest, expected)?;
        let device = repeat(self.runs, || {
            run.go_on()?;
            let begin = Instant::now();
            compute(&on_device, &mut stream, &mut |_, _| Ok(()))?;
            stream.synchronize()?;
            Ok::<f64, Failure>(begin.elapsed().as_secs_f64() * 1e3)
        })?;
        drop(on_device);
        run.go_on()?;
        let begin = Instant::now();
        let again = uploaded(&mut stream)?;
        compute(&again, &mut stream, &mut |stream, groups| read(stream, groups, |_| ()))?;
        result.put("warm_ms", begin.elapsed().as_secs_f64() * 1e3);
        result.put("device_ms", device.ms);
        result.put("spread", device.spread);
        if let Some(plan) = plan {
            result.put("device_sorts", plan.runs().iter().filter(|run| run.is_sorted_anew()).count());
        }
        if let Some(cpu_ms) = result.figure("cpu_ms") {
            result.put("speedup", cpu_ms / device.ms);
        }
        Ok(())
    }
}

type OnDevice<'a> = DeviceRows<'a, u64, i64>;

/// Takes a cuboid in device memory.
type Take<'a> = dyn FnMut(&mut Stream, &DeviceCuboid<u64, i64>) -> Result<(), DeviceSchemeError> + 'a;

/// Reads a cuboid to the host.
fn read(
    stream: &mut Stream,
    groups: &DeviceCuboid<u64, i64>,
    mut take: impl FnMut(&Cuboid<'_, u64, i64>),
) -> Result<(), DeviceSchemeError> {
    groups.read(stream, |cuboid| {
        take(&cuboid);
        Ok(())
    })
}

/// What a sink has got, and the time that it took.
#[derive(Default)]
struct Noted {
    digest: Digest,
    time: Duration,
}

impl Noted {
    fn note(&mut self, cuboid: &Cuboid<'_, u64, i64>) -> Result<(), SchemeError> {
        let begin = Instant::now();
        self.digest.add(cuboid, 0);
        self.time += begin.elapsed();
        Ok(())
    }

    /// Milliseconds of a run without those of the sink.
    fn without(&self, whole: Duration) -> f64 {
        (whole - self.time).as_secs_f64() * 1e3
    }
}

fn check(what: &str, found: &Digest, expected: &Digest) -> Result<(), Failure> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what} are not those of algorithm auto on one core").into()),
    }
}

fn message(error: impl Into<DeviceSchemeError>) -> Failure {
    match error.into() {
        DeviceSchemeError::Gpu(GpuError::Cancelled) => Failure::Cancelled,
        error => Failure::Wrong(error.to_string()),
    }
}
