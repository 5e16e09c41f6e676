// First pass of contraction: the facts of a cube are summed by classes of base elements.
//
// Input: facts in the order of their keys, as columns in chunks: keys of 64 or 128 bits, decimals of 64 bits, their
// validity. `classes` has a word for each base element of each dimension that takes part: the element's class times the
// distance of classes in the result, or WC_CUBE_NONE if it lies below no target; sums of these words are places.
// Output: a sum for each place, and a byte that is 1 if a fact was added. Both are zero before the launch.
// Mapping: a warp draws tickets of `ticket_rows` rows and works on steps of 32 * WC_SLOTS rows; a lane has groups of
// four neighbouring rows (plain.cuh). While all rows of a step's group lie at one place, lanes add to a register each,
// which is summed when the place changes; where every lane's four rows share a place, lanes of one place are summed
// before one of them adds; else each lane adds its own runs.
// Shared memory: `classes`, if they fit. Bytes: columns read once; sums are added where the place changes.
// Numerics: sums of WC_LIMBS words: one that the host has proven to hold, or those of the low 32 and the high 32 bits,
// which hold 2^31 facts.
// Source: contraction by sparse weight matrices (DESIGN, "Cubes"); warp preaggregation after Meinke, 4.3.

#define WC_CUBE_NONE 0xffffffffu

struct CubeSum {
    uint64_t limbs[WC_LIMBS];

    static WC_INLINE CubeSum none() {
        CubeSum sum;
        for (int i = 0; i < WC_LIMBS; ++i) sum.limbs[i] = 0;
        return sum;
    }
    WC_INLINE void add_value(int64_t value) {
#if WC_LIMBS == 1
        limbs[0] += (uint64_t)value;
#else
        limbs[0] += (uint32_t)value;
        limbs[1] += (uint64_t)(value >> 32);
#endif
    }
};

// Adds a sum to its place; the lanes that call it have places of their own.
WC_DEVICE void wc_cube_store(uint64_t* sums, uint8_t* filled, uint32_t place, const CubeSum& sum) {
#pragma unroll
    for (int i = 0; i < WC_LIMBS; ++i) wc_add(sums + (uint64_t)place * WC_LIMBS + i, sum.limbs[i]);
    if (filled[place] == 0) filled[place] = 1;
}

// Sums over all lanes.
WC_DEVICE CubeSum wc_cube_warp_sum(const CubeSum& sum) {
    CubeSum all;
#pragma unroll
    for (int i = 0; i < WC_LIMBS; ++i) all.limbs[i] = wc_warp_sum(sum.limbs[i]);
    return all;
}

// What a warp has added up for one place, a part a lane.
struct CubeRun {
    uint32_t place;
    CubeSum sum;

    WC_INLINE void flush(uint64_t* sums, uint8_t* filled) {
        if (place != WC_CUBE_NONE) {
            const CubeSum all = wc_cube_warp_sum(sum);
            if (wc_lane() == 0) wc_cube_store(sums, filled, place, all);
        }
        sum = CubeSum::none();
    }

    // Adds four neighbouring rows of each lane; rows of no place do not count.
    WC_INLINE void add(uint64_t* sums, uint8_t* filled, const uint32_t (&places)[4], const int64_t (&values)[4]) {
        const bool is_own = places[0] == places[1] && places[1] == places[2] && places[2] == places[3];
        const uint32_t first = __shfl_sync(WC_FULL_MASK, places[0], 0);
        if (__all_sync(WC_FULL_MASK, is_own && places[0] == first)) {
            if (first != place) {
                flush(sums, filled);
                place = first;
            }
            for (int i = 0; i < 4; ++i) sum.add_value(values[i]);
            return;
        }
        CubeSum own = CubeSum::none();
        if (__all_sync(WC_FULL_MASK, is_own)) {
            for (int i = 0; i < 4; ++i) own.add_value(values[i]);
            const uint32_t lane = wc_lane(), below = __shfl_up_sync(WC_FULL_MASK, places[0], 1);
            const uint32_t heads = __ballot_sync(WC_FULL_MASK, lane == 0 || places[0] != below);
            const uint32_t up_to = heads & (0xffffffffu >> (31 - lane));
            const uint32_t reach = lane - (31 - (uint32_t)__clz((int)up_to));
            CubeSum since = own;
#pragma unroll
            for (uint32_t step = 1; step < 32; step *= 2) {
#pragma unroll
                for (int i = 0; i < WC_LIMBS; ++i) {
                    const uint64_t other = __shfl_up_sync(WC_FULL_MASK, since.limbs[i], step);
                    if (step <= reach) since.limbs[i] += other;
                }
            }
            const bool is_last = lane == 31 || (heads >> ((lane + 1) & 31) & 1u) != 0;
            if (is_last && places[0] != WC_CUBE_NONE) wc_cube_store(sums, filled, places[0], since);
            return;
        }
        uint32_t current = places[0];
        own.add_value(values[0]);
        for (int i = 1; i < 4; ++i) {
            if (places[i] != current) {
                if (current != WC_CUBE_NONE) wc_cube_store(sums, filled, current, own);
                current = places[i];
                own = CubeSum::none();
            }
            own.add_value(values[i]);
        }
        if (current != WC_CUBE_NONE) wc_cube_store(sums, filled, current, own);
    }
};
