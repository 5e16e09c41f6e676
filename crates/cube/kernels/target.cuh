// The target-based algorithm: every target looks up its base cells among the sorted keys.
//
// Text in front is resident_keys.cuh and defines WC_NULLS (1 or 0).
//
// Input: packed keys and values of facts; for each target of each dimension the list of its base elements, ascending,
// with a weight each: `offsets` says where lists begin, and `offsets_at` where those of a dimension do.
// Output: sums and filled bytes by the target's rank, zero before.
// Mapping: a warp has a target and a segment of the miniblocks, a moving grid of warps. Each lane looks at one
// miniblock: it is read if the next key that belongs to the target lies between its first key and that of the next
// miniblock. If 32 miniblocks have none, the warp jumps to the miniblock of the next such key by binary search.
// Shared memory: begin and end of a target's lists, a word each, for each warp.
// Bytes: 8 to 16 a miniblock that is looked at, keys and values of those that are read. Numerics: words wrap; the host
// has proven that sums hold.
// Source: Meinke, 2.3; Lauer et al., Exploring graphics processing units as parallel coprocessors for online
// aggregation (2010); the next key in a cross product of lists as in leapfrog joins (Veldhuizen, 2014).

struct TargetParams {
    CubeKeys keys;
    const uint64_t* values;
    const uint64_t* validity;
    const uint32_t* offsets;
    const uint32_t* bases;
    const int32_t* weights;
    uint64_t* sums;
    uint8_t* filled;
    uint64_t facts, miniblocks, targets, segments, segment_miniblocks;
    CubeShape shape;
    uint64_t offsets_at[32], sizes[32];
};

// The lists of one target, one a dimension.
struct TargetLists {
    const uint32_t* begins;
    const uint32_t* ends;
    const uint32_t* bases;

    // The first entry of a list whose base element is not below `base`.
    WC_INLINE uint32_t at(uint32_t dimension, uint32_t base) const {
        uint32_t from = begins[dimension];
        for (uint32_t length = ends[dimension] - from; length > 0;) {
            const uint32_t half = length / 2;
            if (wc_load_cached(bases + from + half) < base) {
                from += half + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        return from;
    }
};

// Coordinates of a key before a dimension, then an entry of its list, then the first entries of all later lists.
WC_DEVICE CubeKey wc_target_key(const TargetParams& p, const TargetLists& lists, CubeKey key, uint32_t dimension,
                                uint32_t entry) {
    CubeKey built = 0;
    for (uint32_t other = 0; other < p.shape.dimensions; ++other) {
        const uint32_t own = other == dimension ? entry : lists.begins[other];
        const uint32_t base = other < dimension ? p.shape.coordinate(key, other) : wc_load_cached(lists.bases + own);
        built |= (CubeKey)base << (uint32_t)p.shape.shifts[other];
    }
    return built;
}

// The least key of the target that is not below `key`; false if there is none.
WC_DEVICE bool wc_target_next(const TargetParams& p, const TargetLists& lists, CubeKey key, CubeKey& next) {
    uint32_t dimension = 0;
    for (; dimension < p.shape.dimensions; ++dimension) {
        const uint32_t base = p.shape.coordinate(key, dimension);
        const uint32_t entry = lists.at(dimension, base);
        if (entry == lists.ends[dimension]) break;
        if (wc_load_cached(lists.bases + entry) != base) {
            next = wc_target_key(p, lists, key, dimension, entry);
            return true;
        }
    }
    next = key;
    if (dimension == p.shape.dimensions) return true;
    while (dimension-- > 0) {
        const uint32_t entry = lists.at(dimension, p.shape.coordinate(key, dimension) + 1);
        if (entry == lists.ends[dimension]) continue;
        next = wc_target_key(p, lists, key, dimension, entry);
        return true;
    }
    return false;
}

// Adds a fact to the sum of its target, if it belongs to it.
WC_DEVICE bool wc_target_add(const TargetParams& p, const TargetLists& lists, uint64_t fact, uint64_t& sum) {
    if (fact >= p.facts) return false;
#if WC_NULLS
    if (!wc_has_value(p.validity, fact)) return false;
#endif
    const CubeKey key = wc_key_of(p.keys, fact);
    uint64_t weight = 1;
    for (uint32_t dimension = 0; dimension < p.shape.dimensions; ++dimension) {
        const uint32_t base = p.shape.coordinate(key, dimension);
        const uint32_t entry = lists.at(dimension, base);
        if (entry == lists.ends[dimension] || wc_load_cached(lists.bases + entry) != base) return false;
        weight *= (uint64_t)(int64_t)wc_load_cached(p.weights + entry);
    }
    sum += weight * wc_value_of(p.values, fact);
    return true;
}

// Adds the facts of a segment to a target; gives the sum of all lanes, and whether there was a fact.
WC_DEVICE bool wc_target_segment(const TargetParams& p, const TargetLists& lists, uint64_t from, uint64_t end,
                                 uint64_t& sum) {
    bool found = false;
    while (from < end) {
        const uint64_t own = from + wc_lane();
        CubeKey next = 0;
        const bool has = own < end && wc_target_next(p, lists, p.keys.firsts[own], next);
        uint32_t left = __ballot_sync(WC_FULL_MASK, has && next <= p.keys.firsts[own + 1]);
        for (; left != 0; left &= left - 1) {
            const uint64_t miniblock = from + (uint32_t)__ffs((int)left) - 1;
            for (uint32_t step = 0; step < WC_MINIBLOCK_FACTS; step += 32) {
                found |= wc_target_add(p, lists, miniblock * WC_MINIBLOCK_FACTS + step + wc_lane(), sum);
            }
        }
        from += 32;
        if (from >= end || !wc_target_next(p, lists, p.keys.firsts[from], next)) break;
        // The last miniblock whose first key is not above the next key of the target.
        for (uint64_t length = end - from; length > 1;) {
            const uint64_t half = length / 2;
            if (p.keys.firsts[from + half] <= next) {
                from += half;
                length -= half;
            } else {
                length = half;
            }
        }
    }
    sum = wc_warp_sum(sum);
    return __any_sync(WC_FULL_MASK, found) != 0;
}

WC_KERNEL(wc_cube_target, TargetParams, 256, 4) {
    uint32_t* const begins = (uint32_t*)wc_shared() + 64 * wc_warp();
    const TargetLists lists{begins, begins + 32, p.bases};
    const uint64_t warps = (uint64_t)gridDim.x * blockDim.x / 32;
    const uint64_t own = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    for (uint64_t item = own; item < p.targets * p.segments; item += warps) {
        const uint64_t target = item / p.segments, from = (item - target * p.segments) * p.segment_miniblocks;
        uint64_t rest = target;
        uint32_t of_lane = 0;
        for (uint32_t dimension = (uint32_t)p.shape.dimensions; dimension-- > 0;) {
            const uint64_t quotient = rest / p.sizes[dimension];
            if (wc_lane() == dimension) of_lane = (uint32_t)(rest - quotient * p.sizes[dimension]);
            rest = quotient;
        }
        bool is_empty = false;
        __syncwarp();
        if (wc_lane() < p.shape.dimensions) {
            const uint32_t* const list = p.offsets + p.offsets_at[wc_lane()] + of_lane;
            begins[wc_lane()] = list[0];
            begins[32 + wc_lane()] = list[1];
            is_empty = list[0] == list[1];
        }
        __syncwarp();
        if (__any_sync(WC_FULL_MASK, is_empty)) continue;
        const uint64_t end = min(from + p.segment_miniblocks, p.miniblocks);
        uint64_t sum = 0;
        const bool found = wc_target_segment(p, lists, from, end, sum);
        if (found && wc_lane() == 0) {
            wc_add(p.sums + target, sum);
            p.filled[target] = 1;
        }
    }
}
