// First pass of contraction: the facts of a cube are added up by classes of base elements.
//
// Text in front: resident_keys.cuh, scan_sums.cuh, scan_miniblocks.cuh and the definitions that they name; the tuning:
// WC_SCAN_THREADS, WC_TICKET_MINIBLOCKS (a power of two up to 32), WC_PREFETCH (1 or 0).
//
// Input: facts in the order of their keys: values in chunks of 2^20, keys in miniblocks of 128 (device/keys.rs).
// Output: a sum for each place, and a byte that is 1 if a fact was added. Both are zero before the launch.
// Mapping: a warp draws a ticket of WC_TICKET_MINIBLOCKS. Each lane reads the bounds of one miniblock and looks up the
// dimensions in which all its facts agree: a miniblock in which one of them has no class is left out, and one without
// further dimensions is summed without its keys. A lane of other miniblocks has four neighbouring facts, and adds up
// runs of one place.
// Shared memory: sums, filled bytes, and tables; the block adds sums to global memory at its end. Where they do not
// fit, sums are added to global memory.
// Registers: with WC_PREFETCH values and keys of the next miniblock are on their way while one is added up.
// Bytes: values and keys of the miniblocks that are not left out, once. Numerics: words wrap; the host has proven that
// sums hold. Source: contraction by sparse weight matrices (DESIGN, "Cubes"); page prefilter after Meinke, 4.2.

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
WC_DEVICE void wc_cube_whole(CubeRun& run, const CubeSums& sums, const ScanParams& p, const CubeStep& step,
                             uint32_t place, int64_t weight) {
#if WC_NULLS
    if (__all_sync(WC_FULL_MASK, step.valid == 0)) return;
#endif
    run.move_to(place, sums);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const uint64_t value = (uint64_t)wc_cube_value(p, step.values[i]);
        if ((step.valid >> i & 1u) != 0) run.sum.add((int64_t)(value * (uint64_t)weight));
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
        values[i] = (uint64_t)wc_cube_value(p, step.values[i]);
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
            wc_cube_whole(run, sums, p, step, here.place, here.weight);
#else
            wc_cube_whole(run, sums, p, step, here.place, 1);
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
    sums.words = (CubeWord*)room;
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
    sums.clear();
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
    sums.leave(p.sums, p.filled);
#endif
}
