//! Tables that pipelines build and others probe: where they lie and what their entries look like.

use std::ops::RangeInclusive;
use std::sync::Arc;

use warpcube_column::Dictionary;

use super::keys::KeyPack;
use crate::arena::{Arena, Zone};
use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::format::in_bytes;
use crate::ir::Ty;

/// A domain of up to this many places a row is indexed directly.
const DIRECT_PLACES_PER_ROW: u64 = 16;
/// Domains up to this size are indexed directly whatever the row count.
const DIRECT_PLACES_MIN: u64 = 1 << 16;
/// Keys that any table has slots for.
const EXPECTED_MIN: u64 = 1 << 12;
/// Largest table in bytes: a quarter of the device's memory, between these.
const TABLE_BYTES_MAX: RangeInclusive<u64> = 8 << 30..=32 << 30;

/// How entries are found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableLayout {
    /// A bit a packed key; entries are indexed by packed key.
    Direct {
        /// Bits, padded to whole 16 bytes.
        bitmap: Zone,
    },
    /// Open addressing over packed keys + 1; entries are indexed by slot.
    Hash {
        /// Keys.
        keys: Zone,
        /// Number of slots less one.
        mask: u64,
        /// What hashes are seeded with.
        seed: u64,
    },
    /// Open addressing over keys of several words; entries are indexed by slot.
    Wide {
        /// States of slots.
        states: Zone,
        /// Words of keys, side by side.
        words: Zone,
        /// Number of slots less one.
        mask: u64,
        /// What hashes are seeded with.
        seed: u64,
    },
}

/// What an entry keeps of the values of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The only one.
    Only,
    /// The smallest.
    Least,
    /// The largest.
    Most,
}

/// One payload column of a table: values less `low`, plus one where NULL has place 0. A float that may be NULL is a
/// double, and NULL a NaN of bits that no value has (`wc_nan_null` in the device library). Entries of extremes start at
/// zero, which is NULL, and are only raised; for the smallest value they count downward from `high` + 1.
#[derive(Debug, Clone)]
pub(crate) struct PayloadColumn {
    /// Entries.
    pub(crate) zone: Zone,
    /// C type of an entry.
    pub(crate) c_type: &'static str,
    /// What entry 0 (or 1, if nullable) stands for; entries of floats are the values themselves.
    pub(crate) low: i128,
    /// Which value of a key is kept.
    pub(crate) keep: Keep,
    /// What is known of the value.
    pub(crate) facts: Facts,
}

/// A table as its probes see it.
#[derive(Debug, Clone)]
pub(crate) struct BuiltTable {
    /// Packing of its keys.
    pub(crate) pack: KeyPack,
    /// Strings behind the codes of its keys.
    pub(crate) strings: Vec<Option<Arc<Dictionary>>>,
    /// How entries are found.
    pub(crate) layout: TableLayout,
    /// Payload columns.
    pub(crate) payload: Vec<PayloadColumn>,
    /// Estimated share of probe rows that find an entry.
    pub(crate) share: f64,
    /// Where the rows of a key are, if there may be several. Payload is then indexed by row.
    pub(crate) matches: Option<Matches>,
    /// Whether there is room for fewer rows than may come: a table that proves too small is laid out again for more.
    pub(crate) grows: bool,
    /// Whether runs of rows with equal keys enter together.
    pub(crate) preaggregates: bool,
    /// Where the ends of runs are, if others are entered without atomic operations.
    pub(crate) ends: Option<RunEnds>,
}

/// The entries of keys whose runs begin or end a step, in a hash table, until a kernel behind the build has written
/// them to their places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunEnds {
    /// `uint64_t` a slot: key + 1, or zero.
    pub(crate) seen: Zone,
    /// For each payload column, `uint64_t` a slot.
    pub(crate) cells: Zone,
    /// Slots.
    pub(crate) slots: u64,
    /// What hashes are seeded with.
    pub(crate) seed: u64,
}

/// How the rows of a table whose keys come several times are to be numbered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Numbering<'a> {
    /// As the scan has them, whose chunks have so many rows.
    Scanned(&'a [u32]),
    /// As they come, where a row of the scan may come several times: there is room for so many.
    Counted(u64),
}

/// What gives the rows of a table their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Numbers {
    /// `uint64_t` a chunk of the scan: the number of its first row.
    Scanned { first_rows: Zone },
    /// `uint64_t`: numbers given away.
    Counted { counter: Zone },
}

/// The rows of each key of a table whose keys come several times. Rows go by their number; those of a key lie side by
/// side in `order`.
#[derive(Debug, Clone)]
pub(crate) struct Matches {
    /// `uint32_t` an entry: rows of the key.
    pub(crate) counts: Zone,
    /// `uint32_t` an entry: the place of its first row in `order`.
    pub(crate) firsts: Zone,
    /// `uint32_t` a row: its entry plus one, zero for a row that did not enter.
    pub(crate) entries: Zone,
    /// `uint32_t` a row: rows of its key that entered before.
    pub(crate) ranks: Zone,
    /// `uint32_t` a place: the number of a row.
    pub(crate) order: Zone,
    /// `uint32_t`: places given away.
    pub(crate) total: Zone,
    /// Where numbers come from.
    pub(crate) numbers: Numbers,
    /// Numbers that rows have.
    pub(crate) rows: u64,
    /// Entries of the table.
    pub(crate) places: u64,
}

impl Matches {
    /// Lays out the matches of a table of so many entries.
    ///
    /// # Errors
    /// Unsupported for more rows or entries than 32 bits number.
    fn lay_out(arena: &mut Arena, places: u64, numbering: Numbering) -> Result<Matches> {
        let (rows, numbers) = match numbering {
            Numbering::Scanned(chunk_rows) => {
                let first_rows = arena.constant(bytemuck::cast_slice(&first_rows(chunk_rows)));
                (chunk_rows.iter().map(|rows| u64::from(*rows)).sum::<u64>(), Numbers::Scanned { first_rows })
            }
            Numbering::Counted(rows) => (rows, Numbers::Counted { counter: arena.zeroed(8) }),
        };
        if rows.max(places) >= u32::MAX.into() {
            return unsupported("a join whose build side has several rows for one key among 2^32 or more");
        }
        let (of_places, of_rows) = (4 * places as usize, 4 * rows as usize);
        Ok(Matches {
            counts: arena.zeroed(of_places),
            firsts: arena.scratch(of_places),
            entries: arena.zeroed(of_rows),
            ranks: arena.scratch(of_rows),
            order: arena.scratch(of_rows),
            total: arena.zeroed(4),
            numbers,
            rows,
            places,
        })
    }
}

/// The number of the first row of each chunk.
pub(crate) fn first_rows(chunk_rows: &[u32]) -> Vec<u64> {
    let first = |next: &mut u64, rows: &u32| {
        *next += u64::from(*rows);
        Some(*next - u64::from(*rows))
    };
    chunk_rows.iter().scan(0, first).collect()
}

impl PayloadColumn {
    /// The image of a value: what is stored, or raises what is stored.
    pub(crate) fn image(&self, code: &str, offset: &str) -> String {
        match self.keep {
            Keep::Least => format!("({})((uint64_t){offset} - (uint64_t){code})", self.c_type),
            _ => format!("({})((uint64_t)(int64_t){code} - (uint64_t){offset})", self.c_type),
        }
    }

    /// The value of an image.
    pub(crate) fn value(&self, stored: &str, offset: &str) -> String {
        match self.keep {
            Keep::Least => format!("((uint64_t){offset} - (uint64_t){stored})"),
            _ => format!("((int64_t)((uint64_t)(int64_t){stored} + (uint64_t){offset}))"),
        }
    }

    /// What images are counted from.
    pub(crate) fn offset(&self) -> i64 {
        let offset = match self.keep {
            Keep::Least => self.facts.range.map_or(0, |(_, high)| high) + 1,
            _ => self.low - i128::from(self.facts.nullable),
        };
        offset as i64
    }
}

impl BuiltTable {
    /// Lays out a table for at most `rows` keys, of which probe rows find an estimated `share`; slots are for a share
    /// of `room` of them, if that saves much. It is indexed by key up to `direct_bytes`. `several` says how rows are
    /// numbered where keys may come several times. Entries of extremes are zero at first, but where there is a table of
    /// so many slots for the `ends` of runs.
    pub(crate) fn lay_out(
        arena: &mut Arena,
        keys: &[Facts],
        payload: &[(Facts, Keep)],
        (rows, share, room): (u64, f64, f64),
        (direct_bytes, memory_bytes): (u64, u64),
        (several, seed, ends): (Option<Numbering>, u64, Option<u64>),
    ) -> Result<BuiltTable> {
        let pack = KeyPack::of_join(keys)?;
        let strings = keys.iter().map(|key| key.dictionary.clone()).collect();
        let widths = payload.iter().map(|(value, keep)| entry(value, *keep).map(|(_, width)| width));
        let entry_bytes: u64 = widths.sum::<Result<u64>>()?;
        let (direct, places, bytes) = places(&pack, entry_bytes, (rows, room), direct_bytes);
        let most = (memory_bytes / 4).clamp(*TABLE_BYTES_MAX.start(), *TABLE_BYTES_MAX.end());
        if bytes > most {
            let (wanted, most) = (in_bytes(bytes), in_bytes(most));
            return unsupported(format!("a join table of {wanted}, where {most} is the most"));
        }
        let layout = match direct {
            true => TableLayout::Direct { bitmap: arena.zeroed((places.div_ceil(128) * 16) as usize) },
            false if !pack.is_wide() => {
                TableLayout::Hash { keys: arena.zeroed(places as usize * 8), mask: places - 1, seed }
            }
            false => TableLayout::Wide {
                states: arena.zeroed(places as usize * 8),
                words: arena.scratch(places as usize * 8 * pack.words),
                mask: places - 1,
                seed,
            },
        };
        let ends = ends.map(|slots| RunEnds {
            seen: arena.zeroed(slots as usize * 8),
            cells: arena.zeroed(slots as usize * 8 * payload.len()),
            slots,
            seed,
        });
        let matches = several.map(|numbering| Matches::lay_out(arena, places, numbering)).transpose()?;
        let entries = matches.as_ref().map_or(places, |matches| matches.rows);
        let payload = payload
            .iter()
            .map(|(value, keep)| {
                let (c_type, width) = entry(value, *keep)?;
                let bytes = (entries * width) as usize;
                Ok(PayloadColumn {
                    zone: match keep {
                        Keep::Least | Keep::Most if ends.is_none() => arena.zeroed(bytes),
                        _ => arena.scratch(bytes),
                    },
                    keep: *keep,
                    c_type,
                    low: if value.ty.is_float() { 0 } else { value.bounds().map_or(0, |(low, _)| low) },
                    facts: Facts {
                        dictionary: value.dictionary.clone(),
                        texts: value.texts,
                        ..Facts::new(value.ty, value.nullable || *keep != Keep::Only, value.bounds())
                    },
                })
            })
            .collect::<Result<_>>()?;
        let (grows, preaggregates) = (false, false);
        Ok(BuiltTable { pack, strings, layout, payload, share, matches, grows, preaggregates, ends })
    }
}

/// Keys that slots are for where a share of `rows` is expected: all, unless a table for twice as many as expected has
/// an eighth of the slots. Too few slots show as keys far from their hashes, and the table is laid out again for all.
fn expected(rows: u64, share: f64) -> u64 {
    let expected = (rows as f64 * share * 2.0) as u64 + EXPECTED_MIN;
    if expected.saturating_mul(8) <= rows { expected } else { rows }
}

/// Whether the entries of a table for at most `rows` keys are indexed by key, its places, and its bytes. Slots are for
/// a share of `room` of the keys. Past `direct_bytes` it is indexed by key only where slots would take more.
pub(crate) fn places(
    pack: &KeyPack,
    entry_bytes: u64,
    (rows, room): (u64, f64),
    direct_bytes: u64,
) -> (bool, u64, u64) {
    let slots = (expected(rows, room).max(8) * 2).next_power_of_two();
    let slot_bytes = slots.saturating_mul(entry_bytes + 8 * (1 + pack.words as u64));
    let by_key = pack.domain.saturating_mul(entry_bytes).saturating_add(pack.domain / 8);
    let is_dense = pack.domain <= rows.saturating_mul(DIRECT_PLACES_PER_ROW).max(DIRECT_PLACES_MIN);
    match is_dense && by_key <= slot_bytes.max(direct_bytes) {
        true => (true, pack.domain, by_key),
        false => (false, slots, slot_bytes),
    }
}

/// C type and width of a payload entry: the narrowest that holds the value's range.
pub(crate) fn entry(value: &Facts, keep: Keep) -> Result<(&'static str, u64)> {
    if keep != Keep::Only {
        let span = value.bounds().map(|(low, high)| (high - low).max(0) as u128);
        let narrow = value.ty != Ty::I128 || value.is_narrow();
        return match span {
            Some(span) if narrow && span < u32::MAX.into() => Ok(("uint32_t", 4)),
            Some(span) if narrow && span < u64::MAX.into() => Ok(("uint64_t", 8)),
            _ => unsupported("the extremes of floats or of values that span 64 bits on a join's build side"),
        };
    }
    if value.ty.is_float() {
        return match (value.nullable, value.ty) {
            (false, Ty::F32) => Ok(("float", 4)),
            _ => Ok(("double", 8)),
        };
    }
    let (low, high) = value.bounds().expect("integers have bounds");
    let largest = (high - low).max(0) as u128 + u128::from(value.nullable);
    match largest {
        0..=0xff => Ok(("uint8_t", 1)),
        0x100..=0xffff => Ok(("uint16_t", 2)),
        0x1_0000..=0xffff_ffff => Ok(("uint32_t", 4)),
        _ if largest <= u64::MAX.into() => Ok(("uint64_t", 8)),
        _ => unsupported("a decimal column wider than 64 bits of a join's build side"),
    }
}
