// First pass of contraction: the facts of a cube are summed by classes of base elements.
//
// Text in front: resident_keys.cuh, and definitions of WC_LIMBS (1: a sum of 64 bits; 2: sums of the low
// 32 and the high 32 bits of values, which hold 2^31 facts), WC_NULLS, WC_WEIGHTS, WC_SHARED_SUMS and WC_SHARED_TABLES
// (1 or 0); the tuning: WC_SCAN_THREADS, WC_TICKET_MINIBLOCKS (a power of two up to 32), WC_PREFETCH (1 or 0).
//
// Input: facts in the order of their keys: values in chunks of 2^20, keys in miniblocks of 128 (device/keys.rs).
// `tables` has a word for each base element of each dimension that the pass looks at: the element's class times the
// distance of classes in the result, or WC_CUBE_NONE where it has no class; the sum of a fact's words is its place.
// Output: a sum for each place, and a byte that is 1 if a fact was added. Both are zero before the launch.
// Mapping: a warp draws a ticket of WC_TICKET_MINIBLOCKS. Each lane reads the bounds of one miniblock and looks up the
// dimensions in which all its facts agree: a miniblock in which one of them has no class is left out, and one without
// further dimensions is summed without its keys. A lane of other miniblocks has four neighbouring facts, and adds up
// runs of one place.
// Shared memory: sums as two words of 32 bits, since shared memory adds those at full rate, filled bytes, and tables;
// the block adds them to global memory at its end. Where they do not fit, sums are added to global memory.
// Registers: with WC_PREFETCH values and keys of the next miniblock are on their way while one is added up.
// Bytes: values and keys of the miniblocks that are not left out, once. Numerics: words wrap; the host has proven that
// sums hold. Source: contraction by sparse weight matrices (DESIGN, "Cubes"); page prefilter after Meinke, 4.2.

#define WC_CUBE_NONE 0x80000000u
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
};

// A sum that wraps.
struct CubeSum {
    uint64_t limbs[WC_LIMBS];

    static WC_INLINE CubeSum none() {
        CubeSum sum;
        for (int i = 0; i < WC_LIMBS; ++i) sum.limbs[i] = 0;
        return sum;
    }
    WC_INLINE void add(int64_t value) {
#if WC_LIMBS == 1
        limbs[0] += (uint64_t)value;
#else
        limbs[0] += (uint32_t)value;
        limbs[1] += (uint64_t)(value >> 32);
#endif
    }
};

// The sums of a block, or of the grid.
struct CubeSums {
#if WC_SHARED_SUMS
    uint32_t* words;  // for each limb the low words of all places, then the high words
#else
    uint64_t* words;
#endif
    uint8_t* filled;
    uint32_t places;

    WC_INLINE void add(uint32_t place, const CubeSum& sum) const {
#if WC_SHARED_SUMS
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) {
            uint32_t* const low = words + (2u * i) * places + place;
            const uint32_t added = (uint32_t)sum.limbs[i];
            const uint32_t before = atomicAdd(low, added);
            const uint32_t high = (uint32_t)(sum.limbs[i] >> 32) + (before + added < added ? 1u : 0u);
            if (high != 0) atomicAdd(low + places, high);
            // The first addition to a place finds a low word of 0.
            if (i == 0 && before == 0) filled[place] = 1;
        }
#else
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) wc_add(words + (uint64_t)i * places + place, sum.limbs[i]);
        if (filled[place] == 0) filled[place] = 1;
#endif
    }
};

// What a warp has added up for one place, a part a lane.
struct CubeRun {
    uint32_t place;
    CubeSum sum;

    WC_INLINE void flush(const CubeSums& sums) {
        if (place != WC_CUBE_NONE) {
            CubeSum all;
#pragma unroll
            for (int i = 0; i < WC_LIMBS; ++i) all.limbs[i] = wc_warp_sum(sum.limbs[i]);
            if (wc_lane() == 0) sums.add(place, all);
        }
        sum = CubeSum::none();
    }
    // Begins another place, the same in all lanes.
    WC_INLINE void move_to(uint32_t next, const CubeSums& sums) {
        if (next != place) {
            flush(sums);
            place = next;
        }
    }
};

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
    union { int4 words[2]; int64_t values[4]; } four;
    four.words[0] = wc_load16_stream(values + row);
    four.words[1] = wc_load16_stream(values + row + 2);
#pragma unroll
    for (int i = 0; i < 4; ++i) step.values[i] = four.values[i];
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

// Adds the four facts of each lane; those of no place do not count.
WC_DEVICE void wc_cube_add(CubeRun& run, const CubeSums& sums, const uint32_t (&places)[4],
                           const int64_t (&values)[4]) {
    const bool is_own = places[0] == places[1] && places[1] == places[2] && places[2] == places[3];
    const uint32_t first = __shfl_sync(WC_FULL_MASK, places[0], 0);
    if (__all_sync(WC_FULL_MASK, is_own && places[0] == first)) {
        if (first == WC_CUBE_NONE) return;
        run.move_to(first, sums);
#pragma unroll
        for (int i = 0; i < 4; ++i) run.sum.add(values[i]);
        return;
    }
    CubeSum own = CubeSum::none();
    own.add(values[0]);
#pragma unroll
    for (int i = 1; i < 4; ++i) {
        if (places[i] != places[i - 1]) {
            if (places[i - 1] != WC_CUBE_NONE) sums.add(places[i - 1], own);
            own = CubeSum::none();
        }
        own.add(values[i]);
    }
    if (places[3] != WC_CUBE_NONE) sums.add(places[3], own);
}

// Adds a miniblock whose facts agree in all dimensions; `place` is the same in all lanes.
WC_DEVICE void wc_cube_whole(CubeRun& run, const CubeSums& sums, const CubeStep& step, uint32_t place, int64_t weight) {
#if WC_NULLS
    if (__all_sync(WC_FULL_MASK, step.valid == 0)) return;
#endif
    run.move_to(place, sums);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if ((step.valid >> i & 1u) != 0) run.sum.add((int64_t)((uint64_t)step.values[i] * (uint64_t)weight));
    }
}

// Adds a miniblock by its keys.
WC_DEVICE void wc_cube_by_keys(CubeRun& run, const CubeSums& sums, const ScanParams& p, const uint32_t* tables,
                               const CubeStep& step, const CubeHead& head) {
    CubeKey keys[4];
    wc_cube_keys(keys, step, p, head.first, head.start, head.units);
    uint32_t places[4], none[4];
    uint64_t values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        places[i] = head.place;
        none[i] = (step.valid >> i & 1u) != 0 ? 0u : WC_CUBE_NONE;
        values[i] = (uint64_t)step.values[i];
#if WC_WEIGHTS
        values[i] *= (uint64_t)head.weight;
#endif
    }
    for (uint32_t dimension = head.from; dimension < p.dimensions; ++dimension) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32_t at = wc_coordinate(p, keys[i], dimension);
            const uint32_t word = wc_table_word(tables, at);
            places[i] += word;
            none[i] |= word;
#if WC_WEIGHTS
            values[i] *= (uint64_t)(int64_t)wc_load_cached(p.weights + at);
#endif
        }
    }
    int64_t added[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const bool counts = (none[i] & WC_CUBE_NONE) == 0;
        places[i] = counts ? places[i] : WC_CUBE_NONE;
        added[i] = (int64_t)values[i];
    }
    wc_cube_add(run, sums, places, added);
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

// Asks for the first miniblock of those left.
WC_DEVICE void wc_cube_next(CubeStep& step, CubeHead& of, const CubeHead& head, uint32_t left, const ScanParams& p,
                            const int64_t* values, const uint32_t* validity, uint64_t begin) {
    const uint32_t number = (uint32_t)__ffs((int)left) - 1;
    of = wc_head_of(head, number);
    wc_cube_fetch(step, p, values, validity, begin + number, of.start, of.units, of.from < p.dimensions);
}

// Adds all miniblocks of a ticket that are not left out.
WC_DEVICE void wc_cube_ticket(CubeRun& run, const CubeSums& sums, const ScanParams& p, const uint32_t* tables,
                              uint32_t ticket) {
    const uint32_t lane = wc_lane();
    const uint64_t begin = (uint64_t)ticket * WC_TICKET_MINIBLOCKS;
    CubeHead head;
    head.first = 0;
    head.start = head.units = head.from = 0;
    head.place = WC_CUBE_NONE;
#if WC_WEIGHTS
    head.weight = 1;
#endif
    if (lane < WC_TICKET_MINIBLOCKS && begin + lane < p.miniblocks) head = wc_cube_head(p, tables, begin + lane);
    uint32_t left = __ballot_sync(WC_FULL_MASK, head.place != WC_CUBE_NONE);
    if (left == 0) return;
    const uint64_t chunk = begin / WC_CHUNK_MINIBLOCKS;
    const int64_t* const values = (const int64_t*)wc_load_cached(p.values + chunk);
#if WC_NULLS
    const uint32_t* const validity = (const uint32_t*)wc_load_cached(p.validity + chunk);
#else
    const uint32_t* const validity = nullptr;
#endif
    CubeStep next;
    CubeHead next_head;
#if WC_PREFETCH
    wc_cube_next(next, next_head, head, left, p, values, validity, begin);
#endif
    while (left != 0) {
#if !WC_PREFETCH
        wc_cube_next(next, next_head, head, left, p, values, validity, begin);
#endif
        const CubeStep step = next;
        const CubeHead here = next_head;
        left &= left - 1;
#if WC_PREFETCH
        if (left != 0) wc_cube_next(next, next_head, head, left, p, values, validity, begin);
#endif
        if (here.from < p.dimensions) {
            wc_cube_by_keys(run, sums, p, tables, step, here);
        } else {
#if WC_WEIGHTS
            wc_cube_whole(run, sums, step, here.place, here.weight);
#else
            wc_cube_whole(run, sums, step, here.place, 1);
#endif
        }
    }
}

WC_KERNEL(wc_cube_scan, ScanParams, WC_SCAN_THREADS, 1) {
    const uint32_t places = (uint32_t)p.places;
    char* room = wc_shared();
    CubeSums sums;
    sums.places = places;
#if WC_SHARED_SUMS
    sums.words = (uint32_t*)room;
    room += 8ull * WC_LIMBS * places;
#else
    sums.words = p.sums;
#endif
#if WC_SHARED_TABLES
    uint32_t* const tables = (uint32_t*)room;
    room += 4ull * p.table_words;
    for (uint32_t word = threadIdx.x; word < p.table_words; word += blockDim.x) tables[word] = p.tables[word];
#else
    const uint32_t* const tables = p.tables;
#endif
#if WC_SHARED_SUMS
    sums.filled = (uint8_t*)room;
    for (uint32_t word = threadIdx.x; word < 2u * WC_LIMBS * places; word += blockDim.x) sums.words[word] = 0;
    for (uint32_t place = threadIdx.x; place < places; place += blockDim.x) sums.filled[place] = 0;
#else
    sums.filled = p.filled;
#endif
    __syncthreads();
    CubeRun run;
    run.place = WC_CUBE_NONE;
    run.sum = CubeSum::none();
    for (;;) {
        uint32_t ticket = 0;
        if (wc_lane() == 0) ticket = wc_count(p.counter);
        ticket = __shfl_sync(WC_FULL_MASK, ticket, 0);
        if (ticket >= p.tickets) break;
        wc_cube_ticket(run, sums, p, tables, ticket);
    }
    run.flush(sums);
#if WC_SHARED_SUMS
    __syncthreads();
    for (uint32_t place = threadIdx.x; place < places; place += blockDim.x) {
        if (sums.filled[place] == 0) continue;
#pragma unroll
        for (int i = 0; i < WC_LIMBS; ++i) {
            const uint32_t* const low = sums.words + (2u * i) * places + place;
            wc_add(p.sums + (uint64_t)i * places + place, (uint64_t)low[places] << 32 | low[0]);
        }
        if (p.filled[place] == 0) p.filled[place] = 1;
    }
#endif
}
