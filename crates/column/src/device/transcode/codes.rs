//! Distinct values of a column, and codes for them.

use warpcube_gpu::{Device, Params};

use super::context::{KernelContext, Source};
use super::programs::BASICS;
use super::scratch::{Derived, Scratch};
use crate::device::segment::{Room, Segment};
use crate::error::Result;
use crate::format::Dictionary;
use crate::units::{Storage, VECTOR_ROWS};

/// Warps of a vector: a thread works on a row.
const VECTOR_WARPS: usize = VECTOR_ROWS / 32;
/// Slots of a hash set or table a value.
const SLOTS_PER_VALUE: usize = 4;
/// An empty slot of a hash set.
const NO_VALUE: u64 = u64::MAX;

/// Bits of the distinct valid values of plain segments, in any order; `None` past `limit` values.
pub(crate) fn distinct(
    device: &Device,
    room: &dyn Room,
    storage: Storage,
    segments: &[Segment],
    limit: usize,
) -> Result<Option<Vec<u64>>> {
    let mut context = KernelContext::new(device, room)?;
    let slots = (SLOTS_PER_VALUE * limit.max(1)).next_power_of_two();
    let state_at = slots * size_of::<u64>();
    let memory = Scratch::new(&context, state_at + size_of::<u64>())?;
    context.stream.fill(memory.buffer(), 0, 0xff, state_at)?;
    context.stream.fill(memory.buffer(), state_at, 0, size_of::<u64>())?;
    let sources = segments.iter().map(|segment| Source::of(segment, storage)).map(|source| {
        let params = source.params().buffer(memory.buffer()).u64(slots as u64).u64(limit as u64);
        (VECTOR_WARPS * source.vectors(), params.buffer_at(memory.buffer(), state_at))
    });
    context.launch_all((BASICS, "collect_distinct"), sources, 0)?;
    let mut found = vec![0u64; slots + 1];
    context.stream.download(memory.buffer(), 0, bytemuck::cast_slice_mut(&mut found))?;
    let state = found.pop().unwrap_or_default();
    let mut values: Vec<u64> = found.into_iter().filter(|bits| *bits != NO_VALUE).collect();
    values.extend((state >> 32 != 0).then_some(NO_VALUE));
    Ok((values.len() <= limit).then_some(values))
}

/// Launches the lookup of a batch's codes; the kernel raises `flag` if the dictionary does not have a value.
pub(super) fn codes_of(
    context: &mut KernelContext<'_>,
    flag: &Scratch,
    dictionary: &Dictionary,
    sources: &[Source],
) -> Result<Derived> {
    let (keys, codes) = table(dictionary.values());
    let codes_at = size_of_val(keys.as_slice());
    let table = Scratch::new(context, codes_at + size_of_val(codes.as_slice()))?;
    context.stream.upload(table.buffer(), 0, bytemuck::cast_slice(&keys))?;
    context.stream.upload(table.buffer(), codes_at, bytemuck::cast_slice(&codes))?;
    let derived = Derived::new(context, sources, Storage::U32)?;
    let segments = sources.iter().zip(&derived.sources).map(|(source, codes)| {
        let params: Params = source.params().buffer(table.buffer()).buffer_at(table.buffer(), codes_at);
        let params = params.u64(keys.len() as u64).buffer(flag.buffer()).buffer(&codes.values);
        (VECTOR_WARPS * source.vectors(), params)
    });
    context.launch_all((BASICS, "look_up_codes"), segments, 0)?;
    // The reservation of the table ends here, and so must its use.
    context.stream.synchronize()?;
    Ok(derived)
}

/// A hash table with open addressing: keys and codes; the code of an empty slot is all ones.
fn table(values: &[u64]) -> (Vec<u64>, Vec<u32>) {
    let slots = (SLOTS_PER_VALUE * values.len().max(1)).next_power_of_two();
    let (mut keys, mut codes) = (vec![0; slots], vec![u32::MAX; slots]);
    for (bits, code) in values.iter().zip(0..) {
        let mut slot = first_slot(*bits, slots);
        while codes[slot] != u32::MAX {
            slot = (slot + 1) % slots;
        }
        (keys[slot], codes[slot]) = (*bits, code);
    }
    (keys, codes)
}

/// The first slot of a value in a power of two of slots: `wc_slot`.
fn first_slot(bits: u64, slots: usize) -> usize {
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (slots - 1)
}
