// Sub-arrays: the filled cells between two tuples, put together in row-major order.
//
// Inputs: an array (array.cuh); bounds of each dimension, both inclusive. The blocks of the area are the tuples of the
// leading dimensions inside, in order. wc_scheme_ranges gives for each of them the first cell with a key not below the
// lower bounds and the number of cells up to the upper bounds, and 0 behind the last; an exclusive scan of these gives
// `offsets`. These cells are the candidates; wc_scheme_flags marks those inside in every dimension, which the primitive
// `select` numbers. Where keys between the bounds are all inside, candidates are the result. wc_scheme_emit writes
// coordinates and values. Without pointers there is one block, and `begins` has the places of both bounds from two
// searches.
// Mapping: a thread a block, then a thread a candidate, which finds its block by halves in `offsets`. Bytes: 8 a block
// of the area and 16 of scratch; key and flag a candidate; 16 + 4 k a result.
// Source: Wang, Sparse Array Representations and Some Selected Array Operations on GPUs, section 5.3 and algorithm 10,
// whose rows have a thread each, or a block of threads.

struct AreaParams {
    WcArray array;
    uint64_t low[WC_DIMENSIONS_MAX], high[WC_DIMENSIONS_MAX];
    uint64_t blocks;          // of the area
    uint64_t* begins;         // first candidate of each block
    uint64_t* offsets;        // candidates in front of each block and in all; counts before the scan
    uint64_t candidates;
    uint8_t* flags;           // of candidates
    const uint32_t* chosen;   // numbers of candidates, or null for all
    uint64_t results;
    uint32_t* coordinates;
    uint64_t* values;
};

// The block of the array that is number `at` of the area.
WC_DEVICE uint64_t wc_area_block(const AreaParams& p, uint64_t at) {
    uint64_t block = 0, places = 1;
    for (uint32_t d = (uint32_t)p.array.split; d-- > 0;) {
        uint32_t coordinate;
        at = wc_divided(at, p.high[d] - p.low[d] + 1, &coordinate);
        block += (p.low[d] + coordinate) * places;
        places *= p.array.sizes[d];
    }
    return block;
}

WC_KERNEL(wc_scheme_ranges, AreaParams, 256, 4) {
    WC_KEY low = 0, high = 0;
    for (uint32_t d = (uint32_t)p.array.split; d < p.array.dimensions; ++d) {
        low |= wc_placed(p.array, (uint32_t)p.low[d], d);
        high |= wc_placed(p.array, (uint32_t)p.high[d], d);
    }
    for (uint64_t at = wc_first(); at <= p.blocks; at += wc_stride()) {
        uint64_t begin = 0, end = 0;
        if (at < p.blocks) {
            wc_block(p.array, wc_area_block(p, at), &begin, &end);
            begin = wc_key_bound(p.array, begin, end, low, false);
            end = wc_key_bound(p.array, begin, end, high, true);
            p.begins[at] = begin;
        }
        p.offsets[at] = end - begin;
    }
}

// Position of a candidate, and the number of its block in the area.
WC_DEVICE uint64_t wc_candidate(const AreaParams& p, uint64_t candidate, uint64_t* at) {
    *at = 0;
    if (p.blocks == 1) return p.begins[0] + candidate;
    *at = wc_upper_bound(p.offsets, p.blocks + 1, candidate) - 1;
    return p.begins[*at] + (candidate - p.offsets[*at]);
}

WC_KERNEL(wc_scheme_flags, AreaParams, 256, 4) {
    for (uint64_t candidate = wc_first(); candidate < p.candidates; candidate += wc_stride()) {
        uint64_t at;
        const WC_KEY key = p.array.keys[wc_candidate(p, candidate, &at)];
        bool is_inside = true;
        for (uint32_t d = (uint32_t)p.array.split; d < p.array.dimensions; ++d) {
            const uint32_t coordinate = wc_field(p.array, key, d);
            is_inside = is_inside && coordinate >= p.low[d] && coordinate <= p.high[d];
        }
        p.flags[candidate] = is_inside ? 1 : 0;
    }
}

WC_KERNEL(wc_scheme_emit, AreaParams, 256, 4) {
    for (uint64_t result = wc_first(); result < p.results; result += wc_stride()) {
        uint64_t at;
        const uint64_t candidate = p.chosen == nullptr ? result : p.chosen[result];
        const uint64_t position = wc_candidate(p, candidate, &at);
        wc_decode(p.array, wc_area_block(p, at), position, p.array.dimensions,
            p.coordinates + result * p.array.dimensions);
        p.values[result] = p.array.values[position];
    }
}
