// Last step of contraction: the filled places of a dense result, with their ranks within the area.
//
// Text in front defines WC_SUM_WORDS, words of 64 bits of a sum (1 or 2).
//
// Input: sums and filled bytes of `places`; an axis for each run of dimensions whose numbers map to targets alike: a
// place is a tuple over the axes' sizes, row-major; its rank is the sum of the axes' numbers, by way of a table of
// targets where there is one, times their strides. Output: `count`, and for each filled place in order the rank and
// the sum, up to `capacity` of them. Zero before the launch: `counter` and `states`, one for each tile.
// Mapping: a block draws a tile of 2,048 places, eight a thread. Bytes: 1 a place, 24 a filled one.
// Source: decoupled look-back (Merrill and Garland, Single-pass Parallel Prefix Scan, 2016).

#define WC_CELL_TILE 2048u
#define WC_CELL_AXES 32
// What a state's highest two bits say: the count of the tile alone, or of all tiles up to it.
#define WC_CELL_ALONE (1ull << 62)
#define WC_CELL_UP_TO (2ull << 62)
#define WC_CELL_COUNT (WC_CELL_ALONE - 1)

struct CellsParams {
    const uint64_t* sums;
    const uint8_t* filled;
    uint32_t* counter;
    uint64_t* states;
    uint64_t* count;
    uint64_t* cells;  // rank and sum
    uint64_t places, capacity, axes;
    uint64_t sizes[WC_CELL_AXES], strides[WC_CELL_AXES], targets[WC_CELL_AXES];  // addresses of tables, or 0
};

WC_DEVICE uint64_t wc_cell_rank(const CellsParams& p, uint64_t place) {
    uint64_t rank = 0;
    for (uint32_t axis = (uint32_t)p.axes; axis-- > 0;) {
        const uint64_t rest = axis == 0 ? 0 : place / p.sizes[axis];
        const uint64_t number = place - rest * p.sizes[axis];
        const uint32_t* const targets = (const uint32_t*)p.targets[axis];
        rank += (targets == nullptr ? number : (uint64_t)wc_load_cached(targets + number)) * p.strides[axis];
        place = rest;
    }
    return rank;
}

// The number of filled places in all tiles before one; all lanes of a warp call it.
WC_DEVICE uint64_t wc_cells_before(const uint64_t* states, uint32_t tile) {
    const uint32_t lane = wc_lane();
    uint64_t before = 0;
    for (uint32_t end = tile; end > 0;) {
        const uint64_t state = lane < end ? wc_load_relaxed(states + (end - 1 - lane)) : WC_CELL_UP_TO;
        const uint32_t known = __ballot_sync(WC_FULL_MASK, state >= WC_CELL_UP_TO);
        const uint32_t empty = __ballot_sync(WC_FULL_MASK, state == 0);
        const uint32_t needed = known == 0 ? WC_FULL_MASK : (known & (0u - known)) * 2u - 1u;
        if ((empty & needed) != 0) {
            wc_backoff();
            continue;
        }
        before += wc_warp_sum((needed >> lane & 1u) != 0 ? state & WC_CELL_COUNT : 0ull);
        if (known != 0) break;
        end -= 32;
    }
    return before;
}

WC_KERNEL(wc_cube_cells, CellsParams, 256, 4) {
    uint32_t* const parts = (uint32_t*)wc_shared();
    uint64_t* const shared_before = (uint64_t*)(parts + 16);
    const uint32_t lane = wc_lane(), warp = wc_warp();
    if (threadIdx.x == 0) parts[8] = wc_count(p.counter);
    __syncthreads();
    const uint32_t tile = parts[8];
    const uint64_t first = (uint64_t)tile * WC_CELL_TILE + 8u * threadIdx.x;
    uint32_t filled = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        if (first + i < p.places && p.filled[first + i] != 0) filled |= 1u << i;
    }
    const uint32_t own = (uint32_t)__popc(filled);
    const uint32_t up_to = wc_warp_inclusive_sum(own);
    if (lane == 31) parts[warp] = up_to;
    __syncthreads();
    uint32_t of_warps = 0, all = 0;
    for (uint32_t other = 0; other < 8; ++other) {
        if (other < warp) of_warps += parts[other];
        all += parts[other];
    }
    if (warp == 0) {
        if (lane == 0 && tile > 0) wc_store_relaxed(p.states + tile, WC_CELL_ALONE | all);
        const uint64_t before = wc_cells_before(p.states, tile);
        if (lane == 0) {
            wc_store_relaxed(p.states + tile, WC_CELL_UP_TO | (before + all));
            *shared_before = before;
            if ((uint64_t)(tile + 1) * WC_CELL_TILE >= p.places) *p.count = before + all;
        }
    }
    __syncthreads();
    uint64_t at = *shared_before + of_warps + up_to - own;
    for (; filled != 0; filled &= filled - 1, ++at) {
        if (at >= p.capacity) break;
        const uint64_t place = first + (uint32_t)__ffs((int)filled) - 1;
        uint64_t* const cell = p.cells + (1 + WC_SUM_WORDS) * at;
        cell[0] = wc_cell_rank(p, place);
#pragma unroll
        for (uint32_t word = 0; word < WC_SUM_WORDS; ++word) cell[1 + word] = p.sums[WC_SUM_WORDS * place + word];
    }
}
