// Ordered aggregation: one pass over keys whose equal ones are neighbours gives each run's key, its number of rows
// (WC_COUNT) and the sum of a value column over it (WC_SUM).
//
// Input: n keys of WC_KEY; n values of WC_IN. Output: the key, count and sum of each run in the order of rows, and the
// number of runs. What lies at `capacity` and behind is counted and not written. Scratch: lookback.cuh, with states of
// OrderedState::WORDS words. Mapping: a block a tile by ticket, rows of 16 bytes a lane (tile.cuh). A key that differs
// from the one before it is a head; a head closes the run before it. A tile's state is the number of its heads, the row
// of the last one, and the sum of values from there on; its first head closes a run that began in a tile before.
// Shared memory: key, row and sum of the heads of a tile. Registers: a lane's keys and values. Bytes: keys and values
// read once, 32 bytes of each part of a tile twice; runs written once. Numerics: keys are equal if their bits by
// keys.cuh are; integers wrap; doubles are added in an order that differs from run to run where a run of keys has
// several tiles.
// Source: the paper "Code fusion of prefix sum with ordered aggregation" (mapping, prefix sum, offsets, aggregation),
// fused to one kernel by decoupled look-back; segmented scans of lanes after Sengupta et al. 2007.

typedef WcKey<WC_KEY>::Bits KeyBits;

struct OrderedState {
    uint64_t heads;
    uint64_t last;  // row of the last head, if there is one
#ifdef WC_SUM
    WC_SUM sum;     // of the rows from there on, or of all
#endif

    static WC_INLINE OrderedState none() {
        OrderedState state;
        state.heads = state.last = 0;
#ifdef WC_SUM
        state.sum = (WC_SUM)0;
#endif
        return state;
    }
    static WC_INLINE OrderedState join(const OrderedState& earlier, const OrderedState& later) {
        OrderedState state;
        state.heads = earlier.heads + later.heads;
        state.last = later.heads != 0 ? later.last : earlier.last;
#ifdef WC_SUM
        state.sum = later.heads != 0 ? later.sum : earlier.sum + later.sum;
#endif
        return state;
    }
    static WC_INLINE OrderedState join_lanes(const OrderedState& state, uint32_t last) {
        const uint32_t nearest = wc_nearest(state.heads != 0, last);
        OrderedState joined = none();
        joined.heads = wc_lanes_count(state.heads, last);
#ifdef WC_COUNT
        joined.last = __shfl_sync(WC_FULL_MASK, state.last, (int)nearest);
#endif
#ifdef WC_SUM
        joined.sum = wc_lanes_total(wc_lane() <= nearest ? state.sum : (WC_SUM)0);
#endif
        return joined;
    }
// The words: heads below 2^60 and the two highest bits of the sum; the row; the other bits of the sum.
#if defined(WC_COUNT) && defined(WC_SUM)
    static const int WORDS = 3;
#elif defined(WC_COUNT) || defined(WC_SUM)
    static const int WORDS = 2;
#else
    static const int WORDS = 1;
#endif
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const {
        words[0] = heads;
#ifdef WC_COUNT
        words[1] = last;
#endif
#ifdef WC_SUM
        const uint64_t bits = wc_sum_bits(sum);
        words[0] |= bits >> WC_STATE_BITS << 60;
        words[WORDS - 1] = bits & WC_STATE_MASK;
#endif
    }
    static WC_INLINE OrderedState unpack(const uint64_t (&words)[WORDS]) {
        OrderedState state = none();
        state.heads = words[0] & (1ull << 60) - 1;
#ifdef WC_COUNT
        state.last = words[1];
#endif
#ifdef WC_SUM
        state.sum = WcSumOf<WC_SUM>::bits(words[0] >> 60 << WC_STATE_BITS | words[WORDS - 1]);
#endif
        return state;
    }
};

struct OrderedParams {
    const WC_KEY* keys;
    WC_KEY* keys_out;
    uint64_t* runs;
    uint64_t capacity;
    char* scratch;
    uint64_t n;
    uint64_t aligned;
    uint64_t ahead;  // distance in tiles of the one that is brought to the L2 cache
#ifdef WC_COUNT
    WC_COUNT* counts;
#endif
#ifdef WC_SUM
    const WC_IN* values;
    WC_SUM* sums;
#endif
};

// Nanoseconds that a block waits before it looks back; it is done with a tile of keys alone sooner.
#ifdef WC_SUM
#define WC_LOOK_WAIT 1000
#else
#define WC_LOOK_WAIT 500
#endif
#define WC_WARPS (WC_THREADS / 32)
#define WC_PART_ITEMS (32 * WC_VEC * WC_ROWS)
#define WC_TILE_ITEMS (WC_PART_ITEMS * WC_WARPS)

struct alignas(16) OrderedShared {
    uint64_t tile;
    uint64_t before[4];  // state of the tiles before: heads, row, bits of the sum
    uint64_t sums[WC_WARPS];
    uint32_t heads[WC_WARPS];
    uint32_t lasts[WC_WARPS];  // the row of the last head in the part, plus one
};

// The bits that lane - 1 gives; lane 0 gets what lane 31 gives.
WC_DEVICE uint64_t wc_rotate(uint64_t bits) { return __shfl_sync(WC_FULL_MASK, bits, (int)(wc_lane() + 31) & 31); }
WC_DEVICE uint32_t wc_rotate(uint32_t bits) { return __shfl_sync(WC_FULL_MASK, bits, (int)(wc_lane() + 31) & 31); }
WC_DEVICE uint8_t wc_rotate(uint8_t bits) { return (uint8_t)wc_rotate((uint32_t)bits); }
WC_DEVICE uint128_t wc_rotate(uint128_t bits) {
    return (uint128_t)wc_rotate((uint64_t)(bits >> 64)) << 64 | wc_rotate((uint64_t)bits);
}

WC_KERNEL(wc_ordered, OrderedParams, WC_THREADS, WC_BLOCKS) {
    OrderedShared& shared = *(OrderedShared*)wc_shared();
    char* room = wc_shared() + sizeof(OrderedShared);
    WC_KEY* staged_keys = (WC_KEY*)room;
    room += sizeof(WC_KEY) * WC_TILE_ITEMS;
#ifdef WC_SUM
    WC_SUM* staged_sums = (WC_SUM*)room;
    room += sizeof(WC_SUM) * WC_TILE_ITEMS;
#endif
#ifdef WC_COUNT
    uint16_t* staged_rows = (uint16_t*)room;
    static_assert(WC_TILE_ITEMS <= 65536, "rows of a tile have 16 bits");
#endif
    if (threadIdx.x == 0) shared.tile = wc_draw_tile(p.scratch);
    __syncthreads();
    const uint64_t tile = shared.tile;
    const uint32_t warp = wc_warp(), lane = wc_lane();
    const uint64_t tile_row = tile * WC_TILE_ITEMS, from = tile_row + warp * WC_PART_ITEMS;
    const bool aligned = p.aligned != 0;

    WC_KEY keys[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(keys, p.keys, from, p.n, aligned, (WC_KEY)0);
#ifdef WC_SUM
    WC_IN values[WC_ROWS][WC_VEC];
    wc_load_part<WC_VEC, WC_ROWS>(values, p.values, from, p.n, aligned, (WC_IN)0);
#endif
    wc_prefetch_part<WC_PART_ITEMS>(p.keys, from + p.ahead * WC_TILE_ITEMS, p.n, aligned);
#ifdef WC_SUM
    wc_prefetch_part<WC_PART_ITEMS>(p.values, from + p.ahead * WC_TILE_ITEMS, p.n, aligned);
#endif
    KeyBits above = 0;
    if (lane == 0 && from > 0 && from < p.n) above = WcKey<WC_KEY>::to_bits(p.keys[from - 1]);

    // Heads, a bit each.
    uint32_t marks = 0;
#pragma unroll
    for (int j = 0; j < WC_ROWS; ++j) {
        // Lane 31 gives the last key of the row before, which lane 0 takes.
        const WC_KEY last = lane == 31 && j > 0 ? keys[j == 0 ? 0 : j - 1][WC_VEC - 1] : keys[j][WC_VEC - 1];
        KeyBits before = wc_rotate(WcKey<WC_KEY>::to_bits(last));
        if (j == 0 && lane == 0) before = above;
#pragma unroll
        for (int k = 0; k < WC_VEC; ++k) {
            const KeyBits bits = WcKey<WC_KEY>::to_bits(keys[j][k]);
            marks |= (bits != before ? 1u : 0u) << (j * WC_VEC + k);
            before = bits;
        }
    }
    if (from == 0 && lane == 0) marks |= 1u;
    if (from + WC_PART_ITEMS > p.n) {
#pragma unroll
        for (int i = 0; i < WC_ROWS * WC_VEC; ++i) {
            const uint64_t row = from + (i / WC_VEC) * 32 * WC_VEC + lane * WC_VEC + i % WC_VEC;
            if (row >= p.n) marks &= ~(1u << i);
        }
    }
    const WcRanks<WC_VEC, WC_ROWS> ranks(marks);

#ifdef WC_COUNT
    const uint32_t highest = marks == 0 ? 0 : 31 - (uint32_t)__clz((int)marks);
    const uint32_t last_row = (highest / WC_VEC * 32 + lane) * WC_VEC + highest % WC_VEC;
    const uint32_t part_last = __reduce_max_sync(WC_FULL_MASK, marks == 0 ? 0u : last_row + 1);
    if (lane == 0) shared.lasts[warp] = part_last;
#endif
#ifdef WC_SUM
    // The sum that reaches a lane's first item of a row from the last head before it in the part, or from its begin.
    WC_SUM reaching[WC_ROWS], open = (WC_SUM)0;
    if (ranks.total == 0) {
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            reaching[j] = (WC_SUM)0;
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) open += WC_WIDEN(values[j][k]);
        }
        open = wc_warp_sum(open);
    } else {
        WC_SUM sums[WC_ROWS];
        uint32_t heads[WC_ROWS], in_all = WC_FULL_MASK;
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            sums[j] = (WC_SUM)0;
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) {
                const WC_SUM value = WC_WIDEN(values[j][k]);
                sums[j] = marks >> (j * WC_VEC + k) & 1u ? value : sums[j] + value;
            }
            heads[j] = __ballot_sync(WC_FULL_MASK, WcRanks<WC_VEC, WC_ROWS>::row(marks, j) != 0);
            in_all &= heads[j];
        }
        if (in_all != WC_FULL_MASK) wc_lanes_sums_since(sums, heads);
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            const WC_SUM row = __shfl_sync(WC_FULL_MASK, sums[j], 31);
            reaching[j] = wc_from_below(sums[j], (WC_SUM)0);
            if ((heads[j] & ((1u << lane) - 1)) == 0) reaching[j] += open;
            open = heads[j] == 0 ? open + row : row;
        }
    }
    if (lane == 0) shared.sums[warp] = wc_sum_bits(open);
#endif
    if (lane == 0) shared.heads[warp] = ranks.total;
    __syncthreads();

    // What the parts before one's own leave open, and the state of the tile: a part a lane.
    const uint32_t part_heads = lane < WC_WARPS ? shared.heads[lane] : 0;
    const uint32_t heads_up_to = wc_warp_inclusive_sum(part_heads);
    const uint32_t begun = __ballot_sync(WC_FULL_MASK, part_heads != 0);
    const uint32_t total = __shfl_sync(WC_FULL_MASK, heads_up_to, 31);
    const uint32_t warp_first = __shfl_sync(WC_FULL_MASK, heads_up_to - part_heads, (int)warp);
#ifdef WC_COUNT
    const uint32_t last_part = begun == 0 ? 0 : 31 - (uint32_t)__clz((int)begun);
    const uint32_t tile_last = begun == 0 ? 0 : last_part * WC_PART_ITEMS + shared.lasts[last_part] - 1;
#endif
#ifdef WC_SUM
    const WC_SUM part_sum = lane < WC_WARPS ? WcSumOf<WC_SUM>::bits(shared.sums[lane]) : (WC_SUM)0;
    const WC_SUM sum_up_to = wc_lanes_sum_since(part_sum, begun);
    const WC_SUM carried = __shfl_sync(WC_FULL_MASK, sum_up_to, 31);
    const WC_SUM before_warp = __shfl_sync(WC_FULL_MASK, sum_up_to, (int)(warp + 31) & 31);
    const WC_SUM warp_carried = warp == 0 ? (WC_SUM)0 : before_warp;
#endif
    OrderedState own = OrderedState::none();
    own.heads = total;
#ifdef WC_COUNT
    own.last = tile_row + tile_last;
#endif
#ifdef WC_SUM
    own.sum = carried;
#endif
    if (threadIdx.x == 0) wc_announce_tile(p.scratch, tile, own);

    if (marks != 0) {
#pragma unroll
        for (int j = 0; j < WC_ROWS; ++j) {
            if (WcRanks<WC_VEC, WC_ROWS>::row(marks, j) == 0) continue;
            uint32_t rank = warp_first + ranks.before[j];
#ifdef WC_SUM
            WC_SUM running = reaching[j];
            if (ranks.before[j] == 0) running += warp_carried;
#endif
#pragma unroll
            for (int k = 0; k < WC_VEC; ++k) {
                if (marks >> (j * WC_VEC + k) & 1u) {
                    staged_keys[rank] = keys[j][k];
#ifdef WC_COUNT
                    staged_rows[rank] = (uint16_t)(warp * WC_PART_ITEMS + (j * 32 + lane) * WC_VEC + k);
#endif
#ifdef WC_SUM
                    staged_sums[rank] = running;
                    running = (WC_SUM)0;
#endif
                    rank++;
                }
#ifdef WC_SUM
                running += WC_WIDEN(values[j][k]);
#endif
            }
        }
    }
    if (warp == 0) {
        const OrderedState before = wc_look_back(p.scratch, tile, own, WC_LOOK_WAIT);
        if (lane == 0) {
            shared.before[0] = before.heads;
            shared.before[1] = before.last;
#ifdef WC_SUM
            shared.before[2] = wc_sum_bits(before.sum);
#endif
        }
    }
    __syncthreads();

    // Head i of the tile is run before + i, and closes the run before that one. A warp stores to the same 32 elements.
    const uint64_t before = shared.before[0];
    if (before < p.capacity) {
        const uint32_t shift = (uint32_t)before & 31u;
        const uint32_t end = (uint32_t)min((uint64_t)total, p.capacity - before) + shift;
        WC_KEY* out = p.keys_out + (before - shift);
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < end; i += WC_THREADS) {
            if (i >= shift) out[i] = staged_keys[i - shift];
        }
    }
#if defined(WC_COUNT) || defined(WC_SUM)
    // The first head of the tile closes a run that began in another tile; there is none before the first run.
    if (threadIdx.x == 0 && total > 0 && before > 0 && before <= p.capacity) {
#ifdef WC_COUNT
        p.counts[before - 1] = (WC_COUNT)(tile_row + staged_rows[0] - shared.before[1]);
#endif
#ifdef WC_SUM
        p.sums[before - 1] = WcSumOf<WC_SUM>::bits(shared.before[2]) + staged_sums[0];
#endif
    }
    if (before < p.capacity && total > 1) {
        const uint32_t shift = (uint32_t)before & 31u;
        const uint32_t end = (uint32_t)min((uint64_t)(total - 1), p.capacity - before) + shift;
#ifdef WC_COUNT
        WC_COUNT* counts = p.counts + (before - shift);
#endif
#ifdef WC_SUM
        WC_SUM* sums = p.sums + (before - shift);
#endif
#pragma unroll 4
        for (uint32_t i = threadIdx.x; i < end; i += WC_THREADS) {
            if (i < shift) continue;
            const uint32_t head = i - shift + 1;
#ifdef WC_COUNT
            counts[i] = (WC_COUNT)(staged_rows[head] - staged_rows[head - 1]);
#endif
#ifdef WC_SUM
            sums[i] = staged_sums[head];
#endif
        }
    }
#endif
    if (tile == gridDim.x - 1 && threadIdx.x == 0) {
        const uint64_t runs = before + total;
        *p.runs = runs;
#ifdef WC_COUNT
        if (runs <= p.capacity) p.counts[runs - 1] = (WC_COUNT)(p.n - (total == 0 ? shared.before[1] : own.last));
#endif
#ifdef WC_SUM
        const WC_SUM sum = total == 0 ? WcSumOf<WC_SUM>::bits(shared.before[2]) + own.sum : own.sum;
        if (runs <= p.capacity) p.sums[runs - 1] = sum;
#endif
    }
}
