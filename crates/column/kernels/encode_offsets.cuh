// Offsets from references, as packed segments hold them.

// What offsets are taken from: `bounds` of a segment's vectors where each has a reference of its own, its smallest
// value, else null and `reference`, a key, for all.
struct WcReference {
    uint64_t* bounds;
    uint64_t reference;
};

// The reference of a vector as a key; 0 as a value where no row is valid.
WC_DEVICE uint64_t wc_reference(const WcSource& s, const WcReference& r, uint64_t vector) {
    if (r.bounds == nullptr) return r.reference;
    const uint64_t low = r.bounds[2 * vector];
    return low <= r.bounds[2 * vector + 1] ? low : s.flip;
}

WC_DEVICE uint64_t wc_offset(const WcSource& s, uint64_t row, uint64_t reference) {
    return wc_valid(s, row) ? (wc_key(s, row) - reference) & wc_word_mask(s) : 0;
}

WC_DEVICE bool wc_is_wide(uint64_t offset, uint32_t bits) { return bits < 64 && offset >> bits != 0; }

// Smallest and largest key of a vector; all ones and 0 without a valid row.
WC_DEVICE void wc_find_bounds(const WcSource& s, uint64_t vector, uint32_t lane, uint64_t* low, uint64_t* high) {
    if (wc_is_quads(s, vector)) {
        // In the order of unsigned integers.
        const uint32_t flip = (uint32_t)(s.flip >> 32);
        uint32_t least = 0xffffffffu, most = 0;
#pragma unroll
        for (uint32_t step = 0; step < 8; ++step) {
            const uint4 quad = wc_quad(s, vector * 1024 + 128 * step, lane);
            const uint32_t values[4] = {quad.x ^ flip, quad.y ^ flip, quad.z ^ flip, quad.w ^ flip};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                least = values[i] < least ? values[i] : least;
                most = values[i] > most ? values[i] : most;
            }
        }
        const uint32_t ends[2] = {
            __reduce_min_sync(WC_FULL_MASK, least) ^ flip, __reduce_max_sync(WC_FULL_MASK, most) ^ flip};
        *low = flip != 0 ? (uint64_t)(int64_t)(int32_t)ends[0] ^ s.flip : ends[0];
        *high = flip != 0 ? (uint64_t)(int64_t)(int32_t)ends[1] ^ s.flip : ends[1];
        return;
    }
    *low = ~0ull;
    *high = 0;
#pragma unroll 8
    for (uint32_t step = 0; step < 1024; step += 32) {
        const uint64_t row = vector * 1024 + step + lane;
        if (!wc_valid(s, row)) continue;
        const uint64_t key = wc_key(s, row);
        *low = key < *low ? key : *low;
        *high = key > *high ? key : *high;
    }
    *low = wc_warp_min(*low);
    *high = wc_warp_max(*high);
}
