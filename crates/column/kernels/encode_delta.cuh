// Delta segments; delta.rs in crates/column/src/format draws them.

// Purpose: strings of quads, cut into the offsets that are packed, and heads of vectors. Outputs, those that are asked
// for: `widest` u32 [2], raised to the bits of the widest distance and offset; offsets u32 or u64 [1024 * vectors] of
// `width` bits, all ones where a string cannot hold what it should; heads [vectors][4] of the same type. Mapping: a
// warp a vector, grid-stride. Bytes: the values once, and twice more from the caches; the offsets once.
struct DeltaParams {
    WcSource source;
    uint64_t width, distance, differences;  // bits
    uint32_t* widest;
    void* offsets;
    void* heads;
};

// Words of a vector, step after step.
struct WcDeltaWords {
    WcFilled filled;
    uint64_t mask;
    uint32_t shift;  // bits above a word

    WC_INLINE WcDeltaWords(const WcSource& s, uint64_t vector, uint32_t lane)
        : filled(s, vector, lane), mask(wc_word_mask(s)), shift(s.width == 8 ? 0 : 32) {}

    WC_INLINE uint64_t next(const WcSource& s, uint32_t step, uint32_t lane) {
        return (filled.next(s, step, lane) ^ s.flip) & mask;
    }
    // A word as a number with a sign.
    WC_INLINE int64_t number(uint64_t word) const { return (int64_t)(word << shift) >> shift; }
};

// The smallest and the largest number of a warp.
struct WcDeltaSpan {
    int64_t low, high;

    WC_INLINE WcDeltaSpan() : low(0x7fffffffffffffffll), high(-0x7fffffffffffffffll - 1) {}

    WC_INLINE void take(int64_t number) {
        low = number < low ? number : low;
        high = number > high ? number : high;
    }
    // Of all lanes; the difference of both.
    WC_INLINE uint64_t close(uint64_t mask) {
        const uint64_t sign = 1ull << 63;
        low = (int64_t)(wc_warp_min((uint64_t)low ^ sign) ^ sign);
        high = (int64_t)(wc_warp_max((uint64_t)high ^ sign) ^ sign);
        return ((uint64_t)high - (uint64_t)low) & mask;
    }
};

// Bits of a word moved to higher places, or to lower ones.
WC_DEVICE uint64_t wc_moved(uint64_t word, int by) {
    if (by >= 0) return by < 64 ? word << by : 0;
    return -by < 64 ? word >> -by : 0;
}

WC_ENCODER(delta_offsets, DeltaParams, 4) {
    const uint32_t lane = wc_lane();
    const uint64_t mask = wc_word_mask(p.source), word_bytes = p.source.width == 8 ? 8 : 4;
    uint64_t distances = 0, offsets = 0;
    for (uint64_t vector = share.first(); vector < wc_vectors(p.source); vector += share.warps()) {
        const uint64_t rows = p.source.rows - 1024 * vector;
        const uint32_t quads = rows < 1024 ? ((uint32_t)rows + 3) / 4 : 256, end = quads - 1;
        uint64_t first = 0, last = 0;
        WcDeltaSpan differences;
        WcDeltaWords words(p.source, vector, lane);
        for (uint32_t step = 0; step < 32; ++step) {
            const uint64_t word = words.next(p.source, step, lane), before = __shfl_up_sync(WC_FULL_MASK, word, 1);
            if (step == 0) first = __shfl_sync(WC_FULL_MASK, word, 0);
            if (step == end / 8) last = __shfl_sync(WC_FULL_MASK, word, (int)(end % 8 * 4));
            const bool is_there = 8 * step + lane / 4 < quads;
            if (is_there && lane % 4 != 0) differences.take(words.number((word - before) & mask));
        }
        offsets |= differences.close(mask);
        // Distances from a flat line, and from one through both ends.
        const int64_t rise = words.number((last - first) & mask), run = quads > 1 ? quads - 1 : 1;
        // Rounded down, so that its product with the run may lie below the least number.
        const int64_t whole = rise / run - (rise % run < 0);
        const int64_t rest = (int64_t)((uint64_t)rise - (uint64_t)whole * (uint64_t)run);
        const uint64_t far = (uint64_t)whole * 32 + (uint64_t)(rest * 32 / run), near = (uint64_t)((int64_t)far >> 5);
        WcDeltaSpan flat, steep;
        words = WcDeltaWords(p.source, vector, lane);
        for (uint32_t step = 0; step < 32; ++step) {
            const uint64_t word = words.next(p.source, step, lane) - first;
            const uint32_t quad = 8 * step + lane / 4;
            if (lane % 4 != 0 || quad >= quads) continue;
            flat.take(words.number(word & mask));
            steep.take(words.number((word - quad % 32 * near - quad / 32 * far) & mask));
        }
        const uint64_t of_flat = flat.close(mask), of_steep = steep.close(mask);
        const bool is_steep = __clzll((long long)of_steep) > __clzll((long long)of_flat);
        distances |= is_steep ? of_steep : of_flat;
        if (p.offsets == nullptr) continue;
        const uint64_t least = (uint64_t)differences.low, base = first + (uint64_t)(is_steep ? steep.low : flat.low);
        const uint64_t near_by = is_steep ? near : 0, far_by = is_steep ? far : 0;
        if (lane < 4) {
            const uint64_t low = lane == 0 ? base : near_by, high = lane == 2 ? far_by : least;
            wc_store(p.heads, 4 * vector + lane, lane < 2 ? low : high, word_bytes);
        }
        words = WcDeltaWords(p.source, vector, lane);
        for (uint32_t step = 0; step < 32; ++step) {
            const uint64_t word = words.next(p.source, step, lane), before = __shfl_up_sync(WC_FULL_MASK, word, 1);
            const uint32_t quad = 8 * step + lane / 4;
            const uint64_t from = lane % 4 == 0 ? base + quad % 32 * near_by + quad / 32 * far_by : before + least;
            const uint64_t part = quad < quads ? (word - from) & mask : 0;
            // The fields of the quad's string, as far as they reach into this lane's quarter of it.
            uint64_t offset = 0;
            bool fits = true;
#pragma unroll
            for (uint32_t number = 0; number < 4; ++number) {
                const uint64_t field = __shfl_sync(WC_FULL_MASK, part, (int)(lane / 4 * 4 + number));
                const uint64_t bits = number == 0 ? p.distance : p.differences;
                const uint64_t at = number == 0 ? 0 : p.distance + (number - 1) * p.differences;
                fits &= bits >= 64 || field >> bits == 0;
                offset |= wc_moved(field, (int)at - (int)(lane % 4 * p.width));
            }
            offset &= p.width == 64 ? ~0ull : (1ull << p.width) - 1;
            wc_store(p.offsets, 1024 * vector + 32 * step + lane, fits ? offset : mask, word_bytes);
        }
    }
    if (p.widest == nullptr) return;
    const uint32_t of_distances = wc_warp_bits(distances), of_offsets = wc_warp_bits(offsets);
    if (lane == 0) {
        atomicMax(p.widest, of_distances);
        atomicMax(p.widest + 1, of_offsets);
    }
}
