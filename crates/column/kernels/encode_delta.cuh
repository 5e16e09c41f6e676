// Delta segments; delta.rs in crates/column/src/encoding draws them.

// Purpose: offsets of differences and what groups have besides. Outputs, those that are asked for: `widest`, raised to
// the bits of the widest offset; offsets u32 or u64 [1024 * vectors]; heads [4 * vectors][2] of the same type.
// Mapping: a warp a vector, grid-stride. Bytes: the values once, the offsets once.
struct DeltaParams {
    WcSource source;
    uint32_t* widest;
    void* offsets;
    void* heads;
};

WC_ENCODER(delta_offsets, DeltaParams) {
    const uint32_t lane = wc_lane();
    const uint64_t mask = wc_word_mask(p.source), sign = 1ull << 63, word_bytes = p.source.width == 8 ? 8 : 4;
    uint64_t all = 0;
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        WcFilled filled(p.source, vector, lane);
        for (uint32_t group = 0; group < 4; ++group) {
            uint64_t differences[8], first = 0, last = 0, least = ~0ull;
#pragma unroll
            for (uint32_t step = 0; step < 8; ++step) {
                const uint64_t word = (filled.next(p.source, 8 * group + step, lane) ^ p.source.flip) & mask;
                if (step == 0) first = __shfl_sync(WC_FULL_MASK, word, 0);
                const uint64_t neighbour = __shfl_up_sync(WC_FULL_MASK, word, 1);
                const uint64_t difference = (word - (lane != 0 ? neighbour : last)) & mask;
                last = __shfl_sync(WC_FULL_MASK, word, 31);
                differences[step] = difference;
                const uint64_t number = p.source.width == 8 ? difference : (uint64_t)(int64_t)(int32_t)difference;
                const bool begins = step == 0 && lane == 0;
                if (!begins && (number ^ sign) < least) least = number ^ sign;
            }
            least = (wc_warp_min(least) ^ sign) & mask;
            if (lane == 0) differences[0] = least;
            const uint64_t number = 4 * vector + group;
#pragma unroll
            for (uint32_t step = 0; step < 8; ++step) {
                const uint64_t offset = (differences[step] - least) & mask;
                all |= offset;
                if (p.offsets != nullptr) wc_store(p.offsets, 256 * number + 32 * step + lane, offset, word_bytes);
            }
            if (p.heads != nullptr && lane < 2) wc_store(p.heads, 2 * number + lane, lane ? least : first, word_bytes);
        }
    }
    if (p.widest == nullptr) return;
    const uint32_t bits = wc_warp_bits(all);
    if (lane == 0) atomicMax(p.widest, bits);
}
