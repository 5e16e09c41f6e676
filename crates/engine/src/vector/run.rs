//! A fragment from the columns in host memory to its batch.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use warpcube_column::{ColumnVectors, Relation};
use warpcube_gpu::DeviceInfo;

use super::groups::Groups;
use super::limits::HostLimits;
use super::plan::{HostGuesses, HostPipeline, plan_fragment};
use super::read::over_groups;
use super::rows::{Packed, Words, lay_out};
use super::scan::{Local, Scanned, scan};
use super::sinks::{HostSink, RowsPlan, computed};
use super::tables::Table;
use crate::error::{EngineError, Result, unsupported};
use crate::facts::Texts;
use crate::ir::{Fragment, Source};
use crate::result::{Rows, batch, laid_out_batch, rows_batch};
use crate::tuning::Tuning;

/// What a run on the CPU took.
#[derive(Debug, Default)]
pub(crate) struct HostTimes {
    /// Time to plan.
    pub(crate) plan: std::time::Duration,
    /// Time of the scans.
    pub(crate) scans: std::time::Duration,
}

/// Runs a fragment over its tables.
///
/// # Errors
/// Unsupported for what is not done here and for tables, groups and rows of more bytes, evaluation errors,
/// [`GpuError::Cancelled`](warpcube_gpu::GpuError::Cancelled) once the run is cancelled.
pub(crate) fn run(
    fragment: &Fragment,
    tables: &[Relation],
    info: &DeviceInfo,
    tuning: &Tuning,
    (is_cancelled, bytes, groups_max): (&(dyn Fn() -> bool + Sync), u64, Option<u64>),
) -> Result<(RecordBatch, HostTimes)> {
    let mut guesses = HostGuesses::default();
    loop {
        let limits = HostLimits { is_cancelled, bytes, used: AtomicU64::new(0) };
        match run_with(fragment, tables, (info, tuning, guesses), (&limits, groups_max))? {
            Ok(done) => return Ok(done),
            Err(found) if found.several == guesses.several && found.whole_sums == guesses.whole_sums => {
                return Err(EngineError::Malformed("a guess that is found wrong again".into()));
            }
            Err(found) => guesses = found,
        }
    }
}

/// Runs a fragment by some guesses; the inner error is what they should be.
fn run_with(
    fragment: &Fragment,
    tables: &[Relation],
    how: (&DeviceInfo, &Tuning, HostGuesses),
    (limits, groups_max): (&HostLimits<'_>, Option<u64>),
) -> Result<std::result::Result<(RecordBatch, HostTimes), HostGuesses>> {
    let clock = Instant::now();
    let pipelines = plan_fragment(fragment, tables, how)?;
    let plan = clock.elapsed();
    let clock = Instant::now();
    let mut joined: Vec<Option<Table>> = Vec::new();
    let mut left: Vec<Option<Words>> = Vec::new();
    // What the branches of a union have left so far; the last one has what all have.
    let mut locals: Vec<Local> = Vec::new();
    for (index, pipeline) in pipelines.iter().enumerate() {
        locals.extend(scan(pipeline, &scanned(pipeline, (tables, &pipelines, &left))?, &joined, limits)?);
        if locals.iter().any(|local| matches!(local, Local::Groups(groups) if groups.lacks_limbs)) {
            return Ok(Err(HostGuesses { whole_sums: true, ..how.2 }));
        }
        let (mut table, mut rows) = (None, None);
        if index + 1 == fragment.branches(index).end {
            match finish(std::mem::take(&mut locals), pipeline, limits)? {
                Left::Table(Some(built)) => table = Some(built),
                Left::Table(None) => {
                    let bit = 1u32.checked_shl(index as u32).unwrap_or(0);
                    return Ok(Err(HostGuesses { several: how.2.several | bit, ..how.2 }));
                }
                Left::Rows(words) => rows = Some(words),
            }
        }
        joined.push(table);
        left.push(rows);
    }
    let batch = batch_of(fragment, (pipelines.last(), left.pop().flatten()), groups_max)?;
    Ok(Ok((batch, HostTimes { plan, scans: clock.elapsed() })))
}

/// What a pipeline scans.
fn scanned<'a>(
    pipeline: &HostPipeline,
    (tables, pipelines, left): (&'a [Relation], &[HostPipeline], &'a [Option<Words>]),
) -> Result<Scanned<'a>> {
    match pipeline.source {
        Source::Table(table) => {
            let relation = &tables[table];
            let columns = relation.columns.iter().map(|column| ColumnVectors::of(column));
            Ok(Scanned::Table { columns: columns.collect::<Result<_, _>>()?, chunks: &relation.chunks })
        }
        Source::Output(of) => {
            let rows = left.get(of).and_then(Option::as_ref);
            let rows = rows.ok_or_else(|| EngineError::Malformed("a scan of what is not there".into()))?;
            let (key_words, is_wide) = match &pipelines[of].sink {
                HostSink::Groups { plan, .. } => (plan.pack.words, plan.pack.is_wide()),
                _ => (0, false),
            };
            Ok(Scanned::Rows { rows, key_words, is_wide })
        }
    }
}

/// What a pipeline leaves.
enum Left {
    /// A table; none where it has several rows for a key, which was guessed to have one.
    Table(Option<Table>),
    Rows(Words),
}

/// What the sinks of all threads have become.
fn finish(locals: Vec<Local>, pipeline: &HostPipeline, limits: &HostLimits<'_>) -> Result<Left> {
    let (mut tables, mut groups, mut ranked, mut packed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for local in locals {
        match local {
            Local::Table(rows) => tables.push(rows),
            Local::Groups(own) => groups.push(*own),
            Local::First(own) => ranked.push(*own),
            Local::Rows(own) => packed.push(own),
        }
    }
    Ok(match &pipeline.sink {
        HostSink::Table { plan, .. } => Left::Table(Table::of(tables, plan)?),
        HostSink::Groups { .. } => Left::Rows(Groups::finish(groups)?),
        HostSink::First(plan) => Left::Rows(plan.finish(ranked, limits)?),
        HostSink::Rows { plan, limit, .. } => {
            let packed = packed.into_iter().reduce(Packed::append);
            Left::Rows(packed.unwrap_or_else(|| Packed::new(plan.pack())).into_rows(*limit))
        }
        HostSink::Nothing => Left::Table(None),
    })
}

/// The batch of the last pipeline's rows.
fn batch_of(
    fragment: &Fragment,
    (root, left): (Option<&HostPipeline>, Option<Words>),
    groups_max: Option<u64>,
) -> Result<RecordBatch> {
    let malformed = || EngineError::Malformed("the root of a fragment gives no rows".into());
    let (root, left) = root.zip(left).ok_or_else(malformed)?;
    if groups_max.is_some_and(|most| left.count as u64 > most) {
        return unsupported(format!("a result of {} rows, more than pay to bring back", left.count));
    }
    let mut no_texts = |_: Texts, _: &[Option<u64>]| Err(EngineError::Malformed("strings without a dictionary".into()));
    match &root.sink {
        HostSink::Groups { plan, .. } => {
            if let (Some((programs, origins)), Some(row)) = (computed(plan, fragment)?, &plan.computed) {
                let (mut words, layout) = (Vec::new(), &row.row);
                over_groups(&left, plan.pack.words, (&programs, &origins), |values, rows| {
                    rows.each(|row| lay_out(layout, values, row, &mut words));
                })?;
                let (row_words, count) = (layout.words(), left.count);
                return laid_out_batch(layout, &rows(&Words { words, row_words, count }), &mut no_texts);
            }
            batch(plan, &rows(&left), &mut no_texts)
        }
        HostSink::First(plan) => laid_out_batch(&plan.row, &rows(&left), &mut no_texts),
        HostSink::Rows { plan: RowsPlan::Result(plan), .. } => rows_batch(plan, &rows(&left), &mut no_texts),
        _ => Err(malformed()),
    }
}

fn rows(words: &Words) -> Rows<'_> {
    let bytes = bytemuck::cast_slice(&words.words).into();
    Rows { count: words.count, row_words: words.row_words, bytes, first: 0 }
}
