//! Rows as they leave a pipeline, as words: laid out, or packed.

use super::keys::{Form, Keys};
use super::program::Program;
use super::values::{Register, Selection, Value};
use crate::error::Result;
use crate::facts::Facts;
use crate::ir::Ty;
use crate::plan::keys::KeyPack;
use crate::plan::row_layout::RowLayout;

/// Rows as a pipeline leaves them, words of each side by side.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) words: Vec<u64>,
    pub(super) row_words: usize,
    pub(super) count: usize,
}

/// Appends the words of a row: bits of validity, then values.
pub(super) fn lay_out(layout: &RowLayout, columns: &[Value<'_>], row: usize, to: &mut Vec<u64>) {
    let valid_words = layout.valid_words();
    let at = to.len();
    to.resize(at + layout.words(), 0);
    for (position, (column, value)) in layout.columns.iter().zip(columns).enumerate() {
        if value.is_valid(row) {
            if valid_words > 0 {
                to[at + position / 64] |= 1 << (position % 64);
            }
            let word = at + layout.word_of(column);
            to[word] = match column.ty {
                Ty::F32 => u64::from((f64::from_bits(value.bits(row)) as f32).to_bits()),
                _ => value.bits(row),
            };
            if let Some(high) = value.high_bits(row).filter(|_| column.wide) {
                to[word + 1] = high;
            }
        }
    }
}

/// Rows in no order, their values packed.
#[derive(Debug)]
pub(super) struct Packed {
    keys: Keys,
    words: Vec<u64>,
    count: usize,
}

impl Packed {
    pub(super) fn new(pack: &KeyPack) -> Packed {
        Packed { keys: Keys::new(pack), words: Vec::new(), count: 0 }
    }

    /// Adds rows of a vector.
    ///
    /// # Errors
    /// Evaluation errors of these rows.
    pub(super) fn push(
        &mut self,
        (columns, pack): (&[Program], &KeyPack),
        registers: &[Register],
        rows: &Selection,
    ) -> Result<()> {
        let values = columns.iter().map(|column| column.evaluate(registers, rows)).collect::<Result<Vec<_>>>()?;
        let facts: Vec<Facts> = columns.iter().map(|column| column.facts.clone()).collect();
        let mut all = rows.filtered(|_| true);
        self.keys.pack(pack, &values, Form::Exact, &facts, &mut all);
        debug_assert!(all.len() == rows.len(), "bounds hold every value");
        all.each(|row: usize| self.words.extend(self.keys.words.iter().map(|words| words[row])));
        self.count += all.len();
        Ok(())
    }

    pub(super) fn append(mut self, mut other: Packed) -> Packed {
        self.words.append(&mut other.words);
        self.count += other.count;
        self
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }

    /// The rows, so many of them at most.
    pub(super) fn into_rows(self, limit: Option<u64>) -> Words {
        let Packed { keys, mut words, count } = self;
        let count = limit.map_or(count, |limit| count.min(limit as usize));
        words.truncate(count * keys.words.len());
        Words { words, row_words: keys.words.len(), count }
    }
}
