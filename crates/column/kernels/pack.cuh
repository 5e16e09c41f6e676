// From plain segments to packed ones (packed.cuh has the layout).
//
// Values of 1, 2, 4 or 8 bytes enter as keys: 64-bit integers in the order of the values, whatever their sign. Rows
// that are NULL, and rows past the end, take no part in bounds and have offset 0.

// The key of a stored value; `flip` is 1 << 63 for signed types, else 0.
WC_DEVICE uint64_t wc_pack_key(const void* values, uint64_t row, uint64_t width, uint64_t flip) {
    if (width == 4) {
        const uint32_t value = ((const uint32_t*)values)[row];
        return flip != 0 ? (uint64_t)(int64_t)(int32_t)value ^ flip : value;
    }
    if (width == 8) return ((const uint64_t*)values)[row] ^ flip;
    if (width == 2) {
        const uint16_t value = ((const uint16_t*)values)[row];
        return flip != 0 ? (uint64_t)(int64_t)(int16_t)value ^ flip : value;
    }
    const uint8_t value = ((const uint8_t*)values)[row];
    return flip != 0 ? (uint64_t)(int64_t)(int8_t)value ^ flip : value;
}

WC_DEVICE bool wc_pack_valid(const uint32_t* validity, uint64_t row, uint64_t rows) {
    return row < rows && (validity == nullptr || (validity[row / 32] >> (row % 32) & 1u));
}

// Purpose: smallest and largest key of each vector. Outputs: bounds u64 [vectors][2]; without a valid row all ones
// and 0. Mapping: a warp a vector, grid-stride. Bytes: the values once. Valid for any number of rows below 2^32.
struct BoundsParams {
    const void* values;
    const uint32_t* validity;
    uint64_t rows, width, flip;
    uint64_t* bounds;
};

WC_KERNEL(vector_bounds, BoundsParams, 256, 1) {
    const uint32_t lane = wc_lane();
    const uint64_t vectors = (p.rows + 1023) / 1024, warps = (uint64_t)gridDim.x * (blockDim.x / 32);
    for (uint64_t vector = blockIdx.x * (blockDim.x / 32) + wc_warp(); vector < vectors; vector += warps) {
        uint64_t low = ~0ull, high = 0;
#pragma unroll 8
        for (uint32_t step = 0; step < 1024; step += 32) {
            const uint64_t row = vector * 1024 + step + lane;
            if (!wc_pack_valid(p.validity, row, p.rows)) continue;
            const uint64_t key = wc_pack_key(p.values, row, p.width, p.flip);
            low = key < low ? key : low;
            high = key > high ? key : high;
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            const uint64_t other_low = __shfl_xor_sync(WC_FULL_MASK, low, distance);
            const uint64_t other_high = __shfl_xor_sync(WC_FULL_MASK, high, distance);
            low = other_low < low ? other_low : low;
            high = other_high > high ? other_high : high;
        }
        if (lane == 0) {
            p.bounds[2 * vector] = low;
            p.bounds[2 * vector + 1] = high;
        }
    }
}

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

// Purpose: offsets of `bits` bits from plain values. Inputs: as above; bounds of this segment's vectors where each
// has a reference of its own, else null and `reference` (a key) for all. Outputs: groups, then the vectors'
// references, 4 bytes each for values of up to 4 bytes, else 8. Mapping: a warp a group of 256 rows, grid-stride.
// Bytes: the values once, the packed ones once. Valid where every offset has at most `bits` bits.
struct PackParams {
    const void* values;
    const uint32_t* validity;
    uint64_t rows, width, flip, bits;
    const uint64_t* bounds;
    uint64_t reference;
    char* packed;
};

WC_KERNEL(pack_groups, PackParams, 256, 1) {
    const uint32_t lane = wc_lane(), bits = (uint32_t)p.bits;
    const uint64_t vectors = (p.rows + 1023) / 1024, warps = (uint64_t)gridDim.x * (blockDim.x / 32);
    for (uint64_t number = blockIdx.x * (blockDim.x / 32) + wc_warp(); number < 4 * vectors; number += warps) {
        const uint64_t vector = number / 4;
        uint64_t reference = p.reference;
        if (p.bounds != nullptr) {
            const uint64_t low = p.bounds[2 * vector];
            reference = low <= p.bounds[2 * vector + 1] ? low : p.flip;
            if (number % 4 == 0 && lane == 0) {
                char* const references = p.packed + vectors * 128 * bits;
                const uint64_t value = reference ^ p.flip;
                if (p.width == 8) ((uint64_t*)references)[vector] = value;
                else ((uint32_t*)references)[vector] = (uint32_t)value;
            }
        }
        char* const group = p.packed + number * 32 * bits;
        uint64_t low = 0, high = 0;
        uint32_t filled = 0, at = 0;
#pragma unroll
        for (uint32_t slot = 0; slot < 8; ++slot) {
            const uint64_t row = number * 256 + 128 * (slot / 4) + 4 * lane + slot % 4;
            const bool valid = wc_pack_valid(p.validity, row, p.rows);
            const uint64_t offset = valid ? wc_pack_key(p.values, row, p.width, p.flip) - reference : 0;
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
}
