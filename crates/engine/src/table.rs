//! Tables that pipelines build and others probe: where they lie and what their entries look like.

use std::sync::Arc;

use warpcube_column::Dictionary;

use crate::arena::{Arena, Zone};
use crate::codegen::expr::Value;
use crate::error::{Result, unsupported};
use crate::ir::Ty;
use crate::keys::KeyPack;

/// A domain of up to this many places a row is indexed directly.
const DIRECT_PLACES_PER_ROW: u64 = 16;
/// Domains up to this size are indexed directly whatever the row count.
const DIRECT_PLACES_MIN: u64 = 1 << 16;
/// Largest table in bytes.
const TABLE_BYTES_MAX: u64 = 8 << 30;

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
    },
}

/// One payload column of a table: values less `low`, plus one where NULL has place 0.
#[derive(Debug, Clone)]
pub(crate) struct PayloadColumn {
    /// Entries.
    pub(crate) zone: Zone,
    /// C type of an entry.
    pub(crate) c_type: &'static str,
    /// What entry 0 (or 1, if nullable) stands for; entries of floats are the values themselves.
    pub(crate) low: i128,
    /// Type of the value.
    pub(crate) ty: Ty,
    /// Bounds of the value.
    pub(crate) range: Option<(i128, i128)>,
    /// Whether it may be NULL.
    pub(crate) nullable: bool,
    /// Strings behind codes.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
}

/// A table as its probes see it.
#[derive(Debug, Clone)]
pub(crate) struct BuiltTable {
    /// Packing of its keys.
    pub(crate) pack: KeyPack,
    /// How entries are found.
    pub(crate) layout: TableLayout,
    /// Payload columns.
    pub(crate) payload: Vec<PayloadColumn>,
    /// Estimated share of probe rows that find an entry.
    pub(crate) share: f64,
}

impl BuiltTable {
    /// Lays out a table for at most `rows` keys.
    pub(crate) fn lay_out(
        arena: &mut Arena,
        pack: KeyPack,
        payload: &[Value],
        rows: u64,
        share: f64,
    ) -> Result<BuiltTable> {
        let direct = pack.domain <= (rows.saturating_mul(DIRECT_PLACES_PER_ROW)).max(DIRECT_PLACES_MIN);
        let places = if direct { pack.domain } else { (rows.max(8) * 2).next_power_of_two() };
        let entry_bytes: u64 = payload.iter().map(|value| entry(value).map(|(_, width)| width)).sum::<Result<u64>>()?;
        if places.saturating_mul(entry_bytes + if direct { 1 } else { 8 }) > TABLE_BYTES_MAX {
            return unsupported("a join table larger than 8 GiB");
        }
        let layout = match direct {
            true => TableLayout::Direct { bitmap: arena.zeroed((places.div_ceil(128) * 16) as usize) },
            false => TableLayout::Hash { keys: arena.zeroed(places as usize * 8), mask: places - 1 },
        };
        let payload = payload
            .iter()
            .map(|value| {
                let (c_type, width) = entry(value)?;
                Ok(PayloadColumn {
                    zone: arena.scratch((places * width) as usize),
                    c_type,
                    low: if value.ty.is_float() { 0 } else { value.bounds().map_or(0, |(low, _)| low) },
                    ty: value.ty,
                    range: value.bounds(),
                    nullable: value.valid.is_some(),
                    dictionary: value.dictionary.clone(),
                })
            })
            .collect::<Result<_>>()?;
        Ok(BuiltTable { pack, layout, payload, share })
    }
}

/// C type and width of a payload entry: the narrowest that holds the value's range.
fn entry(value: &Value) -> Result<(&'static str, u64)> {
    if value.ty.is_float() {
        return match (&value.valid, value.ty) {
            (Some(_), _) => unsupported("a nullable float column of a join's build side"),
            (None, Ty::F32) => Ok(("float", 4)),
            (None, _) => Ok(("double", 8)),
        };
    }
    let (low, high) = value.bounds().expect("integers have bounds");
    let largest = (high - low).max(0) as u128 + u128::from(value.valid.is_some());
    match largest {
        0..=0xff => Ok(("uint8_t", 1)),
        0x100..=0xffff => Ok(("uint16_t", 2)),
        0x1_0000..=0xffff_ffff => Ok(("uint32_t", 4)),
        _ if largest <= u64::MAX.into() => Ok(("uint64_t", 8)),
        _ => unsupported("a decimal column wider than 64 bits of a join's build side"),
    }
}
