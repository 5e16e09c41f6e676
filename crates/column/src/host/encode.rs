//! The encoding of a column in host memory after its load.
//!
//! Integers are packed with a reference for each vector, which bounds the values of the vector; floats stay plain.
//! Patches, runs, differences and dictionaries of numbers are left out: a reader would decode them slower than it
//! reads the bits that they save.

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use warpcube_gpu::{Device, DeviceBuffer, size_class};

use crate::device::{Encoded, Room, Segment};
use crate::error::Result;
use crate::format::{Encoding, EncodingChoice, Packed, Plain, Profile, encode_into};
use crate::units::{Storage, Traits};

/// Encodes the plain segments of a column, and returns its traits.
///
/// # Errors
/// [`ColumnError::OverBudget`](crate::error::ColumnError::OverBudget) without room.
pub(crate) fn encode_column(
    device: &Device,
    room: &dyn Room,
    choice: EncodingChoice,
    storage: Storage,
    segments: Vec<Segment>,
) -> Result<(Encoded, Option<Traits>)> {
    if choice == EncodingChoice::Plain || segments.is_empty() {
        return Ok((Encoded::plain(segments), None));
    }
    let plain: Vec<Plain<'_>> = segments.iter().map(|segment| plain(segment, storage)).collect::<Result<_>>()?;
    let profiles: Vec<Profile> = plain.par_iter().map(Profile::of).collect();
    let profile = profiles.into_iter().reduce(|mut all, next| {
        all.add(&next);
        all
    });
    let profile = profile.expect("there is a segment");
    let traits = Some(profile.traits(storage));
    let packed = profile.offsets.fit(storage, None, false);
    if storage.is_float() || packed.width as usize >= 8 * storage.width() {
        return Ok((Encoded::plain(segments), traits));
    }
    let encoding = Encoding::Packed(packed);
    let encoded = plain.par_iter().zip(segments.par_iter());
    let encoded = encoded.map(|(plain, segment)| encode(device, room, (packed, plain), segment));
    let encoded = encoded.collect::<Result<Vec<_>>>()?;
    Ok((Encoded { encoding, lookup: None, segments: encoded }, traits))
}

/// The values of a plain segment, where they lie.
fn plain(segment: &Segment, storage: Storage) -> Result<Plain<'_>> {
    let validity = segment.validity().map(|words| words.host_bytes()).transpose()?.map(bytemuck::cast_slice);
    Ok(Plain::new(storage, segment.values().host_bytes()?, validity, segment.rows() as usize)?)
}

fn encode(device: &Device, room: &dyn Room, (packed, plain): (Packed, &Plain<'_>), of: &Segment) -> Result<Segment> {
    let mut bytes = Vec::new();
    encode_into(&Encoding::Packed(packed), plain, &mut bytes)?;
    let validity_bytes = of.validity().map_or(0, |words| size_class(words.bytes()) as u64);
    let reservation = room.reserve(size_class(bytes.len().max(1)) as u64 + validity_bytes)?;
    let values = device.buffer(bytes.len(), "a column segment")?;
    let mut stream = device.stream()?;
    stream.upload(&values, 0, &bytes)?;
    stream.synchronize()?;
    Ok(Segment::new(values, of.validity().cloned(), of.rows(), reservation))
}

/// Replaces arrival codes of strings by final codes.
pub(crate) fn remap_codes(device: &Device, codes: &DeviceBuffer, table: &[u32]) -> Result<()> {
    let mut stream = device.stream()?;
    let mut words = vec![0u32; codes.bytes() / size_of::<u32>()];
    stream.download(codes, 0, bytemuck::cast_slice_mut(&mut words))?;
    // Padding holds no code.
    words.iter_mut().for_each(|code| *code = table.get(*code as usize).copied().unwrap_or(0));
    stream.upload(codes, 0, bytemuck::cast_slice(&words))?;
    Ok(stream.synchronize()?)
}
