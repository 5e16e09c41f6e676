//! The plan of a statement as one tree, for EXPLAIN: operators of the CPU and, in the place of each fragment, its
//! operators on the device, each on a line with its rows, where it runs and after a run its time.
//!
//! Operators that only pass rows on (exchanges, merges of partitions, projections, partial aggregations) are left out:
//! EXPLAIN VERBOSE has DataFusion's plans with all of them. Rows of a plan that is not run are estimates: `~` before
//! one that is not exact.

use std::fmt;
use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};

use super::device_exec::DeviceExec;
use super::operators::{self, CPU, Operator, ms};
use crate::shared::Output;
use crate::words::in_sql;

/// Longest text of an operator, in characters.
const TEXT_LONGEST: usize = 100;

/// Operators that pass rows on as they are, or compute columns of each row.
const PASSING: [&str; 8] = [
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "OutputRequirementExec",
    "ProjectionExec",
    "RepartitionExec",
    "SortPreservingMergeExec",
    "WithExec",
];

/// Operators whose names are not what they are called in SQL.
const NAMES: [(&str, &str); 7] = [
    ("DataSourceExec", "scan"),
    ("DataSinkExec", "write"),
    ("SortExec(TopK)", "first rows"),
    ("BoundedWindowAggExec", "window"),
    ("WindowAggExec", "window"),
    ("PlaceholderRowExec", "one row"),
    ("EmptyExec", "no rows"),
];

/// Details that are not worth their place.
const UNTOLD: [&str; 3] = ["mode=", "bytes=", "rows="];

/// What draws the operators of a fragment.
pub(super) type Fragment<'f> = &'f mut dyn FnMut(&DeviceExec) -> Option<Operator>;

/// The lines of a plan's tree and of those of the tables that it shares; with what a run measured, where there was one.
pub(super) fn draw(
    plan: &Arc<dyn ExecutionPlan>,
    outputs: &[Arc<Output>],
    is_run: bool,
    fragment: Fragment<'_>,
) -> String {
    let mut roots = operators_of(plan, is_run, fragment);
    for output in outputs {
        let text = format!("shared table {}", output.title());
        let inputs = operators_of(output.plan(), is_run, fragment);
        roots.push(Operator { place: CPU, text, inputs, ..Operator::default() });
    }
    operators::draw_places(roots, is_run)
}

/// An operator with those below it; those below alone where it is left out.
fn operators_of(plan: &Arc<dyn ExecutionPlan>, is_run: bool, fragment: Fragment<'_>) -> Vec<Operator> {
    if let Some(device) = plan.downcast_ref::<DeviceExec>()
        && let Some(operator) = fragment(device)
    {
        return vec![operator];
    }
    let children = plan.children();
    let inputs: Vec<Operator> = children.into_iter().flat_map(|child| operators_of(child, is_run, fragment)).collect();
    let details = Details(plan.as_ref()).to_string();
    // An operator that says nothing but its name passes rows on, too.
    let is_passing = PASSING.contains(&plan.name()) || details.trim() == plan.name();
    if (is_passing || details.lines().any(|line| line.trim() == "mode=Partial")) && !inputs.is_empty() {
        return inputs;
    }
    let metrics = is_run.then(|| plan.metrics()).flatten();
    let rows = match is_run {
        true => metrics.as_ref().and_then(|metrics| metrics.output_rows()).map(|rows| rows.to_string()),
        false => estimate(plan.as_ref()),
    };
    let time = metrics
        .and_then(|metrics| metrics.elapsed_compute())
        .map(|nanoseconds| ms(std::time::Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))));
    vec![Operator {
        rows: rows.unwrap_or_default(),
        bytes: String::new(),
        time: time.unwrap_or_default(),
        place: CPU,
        text: match plan.downcast_ref::<DeviceExec>() {
            Some(device) => device.lowered.what.clone(),
            None => text(plan.as_ref(), &details),
        },
        inputs,
    }]
}

/// The rows that an operator is expected to give.
fn estimate(plan: &dyn ExecutionPlan) -> Option<String> {
    match StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok()?.num_rows {
        Precision::Exact(rows) => Some(rows.to_string()),
        Precision::Inexact(rows) => Some(format!("~{rows}")),
        Precision::Absent => None,
    }
}

/// An operator's name and details on one line.
fn text(plan: &dyn ExecutionPlan, details: &str) -> String {
    let name = plan.name();
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, called)| called.to_string());
    let mut text = known.unwrap_or_else(|| words(name.trim_end_matches("Exec")));
    if plan.children().is_empty() {
        let schema = plan.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if !columns.is_empty() {
            text = format!("{text} {}", columns.join(", "));
        }
    }
    let is_told = |line: &&str| !line.is_empty() && !UNTOLD.iter().any(|key| line.starts_with(key));
    let details = details.lines().map(str::trim).filter(is_told).collect::<Vec<_>>().join(", ");
    if !details.is_empty() {
        text = format!("{text}: {}", in_words(&details));
    }
    match text.char_indices().nth(TEXT_LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Details with values in SQL's words, and names without the numbers of columns.
fn in_words(details: &str) -> String {
    let said = in_sql(details).replace("count(1)", "count(*)");
    let mut parts = said.split('@');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |said, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() < part.len() { said + rest } else { said + "@" + part }
    })
}

/// `HashJoin` as `hash join`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

/// What an operator says of itself in DataFusion's own trees, a line each.
struct Details<'p>(&'p dyn ExecutionPlan);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(DisplayFormatType::TreeRender, f)
    }
}
