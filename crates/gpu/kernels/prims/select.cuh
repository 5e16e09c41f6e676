// Select, partition and split: items that are marked move together.
//
// Input: n items of WC_ITEM, if they move or are asked (WC_KEEPS); n flags of a byte if nothing is asked. Output: the
// marked items, or their row numbers (WC_ROW), in their order (WC_STABLE) or in any; behind `others` the items that
// are not marked, in their order (WC_PARTITION); their number. What lies at `capacity` and behind is counted and not
// written. Where WC_SPLIT is defined, flags mark heads of segments, row 0 is a head, and n follows the last head.
// Scratch: lookback.cuh where the order is kept. `count` is zero before a launch that keeps no order.
// Mapping: a block a tile (tile.cuh), by ticket where the order is kept. Marks are a bit an item; marked items are put
// together in shared memory, and the block stores them as they lie in the output, 128 bytes a warp. Where no order is
// promised, a block reserves its part of the output by one atomic addition.
// Shared memory: the items of a tile. Registers: the items of a lane, 128 bytes at the default tuning. Bytes: items and
// flags read once, what moves written once.
// Source: Billeter, Olsson and Assarsson, Efficient Stream Compaction on Wide SIMD Many-Core Architectures (2009), with
// decoupled look-back; Shanbhag's thesis, 3.2 (block-wide select with one atomic a tile) for the unordered form.

#ifdef WC_ROW
typedef uint32_t Staged;   // rows of the tile
typedef WC_ROW Moved;
#else
typedef WC_ITEM Staged;
typedef WC_ITEM Moved;
#endif
#ifndef WC_ITEM
#define WC_ITEM uint8_t
#endif

struct SelectParams {
    const WC_ITEM* in;
    const uint8_t* flags;
    uint64_t a, b;  // bits of the bounds that WC_KEEPS may name
    Moved* out;
    Moved* others;
    uint64_t* count;
    uint64_t capacity;
    char* scratch;
    uint64_t n;
    uint64_t aligned;
};

struct alignas(16) SelectShared {
    uint64_t tile;
    uint64_t before;
    uint32_t warps[WC_THREADS / 32];
};

#ifdef WC_KEEPS
// The bound of 64 bits; items of 16 bytes extend it by its sign, or by zeros if they have none.
WC_DEVICE WC_ITEM wc_bound(uint64_t bits) {
    WC_ITEM bound = (WC_ITEM)-1 < (WC_ITEM)1 ? (WC_ITEM)(int64_t)bits : (WC_ITEM)bits;
    if (sizeof bound <= 8) memcpy(&bound, &bits, sizeof bound <= 8 ? sizeof bound : 8);
    return bound;
}
WC_DEVICE bool wc_keeps(const WC_ITEM x, const WC_ITEM a, const WC_ITEM b) { return WC_KEEPS; }
#endif

// Stores staged[0..count] at `at` of the output; a warp stores to the same 32 elements from 32 * i on.
WC_DEVICE void wc_copy_out(
    Moved* out, uint64_t at, uint64_t capacity, const Staged* staged, uint32_t count, uint64_t tile_row) {
    if (at >= capacity) return;
    if (count > capacity - at) count = (uint32_t)(capacity - at);
    const uint32_t shift = (uint32_t)at & 31u;
    for (uint32_t i = threadIdx.x; i < count + shift; i += WC_THREADS) {
        if (i < shift) continue;
#ifdef WC_ROW
        out[at - shift + i] = (Moved)(tile_row + staged[i - shift]);
#else
        out[at - shift + i] = staged[i - shift];
#endif
    }
}

WC_KERNEL(wc_select, SelectParams, WC_THREADS, WC_BLOCKS) {
    SelectShared& shared = *(SelectShared*)wc_shared();
    Staged* staged = (Staged*)(wc_shared() + sizeof(SelectShared));
    const uint32_t PART_ITEMS = 32 * WC_VEC * WC_ROWS, TILE_ITEMS = PART_ITEMS * (WC_THREADS / 32);
    const uint32_t warp = wc_warp(), lane = wc_lane();
#ifdef WC_STABLE
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(p.scratch);
    __syncthreads();
    const uint64_t tile = shared.tile;
#else
    const uint64_t tile = blockIdx.x;
#endif
    const uint64_t tile_row = tile * TILE_ITEMS, from = tile_row + warp * PART_ITEMS;
    const bool aligned = p.aligned != 0;

    uint32_t marks = 0;
#if defined(WC_KEEPS) || !defined(WC_ROW)
    WC_ITEM items[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(items, p.in, from, p.n, aligned, (WC_ITEM)0);
#endif
#ifdef WC_KEEPS
    const WC_ITEM a = wc_bound(p.a), b = wc_bound(p.b);
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) marks |= (wc_keeps(items[j][k], a, b) ? 1u : 0u) << (j * WC_VEC + k);
    }
#else
    uint8_t flags[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(flags, p.flags, from, p.n, aligned, (uint8_t)0);
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) marks |= (flags[j][k] != 0 ? 1u : 0u) << (j * WC_VEC + k);
    }
#ifdef WC_SPLIT
    if (tile == 0 && threadIdx.x == 0) marks |= 1u;
#endif
#endif
    // Items that there are.
    uint32_t there = 0xffffffffu;
    if (from + PART_ITEMS > p.n) {
        there = 0;
#pragma unroll
        for (int i = 0; i < WC_ROWS * WC_VEC; ++i) {
            const uint64_t row = from + (i / WC_VEC) * 32 * WC_VEC + lane * WC_VEC + i % WC_VEC;
            there |= (row < p.n ? 1u : 0u) << i;
        }
        marks &= there;
    }

    const WcRanks<WC_VEC, WC_ROWS> ranks(marks);
    if (lane == 0) shared.warps[warp] = ranks.total;
    __syncthreads();
    const uint32_t up_to = wc_warp_inclusive_sum(lane < WC_THREADS / 32 ? shared.warps[lane] : 0u);
    const uint32_t total = __shfl_sync(WC_FULL_MASK, up_to, 31);
    const uint32_t below = __shfl_sync(WC_FULL_MASK, up_to, (int)(warp == 0 ? 0 : warp - 1));
    const uint32_t warp_first = warp == 0 ? 0 : below;
#ifdef WC_STABLE
    const WcCount own = {total};
    if (threadIdx.x == 0) wc_announce_tile(p.scratch, tile, own);
#else
    if (threadIdx.x == 0) shared.before = total == 0 ? 0 : wc_fetch_add(p.count, (uint64_t)total);
#endif

#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        uint32_t rank = warp_first + ranks.before[j];
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            const uint32_t row = warp * PART_ITEMS + (j * 32 + lane) * WC_VEC + k, bit = 1u << (j * WC_VEC + k);
#ifdef WC_ROW
            const Staged item = row;
#else
            const Staged item = items[j][k];
#endif
            if (marks & bit) {
                staged[rank] = item;
                rank++;
            }
#ifdef WC_PARTITION
            else if (there & bit) {
                staged[total + row - rank] = item;
            }
#endif
        }
    }
#ifdef WC_STABLE
    if (warp == 0) {
        const WcCount before = wc_look_back(p.scratch, tile, own, 1000);
        if (lane == 0) shared.before = before.count;
    }
#endif
    __syncthreads();

    const uint64_t before = shared.before;
    wc_copy_out(p.out, before, p.capacity, staged, total, tile_row);
#ifdef WC_PARTITION
    const uint32_t rows = p.n - tile_row < TILE_ITEMS ? (uint32_t)(p.n - tile_row) : TILE_ITEMS;
    wc_copy_out(p.others, tile_row - before, ~0ull, staged + total, rows - total, tile_row);
#endif
#ifdef WC_STABLE
    if (tile == gridDim.x - 1 && threadIdx.x == 0) {
        *p.count = before + total;
#ifdef WC_SPLIT
        if (before + total < p.capacity) p.out[before + total] = (Moved)p.n;
#endif
    }
#endif
}
