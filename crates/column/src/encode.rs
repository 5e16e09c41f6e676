//! Which encoding a column gets once all of it is there, as its load asks for.
//!
//! Parameters come from the column's statistics or, where those do not tell, from values copied to the host; they hold
//! every value of the column, not only those looked at.

use warpcube_gpu::Device;

use crate::encoding::{Alp, DICTIONARY_MAX, Dictionary, Encoding, Nsf, Nsv, OffsetBits, Packed, Sample};
use crate::error::{ColumnError, Result};
use crate::layout::{EncodingChoice, Layout};
use crate::load::Room;
use crate::pack::{pack, width_between};
use crate::segment::{Lookup, Segment};
use crate::storage::Storage;
use crate::transcode::{HostPlain, encode_segments};

/// Segments that parameters are chosen by, where they need not be seen to hold every value.
const SAMPLE_SEGMENTS: usize = 4;
/// Vectors of each of them.
const SAMPLE_VECTORS: usize = 64;
/// Share of a packed column's bytes below which patches are worth looking at them for each group.
const PATCHES_WORTH: f64 = 0.95;
/// Share of rows that may be patches: kernels take them one by one.
const PATCHES_MAX: f64 = 1.0 / 16.0;

/// The segments of a column in its encoding.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) layout: Layout,
    /// Distinct values, where the segments hold codes for them.
    pub(crate) lookup: Option<Lookup>,
    pub(crate) segments: Vec<Segment>,
}

/// What is known of a column's values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) storage: Storage,
    /// Smallest and largest valid integer.
    pub(crate) range: Option<(i128, i128)>,
    /// Whether values are codes for strings.
    pub(crate) strings: bool,
}

/// Encodes the plain segments of a column.
pub(crate) fn encode_column(
    device: &Device,
    room: &dyn Room,
    choice: EncodingChoice,
    known: Known,
    segments: Vec<Segment>,
) -> Result<Encoded> {
    let Some(encoding) = named(device, choice, known, &segments)? else {
        let (layout, segments) = pack(device, room, choice, (known.storage, known.range), segments)?;
        return Ok(Encoded { layout, lookup: None, segments });
    };
    let lookup = match &encoding {
        Encoding::Dictionary(dictionary) => Some(place_lookup(device, room, known.storage, dictionary)?),
        _ => None,
    };
    let segments = encode_segments(device, room, known.storage, &encoding, segments)?;
    Ok(Encoded { layout: Layout::of(&encoding), lookup, segments })
}

/// The encoding of a choice that names one, with its parameters; `None` if the column cannot have it, and for those
/// that are packed without patches.
fn named(device: &Device, choice: EncodingChoice, known: Known, segments: &[Segment]) -> Result<Option<Encoding>> {
    let Known { storage, range, strings } = known;
    let (low, high) = range.unwrap_or_default();
    let integers = !storage.is_float();
    Ok(match choice {
        EncodingChoice::Nsf if integers => Some(Encoding::Nsf(Nsf::fit(storage, low as u64, high as u64))),
        EncodingChoice::Nsv if integers && high - low <= i128::from(u32::MAX) => {
            Some(Encoding::Nsv(Nsv { reference: low as u64 }))
        }
        EncodingChoice::Rle => Some(Encoding::Rle),
        EncodingChoice::GpuFor if integers => Some(Encoding::GpuFor),
        EncodingChoice::GpuDfor if integers => Some(Encoding::GpuDfor),
        EncodingChoice::Packed if integers => patched(device, known, segments)?.map(Encoding::Packed),
        EncodingChoice::Dictionary if !strings => dictionary(device, storage, segments)?.map(Encoding::Dictionary),
        EncodingChoice::Alp if !integers => alp(device, storage, segments)?.map(Encoding::Alp),
        _ => None,
    })
}

/// Some vectors of some segments, evenly spread.
fn samples(device: &Device, storage: Storage, segments: &[Segment]) -> Result<Vec<Sample>> {
    let count = segments.len().min(SAMPLE_SEGMENTS);
    let chosen = (0..count).map(|index| &segments[index * segments.len() / count]);
    let sample = |segment| {
        let host = HostPlain::download(device, storage, segment)?;
        Ok(Sample::of(&host.plain()?, SAMPLE_VECTORS))
    };
    chosen.map(sample).collect()
}

/// A packing with patches, if it is so much smaller than the one without.
fn patched(device: &Device, known: Known, segments: &[Segment]) -> Result<Option<Packed>> {
    let (mut offsets, mut rows) = (None::<OffsetBits>, 0);
    for sample in samples(device, known.storage, segments)? {
        let sample = sample.plain().map_err(ColumnError::source)?;
        let own = OffsetBits::of(&sample, None);
        rows += sample.rows();
        match &mut offsets {
            Some(all) => all.add(&own),
            None => offsets = Some(own),
        }
    }
    let Some(offsets) = offsets else { return Ok(None) };
    let bytes = |packed: &Packed| offsets.bytes(known.storage, packed) as f64;
    let shared = known.range.map_or(0, |range| width_between(known.storage, range));
    let shared = Packed { width: shared, reference: Some(0), patches: false };
    let whole = bytes(&offsets.fit(known.storage, None, false)).min(bytes(&shared));
    let patched = offsets.fit(known.storage, None, true);
    let is_rare = offsets.wider_than(patched.width) as f64 <= rows as f64 * PATCHES_MAX;
    let is_worth = patched.patches && is_rare && bytes(&patched) < whole * PATCHES_WORTH;
    Ok(is_worth.then_some(patched))
}

/// A dictionary with packed codes; `None` if there are too many distinct values.
fn dictionary(device: &Device, storage: Storage, segments: &[Segment]) -> Result<Option<Dictionary>> {
    let mut distinct = Vec::new();
    for segment in segments {
        let host = HostPlain::download(device, storage, segment)?;
        let Some(own) = Dictionary::distinct(&host.plain()?, DICTIONARY_MAX) else { return Ok(None) };
        distinct.extend(own);
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() > DICTIONARY_MAX {
            return Ok(None);
        }
    }
    let width = width_between(Storage::U32, (0, distinct.len().saturating_sub(1) as i128));
    let codes = Encoding::Packed(Packed { width, reference: Some(0), patches: false });
    Dictionary::new(storage, distinct, codes).map(Some).map_err(ColumnError::source)
}

/// The scale of the first sampled segment with values; integers that it does not have may be wider.
fn alp(device: &Device, storage: Storage, segments: &[Segment]) -> Result<Option<Alp>> {
    for sample in samples(device, storage, segments)? {
        let fit = Alp::fit(&sample.plain().map_err(ColumnError::source)?).map_err(ColumnError::source)?;
        if let Some(alp) = fit {
            return Ok(Some(Alp { integers: Packed { patches: true, ..alp.integers }, ..alp }));
        }
    }
    Ok(None)
}

/// Distinct values in storage width, in a buffer of the device; at least one, for the codes of null slots.
fn place_lookup(device: &Device, room: &dyn Room, storage: Storage, dictionary: &Dictionary) -> Result<Lookup> {
    let values = dictionary.values().iter().chain(dictionary.values().is_empty().then_some(&0));
    let bytes: Vec<u8> = values.flat_map(|bits| bits.to_le_bytes().into_iter().take(storage.width())).collect();
    Lookup::place(device, room, &bytes)
}
