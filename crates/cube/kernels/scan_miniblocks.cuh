// What the pass over facts reads: heads of miniblocks, their values and keys.
//
// Text in front: resident_keys.cuh, scan_sums.cuh, and definitions of WC_NULLS, WC_WEIGHTS and WC_SHARED_TABLES (1 or
// 0). `tables` has a word for each base element of each dimension that the pass looks at: the element's class times the
// distance of classes in the result, or WC_CUBE_NONE where it has no class; the sum of a fact's words is its place.

#define WC_CHUNK_MINIBLOCKS (uint32_t)(WC_CHUNK_FACTS / WC_MINIBLOCK_FACTS)

struct ScanParams {
    const uint64_t* values;    // addresses of the values of each chunk
    const uint64_t* validity;  // addresses of the validity words of each chunk, 0 where all its values are valid
    const CubeKey* firsts;
    const uint32_t* starts;
    const uint32_t* offsets;
    const uint32_t* tables;
    const int32_t* weights;  // beside the tables
    uint64_t* sums;          // WC_LIMBS planes of `places` words
    uint8_t* filled;
    uint32_t* counter;
    uint64_t facts, miniblocks, tickets, table_words, places, dimensions;
    uint64_t shifts[32], masks[32], table_at[32];
#if WC_VALUES == WC_VALUES_DOUBLES
    double scale;
#elif WC_VALUES == WC_VALUES_ORDER
    uint64_t turned;  // bits that negative numbers turn: all but the sign of doubles
    uint64_t order;   // makes the order that of unsigned words, or its reverse
#endif
};

// What is added up of a value.
WC_DEVICE int64_t wc_cube_value(const ScanParams& p, int64_t value) {
#if WC_VALUES == WC_VALUES_DOUBLES
    return __double_as_longlong(__longlong_as_double(value) * p.scale);
#elif WC_VALUES == WC_VALUES_ORDER
    return value ^ (int64_t)((uint64_t)(value >> 63) & p.turned) ^ (int64_t)p.order;
#else
    (void)p;
    return value;
#endif
}

// What a lane knows of its miniblock before keys are read.
struct CubeHead {
    CubeKey first;
    uint32_t start, units;
    uint32_t place;  // of the dimensions in which all facts agree
    uint32_t from;   // the first dimension in which they may not
#if WC_WEIGHTS
    int64_t weight;
#endif
};

// Values and keys of a lane's four facts, as loaded.
struct CubeStep {
    int64_t values[4];
    uint32_t words[5];
    uint32_t valid;
};

WC_DEVICE uint64_t wc_shuffled(uint64_t word, uint32_t lane) { return __shfl_sync(WC_FULL_MASK, word, (int)lane); }
WC_DEVICE CubeKey wc_shuffled_key(CubeKey key, uint32_t lane) {
#if WC_KEY_WORDS == 1
    return wc_shuffled(key, lane);
#else
    return (CubeKey)wc_shuffled((uint64_t)(key >> 64), lane) << 64 | wc_shuffled((uint64_t)key, lane);
#endif
}

// The tables, in shared memory or not.
WC_DEVICE uint32_t wc_table_word(const uint32_t* tables, uint32_t at) {
#if WC_SHARED_TABLES
    return tables[at];
#else
    return wc_load_cached(tables + at);
#endif
}

WC_DEVICE uint32_t wc_coordinate(const ScanParams& p, CubeKey key, uint32_t dimension) {
    return (uint32_t)p.table_at[dimension] +
           ((uint32_t)(key >> (uint32_t)p.shifts[dimension]) & (uint32_t)p.masks[dimension]);
}

// The bounds of a miniblock, and the dimensions in which they agree.
WC_DEVICE CubeHead wc_cube_head(const ScanParams& p, const uint32_t* tables, uint64_t miniblock) {
    CubeHead head;
    head.first = p.firsts[miniblock];
    const uint32_t differing = wc_key_bits(head.first ^ p.firsts[miniblock + 1]);
    head.start = p.starts[miniblock];
    head.units = p.starts[miniblock + 1] - head.start;
    head.place = 0;
    head.from = 0;
#if WC_WEIGHTS
    head.weight = 1;
#endif
    uint32_t none = 0;
    for (; head.from < p.dimensions && p.shifts[head.from] >= differing; ++head.from) {
        const uint32_t at = wc_coordinate(p, head.first, head.from);
        const uint32_t word = wc_table_word(tables, at);
        head.place += word;
        none |= word;
#if WC_WEIGHTS
        head.weight *= wc_load_cached(p.weights + at);
#endif
    }
    if ((none & WC_CUBE_NONE) != 0) head.place = WC_CUBE_NONE;
    return head;
}

// Asks for what a lane takes of a miniblock; `values` and `validity` are those of the chunk.
WC_DEVICE void wc_cube_fetch(CubeStep& step, const ScanParams& p, const int64_t* values, const uint32_t* validity,
                             uint64_t miniblock, uint32_t start, uint32_t units, bool keys) {
    const uint32_t lane = wc_lane();
    const uint32_t row = ((uint32_t)miniblock % WC_CHUNK_MINIBLOCKS) * WC_MINIBLOCK_FACTS + 4u * lane;
#if WC_VALUES == WC_VALUES_ONES
    (void)values;
#pragma unroll
    for (int i = 0; i < 4; ++i) step.values[i] = 1;
#else
    union { int4 words[2]; int64_t values[4]; } four;
    four.words[0] = wc_load16_stream(values + row);
    four.words[1] = wc_load16_stream(values + row + 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) step.values[i] = four.values[i];
#endif
    step.valid = 15u;
#if WC_NULLS
    if (validity != nullptr) step.valid = wc_load_cached(validity + row / 32u) >> (row % 32u) & 15u;
#else
    (void)validity;
#endif
    const uint64_t left = p.facts - miniblock * WC_MINIBLOCK_FACTS;
    if (left < WC_MINIBLOCK_FACTS) {
        const uint32_t here = (uint32_t)left;
        step.valid &= here <= 4u * lane ? 0u : here - 4u * lane >= 4u ? 15u : (1u << (here - 4u * lane)) - 1u;
    }
    if (keys && units <= WC_OFFSET_UNITS) {
        const uint32_t* const words = p.offsets + 4ull * start + (4u * units * lane) / 32u;
#pragma unroll
        for (int i = 0; i < 4; ++i) step.words[i] = wc_load_cached(words + i);
        step.words[4] = units > 24u ? wc_load_cached(words + 4) : 0u;
    }
}

// The keys of a lane's four facts.
WC_DEVICE void wc_cube_keys(CubeKey (&keys)[4], const CubeStep& step, const ScanParams& p, CubeKey first,
                            uint32_t start, uint32_t units) {
    const uint32_t lane = wc_lane();
    if (units > WC_OFFSET_UNITS) {
        const CubeKey* const whole = (const CubeKey*)(p.offsets + 4ull * start) + 4u * lane;
#pragma unroll
        for (int i = 0; i < 4; ++i) keys[i] = whole[i];
        return;
    }
    const uint32_t shift = 4u * units * lane % 32u;
    const uint32_t mask = units == 32u ? 0xffffffffu : (1u << units) - 1u;
    uint32_t window[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) window[i] = __funnelshift_r(step.words[i], step.words[i + 1], shift);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        keys[i] = first + (window[0] & mask);
#pragma unroll
        for (int word = 0; word < 3 - i; ++word) {
            window[word] = __funnelshift_rc(window[word], window[word + 1], units);
        }
    }
}

// The head of another lane's miniblock, in all lanes.
WC_DEVICE CubeHead wc_head_of(const CubeHead& head, uint32_t lane) {
    CubeHead of;
    of.first = wc_shuffled_key(head.first, lane);
    of.start = __shfl_sync(WC_FULL_MASK, head.start, (int)lane);
    const uint32_t small = __shfl_sync(WC_FULL_MASK, head.units << 8 | head.from, (int)lane);
    of.units = small >> 8;
    of.from = small & 255u;
    of.place = __shfl_sync(WC_FULL_MASK, head.place, (int)lane);
#if WC_WEIGHTS
    of.weight = (int64_t)wc_shuffled((uint64_t)head.weight, lane);
#endif
    return of;
}
