//! Columns as a scan reads them, wherever they lie: those of a table, the groups, rows or first rows that another
//! pipeline leaves.

use std::ops::Deref;
use std::sync::Arc;

use warpcube_column::format::Encoding;
use warpcube_column::{ColumnLayout, Relation, ResidentColumn, Storage, Traits};
use warpcube_gpu::{DeviceBuffer, DevicePtr};

use crate::arena::Pointer;
use crate::facts::{Facts, Texts};
use crate::ir::Ty;
use crate::plan::group_values::GroupValue;

/// A column of a scan.
#[derive(Debug, Clone)]
pub(crate) struct ColumnView<'pin> {
    /// How its values lie.
    pub(crate) layout: ColumnLayout,
    /// What is known of its values.
    pub(crate) facts: Facts,
    /// Values of its codes, if it has codes of integers.
    pub(crate) distinct: Option<Arc<[i128]>>,
    /// Number of distinct values, where it is known or was estimated.
    pub(crate) distinct_count: Option<u64>,
    /// Runs and order, where they are known.
    pub(crate) traits: Option<Traits>,
    /// Where values and validity lie, by chunk.
    pub(crate) pointers: Vec<[Pointer<'pin>; 2]>,
}

impl Deref for ColumnView<'_> {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl<'pin> ColumnView<'pin> {
    /// A column of 8 bytes a row, without NULLs, that an earlier pipeline writes: a word of so many that a row has side
    /// by side.
    pub(crate) fn of_words(facts: Facts, values: Vec<Pointer<'pin>>, row_words: usize) -> ColumnView<'pin> {
        let storage = if facts.ty.is_float() { Storage::F64 } else { Storage::U64 };
        ColumnView {
            layout: ColumnLayout::plain(storage, row_words),
            facts,
            distinct: None,
            distinct_count: None,
            traits: None,
            pointers: values.into_iter().map(|values| [values, Pointer::Address(DevicePtr::NULL)]).collect(),
        }
    }
}

/// What a pipeline scans: columns cut into the same chunks.
#[derive(Debug, Clone)]
pub(crate) struct View<'pin> {
    /// Rows of each chunk; most rows if only the device knows their number.
    pub(crate) chunks: Vec<u32>,
    /// Whether the first column tells of each place whether there is a row.
    pub(crate) has_entries: bool,
    /// Where the device has the number of rows, if the host does not know it.
    pub(crate) count: Option<Pointer<'pin>>,
    pub(crate) columns: Vec<ColumnView<'pin>>,
    /// What the columns of an output stand for: registers behind those of the columns.
    pub(crate) values: Vec<GroupValue>,
}

impl<'pin> View<'pin> {
    /// Rows of all chunks.
    pub(crate) fn rows(&self) -> u64 {
        self.chunks.iter().map(|rows| u64::from(*rows)).sum()
    }

    /// Addresses as kernels read them: for each chunk, each column's values and validity.
    pub(crate) fn pointers(&self) -> Vec<Pointer<'pin>> {
        let of_chunk = |chunk: usize| self.columns.iter().flat_map(move |column| column.pointers[chunk]);
        (0..self.chunks.len()).flat_map(of_chunk).collect()
    }
}

/// What is known of the values of a column: its table, and its position there.
fn facts(resident: &ResidentColumn, (table, column): (usize, usize)) -> Facts {
    let statistics = &resident.facts().statistics;
    let ty = Ty::of(&resident.facts().data_type).expect("resident columns have a storage");
    // A column without valid values is bounded by anything; the empty guess keeps domains small.
    let range = match ty.is_float() {
        true => None,
        false => Some(statistics.integers.unwrap_or((0, 0))),
    };
    let is_bytes = matches!(resident.encoding(), Encoding::Bytes(_));
    Facts {
        magnitude: statistics.floats.map(|(low, high)| low.abs().max(high.abs())),
        dictionary: resident.facts().dictionary.clone(),
        is_bytes,
        texts: is_bytes.then_some(Texts { table, column, chunks: resident.segments().len() }),
        ..Facts::new(ty, resident.facts().is_nullable(), range)
    }
}

/// The view of a table of the fragment, by its number.
pub(crate) fn of_table<'pin>(number: usize, table: &'pin Relation) -> View<'pin> {
    let column = |(at, column): (usize, &'pin Arc<ResidentColumn>)| {
        let pointers = column.segments().iter().map(|segment| {
            let validity = segment.validity().map_or(DevicePtr::NULL, DeviceBuffer::pointer);
            [Pointer::Address(segment.values().pointer()), Pointer::Address(validity)]
        });
        ColumnView {
            layout: ColumnLayout::of(column),
            facts: facts(column, (number, at)),
            distinct: column.distinct_integers().cloned(),
            distinct_count: column.facts().distinct(),
            traits: column.facts().traits,
            pointers: pointers.collect(),
        }
    };
    let columns = table.columns.iter().enumerate().map(column).collect();
    View { chunks: table.chunks.to_vec(), has_entries: false, count: None, columns, values: Vec::new() }
}
