//! The operators of a fragment as a tree, for EXPLAIN: the root is what comes back, below it are steps, tables that
//! joins probe and scans, each on a line with its rows, its bytes and after a run its time.
//!
//! A launch runs whole pipelines, so its time stands on the operator that ends each: a table, groups or the result.
//! Rows between the steps of a pipeline are not counted; their cells have the estimate of the binding.

use std::time::Duration;

use warpcube_engine::{Prediction, Rows, RunReport, in_bytes};

/// An operator with the text of its cells; those that are not known are empty.
struct Operator {
    rows: String,
    bytes: String,
    time: String,
    text: String,
    inputs: Vec<Operator>,
}

/// The lines of a fragment's tree, each after a line break; with what a run measured, where there was one.
pub(super) fn draw(known: &Prediction, measured: Option<&RunReport>) -> String {
    let mut tree = Tree { known, measured, drawn: vec![false; known.pipelines.len()] };
    let Some(root) = known.pipelines.len().checked_sub(1) else { return String::new() };
    let mut lines = vec![["rows", "bytes", "time", "operator"].map(String::from)];
    lay_out(tree.pipeline(root), "", "", &mut lines);
    let width = |cell: usize| lines.iter().map(|line| line[cell].chars().count()).max().unwrap_or(0);
    let (rows, bytes, time) = (width(0), width(1), width(2));
    let line = |[row_count, byte_count, duration, operator]: &[String; 4]| match measured {
        Some(_) => format!("\n  {row_count:>rows$}  {byte_count:>bytes$}  {duration:>time$}  {operator}"),
        None => format!("\n  {row_count:>rows$}  {byte_count:>bytes$}  {operator}"),
    };
    lines.iter().map(line).collect()
}

/// Adds the lines of an operator and of those below it: `own` stands before its own text, `below` before theirs.
fn lay_out(operator: Operator, own: &str, below: &str, lines: &mut Vec<[String; 4]>) {
    let Operator { rows, bytes, time, text, inputs } = operator;
    lines.push([rows, bytes, time, format!("{own}{text}")]);
    let count = inputs.len();
    for (position, input) in inputs.into_iter().enumerate() {
        let (branch, trunk) = if position + 1 == count { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lay_out(input, &format!("{below}{branch}"), &format!("{below}{trunk}"), lines);
    }
}

struct Tree<'a> {
    known: &'a Prediction,
    measured: Option<&'a RunReport>,
    /// Pipelines that stand in the tree already: several joins may probe one table.
    drawn: Vec<bool>,
}

impl Tree<'_> {
    /// The operator that ends a pipeline, with all below it.
    fn pipeline(&mut self, index: usize) -> Operator {
        let pipeline = &self.known.pipelines[index];
        let is_root = index + 1 == self.known.pipelines.len();
        if std::mem::replace(&mut self.drawn[index], true) {
            let text = format!("{} as above", pipeline.name);
            return Operator {
                rows: String::new(),
                bytes: String::new(),
                time: String::new(),
                text,
                inputs: Vec::new(),
            };
        }
        let mut inputs: Vec<Operator> = pipeline.branches.clone().map(|branch| self.rows(branch)).collect();
        if inputs.len() > 1 {
            let (rows, bytes, time) = Default::default();
            inputs = vec![Operator { rows, bytes, time, text: "union all".into(), inputs }];
        }
        let leaves = match self.measured.filter(|_| is_root) {
            Some(measured) => Some(Rows::Exactly(measured.rows)),
            None => pipeline.leaves,
        };
        let size = pipeline.size.as_ref().map_or_else(String::new, |size| format!(" ({size})"));
        Operator {
            rows: leaves.map_or_else(String::new, count),
            bytes: pipeline.memory.map_or_else(String::new, in_bytes),
            time: self.time(index),
            text: format!("{}{size}", pipeline.sink),
            inputs,
        }
    }

    /// The operators of a pipeline up to its sink.
    fn rows(&mut self, index: usize) -> Operator {
        let mut operator = self.scan(index);
        for step in &self.known.pipelines[index].steps {
            let mut inputs = vec![operator];
            inputs.extend(step.build.map(|build| self.pipeline(build)));
            let rows = step.rows.map_or_else(String::new, |rows| format!("~{rows}"));
            operator = Operator { rows, bytes: String::new(), time: String::new(), text: step.text.clone(), inputs };
        }
        operator
    }

    fn scan(&mut self, index: usize) -> Operator {
        let pipeline = &self.known.pipelines[index];
        let there = match (pipeline.columns, pipeline.resident) {
            _ if pipeline.groups.is_some() => String::new(),
            (0, _) => ", no columns".to_string(),
            (columns, resident) if columns == resident => format!(", {columns} columns on the device"),
            (columns, 0) => format!(", {columns} columns to be loaded"),
            (columns, resident) => format!(", {columns} columns, {} of them to be loaded", columns - resident),
        };
        let bytes = match (pipeline.bytes, &pipeline.size, self.measured) {
            (Some(0) | None, ..) => String::new(),
            (Some(bytes), None, _) => format!("≤{}", in_bytes(bytes)),
            (Some(bytes), Some(_), None) => format!("~{}", in_bytes(bytes)),
            (Some(bytes), Some(_), Some(_)) => in_bytes(bytes),
        };
        let groups = pipeline.groups;
        Operator {
            rows: pipeline.rows.map_or_else(String::new, |rows| rows.to_string()),
            bytes,
            time: String::new(),
            text: match groups {
                Some(groups) => format!("scan {}", self.known.pipelines[groups].name),
                None => format!("scan {}{there}", pipeline.source),
            },
            inputs: groups.map(|groups| self.pipeline(groups)).into_iter().collect(),
        }
    }

    /// The time of the launches that a pipeline was part of: an upper bound where it ran beside others.
    fn time(&self, index: usize) -> String {
        let groups = self.measured.map_or(&[][..], |measured| &measured.launch_groups);
        let of_pipeline = || groups.iter().filter(|group| group.pipelines.contains(&index));
        let bound = if of_pipeline().all(|group| group.pipelines.len() == 1) { "" } else { "≤" };
        let time = of_pipeline().filter_map(|group| group.device).reduce(|time: Duration, next| time + next);
        time.map_or_else(String::new, |time| format!("{bound}{}", ms(time)))
    }
}

/// Milliseconds with three digits after the point.
pub(super) fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn count(rows: Rows) -> String {
    match rows {
        Rows::Exactly(rows) => rows.to_string(),
        Rows::About(rows) => format!("~{rows}"),
        Rows::AtMost(rows) => format!("≤{rows}"),
    }
}
