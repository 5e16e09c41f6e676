//! Rows as they leave a pipeline: in no order, up to a limit, or the first ones by an order.

use super::keys::{Form, Keys, image};
use super::program::Program;
use super::values::{Register, Selection, Value};
use crate::error::Result;
use crate::facts::Facts;
use crate::ir::Ty;
use crate::plan::keys::KeyPack;
use crate::plan::row_layout::RowLayout;

/// One key of an order.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) value: Program,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// Rows by the keys of an order, then by their numbers.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    /// For each key the class of NULL and the image of the value; then the number of the row.
    ranks: Vec<u64>,
    /// Words of each row.
    rows: Vec<u64>,
    count: usize,
}

/// Rows that are kept beside the best before the others are dropped.
const SURPLUS: usize = 1 << 14;

impl Ranked {
    /// Adds rows of a vector, with the numbers of their places.
    ///
    /// # Errors
    /// Evaluation errors of these rows.
    pub(super) fn push(
        &mut self,
        (keys, outputs, layout): (&[Key], &[Program], &RowLayout),
        registers: &[Register],
        (rows, number): (&Selection, &dyn Fn(usize) -> u64),
    ) -> Result<()> {
        let values = keys.iter().map(|key| key.value.evaluate(registers, rows)).collect::<Result<Vec<_>>>()?;
        let columns = outputs.iter().map(|output| output.evaluate(registers, rows)).collect::<Result<Vec<_>>>()?;
        rows.each(|row| {
            for (key, value) in keys.iter().zip(&values) {
                let is_null = !value.is_valid(row);
                let behind = u64::from(is_null != key.nulls_first);
                self.ranks.push(behind);
                let turned = if key.descending { u64::MAX } else { 0 };
                let image = image(value, row, key.value.facts.ty);
                self.ranks.extend(image.map(|word| if is_null { 0 } else { word ^ turned }));
            }
            self.ranks.push(number(row));
            lay_out(layout, &columns, row, &mut self.rows);
            self.count += 1;
        });
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        8 * (self.ranks.len() + self.rows.len()) as u64
    }

    /// Drops rows that cannot be among the first `k`, if there are many.
    pub(super) fn trim(&mut self, k: Option<u64>, row_words: usize) {
        if let Some(k) = k.filter(|k| self.count as u64 > k.saturating_mul(2).saturating_add(SURPLUS as u64)) {
            *self = self.first(Some(k), row_words);
        }
    }

    pub(super) fn append(&mut self, mut other: Ranked) {
        self.ranks.append(&mut other.ranks);
        self.rows.append(&mut other.rows);
        self.count += other.count;
    }

    /// The first `k` rows in order, or all.
    pub(super) fn first(&self, k: Option<u64>, row_words: usize) -> Ranked {
        let rank_words = self.ranks.len().checked_div(self.count).unwrap_or(1);
        let rank = |row: &usize| &self.ranks[row * rank_words..][..rank_words];
        let mut order: Vec<usize> = (0..self.count).collect();
        let k = k.map_or(self.count, |k| k.min(self.count as u64) as usize);
        if k > 0 && k < order.len() {
            order.select_nth_unstable_by(k - 1, |one, other| rank(one).cmp(rank(other)));
        }
        order.truncate(k);
        order.sort_unstable_by(|one, other| rank(one).cmp(rank(other)));
        let mut first = Ranked::default();
        for row in order {
            first.ranks.extend_from_slice(rank(&row));
            first.rows.extend_from_slice(&self.rows[row * row_words..][..row_words]);
            first.count += 1;
        }
        first
    }

    /// The words of the rows, and their number.
    pub(super) fn into_rows(self) -> (Vec<u64>, usize) {
        (self.rows, self.count)
    }
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

    pub(super) fn append(&mut self, mut other: Packed) {
        self.words.append(&mut other.words);
        self.count += other.count;
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }

    /// The words of the rows, and their number.
    pub(super) fn into_rows(self) -> (Vec<u64>, usize) {
        (self.words, self.count)
    }
}
