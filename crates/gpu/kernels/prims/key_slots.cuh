// Where a key of 32 bits belongs in a table of slots, and the rows of a block's step.
//
// A key is taken relative to the least of its range; keys past the range's width belong nowhere. A place of 32 bits is
// the relative key times an odd number (multiply-shift hashing: Dietzfelbinger et al. 1997) or, with the factor 1, the
// relative key itself (direct address); its high bits are the slot, and the highest of them the partition, so that the
// rows of one partition go to slots that follow each other.
#pragma once

// Members of parameter structs.
struct KeySlots {
    uint64_t least;
    uint64_t width;   // the largest relative key
    uint64_t factor;  // odd
    uint64_t shift;   // of a place, to its slot
    uint64_t mask;    // slots minus one, where slots are a power of two
};

WC_DEVICE uint32_t wc_relative(const KeySlots& slots, uint32_t key) { return key - (uint32_t)slots.least; }
WC_DEVICE uint32_t wc_home(const KeySlots& slots, uint32_t relative) {
    return relative * (uint32_t)slots.factor >> (uint32_t)slots.shift;
}

// Calls `each(keys, values, count)` for the rows of a grid of warps in turn, a lane's rows of a step at once:
// VEC * ROWS keys and values, of which the bits of `there` are rows.
template <int VEC, int ROWS, typename Each>
WC_DEVICE void wc_each_pair(const uint32_t* keys, const uint32_t* values, uint64_t n, bool aligned, Each each) {
    const uint64_t part = 32 * VEC * ROWS, warps = blockDim.x / 32;
    for (uint64_t from = (blockIdx.x * warps + wc_warp()) * part; from < n; from += gridDim.x * warps * part) {
        uint32_t key[ROWS][VEC], value[ROWS][VEC];
        wc_load_part<VEC, ROWS>(key, keys, from, n, aligned, 0u);
        wc_load_part<VEC, ROWS>(value, values, from, n, aligned, 0u);
        uint32_t there = (uint32_t)((1ull << VEC * ROWS) - 1);
        if (from + part > n) {
#pragma unroll
            for (int i = 0; i < ROWS * VEC; ++i) {
                if (from + ((uint64_t)(i / VEC) * 32 + wc_lane()) * VEC + i % VEC >= n) there &= ~(1u << i);
            }
        }
        each(key, value, there);
    }
}
