// The pass over segments of values of any width, with NULLs or without. Needs profile.cuh and encode_walk.cuh.

// A vector of any values.
WC_DEVICE WcEnds wc_profile_any(WcProfile& seen, const WcSource& source, uint64_t vector, uint32_t lane) {
    const uint64_t mask = wc_word_mask(source);
    const uint64_t value_mask = source.width == 8 ? ~0ull : (1ull << (8 * source.width)) - 1;
    WcRuns walk(source, vector, lane);
    WcEnds ends{~0ull, 0, 0, 0};
#pragma unroll 2
    for (uint32_t step = 0; step < 32; ++step) {
        uint64_t key;
        const bool begins = walk.next(source, step, lane, key) >> lane & 1u;
        seen.runs += begins;
        if (!walk.filled.any) continue;
        ends.low = key < ends.low ? key : ends.low;
        ends.high = key > ends.high ? key : ends.high;
        if (step == 0) ends.first = key;
        ends.last = key;
        seen.descents += key < walk.before;
        if (begins) wc_sketch(seen.registers, (key ^ source.flip) & value_mask);
    }
    ends.low = wc_warp_min(ends.low);
    ends.high = wc_warp_max(ends.high);
    seen.valid += __popc(wc_valid_word(source, vector * 1024 + 32 * lane));
#pragma unroll 2
    for (uint32_t step = 0; step < 32; ++step) {
        const uint64_t row = vector * 1024 + 32 * step + lane;
        const uint64_t offset = wc_valid(source, row) ? (wc_key(source, row) - ends.low) & mask : 0;
        seen.count_width(64 - __clzll((long long)offset), lane);
    }
    return ends;
}

// Purpose: the pass. Parameters, outputs and mapping: profile.cuh. Bytes: the values and their validity once, and once
// more from the caches.
WC_KERNEL(profile_any, ProfileParams, 256, 4) {
    wc_profile_vectors(p, [](WcProfile& seen, const WcSource& source, uint64_t vector, uint32_t lane) {
        return wc_profile_any(seen, source, vector, lane);
    });
}
