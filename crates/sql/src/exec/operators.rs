//! The operators of a fragment as a tree, for EXPLAIN: the root is what comes back, below it are steps, tables that
//! joins probe and scans, each on a line with its rows, its bytes and after a run its time.
//!
//! A launch runs whole pipelines, so its time stands on the operator that ends each: a table, groups or the result.
//! Rows between the steps of a pipeline are not counted; their cells have the estimate of the binding.

use std::time::Duration;

use warpcube_engine::{Prediction, Rows, RunReport, in_bytes};

/// The names of places.
pub(super) const CPU: &str = "CPU";
pub(super) const GPU: &str = "GPU";
pub(super) const COLUMNS: &str = "CPU, columns";

/// An operator with the text of its cells; those that are not known are empty.
#[derive(Default)]
pub(super) struct Operator {
    pub(super) rows: String,
    pub(super) bytes: String,
    pub(super) time: String,
    pub(super) place: &'static str,
    pub(super) text: String,
    pub(super) inputs: Vec<Operator>,
}

impl Operator {
    /// An operator of the device of which nothing else is known.
    fn of(text: String, inputs: Vec<Operator>) -> Operator {
        Operator { place: GPU, text, inputs, ..Operator::default() }
    }
}

impl Operator {
    /// The operator and those below it with another place.
    pub(super) fn at(self, place: &'static str) -> Operator {
        let inputs = self.inputs.into_iter().map(|input| input.at(place)).collect();
        Operator { place, inputs, ..self }
    }
}

/// The lines of a fragment's tree, each after a line break; with what a run measured, where there was one.
pub(super) fn draw(known: &Prediction, measured: Option<&RunReport>) -> String {
    let Some(root) = tree(known, measured, true) else { return String::new() };
    let cells: &[Cell] = if measured.is_some() { &[ROWS, BYTES, TIME] } else { &[ROWS, BYTES] };
    lines(vec![root], cells).iter().map(|line| format!("\n  {line}")).collect()
}

/// The operators of a fragment; with the sizes and algorithms that were chosen, if asked for.
pub(super) fn tree(known: &Prediction, measured: Option<&RunReport>, has_sizes: bool) -> Option<Operator> {
    let root = known.pipelines.len().checked_sub(1)?;
    Some(Tree { known, measured, has_sizes, drawn: vec![false; known.pipelines.len()] }.pipeline(root))
}

/// The lines of a plan's trees with the place of each operator, and its time if it has run.
pub(super) fn draw_places(roots: Vec<Operator>, is_run: bool) -> String {
    let cells: &[Cell] = if is_run { &[ROWS, TIME, PLACE] } else { &[ROWS, PLACE] };
    lines(roots, cells).join("\n")
}

/// A cell that stands before operators: its heading, and its text.
type Cell = (&'static str, fn(&Operator) -> &str);

const ROWS: Cell = ("rows", |operator| &operator.rows);
const BYTES: Cell = ("bytes", |operator| &operator.bytes);
const TIME: Cell = ("time", |operator| &operator.time);
const PLACE: Cell = ("place", |operator| operator.place);

/// A heading and a line for each operator, with these cells before it.
fn lines(roots: Vec<Operator>, cells: &[Cell]) -> Vec<String> {
    let mut laid_out = vec![(cells.iter().map(|(heading, _)| heading.to_string()).collect(), "operator".to_string())];
    roots.into_iter().for_each(|root| lay_out(root, "", "", cells, &mut laid_out));
    let width = |cell: usize| laid_out.iter().map(|(texts, _)| texts[cell].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..cells.len()).map(width).collect();
    let line = |(texts, operator): &(Vec<String>, String)| {
        let cells = texts.iter().zip(&widths).map(|(text, &width)| format!("{text:>width$}  "));
        format!("{}{operator}", cells.collect::<String>())
    };
    laid_out.iter().map(line).collect()
}

/// Adds the lines of an operator and of those below it: `own` stands before its own text, `below` before theirs.
fn lay_out(operator: Operator, own: &str, below: &str, cells: &[Cell], lines: &mut Vec<(Vec<String>, String)>) {
    let texts = cells.iter().map(|(_, text)| text(&operator).to_string()).collect();
    let Operator { text, inputs, .. } = operator;
    lines.push((texts, format!("{own}{text}")));
    let count = inputs.len();
    for (position, input) in inputs.into_iter().enumerate() {
        let (branch, trunk) = if position + 1 == count { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lay_out(input, &format!("{below}{branch}"), &format!("{below}{trunk}"), cells, lines);
    }
}

struct Tree<'a> {
    known: &'a Prediction,
    measured: Option<&'a RunReport>,
    /// Whether tables and results have their sizes and algorithms behind them.
    has_sizes: bool,
    /// Pipelines that stand in the tree already: several joins may probe one table.
    drawn: Vec<bool>,
}

impl Tree<'_> {
    /// The operator that ends a pipeline, with all below it.
    fn pipeline(&mut self, index: usize) -> Operator {
        let pipeline = &self.known.pipelines[index];
        let is_root = index + 1 == self.known.pipelines.len();
        if std::mem::replace(&mut self.drawn[index], true) {
            return Operator::of(format!("{} as above", pipeline.name), Vec::new());
        }
        let mut inputs: Vec<Operator> = pipeline.branches.clone().map(|branch| self.rows(branch)).collect();
        if inputs.len() > 1 {
            inputs = vec![Operator::of("union all".into(), inputs)];
        }
        let leaves = match self.measured.filter(|_| is_root) {
            Some(measured) => Some(Rows::Exactly(measured.rows)),
            None => pipeline.leaves,
        };
        let size =
            pipeline.size.as_ref().filter(|_| self.has_sizes).map_or_else(String::new, |size| format!(" ({size})"));
        Operator {
            rows: leaves.map_or_else(String::new, count),
            bytes: pipeline.memory.map_or_else(String::new, in_bytes),
            time: self.time(index),
            place: GPU,
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
            operator = Operator { rows, ..Operator::of(step.text.clone(), inputs) };
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
            ..Operator::of(
                match groups {
                    Some(groups) => format!("scan {}", self.known.pipelines[groups].name),
                    None => format!("scan {}{there}", pipeline.source),
                },
                groups.map(|groups| self.pipeline(groups)).into_iter().collect(),
            )
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
