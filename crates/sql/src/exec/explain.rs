//! EXPLAIN and EXPLAIN ANALYZE: one tree of the plan ([`plan_tree`]), and what runs where and why. With VERBOSE they
//! have DataFusion's plans in its place, and the operators of each fragment ([`operators`]) with predicted bytes and
//! time, after a run with the measured ones beside them.
//!
//! Rows of the result are `plan`, or those of DataFusion and `shared` with the plans of tables that are computed once;
//! `placement`; `with a GPU`, what a GPU would take where there is none; and under VERBOSE `device` where there are
//! fragments.

use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ExplainFormat, LogicalPlan};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};
use warpcube_engine::{Engine, Prediction, RunReport, TableFacts, in_bytes};

use super::device_exec::DeviceExec;
use super::explain_cache::ExplainCache;
use super::operators::{self, ms};
use super::plan_tree;
use crate::lower::{DeviceNode, Lowered, Refused};
use crate::plans::Planned;
use crate::report::{FragmentReport, FragmentRun, Place, StatementReport};
use crate::shared::Output;
use crate::walk::PlanWalk;

/// Whether a plan is an EXPLAIN or an EXPLAIN ANALYZE, in a form that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Explained {
    Plan,
    Run,
}

/// How much of a plan is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One tree.
    Tree,
    /// DataFusion's plans, under VERBOSE or a format that is named.
    Plans,
}

impl Detail {
    /// What an EXPLAIN asks for.
    pub(crate) fn of(plan: &LogicalPlan) -> Detail {
        let (is_verbose, format) = match plan {
            LogicalPlan::Explain(explain) => (explain.verbose, &explain.explain_format),
            LogicalPlan::Analyze(analyze) => (analyze.verbose, &analyze.format),
            _ => return Detail::Plans,
        };
        if is_verbose || *format != ExplainFormat::Indent { Detail::Plans } else { Detail::Tree }
    }
}

impl Explained {
    /// The kind of EXPLAIN that a plan is; none for other plans, and for formats that programs read.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Explained> {
        let (explained, format) = match plan {
            LogicalPlan::Explain(explain) => (Explained::Plan, &explain.explain_format),
            LogicalPlan::Analyze(analyze) => (Explained::Run, &analyze.format),
            _ => return None,
        };
        matches!(format, ExplainFormat::Indent | ExplainFormat::Tree).then_some(explained)
    }
}

/// The tables of a fragment with the columns that it reads.
fn table_facts(lowered: &Lowered) -> Vec<TableFacts> {
    let facts = lowered.tables.iter().zip(&lowered.fragment.tables).map(|(info, table)| {
        let schema = info.schema();
        let column = |index: &usize| (schema.field(*index).name().clone(), schema.field(*index).data_type().clone());
        TableFacts {
            key: info.key.clone(),
            version: info.version.clone(),
            rows: info.rows,
            columns: table.columns.iter().map(column).collect(),
        }
    });
    facts.collect()
}

/// The fragments of a lowered plan.
pub(crate) fn fragments(plan: &LogicalPlan) -> Result<Vec<Arc<Lowered>>> {
    let mut nodes: Vec<Arc<Lowered>> = Vec::new();
    plan.apply_nested(|plan| {
        nodes.extend(DeviceNode::of(plan).and_then(DeviceNode::lowered).cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(nodes)
}

/// The prediction for a fragment, by its binding or that of an equal fragment. Columns have codes for up to
/// `dictionary_limit` strings.
pub(crate) fn predict(
    engine: &Engine,
    explain_cache: &ExplainCache,
    lowered: &Arc<Lowered>,
    dictionary_limit: usize,
) -> Prediction {
    let runs = |lowered: Arc<Lowered>| lowered.over_derived(engine.residency(), dictionary_limit).unwrap_or(lowered);
    let lowered = explain_cache.bound(lowered, runs);
    engine.predict(&lowered.fragment, &lowered.binding, &table_facts(&lowered))
}

/// What is known of a fragment that has just run.
pub(crate) fn known(engine: &Engine, lowered: &Lowered) -> Prediction {
    engine.predict(&lowered.fragment, &lowered.binding, &table_facts(lowered))
}

/// What draws plans that are not run: the device, if there is one, and what is known of fragments.
pub(crate) struct Known<'k> {
    pub(crate) engine: Option<&'k Arc<Engine>>,
    pub(crate) explain_cache: &'k ExplainCache,
    pub(crate) dictionary_limit: usize,
}

impl Known<'_> {
    /// The prediction for a fragment; none without a device.
    fn of(&self, lowered: &Arc<Lowered>) -> Option<Prediction> {
        Some(predict(self.engine?, self.explain_cache, lowered, self.dictionary_limit))
    }
}

/// The operators of a plan, and the tables that several of them read.
type Drawn = (Arc<dyn ExecutionPlan>, Vec<Arc<Output>>);

/// The rows for a plan that is not run; `tree` has its operators and shared tables, if they are to be drawn.
pub(crate) fn of_plan(
    planned: &Planned,
    no_device: Option<String>,
    tree: Option<Drawn>,
    known: &Known,
) -> Result<Notes> {
    let nodes = fragments(&planned.plan)?;
    let place = place_of(known.engine);
    let placement = placement(parts(place, &nodes, &planned.refused), no_device);
    let with_gpu = planned.with_gpu.clone().unwrap_or_default();
    if let Some((plan, outputs)) = tree {
        let mut fragment = |device: &DeviceExec| {
            let root = operators::tree(&known.of(&device.lowered)?, None, false)?;
            Some(if place == Place::Columns { root.at(operators::COLUMNS) } else { root })
        };
        let tree = Some(plan_tree::draw(&plan, &outputs, false, &mut fragment));
        return Ok(Notes { tree, placement, with_gpu, device: String::new() });
    }
    let mut device = String::new();
    if let Some(engine) = known.engine {
        for (number, lowered) in nodes.iter().enumerate() {
            let predicted = predict(engine, known.explain_cache, lowered, known.dictionary_limit);
            head(&mut device, number, &lowered.what, engine);
            device.push_str(&operators::draw(&predicted, None));
            plans(&mut device, &predicted, None);
            totals(&mut device, &predicted);
        }
    }
    Ok(Notes { tree: None, placement, with_gpu, device })
}

/// Where fragments run.
fn place_of(engine: Option<&Arc<Engine>>) -> Place {
    match engine.is_some_and(|engine| !engine.runs_kernels()) {
        true => Place::Columns,
        false => Place::Gpu,
    }
}

/// A part of a plan: where it runs, what it is, and why there.
type Part = (Place, String, Option<String>);

/// The fragments of a plan, and what was refused.
fn parts(place: Place, nodes: &[Arc<Lowered>], refused: &[Refused]) -> impl Iterator<Item = Part> {
    let on_device = nodes.iter().map(move |lowered| (place, lowered.what.clone(), None));
    let refused = refused.iter().cloned();
    on_device.chain(refused.map(|Refused { what, reason }| (Place::Cpu, what, Some(reason))))
}

/// What a GPU would take of a plan that was lowered as if there were one.
pub(crate) fn with_gpu(lowered: &LogicalPlan, refused: &[Refused]) -> Result<String> {
    Ok(placement(parts(Place::Gpu, &fragments(lowered)?, refused), None))
}

/// The rows for a statement that was run; `tree` has its operators and shared tables, if they are to be drawn.
fn of_run(
    report: &StatementReport,
    engine: Option<&Arc<Engine>>,
    no_device: Option<String>,
    tree: Option<&Drawn>,
) -> Notes {
    let parts = report.summary().fragments.into_iter();
    let parts = parts.map(|FragmentReport { place, what, reason }| (place, what, reason));
    let placement = placement(parts, no_device);
    let mut runs = report.runs();
    if let Some((plan, outputs)) = tree {
        // A fragment that fell back has no run.
        let mut fragment = |device: &DeviceExec| {
            let found = runs.iter().position(|run| run.what == device.lowered.what)?;
            let run = runs.remove(found);
            let root = operators::tree(&run.known, Some(&run.measured), false)?;
            Some(if place_of(engine) == Place::Columns { root.at(operators::COLUMNS) } else { root })
        };
        let tree = Some(plan_tree::draw(plan, outputs, true, &mut fragment));
        return Notes { tree, placement, with_gpu: String::new(), device: String::new() };
    }
    let mut device = String::new();
    if let Some(engine) = engine {
        for (number, run) in runs.iter().enumerate() {
            head(&mut device, number, &run.what, engine);
            device.push_str(&operators::draw(&run.known, Some(&run.measured)));
            plans(&mut device, &run.known, Some(&run.measured));
            totals(&mut device, &run.predicted);
            measured(&mut device, run, engine.device().info().peak_bandwidth);
        }
    }
    Notes { tree: None, placement, with_gpu: String::new(), device }
}

/// The texts of our rows; those that are empty are left out.
#[derive(Debug, Clone)]
pub(crate) struct Notes {
    /// The tree that stands in the place of DataFusion's plans.
    tree: Option<String>,
    placement: String,
    /// What a GPU would take, where there is none.
    with_gpu: String,
    device: String,
}

/// A line for each part: where it runs, and why where that is the CPU.
fn placement(parts: impl Iterator<Item = (Place, String, Option<String>)>, no_device: Option<String>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (place, what, reason) in parts {
        let line = match (place, reason) {
            (Place::Gpu, _) => format!("GPU: {what}"),
            (Place::Columns, _) => format!("CPU, columns: {what}"),
            (Place::Cpu, Some(reason)) => format!("CPU: {what}: {reason}"),
            (Place::Cpu, None) => format!("CPU: {what}"),
        };
        lines.push(line);
    }
    match (lines.is_empty(), no_device) {
        (_, Some(reason)) => lines.push(format!("CPU: all of it: {reason}")),
        (true, None) => lines.push("CPU: all of it: it has no part of a kind that the device runs".into()),
        (false, None) => {}
    }
    lines.join("\n")
}

const UNKNOWN: &str = "unknown until loaded";

/// The first line of a fragment.
fn head(text: &mut String, number: usize, what: &str, engine: &Engine) {
    let separator = if text.is_empty() { "" } else { "\n" };
    write!(text, "{separator}fragment {number} on {}: {what}", engine.device().info().name)
        .expect("writing to a string cannot fail");
}

/// What was decided about each pipeline of a fragment that is bound, and why; after a run with what was measured of its
/// launches.
fn plans(text: &mut String, known: &Prediction, measured: Option<&RunReport>) {
    let bound = known.pipelines.iter().enumerate().filter(|(_, pipeline)| !pipeline.decisions.is_empty());
    for (index, pipeline) in bound {
        let groups = measured.map_or(&[][..], |measured| &measured.launch_groups).iter().enumerate();
        let launches = groups.filter(|(_, group)| group.pipelines.contains(&index)).map(|(number, group)| {
            let time = group.device.map_or_else(String::new, |time| format!(" {},", ms(time)));
            format!(", launch {number}:{time} {} blocks, {} registers", group.grid, group.registers)
        });
        let launches: String = launches.collect();
        write!(text, "\n  plan of {}{launches}", pipeline.name).expect("writing to a string cannot fail");
        for decision in &pipeline.decisions {
            write!(text, "\n    {decision}").expect("writing to a string cannot fail");
        }
    }
}

/// What is predicted of a fragment as a whole.
fn totals(text: &mut String, predicted: &Prediction) {
    let time = match (predicted.bytes, predicted.device) {
        (_, Some(time)) => ms(time),
        (None, None) => format!("time {UNKNOWN}"),
        (Some(_), None) => "time unknown: the device does not tell its bandwidth".to_string(),
    };
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| UNKNOWN.to_string(), in_bytes);
    write!(
        text,
        "\n  predicted: {} launches, {} read, {time}; tables and result: {}; to load: {}",
        predicted.launches,
        bytes(predicted.bytes),
        bytes(predicted.arena_bytes),
        if predicted.loads() { bytes(predicted.load_bytes) } else { "nothing".to_string() },
    )
    .expect("writing to a string cannot fail");
}

/// What a fragment did, launch by launch.
fn measured(text: &mut String, run: &FragmentRun, peak: f64) {
    let (measured, predicted) = (&run.measured, &run.predicted);
    let mut line = |line: fmt::Arguments| write!(text, "\n{line}").expect("writing to a string cannot fail");
    let share = |bytes: u64, time: std::time::Duration| match peak > 0.0 && !time.is_zero() {
        true => format!(", {:.0} % of peak", bytes as f64 / time.as_secs_f64() / peak * 100.0),
        false => String::new(),
    };
    for (number, group) in measured.launch_groups.iter().enumerate() {
        let names: Vec<&str> = group.pipelines.iter().map(|index| run.known.pipelines[*index].name.as_str()).collect();
        line(format_args!(
            "  launch {number}, of {}: {}, {} read{}; {} blocks, {} registers and {} spilled bytes a thread",
            names.join(", "),
            group.device.map_or_else(|| "not timed".to_string(), ms),
            in_bytes(group.bytes),
            group.device.map_or_else(String::new, |time| share(group.bytes, time)),
            group.grid,
            group.registers,
            group.spilled,
        ));
    }
    let expected = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_string());
    line(format_args!(
        "  measured: {} on the device (predicted {}), {} read (predicted {}){}; tables and result: {}",
        ms(measured.device),
        expected(predicted.device.map(ms)),
        in_bytes(measured.bytes),
        expected(predicted.bytes.map(in_bytes)),
        share(measured.bytes, measured.device),
        in_bytes(measured.arena_bytes),
    ));
    let compile = match measured.compiled {
        true => ms(measured.compile),
        false => "nothing, the kernels were there".to_string(),
    };
    let haste = if measured.in_haste { " (in haste: if it is run again, better kernels follow)" } else { "" };
    line(format_args!("  bind: {}; compile: {compile}{haste}", ms(measured.bind)));
    line(format_args!(
        "  launch to rows: {}; transfers: {} to the device, {} back",
        ms(measured.launched),
        in_bytes(measured.traffic.uploaded),
        in_bytes(measured.traffic.downloaded),
    ));
    let loaded = &measured.loaded;
    match loaded.elapsed.is_zero() {
        true => line(format_args!("  loaded: nothing")),
        false => line(format_args!(
            "  loaded: {} in {}, decoding and encoding at {:.2} GB/s a core",
            in_bytes(loaded.bytes),
            ms(loaded.elapsed),
            loaded.gigabytes_per_second_core(),
        )),
    }
    if loaded.restored > 0 {
        line(format_args!("  of it as they were kept: {}", in_bytes(loaded.restored)));
    }
    if loaded.written > 0 {
        line(format_args!("  kept in a file of {}", in_bytes(loaded.written)));
    }
    loaded.warnings.iter().for_each(|warning| line(format_args!("  warning: {warning}")));
    measured.top.iter().for_each(|top| line(format_args!("  top-k by {top}")));
    if measured.grown > 0 {
        line(format_args!("  stopped without room {} times, and went on with more", measured.grown));
    }
    if measured.reruns > 0 {
        line(format_args!("  run again {} times: a guess proved wrong", measured.reruns));
    }
}

/// DataFusion's EXPLAIN with our rows behind its own, or in their place.
pub(crate) struct ExplainExec {
    inner: Arc<dyn ExecutionPlan>,
    detail: Detail,
    /// Given for a plan that is not run.
    notes: Option<Notes>,
    engine: Option<Arc<Engine>>,
    no_device: Option<String>,
    outputs: Vec<Arc<Output>>,
}

impl ExplainExec {
    /// Adds rows to `inner`: those of `notes`, or once it has run what was measured, and the shared tables that the
    /// plan reads.
    pub(crate) fn new(
        inner: Arc<dyn ExecutionPlan>,
        (detail, notes): (Detail, Option<Notes>),
        (engine, no_device): (Option<Arc<Engine>>, Option<String>),
        outputs: Vec<Arc<Output>>,
    ) -> ExplainExec {
        ExplainExec { inner, detail, notes, engine, no_device, outputs }
    }

    fn around(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(inner), true) => {
                let (notes, engine) = (self.notes.clone(), self.engine.clone());
                let (no_device, outputs) = (self.no_device.clone(), self.outputs.clone());
                Ok(Arc::new(ExplainExec { inner, detail: self.detail, notes, engine, no_device, outputs }))
            }
            _ => Err(DataFusionError::Internal("an EXPLAIN has one child".into())),
        }
    }
}

impl fmt::Debug for ExplainExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExplainExec").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl DisplayAs for ExplainExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("ExplainExec")
    }
}

impl ExecutionPlan for ExplainExec {
    fn name(&self) -> &str {
        "ExplainExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.inner]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.around(children)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.around(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.inner.execute(partition, context.clone())?;
        let schema = self.schema();
        let (notes, engine, no_device) = (self.notes.clone(), self.engine.clone(), self.no_device.clone());
        let (outputs, analyzed) = (self.outputs.clone(), analyzed(&self.inner).filter(|_| self.detail == Detail::Tree));
        // What was analysed has run once DataFusion's rows are there.
        let has_tree = notes.as_ref().map_or(analyzed.is_some(), |notes| notes.tree.is_some());
        let rows = rows.try_filter(move |_| std::future::ready(!has_tree));
        let further = stream::once({
            let schema = schema.clone();
            async move {
                let is_run = notes.is_none();
                let run = || {
                    let tree = analyzed.as_ref().map(|plan| (Arc::clone(plan), outputs.clone()));
                    Some(of_run(StatementReport::of(&context).as_deref()?, engine.as_ref(), no_device, tree.as_ref()))
                };
                let Some(notes) = notes.or_else(run) else { return Ok(None) };
                let shared = if has_tree { String::new() } else { shared(&outputs, is_run) };
                rows_of(&shared, &notes, &schema).map(Some)
            }
        });
        let all = rows.chain(further.try_filter_map(|batch| async { Ok(batch) }));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
    }
}

/// The plan that an EXPLAIN ANALYZE runs.
fn analyzed(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let inner = plan.children().into_iter().next()?;
    if plan.name() == "AnalyzeExec" { Some(inner.clone()) } else { analyzed(inner) }
}

/// Each shared table with its plan; after a run with what its operators have measured.
fn shared(outputs: &[Arc<Output>], is_run: bool) -> String {
    let of = |output: &Arc<Output>| {
        let plan = match is_run {
            true => DisplayableExecutionPlan::with_metrics(output.plan().as_ref()),
            false => DisplayableExecutionPlan::new(output.plan().as_ref()),
        };
        let plan = plan.indent(false).to_string();
        let spilled = output.metrics().spill_count().filter(|files| *files > 0);
        let spilled = spilled.map_or_else(String::new, |files| format!(", spilled to {files} files"));
        format!("{}{spilled}\n{}", output.title(), plan.trim_end())
    };
    outputs.iter().map(of).collect::<Vec<_>>().join("\n")
}

fn rows_of(shared: &str, notes: &Notes, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = [
        ("plan", notes.tree.as_deref().unwrap_or_default()),
        ("shared", shared),
        ("placement", &notes.placement),
        ("with a GPU", &notes.with_gpu),
        ("device", &notes.device),
    ];
    let rows = || rows.iter().filter(|(_, text)| !text.is_empty());
    let kinds: ArrayRef = Arc::new(rows().map(|(kind, _)| Some(*kind)).collect::<StringArray>());
    let texts: ArrayRef = Arc::new(rows().map(|(_, text)| Some(*text)).collect::<StringArray>());
    Ok(RecordBatch::try_new(schema.clone(), vec![kinds, texts])?)
}
