//! Rows that another pipeline scans: each row that comes to the end takes the next place of a list.
//!
//! A list is what lies between a join in which a row has several matches and a sink that goes by rows: those of the
//! list have a number each, and are read again as those of a table are. Columns are packed as those of a result
//! ([`crate::codegen::result_rows`]). There is room for a guessed number of rows; where more come, the run is repeated
//! with more. A list is scanned as a group table is ([`crate::codegen::group_values`]): its first column tells where
//! there is a row, which is the packed columns plus one where they take one word; otherwise words have a column each.

use warpcube_column::VECTOR_ROWS;

use crate::arena::{Arena, Pointer, Zone};
use crate::codegen::group_values::GroupValue;
use crate::codegen::input::PipelineInput;
use crate::codegen::params::Argument;
use crate::codegen::result_rows::{bits_of, packed};
use crate::codegen::rows::RowWriter;
use crate::error::Result;
use crate::facts::{Facts, analyse};
use crate::ir::{Expr, Ty};
use crate::plan::keys::KeyPack;

/// A list, laid out.
#[derive(Debug, Clone)]
pub(crate) struct BoundList {
    /// Packing of the columns.
    pack: KeyPack,
    /// What is known of each column.
    facts: Vec<Facts>,
    /// Most rows there is room for, whole vectors of them.
    pub(crate) places: u64,
    /// `uint64_t` a place: zero where there is no row.
    seen: Zone,
    /// Where the columns take several words, `uint64_t` a place for each word.
    words: Option<Zone>,
    /// `uint64_t`: rows that have come.
    count: Zone,
}

/// Lays out a list of these columns.
///
/// # Errors
/// Unsupported if a column takes more than the words that keys have.
pub(super) fn plan(
    input: &PipelineInput,
    columns: &[&Expr],
    registers: &[Option<Facts>],
    arena: &mut Arena,
) -> Result<BoundList> {
    let (facts, _) = analyse(columns, registers, input.overflow)?;
    let pack = KeyPack::of_groups(&facts.iter().map(bits_of).collect::<Vec<_>>())?;
    let places = input.group_slots.min(input.rows_out().max(1)).next_multiple_of(VECTOR_ROWS as u64);
    let bytes = 8 * places as usize;
    let words = pack.is_wide().then(|| arena.scratch(bytes * pack.words));
    Ok(BoundList { pack, facts, places, seen: arena.zeroed(bytes), words, count: arena.zeroed(8) })
}

impl BoundList {
    /// Bytes of its columns.
    pub(crate) fn bytes(&self) -> u64 {
        (self.seen.bytes() + self.words.map_or(0, Zone::bytes)) as u64
    }

    /// Writes what one row does.
    pub(super) fn row(&self, rows: &mut RowWriter, columns: &[&Expr]) -> Result<()> {
        let packed = packed(rows, &self.pack, columns)?;
        let flags = rows.flags();
        let mut zone = |zone| rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Zone(zone)));
        let (count, seen, words) = (zone(self.count), zone(self.seen), self.words.map(&mut zone));
        let places = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(self.places)));
        rows.line(&format!("const uint64_t place = wc_fetch_add({count}, (uint64_t)1);"));
        rows.line(&format!("if (place >= {places}) {{ atomicOr({flags}, (uint32_t)WC_TABLE_FULL); return; }}"));
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

    /// Columns before the values: where there is a row, then words.
    fn width(&self) -> usize {
        1 + self.words.map_or(0, |_| self.pack.words)
    }

    /// What is known of the columns that a scan reads.
    pub(crate) fn column_facts(&self) -> Vec<Facts> {
        let mut columns = vec![Facts::new(Ty::U64, false, Some((0, self.pack.domain.into())))];
        columns.resize(self.width(), Facts::new(Ty::U64, false, None));
        columns
    }

    /// What those columns stand for.
    pub(crate) fn values(&self) -> Vec<GroupValue> {
        let parts = self.pack.parts.iter().zip(&self.facts);
        parts
            .map(|(part, facts)| GroupValue::of_key(facts.clone(), part.clone(), self.width(), self.pack.domain))
            .collect()
    }

    /// Where each column's values lie from a place on.
    pub(crate) fn columns_at(&self, first: u64) -> impl Iterator<Item = Pointer<'static>> {
        let of_words = self.words.into_iter().flat_map(|words| (0..self.pack.words).map(move |word| (words, word)));
        let word = move |(words, word): (Zone, usize)| {
            Pointer::Within(words, 8 * (word * self.places as usize + first as usize))
        };
        std::iter::once(Pointer::Within(self.seen, 8 * first as usize)).chain(of_words.map(word))
    }
}
