// Entries of tables that have grown, moved to where the larger ones have them (crates/engine/src/exec/growth.rs).

// Purpose: enter the keys of a table into a larger one that is empty. Inputs: keys + 1 where WC_KEY_WORDS is zero, or
// the states and words of keys of so many words, a slot each; zero where there is no key. Output: the larger table, and
// in place of each key or state 1 + its new slot. Mapping: one thread a slot, grid-stride.
struct GrowKeysParams {
    uint64_t* from; const uint64_t* from_words; uint64_t slots;
    uint64_t* to; uint64_t* to_words; uint64_t mask; uint64_t seed; uint64_t* control;
};
WC_KERNEL(grow_keys, GrowKeysParams, 256, 1) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < p.slots; slot += step) {
        const uint64_t key = p.from[slot];
        if (key == 0) continue;
        bool is_new;
#if WC_KEY_WORDS == 0
        const uint64_t at = wc_table_enter(p.to, p.mask, p.seed, key - 1, &is_new);
#else
        uint64_t words[WC_KEY_WORDS];
        for (int word = 0; word < WC_KEY_WORDS; ++word) words[word] = p.from_words[slot * WC_KEY_WORDS + word];
        const uint64_t at = wc_wide_enter(p.to, p.to_words, p.mask, p.seed, words, &is_new);
#endif
        if (at == ~0ULL) atomicOr((uint32_t*)(p.control + 1), (uint32_t)WC_LONG_RUN);
        p.from[slot] = at == ~0ULL ? 0 : at + 1;
    }
}

#if WC_SLOT_WORDS > 0
// Purpose: enter the groups of a table into a larger one that is empty. Inputs: slots of WC_SLOT_WORDS words, key + 1
// or the state of a slot and WC_KEY_WORDS words, then cells from WC_FIRST_CELL on. Output: the larger table. Mapping:
// one thread a slot, grid-stride.
struct GrowGroupsParams {
    const uint64_t* from; uint64_t slots; uint64_t* to; uint64_t mask; uint64_t seed; uint64_t* control;
};
WC_KERNEL(grow_groups, GrowGroupsParams, 256, 1) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < p.slots; slot += step) {
        const uint64_t* const group = p.from + slot * WC_SLOT_WORDS;
        if (group[0] == 0) continue;
        bool is_new;
#if WC_KEY_WORDS == 0
        const uint64_t at = wc_table_enter<WC_SLOT_WORDS>(p.to, p.mask, p.seed, group[0] - 1, &is_new);
#else
        uint64_t words[WC_KEY_WORDS];
        for (int word = 0; word < WC_KEY_WORDS; ++word) words[word] = group[1 + word];
        const uint64_t at = wc_wide_enter<WC_SLOT_WORDS>(p.to, p.to + 1, p.mask, p.seed, words, &is_new);
#endif
        if (at == ~0ULL) {
            atomicOr((uint32_t*)(p.control + 1), (uint32_t)WC_LONG_RUN);
            continue;
        }
        for (int word = WC_FIRST_CELL; word < WC_SLOT_WORDS; ++word) p.to[at * WC_SLOT_WORDS + word] = group[word];
    }
}
#endif

// Purpose: move a value of `width` bytes of each entry. Inputs: 1 + the new slot of each old one, or zero; the values
// by old slot. Output: the values by new slot. Mapping: one thread a slot, grid-stride.
struct GrowColumnParams { const uint64_t* slots; uint64_t count; const void* from; void* to; uint64_t width; };
template <typename T>
WC_DEVICE void wc_grow_value(const void* from, uint64_t slot, void* to, uint64_t at) {
    ((T*)to)[at] = ((const T*)from)[slot];
}
WC_KERNEL(grow_column, GrowColumnParams, 256, 1) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t slot = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; slot < p.count; slot += step) {
        const uint64_t at = p.slots[slot];
        if (at == 0) continue;
        switch (p.width) {
        case 1: wc_grow_value<uint8_t>(p.from, slot, p.to, at - 1); break;
        case 2: wc_grow_value<uint16_t>(p.from, slot, p.to, at - 1); break;
        case 4: wc_grow_value<uint32_t>(p.from, slot, p.to, at - 1); break;
        case 8: wc_grow_value<uint64_t>(p.from, slot, p.to, at - 1); break;
        default: wc_grow_value<unsigned __int128>(p.from, slot, p.to, at - 1);
        }
    }
}

// Purpose: move what rows know of their entries. Inputs: as above; 1 + the old slot of each row, or zero. Output: 1 +
// the new slot. Mapping: one thread a row, grid-stride.
struct GrowRowsParams { const uint64_t* slots; uint64_t count; const uint32_t* from; uint32_t* to; };
WC_KERNEL(grow_rows, GrowRowsParams, 256, 1) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; row < p.count; row += step) {
        const uint32_t entry = p.from[row];
        p.to[row] = entry == 0 ? 0 : (uint32_t)p.slots[entry - 1];
    }
}

// Purpose: move a number of rows of which no more than `room` have found a place. Mapping: one thread.
struct GrowCountParams { const uint64_t* from; uint64_t room; uint64_t* to; };
WC_KERNEL(grow_count, GrowCountParams, 256, 1) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *p.to = *p.from < p.room ? *p.from : p.room;
}
