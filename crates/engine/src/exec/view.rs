//! Views of what pipelines scan: tables on the device, and what earlier pipelines leave.

use crate::arena::Pointer;
use crate::codegen::memory::{BoundGroups, BoundList};
use crate::codegen::topk::BoundTop;
use crate::facts::Facts;
use crate::ir::Ty;
use crate::plan::groups::Grouping;
use crate::plan::view::{ColumnView, View};

/// Rows of a chunk of an output that is scanned, as many as a segment has.
const CHUNK_ROWS: u64 = 1 << 20;

/// The view of groups: keys, then cells, as plain columns with a row a place.
pub(super) fn of_groups(groups: &BoundGroups) -> View<'static> {
    let facts = groups.column_facts();
    let mut pointers: Vec<Vec<Pointer<'static>>> = vec![Vec::new(); facts.len()];
    let mut chunks = Vec::new();
    let has_entries = groups.grouping != Grouping::Single;
    let row_words = groups.slot_words().unwrap_or(1);
    for (seen, cells, places) in groups.memory.ranges(groups) {
        for (first, rows) in cut(if has_entries { places } else { 1 }) {
            let at = |column: usize| match cells {
                None => Pointer::Within(seen, 8 * (row_words * first as usize + column)),
                Some(_) if column == 0 => Pointer::Within(seen, 8 * first as usize),
                Some(cells) => Pointer::Within(cells, 8 * ((column - 1) * places as usize + first as usize)),
            };
            pointers.iter_mut().enumerate().for_each(|(column, own)| own.push(at(column)));
            chunks.push(rows);
        }
    }
    let columns = facts.into_iter().zip(pointers);
    let columns = columns.map(|(facts, at)| ColumnView::of_words(facts, at, row_words)).collect();
    View { chunks, has_entries, count: None, columns, values: groups.values.clone().unwrap_or_default() }
}

/// The view of a list: where there are rows, then their words.
pub(super) fn of_list(list: &BoundList) -> View<'static> {
    let facts = list.column_facts();
    let mut pointers: Vec<Vec<Pointer<'static>>> = vec![Vec::new(); facts.len()];
    let mut chunks = Vec::new();
    for (first, rows) in cut(list.places) {
        list.columns_at(first).zip(&mut pointers).for_each(|(at, own)| own.push(at));
        chunks.push(rows);
    }
    let columns = facts.into_iter().zip(pointers).map(|(facts, at)| ColumnView::of_words(facts, at, 1)).collect();
    View { chunks, has_entries: true, count: None, columns, values: list.values() }
}

/// The view of first rows: the words of a row as columns, with as many rows as the device has counted.
pub(super) fn of_first_rows(top: &BoundTop) -> View<'static> {
    let (places, mut pointers) = (top.places() as usize, vec![Vec::new(); top.words()]);
    let mut chunks = Vec::new();
    for (first, rows) in cut(top.rows_given()) {
        for (word, own) in pointers.iter_mut().enumerate() {
            own.extend(top.memory.columns.map(|region| Pointer::Within(region, 8 * (word * places + first as usize))));
        }
        chunks.push(rows);
    }
    let word = |at| ColumnView::of_words(Facts::new(Ty::U64, false, None), at, 1);
    let (columns, count) = (pointers.into_iter().map(word).collect(), Some(top.memory.rows()));
    View { chunks, has_entries: false, count, columns, values: top.values.clone().unwrap_or_default() }
}

/// The chunks of so many places: the first place of each, and its rows.
fn cut(places: u64) -> impl Iterator<Item = (u64, u32)> {
    (0..places).step_by(CHUNK_ROWS as usize).map(move |first| (first, (places - first).min(CHUNK_ROWS) as u32))
}
