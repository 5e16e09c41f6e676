//! Reading what a run leaves: flags, then groups or the rows of a top-k.

use std::borrow::Cow;

use arrow::record_batch::RecordBatch;
use warpcube_gpu::{DeviceBuffer, Stream};

use crate::codegen::result_rows::{BoundRows, HEAD_WORDS};
use crate::codegen::sink::{BoundGroups, Grouping};
use crate::codegen::topk::{self, BoundTop};
use crate::error::{EngineError, Result};
use crate::exec::bind::{BoundFragment, Compacted, Root};
use crate::exec::recorded::Recorded;
use crate::exec::result::{GroupRows, StringsAt, batch, rows_batch};
use crate::exec::topk::{TopHead, TopRows, words};

/// Bits of the flags word, as in `scan.cuh`.
const FLAG_DUPLICATE_KEY: u64 = 1;
const FLAG_TABLE_FULL: u64 = 2;
const FLAG_LONG_RUN: u64 = 8;
/// And as in `fixed.cuh` and `topk.cuh`.
const FLAG_SUM_WINDOW: u64 = 4;
const FLAG_CANDIDATES_FULL: u64 = 16;

fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"))
}

/// Reads the result of a run over an arena; the inner error is a guess that was too small.
pub(crate) fn read(
    bound: &BoundFragment,
    (recorded, arena, stream): (&Recorded, &DeviceBuffer, &mut Stream),
    groups_max: Option<u64>,
) -> Result<Result<Rows, TooSmall>> {
    Ok(match &bound.root {
        Root::Groups(groups, Some(compacted)) => {
            let reading =
                Reading { first: recorded.outputs()[0], arena, stream, at: bound.arena.offset(compacted.zone) };
            read_compacted((groups, *compacted), reading, groups_max)?.map(Rows::Groups)
        }
        Root::Groups(groups, None) => read_whole(bound, groups, recorded)?.map(Rows::Groups),
        Root::TopK(top) => {
            let reading = Reading { first: recorded.outputs()[0], arena, stream, at: bound.arena.offset(top.output) };
            read_top(top, reading, groups_max)?.map(Rows::Top)
        }
        Root::Rows(rows) => {
            let (control, first) = (recorded.outputs()[0], recorded.outputs()[1]);
            if let Err(too_small) = check(word(control, 0), word(control, 1))? {
                return Ok(Err(too_small));
            }
            let reading = Reading { first, arena, stream, at: bound.arena.offset(rows.output) };
            Ok(Rows::Groups(read_rows(rows, reading, groups_max)?))
        }
    })
}

/// A guess that a run found too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooSmall {
    /// Slots of a hashed group table.
    GroupTable,
    /// One row for a key in the tables of these pipelines, a bit each.
    SeveralRows(u32),
    /// Limbs of an exact sum of floats.
    SumWindow,
    /// Slots near the one that a join key belongs to: keys collide under the seed.
    LongRun,
    /// Candidates of a top-k, or the room for them.
    Threshold,
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
        _ if flags & FLAG_CANDIDATES_FULL != 0 => Err(TooSmall::Threshold),
        _ if flags & FLAG_SUM_WINDOW != 0 => Err(TooSmall::SumWindow),
        _ if flags & FLAG_TABLE_FULL != 0 => Err(TooSmall::GroupTable),
        _ => Ok(()),
    })
}

/// Reads control, marks and cells of a small dense group table.
fn read_whole(bound: &BoundFragment, groups: &BoundGroups, recorded: &Recorded) -> Result<Result<GroupRows, TooSmall>> {
    let outputs = recorded.outputs();
    let (head, tail) = (outputs[0], outputs[1]);
    if let Err(too_small) = check(word(head, 0), word(head, 1))? {
        return Ok(Err(too_small));
    }
    let mut rows = GroupRows::default();
    let cell_words = &tail[bound.arena.offset(groups.cells) - bound.arena.offset(groups.seen)..];
    for (place, mark) in tail[..groups.places as usize].iter().enumerate() {
        // A global aggregation has its one row whether anything went in or not.
        if *mark == 0 && groups.grouping != Grouping::Single {
            continue;
        }
        rows.count += 1;
        rows.keys.push(place as u64);
        let cells = (0..groups.cell_count).map(|cell| word(cell_words, cell * groups.places as usize + place));
        rows.cells.extend(cells);
    }
    Ok(Ok(rows))
}

/// A result whose first bytes came with the run.
struct Reading<'a> {
    /// The first bytes.
    first: &'a [u8],
    arena: &'a DeviceBuffer,
    stream: &'a mut Stream,
    /// Where it lies in the arena.
    at: usize,
}

impl<'a> Reading<'a> {
    /// So many bytes: usually they came at once, more are fetched now.
    fn bytes(self, wanted: usize) -> Result<Cow<'a, [u8]>> {
        let first = self.first;
        if wanted <= first.len() {
            return Ok(first.into());
        }
        let mut all = vec![0; wanted];
        all[..first.len()].copy_from_slice(first);
        self.stream.download(self.arena, self.at + first.len(), &mut all[first.len()..])?;
        Ok(all.into())
    }
}

/// Reads compacted groups.
fn read_compacted(
    (groups, compacted): (&BoundGroups, Compacted),
    read: Reading,
    groups_max: Option<u64>,
) -> Result<Result<GroupRows, TooSmall>> {
    let first = read.first;
    if let Err(too_small) = check(word(first, 0), word(first, 1))? {
        return Ok(Err(too_small));
    }
    let count = word(first, 2).min(compacted.capacity) as usize;
    if groups_max.is_some_and(|most| count as u64 > most) {
        return crate::error::unsupported(format!("a result of {count} groups, more than pay to bring back"));
    }
    let key_words = groups.pack.words;
    let row_words = groups.cell_count + key_words;
    let bytes = read.bytes(24 + count * row_words * 8)?;
    let mut rows = GroupRows { count, ..GroupRows::default() };
    for group in 0..count {
        let first = 3 + group * row_words;
        rows.keys.extend((first..first + key_words).map(|at| word(&bytes, at)));
        rows.cells.extend((first + key_words..first + row_words).map(|at| word(&bytes, at)));
    }
    Ok(Ok(rows))
}

/// Refuses a result of more rows than pay to bring back.
fn pays(rows: u64, most: Option<u64>) -> Result<()> {
    match most.is_some_and(|most| rows > most) {
        true => crate::error::unsupported(format!("a result of {rows} rows, more than pay to bring back")),
        false => Ok(()),
    }
}

/// Reads rows, which take no cells.
fn read_rows(bound: &BoundRows, read: Reading, rows_max: Option<u64>) -> Result<GroupRows> {
    let count = word(read.first, 0).min(bound.capacity) as usize;
    pays(count as u64, rows_max)?;
    let words = count * bound.pack.words;
    let bytes = read.bytes(8 * (HEAD_WORDS + words))?;
    let keys = (HEAD_WORDS..HEAD_WORDS + words).map(|at| word(&bytes, at)).collect();
    Ok(GroupRows { count, keys, cells: Vec::new() })
}

/// Reads the rows of a top-k, if its threshold let enough rows pass.
fn read_top(top: &BoundTop, read: Reading, rows_max: Option<u64>) -> Result<Result<TopRows, TooSmall>> {
    let head = TopHead::of(read.first);
    if let Err(too_small) = check(head.error, head.flags)? {
        return Ok(Err(too_small));
    }
    if head.thresholded && head.rows < top.k {
        return Ok(Err(TooSmall::Threshold));
    }
    let count = head.rows.min(top.k) as usize;
    if top.is_sort {
        pays(count as u64, rows_max)?;
        if count as u64 == top.k && top.k < top.rows {
            return crate::error::unsupported(format!("a sort of {count} rows or more"));
        }
    }
    let bytes = read.bytes(8 * (topk::HEAD_WORDS + count * top.row_words()))?;
    Ok(Ok(TopRows {
        count,
        words: words(&bytes[8 * topk::HEAD_WORDS..8 * (topk::HEAD_WORDS + count * top.row_words())]),
    }))
}

/// Rows as they came from the device.
pub(crate) enum Rows {
    Groups(GroupRows),
    Top(TopRows),
}

impl Rows {
    /// The batch of the fragment's result; `strings_at` reads those of columns without a dictionary.
    pub(crate) fn batch(&self, root: &Root, strings_at: &mut StringsAt) -> Result<RecordBatch> {
        match (self, root) {
            (Rows::Groups(rows), Root::Groups(groups, _)) => batch(groups, rows),
            (Rows::Groups(rows), Root::Rows(bound)) => rows_batch(bound, rows, strings_at),
            (Rows::Top(rows), Root::TopK(top)) => top.batch(rows, strings_at),
            _ => Err(EngineError::Malformed("rows of another root".into())),
        }
    }
}
