// Segmented reduce and scan: joins (monoid.cuh) over segments of any sizes, one huge, millions of tiny ones, empty
// ones.
//
// Input: n items of WC_IN; segments + 1 ascending offsets, segment s having the rows offsets[s] .. offsets[s + 1].
// Output: a Result a segment (reduce), or one a row (WC_SCAN, without the row itself where WC_EXCLUSIVE is defined).
// Scratch: lookback.cuh with states of two words, then the first segment of each tile and of the end.
// Balance: items and ends of segments are merged by position, the end of segment s at offsets[s + 1] + s, and a tile is
// WC_TILE_ITEMS positions of the merged sequence: each tile has as much to do, whatever the sizes. wc_segment_starts
// finds by binary search how many ends lie before each tile; wc_segmented is one pass with decoupled look-back.
// Mapping: a block a tile by ticket; a thread has 16 positions, of which a bitmap in shared memory says which are ends.
// Shared memory: items and results of a tile, padded by a word in 32 so that threads 16 positions apart use different
// banks. Registers: 16 sums a thread. Bytes: items and offsets once, results once. Numerics: integers wrap; doubles
// are added in an order that differs from run to run where a segment has several tiles; an empty segment has the
// result of nothing.
// Source: Merrill and Garland, Merge-based Parallel Sparse Matrix-Vector Multiplication (SC 2016), for the balance;
// Sengupta et al. 2007 for segmented scans by flags.

#define WC_ITEMS 16
#define WC_WARPS (WC_THREADS / 32)
#define WC_TILE_ITEMS (WC_THREADS * WC_ITEMS)
#define WC_PADDED_ITEMS (WC_TILE_ITEMS + WC_TILE_ITEMS / 32)

typedef WcSegment<Part> SegmentState;

struct SegmentedParams {
    const WC_IN* in;
    const uint64_t* offsets;
    Result* out;
    char* scratch;
    uint64_t* starts;
    uint64_t n;
    uint64_t segments;
    uint64_t tiles;
    uint64_t aligned;
};

struct alignas(16) SegmentedShared {
    uint64_t tile;
    uint64_t before;  // bits of the sum that is open before the tile
    uint64_t sums[WC_WARPS];
    uint32_t ended[WC_WARPS];
    uint32_t ends[WC_TILE_ITEMS / 32];  // a bit a position
};

WC_DEVICE uint32_t wc_padded(uint32_t at) { return at + at / 32; }

// The number of ends before each tile. A thread a tile, and one for the end.
WC_KERNEL(wc_segment_starts, SegmentedParams, 128, 1) {
    const uint64_t tile = (uint64_t)blockIdx.x * 128 + threadIdx.x;
    if (tile > p.tiles) return;
    const uint64_t position = min(tile * WC_TILE_ITEMS, p.n + p.segments);
    // The ends before `low` lie before the position, those at `high` and behind do not.
    uint64_t low = position > p.n ? position - p.n : 0, high = min(position, p.segments);
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (p.offsets[middle + 1] + middle < position) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    p.starts[tile] = low;
}

// Stages items first .. first + count of the input; those of a thread are asked for at once.
WC_DEVICE void wc_stage_items(
    WC_IN* staged, const WC_IN* in, uint64_t n, uint64_t first, uint32_t count, bool aligned) {
    const uint32_t shift = aligned ? (uint32_t)(first % WC_VEC) : 0;
    const uint64_t base = first - shift;
    const uint32_t WORDS = WC_ITEMS / WC_VEC + 1;
    WC_IN words[WORDS][WC_VEC];
#pragma unroll
    for (uint32_t i = 0; i < WORDS; ++i) {
        const uint32_t at = (i * WC_THREADS + threadIdx.x) * WC_VEC;
        if (at >= shift + count) continue;
        if (aligned && base + at + WC_VEC <= n) {
            wc_load_items<WC_VEC>(words[i], in + base + at);
        } else {
#pragma unroll
            for (uint32_t k = 0; k < WC_VEC; ++k) {
                words[i][k] = base + at + k < n ? wc_load_stream(in + base + at + k) : (WC_IN)0;
            }
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < WORDS; ++i) {
#pragma unroll
        for (uint32_t k = 0; k < WC_VEC; ++k) {
            const uint32_t at = (i * WC_THREADS + threadIdx.x) * WC_VEC + k;
            if (at >= shift && at < shift + count) staged[wc_padded(at - shift)] = words[i][k];
        }
    }
}

WC_KERNEL(wc_segmented, SegmentedParams, WC_THREADS, WC_BLOCKS) {
    SegmentedShared& shared = *(SegmentedShared*)wc_shared();
    Part* results = (Part*)(wc_shared() + sizeof(SegmentedShared));
    WC_IN* staged = (WC_IN*)(results + WC_PADDED_ITEMS);
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(p.scratch);
    for (uint32_t i = threadIdx.x; i < WC_TILE_ITEMS / 32; i += WC_THREADS) shared.ends[i] = 0;
    __syncthreads();
    const uint64_t tile = shared.tile;
    const uint32_t warp = wc_warp(), lane = wc_lane();
    const uint64_t position = tile * WC_TILE_ITEMS;
    const uint64_t first_segment = p.starts[tile], first_row = position - first_segment;
    const uint32_t segments = (uint32_t)(p.starts[tile + 1] - first_segment);
    const uint64_t next = min(position + WC_TILE_ITEMS, p.n + p.segments);
    const uint32_t rows = (uint32_t)(next - position) - segments;
    for (uint32_t i = threadIdx.x; i < segments; i += WC_THREADS) {
        const uint64_t segment = first_segment + i;
        const uint32_t end = (uint32_t)(wc_load_stream(p.offsets + segment + 1) + segment - position);
        wc_or(shared.ends + end / 32, 1u << end % 32);
    }
    wc_stage_items(staged, p.in, p.n, first_row, rows, p.aligned != 0);
    __syncthreads();

    // Ends before the thread's first position: in the words before the warp's 16, and in the lanes below.
    uint32_t ends_before = 0;
    for (uint32_t i = lane; i < warp * 16; i += 32) ends_before += (uint32_t)__popc(shared.ends[i]);
    ends_before = wc_warp_sum(ends_before);
    const uint32_t ends = shared.ends[threadIdx.x / 2] >> threadIdx.x % 2 * 16 & 0xffffu;
    const uint32_t own_ends = (uint32_t)__popc(ends);
    ends_before += wc_warp_inclusive_sum(own_ends) - own_ends;
    const uint32_t rows_before = threadIdx.x * WC_ITEMS - ends_before;

    Part items[WC_ITEMS], sum = wc_nothing();
    uint32_t row = rows_before;
#pragma unroll
    for (int i = 0; i < WC_ITEMS; ++i) {
        items[i] = wc_nothing();
        if (ends >> i & 1u) {
            sum = wc_nothing();
        } else {
            if (row < rows) items[i] = wc_part(staged[wc_padded(row)]);
            sum = wc_join(sum, items[i]);
            row++;
        }
    }
    // What reaches the thread's first position from the lanes below, the warps before and the tiles before.
    const uint32_t ended = __ballot_sync(WC_FULL_MASK, ends != 0);
    const Part up_to = wc_lanes_join_since(sum, ended);
    Part reaching = wc_from_below(up_to, wc_nothing());
    if (lane == 31) {
        shared.sums[warp] = wc_sum_bits(up_to);
        shared.ended[warp] = ended;
    }
    __syncthreads();
    SegmentState own = SegmentState::none(), warps = SegmentState::none();
#pragma unroll
    for (uint32_t w = 0; w < WC_WARPS; ++w) {
        if (w == warp) warps = own;
        const SegmentState part = {shared.ended[w] != 0 ? 1ull : 0ull, WcSumOf<Part>::bits(shared.sums[w])};
        own = SegmentState::join(own, part);
    }
    if (warp == 0) {
        if (lane == 0) wc_announce_tile(p.scratch, tile, own);
        const SegmentState before = wc_look_back(p.scratch, tile, own);
        if (lane == 0) shared.before = wc_sum_bits(before.sum);
    }
    __syncthreads();
    if ((ended & ((1u << lane) - 1)) == 0) {
        reaching = wc_join(warps.sum, reaching);
        if (warps.ended == 0) reaching = wc_join(WcSumOf<Part>::bits(shared.before), reaching);
    }

    sum = reaching;
    row = rows_before;
#ifndef WC_SCAN
    uint32_t segment = ends_before;
#endif
#pragma unroll
    for (int i = 0; i < WC_ITEMS; ++i) {
        if (ends >> i & 1u) {
#ifndef WC_SCAN
            results[wc_padded(segment)] = sum;
            segment++;
#endif
            sum = wc_nothing();
        } else {
#if defined(WC_SCAN) && defined(WC_EXCLUSIVE)
            if (row < rows) results[wc_padded(row)] = sum;
#endif
            sum = wc_join(sum, items[i]);
#if defined(WC_SCAN) && !defined(WC_EXCLUSIVE)
            if (row < rows) results[wc_padded(row)] = sum;
#endif
            row++;
        }
    }
    __syncthreads();
#ifdef WC_SCAN
    const uint64_t first = first_row;
    const uint32_t count = rows;
#else
    const uint64_t first = first_segment;
    const uint32_t count = segments;
#endif
    const uint32_t shift = (uint32_t)first & 31u;
    for (uint32_t i = threadIdx.x; i < count + shift; i += WC_THREADS) {
        if (i >= shift) p.out[first - shift + i] = wc_result(results[wc_padded(i - shift)]);
    }
}
