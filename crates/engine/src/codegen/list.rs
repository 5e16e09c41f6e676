//! Rows that another pipeline scans, in kernel source: each row that comes to the end takes the next place of a list.

use arrow::datatypes::DataType;

use crate::arena::{Pointer, Region};
use crate::codegen::memory::BoundList;
use crate::codegen::params::Argument;
use crate::codegen::result_rows::packed;
use crate::codegen::rows::RowWriter;
use crate::error::Result;
use crate::ir::Expr;

impl BoundList {
    /// Writes what one row does.
    pub(super) fn row(&self, rows: &mut RowWriter, columns: &[(Expr, DataType)]) -> Result<()> {
        let columns: Vec<&Expr> = columns.iter().map(|(expr, _)| expr).collect();
        let packed = packed(rows, &self.pack, &columns)?;
        let full = rows.no_room();
        let mut region =
            |region| rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Region(region)));
        let (count, seen, words) =
            (region(self.memory.count), region(self.memory.seen), self.memory.words.map(&mut region));
        let places = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(self.places)));
        rows.line(&format!("const uint64_t place = wc_fetch_add({count}, (uint64_t)1);"));
        rows.line(&format!("if (place >= {places}) {full}"));
        match words {
            None => rows.line(&format!("{seen}[place] = (uint64_t){} + 1;", packed.word())),
            Some(words) => {
                rows.line(&format!("{seen}[place] = 1;"));
                for (index, word) in packed.words.iter().enumerate() {
                    rows.line(&format!("{words}[{index} * {places} + place] = {word};"));
                }
            }
        }
        Ok(())
    }

    /// Where each column's values lie from a place on.
    pub(crate) fn columns_at(&self, first: u64) -> impl Iterator<Item = Pointer<'static>> {
        let of_words =
            self.memory.words.into_iter().flat_map(|words| (0..self.pack.words).map(move |word| (words, word)));
        let word = move |(words, word): (Region, usize)| {
            Pointer::Within(words, 8 * (word * self.places as usize + first as usize))
        };
        std::iter::once(Pointer::Within(self.memory.seen, 8 * first as usize)).chain(of_words.map(word))
    }
}
