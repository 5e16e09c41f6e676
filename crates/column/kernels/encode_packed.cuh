// Packed segments; packed.rs in crates/column/src/format draws them. Needs encode_offsets.cuh.

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

WC_ENCODER(pack_groups, PackParams, 4) {
    const uint32_t lane = wc_lane(), bits = (uint32_t)p.bits;
    const uint64_t vectors = wc_vectors(p.source), mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
    bool wide = false;
    for (uint64_t number = share.first(); number < 4 * vectors; number += share.warps()) {
        const uint64_t vector = number / 4, reference = wc_reference(p.source, p.reference, vector);
        if (p.reference.bounds != nullptr && number % 4 == 0 && lane == 0) {
            char* const references = p.packed + vectors * 128 * bits;
            wc_store(references, vector, reference ^ p.source.flip, p.source.width == 8 ? 8 : 4);
        }
        char* const group = p.packed + number * 32 * bits;
        const bool quads = wc_is_quads(p.source, vector);
        uint32_t own[8];
        if (quads) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint4 quad = wc_quad(p.source, number * 256 + 128 * half, lane);
                own[4 * half] = quad.x;
                own[4 * half + 1] = quad.y;
                own[4 * half + 2] = quad.z;
                own[4 * half + 3] = quad.w;
            }
        }
        uint64_t low = 0, high = 0;
        uint32_t filled = 0, at = 0;
#pragma unroll
        for (uint32_t slot = 0; slot < 8; ++slot) {
            const uint64_t row = number * 256 + 128 * (slot / 4) + 4 * lane + slot % 4;
            const uint64_t whole = quads ? own[slot] - (uint32_t)reference : wc_offset(p.source, row, reference);
            const uint64_t offset = whole & mask;
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
