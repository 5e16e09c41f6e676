// NSF and NSV segments; nsf.rs and nsv.rs in crates/column/src/format draw them.

// Purpose: the low bytes of each value. Inputs: a plain segment; `bytes` 1, 2, 4 or 8; `flag` is raised where a value
// needs more. Outputs: [vectors * 1024] × bytes; null slots and padding are zero. Mapping: a thread four rows,
// grid-stride. Bytes: the values once, the narrow ones once. Valid for bytes up to the width of the values.
struct NsfParams {
    WcSource source;
    uint64_t bytes;
    uint32_t* flag;
    char* out;
};

WC_ENCODER(write_nsf, NsfParams, 4) {
    const uint64_t threads = share.threads(), quads = wc_vectors(p.source) * 256;
    const uint32_t shift = 64 - 8 * (uint32_t)p.bytes;
    bool wide = false;
    for (uint64_t quad = share.first_thread(); quad < quads; quad += threads) {
        uint64_t values[4];
#pragma unroll
        for (uint32_t slot = 0; slot < 4; ++slot) {
            const uint64_t row = 4 * quad + slot;
            const uint64_t value = wc_valid(p.source, row) ? wc_key(p.source, row) ^ p.source.flip : 0;
            const uint64_t low = value << shift;
            wide |= (p.source.flip != 0 ? (uint64_t)((int64_t)low >> shift) : low >> shift) != value;
            values[slot] = low >> shift;
        }
        if (p.bytes == 1) {
            ((uint32_t*)p.out)[quad] = (uint32_t)(values[0] | values[1] << 8 | values[2] << 16 | values[3] << 24);
        } else if (p.bytes == 2) {
            ((uint64_t*)p.out)[quad] = values[0] | values[1] << 16 | values[2] << 32 | values[3] << 48;
        } else {
#pragma unroll
            for (uint32_t slot = 0; slot < 4; ++slot) wc_store(p.out, 4 * quad + slot, values[slot], p.bytes);
        }
    }
    if (wide) wc_or(p.flag, 1u);
}

// The offset of a row in 32 bits, 0 if it is null; notes whether it needs more.
WC_DEVICE uint32_t wc_nsv_offset(const WcSource& s, uint64_t row, uint64_t reference, bool& wide) {
    if (!wc_valid(s, row)) return 0;
    const uint64_t offset = ((wc_key(s, row) ^ s.flip) - reference) & wc_word_mask(s);
    wide |= offset >> 32 != 0;
    return (uint32_t)offset;
}

// Bytes of an offset.
WC_DEVICE uint32_t wc_nsv_length(uint32_t offset) { return offset == 0 ? 1 : (39 - __clz((int)offset)) / 8; }

// Purpose: bytes of each vector's data. Outputs: counts u32 [vectors]; `flag` is raised where an offset needs more
// than 32 bits. Mapping: a warp a vector, grid-stride. Bytes: the values once.
struct NsvCountParams {
    WcSource source;
    uint64_t reference;
    uint32_t* flag;
    uint32_t* counts;
};

WC_ENCODER(count_nsv, NsvCountParams, 4) {
    const uint32_t lane = wc_lane();
    bool wide = false;
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        uint32_t bytes = 0;
#pragma unroll 8
        for (uint32_t step = 0; step < 32; ++step) {
            bytes += wc_nsv_length(wc_nsv_offset(p.source, vector * 1024 + 32 * step + lane, p.reference, wide));
        }
        bytes = wc_warp_sum(bytes);
        if (lane == 0) p.counts[vector] = bytes;
    }
    if (wide) wc_or(p.flag, 1u);
}

// The bits of the low half word, apart: bit i at 2 * i.
WC_DEVICE uint32_t wc_spread(uint32_t bits) {
    bits = (bits | bits << 8) & 0x00ff00ffu;
    bits = (bits | bits << 4) & 0x0f0f0f0fu;
    bits = (bits | bits << 2) & 0x33333333u;
    return (bits | bits << 1) & 0x55555555u;
}

// Purpose: an NSV segment. Inputs: starts u32 [vectors + 1]. Outputs: lengths, starts, data, four zeros. Mapping: a
// warp a vector, grid-stride. Bytes: the values once, the segment once.
struct NsvParams {
    WcSource source;
    uint64_t reference;
    const uint32_t* starts;
    char* out;
};

WC_ENCODER(write_nsv, NsvParams, 4) {
    const uint32_t lane = wc_lane();
    const uint64_t vectors = wc_vectors(p.source);
    uint8_t* const data = (uint8_t*)p.out + 260 * vectors + 4;
    wc_copy_starts(share, (uint32_t*)(p.out + 256 * vectors), p.starts, vectors + 1);
    if (share.block == 0 && threadIdx.x < 4) data[p.starts[vectors] + threadIdx.x] = 0;
    for (uint64_t vector = share.first(); vector < vectors; vector += share.warps()) {
        uint32_t at = p.starts[vector];
        for (uint32_t step = 0; step < 32; ++step) {
            bool wide = false;
            const uint32_t offset = wc_nsv_offset(p.source, vector * 1024 + 32 * step + lane, p.reference, wide);
            const uint32_t length = wc_nsv_length(offset);
            const uint32_t end = wc_warp_inclusive_sum(length);
            for (uint32_t byte = 0; byte < length; ++byte) {
                data[at + end - length + byte] = (uint8_t)(offset >> (8 * byte));
            }
            const uint32_t low = __ballot_sync(WC_FULL_MASK, (length - 1) & 1u);
            const uint32_t high = __ballot_sync(WC_FULL_MASK, (length - 1) >> 1);
            if (lane < 2) {
                const uint32_t half = 16 * lane;
                ((uint32_t*)p.out)[vector * 64 + 2 * step + lane] =
                    wc_spread(low >> half & 0xffffu) | wc_spread(high >> half & 0xffffu) << 1;
            }
            at += __shfl_sync(WC_FULL_MASK, end, 31);
        }
    }
}
