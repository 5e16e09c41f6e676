// Random access: values of many cells by their coordinates.
//
// Inputs: an array (array.cuh), tuples of coordinates. Output: the value of each tuple's cell, 0 where it is empty; a
// bit a tuple in words of 32, 1 where it is filled; the number of the first tuple outside of the shape, in `outside`,
// which is all ones before the launch. Mapping: a thread a tuple. wc_scheme_find searches the key in the tuple's block
// by halves; without pointers, wc_scheme_encode writes keys, the primitive `search` their places, and wc_scheme_fetch
// compares and fetches. Bytes: 4 k a tuple, 8.125 of results; probes are of 32 bytes.
// Source: Wang, Sparse Array Representations and Some Selected Array Operations on GPUs, section 5.2, which scans rows
// of xCRS where this halves them.

struct GetParams {
    WcArray array;
    const uint32_t* tuples;
    uint64_t count;
    WC_KEY* keys;            // of the tuples
    const uint32_t* places;  // of the keys
    uint64_t* values;
    uint32_t* found;
    uint64_t* outside;
};

// Block and key of a tuple; false if it lies outside of the shape.
WC_DEVICE bool wc_located(const WcArray& array, const uint32_t* tuple, uint64_t* block, WC_KEY* key) {
    bool is_inside = true;
    *block = 0;
    *key = 0;
    for (uint32_t d = 0; d < array.dimensions; ++d) {
        const uint32_t coordinate = tuple[d];
        if (coordinate >= array.sizes[d]) is_inside = false;
        else if (d < array.split) *block = *block * array.sizes[d] + coordinate;
        else *key |= wc_placed(array, coordinate, d);
    }
    return is_inside;
}

// Stores what a thread found; all lanes of a warp call it, of which those at `count` and behind have none.
WC_DEVICE void wc_store_found(const GetParams& p, uint64_t at, uint64_t position) {
    const bool is_found = at < p.count && position < p.array.cells;
    const uint32_t found = __ballot_sync(WC_FULL_MASK, is_found);
    if (at < p.count) {
        wc_store_stream(p.values + at, is_found ? p.array.values[position] : (uint64_t)0);
        if (wc_lane() == 0) p.found[at / 32] = found;
    }
}

WC_KERNEL(wc_scheme_find, GetParams, 256, 4) {
    for (uint64_t base = wc_first() - wc_lane(); base < p.count; base += wc_stride()) {
        const uint64_t at = base + wc_lane();
        uint64_t position = p.array.cells;
        if (at < p.count) {
            uint64_t block, begin, end;
            WC_KEY key;
            if (wc_located(p.array, p.tuples + at * p.array.dimensions, &block, &key)) {
                wc_block(p.array, block, &begin, &end);
                const uint64_t place = wc_key_bound(p.array, begin, end, key, false);
                if (place < end && p.array.keys[place] == key) position = place;
            } else {
                wc_min(p.outside, at);
            }
        }
        wc_store_found(p, at, position);
    }
}

WC_KERNEL(wc_scheme_encode, GetParams, 256, 4) {
    for (uint64_t at = wc_first(); at < p.count; at += wc_stride()) {
        uint64_t block;
        WC_KEY key;
        if (!wc_located(p.array, p.tuples + at * p.array.dimensions, &block, &key)) wc_min(p.outside, at);
        p.keys[at] = key;
    }
}

WC_KERNEL(wc_scheme_fetch, GetParams, 256, 4) {
    for (uint64_t base = wc_first() - wc_lane(); base < p.count; base += wc_stride()) {
        const uint64_t at = base + wc_lane();
        uint64_t position = p.array.cells;
        if (at < p.count) {
            const uint64_t place = p.places[at];
            if (place < p.array.cells && p.array.keys[place] == p.keys[at]) position = place;
        }
        wc_store_found(p, at, position);
    }
}
