//! The measured operations, each on one core first, whose result the device's is held against.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use warpcube_arrays::random::Random;
use warpcube_gpu::{Device, HostBuffer, Stream, Work};
use warpcube_stream::cpu::CpuTree;
use warpcube_stream::device::{DeviceTree, DeviceTuples, Kernels, QueryBatch};
use warpcube_stream::{Condition, Dimension, Measure, Order, Query, Schema, Tuples};

use super::case::{Job, Shape};
use crate::stats::{Sample, repeat};
use crate::suite::{Failure, Run};
use crate::timing::timed;

/// Tuples above which one core runs once: a run takes minutes.
const ONE_RUN_TUPLES: usize = 10_000_000;
/// Runs of one core; the least counts.
const CPU_RUNS: usize = 3;

/// Figures of a verified case.
pub(super) struct Measured {
    /// Milliseconds on one core.
    pub(super) cpu_ms: f64,
    /// Over data in device memory.
    pub(super) device: Sample,
    /// With copies from the host and back.
    pub(super) warm: Sample,
    pub(super) figures: Value,
}

/// One set of tuples.
pub(super) struct Bench {
    shape: Shape,
    schema: Arc<Schema>,
    kernels: Arc<Kernels>,
    stream: Stream,
    runs: u32,
    tuples: Tuples,
    /// The tree of the tuples, on one core and on the device, once a case has needed it.
    trees: Option<(CpuTree, DeviceTree)>,
}

impl Bench {
    /// Draws tuples and compiles kernels.
    ///
    /// # Errors
    /// A device that fails.
    pub(super) fn new(device: &Device, shape: Shape, measures: Vec<Measure>, runs: u32) -> Result<Bench, Failure> {
        let dimension = |at: usize| Dimension::new(format!("d{at}"), shape.cardinality.into());
        let dimensions = (0..shape.dimensions).map(dimension).collect();
        let schema = Arc::new(Schema::new(dimensions, 1, measures, &Order::Cardinality).map_err(message)?);
        let kernels = Kernels::new(device, &schema).map_err(message)?;
        let tuples = drawn(&schema, shape, 1).map_err(message)?;
        Ok(Bench { shape, schema, kernels, stream: device.stream()?, runs, tuples, trees: None })
    }

    /// Measures a case.
    ///
    /// # Errors
    /// A result that is not one core's; a device that fails; a run that was stopped.
    pub(super) fn measure(&mut self, run: &Run, job: Job) -> Result<Measured, Failure> {
        match job {
            Job::Build => self.build(run),
            Job::Update => self.update(run),
            Job::OnPath | Job::Online => self.queries(run, job),
        }
    }

    fn build(&mut self, run: &Run) -> Result<Measured, Failure> {
        let (on_cpu, cpu_ms) = self.on_cpu(run, |bench| CpuTree::build(&bench.schema, &bench.tuples))?;
        let Bench { kernels, stream, tuples, runs, .. } = self;
        let (on_device, host) = uploaded(kernels, stream, tuples)?;
        let timed = Timed { run, runs: *runs, tuples: &on_device, host: &host };
        let built = |stream: &mut Stream| DeviceTree::build(stream, &on_device).map_err(message);
        let ([device, warm], tree) = timed.measure(stream, built)?;
        check("the tree", tree.equals(stream, &on_cpu).map_err(message)?)?;
        Ok(Measured { cpu_ms, device, warm, figures: self.figures(&tree) })
    }

    fn update(&mut self, run: &Run) -> Result<Measured, Failure> {
        let batch = drawn(&self.schema, self.shape, 2).map_err(message)?;
        self.make_trees()?;
        let (before, cpu_ms) = {
            let old = self.trees.as_ref().map(|(old, _)| old.clone());
            let changed = |_: &Bench| {
                let mut tree = old.clone().ok_or_else(|| "there is no tree".to_string())?;
                tree.insert(&batch).map_err(message)?;
                Ok::<CpuTree, String>(tree)
            };
            self.on_cpu(run, changed)?
        };
        let Bench { kernels, stream, trees, runs, .. } = self;
        let Some((_, old)) = trees else { return Err("there is no tree".into()) };
        let (on_device, host) = uploaded(kernels, stream, &batch)?;
        let timed = Timed { run, runs: *runs, tuples: &on_device, host: &host };
        let inserted = |stream: &mut Stream| old.insert(stream, &on_device).map_err(message);
        let ([device, warm], tree) = timed.measure(stream, inserted)?;
        check("the tree", tree.equals(stream, &before).map_err(message)?)?;
        Ok(Measured { cpu_ms, device, warm, figures: self.figures(&tree) })
    }

    fn queries(&mut self, run: &Run, job: Job) -> Result<Measured, Failure> {
        self.make_trees()?;
        let queries = asked(&self.schema, &self.tuples, self.shape.queries, job);
        let (expected, cpu_ms) = self.on_cpu(run, |bench| {
            let (tree, _) = bench.trees.as_ref().ok_or_else(|| "there is no tree".to_string())?;
            tree.answer(&queries).map_err(message)
        })?;
        let Bench { kernels, stream, trees, runs, .. } = self;
        let Some((_, tree)) = trees else { return Err("there is no tree".into()) };
        let batch = QueryBatch::new(tree, &queries).map_err(message)?;
        check("the answers", batch.answer(stream).map_err(message)? == expected)?;
        let launch = |work: &mut Work| batch.launch(work).map_err(|error| Failure::Wrong(message(error)));
        let go_on = || Ok(run.go_on()?);
        let device = timed(kernels.device(), stream, *runs, &batch.buffers(), go_on, launch)?;
        let mut recorded = batch.record(stream).map_err(message)?;
        let warm = repeat(*runs, || {
            run.go_on()?;
            let begin = Instant::now();
            recorded.run(stream).map_err(message)?;
            Ok::<f64, Failure>(begin.elapsed().as_secs_f64() * 1e3)
        })?;
        let answers = recorded.answers().map_err(message)?;
        check("the answers of recorded work", answers == expected)?;
        let found = (0..answers.len()).filter(|query| answers.get(*query).is_some()).count();
        let links = batch.links(stream).map_err(message)?;
        let figures = json!({"queries": queries.len(), "found": found, "links": links, "nodes": tree.nodes()});
        Ok(Measured { cpu_ms, device, warm, figures })
    }

    /// Makes the trees of the tuples, if they are not there.
    fn make_trees(&mut self) -> Result<(), Failure> {
        if self.trees.is_none() {
            let on_cpu = CpuTree::build(&self.schema, &self.tuples).map_err(message)?;
            let tuples = DeviceTuples::upload(&self.kernels, &mut self.stream, &self.tuples).map_err(message)?;
            let tree = DeviceTree::build(&mut self.stream, &tuples).map_err(message)?;
            self.trees = Some((on_cpu, tree));
        }
        Ok(())
    }

    /// The result of one core, and the least milliseconds of some runs.
    fn on_cpu<T, E: Display>(&self, run: &Run, work: impl Fn(&Bench) -> Result<T, E>) -> Result<(T, f64), Failure> {
        let runs = if self.shape.tuples >= ONE_RUN_TUPLES { 1 } else { CPU_RUNS };
        let mut least = f64::INFINITY;
        let mut result = None;
        for _ in 0..runs {
            run.go_on()?;
            drop(result.take());
            let begin = Instant::now();
            result = Some(work(self).map_err(message)?);
            least = least.min(begin.elapsed().as_secs_f64() * 1e3);
        }
        result.map(|result| (result, least)).ok_or_else(|| "one core did not run".into())
    }

    /// Sizes of a tree, and the time in which its bytes and those of the tuples can be read and written once.
    fn figures(&self, tree: &DeviceTree) -> Value {
        let tuple_bytes = self.tuples.len() * (self.shape.dimensions * 4 + 8);
        let bytes = tree.bytes() + tuple_bytes as u64;
        json!({
            "tuples": self.tuples.len(), "nodes": tree.nodes(), "leaves": tree.leaves(), "bytes": tree.bytes(),
            "floor_ms": bytes as f64 / self.kernels.device().info().peak_bandwidth * 1e3,
        })
    }
}

/// An operation on tuples, which is timed.
struct Timed<'a> {
    run: &'a Run,
    runs: u32,
    tuples: &'a DeviceTuples,
    host: &'a Arc<HostBuffer>,
}

impl Timed<'_> {
    /// Times over tuples on the device, and with their copy; the last tree.
    fn measure(
        &self,
        stream: &mut Stream,
        work: impl Fn(&mut Stream) -> Result<DeviceTree, String>,
    ) -> Result<([Sample; 2], DeviceTree), Failure> {
        let mut last = None;
        let mut time = |is_copied: bool| {
            repeat(self.runs, || {
                self.run.go_on()?;
                // Memory of the last tree is freed before a run.
                drop(last.take());
                stream.synchronize()?;
                let begin = Instant::now();
                if is_copied {
                    self.tuples.copy(stream, self.host).map_err(message)?;
                }
                last = Some(work(stream)?);
                stream.synchronize()?;
                Ok::<f64, Failure>(begin.elapsed().as_secs_f64() * 1e3)
            })
        };
        let samples = [time(false)?, time(true)?];
        last.map(|tree| (samples, tree)).ok_or_else(|| "the device did not run".into())
    }
}

/// Tuples on the device and in page-locked memory.
fn uploaded(
    kernels: &Arc<Kernels>,
    stream: &mut Stream,
    tuples: &Tuples,
) -> Result<(DeviceTuples, Arc<HostBuffer>), Failure> {
    let host = DeviceTuples::page_locked(kernels, tuples).map_err(message)?;
    let on_device = DeviceTuples::new(kernels, tuples.len()).map_err(message)?;
    on_device.copy(stream, &host).map_err(message)?;
    stream.synchronize()?;
    Ok((on_device, host))
}

/// Tuples whose attributes are equally likely, with values of three digits.
fn drawn(schema: &Schema, shape: Shape, seed: u64) -> warpcube_stream::Result<Tuples> {
    let column = |at: usize| {
        let mut random = Random::of(seed, at as u64);
        (0..shape.tuples).map(|_| random.below(shape.cardinality.into()) as u32).collect()
    };
    let mut random = Random::of(seed, u64::MAX);
    let values = (0..shape.tuples).map(|_| random.below(1000) as i64).collect();
    Tuples::new(schema, (0..shape.dimensions).map(column).collect(), vec![values])
}

/// Queries for the values of some tuple in a number of dimensions: the first ones of the path, or any that are not.
fn asked(schema: &Schema, tuples: &Tuples, count: usize, job: Job) -> Vec<Query> {
    let mut random = Random::new(3);
    let (path, dimensions) = (schema.path(), schema.dimensions().len());
    let mut one = || {
        let tuple = random.below(tuples.len() as u64) as usize;
        let number = 1 + random.below(dimensions as u64) as usize;
        let mut chosen = path.to_vec();
        if job == Job::Online {
            // A number of dimensions at the front, each drawn from those behind.
            for at in 0..number {
                chosen.swap(at, at + random.below((dimensions - at) as u64) as usize);
            }
        }
        let mut conditions = vec![Condition::Any; dimensions];
        for dimension in &chosen[..number] {
            conditions[*dimension] = Condition::Is(tuples.attributes()[*dimension][tuple]);
        }
        Query { conditions }
    };
    let is_on_path = |query: &Query| {
        let is_asked = path.iter().map(|dimension| query.conditions[*dimension] != Condition::Any);
        is_asked.is_sorted_by(|before, after| before >= after)
    };
    std::iter::repeat_with(&mut one).filter(|query| is_on_path(query) == (job == Job::OnPath)).take(count).collect()
}

fn check(what: &str, is_right: bool) -> Result<(), Failure> {
    match is_right {
        true => Ok(()),
        false => Err(format!("{what} is not one core's").into()),
    }
}

fn message(error: impl Display) -> String {
    error.to_string()
}
