//! Reading what a run leaves: flags, then groups or the rows of a top-k.

use std::borrow::Cow;

use arrow::record_batch::RecordBatch;
use warpcube_gpu::{DeviceBuffer, Stream};

use crate::codegen::computed;
use crate::codegen::memory::{BoundGroups, BoundRows, HEAD_WORDS};
use crate::codegen::topk::{BoundTop, FLAG_SCANNED_ROWS};
use crate::error::{EngineError, Result};
use crate::exec::bind::{BoundFragment, Gathered, Root};
use crate::exec::recorded::Recorded;
use crate::exec::topk::TopHead;
use crate::plan::groups::Grouping;
use crate::plan::top;
use crate::result::{Rows, StringsAt, batch, laid_out_batch, rows_batch, word};

/// Bits of the flags word, as in `scan.cuh`.
const FLAG_DUPLICATE_KEY: u64 = 1;
const FLAG_LONG_RUN: u64 = 8;
/// As in `stops.cuh`: WC_STOPPED_SHIFT.
const FLAG_STOPPED: u64 = 1 << 5;
/// And as in `fixed.cuh` and `topk.cuh`.
const FLAG_SUM_WINDOW: u64 = 4;
const FLAG_CANDIDATES_FULL: u64 = 16;

/// Reads the result of a run over an arena; the inner error is a guess that was too small.
pub(crate) fn read<'a>(
    bound: &BoundFragment,
    (recorded, arena, stream): (&'a Recorded, &DeviceBuffer, &mut Stream),
    groups_max: Option<u64>,
) -> Result<Result<Rows<'a>, TooSmall>> {
    match &bound.root {
        Root::Groups(_, Some(gathered)) => {
            let reading =
                Reading { first: recorded.outputs()?[0], arena, stream, at: bound.arena.offset(gathered.region) };
            read_gathered(gathered, reading, groups_max)
        }
        Root::Groups(groups, None) => read_whole(bound, groups, recorded),
        Root::TopK(top) => {
            let reading =
                Reading { first: recorded.outputs()?[0], arena, stream, at: bound.arena.offset(top.memory.output) };
            read_top(top, reading, groups_max)
        }
        Root::Rows(rows) => {
            let (control, first) = (recorded.outputs()?[0], recorded.outputs()?[1]);
            if let Err(too_small) = check_control(control)? {
                return Ok(Err(too_small));
            }
            let reading = Reading { first, arena, stream, at: bound.arena.offset(rows.memory) };
            Ok(Ok(read_rows(rows, reading, groups_max)?))
        }
    }
}

/// A guess that a run found too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooSmall {
    /// Room of a sink, whose scan has stopped.
    Stopped,
    /// Room for a sort, or of a sink where there is no memory for more beside it.
    Room,
    /// One row for a key in the tables of these pipelines, a bit each.
    SeveralRows(u32),
    /// Limbs of an exact sum of floats.
    SumWindow,
    /// Slots near the one that a join key belongs to: keys collide under the seed.
    LongRun,
    /// Candidates of a top-k, or the room for them.
    Threshold,
    /// The same of first rows that another pipeline scans.
    ScannedRows,
    /// Groups that one block sorts.
    BlockSort,
}

/// What error and flags words say.
fn check(error: u64, flags: u64) -> Result<Result<(), TooSmall>> {
    match error {
        0 => {}
        1 => return Err(EngineError::Evaluation("a division by zero")),
        _ => return Err(EngineError::Evaluation("an overflow")),
    }
    // Above the flags stand the tables that may have several rows for a key.
    if flags & FLAG_DUPLICATE_KEY != 0 && flags >> 32 != 0 {
        return Ok(Err(TooSmall::SeveralRows((flags >> 32) as u32)));
    }
    if flags & FLAG_DUPLICATE_KEY != 0 {
        return crate::error::unsupported("a join whose build side has several rows for one key");
    }
    Ok(match flags {
        _ if flags & FLAG_LONG_RUN != 0 => Err(TooSmall::LongRun),
        _ if flags & FLAG_SCANNED_ROWS != 0 => Err(TooSmall::ScannedRows),
        _ if flags & FLAG_CANDIDATES_FULL != 0 => Err(TooSmall::Threshold),
        _ if flags & FLAG_SUM_WINDOW != 0 => Err(TooSmall::SumWindow),
        _ if flags & FLAG_STOPPED != 0 => Err(TooSmall::Stopped),
        _ => Ok(()),
    })
}

/// What the head of the control region says.
fn check_control(head: &[u8]) -> Result<Result<(), TooSmall>> {
    let stopped = if word(head, 3) != 0 { FLAG_STOPPED } else { 0 };
    check(word(head, 0), word(head, 1) | stopped)
}

/// Reads control, marks and cells of a small dense group table.
fn read_whole<'a>(
    bound: &BoundFragment,
    groups: &BoundGroups,
    recorded: &Recorded,
) -> Result<Result<Rows<'a>, TooSmall>> {
    let outputs = recorded.outputs()?;
    let (head, tail) = (outputs[0], outputs[1]);
    if let Err(too_small) = check_control(head)? {
        return Ok(Err(too_small));
    }
    let row_words = 1 + groups.cell_count;
    let (mut count, mut bytes) = (0, Vec::new());
    let at = |region| bound.arena.offset(region) - bound.arena.offset(groups.memory.seen);
    let cell_words = &tail[groups.memory.cells.map_or(0, at)..];
    for (place, mark) in tail[..groups.places as usize].iter().enumerate() {
        // A global aggregation has its one row whether anything went in or not.
        if *mark == 0 && groups.grouping != Grouping::Single {
            continue;
        }
        count += 1;
        let cells = (0..groups.cell_count).map(|cell| word(cell_words, cell * groups.places as usize + place));
        bytes.extend(std::iter::once(place as u64).chain(cells).flat_map(u64::to_le_bytes));
    }
    Ok(Ok(Rows { count, row_words, bytes: bytes.into(), first: 0 }))
}

/// A result whose first bytes came with the run.
struct Reading<'a, 's> {
    /// The first bytes.
    first: &'a [u8],
    arena: &'s DeviceBuffer,
    stream: &'s mut Stream,
    /// Where it lies in the arena.
    at: usize,
}

impl<'a> Reading<'a, '_> {
    /// Rows behind a head of so many words: usually they came at once, more are fetched now.
    fn rows(self, first: usize, count: usize, row_words: usize) -> Result<Rows<'a>> {
        let (came, wanted) = (self.first, 8 * (first + count * row_words));
        let mut bytes = Cow::Borrowed(came);
        if wanted > came.len() {
            let all = bytes.to_mut();
            all.resize(wanted, 0);
            self.stream.download(self.arena, self.at + came.len(), &mut all[came.len()..])?;
        }
        Ok(Rows { count, row_words, bytes, first })
    }
}

/// Reads groups that were gathered.
fn read_gathered<'a>(
    gathered: &Gathered,
    read: Reading<'a, '_>,
    groups_max: Option<u64>,
) -> Result<Result<Rows<'a>, TooSmall>> {
    let first = read.first;
    if let Err(too_small) = check(word(first, 0), word(first, 1))? {
        return Ok(Err(too_small));
    }
    let count = word(first, 2).min(gathered.capacity) as usize;
    if groups_max.is_some_and(|most| count as u64 > most) {
        return crate::error::unsupported(format!("a result of {count} groups, more than pay to bring back"));
    }
    read.rows(computed::HEAD_WORDS, count, gathered.row_words).map(Ok)
}

/// Refuses a result of more rows than pay to bring back.
fn pays(rows: u64, most: Option<u64>) -> Result<()> {
    match most.is_some_and(|most| rows > most) {
        true => crate::error::unsupported(format!("a result of {rows} rows, more than pay to bring back")),
        false => Ok(()),
    }
}

/// Reads rows, which take no cells.
fn read_rows<'a>(bound: &BoundRows, read: Reading<'a, '_>, rows_max: Option<u64>) -> Result<Rows<'a>> {
    let count = word(read.first, 0).min(bound.capacity) as usize;
    pays(count as u64, rows_max)?;
    read.rows(HEAD_WORDS, count, bound.pack.words)
}

/// Reads the rows of a top-k, if its threshold let enough rows pass.
fn read_top<'a>(top: &BoundTop, read: Reading<'a, '_>, rows_max: Option<u64>) -> Result<Result<Rows<'a>, TooSmall>> {
    let head = TopHead::of(read.first);
    match check(head.error, head.flags)? {
        // All rows that pass were to be candidates, and there are more than the room.
        Err(TooSmall::Threshold) if top.is_sort => {
            pays(top.k + 1, rows_max)?;
            return Ok(Err(if top.expects_few { TooSmall::BlockSort } else { TooSmall::Room }));
        }
        Err(too_small) => return Ok(Err(too_small)),
        Ok(()) => {}
    }
    if head.thresholded && head.rows < top.k {
        return Ok(Err(TooSmall::Threshold));
    }
    let count = head.rows.min(top.k) as usize;
    if top.is_sort {
        pays(count as u64, rows_max)?;
    }
    read.rows(top::HEAD_WORDS, count, top.row.words()).map(Ok)
}

impl Rows<'_> {
    /// The batch of the fragment's result; `strings_at` reads those of columns without a dictionary.
    pub(crate) fn batch(&self, root: &Root, strings_at: &mut StringsAt) -> Result<RecordBatch> {
        match root {
            Root::Groups(groups, _) => match &groups.computed {
                None => batch(groups, self, strings_at),
                Some(computed) => laid_out_batch(&computed.row, self, strings_at),
            },
            Root::Rows(bound) => rows_batch(bound, self, strings_at),
            Root::TopK(top) => laid_out_batch(&top.row, self, strings_at),
        }
    }
}
