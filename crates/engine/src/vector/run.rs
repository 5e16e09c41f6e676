//! A fragment from the columns in host memory to its batch.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use arrow::record_batch::RecordBatch;
use warpcube_column::{ColumnVectors, Relation};
use warpcube_gpu::DeviceInfo;

use super::plan::{HostGuesses, HostPipeline, HostSink, computed, plan_fragment};
use super::read::over_groups;
use super::rows::lay_out;
use super::scan::{HostLimits, Local, Output, Scanned, scan};
use super::tables::{PerKey, Table};
use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, Texts};
use crate::ir::{Fragment, Sink, Source};
use crate::plan::table::Unique;
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
    let mut outputs: Vec<Option<Output>> = Vec::new();
    let mut shared: Option<Local> = None;
    for (index, pipeline) in pipelines.iter().enumerate() {
        let local = {
            let scanned = scanned(pipeline, tables, &outputs)?;
            scan(pipeline, &scanned, &joined, limits)?
        };
        if matches!(&local, Local::Groups(groups) if groups.lacks_limbs) {
            return Ok(Err(HostGuesses { whole_sums: true, ..how.2 }));
        }
        // The branches of a union leave one table of groups, which is the last one's.
        let branches = fragment.branches(index);
        let local = match shared.take() {
            Some(earlier) => Local::merge(earlier, local),
            None => local,
        };
        if index + 1 < branches.end {
            shared = Some(local);
            joined.push(None);
            outputs.push(None);
            continue;
        }
        let Some(output) = finish(local, pipeline, &fragment.pipelines[index].sink)? else {
            let bit = 1u32.checked_shl(index as u32).unwrap_or(0);
            return Ok(Err(HostGuesses { several: how.2.several | bit, ..how.2 }));
        };
        let (table, output) = match output {
            Output::Table(table) => (Some(table), None),
            output => (None, Some(output)),
        };
        joined.push(table);
        outputs.push(output);
    }
    let root = outputs.pop().flatten();
    let root = root.ok_or_else(|| EngineError::Malformed("the root of a fragment gives no rows".into()))?;
    let batch = batch_of(fragment, (&pipelines, root), groups_max)?;
    Ok(Ok((batch, HostTimes { plan, scans: clock.elapsed() })))
}

/// What a pipeline scans.
fn scanned<'a>(pipeline: &HostPipeline, tables: &'a [Relation], outputs: &'a [Option<Output>]) -> Result<Scanned<'a>> {
    match pipeline.source {
        Source::Table(table) => {
            let relation = &tables[table];
            let columns = relation.columns.iter().map(|column| ColumnVectors::of(column));
            Ok(Scanned::Table { columns: columns.collect::<Result<_, _>>()?, chunks: &relation.chunks })
        }
        Source::Output(of) => match outputs.get(of).and_then(Option::as_ref) {
            Some(Output::Groups(rows, plan)) => {
                Ok(Scanned::Groups { rows, key_words: plan.pack.words, is_wide: plan.pack.is_wide() })
            }
            _ => Err(EngineError::Malformed("a scan of what is not there".into())),
        },
    }
}

/// What a sink has become; none where a table has several rows for a key, which was guessed to have one.
fn finish(local: Local, pipeline: &HostPipeline, sink: &Sink) -> Result<Option<Output>> {
    Ok(Some(match (local, &pipeline.sink, sink) {
        (Local::Table(rows), HostSink::Table { plan, .. }, Sink::Build { .. }) => {
            let facts: Vec<Facts> = plan.payload.iter().map(|column| column.facts.clone()).collect();
            let per_key = match plan.unique {
                _ if plan.matches.is_some() => PerKey::All,
                Unique::Always => PerKey::One,
                Unique::Guessed(_) => PerKey::Guessed,
                Unique::No => PerKey::Any,
            };
            match Table::of(rows, &plan.pack, &facts, per_key)? {
                Some(table) => Output::Table(table),
                None => return Ok(None),
            }
        }
        (Local::Groups(groups), _, _) if groups.overflows() => return Err(EngineError::Evaluation("an overflow")),
        (Local::Groups(groups), HostSink::Groups { plan, .. }, _) => Output::Groups(groups.rows(), plan.clone()),
        (Local::First(ranked), HostSink::First { row, k, .. }, _) => {
            let (words, count) = ranked.first(*k, row.words()).into_rows();
            Output::First(words, count)
        }
        (Local::Rows(packed), HostSink::Rows { plan, limit, .. }, _) => {
            let (mut words, count) = packed.into_rows();
            let count = limit.map_or(count, |limit| count.min(limit as usize));
            words.truncate(count * plan.pack.words);
            Output::Rows(words, count)
        }
        _ => return Err(EngineError::Malformed("a sink of another kind".into())),
    }))
}

/// The batch of the last pipeline's rows.
fn batch_of(
    fragment: &Fragment,
    (pipelines, root): (&[HostPipeline], Output),
    groups_max: Option<u64>,
) -> Result<RecordBatch> {
    let mut no_texts = |_: Texts, _: &[Option<u64>]| Err(EngineError::Malformed("strings without a dictionary".into()));
    let pays = |count: usize| match groups_max.is_some_and(|most| count as u64 > most) {
        true => unsupported(format!("a result of {count} rows, more than pay to bring back")),
        false => Ok(()),
    };
    let sink = pipelines.last().map(|pipeline| &pipeline.sink);
    match (root, sink) {
        (Output::Groups(groups, plan), _) => {
            pays(groups.count)?;
            if let (Some((programs, origins)), Some(row)) = (computed(&plan, fragment)?, &plan.computed) {
                let (mut words, layout) = (Vec::new(), &row.row);
                over_groups(&groups, plan.pack.words, (&programs, &origins), |values, rows| {
                    rows.each(|row| lay_out(layout, values, row, &mut words));
                })?;
                return laid_out_batch(layout, &rows(&words, layout.words(), groups.count), &mut no_texts);
            }
            batch(&plan, &rows(&groups.words, groups.row_words, groups.count), &mut no_texts)
        }
        (Output::First(words, count), Some(HostSink::First { row, .. })) => {
            pays(count)?;
            laid_out_batch(row, &rows(&words, row.words(), count), &mut no_texts)
        }
        (Output::Rows(words, count), Some(HostSink::Rows { plan, .. })) => {
            pays(count)?;
            rows_batch(plan, &rows(&words, plan.pack.words, count), &mut no_texts)
        }
        _ => Err(EngineError::Malformed("the root of a fragment gives no rows".into())),
    }
}

fn rows(words: &[u64], row_words: usize, count: usize) -> Rows<'_> {
    Rows { count, row_words, bytes: bytemuck::cast_slice(words).into(), first: 0 }
}
