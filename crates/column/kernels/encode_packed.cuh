// Packed segments with and without patches; packed.rs and patches.rs in crates/column/src/encoding draw them.

// Purpose: smallest and largest key of each vector. Outputs: bounds u64 [vectors][2]; without a valid row all ones
// and 0. Mapping: a warp a vector, grid-stride. Bytes: the values once. Valid for any number of rows below 2^32.
struct BoundsParams {
    WcSource source;
    uint64_t* bounds;
};

WC_KERNEL(vector_bounds, BoundsParams, 256, 1) {
    const uint32_t lane = wc_lane();
    for (uint64_t vector = wc_first_vector(); vector < wc_vectors(p.source); vector += wc_warps()) {
        uint64_t low = ~0ull, high = 0;
#pragma unroll 8
        for (uint32_t step = 0; step < 1024; step += 32) {
            const uint64_t row = vector * 1024 + step + lane;
            if (!wc_valid(p.source, row)) continue;
            const uint64_t key = wc_key(p.source, row);
            low = key < low ? key : low;
            high = key > high ? key : high;
        }
        low = wc_warp_min(low);
        high = wc_warp_max(high);
        if (lane == 0) {
            p.bounds[2 * vector] = low;
            p.bounds[2 * vector + 1] = high;
        }
    }
}

// What offsets are taken from: `bounds` of a segment's vectors where each has a reference of its own, its smallest
// value, else null and `reference`, a key, for all.
struct WcReference {
    const uint64_t* bounds;
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

// Where word `at` of a lane string of `bits` bytes lies in its group.
WC_DEVICE uint32_t* wc_pack_word(char* group, uint32_t bits, uint32_t lane, uint32_t at) {
    if (at < bits / 16 * 4) return (uint32_t*)(group + 512 * (at / 4)) + 4 * lane + at % 4;
    group += bits / 16 * 512;
    at -= bits / 16 * 4;
    if (bits & 8) {
        if (at < 2) return (uint32_t*)group + 2 * lane + at;
        group += 256;
    }
    return (uint32_t*)group + lane;
}

// Purpose: the low `bits` bits of offsets. Outputs: groups, then the vectors' references where each has its own, 4
// bytes each for values of up to 4 bytes, else 8; `flag`, if there is one, is raised where an offset has more bits.
// Mapping: a warp a group of 256 rows, grid-stride. Bytes: the values once, the packed ones once.
struct PackParams {
    WcSource source;
    WcReference reference;
    uint64_t bits;
    uint32_t* flag;
    char* packed;
};

WC_KERNEL(pack_groups, PackParams, 256, 1) {
    const uint32_t lane = wc_lane(), bits = (uint32_t)p.bits;
    const uint64_t vectors = wc_vectors(p.source), mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
    bool wide = false;
    for (uint64_t number = wc_first_vector(); number < 4 * vectors; number += wc_warps()) {
        const uint64_t vector = number / 4, reference = wc_reference(p.source, p.reference, vector);
        if (p.reference.bounds != nullptr && number % 4 == 0 && lane == 0) {
            char* const references = p.packed + vectors * 128 * bits;
            wc_store(references, vector, reference ^ p.source.flip, p.source.width == 8 ? 8 : 4);
        }
        char* const group = p.packed + number * 32 * bits;
        uint64_t low = 0, high = 0;
        uint32_t filled = 0, at = 0;
#pragma unroll
        for (uint32_t slot = 0; slot < 8; ++slot) {
            const uint64_t row = number * 256 + 128 * (slot / 4) + 4 * lane + slot % 4;
            const uint64_t whole = wc_offset(p.source, row, reference), offset = whole & mask;
            wide |= whole != offset;
            // Fewer than 32 bits are left over from the slots before.
            low |= offset << filled;
            high = filled == 0 ? 0 : offset >> (64 - filled);
            filled += bits;
            while (filled >= 32) {
                *wc_pack_word(group, bits, lane, at++) = (uint32_t)low;
                low = low >> 32 | high << 32;
                high >>= 32;
                filled -= 32;
            }
        }
        // A last half word and byte: the planes behind those of whole words.
        char* const rest = group + 128 * (bits / 4);
        if (bits & 2) ((uint16_t*)rest)[lane] = (uint16_t)low;
        if (bits & 1) ((uint8_t*)(rest + ((bits & 2) ? 64 : 0)))[lane] = (uint8_t)(low >> ((bits & 2) ? 16 : 0));
    }
    if (wide && p.flag != nullptr) wc_or(p.flag, 1u);
}

// Purpose: which rows are patches. Outputs: marks u32 [32 * vectors], a bit a row; counts u32 [4 * vectors] of groups.
// Mapping: a warp a vector, grid-stride. Bytes: the values once, an eighth a row.
struct MarkParams {
    WcSource source;
    WcReference reference;
    uint64_t bits;
    uint32_t* marks;
    uint32_t* counts;
};

WC_KERNEL(mark_wide, MarkParams, 256, 1) {
    const uint32_t lane = wc_lane();
    for (uint64_t vector = wc_first_vector(); vector < wc_vectors(p.source); vector += wc_warps()) {
        const uint64_t reference = wc_reference(p.source, p.reference, vector);
        uint32_t mark = 0;
#pragma unroll 8
        for (uint32_t step = 0; step < 32; ++step) {
            const uint64_t offset = wc_offset(p.source, vector * 1024 + 32 * step + lane, reference);
            const uint32_t wide = __ballot_sync(WC_FULL_MASK, wc_is_wide(offset, (uint32_t)p.bits));
            if (lane == step) mark = wide;
        }
        p.marks[32 * vector + lane] = mark;
        uint32_t count = __popc(mark);
#pragma unroll
        for (int distance = 1; distance < 8; distance *= 2) count += __shfl_xor_sync(WC_FULL_MASK, count, distance);
        if (lane % 8 == 0) p.counts[4 * vector + lane / 8] = count;
    }
}

// Purpose: patches of marked rows. Inputs: starts u32 [4 * vectors + 1]; `at`, the byte of `out` at which the section
// begins. Outputs: starts, rows, values: the offsets, or the values themselves against a reference of 0. Mapping: a warp
// a group, grid-stride. Bytes: 2 and a word each patch, what is near them of the values.
struct PatchParams {
    WcSource source;
    WcReference reference;
    const uint32_t* marks;
    const uint32_t* starts;
    uint64_t at;
    char* out;
};

WC_KERNEL(write_patches, PatchParams, 256, 1) {
    const uint32_t lane = wc_lane();
    const uint64_t groups = 4 * wc_vectors(p.source), patches = p.starts[groups];
    const uint64_t rows_at = p.at + 4 * (groups + 1), values_at = (rows_at + 2 * patches + 7) / 8 * 8;
    uint16_t* const rows = (uint16_t*)(p.out + rows_at);
    wc_copy_starts((uint32_t*)(p.out + p.at), p.starts, groups + 1);
    if (blockIdx.x == 0 && threadIdx.x < (values_at - rows_at) / 2 - patches) rows[patches + threadIdx.x] = 0;
    for (uint64_t group = wc_first_vector(); group < groups; group += wc_warps()) {
        uint64_t at = p.starts[group];
        if (at == p.starts[group + 1]) continue;
        const uint64_t reference = wc_reference(p.source, p.reference, group / 4);
        for (uint32_t step = 0; step < 8; ++step) {
            const uint32_t mark = p.marks[8 * group + step];
            if (mark >> lane & 1u) {
                const uint64_t patch = at + __popc(mark & wc_lanes_before(lane));
                const uint64_t offset = wc_offset(p.source, 256 * group + 32 * step + lane, reference);
                rows[patch] = (uint16_t)(32 * step + lane);
                wc_store(p.out + values_at, patch, offset, p.source.width == 8 ? 8 : 4);
            }
            at += __popc(mark);
        }
    }
}
