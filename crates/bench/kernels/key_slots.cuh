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

// A lane's keys or values of a step: item k of row j as in tile.cuh.
template <int ROWS> struct LaneRows { uint32_t of[ROWS][WC_VEC]; };

// Calls `each(keys, values, there)` for the rows of a grid of warps in turn, a lane's rows of a step at once; bit
// j * WC_VEC + k of `there` says that there is such a row. Lanes that took different ways come together after each
// step: without it they load their next rows one after the other, ten times as slowly.
template <int ROWS, typename Each>
WC_DEVICE void wc_each_pair(const uint32_t* keys, const uint32_t* values, uint64_t n, bool aligned, Each each) {
    const uint64_t part = 32 * WC_VEC * ROWS, warps = blockDim.x / 32;
    for (uint64_t from = (blockIdx.x * warps + wc_warp()) * part; from < n; from += gridDim.x * warps * part) {
        LaneRows<ROWS> key, value;
        wc_load_part<WC_VEC, ROWS>(key.of, keys, from, n, aligned, 0u);
        wc_load_part<WC_VEC, ROWS>(value.of, values, from, n, aligned, 0u);
        uint32_t there = (uint32_t)((1ull << WC_VEC * ROWS) - 1);
        if (from + part > n) {
#pragma unroll
            for (int i = 0; i < ROWS * WC_VEC; ++i) {
                if (from + ((uint64_t)(i / WC_VEC) * 32 + wc_lane()) * WC_VEC + i % WC_VEC >= n) there &= ~(1u << i);
            }
        }
        each(key.of, value.of, there);
        __syncwarp();
    }
}
