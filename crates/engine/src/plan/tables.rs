//! Which table a pipeline builds: how entries are found, how many there is room for, what each keeps.

use std::ops::RangeInclusive;

use crate::error::{Result, unsupported};
use crate::facts::{Facts, analyse};
use crate::format::in_bytes;
use crate::ir::{AggregateCall, AggregateKind, Expr, Ty};
use crate::plan::growth::grown;
use crate::plan::input::PipelineInput;
use crate::plan::keys::KeyPack;
use crate::plan::run_plan::{RunPlan, WholeRuns};
use crate::plan::runs;
use crate::plan::split::Split;
use crate::plan::table::{Keep, MatchesPlan, Numbering, PayloadColumn, TableLayout, TablePlan, Unique, first_rows};
use crate::tuning::Tuning;

/// Largest table in bytes: a quarter of the device's memory, between these.
const TABLE_BYTES_MAX: RangeInclusive<u64> = 8 << 30..=32 << 30;

/// What a table keeps of the argument of an aggregate that is probed.
///
/// # Errors
/// Unsupported for others than smallest and largest values.
pub(crate) fn kept_of(call: &AggregateCall) -> Result<(&Expr, Keep)> {
    match (call.kind, &call.argument, &call.filter) {
        (AggregateKind::Min, Some(value), None) => Ok((value, Keep::Least)),
        (AggregateKind::Max, Some(value), None) => Ok((value, Keep::Most)),
        _ => unsupported("a probe of other groups than of smallest and largest values"),
    }
}

/// The table of a pipeline: of rows' values, or of the smallest and largest ones of each key.
///
/// # Errors
/// Unsupported for keys, payload and sizes that no table has.
pub(crate) fn plan(
    input: &PipelineInput,
    registers: &[Option<Facts>],
    split: &Split,
    keys: &[&Expr],
    values: Result<Vec<(&Expr, Keep)>>,
) -> Result<TablePlan> {
    let (values, kept): (Vec<&Expr>, Vec<Keep>) = values?.into_iter().unzip();
    let are_extremes = kept.iter().any(|keep| *keep != Keep::Only);
    let (keys_known, _) = analyse(keys, registers, input.overflow)?;
    let (known, _) = analyse(&values, registers, input.overflow)?;
    let columns = known.iter().zip(kept).map(|(value, keep)| PayloadColumn::of(value, keep));
    let share = split.share();
    // Of rows that several matches multiply, only an upper bound is known: there is room for a guess.
    let (multiplies, most) = (input.multiplies(), input.rows_out());
    let (at_first, guessed) = (most.min(input.rows_at_first()), most.min(input.guessed_rows()));
    let first = match (multiplies, input.has_limit) {
        (true, _) => (at_first, 1.0),
        (false, true) => (most, 1.0),
        (false, false) => (input.rows, share),
    };
    let pack = KeyPack::of_join(&keys_known);
    let payload = columns.collect::<Result<Vec<_>>>()?;
    let entry_bytes: u64 = payload.iter().map(|column| column.width).sum();
    let places = TableShape::of(&pack, entry_bytes, first, input.tuning);
    let places = if multiplies { places.for_keys(guessed) } else { places.grown(input.growth) };
    let runs = match are_extremes {
        true => RunPlan::of_extremes(
            input,
            split,
            (keys, &pack),
            (&payload, places.is_direct.then_some(places.bytes)),
            share,
        ),
        false => None,
    };
    let most_bytes = (input.info.memory_bytes / 4).clamp(*TABLE_BYTES_MAX.start(), *TABLE_BYTES_MAX.end());
    if places.bytes > most_bytes {
        let (wanted, most) = (in_bytes(places.bytes), in_bytes(most_bytes));
        return unsupported(format!("a join table of {wanted}, where {most} is the most"));
    }
    let matches = match input.several {
        false => None,
        true if multiplies => Some(MatchesPlan { numbering: Numbering::Counted, rows: guessed }),
        true => {
            let numbering = Numbering::Scanned(first_rows(input.chunk_rows));
            Some(MatchesPlan { numbering, rows: input.chunk_rows.iter().map(|rows| u64::from(*rows)).sum() })
        }
    };
    if matches.as_ref().is_some_and(|matches| matches.rows.max(places.places) >= u32::MAX.into()) {
        return unsupported("a join whose build side has several rows for one key among 2^32 or more");
    }
    // All rows of a table, each with a key of its own, for as many keys as there may be.
    let pipeline = input.pipeline;
    let is_whole = pipeline.steps.is_empty() && pipeline.source.table().is_some() && !are_extremes;
    let rows: u64 = input.chunk_rows.iter().map(|rows| u64::from(*rows)).sum();
    let has_keys = input.unique != Unique::No && keys_known.iter().all(|key| !key.nullable);
    let is_full = is_whole && has_keys && !input.several && places.is_direct && rows == pack.domain;
    Ok(TablePlan {
        strings: keys_known.iter().map(|key| key.dictionary.clone()).collect(),
        layout: match (places.is_direct, pack.is_wide()) {
            (true, _) => TableLayout::Direct,
            (false, false) => TableLayout::Hash,
            (false, true) => TableLayout::Wide,
        },
        pack,
        places: places.places,
        seed: input.table_seed(),
        payload,
        share,
        matches,
        grows: if multiplies { at_first < most } else { places.grows },
        unique: input.unique,
        is_full,
        ends: runs.as_ref().filter(|runs| runs.whole == WholeRuns::Stored).map(|_| runs::end_slots(input, split)),
        runs,
        why: places.why,
    })
}

/// Keys that slots are for where a share of `rows` is expected and the table has grown some times: all, unless a table
/// for twice as many as expected has an eighth of the slots. Too few slots show as keys far from their hashes.
fn expected(rows: u64, share: f64, (least, times): (u64, u32)) -> u64 {
    let expected = grown((rows as f64 * share * 2.0) as u64 + least, times);
    if expected.saturating_mul(8) <= rows { expected } else { rows }
}

/// Slots for so many keys.
fn slots(keys: u64) -> u64 {
    (keys.max(8) * 2).next_power_of_two()
}

/// How many entries or slots a table has.
#[derive(Debug, Clone)]
pub(crate) struct TableShape {
    /// Whether entries are indexed by key.
    pub(crate) is_direct: bool,
    /// Entries or slots.
    pub(crate) places: u64,
    /// Bytes of the table.
    pub(crate) bytes: u64,
    /// Whether there is room for fewer keys than may come before the table has grown.
    pub(crate) grows: bool,
    /// Bytes of a slot.
    slot_bytes: u64,
    /// Most keys, the share of them that is expected, and the least number that slots are for.
    keys: (u64, f64, u64),
    why: String,
}

impl TableShape {
    /// The places of a table for at most `rows` keys. Slots are for a share of `room` of the keys. Past
    /// [`Tuning::direct_bytes`] it is indexed by key only where slots would take more.
    pub(crate) fn of(pack: &KeyPack, entry_bytes: u64, (rows, room): (u64, f64), tuning: &Tuning) -> TableShape {
        let wanted = expected(rows, room, (tuning.expected_keys, 0));
        let (slots, slot) = (slots(wanted), entry_bytes + 8 * (1 + pack.words as u64));
        let slot_bytes = slots.saturating_mul(slot);
        let by_key = pack.domain.saturating_mul(entry_bytes).saturating_add(pack.domain / 8);
        let is_dense = pack.domain <= rows.saturating_mul(tuning.direct_places_per_row).max(tuning.direct_places);
        let hashed = in_bytes(slot_bytes);
        let (is_direct, why) = match (is_dense, by_key <= slot_bytes.max(tuning.direct_bytes)) {
            (true, true) => (true, format!("{} by key, {hashed} hashed", in_bytes(by_key))),
            (true, false) => (false, format!("{hashed}, {} by key", in_bytes(by_key))),
            (false, _) if pack.domain == u64::MAX => (false, format!("{hashed}: keys have more than 63 bits")),
            (false, _) => (false, format!("{hashed}: {} keys may be, of {rows} rows", pack.domain)),
        };
        let (places, bytes) = if is_direct { (pack.domain, by_key) } else { (slots, slot_bytes) };
        let (grows, keys) = (!is_direct && wanted < rows, (rows, room, tuning.expected_keys));
        TableShape { is_direct, places, bytes, grows, slot_bytes: slot, keys, why }
    }

    /// The same after it has grown so often.
    fn grown(self, times: u32) -> TableShape {
        let (rows, room, least) = self.keys;
        self.for_keys(expected(rows, room, (least, times)))
    }

    /// The same for so many keys.
    fn for_keys(self, wanted: u64) -> TableShape {
        if self.is_direct {
            return self;
        }
        let places = slots(wanted);
        TableShape { places, bytes: places.saturating_mul(self.slot_bytes), ..self }
    }
}

/// C type and width of a payload entry: the narrowest that holds the value's range.
fn entry(value: &Facts, keep: Keep) -> Result<(&'static str, u64)> {
    if keep != Keep::Only {
        let span = value.bounds().map(|(low, high)| high.max(low).abs_diff(low));
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
    match high.max(low).abs_diff(low).saturating_add(u128::from(value.nullable)) {
        _ if value.is_wide() && low > i128::MIN => Ok(("__int128", 16)),
        _ if value.is_wide() => {
            unsupported("a decimal column of a join's build side that may be the smallest of 128 bits")
        }
        0..=0xff => Ok(("uint8_t", 1)),
        0x100..=0xffff => Ok(("uint16_t", 2)),
        0x1_0000..=0xffff_ffff => Ok(("uint32_t", 4)),
        0x1_0000_0000..=0xffff_ffff_ffff_ffff => Ok(("uint64_t", 8)),
        _ => unsupported("an integer column of a join's build side that may have any 64 bits or be NULL"),
    }
}

impl PayloadColumn {
    fn of(value: &Facts, keep: Keep) -> Result<PayloadColumn> {
        let (c_type, width) = entry(value, keep)?;
        Ok(PayloadColumn {
            keep,
            c_type,
            width,
            low: if value.ty.is_float() { 0 } else { value.bounds().map_or(0, |(low, _)| low) },
            facts: Facts {
                dictionary: value.dictionary.clone(),
                texts: value.texts,
                ..Facts::new(value.ty, value.nullable || keep != Keep::Only, value.bounds())
            },
        })
    }
}
