// The prefilter of the source-based algorithm: first pages, then cells.
//
// Text in front is resident_keys.cuh. A page is a miniblock of 128 facts, whose first key and that of the next
// miniblock bound its keys: dimensions in which both agree have one coordinate, the first other one has a range.
// `covered` has for each base element of each dimension the number of base elements before it with a target, and one
// number more a dimension.
//
// wc_source_filter: for each miniblock a mask of its relevant facts (those with targets and a value), four words, and
// their number; the number behind the last miniblock is 0. Keys of irrelevant pages are not read.
// wc_source_compact: the numbers of relevant facts in order; `places` has the sums of the numbers before each
// miniblock, and at its end the number of all.
// Mapping: a warp a miniblock, 32 facts a step. Bytes: keys of relevant pages and 20 a miniblock; 4 a relevant fact.
// Source: Meinke, 4.2; stream compaction by a scan.

struct FilterParams {
    CubeKeys keys;
    const uint64_t* validity;
    const uint32_t* covered;
    uint32_t* masks;
    uint32_t* counts;
    uint64_t facts, miniblocks;
    CubeShape shape;
    uint64_t covered_at[32];
};

struct CompactParams {
    const uint32_t* masks;
    const uint32_t* places;
    uint32_t* cells;
    uint64_t miniblocks;
};

// True if a base element from `least` to `greatest` has a target.
WC_DEVICE bool wc_covers(const FilterParams& p, uint32_t dimension, uint32_t least, uint32_t greatest) {
    const uint32_t* const covered = p.covered + p.covered_at[dimension];
    return wc_load_cached(covered + greatest + 1) != wc_load_cached(covered + least);
}

// True if a page may have relevant facts.
WC_DEVICE bool wc_page_is_relevant(const FilterParams& p, uint64_t miniblock) {
    const CubeKey first = p.keys.firsts[miniblock], next = p.keys.firsts[miniblock + 1];
    const uint32_t differing = wc_key_bits(first ^ next);
    for (uint32_t dimension = 0; dimension < p.shape.dimensions; ++dimension) {
        const uint32_t least = p.shape.coordinate(first, dimension), greatest = p.shape.coordinate(next, dimension);
        if (!wc_covers(p, dimension, least, greatest)) return false;
        if (p.shape.shifts[dimension] < differing) break;
    }
    return true;
}

WC_DEVICE bool wc_cell_is_relevant(const FilterParams& p, uint64_t fact) {
    if (fact >= p.facts || !wc_has_value(p.validity, fact)) return false;
    const CubeKey key = wc_key_of(p.keys, fact);
    for (uint32_t dimension = 0; dimension < p.shape.dimensions; ++dimension) {
        const uint32_t coordinate = p.shape.coordinate(key, dimension);
        if (!wc_covers(p, dimension, coordinate, coordinate)) return false;
    }
    return true;
}

WC_KERNEL(wc_source_filter, FilterParams, 256, 4) {
    const uint64_t warps = (uint64_t)gridDim.x * blockDim.x / 32;
    const uint64_t own = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (uint64_t miniblock = own; miniblock <= p.miniblocks; miniblock += warps) {
        uint32_t mask = 0, count = 0;
        if (miniblock < p.miniblocks && wc_page_is_relevant(p, miniblock)) {
            for (uint32_t word = 0; word < 4; ++word) {
                const uint64_t fact = miniblock * WC_MINIBLOCK_FACTS + 32 * word + wc_lane();
                const uint32_t votes = __ballot_sync(WC_FULL_MASK, wc_cell_is_relevant(p, fact));
                if (wc_lane() == word) mask = votes;
                count += (uint32_t)__popc(votes);
            }
        }
        if (miniblock < p.miniblocks && wc_lane() < 4) p.masks[4 * miniblock + wc_lane()] = mask;
        if (wc_lane() == 0) p.counts[miniblock] = count;
    }
}

WC_KERNEL(wc_source_compact, CompactParams, 256, 4) {
    const uint64_t warps = (uint64_t)gridDim.x * blockDim.x / 32;
    const uint64_t own = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const uint32_t below = (1u << wc_lane()) - 1u;
    for (uint64_t miniblock = own; miniblock < p.miniblocks; miniblock += warps) {
        uint32_t place = p.places[miniblock];
        if (p.places[miniblock + 1] == place) continue;
        for (uint32_t word = 0; word < 4; ++word) {
            const uint32_t mask = p.masks[4 * miniblock + word];
            const uint32_t fact = (uint32_t)miniblock * WC_MINIBLOCK_FACTS + 32 * word + wc_lane();
            if ((mask >> wc_lane() & 1u) != 0) p.cells[place + (uint32_t)__popc(mask & below)] = fact;
            place += (uint32_t)__popc(mask);
        }
    }
}
