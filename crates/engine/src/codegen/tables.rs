//! Hash tables in kernel source: what their functions are given.

use crate::arena::Region;
use crate::codegen::expr::Emitter;
use crate::codegen::params::Argument;

/// NULL among entries of 128 bits.
pub(super) const WIDE_NULL: &str = "((__int128)((unsigned __int128)1 << 127))";

/// Pointer, mask and seed of a table of so many slots for keys of one word, as arguments of a call.
pub(super) fn hash_table(emitter: &mut Emitter, keys: Region, slots: u64, seed: u64) -> String {
    let keys = emitter.params.add("uint64_t*", Argument::Region(keys));
    let mask = emitter.params.add("uint64_t", Argument::U64(slots - 1));
    let seed = emitter.params.add("uint64_t", Argument::U64(seed));
    format!("{keys}, {mask}, {seed}")
}

/// Pointers to states and words, mask and seed of a table of so many slots for keys of several words, as arguments of a
/// call.
pub(super) fn wide_table(
    emitter: &mut Emitter,
    (states, words): (Region, Argument),
    (slots, seed): (u64, u64),
) -> String {
    let states = emitter.params.add("uint64_t*", Argument::Region(states));
    let words = emitter.params.add("uint64_t*", words);
    let mask = emitter.params.add("uint64_t", Argument::U64(slots - 1));
    let seed = emitter.params.add("uint64_t", Argument::U64(seed));
    format!("{states}, {words}, {mask}, {seed}")
}
