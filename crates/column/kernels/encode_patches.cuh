// Patches of packed segments; patches.rs in crates/column/src/format draws them. Needs encode_offsets.cuh.

// Purpose: which rows are patches, and what offsets are taken from. Outputs: bounds of vectors where each has a
// reference of its own; marks u32 [32 * vectors], a bit a row; counts u32 [4 * vectors] of groups. Mapping: a warp a
// vector, grid-stride. Bytes: the values once, and once more from a cache; an eighth a row.
struct MarkParams {
    WcSource source;
    WcReference reference;
    uint64_t bits;
    uint32_t* marks;
    uint32_t* counts;
};

WC_ENCODER(mark_wide, MarkParams, 4) {
    const uint32_t lane = wc_lane(), bits = (uint32_t)p.bits;
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        uint64_t reference = p.reference.reference;
        if (p.reference.bounds != nullptr) {
            uint64_t low, high;
            wc_find_bounds(p.source, vector, lane, &low, &high);
            if (lane == 0) {
                p.reference.bounds[2 * vector] = low;
                p.reference.bounds[2 * vector + 1] = high;
            }
            reference = low <= high ? low : p.source.flip;
        }
        uint32_t mark = 0;
        if (wc_is_quads(p.source, vector)) {
            const uint32_t limit = bits < 32 ? (1u << bits) - 1 : 0xffffffffu, from = (uint32_t)reference;
#pragma unroll
            for (uint32_t step = 0; step < 8; ++step) {
                const uint4 quad = wc_quad(p.source, vector * 1024 + 128 * step, lane);
                const uint32_t wide = (uint32_t)(quad.x - from > limit) | (uint32_t)(quad.y - from > limit) << 1 |
                    (uint32_t)(quad.z - from > limit) << 2 | (uint32_t)(quad.w - from > limit) << 3;
                // Eight lanes make a word of 32 rows, four words the 128 rows of the step.
                uint32_t word = wide << 4 * (lane % 8);
#pragma unroll
                for (int distance = 1; distance < 8; distance *= 2) {
                    word |= __shfl_xor_sync(WC_FULL_MASK, word, distance);
                }
                const uint32_t whole = __shfl_sync(WC_FULL_MASK, word, lane % 4 * 8);
                if (lane / 4 == step) mark = whole;
            }
        } else {
#pragma unroll 8
            for (uint32_t step = 0; step < 32; ++step) {
                const uint64_t offset = wc_offset(p.source, vector * 1024 + 32 * step + lane, reference);
                const uint32_t wide = __ballot_sync(WC_FULL_MASK, wc_is_wide(offset, bits));
                if (lane == step) mark = wide;
            }
        }
        p.marks[32 * vector + lane] = mark;
        uint32_t count = __popc(mark);
#pragma unroll
        for (int distance = 1; distance < 8; distance *= 2) count += __shfl_xor_sync(WC_FULL_MASK, count, distance);
        if (lane % 8 == 0) p.counts[4 * vector + lane / 8] = count;
    }
}

// Purpose: patches of marked rows. Inputs: starts u32 [4 * vectors + 1]; `at`, the byte of `out` at which the section
// begins. Outputs: starts, rows, values: the offsets, or the values themselves against a reference of 0. Mapping: a
// warp a group, grid-stride. Bytes: 2 and a word each patch, what is near them of the values.
struct PatchParams {
    WcSource source;
    WcReference reference;
    const uint32_t* marks;
    const uint32_t* starts;
    uint64_t at;
    char* out;
};

WC_ENCODER(write_patches, PatchParams, 4) {
    const uint32_t lane = wc_lane();
    const uint64_t groups = 4 * wc_vectors(p.source), patches = p.starts[groups];
    const uint64_t rows_at = p.at + 4 * (groups + 1), values_at = (rows_at + 2 * patches + 7) / 8 * 8;
    uint16_t* const rows = (uint16_t*)(p.out + rows_at);
    wc_copy_starts(share, (uint32_t*)(p.out + p.at), p.starts, groups + 1);
    if (share.block == 0 && threadIdx.x < (values_at - rows_at) / 2 - patches) rows[patches + threadIdx.x] = 0;
    for (uint64_t group = share.first(); group < groups; group += share.warps()) {
        // Words of marks are on their way together, and so are the patches.
        const uint32_t marks = lane < 8 ? p.marks[8 * group + lane] : 0;
        uint64_t at = p.starts[group];
        if (at == p.starts[group + 1]) continue;
        const uint64_t reference = wc_reference(p.source, p.reference, group / 4);
        uint64_t offsets[8];
#pragma unroll
        for (uint32_t step = 0; step < 8; ++step) {
            const bool is_patch = __shfl_sync(WC_FULL_MASK, marks, step) >> lane & 1u;
            offsets[step] = is_patch ? wc_offset(p.source, 256 * group + 32 * step + lane, reference) : 0;
        }
#pragma unroll
        for (uint32_t step = 0; step < 8; ++step) {
            const uint32_t mark = __shfl_sync(WC_FULL_MASK, marks, step);
            if (mark >> lane & 1u) {
                const uint64_t patch = at + __popc(mark & wc_lanes_before(lane));
                rows[patch] = (uint16_t)(32 * step + lane);
                wc_store(p.out + values_at, patch, offsets[step], p.source.width == 8 ? 8 : 4);
            }
            at += __popc(mark);
        }
    }
}
